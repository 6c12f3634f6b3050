/* tokenizer.h - text to ids and back.
 *
 *   text -> cut out control and user-defined tokens -> [normalise] -> pre-tokenizer (words) -> model (BPE merges, ...)
 *
 * A tokenizer's algorithm ("model" in Hugging Face's words) is one file and one row of tokenizers.def; a pre-tokenizer
 * is one row of pretokenizers.def. Both a GGUF's metadata and a tokenizer.json fill the same sl_vocab, so there is one
 * implementation of each algorithm.
 *
 * Threads: read-only after open; encode allocates its working memory per call from the ledger (account token).
 * Not here: chat templates (chat.h), holding back incomplete characters (stream.h). */
#ifndef SL_TOKEN_TOKENIZER_H
#define SL_TOKEN_TOKENIZER_H

#include "format/container.h"

typedef struct sl_tokenizer sl_tokenizer;

/* What a token is; values are GGUF's token_type. */
typedef enum sl_token_kind {
    SL_TOKEN_NORMAL = 1,
    SL_TOKEN_UNKNOWN = 2,
    SL_TOKEN_CONTROL = 3,
    SL_TOKEN_USER =
        4, /* user-defined: cut out of the text first, longest first, even with control tokens off */
    SL_TOKEN_UNUSED = 5,
    SL_TOKEN_BYTE = 6,
} sl_token_kind;

typedef struct sl_tokenizer_info {
    int32_t n_vocab;
    const char *kind;                               /* row of tokenizers.def: "bpe", "spm", ... */
    const char *pre;                                /* row of pretokenizers.def, or "" */
    int32_t id_bos, id_eos, id_eot, id_unk, id_pad; /* -1: none */
    bool add_bos, add_eos;                          /* the model's own policy */
    const char
        *chat_template; /* the file's template source, NUL-terminated, borrowed; NULL: none */
    size_t n_chat_template;
} sl_tokenizer_info;

/* From a GGUF's own metadata. SL_ENOTSUP names the tokenizer model or pre-tokenizer that is not supported. */
sl_status sl_tokenizer_open_container(sl_ledger *ledger, const sl_container *c, sl_tokenizer **out,
                                      sl_error *err);
/* From a tokenizer.json (bytes already in memory; they are not kept). `side` may be NULL: a container whose metadata
 * gives what the JSON lacks (bos/eos ids, chat template). name is for errors. */
sl_status sl_tokenizer_open_json(sl_ledger *ledger, const void *json, size_t n_json,
                                 const char *name, const sl_container *side, sl_tokenizer **out,
                                 sl_error *err);
void sl_tokenizer_close(sl_tokenizer *t);
void sl_tokenizer_get_info(const sl_tokenizer *t, sl_tokenizer_info *out);

/* A part of the text in which control tokens are not recognised (what a user wrote): byte range [begin, end). */
typedef struct sl_text_span {
    size_t begin, end;
} sl_text_span;

/* flags: SL_TOKENIZE_*. spans: sorted, disjoint; a control token counts only if it lies wholly outside all spans.
 * cap rule: as sl_tokenize in sluice.h. Any bytes are accepted. */
sl_status sl_tokenizer_encode(const sl_tokenizer *t, const char *text, size_t n_text,
                              uint32_t flags, const sl_text_span *spans, size_t n_span,
                              int32_t *ids, size_t cap, size_t *n_out, sl_error *err);

/* The bytes of a token as text: byte-level alphabets and U+2581 undone. Borrowed, not NUL-terminated. id in range. */
const char *sl_tokenizer_bytes(const sl_tokenizer *t, int32_t id, size_t *n_bytes);
sl_token_kind sl_tokenizer_kind(const sl_tokenizer *t, int32_t id);
bool sl_tokenizer_is_eog(const sl_tokenizer *t, int32_t id);
/* The token whose text is exactly this, or -1. Control tokens included. */
int32_t sl_tokenizer_find(const sl_tokenizer *t, const char *text, size_t n_text);

/* Decoding has state only at the start of the text (SentencePiece's dummy prefix space). *first is true before the
 * first token and updated. Gives the token's contribution to the text; allocates nothing. */
const char *sl_tokenizer_piece(const sl_tokenizer *t, int32_t id, bool skip_control, bool *first,
                               size_t *n_bytes);

#endif
