/* help_golden.h - expectations from an implementation that is not ours, and a model opened to be held to them.
 *
 * The .vec format is documented in tools/make_golden.py. */
#ifndef SL_TEST_HELP_GOLDEN_H
#define SL_TEST_HELP_GOLDEN_H

#include "sluice.h"

enum { GOLDEN_MAX_PROMPT = 8, GOLDEN_MAX_NOISE = 4 };

/* llama.cpp's distance from the same expectations on the file of this type. */
typedef struct golden_noise {
    char type[16];
    double nmse;
    double max;
} golden_noise;

/* One prompt. Arrays that the file does not give are NULL. */
typedef struct golden_prompt {
    char name[16];
    int32_t n_ids;
    int32_t n_greedy;
    int32_t *ids;
    int32_t *argmax;  /* [n_ids] */
    float *max;       /* [n_ids] */
    float *logsumexp; /* [n_ids] */
    float *last;      /* [n_vocab] */
    float *logits;    /* [n_ids, n_vocab] */
    int32_t *greedy;  /* [n_greedy] */
    float *gaps;      /* [n_greedy] */
    int32_t n_noise;
    golden_noise noise[GOLDEN_MAX_NOISE];
} golden_prompt;

typedef struct golden_vec {
    char model[64];
    int32_t n_vocab;
    int32_t window; /* 0, or: positions from here on cannot be compared */
    int32_t n_prompt;
    golden_prompt prompt[GOLDEN_MAX_PROMPT];
} golden_vec;

/* Fails the running test, naming file and line, when the file is not there or not in the format. */
void golden_load(const char *path, golden_vec *out);
void golden_free(golden_vec *vec);
/* NULL when there is no such prompt. */
const golden_prompt *golden_find(const golden_vec *vec, const char *name);

/* A file of tests/data/golden. */
const char *golden_path(const char *file);

/* The models of the tree, "llama_spm-q8_0"; ends with NULL. */
extern const char *const golden_tree[];

/* An engine with one model and one session; any of them may be NULL. */
typedef struct golden_rig {
    sl_engine *engine;
    sl_model *model;
    sl_session *session;
    int32_t n_vocab;
} golden_rig;

/* Opens all three; the running test fails with the library's own words when one does not open. Options may be NULL. */
void golden_open(golden_rig *rig, const char *path, const sl_engine_options *engine_options,
                 const sl_model_options *model_options, const sl_session_options *session_options);
void golden_close(golden_rig *rig);

/* Evaluate ids as one call and copy all their logits to out [n_ids, n_vocab]. */
void golden_eval(golden_rig *rig, const int32_t *ids, int32_t n_ids, float *out);

/* sum (a-b)^2 / sum b^2 and the largest |a-b|; max_abs may be NULL. */
double golden_nmse(const float *a, const float *b, size_t n, double *max_abs);
/* Index of the largest value, the first one of equals. */
int32_t golden_argmax(const float *x, int32_t n);
/* Largest minus second largest. */
float golden_gap(const float *x, int32_t n);

/* A GGUF of a vocabulary alone, with a ChatML template: every printable ASCII character, line end, both control tokens.
 * To be opened with vocab_only. Free it with help_gguf_free after the model. */
struct help_gguf;
struct help_gguf *golden_chat_gguf(void);

/* malloc that fails the running test instead of returning NULL. */
void *golden_alloc(size_t n, size_t size);

/* Check a status; on a difference the test fails with both names and the error's text. */
#define GOLDEN_STATUS(got, want, err) golden_status((got), (want), (err), __FILE__, __LINE__)
void golden_status(sl_status got, sl_status want, const sl_error *err, const char *file, int line);

#endif
