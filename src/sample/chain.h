/* chain.h - what the filters of the sampler work on: a list of candidates, always in the order of their ids.
 *
 * Nothing is ever sorted. A filter that keeps "the greatest" finds the place of the cut by counting (sl_chain_keep)
 * and sweeps the list once, so every filter is linear in the vocabulary, and ties fall to the lower id by themselves.
 *
 * Probabilities are whole numbers: weight = e^(logit - greatest) in units of 2^-40. Sums of whole numbers do not
 * depend on the order of adding, and the exponential is our own, so a cut or a draw is the same on every machine.
 * What is below 2^-41 of the most likely token weighs nothing and is never drawn.
 *
 * Invariants  logits are numbers, none NaN or +infinity; n >= 1; at least one is finite; n_vocab <= 2^22, so that a
 *             sum of weights is below 2^63.
 * Threads     one at a time. */
#ifndef SL_SAMPLE_CHAIN_H
#define SL_SAMPLE_CHAIN_H

#include "sample/sampler.h"

typedef struct sl_candidate {
    float logit;
    int32_t id;
} sl_candidate;

enum { SL_CHAIN_BUCKET_BITS = 11 };

typedef struct sl_chain {
    sl_candidate *item; /* [n_vocab], the first n in use */
    int32_t n;
    int32_t n_vocab;
    /* The tokens of this generation, the last n_ctx of them: a ring. */
    int32_t *history;
    int32_t n_history; /* in use */
    int32_t i_history; /* where the next one goes */
    int32_t n_ctx;
    uint64_t *mark; /* one bit a token, all zero between filters */
    uint64_t bucket[1 << SL_CHAIN_BUCKET_BITS];
} sl_chain;

/* One row of samplers.def. */
typedef struct sl_filter {
    const char *name;
    bool moves; /* may change which candidate is the greatest: runs for a greedy pick too */
    bool (*on)(const sl_sampling *sampling);
    /* May change logits and drop candidates, never all; keeps the order of ids. */
    void (*apply)(sl_chain *c, const sl_sampling *sampling);
} sl_filter;

#define X(name) extern const sl_filter sl_filter_##name;
#include "sample/samplers.def"
#undef X

#define SL_WEIGHT_ONE ((uint64_t)1 << 40)

/* e^x for x <= 0 within 2e-14 of the true value, relative; 0 below -700. */
double sl_chain_exp(double x);
/* Weight of a logit that is `below` (<= 0) under the greatest. */
uint64_t sl_chain_weight(double below);

float sl_chain_max(const sl_chain *c);

/* Keep the `count` greatest logits (count >= 1), the lower id first where they are equal. */
void sl_chain_keep_count(sl_chain *c, uint64_t count);
/* Keep the shortest run of the greatest logits whose weights reach `share` of the total (0 < share < 1). */
void sl_chain_keep_share(sl_chain *c, double share);

#endif
