/* quant_legacy.c - blocks of 32 elements with one scale, or a scale and an offset.
 *
 *     type   offset  size  meaning                                     element
 *     Q4_0      0      2   d, half                                     d * (q - 8)
 *               2     16   q, 4 bits each
 *     Q4_1      0      2   d, half                                     d * q + m
 *               2      2   m, half
 *               4     16   q, 4 bits each
 *     Q5_0      0      2   d, half                                     d * (q - 16)
 *               2      4   bit j: the fifth bit of q of element j
 *               6     16   q, the lower 4 bits each
 *     Q5_1      0      2   d, half                                     d * q + m
 *               2      2   m, half
 *               4      4   bit j: the fifth bit of q of element j
 *               8     16   q, the lower 4 bits each
 *     Q8_0      0      2   d, half                                     d * q
 *               2     32   q, signed
 *
 * Byte j of the 4-bit codes holds element j in its low and element j + 16 in its high half.
 *
 * The encoders give the same bytes as the format's reference for every block of numbers whose scale a half can hold.
 * Outside that they still make a block that decodes to finite numbers: a NaN counts as 0, and what is too large for
 * the format as the largest that fits. So they are of one shape: take the block in with `limit`, then the arithmetic.
 *
 * Threads     any. */
#include "quant/quant_codec.h"

#include <float.h>

#define LEGACY_ELEM 32
#define LEGACY_HALF_MAX 65504.0f

/* The fifth bit of element j, in its place. */
static inline unsigned legacy_fifth(uint32_t high, int32_t j) { return ((high >> j) & 1u) << 4; }

void sl_decode_q4_0(const uint8_t *src, float *dst, int64_t n) {
    for (; n >= LEGACY_ELEM; n -= LEGACY_ELEM, src += 18, dst += LEGACY_ELEM) {
        const float d = quant_get_half(src);
        for (int32_t j = 0; j < 16; j++) {
            dst[j] = d * (float)((src[2 + j] & 15) - 8);
            dst[j + 16] = d * (float)((src[2 + j] >> 4) - 8);
        }
    }
}

void sl_decode_q4_1(const uint8_t *src, float *dst, int64_t n) {
    for (; n >= LEGACY_ELEM; n -= LEGACY_ELEM, src += 20, dst += LEGACY_ELEM) {
        const float d = quant_get_half(src);
        const float m = quant_get_half(src + 2);
        for (int32_t j = 0; j < 16; j++) {
            dst[j] = d * (float)(src[4 + j] & 15) + m;
            dst[j + 16] = d * (float)(src[4 + j] >> 4) + m;
        }
    }
}

void sl_decode_q5_0(const uint8_t *src, float *dst, int64_t n) {
    for (; n >= LEGACY_ELEM; n -= LEGACY_ELEM, src += 22, dst += LEGACY_ELEM) {
        const float d = quant_get_half(src);
        const uint32_t high = quant_get_u32(src + 2);
        for (int32_t j = 0; j < 16; j++) {
            const unsigned pair = src[6 + j];
            dst[j] = d * (float)((int32_t)((pair & 15u) | legacy_fifth(high, j)) - 16);
            dst[j + 16] = d * (float)((int32_t)((pair >> 4) | legacy_fifth(high, j + 16)) - 16);
        }
    }
}

void sl_decode_q5_1(const uint8_t *src, float *dst, int64_t n) {
    for (; n >= LEGACY_ELEM; n -= LEGACY_ELEM, src += 24, dst += LEGACY_ELEM) {
        const float d = quant_get_half(src);
        const float m = quant_get_half(src + 2);
        const uint32_t high = quant_get_u32(src + 4);
        for (int32_t j = 0; j < 16; j++) {
            const unsigned pair = src[8 + j];
            dst[j] = d * (float)((pair & 15u) | legacy_fifth(high, j)) + m;
            dst[j + 16] = d * (float)((pair >> 4) | legacy_fifth(high, j + 16)) + m;
        }
    }
}

void sl_decode_q8_0(const uint8_t *src, float *dst, int64_t n) {
    for (; n >= LEGACY_ELEM; n -= LEGACY_ELEM, src += 34, dst += LEGACY_ELEM) {
        const float d = quant_get_half(src);
        for (int32_t j = 0; j < LEGACY_ELEM; j++) {
            dst[j] = (float)(int8_t)src[2 + j] * d;
        }
    }
}

static void legacy_take(const float *src, float limit, float x[LEGACY_ELEM]) {
    for (int32_t i = 0; i < LEGACY_ELEM; i++) {
        const float v = src[i];
        x[i] = v != v ? 0.0f : v > limit ? limit : v < -limit ? -limit : v;
    }
}

/* 1 / d; 0 where that is no number, so that all codes become the one for zero (such a d is zero as a half). */
static float legacy_inverse(float d) {
    const float inverse = d == 0.0f ? 0.0f : 1.0f / d;
    return inverse <= FLT_MAX && inverse >= -FLT_MAX ? inverse : 0.0f;
}

/* Cut off towards zero into 0..top. */
static inline uint8_t legacy_code(float v, float top) {
    return (uint8_t)(v >= top ? top : v > 0.0f ? v : 0.0f);
}

static void legacy_put_codes(const uint8_t q[LEGACY_ELEM], uint8_t dst[16]) {
    for (int32_t j = 0; j < 16; j++) {
        dst[j] = (uint8_t)((q[j] & 15) | ((q[j + 16] & 15) << 4));
    }
}

static uint32_t legacy_fifth_bits(const uint8_t q[LEGACY_ELEM]) {
    uint32_t high = 0;
    for (int32_t j = 0; j < LEGACY_ELEM; j++) {
        high |= (uint32_t)((q[j] >> 4) & 1) << j;
    }
    return high;
}

/* The element of the largest size, with its sign, becomes the code 0: the negative end reaches one step further. */
static float legacy_fit_scale(const float *src, float half_codes, uint8_t q[LEGACY_ELEM]) {
    float x[LEGACY_ELEM];
    legacy_take(src, LEGACY_HALF_MAX * half_codes, x);
    float largest = x[0];
    float size = x[0] < 0.0f ? -x[0] : x[0];
    for (int32_t i = 1; i < LEGACY_ELEM; i++) {
        const float v = x[i] < 0.0f ? -x[i] : x[i];
        if (v > size) {
            size = v;
            largest = x[i];
        }
    }
    const float d = largest / -half_codes;
    const float inverse = legacy_inverse(d);
    for (int32_t i = 0; i < LEGACY_ELEM; i++) {
        q[i] = legacy_code(x[i] * inverse + (half_codes + 0.5f), 2.0f * half_codes - 1.0f);
    }
    return d;
}

/* The smallest element becomes the code 0 and the largest `top`. */
static float legacy_fit_range(const float *src, float top, uint8_t q[LEGACY_ELEM], float *min_out) {
    float x[LEGACY_ELEM];
    legacy_take(src, LEGACY_HALF_MAX, x);
    float min = x[0];
    float max = x[0];
    for (int32_t i = 1; i < LEGACY_ELEM; i++) {
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
    }
    const float d = (max - min) / top;
    const float inverse = legacy_inverse(d);
    for (int32_t i = 0; i < LEGACY_ELEM; i++) {
        q[i] = legacy_code((x[i] - min) * inverse + 0.5f, top);
    }
    *min_out = min;
    return d;
}

void sl_encode_q4_0(const float *src, uint8_t *dst, int64_t n) {
    for (; n >= LEGACY_ELEM; n -= LEGACY_ELEM, src += LEGACY_ELEM, dst += 18) {
        uint8_t q[LEGACY_ELEM];
        quant_put_u16(dst, sl_f32_to_f16(legacy_fit_scale(src, 8.0f, q)));
        legacy_put_codes(q, dst + 2);
    }
}

void sl_encode_q4_1(const float *src, uint8_t *dst, int64_t n) {
    for (; n >= LEGACY_ELEM; n -= LEGACY_ELEM, src += LEGACY_ELEM, dst += 20) {
        uint8_t q[LEGACY_ELEM];
        float min;
        quant_put_u16(dst, sl_f32_to_f16(legacy_fit_range(src, 15.0f, q, &min)));
        quant_put_u16(dst + 2, sl_f32_to_f16(min));
        legacy_put_codes(q, dst + 4);
    }
}

void sl_encode_q5_0(const float *src, uint8_t *dst, int64_t n) {
    for (; n >= LEGACY_ELEM; n -= LEGACY_ELEM, src += LEGACY_ELEM, dst += 22) {
        uint8_t q[LEGACY_ELEM];
        quant_put_u16(dst, sl_f32_to_f16(legacy_fit_scale(src, 16.0f, q)));
        quant_put_u32(dst + 2, legacy_fifth_bits(q));
        legacy_put_codes(q, dst + 6);
    }
}

void sl_encode_q5_1(const float *src, uint8_t *dst, int64_t n) {
    for (; n >= LEGACY_ELEM; n -= LEGACY_ELEM, src += LEGACY_ELEM, dst += 24) {
        uint8_t q[LEGACY_ELEM];
        float min;
        quant_put_u16(dst, sl_f32_to_f16(legacy_fit_range(src, 31.0f, q, &min)));
        quant_put_u16(dst + 2, sl_f32_to_f16(min));
        quant_put_u32(dst + 4, legacy_fifth_bits(q));
        legacy_put_codes(q, dst + 8);
    }
}

/* Round half away from zero: the whole part, and one more if the rest (which is exact) is at least a half. Adding a
 * half first would round 0.49999997 up. */
static inline int32_t legacy_round(float v) {
    const float size = v < 0.0f ? -v : v;
    const int32_t whole = size < 127.0f ? (int32_t)size : 127;
    const int32_t rounded = whole + (whole < 127 && size - (float)whole >= 0.5f);
    return v < 0.0f ? -rounded : rounded;
}

void sl_encode_q8_0(const float *src, uint8_t *dst, int64_t n) {
    for (; n >= LEGACY_ELEM; n -= LEGACY_ELEM, src += LEGACY_ELEM, dst += 34) {
        float x[LEGACY_ELEM];
        legacy_take(src, LEGACY_HALF_MAX * 127.0f, x);
        float size = 0.0f;
        for (int32_t i = 0; i < LEGACY_ELEM; i++) {
            const float v = x[i] < 0.0f ? -x[i] : x[i];
            size = v > size ? v : size;
        }
        const float d = size / 127.0f;
        const float inverse = legacy_inverse(d);
        quant_put_u16(dst, sl_f32_to_f16(d));
        for (int32_t i = 0; i < LEGACY_ELEM; i++) {
            dst[2 + i] = (uint8_t)(legacy_round(x[i] * inverse) & 255);
        }
    }
}
