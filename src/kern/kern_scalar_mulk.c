/* kern_scalar_mulk.c - matrix products of the types with blocks of 256 elements, in plain C.
 *
 * A block is sixteen groups of 16 (or eight of 32) with small integer scales, so its whole product is an integer, exact;
 * one float step a block adds it, blocks in order. Each type unpacks its block to 256 small integers and 16 scales:
 *
 *     w[i] = d * scale[i / 16] * q[i]  -  dmin * min[i / 16]
 *
 * Where the elements lie (group of 128: n = 0, 1; element l of 32):
 *
 *     Q2_K     two bits s of qs[32 n + l] are element 128 n + 32 s + l
 *     Q3_K     the same, and bit 4 n + s of hmask[l] is its third bit
 *     Q4_K     byte 32 j + l of qs: low nibble is element 64 j + l, high nibble 64 j + 32 + l
 *     Q5_K     the same, and bits 2 j and 2 j + 1 of qh[l] are the fifth bits of the two
 *     Q6_K     ql[64 n + l]: low nibble 128 n + l, high nibble 128 n + 64 + l; ql[64 n + 32 + l]: 32 further;
 *              bit pair s of qh[32 n + l] tops element 128 n + 32 s + l
 *     IQ4_XS   byte 16 g + l (l < 16) of qs: low nibble is element 32 g + l, high nibble 32 g + 16 + l;
 *              scale g has its low nibble in nibble g of scales_l and two bits in pair g of scales_h
 *
 * Threads     any. */
#include "kern/blocks.h"
#include "kern/fills.h"

typedef struct scalar_super {
    float d;
    float dmin;
    int8_t q[256];
    int32_t scale[16];
    int32_t min[16]; /* zero for the types without */
} scalar_super;

static void scalar_unpack_q2_k(const uint8_t *w, scalar_super *out) {
    const uint8_t *qs = w + 16;
    out->d = kern_half_at(w + 80);
    out->dmin = kern_half_at(w + 82);
    for (int32_t g = 0; g < 16; g++) {
        out->scale[g] = w[g] & 15;
        out->min[g] = w[g] >> 4;
    }
    for (int32_t n = 0; n < 2; n++) {
        for (int32_t s = 0; s < 4; s++) {
            for (int32_t l = 0; l < 32; l++) {
                out->q[128 * n + 32 * s + l] = (int8_t)((qs[32 * n + l] >> (2 * s)) & 3);
            }
        }
    }
}

static void scalar_unpack_q3_k(const uint8_t *w, scalar_super *out) {
    const uint8_t *qs = w + 32;
    uint32_t scales[4];
    kern_scales_k3(w + 96, scales);
    out->d = kern_half_at(w + 108);
    out->dmin = 0.0f;
    for (int32_t g = 0; g < 16; g++) {
        out->scale[g] = (int32_t)((scales[g / 4] >> (g % 4 * 8)) & 255u) - 32;
        out->min[g] = 0;
    }
    for (int32_t n = 0; n < 2; n++) {
        for (int32_t s = 0; s < 4; s++) {
            for (int32_t l = 0; l < 32; l++) {
                const int32_t low = (qs[32 * n + l] >> (2 * s)) & 3;
                const int32_t top = (w[l] >> (4 * n + s)) & 1;
                out->q[128 * n + 32 * s + l] = (int8_t)(low + 4 * top - 4);
            }
        }
    }
}

/* Scales and minima of Q4_K and Q5_K, one a group of 32. */
static void scalar_unpack_scales_k4(const uint8_t *w, scalar_super *out) {
    uint32_t scales[4];
    kern_scales_k4(w + 4, scales);
    out->d = kern_half_at(w);
    out->dmin = kern_half_at(w + 2);
    for (int32_t g = 0; g < 16; g++) {
        out->scale[g] = (int32_t)((scales[g / 8] >> (g / 2 % 4 * 8)) & 255u);
        out->min[g] = (int32_t)((scales[2 + g / 8] >> (g / 2 % 4 * 8)) & 255u);
    }
}

static void scalar_unpack_q4_k(const uint8_t *w, scalar_super *out) {
    const uint8_t *qs = w + 16;
    scalar_unpack_scales_k4(w, out);
    for (int32_t j = 0; j < 4; j++) {
        for (int32_t l = 0; l < 32; l++) {
            out->q[64 * j + l] = (int8_t)(qs[32 * j + l] & 15);
            out->q[64 * j + 32 + l] = (int8_t)(qs[32 * j + l] >> 4);
        }
    }
}

static void scalar_unpack_q5_k(const uint8_t *w, scalar_super *out) {
    const uint8_t *qh = w + 16;
    const uint8_t *qs = w + 48;
    scalar_unpack_scales_k4(w, out);
    for (int32_t j = 0; j < 4; j++) {
        for (int32_t l = 0; l < 32; l++) {
            const int32_t high = qh[l] >> (2 * j);
            out->q[64 * j + l] = (int8_t)((qs[32 * j + l] & 15) | ((high & 1) << 4));
            out->q[64 * j + 32 + l] = (int8_t)((qs[32 * j + l] >> 4) | ((high & 2) << 3));
        }
    }
}

static void scalar_unpack_q6_k(const uint8_t *w, scalar_super *out) {
    out->d = kern_half_at(w + 208);
    out->dmin = 0.0f;
    for (int32_t g = 0; g < 16; g++) {
        out->scale[g] = (int8_t)w[192 + g];
        out->min[g] = 0;
    }
    for (int32_t n = 0; n < 2; n++) {
        const uint8_t *ql = w + 64 * n;
        const uint8_t *qh = w + 128 + 32 * n;
        int8_t *q = out->q + 128 * n;
        for (int32_t l = 0; l < 32; l++) {
            q[l] = (int8_t)(((ql[l] & 15) | ((qh[l] & 3) << 4)) - 32);
            q[l + 32] = (int8_t)(((ql[l + 32] & 15) | (((qh[l] >> 2) & 3) << 4)) - 32);
            q[l + 64] = (int8_t)(((ql[l] >> 4) | (((qh[l] >> 4) & 3) << 4)) - 32);
            q[l + 96] = (int8_t)(((ql[l + 32] >> 4) | ((qh[l] >> 6) << 4)) - 32);
        }
    }
}

static void scalar_unpack_iq4_xs(const uint8_t *w, scalar_super *out) {
    static const int8_t values[16] = {KERN_IQ4_VALUES};
    const uint8_t *qs = w + 8;
    const int32_t high = kern_u16(w + 2);
    out->d = kern_half_at(w);
    out->dmin = 0.0f;
    for (int32_t g = 0; g < 8; g++) {
        const int32_t low = (w[4 + g / 2] >> (g % 2 * 4)) & 15;
        const int32_t scale = (low | (((high >> (2 * g)) & 3) << 4)) - 32;
        out->scale[2 * g] = out->scale[2 * g + 1] = scale;
        out->min[2 * g] = out->min[2 * g + 1] = 0;
        for (int32_t l = 0; l < 16; l++) {
            out->q[32 * g + l] = values[qs[16 * g + l] & 15];
            out->q[32 * g + 16 + l] = values[qs[16 * g + l] >> 4];
        }
    }
}

static float scalar_super_dot(const scalar_super *w, const sl_act_q8_256 *x) {
    int32_t sum = 0;
    int32_t min = 0;
    for (int32_t g = 0; g < 16; g++) {
        int32_t group = 0;
        for (int32_t i = 16 * g; i < 16 * g + 16; i++) {
            group += w->q[i] * x->qs[i];
        }
        sum += w->scale[g] * group;
        min += w->min[g] * x->sums[g];
    }
    return w->d * x->d * (float)sum - w->dmin * x->d * (float)min;
}

/* A block is unpacked once for up to 16 columns. */
static inline void scalar_mulk(void (*unpack)(const uint8_t *w, scalar_super *out), size_t bytes,
                               int64_t n_row, int64_t n_col, int64_t n, const uint8_t *w,
                               size_t w_stride, const uint8_t *x, size_t x_stride, float *y,
                               int64_t y_stride) {
    for (int64_t r = 0; r < n_row; r++) {
        for (int64_t c_first = 0; c_first < n_col; c_first += 16) {
            const int64_t c_many = n_col - c_first < 16 ? n_col - c_first : 16;
            float sum[16] = {0};
            for (int64_t b = 0; b < n / 256; b++) {
                scalar_super super;
                unpack(w + (size_t)r * w_stride + (size_t)b * bytes, &super);
                for (int64_t c = 0; c < c_many; c++) {
                    const void *row = x + (size_t)(c_first + c) * x_stride;
                    sum[c] += scalar_super_dot(&super, (const sl_act_q8_256 *)row + b);
                }
            }
            for (int64_t c = 0; c < c_many; c++) {
                y[(c_first + c) * y_stride + r] = sum[c];
            }
        }
    }
}

#define SCALAR_MULK(name, bytes)                                                                 \
    static void scalar_mul_##name(int64_t n_row, int64_t n_col, int64_t n, const uint8_t *w,     \
                                  size_t w_stride, const uint8_t *x, size_t x_stride, float *y,  \
                                  int64_t y_stride) {                                            \
        scalar_mulk(scalar_unpack_##name, (bytes), n_row, n_col, n, w, w_stride, x, x_stride, y, \
                    y_stride);                                                                   \
    }

SCALAR_MULK(q2_k, 84)
SCALAR_MULK(q3_k, 110)
SCALAR_MULK(q4_k, 144)
SCALAR_MULK(q5_k, 176)
SCALAR_MULK(q6_k, 210)
SCALAR_MULK(iq4_xs, 136)

void sl_kern_scalar_mulk(sl_kern *kern) {
    kern->mul[SL_QTYPE_Q2_K] = (sl_mul_slot){scalar_mul_q2_k, SL_ACT_Q8_256};
    kern->mul[SL_QTYPE_Q3_K] = (sl_mul_slot){scalar_mul_q3_k, SL_ACT_Q8_256};
    kern->mul[SL_QTYPE_Q4_K] = (sl_mul_slot){scalar_mul_q4_k, SL_ACT_Q8_256};
    kern->mul[SL_QTYPE_Q5_K] = (sl_mul_slot){scalar_mul_q5_k, SL_ACT_Q8_256};
    kern->mul[SL_QTYPE_Q6_K] = (sl_mul_slot){scalar_mul_q6_k, SL_ACT_Q8_256};
    kern->mul[SL_QTYPE_IQ4_XS] = (sl_mul_slot){scalar_mul_iq4_xs, SL_ACT_Q8_256};
}
