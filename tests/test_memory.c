/* test_memory.c - the books of memory: estimates to the byte, limits to the byte, nothing while decoding, nothing left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help_golden.h"
#include "help_memory.h"
#include "help_paths.h"
#include <cmocka.h>

static const char memory_model[] = "qwen2-q8_0";

/* What was added since `before` is what the estimate said, account by account, and so is the peak. */
static void memory_as_estimated(const sl_engine *engine, const sl_memory *before,
                                const sl_estimate *estimate, const char *what) {
    sl_memory now;
    sl_engine_memory(engine, &now);
    size_t sum = 0;
    for (int32_t i = 0; i < SL_ACCOUNT_COUNT; i++) {
        const size_t added = now.now_bytes[i] - before->now_bytes[i];
        sum += estimate->account_bytes[i];
        if (added != estimate->account_bytes[i]) {
            fail_msg("%s: account %s took %zu bytes, estimated %zu", what,
                     sl_account_name((sl_account)i), added, estimate->account_bytes[i]);
        }
    }
    assert_int_equal(sum, estimate->total_bytes);
    if (now.total_bytes - before->total_bytes != estimate->total_bytes) {
        fail_msg("%s: took %zu bytes, estimated %zu", what, now.total_bytes - before->total_bytes,
                 estimate->total_bytes);
    }
    const size_t want_peak =
        memory_max(before->total_peak_bytes, before->total_bytes + estimate->peak_bytes);
    if (now.total_peak_bytes != want_peak) {
        fail_msg("%s: the books' peak is %zu, estimated %zu (%zu + %zu)", what,
                 now.total_peak_bytes, want_peak, before->total_bytes, estimate->peak_bytes);
    }
    if (now.mapped_bytes - before->mapped_bytes != estimate->mapped_bytes) {
        fail_msg("%s: mapped %zu bytes, estimated %llu", what,
                 now.mapped_bytes - before->mapped_bytes,
                 (unsigned long long)estimate->mapped_bytes);
    }
    assert_true(estimate->peak_bytes >= estimate->total_bytes);
}

/* ---- estimates ------------------------------------------------------------------------------------------------------ */

static const sl_session_options memory_sessions[] = {
    {.size = sizeof(sl_session_options), .n_ctx = 64},
    {.size = sizeof(sl_session_options), .n_ctx = 100, .n_batch = 1},
    {.size = sizeof(sl_session_options), .n_ctx = 257, .n_batch = 7, .kv_type = "f32"},
    {.size = sizeof(sl_session_options), .n_ctx = 33, .n_batch = 512, .n_page = 64},
    {.size = sizeof(sl_session_options), .n_ctx = 1, .n_batch = 1, .n_page = 16},
    {.size = sizeof(sl_session_options)},
};
#define N_MEMORY_SESSIONS (sizeof memory_sessions / sizeof memory_sessions[0])

/* Fill the whole context in every way that there is, so that whatever the session takes later is taken. */
static void memory_use(sl_session *session) {
    sl_error err;
    int32_t ids[48];
    memory_ids(ids, 48);
    const int32_t n_ctx = sl_session_n_ctx(session);
    const int32_t n = n_ctx < 48 ? n_ctx : 48;
    GOLDEN_STATUS(sl_session_eval(session, ids, (size_t)n, SL_WANT_LAST, NULL, NULL, &err), SL_OK,
                  &err);
    GOLDEN_STATUS(sl_session_rewind(session, 0, &err), SL_OK, &err);
    const char *const stop[] = {"never in this text", "nor this"};
    const sl_generate_options options = {.size = sizeof options,
                                         .max_tokens = 200,
                                         .sampling = {.temperature = 1.0f,
                                                      .top_k = 50,
                                                      .top_p = 0.9f,
                                                      .min_p = 0.01f,
                                                      .repeat_penalty = 1.1f,
                                                      .seed = 7},
                                         .stop = stop,
                                         .n_stop = 2,
                                         .ignore_eog = true};
    if (n_ctx > 1) {
        GOLDEN_STATUS(sl_generate(session, ids, (size_t)(n / 2), &options, NULL, NULL, NULL, &err),
                      SL_OK, &err);
    }
}

static void memory_estimate_file(const char *name, const sl_engine_options *engine_options) {
    char path[4096];
    memory_path(path, sizeof path, name);
    memory_file file;
    memory_load(&file, path);
    for (size_t i = 0; memory_stores[i] != NULL; i++) {
        for (int32_t vocab_only = 0; vocab_only < 2; vocab_only++) {
            sl_error err;
            sl_engine *engine = NULL;
            GOLDEN_STATUS(sl_engine_open(engine_options, &engine, &err), SL_OK, &err);
            sl_memory empty, after;
            sl_engine_memory(engine, &empty);
            sl_source source;
            sl_model_options options;
            memory_store_options(memory_stores[i], &file, &source, &options);
            options.vocab_only = vocab_only != 0;
            const char *what = help_text("%s by %s%s", name, memory_stores[i],
                                         options.vocab_only ? ", vocabulary only" : "");
            sl_estimate estimate, again;
            GOLDEN_STATUS(sl_model_estimate(engine, path, &options, &estimate, &err), SL_OK, &err);
            GOLDEN_STATUS(sl_model_estimate(engine, path, &options, &again, &err), SL_OK, &err);
            assert_memory_equal(&estimate, &again, sizeof estimate);
            sl_engine_memory(engine, &after);
            /* "The books do not move": neither what is held nor the peaks nor the count. */
            assert_memory_equal(&empty, &after, sizeof empty);
            sl_model *model = NULL;
            GOLDEN_STATUS(sl_model_open(engine, path, &options, &model, &err), SL_OK, &err);
            memory_as_estimated(engine, &empty, &estimate, what);
            sl_model_close(model);
            memory_same(engine, &empty, what);
            sl_engine_close(engine);
        }
    }
    free(file.data);
}

static void test_estimate_model(void **state) {
    (void)state;
    const sl_engine_options exact = {.size = sizeof exact, .act = "exact"};
    const sl_engine_options scalar = {.size = sizeof scalar, .isa = "scalar", .n_thread = 5};
    for (size_t i = 0; golden_tree[i] != NULL; i++) {
        memory_estimate_file(golden_tree[i], NULL);
    }
    memory_estimate_file(memory_model, &exact);
    memory_estimate_file(memory_model, &scalar);
}

static void test_estimate_session(void **state) {
    (void)state;
    for (size_t i = 0; golden_tree[i] != NULL; i++) {
        for (size_t k = 0; k < N_MEMORY_SESSIONS; k++) {
            char path[4096];
            memory_path(path, sizeof path, golden_tree[i]);
            const sl_session_options *options = &memory_sessions[k];
            sl_error err;
            sl_engine *engine = NULL;
            sl_model *model = NULL;
            sl_session *session = NULL;
            GOLDEN_STATUS(sl_engine_open(NULL, &engine, &err), SL_OK, &err);
            GOLDEN_STATUS(sl_model_open(engine, path, NULL, &model, &err), SL_OK, &err);
            sl_memory before, after;
            sl_engine_memory(engine, &before);
            sl_estimate estimate;
            GOLDEN_STATUS(sl_session_estimate(model, options, &estimate, &err), SL_OK, &err);
            sl_engine_memory(engine, &after);
            assert_memory_equal(&before, &after, sizeof before);
            GOLDEN_STATUS(sl_session_open(model, options, &session, &err), SL_OK, &err);
            memory_use(session);
            memory_as_estimated(engine, &before, &estimate,
                                help_text("session %zu of %s", k, golden_tree[i]));
            sl_session_close(session);
            memory_same(engine, &before, golden_tree[i]);
            sl_model_close(model);
            sl_engine_close(engine);
        }
    }
}

/* ---- nothing after the first token ---------------------------------------------------------------------------------- */

typedef struct memory_watch {
    sl_engine *engine;
    int32_t n_token;
    uint64_t first;
    bool moved;
} memory_watch;

static bool memory_on_text(void *user, int32_t id, const char *text, size_t n_text) {
    (void)id;
    (void)text;
    (void)n_text;
    memory_watch *watch = user;
    sl_memory now;
    sl_engine_memory(watch->engine, &now);
    if (watch->n_token++ == 0) {
        watch->first = now.n_alloc;
    }
    watch->moved = watch->moved || now.n_alloc != watch->first;
    return true;
}

static void test_no_allocation_after_the_first_token(void **state) {
    (void)state;
    const char *const stop[] = {"never in this text", "\x01\x02\x03", "zzzzzzzzzzzz"};
    const sl_generate_options ways[] = {
        {.size = sizeof ways[0], .ignore_eog = true, .max_tokens = 150},
        {.size = sizeof ways[0],
         .ignore_eog = true,
         .max_tokens = 150,
         .sampling = {.temperature = 1.3f,
                      .top_k = 40,
                      .top_p = 0.95f,
                      .min_p = 0.02f,
                      .repeat_penalty = 1.2f,
                      .repeat_last_n = -1,
                      .seed = 11},
         .stop = stop,
         .n_stop = 3},
    };
    for (size_t i = 0; golden_tree[i] != NULL; i++) {
        for (size_t k = 0; k < 2; k++) {
            char path[4096];
            memory_path(path, sizeof path, golden_tree[i]);
            const sl_session_options session_options = {.size = sizeof session_options,
                                                        .n_ctx = 200};
            golden_rig rig;
            golden_open(&rig, path, NULL, NULL, &session_options);
            int32_t ids[40];
            memory_ids(ids, 40);
            for (int32_t turn = 0; turn < 2; turn++) {
                sl_error err;
                sl_generate_result result;
                memory_watch watch = {.engine = rig.engine};
                GOLDEN_STATUS(sl_session_rewind(rig.session, 0, &err), SL_OK, &err);
                GOLDEN_STATUS(sl_generate(rig.session, ids, 40, &ways[k], memory_on_text, &watch,
                                          &result, &err),
                              SL_OK, &err);
                sl_memory end;
                sl_engine_memory(rig.engine, &end);
                assert_int_equal(result.n_generated, 150);
                assert_true(watch.n_token >= 100);
                assert_false(watch.moved);
                assert_int_equal(end.n_alloc, watch.first);
            }
            /* Nor does a step of one's own loop. */
            sl_memory before, after;
            sl_engine_memory(rig.engine, &before);
            for (int32_t n = 0; n < 8; n++) {
                sl_error err;
                GOLDEN_STATUS(
                    sl_session_eval(rig.session, ids + n, 1, SL_WANT_LAST, NULL, NULL, &err), SL_OK,
                    &err);
            }
            sl_engine_memory(rig.engine, &after);
            assert_int_equal(before.n_alloc, after.n_alloc);
            golden_close(&rig);
        }
    }
}

/* ---- limits --------------------------------------------------------------------------------------------------------- */

/* The total and the peak that an engine itself takes. */
static void memory_engine_need(size_t *total, size_t *peak) {
    sl_error err;
    sl_engine *engine = NULL;
    GOLDEN_STATUS(sl_engine_open(NULL, &engine, &err), SL_OK, &err);
    sl_memory memory;
    sl_engine_memory(engine, &memory);
    *total = memory.total_bytes;
    *peak = memory.total_peak_bytes;
    sl_engine_close(engine);
}

/* The error tells what would be enough: either as one number, or as what is in use and what is needed on top. */
static void memory_names_the_need(const sl_error *err, size_t need) {
    size_t number[16];
    int32_t n = 0;
    for (const char *at = err->text; *at != '\0' && n < 16;) {
        if (*at >= '0' && *at <= '9') {
            char *end = NULL;
            number[n++] = (size_t)strtoull(at, &end, 10);
            at = end;
        } else {
            at++;
        }
    }
    for (int32_t i = 0; i < n; i++) {
        for (int32_t k = 0; k < i; k++) {
            if (number[i] == need || number[k] == need || number[i] + number[k] == need) {
                return;
            }
        }
    }
    fail_msg("the error does not name the need of %zu bytes: %s", need, err->text);
}

static void test_limit(void **state) {
    (void)state;
    sl_error err;
    size_t engine_total = 0, engine_peak = 0;
    memory_engine_need(&engine_total, &engine_peak);
    sl_engine *engine = NULL;
    if (engine_peak > 0) {
        const sl_engine_options low = {.size = sizeof low, .limit_bytes = engine_peak - 1};
        const sl_engine_options fits = {.size = sizeof fits, .limit_bytes = engine_peak};
        GOLDEN_STATUS(sl_engine_open(&low, &engine, &err), SL_EBUDGET, &err);
        assert_null(engine);
        GOLDEN_STATUS(sl_engine_open(&fits, &engine, &err), SL_OK, &err);
        sl_engine_close(engine);
        engine = NULL;
    }
    for (size_t i = 0; golden_tree[i] != NULL; i++) {
        for (size_t k = 0; k < 2; k++) {
            char path[4096];
            memory_path(path, sizeof path, golden_tree[i]);
            const sl_model_options model_options = {.size = sizeof model_options,
                                                    .store = memory_stores[k]};
            const sl_session_options session_options = {.size = sizeof session_options,
                                                        .n_ctx = 128};
            /* What is needed, by the estimates of an engine without a limit. */
            sl_estimate model_need, session_need;
            sl_model *model = NULL;
            sl_session *session = NULL;
            GOLDEN_STATUS(sl_engine_open(NULL, &engine, &err), SL_OK, &err);
            GOLDEN_STATUS(sl_model_estimate(engine, path, &model_options, &model_need, &err), SL_OK,
                          &err);
            GOLDEN_STATUS(sl_model_open(engine, path, &model_options, &model, &err), SL_OK, &err);
            GOLDEN_STATUS(sl_session_estimate(model, &session_options, &session_need, &err), SL_OK,
                          &err);
            sl_model_close(model);
            sl_engine_close(engine);
            engine = NULL;
            model = NULL;

            const size_t for_model = engine_total + model_need.peak_bytes;
            const size_t for_session =
                engine_total + model_need.total_bytes + session_need.peak_bytes;
            sl_engine_options options = {.size = sizeof options, .limit_bytes = for_model};
            sl_memory before;
            if (for_model >= engine_peak) {
                GOLDEN_STATUS(sl_engine_open(&options, &engine, &err), SL_OK, &err);
                GOLDEN_STATUS(sl_model_open(engine, path, &model_options, &model, &err), SL_OK,
                              &err);
                sl_model_close(model);
                sl_engine_close(engine);
                engine = NULL;
                model = NULL;
            }
            if (for_model > engine_peak) {
                options.limit_bytes = for_model - 1;
                GOLDEN_STATUS(sl_engine_open(&options, &engine, &err), SL_OK, &err);
                sl_engine_memory(engine, &before);
                GOLDEN_STATUS(sl_model_open(engine, path, &model_options, &model, &err), SL_EBUDGET,
                              &err);
                assert_null(model);
                memory_names_the_need(&err, for_model);
                memory_same(engine, &before, "a model over the limit");
                sl_engine_close(engine);
                engine = NULL;
            }
            const size_t for_all = memory_max(for_model, for_session);
            options.limit_bytes = for_all;
            GOLDEN_STATUS(sl_engine_open(&options, &engine, &err), SL_OK, &err);
            GOLDEN_STATUS(sl_model_open(engine, path, &model_options, &model, &err), SL_OK, &err);
            GOLDEN_STATUS(sl_session_open(model, &session_options, &session, &err), SL_OK, &err);
            memory_use(session);
            sl_memory used;
            sl_engine_memory(engine, &used);
            assert_true(used.total_peak_bytes <= used.limit_bytes);
            sl_session_close(session);
            sl_model_close(model);
            sl_engine_close(engine);
            engine = NULL;
            model = NULL;
            session = NULL;
            if (for_session > for_model) {
                options.limit_bytes = for_session - 1;
                GOLDEN_STATUS(sl_engine_open(&options, &engine, &err), SL_OK, &err);
                GOLDEN_STATUS(sl_model_open(engine, path, &model_options, &model, &err), SL_OK,
                              &err);
                sl_engine_memory(engine, &before);
                GOLDEN_STATUS(sl_session_open(model, &session_options, &session, &err), SL_EBUDGET,
                              &err);
                assert_null(session);
                memory_names_the_need(&err, for_session);
                memory_same(engine, &before, "a session over the limit");
                sl_model_close(model);
                sl_engine_close(engine);
                engine = NULL;
                model = NULL;
            } else {
                /* A smaller session would not be refused: make one that is too large instead. */
                const sl_session_options large = {.size = sizeof large, .n_ctx = 1 << 20};
                GOLDEN_STATUS(sl_engine_open(&options, &engine, &err), SL_OK, &err);
                GOLDEN_STATUS(sl_model_open(engine, path, &model_options, &model, &err), SL_OK,
                              &err);
                sl_engine_memory(engine, &before);
                GOLDEN_STATUS(sl_session_open(model, &large, &session, &err), SL_EBUDGET, &err);
                assert_null(session);
                memory_same(engine, &before, "a session over the limit");
                sl_model_close(model);
                sl_engine_close(engine);
                engine = NULL;
                model = NULL;
            }
        }
    }
}

/* ---- sums ----------------------------------------------------------------------------------------------------------- */

/* Several objects at once, closed in another order than they were opened in. */
static void test_all_returned(void **state) {
    (void)state;
    sl_error err;
    sl_engine *engine = NULL;
    GOLDEN_STATUS(sl_engine_open(NULL, &engine, &err), SL_OK, &err);
    sl_memory empty;
    sl_engine_memory(engine, &empty);
    sl_model *models[2] = {NULL, NULL};
    sl_session *sessions[4] = {NULL, NULL, NULL, NULL};
    for (size_t i = 0; i < 2; i++) {
        char path[4096];
        memory_path(path, sizeof path, golden_tree[i + 2]);
        GOLDEN_STATUS(sl_model_open(engine, path, NULL, &models[i], &err), SL_OK, &err);
    }
    for (size_t i = 0; i < 4; i++) {
        GOLDEN_STATUS(sl_session_open(models[i % 2], &memory_sessions[i], &sessions[i], &err),
                      SL_OK, &err);
        memory_use(sessions[i]);
    }
    sl_memory full;
    sl_engine_memory(engine, &full);
    size_t sum = 0;
    for (int32_t i = 0; i < SL_ACCOUNT_COUNT; i++) {
        sum += full.now_bytes[i];
        assert_true(full.peak_bytes[i] >= full.now_bytes[i]);
    }
    assert_int_equal(sum, full.total_bytes);
    assert_true(full.total_bytes > empty.total_bytes);
    for (size_t i = 0; i < 4; i++) {
        sl_session_close(sessions[(i + 2) % 4]);
    }
    sl_model_close(models[0]);
    sl_model_close(models[1]);
    memory_same(engine, &empty, "after all closes");
    sl_engine_close(engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_estimate_model),
        cmocka_unit_test(test_estimate_session),
        cmocka_unit_test(test_no_allocation_after_the_first_token),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_all_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
