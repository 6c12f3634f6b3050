/* model_open.c - sl_model: container, tokenizer, network, in that order.
 *
 * An estimate is an open on a private, dry ledger: the same code runs, bulk blocks are booked and not taken, nothing is
 * read but the header. So the estimate is right to the byte without a second set of formulas that could drift. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "engine/engine_internal.h"

#define MODEL_TEXT_CHUNK 1024

static sl_status model_text(sl_model *m, const char *text, size_t n, const char **out,
                            sl_error *err) {
    return sl_arena_text(&m->text, text, n, out, "model names", err);
}

static sl_status model_names(sl_model *m, const sl_container *c, sl_error *err) {
    const char *text = "";
    size_t n = 0;
    const sl_meta *meta = sl_meta_find(c, "general.architecture");
    if (meta == NULL || !sl_meta_str(meta, &text, &n)) {
        n = 0;
    }
    SL_TRY(model_text(m, text, n, &m->arch, err));
    meta = sl_meta_find(c, "general.name");
    if (meta == NULL || !sl_meta_str(meta, &text, &n)) {
        n = 0;
    }
    SL_TRY(model_text(m, text, n, &m->name, err));
    for (int64_t i = 0; i < c->n_tensor; i++) {
        uint64_t n_elem = 1;
        for (int32_t k = 0; k < c->tensor[i].n_dim; k++) {
            n_elem *= (uint64_t)c->tensor[i].dim[k];
        }
        m->n_param += n_elem;
    }
    return SL_OK;
}

static sl_status model_tokenizer(sl_model *m, const sl_container *c, const char *json_path,
                                 sl_error *err) {
    if (json_path == NULL) {
        SL_TRY(sl_tokenizer_open_container(m->ledger, c, &m->tokenizer, err));
    } else {
        sl_store *store;
        SL_TRY(sl_store_open_path(m->ledger, "mmap", json_path, &store, err));
        const void *json = sl_store_map(store, 0, (size_t)store->size_bytes);
        const sl_status status =
            json != NULL ? sl_tokenizer_open_json(m->ledger, json, (size_t)store->size_bytes,
                                                  json_path, c, &m->tokenizer, err)
                         : SL_FAIL(err, SL_EFORMAT, "%s: the file is empty", json_path);
        sl_store_close(store);
        SL_TRY(status);
    }
    sl_tokenizer_info info;
    sl_tokenizer_get_info(m->tokenizer, &info);
    if (info.chat_template != NULL) {
        m->chat = sl_chat_find(info.chat_template, info.n_chat_template);
    }
    for (int32_t id = 0; id < info.n_vocab; id++) {
        size_t n;
        (void)sl_tokenizer_bytes(m->tokenizer, id, &n);
        m->max_piece = n > m->max_piece ? n : m->max_piece;
    }
    char text[96];
    const int n =
        snprintf(text, sizeof text, "%s%s%s", info.kind, info.pre[0] != '\0' ? " " : "", info.pre);
    return model_text(m, text, n > 0 && (size_t)n < sizeof text ? (size_t)n : strlen(text),
                      &m->tokenizer_text, err);
}

/* Opens into m; *c is taken over when the network needs it. */
static sl_status model_fill(sl_model *m, sl_container **c, const sl_model_options *o,
                            sl_error *err) {
    SL_TRY(model_names(m, *c, err));
    SL_TRY(model_tokenizer(m, *c, o->tokenizer_json, err));
    if (o->vocab_only) {
        return SL_OK;
    }
    SL_TRY(sl_net_open(m->ledger, *c, m->engine->backend, o->progress, o->progress_user, &m->net,
                       err));
    *c = NULL;
    sl_weights_settle(m->net->weights);
    sl_tokenizer_info info;
    sl_tokenizer_get_info(m->tokenizer, &info);
    /* Some files pad the embedding beyond the vocabulary; the other way round an id would have no row. */
    if (info.n_vocab > m->net->hp.n_vocab) {
        return SL_FAIL(err, SL_EFORMAT,
                       "the tokenizer has %d tokens, but the embedding only %d rows", info.n_vocab,
                       m->net->hp.n_vocab);
    }
    return SL_OK;
}

sl_status sl_model_open_on(sl_engine *engine, sl_ledger *ledger, const char *path,
                           const sl_model_options *options, sl_model **out, sl_error *err) {
    sl_model_options o;
    SL_TRY(sl_options_read(&o, sizeof o, options, "model options", err));
    if (path == NULL && o.source == NULL) {
        return SL_FAIL(err, SL_EINVAL, "sl_model_open: neither a path nor a source is given");
    }
    void *p;
    SL_TRY(sl_alloc_zero(ledger, SL_ACCOUNT_MISC, 1, sizeof(sl_model), &p, "model", err));
    sl_model *m = p;
    m->engine = engine;
    m->ledger = ledger;
    sl_arena_init(&m->text, ledger, SL_ACCOUNT_MISC, MODEL_TEXT_CHUNK);
    sl_container *c = NULL;
    sl_status status = sl_container_open(ledger, path, o.store, o.source, &c, err);
    if (status == SL_OK) {
        status = model_fill(m, &c, &o, err);
        if (status != SL_OK && status != SL_ECANCEL && path != NULL) {
            sl_error_prefix(err, "%s", path);
        }
    }
    sl_container_close(c);
    if (status != SL_OK) {
        sl_model_close(m);
        return status;
    }
    *out = m;
    return SL_OK;
}

sl_status sl_model_open(sl_engine *engine, const char *path, const sl_model_options *options,
                        sl_model **out, sl_error *err) {
    if (engine == NULL || out == NULL) {
        return SL_FAIL(err, SL_EINVAL, "sl_model_open: %s is NULL",
                       engine == NULL ? "engine" : "out");
    }
    return sl_model_open_on(engine, &engine->ledger, path, options, out, err);
}

void sl_model_close(sl_model *m) {
    if (m != NULL) {
        sl_net_close(m->net);
        sl_tokenizer_close(m->tokenizer);
        sl_arena_done(&m->text);
        sl_release(m->ledger, SL_ACCOUNT_MISC, m, sizeof *m);
    }
}

sl_status sl_model_estimate(sl_engine *engine, const char *path, const sl_model_options *options,
                            sl_estimate *out, sl_error *err) {
    if (engine == NULL || out == NULL) {
        return SL_FAIL(err, SL_EINVAL, "sl_model_estimate: %s is NULL",
                       engine == NULL ? "engine" : "out");
    }
    sl_ledger private;
    sl_ledger_init(&private, 0);
    private.dry = true;
    sl_model *m;
    SL_TRY(sl_model_open_on(engine, &private, path, options, &m, err));
    sl_estimate_from(&private, out);
    sl_model_close(m);
    return SL_OK;
}

void sl_model_get_info(const sl_model *m, sl_model_info *out) {
    sl_tokenizer_info t;
    sl_tokenizer_get_info(m->tokenizer, &t);
    *out = (sl_model_info){.arch = m->arch,
                           .name = m->name,
                           .n_vocab = t.n_vocab,
                           .n_param = m->n_param,
                           .tokenizer = m->tokenizer_text,
                           .chat = m->chat != NULL ? m->chat->name : "",
                           .id_bos = t.id_bos,
                           .id_eos = t.id_eos,
                           .id_eot = t.id_eot,
                           .id_unk = t.id_unk,
                           .id_pad = t.id_pad};
    if (m->net != NULL) {
        const sl_hparams *hp = &m->net->hp;
        out->n_vocab = hp->n_vocab;
        out->n_layer = hp->n_layer;
        out->n_embd = hp->n_embd;
        out->n_ff = hp->n_ff;
        out->n_head = hp->n_head;
        out->n_head_kv = hp->n_head_kv;
        out->d_head = hp->d_head;
        out->n_ctx_train = hp->n_ctx_train;
        out->weight_bytes = sl_weights_stored_bytes(m->net->weights);
    }
}
