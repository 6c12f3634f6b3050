/* test_stream.c - text as it may be shown: characters across pieces, stop strings across pieces, and any split of any
 * bytes against a naive model that sees the whole text at once. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "token/stream.h"

#define FFFD "\xef\xbf\xbd"

static uint64_t state = 3;

static uint32_t rnd(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(((state >> 32) * n) >> 32);
}

/* Feed pieces separated by '|' (the escape bytes stand for themselves); compare what each call shows, joined by '|',
 * the flush last. */
static void check_pieces(const char *pieces, const char *const *stop, size_t n_stop,
                         const char *expected, int32_t i_stop) {
    sl_ledger ledger;
    sl_stream *s = NULL;
    sl_memory memory;
    char shown[512] = "";
    const char *text;
    size_t n_text;
    int32_t found = -1;
    sl_ledger_init(&ledger, 0);
    assert_int_equal(sl_stream_open(&ledger, stop, n_stop, 64, &s, NULL), SL_OK);
    sl_ledger_read(&ledger, &memory);
    assert_int_equal(memory.total_bytes, sl_stream_bytes(stop, n_stop, 64));
    for (const char *at = pieces; found < 0;) {
        const char *end = strchr(at, '|');
        const size_t n = end != NULL ? (size_t)(end - at) : strlen(at);
        found = sl_stream_feed(s, at, n, &text, &n_text);
        (void)strncat(shown, text, n_text);
        (void)strcat(shown, "|");
        if (end == NULL) {
            break;
        }
        at = end + 1;
    }
    if (found < 0) {
        found = sl_stream_flush(s, &text, &n_text);
        (void)strncat(shown, text, n_text);
    }
    if (strcmp(shown, expected) != 0 || found != i_stop) {
        fail_msg("%s: \"%s\" (%d), expected \"%s\" (%d)", pieces, shown, found, expected, i_stop);
    }
    sl_stream_close(s);
    sl_ledger_read(&ledger, &memory);
    assert_int_equal(memory.total_bytes, 0);
    assert_true(memory.n_alloc == 1);
}

static void test_utf8(void **unused) {
    (void)unused;
    check_pieces("\xf0\x9f|\x98\x80", NULL, 0, "|😀|", -1);
    check_pieces("\xf0|\x9f|\x98|\x80", NULL, 0, "|||😀|", -1);
    check_pieces("", NULL, 0, "|", -1);
    check_pieces("hello", NULL, 0, "hello|", -1);
    check_pieces("\xc2\xa0", NULL, 0, "\xc2\xa0|", -1);
    check_pieces("\xe2\x80\x9c", NULL, 0, "\xe2\x80\x9c|", -1);
    check_pieces("\xf0\x9f\x98\x80", NULL, 0, "\xf0\x9f\x98\x80|", -1);
    check_pieces("abc\xc3\xa9", NULL, 0, "abc\xc3\xa9|", -1);
    static const char *const cut[] = {"\xc2",         "\xe2\x80", "\xe2",
                                      "\xf0\x9f\x98", "\xf0\x9f", "\xf0"};
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) { /* held; one U+FFFD at the end */
        check_pieces(cut[i], NULL, 0, "|" FFFD, -1);
    }
    check_pieces("hello\xc3", NULL, 0, "hello|" FFFD, -1);
    check_pieces("hello\xc3|", NULL, 0, "hello||" FFFD, -1);
    check_pieces("\xff\xfe", NULL, 0, FFFD FFFD "|", -1);
    check_pieces("Hello\x80World", NULL, 0, "Hello" FFFD "World|", -1);
    check_pieces("\xc3\x28", NULL, 0, FFFD "(|", -1);
    check_pieces("\xc3|\x28", NULL, 0, "|" FFFD "(|", -1);
    check_pieces("\xf0\x9f|\x98"
                 "A",
                 NULL, 0, "|" FFFD "A|", -1);
    check_pieces("\xe2|\xe2\x80|\x9c", NULL, 0, "|" FFFD "|\xe2\x80\x9c|", -1);
    /* The examples of the Unicode standard, tables 3-8 to 3-11. */
    check_pieces("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", NULL, 0,
                 FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A|", -1);
    check_pieces("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", NULL, 0,
                 FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A|", -1);
    check_pieces("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", NULL, 0,
                 FFFD FFFD FFFD FFFD FFFD "A" FFFD FFFD "B|", -1);
    check_pieces("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", NULL, 0, FFFD FFFD FFFD FFFD "A|", -1);
}

static void test_stops(void **unused) {
    (void)unused;
    check_pieces("ABC|DEF|G|HI", (const char *const[]){"DEFGHI"}, 1, "ABC||||", 0);
    check_pieces("be|ta ga|mma|x", (const char *const[]){"beta gamma"}, 1, "|||", 0);
    check_pieces("x be|ta ga|mma", (const char *const[]){"beta gamma"}, 1, "x |||", 0);
    check_pieces("L M N |O| P| Q| R", (const char *const[]){"O P Q"}, 1, "L M N ||||", 0);
    /* A tail that never completes. */
    check_pieces("ABC|DEF|GX", (const char *const[]){"DEFGHI"}, 1, "ABC||DEFGX|", -1);
    check_pieces("ABC|DEF|G", (const char *const[]){"DEFGHI"}, 1, "ABC|||DEFG", -1);
    check_pieces("aaab", (const char *const[]){"aab"}, 1, "a|", 0);
    check_pieces("a|a|a|b", (const char *const[]){"aab"}, 1, "||a||", 0);
    /* The first in the text wins; together, the one completed first; then the first listed. */
    check_pieces("1 STOPX", (const char *const[]){"STOPX", "STOP"}, 2, "1 |", 1);
    check_pieces("1 ST|OPX", (const char *const[]){"STOPX", "STOP"}, 2, "1 ||", 1);
    check_pieces("say END", (const char *const[]){"END", "END"}, 2, "say |", 0);
    check_pieces("xab", (const char *const[]){"b", "ab"}, 2, "x|", 1);
    check_pieces("abc|d", (const char *const[]){"bc", "abcd"}, 2, "||", 1);
    check_pieces("abc|X", (const char *const[]){"abcd", "bc"}, 2, "|a|", 1);
    check_pieces("abc", (const char *const[]){"abcd", "bc"}, 2, "|a", 1); /* seen at the end only */
    check_pieces("the\n|\n|end", (const char *const[]){"\n\n"}, 1, "the||", 0);
    /* Characters cut between tokens inside a stop string, and a stop right after a bad byte. */
    check_pieces("ok \xf0\x9f|\x98\x80!", (const char *const[]){"😀"}, 1, "ok ||", 0);
    check_pieces("ok \xf0\x9f|\x98\x81!", (const char *const[]){"😀"}, 1, "ok |😁!|", -1);
    check_pieces("\xf0\x9f|.", (const char *const[]){"."}, 1, "|" FFFD "|", 0);
    check_pieces("a\xe2", (const char *const[]){FFFD}, 1, "a|",
                 0); /* what is shown is what counts */
}

static void test_bounds(void **unused) {
    (void)unused;
    sl_ledger ledger;
    sl_stream *s = NULL;
    sl_error err;
    sl_memory memory;
    sl_ledger_init(&ledger, 0);
    const char *const empty[] = {"a", ""}, *const bad[] = {"\xc3"};
    assert_int_equal(sl_stream_open(&ledger, empty, 2, 8, &s, &err), SL_EINVAL);
    assert_string_equal(err.text, "stop string 1 is empty");
    assert_int_equal(sl_stream_open(&ledger, bad, 1, 8, &s, &err), SL_EINVAL);
    assert_string_equal(err.text,
                        "stop string 0 is not valid UTF-8: it could never occur in the text");
    const char *many[SL_MAX_STOP + 1];
    for (int i = 0; i <= SL_MAX_STOP; i++) {
        many[i] = "x";
    }
    assert_int_equal(sl_stream_open(&ledger, many, SL_MAX_STOP + 1, 8, &s, &err), SL_EINVAL);
    assert_string_equal(err.text, "17 stop strings: at most 16 are possible");
    static char longest[SL_MAX_STOP_BYTES + 2];
    memset(longest, 'y', SL_MAX_STOP_BYTES + 1);
    many[0] = longest;
    assert_int_equal(sl_stream_open(&ledger, many, 1, 8, &s, &err), SL_EINVAL);
    assert_string_equal(err.text, "stop string 0 has 1025 bytes: at most 1024 are possible");
    longest[SL_MAX_STOP_BYTES] = '\0';
    assert_int_equal(sl_stream_open(&ledger, many, SL_MAX_STOP, 8, &s, &err), SL_OK);
    /* The longest stop string, a byte a piece, then a miss: everything comes out. */
    const char *text;
    size_t n_text, n_all = 0;
    for (int i = 0; i < SL_MAX_STOP_BYTES - 1; i++) {
        assert_int_equal(sl_stream_feed(s, "y", 1, &text, &n_text), -1);
        assert_int_equal(n_text, 0);
    }
    assert_int_equal(sl_stream_feed(s, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, &text, &n_text), -1);
    n_all += n_text;
    assert_int_equal(sl_stream_flush(s, &text, &n_text), -1);
    n_all += n_text;
    assert_int_equal(n_all, SL_MAX_STOP_BYTES - 1 + 24);
    sl_stream_close(s);
    ledger.fail_after = 0;
    assert_int_equal(sl_stream_open(&ledger, many, 1, 8, &s, &err), SL_ENOMEM);
    sl_ledger_read(&ledger, &memory);
    assert_int_equal(memory.total_bytes, 0);
    sl_stream_close(NULL);
}

/* ---- the naive model ---- */

/* Could p[0..k) begin a character? It is filled up with the least and the greatest continuation, and the value of
 * either must be allowed. Gives the length of the character, 0 if it cannot. */
static size_t naive_begins(const unsigned char *p, size_t k) {
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t len = p[0] < 0x80 ? 1 : p[0] < 0xC0 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    if (len == 0 || p[0] > 0xF7 || k > len) {
        return 0;
    }
    for (unsigned fill = 0x80; fill <= 0xBF; fill += 0x3F) {
        uint32_t code = len == 1 ? p[0] : p[0] & (0x7Fu >> len);
        size_t i = 1;
        for (; i < len; i++) {
            const unsigned b = i < k ? p[i] : fill;
            if ((b & 0xC0) != 0x80) {
                break;
            }
            code = code << 6 | (b & 0x3F);
        }
        if (i == len && code >= least[len] && code <= 0x10FFFF &&
            (code < 0xD800 || code > 0xDFFF)) {
            return len;
        }
    }
    return 0;
}

static size_t naive_clean(const unsigned char *p, size_t n, char *out) {
    size_t n_out = 0;
    for (size_t i = 0; i < n;) {
        size_t k = 0;
        while (i + k < n && naive_begins(p + i, k + 1) > k) {
            k++;
        }
        if (k > 0 && naive_begins(p + i, k) == k) {
            memcpy(out + n_out, p + i, k);
            n_out += k;
        } else {
            k = k > 0 ? k : 1;
            memcpy(out + n_out, FFFD, 3);
            n_out += 3;
        }
        i += k;
    }
    return n_out;
}

static int32_t naive_stop(const char *text, size_t n, const char *const *stop, size_t n_stop,
                          size_t *n_shown) {
    int32_t found = -1;
    size_t best_end = 0;
    *n_shown = n;
    for (size_t i = 0; i < n_stop; i++) {
        const size_t n_one = strlen(stop[i]);
        for (size_t at = 0; at + n_one <= n; at++) {
            if (memcmp(text + at, stop[i], n_one) == 0) {
                if (found < 0 || at < *n_shown || (at == *n_shown && at + n_one < best_end)) {
                    found = (int32_t)i;
                    *n_shown = at;
                    best_end = at + n_one;
                }
                break;
            }
        }
    }
    return found;
}

static void test_any_split(void **unused) {
    (void)unused;
    int n_stopped = 0;
    for (int round = 0; round < 60000; round++) {
        unsigned char raw[64];
        char clean[200], shown[200], stop_text[4][16];
        const char *stop[4];
        const size_t n = rnd(60), n_stop = rnd(5);
        static const char alphabet[] = "aab\xc3\xa9\xf0\x9f\x98\x80\xe2\x82\xac\xed\xa0\xff";
        const uint32_t n_alphabet = round % 3 == 0 ? 3 : sizeof alphabet - 1;
        for (size_t i = 0; i < n; i++) {
            raw[i] =
                rnd(50) == 0 ? (unsigned char)rnd(256) : (unsigned char)alphabet[rnd(n_alphabet)];
        }
        const size_t n_clean = naive_clean(raw, n, clean);
        for (size_t i = 0; i < n_stop;
             i++) { /* mostly parts of the text, some with a changed end */
            static const char *const unit[] = {"a", "b", "é", "😀", "€", FFFD};
            stop_text[i][0] = '\0';
            for (uint32_t k = 1 + rnd(round % 3 == 0 ? 6 : 3); k > 0; k--) {
                if (strlen(stop_text[i]) < 11) {
                    (void)strcat(stop_text[i], unit[rnd(round % 3 == 0 ? 2 : 6)]);
                }
            }
            stop[i] = stop_text[i];
        }
        size_t expected_n;
        const int32_t expected = naive_stop(clean, n_clean, stop, n_stop, &expected_n);

        sl_ledger ledger;
        sl_stream *s = NULL;
        const char *text;
        size_t n_text, n_shown = 0, at = 0;
        int32_t found = -1;
        const uint32_t most = 1 + rnd(12);
        sl_ledger_init(&ledger, 0);
        assert_int_equal(sl_stream_open(&ledger, stop, n_stop, most, &s, NULL), SL_OK);
        while (at < n && found < 0) {
            size_t k = rnd(most + 1);
            k = k < n - at ? k : n - at;
            found = sl_stream_feed(s, (const char *)raw + at, k, &text, &n_text);
            at += k;
            memcpy(shown + n_shown, text, n_text);
            n_shown += n_text;
            assert_true(n_shown <= expected_n);        /* never a byte too many, at no time */
            if (n_shown > 0 && n_shown < expected_n) { /* whole characters */
                assert_true((shown[n_shown - 1] & 0x80) == 0 || (clean[n_shown] & 0xC0) != 0x80);
            }
        }
        if (found < 0) {
            found = sl_stream_flush(s, &text, &n_text);
            memcpy(shown + n_shown, text, n_text);
            n_shown += n_text;
        }
        sl_stream_close(s);
        assert_int_equal(found, expected);
        assert_int_equal(n_shown, expected_n);
        assert_memory_equal(shown, clean, n_shown);
        n_stopped += found >= 0;
    }
    assert_in_range(n_stopped, 10000, 55000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_any_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
