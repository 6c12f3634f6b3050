/* kern_avx2_mulk.c - matrix products of the types with blocks of 256 elements, AVX2.
 *
 * Eight rows side by side (avx2.h has the drawing), a block in eight units of 32 elements (avx2_mulk_body.h has the
 * loops; where elements lie in a block is told in kern_scalar_mulk.c). Quants stay unsigned; their products are added
 * as int16 where they fit, and the multiplication that widens them to int32 is by the group's scale, so scales cost
 * nothing. What must be taken off, minima or the offset of the quants, is a dot product with the activations' sums.
 *
 * Largest sums: Q6_K adds two of 2 * 63 * 127 = 16002 as int16; the others at most four of 2 * 31 * 127 = 7874.
 *
 * Threads     any. */
#include "kern/fills.h"

#if defined(__x86_64__)

#include "kern/avx2.h"
#include "kern/avx2_tile.h"

/* Eight rows' blocks: each vector has a dword (two equal or neighbouring int16) for every row. */
typedef struct avx2_super {
    __m256i scale[16]; /* twice the same, by group of 16 or 32 */
    __m256i pair[8];   /* what meets sums 2 j and 2 j + 1 of the activations */
    __m256 d;
    __m256 dmin;
    __m256i part[4]; /* quants that the next unit goes on with */
    __m256i high[8]; /* upper bits, shifted on by each unit */
} avx2_super;

/* ---- scales ---- */

/* Byte i of each dword, unsigned, to both words. */
AVX2_INLINE __m256i avx2_twice_u8(__m256i v, int32_t i) {
    const __m256i at = _mm256_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12);
    const __m256i words = _mm256_or_si256(at, _mm256_slli_epi32(at, 16));
    const __m256i pick = _mm256_add_epi32(words, _mm256_set1_epi32(0x00010001 * i));
    return _mm256_shuffle_epi8(v, _mm256_or_si256(pick, _mm256_set1_epi16((short)0x8000)));
}

/* Byte i of each dword, signed, to both words. */
AVX2_INLINE __m256i avx2_twice_i8(__m256i v, int32_t i) {
    return _mm256_srai_epi16(_mm256_slli_epi16(avx2_twice_u8(v, i), 8), 8);
}

AVX2_INLINE void avx2_scales_u8(const __m256i v[4], __m256i scale[16]) {
    for (int32_t k = 0; k < 4; k++) {
        scale[4 * k] = avx2_twice_u8(v[k], 0);
        scale[4 * k + 1] = avx2_twice_u8(v[k], 1);
        scale[4 * k + 2] = avx2_twice_u8(v[k], 2);
        scale[4 * k + 3] = avx2_twice_u8(v[k], 3);
    }
}

AVX2_INLINE void avx2_scales_i8(const __m256i v[4], __m256i scale[16]) {
    for (int32_t k = 0; k < 4; k++) {
        scale[4 * k] = avx2_twice_i8(v[k], 0);
        scale[4 * k + 1] = avx2_twice_i8(v[k], 1);
        scale[4 * k + 2] = avx2_twice_i8(v[k], 2);
        scale[4 * k + 3] = avx2_twice_i8(v[k], 3);
    }
}

/* Sixteen signed bytes as eight pairs of words. */
AVX2_INLINE void avx2_pairs_i8(const __m256i v[4], __m256i pair[8]) {
    const __m256i low = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(-1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13));
    const __m256i high = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(-1, 2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15));
    for (int32_t k = 0; k < 4; k++) {
        pair[2 * k] = _mm256_srai_epi16(_mm256_shuffle_epi8(v[k], low), 8);
        pair[2 * k + 1] = _mm256_srai_epi16(_mm256_shuffle_epi8(v[k], high), 8);
    }
}

/* pair . sums: 16 products a row. */
AVX2_INLINE __m256i avx2_dot_sums(const avx2_super *s, const int16_t sums[16]) {
    __m256i dot = _mm256_setzero_si256();
    for (int32_t j = 0; j < 8; j++) {
        const __m256i x = _mm256_set1_epi32(avx2_dword(sums + 2 * j));
        dot = _mm256_add_epi32(dot, _mm256_madd_epi16(s->pair[j], x));
    }
    return dot;
}

AVX2_INLINE __m256i avx2_start_zero(const avx2_super *s, const int16_t sums[16]) {
    (void)s;
    (void)sums;
    return _mm256_setzero_si256();
}

AVX2_INLINE __m256i avx2_start_minus4(const avx2_super *s, const int16_t sums[16]) {
    const __m256i four = _mm256_slli_epi32(avx2_dot_sums(s, sums), 2);
    return _mm256_sub_epi32(_mm256_setzero_si256(), four);
}

AVX2_INLINE __m256i avx2_start_minus32(const avx2_super *s, const int16_t sums[16]) {
    const __m256i many = _mm256_slli_epi32(avx2_dot_sums(s, sums), 5);
    return _mm256_sub_epi32(_mm256_setzero_si256(), many);
}

/* ---- dot products of 16 elements, times a scale ---- */

AVX2_INLINE __m256i avx2_dot16_four(const __m256i q[4], const int8_t *x, __m256i scale) {
    return _mm256_madd_epi16(avx2_dot_four(q, x), scale);
}

AVX2_INLINE __m256i avx2_dot16_two(const __m256i q[4], const int8_t *x, __m256i scale) {
    return _mm256_add_epi32(_mm256_madd_epi16(avx2_dot_pair(q[0], q[1], x), scale),
                            _mm256_madd_epi16(avx2_dot_pair(q[2], q[3], x + 8), scale));
}

AVX2_INLINE __m256i avx2_dot16_signed(const __m256i q[4], const int8_t *x, __m256i scale) {
    const __m256i a = _mm256_madd_epi16(avx2_dot_signed(q[0], x), scale);
    const __m256i b = _mm256_madd_epi16(avx2_dot_signed(q[1], x + 4), scale);
    const __m256i c = _mm256_madd_epi16(avx2_dot_signed(q[2], x + 8), scale);
    const __m256i d = _mm256_madd_epi16(avx2_dot_signed(q[3], x + 12), scale);
    return _mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d));
}

/* ---- Q4_K and Q5_K ---- */

/* As kern_scales_k4, on eight rows: d and dmin, then the three words of six-bit scales and minima. */
AVX2_INLINE void avx2_begin_k4(const avx2_rows *rows, size_t at, avx2_super *s) {
    const __m256i low6 = _mm256_set1_epi8(0x3f);
    const __m256i low4 = _mm256_set1_epi8(0x0f);
    const __m256i top2 = _mm256_set1_epi8(0x30);
    __m256i v[4];
    avx2_turn16(rows, at, v);
    avx2_halves(v[0], &s->d, &s->dmin);
    const __m256i scale0 = _mm256_and_si256(v[1], low6);
    const __m256i scale4 = _mm256_or_si256(_mm256_and_si256(v[3], low4),
                                           _mm256_and_si256(_mm256_srli_epi32(v[1], 2), top2));
    const __m256i min0 = _mm256_and_si256(v[2], low6);
    const __m256i min4 = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi32(v[3], 4), low4),
                                         _mm256_and_si256(_mm256_srli_epi32(v[2], 2), top2));
    for (int32_t i = 0; i < 4; i++) {
        s->scale[i] = avx2_twice_u8(scale0, i);
        s->scale[4 + i] = avx2_twice_u8(scale4, i);
        s->pair[i] = avx2_twice_u8(min0, i);
        s->pair[4 + i] = avx2_twice_u8(min4, i);
    }
}

AVX2_INLINE void avx2_unit_nibbles(const avx2_rows *rows, size_t at, __m256i q[8]) {
    const __m256i low4 = _mm256_set1_epi8(15);
    __m256i v[4];
    avx2_turn16(rows, at, v);
    q[0] = _mm256_and_si256(v[0], low4);
    q[1] = _mm256_and_si256(v[1], low4);
    q[2] = _mm256_and_si256(v[2], low4);
    q[3] = _mm256_and_si256(v[3], low4);
    q[4] = _mm256_and_si256(_mm256_srli_epi16(v[0], 4), low4);
    q[5] = _mm256_and_si256(_mm256_srli_epi16(v[1], 4), low4);
    q[6] = _mm256_and_si256(_mm256_srli_epi16(v[2], 4), low4);
    q[7] = _mm256_and_si256(_mm256_srli_epi16(v[3], 4), low4);
}

AVX2_INLINE void avx2_unit_q4_k(const avx2_rows *rows, size_t at, int32_t u, avx2_super *s,
                                __m256i q[8]) {
    (void)s;
    avx2_unit_nibbles(rows, at + 16 + (size_t)u * 16, q);
}

AVX2_INLINE void avx2_begin_q5_k(const avx2_rows *rows, size_t at, avx2_super *s) {
    avx2_begin_k4(rows, at, s);
    avx2_turn16(rows, at + 16, s->high);
    avx2_turn16(rows, at + 32, s->high + 4);
}

/* One vector's upper bits: bit 0 of each byte tops the first run, bit 1 the second; then two bits on. */
AVX2_INLINE void avx2_top_q5(__m256i *high, __m256i *first, __m256i *second) {
    const __m256i sixteen = _mm256_set1_epi8(16);
    *first = _mm256_or_si256(*first, _mm256_and_si256(_mm256_slli_epi16(*high, 4), sixteen));
    *second = _mm256_or_si256(*second, _mm256_and_si256(_mm256_slli_epi16(*high, 3), sixteen));
    *high = _mm256_srli_epi16(*high, 2);
}

AVX2_INLINE void avx2_unit_q5_k(const avx2_rows *rows, size_t at, int32_t u, avx2_super *s,
                                __m256i q[8]) {
    __m256i *high = s->high + 4 * (u & 1);
    avx2_unit_nibbles(rows, at + 48 + (size_t)u * 16, q);
    avx2_top_q5(high, &q[0], &q[4]);
    avx2_top_q5(high + 1, &q[1], &q[5]);
    avx2_top_q5(high + 2, &q[2], &q[6]);
    avx2_top_q5(high + 3, &q[3], &q[7]);
}

/* ---- Q6_K ---- */

AVX2_INLINE void avx2_begin_q6_k(const avx2_rows *rows, size_t at, avx2_super *s) {
    __m256i v[4];
    s->d = avx2_turn_half(rows, at + 208);
    avx2_turn16(rows, at + 192, v);
    avx2_scales_i8(v, s->scale);
    avx2_pairs_i8(v, s->pair);
}

/* Bits 0 and 1 top the first run, bits 4 and 5 the second; then two bits on. */
AVX2_INLINE void avx2_top_q6(__m256i *high, __m256i *first, __m256i *second) {
    const __m256i mask = _mm256_set1_epi8(0x30);
    *first = _mm256_or_si256(*first, _mm256_and_si256(_mm256_slli_epi16(*high, 4), mask));
    *second = _mm256_or_si256(*second, _mm256_and_si256(*high, mask));
    *high = _mm256_srli_epi16(*high, 2);
}

/* Units are (half n of the block, half h of 32, which 32 of 64): 4 n + 2 h + a. */
AVX2_INLINE void avx2_unit_q6_k(const avx2_rows *rows, size_t at, int32_t u, avx2_super *s,
                                __m256i q[8]) {
    const size_t n = (size_t)u >> 2;
    const size_t h = ((size_t)u >> 1) & 1;
    const size_t a = (size_t)u & 1;
    if (a == 0) {
        avx2_turn16(rows, at + 128 + 32 * n + 16 * h, s->high);
    }
    avx2_unit_nibbles(rows, at + 64 * n + 32 * a + 16 * h, q);
    avx2_top_q6(s->high, &q[0], &q[4]);
    avx2_top_q6(s->high + 1, &q[1], &q[5]);
    avx2_top_q6(s->high + 2, &q[2], &q[6]);
    avx2_top_q6(s->high + 3, &q[3], &q[7]);
}

/* ---- Q2_K and Q3_K: units are (half n of the block, half h of 32, which 64 of 128) ---- */

AVX2_INLINE void avx2_begin_q2_k(const avx2_rows *rows, size_t at, avx2_super *s) {
    const __m256i low4 = _mm256_set1_epi8(15);
    __m256i v[4];
    __m256i min[4];
    avx2_halves(avx2_turn4(rows, at + 80), &s->d, &s->dmin);
    avx2_turn16(rows, at, v);
    for (int32_t k = 0; k < 4; k++) {
        min[k] = _mm256_and_si256(_mm256_srli_epi16(v[k], 4), low4);
        v[k] = _mm256_and_si256(v[k], low4);
    }
    avx2_scales_u8(v, s->scale);
    avx2_pairs_i8(min, s->pair);
}

AVX2_INLINE void avx2_unit_twos(const avx2_rows *rows, size_t at, int32_t u, avx2_super *s,
                                __m256i q[8]) {
    const __m256i three = _mm256_set1_epi8(3);
    if ((u & 1) == 0) {
        avx2_turn16(rows, at + (size_t)u / 2 * 16, s->part);
    }
    for (int32_t k = 0; k < 4; k++) {
        q[k] = _mm256_and_si256(s->part[k], three);
        q[k + 4] = _mm256_and_si256(_mm256_srli_epi16(s->part[k], 2), three);
        s->part[k] = _mm256_srli_epi16(s->part[k], 4);
    }
}

AVX2_INLINE void avx2_unit_q2_k(const avx2_rows *rows, size_t at, int32_t u, avx2_super *s,
                                __m256i q[8]) {
    avx2_unit_twos(rows, at + 16, u, s, q);
}

AVX2_INLINE void avx2_begin_q3_k(const avx2_rows *rows, size_t at, avx2_super *s) {
    const __m256i low4 = _mm256_set1_epi8(0x0f);
    const __m256i top2 = _mm256_set1_epi8(0x30);
    const __m256i off = _mm256_set1_epi8(32);
    const __m256i a = avx2_turn4(rows, at + 96);
    const __m256i b = avx2_turn4(rows, at + 100);
    const __m256i c = avx2_turn4(rows, at + 104);
    __m256i v[4];
    s->d = avx2_turn_half(rows, at + 108);
    v[0] =
        _mm256_or_si256(_mm256_and_si256(a, low4), _mm256_and_si256(_mm256_slli_epi32(c, 4), top2));
    v[1] =
        _mm256_or_si256(_mm256_and_si256(b, low4), _mm256_and_si256(_mm256_slli_epi32(c, 2), top2));
    v[2] =
        _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi32(a, 4), low4), _mm256_and_si256(c, top2));
    v[3] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi32(b, 4), low4),
                           _mm256_and_si256(_mm256_srli_epi32(c, 2), top2));
    for (int32_t k = 0; k < 4; k++) {
        v[k] = _mm256_sub_epi8(v[k], off);
    }
    avx2_scales_i8(v, s->scale);
    avx2_pairs_i8(v, s->pair);
    avx2_turn16(rows, at, s->high);
    avx2_turn16(rows, at + 16, s->high + 4);
}

AVX2_INLINE void avx2_unit_q3_k(const avx2_rows *rows, size_t at, int32_t u, avx2_super *s,
                                __m256i q[8]) {
    const __m256i four = _mm256_set1_epi8(4);
    __m256i *high = s->high + 4 * ((u >> 1) & 1);
    avx2_unit_twos(rows, at + 32, u, s, q);
    for (int32_t k = 0; k < 4; k++) {
        const __m256i first = _mm256_and_si256(_mm256_slli_epi16(high[k], 2), four);
        const __m256i second = _mm256_and_si256(_mm256_slli_epi16(high[k], 1), four);
        q[k] = _mm256_or_si256(q[k], first);
        q[k + 4] = _mm256_or_si256(q[k + 4], second);
        high[k] = _mm256_srli_epi16(high[k], 2);
    }
}

/* ---- IQ4_XS ---- */

AVX2_INLINE void avx2_begin_iq4_xs(const avx2_rows *rows, size_t at, avx2_super *s) {
    const __m256i both = avx2_turn4(rows, at);
    __m256i low = avx2_turn4(rows, at + 4);
    __m256i high = _mm256_srli_epi32(both, 12); /* scales_h, its pair 0 at bits 4 and 5 */
    __m256 unused;
    avx2_halves(both, &s->d, &unused);
    for (int32_t g = 0; g < 8; g++) {
        const __m256i v = _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi32(15)),
                                          _mm256_and_si256(high, _mm256_set1_epi32(0x30)));
        const __m256i twice = _mm256_or_si256(v, _mm256_slli_epi32(v, 16));
        s->scale[g] = _mm256_sub_epi16(twice, _mm256_set1_epi16(32));
        low = _mm256_srli_epi32(low, 4);
        high = _mm256_srli_epi32(high, 2);
    }
}

AVX2_INLINE void avx2_unit_iq4_xs(const avx2_rows *rows, size_t at, int32_t u, avx2_super *s,
                                  __m256i q[8]) {
    const __m256i values = _mm256_broadcastsi128_si256(_mm_setr_epi8(KERN_IQ4_VALUES));
    (void)s;
    avx2_unit_nibbles(rows, at + 8 + (size_t)u * 16, q);
    for (int32_t k = 0; k < 8; k++) {
        q[k] = _mm256_shuffle_epi8(values, q[k]);
    }
}

/* ---- the products ---- */

#define MK_NAME avx2_mul_q2_k
#define MK_BYTES 84
#define MK_BEGIN avx2_begin_q2_k
#define MK_UNIT avx2_unit_q2_k
#define MK_FIRST(u) (((u) >> 2) * 128 + ((u)&1) * 64 + (((u) >> 1) & 1) * 16)
#define MK_GAP 32
#define MK_GROUP 16
#define MK_DOT avx2_dot16_four
#define MK_MIN 1
#include "kern/avx2_mulk_body.h"

#define MK_NAME avx2_mul_q3_k
#define MK_BYTES 110
#define MK_BEGIN avx2_begin_q3_k
#define MK_UNIT avx2_unit_q3_k
#define MK_FIRST(u) (((u) >> 2) * 128 + ((u)&1) * 64 + (((u) >> 1) & 1) * 16)
#define MK_GAP 32
#define MK_GROUP 16
#define MK_DOT avx2_dot16_four
#define MK_MIN 0
#define MK_START avx2_start_minus4
#include "kern/avx2_mulk_body.h"

#define MK_NAME avx2_mul_q4_k
#define MK_BYTES 144
#define MK_BEGIN avx2_begin_k4
#define MK_UNIT avx2_unit_q4_k
#define MK_FIRST(u) (((u) >> 1) * 64 + ((u)&1) * 16)
#define MK_GAP 32
#define MK_GROUP 32
#define MK_DOT avx2_dot16_four
#define MK_MIN 1
#include "kern/avx2_mulk_body.h"

#define MK_NAME avx2_mul_q5_k
#define MK_BYTES 176
#define MK_BEGIN avx2_begin_q5_k
#define MK_UNIT avx2_unit_q5_k
#define MK_FIRST(u) (((u) >> 1) * 64 + ((u)&1) * 16)
#define MK_GAP 32
#define MK_GROUP 32
#define MK_DOT avx2_dot16_four
#define MK_MIN 1
#include "kern/avx2_mulk_body.h"

#define MK_NAME avx2_mul_q6_k
#define MK_BYTES 210
#define MK_BEGIN avx2_begin_q6_k
#define MK_UNIT avx2_unit_q6_k
#define MK_FIRST(u) (((u) >> 2) * 128 + ((u)&1) * 32 + (((u) >> 1) & 1) * 16)
#define MK_GAP 64
#define MK_GROUP 16
#define MK_DOT avx2_dot16_two
#define MK_MIN 0
#define MK_START avx2_start_minus32
#include "kern/avx2_mulk_body.h"

#define MK_NAME avx2_mul_iq4_xs
#define MK_BYTES 136
#define MK_BEGIN avx2_begin_iq4_xs
#define MK_UNIT avx2_unit_iq4_xs
#define MK_FIRST(u) ((u)*32)
#define MK_GAP 16
#define MK_GROUP 32
#define MK_DOT avx2_dot16_signed
#define MK_MIN 0
#define MK_START avx2_start_zero
#include "kern/avx2_mulk_body.h"

void sl_kern_avx2_mulk(sl_kern *kern) {
    kern->mul[SL_QTYPE_Q2_K] = (sl_mul_slot){avx2_mul_q2_k, SL_ACT_Q8_256};
    kern->mul[SL_QTYPE_Q3_K] = (sl_mul_slot){avx2_mul_q3_k, SL_ACT_Q8_256};
    kern->mul[SL_QTYPE_Q4_K] = (sl_mul_slot){avx2_mul_q4_k, SL_ACT_Q8_256};
    kern->mul[SL_QTYPE_Q5_K] = (sl_mul_slot){avx2_mul_q5_k, SL_ACT_Q8_256};
    kern->mul[SL_QTYPE_Q6_K] = (sl_mul_slot){avx2_mul_q6_k, SL_ACT_Q8_256};
    kern->mul[SL_QTYPE_IQ4_XS] = (sl_mul_slot){avx2_mul_iq4_xs, SL_ACT_Q8_256};
}

#else

void sl_kern_avx2_mulk(sl_kern *kern) { (void)kern; }

#endif
