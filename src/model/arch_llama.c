/* arch_llama.c - Llama 1 to 3, SmolLM2, Mistral 7B, and what else ships as "llama".
 *
 *     x = embed(token)                                   [n_tok, n_embd]
 *     per layer:
 *         h = rms_norm(x) attn_norm
 *         q, k, v = h Wq, h Wk, h Wv                     [n_tok, n_head d], [n_tok, n_head_kv d] (GQA)
 *         q, k turned by position, neighbours (2i, 2i+1) paired
 *         x = x + softmax(q k^T / sqrt(d)) v Wo
 *         h = rms_norm(x) ffn_norm
 *         x = x + (silu(h Wgate) * (h Wup)) Wdown
 *     logits = (rms_norm(x) output_norm) Woutput         tied to the embedding when "output.weight" is absent
 *
 * RoPE   GGUF files of this architecture have the rows of Wq and Wk permuted, so that neighbours pair up; a Hugging
 *        Face checkpoint pairs i with i + d/2. Mixing the two reads well for some twenty tokens, then falls apart.
 *        Llama 3.1 and later bring divisors for each frequency in "rope_freqs.weight".
 * Biases on any product where the file has them (InternLM, Llama with attention_bias).
 * Window every layer slides when llama.attention.sliding_window is set (Mistral 7B v0.1; most converters drop the key,
 *        and then attention is full).
 * Source arXiv:2302.13971, arXiv:2407.21783, arXiv:2310.06825. */
#include <math.h>

#include "base/error.h"
#include "model/arch.h"

static sl_status llama_build(sl_build *b, sl_error *err) {
    const sl_hparams *hp = &b->net->hp;
    sl_block_style style = {
        .attn_scale = 1.0f / sqrtf((float)hp->d_head), .window = hp->window, .glu = SL_GLU_SILU};
    int32_t x;
    SL_TRY(sl_build_embed(b, 1.0f, &x, err));
    SL_TRY(sl_build_rope_make(b, SL_ROPE_NEIGHBOUR, hp->rope_base, hp->rope_scale, true,
                              &style.rope, err));
    for (int32_t i = 0; i < hp->n_layer; i++) {
        SL_TRY(sl_build_block(b, i, &style, x, err));
    }
    return sl_build_head(b, x, err);
}

const sl_arch sl_arch_llama = {.name = "llama", .read = NULL, .build = llama_build};
