/* test_memory_torture.c - every allocation and every read fails once, in turn, in every call of the public API.
 *
 * Each failure must be the right status with a sentence, must leave the output alone, must leave the books where they
 * were, and the same call must work afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine_internal.h"
#include "help_gguf.h"
#include "help_golden.h"
#include "help_memory.h"
#include "help_paths.h"
#include <cmocka.h>

static const char memory_model[] = "qwen2-q8_0";

/* ---- every allocation fails once ------------------------------------------------------------------------------------ */

enum { MEMORY_MAX_STEPS = 200000 };

typedef struct memory_torture {
    char path[4096];
    memory_file file;
    sl_source source;
    sl_model_options options;
    sl_engine *engine;
    sl_model *model;
    sl_session *session;
} memory_torture;

/* One call under test: true when it returned SL_OK. It undoes its own success. */
typedef sl_status (*memory_step)(memory_torture *t, sl_error *err);

static sl_status step_file_open(memory_torture *t, sl_error *err) {
    sl_file *file = NULL;
    const sl_status status = sl_file_open(t->engine, t->path, NULL, &file, err);
    assert_int_equal(status == SL_OK, file != NULL);
    sl_file_close(file);
    return status;
}

static sl_status step_model_estimate(memory_torture *t, sl_error *err) {
    sl_estimate estimate;
    return sl_model_estimate(t->engine, t->path, &t->options, &estimate, err);
}

static sl_status step_model_open(memory_torture *t, sl_error *err) {
    sl_model *model = NULL;
    const sl_status status = sl_model_open(t->engine, t->path, &t->options, &model, err);
    assert_int_equal(status == SL_OK, model != NULL);
    sl_model_close(model);
    return status;
}

static sl_status step_session_estimate(memory_torture *t, sl_error *err) {
    sl_estimate estimate;
    return sl_session_estimate(t->model, NULL, &estimate, err);
}

static sl_status step_session_open(memory_torture *t, sl_error *err) {
    sl_session *session = NULL;
    const sl_status status = sl_session_open(t->model, NULL, &session, err);
    assert_int_equal(status == SL_OK, session != NULL);
    sl_session_close(session);
    return status;
}

static const char memory_text[] = "Hello, how are you? Stra\xC3\xA3\x65 \xE4\xBD\xA0\xE5\xA5\xBD "
                                  "\xF0\x9F\x98\x80\n123 <|im_end|> x";

static sl_status step_tokenize(memory_torture *t, sl_error *err) {
    int32_t ids[256];
    size_t n = 0;
    return sl_tokenize(t->model, memory_text, strlen(memory_text), 0, ids, 256, &n, err);
}

static sl_status step_detokenize(memory_torture *t, sl_error *err) {
    int32_t ids[64];
    memory_ids(ids, 64);
    char text[4096];
    size_t n = 0;
    return sl_detokenize(t->model, ids, 64, 0, text, sizeof text, &n, err);
}

static const sl_message memory_messages[] = {
    {"user", "What is a cat?", 14}, {"assistant", "An animal.", 10}, {"user", "And a dog?", 10}};

static sl_status step_chat_render(memory_torture *t, sl_error *err) {
    char text[4096];
    size_t n = 0;
    return sl_chat_render(t->model, memory_messages, 3, true, text, sizeof text, &n, err);
}

static sl_status step_chat_tokenize(memory_torture *t, sl_error *err) {
    int32_t ids[512];
    size_t n = 0;
    return sl_chat_tokenize(t->model, memory_messages, 3, true, ids, 512, &n, err);
}

static sl_status step_generate(memory_torture *t, sl_error *err) {
    int32_t ids[20];
    memory_ids(ids, 20);
    const char *const stop[] = {"never in this text"};
    const sl_generate_options options = {.size = sizeof options,
                                         .max_tokens = 5,
                                         .sampling = {.temperature = 1.0f,
                                                      .top_k = 20,
                                                      .top_p = 0.9f,
                                                      .repeat_penalty = 1.1f,
                                                      .seed = 3},
                                         .stop = stop,
                                         .n_stop = 1,
                                         .ignore_eog = true};
    assert_int_equal(sl_session_n_past(t->session), 0);
    const sl_status status = sl_generate(t->session, ids, 20, &options, NULL, NULL, NULL, err);
    sl_error ignored;
    if (status == SL_OK) {
        assert_true(sl_session_n_past(t->session) >= 20);
    }
    GOLDEN_STATUS(sl_session_rewind(t->session, 0, &ignored), SL_OK, &ignored);
    return status;
}

static sl_status step_eval(memory_torture *t, sl_error *err) {
    int32_t ids[20];
    memory_ids(ids, 20);
    const sl_status status = sl_session_eval(t->session, ids, 20, SL_WANT_LAST, NULL, NULL, err);
    assert_int_equal(sl_session_n_past(t->session), status == SL_OK ? 20 : 0);
    sl_error ignored;
    GOLDEN_STATUS(sl_session_rewind(t->session, 0, &ignored), SL_OK, &ignored);
    return status;
}

static void memory_torture_step(memory_torture *t, const char *name, memory_step step) {
    sl_error err;
    sl_memory before;
    sl_engine_memory(t->engine, &before);
    for (int64_t n = 0; n < MEMORY_MAX_STEPS; n++) {
        memset(&err, 0, sizeof err);
        sl_test_fail_after(t->engine, n);
        const sl_status status = step(t, &err);
        sl_test_fail_after(t->engine, -1);
        memory_same(t->engine, &before, help_text("%s, allocation %lld", name, (long long)n));
        if (status == SL_OK) {
            /* It works as if nothing had happened. */
            GOLDEN_STATUS(step(t, &err), SL_OK, &err);
            memory_same(t->engine, &before, name);
            printf("  %-18s %lld allocations failed in turn\n", name, (long long)n);
            return;
        }
        GOLDEN_STATUS(status, SL_ENOMEM, &err);
    }
    fail_msg("%s does not end", name);
}

static void memory_torture_open(memory_torture *t, const char *name, const char *store) {
    sl_error err;
    memset(t, 0, sizeof *t);
    memory_path(t->path, sizeof t->path, name);
    memory_load(&t->file, t->path);
    memory_store_options(store, &t->file, &t->source, &t->options);
    GOLDEN_STATUS(sl_engine_open(NULL, &t->engine, &err), SL_OK, &err);
    GOLDEN_STATUS(sl_model_open(t->engine, t->path, &t->options, &t->model, &err), SL_OK, &err);
    GOLDEN_STATUS(sl_session_open(t->model, NULL, &t->session, &err), SL_OK, &err);
}

static void memory_torture_close(memory_torture *t) {
    sl_session_close(t->session);
    sl_model_close(t->model);
    sl_engine_close(t->engine);
    free(t->file.data);
}

static void test_every_allocation_fails(void **state) {
    (void)state;
    memory_torture t;
    for (size_t i = 0; memory_stores[i] != NULL; i++) {
        printf(" %s by %s\n", memory_model, memory_stores[i]);
        memory_torture_open(&t, memory_model, memory_stores[i]);
        memory_torture_step(&t, "sl_model_open", step_model_open);
        memory_torture_step(&t, "sl_model_estimate", step_model_estimate);
        memory_torture_close(&t);
    }
    for (size_t i = 0; golden_tree[i] != NULL; i++) {
        printf(" %s\n", golden_tree[i]);
        memory_torture_open(&t, golden_tree[i], "mmap");
        memory_torture_step(&t, "sl_file_open", step_file_open);
        memory_torture_step(&t, "sl_model_open", step_model_open);
        memory_torture_step(&t, "sl_session_estimate", step_session_estimate);
        memory_torture_step(&t, "sl_session_open", step_session_open);
        memory_torture_step(&t, "sl_tokenize", step_tokenize);
        memory_torture_step(&t, "sl_detokenize", step_detokenize);
        memory_torture_step(&t, "sl_eval", step_eval);
        memory_torture_step(&t, "sl_generate", step_generate);
        memory_torture_close(&t);
    }
}

/* No tiny model has a chat template of a known form, a made one has. */
static void test_every_allocation_fails_in_chat(void **state) {
    (void)state;
    sl_error err;
    memory_torture t;
    memset(&t, 0, sizeof t);
    help_gguf *gguf = golden_chat_gguf();
    t.source.data = help_gguf_bytes(gguf, &t.source.size_bytes);
    t.options.size = sizeof t.options;
    t.options.source = &t.source;
    t.options.vocab_only = true;
    GOLDEN_STATUS(sl_engine_open(NULL, &t.engine, &err), SL_OK, &err);
    GOLDEN_STATUS(sl_model_open(t.engine, NULL, &t.options, &t.model, &err), SL_OK, &err);
    memory_torture_step(&t, "sl_model_open", step_model_open);
    memory_torture_step(&t, "sl_chat_render", step_chat_render);
    memory_torture_step(&t, "sl_chat_tokenize", step_chat_tokenize);
    memory_torture_close(&t);
    help_gguf_free(gguf);
}

/* ---- every read fails once ------------------------------------------------------------------------------------------ */

static void test_every_read_fails(void **state) {
    (void)state;
    for (size_t i = 0; golden_tree[i] != NULL; i++) {
        for (int32_t later = 0; later < 2; later++) {
            char path[4096];
            memory_path(path, sizeof path, golden_tree[i]);
            memory_file file;
            memory_load(&file, path);
            sl_source source;
            sl_model_options options;
            memory_store_options("callback", &file, &source, &options);
            sl_error err;
            sl_engine *engine = NULL;
            GOLDEN_STATUS(sl_engine_open(NULL, &engine, &err), SL_OK, &err);
            sl_memory before;
            sl_engine_memory(engine, &before);
            size_t n = 0;
            for (;; n++) {
                file.n_read = 0;
                file.i_fail = n;
                file.i_later = later != 0 ? n : SIZE_MAX;
                sl_model *model = NULL;
                const sl_status status = sl_model_open(engine, NULL, &options, &model, &err);
                if (file.n_read <= n) {
                    /* The failing read was not reached: this time all went well. */
                    GOLDEN_STATUS(status, SL_OK, &err);
                    sl_model_close(model);
                    memory_same(engine, &before, "after all reads");
                    break;
                }
                GOLDEN_STATUS(status, SL_EIO, &err);
                assert_null(model);
                memory_same(engine, &before, help_text("read %zu failing", n));
            }
            assert_true(n >= 2);
            printf("  %-22s %zu reads failed in turn\n", golden_tree[i], n);
            sl_engine_close(engine);
            free(file.data);
        }
    }
}

/* A file that ends early: a prefix of it never opens, and no length of it does harm. */
static void test_short_file(void **state) {
    (void)state;
    char path[4096];
    memory_path(path, sizeof path, memory_model);
    memory_file file;
    memory_load(&file, path);
    const size_t whole = file.size;
    sl_error err;
    sl_engine *engine = NULL;
    GOLDEN_STATUS(sl_engine_open(NULL, &engine, &err), SL_OK, &err);
    /* Where the last tensor ends: what follows is padding. */
    sl_file *directory = NULL;
    GOLDEN_STATUS(sl_file_open(engine, path, NULL, &directory, &err), SL_OK, &err);
    sl_file_info info;
    sl_file_get_info(directory, &info);
    size_t end = 0;
    for (int64_t i = 0; i < info.n_tensor; i++) {
        sl_tensor_info tensor;
        GOLDEN_STATUS(sl_file_get_tensor(directory, i, &tensor), SL_OK, NULL);
        end = memory_max(end, (size_t)(tensor.offset_bytes + tensor.size_bytes));
    }
    sl_file_close(directory);
    assert_true(end > 0 && end <= whole);
    sl_memory before;
    sl_engine_memory(engine, &before);
    for (int32_t by_callback = 0; by_callback < 2; by_callback++) {
        sl_source source;
        sl_model_options options;
        memory_store_options(by_callback != 0 ? "callback" : "memory", &file, &source, &options);
        size_t step = 1;
        for (size_t n = 0; n < end; n += step) {
            step = n < 512 ? 1 : n < 40000 ? 997 : 49999;
            source.size_bytes = n;
            file.size = n;
            sl_model *model = NULL;
            const sl_status status = sl_model_open(engine, NULL, &options, &model, &err);
            assert_null(model);
            if (status != SL_EFORMAT && status != SL_EIO) {
                fail_msg("%zu of %zu bytes: %s '%s'", n, whole, sl_status_name(status), err.text);
            }
            memory_same(engine, &before, help_text("a file of %zu bytes", n));
        }
        source.size_bytes = end - 1;
        file.size = end - 1;
        sl_model *model = NULL;
        GOLDEN_STATUS(sl_model_open(engine, NULL, &options, &model, &err), SL_EFORMAT, &err);
        file.size = whole;
    }
    sl_engine_close(engine);
    free(file.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation_fails),
        cmocka_unit_test(test_every_allocation_fails_in_chat),
        cmocka_unit_test(test_every_read_fails),
        cmocka_unit_test(test_short_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
