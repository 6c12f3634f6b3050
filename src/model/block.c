/* block.c - the parts that decoder models share: embedding, rotary tables, the block, the head.
 *
 * Every product goes through build_mul, which prepares activations in the form that the weight's type wants, once for
 * all products that share an input. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "model/arch.h"

#define BUILD_NAME 128

/* An op with all indices "none". */
static sl_op build_op(sl_op_kind kind, sl_rows rows, int32_t i_layer) {
    sl_op op = {.kind = kind, .rows = rows, .i_layer = i_layer};
    for (int i = 0; i < 4; i++) {
        op.in[i] = -1;
    }
    for (int i = 0; i < SL_OP_MUL_MAX; i++) {
        op.out[i] = op.w[i] = op.bias[i] = -1;
    }
    return op;
}

static const char *build_name(char *buffer, int32_t i_layer, const char *part, const char *what) {
    if (i_layer < 0) {
        (void)snprintf(buffer, BUILD_NAME, "%s.%s", part, what);
    } else {
        (void)snprintf(buffer, BUILD_NAME, "blk.%d.%s.%s", i_layer, part, what);
    }
    return buffer;
}

static sl_graph *build_graph(const sl_build *b) { return b->net->graph; }

/* The value prepared for products with weight w: itself for f32, otherwise made now or found. */
static sl_status build_act(sl_build *b, sl_rows rows, int32_t value, int32_t w, int32_t *out,
                           sl_error *err) {
    sl_act act = SL_ACT_F32;
    const sl_weight_view *view = &sl_weights_view(b->net->weights)[w];
    if (!b->backend->kind->mul_act(b->backend, view->type, &act)) {
        return SL_FAIL(err, SL_EINTERNAL, "no kernel for %s", view->type->name);
    }
    if (act == SL_ACT_F32) {
        *out = value;
        return SL_OK;
    }
    for (int i = 0; i < SL_BUILD_ACTS; i++) {
        if (b->act[i].prepared >= 0 && b->act[i].value == value && b->act[i].act == act) {
            *out = b->act[i].prepared;
            return SL_OK;
        }
    }
    sl_op op = build_op(SL_OP_ACT, rows, -1);
    op.in[0] = value;
    SL_TRY(sl_graph_value(build_graph(b), rows, act, build_graph(b)->value[value].n_elem,
                          &op.out[0], err));
    SL_TRY(sl_graph_add(build_graph(b), &op, err));
    b->act[b->i_act].value = value;
    b->act[b->i_act].act = act;
    b->act[b->i_act].prepared = op.out[0];
    b->i_act = (b->i_act + 1) % SL_BUILD_ACTS;
    *out = op.out[0];
    return SL_OK;
}

/* Prepared forms of a value that is about to be rewritten, or whose block has ended, are stale. */
static void build_forget_acts(sl_build *b) {
    for (int i = 0; i < SL_BUILD_ACTS; i++) {
        b->act[i].prepared = -1;
    }
}

/* Fill slot j of a product: weight, bias if the file has one, prepared input. Returns the weight's handle in op. */
static sl_status build_slot(sl_build *b, sl_op *op, int j, const char *part, int64_t n_row,
                            int64_t n_col, int32_t in, sl_error *err) {
    char name[BUILD_NAME];
    SL_TRY(sl_weights_matrix(b->net->weights, build_name(name, op->i_layer, part, "weight"), n_row,
                             n_col, &op->w[j], err));
    if (sl_weights_has(b->net->weights, build_name(name, op->i_layer, part, "bias"))) {
        SL_TRY(sl_weights_vector(b->net->weights, name, n_row, &op->bias[j], err));
    }
    return build_act(b, op->rows, in, op->w[j], &op->in[j], err);
}

static sl_status build_norm(sl_build *b, sl_rows rows, int32_t i_layer, const char *part,
                            int32_t in, int32_t residual, int32_t out, sl_error *err) {
    char name[BUILD_NAME];
    sl_op op = build_op(SL_OP_NORM, rows, i_layer);
    op.in[0] = in;
    op.in[1] = residual;
    op.out[0] = out;
    op.u.norm.eps = b->net->hp.norm_eps;
    SL_TRY(sl_weights_vector(b->net->weights, build_name(name, i_layer, part, "weight"),
                             build_graph(b)->value[in].n_elem, &op.w[0], err));
    return sl_graph_add(build_graph(b), &op, err);
}

static sl_status build_value(sl_build *b, sl_rows rows, int64_t n_elem, int32_t *out,
                             sl_error *err) {
    return sl_graph_value(build_graph(b), rows, SL_ACT_F32, n_elem, out, err);
}

/* y = W in, added to x: through a norm first where the model has one there. */
static sl_status build_project(sl_build *b, int32_t i_layer, const char *part,
                               const char *post_norm, int32_t in, int32_t x, sl_error *err) {
    sl_op op = build_op(SL_OP_MUL, SL_ROWS_TOK, i_layer);
    op.u.mul.n = 1;
    const int64_t n_in = build_graph(b)->value[in].n_elem;
    SL_TRY(build_slot(b, &op, 0, part, b->net->hp.n_embd, n_in, in, err));
    if (post_norm == NULL) {
        op.in[3] = x;
        op.out[0] = x;
        return sl_graph_add(build_graph(b), &op, err);
    }
    SL_TRY(build_value(b, SL_ROWS_TOK, b->net->hp.n_embd, &op.out[0], err));
    SL_TRY(sl_graph_add(build_graph(b), &op, err));
    return build_norm(b, SL_ROWS_TOK, i_layer, post_norm, op.out[0], x, x, err);
}

sl_status sl_build_embed(sl_build *b, float scale, int32_t *x, sl_error *err) {
    const sl_hparams *hp = &b->net->hp;
    SL_TRY(sl_graph_begin(build_graph(b), err));
    sl_op op = build_op(SL_OP_EMBED, SL_ROWS_TOK, -1);
    op.u.embed.scale = scale;
    SL_TRY(sl_weights_matrix(b->net->weights, "token_embd.weight", hp->n_vocab, hp->n_embd,
                             &op.w[0], err));
    const sl_qtype_info *type = sl_weights_view(b->net->weights)[op.w[0]].type;
    if (type->decode == NULL) { /* rows are looked up, not multiplied */
        return SL_FAIL(err, SL_ENOTSUP,
                       "tensor 'token_embd.weight' has the type %s, which cannot be decoded",
                       type->name);
    }
    SL_TRY(build_value(b, SL_ROWS_TOK, hp->n_embd, &op.out[0], err));
    *x = op.out[0];
    return sl_graph_add(build_graph(b), &op, err);
}

sl_status sl_build_rope_make(sl_build *b, sl_rope_kind kind, float base, float divisor,
                             bool use_factors, sl_build_rope *out, sl_error *err) {
    static const char factors_name[] = "rope_freqs.weight";
    const int32_t half = b->net->hp.n_rot / 2;
    float inv_freq[SL_MAX_D_HEAD / 2], factor[SL_MAX_D_HEAD / 2];
    const bool has_factors = use_factors && sl_weights_has(b->net->weights, factors_name);
    if (has_factors) {
        SL_TRY(sl_weights_read_vector(b->net->weights, factors_name, half, factor, err));
    }
    for (int32_t i = 0; i < half; i++) {
        if (has_factors && !(factor[i] > 0)) {
            return SL_FAIL(err, SL_EFORMAT, "tensor '%s': factor %d is not positive", factors_name,
                           i);
        }
        const float power = (float)(2 * i) / (float)b->net->hp.n_rot;
        const float freq = (float)(1.0 / pow((double)base, (double)power));
        inv_freq[i] = freq / divisor / (has_factors ? factor[i] : 1.0f);
    }
    const sl_rope rope = {
        .kind = kind, .n_rot = b->net->hp.n_rot, .inv_freq = inv_freq, .factor = 1.0f};
    SL_TRY(sl_graph_rope(build_graph(b), &rope, &out->i_rope, err));
    sl_op op = build_op(SL_OP_ROPE_TABLE, SL_ROWS_TOK, -1);
    op.u.table.i_rope = out->i_rope;
    SL_TRY(build_value(b, SL_ROWS_TOK, b->net->hp.n_rot, &op.out[0], err));
    out->table = op.out[0];
    return sl_graph_add(build_graph(b), &op, err);
}

static sl_status build_attention(sl_build *b, int32_t i_layer, const sl_block_style *style,
                                 int32_t h, int32_t *out, sl_error *err) {
    const sl_hparams *hp = &b->net->hp;
    const int64_t n_q = (int64_t)hp->n_head * hp->d_head,
                  n_kv = (int64_t)hp->n_head_kv * hp->d_head;
    char name[BUILD_NAME];
    sl_op mul = build_op(SL_OP_MUL, SL_ROWS_TOK, i_layer);
    mul.u.mul.n = 3;
    static const char *const part[3] = {"attn_q", "attn_k", "attn_v"};
    for (int j = 0; j < 3; j++) {
        const int64_t n = j == 0 ? n_q : n_kv;
        SL_TRY(build_slot(b, &mul, j, part[j], n, hp->n_embd, h, err));
        SL_TRY(build_value(b, SL_ROWS_TOK, n, &mul.out[j], err));
    }
    SL_TRY(sl_graph_add(build_graph(b), &mul, err));

    sl_op op = build_op(SL_OP_ROPE_KV, SL_ROWS_TOK, i_layer);
    for (int j = 0; j < 3; j++) {
        op.in[j] = mul.out[j];
    }
    op.in[3] = style->rope.table;
    op.u.attn.n_head = hp->n_head;
    op.u.attn.n_head_kv = hp->n_head_kv;
    op.u.attn.d_head = hp->d_head;
    op.u.attn.i_rope = style->rope.i_rope;
    op.u.attn.eps = hp->norm_eps;
    op.u.attn.scale = style->attn_scale;
    op.u.attn.softcap = hp->attn_softcap;
    op.u.attn.window = style->window;
    if (style->qk_norm) {
        SL_TRY(sl_weights_vector(b->net->weights,
                                 build_name(name, i_layer, "attn_q_norm", "weight"), hp->d_head,
                                 &op.w[0], err));
        SL_TRY(sl_weights_vector(b->net->weights,
                                 build_name(name, i_layer, "attn_k_norm", "weight"), hp->d_head,
                                 &op.w[1], err));
    }
    SL_TRY(sl_graph_add(build_graph(b), &op, err));

    op.kind = SL_OP_ATTN;
    op.in[1] = op.in[2] = op.in[3] = -1;
    op.w[0] = op.w[1] = -1;
    SL_TRY(build_value(b, SL_ROWS_TOK, n_q, &op.out[0], err));
    *out = op.out[0];
    return sl_graph_add(build_graph(b), &op, err);
}

sl_status sl_build_block(sl_build *b, int32_t i_layer, const sl_block_style *style, int32_t x,
                         sl_error *err) {
    const sl_hparams *hp = &b->net->hp;
    SL_TRY(sl_graph_begin(build_graph(b), err));
    build_forget_acts(b);
    int32_t h, a;
    SL_TRY(build_value(b, SL_ROWS_TOK, hp->n_embd, &h, err));
    SL_TRY(build_norm(b, SL_ROWS_TOK, i_layer, "attn_norm", x, -1, h, err));
    SL_TRY(build_attention(b, i_layer, style, h, &a, err));
    SL_TRY(build_project(b, i_layer, "attn_output", style->post_norm ? "post_attention_norm" : NULL,
                         a, x, err));

    int32_t f;
    SL_TRY(build_value(b, SL_ROWS_TOK, hp->n_embd, &h, err));
    SL_TRY(build_norm(b, SL_ROWS_TOK, i_layer, "ffn_norm", x, -1, h, err));
    sl_op op = build_op(SL_OP_MUL_GLU, SL_ROWS_TOK, i_layer);
    op.u.mul.n = 2;
    op.u.mul.glu = style->glu;
    SL_TRY(build_slot(b, &op, 0, "ffn_gate", hp->n_ff, hp->n_embd, h, err));
    SL_TRY(build_slot(b, &op, 1, "ffn_up", hp->n_ff, hp->n_embd, h, err));
    SL_TRY(build_value(b, SL_ROWS_TOK, hp->n_ff, &f, err));
    op.out[0] = f;
    SL_TRY(sl_graph_add(build_graph(b), &op, err));
    return build_project(b, i_layer, "ffn_down", style->post_norm ? "post_ffw_norm" : NULL, f, x,
                         err);
}

sl_status sl_build_head(sl_build *b, int32_t x, sl_error *err) {
    const sl_hparams *hp = &b->net->hp;
    SL_TRY(sl_graph_begin(build_graph(b), err));
    build_forget_acts(b);
    sl_op gather = build_op(SL_OP_GATHER, SL_ROWS_OUT, -1);
    gather.in[0] = x;
    SL_TRY(build_value(b, SL_ROWS_OUT, hp->n_embd, &gather.out[0], err));
    SL_TRY(sl_graph_add(build_graph(b), &gather, err));
    const int32_t h = gather.out[0];
    SL_TRY(build_norm(b, SL_ROWS_OUT, -1, "output_norm", h, -1, h, err));
    sl_op op = build_op(SL_OP_MUL, SL_ROWS_OUT, -1);
    op.u.mul.n = 1;
    const bool tied = !sl_weights_has(b->net->weights, "output.weight");
    SL_TRY(build_slot(b, &op, 0, tied ? "token_embd" : "output", hp->n_vocab, hp->n_embd, h, err));
    SL_TRY(build_value(b, SL_ROWS_OUT, hp->n_vocab, &op.out[0], err));
    SL_TRY(sl_graph_add(build_graph(b), &op, err));
    build_graph(b)->i_logits = op.out[0];
    if (hp->final_softcap > 0) {
        sl_op cap = build_op(SL_OP_SOFTCAP, SL_ROWS_OUT, -1);
        cap.in[0] = op.out[0];
        cap.u.softcap.cap = hp->final_softcap;
        SL_TRY(sl_graph_add(build_graph(b), &cap, err));
    }
    sl_graph_keep(build_graph(b), x);
    return SL_OK;
}
