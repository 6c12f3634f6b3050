/* engine.c - the engine object: books, backend, lock; and what all opens share. */
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "engine/engine_internal.h"

sl_status sl_options_read(void *out, size_t out_size, const void *given, const char *what,
                          sl_error *err) {
    memset(out, 0, out_size);
    if (given == NULL) {
        return SL_OK;
    }
    size_t size;
    memcpy(&size, given, sizeof size); /* every options struct begins with it */
    if (size == 0) {
        size = out_size;
    }
    if (size < sizeof size || size > ((size_t)1 << 16)) {
        return SL_FAIL(err, SL_EINVAL, "%s: size %zu is no size of this struct; zero-initialise it",
                       what, size);
    }
    for (size_t i = out_size; i < size; i++) {
        if (((const uint8_t *)given)[i] != 0) {
            return SL_FAIL(err, SL_EINVAL,
                           "%s: an option is set that this version (%s) does not know", what,
                           sl_version());
        }
    }
    memcpy(out, given, size < out_size ? size : out_size);
    return SL_OK;
}

/* Append a word to a list in a fixed buffer; a word that does not fit is left out. */
static void engine_list(char *list, size_t cap, const char *word) {
    const size_t used = strlen(list), n = strlen(word);
    if (used + n + 2 <= cap) {
        if (used != 0) {
            list[used] = ' ';
        }
        memcpy(list + used + (used != 0), word, n + 1);
    }
}

static void engine_describe(sl_engine *engine) {
    for (int32_t i = 0; i < sl_isa_count(); i++) {
        if (sl_isa_at(i)->usable()) {
            engine_list(engine->isas, sizeof engine->isas, sl_isa_at(i)->name);
        }
    }
    for (int32_t i = 0; i < sl_qtype_count(); i++) {
        sl_act act;
        if (engine->backend->kind->mul_act(engine->backend, sl_qtype_at(i), &act)) {
            engine_list(engine->qtypes, sizeof engine->qtypes, sl_qtype_at(i)->name);
        }
    }
}

static sl_status engine_open_parts(sl_engine *engine, const sl_engine_options *o, sl_error *err) {
    bool exact = false;
    if (o->act != NULL && strcmp(o->act, "fast") != 0) {
        if (strcmp(o->act, "exact") != 0) {
            return SL_FAIL(err, SL_EINVAL, "act '%s' is unknown; known are: fast exact", o->act);
        }
        exact = true;
    }
    if (o->n_thread < 0 || o->n_thread > SL_MAX_THREADS) {
        return SL_FAIL(err, SL_EINVAL,
                       "%d threads are outside 0..%d (0: as many as the machine has cores)",
                       o->n_thread, SL_MAX_THREADS);
    }
    engine->n_thread = o->n_thread != 0 ? o->n_thread : sl_os_n_core();
    const sl_backend_options options = {
        .n_thread = engine->n_thread, .isa = o->isa, .exact = exact};
    SL_TRY(sl_os_mutex_init(&engine->run_lock, err));
    const sl_status status = sl_backend_cpu.open(&engine->ledger, &options, &engine->backend, err);
    if (status != SL_OK) {
        sl_os_mutex_done(&engine->run_lock);
        return status;
    }
    engine_describe(engine);
    return SL_OK;
}

/* The engine lies in memory that its own books account for: it is taken with a ledger on the stack, then booked. */
sl_status sl_engine_open(const sl_engine_options *options, sl_engine **out, sl_error *err) {
    if (out == NULL) {
        return SL_FAIL(err, SL_EINVAL, "sl_engine_open: out is NULL");
    }
    sl_engine_options o;
    SL_TRY(sl_options_read(&o, sizeof o, options, "engine options", err));
    sl_ledger first;
    void *p;
    sl_ledger_init(&first, o.limit_bytes);
    SL_TRY(sl_alloc_zero(&first, SL_ACCOUNT_MISC, 1, sizeof(sl_engine), &p, "engine", err));
    sl_engine *engine = p;
    sl_ledger_init(&engine->ledger, o.limit_bytes);
    sl_status status = sl_book(&engine->ledger, SL_ACCOUNT_MISC, sizeof *engine, "engine", err);
    if (status == SL_OK) {
        status = engine_open_parts(engine, &o, err);
    }
    if (status != SL_OK) {
        sl_release(&first, SL_ACCOUNT_MISC, engine, sizeof *engine);
        return status;
    }
    *out = engine;
    return SL_OK;
}

void sl_engine_close(sl_engine *engine) {
    if (engine != NULL) {
        engine->backend->kind->close(engine->backend);
        sl_os_mutex_done(&engine->run_lock);
        sl_ledger last;
        sl_ledger_init(&last, 0);
        (void)sl_book(&last, SL_ACCOUNT_MISC, sizeof *engine, "engine", NULL);
        sl_release(&last, SL_ACCOUNT_MISC, engine, sizeof *engine);
    }
}

void sl_engine_memory(const sl_engine *engine, sl_memory *out) {
    sl_ledger_read(&engine->ledger, out);
}

void sl_engine_about(const sl_engine *engine, sl_about *out) {
    *out = (sl_about){.version = sl_version(),
                      .isa = engine->backend->kind->isa(engine->backend),
                      .isas = engine->isas,
                      .archs = sl_arch_names(),
                      .qtypes = engine->qtypes,
                      .stores = sl_store_names(),
                      .backends = sl_backend_names(),
                      .n_thread = engine->n_thread,
                      .n_core = sl_os_n_core(),
                      .ram_bytes = sl_os_ram_bytes()};
}

void sl_estimate_from(const sl_ledger *ledger, sl_estimate *out) {
    sl_memory m;
    sl_ledger_read(ledger, &m);
    out->peak_bytes = m.total_peak_bytes;
    out->total_bytes = m.total_bytes;
    memcpy(out->account_bytes, m.now_bytes, sizeof out->account_bytes);
    out->mapped_bytes = m.mapped_bytes;
}

void sl_test_fail_after(sl_engine *engine, int64_t n) {
    atomic_store(&engine->ledger.fail_after, n);
}
