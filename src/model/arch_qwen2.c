/* arch_qwen2.c - Qwen 2 and 2.5 (dense), Qwen2.5-Coder.
 *
 * Llama's block (arch_llama.c) with two differences:
 *     RoPE    pairs i with i + d/2; rope.freq_base is 1e6 in most of them
 *     biases  on q, k and v (read off the file, like all biases)
 * Small ones tie the head to the embedding. Sizes from config: 0.5B has 24 layers of 896, 14 heads on 2 KV heads.
 * Source arXiv:2407.10671, arXiv:2412.15115. */
#include <math.h>

#include "base/error.h"
#include "model/arch.h"

static sl_status qwen2_build(sl_build *b, sl_error *err) {
    const sl_hparams *hp = &b->net->hp;
    sl_block_style style = {
        .attn_scale = 1.0f / sqrtf((float)hp->d_head), .window = hp->window, .glu = SL_GLU_SILU};
    int32_t x;
    SL_TRY(sl_build_embed(b, 1.0f, &x, err));
    SL_TRY(
        sl_build_rope_make(b, SL_ROPE_HALF, hp->rope_base, hp->rope_scale, true, &style.rope, err));
    for (int32_t i = 0; i < hp->n_layer; i++) {
        SL_TRY(sl_build_block(b, i, &style, x, err));
    }
    return sl_build_head(b, x, err);
}

const sl_arch sl_arch_qwen2 = {.name = "qwen2", .read = NULL, .build = qwen2_build};
