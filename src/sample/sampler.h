/* sampler.h - logits to an id.
 *
 * A chain of small filters over a list of candidates, in this order:
 *     repetition penalty -> top-k -> top-p -> min-p -> temperature -> draw
 * Each filter is one row of samplers.def. temperature 0 is greedy: the first id of the greatest logit, after the
 * penalty. The same seed, logits and history give the same id on every machine (own generator and exponential).
 *
 * NaN logits count as -infinity; if nothing is finite, the first id of the greatest is taken (never out of range).
 * Memory: one block at open (account misc), none later: sl_sampler_bytes.
 * Threads: one at a time. */
#ifndef SL_SAMPLE_SAMPLER_H
#define SL_SAMPLE_SAMPLER_H

#include "base/ledger.h"

typedef struct sl_sampler sl_sampler;

/* Every field checked: SL_EINVAL names the field, its value and the range (temperature 0..100 finite, top_k >= 0,
 * top_p 0..1, min_p 0..1, repeat_penalty 0..100, repeat_last_n >= -1). */
sl_status sl_sampling_check(const sl_sampling *sampling, sl_error *err);
size_t sl_sampler_bytes(int32_t n_vocab, int32_t n_ctx);
/* A sampler may be opened once a session and re-armed for each generation. */
sl_status sl_sampler_open(sl_ledger *ledger, int32_t n_vocab, int32_t n_ctx, sl_sampler **out,
                          sl_error *err);
void sl_sampler_close(sl_sampler *s);
/* Start a generation: options (checked already), and an empty history. */
void sl_sampler_arm(sl_sampler *s, const sl_sampling *sampling);
void sl_sampler_accept(
    sl_sampler *s, int32_t id); /* prompt tokens and picked ones, in order: the penalty's history */
int32_t sl_sampler_pick(sl_sampler *s, const float *logits); /* does not accept */

#endif
