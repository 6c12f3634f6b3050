/* quant_plain.c - types without blocks: each element stands alone.
 *
 *     type   bytes   an element
 *     F32      4     IEEE binary32
 *     F16      2     IEEE binary16
 *     BF16     2     the upper half of a binary32
 *     F64      8     IEEE binary64; decode rounds to the nearest float, ties to even
 *     I8..I64  1..8  two's complement; decode rounds likewise
 *
 * All little-endian. Integers have no encoder: they hold ids and counts, never weights.
 *
 * Threads     any.
 * Not here    the conversions of one 16-bit float (quant_types.c). */
#include "quant/quant_codec.h"

void sl_decode_f32(const uint8_t *src, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        dst[i] = quant_bits_float(quant_get_u32(src + 4 * i));
    }
}

void sl_encode_f32(const float *src, uint8_t *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        quant_put_u32(dst + 4 * i, quant_float_bits(src[i]));
    }
}

void sl_decode_f16(const uint8_t *src, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        dst[i] = quant_get_half(src + 2 * i);
    }
}

void sl_encode_f16(const float *src, uint8_t *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        quant_put_u16(dst + 2 * i, sl_f32_to_f16(src[i]));
    }
}

void sl_decode_bf16(const uint8_t *src, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        dst[i] = sl_bf16_to_f32(quant_get_u16(src + 2 * i));
    }
}

void sl_encode_bf16(const float *src, uint8_t *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        quant_put_u16(dst + 2 * i, sl_f32_to_bf16(src[i]));
    }
}

void sl_decode_f64(const uint8_t *src, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const uint64_t bits = quant_get_u64(src + 8 * i);
        double value;
        memcpy(&value, &bits, sizeof value);
        dst[i] = (float)value;
    }
}

void sl_encode_f64(const float *src, uint8_t *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const double value = src[i];
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        quant_put_u32(dst + 8 * i, (uint32_t)(bits & 0xffffffffu));
        quant_put_u32(dst + 8 * i + 4, (uint32_t)(bits >> 32));
    }
}

/* The top bit counts negative: exclusive-or with it and subtract it, without a conversion that C leaves open. */
void sl_decode_i8(const uint8_t *src, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        dst[i] = (float)((int32_t)(src[i] ^ 0x80u) - 0x80);
    }
}

void sl_decode_i16(const uint8_t *src, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        dst[i] = (float)((int32_t)(quant_get_u16(src + 2 * i) ^ 0x8000u) - 0x8000);
    }
}

void sl_decode_i32(const uint8_t *src, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t wide = quant_get_u32(src + 4 * i) ^ 0x80000000u;
        dst[i] = (float)(wide - 0x80000000);
    }
}

void sl_decode_i64(const uint8_t *src, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const uint64_t bits = quant_get_u64(src + 8 * i);
        int64_t value;
        memcpy(&value, &bits, sizeof value);
        dst[i] = (float)value;
    }
}
