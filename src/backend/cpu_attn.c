/* cpu_attn.c - attention over paged KV on the CPU.
 *
 * ROPE_KV writes the batch's keys and values into their pages; after the barrier ATTN reads them. A query at position p
 * sees positions up to p only, so rows of one batch do not disturb each other.
 *
 * Attention of one row and one KV head (with all query heads that share it) is one chunk. It walks over the tokens in
 * runs of 16 that begin at multiples of 16, whatever the page size, with the running maximum m and sum l of softmax:
 *
 *     run    s = scale q K^T;  m' = max(m, s);  p = exp(s - m');  keep = exp(m - m')
 *            l = l keep + sum p;  acc = acc keep + p V
 *     end    out = acc / l
 *
 * The runs a row sees follow from its position and the window alone, so neither batch nor chunking changes a bit. */
#include <math.h>

#include "backend/cpu.h"

#define CPU_RUN 16
#define CPU_GROUP 8 /* query heads taken together: bounds the buffers on the stack */

static uint8_t *cpu_kv_page(const sl_pass *p, int64_t r, int32_t position) {
    return p->kv.table[p->seq[r]][position / p->kv.n_page];
}

/* Address of a token's row of K (half 0) or V (half 1) of one head. */
static uint8_t *cpu_kv_at(const sl_pass *p, uint8_t *page, int32_t i_layer, int half,
                          int32_t i_head, int32_t i_token) {
    const size_t row_bytes = p->kv.head_bytes / (size_t)p->kv.n_page;
    return page + (size_t)i_layer * p->kv.layer_bytes + (size_t)half * p->kv.half_bytes +
           (size_t)i_head * p->kv.head_bytes + (size_t)i_token * row_bytes;
}

void cpu_op_rope_kv(const cpu_backend *b, const sl_pass *p, const sl_op *op, sl_member *me) {
    const int32_t n_q = op->u.attn.n_head, n_kv = op->u.attn.n_head_kv, d = op->u.attn.d_head;
    const sl_rope *rope = op->u.attn.i_rope >= 0 ? &p->graph->rope[op->u.attn.i_rope] : NULL;
    const int64_t n_item = n_q + 2 * (int64_t)n_kv;
    int64_t i;
    while (sl_team_next(me, p->n_row * n_item, &i)) {
        const int64_t r = i / n_item;
        const int32_t item = (int32_t)(i % n_item);
        const bool is_q = item < n_q, is_v = item >= n_q + n_kv;
        const int32_t i_head = is_q ? item : (item - n_q) % n_kv;
        float *x = (float *)sl_pass_row(p,
                                        op->in[is_q   ? 0
                                               : is_v ? 2
                                                      : 1],
                                        r) +
                   (int64_t)i_head * d;
        if (!is_v) {
            const int32_t w = op->w[is_q ? 0 : 1];
            if (w >= 0) {
                b->kern.norm_rms(d, x, (const float *)(const void *)p->weight[w].data,
                                 op->u.attn.eps, x);
            }
            if (rope != NULL) {
                b->kern.rope[rope->kind](rope->n_rot, sl_pass_row(p, op->in[3], r), x);
            }
        }
        if (!is_q) {
            const int32_t position = p->position[r];
            b->kern.kv_store[p->kv.type](d, x,
                                         cpu_kv_at(p, cpu_kv_page(p, r, position), op->i_layer,
                                                   is_v, i_head, position % p->kv.n_page));
        }
    }
}

/* Query heads [h0, h0 + n) of one row, all on KV head i_kv. */
static void cpu_attn_group(const cpu_backend *b, const sl_pass *p, const sl_op *op, int64_t r,
                           int32_t i_kv, int32_t h0, int32_t n) {
    const int64_t d = op->u.attn.d_head;
    const float *q = (const float *)sl_pass_row(p, op->in[0], r) + h0 * d;
    float *acc = (float *)sl_pass_row(p, op->out[0], r) + h0 * d;
    float s[CPU_GROUP * CPU_RUN], m[CPU_GROUP], l[CPU_GROUP], keep[CPU_GROUP];
    for (int32_t h = 0; h < n; h++) {
        m[h] = -INFINITY;
        l[h] = 0;
    }
    for (int64_t k = 0; k < n * d; k++) {
        acc[k] = 0;
    }
    const int32_t last = p->position[r];
    const int32_t window = op->u.attn.window;
    const int32_t first = window > 0 && last >= window ? last - window + 1 : 0;
    for (int32_t t0 = first; t0 <= last;) {
        int32_t t1 = t0 / CPU_RUN * CPU_RUN + CPU_RUN; /* end of this run of 16 */
        t1 = t1 > last + 1 ? last + 1 : t1;
        const int32_t n_tok = t1 - t0;
        uint8_t *page = cpu_kv_page(p, r, t0);
        const int32_t at = t0 % p->kv.n_page;
        b->kern.attn_score[p->kv.type](n, n_tok, d, q, d,
                                       cpu_kv_at(p, page, op->i_layer, 0, i_kv, at),
                                       op->u.attn.scale, s, CPU_RUN);
        for (int32_t h = 0; h < n; h++) {
            float *sh = s + h * CPU_RUN;
            if (op->u.attn.softcap != 0) {
                b->kern.softcap(n_tok, sh, op->u.attn.softcap, sh);
            }
            float top = m[h];
            for (int32_t t = 0; t < n_tok; t++) {
                top = sh[t] > top ? sh[t] : top;
            }
            (void)b->kern.exp_sum(1, &m[h], top, &keep[h]);
            l[h] = l[h] * keep[h] + b->kern.exp_sum(n_tok, sh, top, sh);
            m[h] = top;
        }
        b->kern.attn_mix[p->kv.type](n, n_tok, d, s, CPU_RUN, keep,
                                     cpu_kv_at(p, page, op->i_layer, 1, i_kv, at), acc, d);
        t0 = t1;
    }
    for (int32_t h = 0; h < n; h++) {
        b->kern.scale(d, acc + h * d, 1.0f / l[h], acc + h * d);
    }
}

void cpu_op_attn(const cpu_backend *b, const sl_pass *p, const sl_op *op, sl_member *me) {
    const int32_t n_kv = op->u.attn.n_head_kv, n_share = op->u.attn.n_head / n_kv;
    int64_t i;
    while (sl_team_next(me, p->n_row * (int64_t)n_kv, &i)) {
        /* The rows with the longest history come last in a prefill chunk: hand them out first. */
        const int64_t r = p->n_row - 1 - i / n_kv;
        const int32_t i_kv = (int32_t)(i % n_kv);
        for (int32_t h = 0; h < n_share; h += CPU_GROUP) {
            const int32_t n = n_share - h < CPU_GROUP ? n_share - h : CPU_GROUP;
            cpu_attn_group(b, p, op, r, i_kv, i_kv * n_share + h, n);
        }
    }
}
