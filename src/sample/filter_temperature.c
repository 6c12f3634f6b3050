/* filter_temperature.c - divide the logits by the temperature: below 1 sharpens, above 1 flattens.
 *
 * The greatest is subtracted first, which changes no probability: a tiny temperature then drives the others to
 * -infinity instead of the greatest to +infinity.
 *
 * Threads: one at a time. */
#include "sample/chain.h"

#include <float.h>
#include <math.h>

static bool temperature_on(const sl_sampling *sampling) {
    return sampling->temperature > 0.0f && sampling->temperature != 1.0f;
}

static void temperature_apply(sl_chain *c, const sl_sampling *sampling) {
    const double max = (double)sl_chain_max(c), divisor = (double)sampling->temperature;
    for (int32_t i = 0; i < c->n; i++) {
        const double logit = ((double)c->item[i].logit - max) / divisor;
        c->item[i].logit = logit < -(double)FLT_MAX ? -INFINITY : (float)logit;
    }
}

const sl_filter sl_filter_temperature = {
    .name = "temperature", .moves = false, .on = temperature_on, .apply = temperature_apply};
