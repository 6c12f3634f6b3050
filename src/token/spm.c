/* spm.c - SentencePiece's BPE: characters are joined while the result is a token, best score (or rank) first.
 *
 * SentencePiece writes a space as U+2581; the loader has turned that into a space, and the caller does the same with the
 * text, so both look alike here. Characters without a token fall back to the tokens of their bytes, or to the unknown
 * token. There are no words: a token may cross spaces.
 *
 * To keep the queue short all the same, the text is cut where nothing could ever be joined: between two characters whose
 * touching bytes follow each other in no token of the vocabulary (sl_vocab.pair). What is joined on one side of such a
 * place cannot influence the other side, so the result is exactly that of the whole.
 *
 * GGUF files give scores, tokenizer.json gives ranked merges; the difference is one function.
 *
 * Threads: all state is in the encoder of one call.
 * Not here: the space in front of the text (tokenizer_encode.c), the queue (vocab_merge.c). */
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "token/vocab_model.h"

static void spm_defaults(sl_vocab *v) {
    v->space_mark = true;
    v->prefix = SL_PREFIX_EACH;
    v->strip_first = true;
    v->add_bos = true;
    v->byte_fallback = true;
    v->fuse_unk = true;
    v->id_bos = 1;
    v->id_eos = 2;
    v->id_unk = 0;
}

static sl_token_text spm_text_form(sl_token_kind kind, uint8_t *flag) {
    if (kind == SL_TOKEN_CONTROL || kind == SL_TOKEN_UNKNOWN || kind == SL_TOKEN_USER) {
        *flag |= SL_TOKEN_FLAG_LITERAL | SL_TOKEN_FLAG_CUT;
        if (kind != SL_TOKEN_USER) {
            *flag |= SL_TOKEN_FLAG_UNLISTED;
        }
        return SL_TOKEN_TEXT_PLAIN;
    }
    return SL_TOKEN_TEXT_MARK;
}

/* Floats in descending order as unsigned integers in ascending order. */
static uint32_t spm_priority(float score) {
    uint32_t bits;
    score += 0.0f; /* -0 and 0 are equal */
    memcpy(&bits, &score, sizeof bits);
    const uint32_t ascending = (bits >> 31) != 0 ? ~bits : bits | UINT32_C(0x80000000);
    return ~ascending;
}

static bool spm_merge_by_score(const sl_vocab *v, const char *text, const sl_merge_symbol *left,
                               uint32_t at, const sl_merge_symbol *right, uint32_t *priority,
                               int32_t *result) {
    (void)left;
    *result = sl_vocab_find(v, text + at, right->next - at);
    if (*result < 0) {
        return false;
    }
    *priority = spm_priority(v->score[*result]);
    return true;
}

static void spm_put_bytes(sl_encoder *e, const char *text, size_t n) {
    const sl_vocab *v = e->v;
    bool bytes = v->byte_fallback;
    for (size_t i = 0; i < n && bytes; i++) {
        bytes = v->byte_id[(uint8_t)text[i]] >= 0;
    }
    if (!bytes) {
        sl_encoder_put_unk(e);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        sl_encoder_put(e, v->byte_id[(uint8_t)text[i]]);
    }
}

/* Bytes that are not UTF-8 are characters of one byte. */
static size_t spm_char(const char *text, size_t n) {
    size_t len;
    (void)sl_utf8_next((const uint8_t *)text, n, &len);
    return len;
}

static bool spm_may_join(const sl_vocab *v, const char *text, size_t at) {
    const unsigned pair = (unsigned)(uint8_t)text[at - 1] << 8 | (uint8_t)text[at];
    return (v->pair[pair >> 5] >> (pair & 31) & 1) != 0;
}

static sl_status spm_part(sl_encoder *e, const char *text, size_t n) {
    SL_TRY(sl_merge_begin(e, n));
    uint32_t prev = UINT32_MAX;
    for (size_t at = 0; at < n;) {
        const size_t len = spm_char(text + at, n - at);
        memset(&e->symbol[at], 0, len * sizeof *e->symbol);
        e->symbol[at] = (sl_merge_symbol){
            .prev = prev, .next = (uint32_t)(at + len), .id = sl_vocab_find(e->v, text + at, len)};
        prev = (uint32_t)at;
        at += len;
    }
    SL_TRY(sl_merge_run(e, text, 0, (uint32_t)n,
                        e->v->score != NULL ? spm_merge_by_score : sl_merge_by_rank));
    for (uint32_t at = 0; at < n; at = e->symbol[at].next) {
        if (e->symbol[at].id >= 0) {
            sl_encoder_put(e, e->symbol[at].id);
        } else {
            spm_put_bytes(e, text + at, e->symbol[at].next - at);
        }
    }
    return SL_OK;
}

static sl_status spm_encode(sl_encoder *e, const char *text, size_t n) {
    const sl_vocab *v = e->v;
    size_t begin = 0;
    while (begin < n) {
        size_t end = begin + spm_char(text + begin, n - begin);
        while (end < n && spm_may_join(v, text, end) && !(v->space_splits && text[end] == ' ')) {
            end += spm_char(text + end, n - end);
        }
        const int32_t whole = v->ignore_merges ? sl_vocab_find(v, text + begin, end - begin) : -1;
        if (whole >= 0) {
            sl_encoder_put(e, whole);
        } else {
            SL_TRY(spm_part(e, text + begin, end - begin));
        }
        begin = end;
    }
    return SL_OK;
}

const sl_token_model sl_token_model_spm = {
    .name = "spm",
    .gguf_model = "llama",
    .defaults = spm_defaults,
    .text_form = spm_text_form,
    .needs_scores = true,
    .encode = spm_encode,
};
