/* quant_k.c - blocks of 256 elements in groups whose scales are small integers: Q2_K to Q6_K.
 *
 *     type   offset  size  meaning                                              element (group g)
 *     Q2_K      0     16   byte g: scale (low 4 bits) and min (high 4 bits)     d * sc * q - dmin * m
 *              16     64   q, 2 bits each                                       16 groups of 16
 *              80      2   d, half
 *              82      2   dmin, half
 *     Q3_K      0     32   third bits of q, 1 bit each                          d * (sc - 32) * (q - 4)
 *              32     64   q, the lower 2 bits each                             16 groups of 16
 *              96     12   scales, 6 bits each
 *             108      2   d, half
 *     Q4_K      0      2   d, half                                              d * sc * q - dmin * m
 *               2      2   dmin, half                                           8 groups of 32
 *               4     12   scales and mins, 6 bits each
 *              16    128   q, 4 bits each
 *     Q5_K      0      2   d, half                                              d * sc * q - dmin * m
 *               2      2   dmin, half                                           8 groups of 32
 *               4     12   scales and mins, 6 bits each
 *              16     32   fifth bits of q, 1 bit each
 *              48    128   q, the lower 4 bits each
 *     Q6_K      0    128   q, the lower 4 bits each                             d * sc * (q - 32)
 *             128     64   q, the upper 2 bits each                             16 groups of 16
 *             192     16   scales, signed bytes
 *             208      2   d, half
 *
 * Where the bits of element i are:
 *
 *     2 bits   (Q2_K, Q3_K)  byte 32 * (i / 128) + i % 32, bits 2 * (i / 32 % 4) and up
 *     1 bit    (Q3_K, Q5_K)  byte i % 32, bit i / 32
 *     4 bits   (Q4_K, Q5_K)  byte 32 * (i / 64) + i % 32, the high half if i / 32 is odd
 *     4 bits   (Q6_K)        byte 64 * (i / 128) + i % 64, the high half if i / 64 is odd
 *     upper 2  (Q6_K)        byte 32 * (i / 128) + i % 32, bits 2 * (i / 32 % 4) and up
 *
 * Decoders take an element's product as (d * sc) * q: the field's order, to the bit. Encoders are quant_fit.c's search
 * and the packing here.
 *
 * Threads     any. */
#include "quant/quant_codec.h"
#include "quant/quant_fit.h"

#define K_ELEM 256

/* Six bits of scale and six of min for group g of 8. The first four groups have them whole in bytes g and 4 + g; the
 * others have their lower halves in byte 4 + g and the upper two bits on top of the first four's. */
static inline void k_get_scale_min(const uint8_t *p, int32_t g, int32_t *scale, int32_t *min) {
    if (g < 4) {
        *scale = p[g] & 63;
        *min = p[4 + g] & 63;
    } else {
        *scale = (p[4 + g] & 15) | ((p[g - 4] >> 6) << 4);
        *min = (p[4 + g] >> 4) | ((p[g] >> 6) << 4);
    }
}

static void k_put_scales_mins(uint8_t p[12], const int32_t *scale, const int32_t *min) {
    for (int32_t g = 0; g < 4; g++) {
        p[g] = (uint8_t)(scale[g] | ((scale[4 + g] >> 4) << 6));
        p[4 + g] = (uint8_t)(min[g] | ((min[4 + g] >> 4) << 6));
        p[8 + g] = (uint8_t)((scale[4 + g] & 15) | ((min[4 + g] & 15) << 4));
    }
}

/* Q3_K's six bits, stored with 32 added: lower halves of groups g and 8 + g in byte g, the upper two bits of groups g,
 * 4 + g, 8 + g and 12 + g in byte 8 + g. */
static inline int32_t k_get_scale_signed(const uint8_t *p, int32_t g) {
    const int32_t low = g < 8 ? p[g] & 15 : p[g - 8] >> 4;
    const int32_t high = (p[8 + g % 4] >> (2 * (g / 4))) & 3;
    return (low | (high << 4)) - 32;
}

static void k_put_scales_signed(uint8_t p[12], const int32_t *scale) {
    memset(p, 0, 12);
    for (int32_t g = 0; g < 16; g++) {
        const unsigned stored = (unsigned)(scale[g] + 32);
        p[g % 8] = (uint8_t)(p[g % 8] | ((stored & 15u) << (4 * (g / 8))));
        p[8 + g % 4] = (uint8_t)(p[8 + g % 4] | ((stored >> 4) << (2 * (g / 4))));
    }
}

void sl_decode_q2_k(const uint8_t *src, float *dst, int64_t n) {
    for (; n >= K_ELEM; n -= K_ELEM, src += 84, dst += K_ELEM) {
        const float d = quant_get_half(src + 80);
        const float dmin = quant_get_half(src + 82);
        for (int32_t g = 0; g < 16; g++) {
            const float step = d * (float)(src[g] & 15);
            const float low = dmin * (float)(src[g] >> 4);
            const uint8_t *q = src + 16 + 32 * (g / 8) + 16 * (g % 2);
            const int32_t shift = 2 * (g / 2 % 4);
            for (int32_t l = 0; l < 16; l++) {
                dst[16 * g + l] = step * (float)((q[l] >> shift) & 3) - low;
            }
        }
    }
}

void sl_decode_q3_k(const uint8_t *src, float *dst, int64_t n) {
    for (; n >= K_ELEM; n -= K_ELEM, src += 110, dst += K_ELEM) {
        const float d = quant_get_half(src + 108);
        for (int32_t g = 0; g < 16; g++) {
            const float step = d * (float)k_get_scale_signed(src + 96, g);
            const uint8_t *third = src + 16 * (g % 2);
            const uint8_t *q = src + 32 + 32 * (g / 8) + 16 * (g % 2);
            const int32_t shift = 2 * (g / 2 % 4);
            for (int32_t l = 0; l < 16; l++) {
                const int32_t low = (q[l] >> shift) & 3;
                const int32_t high = (third[l] >> (g / 2)) & 1;
                dst[16 * g + l] = step * (float)((low | (high << 2)) - 4);
            }
        }
    }
}

void sl_decode_q4_k(const uint8_t *src, float *dst, int64_t n) {
    for (; n >= K_ELEM; n -= K_ELEM, src += 144, dst += K_ELEM) {
        const float d = quant_get_half(src);
        const float dmin = quant_get_half(src + 2);
        for (int32_t g = 0; g < 8; g++) {
            int32_t scale;
            int32_t min;
            k_get_scale_min(src + 4, g, &scale, &min);
            const float step = d * (float)scale;
            const float low = dmin * (float)min;
            const uint8_t *q = src + 16 + 32 * (g / 2);
            const int32_t shift = 4 * (g % 2);
            for (int32_t l = 0; l < 32; l++) {
                dst[32 * g + l] = step * (float)((q[l] >> shift) & 15) - low;
            }
        }
    }
}

void sl_decode_q5_k(const uint8_t *src, float *dst, int64_t n) {
    for (; n >= K_ELEM; n -= K_ELEM, src += 176, dst += K_ELEM) {
        const float d = quant_get_half(src);
        const float dmin = quant_get_half(src + 2);
        const uint8_t *fifth = src + 16;
        for (int32_t g = 0; g < 8; g++) {
            int32_t scale;
            int32_t min;
            k_get_scale_min(src + 4, g, &scale, &min);
            const float step = d * (float)scale;
            const float low = dmin * (float)min;
            const uint8_t *q = src + 48 + 32 * (g / 2);
            const int32_t shift = 4 * (g % 2);
            for (int32_t l = 0; l < 32; l++) {
                const int32_t high = (fifth[l] >> g) & 1;
                dst[32 * g + l] = step * (float)(((q[l] >> shift) & 15) | (high << 4)) - low;
            }
        }
    }
}

void sl_decode_q6_k(const uint8_t *src, float *dst, int64_t n) {
    for (; n >= K_ELEM; n -= K_ELEM, src += 210, dst += K_ELEM) {
        const float d = quant_get_half(src + 208);
        for (int32_t g = 0; g < 16; g++) {
            const float step = d * (float)(int8_t)src[192 + g];
            const uint8_t *q = src + 64 * (g / 8) + 16 * (g % 4);
            const uint8_t *upper = src + 128 + 32 * (g / 8) + 16 * (g % 2);
            const int32_t shift = 4 * (g / 4 % 2);
            const int32_t shift_upper = 2 * (g / 2 % 4);
            for (int32_t l = 0; l < 16; l++) {
                const int32_t low = (q[l] >> shift) & 15;
                const int32_t high = (upper[l] >> shift_upper) & 3;
                dst[16 * g + l] = step * (float)((low | (high << 4)) - 32);
            }
        }
    }
}

/* The packings of the head comment. Each clears its bytes and ors in the bits from `shift` on of every code. */
static void k_put_two_bits(const uint8_t *code, int32_t shift, uint8_t dst[64]) {
    memset(dst, 0, 64);
    for (int32_t i = 0; i < K_ELEM; i++) {
        uint8_t *p = dst + 32 * (i / 128) + i % 32;
        *p = (uint8_t)(*p | (((code[i] >> shift) & 3) << (2 * (i / 32 % 4))));
    }
}

static void k_put_one_bit(const uint8_t *code, int32_t shift, uint8_t dst[32]) {
    memset(dst, 0, 32);
    for (int32_t i = 0; i < K_ELEM; i++) {
        dst[i % 32] = (uint8_t)(dst[i % 32] | (((code[i] >> shift) & 1) << (i / 32)));
    }
}

/* `run` elements in the low halves, then as many in the high halves of the same bytes. */
static void k_put_four_bits(const uint8_t *code, int32_t run, uint8_t dst[128]) {
    for (int32_t i = 0; i < K_ELEM / 2; i++) {
        const uint8_t *low = code + i / run * 2 * run + i % run;
        dst[i] = (uint8_t)((low[0] & 15) | ((low[run] & 15) << 4));
    }
}

void sl_encode_q2_k(const float *src, uint8_t *dst, int64_t n) {
    static const quant_affine shape = {.n_group = 16,
                                       .n_elem = 16,
                                       .code_high = 3,
                                       .scale_high = 15,
                                       .more_low = -0.6f,
                                       .more_high = 1.2f,
                                       .n_more = 10};
    for (; n >= K_ELEM; n -= K_ELEM, src += K_ELEM, dst += 84) {
        quant_block block;
        quant_fit_affine(&shape, src, &block);
        for (int32_t g = 0; g < 16; g++) {
            dst[g] = (uint8_t)(block.scale[g] | (block.min[g] << 4));
        }
        k_put_two_bits(block.code, 0, dst + 16);
        quant_put_u16(dst + 80, block.d);
        quant_put_u16(dst + 82, block.dmin);
    }
}

void sl_encode_q3_k(const float *src, uint8_t *dst, int64_t n) {
    static const quant_grid grid = {
        .low = -4, .high = 3, .ratio_low = 0.6f, .ratio_high = 1.15f, .n_ratio = 10};
    static const quant_scaled shape = {
        .grid = &grid, .n_group = 16, .n_elem = 16, .scale_low = -32, .scale_high = 31, .reach = 1};
    for (; n >= K_ELEM; n -= K_ELEM, src += K_ELEM, dst += 110) {
        quant_block block;
        quant_fit_scaled(&shape, src, &block);
        k_put_one_bit(block.code, 2, dst);
        k_put_two_bits(block.code, 0, dst + 32);
        k_put_scales_signed(dst + 96, block.scale);
        quant_put_u16(dst + 108, block.d);
    }
}

void sl_encode_q4_k(const float *src, uint8_t *dst, int64_t n) {
    static const quant_affine shape = {.n_group = 8,
                                       .n_elem = 32,
                                       .code_high = 15,
                                       .scale_high = 63,
                                       .more_low = -1.0f,
                                       .more_high = 1.5f,
                                       .n_more = 9};
    for (; n >= K_ELEM; n -= K_ELEM, src += K_ELEM, dst += 144) {
        quant_block block;
        quant_fit_affine(&shape, src, &block);
        quant_put_u16(dst, block.d);
        quant_put_u16(dst + 2, block.dmin);
        k_put_scales_mins(dst + 4, block.scale, block.min);
        k_put_four_bits(block.code, 32, dst + 16);
    }
}

void sl_encode_q5_k(const float *src, uint8_t *dst, int64_t n) {
    static const quant_affine shape = {.n_group = 8,
                                       .n_elem = 32,
                                       .code_high = 31,
                                       .scale_high = 63,
                                       .more_low = -1.0f,
                                       .more_high = 1.5f,
                                       .n_more = 9};
    for (; n >= K_ELEM; n -= K_ELEM, src += K_ELEM, dst += 176) {
        quant_block block;
        quant_fit_affine(&shape, src, &block);
        quant_put_u16(dst, block.d);
        quant_put_u16(dst + 2, block.dmin);
        k_put_scales_mins(dst + 4, block.scale, block.min);
        k_put_one_bit(block.code, 4, dst + 16);
        k_put_four_bits(block.code, 32, dst + 48);
    }
}

void sl_encode_q6_k(const float *src, uint8_t *dst, int64_t n) {
    static const quant_grid grid = {
        .low = -32, .high = 31, .ratio_low = 0.97f, .ratio_high = 1.03f, .n_ratio = 7};
    static const quant_scaled shape = {.grid = &grid,
                                       .n_group = 16,
                                       .n_elem = 16,
                                       .scale_low = -128,
                                       .scale_high = 127,
                                       .reach = 1};
    for (; n >= K_ELEM; n -= K_ELEM, src += K_ELEM, dst += 210) {
        quant_block block;
        quant_fit_scaled(&shape, src, &block);
        k_put_four_bits(block.code, 64, dst);
        k_put_two_bits(block.code, 4, dst + 128);
        for (int32_t g = 0; g < 16; g++) {
            dst[192 + g] = (uint8_t)(block.scale[g] & 255);
        }
        quant_put_u16(dst + 208, block.d);
    }
}
