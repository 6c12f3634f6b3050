/* quant_fit.c - the search for scales and codes that the encoders of 256-element blocks share.
 *
 * For a fixed step the best codes are the nearest ones, and for fixed codes the best step is a least-squares fit: taking
 * turns never makes the error worse, but ends in the nearest valley. So every group starts from several guesses and
 * keeps the best (fit_step, fit_range). Then the groups' steps must become integers times one d:
 *
 *     d  from the largest step ──▶ round to half ──▶ per group the integers near step / d that err least ──▶ codes
 *      ▲                                                                                                     │
 *      └────────────────────────── least squares over the whole block, codes and integers fixed ◀────────────┘
 *
 * a few times round, and the best round is the result. Errors are always measured with the half and the integers that
 * will be stored.
 *
 * Sums run in four lanes in a fixed order, so that a compiler can use vectors and the bits stay the same.
 *
 * Invariants  all numbers are finite: fit_take sees to it. Codes and integers are within their bounds.
 * Threads     any.
 * Not here    how the integers are laid out in bytes (quant_k.c, quant_iq4.c). */
#include "quant/quant_fit.h"

#include <string.h>

#define FIT_HALF_MAX 65504.0f
#define FIT_ROUNDS 3

/* Steps below have no finite inverse that is of use; as halves they are zero anyway. */
#define FIT_STEP_MIN 1e-30f

/* Adding 1.5 * 2^23 leaves no room for a fraction: to the nearest integer, ties to even, for sizes below 2^22. */
#define FIT_ROUND 12582912.0f

static inline float fit_clamp(float v, float low, float high) {
    return v > high ? high : v > low ? v : low;
}

static inline int32_t fit_clamp_int(int32_t v, int32_t low, int32_t high) {
    return v > high ? high : v < low ? low : v;
}

static inline float fit_round(float v) { return (v + FIT_ROUND) - FIT_ROUND; }

static inline float fit_size(float v) { return v < 0.0f ? -v : v; }

static inline float fit_lanes(const float lane[4]) {
    return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

static void fit_take(const float *src, int32_t n, float limit, float *x) {
    for (int32_t i = 0; i < n; i++) {
        x[i] = src[i] != src[i] ? 0.0f : fit_clamp(src[i], -limit, limit);
    }
}

/* The nearest half that is neither infinite nor, unless d is zero, zero: with the smallest d the integers can still
 * make something of small numbers. */
static uint16_t fit_half(float d) {
    const uint16_t half = sl_f32_to_f16(fit_clamp(d, -FIT_HALF_MAX, FIT_HALF_MAX));
    return (half & 0x7fffu) == 0 && d != 0.0f ? (uint16_t)(half | 1u) : half;
}

/* The nearest values of the grid to x / step, as numbers. */
static inline void fit_values(const quant_grid *grid, const float *x, int32_t n, float inverse,
                              float *value) {
    const float low = (float)grid->low;
    const float high = (float)grid->high;
    for (int32_t i = 0; i < n; i++) {
        value[i] = fit_clamp(x[i] * inverse, low, high);
    }
    if (grid->values == NULL) {
        for (int32_t i = 0; i < n; i++) {
            value[i] = fit_round(value[i]);
        }
        return;
    }
    /* Climb the table: each middle between two values that lies below the number adds the difference. */
    float found[32];
    for (int32_t i = 0; i < n; i++) {
        found[i] = low;
    }
    for (int32_t k = 0; k + 1 < QUANT_FIT_VALUES; k++) {
        const float middle = 0.5f * (float)(grid->values[k] + grid->values[k + 1]);
        const float gap = (float)(grid->values[k + 1] - grid->values[k]);
        for (int32_t i = 0; i < n; i++) {
            found[i] += value[i] > middle ? gap : 0.0f;
        }
    }
    memcpy(value, found, (size_t)n * sizeof *value);
}

typedef struct fit_sums {
    float error; /* sum (x - step v)^2 */
    float xv;
    float vv;
} fit_sums;

/* What the nearest values for a step give. n is a multiple of 4. */
static inline fit_sums fit_run(const quant_grid *grid, const float *x, int32_t n, float step) {
    float value[32];
    float error[4] = {0};
    float xv[4] = {0};
    float vv[4] = {0};
    if (fit_size(step) < FIT_STEP_MIN) {
        memset(value, 0, (size_t)n * sizeof *value);
        step = 0.0f;
    } else {
        fit_values(grid, x, n, 1.0f / step, value);
    }
    for (int32_t i = 0; i < n; i += 4) {
        for (int32_t k = 0; k < 4; k++) {
            const float diff = x[i + k] - step * value[i + k];
            error[k] += diff * diff;
            xv[k] += x[i + k] * value[i + k];
            vv[k] += value[i + k] * value[i + k];
        }
    }
    return (fit_sums){fit_lanes(error), fit_lanes(xv), fit_lanes(vv)};
}

/* The two sizes that there are, so that the compiler knows the loops' lengths. */
static fit_sums fit_measure(const quant_grid *grid, const float *x, int32_t n, float step) {
    return n == 16 ? fit_run(grid, x, 16, step) : fit_run(grid, x, 32, step);
}

static void fit_codes(const quant_grid *grid, const float *x, int32_t n, float step,
                      uint8_t *code) {
    float value[32];
    if (fit_size(step) < FIT_STEP_MIN) {
        memset(value, 0, (size_t)n * sizeof *value);
        step = 1.0f;
        fit_values(grid, value, n, step, value);
    } else {
        fit_values(grid, x, n, 1.0f / step, value);
    }
    for (int32_t i = 0; i < n; i++) {
        const int32_t v = (int32_t)value[i];
        if (grid->values == NULL) {
            code[i] = (uint8_t)(v - grid->low);
            continue;
        }
        uint8_t found = 0;
        for (uint8_t k = 1; k < QUANT_FIT_VALUES; k++) {
            found = grid->values[k] == v ? k : found;
        }
        code[i] = found;
    }
}

/* The step of one group. Both ends of the grid are tried for the element of the largest size, as the grid reaches
 * further on one side than on the other. */
static float fit_step(const quant_grid *grid, const float *x, int32_t n) {
    float largest = 0.0f;
    for (int32_t i = 0; i < n; i++) {
        largest = fit_size(x[i]) > fit_size(largest) ? x[i] : largest;
    }
    if (fit_size(largest) < FIT_STEP_MIN) {
        return 0.0f;
    }
    float best = 0.0f;
    float best_error = -1.0f;
    for (int32_t i = 0; i < 2 * grid->n_ratio; i++) {
        const float ratio = grid->ratio_low + (grid->ratio_high - grid->ratio_low) *
                                                  (float)(i / 2) / (float)(grid->n_ratio - 1);
        const float end = (float)(i % 2 == 0 ? grid->low : grid->high);
        const fit_sums first = fit_measure(grid, x, n, largest / (ratio * end));
        if (!(first.vv > 0.0f)) {
            continue;
        }
        const float step = first.xv / first.vv;
        const fit_sums second = fit_measure(grid, x, n, step);
        if (best_error < 0.0f || second.error < best_error) {
            best_error = second.error;
            best = second.vv > 0.0f ? second.xv / second.vv : step;
        }
    }
    return best;
}

/* For a stored d, the integer scales near step / d that err least. Returns the block's error. */
static float fit_scales(const quant_scaled *shape, const float *x, const float *step, float d,
                        int32_t *scale) {
    float total = 0.0f;
    for (int32_t g = 0; g < shape->n_group; g++) {
        const float *part = x + g * shape->n_elem;
        const float want =
            fit_clamp(step[g] / d, (float)shape->scale_low, (float)shape->scale_high);
        const int32_t nearest = (int32_t)fit_round(want);
        float best_error = -1.0f;
        for (int32_t s = nearest - shape->reach; s <= nearest + shape->reach; s++) {
            const int32_t tried = fit_clamp_int(s, shape->scale_low, shape->scale_high);
            const float error =
                fit_measure(shape->grid, part, shape->n_elem, d * (float)tried).error;
            if (best_error < 0.0f || error < best_error) {
                best_error = error;
                scale[g] = tried;
            }
        }
        total += best_error;
    }
    return total;
}

/* Least squares for d with the integers fixed: sum (x - d scale v)^2. */
static float fit_refine_d(const quant_scaled *shape, const float *x, const int32_t *scale,
                          float d) {
    float xa = 0.0f;
    float aa = 0.0f;
    for (int32_t g = 0; g < shape->n_group; g++) {
        const float s = (float)scale[g];
        const fit_sums sums = fit_measure(shape->grid, x + g * shape->n_elem, shape->n_elem, d * s);
        xa += s * sums.xv;
        aa += s * s * sums.vv;
    }
    return aa > 0.0f ? xa / aa : d;
}

void quant_fit_scaled(const quant_scaled *shape, const float *src, quant_block *out) {
    const int32_t n = shape->n_group * shape->n_elem;
    float x[QUANT_FIT_ELEM];
    float step[QUANT_FIT_GROUP];
    memset(out, 0, sizeof *out);
    fit_take(src, n, FIT_HALF_MAX * (float)shape->scale_high * (float)shape->grid->high, x);

    float largest = 0.0f;
    for (int32_t g = 0; g < shape->n_group; g++) {
        step[g] = fit_step(shape->grid, x + g * shape->n_elem, shape->n_elem);
        largest = fit_size(step[g]) > fit_size(largest) ? step[g] : largest;
    }
    float d = largest / (float)shape->scale_low;
    float best_error = -1.0f;
    for (int32_t round = 0; round < FIT_ROUNDS && d != 0.0f; round++) {
        const uint16_t half = fit_half(d);
        const float stored = sl_f16_to_f32(half);
        int32_t scale[QUANT_FIT_GROUP];
        const float error = fit_scales(shape, x, step, stored, scale);
        if (best_error >= 0.0f && !(error < best_error)) {
            break;
        }
        best_error = error;
        out->d = half;
        memcpy(out->scale, scale, sizeof out->scale[0] * (size_t)shape->n_group);
        d = fit_refine_d(shape, x, scale, stored);
    }
    const float stored = sl_f16_to_f32(out->d);
    for (int32_t g = 0; g < shape->n_group; g++) {
        fit_codes(shape->grid, x + g * shape->n_elem, shape->n_elem, stored * (float)out->scale[g],
                  out->code + g * shape->n_elem);
    }
}

uint16_t quant_fit_single(const quant_grid *grid, const float *src, int32_t n, uint8_t *code) {
    float x[QUANT_FIT_ELEM];
    fit_take(src, n, FIT_HALF_MAX * (float)grid->high, x);
    /* No nudge away from a zero half here: there is no integer scale that could undo it. */
    const float limit = FIT_HALF_MAX;
    const uint16_t half = sl_f32_to_f16(fit_clamp(fit_step(grid, x, n), -limit, limit));
    fit_codes(grid, x, n, sl_f16_to_f32(half), code);
    return half;
}

/* x ~ step * code + low, low <= 0. */
typedef struct fit_line {
    float step;
    float low;
} fit_line;

typedef struct fit_line_sums {
    float error; /* sum (x - step q - low)^2 */
    float q;
    float qq;
    float xq;
} fit_line_sums;

/* What the nearest codes for a line give, and the codes as numbers. n is a multiple of 4. */
static inline fit_line_sums fit_line_run(const float *x, int32_t n, float high, fit_line line,
                                         float *code) {
    float error[4] = {0};
    float sum_q[4] = {0};
    float sum_qq[4] = {0};
    float sum_xq[4] = {0};
    const bool flat = line.step < FIT_STEP_MIN;
    const float step = flat ? 0.0f : line.step;
    const float inverse = flat ? 0.0f : 1.0f / step;
    for (int32_t i = 0; i < n; i++) {
        code[i] = fit_round(fit_clamp((x[i] - line.low) * inverse, 0.0f, high));
    }
    for (int32_t i = 0; i < n; i += 4) {
        for (int32_t k = 0; k < 4; k++) {
            const float q = code[i + k];
            const float diff = x[i + k] - (step * q + line.low);
            error[k] += diff * diff;
            sum_q[k] += q;
            sum_qq[k] += q * q;
            sum_xq[k] += x[i + k] * q;
        }
    }
    return (fit_line_sums){fit_lanes(error), fit_lanes(sum_q), fit_lanes(sum_qq),
                           fit_lanes(sum_xq)};
}

/* The two sizes that there are, so that the compiler knows the loops' lengths. */
static fit_line_sums fit_line_measure(const float *x, int32_t n, float high, fit_line line) {
    float code[32];
    return n == 16 ? fit_line_run(x, 16, high, line, code) : fit_line_run(x, 32, high, line, code);
}

/* The least-squares line through the codes; through zero if its low end were above. */
static fit_line fit_line_solve(int32_t n, float sum_x, fit_line_sums s, fit_line otherwise) {
    const float det = (float)n * s.qq - s.q * s.q;
    if (!(det > 0.0f)) {
        return otherwise;
    }
    fit_line line = {((float)n * s.xq - sum_x * s.q) / det, (s.qq * sum_x - s.q * s.xq) / det};
    if (line.low > 0.0f) {
        line = (fit_line){s.xq / s.qq, 0.0f};
    }
    return line.step > 0.0f ? line : otherwise;
}

static fit_line fit_range(const quant_affine *shape, const float *x) {
    const int32_t n = shape->n_elem;
    const float high = (float)shape->code_high;
    float min = 0.0f; /* a block cannot start above zero */
    float max = x[0];
    float sum = 0.0f;
    for (int32_t i = 0; i < n; i++) {
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
        sum += x[i];
    }
    if (max - min < FIT_STEP_MIN) {
        return (fit_line){0.0f, min};
    }
    fit_line best = {0.0f, 0.0f};
    float best_error = -1.0f;
    for (int32_t i = 0; i < shape->n_more; i++) {
        const float more = shape->more_low + (shape->more_high - shape->more_low) * (float)i /
                                                 (float)(shape->n_more - 1);
        fit_line line = {(max - min) / (high + more), min};
        for (int32_t turn = 0; turn < 2; turn++) {
            line = fit_line_solve(n, sum, fit_line_measure(x, n, high, line), line);
        }
        const float error = fit_line_measure(x, n, high, line).error;
        if (best_error < 0.0f || error < best_error) {
            best_error = error;
            best = line;
        }
    }
    return best;
}

typedef struct fit_pair {
    float d;
    float dmin;
} fit_pair;

/* For stored d and dmin, the integers around those wanted that err least. Returns the block's error. */
static float fit_scales_mins(const quant_affine *shape, const float *x, const fit_line *line,
                             fit_pair pair, int32_t *scale, int32_t *min) {
    const float top = (float)shape->scale_high;
    float total = 0.0f;
    for (int32_t g = 0; g < shape->n_group; g++) {
        const float *part = x + g * shape->n_elem;
        const float want = pair.d > 0.0f ? line[g].step / pair.d : 0.0f;
        const float want_min = pair.dmin > 0.0f ? -line[g].low / pair.dmin : 0.0f;
        const int32_t s_near = (int32_t)fit_round(fit_clamp(want, 0.0f, top));
        const int32_t m_near = (int32_t)fit_round(fit_clamp(want_min, 0.0f, top));
        float best_error = -1.0f;
        for (int32_t i = 0; i < 9; i++) {
            const int32_t s = s_near + i / 3 - 1;
            const int32_t m = m_near + i % 3 - 1;
            if (s < 0 || s > shape->scale_high || m < 0 || m > shape->scale_high) {
                continue;
            }
            const fit_line tried = {pair.d * (float)s, -(pair.dmin * (float)m)};
            const float error =
                fit_line_measure(part, shape->n_elem, (float)shape->code_high, tried).error;
            if (best_error < 0.0f || error < best_error) {
                best_error = error;
                scale[g] = s;
                min[g] = m;
            }
        }
        total += best_error;
    }
    return total;
}

/* Least squares for d and dmin with the integers fixed: sum (x - d a + dmin b)^2, a = scale q, b = min. */
static fit_pair fit_refine_pair(const quant_affine *shape, const float *x, const int32_t *scale,
                                const int32_t *min, fit_pair pair) {
    double aa = 0.0;
    double ab = 0.0;
    double bb = 0.0;
    double xa = 0.0;
    double xb = 0.0;
    for (int32_t g = 0; g < shape->n_group; g++) {
        const float *part = x + g * shape->n_elem;
        const double s = scale[g];
        const double m = min[g];
        const fit_line line = {pair.d * (float)scale[g], -(pair.dmin * (float)min[g])};
        const fit_line_sums sums =
            fit_line_measure(part, shape->n_elem, (float)shape->code_high, line);
        double sum_x = 0.0;
        for (int32_t i = 0; i < shape->n_elem; i++) {
            sum_x += (double)part[i];
        }
        aa += s * s * (double)sums.qq;
        ab += s * m * (double)sums.q;
        bb += m * m * (double)shape->n_elem;
        xa += s * (double)sums.xq;
        xb += m * sum_x;
    }
    const double det = aa * bb - ab * ab;
    if (!(det > 1e-9 * aa * bb)) {
        /* One of the two has nothing to say: only d, if it has. */
        const double d = aa > 0.0 ? (xa + (double)pair.dmin * ab) / aa : (double)pair.d;
        return d > 0.0 ? (fit_pair){(float)d, pair.dmin} : pair;
    }
    const double d = (xa * bb - xb * ab) / det;
    const double dmin = (xa * ab - xb * aa) / det;
    return d > 0.0 && dmin > 0.0 ? (fit_pair){(float)d, (float)dmin} : pair;
}

void quant_fit_affine(const quant_affine *shape, const float *src, quant_block *out) {
    const int32_t n = shape->n_group * shape->n_elem;
    const float top = (float)shape->scale_high;
    float x[QUANT_FIT_ELEM];
    fit_line line[QUANT_FIT_GROUP];
    memset(out, 0, sizeof *out);
    fit_take(src, n, FIT_HALF_MAX * top, x);

    fit_pair want = {0.0f, 0.0f};
    for (int32_t g = 0; g < shape->n_group; g++) {
        line[g] = fit_range(shape, x + g * shape->n_elem);
        want.d = line[g].step / top > want.d ? line[g].step / top : want.d;
        want.dmin = -line[g].low / top > want.dmin ? -line[g].low / top : want.dmin;
    }
    float best_error = -1.0f;
    for (int32_t round = 0; round < FIT_ROUNDS; round++) {
        const uint16_t d = fit_half(want.d);
        const uint16_t dmin = fit_half(want.dmin);
        const fit_pair stored = {sl_f16_to_f32(d), sl_f16_to_f32(dmin)};
        int32_t scale[QUANT_FIT_GROUP];
        int32_t min[QUANT_FIT_GROUP];
        const float error = fit_scales_mins(shape, x, line, stored, scale, min);
        if (best_error >= 0.0f && !(error < best_error)) {
            break;
        }
        best_error = error;
        out->d = d;
        out->dmin = dmin;
        memcpy(out->scale, scale, sizeof scale[0] * (size_t)shape->n_group);
        memcpy(out->min, min, sizeof min[0] * (size_t)shape->n_group);
        want = fit_refine_pair(shape, x, scale, min, stored);
    }
    const fit_pair stored = {sl_f16_to_f32(out->d), sl_f16_to_f32(out->dmin)};
    for (int32_t g = 0; g < shape->n_group; g++) {
        const fit_line tried = {stored.d * (float)out->scale[g],
                                -(stored.dmin * (float)out->min[g])};
        float code[32];
        fit_line_run(x + g * shape->n_elem, shape->n_elem, (float)shape->code_high, tried, code);
        for (int32_t i = 0; i < shape->n_elem; i++) {
            out->code[g * shape->n_elem + i] = (uint8_t)code[i];
        }
    }
}
