/* ledger.c - see ledger.h. The only file that calls the system's allocator.
 *
 * Blocks of 4 MiB and more come from anonymous maps on huge-page boundaries (os.h), because the kernels read weights at
 * the memory's limit and small pages cost a fifth of it; they go back to the system at once. Everything else comes from
 * the C library. Which of the two a block came from follows from its size alone, so release needs no header. */
#include "base/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/os.h"

#define LEDGER_ALIGN ((size_t)64)
#define LEDGER_MAP_FROM ((size_t)4 << 20)

void sl_ledger_init(sl_ledger *ledger, size_t limit) {
    memset(ledger, 0, sizeof *ledger);
    ledger->limit = limit;
    atomic_store(&ledger->fail_after, -1);
}

void sl_ledger_read(const sl_ledger *ledger, sl_memory *out) {
    for (int i = 0; i < SL_ACCOUNT_COUNT; i++) {
        out->now_bytes[i] = atomic_load(&ledger->now[i]);
        out->peak_bytes[i] = atomic_load(&ledger->peak[i]);
    }
    out->total_bytes = atomic_load(&ledger->total);
    out->total_peak_bytes = atomic_load(&ledger->total_peak);
    out->limit_bytes = ledger->limit;
    out->mapped_bytes = atomic_load(&ledger->mapped);
    out->n_alloc = atomic_load(&ledger->n_alloc);
}

static void ledger_raise(_Atomic size_t *peak, size_t value) {
    size_t seen = atomic_load(peak);
    while (seen < value && !atomic_compare_exchange_weak(peak, &seen, value)) {
    }
}

sl_status sl_book(sl_ledger *ledger, sl_account account, size_t size, const char *what,
                  sl_error *err) {
    size_t total = atomic_load(&ledger->total);
    size_t next;
    do {
        if (!sl_add_size(total, size, &next)) {
            return SL_FAIL(err, SL_ENOMEM, "%s: %zu bytes are more than this machine can address",
                           what, size);
        }
        if (ledger->limit != 0 && next > ledger->limit) {
            return SL_FAIL(err, SL_EBUDGET,
                           "%s needs %zu bytes, but %zu of the limit of %zu bytes are in use", what,
                           size, total, ledger->limit);
        }
    } while (!atomic_compare_exchange_weak(&ledger->total, &total, next));
    ledger_raise(&ledger->total_peak, next);
    ledger_raise(&ledger->peak[account], atomic_fetch_add(&ledger->now[account], size) + size);
    return SL_OK;
}

void sl_unbook(sl_ledger *ledger, sl_account account, size_t size) {
    atomic_fetch_sub(&ledger->now[account], size);
    atomic_fetch_sub(&ledger->total, size);
}

/* The tests' switch: true when this allocation has to fail. */
static bool ledger_must_fail(sl_ledger *ledger) {
    if (atomic_load(&ledger->fail_after) < 0) {
        return false;
    }
    if (atomic_load(&ledger->fail_after) == 0) {
        return true;
    }
    return atomic_fetch_sub(&ledger->fail_after, 1) == 0;
}

static void *system_take(size_t size) {
    if (size >= LEDGER_MAP_FROM) {
        return sl_os_map_anonymous(size);
    }
    return aligned_alloc(LEDGER_ALIGN, sl_round_up(size != 0 ? size : 1, LEDGER_ALIGN));
}

static void system_give(void *p, size_t size) {
    if (size >= LEDGER_MAP_FROM) {
        sl_os_unmap_anonymous(p, size);
    } else {
        free(p);
    }
}

sl_status sl_alloc(sl_ledger *ledger, sl_account account, size_t size, void **out, const char *what,
                   sl_error *err) {
    if (size > SIZE_MAX / 2) {
        return SL_FAIL(err, SL_ENOMEM, "%s: %zu bytes are more than this machine can address", what,
                       size);
    }
    SL_TRY(sl_book(ledger, account, size, what, err));
    void *p = ledger_must_fail(ledger) ? NULL : system_take(size);
    if (p == NULL) {
        sl_unbook(ledger, account, size);
        return SL_FAIL(err, SL_ENOMEM, "%s: the system gave no %zu bytes", what, size);
    }
    atomic_fetch_add(&ledger->n_alloc, 1);
#ifndef NDEBUG
    if (size < LEDGER_MAP_FROM) {
        memset(p, 0xAA, size);
    }
#endif
    *out = p;
    return SL_OK;
}

sl_status sl_alloc_zero(sl_ledger *ledger, sl_account account, size_t n, size_t item_size,
                        void **out, const char *what, sl_error *err) {
    size_t size;
    if (!sl_mul_size(n, item_size, &size)) {
        return SL_FAIL(err, SL_ENOMEM,
                       "%s: %zu items of %zu bytes are more than this machine can address", what, n,
                       item_size);
    }
    void *p;
    SL_TRY(sl_alloc(ledger, account, size, &p, what, err));
    if (size < LEDGER_MAP_FROM) { /* maps come zeroed */
        memset(p, 0, size);
    }
    *out = p;
    return SL_OK;
}

sl_status sl_resize(sl_ledger *ledger, sl_account account, void **p, size_t old_size,
                    size_t new_size, const char *what, sl_error *err) {
    void *fresh;
    SL_TRY(sl_alloc(ledger, account, new_size, &fresh, what, err));
    if (*p != NULL) {
        memcpy(fresh, *p, old_size < new_size ? old_size : new_size);
        sl_release(ledger, account, *p, old_size);
    }
    *p = fresh;
    return SL_OK;
}

void sl_release(sl_ledger *ledger, sl_account account, void *p, size_t size) {
    if (p == NULL) {
        return;
    }
#ifndef NDEBUG
    if (size < LEDGER_MAP_FROM) {
        memset(p, 0x55, size);
    }
#endif
    system_give(p, size);
    sl_unbook(ledger, account, size);
}

sl_status sl_alloc_bulk(sl_ledger *ledger, sl_account account, size_t size, void **out,
                        const char *what, sl_error *err) {
    if (!ledger->dry) {
        return sl_alloc(ledger, account, size, out, what, err);
    }
    SL_TRY(sl_book(ledger, account, size, what, err));
    *out = NULL;
    return SL_OK;
}

void sl_release_bulk(sl_ledger *ledger, sl_account account, void *p, size_t size) {
    if (ledger->dry) {
        sl_unbook(ledger, account, size);
    } else {
        sl_release(ledger, account, p, size);
    }
}
