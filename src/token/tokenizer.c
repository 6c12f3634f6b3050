/* tokenizer.c - open, close, look up; see tokenizer.h.
 *
 * Threads: read-only after open.
 * Not here: encoding (tokenizer_encode.c), loading (vocab_gguf.c, hf_json.c). */
#include "token/tokenizer.h"

#include <string.h>

#include "base/error.h"
#include "token/pre.h"
#include "token/tokenizer_own.h"
#include "token/vocab_model.h"

static const sl_token_model *const tokenizer_models[] = {
#define X(name, gguf) &sl_token_model_##name,
#include "token/tokenizers.def"
#undef X
};

const sl_token_model *sl_token_model_find(const char *gguf_model, size_t n) {
    for (size_t i = 0; i < sizeof tokenizer_models / sizeof tokenizer_models[0]; i++) {
        const char *name = tokenizer_models[i]->gguf_model;
        if (strlen(name) == n && memcmp(name, gguf_model, n) == 0) {
            return tokenizer_models[i];
        }
    }
    return NULL;
}

const char *sl_token_model_names(void) {
    return ""
#define X(name, gguf) gguf " "
#include "token/tokenizers.def"
#undef X
        ;
}

static sl_status tokenizer_make(sl_ledger *ledger, sl_tokenizer **out, sl_error *err) {
    void *p;
    SL_TRY(sl_alloc_zero(ledger, SL_ACCOUNT_TOKEN, 1, sizeof **out, &p, "tokenizer", err));
    *out = p;
    sl_vocab_init(&(*out)->vocab, ledger);
    return SL_OK;
}

sl_status sl_tokenizer_open_container(sl_ledger *ledger, const sl_container *c, sl_tokenizer **out,
                                      sl_error *err) {
    sl_tokenizer *t;
    SL_TRY(tokenizer_make(ledger, &t, err));
    const sl_status status = sl_vocab_load_container(&t->vocab, c, err);
    if (status != SL_OK) {
        sl_tokenizer_close(t);
        return status;
    }
    *out = t;
    return SL_OK;
}

sl_status sl_tokenizer_open_json(sl_ledger *ledger, const void *json, size_t n_json,
                                 const char *name, const sl_container *side, sl_tokenizer **out,
                                 sl_error *err) {
    sl_tokenizer *t;
    SL_TRY(tokenizer_make(ledger, &t, err));
    const sl_status status = sl_vocab_load_json(&t->vocab, json, n_json, name, side, err);
    if (status != SL_OK) {
        sl_tokenizer_close(t);
        return status;
    }
    *out = t;
    return SL_OK;
}

void sl_tokenizer_close(sl_tokenizer *t) {
    if (t == NULL) {
        return;
    }
    sl_ledger *ledger = t->vocab.ledger;
    sl_vocab_done(&t->vocab);
    sl_release(ledger, SL_ACCOUNT_TOKEN, t, sizeof *t);
}

void sl_tokenizer_get_info(const sl_tokenizer *t, sl_tokenizer_info *out) {
    const sl_vocab *v = &t->vocab;
    *out = (sl_tokenizer_info){
        .n_vocab = v->n_token,
        .kind = v->model->name,
        .pre = v->pre != NULL ? v->pre->name : "",
        .id_bos = v->id_bos,
        .id_eos = v->id_eos,
        .id_eot = v->id_eot,
        .id_unk = v->id_unk,
        .id_pad = v->id_pad,
        .add_bos = v->add_bos,
        .add_eos = v->add_eos,
        .chat_template = v->chat_template,
        .n_chat_template = v->n_chat_template,
    };
}

const char *sl_tokenizer_bytes(const sl_tokenizer *t, int32_t id, size_t *n_bytes) {
    return sl_vocab_text(&t->vocab, id, n_bytes);
}

sl_token_kind sl_tokenizer_kind(const sl_tokenizer *t, int32_t id) {
    return (sl_token_kind)t->vocab.kind[id];
}

bool sl_tokenizer_is_eog(const sl_tokenizer *t, int32_t id) {
    return (t->vocab.flag[id] & SL_TOKEN_FLAG_EOG) != 0;
}

int32_t sl_tokenizer_find(const sl_tokenizer *t, const char *text, size_t n_text) {
    const sl_vocab *v = &t->vocab;
    int32_t id = sl_matcher_exact(&v->raw, text, n_text);
    if (id < 0) {
        id = sl_matcher_exact(&v->norm, text, n_text);
    }
    return id >= 0 ? id : sl_vocab_find(v, text, n_text);
}

const char *sl_tokenizer_piece(const sl_tokenizer *t, int32_t id, bool skip_control, bool *first,
                               size_t *n_bytes) {
    const sl_vocab *v = &t->vocab;
    const char *text = sl_vocab_text(v, id, n_bytes);
    if (skip_control && (v->kind[id] == SL_TOKEN_CONTROL || v->kind[id] == SL_TOKEN_UNKNOWN)) {
        *n_bytes = 0;
        return text;
    }
    if (*first && v->strip_first && *n_bytes > 0 && text[0] == ' ') {
        text++;
        (*n_bytes)--;
    }
    *first = false;
    return text;
}
