/* kern_scalar_attn.c - attention over one run of the KV cache, in plain C.
 *
 * Dot products keep eight partial sums (element i goes to sum i mod 8), combined in a fixed order.
 *
 * Threads     any.
 * Not here    softmax over runs (backend/): these are its pieces. */
#include "kern/fills.h"
#include "kern/scalar_exp.h"

static void scalar_kv_store_f16(int64_t n, const float *x, void *dst) {
    uint8_t *out = dst;
    for (int64_t i = 0; i < n; i++) {
        const uint16_t h = sl_f32_to_f16(x[i]);
        memcpy(out + 2 * i, &h, sizeof h);
    }
}

static void scalar_kv_store_f32(int64_t n, const float *x, void *dst) {
    if (n > 0) {
        memcpy(dst, x, (size_t)n * sizeof(float));
    }
}

/* Up to 8 elements, the rest zero. */
static void scalar_kv_load8_f16(const uint8_t *src, int64_t n, float out[8]) {
    for (int32_t i = 0; i < 8; i++) {
        uint16_t h = 0;
        if (i < n) {
            memcpy(&h, src + 2 * i, sizeof h);
        }
        out[i] = kern_half(h);
    }
}

static void scalar_kv_load8_f32(const uint8_t *src, int64_t n, float out[8]) {
    memset(out, 0, 8 * sizeof(float));
    memcpy(out, src, (size_t)(n < 8 ? n : 8) * sizeof(float));
}

typedef void (*scalar_kv_load8)(const uint8_t *src, int64_t n, float out[8]);

static inline void scalar_attn_score(scalar_kv_load8 load8, size_t elem, int64_t n_q, int64_t n_tok,
                                     int64_t d, const float *q, int64_t q_stride, const void *k,
                                     float scale, float *s, int64_t s_stride) {
    for (int64_t t = 0; t < n_tok; t++) {
        const uint8_t *row = (const uint8_t *)k + (size_t)(t * d) * elem;
        for (int64_t i = 0; i < n_q; i++) {
            float sum[8] = {0};
            for (int64_t j = 0; j < d; j += 8) {
                float kv[8];
                load8(row + (size_t)j * elem, d - j, kv);
                for (int32_t lane = 0; lane < 8 && j + lane < d; lane++) {
                    sum[lane] += q[i * q_stride + j + lane] * kv[lane];
                }
            }
            s[i * s_stride + t] = (((sum[0] + sum[1]) + (sum[2] + sum[3])) +
                                   ((sum[4] + sum[5]) + (sum[6] + sum[7]))) *
                                  scale;
        }
    }
}

static void scalar_attn_score_f16(int64_t n_q, int64_t n_tok, int64_t d, const float *q,
                                  int64_t q_stride, const void *k, float scale, float *s,
                                  int64_t s_stride) {
    scalar_attn_score(scalar_kv_load8_f16, 2, n_q, n_tok, d, q, q_stride, k, scale, s, s_stride);
}

static void scalar_attn_score_f32(int64_t n_q, int64_t n_tok, int64_t d, const float *q,
                                  int64_t q_stride, const void *k, float scale, float *s,
                                  int64_t s_stride) {
    scalar_attn_score(scalar_kv_load8_f32, 4, n_q, n_tok, d, q, q_stride, k, scale, s, s_stride);
}

static inline void scalar_attn_mix(scalar_kv_load8 load8, size_t elem, int64_t n_q, int64_t n_tok,
                                   int64_t d, const float *p, int64_t p_stride, const float *keep,
                                   const void *v, float *acc, int64_t acc_stride) {
    for (int64_t i = 0; i < n_q; i++) {
        float *row = acc + i * acc_stride;
        for (int64_t j = 0; j < d; j++) {
            row[j] *= keep[i];
        }
    }
    for (int64_t t = 0; t < n_tok; t++) {
        const uint8_t *src = (const uint8_t *)v + (size_t)(t * d) * elem;
        for (int64_t j = 0; j < d; j += 8) {
            float kv[8];
            load8(src + (size_t)j * elem, d - j, kv);
            for (int64_t i = 0; i < n_q; i++) {
                for (int32_t lane = 0; lane < 8 && j + lane < d; lane++) {
                    acc[i * acc_stride + j + lane] += p[i * p_stride + t] * kv[lane];
                }
            }
        }
    }
}

static void scalar_attn_mix_f16(int64_t n_q, int64_t n_tok, int64_t d, const float *p,
                                int64_t p_stride, const float *keep, const void *v, float *acc,
                                int64_t acc_stride) {
    scalar_attn_mix(scalar_kv_load8_f16, 2, n_q, n_tok, d, p, p_stride, keep, v, acc, acc_stride);
}

static void scalar_attn_mix_f32(int64_t n_q, int64_t n_tok, int64_t d, const float *p,
                                int64_t p_stride, const float *keep, const void *v, float *acc,
                                int64_t acc_stride) {
    scalar_attn_mix(scalar_kv_load8_f32, 4, n_q, n_tok, d, p, p_stride, keep, v, acc, acc_stride);
}

/* Sixteen lanes folded in halves; absent ones are zero. */
static float scalar_exp_sum(int64_t n, const float *s, float max, float *p) {
    float lane[16] = {0};
    for (int64_t t = 0; t < n && t < 16; t++) {
        lane[t] = scalar_exp(s[t] - max, 0.0f);
        p[t] = lane[t];
    }
    for (int32_t half = 8; half > 0; half /= 2) {
        for (int32_t t = 0; t < half; t++) {
            lane[t] += lane[t + half];
        }
    }
    return lane[0];
}

void sl_kern_scalar_attn(sl_kern *kern) {
    kern->kv_store[SL_KV_F16] = scalar_kv_store_f16;
    kern->kv_store[SL_KV_F32] = scalar_kv_store_f32;
    kern->attn_score[SL_KV_F16] = scalar_attn_score_f16;
    kern->attn_score[SL_KV_F32] = scalar_attn_score_f32;
    kern->attn_mix[SL_KV_F16] = scalar_attn_mix_f16;
    kern->attn_mix[SL_KV_F32] = scalar_attn_mix_f32;
    kern->exp_sum = scalar_exp_sum;
}
