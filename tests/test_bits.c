/* test_bits.c - the same logits, bit for bit, however the work is cut.
 *
 * One run is the measure: one thread, the whole prompt in one call and one chunk, the mapped file. Every other way to
 * do the same work (threads, prefill chunks, calls, page sizes, rewinding, stores, opening again) must give equal bytes
 * for the logits of every position. This is no tolerance but memcmp; a difference is printed with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help_golden.h"
#include "help_paths.h"
#include <cmocka.h>

/* Builds that watch every access are slow: they take shorter prompts and fewer models. */
#if defined(__SANITIZE_THREAD__)
#define BITS_SLOW 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BITS_SLOW 1
#endif
#endif
#ifndef BITS_SLOW
#define BITS_SLOW 0
#endif

/* How the tokens are handed over. */
typedef enum bits_calls {
    BITS_ONE_CALL,
    BITS_TOKEN_BY_TOKEN,
    BITS_UNEVEN, /* calls of 1, 2, 3, ... tokens */
    BITS_REWIND, /* forward past some tokens, back, other tokens, back, and then the right ones */
    BITS_LAST_ONLY,   /* SL_WANT_LAST: only the last position is compared */
    BITS_LATE_LOGITS, /* SL_WANT_NONE for all but the last token */
} bits_calls;

typedef struct bits_way {
    const char *label;
    int32_t n_thread;
    int32_t n_batch;
    int32_t n_page;
    const char *store; /* "mmap", "direct", "memory", "callback" */
    bits_calls calls;
} bits_way;

typedef struct bits_case {
    const char *isa;
    const char *act;
    const char *kv_type;
    const int32_t *ids;
    int32_t n_ids;
} bits_case;

typedef struct bits_file {
    const char *data;
    size_t size;
} bits_file;

static int bits_read(void *user, uint64_t offset, void *dst, size_t size) {
    const bits_file *file = user;
    if (offset > file->size || size > file->size - offset) {
        return 1;
    }
    memcpy(dst, file->data + offset, size);
    return 0;
}

static void bits_eval(golden_rig *rig, const int32_t *ids, int32_t n, sl_want want) {
    sl_error err;
    GOLDEN_STATUS(sl_session_eval(rig->session, ids, (size_t)n, want, NULL, NULL, &err), SL_OK,
                  &err);
}

static void bits_rewind(golden_rig *rig, int32_t n_past) {
    sl_error err;
    GOLDEN_STATUS(sl_session_rewind(rig->session, n_past, &err), SL_OK, &err);
    assert_int_equal(sl_session_n_past(rig->session), n_past);
}

/* Fills out [n_ids, n_vocab]; returns the first position that was filled. */
static int32_t bits_walk(golden_rig *rig, const bits_case *c, bits_calls calls, float *out) {
    const int32_t n = c->n_ids;
    const size_t row = (size_t)rig->n_vocab;
    switch (calls) {
    case BITS_ONE_CALL:
        golden_eval(rig, c->ids, n, out);
        return 0;
    case BITS_TOKEN_BY_TOKEN:
        for (int32_t i = 0; i < n; i++) {
            golden_eval(rig, c->ids + i, 1, out + (size_t)i * row);
        }
        return 0;
    case BITS_UNEVEN:
        for (int32_t i = 0, k = 1; i < n; i += k, k++) {
            const int32_t take = k < n - i ? k : n - i;
            golden_eval(rig, c->ids + i, take, out + (size_t)i * row);
        }
        return 0;
    case BITS_REWIND: {
        const int32_t mid = n / 3, far = n - n / 5;
        bits_eval(rig, c->ids, far, SL_WANT_NONE);
        bits_rewind(rig, mid);
        /* Other tokens at these places: what they leave behind must not be seen. */
        bits_eval(rig, c->ids, n - mid, SL_WANT_LAST);
        bits_rewind(rig, 0);
        golden_eval(rig, c->ids, far, out);
        bits_rewind(rig, mid);
        golden_eval(rig, c->ids + mid, n - mid, out + (size_t)mid * row);
        return 0;
    }
    case BITS_LAST_ONLY:
        bits_eval(rig, c->ids, n, SL_WANT_LAST);
        break;
    case BITS_LATE_LOGITS:
        bits_eval(rig, c->ids, n - 1, SL_WANT_NONE);
        bits_eval(rig, c->ids + n - 1, 1, SL_WANT_LAST);
        break;
    }
    const float *last = sl_session_logits(rig->session);
    assert_non_null(last);
    memcpy(out + (size_t)(n - 1) * row, last, row * sizeof *out);
    return n - 1;
}

static int32_t bits_run(const char *path, const bits_file *file, const bits_case *c,
                        const bits_way *way, float *out) {
    sl_source source = {0};
    const bool from_path = strcmp(way->store, "mmap") == 0 || strcmp(way->store, "direct") == 0;
    if (strcmp(way->store, "memory") == 0) {
        source.data = file->data;
        source.size_bytes = file->size;
    } else if (!from_path) {
        source.size_bytes = file->size;
        source.read = bits_read;
        source.user = (void *)(uintptr_t)file;
    }
    const sl_engine_options engine_options = {
        .size = sizeof engine_options, .n_thread = way->n_thread, .isa = c->isa, .act = c->act};
    const sl_model_options model_options = {.size = sizeof model_options,
                                            .store = from_path ? way->store : NULL,
                                            .source = from_path ? NULL : &source};
    const sl_session_options session_options = {.size = sizeof session_options,
                                                .n_ctx = c->n_ids,
                                                .n_batch = way->n_batch,
                                                .n_page = way->n_page,
                                                .kv_type = c->kv_type};
    golden_rig rig;
    golden_open(&rig, from_path ? path : NULL, &engine_options, &model_options, &session_options);
    const int32_t first = bits_walk(&rig, c, way->calls, out);
    assert_int_equal(sl_session_n_past(rig.session), c->n_ids);
    golden_close(&rig);
    return first;
}

static const bits_way bits_measure = {"measure", 1, 512, 0, "mmap", BITS_ONE_CALL};

static const bits_way bits_ways[] = {
    {"the same again", 1, 512, 0, "mmap", BITS_ONE_CALL},
    {"2 threads", 2, 512, 0, "mmap", BITS_ONE_CALL},
    {"5 threads", 5, 512, 0, "mmap", BITS_ONE_CALL},
    {"chunk 1", 1, 1, 0, "mmap", BITS_ONE_CALL},
    {"chunk 7", 1, 7, 0, "mmap", BITS_ONE_CALL},
    {"chunk 1, 2 threads", 2, 1, 0, "mmap", BITS_ONE_CALL},
    {"chunk 7, 2 threads", 2, 7, 0, "mmap", BITS_ONE_CALL},
    {"chunk 7, 5 threads", 5, 7, 0, "mmap", BITS_ONE_CALL},
    {"default threads and chunk", 0, 0, 0, "mmap", BITS_ONE_CALL},
    {"token by token", 2, 512, 0, "mmap", BITS_TOKEN_BY_TOKEN},
    {"uneven calls", 2, 512, 0, "mmap", BITS_UNEVEN},
    {"uneven calls, chunk 7", 5, 7, 0, "mmap", BITS_UNEVEN},
    {"rewind", 1, 512, 0, "mmap", BITS_REWIND},
    {"rewind, chunk 7, 2 threads", 2, 7, 0, "mmap", BITS_REWIND},
    {"last logits only", 2, 512, 0, "mmap", BITS_LAST_ONLY},
    {"last logits only, chunk 7", 2, 7, 0, "mmap", BITS_LAST_ONLY},
    {"logits of a late token", 2, 512, 0, "mmap", BITS_LATE_LOGITS},
    {"pages of 64", 2, 512, 64, "mmap", BITS_ONE_CALL},
    {"pages of 256, chunk 7", 2, 7, 256, "mmap", BITS_ONE_CALL},
    {"direct store", 2, 512, 0, "direct", BITS_ONE_CALL},
    {"memory", 2, 512, 0, "memory", BITS_ONE_CALL},
    {"callback", 2, 512, 0, "callback", BITS_ONE_CALL},
};

/* Returns the number of ways that differ, each of them printed. */
static int32_t bits_check(const char *path, const bits_case *c, const char *label, size_t n_way) {
    bits_file file = {0};
    char *data = help_read(path, &file.size);
    assert_non_null(data);
    file.data = data;
    golden_rig rig;
    golden_open(&rig, path, NULL, NULL, NULL);
    const size_t row = (size_t)rig.n_vocab;
    golden_close(&rig);
    const size_t n = (size_t)c->n_ids * row;
    float *want = golden_alloc(n, sizeof *want);
    float *got = golden_alloc(n, sizeof *got);
    assert_int_equal(bits_run(path, &file, c, &bits_measure, want), 0);
    int32_t n_fault = 0;
    for (size_t i = 0; i < n_way; i++) {
        memset(got, 0, n * sizeof *got);
        const int32_t first = bits_run(path, &file, c, &bits_ways[i], got);
        for (size_t k = (size_t)first * row; k < n; k++) {
            if (memcmp(&got[k], &want[k], sizeof *got) != 0) {
                double max_abs = 0;
                (void)golden_nmse(got + k, want + k, n - k, &max_abs);
                print_error("  FAULT %s: '%s' differs first at position %zu, logit %zu: %.9g "
                            "instead of %.9g (max |d| %.3g)\n",
                            label, bits_ways[i].label, k / row, k % row, (double)got[k],
                            (double)want[k], max_abs);
                n_fault++;
                break;
            }
        }
    }
    printf("  %-44s %zu ways, %d differ\n", label, n_way, n_fault);
    free(want);
    free(got);
    free(data);
    return n_fault;
}

#define N_BITS_WAYS (sizeof bits_ways / sizeof bits_ways[0])

static void bits_tree(const char *isa, const char *act, const char *kv_type, const char *prompt) {
    int32_t n_fault = 0;
    for (size_t i = 0; golden_tree[i] != NULL && (!BITS_SLOW || i < 2); i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s", golden_path(help_text("%s.gguf", golden_tree[i])));
        char vec_path[4096];
        const size_t n_name = strcspn(golden_tree[i], "-");
        (void)snprintf(vec_path, sizeof vec_path, "%s",
                       golden_path(help_text("%.*s.vec", (int)n_name, golden_tree[i])));
        golden_vec vec;
        golden_load(vec_path, &vec);
        const golden_prompt *p = golden_find(&vec, prompt);
        assert_non_null(p);
        const bits_case c = {isa, act, kv_type, p->ids, p->n_ids};
        n_fault += bits_check(path, &c,
                              help_text("%s %s %s %s", golden_tree[i], isa != NULL ? isa : "best",
                                        act != NULL ? act : "default", kv_type),
                              N_BITS_WAYS);
        golden_free(&vec);
    }
    assert_int_equal(n_fault, 0);
}

static void test_default(void **state) {
    (void)state;
    bits_tree(NULL, NULL, "f16", BITS_SLOW ? "chat" : "long");
}

static void test_exact(void **state) {
    (void)state;
    bits_tree(NULL, "exact", "f32", BITS_SLOW ? "short" : "chat");
}

static void test_scalar(void **state) {
    (void)state;
    bits_tree("scalar", NULL, "f16", BITS_SLOW ? "short" : "chat");
}

/* A real model: wide rows, a large head, Q4_1. */
static void test_smollm2(void **state) {
    (void)state;
    const char *found = help_model("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
    if (found == NULL) {
        print_message("SmolLM2 is not fetched\n");
        skip();
    }
    if (BITS_SLOW) {
        print_message("a build with the thread sanitizer takes too long over SmolLM2\n");
        skip();
    }
    char path[4096];
    (void)snprintf(path, sizeof path, "%s", found);
    const char text[] = "The little house on the hill had three windows, a red door, and a cat "
                        "called Schrödinger; 1, 2, 3 and 你好 were painted on its wall.";
    int32_t ids[128];
    size_t n_ids = 0;
    sl_error err;
    golden_rig rig;
    golden_open(&rig, path, NULL, NULL, NULL);
    GOLDEN_STATUS(sl_tokenize(rig.model, text, strlen(text), 0, ids, 128, &n_ids, &err), SL_OK,
                  &err);
    golden_close(&rig);
    assert_true(n_ids > 33);
    const bits_case c = {NULL, NULL, "f16", ids, (int32_t)n_ids};
    assert_int_equal(bits_check(path, &c, "SmolLM2 Q4_1 best default f16", N_BITS_WAYS), 0);
}

/* Kernels of one name in two engines of one process do not disturb those of another. */
static void test_two_engines_side_by_side(void **state) {
    (void)state;
    char path[4096];
    (void)snprintf(path, sizeof path, "%s", golden_path("qwen2-q8_0.gguf"));
    golden_vec vec;
    golden_load(golden_path("qwen2.vec"), &vec);
    const golden_prompt *p = golden_find(&vec, "chat");
    assert_non_null(p);
    const size_t n = (size_t)p->n_ids * (size_t)vec.n_vocab;
    float *alone = golden_alloc(n, sizeof *alone), *beside = golden_alloc(n, sizeof *beside);
    const sl_engine_options scalar = {.size = sizeof scalar, .isa = "scalar", .n_thread = 1};
    golden_rig a, b;
    golden_open(&a, path, NULL, NULL, NULL);
    golden_eval(&a, p->ids, p->n_ids, alone);
    golden_close(&a);
    golden_open(&a, path, NULL, NULL, NULL);
    golden_open(&b, path, &scalar, NULL, NULL);
    for (int32_t i = 0; i < p->n_ids; i++) {
        float *out = beside + (size_t)i * (size_t)vec.n_vocab;
        golden_eval(&b, p->ids + i, 1, out);
        golden_eval(&a, p->ids + i, 1, out);
    }
    assert_memory_equal(alone, beside, n * sizeof *alone);
    golden_close(&a);
    golden_close(&b);
    free(alone);
    free(beside);
    golden_free(&vec);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default), cmocka_unit_test(test_exact),
        cmocka_unit_test(test_scalar),  cmocka_unit_test(test_two_engines_side_by_side),
        cmocka_unit_test(test_smollm2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
