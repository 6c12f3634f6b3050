/* arch.h - what an architecture's file supplies, and the building blocks it may use.
 *
 * An architecture is one file (arch_<name>.c) and one row of archs.def. Its file carries the model on one page: shapes,
 * RoPE kind, norms, what differs from Llama, what once went wrong.
 *
 * Building adds ops to net->graph and asks net->weights for tensors; the helpers below make the parts that most decoder
 * models share. Whatever a helper can read off the file (is there a bias? is the head tied?) it reads off the file.
 *
 * Threads: one builds. */
#ifndef SL_MODEL_ARCH_H
#define SL_MODEL_ARCH_H

#include "model/net.h"

typedef struct sl_build sl_build;

struct sl_arch {
    const char *name;
    /* After the shared hyper-parameters: the architecture's own, and its checks. May be NULL. */
    sl_status (*read)(sl_build *b, sl_error *err);
    sl_status (*build)(sl_build *b, sl_error *err);
};

#define X(name) extern const sl_arch sl_arch_##name;
#include "model/archs.def"
#undef X

#define SL_BUILD_ACTS 8

struct sl_build {
    sl_net *net;
    const sl_container *container;
    const sl_backend *backend;
    /* Prepared forms of recent values, so that Q, K and V share one preparation. */
    struct {
        int32_t value, prepared;
        sl_act act;
    } act[SL_BUILD_ACTS];
    int32_t i_act;
};

/* ---- hyper-parameters: "<arch>.<key>" ----
 * SL_EFORMAT: absent (when required), of another type or outside lowest..highest (key, value and range named). An
 * array whose items are all equal counts as the one value; otherwise SL_ENOTSUP. */
sl_status sl_hp_i32(const sl_build *b, const char *key, bool required, int32_t lowest,
                    int32_t highest, int32_t *value, sl_error *err);
sl_status sl_hp_f32(const sl_build *b, const char *key, bool required, float lowest, float highest,
                    float *value, sl_error *err);
/* The entry itself, or NULL. */
const sl_meta *sl_hp_find(const sl_build *b, const char *key);

/* ---- ops ---- */

/* x = rows of token_embd times scale. */
sl_status sl_build_embed(sl_build *b, float scale, int32_t *x, sl_error *err);
/* A rotary kind of this model (frequencies base^(-2i/n_rot) / divisor, and / factors[i] when the file has
 * "rope_freqs.weight" and use_factors), and its table for the rows of a pass. */
typedef struct sl_build_rope {
    int32_t i_rope;
    int32_t table;
} sl_build_rope;
sl_status sl_build_rope_make(sl_build *b, sl_rope_kind kind, float base, float divisor,
                             bool use_factors, sl_build_rope *out, sl_error *err);

/* One decoder block on the residual x:
 *     h = norm(x) attn_norm;  a = attention(h);  x = x + [post norm](a W_o)
 *     h = norm(x) ffn_norm;   f = act(h W_gate) * (h W_up);  x = x + [post norm](f W_down) */
typedef struct sl_block_style {
    sl_build_rope rope;
    float attn_scale;
    int32_t window; /* 0: none */
    bool qk_norm;   /* attn_q_norm, attn_k_norm on each head */
    bool post_norm; /* post_attention_norm, post_ffw_norm before the residual is added */
    sl_glu_kind glu;
} sl_block_style;
sl_status sl_build_block(sl_build *b, int32_t i_layer, const sl_block_style *style, int32_t x,
                         sl_error *err);
/* output_norm, then output (or the tied token_embd), then the final softcap. Ends the graph. */
sl_status sl_build_head(sl_build *b, int32_t x, sl_error *err);

#endif
