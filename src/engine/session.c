/* session.c - sl_session: KV pages, scratch, and the loop that runs passes.
 *
 * An eval cuts its tokens into chunks of at most n_batch rows; each chunk is one pass: pre, every block, and the head
 * for the rows whose logits are wanted, n_out at a time. Between programs the cancel flag is looked at. n_past moves
 * only when the whole eval has succeeded, so a failed or cancelled one leaves the session as it was (the KV rows that
 * it wrote lie beyond n_past and will be overwritten).
 *
 * Threads: one at a time by the busy flag; passes of different sessions take turns by the engine's run lock. */
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/limits.h"
#include "engine/engine_internal.h"
#include "graph/plan.h"
#include "token/stream.h"

#define SESSION_CTX_DEFAULT 4096
#define SESSION_BATCH_DEFAULT 256
#define SESSION_PAGE_DEFAULT 16
#define SESSION_PAGE_MAX 256

static sl_status session_check(const sl_model *model, sl_session_options *o, sl_kv_type *kv_type,
                               sl_error *err) {
    if (model->net == NULL) {
        return SL_FAIL(err, SL_EINVAL,
                       "the model was opened for its vocabulary only, a session needs weights");
    }
    const int32_t n_train = model->net->hp.n_ctx_train;
    if (o->n_ctx == 0) {
        o->n_ctx = n_train < SESSION_CTX_DEFAULT ? n_train : SESSION_CTX_DEFAULT;
    }
    o->n_batch = o->n_batch != 0 ? o->n_batch : SESSION_BATCH_DEFAULT;
    o->n_page = o->n_page != 0 ? o->n_page : SESSION_PAGE_DEFAULT;
    o->n_out = o->n_out != 0 ? o->n_out : 1;
    if (o->n_ctx < 1 || o->n_ctx > SL_MAX_CTX) {
        return SL_FAIL(err, SL_EINVAL, "a context of %d tokens is outside 1..%d", o->n_ctx,
                       SL_MAX_CTX);
    }
    if (o->n_batch < 1 || o->n_batch > SL_MAX_BATCH) {
        return SL_FAIL(err, SL_EINVAL, "a batch of %d rows is outside 1..%d", o->n_batch,
                       SL_MAX_BATCH);
    }
    if (o->n_out < 1 || o->n_out > SL_MAX_BATCH) {
        return SL_FAIL(err, SL_EINVAL, "%d rows of logits are outside 1..%d", o->n_out,
                       SL_MAX_BATCH);
    }
    if (o->n_page < SESSION_PAGE_DEFAULT || o->n_page > SESSION_PAGE_MAX ||
        !sl_is_pow2((uint64_t)o->n_page)) {
        return SL_FAIL(err, SL_EINVAL, "a KV page of %d tokens is no power of two in %d..%d",
                       o->n_page, SESSION_PAGE_DEFAULT, SESSION_PAGE_MAX);
    }
    if (!sl_kv_type_find(o->kv_type, kv_type)) {
        return SL_FAIL(err, SL_EINVAL, "KV type '%s' is unknown; known are: f16 f32", o->kv_type);
    }
    o->n_batch = o->n_batch < o->n_ctx ? o->n_batch : o->n_ctx; /* more rows would never be used */
    o->n_out = o->n_out < o->n_batch ? o->n_out : o->n_batch;
    return SL_OK;
}

static size_t session_row_bytes(const sl_session *s) {
    return (3 * (size_t)s->n_batch + (size_t)s->n_out) * sizeof(int32_t);
}

static size_t session_offset_bytes(const sl_session *s) {
    return (size_t)s->model->net->graph->n_value * sizeof(size_t);
}

/* What a generation with the most and longest stop strings takes: booked now, so that a session that was opened can
 * also generate, and the estimate covers it. */
static size_t session_stream_bytes(const sl_model *model) {
    char longest[SL_MAX_STOP_BYTES + 1];
    memset(longest, 'x', SL_MAX_STOP_BYTES);
    longest[SL_MAX_STOP_BYTES] = '\0';
    const char *stop[SL_MAX_STOP];
    for (int i = 0; i < SL_MAX_STOP; i++) {
        stop[i] = longest;
    }
    return sl_stream_bytes(stop, SL_MAX_STOP, model->max_piece);
}

static sl_status session_fill(sl_session *s, const sl_session_options *o, sl_kv_type kv_type,
                              sl_error *err) {
    const sl_net *net = s->model->net;
    const sl_kv_shape shape = {.type = kv_type,
                               .n_page = o->n_page,
                               .n_layer = net->hp.n_layer,
                               .n_head_kv = net->hp.n_head_kv,
                               .d_head = net->hp.d_head};
    const int32_t n_page = (int32_t)(((int64_t)o->n_ctx + o->n_page - 1) / o->n_page);
    SL_TRY(sl_kv_pool_open(s->ledger, &shape, n_page, &s->pool, err));
    SL_TRY(sl_kv_seq_open(s->pool, o->n_ctx, &s->seq, err));
    SL_TRY(sl_sampler_open(s->ledger, net->hp.n_vocab, o->n_ctx, &s->sampler, err));
    const size_t reserve = session_stream_bytes(s->model);
    SL_TRY(sl_book(s->ledger, SL_ACCOUNT_MISC, reserve, "stop strings", err));
    s->reserve_bytes = reserve;
    void *p;
    SL_TRY(sl_alloc_zero(s->ledger, SL_ACCOUNT_SCRATCH, 1, session_row_bytes(s), &p, "batch rows",
                         err));
    s->row = p;
    SL_TRY(sl_alloc_zero(s->ledger, SL_ACCOUNT_SCRATCH, 1, session_offset_bytes(s), &p,
                         "scratch plan", err));
    s->offset = p;
    size_t size;
    SL_TRY(sl_plan_make(net->graph, s->n_batch, s->n_out, s->offset, &size, err));
    SL_TRY(sl_alloc_bulk(s->ledger, SL_ACCOUNT_SCRATCH, size, &p, "scratch", err));
    s->scratch = p;
    s->scratch_bytes = size;
    return SL_OK;
}

sl_status sl_session_open_on(sl_model *model, sl_ledger *ledger, const sl_session_options *options,
                             sl_session **out, sl_error *err) {
    sl_session_options o;
    sl_kv_type kv_type = SL_KV_F16;
    SL_TRY(sl_options_read(&o, sizeof o, options, "session options", err));
    SL_TRY(session_check(model, &o, &kv_type, err));
    void *p;
    SL_TRY(sl_alloc_zero(ledger, SL_ACCOUNT_MISC, 1, sizeof(sl_session), &p, "session", err));
    sl_session *s = p;
    s->model = model;
    s->ledger = ledger;
    s->n_ctx = o.n_ctx;
    s->n_batch = o.n_batch;
    s->n_out = o.n_out;
    const sl_status status = session_fill(s, &o, kv_type, err);
    if (status != SL_OK) {
        sl_session_close(s);
        return status;
    }
    *out = s;
    return SL_OK;
}

sl_status sl_session_open(sl_model *model, const sl_session_options *options, sl_session **out,
                          sl_error *err) {
    if (model == NULL || out == NULL) {
        return SL_FAIL(err, SL_EINVAL, "sl_session_open: %s is NULL",
                       model == NULL ? "model" : "out");
    }
    return sl_session_open_on(model, model->ledger, options, out, err);
}

void sl_session_close(sl_session *s) {
    if (s == NULL) {
        return;
    }
    if (s->scratch_bytes != 0) {
        sl_release_bulk(s->ledger, SL_ACCOUNT_SCRATCH, s->scratch, s->scratch_bytes);
    }
    if (s->offset != NULL) {
        sl_release(s->ledger, SL_ACCOUNT_SCRATCH, s->offset, session_offset_bytes(s));
    }
    if (s->row != NULL) {
        sl_release(s->ledger, SL_ACCOUNT_SCRATCH, s->row, session_row_bytes(s));
    }
    sl_unbook(s->ledger, SL_ACCOUNT_MISC, s->reserve_bytes);
    sl_sampler_close(s->sampler);
    sl_kv_seq_close(s->seq);
    sl_kv_pool_close(s->pool);
    sl_release(s->ledger, SL_ACCOUNT_MISC, s, sizeof *s);
}

sl_status sl_session_estimate(const sl_model *model, const sl_session_options *options,
                              sl_estimate *out, sl_error *err) {
    if (model == NULL || out == NULL) {
        return SL_FAIL(err, SL_EINVAL, "sl_session_estimate: %s is NULL",
                       model == NULL ? "model" : "out");
    }
    sl_ledger private;
    sl_ledger_init(&private, 0);
    private.dry = true;
    sl_session *s;
    SL_TRY(sl_session_open_on((sl_model *)(uintptr_t)model, &private, options, &s, err));
    sl_estimate_from(&private, out);
    sl_session_close(s);
    return SL_OK;
}

int32_t sl_session_n_ctx(const sl_session *s) { return s->n_ctx; }

int32_t sl_session_n_past(const sl_session *s) { return sl_kv_seq_n_tok(s->seq); }

const float *sl_session_logits(const sl_session *s) { return s->logits; }

void sl_session_cancel(sl_session *s) { atomic_store(&s->cancel, true); }

sl_status sl_session_enter(sl_session *s, sl_error *err) {
    bool expected = false;
    if (!atomic_compare_exchange_strong(&s->busy, &expected, true)) {
        return SL_FAIL(err, SL_EBUSY, "the session is in use by another thread");
    }
    atomic_store(&s->cancel, false);
    return SL_OK;
}

void sl_session_leave(sl_session *s) { atomic_store(&s->busy, false); }

sl_status sl_session_rewind(sl_session *s, int32_t n_past, sl_error *err) {
    if (s == NULL) {
        return SL_FAIL(err, SL_EINVAL, "sl_session_rewind: session is NULL");
    }
    SL_TRY(sl_session_enter(s, err));
    sl_status status = SL_OK;
    const int32_t n_now = sl_kv_seq_n_tok(s->seq);
    if (n_past < 0 || n_past > n_now) {
        status = SL_FAIL(err, SL_EINVAL, "cannot rewind to %d: the session has %d tokens", n_past,
                         n_now);
    } else {
        sl_kv_seq_set(s->seq, n_past);
        s->logits = NULL;
    }
    sl_session_leave(s);
    return status;
}

/* Programs [i0, i1) of the pass, with a look at the cancel flag before each. */
static sl_status session_run(sl_session *s, const sl_pass *pass, int32_t i0, int32_t i1,
                             sl_error *err) {
    sl_engine *engine = s->model->engine;
    sl_status status = SL_OK;
    sl_os_mutex_lock(&engine->run_lock);
    for (int32_t i = i0; i < i1; i++) {
        if (atomic_load(&s->cancel)) {
            status = SL_FAIL(err, SL_ECANCEL, "cancelled");
            break;
        }
        engine->backend->kind->run(engine->backend, pass, &pass->graph->program[i]);
    }
    sl_os_mutex_unlock(&engine->run_lock);
    return status;
}

/* Logits of rows [first, n_row) of the pass, n_out at a time; i_token counts from the eval's first token. */
static sl_status session_head(sl_session *s, sl_pass *pass, int32_t *out_row, int32_t first,
                              int32_t i_token, sl_logits_fn sink, void *user, sl_error *err) {
    const int32_t i_head = pass->graph->n_program - 1;
    for (int32_t r = first; r < pass->n_row; r += pass->n_out) {
        pass->n_out = pass->n_row - r < s->n_out ? pass->n_row - r : s->n_out;
        for (int32_t o = 0; o < pass->n_out; o++) {
            out_row[o] = r + o;
        }
        SL_TRY(session_run(s, pass, i_head, i_head + 1, err));
        for (int32_t o = 0; o < pass->n_out; o++) {
            s->logits = sl_pass_row(pass, pass->graph->i_logits, o);
            if (sink != NULL) {
                sink(user, i_token + r + o, s->logits, s->model->net->hp.n_vocab);
            }
        }
    }
    return SL_OK;
}

static sl_status session_passes(sl_session *s, const int32_t *ids, int32_t n_ids, sl_want want,
                                sl_logits_fn sink, void *user, sl_error *err) {
    const sl_net *net = s->model->net;
    int32_t *token = s->row, *position = token + s->n_batch, *seq = position + s->n_batch;
    int32_t *out_row = seq + s->n_batch;
    uint8_t *const *table = sl_kv_seq_table(s->seq);
    sl_pass pass = {.graph = net->graph,
                    .offset = s->offset,
                    .scratch = s->scratch,
                    .weight = sl_weights_view(net->weights),
                    .token = token,
                    .position = position,
                    .seq = seq,
                    .out_row = out_row};
    sl_kv_pool_view(s->pool, &pass.kv);
    pass.kv.table = &table;
    const int32_t n_past = sl_kv_seq_n_tok(s->seq);
    for (int32_t at = 0; at < n_ids; at += pass.n_row) {
        pass.n_row = n_ids - at < s->n_batch ? n_ids - at : s->n_batch;
        for (int32_t r = 0; r < pass.n_row; r++) {
            token[r] = ids[at + r];
            position[r] = n_past + at + r;
            seq[r] = 0;
        }
        SL_TRY(session_run(s, &pass, 0, net->graph->n_program - 1, err));
        const bool is_last = at + pass.n_row == n_ids;
        if (want == SL_WANT_ALL) {
            SL_TRY(session_head(s, &pass, out_row, 0, at, sink, user, err));
        } else if (want == SL_WANT_LAST && is_last) {
            SL_TRY(session_head(s, &pass, out_row, pass.n_row - 1, at, sink, user, err));
        }
    }
    return SL_OK;
}

sl_status sl_session_eval_held(sl_session *s, const int32_t *ids, size_t n_ids, sl_want want,
                               sl_logits_fn sink, void *user, sl_error *err) {
    const int32_t n_past = sl_kv_seq_n_tok(s->seq);
    const int32_t n_vocab = s->model->net->hp.n_vocab;
    if (n_ids > (size_t)(s->n_ctx - n_past)) {
        return n_past == 0
                   ? SL_FAIL(err, SL_ELIMIT,
                             "the prompt has %zu tokens, the context holds %d; shorten the one or "
                             "enlarge the other",
                             n_ids, s->n_ctx)
                   : SL_FAIL(err, SL_ELIMIT, "%zu tokens after %d do not fit the context of %d",
                             n_ids, n_past, s->n_ctx);
    }
    for (size_t i = 0; i < n_ids; i++) {
        if (ids[i] < 0 || ids[i] >= n_vocab) {
            return SL_FAIL(err, SL_EINVAL, "id %d (the %zu-th) is outside the vocabulary of %d",
                           ids[i], i, n_vocab);
        }
    }
    if (n_ids == 0) {
        return SL_OK;
    }
    const int32_t n_next = n_past + (int32_t)n_ids;
    SL_TRY(sl_kv_seq_reserve(s->seq, n_next, err));
    s->logits = NULL;
    const sl_status status = session_passes(s, ids, (int32_t)n_ids, want, sink, user, err);
    if (status != SL_OK) {
        s->logits = NULL;
    }
    sl_kv_seq_set(s->seq, status == SL_OK ? n_next : n_past);
    return status;
}

sl_status sl_session_eval(sl_session *s, const int32_t *ids, size_t n_ids, sl_want want,
                          sl_logits_fn sink, void *user, sl_error *err) {
    if (s == NULL || (ids == NULL && n_ids != 0)) {
        return SL_FAIL(err, SL_EINVAL, "sl_session_eval: %s is NULL",
                       s == NULL ? "session" : "ids");
    }
    if (want != SL_WANT_NONE && want != SL_WANT_LAST && want != SL_WANT_ALL) {
        return SL_FAIL(err, SL_EINVAL, "sl_session_eval: want %d is none of SL_WANT_*", (int)want);
    }
    SL_TRY(sl_session_enter(s, err));
    const sl_status status = sl_session_eval_held(s, ids, n_ids, want, sink, user, err);
    sl_session_leave(s);
    return status;
}
