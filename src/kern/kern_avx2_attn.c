/* kern_avx2_attn.c - attention over one run of the KV cache, AVX2.
 *
 * avx2_attn_body.h has the loops. What is left over of a row goes through the same vector code from a padded copy.
 *
 * Threads     any.
 * Not here    softmax over runs (backend/): these are its pieces. */
#include <math.h>

#include "kern/fills.h"

#if defined(__x86_64__)

#include "kern/avx2.h"

AVX2_INLINE __m256 avx2_kv_load_f16(const uint8_t *p, int64_t n) {
    if (n >= 8) {
        return _mm256_cvtph_ps(avx2_load16(p));
    }
    uint8_t part[16] = {0};
    memcpy(part, p, (size_t)n * 2);
    return _mm256_cvtph_ps(avx2_load16(part));
}

AVX2_INLINE __m256 avx2_kv_load_f32(const uint8_t *p, int64_t n) {
    if (n >= 8) {
        return _mm256_loadu_ps((const void *)p);
    }
    float part[8] = {0};
    memcpy(part, p, (size_t)n * 4);
    return _mm256_loadu_ps(part);
}

#define KV_NAME(x) avx2_kv_f16_##x
#define KV_BYTES 2
#define KV_LOAD avx2_kv_load_f16
#include "kern/avx2_attn_body.h"

#define KV_NAME(x) avx2_kv_f32_##x
#define KV_BYTES 4
#define KV_LOAD avx2_kv_load_f32
#include "kern/avx2_attn_body.h"

AVX2_TARGET static void avx2_kv_store_f16(int64_t n, const float *x, void *dst) {
    uint8_t *out = dst;
    for (int64_t i = 0; i < n; i += 8) {
        const __m128i h = _mm256_cvtps_ph(avx2_load_some(x + i, n - i), _MM_FROUND_TO_NEAREST_INT);
        if (n - i >= 8) {
            _mm_storeu_si128((void *)(out + 2 * i), h);
        } else {
            uint8_t part[16];
            _mm_storeu_si128((void *)part, h);
            memcpy(out + 2 * i, part, (size_t)(n - i) * 2);
        }
    }
}

/* Sixteen lanes, absent ones exp(-inf) = 0, folded in halves. */
AVX2_TARGET static float avx2_exp_sum(int64_t n, const float *s, float max, float *p) {
    const size_t bytes = (size_t)(n > 16 ? 16 : n < 0 ? 0 : n) * sizeof(float);
    float lane[16];
    const __m256 none = _mm256_set1_ps(-INFINITY);
    _mm256_storeu_ps(lane, none);
    _mm256_storeu_ps(lane + 8, none);
    memcpy(lane, s, bytes);
    const __m256 top = _mm256_set1_ps(max);
    const __m256 zero = _mm256_setzero_ps();
    const __m256 a = avx2_exp(_mm256_sub_ps(_mm256_loadu_ps(lane), top), zero);
    const __m256 b = avx2_exp(_mm256_sub_ps(_mm256_loadu_ps(lane + 8), top), zero);
    _mm256_storeu_ps(lane, a);
    _mm256_storeu_ps(lane + 8, b);
    memcpy(p, lane, bytes);
    const __m256 eight = _mm256_add_ps(a, b);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

void sl_kern_avx2_attn(sl_kern *kern) {
    kern->kv_store[SL_KV_F16] = avx2_kv_store_f16;
    kern->attn_score[SL_KV_F16] = avx2_kv_f16_score;
    kern->attn_score[SL_KV_F32] = avx2_kv_f32_score;
    kern->attn_mix[SL_KV_F16] = avx2_kv_f16_mix;
    kern->attn_mix[SL_KV_F32] = avx2_kv_f32_mix;
    kern->exp_sum = avx2_exp_sum;
}

#else

void sl_kern_avx2_attn(sl_kern *kern) { (void)kern; }

#endif
