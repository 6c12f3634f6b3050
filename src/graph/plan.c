/* plan.c - see plan.h. Quadratic in the number of values that live together times all values; a model of 100 blocks
 * has some 2,000 values and plans in a few milliseconds. */
#include "graph/plan.h"

#include "base/checked.h"
#include "base/error.h"

static bool plan_size(const sl_value *v, int32_t n_row, int32_t n_out, size_t *out) {
    const int32_t n = v->rows == SL_ROWS_OUT ? n_out : n_row;
    return sl_mul_size(v->row_bytes, (size_t)n, out);
}

static bool plan_meet(const sl_value *a, const sl_value *b) {
    return a->i_first <= b->i_last && b->i_first <= a->i_last;
}

sl_status sl_plan_make(const sl_graph *g, int32_t n_row, int32_t n_out, size_t *offset,
                       size_t *size_bytes, sl_error *err) {
    size_t whole = 0;
    for (int32_t i = 0; i < g->n_value; i++) {
        const sl_value *v = &g->value[i];
        size_t size, end;
        offset[i] = 0;
        if (!plan_size(v, n_row, n_out, &size)) {
            return SL_FAIL(err, SL_ELIMIT, "scratch: a value of %d rows is too large", n_row);
        }
        if (v->i_first < 0) {
            continue; /* never used */
        }
        /* Raise the candidate past each value in its way until none is; each raise passes one value for good. */
        size_t at = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (int32_t k = 0; k < i; k++) {
                const sl_value *other = &g->value[k];
                size_t size_other;
                if (other->i_first < 0 || !plan_meet(v, other) ||
                    !plan_size(other, n_row, n_out, &size_other)) {
                    continue;
                }
                if (at < offset[k] + size_other && offset[k] < at + size) {
                    at = offset[k] + size_other;
                    moved = true;
                }
            }
        }
        if (!sl_add_size(at, size, &end) || end > SIZE_MAX / 4) {
            return SL_FAIL(err, SL_ELIMIT, "scratch: %d rows need more than this machine has",
                           n_row);
        }
        offset[i] = at;
        whole = end > whole ? end : whole;
    }
    *size_bytes = whole;
    return SL_OK;
}

bool sl_plan_is_valid(const sl_graph *g, int32_t n_row, int32_t n_out, const size_t *offset,
                      size_t size_bytes) {
    for (int32_t i = 0; i < g->n_value; i++) {
        size_t size_i, size_k;
        if (g->value[i].i_first < 0 || !plan_size(&g->value[i], n_row, n_out, &size_i)) {
            continue;
        }
        if (offset[i] % 64 != 0 || offset[i] + size_i > size_bytes) {
            return false;
        }
        for (int32_t k = 0; k < i; k++) {
            if (g->value[k].i_first >= 0 && plan_meet(&g->value[i], &g->value[k]) &&
                plan_size(&g->value[k], n_row, n_out, &size_k) && offset[i] < offset[k] + size_k &&
                offset[k] < offset[i] + size_i) {
                return false;
            }
        }
    }
    return true;
}
