/* test_base.c - the base layer: errors, checked arithmetic, cursor, UTF-8, ledger, arena. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/utf8.h"

static uint64_t base_random_state = 1;

static uint64_t base_random(void) { /* splitmix64 */
    uint64_t z = (base_random_state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static void test_error_text(void **state) {
    (void)state;
    sl_error err;
    assert_int_equal(SL_FAIL(&err, SL_EFORMAT, "key '%s'", "a\x1b[31m\n\xff\xc2\x9b"), SL_EFORMAT);
    assert_string_equal(err.text, "key 'a?[31m"
                                  "?"
                                  "?"
                                  "?"
                                  "?'"); /* escape, newline, a bad byte, a C1 control */
    assert_int_equal(err.code, SL_EFORMAT);
    sl_error_prefix(&err, "%s", "model.gguf");
    assert_string_equal(err.text, "model.gguf: key 'a?[31m"
                                  "?"
                                  "?"
                                  "?"
                                  "?'");
    assert_int_equal(SL_FAIL(NULL, SL_EIO, "nobody reads this"), SL_EIO);
    sl_error_prefix(NULL, "x");
    char longest[2000];
    memset(longest, 'y', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    (void)SL_FAIL(&err, SL_EIO, "%s", longest);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    sl_error_prefix(&err, "%s", longest);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    /* a character cut by the buffer's end is dropped whole */
    for (size_t i = 0; i + 3 < sizeof longest; i += 3) {
        memcpy(longest + i, "\xe2\x82\xac", 3);
    }
    (void)SL_FAIL(&err, SL_EIO, "%s", longest);
    assert_int_equal(sl_utf8_tail((const uint8_t *)err.text, strlen(err.text)), 0);
}

static void test_status_names(void **state) {
    (void)state;
    assert_string_equal(sl_status_name(SL_OK), "SL_OK");
    assert_string_equal(sl_status_name(SL_EBUDGET), "SL_EBUDGET");
    assert_string_equal(sl_status_name((sl_status)99), "SL_?");
    assert_string_equal(sl_status_text(SL_ENOTSUP), "valid, but not supported");
    assert_string_equal(sl_account_name(SL_ACCOUNT_KV), "kv");
    assert_string_equal(sl_account_name(SL_ACCOUNT_COUNT), "?");
    assert_string_equal(sl_version(), "0.1.0");
}

static void test_checked(void **state) {
    (void)state;
    size_t s = 7;
    uint64_t u = 7;
    int32_t i = 7;
    assert_false(sl_add_size(SIZE_MAX, 1, &s));
    assert_false(sl_mul_size(SIZE_MAX / 2 + 1, 2, &s));
    assert_false(sl_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &u));
    assert_false(sl_add_u64(UINT64_MAX, 1, &u));
    assert_false(sl_align_u64(UINT64_MAX - 3, 32, &u));
    assert_false(sl_i64_to_i32(INT64_C(1) << 31, &i));
    assert_int_equal(s, 7);
    assert_int_equal(u, 7);
    assert_int_equal(i, 7);
    assert_true(sl_add_size(SIZE_MAX - 1, 1, &s) && s == SIZE_MAX);
    assert_true(sl_mul_size(SIZE_MAX, 0, &s) && s == 0);
    assert_true(sl_mul_u64(UINT32_MAX, UINT32_MAX, &u) && u == UINT64_C(0xFFFFFFFE00000001));
    assert_true(sl_align_u64(33, 32, &u) && u == 64);
    assert_true(sl_align_u64(64, 32, &u) && u == 64);
    assert_true(sl_i64_to_i32(-(INT64_C(1) << 31), &i) && i == INT32_MIN);
    assert_true(sl_is_pow2(1) && sl_is_pow2(UINT64_C(1) << 63) && !sl_is_pow2(0) &&
                !sl_is_pow2(12));
}

static void test_cursor(void **state) {
    (void)state;
    const uint8_t data[] = {1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 128, 63};
    sl_cursor c = sl_cursor_make(data, sizeof data);
    assert_int_equal(sl_cursor_u64(&c), UINT64_C(0x0807060504030201));
    assert_true(sl_cursor_f32(&c) == 1.0f);
    assert_non_null(sl_cursor_bytes(&c, 0));
    assert_int_equal(sl_cursor_left(&c), 0);
    assert_int_equal(sl_cursor_u8(&c), 0);
    assert_true(c.failed);
    c = sl_cursor_make(data, 7);
    assert_int_equal(sl_cursor_u64(&c), 0); /* one byte short */
    assert_true(c.failed);
    assert_null(sl_cursor_bytes(&c, 0)); /* sticky */
    c = sl_cursor_make(data, sizeof data);
    assert_null(sl_cursor_bytes(&c, UINT64_MAX));
    assert_true(c.failed);
}

/* Every code point there and back; every two-byte and many longer strings against the definition. */
static void test_utf8(void **state) {
    (void)state;
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        uint8_t b[4];
        const size_t n = sl_utf8_put(code, b);
        size_t len;
        const uint32_t want = code >= 0xD800 && code <= 0xDFFF ? 0xFFFD : code;
        assert_int_equal(sl_utf8_next(b, n, &len), want);
        assert_int_equal(len, n);
        for (size_t k = 1; k < n; k++) { /* each proper beginning is "incomplete" */
            assert_int_equal(sl_utf8_len(b, k), 0);
            assert_int_equal(sl_utf8_tail(b, k), k);
        }
        assert_int_equal(sl_utf8_tail(b, n), 0);
    }
    static const char *const invalid[] = {
        "\x80",     "\xBF",         "\xC0\x80",         "\xC1\xBF",
        "\xE0\x9F", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5",     "\xFF",         "\xC3\x28",         "\xE2\x28\xA1"};
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++) {
        size_t len;
        assert_int_equal(sl_utf8_len((const uint8_t *)invalid[i], strlen(invalid[i])), -1);
        assert_int_equal(sl_utf8_next((const uint8_t *)invalid[i], strlen(invalid[i]), &len),
                         0xFFFD);
        assert_int_equal(len, 1);
    }
}

static void test_ledger_books(void **state) {
    (void)state;
    sl_ledger ledger;
    sl_memory m;
    sl_error err;
    sl_ledger_init(&ledger, 1000);
    void *a = NULL, *b = NULL, *none = &ledger;
    assert_int_equal(sl_alloc(&ledger, SL_ACCOUNT_KV, 600, &a, "first", &err), SL_OK);
    assert_int_equal((uintptr_t)a % 64, 0);
    assert_int_equal(sl_alloc(&ledger, SL_ACCOUNT_IO, 401, &none, "second", &err), SL_EBUDGET);
    assert_ptr_equal(none, &ledger); /* left alone */
    assert_string_equal(err.text,
                        "second needs 401 bytes, but 600 of the limit of 1000 bytes are in use");
    assert_int_equal(sl_alloc(&ledger, SL_ACCOUNT_IO, 400, &b, "second", &err), SL_OK);
    sl_ledger_read(&ledger, &m);
    assert_int_equal(m.total_bytes, 1000);
    assert_int_equal(m.now_bytes[SL_ACCOUNT_KV], 600);
    assert_int_equal(m.n_alloc, 2);
    sl_release(&ledger, SL_ACCOUNT_KV, a, 600);
    sl_release(&ledger, SL_ACCOUNT_IO, b, 400);
    sl_release(&ledger, SL_ACCOUNT_IO, NULL, 12345);
    sl_ledger_read(&ledger, &m);
    assert_int_equal(m.total_bytes, 0);
    assert_int_equal(m.total_peak_bytes, 1000);
    assert_int_equal(m.peak_bytes[SL_ACCOUNT_IO], 400);
    assert_int_equal(sl_alloc(&ledger, SL_ACCOUNT_IO, SIZE_MAX, &none, "all", &err), SL_ENOMEM);
    assert_int_equal(sl_alloc_zero(&ledger, SL_ACCOUNT_IO, SIZE_MAX / 2, 4, &none, "all", &err),
                     SL_ENOMEM);
    assert_int_equal(sl_alloc(&ledger, SL_ACCOUNT_IO, 0, &a, "nothing", &err), SL_OK);
    assert_non_null(a);
    sl_release(&ledger, SL_ACCOUNT_IO, a, 0);
}

/* Large blocks take another road (maps); resize keeps contents over the border. */
static void test_ledger_large(void **state) {
    (void)state;
    sl_ledger ledger;
    sl_error err;
    sl_memory m;
    sl_ledger_init(&ledger, 0);
    void *p = NULL;
    const size_t sizes[] = {100, 5000000, 4194304, 4194303, 9000001, 64};
    size_t old = 0, common = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(sl_resize(&ledger, SL_ACCOUNT_MISC, &p, old, sizes[i], "block", &err),
                         SL_OK);
        const uint8_t *bytes = p;
        for (size_t k = 0; k < common && k < sizes[i]; k += 61) {
            assert_int_equal(bytes[k], (uint8_t)(k * 7));
        }
        for (size_t k = 0; k < sizes[i]; k++) {
            ((uint8_t *)p)[k] = (uint8_t)(k * 7);
        }
        old = common = sizes[i];
    }
    sl_release(&ledger, SL_ACCOUNT_MISC, p, old);
    assert_int_equal(sl_alloc_zero(&ledger, SL_ACCOUNT_MISC, 5000, 1001, &p, "zeroes", &err),
                     SL_OK);
    for (size_t k = 0; k < 5000 * 1001; k++) {
        assert_int_equal(((uint8_t *)p)[k], 0);
    }
    sl_release(&ledger, SL_ACCOUNT_MISC, p, 5000 * 1001);
    sl_ledger_read(&ledger, &m);
    assert_int_equal(m.total_bytes, 0);
}

static void test_ledger_fails_on_demand(void **state) {
    (void)state;
    sl_ledger ledger;
    sl_error err;
    void *p[4] = {NULL};
    sl_ledger_init(&ledger, 0);
    atomic_store(&ledger.fail_after, 2);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(sl_alloc(&ledger, SL_ACCOUNT_MISC, 10, &p[i], "block", &err),
                         i < 2 ? SL_OK : SL_ENOMEM);
    }
    sl_release(&ledger, SL_ACCOUNT_MISC, p[0], 10);
    sl_release(&ledger, SL_ACCOUNT_MISC, p[1], 10);
    assert_int_equal(atomic_load(&ledger.total), 0);
}

static void test_ledger_dry(void **state) {
    (void)state;
    sl_ledger ledger;
    sl_error err;
    sl_ledger_init(&ledger, 0);
    ledger.dry = true;
    void *p = &ledger;
    assert_int_equal(
        sl_alloc_bulk(&ledger, SL_ACCOUNT_WEIGHTS, (size_t)1 << 45, &p, "weights", &err), SL_OK);
    assert_null(p);
    assert_true(atomic_load(&ledger.total) == (size_t)1 << 45);
    assert_true(atomic_load(&ledger.n_alloc) == 0);
    sl_release_bulk(&ledger, SL_ACCOUNT_WEIGHTS, p, (size_t)1 << 45);
    assert_true(atomic_load(&ledger.total) == 0);
}

static void test_arena(void **state) {
    (void)state;
    sl_ledger ledger;
    sl_error err;
    sl_arena arena;
    sl_ledger_init(&ledger, 0);
    sl_arena_init(&arena, &ledger, SL_ACCOUNT_TOKEN, 512);
    const char *text[200];
    uint8_t *block[200];
    size_t size[200];
    for (int i = 0; i < 200; i++) {
        void *p;
        size[i] = base_random() % 700;
        assert_int_equal(sl_arena_take(&arena, size[i], &p, "block", &err), SL_OK);
        assert_int_equal((uintptr_t)p % 16, 0);
        block[i] = p;
        memset(p, i, size[i]);
        assert_int_equal(sl_arena_text(&arena, "hello", 3, &text[i], "text", &err), SL_OK);
    }
    for (int i = 0; i < 200; i++) {
        assert_string_equal(text[i], "hel");
        for (size_t k = 0; k < size[i]; k++) {
            assert_int_equal(block[i][k], i);
        }
    }
    void *p;
    assert_int_equal(sl_arena_take(&arena, SIZE_MAX, &p, "too much", &err), SL_ENOMEM);
    sl_arena_done(&arena);
    sl_arena_done(&arena);
    assert_true(atomic_load(&ledger.total) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_text),   cmocka_unit_test(test_status_names),
        cmocka_unit_test(test_checked),      cmocka_unit_test(test_cursor),
        cmocka_unit_test(test_utf8),         cmocka_unit_test(test_ledger_books),
        cmocka_unit_test(test_ledger_large), cmocka_unit_test(test_ledger_fails_on_demand),
        cmocka_unit_test(test_ledger_dry),   cmocka_unit_test(test_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
