/* scalar_exp.h - exp in plain C, for the scalar kernels: fast, and the same everywhere, unlike libm's. */
#ifndef SL_KERN_SCALAR_EXP_H
#define SL_KERN_SCALAR_EXP_H

#include "kern/blocks.h"

/* exp(x + x_low), |x_low| far below 1: within 2 ulp. NaN stays NaN; there is no conversion that it could break. */
static inline float scalar_exp(float x, float x_low) {
    x = KERN_EXP_LOW > x ? KERN_EXP_LOW : x;
    x = KERN_EXP_HIGH < x ? KERN_EXP_HIGH : x;
    const float rounded = x * KERN_LOG2E + KERN_ROUND;
    const float n = rounded - KERN_ROUND;
    const float r = ((x - n * KERN_LN2_HIGH) - n * KERN_LN2_LOW) + x_low;
    float p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = (p * r) * r + r;
    p = p + 1.0f;
    /* 2^n in two factors, so that neither over- nor underflows before the product does. */
    const uint32_t n_int = kern_bits(rounded) - kern_bits(KERN_ROUND);
    const uint32_t n_half = (uint32_t)((int32_t)n_int >> 1);
    const uint32_t n_rest = n_int - n_half;
    return (p * kern_float((n_half + 127u) << 23)) * kern_float((n_rest + 127u) << 23);
}

#endif
