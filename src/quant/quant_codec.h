/* quant_codec.h - what the files of the block formats share: their functions' prototypes, and little-endian access.
 *
 * The prototypes come from the rows of qtypes.def, so that a new format is one file and one row. Inside quant/ only:
 * everybody else goes through sl_qtype_info. */
#ifndef SL_QUANT_QUANT_CODEC_H
#define SL_QUANT_QUANT_CODEC_H

#include <string.h>

#include "quant/quant.h"

/* For a facts-only row this declares sl_decode_none, which nobody defines: quant_types.c puts NULL in its place. */
#define X(NAME, id, n_elem, n_byte, decode, encode)                     \
    void sl_decode_##decode(const uint8_t *src, float *dst, int64_t n); \
    void sl_encode_##encode(const float *src, uint8_t *dst, int64_t n);
#include "quant/qtypes.def"
#undef X

static inline uint16_t quant_get_u16(const uint8_t *p) {
    return (uint16_t)(p[0] | ((unsigned)p[1] << 8));
}

static inline uint32_t quant_get_u32(const uint8_t *p) {
    return (uint32_t)p[0] | ((uint32_t)p[1] << 8) | ((uint32_t)p[2] << 16) | ((uint32_t)p[3] << 24);
}

static inline uint64_t quant_get_u64(const uint8_t *p) {
    return (uint64_t)quant_get_u32(p) | ((uint64_t)quant_get_u32(p + 4) << 32);
}

static inline void quant_put_u16(uint8_t *p, uint16_t v) {
    p[0] = (uint8_t)(v & 255u);
    p[1] = (uint8_t)(v >> 8);
}

static inline void quant_put_u32(uint8_t *p, uint32_t v) {
    quant_put_u16(p, (uint16_t)(v & 0xffffu));
    quant_put_u16(p + 2, (uint16_t)(v >> 16));
}

static inline uint32_t quant_float_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float quant_bits_float(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline float quant_get_half(const uint8_t *p) { return sl_f16_to_f32(quant_get_u16(p)); }

#endif
