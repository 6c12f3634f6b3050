/* filter_min_p.c - keep the candidates that are at least min_p times as likely as the most likely one (Nguyen et al.
 * 2024, arXiv:2407.01082).
 *
 * Threads: one at a time. */
#include "sample/chain.h"

#include <math.h>

static bool min_p_on(const sl_sampling *sampling) { return sampling->min_p > 0.0f; }

static void min_p_apply(sl_chain *c, const sl_sampling *sampling) {
    const double max = (double)sl_chain_max(c), least = (double)sampling->min_p;
    /* A logarithm tells most candidates apart without an exponential. Where it could be wrong by its last bits, which
     * differ between machines, our own exponential decides. */
    const double about = log(least);
    int32_t n = 0;
    for (int32_t i = 0; i < c->n; i++) {
        const double below = (double)c->item[i].logit - max;
        if (below > about + 1e-6 || (below > about - 1e-6 && sl_chain_exp(below) >= least)) {
            c->item[n++] = c->item[i];
        }
    }
    c->n = n; /* e^0 = 1 >= min_p: the greatest stays */
}

const sl_filter sl_filter_min_p = {
    .name = "min_p", .moves = false, .on = min_p_on, .apply = min_p_apply};
