/* test_json.c - the JSON reader: valid and invalid texts, where errors point, strings, exact numbers, and random
 * mutations judged by a second, naive validator that lives here. */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static uint64_t state = 1;

static uint32_t rnd(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(((state >> 32) * n) >> 32);
}

/* One whole document: skipped, and the end checked. The text is copied to a block of its exact size, so that the
 * address sanitizer sees a read too far. */
static bool accepts(const char *text, size_t n) {
    char *copy = malloc(n > 0 ? n : 1);
    memcpy(copy, text, n);
    sl_json j;
    sl_json_init(&j, copy, n);
    const bool ok = sl_json_skip(&j) && sl_json_end(&j);
    assert_true(j.at <= n);
    assert_int_equal(ok, !j.failed);
    if (ok) {
        assert_int_equal(j.depth, 0);
        assert_int_equal(j.at, n);
    } else {
        sl_error err;
        assert_int_equal(sl_json_fail(&j, &err, "x"), SL_EFORMAT);
        const size_t at = j.at;
        sl_json_text text_out;
        int64_t i;
        assert_false(sl_json_skip(&j) || sl_json_string(&j, &text_out) || sl_json_int(&j, &i) ||
                     sl_json_end(&j) || sl_json_next_item(&j) || sl_json_next_key(&j, &text_out) ||
                     sl_json_enter_array(&j) || sl_json_peek(&j) != SL_JSON_NONE);
        assert_int_equal(j.at, at); /* sticky */
    }
    free(copy);
    return ok;
}

static void test_valid(void **unused) {
    (void)unused;
    static const char *const text[] = {
        "0",
        "-0",
        "1",
        "-1",
        "10",
        "1.5",
        "1e5",
        "1E+5",
        "1e-5",
        "0.0",
        "-0.0e-0",
        "123456789012345678901234567890",
        "1e999",
        "-1e-999999999999999999999999",
        "0e99999999999999999999",
        "true",
        "false",
        "null",
        "\"\"",
        "[]",
        "{}",
        " [ ] ",
        "\t{\n}\r",
        "[1]",
        "[1,2]",
        "[[],[[]],{}]",
        "{\"a\":1}",
        "{\"a\":{\"b\":[null,true,false]}}",
        "{\"\":0}",
        "{\"a\":1,\"a\":2}",
        "[\"a\\u0000b\"]",
        "\"\\ud83d\\ude00\"",
        "\"\\ud83d\"",
        "\"\\ude00\"",
        "\"\\ud83d\\ud83d\\ude00\"",
        "\"\\uD83Dx\"",
        "\"\\b\\f\\n\\r\\t\\\\\\/\\\"\"",
        "\"\x7f\"",
        "\"é😀\"",
        "\"\xf4\x8f\xbf\xbf\"",
        "\"\xef\xbf\xbf\"",
        "[\"\\uFFFF\"]",
        "[0.1e1 , -2 ]",
        "\"'\"",
        "[1,\n2]",
        " 1 ",
    };
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        if (!accepts(text[i], strlen(text[i]))) {
            fail_msg("refused: %s", text[i]);
        }
    }
}

static void test_invalid(void **unused) {
    (void)unused;
    static const char *const text[] = {
        "",
        " ",
        "[",
        "]",
        "{",
        "}",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[,]",
        "[1 2]",
        "[1,,2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{'a':1}",
        "{1:1}",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":1",
        "{\"a\":",
        "{\"a\"",
        "{\"a",
        "[}",
        "{]",
        "[1}",
        "{\"a\":1]",
        "1 2",
        "[] []",
        "[]x",
        "{}}",
        "01",
        "-01",
        "-",
        "+1",
        ".5",
        "1.",
        "1.e1",
        "1e",
        "1e+",
        "1e-",
        "-.5",
        "0x10",
        "1_0",
        "NaN",
        "nan",
        "Infinity",
        "-Infinity",
        "-a",
        "1a",
        "[1a]",
        "tru",
        "true1",
        "truex",
        "True",
        "fals",
        "nul",
        "nulL",
        "n",
        "t",
        "f",
        "\"",
        "\"a",
        "\"\\",
        "\"\\\"",
        "\"\\x41\"",
        "\"\\a\"",
        "\"\\'\"",
        "\"\\u\"",
        "\"\\u12\"",
        "\"\\u123g\"",
        "\"\\U0041\"",
        "\"\\0\"",
        "'a'",
        "\"a\nb\"",
        "\"\t\"",
        "\"\x01\"",
        "\"\xff\"",
        "\"\xc0\xaf\"",
        "\"\xe2\x82\"",
        "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\x80\"",
        "\xef\xbb\xbf[]",
        "\xef\xbb\xbf",
        "[1]\x0c",
        "\x0b[]",
        "\xc2\xa0[]",
        "/*x*/1",
        "1//x",
        "[1,#\n2]",
        "<!DOCTYPE html>",
        "undefined",
        "*",
        "\"\\ud83d\\u12\"",
        ":",
        ",",
    };
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        if (accepts(text[i], strlen(text[i]))) {
            fail_msg("accepted: %s", text[i]);
        }
    }
    assert_false(accepts("1\0", 2));
    assert_false(accepts("\"a\0\"", 4));
    assert_false(accepts("[\0]", 3));
    sl_json j;
    sl_json_init(&j, NULL, 0);
    assert_false(sl_json_skip(&j));
}

static void test_depth(void **unused) {
    (void)unused;
    enum { N = 100000 };
    char *text = malloc(2 * N);
    memset(text, '[', N);
    memset(text + N, ']', N);
    assert_false(accepts(text, 2 * N));
    assert_false(accepts(text, N));
    const size_t most = SL_MAX_JSON_DEPTH;
    assert_true(accepts(text + N - most, 2 * most));
    assert_false(accepts(text + N - most - 1, 2 * most + 2));
    for (size_t i = 0; i + 5 <= N; i += 5) {
        memcpy(text + i, "{\"\":[", 5);
    }
    assert_false(accepts(text, N));
    free(text);
}

static void check_error(const char *text, const char *expected) {
    sl_json j;
    sl_error err;
    sl_json_init(&j, text, strlen(text));
    assert_false(sl_json_skip(&j) && sl_json_end(&j));
    assert_int_equal(sl_json_fail(&j, &err, "t.json"), SL_EFORMAT);
    assert_string_equal(err.text, expected);
    assert_int_equal(err.code, SL_EFORMAT);
}

static void test_errors(void **unused) {
    (void)unused;
    check_error("", "t.json: line 1, column 1: the text ends where a value was expected");
    check_error("[1,\n 2,\n  x]", "t.json: line 3, column 3: a value was expected");
    check_error("[\"é\", \"\\q\"]", "t.json: line 1, column 8: an unknown escape in a string");
    check_error("{\"a\":1,}",
                "t.json: line 1, column 7: a comma before the end of an array or object");
    check_error("[1 2]", "t.json: line 1, column 4: ',' or ']' was expected");
    check_error("{\"a\":1 2}", "t.json: line 1, column 8: ',' or '}' was expected");
    check_error("{1:2}", "t.json: line 1, column 2: a key in double quotes was expected");
    check_error("{\"a\",", "t.json: line 1, column 5: ':' was expected after a key");
    check_error("007", "t.json: line 1, column 1: a number may not begin with 0");
    check_error("-x", "t.json: line 1, column 2: a digit was expected in a number");
    check_error("[] []", "t.json: line 1, column 4: more text after the end of the value");
    check_error("\"\xff\"", "t.json: line 1, column 2: invalid UTF-8 in a string");
    check_error("\xef\xbb\xbf[]", "t.json: line 1, column 1: a value was expected; a byte order "
                                  "mark is not part of JSON, remove it");
    sl_json j;
    sl_error err;
    sl_json_text text;
    sl_json_init(&j, "{\"a\": [1]}", 10);
    assert_true(sl_json_enter_object(&j) && sl_json_next_key(&j, &text));
    assert_false(sl_json_string(&j, &text));
    assert_int_equal(sl_json_fail(&j, &err, "t.json"), SL_EFORMAT);
    assert_string_equal(err.text, "t.json: line 1, column 7: a string was expected");
    assert_int_equal(sl_json_fail(&j, NULL, NULL), SL_EFORMAT);
}

/* The events of one document, in order. */
static void test_walk(void **unused) {
    (void)unused;
    static const char text[] =
        " { \"name\" : \"x\\ty\" , \"list\" : [ 1 , -2.5e1, [ ], {\"k\":null} ] , "
        "\"skip\": {\"a\":[{}]}, \"yes\" : true, \"\\u006eo\":false } ";
    sl_json j;
    sl_json_text key, value;
    int64_t i = 0;
    double d = 0;
    bool b = false;
    sl_json_init(&j, text, sizeof text - 1);
    assert_int_equal(sl_json_peek(&j), SL_JSON_OBJECT);
    assert_true(sl_json_enter_object(&j));
    assert_true(sl_json_next_key(&j, &key) && sl_json_text_is(&key, "name"));
    assert_false(sl_json_text_is(&key, "nam") || sl_json_text_is(&key, "name2"));
    assert_true(sl_json_string(&j, &value) && sl_json_text_is(&value, "x\ty"));
    assert_true(sl_json_next_key(&j, &key) && sl_json_text_is(&key, "list"));
    assert_int_equal(sl_json_peek(&j), SL_JSON_ARRAY);
    assert_true(sl_json_enter_array(&j));
    assert_true(sl_json_next_item(&j) && sl_json_peek(&j) == SL_JSON_NUMBER && sl_json_int(&j, &i));
    assert_int_equal(i, 1);
    assert_true(sl_json_next_item(&j) && sl_json_double(&j, &d) && d == -25.0);
    assert_true(sl_json_next_item(&j) && sl_json_enter_array(&j) && !sl_json_next_item(&j));
    assert_true(sl_json_next_item(&j) && sl_json_enter_object(&j) && sl_json_next_key(&j, &key));
    assert_true(sl_json_peek(&j) == SL_JSON_NULL && sl_json_null(&j) &&
                !sl_json_next_key(&j, &key));
    assert_false(sl_json_next_item(&j));
    assert_true(sl_json_next_key(&j, &key) && sl_json_skip(&j));
    assert_true(sl_json_next_key(&j, &key) && sl_json_peek(&j) == SL_JSON_BOOL &&
                sl_json_bool(&j, &b) && b);
    assert_true(sl_json_next_key(&j, &key) && key.escaped && sl_json_text_is(&key, "no"));
    assert_true(sl_json_bool(&j, &b) && !b);
    assert_false(sl_json_next_key(&j, &key));
    assert_true(sl_json_end(&j) && !j.failed);
}

static void check_string(const char *quoted, const char *expected, size_t n) {
    sl_json j;
    sl_json_text text;
    char out[64];
    sl_json_init(&j, quoted, strlen(quoted));
    assert_true(sl_json_string(&j, &text) && sl_json_end(&j));
    memset(out, '#', sizeof out);
    assert_int_equal(sl_json_text_copy(&text, out, sizeof out), n);
    assert_memory_equal(out, expected, n);
    assert_int_equal(out[n], '#');
    for (size_t cap = 0; cap < n; cap++) { /* too little room: the length all the same */
        memset(out, '#', sizeof out);
        assert_int_equal(sl_json_text_copy(&text, out, cap), n);
        assert_memory_equal(out, expected, cap);
        assert_int_equal(out[cap], '#');
    }
    if (memchr(expected, 0, n) == NULL) {
        assert_true(sl_json_text_is(&text, expected));
        assert_false(sl_json_text_is(&text, "something else"));
    }
}

static void test_strings(void **unused) {
    (void)unused;
    check_string("\"\"", "", 0);
    check_string("\"plain\"", "plain", 5);
    check_string("\"\\b\\f\\n\\r\\t\\\\\\/\\\"\"", "\b\f\n\r\t\\/\"", 8);
    check_string("\"a\\u0000b\"", "a\0b", 3);
    check_string("\"\\u00e9\\u20AC\"", "\xc3\xa9\xe2\x82\xac", 5);
    check_string("\"\\ud83d\\ude00!\"", "\xf0\x9f\x98\x80!", 5);
    check_string("\"\\uDBFF\\uDFFF\"", "\xf4\x8f\xbf\xbf", 4);
    check_string("\"\\ud83d\"", "\xef\xbf\xbd", 3);
    check_string("\"\\ud83dx\"", "\xef\xbf\xbdx", 4);
    check_string("\"\\ude00\\ud83d\"", "\xef\xbf\xbd\xef\xbf\xbd", 6);
    check_string("\"\\ud83d\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80", 7);
    check_string("\"\\ud83d\\u0041\"",
                 "\xef\xbf\xbd"
                 "A",
                 4);
    check_string("\"é\\n😀\"", "é\n😀", 7);
}

static bool read_int(const char *text, int64_t *out) {
    sl_json j;
    sl_json_init(&j, text, strlen(text));
    return sl_json_int(&j, out) && sl_json_end(&j);
}

static void test_ints(void **unused) {
    (void)unused;
    int64_t i = 7;
    assert_true(read_int("0", &i) && i == 0);
    assert_true(read_int("-0", &i) && i == 0);
    assert_true(read_int("120000", &i) && i == 120000);
    assert_true(read_int("-1", &i) && i == -1);
    assert_true(read_int("9223372036854775807", &i) && i == INT64_MAX);
    assert_true(read_int("-9223372036854775808", &i) && i == INT64_MIN);
    i = 7;
    static const char *const bad[] = {"9223372036854775808",
                                      "-9223372036854775809",
                                      "18446744073709551616",
                                      "99999999999999999999",
                                      "10000000000000000000000000000000000000000",
                                      "1.0",
                                      "1e2",
                                      "1.5",
                                      "0.0",
                                      "true",
                                      "\"1\"",
                                      "[1]",
                                      "-",
                                      ""};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        assert_false(read_int(bad[k], &i));
        assert_int_equal(i, 7); /* written on success only */
    }
}

static double read_double(const char *text, size_t n) {
    sl_json j;
    double d = 0;
    sl_json_init(&j, text, n);
    if (!sl_json_double(&j, &d) || !sl_json_end(&j)) {
        fail_msg("not read: %.200s", text);
    }
    return d;
}

/* strtod of this test runs in the C locale and rounds correctly (glibc, musl). */
static void check_double(const char *text) {
    const double got = read_double(text, strlen(text)), expected = strtod(text, NULL);
    if (memcmp(&got, &expected, sizeof got) != 0) {
        fail_msg("%.200s: %a, expected %a", text, got, expected);
    }
}

static void test_doubles(void **unused) {
    (void)unused;
    static const char *const text[] = {
        "0",
        "-0",
        "-0.0",
        "1",
        "0.1",
        "-0.3",
        "123456789012345678",
        "9007199254740993",
        "9007199254740992.5",
        "9007199254740993.0000000000000000000000001",
        "1e22",
        "1e23",
        "1e-22",
        "8.5e-23",
        "1e308",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "1.8e308",
        "1e309",
        "1e310",
        "1e311",
        "1e400",
        "-1e400",
        "2.2250738585072014e-308",
        "2.2250738585072011e-308",
        "2.2250738585072012e-308",
        "4.9406564584124654e-324",
        "5e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.4703282292062329e-324",
        "7.4e-324",
        "1e-323",
        "1e-330",
        "1e-331",
        "1e-400",
        "6.631236846766476e-316",
        "5.0e-310",
        "0.000000000000000000000000000000000000000000001",
        "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017"
        "977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273"
        "854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704"
        "342711559699508093042880",
        "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017"
        "977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273"
        "854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704"
        "342711559699508093042879.9999",
    };
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        check_double(text[i]);
    }
    char buffer[1400];
    for (int i = 0; i < 100000;
         i++) { /* any double, printed with few, enough and too many digits */
        uint64_t bits =
            ((uint64_t)rnd(UINT32_MAX) << 32) ^ ((uint64_t)rnd(UINT32_MAX) << 5) ^ rnd(64);
        if (i % 8 == 0) {
            bits &= 0x801fffffffffffffu; /* the smallest ones */
        }
        double d;
        memcpy(&d, &bits, sizeof d);
        if (!isfinite(d)) {
            continue;
        }
        (void)snprintf(buffer, sizeof buffer, "%.*e", (int)rnd(i % 16 == 0 ? 780 : 24), d);
        check_double(buffer);
    }
    /* Exactly between two doubles, and a hair above and below it: the tie is decided by the last of many digits. */
    for (int i = 0; i < 300; i++) {
        const double low = ldexp(1.0 + rnd(1 << 30) * 0x1p-30, (int)rnd(1070) - 1060);
        const double high = nextafter(low, INFINITY);
        uint64_t bits;
        memcpy(&bits, &low, sizeof bits);
        const double even = (bits & 1) != 0 ? high : low;
        char digits[1300];
        (void)snprintf(digits, sizeof digits, "%.1100Lf",
                       ((long double)low + (long double)high) / 2);
        if ((long double)low / 4 != (long double)(low / 4)) {
            continue; /* so small that the halves are not exact */
        }
        assert_true(read_double(digits, strlen(digits)) == even || low < 0x1p-1000);
        check_double(digits);
        (void)strcat(digits, "1");
        check_double(digits);
    }
}

/* More digits than any buffer: exponents that undo them. */
static void test_long_numbers(void **unused) {
    (void)unused;
    enum { N = 300000 };
    char *text = malloc(N + 32);
    text[0] = '1';
    memset(text + 1, '0', N);
    (void)strcpy(text + 1 + N, "e-300000");
    assert_true(read_double(text, strlen(text)) == 1.0);
    memcpy(text, "0.", 2);
    (void)strcpy(text + 1 + N, "25e300000");
    assert_true(read_double(text, strlen(text)) == 2.5);
    memset(text, '9', N);
    text[N] = '\0';
    assert_true(isinf(read_double(text, N)));
    text[1] = '.';
    assert_true(read_double(text, N) == 10.0);
    memset(text, '0', N); /* a tie at 2^53 that the very last digit breaks */
    memcpy(text, "9007199254740993.", 17);
    assert_true(read_double(text, N) == 9007199254740992.0);
    text[N - 1] = '1';
    assert_true(read_double(text, N) == 9007199254740994.0);
    free(text);
}

/* ---- a naive validator, straight from the grammar ---- */

static const char *naive_at, *naive_end;

static void naive_space(void) {
    while (naive_at < naive_end && *naive_at != '\0' && strchr(" \t\r\n", *naive_at) != NULL) {
        naive_at++;
    }
}

static bool naive_is(char c) {
    if (naive_at < naive_end && *naive_at == c) {
        naive_at++;
        return true;
    }
    return false;
}

static bool naive_digits(void) {
    const char *begin = naive_at;
    while (naive_at < naive_end && *naive_at >= '0' && *naive_at <= '9') {
        naive_at++;
    }
    return naive_at > begin;
}

static bool naive_utf8(void) { /* from the code point's value */
    const unsigned char b = (unsigned char)*naive_at++;
    const int n = b < 0x80 ? 0 : b >> 5 == 6 ? 1 : b >> 4 == 14 ? 2 : b >> 3 == 30 ? 3 : -1;
    static const uint32_t least[4] = {0, 0x80, 0x800, 0x10000};
    if (n < 0) {
        return false;
    }
    uint32_t code = n == 0 ? b : b & (0x3Fu >> n);
    for (int i = 0; i < n; i++) {
        if (naive_at >= naive_end || ((unsigned char)*naive_at & 0xC0) != 0x80) {
            return false;
        }
        code = code << 6 | ((unsigned char)*naive_at++ & 0x3F);
    }
    return code >= least[n] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
}

static bool naive_string(void) {
    if (!naive_is('"')) {
        return false;
    }
    while (naive_at < naive_end) {
        if (naive_is('"')) {
            return true;
        }
        if ((unsigned char)*naive_at < 0x20) {
            return false;
        }
        if (naive_is('\\')) {
            if (naive_is('u')) {
                for (int i = 0; i < 4; i++) {
                    if (naive_at >= naive_end || *naive_at == '\0' ||
                        strchr("0123456789abcdefABCDEF", *naive_at++) == NULL) {
                        return false;
                    }
                }
            } else if (naive_at >= naive_end || *naive_at == '\0' ||
                       strchr("\"\\/bfnrt", *naive_at++) == NULL) {
                return false;
            }
        } else if (!naive_utf8()) {
            return false;
        }
    }
    return false;
}

static bool naive_value(int depth) {
    naive_space();
    if (naive_at >= naive_end) {
        return false;
    }
    const char c = *naive_at;
    bool ok = false;
    if (c == '"') {
        ok = naive_string();
    } else if (c == '[' || c == '{') {
        const char close = c == '[' ? ']' : '}';
        naive_at++;
        naive_space();
        if (depth >= SL_MAX_JSON_DEPTH) {
            return false;
        }
        ok = naive_is(close);
        while (!ok) {
            if (c == '{') {
                naive_space();
                if (!naive_string()) {
                    return false;
                }
                naive_space();
                if (!naive_is(':')) {
                    return false;
                }
            }
            if (!naive_value(depth + 1)) {
                return false;
            }
            ok = naive_is(close);
            if (!ok && !naive_is(',')) {
                return false;
            }
        }
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        (void)naive_is('-');
        ok = (naive_is('0') || naive_digits()) && (!naive_is('.') || naive_digits());
        if (ok && (naive_is('e') || naive_is('E'))) {
            ok = (naive_is('+') || naive_is('-') || true) && naive_digits();
        }
    } else {
        static const char *const word[] = {"true", "false", "null"};
        for (int i = 0; i < 3 && !ok; i++) {
            const size_t n = strlen(word[i]);
            if ((size_t)(naive_end - naive_at) >= n && memcmp(naive_at, word[i], n) == 0) {
                naive_at += n;
                ok = true;
            }
        }
    }
    naive_space();
    return ok;
}

static void test_mutations(void **unused) {
    (void)unused;
    static const char seed[] =
        "{\"version\": \"1.0\", \"n\": [1, -2.5, 3e10, 0, -0.0E+1], \"t\": true, \"f\": [false, "
        "null],"
        " \"s\": \"a\\u00e9\\ud83d\\ude00\\n\\\\é😀\", \"deep\": [[[{\"x\": [[]]}]]], \"\": {}}";
    static const char alphabet[] =
        "[]{},:\"\\u0123456789eE+-.truefalsn \n\xc3\xa9\xf0\x9f\x98\x80\x01";
    int n_yes = 0, n_no = 0;
    for (int round = 0; round < 200000; round++) {
        char text[sizeof seed + 16];
        size_t n = sizeof seed - 1;
        memcpy(text, seed, n);
        for (uint32_t k = 1 + rnd(3); k > 0; k--) {
            const size_t at = rnd((uint32_t)n);
            const char c = rnd(8) == 0 ? (char)rnd(256) : alphabet[rnd(sizeof alphabet)];
            switch (rnd(4)) {
            case 0: /* change */
                text[at] = c;
                break;
            case 1: /* insert */
                memmove(text + at + 1, text + at, n++ - at);
                text[at] = c;
                break;
            case 2: /* delete */
                memmove(text + at, text + at + 1, --n - at);
                break;
            default: /* cut, now and then */
                n = rnd(16) == 0 ? at + 1 : n;
                break;
            }
        }
        naive_at = text;
        naive_end = text + n;
        const bool expected = naive_value(0) && naive_at == naive_end;
        if (accepts(text, n) != expected) {
            fail_msg("expected %d: %.*s", expected, (int)n, text);
        }
        n_yes += expected;
        n_no += !expected;
    }
    assert_true(n_yes > 10000 && n_no > 10000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid),        cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_depth),        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_walk),         cmocka_unit_test(test_strings),
        cmocka_unit_test(test_ints),         cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_long_numbers), cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
