/* test_kern_mul.c - matrix products: every instruction set, every type.
 *
 * Scalar is held to a double-precision product of decoded weights and the values that the prepared activations stand
 * for; the other rows to scalar; every row to itself: equal bits however rows and columns are split. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "help_kern.h"

/* One product, with everything that it needs. */
typedef struct mul_case {
    const sl_qtype_info *type;
    sl_act act;
    int64_t n_row, n_col, n;
    size_t w_stride, x_stride;
    uint8_t *w_base; /* ends where the last row ends: reading on trips the address sanitizer */
    uint8_t *w;      /* at an odd address */
    uint8_t *x;      /* prepared */
    float *w_values;
    float *x_values;
} mul_case;

static void *test_alloc(size_t size) {
    void *p = malloc(size > 0 ? size : 1);
    assert_non_null(p);
    return p;
}

static mul_case mul_case_make(const sl_kern *kern, sl_act act, int32_t id, int64_t n_row,
                              int64_t n_col, int64_t n, help_mood mood, uint64_t seed) {
    help_rng rng = help_rng_make(seed);
    mul_case t = {.type = sl_qtype_find(id), .act = act, .n_row = n_row, .n_col = n_col, .n = n};
    uint64_t row_bytes = 0;
    assert_true(sl_qtype_row_bytes(t.type, (uint64_t)n, &row_bytes));
    const size_t act_bytes = sl_act_bytes(act, n);
    t.w_stride = (size_t)row_bytes + seed % 3;
    t.x_stride = (act_bytes + 63) / 64 * 64;
    const size_t w_offset = 1 + seed % 7;
    const size_t w_size = n_row > 0 ? t.w_stride * (size_t)(n_row - 1) + (size_t)row_bytes : 0;
    t.w_base = test_alloc(w_offset + w_size);
    t.w = t.w_base + w_offset;
    const size_t x_size = t.x_stride * (size_t)n_col;
    t.x = aligned_alloc(64, x_size > 0 ? x_size : 64);
    assert_non_null(t.x);
    t.w_values = test_alloc((size_t)(n_row * n) * sizeof(float));
    t.x_values = test_alloc((size_t)(n_col * n) * sizeof(float));
    for (int64_t r = 0; r < n_row; r++) {
        uint8_t *row = t.w + (size_t)r * t.w_stride;
        help_blocks(&rng, mood, id, n, row);
        assert_non_null(t.type->decode);
        t.type->decode(row, t.w_values + r * n, n);
    }
    float *raw = aligned_alloc(64, ((size_t)n * sizeof(float) + 127) / 64 * 64);
    assert_non_null(raw);
    for (int64_t c = 0; c < n_col; c++) {
        uint8_t *row = t.x + (size_t)c * t.x_stride;
        help_floats(&rng, mood, n, raw);
        if (act == SL_ACT_F32) {
            memcpy(row, raw, (size_t)n * sizeof(float));
        } else {
            kern->act[act](raw, n, row);
        }
        help_act_values(act, row, n, t.x_values + c * n);
    }
    free(raw);
    return t;
}

static void mul_case_free(mul_case *t) {
    free(t->w_base);
    free(t->x);
    free(t->w_values);
    free(t->x_values);
}

/* The whole product into a fresh guarded buffer; what lies between columns must stay untouched. */
static help_guarded mul_run(const mul_case *t, sl_mul_fn fn, int64_t y_stride) {
    const size_t n_y = t->n_col > 0 ? (size_t)((t->n_col - 1) * y_stride + t->n_row) : 0;
    help_guarded y = help_guard(n_y * sizeof(float), 4);
    fn(t->n_row, t->n_col, t->n, t->w, t->w_stride, t->x, t->x_stride, (void *)y.data, y_stride);
    assert_true(help_guard_intact(&y));
    for (int64_t c = 0; c + 1 < t->n_col; c++) {
        for (int64_t r = t->n_row; r < y_stride; r++) {
            const uint8_t *gap = y.data + (size_t)(c * y_stride + r) * sizeof(float);
            assert_true(gap[0] == 0xA5 && gap[1] == 0xA5 && gap[2] == 0xA5 && gap[3] == 0xA5);
        }
    }
    return y;
}

static void mul_check(const mul_case *t, const char *isa, const float *y, int64_t y_stride,
                      const float *scalar, double bound) {
    for (int64_t c = 0; c < t->n_col; c++) {
        for (int64_t r = 0; r < t->n_row; r++) {
            double size;
            double truth = help_dot(t->w_values + r * t->n, t->x_values + c * t->n, t->n, &size);
            if (scalar != NULL) {
                truth = (double)scalar[c * y_stride + r];
            }
            const double got = (double)y[c * y_stride + r];
            if (!(fabs(got - truth) <= bound * size + 1e-37)) {
                fail_msg("%s %s: row %d, column %d of %d x %d x %d: %.9g, not %.9g (size %.3g)",
                         isa, t->type->name, (int)r, (int)c, (int)t->n_row, (int)t->n_col,
                         (int)t->n, got, truth, size);
            }
        }
    }
}

/* Any split gives the same bits: cut rows and columns at a few places. */
static void mul_check_splits(const mul_case *t, sl_mul_fn fn, const help_guarded *whole,
                             int64_t y_stride, help_rng *rng) {
    for (int32_t i = 0; i < 3; i++) {
        help_guarded y = help_guard(whole->size, 4);
        int64_t c = 0;
        while (c < t->n_col) {
            int64_t n_col = i == 0 ? 1 : 1 + help_rng_next(rng) % 7;
            n_col = n_col < t->n_col - c ? n_col : t->n_col - c;
            int64_t r = 0;
            while (r < t->n_row) {
                int64_t n_row = i == 0 ? 1 : 1 + help_rng_next(rng) % 11;
                n_row = n_row < t->n_row - r ? n_row : t->n_row - r;
                float *out = (float *)(void *)y.data + c * y_stride + r;
                fn(n_row, n_col, t->n, t->w + (size_t)r * t->w_stride, t->w_stride,
                   t->x + (size_t)c * t->x_stride, t->x_stride, out, y_stride);
                r += n_row;
            }
            c += n_col;
        }
        assert_true(help_guard_intact(&y));
        if (memcmp(y.data, whole->data, whole->size) != 0) {
            fail_msg("%s: a split changed bits of %d x %d x %d", t->type->name, (int)t->n_row,
                     (int)t->n_col, (int)t->n);
        }
        help_guard_free(&y);
    }
}

/* How far a result may be from the truth, relative to help_dot's size. */
static double mul_bound(sl_act act) { return act == SL_ACT_F32 ? 2e-6 : 1e-5; }

static void mul_one(const sl_kern *scalar, const sl_kern *kern, bool exact, int32_t id,
                    int64_t n_row, int64_t n_col, int64_t n, help_mood mood, uint64_t seed) {
    const sl_mul_slot truth = exact ? scalar->mul_exact[id] : scalar->mul[id];
    const sl_mul_slot slot = exact ? kern->mul_exact[id] : kern->mul[id];
    assert_non_null(slot.fn);
    assert_int_equal(slot.act, truth.act);
    help_rng rng = help_rng_make(seed + 1);
    mul_case t = mul_case_make(kern, slot.act, id, n_row, n_col, n, mood, seed);
    const int64_t y_stride = n_row + (int64_t)(seed % 3);
    help_guarded y = mul_run(&t, slot.fn, y_stride);
    const float *values = (const void *)y.data;
    mul_check(&t, kern->isa, values, y_stride, NULL, mul_bound(slot.act));
    if (kern != scalar) {
        help_guarded y_scalar = mul_run(&t, truth.fn, y_stride);
        mul_check(&t, kern->isa, values, y_stride, (const void *)y_scalar.data,
                  mul_bound(slot.act));
        help_guard_free(&y_scalar);
    }
    mul_check_splits(&t, slot.fn, &y, y_stride, &rng);
    if (exact) {
        /* The F32 product of the decoded weights, to the bit. */
        help_guarded y_f32 = help_guard(y.size, 4);
        kern->mul[SL_QTYPE_F32].fn(n_row, n_col, n, (const void *)t.w_values,
                                   (size_t)n * sizeof(float), t.x, t.x_stride, (void *)y_f32.data,
                                   y_stride);
        assert_memory_equal(y.data, y_f32.data, y.size);
        help_guard_free(&y_f32);
    }
    help_guard_free(&y);
    mul_case_free(&t);
}

static void mul_type(const sl_kern *scalar, const sl_kern *kern, bool exact, int32_t id) {
    static const int64_t small[] = {0, 1, 2, 3, 5, 9};
    static const int64_t large[] = {576, 896, 1536, 2048, 4864};
    static const int64_t odd[] = {1, 7, 8, 9, 15, 31, 33, 200, 257};
    const int64_t n_elem = sl_qtype_find(id)->n_elem;
    uint64_t seed = (uint64_t)id * 1000;
    for (int32_t i = 0; i < 6; i++) {
        for (int64_t n_row = 0; n_row <= 9; n_row++) {
            for (int64_t n_col = 0; n_col <= 9; n_col++) {
                const int64_t step = n_elem == 1 ? 32 : n_elem;
                if (i > 1 && (n_row + n_col + i) % 4 != 0) {
                    continue;
                }
                mul_one(scalar, kern, exact, id, n_row, n_col, small[i] * step, HELP_UNIFORM,
                        ++seed);
            }
        }
    }
    for (int32_t mood = 0; mood < HELP_MOOD_COUNT; mood++) {
        mul_one(scalar, kern, exact, id, 11, 5, n_elem == 1 ? 320 : 4 * n_elem, (help_mood)mood,
                ++seed);
        mul_one(scalar, kern, exact, id, 9, 1, n_elem == 1 ? 320 : 4 * n_elem, (help_mood)mood,
                ++seed);
        mul_one(scalar, kern, exact, id, 3, 17, n_elem == 1 ? 33 : n_elem, (help_mood)mood, ++seed);
    }
    for (int32_t i = 0; i < 5; i++) {
        const int64_t n = large[i] / n_elem * n_elem;
        mul_one(scalar, kern, exact, id, 17, 1, n, HELP_UNIFORM, ++seed);
        mul_one(scalar, kern, exact, id, 8, 35, n, HELP_UNIFORM, ++seed);
        mul_one(scalar, kern, exact, id, 13, 17, n, HELP_SAME, ++seed);
    }
    for (int32_t i = 0; n_elem == 1 && i < 9; i++) {
        mul_one(scalar, kern, exact, id, 9, 1, odd[i], HELP_UNIFORM, ++seed);
        mul_one(scalar, kern, exact, id, 6, 4, odd[i], HELP_UNIFORM, ++seed);
    }
}

static void each_isa(bool exact) {
    sl_kern scalar;
    assert_int_equal(sl_kern_init(&scalar, "scalar", NULL), SL_OK);
    for (int32_t i = 0; i < sl_isa_count(); i++) {
        sl_kern kern;
        if (!sl_isa_at(i)->usable()) {
            print_message("this CPU lacks %s: not tested\n", sl_isa_at(i)->name);
            continue;
        }
        assert_int_equal(sl_kern_init(&kern, sl_isa_at(i)->name, NULL), SL_OK);
        for (int32_t k = 0; k < sl_qtype_count(); k++) {
            const sl_qtype_info *type = sl_qtype_at(k);
            if (exact) {
                /* Every type that can be decoded has an exact product. */
                assert_true((type->decode != NULL) == (kern.mul_exact[type->id].fn != NULL));
            }
            if ((exact ? kern.mul_exact : kern.mul)[type->id].fn != NULL) {
                mul_type(&scalar, i == 0 ? &scalar : &kern, exact, type->id);
            }
        }
    }
}

static void test_mul(void **state) {
    (void)state;
    each_isa(false);
}

static void test_mul_exact(void **state) {
    (void)state;
    each_isa(true);
}

/* The types that the first models need have kernels, with the activations that they are meant to have. */
static void test_mul_table(void **state) {
    (void)state;
    static const struct {
        int32_t id;
        sl_act act;
    } want[] = {
        {SL_QTYPE_F32, SL_ACT_F32},       {SL_QTYPE_F16, SL_ACT_F32},
        {SL_QTYPE_BF16, SL_ACT_F32},      {SL_QTYPE_Q4_0, SL_ACT_Q8_32},
        {SL_QTYPE_Q4_1, SL_ACT_Q8_32},    {SL_QTYPE_Q5_0, SL_ACT_Q8_32},
        {SL_QTYPE_Q5_1, SL_ACT_Q8_32},    {SL_QTYPE_Q8_0, SL_ACT_Q8_32},
        {SL_QTYPE_IQ4_NL, SL_ACT_Q8_32},  {SL_QTYPE_Q2_K, SL_ACT_Q8_256},
        {SL_QTYPE_Q3_K, SL_ACT_Q8_256},   {SL_QTYPE_Q4_K, SL_ACT_Q8_256},
        {SL_QTYPE_Q5_K, SL_ACT_Q8_256},   {SL_QTYPE_Q6_K, SL_ACT_Q8_256},
        {SL_QTYPE_IQ4_XS, SL_ACT_Q8_256},
    };
    for (int32_t i = 0; i < sl_isa_count(); i++) {
        sl_kern kern;
        if (sl_kern_init(&kern, sl_isa_at(i)->name, NULL) != SL_OK) {
            continue;
        }
        for (size_t k = 0; k < sizeof want / sizeof want[0]; k++) {
            assert_non_null(kern.mul[want[k].id].fn);
            assert_int_equal(kern.mul[want[k].id].act, want[k].act);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mul_table),
        cmocka_unit_test(test_mul),
        cmocka_unit_test(test_mul_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
