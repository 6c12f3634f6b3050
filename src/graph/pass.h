/* pass.h - one pass over the weights: the rows that take part and where everything lies.
 *
 * Filled by the engine, read by backends. Rows may belong to different sequences: each row names its sequence, and a
 * sequence brings its table of KV pages.
 *
 *     page  [ layer 0: K [n_head_kv, n_page, d] | V [n_head_kv, n_page, d] | layer 1: ... ]
 *
 * so the keys of one head in one page are contiguous [n_page, d]. */
#ifndef SL_GRAPH_PASS_H
#define SL_GRAPH_PASS_H

#include "graph/graph.h"

/* A weight as ops see it. Matrices [n_row, n_col]; vectors are f32, n_row 1. */
typedef struct sl_weight_view {
    const uint8_t *data;
    const sl_qtype_info *type;
    int64_t n_row, n_col;
    size_t row_bytes;
} sl_weight_view;

typedef struct sl_kv_view {
    sl_kv_type type;
    int32_t n_page;               /* tokens a page, a power of two, at least 16 */
    size_t head_bytes;            /* n_page * d * element: one head of K or V in a page */
    size_t half_bytes;            /* K of one layer in a page */
    size_t layer_bytes;           /* K and V of one layer in a page */
    uint8_t *const *const *table; /* [n_seq] page tables: table[seq][position / n_page] */
} sl_kv_view;

typedef struct sl_pass {
    const sl_graph *graph;
    const size_t *offset; /* of the values in scratch */
    uint8_t *scratch;
    const sl_weight_view *weight;
    int32_t n_row;
    const int32_t *token;    /* [n_row] */
    const int32_t *position; /* [n_row] */
    const int32_t *seq;      /* [n_row] */
    int32_t n_out;
    const int32_t *out_row; /* [n_out] rows whose logits are wanted */
    sl_kv_view kv;
} sl_pass;

/* Row r of value i. */
static inline void *sl_pass_row(const sl_pass *p, int32_t i_value, int64_t r) {
    return p->scratch + p->offset[i_value] + (size_t)r * p->graph->value[i_value].row_bytes;
}

#endif
