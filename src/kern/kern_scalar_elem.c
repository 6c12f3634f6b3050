/* kern_scalar_elem.c - elementwise kernels in plain C: activations, norm, glu, softcap, rope.
 *
 * Threads     any.
 * Not here    attention (kern_scalar_attn.c), matrix products (kern_scalar_mul*.c). */
#include <math.h>

#include "kern/fills.h"
#include "kern/scalar_exp.h"

/* max|x| / 127 of n elements. */
static float scalar_act_scale(const float *x, int64_t n) {
    float top = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        const float a = fabsf(x[i]);
        top = top > a ? top : a;
    }
    return top / 127.0f;
}

/* x / d rounded half away from zero. Adding the largest float below 1/2 instead of 1/2 keeps 0.49999997 at zero, and
 * changes no other result. The bounds matter where d is subnormal (its rounding is coarse), and make the conversion
 * defined for any input. */
static int8_t scalar_act_round(float x, float d) {
    float v = x / d;
    v = v < 127.0f ? v : 127.0f;
    v = v > -127.0f ? v : -127.0f;
    return (int8_t)(int32_t)(v + copysignf(0.49999997f, v));
}

static void scalar_act_q8_32(const float *x, int64_t n, void *dst) {
    sl_act_q8_32 *block = dst;
    for (int64_t b = 0; b < n / 32; b++, block++, x += 32) {
        const float d = scalar_act_scale(x, 32);
        int32_t sum = 0;
        for (int32_t i = 0; i < 32; i++) {
            block->qs[i] = d > 0.0f ? scalar_act_round(x[i], d) : 0;
            sum += block->qs[i];
        }
        block->d = d;
        block->s = d * (float)sum;
    }
}

static void scalar_act_q8_256(const float *x, int64_t n, void *dst) {
    sl_act_q8_256 *block = dst;
    for (int64_t b = 0; b < n / 256; b++, block++, x += 256) {
        const float d = scalar_act_scale(x, 256);
        block->d = d;
        for (int32_t g = 0; g < 16; g++) {
            int32_t sum = 0;
            for (int32_t i = 16 * g; i < 16 * g + 16; i++) {
                block->qs[i] = d > 0.0f ? scalar_act_round(x[i], d) : 0;
                sum += block->qs[i];
            }
            block->sums[g] = (int16_t)sum;
        }
    }
}

/* The sum in double: squares cannot overflow, and the order hardly shows in the result. */
static void scalar_norm_rms(int64_t n, const float *x, const float *w, float eps, float *y) {
    double part[4] = {0.0, 0.0, 0.0, 0.0};
    for (int64_t i = 0; i < n; i++) {
        part[i & 3] += (double)x[i] * (double)x[i];
    }
    const double mean = ((part[0] + part[1]) + (part[2] + part[3])) / (double)(n > 0 ? n : 1);
    const float k = (float)(1.0 / sqrt(mean + (double)eps));
    if (w != NULL) {
        for (int64_t i = 0; i < n; i++) {
            y[i] = (x[i] * k) * w[i];
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            y[i] = x[i] * k;
        }
    }
}

static void scalar_add(int64_t n, const float *a, const float *b, float *y) {
    for (int64_t i = 0; i < n; i++) {
        y[i] = a[i] + b[i];
    }
}

static void scalar_scale(int64_t n, const float *x, float k, float *y) {
    for (int64_t i = 0; i < n; i++) {
        y[i] = x[i] * k;
    }
}

static void scalar_glu_silu(int64_t n, const float *g, const float *u, float *y) {
    for (int64_t i = 0; i < n; i++) {
        y[i] = (g[i] / (1.0f + scalar_exp(-g[i], 0.0f))) * u[i];
    }
}

/* g/2 (1 + tanh z) = g / (1 + exp(-2 z)) loses nothing for negative z. An error of the argument becomes a relative
 * error of the result, many times larger where |z| is: so it is computed in double and given in two parts. */
static void scalar_glu_gelu_tanh(int64_t n, const float *g, const float *u, float *y) {
    for (int64_t i = 0; i < n; i++) {
        const double v = (double)g[i];
        double z = -v * (KERN_GELU_A + KERN_GELU_B * (v * v));
        z = z < 200.0 ? z : 200.0;
        z = z > -200.0 ? z : -200.0;
        const float high = (float)z;
        const float low = (float)(z - (double)high);
        y[i] = (g[i] / (1.0f + scalar_exp(high, low))) * u[i];
    }
}

static void scalar_softcap(int64_t n, const float *x, float cap, float *y) {
    for (int64_t i = 0; i < n; i++) {
        const float z = x[i] / cap;
        const float a = fabsf(z);
        float t;
        if (a <= KERN_TANH_SMALL) {
            const float q = a * a;
            float p = KERN_TANH_5;
            p = p * q + KERN_TANH_4;
            p = p * q + KERN_TANH_3;
            p = p * q + KERN_TANH_2;
            p = p * q + KERN_TANH_1;
            p = p * q + KERN_TANH_0;
            t = (p * q) * a + a;
        } else {
            t = 1.0f - 2.0f / (scalar_exp(a + a, 0.0f) + 1.0f);
        }
        y[i] = cap * copysignf(t, z);
    }
}

static void scalar_rope_neighbour(int64_t n_rot, const float *cos_sin, float *x) {
    const int64_t half = n_rot / 2;
    for (int64_t i = 0; i < half; i++) {
        const float c = cos_sin[i];
        const float s = cos_sin[half + i];
        const float a = x[2 * i];
        const float b = x[2 * i + 1];
        x[2 * i] = a * c - b * s;
        x[2 * i + 1] = b * c + a * s;
    }
}

static void scalar_rope_half(int64_t n_rot, const float *cos_sin, float *x) {
    const int64_t half = n_rot / 2;
    for (int64_t i = 0; i < half; i++) {
        const float c = cos_sin[i];
        const float s = cos_sin[half + i];
        const float a = x[i];
        const float b = x[half + i];
        x[i] = a * c - b * s;
        x[half + i] = b * c + a * s;
    }
}

void sl_kern_scalar_elem(sl_kern *kern) {
    kern->act[SL_ACT_Q8_32] = scalar_act_q8_32;
    kern->act[SL_ACT_Q8_256] = scalar_act_q8_256;
    kern->norm_rms = scalar_norm_rms;
    kern->add = scalar_add;
    kern->scale = scalar_scale;
    kern->glu[SL_GLU_SILU] = scalar_glu_silu;
    kern->glu[SL_GLU_GELU_TANH] = scalar_glu_gelu_tanh;
    kern->softcap = scalar_softcap;
    kern->rope[SL_ROPE_NEIGHBOUR] = scalar_rope_neighbour;
    kern->rope[SL_ROPE_HALF] = scalar_rope_half;
}
