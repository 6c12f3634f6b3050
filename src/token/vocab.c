/* vocab.c - the tables of a vocabulary: token texts, their hash, ranked merges. See vocab.h for the layout.
 *
 * Both hashes are open addressing with linear probing at most three quarters full; entries are indices into arrays, so
 * nothing moves when they are built and a lookup touches one or two cache lines.
 *
 * Threads: built by one thread, read by any.
 * Not here: cutting out special tokens (vocab_match.c), well-known names (vocab_names.c), loaders. */
#include "token/vocab.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/utf8.h"

void sl_vocab_init(sl_vocab *v, sl_ledger *ledger) {
    memset(v, 0, sizeof *v);
    v->ledger = ledger;
    v->id_bos = v->id_eos = v->id_eot = v->id_unk = v->id_pad = -1;
    for (int i = 0; i < 256; i++) {
        v->byte_id[i] = -1;
    }
}

static void vocab_release(sl_vocab *v, void *p, size_t n, size_t item) {
    sl_release(v->ledger, SL_ACCOUNT_TOKEN, p, n * item);
}

void sl_vocab_done(sl_vocab *v) {
    const size_t n = (size_t)v->n_token;
    vocab_release(v, v->bytes, v->n_bytes, 1);
    vocab_release(v, v->offset, n + 1, sizeof *v->offset);
    vocab_release(v, v->kind, n, 1);
    vocab_release(v, v->flag, n, 1);
    vocab_release(v, v->score, n, sizeof *v->score);
    vocab_release(v, v->slot, v->n_slot, sizeof *v->slot);
    vocab_release(v, v->merge, v->cap_merge, sizeof *v->merge);
    vocab_release(v, v->merge_slot, v->n_merge_slot, sizeof *v->merge_slot);
    vocab_release(v, v->pair, 2048, sizeof *v->pair);
    vocab_release(v, v->chat_template, v->n_chat_template + 1, 1);
    sl_matcher_done(&v->raw);
    sl_matcher_done(&v->norm);
    sl_vocab_init(v, v->ledger);
}

static sl_status vocab_take(sl_vocab *v, size_t n, size_t item, void **out, sl_error *err) {
    return sl_alloc_zero(v->ledger, SL_ACCOUNT_TOKEN, n, item, out, "vocabulary", err);
}

sl_status sl_vocab_reserve(sl_vocab *v, int32_t n_token, size_t n_bytes, bool scores,
                           sl_error *err) {
    if (n_bytes > UINT32_MAX) {
        return SL_FAIL(err, SL_ELIMIT, "the vocabulary's texts take %zu bytes; 4 GiB is the limit",
                       n_bytes);
    }
    const size_t n = (size_t)n_token;
    void *p;
    v->n_token = n_token;
    v->n_bytes = n_bytes;
    SL_TRY(vocab_take(v, n_bytes, 1, &p, err));
    v->bytes = p;
    SL_TRY(vocab_take(v, n + 1, sizeof *v->offset, &p, err));
    v->offset = p;
    SL_TRY(vocab_take(v, n, 1, &p, err));
    v->kind = p;
    SL_TRY(vocab_take(v, n, 1, &p, err));
    v->flag = p;
    if (scores) {
        SL_TRY(vocab_take(v, n, sizeof *v->score, &p, err));
        v->score = p;
    }
    return SL_OK;
}

/* ---- forms of text ---- */

/* GPT-2's alphabet: printable Latin-1 stands for itself, the other 68 bytes follow from U+0100 in order. */
static int vocab_alpha_byte(uint32_t code) {
    if ((code >= 33 && code <= 126) || (code >= 161 && code <= 172) ||
        (code >= 174 && code <= 255)) {
        return (int)code;
    }
    if (code >= 256 && code <= 256 + 32) {
        return (int)code - 256;
    }
    if (code >= 289 && code <= 289 + 33) {
        return (int)code - 289 + 127;
    }
    return code == 323 ? 173 : -1;
}

size_t sl_token_undo(sl_token_text form, const char *text, size_t n, char *dst, bool *plain) {
    const uint8_t *p = (const uint8_t *)text;
    size_t n_out = 0;
    *plain = false;
    if (form == SL_TOKEN_TEXT_ALPHA) {
        for (size_t at = 0; at < n;) {
            size_t len;
            const int byte = vocab_alpha_byte(sl_utf8_next(p + at, n - at, &len));
            if (byte < 0) {
                *plain = true;
                break;
            }
            if (dst != NULL) {
                dst[n_out] = (char)byte;
            }
            n_out++;
            at += len;
        }
        if (!*plain) {
            return n_out;
        }
    }
    if (form == SL_TOKEN_TEXT_MARK) {
        for (size_t at = 0; at < n; n_out++) {
            const bool mark =
                n - at >= 3 && p[at] == 0xE2 && p[at + 1] == 0x96 && p[at + 2] == 0x81;
            if (dst != NULL) {
                dst[n_out] = mark ? ' ' : text[at];
            }
            at += mark ? 3 : 1;
        }
        return n_out;
    }
    if (dst != NULL) {
        memcpy(dst, text, n);
    }
    return n;
}

static int vocab_hex(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int sl_token_byte_form(const char *text, size_t n) {
    if (n != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') {
        return -1;
    }
    const int high = vocab_hex(text[3]);
    const int low = vocab_hex(text[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* ---- hash of texts ---- */

static uint64_t vocab_hash(const char *text, size_t n) {
    uint64_t h = n * 0x9E3779B97F4A7C15u;
    while (n > 0) {
        uint64_t word = 0;
        const size_t k = n < 8 ? n : 8;
        memcpy(&word, text, k);
        h = (h ^ word) * 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
        text += k;
        n -= k;
    }
    h *= 0xD6E8FEB86659FD93u;
    return h ^ h >> 29;
}

/* A slot is id + 1 and, above it, bits of the hash that spare most looks at the texts of other tokens. */
#define VOCAB_ID_BITS 23
#define VOCAB_ID_MASK ((UINT32_C(1) << VOCAB_ID_BITS) - 1)

_Static_assert(SL_MAX_VOCAB < (1 << VOCAB_ID_BITS), "ids must leave room for the tag");

/* Where the text is, or the free slot where it belongs; *tag is what such a slot has above the id. */
static uint32_t vocab_slot_of(const sl_vocab *v, const char *text, size_t n, uint32_t *tag) {
    const uint64_t hash = vocab_hash(text, n);
    uint32_t i = (uint32_t)(hash >> 32) & (v->n_slot - 1);
    *tag = (uint32_t)hash & ~VOCAB_ID_MASK;
    while (v->slot[i] != 0) {
        if ((v->slot[i] & ~VOCAB_ID_MASK) == *tag) {
            size_t n_have;
            const char *have = sl_vocab_text(v, (int32_t)(v->slot[i] & VOCAB_ID_MASK) - 1, &n_have);
            if (n_have == n && memcmp(have, text, n) == 0) {
                break;
            }
        }
        i = (i + 1) & (v->n_slot - 1);
    }
    return i;
}

static uint32_t vocab_pow2(size_t n) {
    uint32_t p = 16;
    while (p < UINT32_C(1) << 31 && (uint64_t)p * 3 < (uint64_t)n * 4) {
        p *= 2;
    }
    return p;
}

static void vocab_note_pairs(sl_vocab *v, const char *text, size_t n) {
    for (size_t i = 1; i < n; i++) {
        const unsigned pair = (unsigned)(uint8_t)text[i - 1] << 8 | (uint8_t)text[i];
        v->pair[pair >> 5] |= UINT32_C(1) << (pair & 31);
    }
}

sl_status sl_vocab_index(sl_vocab *v, sl_error *err) {
    size_t n_listed = 0;
    for (int32_t id = 0; id < v->n_token; id++) {
        n_listed += (v->flag[id] & SL_TOKEN_FLAG_UNLISTED) == 0;
    }
    void *p;
    const uint32_t n_slot = vocab_pow2(n_listed);
    SL_TRY(vocab_take(v, n_slot, sizeof *v->slot, &p, err));
    v->slot = p;
    v->n_slot = n_slot;
    SL_TRY(vocab_take(v, 2048, sizeof *v->pair, &p, err));
    v->pair = p;
    for (int32_t id = 0; id < v->n_token; id++) {
        size_t n;
        const char *text = sl_vocab_text(v, id, &n);
        if ((v->flag[id] & SL_TOKEN_FLAG_UNLISTED) != 0 || n == 0) {
            continue;
        }
        uint32_t tag;
        const uint32_t slot = vocab_slot_of(v, text, n, &tag);
        if (v->slot[slot] != 0) {
            continue;
        }
        v->slot[slot] = tag | ((uint32_t)id + 1);
        v->max_bytes = n > v->max_bytes ? n : v->max_bytes;
        vocab_note_pairs(v, text, n);
    }
    return SL_OK;
}

int32_t sl_vocab_find(const sl_vocab *v, const char *text, size_t n) {
    if (n == 0 || n > v->max_bytes) {
        return -1;
    }
    uint32_t tag;
    return (int32_t)(v->slot[vocab_slot_of(v, text, n, &tag)] & VOCAB_ID_MASK) - 1;
}

/* ---- merges ---- */

sl_status sl_vocab_reserve_merges(sl_vocab *v, size_t n_merge, sl_error *err) {
    if (n_merge > (size_t)SL_MAX_VOCAB * 4) {
        return SL_FAIL(err, SL_ELIMIT, "the vocabulary has %zu merges; %d is the limit", n_merge,
                       SL_MAX_VOCAB * 4);
    }
    void *p;
    SL_TRY(vocab_take(v, n_merge, sizeof *v->merge, &p, err));
    v->merge = p;
    v->cap_merge = (uint32_t)n_merge;
    const uint32_t n_slot = vocab_pow2(n_merge);
    SL_TRY(vocab_take(v, n_slot, sizeof *v->merge_slot, &p, err));
    v->merge_slot = p;
    v->n_merge_slot = n_slot;
    return SL_OK;
}

bool sl_vocab_add_merge(sl_vocab *v, int32_t left, int32_t right) {
    char text[SL_MAX_TOKEN_BYTES];
    size_t n_left;
    size_t n_right;
    const char *a = sl_vocab_text(v, left, &n_left);
    const char *b = sl_vocab_text(v, right, &n_right);
    if (v->n_merge == v->cap_merge || n_left + n_right > sizeof text) {
        return false;
    }
    memcpy(text, a, n_left);
    memcpy(text + n_left, b, n_right);
    const int32_t result = sl_vocab_find(v, text, n_left + n_right);
    if (result < 0) {
        return false;
    }
    v->merge[v->n_merge++] = (sl_merge){.left = left, .right = right, .result = result};
    return true;
}

static uint32_t vocab_merge_slot_of(const sl_vocab *v, int32_t left, int32_t right) {
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
    h *= 0xD6E8FEB86659FD93u;
    uint32_t i = (uint32_t)(h >> 32) & (v->n_merge_slot - 1);
    while (v->merge_slot[i] != 0) {
        const sl_merge *m = &v->merge[v->merge_slot[i] - 1];
        if (m->left == left && m->right == right) {
            break;
        }
        i = (i + 1) & (v->n_merge_slot - 1);
    }
    return i;
}

void sl_vocab_index_merges(sl_vocab *v, bool last) {
    for (uint32_t rank = 0; rank < v->n_merge; rank++) {
        const uint32_t slot = vocab_merge_slot_of(v, v->merge[rank].left, v->merge[rank].right);
        if (v->merge_slot[slot] == 0 || last) {
            v->merge_slot[slot] = rank + 1;
        }
    }
}

int32_t sl_vocab_rank(const sl_vocab *v, int32_t left, int32_t right) {
    return (int32_t)v->merge_slot[vocab_merge_slot_of(v, left, right)] - 1;
}
