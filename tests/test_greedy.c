/* test_greedy.c - real models say what the reference engine says.
 *
 * tests/data/golden/greedy.json holds what llama.cpp's completion program printed: the greedy continuation of a few
 * prompts, 32 tokens each, with int8 activations as ours. Two such runs may part at a step where two tokens nearly tie.
 * So the texts are compared byte by byte, and where they part our own logits of that step are looked at: the gap between
 * the token that we took and the best of those that the reference's text could go on with has to be small.
 *
 * The recorded text has one quirk: the program prints two line ends after the last token.
 *
 * Every prompt is run twice, with default and with exact activations: the second tells how much of a difference the
 * int8 path makes. The models are looked for where help_paths.h says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "help_golden.h"
#include "help_paths.h"
#include <cmocka.h>

/* A near-tie: no more than this between the two logits. */
#define GREEDY_GAP 0.05f

enum { GREEDY_MAX_CASE = 16, GREEDY_CAP_TEXT = 2048, GREEDY_CAP_IDS = 256 };

typedef struct greedy_case {
    char prompt[GREEDY_CAP_TEXT];
    char text[GREEDY_CAP_TEXT]; /* the two line ends cut */
} greedy_case;

typedef struct greedy_model {
    char name[32];
    char file[128];
    int32_t n; /* tokens */
    int32_t n_case;
    greedy_case cases[GREEDY_MAX_CASE];
} greedy_model;

static void greedy_string(sl_json *j, char *out, size_t cap) {
    sl_json_text text;
    assert_true(sl_json_string(j, &text));
    const size_t n = sl_json_text_copy(&text, out, cap - 1);
    assert_true(n < cap);
    out[n] = '\0';
}

static void greedy_read_case(sl_json *j, greedy_case *c) {
    sl_json_text key;
    assert_true(sl_json_enter_object(j));
    while (sl_json_next_key(j, &key)) {
        if (sl_json_text_is(&key, "prompt")) {
            greedy_string(j, c->prompt, sizeof c->prompt);
        } else if (sl_json_text_is(&key, "text")) {
            greedy_string(j, c->text, sizeof c->text);
            const size_t n = strlen(c->text);
            assert_true(n > 2 && strcmp(c->text + n - 2, "\n\n") == 0);
            c->text[n - 2] = '\0';
        } else {
            assert_true(sl_json_skip(j));
        }
    }
}

static void greedy_read_model(sl_json *j, greedy_model *m) {
    sl_json_text key;
    assert_true(sl_json_enter_object(j));
    while (sl_json_next_key(j, &key)) {
        if (sl_json_text_is(&key, "file")) {
            greedy_string(j, m->file, sizeof m->file);
        } else if (sl_json_text_is(&key, "n")) {
            int64_t n = 0;
            assert_true(sl_json_int(j, &n));
            m->n = (int32_t)n;
        } else if (sl_json_text_is(&key, "cases")) {
            assert_true(sl_json_enter_array(j));
            while (sl_json_next_item(j)) {
                assert_true(m->n_case < GREEDY_MAX_CASE);
                greedy_read_case(j, &m->cases[m->n_case++]);
            }
        } else {
            assert_true(sl_json_skip(j));
        }
    }
}

/* The named model's row of greedy.json. */
static void greedy_read(const char *name, greedy_model *out) {
    size_t n_data = 0;
    char *data = help_read(golden_path("greedy.json"), &n_data);
    assert_non_null(data);
    memset(out, 0, sizeof *out);
    sl_json j;
    sl_json_text key;
    sl_json_init(&j, data, n_data);
    assert_true(sl_json_enter_object(&j));
    while (sl_json_next_key(&j, &key)) {
        if (sl_json_text_is(&key, name)) {
            (void)snprintf(out->name, sizeof out->name, "%s", name);
            greedy_read_model(&j, out);
        } else {
            assert_true(sl_json_skip(&j));
        }
    }
    assert_false(j.failed);
    assert_true(sl_json_end(&j));
    assert_true(out->n_case > 0 && out->n > 0 && out->file[0] != '\0');
    free(data);
}

/* The text of n ids that follow a prompt. */
static size_t greedy_text(golden_rig *rig, const int32_t *ids, size_t n_prompt, size_t n,
                          char *out) {
    sl_error err;
    char whole[2 * GREEDY_CAP_TEXT];
    size_t n_head = 0, n_whole = 0;
    GOLDEN_STATUS(sl_detokenize(rig->model, ids, n_prompt, SL_DETOKENIZE_SKIP_SPECIAL, whole,
                                sizeof whole, &n_head, &err),
                  SL_OK, &err);
    GOLDEN_STATUS(sl_detokenize(rig->model, ids, n_prompt + n, SL_DETOKENIZE_SKIP_SPECIAL, whole,
                                sizeof whole, &n_whole, &err),
                  SL_OK, &err);
    assert_true(n_whole >= n_head && n_whole - n_head < GREEDY_CAP_TEXT);
    memcpy(out, whole + n_head, n_whole - n_head);
    out[n_whole - n_head] = '\0';
    return n_whole - n_head;
}

/* Our best logit minus the best one of a token that the rest of the reference's text may begin with. */
static float greedy_alternative(golden_rig *rig, const float *logits, const char *rest,
                                int32_t *id) {
    const size_t n_rest = strlen(rest);
    *id = -1;
    for (int32_t v = 0; v < rig->n_vocab; v++) {
        const char *bytes = NULL;
        size_t n = 0;
        assert_int_equal(sl_token_bytes(rig->model, v, &bytes, &n), SL_OK);
        const bool may = n_rest == 0 ? sl_token_is_eog(rig->model, v)
                                     : n > 0 && n <= n_rest && memcmp(bytes, rest, n) == 0;
        if (may && (*id < 0 || logits[v] > logits[*id])) {
            *id = v;
        }
    }
    return *id < 0 ? -1 : logits[golden_argmax(logits, rig->n_vocab)] - logits[*id];
}

/* 0, or 1 when the texts part where they should not. */
static int32_t greedy_check(golden_rig *rig, const greedy_case *c, int32_t n_token,
                            const char *way) {
    sl_error err;
    int32_t ids[GREEDY_CAP_IDS];
    size_t n_prompt = 0;
    GOLDEN_STATUS(sl_tokenize(rig->model, c->prompt, strlen(c->prompt), 0, ids, GREEDY_CAP_IDS / 2,
                              &n_prompt, &err),
                  SL_OK, &err);
    GOLDEN_STATUS(sl_session_rewind(rig->session, 0, &err), SL_OK, &err);
    GOLDEN_STATUS(sl_session_eval(rig->session, ids, n_prompt, SL_WANT_LAST, NULL, NULL, &err),
                  SL_OK, &err);
    char text[GREEDY_CAP_TEXT], before[GREEDY_CAP_TEXT];
    size_t n = 0, n_text = 0;
    const size_t n_want = strlen(c->text);
    while (n < (size_t)n_token) {
        const float *logits = sl_session_logits(rig->session);
        const int32_t id = golden_argmax(logits, rig->n_vocab);
        const bool eog = sl_token_is_eog(rig->model, id);
        const size_t n_before = n_text;
        ids[n_prompt + n] = id;
        if (!eog) {
            n_text = greedy_text(rig, ids, n_prompt, n + 1, text);
        }
        /* The reference cuts its last character when the tokens do. */
        const bool same =
            eog ? n_before == n_want : n_text <= n_want && memcmp(text, c->text, n_text) == 0;
        if (!same) {
            int32_t other = -1;
            (void)greedy_text(rig, ids, n_prompt, n, before);
            const float gap = greedy_alternative(rig, logits, c->text + n_before, &other);
            const bool fine = other >= 0 && gap <= GREEDY_GAP;
            printf("  %-8s '%.24s...' parts at step %zu: ours %d, theirs %d, gap %.4f%s\n", way,
                   c->prompt, n, id, other, (double)gap, fine ? " (a near-tie)" : "");
            if (!fine) {
                print_error("    ours   '%s'\n    theirs '%s'\n", text, c->text);
            }
            return fine ? 0 : 1;
        }
        if (eog) {
            break;
        }
        n++;
        GOLDEN_STATUS(sl_session_eval(rig->session, &id, 1, SL_WANT_LAST, NULL, NULL, &err), SL_OK,
                      &err);
    }
    if (n_text != n_want) {
        print_error("  %s '%s': our text ends early\n    ours   '%s'\n    theirs '%s'\n", way,
                    c->prompt, text, c->text);
        return 1;
    }
    printf("  %-8s '%.24s...' equal, %zu tokens\n", way, c->prompt, n);
    return 0;
}

static void greedy_run(const char *name) {
    static greedy_model model;
    greedy_read(name, &model);
    const char *found = help_model(name, model.file);
    if (found == NULL) {
        print_message("%s/%s is not fetched\n", name, model.file);
        skip();
    }
    char path[4096];
    (void)snprintf(path, sizeof path, "%s", found);
    int32_t n_fault = 0;
    for (int32_t exact = 0; exact < 2; exact++) {
        const sl_engine_options engine_options = {.size = sizeof engine_options,
                                                  .act = exact != 0 ? "exact" : NULL};
        const sl_session_options session_options = {.size = sizeof session_options, .n_ctx = 128};
        golden_rig rig;
        golden_open(&rig, path, &engine_options, NULL, &session_options);
        for (int32_t i = 0; i < model.n_case; i++) {
            n_fault +=
                greedy_check(&rig, &model.cases[i], model.n, exact != 0 ? "exact" : "default");
        }
        golden_close(&rig);
    }
    assert_int_equal(n_fault, 0);
}

static void test_smollm2(void **state) {
    (void)state;
    greedy_run("smollm2");
}

static void test_qwen_half(void **state) {
    (void)state;
    greedy_run("qwen0.5b");
}

static void test_gemma270m(void **state) {
    (void)state;
    greedy_run("gemma270m");
}

int main(void) {
    if (help_model("smollm2", ".") == NULL && help_model("qwen0.5b", ".") == NULL &&
        help_model("gemma270m", ".") == NULL) {
        help_skip("none of the real models is fetched");
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smollm2),
        cmocka_unit_test(test_qwen_half),
        cmocka_unit_test(test_gemma270m),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
