/* test_quant.c - the type table and the block formats against an independent implementation.
 *
 * The vectors in data/quant are tools/make_quant_vectors.py's: all of what it wrote is used, and what it did not write
 * is missed. Blocks are copied to memory of their exact size at odd addresses, so that the address sanitizer sees a
 * byte too many and the undefined-behaviour sanitizer an alignment taken for granted. */
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

static uint64_t state = 7;

static uint32_t rnd(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* A copy at an address that is 1 modulo 16, ending at the block's end. */
static uint8_t *odd_copy(const void *data, size_t n, void **owner) {
    uint8_t *p = malloc(n + 1);
    assert_non_null(p);
    if (data != NULL && n > 0) {
        memcpy(p + 1, data, n);
    }
    *owner = p;
    return p + 1;
}

static char *read_vector(const char *file, size_t *n) {
    char *data = help_read(help_text("%s/quant/%s", SL_TEST_DATA, file), n);
    if (data == NULL) {
        fail_msg("tests/data/quant/%s is missing", file);
    }
    return data;
}

static void test_types(void **unused) {
    (void)unused;
    size_t size;
    char *text = read_vector("types.txt", &size);
    int32_t n_line = 0;
    for (char *line = text; *line != '\0';) {
        char name[32];
        int id, n_elem, n_byte, used;
        assert_int_equal(sscanf(line, "%31s %d %d %d%n", name, &id, &n_elem, &n_byte, &used), 4);
        const sl_qtype_info *type = sl_qtype_find(id);
        if (type == NULL) {
            fail_msg("no row for %s, %d", name, id);
            return;
        }
        assert_string_equal(type->name, name);
        assert_int_equal(type->id, id);
        assert_int_equal(type->n_elem, n_elem);
        assert_int_equal(type->n_byte, n_byte);
        assert_ptr_equal(sl_qtype_find_name(name), type);
        n_line++;
        line += used;
        line += strspn(line, "\n");
    }
    free(text);
    /* All rows of the file were found and ids differ, so equal counts mean that there is no other row. */
    assert_int_equal(sl_qtype_count(), n_line);
    for (int32_t i = 0; i < sl_qtype_count(); i++) {
        const sl_qtype_info *type = sl_qtype_at(i);
        assert_ptr_equal(sl_qtype_find(type->id), type);
    }
    assert_null(sl_qtype_at(-1));
    assert_null(sl_qtype_at(n_line));
    static const int64_t unknown[] = {
        -1, 4, 5, 31, 33, 36, 38, SL_QTYPE_CAP - 1, SL_QTYPE_CAP, INT64_MAX, INT64_MIN, 1LL << 32};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        assert_null(sl_qtype_find(unknown[i]));
    }
    assert_null(sl_qtype_find_name("q4_0"));
    assert_null(sl_qtype_find_name("Q4_"));
    assert_null(sl_qtype_find_name(""));
    assert_null(sl_qtype_find_name(NULL));
    assert_int_equal(SL_QTYPE_Q4_K, 12);
    assert_int_equal(SL_QTYPE_BF16, 30);
}

static void test_row_bytes(void **unused) {
    (void)unused;
    uint64_t out = 77;
    for (int32_t i = 0; i < sl_qtype_count(); i++) {
        const sl_qtype_info *type = sl_qtype_at(i);
        const uint64_t n_elem = (uint64_t)type->n_elem;
        const uint64_t n_byte = (uint64_t)type->n_byte;
        assert_true(sl_qtype_row_bytes(type, 0, &out));
        assert_int_equal(out, 0);
        assert_true(sl_qtype_row_bytes(type, n_elem * 5, &out));
        assert_int_equal(out, n_byte * 5);
        out = 77;
        if (n_elem > 1) {
            assert_false(sl_qtype_row_bytes(type, 1, &out));
            assert_false(sl_qtype_row_bytes(type, n_elem * 5 - 1, &out));
            assert_false(sl_qtype_row_bytes(type, n_elem * 5 + 1, &out));
            assert_false(sl_qtype_row_bytes(type, UINT64_MAX, &out));
        }
        if (n_byte > n_elem) {
            /* The largest row that fits, and the next one. */
            const uint64_t most = UINT64_MAX / n_byte;
            assert_true(sl_qtype_row_bytes(type, most * n_elem, &out));
            assert_true(out == most * n_byte);
            out = 77;
            assert_false(sl_qtype_row_bytes(type, (most + 1) * n_elem, &out));
        }
        assert_true(out == 77 || n_elem == 1 || n_byte > n_elem);
    }
    assert_false(sl_qtype_row_bytes(NULL, 32, &out));
}

/* The definition of a half, with ldexp. */
static double half_value(uint16_t h) {
    const int exponent = (h >> 10) & 31;
    const double mantissa = h & 1023;
    const double size = exponent == 0    ? ldexp(mantissa, -24)
                        : exponent == 31 ? (double)INFINITY
                                         : ldexp(1024.0 + mantissa, exponent - 25);
    return (h & 0x8000) != 0 ? -size : size;
}

static bool half_is_nan(uint16_t h) { return (h & 0x7fff) > 0x7c00; }

static void test_halves(void **unused) {
    (void)unused;
    for (uint32_t i = 0; i < 65536; i++) {
        const uint16_t h = (uint16_t)i;
        const float f = sl_f16_to_f32(h);
        if (half_is_nan(h)) {
            assert_true(isnan(f));
            assert_int_equal(signbit(f) != 0, h >> 15);
            assert_true(half_is_nan(sl_f32_to_f16(f)));
            assert_int_equal(sl_f32_to_f16(f), h | 0x200); /* payload kept, made quiet */
            continue;
        }
        assert_true((double)f == half_value(h));
        assert_int_equal(signbit(f) != 0, h >> 15);
        assert_int_equal(sl_f32_to_f16(f), h);
    }
    /* Between neighbours: the middle goes to the even one, anything past it to the nearer. */
    for (uint32_t i = 0; i < 0x7bff; i++) {
        const double low = half_value((uint16_t)i);
        const double high = half_value((uint16_t)(i + 1));
        const float middle = (float)((low + high) / 2);
        assert_true((double)middle == (low + high) / 2);
        const uint16_t even = (uint16_t)(i + (i & 1));
        for (uint32_t sign = 0; sign < 2; sign++) {
            const uint32_t top = sign << 15;
            const float s = sign != 0 ? -1.0f : 1.0f;
            assert_int_equal(sl_f32_to_f16(s * middle), top | even);
            assert_int_equal(sl_f32_to_f16(s * nextafterf(middle, 0.0f)), top | i);
            assert_int_equal(sl_f32_to_f16(s * nextafterf(middle, INFINITY)), top | (i + 1));
        }
    }
    assert_int_equal(sl_f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(sl_f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(sl_f32_to_f16(65536.0f), 0x7c00);
    assert_int_equal(sl_f32_to_f16(-3e38f), 0xfc00);
    assert_int_equal(sl_f32_to_f16(INFINITY), 0x7c00);
    assert_int_equal(sl_f32_to_f16(-INFINITY), 0xfc00);
    assert_int_equal(sl_f32_to_f16(1e-45f), 0);
    assert_int_equal(sl_f32_to_f16(-1e-45f), 0x8000);
    /* NaN whose payload lies in the bits that go. */
    assert_true(half_is_nan(sl_f32_to_f16(float_of(0x7f800001u))));
    assert_true(half_is_nan(sl_f32_to_f16(float_of(0xff800001u))));
    /* Random floats of a half's sizes: no other half is nearer. */
    for (uint32_t i = 0; i < 500000; i++) {
        const uint32_t bits = rnd();
        const float f = float_of((bits & 0x807fffffu) | ((97u + (bits >> 23) % 46u) << 23));
        const uint16_t h = sl_f32_to_f16(f);
        if ((h & 0x7fff) >= 0x7bff) {
            assert_true(fabs((double)f) >= 65504.0 - 16.0);
            continue;
        }
        const double off = fabs(half_value(h) - (double)f);
        assert_true(off <= fabs(half_value((uint16_t)(h + 1)) - (double)f));
        if ((h & 0x7fff) != 0) {
            assert_true(off <= fabs(half_value((uint16_t)(h - 1)) - (double)f));
        }
    }
#if defined(__FLT16_MANT_DIG__) && defined(__GNUC__) && !defined(__clang__)
    for (uint32_t i = 0; i < 4000000; i++) {
        const float f = float_of(rnd());
        __extension__ const _Float16 wanted = (_Float16)f;
        uint16_t h;
        memcpy(&h, &wanted, sizeof h);
        const uint16_t got = sl_f32_to_f16(f);
        if (got != h && !(half_is_nan(got) && half_is_nan(h))) {
            fail_msg("%a: %04x, the compiler %04x", (double)f, got, h);
        }
    }
#endif
}

static void test_bfloats(void **unused) {
    (void)unused;
    for (uint32_t i = 0; i < 65536; i++) {
        const uint16_t h = (uint16_t)i;
        const float f = sl_bf16_to_f32(h);
        assert_int_equal(bits_of(f), i << 16);
        if (isnan(f)) {
            assert_true(isnan(sl_bf16_to_f32(sl_f32_to_bf16(f))));
            continue;
        }
        assert_int_equal(sl_f32_to_bf16(f), h);
        if (isinf(f)) {
            continue;
        }
        /* Half way to the next larger size, and one bit to either side. */
        const uint32_t middle = (i << 16) | 0x8000u;
        assert_int_equal(sl_f32_to_bf16(float_of(middle)), (i + (i & 1)) & 0xffff);
        assert_int_equal(sl_f32_to_bf16(float_of(middle - 1)), i);
        assert_int_equal(sl_f32_to_bf16(float_of(middle + 1)), i + 1);
    }
    assert_true(isnan(sl_bf16_to_f32(sl_f32_to_bf16(float_of(0x7f800001u)))));
    assert_true(isnan(sl_bf16_to_f32(sl_f32_to_bf16(float_of(0xffffffffu)))));
}

static void compare_floats(const sl_qtype_info *type, const float *got, const float *wanted,
                           size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (bits_of(got[i]) != bits_of(wanted[i]) && !(isnan(got[i]) && isnan(wanted[i]))) {
            fail_msg("%s: element %zu of %zu is %a, not %a", type->name, i, n, (double)got[i],
                     (double)wanted[i]);
        }
    }
}

static void test_decode(void **unused) {
    (void)unused;
    int32_t n_type = 0;
    for (int32_t i = 0; i < sl_qtype_count(); i++) {
        const sl_qtype_info *type = sl_qtype_at(i);
        if (type->decode == NULL) {
            continue;
        }
        size_t size;
        char *file = read_vector(help_text("%s.decode", type->name), &size);
        const size_t block = (size_t)type->n_byte + 4 * (size_t)type->n_elem;
        assert_int_equal(size % block, 0);
        const size_t n_block = size / block;
        assert_true(n_block >= 12);
        const size_t n_raw = n_block * (size_t)type->n_byte;
        const size_t n_value = n_block * (size_t)type->n_elem;
        void *owner;
        const uint8_t *raw = odd_copy(file, n_raw, &owner);
        float *wanted = malloc(n_value * sizeof *wanted);
        float *got = malloc(n_value * sizeof *got);
        memcpy(wanted, file + n_raw, n_value * sizeof *wanted);
        memset(got, 0x55, n_value * sizeof *got);
        type->decode(raw, got, (int64_t)n_value);
        compare_floats(type, got, wanted, n_value);
        /* Blocks one by one give the same; no elements touch nothing. */
        memset(got, 0x55, n_value * sizeof *got);
        for (size_t b = 0; b < n_block; b++) {
            type->decode(raw + b * (size_t)type->n_byte, got + b * (size_t)type->n_elem,
                         type->n_elem);
        }
        compare_floats(type, got, wanted, n_value);
        type->decode(NULL, NULL, 0);
        free(got);
        free(wanted);
        free(owner);
        free(file);
        n_type++;
    }
    assert_int_equal(n_type, 20);
}

static void test_encode(void **unused) {
    (void)unused;
    static const char *const names[] = {"F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const sl_qtype_info *type = sl_qtype_find_name(names[i]);
        assert_non_null(type);
        assert_non_null(type->encode);
        size_t size;
        char *file = read_vector(help_text("%s.encode", type->name), &size);
        const size_t block = (size_t)type->n_byte + 4 * (size_t)type->n_elem;
        assert_int_equal(size % block, 0);
        const size_t n_block = size / block;
        assert_true(n_block >= 24);
        const size_t n_raw = n_block * (size_t)type->n_byte;
        const size_t n_value = n_block * (size_t)type->n_elem;
        const char *wanted = file + n_value * sizeof(float);
        float *values = malloc(n_value * sizeof *values);
        memcpy(values, file, n_value * sizeof *values);
        void *owner;
        uint8_t *got = odd_copy(NULL, n_raw, &owner);
        type->encode(values, got, (int64_t)n_value);
        for (size_t k = 0; k < n_raw; k++) {
            if (got[k] != (uint8_t)wanted[k]) {
                fail_msg("%s: byte %zu of block %zu is %02x, not %02x", type->name,
                         k % (size_t)type->n_byte, k / (size_t)type->n_byte, got[k],
                         (unsigned)(uint8_t)wanted[k]);
            }
        }
        type->encode(NULL, NULL, 0);
        free(owner);
        free(values);
        free(file);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),  cmocka_unit_test(test_row_bytes),
        cmocka_unit_test(test_halves), cmocka_unit_test(test_bfloats),
        cmocka_unit_test(test_decode), cmocka_unit_test(test_encode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
