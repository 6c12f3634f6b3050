/* hf_json.c - a vocabulary from a tokenizer.json file, as the `tokenizers` library writes it.
 *
 *     { "added_tokens": [ {id, content, special, lstrip, rstrip, single_word, normalized} ],
 *       "normalizer", "pre_tokenizer", "post_processor", "decoder": see hf_parts.c,
 *       "model": { "type": "BPE", "vocab": {text: id}, "merges": ["a b"] or [["a", "b"]], unk_token, fuse_unk,
 *                  byte_fallback, ignore_merges, ... } }
 *
 * The file is walked, never turned into a tree: a first walk remembers where the parts are, and each part is read by a
 * walk of its own.
 *
 * A pre-tokenizer with ByteLevel makes it byte-level BPE (bpe.c); otherwise it is SentencePiece's BPE with ranks
 * instead of scores (spm.c).
 *
 * Threads: none of its own.
 * Not here: tokens and merges (hf_vocab.c), the small parts (hf_parts.c); other models than BPE, which are refused by
 * name. */
#include <string.h>

#include "base/error.h"
#include "token/hf_own.h"
#include "token/vocab_model.h"

sl_status sl_hf_broken(const sl_hf_file *f, const sl_json *j) {
    return sl_json_fail(j, f->err, f->name);
}

/* ---- where the parts are ---- */

static sl_status hf_find_parts(sl_hf_file *f, const void *json, size_t n_json) {
    const struct {
        const char *key;
        sl_json *at;
        bool *has;
    } parts[] = {
        {"added_tokens", &f->added, &f->has_added},
        {"normalizer", &f->normalizer, &f->has_normalizer},
        {"pre_tokenizer", &f->pre, &f->has_pre},
        {"post_processor", &f->post, &f->has_post},
        {"decoder", &f->decoder, &f->has_decoder},
        {"model", &f->model, &f->has_model},
    };
    sl_json j;
    sl_json_text key;
    sl_json_init(&j, json, n_json);
    (void)sl_json_enter_object(&j);
    while (sl_json_next_key(&j, &key)) {
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            if (sl_json_text_is(&key, parts[i].key)) {
                *parts[i].at = j;
                *parts[i].has = true;
            }
        }
        (void)sl_json_skip(&j);
    }
    if (!sl_json_end(&j)) {
        return sl_hf_broken(f, &j);
    }
    if (!f->has_model) {
        return SL_FAIL(f->err, SL_EFORMAT, "%s: there is no \"model\": no tokenizer.json", f->name);
    }
    return SL_OK;
}

/* null or empty; else the value is refused. */
static sl_status hf_must_be_empty(sl_hf_file *f, sl_json *j, const char *key) {
    sl_json_text text;
    if (sl_json_peek(j) == SL_JSON_NULL) {
        (void)sl_json_null(j);
        return SL_OK;
    }
    if (sl_json_string(j, &text) && text.n_raw > 0) {
        char shown[64];
        return SL_FAIL(f->err, SL_ENOTSUP, "%s: model: %s '%s' is not supported", f->name, key,
                       sl_hf_shown(&text, shown, sizeof shown));
    }
    return SL_OK;
}

static sl_status hf_no_dropout(sl_hf_file *f, sl_json *j) {
    double dropout = 0.0;
    if (sl_json_peek(j) == SL_JSON_NULL) {
        (void)sl_json_null(j);
    } else if (sl_json_double(j, &dropout) && dropout != 0.0) {
        return SL_FAIL(f->err, SL_ENOTSUP, "%s: model: dropout is not supported", f->name);
    }
    return SL_OK;
}

static sl_status hf_read_model(sl_hf_file *f, sl_vocab *v) {
    sl_json j = f->model;
    sl_json_text key;
    sl_json_text type;
    if (sl_hf_type_of(j, &type) && !sl_json_text_is(&type, "BPE")) {
        char shown[64];
        return SL_FAIL(f->err, SL_ENOTSUP,
                       "%s: tokenizer model type '%s' is not supported; supported: BPE", f->name,
                       sl_hf_shown(&type, shown, sizeof shown));
    }
    (void)sl_json_enter_object(&j);
    while (sl_json_next_key(&j, &key)) {
        const bool null = sl_json_peek(&j) == SL_JSON_NULL;
        if (sl_json_text_is(&key, "vocab")) {
            f->vocab = j;
            f->has_vocab = true;
            (void)sl_json_skip(&j);
        } else if (sl_json_text_is(&key, "merges")) {
            f->merges = j;
            f->has_merges = true;
            (void)sl_json_skip(&j);
        } else if (sl_json_text_is(&key, "unk_token") && !null) {
            f->has_unk = sl_json_string(&j, &f->unk);
        } else if (sl_json_text_is(&key, "fuse_unk") && !null) {
            (void)sl_json_bool(&j, &v->fuse_unk);
        } else if (sl_json_text_is(&key, "byte_fallback") && !null) {
            (void)sl_json_bool(&j, &v->byte_fallback);
        } else if (sl_json_text_is(&key, "ignore_merges") && !null) {
            (void)sl_json_bool(&j, &v->ignore_merges);
        } else if (sl_json_text_is(&key, "continuing_subword_prefix")) {
            SL_TRY(hf_must_be_empty(f, &j, "continuing_subword_prefix"));
        } else if (sl_json_text_is(&key, "end_of_word_suffix")) {
            SL_TRY(hf_must_be_empty(f, &j, "end_of_word_suffix"));
        } else if (sl_json_text_is(&key, "dropout")) {
            SL_TRY(hf_no_dropout(f, &j));
        } else {
            (void)sl_json_skip(&j);
        }
    }
    if (j.failed) {
        return sl_hf_broken(f, &j);
    }
    if (!f->has_vocab || sl_json_peek(&f->vocab) != SL_JSON_OBJECT) {
        return SL_FAIL(f->err, SL_EFORMAT, "%s: model: there is no object \"vocab\"", f->name);
    }
    if (!f->has_merges) {
        return SL_FAIL(f->err, SL_EFORMAT, "%s: model: there are no \"merges\"", f->name);
    }
    return SL_OK;
}

/* ---- all ---- */

static sl_status hf_choose_model(sl_hf_file *f, sl_vocab *v) {
    if (f->byte_level) {
        v->model = &sl_token_model_bpe;
        if (v->space_mark || f->prepend) {
            return SL_FAIL(f->err, SL_ENOTSUP,
                           "%s: a ByteLevel pre_tokenizer after a normalizer that changes spaces "
                           "is not supported",
                           f->name);
        }
        v->skip_missing = true;
        v->pre = sl_pre_find_stages(f->stage, f->n_stage);
        if (v->pre == NULL && f->n_stage > 0) {
            return SL_FAIL(f->err, SL_ENOTSUP,
                           "%s: pre_tokenizer: this sequence of %d stages is not supported",
                           f->name, (int)f->n_stage);
        }
        return SL_OK;
    }
    v->model = &sl_token_model_spm;
    if (f->n_stage > 0 || !v->space_mark) {
        return SL_FAIL(f->err, SL_ENOTSUP,
                       "%s: BPE with neither a ByteLevel pre_tokenizer nor SentencePiece's spaces "
                       "is not supported",
                       f->name);
    }
    return SL_OK;
}

static sl_status hf_policy(sl_hf_file *f, sl_vocab *v, const sl_container *side) {
    if (side != NULL) {
        /* A file without a template leaves BOS to the model file, whose word rule implies one or not. */
        v->add_bos = !f->has_template && v->pre != NULL && v->pre->add_bos &&
                     sl_meta_find(side, "tokenizer.ggml.bos_token_id") != NULL;
        SL_TRY(sl_vocab_load_policy(v, side, f->err));
    }
    if (!f->has_template) {
        return SL_OK;
    }
    v->add_bos = f->id_template_bos >= 0;
    v->add_eos = f->id_template_eos >= 0;
    if (f->id_template_bos >= v->n_token || f->id_template_eos >= v->n_token) {
        return SL_FAIL(f->err, SL_EFORMAT, "%s: post_processor: an id is outside the vocabulary",
                       f->name);
    }
    v->id_bos = v->add_bos ? f->id_template_bos : v->id_bos;
    v->id_eos = v->add_eos ? f->id_template_eos : v->id_eos;
    return SL_OK;
}

static sl_status hf_load(sl_hf_file *f, sl_vocab *v, const void *json, size_t n_json,
                         const sl_container *side) {
    SL_TRY(hf_find_parts(f, json, n_json));
    SL_TRY(hf_read_model(f, v));
    SL_TRY(sl_hf_read_normalizer(f, v));
    SL_TRY(sl_hf_read_pre_tokenizer(f, v));
    SL_TRY(sl_hf_read_post_processor(f));
    SL_TRY(sl_hf_read_decoder(f, v));
    SL_TRY(hf_choose_model(f, v));
    SL_TRY(sl_hf_read_added(f, v->ledger));
    SL_TRY(sl_hf_read_tokens(f, v));
    SL_TRY(hf_policy(f, v, side));
    sl_vocab_mark_eog(v);
    SL_TRY(sl_vocab_index(v, f->err));
    SL_TRY(sl_hf_add_cuts(f, v, &v->raw, false));
    SL_TRY(sl_hf_add_cuts(f, v, &v->norm, true));
    SL_TRY(sl_hf_read_unk(f, v));
    if (f->byte_level) {
        for (int byte = 0; byte < 256; byte++) {
            const char text = (char)byte;
            v->byte_id[byte] = sl_vocab_find(v, &text, 1);
        }
    }
    return sl_hf_read_merges(f, v);
}

sl_status sl_vocab_load_json(sl_vocab *v, const void *json, size_t n_json, const char *name,
                             const sl_container *side, sl_error *err) {
    sl_hf_file f;
    memset(&f, 0, sizeof f);
    f.name = name != NULL ? name : "tokenizer.json";
    f.err = err;
    const sl_status status = hf_load(&f, v, json, n_json, side);
    sl_release(v->ledger, SL_ACCOUNT_TOKEN, f.item, f.cap_item * sizeof *f.item);
    return status;
}
