/* arch_qwen3.c - Qwen 3 (dense).
 *
 * Qwen 2's block (arch_qwen2.c) with two differences:
 *     no biases on q, k, v
 *     each head of q and of k goes through an RMS norm of its own (weights [d], shared by the heads) before RoPE
 * d is given by attention.key_length and is not n_embd / n_head (0.6B: 16 heads of 128 on a width of 1024).
 * Source arXiv:2505.09388. */
#include <math.h>

#include "base/error.h"
#include "model/arch.h"

static sl_status qwen3_build(sl_build *b, sl_error *err) {
    const sl_hparams *hp = &b->net->hp;
    sl_block_style style = {.attn_scale = 1.0f / sqrtf((float)hp->d_head),
                            .window = hp->window,
                            .qk_norm = true,
                            .glu = SL_GLU_SILU};
    int32_t x;
    SL_TRY(sl_build_embed(b, 1.0f, &x, err));
    SL_TRY(
        sl_build_rope_make(b, SL_ROPE_HALF, hp->rope_base, hp->rope_scale, true, &style.rope, err));
    for (int32_t i = 0; i < hp->n_layer; i++) {
        SL_TRY(sl_build_block(b, i, &style, x, err));
    }
    return sl_build_head(b, x, err);
}

const sl_arch sl_arch_qwen3 = {.name = "qwen3", .read = NULL, .build = qwen3_build};
