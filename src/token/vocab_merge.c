/* vocab_merge.c - join the symbols of a word, best pair first, in n log n.
 *
 *     l o w e r        queue: (l,o) rank 7, (e,r) rank 3, ...
 *     l o w er         the best pair is joined in place; its new neighbours enter the queue
 *     lo w er          a queued pair whose symbols have changed since is found out by its length and dropped
 *
 * A symbol lives at the index of its first byte and knows where it ends, so a queued pair is still good exactly when its
 * left symbol is alive and the symbol after it ends where it ended then: symbols only grow.
 *
 * Invariants  symbols are chained by next without gaps from 0 to n; each join removes one symbol, so the queue takes at
 *             most 3n entries over the life of a word.
 * Threads     all state is in the encoder of one call.
 * Not here    what may be joined (bpe.c, spm.c), what a word is (pre_*.c). */
#include "base/error.h"
#include "token/vocab_model.h"

void sl_encoder_put_unk(sl_encoder *e) {
    const sl_vocab *v = e->v;
    if (v->id_unk < 0) {
        return;
    }
    if (v->fuse_unk && e->n > 0 && e->n_at_unk == e->n) {
        return;
    }
    sl_encoder_put(e, v->id_unk);
    e->n_at_unk = e->n;
}

sl_status sl_merge_begin(sl_encoder *e, size_t n) {
    if (n <= e->cap_symbol) {
        return SL_OK;
    }
    const size_t cap = n + 64 > e->cap_symbol * 2 ? n + 64 : e->cap_symbol * 2;
    /* The old contents are of no use: make room by a fresh block. */
    sl_release(e->v->ledger, SL_ACCOUNT_TOKEN, e->symbol, e->cap_symbol * sizeof *e->symbol);
    e->symbol = NULL;
    e->cap_symbol = 0;
    void *p;
    SL_TRY(sl_alloc(e->v->ledger, SL_ACCOUNT_TOKEN, cap * sizeof *e->symbol, &p,
                    "symbols of a word", e->err));
    e->symbol = p;
    e->cap_symbol = cap;
    return SL_OK;
}

static bool merge_sooner(const sl_merge_job *a, const sl_merge_job *b) {
    return a->priority != b->priority ? a->priority < b->priority : a->left < b->left;
}

static sl_status merge_push(sl_encoder *e, sl_merge_job job) {
    if (e->n_job == e->cap_job) {
        const size_t cap = e->cap_job == 0 ? 64 : e->cap_job * 2;
        void *p = e->job;
        SL_TRY(sl_resize(e->v->ledger, SL_ACCOUNT_TOKEN, &p, e->cap_job * sizeof *e->job,
                         cap * sizeof *e->job, "queue of merges", e->err));
        e->job = p;
        e->cap_job = cap;
    }
    size_t i = e->n_job++;
    while (i > 0) {
        const size_t up = (i - 1) / 2;
        if (!merge_sooner(&job, &e->job[up])) {
            break;
        }
        e->job[i] = e->job[up];
        i = up;
    }
    e->job[i] = job;
    return SL_OK;
}

static sl_merge_job merge_pop(sl_encoder *e) {
    const sl_merge_job top = e->job[0];
    const sl_merge_job last = e->job[--e->n_job];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= e->n_job) {
            break;
        }
        if (child + 1 < e->n_job && merge_sooner(&e->job[child + 1], &e->job[child])) {
            child++;
        }
        if (!merge_sooner(&e->job[child], &last)) {
            break;
        }
        e->job[i] = e->job[child];
        i = child;
    }
    e->job[i] = last;
    return top;
}

static sl_status merge_offer(sl_encoder *e, const char *text, uint32_t left, uint32_t n,
                             sl_merge_fn fn) {
    const uint32_t mid = e->symbol[left].next;
    if (mid >= n) {
        return SL_OK;
    }
    sl_merge_job job = {.left = left, .end = e->symbol[mid].next};
    if (!fn(e->v, text, &e->symbol[left], left, &e->symbol[mid], &job.priority, &job.result)) {
        return SL_OK;
    }
    return merge_push(e, job);
}

sl_status sl_merge_run(sl_encoder *e, const char *text, uint32_t first, uint32_t n,
                       sl_merge_fn fn) {
    e->n_job = 0;
    for (uint32_t at = first; at < n; at = e->symbol[at].next) {
        SL_TRY(merge_offer(e, text, at, n, fn));
    }
    while (e->n_job > 0) {
        const sl_merge_job job = merge_pop(e);
        sl_merge_symbol *left = &e->symbol[job.left];
        const uint32_t mid = left->next;
        if (mid == 0 || mid >= n || e->symbol[mid].next != job.end) {
            continue;
        }
        left->next = job.end;
        left->id = job.result;
        e->symbol[mid].next = 0;
        if (job.end < n) {
            e->symbol[job.end].prev = job.left;
        }
        if (left->prev != UINT32_MAX) {
            SL_TRY(merge_offer(e, text, left->prev, n, fn));
        }
        SL_TRY(merge_offer(e, text, job.left, n, fn));
    }
    return SL_OK;
}

bool sl_merge_by_rank(const sl_vocab *v, const char *text, const sl_merge_symbol *left, uint32_t at,
                      const sl_merge_symbol *right, uint32_t *priority, int32_t *result) {
    (void)text;
    (void)at;
    const int32_t rank =
        left->id >= 0 && right->id >= 0 ? sl_vocab_rank(v, left->id, right->id) : -1;
    if (rank < 0) {
        return false;
    }
    *priority = (uint32_t)rank;
    *result = v->merge[rank].result;
    return true;
}
