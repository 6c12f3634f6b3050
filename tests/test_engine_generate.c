/* test_engine_generate.c - generation: what is sampled, where it ends, and the text that comes out.
 *
 * The tiny models have random weights, so their text is noise; that makes them good at finding wrong cuts: every
 * boundary between two tokens of such a text is tried as a stop string. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help_golden.h"
#include "help_paths.h"
#include <cmocka.h>

enum { GENERATE_CAP_IDS = 1024, GENERATE_CAP_TEXT = 16384 };

/* What a generation handed out. */
typedef struct generate_record {
    int32_t ids[GENERATE_CAP_IDS];
    size_t ends[GENERATE_CAP_IDS]; /* length of the text after each callback */
    int32_t n;
    char text[GENERATE_CAP_TEXT];
    size_t n_text;
    int32_t stop_after; /* the callback says false at this call; 0: never */
} generate_record;

static bool generate_on_text(void *user, int32_t id, const char *text, size_t n_text) {
    generate_record *record = user;
    if (record->n < GENERATE_CAP_IDS && n_text <= sizeof record->text - record->n_text) {
        if (n_text > 0) {
            memcpy(record->text + record->n_text, text, n_text);
        }
        record->n_text += n_text;
        record->ids[record->n] = id;
        record->ends[record->n] = record->n_text;
        record->n++;
    }
    return record->stop_after == 0 || record->n < record->stop_after;
}

static void generate_open(golden_rig *rig, const char *name, int32_t n_ctx) {
    const sl_session_options options = {.size = sizeof options, .n_ctx = n_ctx};
    /* One thread: what is looked at does not depend on their number (test_bits.c), and on a busy machine a tiny model's
     * passes are little but waiting for the other threads. */
    const sl_engine_options one = {.size = sizeof one, .n_thread = 1};
    golden_open(rig, golden_path(help_text("%s.gguf", name)), &one, NULL, &options);
}

static size_t generate_prompt(const golden_rig *rig, int32_t *ids, size_t cap) {
    sl_error err;
    const char text[] = "The small river opens the bridge";
    size_t n = 0;
    GOLDEN_STATUS(sl_tokenize(rig->model, text, strlen(text), 0, ids, cap, &n, &err), SL_OK, &err);
    assert_true(n > 4);
    return n;
}

/* From an empty session. */
static void generate_run(golden_rig *rig, const sl_generate_options *options,
                         generate_record *record, sl_generate_result *result) {
    sl_error err;
    int32_t ids[64];
    const int32_t stop_after = record->stop_after;
    memset(record, 0, sizeof *record);
    record->stop_after = stop_after;
    const size_t n = generate_prompt(rig, ids, 64);
    GOLDEN_STATUS(sl_session_rewind(rig->session, 0, &err), SL_OK, &err);
    GOLDEN_STATUS(
        sl_generate(rig->session, ids, n, options, generate_on_text, record, result, &err), SL_OK,
        &err);
    assert_int_equal(result->n_prompt, (int32_t)n);
}

static bool generate_is_utf8(const char *text, size_t n) {
    for (size_t i = 0; i < n;) {
        const uint8_t c = (uint8_t)text[i];
        const size_t more = c < 0x80 ? 0 : c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : c >= 0xC2 ? 1 : 9;
        if (more == 9 || i + more >= n) {
            return more == 0 && i < n;
        }
        for (size_t k = 1; k <= more; k++) {
            if (((uint8_t)text[i + k] & 0xC0) != 0x80) {
                return false;
            }
        }
        i += more + 1;
    }
    return true;
}

/* Greedy generation is the argmax of one's own loop, and the text is that of the ids. */
static void test_greedy_is_argmax(void **state) {
    (void)state;
    for (size_t i = 0; golden_tree[i] != NULL; i++) {
        golden_rig rig;
        generate_open(&rig, golden_tree[i], 200);
        static generate_record record;
        sl_generate_result result;
        const sl_generate_options options = {
            .size = sizeof options, .max_tokens = 60, .ignore_eog = true};
        generate_run(&rig, &options, &record, &result);
        assert_int_equal(result.finish, SL_FINISH_LENGTH);
        assert_int_equal(result.n_generated, 60);
        assert_int_equal(result.i_stop, -1);
        assert_true(record.n >= 60);
        sl_error err;
        int32_t ids[64];
        const size_t n = generate_prompt(&rig, ids, 64);
        GOLDEN_STATUS(sl_session_rewind(rig.session, 0, &err), SL_OK, &err);
        GOLDEN_STATUS(sl_session_eval(rig.session, ids, n, SL_WANT_LAST, NULL, NULL, &err), SL_OK,
                      &err);
        for (int32_t k = 0; k < 60; k++) {
            const int32_t id = golden_argmax(sl_session_logits(rig.session), rig.n_vocab);
            assert_int_equal(record.ids[k], id);
            GOLDEN_STATUS(sl_session_eval(rig.session, &id, 1, SL_WANT_LAST, NULL, NULL, &err),
                          SL_OK, &err);
        }
        assert_true(generate_is_utf8(record.text, record.n_text));
        golden_close(&rig);
    }
}

static void test_max_tokens(void **state) {
    (void)state;
    golden_rig rig;
    generate_open(&rig, "qwen2-q8_0", 200);
    static generate_record record;
    sl_generate_result result;
    for (int32_t n = 1; n < 5; n++) {
        const sl_generate_options options = {
            .size = sizeof options, .max_tokens = n, .ignore_eog = true};
        generate_run(&rig, &options, &record, &result);
        assert_int_equal(result.n_generated, n);
        assert_int_equal(result.finish, SL_FINISH_LENGTH);
        assert_true(result.first_us >= result.prefill_us);
    }
    golden_close(&rig);
}

static void test_context_full(void **state) {
    (void)state;
    golden_rig rig;
    generate_open(&rig, "qwen2-q8_0", 40);
    static generate_record record;
    sl_generate_result result;
    const sl_generate_options options = {.size = sizeof options, .ignore_eog = true};
    generate_run(&rig, &options, &record, &result);
    assert_int_equal(result.finish, SL_FINISH_LENGTH);
    /* Every place is used; the token sampled from the last one needs none itself. */
    assert_int_equal(sl_session_n_past(rig.session), 40);
    assert_int_equal(result.n_prompt + result.n_generated, 41);
    /* More tokens than there is room for: the same end. */
    const sl_generate_options more = {.size = sizeof more, .ignore_eog = true, .max_tokens = 1000};
    generate_run(&rig, &more, &record, &result);
    assert_int_equal(result.finish, SL_FINISH_LENGTH);
    assert_int_equal(result.n_prompt + result.n_generated, 41);
    golden_close(&rig);
}

/* Without ignore_eog a generation ends at the first token that is one, which is no text and is not counted. */
static void test_eog(void **state) {
    (void)state;
    golden_rig rig;
    generate_open(&rig, "qwen2-q8_0", 1000);
    static generate_record on, off;
    sl_generate_result result;
    int32_t n_seen = 0;
    for (uint64_t seed = 1; seed < 40; seed++) {
        sl_generate_options options = {.size = sizeof options,
                                       .max_tokens = 100,
                                       .sampling = {.temperature = 3.0f, .seed = seed},
                                       .ignore_eog = true};
        generate_run(&rig, &options, &on, &result);
        int32_t first = 0;
        while (first < 100 && !sl_token_is_eog(rig.model, on.ids[first])) {
            first++;
        }
        options.ignore_eog = false;
        generate_run(&rig, &options, &off, &result);
        assert_int_equal(result.n_generated, first);
        assert_int_equal(result.finish, first < 100 ? SL_FINISH_EOG : SL_FINISH_LENGTH);
        assert_memory_equal(on.ids, off.ids, (size_t)first * sizeof on.ids[0]);
        n_seen += first < 100;
    }
    /* Both ends were seen, so both were tested. */
    printf("  %d of 39 texts ended by themselves\n", n_seen);
    assert_in_range(n_seen, 1, 39);
    golden_close(&rig);
}

static void test_callback_ends(void **state) {
    (void)state;
    golden_rig rig;
    generate_open(&rig, "qwen2-q8_0", 200);
    static generate_record record;
    sl_generate_result result;
    const sl_generate_options options = {
        .size = sizeof options, .max_tokens = 50, .ignore_eog = true};
    for (int32_t n = 1; n < 4; n++) {
        record.stop_after = n;
        generate_run(&rig, &options, &record, &result);
        assert_int_equal(result.finish, SL_FINISH_CALLBACK);
        assert_int_equal(result.n_generated, n);
        assert_int_equal(record.n, n);
    }
    /* Without a callback and a result it runs as well. */
    sl_error err;
    const int32_t id = 7;
    GOLDEN_STATUS(sl_generate(rig.session, &id, 1, &options, NULL, NULL, NULL, &err), SL_OK, &err);
    golden_close(&rig);
}

static const char *generate_find(const char *text, size_t n, const char *what, size_t n_what) {
    for (size_t i = 0; i + n_what <= n; i++) {
        if (memcmp(text + i, what, n_what) == 0) {
            return text + i;
        }
    }
    return NULL;
}

/* A stop string at every boundary of the text: what comes out is exactly what stood before it. */
static void test_stop_over_boundaries(void **state) {
    (void)state;
    int32_t n_tried = 0;
    for (size_t i = 0; golden_tree[i] != NULL; i++) {
        golden_rig rig;
        generate_open(&rig, golden_tree[i], 200);
        static generate_record whole, cut;
        sl_generate_result result;
        sl_generate_options options = {.size = sizeof options,
                                       .max_tokens = 50,
                                       .sampling = {.temperature = 0.8f, .seed = 5},
                                       .ignore_eog = true};
        generate_run(&rig, &options, &whole, &result);
        for (int32_t k = 0; k + 1 < whole.n; k++) {
            const size_t at = whole.ends[k];
            for (size_t before = 1; before <= 3; before++) {
                const size_t n_stop = before + 2;
                if (at < before || at + 2 > whole.n_text) {
                    continue;
                }
                char stop_text[16] = {0};
                memcpy(stop_text, whole.text + at - before, n_stop);
                /* U+FFFD stands for bytes that were none: it is not in the text that is searched. */
                if (!generate_is_utf8(stop_text, n_stop) || strlen(stop_text) != n_stop ||
                    strstr(stop_text, "\xEF\xBF\xBD") != NULL) {
                    continue;
                }
                /* The second of two; the first one never occurs. */
                const char *const stop[] = {"\x7f nowhere \x7f", stop_text};
                options.stop = stop;
                options.n_stop = 2;
                generate_run(&rig, &options, &cut, &result);
                const char *first = generate_find(whole.text, whole.n_text, stop_text, n_stop);
                assert_non_null(first);
                assert_int_equal(result.finish, SL_FINISH_STOP);
                assert_int_equal(result.i_stop, 1);
                if (cut.n_text != (size_t)(first - whole.text)) {
                    fail_msg("%s: stop '%s' cut after %zu bytes instead of %zu", golden_tree[i],
                             stop_text, cut.n_text, (size_t)(first - whole.text));
                }
                assert_memory_equal(cut.text, whole.text, cut.n_text);
                n_tried++;
            }
        }
        /* Stop strings that never come, one the beginning of what does: the text is whole. */
        char nearly[16] = {0};
        size_t take = 0;
        while (take < 8 && take < whole.n_text && (whole.text[take] & 0x80) == 0 &&
               whole.text[take] != '\0') {
            nearly[take] = whole.text[take];
            take++;
        }
        nearly[take] = '\x7f';
        const char *const never[] = {nearly, "\x7f\x7f"};
        options.stop = never;
        options.n_stop = 2;
        generate_run(&rig, &options, &cut, &result);
        assert_int_equal(result.finish, SL_FINISH_LENGTH);
        assert_int_equal(cut.n_text, whole.n_text);
        assert_memory_equal(cut.text, whole.text, whole.n_text);
        golden_close(&rig);
    }
    printf("  %d stop strings tried\n", n_tried);
    assert_true(n_tried > 100);
}

/* Of two stop strings the one that stands first in the text ends it, though the other one is longer. */
static void test_first_stop_wins(void **state) {
    (void)state;
    golden_rig rig;
    generate_open(&rig, "llama_spm-q8_0", 200);
    static generate_record whole, cut;
    sl_generate_result result;
    sl_generate_options options = {.size = sizeof options,
                                   .max_tokens = 60,
                                   .sampling = {.temperature = 1.0f, .seed = 21},
                                   .ignore_eog = true};
    generate_run(&rig, &options, &whole, &result);
    /* Three ASCII bytes that first occur beyond the start, and one later piece of text. */
    size_t at = 0;
    char early[8] = {0}, late[8] = {0};
    for (size_t i = 8; i + 12 < whole.n_text && late[0] == '\0'; i++) {
        memcpy(early, whole.text + i, 3);
        memcpy(late, whole.text + i + 5, 6);
        if (strlen(early) != 3 || strlen(late) != 6 || !generate_is_utf8(early, 3) ||
            !generate_is_utf8(late, 6) || strstr(early, "\xEF\xBF\xBD") != NULL ||
            strstr(late, "\xEF\xBF\xBD") != NULL ||
            generate_find(whole.text, whole.n_text, early, 3) != whole.text + i ||
            generate_find(whole.text, whole.n_text, late, 6) != whole.text + i + 5) {
            memset(late, 0, sizeof late);
            continue;
        }
        at = i;
    }
    assert_true(at > 0);
    const char *const stop[] = {late, early};
    options.stop = stop;
    options.n_stop = 2;
    generate_run(&rig, &options, &cut, &result);
    assert_int_equal(result.finish, SL_FINISH_STOP);
    assert_int_equal(result.i_stop, 1);
    assert_int_equal(cut.n_text, at);
    golden_close(&rig);
}

static void test_seeds(void **state) {
    (void)state;
    for (size_t i = 0; golden_tree[i] != NULL; i++) {
        golden_rig rig;
        generate_open(&rig, golden_tree[i], 200);
        static generate_record a, b, c;
        sl_generate_result result_a, result_b, result_c;
        sl_generate_options options = {
            .size = sizeof options,
            .max_tokens = 40,
            .sampling = {.temperature = 1.5f, .top_k = 100, .top_p = 0.98f, .seed = 42},
            .ignore_eog = true};
        generate_run(&rig, &options, &a, &result_a);
        assert_int_equal(result_a.seed, 42);
        generate_run(&rig, &options, &b, &result_b);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.ids, b.ids, (size_t)a.n * sizeof a.ids[0]);
        options.sampling.seed = 43;
        generate_run(&rig, &options, &c, &result_c);
        assert_true(memcmp(a.ids, c.ids, 40 * sizeof a.ids[0]) != 0);
        /* Whatever seed 0 means, the result names the seed that gives the same again. */
        options.sampling.seed = 0;
        generate_run(&rig, &options, &a, &result_a);
        options.sampling.seed = result_a.seed;
        generate_run(&rig, &options, &b, &result_b);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.ids, b.ids, (size_t)a.n * sizeof a.ids[0]);
        golden_close(&rig);
    }
}

/* Samplers that leave one candidate are greedy, at any temperature. */
static void test_narrow_sampling_is_greedy(void **state) {
    (void)state;
    golden_rig rig;
    generate_open(&rig, "llama_rope3_tied-f16", 200);
    static generate_record greedy, narrow;
    sl_generate_result result;
    sl_generate_options options = {.size = sizeof options, .max_tokens = 50, .ignore_eog = true};
    generate_run(&rig, &options, &greedy, &result);
    const sl_sampling ways[] = {{.temperature = 2.0f, .top_k = 1, .seed = 9},
                                {.temperature = 2.0f, .min_p = 1.0f, .seed = 9},
                                {.temperature = 2.0f, .top_p = 1e-6f, .seed = 9},
                                {.temperature = 1e-4f, .seed = 9}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        options.sampling = ways[i];
        generate_run(&rig, &options, &narrow, &result);
        assert_int_equal(narrow.n, greedy.n);
        assert_memory_equal(narrow.ids, greedy.ids, (size_t)greedy.n * sizeof greedy.ids[0]);
    }
    /* A hard penalty forbids repeating while there are others: no token twice in the window. */
    const sl_sampling penalty = {.repeat_penalty = 100.0f, .repeat_last_n = -1};
    options.sampling = penalty;
    generate_run(&rig, &options, &narrow, &result);
    for (int32_t i = 0; i < 50; i++) {
        for (int32_t k = 0; k < i; k++) {
            assert_int_not_equal(narrow.ids[i], narrow.ids[k]);
        }
    }
    golden_close(&rig);
}

/* Two turns on one session: the second prompt is appended to what the first left, and a generation in two halves by
 * hand is the generation in one. */
static void test_turns(void **state) {
    (void)state;
    golden_rig rig;
    generate_open(&rig, "gemma3_text-q8_0", 200);
    static generate_record whole;
    sl_generate_result result;
    sl_generate_options options = {.size = sizeof options, .max_tokens = 30, .ignore_eog = true};
    generate_run(&rig, &options, &whole, &result);
    sl_error err;
    int32_t ids[128];
    size_t n = generate_prompt(&rig, ids, 64);
    memcpy(ids + n, whole.ids, 10 * sizeof ids[0]);
    static generate_record rest;
    memset(&rest, 0, sizeof rest);
    options.max_tokens = 20;
    GOLDEN_STATUS(sl_session_rewind(rig.session, 0, &err), SL_OK, &err);
    GOLDEN_STATUS(sl_session_eval(rig.session, ids, n, SL_WANT_NONE, NULL, NULL, &err), SL_OK,
                  &err);
    GOLDEN_STATUS(
        sl_generate(rig.session, ids + n, 10, &options, generate_on_text, &rest, &result, &err),
        SL_OK, &err);
    assert_int_equal(result.n_prompt, 10);
    assert_memory_equal(rest.ids, whole.ids + 10, 20 * sizeof ids[0]);
    golden_close(&rig);
}

/* ---- text functions ------------------------------------------------------------------------------------------------- */

static void test_cap_rule(void **state) {
    (void)state;
    golden_rig rig;
    generate_open(&rig, "qwen2-q8_0", 100);
    sl_error err;
    const char text[] = "The small river opens the bridge, twice.";
    const size_t n_text = strlen(text);
    int32_t ids[64];
    size_t n = 0, again = 0;
    GOLDEN_STATUS(sl_tokenize(rig.model, text, n_text, 0, NULL, 0, &n, &err), SL_OK, &err);
    assert_in_range(n, 2, 64);
    GOLDEN_STATUS(sl_tokenize(rig.model, text, n_text, 0, ids, n, &again, &err), SL_OK, &err);
    assert_int_equal(n, again);
    int32_t guarded[66];
    for (size_t cap = 0; cap < n; cap++) {
        memset(guarded, 0x5A, sizeof guarded);
        again = 0;
        GOLDEN_STATUS(sl_tokenize(rig.model, text, n_text, 0, guarded + 1, cap, &again, &err),
                      SL_ELIMIT, &err);
        assert_int_equal(again, n);
        assert_int_equal(guarded[0], 0x5A5A5A5A);
        assert_int_equal(guarded[cap + 1], 0x5A5A5A5A);
    }
    char back[128];
    size_t n_back = 0;
    GOLDEN_STATUS(
        sl_detokenize(rig.model, ids, n, SL_DETOKENIZE_SKIP_SPECIAL, NULL, 0, &n_back, &err), SL_OK,
        &err);
    assert_int_equal(n_back, n_text);
    for (size_t cap = 0; cap < n_text; cap++) {
        memset(back, 0x5A, sizeof back);
        again = 0;
        GOLDEN_STATUS(
            sl_detokenize(rig.model, ids, n, SL_DETOKENIZE_SKIP_SPECIAL, back, cap, &again, &err),
            SL_ELIMIT, &err);
        assert_int_equal(again, n_text);
        assert_int_equal(back[cap], 0x5A);
    }
    GOLDEN_STATUS(
        sl_detokenize(rig.model, ids, n, SL_DETOKENIZE_SKIP_SPECIAL, back, n_text, &again, &err),
        SL_OK, &err);
    assert_memory_equal(back, text, n_text);
    /* No text, no ids. */
    GOLDEN_STATUS(sl_tokenize(rig.model, "", 0, SL_TOKENIZE_NO_BOS, ids, 64, &n, &err), SL_OK,
                  &err);
    assert_int_equal(n, 0);
    GOLDEN_STATUS(sl_detokenize(rig.model, ids, 0, 0, back, sizeof back, &n, &err), SL_OK, &err);
    assert_int_equal(n, 0);
    /* Text may hold NUL bytes. */
    GOLDEN_STATUS(sl_tokenize(rig.model, "a\0b", 3, SL_TOKENIZE_NO_BOS, ids, 64, &n, &err), SL_OK,
                  &err);
    GOLDEN_STATUS(sl_detokenize(rig.model, ids, n, 0, back, sizeof back, &n_back, &err), SL_OK,
                  &err);
    assert_int_equal(n_back, 3);
    assert_memory_equal(back, "a\0b", 3);
    golden_close(&rig);
}

/* Streamed text is the text of the whole: the callbacks together give what detokenize gives for the same ids, except
 * that bytes which are no UTF-8 may be replaced in a stream. */
static void test_streamed_is_whole(void **state) {
    (void)state;
    int32_t n_clean = 0;
    for (size_t i = 0; golden_tree[i] != NULL; i++) {
        golden_rig rig;
        generate_open(&rig, golden_tree[i], 300);
        static generate_record record;
        sl_generate_result result;
        for (uint64_t seed = 1; seed < 30; seed++) {
            const sl_generate_options options = {.size = sizeof options,
                                                 .max_tokens = 3 + (int32_t)seed,
                                                 .sampling = {.temperature = 0.7f, .seed = seed},
                                                 .ignore_eog = true};
            generate_run(&rig, &options, &record, &result);
            assert_true(generate_is_utf8(record.text, record.n_text));
            sl_error err;
            int32_t ids[256];
            const size_t n_prompt = generate_prompt(&rig, ids, 64);
            memcpy(ids + n_prompt, record.ids, (size_t)result.n_generated * sizeof ids[0]);
            char whole[GENERATE_CAP_TEXT], head[1024];
            size_t n_whole = 0, n_head = 0;
            /* Behind the prompt, so that what depends on being first in a text is right. */
            GOLDEN_STATUS(sl_detokenize(rig.model, ids, n_prompt, SL_DETOKENIZE_SKIP_SPECIAL, head,
                                        sizeof head, &n_head, &err),
                          SL_OK, &err);
            GOLDEN_STATUS(sl_detokenize(rig.model, ids, n_prompt + (size_t)result.n_generated,
                                        SL_DETOKENIZE_SKIP_SPECIAL, whole, sizeof whole, &n_whole,
                                        &err),
                          SL_OK, &err);
            assert_true(n_whole >= n_head);
            assert_memory_equal(whole, head, n_head);
            if (!generate_is_utf8(whole, n_whole)) {
                continue;
            }
            n_clean++;
            if (record.n_text != n_whole - n_head ||
                memcmp(record.text, whole + n_head, record.n_text) != 0) {
                fail_msg("%s, seed %d: streamed '%.*s', whole '%.*s'", golden_tree[i], (int)seed,
                         (int)record.n_text, record.text, (int)(n_whole - n_head), whole + n_head);
            }
        }
        golden_close(&rig);
    }
    printf("  %d texts were whole UTF-8\n", n_clean);
    assert_true(n_clean > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy_is_argmax),
        cmocka_unit_test(test_max_tokens),
        cmocka_unit_test(test_context_full),
        cmocka_unit_test(test_eog),
        cmocka_unit_test(test_callback_ends),
        cmocka_unit_test(test_stop_over_boundaries),
        cmocka_unit_test(test_first_stop_wins),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_narrow_sampling_is_greedy),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_cap_rule),
        cmocka_unit_test(test_streamed_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
