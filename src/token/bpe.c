/* bpe.c - byte-level BPE, the algorithm of GPT-2 and of most models since.
 *
 * Every byte is a symbol; the pair with the lowest rank is joined, again and again, inside each word that the
 * pre-tokenizer cut. GPT-2 writes bytes as printable characters; the loader has undone that, so here a byte is a byte
 * and any text at all can be encoded.
 *
 * A byte that the vocabulary lacks becomes the unknown token, or nothing where there is none.
 *
 * Threads: all state is in the encoder of one call.
 * Not here: cutting words (pre_rules.c), the queue of merges (vocab_merge.c). */
#include "base/error.h"
#include "token/pre.h"
#include "token/vocab_model.h"

static void bpe_defaults(sl_vocab *v) { v->add_bos = v->pre != NULL && v->pre->add_bos; }

static sl_token_text bpe_text_form(sl_token_kind kind, uint8_t *flag) {
    if (kind == SL_TOKEN_CONTROL || kind == SL_TOKEN_UNKNOWN || kind == SL_TOKEN_USER) {
        *flag |= SL_TOKEN_FLAG_LITERAL | SL_TOKEN_FLAG_UNLISTED | SL_TOKEN_FLAG_CUT;
        return SL_TOKEN_TEXT_PLAIN;
    }
    return SL_TOKEN_TEXT_ALPHA;
}

static sl_status bpe_word(sl_encoder *e, const char *text, size_t n) {
    const sl_vocab *v = e->v;
    e->n_at_unk = 0; /* unknown tokens fuse inside a word only */
    if (v->ignore_merges || n == 1) {
        const int32_t id = n == 1 ? v->byte_id[(uint8_t)text[0]] : sl_vocab_find(v, text, n);
        if (id >= 0) {
            sl_encoder_put(e, id);
            return SL_OK;
        }
    }
    SL_TRY(sl_merge_begin(e, n));
    const bool drop = v->skip_missing && v->id_unk < 0;
    uint32_t first = UINT32_MAX;
    uint32_t prev = UINT32_MAX;
    for (uint32_t at = 0; at < n; at++) {
        const int32_t id = v->byte_id[(uint8_t)text[at]];
        if (id < 0 && drop) {
            continue;
        }
        e->symbol[at] = (sl_merge_symbol){.prev = prev, .next = (uint32_t)n, .id = id};
        if (prev != UINT32_MAX) {
            e->symbol[prev].next = at;
        } else {
            first = at;
        }
        prev = at;
    }
    if (first == UINT32_MAX) {
        return SL_OK;
    }
    SL_TRY(sl_merge_run(e, text, first, (uint32_t)n, sl_merge_by_rank));
    /* In a GGUF a byte without a token gives none, as in the reference engine: the "unknown" id of such a file is often a
     * control token (SmolLM2: the end of text), which text must never become. */
    for (uint32_t at = first; at < n; at = e->symbol[at].next) {
        if (e->symbol[at].id >= 0) {
            sl_encoder_put(e, e->symbol[at].id);
        } else if (v->skip_missing) {
            sl_encoder_put_unk(e);
        }
    }
    return SL_OK;
}

static sl_status bpe_encode(sl_encoder *e, const char *text, size_t n) {
    sl_pre_walk walk = sl_pre_begin(e->v->pre, text, n);
    size_t begin;
    size_t n_word;
    while (sl_pre_next(&walk, &begin, &n_word)) {
        SL_TRY(bpe_word(e, text + begin, n_word));
    }
    return SL_OK;
}

const sl_token_model sl_token_model_bpe = {
    .name = "bpe",
    .gguf_model = "gpt2",
    .defaults = bpe_defaults,
    .text_form = bpe_text_form,
    .needs_merges = true,
    .uses_pre = true,
    .encode = bpe_encode,
};
