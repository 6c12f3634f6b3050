/* filter_top_p.c - nucleus sampling (Holtzman et al. 2019, arXiv:1904.09751): keep the fewest most likely candidates
 * whose probabilities, of what the filters before have left, add up to at least p.
 *
 * Threads: one at a time. */
#include "sample/chain.h"

static bool top_p_on(const sl_sampling *sampling) {
    return sampling->top_p > 0.0f && sampling->top_p < 1.0f;
}

static void top_p_apply(sl_chain *c, const sl_sampling *sampling) {
    sl_chain_keep_share(c, (double)sampling->top_p);
}

const sl_filter sl_filter_top_p = {
    .name = "top_p", .moves = false, .on = top_p_on, .apply = top_p_apply};
