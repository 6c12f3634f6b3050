/* cpu_row.c - the ops that work row by row: embedding, rotary tables, norms, activations, gather, softcap.
 *
 * One chunk is one row (or a part of one where rows are long and few). */
#include <math.h>
#include <string.h>

#include "backend/cpu.h"

void cpu_op_embed(const cpu_backend *b, const sl_pass *p, const sl_op *op, sl_member *me) {
    const sl_weight_view *w = &p->weight[op->w[0]];
    int64_t r;
    while (sl_team_next(me, p->n_row, &r)) {
        float *y = sl_pass_row(p, op->out[0], r);
        w->type->decode(w->data + (size_t)p->token[r] * w->row_bytes, y, w->n_col);
        if (op->u.embed.scale != 1.0f) {
            b->kern.scale(w->n_col, y, op->u.embed.scale, y);
        }
    }
}

/* The angle is rounded to float before the cosine, as the published implementations do. */
void cpu_op_rope_table(const cpu_backend *b, const sl_pass *p, const sl_op *op, sl_member *me) {
    (void)b;
    const sl_rope *rope = &p->graph->rope[op->u.table.i_rope];
    const int32_t half = rope->n_rot / 2;
    int64_t r;
    while (sl_team_next(me, p->n_row, &r)) {
        float *y = sl_pass_row(p, op->out[0], r);
        const float position = (float)p->position[r];
        for (int32_t i = 0; i < half; i++) {
            const float angle = position * rope->inv_freq[i];
            y[i] = cosf(angle) * rope->factor;
            y[half + i] = sinf(angle) * rope->factor;
        }
    }
}

void cpu_op_norm(const cpu_backend *b, const sl_pass *p, const sl_op *op, sl_member *me) {
    const int64_t n = p->graph->value[op->in[0]].n_elem;
    const float *w = op->w[0] >= 0 ? (const float *)(const void *)p->weight[op->w[0]].data : NULL;
    int64_t r;
    while (sl_team_next(me, cpu_n_row(p, op), &r)) {
        const float *x = sl_pass_row(p, op->in[0], r);
        float *y = sl_pass_row(p, op->out[0], r);
        if (op->in[1] < 0) {
            b->kern.norm_rms(n, x, w, op->u.norm.eps, y);
        } else { /* in0 is dead after this op where the model adds a norm to its residual: normalise it in place */
            float *own = sl_pass_row(p, op->in[0], r);
            b->kern.norm_rms(n, own, w, op->u.norm.eps, own);
            b->kern.add(n, sl_pass_row(p, op->in[1], r), own, y);
        }
    }
}

/* Elements a chunk: the activation kinds have blocks of 32 or 256, so any multiple of 256 splits between blocks. */
#define CPU_ACT_CHUNK 1024

void cpu_op_act(const cpu_backend *b, const sl_pass *p, const sl_op *op, sl_member *me) {
    const sl_value *in = &p->graph->value[op->in[0]];
    const sl_act act = p->graph->value[op->out[0]].act;
    const int64_t n_part = (in->n_elem + CPU_ACT_CHUNK - 1) / CPU_ACT_CHUNK;
    int64_t i;
    while (sl_team_next(me, cpu_n_row(p, op) * n_part, &i)) {
        const int64_t r = i / n_part, at = i % n_part * CPU_ACT_CHUNK;
        const int64_t n = in->n_elem - at < CPU_ACT_CHUNK ? in->n_elem - at : CPU_ACT_CHUNK;
        const float *x = (const float *)sl_pass_row(p, op->in[0], r) + at;
        uint8_t *y = (uint8_t *)sl_pass_row(p, op->out[0], r) + sl_act_bytes(act, at);
        b->kern.act[act](x, n, y);
    }
}

void cpu_op_gather(const cpu_backend *b, const sl_pass *p, const sl_op *op, sl_member *me) {
    (void)b;
    const sl_value *in = &p->graph->value[op->in[0]];
    int64_t o;
    while (sl_team_next(me, p->n_out, &o)) {
        memcpy(sl_pass_row(p, op->out[0], o), sl_pass_row(p, op->in[0], p->out_row[o]),
               (size_t)in->n_elem * sizeof(float));
    }
}

#define CPU_CAP_CHUNK 4096

void cpu_op_softcap(const cpu_backend *b, const sl_pass *p, const sl_op *op, sl_member *me) {
    const int64_t n_elem = p->graph->value[op->in[0]].n_elem;
    const int64_t n_part = (n_elem + CPU_CAP_CHUNK - 1) / CPU_CAP_CHUNK;
    int64_t i;
    while (sl_team_next(me, cpu_n_row(p, op) * n_part, &i)) {
        const int64_t at = i % n_part * CPU_CAP_CHUNK;
        float *x = (float *)sl_pass_row(p, op->in[0], i / n_part) + at;
        b->kern.softcap(n_elem - at < CPU_CAP_CHUNK ? n_elem - at : CPU_CAP_CHUNK, x,
                        op->u.softcap.cap, x);
    }
}
