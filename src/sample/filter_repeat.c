/* filter_repeat.c - the repetition penalty (Keskar et al. 2019, CTRL, arXiv:1909.05858, as commonly used): the logit of
 * each token that occurs among the last repeat_last_n is divided by the penalty when it is positive and multiplied
 * otherwise, once however often the token occurs.
 *
 * The window is walked twice: the first walk marks the tokens that it penalises, so that none is twice; the second
 * takes the marks away. It is the first filter, so candidate i still has id i.
 *
 * Threads: one at a time. */
#include "sample/chain.h"

#include <float.h>

static bool repeat_on(const sl_sampling *sampling) {
    return sampling->repeat_penalty != 0.0f && sampling->repeat_penalty != 1.0f;
}

static void repeat_apply(sl_chain *c, const sl_sampling *sampling) {
    int32_t window = sampling->repeat_last_n == 0 ? 64 : sampling->repeat_last_n;
    if (window < 0 || window > c->n_history) {
        window = c->n_history;
    }
    for (int32_t walk = 0; walk < 2; walk++) {
        int32_t at = c->i_history;
        for (int32_t i = 0; i < window; i++) {
            at = at > 0 ? at - 1 : c->n_ctx - 1;
            const int32_t id = c->history[at];
            uint64_t *const word = &c->mark[id / 64];
            const uint64_t bit = (uint64_t)1 << (id % 64);
            if (walk == 1) {
                *word &= ~bit;
            } else if ((*word & bit) == 0) {
                *word |= bit;
                float *const logit = &c->item[id].logit;
                if (*logit < -FLT_MAX) { /* banned: stays so */
                    continue;
                }
                *logit = *logit > 0.0f ? *logit / sampling->repeat_penalty
                                       : *logit * sampling->repeat_penalty;
                /* What overflows stays finite: the last finite candidate must not be lost. */
                *logit = *logit > FLT_MAX ? FLT_MAX : *logit < -FLT_MAX ? -FLT_MAX : *logit;
            }
        }
    }
}

const sl_filter sl_filter_repeat = {
    .name = "repeat", .moves = true, .on = repeat_on, .apply = repeat_apply};
