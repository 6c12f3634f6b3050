/* sampler.c - the chain run from end to end, and the draw.
 *
 *     logits [n_vocab] -> candidates -> rows of samplers.def, those that are on -> draw by weight -> id
 *
 * Greedy without a filter that moves the greatest needs no list: one sweep over the logits. Everything lives in one
 * block, cut at open:
 *
 *     [ sl_sampler | candidates 8 n_vocab | marks n_vocab/8 | history 4 n_ctx ]
 *
 * Invariants  an id that is given back is in 0..n_vocab-1, whatever the logits are; nothing is allocated after open.
 * Threads     one at a time.
 * Not here    grammar masks; choosing a seed (the engine does). */
#include "sample/sampler.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/limits.h"
#include "sample/chain.h"
#include "sample/random.h"

struct sl_sampler {
    sl_ledger *ledger;
    size_t size_bytes;
    sl_sampling sampling;
    sl_random random;
    sl_chain chain;
};

static const sl_filter *const sampler_filter[] = {
#define X(name) &sl_filter_##name,
#include "sample/samplers.def"
#undef X
};

static sl_status sampler_range(const char *name, float value, float most, sl_error *err) {
    if (!(value >= 0.0f && value <= most)) { /* NaN fails too */
        return SL_FAIL(err, SL_EINVAL, "%s is %g: must be in 0..%g", name, (double)value,
                       (double)most);
    }
    return SL_OK;
}

sl_status sl_sampling_check(const sl_sampling *sampling, sl_error *err) {
    SL_TRY(sampler_range("temperature", sampling->temperature, 100.0f, err));
    SL_TRY(sampler_range("top_p", sampling->top_p, 1.0f, err));
    SL_TRY(sampler_range("min_p", sampling->min_p, 1.0f, err));
    SL_TRY(sampler_range("repeat_penalty", sampling->repeat_penalty, 100.0f, err));
    if (sampling->top_k < 0) {
        return SL_FAIL(err, SL_EINVAL, "top_k is %d: must be at least 0 (0: off)",
                       (int)sampling->top_k);
    }
    if (sampling->repeat_last_n < -1) {
        return SL_FAIL(err, SL_EINVAL, "repeat_last_n is %d: must be at least -1 (-1: all)",
                       (int)sampling->repeat_last_n);
    }
    return SL_OK;
}

/* Offsets of the parts of the block; the last is its size. */
typedef struct sampler_plan {
    size_t item, mark, history, end;
} sampler_plan;

static sampler_plan sampler_layout(int32_t n_vocab, int32_t n_ctx) {
    sampler_plan plan;
    plan.item = sl_round_up(sizeof(sl_sampler), 64);
    plan.mark = plan.item + sl_round_up((size_t)n_vocab * sizeof(sl_candidate), 64);
    plan.history = plan.mark + sl_round_up(((size_t)n_vocab + 63) / 64 * 8, 64);
    plan.end = plan.history + (size_t)n_ctx * sizeof(int32_t);
    return plan;
}

size_t sl_sampler_bytes(int32_t n_vocab, int32_t n_ctx) {
    return sampler_layout(n_vocab, n_ctx).end;
}

sl_status sl_sampler_open(sl_ledger *ledger, int32_t n_vocab, int32_t n_ctx, sl_sampler **out,
                          sl_error *err) {
    if (n_vocab < 1 || n_vocab > SL_MAX_VOCAB) {
        return SL_FAIL(err, SL_EINVAL, "n_vocab is %d: a sampler needs 1..%d", (int)n_vocab,
                       SL_MAX_VOCAB);
    }
    if (n_ctx < 1 || n_ctx > SL_MAX_CTX) {
        return SL_FAIL(err, SL_EINVAL, "n_ctx is %d: a sampler needs 1..%d", (int)n_ctx,
                       SL_MAX_CTX);
    }
    const sampler_plan plan = sampler_layout(n_vocab, n_ctx);
    void *block;
    SL_TRY(sl_alloc_zero(ledger, SL_ACCOUNT_MISC, 1, plan.end, &block, "sampler", err));
    char *const base = (char *)block;
    sl_sampler *const s = (sl_sampler *)block;
    s->ledger = ledger;
    s->size_bytes = plan.end;
    s->chain.item = (sl_candidate *)(void *)(base + plan.item);
    s->chain.mark = (uint64_t *)(void *)(base + plan.mark);
    s->chain.history = (int32_t *)(void *)(base + plan.history);
    s->chain.n_vocab = n_vocab;
    s->chain.n_ctx = n_ctx;
    sl_random_seed(&s->random, 0);
    *out = s;
    return SL_OK;
}

void sl_sampler_close(sl_sampler *s) {
    if (s != NULL) {
        sl_release(s->ledger, SL_ACCOUNT_MISC, s, s->size_bytes);
    }
}

void sl_sampler_arm(sl_sampler *s, const sl_sampling *sampling) {
    s->sampling = *sampling;
    s->chain.n_history = 0;
    s->chain.i_history = 0;
    sl_random_seed(&s->random, sampling->seed);
}

void sl_sampler_accept(sl_sampler *s, int32_t id) {
    sl_chain *const c = &s->chain;
    if (id < 0 || id >= c->n_vocab) {
        return; /* has no logit: nothing to penalise */
    }
    c->history[c->i_history] = id;
    c->i_history = c->i_history + 1 < c->n_ctx ? c->i_history + 1 : 0;
    c->n_history += c->n_history < c->n_ctx;
}

/* The first id of the greatest logit; NaN is never greater. */
static int32_t sampler_greedy(const float *logits, int32_t n) {
    int32_t best = 0;
    float max = -INFINITY;
    for (int32_t i = 0; i < n; i++) {
        if (logits[i] > max) {
            max = logits[i];
            best = i;
        }
    }
    return best;
}

/* Logits to candidates; false when no logit is finite. */
static bool sampler_load(sl_chain *c, const float *logits) {
    bool finite = false;
    c->n = c->n_vocab;
    for (int32_t i = 0; i < c->n_vocab; i++) {
        float logit = logits[i];
        if (logit >= -FLT_MAX && logit <= FLT_MAX) {
            finite = true;
        } else {
            logit = logit > 0.0f ? FLT_MAX : -INFINITY; /* NaN compares false */
        }
        c->item[i] = (sl_candidate){.logit = logit, .id = i};
    }
    return finite;
}

/* The first candidate of the greatest logit. */
static int32_t sampler_first(const sl_chain *c) {
    const float max = sl_chain_max(c);
    int32_t i = 0;
    while (i + 1 < c->n && c->item[i].logit < max) {
        i++;
    }
    return c->item[i].id;
}

/* One candidate by weight. The sums of runs of candidates are kept, so that finding the place of the drawn number
 * takes the exponentials of one run only. */
static int32_t sampler_draw(sl_sampler *s) {
    sl_chain *const c = &s->chain;
    const int32_t n_run = (int32_t)(sizeof c->bucket / sizeof *c->bucket);
    const int32_t run = c->n / n_run + 1;
    const double max = (double)sl_chain_max(c);
    uint64_t total = 0;
    for (int32_t r = 0, i = 0; i < c->n; r++) {
        uint64_t sum = 0;
        for (const int32_t end = c->n - i < run ? c->n : i + run; i < end; i++) {
            sum += sl_chain_weight((double)c->item[i].logit - max);
        }
        c->bucket[r] = sum;
        total += sum;
    }
    uint64_t at = sl_random_below(&s->random, total);
    int32_t i = 0;
    for (int32_t r = 0; at >= c->bucket[r]; r++) {
        at -= c->bucket[r];
        i += run;
    }
    for (;; i++) { /* at < the run's sum, so this ends inside it */
        const uint64_t weight = sl_chain_weight((double)c->item[i].logit - max);
        if (at < weight) {
            return c->item[i].id;
        }
        at -= weight;
    }
}

int32_t sl_sampler_pick(sl_sampler *s, const float *logits) {
    sl_chain *const c = &s->chain;
    const bool greedy = s->sampling.temperature == 0.0f;
    bool listed = false;
    for (size_t i = 0; i < sizeof sampler_filter / sizeof *sampler_filter; i++) {
        const sl_filter *const filter = sampler_filter[i];
        if ((greedy && !filter->moves) || !filter->on(&s->sampling)) {
            continue;
        }
        if (!listed && !sampler_load(c, logits)) {
            return sampler_greedy(logits, c->n_vocab);
        }
        listed = true;
        filter->apply(c, &s->sampling);
    }
    if (greedy) {
        return listed ? sampler_first(c) : sampler_greedy(logits, c->n_vocab);
    }
    if (!listed && !sampler_load(c, logits)) {
        return sampler_greedy(logits, c->n_vocab);
    }
    return sampler_draw(s);
}
