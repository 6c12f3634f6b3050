/* help_kern.c - inputs, guarded buffers and references for the tests of kern/. */
#include "help_kern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

help_rng help_rng_make(uint64_t seed) {
    return (help_rng){.state = seed * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u};
}

uint32_t help_rng_next(help_rng *rng) {
    rng->state ^= rng->state << 13;
    rng->state ^= rng->state >> 7;
    rng->state ^= rng->state << 17;
    return (uint32_t)((rng->state * 0x2545f4914f6cdd1du) >> 32);
}

float help_rng_float(help_rng *rng) {
    return (float)(int32_t)help_rng_next(rng) * (1.0f / 2147483648.0f);
}

#define GUARD 256

help_guarded help_guard(size_t size, size_t offset) {
    help_guarded g = {.size = size};
    const size_t total = (GUARD + offset + size + GUARD + 63) / 64 * 64;
    g.base = aligned_alloc(64, total);
    if (g.base == NULL) {
        abort();
    }
    memset(g.base, 0xA5, total);
    g.data = (uint8_t *)g.base + GUARD + offset;
    return g;
}

bool help_guard_intact(const help_guarded *g) {
    for (const uint8_t *p = g->base; p < g->data; p++) {
        if (*p != 0xA5) {
            return false;
        }
    }
    for (size_t i = 0; i < GUARD; i++) {
        if (g->data[g->size + i] != 0xA5) {
            return false;
        }
    }
    return true;
}

void help_guard_free(help_guarded *g) { free(g->base); }

void help_floats(help_rng *rng, help_mood mood, int64_t n, float *x) {
    bool zero = false;
    for (int64_t i = 0; i < n; i++) {
        const float v = help_rng_float(rng);
        if (i % 32 == 0) {
            zero = mood == HELP_ZERO_BLOCKS && help_rng_next(rng) % 2 == 0;
        }
        x[i] = mood == HELP_TINY   ? v * 1e-30f
               : mood == HELP_HUGE ? v * 1e15f
               : mood == HELP_SAME ? (v < 0.0f ? -1.0f : 1.0f)
               : zero              ? 0.0f
                                   : v;
    }
}

/* Where the half-float factors of a block are. */
typedef struct help_factors {
    int32_t type;
    int32_t n;
    int32_t at[2];
} help_factors;

static const help_factors help_factor_table[] = {
    {SL_QTYPE_Q4_0, 1, {0, 0}},   {SL_QTYPE_Q4_1, 2, {0, 2}},   {SL_QTYPE_Q5_0, 1, {0, 0}},
    {SL_QTYPE_Q5_1, 2, {0, 2}},   {SL_QTYPE_Q8_0, 1, {0, 0}},   {SL_QTYPE_IQ4_NL, 1, {0, 0}},
    {SL_QTYPE_Q2_K, 2, {80, 82}}, {SL_QTYPE_Q3_K, 1, {108, 0}}, {SL_QTYPE_Q4_K, 2, {0, 2}},
    {SL_QTYPE_Q5_K, 2, {0, 2}},   {SL_QTYPE_Q6_K, 1, {208, 0}}, {SL_QTYPE_IQ4_XS, 1, {0, 0}},
};

/* A float of the mood that a half can hold. */
static float help_half_value(help_rng *rng, help_mood mood) {
    const float v = help_rng_float(rng);
    switch (mood) {
    case HELP_TINY:
        return v * 6e-5f;
    case HELP_HUGE:
        return v * 65504.0f;
    case HELP_ZERO_BLOCKS:
        return help_rng_next(rng) % 3 == 0 ? 0.0f : v;
    case HELP_SAME:
        return v < 0.0f ? -2.0f : 2.0f;
    case HELP_UNIFORM:
    case HELP_MOOD_COUNT:
        break;
    }
    return v;
}

void help_blocks(help_rng *rng, help_mood mood, int32_t type, int64_t n, uint8_t *row) {
    const sl_qtype_info *info = sl_qtype_find(type);
    for (int64_t i = 0; i < n; i += info->n_elem, row += info->n_byte) {
        if (type == SL_QTYPE_F32) {
            const float v = help_half_value(rng, mood);
            memcpy(row, &v, sizeof v);
            continue;
        }
        if (type == SL_QTYPE_F16 || type == SL_QTYPE_BF16) {
            const float v = help_half_value(rng, mood);
            const uint16_t h = type == SL_QTYPE_F16 ? sl_f32_to_f16(v) : sl_f32_to_bf16(v);
            memcpy(row, &h, sizeof h);
            continue;
        }
        if (type == SL_QTYPE_F64) {
            const double v = (double)help_half_value(rng, mood);
            memcpy(row, &v, sizeof v);
            continue;
        }
        const uint32_t same = help_rng_next(rng) % 4;
        for (int32_t k = 0; k < info->n_byte; k++) {
            const uint32_t byte = help_rng_next(rng);
            row[k] = (uint8_t)(mood != HELP_SAME ? byte
                               : same == 0       ? 0x00u
                               : same == 1       ? 0xffu
                               : same == 2       ? 0x80u
                                                 : 0x7fu);
        }
        for (size_t f = 0; f < sizeof help_factor_table / sizeof help_factor_table[0]; f++) {
            for (int32_t k = 0; help_factor_table[f].type == type && k < help_factor_table[f].n;
                 k++) {
                const uint16_t h = sl_f32_to_f16(help_half_value(rng, mood));
                memcpy(row + help_factor_table[f].at[k], &h, sizeof h);
            }
        }
    }
}

void help_act_values(sl_act act, const void *prepared, int64_t n, float *x) {
    const sl_act_q8_32 *q32 = prepared;
    const sl_act_q8_256 *q256 = prepared;
    for (int64_t i = 0; i < n; i++) {
        if (act == SL_ACT_F32) {
            x[i] = ((const float *)prepared)[i];
        } else if (act == SL_ACT_Q8_32) {
            x[i] = q32[i / 32].d * (float)q32[i / 32].qs[i % 32];
        } else {
            x[i] = q256[i / 256].d * (float)q256[i / 256].qs[i % 256];
        }
    }
}

double help_dot(const float *w, const float *x, int64_t n, double *size) {
    double sum = 0.0;
    *size = 0.0;
    for (int64_t b = 0; b < n; b += 32) {
        double top = 0.0;
        double all = 0.0;
        for (int64_t i = b; i < n && i < b + 32; i++) {
            sum += (double)w[i] * (double)x[i];
            top = fmax(top, fabs((double)w[i]));
            all += fabs((double)x[i]);
        }
        *size += top * all;
    }
    return sum;
}

double help_ulps(float a, double truth) {
    const float near = (float)truth;
    int exponent;
    frexp((double)near, &exponent);
    const double ulp = ldexp(1.0, exponent - 24 < -149 ? -149 : exponent - 24);
    return fabs((double)a - truth) / ulp;
}
