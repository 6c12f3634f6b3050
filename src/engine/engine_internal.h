/* engine_internal.h - what the files of the engine share; tests may look too.
 *
 * Lock order: a session's busy flag, then the engine's run lock. The run lock is held for one pass at a time, so that
 * sessions of several threads take turns. */
#ifndef SL_ENGINE_ENGINE_INTERNAL_H
#define SL_ENGINE_ENGINE_INTERNAL_H

#include "backend/backend.h"
#include "base/os.h"
#include "kv/kv.h"
#include "model/net.h"
#include "sample/sampler.h"
#include "token/chat.h"
#include "token/tokenizer.h"

struct sl_engine {
    sl_ledger ledger;
    sl_backend *backend;
    sl_os_mutex run_lock;
    int32_t n_thread;
    char isas[128];
    char qtypes[512];
};

struct sl_file {
    sl_ledger *ledger;
    sl_container *container;
};

struct sl_model {
    sl_engine *engine;
    sl_ledger *ledger; /* the engine's, or a private one during an estimate */
    sl_net *net;       /* NULL: vocabulary only */
    sl_tokenizer *tokenizer;
    const sl_chat_form *chat; /* NULL: none recognised */
    sl_arena text;
    const char *name;
    const char *arch;
    const char *tokenizer_text;
    uint64_t n_param;
    size_t max_piece; /* bytes of the longest token */
};

struct sl_session {
    sl_model *model;
    sl_ledger *ledger;
    int32_t n_ctx, n_batch, n_out;
    _Atomic bool busy, cancel;
    sl_kv_pool *pool;
    sl_kv_seq *seq;
    sl_sampler *sampler;
    size_t *offset; /* [n_value] */
    int32_t *row;   /* token, position, seq [n_batch each], out_row [n_out] */
    uint8_t *scratch;
    size_t scratch_bytes;
    size_t reserve_bytes; /* booked for what each generation takes and gives back */
    const float *logits;  /* of the last token, in scratch; NULL: none */
};

/* Copy an options struct that the caller may have compiled against another version of the header: *out_size bytes of
 * defaults (zero), then what the caller gave. SL_EINVAL when bytes that this version does not know are not zero. */
sl_status sl_options_read(void *out, size_t out_size, const void *given, const char *what,
                          sl_error *err);

/* The public opens, on a ledger of choice. */
sl_status sl_model_open_on(sl_engine *engine, sl_ledger *ledger, const char *path,
                           const sl_model_options *options, sl_model **out, sl_error *err);
sl_status sl_session_open_on(sl_model *model, sl_ledger *ledger, const sl_session_options *options,
                             sl_session **out, sl_error *err);
void sl_estimate_from(const sl_ledger *before_close, sl_estimate *out);

/* Hold the session for one call: SL_EBUSY if another thread has it. */
sl_status sl_session_enter(sl_session *s, sl_error *err);
void sl_session_leave(sl_session *s);
/* sl_session_eval without the hold. */
sl_status sl_session_eval_held(sl_session *s, const int32_t *ids, size_t n_ids, sl_want want,
                               sl_logits_fn sink, void *user, sl_error *err);

/* Tests: the n-th allocation from now on fails, and all after it; -1: none. */
void sl_test_fail_after(sl_engine *engine, int64_t n);

#endif
