/* kv.c - see kv.h. Free pages are a stack of indices, so taking and giving back is constant time and the page given
 * back last, still warm in the cache, is used first. */
#include "kv/kv.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"

struct sl_kv_pool {
    sl_ledger *ledger;
    sl_kv_shape shape;
    size_t head_bytes, half_bytes, layer_bytes, page_bytes;
    int32_t cap_page;
    int32_t n_free;
    uint8_t *pages; /* [cap_page, page_bytes] */
    int32_t *n_ref; /* [cap_page] */
    int32_t *free;  /* stack of page indices */
};

struct sl_kv_seq {
    sl_kv_pool *pool;
    int32_t n_ctx;
    int32_t n_tok;
    int32_t n_held; /* pages */
    int32_t cap_held;
    uint8_t **table; /* [cap_held] */
};

bool sl_kv_type_find(const char *name, sl_kv_type *out) {
    if (name == NULL || strcmp(name, "f16") == 0) {
        *out = SL_KV_F16;
        return true;
    }
    if (strcmp(name, "f32") == 0) {
        *out = SL_KV_F32;
        return true;
    }
    return false;
}

static size_t kv_elem_bytes(sl_kv_type type) { return type == SL_KV_F16 ? 2 : 4; }

sl_status sl_kv_pool_open(sl_ledger *ledger, const sl_kv_shape *shape, int32_t cap_page,
                          sl_kv_pool **out, sl_error *err) {
    sl_kv_pool sizes = {.ledger = ledger, .shape = *shape, .cap_page = cap_page};
    size_t whole;
    if (!sl_mul_size((size_t)shape->n_page * (size_t)shape->d_head, kv_elem_bytes(shape->type),
                     &sizes.head_bytes) ||
        !sl_mul_size(sizes.head_bytes, (size_t)shape->n_head_kv, &sizes.half_bytes) ||
        !sl_mul_size(sizes.half_bytes, 2, &sizes.layer_bytes) ||
        !sl_mul_size(sizes.layer_bytes, (size_t)shape->n_layer, &sizes.page_bytes) ||
        !sl_mul_size(sizes.page_bytes, (size_t)cap_page, &whole) || whole > SIZE_MAX / 4) {
        return SL_FAIL(err, SL_ELIMIT, "KV cache: %d pages of %d tokens are too large", cap_page,
                       shape->n_page);
    }
    void *p;
    SL_TRY(sl_alloc_zero(ledger, SL_ACCOUNT_KV, 1,
                         sizeof(sl_kv_pool) + 2 * sizeof(int32_t) * (size_t)cap_page, &p,
                         "KV page pool", err));
    sl_kv_pool *pool = p;
    *pool = sizes;
    pool->n_ref = (int32_t *)(void *)(pool + 1);
    pool->free = pool->n_ref + cap_page;
    const sl_status status = sl_alloc_bulk(ledger, SL_ACCOUNT_KV, whole, &p, "KV cache", err);
    if (status != SL_OK) {
        sl_release(ledger, SL_ACCOUNT_KV, pool,
                   sizeof(sl_kv_pool) + 2 * sizeof(int32_t) * (size_t)cap_page);
        return status;
    }
    pool->pages = p;
    for (int32_t i = 0; i < cap_page; i++) { /* page 0 on top */
        pool->free[i] = cap_page - 1 - i;
    }
    pool->n_free = cap_page;
    *out = pool;
    return SL_OK;
}

void sl_kv_pool_close(sl_kv_pool *pool) {
    if (pool != NULL) {
        sl_release_bulk(pool->ledger, SL_ACCOUNT_KV, pool->pages,
                        pool->page_bytes * (size_t)pool->cap_page);
        sl_release(pool->ledger, SL_ACCOUNT_KV, pool,
                   sizeof(sl_kv_pool) + 2 * sizeof(int32_t) * (size_t)pool->cap_page);
    }
}

int32_t sl_kv_pool_n_free(const sl_kv_pool *pool) { return pool->n_free; }

void sl_kv_pool_view(const sl_kv_pool *pool, sl_kv_view *out) {
    *out = (sl_kv_view){.type = pool->shape.type,
                        .n_page = pool->shape.n_page,
                        .head_bytes = pool->head_bytes,
                        .half_bytes = pool->half_bytes,
                        .layer_bytes = pool->layer_bytes,
                        .table = NULL};
}

static size_t kv_seq_bytes(int32_t cap_held) {
    return sizeof(sl_kv_seq) + (size_t)cap_held * sizeof(uint8_t *);
}

sl_status sl_kv_seq_open(sl_kv_pool *pool, int32_t n_ctx, sl_kv_seq **out, sl_error *err) {
    const int32_t cap = (int32_t)(((int64_t)n_ctx + pool->shape.n_page - 1) / pool->shape.n_page);
    void *p;
    SL_TRY(
        sl_alloc_zero(pool->ledger, SL_ACCOUNT_KV, 1, kv_seq_bytes(cap), &p, "KV page table", err));
    sl_kv_seq *seq = p;
    seq->pool = pool;
    seq->n_ctx = n_ctx;
    seq->cap_held = cap;
    seq->table = (uint8_t **)(void *)(seq + 1);
    *out = seq;
    return SL_OK;
}

static int32_t kv_pages_of(const sl_kv_seq *seq, int32_t n_tok) {
    return (int32_t)(((int64_t)n_tok + seq->pool->shape.n_page - 1) / seq->pool->shape.n_page);
}

static void kv_give_back(sl_kv_seq *seq, int32_t n_keep) {
    sl_kv_pool *pool = seq->pool;
    while (seq->n_held > n_keep) {
        uint8_t *page = seq->table[--seq->n_held];
        const int32_t i = (int32_t)((size_t)(page - pool->pages) / pool->page_bytes);
        if (--pool->n_ref[i] == 0) {
            pool->free[pool->n_free++] = i;
        }
    }
}

void sl_kv_seq_close(sl_kv_seq *seq) {
    if (seq != NULL) {
        kv_give_back(seq, 0);
        sl_release(seq->pool->ledger, SL_ACCOUNT_KV, seq, kv_seq_bytes(seq->cap_held));
    }
}

int32_t sl_kv_seq_n_tok(const sl_kv_seq *seq) { return seq->n_tok; }

uint8_t *const *sl_kv_seq_table(const sl_kv_seq *seq) { return seq->table; }

sl_status sl_kv_seq_reserve(sl_kv_seq *seq, int32_t n_tok, sl_error *err) {
    sl_kv_pool *pool = seq->pool;
    if (n_tok > seq->n_ctx) {
        return SL_FAIL(err, SL_ELIMIT, "%d tokens do not fit the context of %d", n_tok, seq->n_ctx);
    }
    const int32_t n_need = kv_pages_of(seq, n_tok);
    if (n_need - seq->n_held > pool->n_free) {
        return SL_FAIL(err, SL_EBUDGET, "KV cache: %d more pages are needed, %d of %d are free",
                       n_need - seq->n_held, pool->n_free, pool->cap_page);
    }
    while (seq->n_held < n_need) {
        const int32_t i = pool->free[--pool->n_free];
        pool->n_ref[i] = 1;
        seq->table[seq->n_held++] = pool->pages + (size_t)i * pool->page_bytes;
    }
    return SL_OK;
}

void sl_kv_seq_set(sl_kv_seq *seq, int32_t n_tok) {
    seq->n_tok = n_tok;
    kv_give_back(seq, kv_pages_of(seq, n_tok));
}
