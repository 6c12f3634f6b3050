/* cpu_mul.c - matrix products on the CPU: y = W x, up to three at once, and gate * up.
 *
 * A chunk is a run of weight rows times a run of columns (tokens):
 *
 *          columns (activations stay in the second-level cache)
 *         +-------+-------+
 *   rows  | chunk | chunk |     a chunk reads its weight rows once and uses them for all its columns
 *         +-------+-------+
 *         | chunk | chunk |
 *         +-------+-------+
 *
 * Chunk sizes may be anything: the kernels give equal bits for every split. */
#include "backend/cpu.h"

/* Bytes of prepared activations a chunk may touch, to stay in cache; and weight bytes a chunk reads when there is one
 * column, small enough to balance the threads, large enough that taking a chunk costs nothing. */
#define CPU_MUL_X_BYTES ((int64_t)160 << 10)
#define CPU_MUL_W_BYTES ((int64_t)24 << 10)
#define CPU_MUL_ROWS_MAX 64
#define CPU_MUL_SHARE 8 /* chunks a thread, at least, where the matrix has the rows */
#define CPU_MUL_GLU_COLS 16

static int64_t cpu_min(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t cpu_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* Weight rows a chunk: a multiple of 8 for the kernels' tiles, few enough that each thread gets several chunks. */
static int64_t cpu_chunk_rows(const sl_weight_view *w, const sl_member *me) {
    const int64_t by_bytes = CPU_MUL_W_BYTES / cpu_max(1, (int64_t)w->row_bytes);
    const int64_t by_share = w->n_row / (me->n_thread * CPU_MUL_SHARE);
    const int64_t rows = (cpu_min(by_bytes, by_share) + 7) / 8 * 8;
    return cpu_max(8, cpu_min(rows, CPU_MUL_ROWS_MAX));
}

static int64_t cpu_chunk_cols(const sl_value *x, int64_t n_col) {
    const int64_t cols = CPU_MUL_X_BYTES / (int64_t)x->row_bytes / 8 * 8;
    return cpu_max(1, cpu_min(cpu_max(8, cols), n_col));
}

static int64_t cpu_ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }

static const sl_mul_slot *cpu_slot(const cpu_backend *b, const sl_weight_view *w) {
    return b->exact ? &b->kern.mul_exact[w->type->id] : &b->kern.mul[w->type->id];
}

/* Product j of the op, rows [r0, r1) of the weight, columns [c0, c1). */
static void cpu_mul_tile(const cpu_backend *b, const sl_pass *p, const sl_op *op, int j, int64_t r0,
                         int64_t r1, int64_t c0, int64_t c1) {
    const sl_weight_view *w = &p->weight[op->w[j]];
    const size_t y_bytes = p->graph->value[op->out[j]].row_bytes;
    const float *bias =
        op->bias[j] >= 0 ? (const float *)(const void *)p->weight[op->bias[j]].data + r0 : NULL;
    const int32_t residual = op->u.mul.n == 1 ? op->in[3] : -1;
    const int64_t n = r1 - r0;
    const uint8_t *x = sl_pass_row(p, op->in[j], c0);
    const size_t x_bytes = p->graph->value[op->in[j]].row_bytes;
    const uint8_t *rows = w->data + (size_t)r0 * w->row_bytes;
    if (residual < 0) {
        float *y = (float *)sl_pass_row(p, op->out[j], c0) + r0;
        cpu_slot(b, w)->fn(n, c1 - c0, w->n_col, rows, w->row_bytes, x, x_bytes, y,
                           (int64_t)(y_bytes / sizeof(float)));
        for (int64_t c = c0; bias != NULL && c < c1; c++) {
            float *row = (float *)sl_pass_row(p, op->out[j], c) + r0;
            b->kern.add(n, row, bias, row);
        }
        return;
    }
    /* The residual may be the output itself: products go through a small buffer, a few columns at a time. */
    float part[CPU_MUL_ROWS_MAX * CPU_MUL_GLU_COLS];
    for (int64_t c = c0; c < c1; c += CPU_MUL_GLU_COLS) {
        const int64_t n_col = cpu_min(CPU_MUL_GLU_COLS, c1 - c);
        cpu_slot(b, w)->fn(n, n_col, w->n_col, rows, w->row_bytes, x + (size_t)(c - c0) * x_bytes,
                           x_bytes, part, n);
        for (int64_t k = 0; k < n_col; k++) {
            float *from = part + k * n;
            if (bias != NULL) {
                b->kern.add(n, from, bias, from);
            }
            b->kern.add(n, (const float *)sl_pass_row(p, residual, c + k) + r0, from,
                        (float *)sl_pass_row(p, op->out[j], c + k) + r0);
        }
    }
}

void cpu_op_mul(const cpu_backend *b, const sl_pass *p, const sl_op *op, sl_member *me) {
    const int64_t n_col = cpu_n_row(p, op);
    int64_t n_part[SL_OP_MUL_MAX] = {0}, n_row_part[SL_OP_MUL_MAX] = {0}, n_chunk = 0;
    for (int32_t j = 0; j < op->u.mul.n; j++) {
        const sl_weight_view *w = &p->weight[op->w[j]];
        n_row_part[j] = cpu_ceil(w->n_row, cpu_chunk_rows(w, me));
        n_part[j] =
            n_row_part[j] * cpu_ceil(n_col, cpu_chunk_cols(&p->graph->value[op->in[j]], n_col));
        n_chunk += n_part[j];
    }
    int64_t i;
    while (sl_team_next(me, n_chunk, &i)) {
        int j = 0;
        while (i >= n_part[j]) {
            i -= n_part[j++];
        }
        const sl_weight_view *w = &p->weight[op->w[j]];
        const int64_t rows = cpu_chunk_rows(w, me);
        const int64_t cols = cpu_chunk_cols(&p->graph->value[op->in[j]], n_col);
        const int64_t r0 = i % n_row_part[j] * rows, c0 = i / n_row_part[j] * cols;
        cpu_mul_tile(b, p, op, j, r0, cpu_min(r0 + rows, w->n_row), c0, cpu_min(c0 + cols, n_col));
    }
}

void cpu_op_mul_glu(const cpu_backend *b, const sl_pass *p, const sl_op *op, sl_member *me) {
    const int64_t n_col = cpu_n_row(p, op);
    const sl_weight_view *gate = &p->weight[op->w[0]], *up = &p->weight[op->w[1]];
    const int64_t rows = cpu_min(cpu_chunk_rows(gate, me), cpu_chunk_rows(up, me));
    const int64_t cols = cpu_min(cpu_chunk_cols(&p->graph->value[op->in[0]], n_col),
                                 cpu_chunk_cols(&p->graph->value[op->in[1]], n_col));
    const int64_t n_row_part = cpu_ceil(gate->n_row, rows);
    float part[2][CPU_MUL_ROWS_MAX * CPU_MUL_GLU_COLS];
    int64_t i;
    while (sl_team_next(me, n_row_part * cpu_ceil(n_col, cols), &i)) {
        const int64_t r0 = i % n_row_part * rows, n = cpu_min(rows, gate->n_row - r0);
        const int64_t c0 = i / n_row_part * cols, c1 = cpu_min(c0 + cols, n_col);
        for (int64_t c = c0; c < c1; c += CPU_MUL_GLU_COLS) {
            const int64_t n_c = cpu_min(CPU_MUL_GLU_COLS, c1 - c);
            for (int j = 0; j < 2; j++) {
                const sl_weight_view *w = &p->weight[op->w[j]];
                cpu_slot(b, w)->fn(n, n_c, w->n_col, w->data + (size_t)r0 * w->row_bytes,
                                   w->row_bytes, sl_pass_row(p, op->in[j], c),
                                   p->graph->value[op->in[j]].row_bytes, part[j], n);
            }
            for (int64_t k = 0; k < n_c; k++) {
                for (int j = 0; j < 2; j++) {
                    if (op->bias[j] >= 0) {
                        const float *bias =
                            (const float *)(const void *)p->weight[op->bias[j]].data + r0;
                        b->kern.add(n, part[j] + k * n, bias, part[j] + k * n);
                    }
                }
                b->kern.glu[op->u.mul.glu](n, part[0] + k * n, part[1] + k * n,
                                           (float *)sl_pass_row(p, op->out[0], c + k) + r0);
            }
        }
    }
}
