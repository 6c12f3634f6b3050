/* kern_scalar_mul32.c - matrix products of the types with blocks of 32 elements, in plain C.
 *
 * A block's product is an integer dot product, exact; one float step a block adds it to the row's sum, blocks in order.
 * Types with an offset add  offset * sum(x)  from the activation block's own sum.
 *
 * Threads     any.
 * Not here    layouts (blocks.h). */
#include "kern/blocks.h"
#include "kern/fills.h"

/* One function per type: `step(w, x)` gives what a block adds. */
#define SCALAR_MUL32(name, bytes)                                                               \
    static void scalar_mul_##name(int64_t n_row, int64_t n_col, int64_t n, const uint8_t *w,    \
                                  size_t w_stride, const uint8_t *x, size_t x_stride, float *y, \
                                  int64_t y_stride) {                                           \
        for (int64_t r = 0; r < n_row; r++) {                                                   \
            for (int64_t c = 0; c < n_col; c++) {                                               \
                const uint8_t *wb = w + (size_t)r * w_stride;                                   \
                const sl_act_q8_32 *xb = (const void *)(x + (size_t)c * x_stride);              \
                float sum = 0.0f;                                                               \
                for (int64_t b = 0; b < n / 32; b++, wb += (bytes), xb++) {                     \
                    sum += scalar_step_##name(wb, xb);                                          \
                }                                                                               \
                y[c * y_stride + r] = sum;                                                      \
            }                                                                                   \
        }                                                                                       \
    }

/* Unpacked first and multiplied then: both loops are of a form that compilers vectorise. */
static inline int32_t scalar_dot_bytes(const int8_t q[32], const int8_t *x) {
    int32_t sum = 0;
    for (int32_t i = 0; i < 32; i++) {
        sum += q[i] * x[i];
    }
    return sum;
}

static inline int32_t scalar_dot_nibbles(const uint8_t *qs, const int8_t *x) {
    int8_t q[32];
    for (int32_t i = 0; i < 16; i++) {
        q[i] = (int8_t)(qs[i] & 15);
        q[i + 16] = (int8_t)(qs[i] >> 4);
    }
    return scalar_dot_bytes(q, x);
}

/* Nibbles and their fifth bits. */
static inline int32_t scalar_dot_fives(const uint8_t *qh, const uint8_t *qs, const int8_t *x) {
    const uint32_t high = kern_u32(qh);
    int8_t q[32];
    for (uint32_t i = 0; i < 16; i++) {
        q[i] = (int8_t)((qs[i] & 15u) | (((high >> i) & 1u) << 4));
        q[i + 16] = (int8_t)(((unsigned)qs[i] >> 4) | (((high >> (i + 16)) & 1u) << 4));
    }
    return scalar_dot_bytes(q, x);
}

static inline float scalar_step_q4_0(const uint8_t *w, const sl_act_q8_32 *x) {
    const float d = kern_half_at(w);
    return d * x->d * (float)scalar_dot_nibbles(w + 2, x->qs) - d * 8.0f * x->s;
}

static inline float scalar_step_q4_1(const uint8_t *w, const sl_act_q8_32 *x) {
    return kern_half_at(w) * x->d * (float)scalar_dot_nibbles(w + 4, x->qs) +
           kern_half_at(w + 2) * x->s;
}

static inline float scalar_step_q5_0(const uint8_t *w, const sl_act_q8_32 *x) {
    const float d = kern_half_at(w);
    return d * x->d * (float)scalar_dot_fives(w + 2, w + 6, x->qs) - d * 16.0f * x->s;
}

static inline float scalar_step_q5_1(const uint8_t *w, const sl_act_q8_32 *x) {
    return kern_half_at(w) * x->d * (float)scalar_dot_fives(w + 4, w + 8, x->qs) +
           kern_half_at(w + 2) * x->s;
}

static inline float scalar_step_q8_0(const uint8_t *w, const sl_act_q8_32 *x) {
    int8_t q[32];
    memcpy(q, w + 2, sizeof q);
    return kern_half_at(w) * x->d * (float)scalar_dot_bytes(q, x->qs);
}

static inline float scalar_step_iq4_nl(const uint8_t *w, const sl_act_q8_32 *x) {
    static const int8_t values[16] = {KERN_IQ4_VALUES};
    int32_t sum = 0;
    for (int32_t i = 0; i < 16; i++) {
        sum += values[w[2 + i] & 15] * x->qs[i] + values[w[2 + i] >> 4] * x->qs[i + 16];
    }
    return kern_half_at(w) * x->d * (float)sum;
}

SCALAR_MUL32(q4_0, 18)
SCALAR_MUL32(q4_1, 20)
SCALAR_MUL32(q5_0, 22)
SCALAR_MUL32(q5_1, 24)
SCALAR_MUL32(q8_0, 34)
SCALAR_MUL32(iq4_nl, 18)

void sl_kern_scalar_mul32(sl_kern *kern) {
    kern->mul[SL_QTYPE_Q4_0] = (sl_mul_slot){scalar_mul_q4_0, SL_ACT_Q8_32};
    kern->mul[SL_QTYPE_Q4_1] = (sl_mul_slot){scalar_mul_q4_1, SL_ACT_Q8_32};
    kern->mul[SL_QTYPE_Q5_0] = (sl_mul_slot){scalar_mul_q5_0, SL_ACT_Q8_32};
    kern->mul[SL_QTYPE_Q5_1] = (sl_mul_slot){scalar_mul_q5_1, SL_ACT_Q8_32};
    kern->mul[SL_QTYPE_Q8_0] = (sl_mul_slot){scalar_mul_q8_0, SL_ACT_Q8_32};
    kern->mul[SL_QTYPE_IQ4_NL] = (sl_mul_slot){scalar_mul_iq4_nl, SL_ACT_Q8_32};
}
