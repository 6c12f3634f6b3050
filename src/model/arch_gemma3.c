/* arch_gemma3.c - Gemma 3 (text).
 *
 *     x = embed(token) * sqrt(n_embd)
 *     per layer:
 *         h = rms_norm(x) attn_norm;  q, k, v = ...
 *         each head of q and k through an RMS norm (weights [d]), then turned, pairs (i, i + d/2)
 *         a = softmax(q k^T * scale) v Wo;  x = x + rms_norm(a) post_attention_norm
 *         h = rms_norm(x) ffn_norm
 *         f = (gelu_tanh(h Wgate) * (h Wup)) Wdown;  x = x + rms_norm(f) post_ffw_norm
 *     logits = (rms_norm(x) output_norm) Wembed^T        always tied
 *
 * Layers  five of six slide over a window of attention.sliding_window positions with RoPE base 1e4 (rope.freq_base_swa);
 *         each sixth sees everything, with rope.freq_base (1e6) and the linear scaling of the larger models.
 * scale   1/sqrt(d), but 1/sqrt(n_embd / n_head) in the 27B (62 layers): the file does not say it.
 * Norms   the checkpoints hold w - 1; converters add the 1, so here they are like Llama's.
 * Source arXiv:2503.19786. */
#include <math.h>

#include "base/error.h"
#include "base/limits.h"
#include "model/arch.h"

#define GEMMA3_PATTERN 6
#define GEMMA3_LAYERS_27B 62

static sl_status gemma3_read(sl_build *b, sl_error *err) {
    sl_hparams *hp = &b->net->hp;
    SL_TRY(sl_hp_f32(b, "attn_logit_softcapping", false, 0.0f, 1e6f, &hp->attn_softcap, err));
    SL_TRY(sl_hp_f32(b, "final_logit_softcapping", false, 0.0f, 1e6f, &hp->final_softcap, err));
    return SL_OK;
}

/* Does layer i see everything? The file may give a period, or a flag "slides" a layer. */
static sl_status gemma3_is_global(sl_build *b, int32_t i, bool *out, sl_error *err) {
    const sl_meta *m = sl_hp_find(b, "attention.sliding_window_pattern");
    bool slides;
    if (m != NULL && m->type == SL_META_ARR && m->item == SL_META_BOOL) {
        if (!sl_meta_bool(m, i, &slides)) {
            return SL_FAIL(
                err, SL_EFORMAT,
                "key 'gemma3.attention.sliding_window_pattern' has no entry for layer %d", i);
        }
        *out = !slides;
        return SL_OK;
    }
    int32_t period = GEMMA3_PATTERN;
    SL_TRY(sl_hp_i32(b, "attention.sliding_window_pattern", false, 1, SL_MAX_LAYER, &period, err));
    *out = (i + 1) % period == 0;
    return SL_OK;
}

static sl_status gemma3_build(sl_build *b, sl_error *err) {
    const sl_hparams *hp = &b->net->hp;
    const int32_t d_scale = hp->n_layer == GEMMA3_LAYERS_27B ? hp->n_embd / hp->n_head : hp->d_head;
    sl_block_style style = {.attn_scale = 1.0f / sqrtf((float)d_scale),
                            .qk_norm = true,
                            .post_norm = true,
                            .glu = SL_GLU_GELU_TANH};
    float base_local = 10000.0f;
    SL_TRY(sl_hp_f32(b, "rope.freq_base_swa", false, 1.0f, 1e30f, &base_local, err));
    int32_t x;
    sl_build_rope global, local;
    SL_TRY(sl_build_embed(b, sqrtf((float)hp->n_embd), &x, err));
    SL_TRY(sl_build_rope_make(b, SL_ROPE_HALF, hp->rope_base, hp->rope_scale, true, &global, err));
    SL_TRY(sl_build_rope_make(b, SL_ROPE_HALF, base_local, 1.0f, false, &local, err));
    for (int32_t i = 0; i < hp->n_layer; i++) {
        bool is_global = false;
        SL_TRY(gemma3_is_global(b, i, &is_global, err));
        style.rope = is_global ? global : local;
        style.window = is_global ? 0 : hp->window;
        SL_TRY(sl_build_block(b, i, &style, x, err));
    }
    return sl_build_head(b, x, err);
}

const sl_arch sl_arch_gemma3 = {.name = "gemma3", .read = gemma3_read, .build = gemma3_build};
