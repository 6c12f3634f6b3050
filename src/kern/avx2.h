/* avx2.h - what the AVX2 kernels share. Include it last, and only inside  #if defined(__x86_64__).
 *
 * No file needs a build flag: each function names its target by attribute, so nothing else in the file, and nothing
 * declared in a header, is compiled for a CPU that may not have it.
 *
 * Eight rows at a time. A matrix product works on eight rows of weights side by side: lane r of a vector belongs to row
 * r. Blocks come from memory row by row, so they are turned round four bytes at a time:
 *
 *     row 0  a0 a1 a2 a3              vector 0   a0 b0 c0 .. h0     each a dword: four elements of one row
 *     row 1  b0 b1 b2 b3     ---->    vector 1   a1 b1 c1 .. h1
 *      ..                             vector 2   ..
 *
 * One dword of activations, broadcast, then meets eight rows at once; integer sums stay in their row's lane, and no sum
 * across a vector is ever needed. Turning costs less than those sums would, even for one column. */
#ifndef SL_KERN_AVX2_H
#define SL_KERN_AVX2_H

#include <immintrin.h>

#include "kern/blocks.h"

#define AVX2_TARGET __attribute__((target("avx2,fma,f16c")))
#define AVX2_INLINE static inline __attribute__((always_inline, target("avx2,fma,f16c")))

/* Eight rows; the last one again where there are fewer, so that every load is of a real row. */
typedef struct avx2_rows {
    const uint8_t *at[8];
} avx2_rows;

AVX2_INLINE void avx2_rows_init(avx2_rows *rows, const uint8_t *w, size_t stride, int64_t n_left) {
    for (int64_t r = 0; r < 8; r++) {
        rows->at[r] = w + (size_t)(r < n_left ? r : n_left - 1) * stride;
    }
}

AVX2_INLINE __m128i avx2_load16(const uint8_t *p) { return _mm_loadu_si128((const void *)p); }

AVX2_INLINE __m256i avx2_load32(const void *p) { return _mm256_loadu_si256(p); }

AVX2_INLINE __m256i avx2_two16(const uint8_t *low, const uint8_t *high) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(avx2_load16(low)), avx2_load16(high), 1);
}

/* 16 bytes of each row, from `at`, to four vectors of dwords. */
AVX2_INLINE void avx2_turn16(const avx2_rows *rows, size_t at, __m256i out[4]) {
    const __m256i a = avx2_two16(rows->at[0] + at, rows->at[4] + at);
    const __m256i b = avx2_two16(rows->at[1] + at, rows->at[5] + at);
    const __m256i c = avx2_two16(rows->at[2] + at, rows->at[6] + at);
    const __m256i d = avx2_two16(rows->at[3] + at, rows->at[7] + at);
    const __m256i ab_low = _mm256_unpacklo_epi32(a, b);
    const __m256i ab_high = _mm256_unpackhi_epi32(a, b);
    const __m256i cd_low = _mm256_unpacklo_epi32(c, d);
    const __m256i cd_high = _mm256_unpackhi_epi32(c, d);
    out[0] = _mm256_unpacklo_epi64(ab_low, cd_low);
    out[1] = _mm256_unpackhi_epi64(ab_low, cd_low);
    out[2] = _mm256_unpacklo_epi64(ab_high, cd_high);
    out[3] = _mm256_unpackhi_epi64(ab_high, cd_high);
}

AVX2_INLINE int32_t avx2_dword(const void *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

AVX2_INLINE int16_t avx2_word(const uint8_t *p) {
    int16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* 4 bytes of each row to one vector. */
AVX2_INLINE __m256i avx2_turn4(const avx2_rows *rows, size_t at) {
    __m128i low = _mm_cvtsi32_si128(avx2_dword(rows->at[0] + at));
    __m128i high = _mm_cvtsi32_si128(avx2_dword(rows->at[4] + at));
    low = _mm_insert_epi32(low, avx2_dword(rows->at[1] + at), 1);
    high = _mm_insert_epi32(high, avx2_dword(rows->at[5] + at), 1);
    low = _mm_insert_epi32(low, avx2_dword(rows->at[2] + at), 2);
    high = _mm_insert_epi32(high, avx2_dword(rows->at[6] + at), 2);
    low = _mm_insert_epi32(low, avx2_dword(rows->at[3] + at), 3);
    high = _mm_insert_epi32(high, avx2_dword(rows->at[7] + at), 3);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* One half float of each row. */
AVX2_INLINE __m256 avx2_turn_half(const avx2_rows *rows, size_t at) {
    __m128i v = _mm_cvtsi32_si128((uint16_t)avx2_word(rows->at[0] + at));
    v = _mm_insert_epi16(v, avx2_word(rows->at[1] + at), 1);
    v = _mm_insert_epi16(v, avx2_word(rows->at[2] + at), 2);
    v = _mm_insert_epi16(v, avx2_word(rows->at[3] + at), 3);
    v = _mm_insert_epi16(v, avx2_word(rows->at[4] + at), 4);
    v = _mm_insert_epi16(v, avx2_word(rows->at[5] + at), 5);
    v = _mm_insert_epi16(v, avx2_word(rows->at[6] + at), 6);
    v = _mm_insert_epi16(v, avx2_word(rows->at[7] + at), 7);
    return _mm256_cvtph_ps(v);
}

/* Two half floats of each dword. */
AVX2_INLINE void avx2_halves(__m256i both, __m256 *first, __m256 *second) {
    const __m256i low = _mm256_and_si256(both, _mm256_set1_epi32(0xffff));
    const __m256i high = _mm256_srli_epi32(both, 16);
    /* Packing works inside 128-bit lanes: first of rows 0..3, second of rows 0..3, then rows 4..7. */
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
    *first = _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
    *second = _mm256_cvtph_ps(_mm256_extracti128_si256(packed, 1));
}

/* The first n of eight floats, n >= 1. */
AVX2_INLINE void avx2_store_some(float *y, __m256 v, int64_t n) {
    if (n >= 8) {
        _mm256_storeu_ps(y, v);
    } else {
        float part[8];
        _mm256_storeu_ps(part, v);
        memcpy(y, part, (size_t)n * sizeof(float));
    }
}

AVX2_INLINE __m256 avx2_load_some(const float *x, int64_t n) {
    if (n >= 8) {
        return _mm256_loadu_ps(x);
    }
    float part[8] = {0};
    memcpy(part, x, (size_t)n * sizeof(float));
    return _mm256_loadu_ps(part);
}

/* Four bytes of activations in every lane. */
AVX2_INLINE __m256i avx2_spread4(const int8_t *x) { return _mm256_set1_epi32(avx2_dword(x)); }

/* Dwords of x meet vectors of unsigned weights: sums of pairs, as int16. The caller knows that the largest weight w
 * leaves room: n 2 w 127 < 2^15 for n vectors. One after the other, so that few registers hold what is on its way:
 * eight hold the weights. */
AVX2_INLINE __m256i avx2_dot_pair(__m256i w0, __m256i w1, const int8_t *x) {
    const __m256i sum = _mm256_maddubs_epi16(w0, avx2_spread4(x));
    return _mm256_add_epi16(sum, _mm256_maddubs_epi16(w1, avx2_spread4(x + 4)));
}

AVX2_INLINE __m256i avx2_dot_four(const __m256i w[4], const int8_t *x) {
    __m256i sum = _mm256_maddubs_epi16(w[0], avx2_spread4(x));
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(w[1], avx2_spread4(x + 4)));
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(w[2], avx2_spread4(x + 8)));
    return _mm256_add_epi16(sum, _mm256_maddubs_epi16(w[3], avx2_spread4(x + 12)));
}

/* Signed weights: |w| * (x with w's sign). -128 is taken right: its absolute value is read as unsigned. */
AVX2_INLINE __m256i avx2_dot_signed(__m256i w, const int8_t *x) {
    return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(avx2_spread4(x), w));
}

/* Sum of each of four vectors: ((0+1)+(2+3)) + ((4+5)+(6+7)) of every one. */
AVX2_INLINE __m128 avx2_sum4(__m256 a, __m256 b, __m256 c, __m256 d) {
    const __m256 sums = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    return _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
}

/* exp(x + x_low), as scalar_exp but with fused steps. */
AVX2_INLINE __m256 avx2_exp(__m256 x, __m256 x_low) {
    x = _mm256_max_ps(_mm256_set1_ps(KERN_EXP_LOW), x); /* the second operand if either is NaN */
    x = _mm256_min_ps(_mm256_set1_ps(KERN_EXP_HIGH), x);
    const __m256 magic = _mm256_set1_ps(KERN_ROUND);
    const __m256 rounded = _mm256_fmadd_ps(x, _mm256_set1_ps(KERN_LOG2E), magic);
    const __m256 n = _mm256_sub_ps(rounded, magic);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(KERN_LN2_HIGH), x);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(KERN_LN2_LOW), r);
    r = _mm256_add_ps(r, x_low);
    __m256 p = _mm256_set1_ps(1.0f / 5040.0f);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 720.0f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 120.0f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 24.0f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 6.0f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5f));
    p = _mm256_fmadd_ps(_mm256_mul_ps(p, r), r, r);
    p = _mm256_add_ps(p, _mm256_set1_ps(1.0f));
    const __m256i n_int =
        _mm256_sub_epi32(_mm256_castps_si256(rounded), _mm256_castps_si256(magic));
    const __m256i n_half = _mm256_srai_epi32(n_int, 1);
    const __m256i n_rest = _mm256_sub_epi32(n_int, n_half);
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256i two_half = _mm256_slli_epi32(_mm256_add_epi32(n_half, bias), 23);
    const __m256i two_rest = _mm256_slli_epi32(_mm256_add_epi32(n_rest, bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(two_half)),
                         _mm256_castsi256_ps(two_rest));
}

#endif
