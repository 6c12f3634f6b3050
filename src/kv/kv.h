/* kv.h - the KV cache: a pool of pages, and sequences that hold tables of them.
 *
 *     page      n_page tokens of all layers:
 *               [ layer 0: K [n_head_kv, n_page, d] | V [n_head_kv, n_page, d] | layer 1: ... ]
 *     sequence  table of page pointers; position t lies in page t / n_page at t % n_page
 *
 * Pages are counted, so that sequences can share a prefix; a page that is shared is never written.
 *
 * Invariants  a page is free or has a count >= 1; a sequence holds exactly ceil(n_tok / n_page) pages (plus those that
 *             were asked for ahead by reserve).
 * Memory      the pool and each sequence take all of theirs at open; nothing later.
 * Threads     one at a time (the owner of the pool).
 * Not here    reading and writing the elements (backend/). */
#ifndef SL_KV_KV_H
#define SL_KV_KV_H

#include "base/ledger.h"
#include "graph/pass.h"

typedef struct sl_kv_pool sl_kv_pool;
typedef struct sl_kv_seq sl_kv_seq;

typedef struct sl_kv_shape {
    sl_kv_type type;
    int32_t n_page; /* tokens a page, a power of two >= 16 */
    int32_t n_layer;
    int32_t n_head_kv;
    int32_t d_head;
} sl_kv_shape;

/* "f16" -> SL_KV_F16; false: unknown. NULL is f16. */
bool sl_kv_type_find(const char *name, sl_kv_type *out);

/* A pool of cap_page pages (account kv). SL_ELIMIT: sizes overflow. */
sl_status sl_kv_pool_open(sl_ledger *ledger, const sl_kv_shape *shape, int32_t cap_page,
                          sl_kv_pool **out, sl_error *err);
void sl_kv_pool_close(sl_kv_pool *pool); /* after its sequences */
int32_t sl_kv_pool_n_free(const sl_kv_pool *pool);
/* The part of a pass that describes the layout; table is left for the caller. */
void sl_kv_pool_view(const sl_kv_pool *pool, sl_kv_view *out);

/* A sequence of at most n_ctx tokens. */
sl_status sl_kv_seq_open(sl_kv_pool *pool, int32_t n_ctx, sl_kv_seq **out, sl_error *err);
void sl_kv_seq_close(sl_kv_seq *seq);
int32_t sl_kv_seq_n_tok(const sl_kv_seq *seq);
uint8_t *const *sl_kv_seq_table(const sl_kv_seq *seq);
/* Make room for n_tok tokens in all. SL_ELIMIT beyond n_ctx; SL_EBUDGET when the pool has no free page (the sequence
 * is as before). */
sl_status sl_kv_seq_reserve(sl_kv_seq *seq, int32_t n_tok, sl_error *err);
/* The sequence now has n_tok tokens: grown within what was reserved, or cut; pages past the end are given back. */
void sl_kv_seq_set(sl_kv_seq *seq, int32_t n_tok);

#endif
