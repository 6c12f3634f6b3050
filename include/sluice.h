/* sluice.h - run language models on the memory there is.
 *
 * The only public header. Four nouns:
 *
 *     engine   threads, kernels and the books of memory; may hold many models
 *     file     the directory of a model file: metadata and tensors, no weights
 *     model    a loaded model: weights, tokenizer, chat template; shared by sessions
 *     session  one timeline of tokens with its KV cache
 *
 *     sl_engine *engine;  sl_model *model;  sl_session *session;  sl_error err;
 *     sl_engine_open(NULL, &engine, &err);
 *     sl_model_open(engine, "model.gguf", NULL, &model, &err);
 *     sl_session_open(model, NULL, &session, &err);
 *     sl_generate(session, ids, n_ids, NULL, on_text, user, NULL, &err);
 *
 * Conventions
 *   - Functions that can fail return sl_status and take an sl_error last (NULL: code only). A `T **out` is written
 *     on success only. close(NULL) does nothing.
 *   - Option structs are zero-initialised by the caller: zero means the default; `size` is sizeof the struct (zero is
 *     taken as the size of this header's version). A NULL options pointer means all defaults.
 *   - Shapes are outermost first, the last dimension contiguous.
 *   - Text is UTF-8, with an explicit length in bytes; it may hold NUL bytes.
 *   - The library never prints, aborts, exits or reads the environment.
 *   - Threads: an engine and a model may be used from several threads; a session by one thread at a time, otherwise
 *     SL_EBUSY; sl_session_cancel may be called from any thread. */
#ifndef SLUICE_H
#define SLUICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define SL_API __declspec(dllexport)
#else
#define SL_API __attribute__((visibility("default")))
#endif

#if defined(__GNUC__)
#define SL_PRINTF(i_format, i_first) __attribute__((format(printf, i_format, i_first)))
#else
#define SL_PRINTF(i_format, i_first)
#endif

#define SL_VERSION_MAJOR 0
#define SL_VERSION_MINOR 1
#define SL_VERSION_PATCH 0

/* ---- status and errors ------------------------------------------------------------------------------------------- */

/* One row a status: name, value, what it means. Values are stable. */
#define SL_STATUS_LIST(X)                                           \
    X(OK, 0, "success")                                             \
    X(EINVAL, 1, "an argument is outside its range")                \
    X(ENOMEM, 2, "the system has no more memory")                   \
    X(EBUDGET, 3, "the memory budget does not allow it")            \
    X(ELIMIT, 4, "a limit of the library or the model is exceeded") \
    X(EIO, 5, "reading or writing failed")                          \
    X(EFORMAT, 6, "the file is malformed")                          \
    X(ENOTSUP, 7, "valid, but not supported")                       \
    X(ENOTFOUND, 8, "no such file, key or name")                    \
    X(EBUSY, 9, "in use by another thread")                         \
    X(ECANCEL, 10, "cancelled")                                     \
    X(EDEVICE, 11, "a device failed")                               \
    X(EINTERNAL, 12, "a fault of the library itself")

typedef enum sl_status {
#define X(name, value, text) SL_##name = value,
    SL_STATUS_LIST(X)
#undef X
} sl_status;

/* Why a call failed: filled by the callee, owned by the caller, nothing to free. */
typedef struct sl_error {
    sl_status code;
    int32_t line;     /* where in the library's source */
    const char *file; /* static string */
    char text[496];   /* what, where and what would help; one line, NUL-terminated, UTF-8 */
} sl_error;

SL_API const char *sl_status_name(sl_status status); /* "SL_EIO" */
SL_API const char *sl_status_text(sl_status status); /* "reading or writing failed" */
SL_API const char *sl_version(void);                 /* "0.1.0" */

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* The accounts of the ledger. Every byte that the library allocates is booked on one of them. */
#define SL_ACCOUNT_LIST(X)                                         \
    X(WEIGHTS, "weights", "model weights in our own memory")       \
    X(REPACK, "repack", "weights interleaved for the kernels")     \
    X(KV, "kv", "KV cache pages")                                  \
    X(SCRATCH, "scratch", "intermediate values of a pass, logits") \
    X(TOKEN, "token", "tokenizer and chat template")               \
    X(GRAMMAR, "grammar", "grammars and their masks")              \
    X(IO, "io", "buffers and headers of files")                    \
    X(DEVICE, "device", "memory of other devices")                 \
    X(MISC, "misc", "everything else")

typedef enum sl_account {
#define X(name, text, what) SL_ACCOUNT_##name,
    SL_ACCOUNT_LIST(X)
#undef X
        SL_ACCOUNT_COUNT
} sl_account;

SL_API const char *sl_account_name(sl_account account); /* "weights" */

typedef struct sl_memory {
    size_t now_bytes[SL_ACCOUNT_COUNT];
    size_t peak_bytes[SL_ACCOUNT_COUNT]; /* of each account on its own */
    size_t total_bytes;                  /* all accounts, now */
    size_t total_peak_bytes;             /* the most that all accounts held together */
    size_t limit_bytes;                  /* 0: none */
    size_t mapped_bytes; /* files mapped by the mmap store: reported, not promised */
    uint64_t n_alloc;    /* allocations ever made; two equal readings = none in between */
} sl_memory;

/* ---- engine ------------------------------------------------------------------------------------------------------ */

typedef struct sl_engine sl_engine;
typedef struct sl_file sl_file;
typedef struct sl_model sl_model;
typedef struct sl_session sl_session;

typedef struct sl_engine_options {
    size_t size;
    /* Compute threads, the caller's included; 0: one a usable core (affinity, cgroup quota). */
    int32_t n_thread;
    /* "scalar", "avx2", ...; NULL: the best that the CPU has; one that it lacks is SL_ENOTSUP. */
    const char *isa;
    /* Bound on the ledger's total; 0: none. */
    size_t limit_bytes;
    /* How activations meet quantised weights: NULL or "fast": int8 dot products where the type has them; "exact": f32
     * activations for every type, slower, for measuring what the int8 path costs. */
    const char *act;
} sl_engine_options;

/* SL_EINVAL (n_thread outside 0..256, an unknown isa or act), SL_ENOTSUP (an isa that this CPU lacks), SL_ENOMEM,
 * SL_EBUDGET. */
SL_API sl_status sl_engine_open(const sl_engine_options *options, sl_engine **out, sl_error *err);
SL_API void sl_engine_close(sl_engine *engine); /* after its models, files and sessions */
SL_API void sl_engine_memory(const sl_engine *engine, sl_memory *out);

typedef struct sl_about {
    const char *version;
    const char *isa;      /* the kernels in use */
    const char *isas;     /* all kernels that this CPU can run, separated by spaces */
    const char *archs;    /* architectures, separated by spaces */
    const char *qtypes;   /* weight types with kernels, separated by spaces */
    const char *stores;   /* separated by spaces */
    const char *backends; /* separated by spaces */
    int32_t n_thread;     /* threads in use */
    int32_t n_core;       /* usable cores: affinity and cgroup quota considered */
    size_t ram_bytes;     /* of the machine */
} sl_about;

/* The strings live as long as the engine. */
SL_API void sl_engine_about(const sl_engine *engine, sl_about *out);

/* Where the bytes of a model come from when they are not in a file system. Either `data`, or `read`. */
typedef struct sl_source {
    const void *data; /* borrowed until the model and its files are closed */
    size_t size_bytes;
    /* Reads exactly size bytes at offset into dst; 0 on success, anything else is reported as SL_EIO. May be called
     * from several threads at once. */
    int (*read)(void *user, uint64_t offset, void *dst, size_t size);
    void *user;
} sl_source;

/* ---- file: the directory of a model file -------------------------------------------------------------------------- */

typedef struct sl_file_options {
    size_t size;
    const char *store; /* "mmap" (default), "direct" */
    /* Instead of the path, which then only names it in errors and may be NULL. */
    const sl_source *source;
} sl_file_options;

typedef struct sl_tensor_info {
    const char *name;
    const char *type; /* "Q4_K" */
    int32_t n_dim;
    int64_t dim[4];        /* outermost first */
    uint64_t offset_bytes; /* in its file */
    uint64_t size_bytes;
    int32_t i_file; /* which file of a split model */
} sl_tensor_info;

typedef struct sl_file_info {
    const char *format; /* "GGUF" */
    int32_t version;
    int32_t n_file; /* files of a split model */
    uint64_t size_bytes;
    int64_t n_meta;
    int64_t n_tensor;
    uint64_t n_param; /* elements of all tensors */
    uint64_t tensor_bytes;
    uint64_t alignment;
} sl_file_info;

SL_API sl_status sl_file_open(sl_engine *engine, const char *path, const sl_file_options *options,
                              sl_file **out, sl_error *err);
SL_API void sl_file_close(sl_file *file);
SL_API void sl_file_get_info(const sl_file *file, sl_file_info *out);
/* i_tensor in 0..n_tensor-1; SL_EINVAL otherwise. Strings live as long as the file. */
SL_API sl_status sl_file_get_tensor(const sl_file *file, int64_t i_tensor, sl_tensor_info *out);
/* Metadata entry i_meta: key and type name ("u32", "str", "arr[str,49152]"), and the value as one line of text (control
 * characters as escapes) cut to cap bytes, NUL included. Without `full`, long strings and arrays are shortened with
 * "...". *n_text (may be NULL) is the length that the whole text would have. */
SL_API sl_status sl_file_get_meta(const sl_file *file, int64_t i_meta, bool full, const char **key,
                                  char *type, size_t cap_type, char *text, size_t cap_text,
                                  size_t *n_text);
/* Number of elements of a metadata entry (1 for a scalar); -1 out of range. */
SL_API int64_t sl_file_meta_count(const sl_file *file, int64_t i_meta);
/* All elements of a metadata entry in order, as text (numbers NUL-terminated, strings not and byte for byte; valid for the call), in
 * one sweep; false from the callback ends it. SL_EINVAL out of range. */
typedef bool (*sl_item_fn)(void *user, int64_t i_item, const char *text, size_t n_text);
SL_API sl_status sl_file_each_meta_item(const sl_file *file, int64_t i_meta, sl_item_fn each,
                                        void *user);
/* Element i_item of a metadata entry as text, strings byte for byte; SL_EINVAL out of range. Finding a string costs a
 * walk over those before it. */
SL_API sl_status sl_file_get_meta_item(const sl_file *file, int64_t i_meta, int64_t i_item,
                                       char *text, size_t cap_text, size_t *n_text);
SL_API int64_t sl_file_find_meta(const sl_file *file, const char *key); /* index, or -1 */

/* ---- model -------------------------------------------------------------------------------------------------------- */

typedef struct sl_model_options {
    size_t size;
    const char *store;       /* "mmap" (default), "direct" */
    const sl_source *source; /* instead of the path */
    /* Path of a tokenizer.json to use instead of the file's own vocabulary; NULL: none. */
    const char *tokenizer_json;
    /* No weights: tokenizer and chat template only. */
    bool vocab_only;
    /* Called from the opening thread as weights arrive, share in 0..1; false cancels (SL_ECANCEL). May be NULL. */
    bool (*progress)(void *user, float share);
    void *progress_user;
} sl_model_options;

typedef struct sl_model_info {
    const char *arch; /* "llama"; "" for a file without weights that names none */
    const char *name; /* general.name, or "" */
    int32_t n_vocab;
    int32_t n_layer;
    int32_t n_embd;
    int32_t n_ff;
    int32_t n_head;
    int32_t n_head_kv;
    int32_t d_head;
    int32_t n_ctx_train;
    uint64_t n_param;
    uint64_t weight_bytes; /* as stored */
    const char *tokenizer; /* "bpe llama-bpe", "spm", ... */
    const char *chat; /* form of the chat template: "chatml", ...; "": none, or none recognised */
    int32_t id_bos, id_eos, id_eot, id_unk, id_pad; /* -1: none */
} sl_model_info;

/* SL_ENOTFOUND (no such file), SL_EIO, SL_EFORMAT (malformed, named), SL_ENOTSUP (architecture or type, named),
 * SL_EBUDGET, SL_ENOMEM, SL_ECANCEL. */
SL_API sl_status sl_model_open(sl_engine *engine, const char *path, const sl_model_options *options,
                               sl_model **out, sl_error *err);
SL_API void sl_model_close(sl_model *model); /* after its sessions */
SL_API void sl_model_get_info(const sl_model *model, sl_model_info *out);

typedef struct sl_estimate {
    size_t peak_bytes; /* the most that the ledger will hold while opening, for this object alone */
    size_t total_bytes;                     /* what stays */
    size_t account_bytes[SL_ACCOUNT_COUNT]; /* what stays, by account */
    uint64_t mapped_bytes;
} sl_estimate;

/* What sl_model_open with the same arguments will take, to the byte. The engine's books do not move. */
SL_API sl_status sl_model_estimate(sl_engine *engine, const char *path,
                                   const sl_model_options *options, sl_estimate *out,
                                   sl_error *err);

/* ---- text ---------------------------------------------------------------------------------------------------------- */

enum {
    SL_TOKENIZE_NO_BOS =
        1, /* leave out the automatic BOS and EOS that the model's own policy adds */
    SL_TOKENIZE_NO_SPECIAL =
        2, /* control tokens written out in the text are text (user-defined ones are still cut out) */
};

/* Text to ids. ids may be NULL with cap 0. *n_out is the number of ids that the whole text has; when it exceeds cap
 * nothing but *n_out is of use and the status is SL_ELIMIT (SL_OK when ids is NULL). */
SL_API sl_status sl_tokenize(const sl_model *model, const char *text, size_t n_text, uint32_t flags,
                             int32_t *ids, size_t cap, size_t *n_out, sl_error *err);

enum { SL_DETOKENIZE_SKIP_SPECIAL = 1 }; /* control tokens give no text */

/* Ids to text (bytes; not NUL-terminated). The same cap rule as sl_tokenize. */
SL_API sl_status sl_detokenize(const sl_model *model, const int32_t *ids, size_t n_ids,
                               uint32_t flags, char *text, size_t cap, size_t *n_out,
                               sl_error *err);

/* The raw bytes of one token, borrowed for the model's life. SL_EINVAL for an id outside the vocabulary. */
SL_API sl_status sl_token_bytes(const sl_model *model, int32_t id, const char **bytes,
                                size_t *n_bytes);
SL_API bool sl_token_is_control(const sl_model *model, int32_t id);
SL_API bool sl_token_is_eog(const sl_model *model,
                            int32_t id); /* ends a generation: EOS, EOT, ... */

typedef struct sl_message {
    const char *role; /* "system", "user", "assistant" */
    const char *content;
    size_t n_content;
} sl_message;

/* The conversation in the model's chat form, as text. The same cap rule as sl_tokenize. SL_ENOTSUP: the model has no
 * template, or one whose form is not recognised; SL_EINVAL: a role that the form has no place for. */
SL_API sl_status sl_chat_render(const sl_model *model, const sl_message *messages, size_t n_message,
                                bool add_generation_prompt, char *text, size_t cap, size_t *n_out,
                                sl_error *err);
/* The same as ids, BOS by the model's policy exactly once; control tokens written in a message's content stay text. */
SL_API sl_status sl_chat_tokenize(const sl_model *model, const sl_message *messages,
                                  size_t n_message, bool add_generation_prompt, int32_t *ids,
                                  size_t cap, size_t *n_out, sl_error *err);

/* ---- session ------------------------------------------------------------------------------------------------------- */

typedef struct sl_session_options {
    size_t size;
    int32_t n_ctx;   /* most tokens of the session; 0: min(the model's training context, 4096) */
    int32_t n_batch; /* most rows of one pass, that is the prefill chunk; 0: 256 */
    int32_t n_page;  /* tokens a KV page, a power of two in 16..256; 0: 16 */
    int32_t n_out;   /* rows of logits made at once; 0: 1. More is faster for SL_WANT_ALL */
    const char *kv_type; /* "f16" (default), "f32" */
} sl_session_options;

SL_API sl_status sl_session_open(sl_model *model, const sl_session_options *options,
                                 sl_session **out, sl_error *err);
SL_API void sl_session_close(sl_session *session);
/* What sl_session_open with the same options, and all later use of the session, will take, to the byte. */
SL_API sl_status sl_session_estimate(const sl_model *model, const sl_session_options *options,
                                     sl_estimate *out, sl_error *err);

SL_API int32_t sl_session_n_ctx(const sl_session *session);
SL_API int32_t sl_session_n_past(const sl_session *session); /* tokens in the KV cache */
/* Forget all tokens after the first n_past. SL_EINVAL outside 0..n_past now. */
SL_API sl_status sl_session_rewind(sl_session *session, int32_t n_past, sl_error *err);

/* Which rows of an eval get logits. */
typedef enum sl_want { SL_WANT_NONE, SL_WANT_LAST, SL_WANT_ALL } sl_want;

/* Append n_ids tokens. With SL_WANT_ALL, `sink` is called once a token in order with its logits [n_vocab], valid for
 * the call; with SL_WANT_LAST once, for the last. A NULL sink keeps them for sl_session_logits (the last row).
 * SL_ELIMIT: beyond n_ctx (both numbers named; nothing was evaluated); SL_EINVAL: an id outside the vocabulary;
 * SL_ECANCEL: cancelled, the session is as before the call. */
typedef void (*sl_logits_fn)(void *user, int32_t i_token, const float *logits, int32_t n_vocab);
SL_API sl_status sl_session_eval(sl_session *session, const int32_t *ids, size_t n_ids,
                                 sl_want want, sl_logits_fn sink, void *user, sl_error *err);
/* Logits of the last evaluated token [n_vocab], valid until the next call on this session; NULL if none were kept. */
SL_API const float *sl_session_logits(const sl_session *session);

/* From any thread: the running eval or generate ends with SL_ECANCEL soon. Nothing is pending afterwards: a cancel
 * while the session is idle has no effect. */
SL_API void sl_session_cancel(sl_session *session);

/* ---- generation ---------------------------------------------------------------------------------------------------- */

typedef struct sl_sampling {
    float temperature; /* 0: greedy (the default) */
    int32_t top_k;     /* 0: off */
    float top_p;       /* 0 or 1: off */
    float min_p;       /* 0: off */
    /* Divides the positive and multiplies the negative logits of recent tokens; 0 or 1: off. */
    float repeat_penalty;
    int32_t repeat_last_n; /* how many recent tokens count; 0: 64; -1: all */
    uint64_t seed;         /* the same seed, model and prompt give the same text */
} sl_sampling;

typedef struct sl_generate_options {
    size_t size;
    int32_t max_tokens; /* 0: until the context is full */
    sl_sampling sampling;
    /* Stop strings, at most 16 of 1..1024 bytes: the text ends before the first; found across token boundaries. */
    const char *const *stop;
    size_t n_stop;
    bool ignore_eog; /* go on after an end-of-generation token */
} sl_generate_options;

typedef enum sl_finish {
    SL_FINISH_EOG,
    SL_FINISH_STOP,
    SL_FINISH_LENGTH,
    SL_FINISH_CALLBACK
} sl_finish;

typedef struct sl_generate_result {
    sl_finish finish;
    int32_t i_stop;      /* which stop string, or -1 */
    int32_t n_prompt;    /* tokens evaluated as prompt */
    int32_t n_generated; /* tokens sampled, an end-of-generation token not counted */
    uint64_t prefill_us; /* the prompt's passes */
    uint64_t first_us;   /* from the call to the first sampled token */
    uint64_t decode_us;  /* everything after the first sampled token */
    uint64_t seed;       /* the seed that was used */
} sl_generate_result;

/* Text as it becomes final: whole UTF-8 characters, never a part of a stop string. n_text may be 0 for a token that
 * completes none; id is -1 for what was held back until the end. false ends the generation (SL_FINISH_CALLBACK). */
typedef bool (*sl_text_fn)(void *user, int32_t id, const char *text, size_t n_text);

/* Append the prompt, then generate. The last sampled token is not evaluated: afterwards the KV cache holds the prompt
 * and the generated tokens but the last (all of them when an end-of-generation token was sampled).
 * result is filled whatever the status, so that a cancelled run can still tell what it did. on_text may be NULL; result may be NULL. Statuses as sl_session_eval. */
SL_API sl_status sl_generate(sl_session *session, const int32_t *ids, size_t n_ids,
                             const sl_generate_options *options, sl_text_fn on_text, void *user,
                             sl_generate_result *result, sl_error *err);

#ifdef __cplusplus
}
#endif
#endif
