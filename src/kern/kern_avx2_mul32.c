/* kern_avx2_mul32.c - matrix products of the types with blocks of 32 elements, AVX2.
 *
 * Each type says how eight rows' blocks unpack to bytes (avx2.h has the drawing) and how such bytes meet activations;
 * avx2_mul32_body.h has the loops.
 *
 * Unsigned quants (nibbles, five bits) multiply as they are, and the offset is one more float step with the sum of the
 * activations. Their products are small enough to be added as int16 first: eight of 2 * 15 * 127, four of 2 * 31 * 127.
 *
 * Threads     any. */
#include "kern/fills.h"

#if defined(__x86_64__)

#include "kern/avx2.h"
#include "kern/avx2_tile.h"

/* ---- unpacking ---- */

AVX2_INLINE void avx2_nibbles(const avx2_rows *rows, size_t at, __m256i q[8]) {
    const __m256i low = _mm256_set1_epi8(15);
    __m256i v[4];
    avx2_turn16(rows, at, v);
    q[0] = _mm256_and_si256(v[0], low);
    q[1] = _mm256_and_si256(v[1], low);
    q[2] = _mm256_and_si256(v[2], low);
    q[3] = _mm256_and_si256(v[3], low);
    q[4] = _mm256_and_si256(_mm256_srli_epi16(v[0], 4), low);
    q[5] = _mm256_and_si256(_mm256_srli_epi16(v[1], 4), low);
    q[6] = _mm256_and_si256(_mm256_srli_epi16(v[2], 4), low);
    q[7] = _mm256_and_si256(_mm256_srli_epi16(v[3], 4), low);
}

/* Bits 4 g .. 4 g + 3 of each row's dword to bit 4 of the four bytes of q[g]: spread the byte that has them, single
 * out one bit a byte, and compare. */
AVX2_INLINE __m256i avx2_fifth(__m256i spread, __m256i bit) {
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
    return _mm256_and_si256(set, _mm256_set1_epi8(16));
}

AVX2_INLINE void avx2_fives(const avx2_rows *rows, size_t at_high, size_t at, __m256i q[8]) {
    const __m256i high = avx2_turn4(rows, at_high);
    const __m256i first = _mm256_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12, 0, 0,
                                           0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12);
    const __m256i one = _mm256_set1_epi8(1);
    const __m256i even = _mm256_set1_epi32(0x08040201);
    const __m256i odd = _mm256_slli_epi16(even, 4);
    const __m256i b0 = _mm256_shuffle_epi8(high, first);
    const __m256i i1 = _mm256_add_epi8(first, one);
    const __m256i b1 = _mm256_shuffle_epi8(high, i1);
    const __m256i i2 = _mm256_add_epi8(i1, one);
    const __m256i b2 = _mm256_shuffle_epi8(high, i2);
    const __m256i b3 = _mm256_shuffle_epi8(high, _mm256_add_epi8(i2, one));
    avx2_nibbles(rows, at, q);
    q[0] = _mm256_or_si256(q[0], avx2_fifth(b0, even));
    q[1] = _mm256_or_si256(q[1], avx2_fifth(b0, odd));
    q[2] = _mm256_or_si256(q[2], avx2_fifth(b1, even));
    q[3] = _mm256_or_si256(q[3], avx2_fifth(b1, odd));
    q[4] = _mm256_or_si256(q[4], avx2_fifth(b2, even));
    q[5] = _mm256_or_si256(q[5], avx2_fifth(b2, odd));
    q[6] = _mm256_or_si256(q[6], avx2_fifth(b3, even));
    q[7] = _mm256_or_si256(q[7], avx2_fifth(b3, odd));
}

AVX2_INLINE void avx2_unpack_q4_0(const avx2_rows *rows, size_t at, __m256i q[8], __m256 *d,
                                  __m256 *m) {
    *d = avx2_turn_half(rows, at);
    *m = _mm256_mul_ps(*d, _mm256_set1_ps(-8.0f));
    avx2_nibbles(rows, at + 2, q);
}

AVX2_INLINE void avx2_unpack_q4_1(const avx2_rows *rows, size_t at, __m256i q[8], __m256 *d,
                                  __m256 *m) {
    avx2_halves(avx2_turn4(rows, at), d, m);
    avx2_nibbles(rows, at + 4, q);
}

AVX2_INLINE void avx2_unpack_q5_0(const avx2_rows *rows, size_t at, __m256i q[8], __m256 *d,
                                  __m256 *m) {
    *d = avx2_turn_half(rows, at);
    *m = _mm256_mul_ps(*d, _mm256_set1_ps(-16.0f));
    avx2_fives(rows, at + 2, at + 6, q);
}

AVX2_INLINE void avx2_unpack_q5_1(const avx2_rows *rows, size_t at, __m256i q[8], __m256 *d,
                                  __m256 *m) {
    avx2_halves(avx2_turn4(rows, at), d, m);
    avx2_fives(rows, at + 4, at + 8, q);
}

AVX2_INLINE void avx2_unpack_q8_0(const avx2_rows *rows, size_t at, __m256i q[8], __m256 *d,
                                  __m256 *m) {
    *d = avx2_turn_half(rows, at);
    *m = _mm256_setzero_ps();
    avx2_turn16(rows, at + 2, q);
    avx2_turn16(rows, at + 18, q + 4);
}

AVX2_INLINE void avx2_unpack_iq4_nl(const avx2_rows *rows, size_t at, __m256i q[8], __m256 *d,
                                    __m256 *m) {
    const __m256i values = _mm256_broadcastsi128_si256(_mm_setr_epi8(KERN_IQ4_VALUES));
    *d = avx2_turn_half(rows, at);
    *m = _mm256_setzero_ps();
    avx2_nibbles(rows, at + 2, q);
    q[0] = _mm256_shuffle_epi8(values, q[0]);
    q[1] = _mm256_shuffle_epi8(values, q[1]);
    q[2] = _mm256_shuffle_epi8(values, q[2]);
    q[3] = _mm256_shuffle_epi8(values, q[3]);
    q[4] = _mm256_shuffle_epi8(values, q[4]);
    q[5] = _mm256_shuffle_epi8(values, q[5]);
    q[6] = _mm256_shuffle_epi8(values, q[6]);
    q[7] = _mm256_shuffle_epi8(values, q[7]);
}

/* ---- dot products of 32 elements ---- */

AVX2_INLINE __m256i avx2_dot32_nibbles(const __m256i q[8], const int8_t *x) {
    __m256i sum = avx2_dot_four(q, x);
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(q[4], avx2_spread4(x + 16)));
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(q[5], avx2_spread4(x + 20)));
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(q[6], avx2_spread4(x + 24)));
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(q[7], avx2_spread4(x + 28)));
    return _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
}

AVX2_INLINE __m256i avx2_dot32_fives(const __m256i q[8], const int8_t *x) {
    const __m256i one = _mm256_set1_epi16(1);
    return _mm256_add_epi32(_mm256_madd_epi16(avx2_dot_four(q, x), one),
                            _mm256_madd_epi16(avx2_dot_four(q + 4, x + 16), one));
}

AVX2_INLINE __m256i avx2_dot4_signed(__m256i w, const int8_t *x) {
    return _mm256_madd_epi16(avx2_dot_signed(w, x), _mm256_set1_epi16(1));
}

AVX2_INLINE __m256i avx2_dot32_signed(const __m256i q[8], const int8_t *x) {
    const __m256i a = _mm256_add_epi32(avx2_dot4_signed(q[0], x), avx2_dot4_signed(q[1], x + 4));
    const __m256i b =
        _mm256_add_epi32(avx2_dot4_signed(q[2], x + 8), avx2_dot4_signed(q[3], x + 12));
    const __m256i c =
        _mm256_add_epi32(avx2_dot4_signed(q[4], x + 16), avx2_dot4_signed(q[5], x + 20));
    const __m256i d =
        _mm256_add_epi32(avx2_dot4_signed(q[6], x + 24), avx2_dot4_signed(q[7], x + 28));
    return _mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d));
}

/* ---- the products ---- */

#define M32_NAME avx2_mul_q4_0
#define M32_BYTES 18
#define M32_UNPACK avx2_unpack_q4_0
#define M32_DOT avx2_dot32_nibbles
#define M32_OFFSET 1
#include "kern/avx2_mul32_body.h"

#define M32_NAME avx2_mul_q4_1
#define M32_BYTES 20
#define M32_UNPACK avx2_unpack_q4_1
#define M32_DOT avx2_dot32_nibbles
#define M32_OFFSET 1
#include "kern/avx2_mul32_body.h"

#define M32_NAME avx2_mul_q5_0
#define M32_BYTES 22
#define M32_UNPACK avx2_unpack_q5_0
#define M32_DOT avx2_dot32_fives
#define M32_OFFSET 1
#include "kern/avx2_mul32_body.h"

#define M32_NAME avx2_mul_q5_1
#define M32_BYTES 24
#define M32_UNPACK avx2_unpack_q5_1
#define M32_DOT avx2_dot32_fives
#define M32_OFFSET 1
#include "kern/avx2_mul32_body.h"

#define M32_NAME avx2_mul_q8_0
#define M32_BYTES 34
#define M32_UNPACK avx2_unpack_q8_0
#define M32_DOT avx2_dot32_signed
#define M32_OFFSET 0
#include "kern/avx2_mul32_body.h"

#define M32_NAME avx2_mul_iq4_nl
#define M32_BYTES 18
#define M32_UNPACK avx2_unpack_iq4_nl
#define M32_DOT avx2_dot32_signed
#define M32_OFFSET 0
#include "kern/avx2_mul32_body.h"

void sl_kern_avx2_mul32(sl_kern *kern) {
    kern->mul[SL_QTYPE_Q4_0] = (sl_mul_slot){avx2_mul_q4_0, SL_ACT_Q8_32};
    kern->mul[SL_QTYPE_Q4_1] = (sl_mul_slot){avx2_mul_q4_1, SL_ACT_Q8_32};
    kern->mul[SL_QTYPE_Q5_0] = (sl_mul_slot){avx2_mul_q5_0, SL_ACT_Q8_32};
    kern->mul[SL_QTYPE_Q5_1] = (sl_mul_slot){avx2_mul_q5_1, SL_ACT_Q8_32};
    kern->mul[SL_QTYPE_Q8_0] = (sl_mul_slot){avx2_mul_q8_0, SL_ACT_Q8_32};
    kern->mul[SL_QTYPE_IQ4_NL] = (sl_mul_slot){avx2_mul_iq4_nl, SL_ACT_Q8_32};
}

#else

void sl_kern_avx2_mul32(sl_kern *kern) { (void)kern; }

#endif
