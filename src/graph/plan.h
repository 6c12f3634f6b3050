/* plan.h - one scratch block for all values of a graph, planned from lifetimes.
 *
 *     offset
 *       ^   +------------------------------- x (residual): pre .. head -----------------+
 *       |   | q k v |     | gate |   | q k v |  ...                                      |
 *       +---+-------+-----+------+---+-------+---------------------------------> op -----+
 *
 * First fit in order of birth: a value takes the lowest offset where it meets no value that is alive with it. Blocks of
 * a model repeat, so the plan finds the same offsets for each of them.
 *
 * Not here: who allocates the block (engine/). */
#ifndef SL_GRAPH_PLAN_H
#define SL_GRAPH_PLAN_H

#include "graph/graph.h"

/* offset [n_value]: filled with byte offsets for at most n_row token rows and n_out logits rows; each a multiple of
 * 64. *size_bytes: the whole block. SL_ELIMIT on overflow. Deterministic. */
sl_status sl_plan_make(const sl_graph *g, int32_t n_row, int32_t n_out, size_t *offset,
                       size_t *size_bytes, sl_error *err);
/* The same graph's plan, checked: no two values that live together overlap. For tests and debug builds. */
bool sl_plan_is_valid(const sl_graph *g, int32_t n_row, int32_t n_out, const size_t *offset,
                      size_t size_bytes);

#endif
