/* blocks.h - what the kernels of all instruction sets share: block layouts, half floats, constants.
 *
 * Layouts, all little-endian, one block each (GGUF's):
 *
 *     type    elements  bytes  layout
 *     Q4_0        32      18   d f16 | qs 16          w = d (q - 8)       byte j: element j low, j + 16 high nibble
 *     Q4_1        32      20   d f16 | m f16 | qs 16  w = d q + m
 *     Q5_0        32      22   d f16 | qh 4 | qs 16   w = d (q - 16)      bit j of qh: fifth bit of element j
 *     Q5_1        32      24   d f16 | m f16 | qh 4 | qs 16               w = d q + m
 *     Q8_0        32      34   d f16 | qs 32          w = d q             signed
 *     IQ4_NL      32      18   d f16 | qs 16          w = d table[q]      nibbles as Q4_0
 *     Q2_K       256      84   scales 16 | qs 64 | d f16 | dmin f16       w = d sc q - dmin m; scales: sc low, m high
 *     Q3_K       256     110   hmask 32 | qs 64 | scales 12 | d f16       w = d (sc - 32) (q - 4)
 *     Q4_K       256     144   d f16 | dmin f16 | scales 12 | qs 128      w = d sc q - dmin m
 *     Q5_K       256     176   d f16 | dmin f16 | scales 12 | qh 32 | qs 128
 *     Q6_K       256     210   ql 128 | qh 64 | scales 16 | d f16         w = d sc (q - 32); sc signed
 *     IQ4_XS     256     136   d f16 | scales_h u16 | scales_l 4 | qs 128 w = d (sc - 32) table[q]
 *
 * How elements and their bits lie inside a 256-block is told beside the code that unpacks it (kern_scalar_mulk.c). */
#ifndef SL_KERN_BLOCKS_H
#define SL_KERN_BLOCKS_H

#include <stdint.h>
#include <string.h>

#include "kern/kern.h"

/* The sixteen values of the non-linear 4-bit types. */
#define KERN_IQ4_VALUES -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113

/* exp(x) = 2^n exp(r), n = round(x / ln 2), r = x - n ln 2 in two steps: the high part has 15 bits, so that its
 * product with n is exact. Below LOW the result is 0 after rounding, above HIGH infinity. exp(r) is Taylor's series to
 * the seventh power: |r| <= 0.35 leaves an error of 5e-9. */
#define KERN_EXP_LOW (-104.5f)
#define KERN_EXP_HIGH 89.0f
#define KERN_LOG2E 1.44269504f
#define KERN_LN2_HIGH 0.693145752f
#define KERN_LN2_LOW 1.42860677e-06f
#define KERN_ROUND \
    12582912.0f /* 1.5 * 2^23: adding it leaves the rounded integer in the low bits */

/* gelu_tanh(g) = g / (1 + exp(-g (A + B g^2))): 2 sqrt(2 / pi), and that times 0.044715. */
#define KERN_GELU_A 1.5957691216057308
#define KERN_GELU_B 0.07135481627260025

/* tanh(x) = x + x^3 P(x^2) for |x| <= 0.625, P interpolated at Chebyshev nodes: relative error below 1e-9. Beyond, the
 * exponential form loses no accuracy. */
#define KERN_TANH_SMALL 0.625f
#define KERN_TANH_0 (-0.3333333317f)
#define KERN_TANH_1 0.1333330356f
#define KERN_TANH_2 (-0.0539592596f)
#define KERN_TANH_3 0.0217689187f
#define KERN_TANH_4 (-0.0083439455f)
#define KERN_TANH_5 0.0022927448f

static inline uint16_t kern_u16(const uint8_t *p) {
    return (uint16_t)(p[0] | ((unsigned)p[1] << 8));
}

static inline uint32_t kern_u32(const uint8_t *p) {
    return (uint32_t)p[0] | ((uint32_t)p[1] << 8) | ((uint32_t)p[2] << 16) | ((uint32_t)p[3] << 24);
}

static inline uint32_t kern_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float kern_float(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Exact for every half: shift exponent and mantissa into place and correct the bias by a product with 2^112, which also
 * normalises subnormals; infinities and NaN get the largest exponent. Inline, because rows of halves are long. */
static inline float kern_half(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t body = (uint32_t)(h & 0x7fffu) << 13;
    const uint32_t special = body >= 0x0f800000u ? 0x7f800000u : 0u;
    return kern_float(kern_bits(kern_float(body) * 0x1p112f) | special | sign);
}

static inline float kern_half_at(const uint8_t *p) { return kern_half(kern_u16(p)); }

/* The 12 bytes of Q4_K and Q5_K: 8 scales, then 8 minima, six bits each. Bytes 0..3 hold scales 0..3 and bytes 4..7
 * minima 0..3 in their low six bits; bytes 8..11 hold the low four bits of scales (low nibble) and minima (high) 4..7,
 * whose upper two bits are the top bits of bytes 0..3 and 4..7. Four at a time in a word. */
static inline void kern_scales_k4(const uint8_t *src, uint32_t out[4]) {
    const uint32_t a = kern_u32(src);
    const uint32_t b = kern_u32(src + 4);
    const uint32_t c = kern_u32(src + 8);
    out[0] = a & 0x3f3f3f3fu;
    out[1] = (c & 0x0f0f0f0fu) | ((a >> 2) & 0x30303030u);
    out[2] = b & 0x3f3f3f3fu;
    out[3] = ((c >> 4) & 0x0f0f0f0fu) | ((b >> 2) & 0x30303030u);
}

/* The 12 bytes of Q3_K: 16 scales of six bits, stored with 32 added. Bytes 0..7 hold the low four bits of scales 0..7
 * (low nibbles) and 8..15 (high); bytes 8..11 the upper two bits of scales i, i + 4, i + 8, i + 12. Out: as stored. */
static inline void kern_scales_k3(const uint8_t *src, uint32_t out[4]) {
    const uint32_t a = kern_u32(src);
    const uint32_t b = kern_u32(src + 4);
    const uint32_t c = kern_u32(src + 8);
    out[0] = (a & 0x0f0f0f0fu) | ((c << 4) & 0x30303030u);
    out[1] = (b & 0x0f0f0f0fu) | ((c << 2) & 0x30303030u);
    out[2] = ((a >> 4) & 0x0f0f0f0fu) | (c & 0x30303030u);
    out[3] = ((b >> 4) & 0x0f0f0f0fu) | ((c >> 2) & 0x30303030u);
}

#endif
