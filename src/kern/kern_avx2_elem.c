/* kern_avx2_elem.c - elementwise kernels, AVX2: activations, norm, add, scale, glu, softcap, rope.
 *
 * Eight elements at a time. What is left over at the end goes through the same vector code from a padded copy, so an
 * element's bits don't depend on where it stands.
 *
 * Threads     any.
 * Not here    attention (kern_avx2_attn.c), matrix products (kern_avx2_mul*.c). */
#include <math.h>

#include "kern/fills.h"

#if defined(__x86_64__)

#include "kern/avx2.h"

/* ---- activations ---- */

AVX2_INLINE __m256 avx2_abs(__m256 v) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v); }

/* max|x| / 127 of 32 k elements. */
AVX2_INLINE float avx2_act_scale(const float *x, int32_t n) {
    __m256 top = _mm256_setzero_ps();
    for (int32_t i = 0; i < n; i += 8) {
        top = _mm256_max_ps(top, avx2_abs(_mm256_loadu_ps(x + i)));
    }
    __m128 v = _mm_max_ps(_mm256_castps256_ps128(top), _mm256_extractf128_ps(top, 1));
    v = _mm_max_ps(v, _mm_movehl_ps(v, v));
    v = _mm_max_ss(v, _mm_movehdup_ps(v));
    return _mm_cvtss_f32(v) / 127.0f;
}

/* The steps of scalar_act_round, eight at a time. */
AVX2_INLINE __m256i avx2_act_round(const float *x, __m256 d) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 v = _mm256_div_ps(_mm256_loadu_ps(x), d);
    v = _mm256_min_ps(v, _mm256_set1_ps(127.0f));
    v = _mm256_max_ps(v, _mm256_set1_ps(-127.0f));
    const __m256 half = _mm256_or_ps(_mm256_and_ps(v, sign), _mm256_set1_ps(0.49999997f));
    return _mm256_cvttps_epi32(_mm256_add_ps(v, half));
}

/* 32 elements to bytes; d > 0. */
AVX2_INLINE __m256i avx2_act_bytes(const float *x, __m256 d) {
    const __m256i a = _mm256_packs_epi32(avx2_act_round(x, d), avx2_act_round(x + 8, d));
    const __m256i b = _mm256_packs_epi32(avx2_act_round(x + 16, d), avx2_act_round(x + 24, d));
    /* Packing works inside 128-bit lanes: put the dwords back in order. */
    return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(a, b),
                                       _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

AVX2_TARGET static void avx2_act_q8_32(const float *x, int64_t n, void *dst) {
    sl_act_q8_32 *block = dst;
    for (int64_t b = 0; b < n / 32; b++, block++, x += 32) {
        const float d = avx2_act_scale(x, 32);
        const __m256i qs = d > 0.0f ? avx2_act_bytes(x, _mm256_set1_ps(d)) : _mm256_setzero_si256();
        /* Sums of eight bytes, each with 128 added. */
        const __m256i sums =
            _mm256_sad_epu8(_mm256_xor_si256(qs, _mm256_set1_epi8(-128)), _mm256_setzero_si256());
        const __m128i two =
            _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
        const int32_t sum = _mm_cvtsi128_si32(two) + _mm_extract_epi32(two, 2) - 32 * 128;
        block->d = d;
        block->s = d * (float)sum;
        _mm256_storeu_si256((void *)block->qs, qs);
    }
}

AVX2_TARGET static void avx2_act_q8_256(const float *x, int64_t n, void *dst) {
    sl_act_q8_256 *block = dst;
    for (int64_t b = 0; b < n / 256; b++, block++, x += 256) {
        const float d = avx2_act_scale(x, 256);
        block->d = d;
        for (int32_t i = 0; i < 8; i++) {
            const __m256i qs =
                d > 0.0f ? avx2_act_bytes(x + 32 * i, _mm256_set1_ps(d)) : _mm256_setzero_si256();
            const __m256i sums = _mm256_sad_epu8(_mm256_xor_si256(qs, _mm256_set1_epi8(-128)),
                                                 _mm256_setzero_si256());
            const __m256i low =
                _mm256_add_epi64(sums, _mm256_shuffle_epi32(sums, 0x4e)); /* both halves alike */
            block->sums[2 * i] =
                (int16_t)(_mm_cvtsi128_si32(_mm256_castsi256_si128(low)) - 16 * 128);
            block->sums[2 * i + 1] =
                (int16_t)(_mm_cvtsi128_si32(_mm256_extracti128_si256(low, 1)) - 16 * 128);
            _mm256_storeu_si256((void *)(block->qs + 32 * i), qs);
        }
    }
}

/* ---- norm ---- */

/* The sum in double, sixteen lanes. */
AVX2_TARGET static void avx2_norm_rms(int64_t n, const float *x, const float *w, float eps,
                                      float *y) {
    __m256d s0 = _mm256_setzero_pd();
    __m256d s1 = _mm256_setzero_pd();
    __m256d s2 = _mm256_setzero_pd();
    __m256d s3 = _mm256_setzero_pd();
    for (int64_t i = 0; i < n; i += 16) {
        const __m256 a = avx2_load_some(x + i, n - i);
        const __m256 b = n - i > 8 ? avx2_load_some(x + i + 8, n - i - 8) : _mm256_setzero_ps();
        const __m256d a0 = _mm256_cvtps_pd(_mm256_castps256_ps128(a));
        const __m256d a1 = _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));
        const __m256d b0 = _mm256_cvtps_pd(_mm256_castps256_ps128(b));
        const __m256d b1 = _mm256_cvtps_pd(_mm256_extractf128_ps(b, 1));
        s0 = _mm256_fmadd_pd(a0, a0, s0);
        s1 = _mm256_fmadd_pd(a1, a1, s1);
        s2 = _mm256_fmadd_pd(b0, b0, s2);
        s3 = _mm256_fmadd_pd(b1, b1, s3);
    }
    const __m256d four = _mm256_add_pd(_mm256_add_pd(s0, s1), _mm256_add_pd(s2, s3));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    const double sum = _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
    const double mean = sum / (double)(n > 0 ? n : 1);
    const __m256 k = _mm256_set1_ps((float)(1.0 / sqrt(mean + (double)eps)));
    for (int64_t i = 0; i < n; i += 8) {
        __m256 v = _mm256_mul_ps(avx2_load_some(x + i, n - i), k);
        if (w != NULL) {
            v = _mm256_mul_ps(v, avx2_load_some(w + i, n - i));
        }
        avx2_store_some(y + i, v, n - i);
    }
}

/* ---- plain arithmetic ---- */

AVX2_TARGET static void avx2_add(int64_t n, const float *a, const float *b, float *y) {
    for (int64_t i = 0; i < n; i += 8) {
        const __m256 v = _mm256_add_ps(avx2_load_some(a + i, n - i), avx2_load_some(b + i, n - i));
        avx2_store_some(y + i, v, n - i);
    }
}

AVX2_TARGET static void avx2_scale(int64_t n, const float *x, float k, float *y) {
    for (int64_t i = 0; i < n; i += 8) {
        const __m256 v = _mm256_mul_ps(avx2_load_some(x + i, n - i), _mm256_set1_ps(k));
        avx2_store_some(y + i, v, n - i);
    }
}

/* ---- glu, softcap ---- */

AVX2_TARGET static void avx2_glu_silu(int64_t n, const float *g, const float *u, float *y) {
    const __m256 one = _mm256_set1_ps(1.0f);
    for (int64_t i = 0; i < n; i += 8) {
        const __m256 v = avx2_load_some(g + i, n - i);
        const __m256 e = avx2_exp(_mm256_xor_ps(v, _mm256_set1_ps(-0.0f)), _mm256_setzero_ps());
        const __m256 s = _mm256_div_ps(v, _mm256_add_ps(one, e));
        avx2_store_some(y + i, _mm256_mul_ps(s, avx2_load_some(u + i, n - i)), n - i);
    }
}

/* -2 z of four elements, in double. */
AVX2_INLINE __m256d avx2_gelu_argument(__m128 g) {
    const __m256d v = _mm256_cvtps_pd(g);
    const __m256d k = _mm256_fmadd_pd(_mm256_set1_pd(KERN_GELU_B), _mm256_mul_pd(v, v),
                                      _mm256_set1_pd(KERN_GELU_A));
    __m256d z = _mm256_mul_pd(_mm256_xor_pd(v, _mm256_set1_pd(-0.0)), k);
    z = _mm256_min_pd(z, _mm256_set1_pd(200.0));
    return _mm256_max_pd(z, _mm256_set1_pd(-200.0));
}

/* As in the scalar row: the argument in double, given to exp in two parts. */
AVX2_TARGET static void avx2_glu_gelu_tanh(int64_t n, const float *g, const float *u, float *y) {
    const __m256 one = _mm256_set1_ps(1.0f);
    for (int64_t i = 0; i < n; i += 8) {
        const __m256 v = avx2_load_some(g + i, n - i);
        const __m256d z0 = avx2_gelu_argument(_mm256_castps256_ps128(v));
        const __m256d z1 = avx2_gelu_argument(_mm256_extractf128_ps(v, 1));
        const __m128 high0 = _mm256_cvtpd_ps(z0);
        const __m128 high1 = _mm256_cvtpd_ps(z1);
        const __m128 low0 = _mm256_cvtpd_ps(_mm256_sub_pd(z0, _mm256_cvtps_pd(high0)));
        const __m128 low1 = _mm256_cvtpd_ps(_mm256_sub_pd(z1, _mm256_cvtps_pd(high1)));
        const __m256 e = avx2_exp(_mm256_set_m128(high1, high0), _mm256_set_m128(low1, low0));
        const __m256 s = _mm256_div_ps(v, _mm256_add_ps(one, e));
        avx2_store_some(y + i, _mm256_mul_ps(s, avx2_load_some(u + i, n - i)), n - i);
    }
}

AVX2_TARGET static void avx2_softcap(int64_t n, const float *x, float cap, float *y) {
    const __m256 one = _mm256_set1_ps(1.0f);
    const __m256 caps = _mm256_set1_ps(cap);
    const __m256 sign = _mm256_set1_ps(-0.0f);
    for (int64_t i = 0; i < n; i += 8) {
        const __m256 z = _mm256_div_ps(avx2_load_some(x + i, n - i), caps);
        const __m256 a = avx2_abs(z);
        const __m256 q = _mm256_mul_ps(a, a);
        __m256 p = _mm256_set1_ps(KERN_TANH_5);
        p = _mm256_fmadd_ps(p, q, _mm256_set1_ps(KERN_TANH_4));
        p = _mm256_fmadd_ps(p, q, _mm256_set1_ps(KERN_TANH_3));
        p = _mm256_fmadd_ps(p, q, _mm256_set1_ps(KERN_TANH_2));
        p = _mm256_fmadd_ps(p, q, _mm256_set1_ps(KERN_TANH_1));
        p = _mm256_fmadd_ps(p, q, _mm256_set1_ps(KERN_TANH_0));
        const __m256 small = _mm256_fmadd_ps(_mm256_mul_ps(p, q), a, a);
        const __m256 e = _mm256_add_ps(avx2_exp(_mm256_add_ps(a, a), _mm256_setzero_ps()), one);
        const __m256 large = _mm256_sub_ps(one, _mm256_div_ps(_mm256_set1_ps(2.0f), e));
        const __m256 is_small = _mm256_cmp_ps(a, _mm256_set1_ps(KERN_TANH_SMALL), _CMP_LE_OQ);
        const __m256 t = _mm256_blendv_ps(large, small, is_small);
        const __m256 v = _mm256_mul_ps(caps, _mm256_or_ps(t, _mm256_and_ps(z, sign)));
        avx2_store_some(y + i, v, n - i);
    }
}

/* ---- rope ---- */

AVX2_TARGET static void avx2_rope_half(int64_t n_rot, const float *cos_sin, float *x) {
    const int64_t half = n_rot / 2;
    for (int64_t i = 0; i < half; i += 8) {
        const int64_t n = half - i;
        const __m256 c = avx2_load_some(cos_sin + i, n);
        const __m256 s = avx2_load_some(cos_sin + half + i, n);
        const __m256 a = avx2_load_some(x + i, n);
        const __m256 b = avx2_load_some(x + half + i, n);
        avx2_store_some(x + i, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)), n);
        avx2_store_some(x + half + i, _mm256_fmadd_ps(b, c, _mm256_mul_ps(a, s)), n);
    }
}

AVX2_TARGET static void avx2_rope_neighbour(int64_t n_rot, const float *cos_sin, float *x) {
    const int64_t half = n_rot / 2;
    const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    for (int64_t i = 0; i < half; i += 4) {
        const int64_t n = half - i;
        const __m256 c =
            _mm256_permutevar8x32_ps(avx2_load_some(cos_sin + i, n < 4 ? n : 4), twice);
        const __m256 s =
            _mm256_permutevar8x32_ps(avx2_load_some(cos_sin + half + i, n < 4 ? n : 4), twice);
        const __m256 v = avx2_load_some(x + 2 * i, 2 * n);
        /* Even lanes a c - b s, odd lanes b c + a s. */
        const __m256 other = _mm256_mul_ps(_mm256_permute_ps(v, 0xb1), s);
        avx2_store_some(x + 2 * i, _mm256_fmaddsub_ps(v, c, other), 2 * n);
    }
}

void sl_kern_avx2_elem(sl_kern *kern) {
    kern->act[SL_ACT_Q8_32] = avx2_act_q8_32;
    kern->act[SL_ACT_Q8_256] = avx2_act_q8_256;
    kern->norm_rms = avx2_norm_rms;
    kern->add = avx2_add;
    kern->scale = avx2_scale;
    kern->glu[SL_GLU_SILU] = avx2_glu_silu;
    kern->glu[SL_GLU_GELU_TANH] = avx2_glu_gelu_tanh;
    kern->softcap = avx2_softcap;
    kern->rope[SL_ROPE_NEIGHBOUR] = avx2_rope_neighbour;
    kern->rope[SL_ROPE_HALF] = avx2_rope_half;
}

#else

void sl_kern_avx2_elem(sl_kern *kern) { (void)kern; }

#endif
