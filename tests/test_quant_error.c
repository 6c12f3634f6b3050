/* test_quant_error.c - how well the encoders do, and what they make of numbers that no model has.
 *
 * data/quant/numbers.f16 holds three sets of numbers, errors.txt the errors that the reference engine's quantisers reach
 * on them (tools/make_quant_vectors.py). Ours may be 2 % worse. Everything else here is a property that needs no
 * reference: results are finite, stay near their inputs, depend on nothing but them, and are the same twice. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_paths.h"
#include "quant/quant.h"

#define N_SET 16384
#define N_EDGE 512

static uint64_t state = 11;

static float uniform(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(state >> 40) / 16777216.0f * 2.0f - 1.0f;
}

/* Encode and decode; *raw is freed by the caller, if wanted. */
static void through(const sl_qtype_info *type, const float *src, float *dst, size_t n) {
    uint64_t size;
    assert_true(sl_qtype_row_bytes(type, n, &size));
    uint8_t *raw = malloc(size);
    uint8_t *again = malloc(size);
    memset(raw, 0x00, size);
    memset(again, 0xff, size);
    type->encode(src, raw, (int64_t)n);
    type->encode(src, again, (int64_t)n);
    assert_memory_equal(raw, again, size); /* each byte was written, both times the same */
    type->decode(raw, dst, (int64_t)n);
    free(again);
    free(raw);
}

static double rms(const float *a, const float *b, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double diff = (double)a[i] - (double)b[i];
        sum += diff * diff;
    }
    return sqrt(sum / (double)n);
}

static void test_against_reference(void **unused) {
    (void)unused;
    size_t n_file, n_text;
    char *file = help_read(SL_TEST_DATA "/quant/numbers.f16", &n_file);
    char *text = help_read(SL_TEST_DATA "/quant/errors.txt", &n_text);
    assert_non_null(file);
    assert_non_null(text);
    assert_int_equal(n_file, 3 * 2 * N_SET);
    float *x = malloc(sizeof *x * 3 * N_SET);
    float *y = malloc(sizeof *y * 3 * N_SET);
    for (size_t i = 0; i < 3 * N_SET; i++) {
        const uint8_t *p = (const uint8_t *)file + 2 * i;
        x[i] = sl_f16_to_f32((uint16_t)(p[0] | (p[1] << 8)));
    }
    int n_line = 0;
    for (char *line = text; *line != '\0'; n_line++) {
        char name[32];
        double limit[3];
        int used;
        assert_int_equal(
            sscanf(line, "%31s %lf %lf %lf%n", name, &limit[0], &limit[1], &limit[2], &used), 4);
        const sl_qtype_info *type = sl_qtype_find_name(name);
        assert_non_null(type);
        for (size_t s = 0; s < 3; s++) {
            /* At other sizes the error is in proportion: only the halves that are stored move a little. */
            static const float size[] = {1.0f, 1.0f / 64.0f, 37.0f};
            for (size_t k = 0; k < 3; k++) {
                float *in = x + s * N_SET;
                for (size_t i = 0; i < N_SET; i++) {
                    y[i] = in[i] * size[k];
                }
                float *out = y + N_SET;
                through(type, y, out, N_SET);
                const double error = rms(y, out, N_SET) / (double)size[k];
                if (k == 0) {
                    print_message("%-7s set %zu: %.6f, reference %.6f (%.3f)\n", name, s, error,
                                  limit[s], error / limit[s]);
                }
                if (!(error <= 1.02 * limit[s])) {
                    fail_msg("%s, set %zu, size %g: error %g, the reference's %g", name, s,
                             (double)size[k], error, limit[s]);
                }
            }
        }
        line += used;
        line += strspn(line, "\n");
    }
    assert_int_equal(n_line, 12);
    free(y);
    free(x);
    free(text);
    free(file);
}

/* The error that any block must stay below, as a part of its largest size. Half of the widest gap between two values,
 * and something for the rounding of scales. */
static double block_bound(const char *name) {
    static const struct {
        const char *name;
        double part;
    } bound[] = {
        {"F32", 0.0},     {"F16", 0x1p-11}, {"BF16", 0x1p-8}, {"F64", 0.0},
        {"Q4_0", 0.13},   {"Q4_1", 0.07},   {"Q5_0", 0.065},  {"Q5_1", 0.035},
        {"Q8_0", 0.0044}, {"Q2_K", 0.45},   {"Q3_K", 0.27},   {"Q4_K", 0.12},
        {"Q5_K", 0.06},   {"Q6_K", 0.026},  {"IQ4_NL", 0.14}, {"IQ4_XS", 0.14},
    };
    for (size_t i = 0; i < sizeof bound / sizeof bound[0]; i++) {
        if (strcmp(bound[i].name, name) == 0) {
            return bound[i].part;
        }
    }
    fail_msg("%s has an encoder but no bound here", name);
    return 0.0;
}

/* Every element against the largest of its block. */
static void test_each_element(void **unused) {
    (void)unused;
    float x[N_EDGE];
    float y[N_EDGE];
    int n_type = 0;
    for (int32_t i = 0; i < sl_qtype_count(); i++) {
        const sl_qtype_info *type = sl_qtype_at(i);
        if (type->encode == NULL) {
            continue;
        }
        assert_non_null(type->decode);
        n_type++;
        double worst = 0.0;
        for (int round = 0; round < 64; round++) {
            const int per = round % 4 == 0 ? 16 : N_EDGE; /* groups of different sizes */
            for (int k = 0; k < N_EDGE; k++) {
                const float size = per == 16 ? ldexpf(1.0f, -(k / per) % 7) : 1.0f;
                x[k] = ldexpf(size * uniform(), round % 15);
            }
            through(type, x, y, N_EDGE);
            const int n_elem = type->n_elem > 1 ? type->n_elem : 32;
            for (int b = 0; b < N_EDGE; b += n_elem) {
                double largest = 0.0;
                for (int k = b; k < b + n_elem; k++) {
                    largest = fmax(largest, fabs((double)x[k]));
                }
                for (int k = b; k < b + n_elem; k++) {
                    worst = fmax(worst, fabs((double)x[k] - (double)y[k]) / largest);
                }
            }
        }
        print_message("%-7s worst error of an element: %.5f of the block's largest\n", type->name,
                      worst);
        if (!(worst <= block_bound(type->name))) {
            fail_msg("%s: an element is off by %g of its block's largest", type->name, worst);
        }
    }
    assert_int_equal(n_type, 16);
}

/* Blocks that hold one kind of oddity each. */
static void edge_fill(int kind, float *x) {
    static const float odd[] = {0.0f,     -0.0f,     FLT_MAX, -FLT_MAX, FLT_MIN,  1e-45f, -1e-45f,
                                INFINITY, -INFINITY, 1e-38f,  1e30f,    65504.0f, 7e4f,   5e5f,
                                -1e7f,    1.0f,      -1.0f,   6e-8f,    -3e-8f,   1e-20f};
    const int n_odd = (int)(sizeof odd / sizeof odd[0]);
    for (int k = 0; k < N_EDGE; k++) {
        if (kind < n_odd) {
            x[k] = odd[kind];
        } else if (kind < 2 * n_odd) {
            x[k] = k % 37 == 5 ? odd[kind - n_odd] : uniform();
        } else if (kind == 2 * n_odd) {
            x[k] = NAN;
        } else if (kind == 2 * n_odd + 1) {
            x[k] = k % 3 == 0 ? NAN : uniform();
        } else if (kind == 2 * n_odd + 2) {
            x[k] = k % 2 == 0 ? INFINITY : -INFINITY;
        } else if (kind == 2 * n_odd + 3) {
            x[k] = k % 32 == 0 ? NAN : 0.0f;
        } else {
            x[k] = odd[(k * 7 + kind) % n_odd];
        }
    }
}

static void test_edges(void **unused) {
    (void)unused;
    float x[N_EDGE];
    float y[N_EDGE];
    for (int32_t i = 0; i < sl_qtype_count(); i++) {
        const sl_qtype_info *type = sl_qtype_at(i);
        /* Types without blocks hold NaN and infinities as they are: test_quant.c. */
        if (type->encode == NULL || type->n_elem == 1) {
            continue;
        }
        for (int kind = 0; kind < 64; kind++) {
            edge_fill(kind, x);
            through(type, x, y, N_EDGE);
            for (int k = 0; k < N_EDGE; k++) {
                if (!isfinite(y[k])) {
                    fail_msg("%s, kind %d: element %d of %g became %g", type->name, kind, k,
                             (double)x[k], (double)y[k]);
                }
            }
        }
        /* Random bits as numbers: a quarter are of sizes that no half holds. */
        for (int round = 0; round < 200; round++) {
            for (int k = 0; k < N_EDGE; k++) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                const uint32_t bits = (uint32_t)(state >> 32);
                memcpy(&x[k], &bits, sizeof x[k]);
            }
            through(type, x, y, N_EDGE);
            for (int k = 0; k < N_EDGE; k++) {
                assert_true(isfinite(y[k]));
            }
        }
    }
}

/* What has an exact or nearly exact answer. */
static void test_plain_blocks(void **unused) {
    (void)unused;
    float x[N_EDGE];
    float y[N_EDGE];
    for (int32_t i = 0; i < sl_qtype_count(); i++) {
        const sl_qtype_info *type = sl_qtype_at(i);
        if (type->encode == NULL) {
            continue;
        }
        memset(x, 0, sizeof x);
        through(type, x, y, N_EDGE);
        for (int k = 0; k < N_EDGE; k++) {
            assert_true(y[k] == 0.0f);
        }
        /* A NaN counts as zero, beside others. */
        if (type->n_elem > 1) {
            for (int k = 0; k < N_EDGE; k++) {
                x[k] = k % 16 == 3 ? NAN : 1.0f;
            }
            through(type, x, y, N_EDGE);
            for (int k = 0; k < N_EDGE; k++) {
                assert_true(fabsf(y[k] - (k % 16 == 3 ? 0.0f : 1.0f)) < 0.1f);
            }
        }
        /* Constants of either sign: a scale and a code can do that, up to the halves' rounding. */
        for (int sign = -1; sign <= 1; sign += 2) {
            for (int k = 0; k < N_EDGE; k++) {
                x[k] = (float)sign * 0.3f;
            }
            through(type, x, y, N_EDGE);
            for (int k = 0; k < N_EDGE; k++) {
                if (!(fabsf(y[k] - x[k]) <= 0.02f * 0.3f)) {
                    fail_msg("%s: constant %g became %g", type->name, (double)x[k], (double)y[k]);
                }
            }
        }
        /* Numbers near the smallest half: never larger than they were, give or take a step of 2^-24. */
        for (int k = 0; k < N_EDGE; k++) {
            x[k] = 1e-7f * uniform();
        }
        through(type, x, y, N_EDGE);
        for (int k = 0; k < N_EDGE; k++) {
            assert_true(fabsf(y[k] - x[k]) <= 2.5e-7f);
        }
    }
}

/* A row is its blocks: what stands beside a block has no influence. */
static void test_blocks_alone(void **unused) {
    (void)unused;
    float x[N_EDGE];
    for (int k = 0; k < N_EDGE; k++) {
        x[k] = uniform() * uniform();
    }
    for (int32_t i = 0; i < sl_qtype_count(); i++) {
        const sl_qtype_info *type = sl_qtype_at(i);
        if (type->encode == NULL) {
            continue;
        }
        uint8_t whole[N_EDGE * 8 + 16];
        uint8_t parts[N_EDGE * 8 + 16];
        uint64_t size;
        assert_true(sl_qtype_row_bytes(type, N_EDGE, &size) && size < sizeof whole);
        memset(whole, 0x5a, sizeof whole);
        memset(parts, 0x5a, sizeof parts);
        type->encode(x, whole, N_EDGE);
        for (int b = 0; b < N_EDGE / type->n_elem; b++) {
            type->encode(x + b * type->n_elem, parts + b * type->n_byte, type->n_elem);
        }
        assert_memory_equal(whole, parts, sizeof whole); /* nothing behind the end either */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_reference),
        cmocka_unit_test(test_each_element),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_plain_blocks),
        cmocka_unit_test(test_blocks_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
