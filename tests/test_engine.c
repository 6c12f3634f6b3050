/* test_engine.c - the public API in good and bad use: options, arguments, ids, context, rewinding, busy, cancel. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help_gguf.h"
#include "help_golden.h"
#include "help_paths.h"
#include <cmocka.h>

static const char *engine_model(void) { return golden_path("qwen2-q8_0.gguf"); }

static void engine_ids(int32_t *ids, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        ids[i] = 10 + (i * 31) % 400;
    }
}

static void engine_open(golden_rig *rig, int32_t n_ctx, int32_t n_batch) {
    const sl_session_options options = {.size = sizeof options, .n_ctx = n_ctx, .n_batch = n_batch};
    golden_open(rig, engine_model(), NULL, NULL, &options);
}

/* Does the text hold this number as a whole word? */
static bool names_number(const char *text, long number) {
    const char *want = help_text("%ld", number);
    const size_t n = strlen(want);
    for (const char *at = strstr(text, want); at != NULL; at = strstr(at + 1, want)) {
        const bool starts = at == text || at[-1] < '0' || at[-1] > '9';
        const bool ends = at[n] < '0' || at[n] > '9';
        if (starts && ends) {
            return true;
        }
    }
    return false;
}

/* ---- facts ---------------------------------------------------------------------------------------------------------- */

static void test_names(void **state) {
    (void)state;
    assert_string_equal(sl_status_name(SL_OK), "SL_OK");
    assert_string_equal(sl_status_name(SL_EBUDGET), "SL_EBUDGET");
    assert_string_equal(sl_status_text(SL_EIO), "reading or writing failed");
    assert_non_null(sl_status_name((sl_status)999));
    assert_non_null(sl_status_text((sl_status)999));
    assert_string_equal(sl_account_name(SL_ACCOUNT_KV), "kv");
    assert_string_equal(sl_version(), "0.1.0");
}

static void test_about(void **state) {
    (void)state;
    golden_rig rig;
    engine_open(&rig, 16, 0);
    sl_about about;
    sl_engine_about(rig.engine, &about);
    assert_string_equal(about.version, sl_version());
    assert_true(about.n_core >= 1 && about.n_thread >= 1 && about.n_thread <= about.n_core);
    assert_true(about.ram_bytes > 1 << 20);
    assert_non_null(strstr(about.isas, "scalar"));
    assert_non_null(strstr(about.isas, about.isa));
    const char *const archs[] = {"llama", "qwen2", "qwen3", "gemma3"};
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
        assert_non_null(strstr(about.archs, archs[i]));
    }
    const char *const types[] = {"F32",  "F16",  "BF16", "Q4_0", "Q4_1", "Q5_0",   "Q5_1",  "Q8_0",
                                 "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        assert_non_null(strstr(about.qtypes, types[i]));
    }
    assert_non_null(strstr(about.stores, "mmap"));
    assert_non_null(strstr(about.stores, "direct"));
    assert_non_null(strstr(about.backends, "cpu"));
    golden_close(&rig);
}

static void test_model_info(void **state) {
    (void)state;
    golden_rig rig;
    engine_open(&rig, 16, 0);
    sl_model_info info;
    sl_model_get_info(rig.model, &info);
    /* The tiny qwen2 of the oracle, as its config.json has it. */
    assert_string_equal(info.arch, "qwen2");
    assert_string_equal(info.name, "tiny-qwen2");
    assert_int_equal(info.n_vocab, 512);
    assert_int_equal(info.n_layer, 3);
    assert_int_equal(info.n_embd, 128);
    assert_int_equal(info.n_ff, 192);
    assert_int_equal(info.n_head, 4);
    assert_int_equal(info.n_head_kv, 2);
    assert_int_equal(info.d_head, 32);
    assert_int_equal(info.n_ctx_train, 1024);
    assert_true(info.n_param > 400000 && info.n_param < 600000);
    assert_true(info.weight_bytes > 400000 && info.weight_bytes < 600000);
    assert_int_equal(sl_session_n_ctx(rig.session), 16);
    assert_int_equal(sl_session_n_past(rig.session), 0);
    assert_null(sl_session_logits(rig.session));
    golden_close(&rig);
    /* Without a wish the context is what the model was trained for, at most 4096. */
    golden_open(&rig, engine_model(), NULL, NULL, NULL);
    assert_int_equal(sl_session_n_ctx(rig.session), 1024);
    golden_close(&rig);
}

/* ---- bad use -------------------------------------------------------------------------------------------------------- */

static void test_null_arguments(void **state) {
    (void)state;
    golden_rig rig;
    engine_open(&rig, 64, 0);
    sl_error err;
    sl_engine *engine = NULL;
    sl_model *model = NULL;
    sl_session *session = NULL;
    sl_file *file = NULL;
    sl_estimate estimate;
    int32_t ids[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    char text[64];
    size_t n = 0;
    const char *path = engine_model();
    sl_engine_close(NULL);
    sl_file_close(NULL);
    sl_model_close(NULL);
    sl_session_close(NULL);
    GOLDEN_STATUS(sl_engine_open(NULL, NULL, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_file_open(NULL, path, NULL, &file, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_file_open(rig.engine, NULL, NULL, &file, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_file_open(rig.engine, path, NULL, NULL, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_model_open(NULL, path, NULL, &model, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_model_open(rig.engine, NULL, NULL, &model, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_model_open(rig.engine, path, NULL, NULL, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_model_estimate(NULL, path, NULL, &estimate, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_model_estimate(rig.engine, NULL, NULL, &estimate, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_model_estimate(rig.engine, path, NULL, NULL, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_session_open(NULL, NULL, &session, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_session_open(rig.model, NULL, NULL, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_session_estimate(NULL, NULL, &estimate, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_session_estimate(rig.model, NULL, NULL, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_session_rewind(NULL, 0, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_session_eval(NULL, ids, 1, SL_WANT_LAST, NULL, NULL, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_session_eval(rig.session, NULL, 1, SL_WANT_LAST, NULL, NULL, &err), SL_EINVAL,
                  &err);
    GOLDEN_STATUS(sl_generate(NULL, ids, 1, NULL, NULL, NULL, NULL, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_generate(rig.session, NULL, 1, NULL, NULL, NULL, NULL, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_tokenize(NULL, "a", 1, 0, ids, 8, &n, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_tokenize(rig.model, NULL, 1, 0, ids, 8, &n, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_tokenize(rig.model, "a", 1, 0, NULL, 8, &n, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_tokenize(rig.model, "a", 1, 0, ids, 8, NULL, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_detokenize(NULL, ids, 1, 0, text, 64, &n, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_detokenize(rig.model, NULL, 1, 0, text, 64, &n, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_detokenize(rig.model, ids, 1, 0, NULL, 64, &n, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_detokenize(rig.model, ids, 1, 0, text, 64, NULL, &err), SL_EINVAL, &err);
    const char *bytes = NULL;
    assert_int_equal(sl_token_bytes(NULL, 1, &bytes, &n), SL_EINVAL);
    assert_int_equal(sl_token_bytes(rig.model, 1, NULL, &n), SL_EINVAL);
    assert_int_equal(sl_token_bytes(rig.model, 1, &bytes, NULL), SL_EINVAL);
    /* An error is not required. */
    assert_int_equal(sl_model_open(rig.engine, NULL, NULL, &model, NULL), SL_EINVAL);
    assert_int_equal(sl_model_open(rig.engine, "no such file", NULL, &model, NULL), SL_ENOTFOUND);
    assert_null(engine);
    assert_null(model);
    assert_null(session);
    assert_null(file);
    /* And after all this the session still works. */
    GOLDEN_STATUS(sl_session_eval(rig.session, ids, 8, SL_WANT_LAST, NULL, NULL, &err), SL_OK,
                  &err);
    golden_close(&rig);
}

static void test_bad_chat(void **state) {
    (void)state;
    sl_error err;
    help_gguf *gguf = golden_chat_gguf();
    sl_source source = {0};
    source.data = help_gguf_bytes(gguf, &source.size_bytes);
    const sl_model_options options = {
        .size = sizeof options, .source = &source, .vocab_only = true};
    sl_engine *engine = NULL;
    sl_model *model = NULL;
    GOLDEN_STATUS(sl_engine_open(NULL, &engine, &err), SL_OK, &err);
    GOLDEN_STATUS(sl_model_open(engine, NULL, &options, &model, &err), SL_OK, &err);
    char text[64];
    int32_t ids[8];
    size_t n = 0;
    const sl_message message = {"user", "hi", 2}, no_role = {NULL, "hi", 2},
                     no_content = {"user", NULL, 2};
    GOLDEN_STATUS(sl_chat_render(NULL, &message, 1, true, text, 64, &n, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_chat_render(model, NULL, 1, true, text, 64, &n, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_chat_render(model, &no_role, 1, true, text, 64, &n, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_chat_render(model, &no_content, 1, true, text, 64, &n, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_chat_render(model, &message, 1, true, text, 64, NULL, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_chat_tokenize(NULL, &message, 1, true, ids, 8, &n, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_chat_tokenize(model, &message, 1, true, ids, 8, NULL, &err), SL_EINVAL, &err);
    const char want[] = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n";
    GOLDEN_STATUS(sl_chat_render(model, &message, 1, true, text, 64, &n, &err), SL_OK, &err);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(text, want, n);
    const sl_message alien = {"martian", "hi", 2};
    GOLDEN_STATUS(sl_chat_render(model, &alien, 1, true, text, 64, &n, &err), SL_EINVAL, &err);
    /* The cap rule. */
    for (size_t cap = 0; cap < strlen(want); cap++) {
        memset(text, 0x5A, sizeof text);
        GOLDEN_STATUS(sl_chat_render(model, &message, 1, true, text, cap, &n, &err), SL_ELIMIT,
                      &err);
        assert_int_equal(n, strlen(want));
        assert_int_equal(text[cap], 0x5A);
    }
    GOLDEN_STATUS(sl_chat_render(model, &message, 1, true, NULL, 0, &n, &err), SL_OK, &err);
    assert_int_equal(n, strlen(want));
    sl_model_close(model);
    sl_engine_close(engine);
    help_gguf_free(gguf);
}

static void test_bad_options(void **state) {
    (void)state;
    sl_error err;
    sl_engine *engine = NULL;
    sl_model *model = NULL;
    sl_session *session = NULL;
    sl_engine_options e = {.size = sizeof e, .n_thread = -1};
    GOLDEN_STATUS(sl_engine_open(&e, &engine, &err), SL_EINVAL, &err);
    e.n_thread = 100000;
    GOLDEN_STATUS(sl_engine_open(&e, &engine, &err), SL_EINVAL, &err);
    e.n_thread = 1;
    e.isa = "abacus";
    const sl_status status = sl_engine_open(&e, &engine, &err);
    assert_true(status == SL_ENOTSUP || status == SL_EINVAL);
    assert_non_null(strstr(err.text, "abacus"));
    e.isa = NULL;
    e.act = "telepathy";
    GOLDEN_STATUS(sl_engine_open(&e, &engine, &err), SL_EINVAL, &err);
    assert_non_null(strstr(err.text, "telepathy"));
    assert_null(engine);
    golden_rig rig;
    engine_open(&rig, 16, 0);
    const sl_model_options m = {.size = sizeof m, .store = "stone"};
    GOLDEN_STATUS(sl_model_open(rig.engine, engine_model(), &m, &model, &err), SL_EINVAL, &err);
    assert_non_null(strstr(err.text, "stone"));
    assert_null(model);
    const sl_session_options bad[] = {
        {.size = sizeof bad[0], .n_ctx = -1},
        {.size = sizeof bad[0], .n_ctx = 64, .n_batch = -1},
        {.size = sizeof bad[0], .n_ctx = 64, .n_batch = 1 << 20},
        {.size = sizeof bad[0], .n_ctx = 64, .n_page = 17},
        {.size = sizeof bad[0], .n_ctx = 64, .n_page = 8},
        {.size = sizeof bad[0], .n_ctx = 64, .n_page = 512},
        {.size = sizeof bad[0], .n_ctx = 64, .n_page = -16},
        {.size = sizeof bad[0], .n_ctx = 64, .kv_type = "f17"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        sl_estimate estimate;
        GOLDEN_STATUS(sl_session_open(rig.model, &bad[i], &session, &err), SL_EINVAL, &err);
        GOLDEN_STATUS(sl_session_estimate(rig.model, &bad[i], &estimate, &err), SL_EINVAL, &err);
        assert_null(session);
    }
    golden_close(&rig);
}

static void test_bad_sampling(void **state) {
    (void)state;
    golden_rig rig;
    engine_open(&rig, 64, 0);
    sl_error err;
    int32_t ids[4];
    engine_ids(ids, 4);
    const sl_sampling bad[] = {
        {.temperature = -1.0f}, {.temperature = NAN},   {.temperature = INFINITY},
        {.top_k = -1},          {.top_p = -0.1f},       {.top_p = 1.5f},
        {.top_p = NAN},         {.min_p = -0.1f},       {.min_p = 1.5f},
        {.min_p = NAN},         {.repeat_penalty = -1}, {.repeat_penalty = NAN},
        {.repeat_last_n = -2},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const sl_generate_options options = {
            .size = sizeof options, .max_tokens = 2, .sampling = bad[i]};
        const sl_status status = sl_generate(rig.session, ids, 4, &options, NULL, NULL, NULL, &err);
        if (status != SL_EINVAL) {
            fail_msg("bad sampling %zu: %s", i, sl_status_name(status));
        }
        assert_int_equal(sl_session_n_past(rig.session), 0);
    }
    char long_stop[2000];
    memset(long_stop, 'x', sizeof long_stop - 1);
    long_stop[sizeof long_stop - 1] = '\0';
    const char *many[17];
    for (size_t i = 0; i < 17; i++) {
        many[i] = "x";
    }
    const char *too_long[] = {long_stop};
    const char *empty[] = {""};
    const char *nothing[] = {NULL};
    const struct {
        const char *const *stop;
        size_t n;
    } stops[] = {{many, 17}, {too_long, 1}, {empty, 1}, {nothing, 1}, {NULL, 1}};
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        const sl_generate_options options = {
            .size = sizeof options, .max_tokens = 2, .stop = stops[i].stop, .n_stop = stops[i].n};
        const sl_status status = sl_generate(rig.session, ids, 4, &options, NULL, NULL, NULL, &err);
        if (status != SL_EINVAL && status != SL_ELIMIT) {
            fail_msg("bad stop strings %zu: %s", i, sl_status_name(status));
        }
        assert_int_equal(sl_session_n_past(rig.session), 0);
    }
    const sl_generate_options negative = {.size = sizeof negative, .max_tokens = -1};
    GOLDEN_STATUS(sl_generate(rig.session, ids, 4, &negative, NULL, NULL, NULL, &err), SL_EINVAL,
                  &err);
    golden_close(&rig);
}

/* The size field: zero and smaller sizes are older callers, a larger one a newer caller. */
static void test_option_sizes(void **state) {
    (void)state;
    sl_error err;
    struct {
        sl_engine_options options;
        char more[64];
    } large;
    memset(&large, 0, sizeof large);
    const size_t sizes[] = {0, sizeof(size_t), offsetof(sl_engine_options, limit_bytes),
                            sizeof large.options, sizeof large};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        sl_engine *engine = NULL;
        large.options.size = sizes[i];
        GOLDEN_STATUS(sl_engine_open(&large.options, &engine, &err), SL_OK, &err);
        sl_engine_close(engine);
    }
    /* What lies beyond the size that the caller names is not read. */
    sl_engine *engine = NULL;
    large.options.size = offsetof(sl_engine_options, limit_bytes);
    large.options.limit_bytes = 1;
    GOLDEN_STATUS(sl_engine_open(&large.options, &engine, &err), SL_OK, &err);
    sl_memory memory;
    sl_engine_memory(engine, &memory);
    assert_int_equal(memory.limit_bytes, 0);
    sl_engine_close(engine);
    engine = NULL;
    /* An option that this version does not know is refused, not ignored. */
    large.options.limit_bytes = 0;
    large.options.size = sizeof large;
    large.more[8] = 1;
    const sl_status status = sl_engine_open(&large.options, &engine, &err);
    assert_true(status == SL_EINVAL || status == SL_ENOTSUP);
    assert_null(engine);

    golden_rig rig;
    engine_open(&rig, 64, 0);
    struct {
        sl_session_options options;
        char more[64];
    } wide;
    memset(&wide, 0, sizeof wide);
    wide.options.n_ctx = 40;
    wide.options.n_batch = -5; /* refused if it were read */
    const size_t n_ctx_only = offsetof(sl_session_options, n_batch);
    sl_session *session = NULL;
    wide.options.size = n_ctx_only;
    GOLDEN_STATUS(sl_session_open(rig.model, &wide.options, &session, &err), SL_OK, &err);
    assert_int_equal(sl_session_n_ctx(session), 40);
    sl_session_close(session);
    session = NULL;
    wide.options.n_batch = 0;
    wide.options.size = sizeof wide;
    GOLDEN_STATUS(sl_session_open(rig.model, &wide.options, &session, &err), SL_OK, &err);
    sl_session_close(session);
    struct {
        sl_generate_options options;
        char more[64];
    } talk;
    memset(&talk, 0, sizeof talk);
    talk.options.size = sizeof talk;
    talk.options.max_tokens = 2;
    int32_t ids[4];
    engine_ids(ids, 4);
    GOLDEN_STATUS(sl_generate(rig.session, ids, 4, &talk.options, NULL, NULL, NULL, &err), SL_OK,
                  &err);
    golden_close(&rig);
}

static void test_not_a_model(void **state) {
    (void)state;
    sl_error err;
    sl_engine *engine = NULL;
    sl_model *model = NULL;
    GOLDEN_STATUS(sl_engine_open(NULL, &engine, &err), SL_OK, &err);
    GOLDEN_STATUS(sl_model_open(engine, "/no/such/file.gguf", NULL, &model, &err), SL_ENOTFOUND,
                  &err);
    assert_non_null(strstr(err.text, "/no/such/file.gguf"));
    const sl_status directory = sl_model_open(engine, SL_TEST_DATA, NULL, &model, &err);
    assert_true(directory != SL_OK && err.text[0] != '\0');
    GOLDEN_STATUS(sl_model_open(engine, golden_path("llama.vec"), NULL, &model, &err), SL_EFORMAT,
                  &err);
    assert_non_null(strstr(err.text, "llama.vec"));
    GOLDEN_STATUS(sl_model_open(engine, "", NULL, &model, &err), SL_EINVAL, &err);
    assert_null(model);
    sl_engine_close(engine);
}

/* ---- ids, context, rewinding ---------------------------------------------------------------------------------------- */

static void test_ids_out_of_range(void **state) {
    (void)state;
    golden_rig rig;
    engine_open(&rig, 64, 0);
    sl_error err;
    const int32_t bad[] = {-1, INT32_MIN, 512, INT32_MAX};
    for (size_t i = 0; i < 4; i++) {
        int32_t ids[5];
        engine_ids(ids, 5);
        /* The last of them: nothing before it may have been evaluated. */
        ids[4] = bad[i];
        GOLDEN_STATUS(sl_session_eval(rig.session, ids, 5, SL_WANT_LAST, NULL, NULL, &err),
                      SL_EINVAL, &err);
        assert_true(names_number(err.text, bad[i]));
        GOLDEN_STATUS(sl_generate(rig.session, ids, 5, NULL, NULL, NULL, NULL, &err), SL_EINVAL,
                      &err);
        assert_int_equal(sl_session_n_past(rig.session), 0);
        const char *bytes = NULL;
        size_t n = 0;
        assert_int_equal(sl_token_bytes(rig.model, bad[i], &bytes, &n), SL_EINVAL);
        char text[64];
        GOLDEN_STATUS(sl_detokenize(rig.model, ids, 5, 0, text, sizeof text, &n, &err), SL_EINVAL,
                      &err);
        assert_false(sl_token_is_control(rig.model, bad[i]));
        assert_false(sl_token_is_eog(rig.model, bad[i]));
    }
    golden_close(&rig);
}

static void test_nothing_to_evaluate(void **state) {
    (void)state;
    golden_rig rig;
    engine_open(&rig, 64, 0);
    sl_error err;
    int32_t ids[4];
    engine_ids(ids, 4);
    /* An empty prompt on an empty session has no logits to sample from. */
    GOLDEN_STATUS(sl_generate(rig.session, ids, 0, NULL, NULL, NULL, NULL, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_session_eval(rig.session, ids, 4, SL_WANT_NONE, NULL, NULL, &err), SL_OK,
                  &err);
    assert_null(sl_session_logits(rig.session));
    assert_int_equal(sl_session_n_past(rig.session), 4);
    golden_close(&rig);
}

static void test_prompt_longer_than_context(void **state) {
    (void)state;
    golden_rig rig;
    engine_open(&rig, 33, 0);
    sl_error err;
    int32_t ids[50];
    engine_ids(ids, 50);
    GOLDEN_STATUS(sl_session_eval(rig.session, ids, 50, SL_WANT_LAST, NULL, NULL, &err), SL_ELIMIT,
                  &err);
    assert_true(names_number(err.text, 50));
    assert_true(names_number(err.text, 33));
    assert_int_equal(sl_session_n_past(rig.session), 0);
    GOLDEN_STATUS(sl_generate(rig.session, ids, 34, NULL, NULL, NULL, NULL, &err), SL_ELIMIT, &err);
    assert_true(names_number(err.text, 34));
    assert_true(names_number(err.text, 33));
    assert_int_equal(sl_session_n_past(rig.session), 0);
    /* The last place can be used, and no more. */
    GOLDEN_STATUS(sl_session_eval(rig.session, ids, 20, SL_WANT_LAST, NULL, NULL, &err), SL_OK,
                  &err);
    GOLDEN_STATUS(sl_session_eval(rig.session, ids, 14, SL_WANT_LAST, NULL, NULL, &err), SL_ELIMIT,
                  &err);
    assert_int_equal(sl_session_n_past(rig.session), 20);
    GOLDEN_STATUS(sl_session_eval(rig.session, ids, 13, SL_WANT_LAST, NULL, NULL, &err), SL_OK,
                  &err);
    assert_int_equal(sl_session_n_past(rig.session), 33);
    GOLDEN_STATUS(sl_session_eval(rig.session, ids, 1, SL_WANT_LAST, NULL, NULL, &err), SL_ELIMIT,
                  &err);
    golden_close(&rig);
}

static void test_rewind(void **state) {
    (void)state;
    golden_rig rig;
    engine_open(&rig, 64, 0);
    sl_error err;
    int32_t ids[40];
    engine_ids(ids, 40);
    GOLDEN_STATUS(sl_session_rewind(rig.session, 0, &err), SL_OK, &err);
    GOLDEN_STATUS(sl_session_rewind(rig.session, 1, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_session_rewind(rig.session, -1, &err), SL_EINVAL, &err);
    GOLDEN_STATUS(sl_session_eval(rig.session, ids, 40, SL_WANT_LAST, NULL, NULL, &err), SL_OK,
                  &err);
    float last[512];
    memcpy(last, sl_session_logits(rig.session), sizeof last);
    GOLDEN_STATUS(sl_session_rewind(rig.session, 41, &err), SL_EINVAL, &err);
    assert_int_equal(sl_session_n_past(rig.session), 40);
    for (int32_t keep = 39; keep >= 0; keep -= 13) {
        GOLDEN_STATUS(sl_session_rewind(rig.session, keep, &err), SL_OK, &err);
        assert_int_equal(sl_session_n_past(rig.session), keep);
        /* Logits of a token that was forgotten are not offered. */
        assert_null(sl_session_logits(rig.session));
        GOLDEN_STATUS(sl_session_eval(rig.session, ids + keep, (size_t)(40 - keep), SL_WANT_LAST,
                                      NULL, NULL, &err),
                      SL_OK, &err);
        assert_memory_equal(last, sl_session_logits(rig.session), sizeof last);
    }
    golden_close(&rig);
}

/* ---- busy and cancel ------------------------------------------------------------------------------------------------ */

typedef struct engine_other {
    sl_session *session;
    sl_status eval, rewind, generate;
    int32_t n_token;
    int32_t at_token; /* do it when this many tokens have come */
    bool is_cancel;
} engine_other;

static void *engine_intrude(void *user) {
    engine_other *other = user;
    const int32_t id = 5;
    if (other->is_cancel) {
        sl_session_cancel(other->session);
        return NULL;
    }
    other->eval = sl_session_eval(other->session, &id, 1, SL_WANT_LAST, NULL, NULL, NULL);
    other->rewind = sl_session_rewind(other->session, 0, NULL);
    other->generate = sl_generate(other->session, &id, 1, NULL, NULL, NULL, NULL, NULL);
    return NULL;
}

static void engine_in_a_thread(engine_other *other) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, engine_intrude, other), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static bool engine_on_text(void *user, int32_t id, const char *text, size_t n_text) {
    (void)id;
    (void)text;
    (void)n_text;
    engine_other *other = user;
    if (++other->n_token == other->at_token) {
        engine_in_a_thread(other);
    }
    return true;
}

static void engine_on_logits(void *user, int32_t i_token, const float *logits, int32_t n_vocab) {
    (void)i_token;
    (void)logits;
    (void)n_vocab;
    engine_other *other = user;
    if (++other->n_token == other->at_token) {
        engine_in_a_thread(other);
    }
}

static void test_busy(void **state) {
    (void)state;
    golden_rig rig;
    engine_open(&rig, 64, 0);
    sl_error err;
    int32_t ids[10];
    engine_ids(ids, 10);
    engine_other other = {.session = rig.session, .at_token = 3};
    const sl_generate_options options = {
        .size = sizeof options, .max_tokens = 10, .ignore_eog = true};
    sl_generate_result result;
    GOLDEN_STATUS(
        sl_generate(rig.session, ids, 10, &options, engine_on_text, &other, &result, &err), SL_OK,
        &err);
    assert_int_equal(result.n_generated, 10);
    assert_int_equal(other.eval, SL_EBUSY);
    assert_int_equal(other.rewind, SL_EBUSY);
    assert_int_equal(other.generate, SL_EBUSY);
    golden_close(&rig);
}

static void test_cancel_generate(void **state) {
    (void)state;
    golden_rig rig;
    engine_open(&rig, 600, 0);
    sl_error err;
    int32_t ids[10];
    engine_ids(ids, 10);
    engine_other other = {.session = rig.session, .at_token = 5, .is_cancel = true};
    const sl_generate_options options = {
        .size = sizeof options, .max_tokens = 500, .ignore_eog = true};
    GOLDEN_STATUS(sl_generate(rig.session, ids, 10, &options, engine_on_text, &other, NULL, &err),
                  SL_ECANCEL, &err);
    assert_in_range(other.n_token, 5, 6);
    /* Nothing is pending: the same session goes on, and gives what a new one gives. */
    GOLDEN_STATUS(sl_session_rewind(rig.session, 0, &err), SL_OK, &err);
    GOLDEN_STATUS(sl_session_eval(rig.session, ids, 10, SL_WANT_LAST, NULL, NULL, &err), SL_OK,
                  &err);
    golden_rig fresh;
    engine_open(&fresh, 600, 0);
    GOLDEN_STATUS(sl_session_eval(fresh.session, ids, 10, SL_WANT_LAST, NULL, NULL, &err), SL_OK,
                  &err);
    assert_memory_equal(sl_session_logits(rig.session), sl_session_logits(fresh.session),
                        512 * sizeof(float));
    golden_close(&fresh);
    golden_close(&rig);
}

static void test_cancel_eval(void **state) {
    (void)state;
    golden_rig rig;
    engine_open(&rig, 600, 1);
    sl_error err;
    int32_t ids[300];
    engine_ids(ids, 300);
    float want[512];
    GOLDEN_STATUS(sl_session_eval(rig.session, ids, 20, SL_WANT_LAST, NULL, NULL, &err), SL_OK,
                  &err);
    memcpy(want, sl_session_logits(rig.session), sizeof want);
    GOLDEN_STATUS(sl_session_rewind(rig.session, 10, &err), SL_OK, &err);
    engine_other other = {.session = rig.session, .at_token = 4, .is_cancel = true};
    GOLDEN_STATUS(
        sl_session_eval(rig.session, ids, 300, SL_WANT_ALL, engine_on_logits, &other, &err),
        SL_ECANCEL, &err);
    assert_in_range(other.n_token, 4, 5);
    /* The session is as it was before the call. */
    assert_int_equal(sl_session_n_past(rig.session), 10);
    GOLDEN_STATUS(sl_session_eval(rig.session, ids + 10, 10, SL_WANT_LAST, NULL, NULL, &err), SL_OK,
                  &err);
    assert_memory_equal(sl_session_logits(rig.session), want, sizeof want);
    /* A cancel while nothing runs has no effect. */
    sl_session_cancel(rig.session);
    GOLDEN_STATUS(sl_session_eval(rig.session, ids, 1, SL_WANT_LAST, NULL, NULL, &err), SL_OK,
                  &err);
    golden_close(&rig);
}

static bool engine_progress(void *user, float share) {
    float *seen = user;
    assert_true(share >= seen[0] && share <= 1.0f);
    seen[0] = share;
    seen[1] += 1;
    return seen[2] == 0 || seen[1] < seen[2];
}

static void test_progress(void **state) {
    (void)state;
    sl_error err;
    sl_engine *engine = NULL;
    GOLDEN_STATUS(sl_engine_open(NULL, &engine, &err), SL_OK, &err);
    const char *const stores[] = {"mmap", "direct"};
    for (size_t i = 0; i < 2; i++) {
        sl_model *model = NULL;
        float seen[3] = {0, 0, 0};
        const sl_model_options options = {.size = sizeof options,
                                          .store = stores[i],
                                          .progress = engine_progress,
                                          .progress_user = seen};
        GOLDEN_STATUS(sl_model_open(engine, engine_model(), &options, &model, &err), SL_OK, &err);
        assert_true(seen[1] >= 1);
        assert_true(seen[0] == 1.0f);
        sl_model_close(model);
        model = NULL;
        sl_memory before, after;
        sl_engine_memory(engine, &before);
        float refuse[3] = {0, 0, 1};
        const sl_model_options stubborn = {.size = sizeof stubborn,
                                           .store = stores[i],
                                           .progress = engine_progress,
                                           .progress_user = refuse};
        GOLDEN_STATUS(sl_model_open(engine, engine_model(), &stubborn, &model, &err), SL_ECANCEL,
                      &err);
        assert_null(model);
        sl_engine_memory(engine, &after);
        assert_int_equal(before.total_bytes, after.total_bytes);
    }
    sl_engine_close(engine);
}

/* Two engines with different kernels in one process: each has its own, both are right. */
static void test_two_engines(void **state) {
    (void)state;
    const sl_engine_options plain = {
        .size = sizeof plain, .isa = "scalar", .n_thread = 1, .act = "exact"};
    const sl_engine_options best = {.size = sizeof best, .n_thread = 3, .act = "exact"};
    golden_rig a, b;
    golden_open(&a, engine_model(), &plain, NULL, NULL);
    golden_open(&b, engine_model(), &best, NULL, NULL);
    sl_about about_a, about_b;
    sl_engine_about(a.engine, &about_a);
    sl_engine_about(b.engine, &about_b);
    assert_string_equal(about_a.isa, "scalar");
    assert_int_equal(about_a.n_thread, 1);
    assert_int_equal(about_b.n_thread, 3);
    sl_error err;
    int32_t ids[30];
    engine_ids(ids, 30);
    GOLDEN_STATUS(sl_session_eval(a.session, ids, 30, SL_WANT_LAST, NULL, NULL, &err), SL_OK, &err);
    GOLDEN_STATUS(sl_session_eval(b.session, ids, 30, SL_WANT_LAST, NULL, NULL, &err), SL_OK, &err);
    double max_abs = 0;
    const double nmse =
        golden_nmse(sl_session_logits(a.session), sl_session_logits(b.session), 512, &max_abs);
    printf("  scalar and %s: nmse %.3g, max |d| %.3g\n", about_b.isa, nmse, max_abs);
    assert_true(nmse < 1e-6);
    golden_close(&a);
    golden_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_about),
        cmocka_unit_test(test_model_info),
        cmocka_unit_test(test_null_arguments),
        cmocka_unit_test(test_bad_chat),
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_bad_sampling),
        cmocka_unit_test(test_option_sizes),
        cmocka_unit_test(test_not_a_model),
        cmocka_unit_test(test_ids_out_of_range),
        cmocka_unit_test(test_nothing_to_evaluate),
        cmocka_unit_test(test_prompt_longer_than_context),
        cmocka_unit_test(test_rewind),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_cancel_generate),
        cmocka_unit_test(test_cancel_eval),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_two_engines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
