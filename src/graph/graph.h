/* graph.h - a model as straight programs of ops over values and weights.
 *
 *     pre | block 0 | block 1 | ... | head
 *     ops over values (matrices [rows, width], f32 or prepared activations) and weight handles
 *
 * The op list is executed from front to back once a pass, so a value's lifetime is the span from the op that makes it
 * to the last op that reads it, and scratch is planned once for all (plan.h). A program is a run of ops between two
 * points where the engine may stop (cancel) and where residency may change: pre, each block, head.
 *
 * rows: most values have one row a token of the batch; those of the head one row a token whose logits are wanted.
 *
 * Threads: built by one, read by any number.
 * Not here: what the ops compute on a CPU (backend/), which ops a model needs (model/). */
#ifndef SL_GRAPH_GRAPH_H
#define SL_GRAPH_GRAPH_H

#include "base/arena.h"
#include "kern/kern.h"

typedef enum sl_op_kind {
#define X(NAME, name) SL_OP_##NAME,
#include "graph/ops.def"
#undef X
    SL_OP_COUNT
} sl_op_kind;

const char *sl_op_name(sl_op_kind kind);

typedef enum sl_rows { SL_ROWS_TOK, SL_ROWS_OUT } sl_rows;

typedef struct sl_value {
    sl_rows rows;
    sl_act act;       /* SL_ACT_F32: plain floats */
    int64_t n_elem;   /* a row */
    size_t row_bytes; /* a multiple of 64 */
    int32_t i_first;  /* op that makes it */
    int32_t i_last;   /* last op that reads or rewrites it */
} sl_value;

/* Rotary embedding: angle of pair i at position p is p * inv_freq[i]; cosines and sines are multiplied by factor. */
typedef struct sl_rope {
    sl_rope_kind kind;
    int32_t n_rot;         /* elements of a head that turn */
    const float *inv_freq; /* [n_rot / 2] */
    float factor;
} sl_rope;

#define SL_OP_MUL_MAX 3

/* One op. Values and weights are indices, -1: none. */
typedef struct sl_op {
    sl_op_kind kind;
    sl_rows rows;
    int32_t i_layer;
    int32_t in[4];
    int32_t out[SL_OP_MUL_MAX];
    int32_t w[SL_OP_MUL_MAX];
    int32_t bias[SL_OP_MUL_MAX];
    union {
        /* EMBED  out0[r] = w0[token[r]] * scale */
        struct {
            float scale;
        } embed;
        /* ROPE_TABLE  out0[r] = cosines [n_rot/2], sines [n_rot/2] of the row's position */
        struct {
            int32_t i_rope;
        } table;
        /* NORM  out0 = [in1 +] rms_norm(in0) * w0            in1: a residual or -1; out0 may be in0 or in1 */
        struct {
            float eps;
        } norm;
        /* ACT  out0 = in0 prepared as out0's act. No parameters. */
        /* MUL  out_j = w_j in_j [+ bias_j] [+ in3]            j < n; in3 (a residual) only with n = 1; out0 may be in3 */
        /* MUL_GLU  out0 = act(w0 in0) * (w1 in1)             bias_j added before */
        struct {
            int32_t n;
            sl_glu_kind glu;
        } mul;
        /* ROPE_KV  in0 = q [n_head * d], in1 = k, in2 = v [n_head_kv * d], in3 = rope table or -1: each head of q and
         *          k is normalised (w0, w1; -1: not), turned (i_rope), q in place, k and v stored in the KV pages */
        /* ATTN  out0 = softmax(scale q K^T [softcap] [window]) V      in0 = q; K and V of this layer, causal */
        struct {
            int32_t n_head, n_head_kv, d_head;
            int32_t i_rope;
            float eps;
            float scale;
            float softcap;  /* 0: none */
            int32_t window; /* positions p - window < t <= p; 0: all */
        } attn;
        /* GATHER  out0[o] = in0[out_row[o]] */
        /* SOFTCAP  in0 = cap * tanh(in0 / cap), in place */
        struct {
            float cap;
        } softcap;
    } u;
} sl_op;

typedef struct sl_program {
    int32_t i_first, n_op;
} sl_program;

typedef struct sl_graph {
    sl_arena arena;
    sl_value *value;
    sl_op *op;
    sl_program *program;
    sl_rope *rope;
    int32_t n_value, cap_value;
    int32_t n_op, cap_op;
    int32_t n_program, cap_program; /* pre, blocks, head */
    int32_t n_rope;
    int32_t i_logits; /* the value that holds them */
} sl_graph;

/* Room for so many of each; the builder knows the model's size. Account misc. */
sl_status sl_graph_open(sl_ledger *ledger, int32_t cap_op, int32_t cap_program, int32_t cap_rope,
                        sl_graph **out, sl_error *err);
void sl_graph_close(sl_graph *g);

/* SL_EINTERNAL when the room is used up. */
sl_status sl_graph_value(sl_graph *g, sl_rows rows, sl_act act, int64_t n_elem, int32_t *out,
                         sl_error *err);
/* Append an op to the current program; updates the lifetimes of its values. */
sl_status sl_graph_add(sl_graph *g, const sl_op *op, sl_error *err);
/* The value lives until the last op added so far, although none of them reads it so late: for the head, which runs
 * several times over the same input. */
void sl_graph_keep(sl_graph *g, int32_t i_value);
sl_status sl_graph_begin(sl_graph *g, sl_error *err); /* a new program starts here */
sl_status sl_graph_rope(sl_graph *g, const sl_rope *rope, int32_t *out, sl_error *err);

#endif
