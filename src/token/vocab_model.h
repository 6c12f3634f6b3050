/* vocab_model.h - what a tokenizer algorithm supplies (a row of tokenizers.def), and what it works with. */
#ifndef SL_TOKEN_VOCAB_MODEL_H
#define SL_TOKEN_VOCAB_MODEL_H

#include "token/vocab.h"

/* A merge that may be done, in the queue of one word. */
typedef struct sl_merge_job {
    uint32_t priority; /* less is sooner; equal ones from the left */
    uint32_t left, end;
    int32_t result;
} sl_merge_job;

/* A symbol is a run of the word's bytes; it is kept at the index of its first byte. */
typedef struct sl_merge_symbol {
    uint32_t prev; /* of the symbol before; UINT32_MAX: none */
    uint32_t next; /* where the symbol ends and the next begins; 0: not a symbol (any more) */
    int32_t id;    /* -1: none */
} sl_merge_symbol;

/* One call of sl_tokenizer_encode: where ids go, and buffers that grow as needed and are used again for every word. */
typedef struct sl_encoder {
    const sl_vocab *v;
    int32_t *ids;
    size_t cap, n;
    size_t
        n_at_unk; /* value of n right after an unknown token was put: the next one may fuse with it */
    sl_merge_symbol *symbol;
    size_t cap_symbol;
    sl_merge_job *job;
    size_t n_job, cap_job;
    sl_error *err;
} sl_encoder;

struct sl_token_model {
    const char *name;
    /* The GGUF's tokenizer.ggml.model that it serves. */
    const char *gguf_model;
    /* Set the rules that the model implies, before metadata overrides them. */
    void (*defaults)(sl_vocab *v);
    /* How a token of this kind is written in the file, and flags it has. */
    sl_token_text (*text_form)(sl_token_kind kind, uint8_t *flag);
    bool needs_scores, needs_merges, uses_pre;
    /* One piece of text between cut-out tokens, spaces already as the vocabulary has them. */
    sl_status (*encode)(sl_encoder *e, const char *text, size_t n);
};

#define X(name, gguf) extern const sl_token_model sl_token_model_##name;
#include "token/tokenizers.def"
#undef X

/* By the name that GGUF files use; NULL: none. */
const sl_token_model *sl_token_model_find(const char *gguf_model, size_t n);
/* GGUF names, for messages: "gpt2 llama ". */
const char *sl_token_model_names(void);

static inline void sl_encoder_put(sl_encoder *e, int32_t id) {
    if (e->n < e->cap) {
        e->ids[e->n] = id;
    }
    e->n++;
}

/* One unknown token, or none where it fuses with the one before. */
void sl_encoder_put_unk(sl_encoder *e);

/* ---- the merge engine (vocab_merge.c) ---- */

/* Priority and result of joining text[left..mid) and text[mid..end), whose ids are given (-1: none). */
typedef bool (*sl_merge_fn)(const sl_vocab *v, const char *text, const sl_merge_symbol *left,
                            uint32_t at, const sl_merge_symbol *right, uint32_t *priority,
                            int32_t *result);

/* Room for a word of n bytes. */
sl_status sl_merge_begin(sl_encoder *e, size_t n);
/* e->symbol holds the word's first symbols, chained from `first`; join them until nothing can be joined. */
sl_status sl_merge_run(sl_encoder *e, const char *text, uint32_t first, uint32_t n, sl_merge_fn fn);
/* fn for vocabularies with ranked merges. */
bool sl_merge_by_rank(const sl_vocab *v, const char *text, const sl_merge_symbol *left, uint32_t at,
                      const sl_merge_symbol *right, uint32_t *priority, int32_t *result);

#endif
