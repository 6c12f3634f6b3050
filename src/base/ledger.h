/* ledger.h - accounted allocation: every byte has an account.
 *
 * The caller says the size again on release, so the books are exact without headers. All counts are of the bytes
 * asked for, not of what the allocator rounds them to.
 *
 * Invariants  sum of accounts = total <= limit (when there is one); at close every account is zero.
 * Threads     all functions may be called from any thread.
 * Not here    who decides what fits (weights/, engine/); memory that the process has outside these books. */
#ifndef SL_BASE_LEDGER_H
#define SL_BASE_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "sluice.h"

typedef struct sl_ledger {
    _Atomic size_t now[SL_ACCOUNT_COUNT];
    _Atomic size_t peak[SL_ACCOUNT_COUNT];
    _Atomic size_t total;
    _Atomic size_t total_peak;
    _Atomic size_t mapped;
    _Atomic uint64_t n_alloc;
    size_t limit; /* 0: none */
    bool dry;     /* bulk blocks are booked but not allocated: for estimates */
    /* Tests: when >= 0, counts down at each allocation; the one that finds 0 fails, and so do all later ones. -1: off. */
    _Atomic int64_t fail_after;
} sl_ledger;

void sl_ledger_init(sl_ledger *ledger, size_t limit);
/* Copy the books into a snapshot. */
void sl_ledger_read(const sl_ledger *ledger, sl_memory *out);

/* size bytes, aligned to 64, contents undefined (0xAA in debug builds); size 0 gives a valid pointer that must be
 * released too. On failure *out is left alone, and the error names `what`, the size, the limit and what is in use.
 * SL_EBUDGET (the limit), SL_ENOMEM (the system). */
sl_status sl_alloc(sl_ledger *ledger, sl_account account, size_t size, void **out, const char *what,
                   sl_error *err);
/* The same, zeroed; n items of item_size bytes, overflow checked (SL_ENOMEM). */
sl_status sl_alloc_zero(sl_ledger *ledger, sl_account account, size_t n, size_t item_size,
                        void **out, const char *what, sl_error *err);
/* Grow or shrink *p from old_size to new_size, contents kept; on failure the old block stays as it is. *p NULL with
 * old_size 0 allocates. */
sl_status sl_resize(sl_ledger *ledger, sl_account account, void **p, size_t old_size,
                    size_t new_size, const char *what, sl_error *err);
/* p NULL is fine. size is what was asked for. */
void sl_release(sl_ledger *ledger, sl_account account, void *p, size_t size);

/* Large blocks (weights, KV, scratch) that an estimate books but does not take: on a dry ledger *out becomes NULL. */
sl_status sl_alloc_bulk(sl_ledger *ledger, sl_account account, size_t size, void **out,
                        const char *what, sl_error *err);
void sl_release_bulk(sl_ledger *ledger, sl_account account, void *p, size_t size);

/* Book bytes without allocating; pairs with sl_unbook. SL_EBUDGET. */
sl_status sl_book(sl_ledger *ledger, sl_account account, size_t size, const char *what,
                  sl_error *err);
void sl_unbook(sl_ledger *ledger, sl_account account, size_t size);

#endif
