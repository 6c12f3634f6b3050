/* vocab_gguf.c - a vocabulary from a model file's own metadata (tokenizer.ggml.*).
 *
 *     key                             type           meaning
 *     tokenizer.ggml.model            str            algorithm: "gpt2" (byte-level BPE), "llama" (SentencePiece BPE)
 *     tokenizer.ggml.pre              str            rule that cuts words; missing: "default"
 *     tokenizer.ggml.tokens           str[n]         texts, in the algorithm's own form
 *     tokenizer.ggml.token_type       int[n]         kind of each; missing: all normal
 *     tokenizer.ggml.scores           f32[n]         SentencePiece: greater is joined sooner
 *     tokenizer.ggml.merges           str[m]         byte-level BPE: "left right", best first
 *     tokenizer.ggml.*_token_id       int            bos, eos, eot, unknown, padding
 *     tokenizer.ggml.add_*            bool           bos_token, eos_token, space_prefix
 *     tokenizer.chat_template         str
 *
 * Damage that leaves the meaning in doubt is an error; the rest is defined: an id outside the vocabulary is as if the
 * key were not there, of equal texts the lowest id counts, a merge that names no token is left out.
 *
 * Threads: none of its own.
 * Not here: tokenizer.json (hf_json.c). */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "token/pre.h"
#include "token/vocab_model.h"

static const sl_meta *gguf_vocab_array(const sl_container *c, const char *key, sl_status *status,
                                       bool strings, int64_t n_least, sl_error *err) {
    const sl_meta *m = sl_meta_find(c, key);
    if (m == NULL) {
        return NULL;
    }
    if (m->type != SL_META_ARR || (m->item == SL_META_STR) != strings) {
        *status = SL_FAIL(err, SL_EFORMAT, "key '%s' is no array of %s but %s%s", key,
                          strings ? "strings" : "numbers", sl_meta_type_name(m->type),
                          m->type == SL_META_ARR ? " of another type" : "");
        return NULL;
    }
    if (m->n_item < n_least) {
        *status = SL_FAIL(err, SL_EFORMAT,
                          "key '%s' has %lld elements, but the vocabulary has %lld tokens", key,
                          (long long)m->n_item, (long long)n_least);
        return NULL;
    }
    return m;
}

static sl_token_kind gguf_vocab_kind(const sl_meta *types, int64_t id, const char *text, size_t n,
                                     const sl_token_model *model) {
    int64_t kind = SL_TOKEN_NORMAL;
    if (types != NULL) {
        if (!sl_meta_i64(types, id, &kind) || kind < SL_TOKEN_NORMAL || kind > SL_TOKEN_BYTE) {
            kind = SL_TOKEN_NORMAL;
        }
    } else if (model->needs_scores && sl_token_byte_form(text, n) >= 0) {
        kind = SL_TOKEN_BYTE; /* old files have no kinds */
    }
    return (sl_token_kind)kind;
}

/* One token: its kind, flags and bytes (dst NULL: only how many). */
static size_t gguf_vocab_token(const sl_token_model *model, sl_token_kind kind, const char *text,
                               size_t n, char *dst, uint8_t *flag) {
    bool plain;
    const int byte = kind == SL_TOKEN_BYTE ? sl_token_byte_form(text, n) : -1;
    if (byte >= 0) {
        *flag = SL_TOKEN_FLAG_UNLISTED;
        if (dst != NULL) {
            dst[0] = (char)byte;
        }
        return 1;
    }
    *flag = 0;
    const sl_token_text form = model->text_form(kind, flag);
    /* A plain space never comes out of a text whose spaces are marks, so such a token can't be reached by its text. */
    if (form == SL_TOKEN_TEXT_MARK || (model->needs_scores && kind == SL_TOKEN_USER)) {
        if (memchr(text, ' ', n) != NULL) {
            *flag |= SL_TOKEN_FLAG_UNLISTED;
        }
    }
    const size_t n_out = sl_token_undo(form, text, n, dst, &plain);
    if (plain) {
        *flag |= SL_TOKEN_FLAG_UNLISTED;
    }
    return n_out;
}

/* ---- tokens ---- */

static sl_status gguf_vocab_tokens(sl_vocab *v, const sl_container *c, sl_error *err) {
    sl_status status = SL_OK;
    const sl_meta *tokens = gguf_vocab_array(c, "tokenizer.ggml.tokens", &status, true, 0, err);
    SL_TRY(status);
    if (tokens == NULL || tokens->n_item == 0) {
        return SL_FAIL(err, SL_EFORMAT, "key 'tokenizer.ggml.tokens' is missing or empty");
    }
    if (tokens->n_item > SL_MAX_VOCAB) {
        return SL_FAIL(err, SL_ELIMIT, "the vocabulary has %lld tokens; %d is the limit",
                       (long long)tokens->n_item, SL_MAX_VOCAB);
    }
    const int64_t n = tokens->n_item;
    const sl_meta *types = gguf_vocab_array(c, "tokenizer.ggml.token_type", &status, false, n, err);
    SL_TRY(status);
    const sl_meta *scores = gguf_vocab_array(c, "tokenizer.ggml.scores", &status, false, n, err);
    SL_TRY(status);
    const sl_token_model *model = v->model;

    size_t n_bytes = 0;
    const char *text;
    size_t n_text;
    uint8_t flag;
    sl_cursor at = sl_meta_strings(tokens);
    for (int64_t id = 0; id < n && sl_meta_next_str(&at, &text, &n_text); id++) {
        if (n_text > SL_MAX_TOKEN_BYTES) {
            return SL_FAIL(err, SL_ELIMIT, "token %lld has %zu bytes; %d is the limit",
                           (long long)id, n_text, SL_MAX_TOKEN_BYTES);
        }
        n_bytes += gguf_vocab_token(model, gguf_vocab_kind(types, id, text, n_text, model), text,
                                    n_text, NULL, &flag);
    }
    SL_TRY(sl_vocab_reserve(v, (int32_t)n, n_bytes, model->needs_scores, err));
    at = sl_meta_strings(tokens);
    size_t used = 0;
    for (int64_t id = 0; id < n && sl_meta_next_str(&at, &text, &n_text); id++) {
        const sl_token_kind kind = gguf_vocab_kind(types, id, text, n_text, model);
        v->offset[id] = (uint32_t)used;
        v->kind[id] = (uint8_t)kind;
        used += gguf_vocab_token(model, kind, text, n_text, v->bytes + used, &v->flag[id]);
        v->offset[id + 1] = (uint32_t)used;
        if (kind == SL_TOKEN_BYTE && (v->flag[id] & SL_TOKEN_FLAG_UNLISTED) != 0) {
            int32_t *byte = &v->byte_id[(uint8_t)v->bytes[used - 1]];
            *byte = *byte < 0 ? (int32_t)id : *byte;
        }
        if (v->score != NULL) {
            double score = 0.0;
            if (scores != NULL && (!sl_meta_f64(scores, id, &score) || isnan(score))) {
                return SL_FAIL(err, SL_EFORMAT,
                               "key 'tokenizer.ggml.scores': element %lld is not a number",
                               (long long)id);
            }
            v->score[id] = (float)score;
        }
    }
    return SL_OK;
}

/* Where the file has no byte tokens of its own, a byte is the token whose whole text it is. */
static void gguf_vocab_bytes(sl_vocab *v) {
    for (int byte = 0; byte < 256; byte++) {
        if (v->byte_id[byte] < 0) {
            const char text = (char)byte;
            v->byte_id[byte] = sl_vocab_find(v, &text, 1);
        }
    }
}

static sl_status gguf_vocab_merges(sl_vocab *v, const sl_container *c, sl_error *err) {
    sl_status status = SL_OK;
    const sl_meta *merges = gguf_vocab_array(c, "tokenizer.ggml.merges", &status, true, 0, err);
    SL_TRY(status);
    if (merges == NULL) {
        return SL_FAIL(err, SL_EFORMAT,
                       "key 'tokenizer.ggml.merges' is missing; tokenizer model '%s' needs it",
                       v->model->gguf_model);
    }
    SL_TRY(sl_vocab_reserve_merges(v, (size_t)merges->n_item, err));
    const char *text;
    size_t n;
    char undone[SL_MAX_TOKEN_BYTES];
    bool plain;
    sl_cursor at = sl_meta_strings(merges);
    while (sl_meta_next_str(&at, &text, &n)) {
        /* The first character may itself be a space. */
        const char *space = n > 2 && n <= sizeof undone ? memchr(text + 1, ' ', n - 1) : NULL;
        if (space == NULL) {
            continue;
        }
        const size_t n_left = (size_t)(space - text);
        size_t k = sl_token_undo(SL_TOKEN_TEXT_ALPHA, text, n_left, undone, &plain);
        const int32_t left = plain ? -1 : sl_vocab_find(v, undone, k);
        k = sl_token_undo(SL_TOKEN_TEXT_ALPHA, space + 1, n - n_left - 1, undone, &plain);
        const int32_t right = plain ? -1 : sl_vocab_find(v, undone, k);
        if (left >= 0 && right >= 0) {
            (void)sl_vocab_add_merge(v, left, right);
        }
    }
    sl_vocab_index_merges(v, false);
    return SL_OK;
}

static sl_status gguf_vocab_cuts(sl_vocab *v, sl_error *err) {
    size_t n = 0;
    size_t n_text = 0;
    for (int32_t id = 0; id < v->n_token; id++) {
        if ((v->flag[id] & SL_TOKEN_FLAG_CUT) != 0) {
            n++;
            n_text += v->offset[id + 1] - v->offset[id];
        }
    }
    SL_TRY(sl_matcher_reserve(&v->raw, v->ledger, n, n_text, err));
    for (int32_t id = 0; id < v->n_token; id++) {
        if ((v->flag[id] & SL_TOKEN_FLAG_CUT) != 0) {
            size_t n_token;
            const char *text = sl_vocab_text(v, id, &n_token);
            sl_matcher_add(&v->raw, text, n_token, id);
        }
    }
    sl_matcher_sort(&v->raw);
    return SL_OK;
}

/* ---- policy ---- */

static void gguf_vocab_id(const sl_vocab *v, const sl_container *c, const char *key, int32_t *id) {
    if (*id >= v->n_token) { /* a default that this vocabulary is too small for */
        *id = -1;
    }
    const sl_meta *m = sl_meta_find(c, key);
    int64_t value;
    if (m != NULL && sl_meta_i64(m, 0, &value) && m->type != SL_META_ARR && value >= 0 &&
        value < v->n_token) {
        *id = (int32_t)value;
    }
}

static sl_status gguf_vocab_flag(const sl_container *c, const char *key, bool *out, sl_error *err) {
    const sl_meta *m = sl_meta_find(c, key);
    if (m == NULL) {
        return SL_OK;
    }
    if (m->type != SL_META_BOOL || !sl_meta_bool(m, 0, out)) {
        return SL_FAIL(err, SL_EFORMAT, "key '%s' is no bool but %s", key,
                       sl_meta_type_name(m->type));
    }
    return SL_OK;
}

sl_status sl_vocab_load_policy(sl_vocab *v, const sl_container *c, sl_error *err) {
    gguf_vocab_id(v, c, "tokenizer.ggml.bos_token_id", &v->id_bos);
    gguf_vocab_id(v, c, "tokenizer.ggml.eos_token_id", &v->id_eos);
    gguf_vocab_id(v, c, "tokenizer.ggml.eot_token_id", &v->id_eot);
    gguf_vocab_id(v, c, "tokenizer.ggml.unknown_token_id", &v->id_unk);
    gguf_vocab_id(v, c, "tokenizer.ggml.padding_token_id", &v->id_pad);
    SL_TRY(gguf_vocab_flag(c, "tokenizer.ggml.add_bos_token", &v->add_bos, err));
    SL_TRY(gguf_vocab_flag(c, "tokenizer.ggml.add_eos_token", &v->add_eos, err));
    if ((v->add_bos && v->id_bos < 0) || (v->add_eos && v->id_eos < 0)) {
        return SL_FAIL(err, SL_EFORMAT,
                       "the tokenizer asks for a %s token before or after every text, but key "
                       "'tokenizer.ggml.%s_token_id' names none of its %d tokens",
                       v->add_bos && v->id_bos < 0 ? "BOS" : "EOS",
                       v->add_bos && v->id_bos < 0 ? "bos" : "eos", (int)v->n_token);
    }
    const sl_meta *m = sl_meta_find(c, "tokenizer.chat_template");
    const char *text;
    size_t n;
    if (m != NULL && v->chat_template == NULL && sl_meta_str(m, &text, &n)) {
        void *p;
        SL_TRY(sl_alloc(v->ledger, SL_ACCOUNT_TOKEN, n + 1, &p, "chat template", err));
        v->chat_template = p;
        v->n_chat_template = n;
        memcpy(v->chat_template, text, n);
        v->chat_template[n] = '\0';
    }
    return SL_OK;
}

static sl_status gguf_vocab_rule(sl_vocab *v, const sl_container *c, sl_error *err) {
    const sl_meta *m = sl_meta_find(c, "tokenizer.ggml.pre");
    const char *name = "default";
    size_t n = strlen(name);
    if (m != NULL && !sl_meta_str(m, &name, &n)) {
        return SL_FAIL(err, SL_EFORMAT, "key 'tokenizer.ggml.pre' is no str but %s",
                       sl_meta_type_name(m->type));
    }
    v->pre = sl_pre_find(name, n);
    if (v->pre == NULL) {
        return SL_FAIL(err, SL_ENOTSUP,
                       "pre-tokenizer '%.*s' (key 'tokenizer.ggml.pre') is not supported",
                       (int)(n < 64 ? n : 64), name);
    }
    v->ignore_merges = v->pre->ignore_merges;
    return SL_OK;
}

sl_status sl_vocab_load_container(sl_vocab *v, const sl_container *c, sl_error *err) {
    const sl_meta *m = sl_meta_find(c, "tokenizer.ggml.model");
    const char *name;
    size_t n;
    if (m == NULL || !sl_meta_str(m, &name, &n)) {
        return SL_FAIL(err, SL_EFORMAT, "key 'tokenizer.ggml.model' %s: the file has no tokenizer",
                       m == NULL ? "is missing" : "is no str");
    }
    v->model = sl_token_model_find(name, n);
    if (v->model == NULL) {
        return SL_FAIL(err, SL_ENOTSUP,
                       "tokenizer model '%.*s' (key 'tokenizer.ggml.model') is not supported; "
                       "supported: %s",
                       (int)(n < 64 ? n : 64), name, sl_token_model_names());
    }
    if (v->model->uses_pre) {
        SL_TRY(gguf_vocab_rule(v, c, err));
    }
    v->model->defaults(v);
    SL_TRY(gguf_vocab_tokens(v, c, err));
    bool prefix = v->prefix == SL_PREFIX_EACH;
    SL_TRY(gguf_vocab_flag(c, "tokenizer.ggml.add_space_prefix", &prefix, err));
    if (v->space_mark) {
        v->prefix = prefix ? SL_PREFIX_EACH : SL_PREFIX_NONE;
        v->strip_first = prefix;
    }
    SL_TRY(sl_vocab_load_policy(v, c, err));
    sl_vocab_mark_eog(v);
    SL_TRY(sl_vocab_index(v, err));
    gguf_vocab_bytes(v);
    if (v->model->needs_merges) {
        SL_TRY(gguf_vocab_merges(v, c, err));
    }
    return gguf_vocab_cuts(v, err);
}
