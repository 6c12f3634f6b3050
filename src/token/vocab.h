/* vocab.h - the vocabulary that every tokenizer algorithm works on, compact and read-only after its loader is done.
 *
 *     bytes    [ token 0 | token 1 | ... ]      the text of each token: alphabets and U+2581 undone, ready to print
 *     offset   [ n_token + 1 ]                  token i is bytes[offset[i] .. offset[i+1])
 *     slot     [ power of two ]                 open addressing: the tokens that text can become
 *     merge    [ n_merge ]                      left id, right id -> result id, in order of rank
 *     merge_slot [ power of two ]               open addressing over (left, right): rank + 1
 *     raw, norm                                 matchers of tokens that are cut out of the text before all else
 *
 * Only tokens that the algorithm may produce by itself are in `slot`: control tokens and tokens written literally are
 * reached through the matchers alone, so no text can merge its way into a control token.
 *
 * A 151,000-token vocabulary with its merges takes about 6 MiB: no allocation for a single token.
 *
 * Threads: read-only after loading.
 * Not here: where vocabularies come from (vocab_gguf.c, hf_*.c), the algorithms (bpe.c, spm.c). */
#ifndef SL_TOKEN_VOCAB_H
#define SL_TOKEN_VOCAB_H

#include "base/ledger.h"
#include "token/tokenizer.h"

typedef struct sl_token_model sl_token_model;
typedef struct sl_pre_rule sl_pre_rule;

/* Bits of sl_vocab.flag. */
enum {
    SL_TOKEN_FLAG_EOG = 1,
    SL_TOKEN_FLAG_LSTRIP = 2, /* white space to its left belongs to it */
    SL_TOKEN_FLAG_RSTRIP = 4,
    SL_TOKEN_FLAG_WORD = 8,      /* only where it stands alone between word characters */
    SL_TOKEN_FLAG_NORM = 16,     /* matched in the normalised text, not in the text as it came */
    SL_TOKEN_FLAG_LITERAL = 32,  /* its bytes are its own text: no alphabet to undo */
    SL_TOKEN_FLAG_UNLISTED = 64, /* not in the hash: the algorithm can't produce it from its text */
    SL_TOKEN_FLAG_CUT = 128      /* cut out of the text before all else */
};

/* A string that is cut out of the text: text[begin .. begin + n) of its matcher stands for token id. */
typedef struct sl_match {
    uint32_t begin, n;
    int32_t id;
} sl_match;

/* Strings sorted bytewise. */
typedef struct sl_matcher {
    sl_ledger *ledger;
    sl_match *match;
    uint32_t n, cap;
    char *text;
    size_t n_text, cap_text;
    uint32_t first[8]; /* which bytes begin a string */
} sl_matcher;

typedef struct sl_merge {
    int32_t left, right, result;
} sl_merge;

/* When a space is put before a piece of text. */
typedef enum sl_space_prefix {
    SL_PREFIX_NONE,
    SL_PREFIX_EACH, /* every piece between cut-out tokens */
    SL_PREFIX_FIRST /* only the piece that begins the text */
} sl_space_prefix;

typedef struct sl_vocab {
    sl_ledger *ledger;
    const sl_token_model *model;
    const sl_pre_rule *pre; /* NULL: none */

    int32_t n_token;
    char *bytes;
    size_t n_bytes;
    uint32_t *offset;
    uint8_t *kind;
    uint8_t *flag;
    float *score; /* NULL: merges go by rank */
    size_t max_bytes;

    uint32_t *slot;
    uint32_t n_slot;
    sl_merge *merge;
    uint32_t n_merge, cap_merge;
    uint32_t *merge_slot;
    uint32_t n_merge_slot;
    int32_t byte_id[256]; /* the token of a single byte, or -1 */
    uint32_t *pair;       /* 65536 bits: which byte follows which inside any listed token */
    sl_matcher raw, norm;

    /* Rules of the file. */
    bool nfc;
    bool space_mark;       /* U+2581 stands for a space */
    bool space_splits;     /* a word ends before every space (Metaspace with split) */
    bool prefix_if_absent; /* no space is put before a text that begins with one */
    bool prefix_late;      /* the space comes after normalised tokens are cut out, not before */
    bool ignore_merges;    /* a word that is a token is that token, whatever the merges say */
    bool fuse_unk;         /* unknown characters side by side are one unknown token */
    bool byte_fallback;
    bool skip_missing; /* a byte without a token does not separate its neighbours */
    bool strip_first;  /* decoding drops the first piece's leading space */
    sl_space_prefix prefix;
    int32_t id_bos, id_eos, id_eot, id_unk, id_pad;
    bool add_bos, add_eos;
    char *chat_template;
    size_t n_chat_template;
} sl_vocab;

/* How a token's text in the file becomes bytes. */
typedef enum sl_token_text {
    SL_TOKEN_TEXT_PLAIN, /* as it is */
    SL_TOKEN_TEXT_ALPHA, /* GPT-2's alphabet of 256 printable characters */
    SL_TOKEN_TEXT_MARK   /* U+2581 is a space; "<0xHH>" of kind BYTE is a byte */
} sl_token_text;

/* ---- loading: begin with the sizes, put every token once in order of id, finish ---- */

void sl_vocab_init(sl_vocab *v, sl_ledger *ledger);
void sl_vocab_done(sl_vocab *v);

/* Space for n_token tokens whose texts take n_bytes together. */
sl_status sl_vocab_reserve(sl_vocab *v, int32_t n_token, size_t n_bytes, bool scores,
                           sl_error *err);
/* Bytes that the text has once the form is undone (0 <= result <= n). dst may be NULL. *plain is set when the text is
 * not in the form (then it is copied as it is). */
size_t sl_token_undo(sl_token_text form, const char *text, size_t n, char *dst, bool *plain);
/* "<0xHH>" -> 0..255, else -1. */
int sl_token_byte_form(const char *text, size_t n);
/* Hash all tokens that are not flagged UNLISTED; the lowest id wins where texts repeat. Fills byte_id and pair. */
sl_status sl_vocab_index(sl_vocab *v, sl_error *err);
/* The id of a text among the listed tokens, or -1. */
int32_t sl_vocab_find(const sl_vocab *v, const char *text, size_t n);
sl_status sl_vocab_reserve_merges(sl_vocab *v, size_t n_merge, sl_error *err);
/* Append the merge of two ids to v->merge; the result is looked up by text. false: there is no such token. */
bool sl_vocab_add_merge(sl_vocab *v, int32_t left, int32_t right);
/* Hash the merges. Of equal pairs the first counts, or with `last` the last. */
void sl_vocab_index_merges(sl_vocab *v, bool last);
/* Rank of a pair, or -1. */
int32_t sl_vocab_rank(const sl_vocab *v, int32_t left, int32_t right);
/* Room for n strings of n_text bytes together; then add each, then sort. Of equal strings the first added counts. */
sl_status sl_matcher_reserve(sl_matcher *m, sl_ledger *ledger, size_t n, size_t n_text,
                             sl_error *err);
void sl_matcher_add(sl_matcher *m, const char *text, size_t n, int32_t id);
void sl_matcher_sort(sl_matcher *m);
void sl_matcher_done(sl_matcher *m);
/* End-of-generation tokens and the end of a turn, by id and by well-known name. Before the index is made. */
void sl_vocab_mark_eog(sl_vocab *v);

/* ---- use ---- */

static inline const char *sl_vocab_text(const sl_vocab *v, int32_t id, size_t *n) {
    *n = v->offset[id + 1] - v->offset[id];
    return v->bytes + v->offset[id];
}

/* Longest string of the matcher at text[0..n) for which ok(user, id, length) holds; its token, or -1. */
int32_t sl_matcher_find(const sl_matcher *m, const char *text, size_t n,
                        bool (*ok)(const void *user, int32_t id, size_t n), const void *user,
                        size_t *n_match);
/* The token of the matcher whose text is exactly this, or -1. */
int32_t sl_matcher_exact(const sl_matcher *m, const char *text, size_t n);

/* ---- loaders ---- */
sl_status sl_vocab_load_container(sl_vocab *v, const sl_container *c, sl_error *err);
sl_status sl_vocab_load_json(sl_vocab *v, const void *json, size_t n_json, const char *name,
                             const sl_container *side, sl_error *err);
/* Ids, BOS policy and chat template of a container's metadata. */
sl_status sl_vocab_load_policy(sl_vocab *v, const sl_container *c, sl_error *err);

#endif
