/* quant_iq4.c - 4-bit codes that stand for sixteen values of unequal distance: IQ4_NL and IQ4_XS.
 *
 *     type     offset  size  meaning                                            element (group g)
 *     IQ4_NL      0      2   d, half                                            d * value[q]
 *                 2     16   q, 4 bits each                                     32 elements
 *     IQ4_XS      0      2   d, half                                            d * (sc - 32) * value[q]
 *                 2      2   upper 2 bits of the scales: bits 2 g, 2 g + 1      8 groups of 32
 *                 4      4   lower 4 bits of the scales: half g % 2 of byte g / 2
 *                 8    128   q, 4 bits each, 16 bytes a group
 *
 * Byte j of a group's 16 holds element j in its low and element j + 16 in its high half. The values lie closer around
 * zero, where most weights are; none of them is zero, the nearest is 1.
 *
 * Threads     any. */
#include "quant/quant_codec.h"
#include "quant/quant_fit.h"

static const int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};

static const quant_grid iq4_grid = {.low = -127,
                                    .high = 113,
                                    .values = iq4_values,
                                    .ratio_low = 0.75f,
                                    .ratio_high = 1.1f,
                                    .n_ratio = 9};

static void iq4_decode_group(const uint8_t *q, float step, float *dst) {
    for (int32_t j = 0; j < 16; j++) {
        dst[j] = step * (float)iq4_values[q[j] & 15];
        dst[j + 16] = step * (float)iq4_values[q[j] >> 4];
    }
}

static void iq4_put_group(const uint8_t *code, uint8_t *dst) {
    for (int32_t j = 0; j < 16; j++) {
        dst[j] = (uint8_t)(code[j] | (code[j + 16] << 4));
    }
}

void sl_decode_iq4_nl(const uint8_t *src, float *dst, int64_t n) {
    for (; n >= 32; n -= 32, src += 18, dst += 32) {
        iq4_decode_group(src + 2, quant_get_half(src), dst);
    }
}

void sl_encode_iq4_nl(const float *src, uint8_t *dst, int64_t n) {
    for (; n >= 32; n -= 32, src += 32, dst += 18) {
        uint8_t code[32];
        quant_put_u16(dst, quant_fit_single(&iq4_grid, src, 32, code));
        iq4_put_group(code, dst + 2);
    }
}

void sl_decode_iq4_xs(const uint8_t *src, float *dst, int64_t n) {
    for (; n >= 256; n -= 256, src += 136, dst += 256) {
        const float d = quant_get_half(src);
        const int32_t upper = quant_get_u16(src + 2);
        for (int32_t g = 0; g < 8; g++) {
            const int32_t low = (src[4 + g / 2] >> (4 * (g % 2))) & 15;
            const int32_t high = (upper >> (2 * g)) & 3;
            const float step = d * (float)((low | (high << 4)) - 32);
            iq4_decode_group(src + 8 + 16 * g, step, dst + 32 * g);
        }
    }
}

void sl_encode_iq4_xs(const float *src, uint8_t *dst, int64_t n) {
    static const quant_scaled shape = {.grid = &iq4_grid,
                                       .n_group = 8,
                                       .n_elem = 32,
                                       .scale_low = -32,
                                       .scale_high = 31,
                                       .reach = 1};
    for (; n >= 256; n -= 256, src += 256, dst += 136) {
        quant_block block;
        quant_fit_scaled(&shape, src, &block);
        unsigned upper = 0;
        memset(dst + 4, 0, 4);
        for (int32_t g = 0; g < 8; g++) {
            const unsigned stored = (unsigned)(block.scale[g] + 32);
            upper |= (stored >> 4) << (2 * g);
            dst[4 + g / 2] = (uint8_t)(dst[4 + g / 2] | ((stored & 15u) << (4 * (g % 2))));
            iq4_put_group(block.code + 32 * g, dst + 8 + 16 * g);
        }
        quant_put_u16(dst, block.d);
        quant_put_u16(dst + 2, (uint16_t)upper);
    }
}
