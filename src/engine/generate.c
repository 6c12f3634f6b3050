/* generate.c - prompt in, text out: eval, sample, detokenise, stop rules.
 *
 * Everything that a token needs is taken before the first one is sampled; the loop allocates nothing.
 *
 * The last sampled token is not evaluated: n_past afterwards counts the prompt and all generated tokens but the last
 * (all of them when an end-of-generation token ended it). */
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "engine/engine_internal.h"
#include "token/stream.h"

typedef struct generate_run {
    sl_session *s;
    const sl_generate_options *o;
    sl_stream *stream;
    sl_text_fn on_text;
    void *user;
    sl_generate_result result;
    uint64_t start_us;
} generate_run;

/* Give text to the caller; false: he wants no more. */
static bool generate_show(const generate_run *run, int32_t id, const char *text, size_t n_text) {
    return run->on_text == NULL || run->on_text(run->user, id, text, n_text);
}

/* One sampled token: its text through the stream. true: the generation goes on. */
static bool generate_token(generate_run *run, int32_t id) {
    sl_session *s = run->s;
    const char *text;
    size_t n_text, n_piece = 0;
    const char *piece = "";
    bool first = false; /* a prompt came before */
    const char *bytes;
    if (sl_token_bytes(s->model, id, &bytes, &n_piece) == SL_OK && n_piece != 0) {
        piece = sl_tokenizer_piece(s->model->tokenizer, id, true, &first, &n_piece);
    }
    run->result.i_stop = sl_stream_feed(run->stream, piece, n_piece, &text, &n_text);
    if (!generate_show(run, id, text, n_text)) {
        run->result.finish = SL_FINISH_CALLBACK;
        return false;
    }
    if (run->result.i_stop >= 0) {
        run->result.finish = SL_FINISH_STOP;
        return false;
    }
    if (run->result.n_generated == run->o->max_tokens || sl_kv_seq_n_tok(s->seq) >= s->n_ctx) {
        run->result.finish = SL_FINISH_LENGTH;
        return false;
    }
    return true;
}

static sl_status generate_loop(generate_run *run, sl_error *err) {
    sl_session *s = run->s;
    uint64_t first_at_us = 0;
    for (;;) {
        const int32_t id = sl_sampler_pick(s->sampler, s->logits);
        if (first_at_us == 0) {
            first_at_us = sl_os_now_us();
            run->result.first_us = first_at_us - run->start_us;
        }
        if (!run->o->ignore_eog && sl_token_is_eog(s->model, id)) {
            run->result.finish = SL_FINISH_EOG;
            break;
        }
        run->result.n_generated++;
        sl_sampler_accept(s->sampler, id);
        if (!generate_token(run, id)) {
            break;
        }
        const sl_status status = sl_session_eval_held(s, &id, 1, SL_WANT_LAST, NULL, NULL, err);
        if (status != SL_OK) {
            run->result.decode_us = sl_os_now_us() - first_at_us;
            return status;
        }
    }
    run->result.decode_us = sl_os_now_us() - first_at_us;
    if (run->result.finish == SL_FINISH_EOG || run->result.finish == SL_FINISH_LENGTH) {
        const char *text;
        size_t n_text;
        run->result.i_stop = sl_stream_flush(run->stream, &text, &n_text);
        if (run->result.i_stop >= 0) { /* one had come, but a longer one was still possible */
            run->result.finish = SL_FINISH_STOP;
        }
        if (n_text != 0 && !generate_show(run, -1, text, n_text)) {
            run->result.finish = SL_FINISH_CALLBACK;
        }
    }
    return SL_OK;
}

static sl_status generate_check(const sl_session *s, size_t n_ids, const sl_generate_options *o,
                                sl_error *err) {
    if (o->max_tokens < 0) {
        return SL_FAIL(err, SL_EINVAL,
                       "max_tokens is %d, it must be 0 (until the context is full) or more",
                       o->max_tokens);
    }
    SL_TRY(sl_sampling_check(&o->sampling, err));
    if (o->n_stop != 0 && o->stop == NULL) {
        return SL_FAIL(err, SL_EINVAL, "stop is NULL, but n_stop is %zu", o->n_stop);
    }
    if (n_ids == 0 && s->logits == NULL) {
        return SL_FAIL(err, SL_EINVAL, "there is nothing to go on from: the prompt is empty");
    }
    return SL_OK;
}

static sl_status generate_held(generate_run *run, const int32_t *ids, size_t n_ids, sl_error *err) {
    sl_session *s = run->s;
    sl_sampler_arm(s->sampler, &run->o->sampling);
    SL_TRY(sl_session_eval_held(s, ids, n_ids, SL_WANT_LAST, NULL, NULL, err));
    run->result.n_prompt = (int32_t)n_ids;
    run->result.prefill_us = sl_os_now_us() - run->start_us;
    for (size_t i = 0; i < n_ids; i++) {
        sl_sampler_accept(s->sampler, ids[i]);
    }
    return generate_loop(run, err);
}

sl_status sl_generate(sl_session *s, const int32_t *ids, size_t n_ids,
                      const sl_generate_options *options, sl_text_fn on_text, void *user,
                      sl_generate_result *result, sl_error *err) {
    if (s == NULL || (ids == NULL && n_ids != 0)) {
        return SL_FAIL(err, SL_EINVAL, "sl_generate: %s is NULL", s == NULL ? "session" : "ids");
    }
    sl_generate_options o;
    SL_TRY(sl_options_read(&o, sizeof o, options, "generate options", err));
    SL_TRY(sl_session_enter(s, err));
    generate_run run = {
        .s = s, .o = &o, .on_text = on_text, .user = user, .start_us = sl_os_now_us()};
    run.result.i_stop = -1;
    run.result.seed = o.sampling.seed;
    sl_status status = generate_check(s, n_ids, &o, err);
    if (status == SL_OK) {
        /* The stream's memory was booked when the session was opened: it comes out of a sub-ledger of that size, which
         * the tests' switch reaches too. */
        sl_ledger reserve;
        sl_ledger_init(&reserve, s->reserve_bytes);
        atomic_store(&reserve.fail_after, atomic_load(&s->ledger->fail_after));
        status = sl_stream_open(&reserve, o.stop, o.n_stop, s->model->max_piece, &run.stream, err);
        if (status == SL_OK) {
            status = generate_held(&run, ids, n_ids, err);
            sl_stream_close(run.stream);
        }
    }
    if (result != NULL) {
        *result = run.result;
    }
    sl_session_leave(s);
    return status;
}
