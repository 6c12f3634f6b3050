/* filter_top_k.c - keep the k most likely candidates (Fan et al. 2018, arXiv:1805.04833).
 *
 * Threads: one at a time. */
#include "sample/chain.h"

static bool top_k_on(const sl_sampling *sampling) { return sampling->top_k > 0; }

static void top_k_apply(sl_chain *c, const sl_sampling *sampling) {
    sl_chain_keep_count(c, (uint64_t)sampling->top_k);
}

const sl_filter sl_filter_top_k = {
    .name = "top_k", .moves = false, .on = top_k_on, .apply = top_k_apply};
