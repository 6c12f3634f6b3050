/* test_engine_file.c - sl_file: metadata of every type and tensors, read back through the public API. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help_gguf.h"
#include "help_golden.h"
#include "help_paths.h"
#include <cmocka.h>

typedef struct file_rig {
    help_gguf *gguf;
    sl_engine *engine;
    sl_file *file;
    sl_source source;
} file_rig;

static void file_rig_open(file_rig *rig) {
    sl_error err;
    size_t n = 0;
    rig->source.data = help_gguf_bytes(rig->gguf, &n);
    rig->source.size_bytes = n;
    const sl_file_options options = {.size = sizeof options, .source = &rig->source};
    GOLDEN_STATUS(sl_engine_open(NULL, &rig->engine, &err), SL_OK, &err);
    GOLDEN_STATUS(sl_file_open(rig->engine, "made.gguf", &options, &rig->file, &err), SL_OK, &err);
}

static void file_rig_close(file_rig *rig) {
    sl_file_close(rig->file);
    sl_engine_close(rig->engine);
    help_gguf_free(rig->gguf);
    memset(rig, 0, sizeof *rig);
}

/* Entry `key` is of this type and reads as this text, short and in full. */
static void file_expect(const file_rig *rig, const char *key, const char *type, const char *text) {
    const int64_t i = sl_file_find_meta(rig->file, key);
    if (i < 0) {
        fail_msg("the key '%s' is not found", key);
    }
    for (int full = 0; full < 2; full++) {
        const char *got_key = NULL;
        char got_type[64], got[512];
        size_t n = 0;
        assert_int_equal(sl_file_get_meta(rig->file, i, full != 0, &got_key, got_type,
                                          sizeof got_type, got, sizeof got, &n),
                         SL_OK);
        assert_string_equal(got_key, key);
        assert_string_equal(got_type, type);
        assert_string_equal(got, text);
        assert_int_equal(n, strlen(text));
        /* Cut to any buffer: always terminated, the whole length always told. */
        for (size_t cap = 1; cap <= strlen(text); cap++) {
            memset(got, 'Z', sizeof got);
            assert_int_equal(sl_file_get_meta(rig->file, i, full != 0, NULL, NULL, 0, got, cap, &n),
                             SL_OK);
            assert_int_equal(n, strlen(text));
            assert_int_equal(strlen(got), cap - 1);
            assert_int_equal(got[cap], 'Z');
        }
    }
}

static void test_every_type(void **state) {
    (void)state;
    file_rig rig = {.gguf = help_gguf_new()};
    help_gguf *g = rig.gguf;
    help_gguf_str(g, "general.architecture", "llama");
    help_gguf_u8(g, "a.u8", 255);
    help_gguf_i8(g, "a.i8", -128);
    help_gguf_u16(g, "a.u16", 65535);
    help_gguf_i16(g, "a.i16", -32768);
    help_gguf_u32(g, "a.u32", 4294967295u);
    help_gguf_i32(g, "a.i32", INT32_MIN);
    help_gguf_u64(g, "a.u64", UINT64_MAX);
    help_gguf_i64(g, "a.i64", INT64_MIN);
    help_gguf_f32(g, "a.f32", 0.1f);
    help_gguf_f64(g, "a.f64", 0.1);
    help_gguf_bool(g, "a.true", true);
    help_gguf_bool(g, "a.false", false);
    help_gguf_str(g, "a.empty", "");
    help_gguf_str(g, "a.text", "Stra\xC3\x9F\x65");
    const uint16_t few[] = {1, 2, 65535};
    help_gguf_array(g, "b.u16", SL_META_U16, few, 3);
    const float reals[] = {0.5f, -1.25f};
    help_gguf_array(g, "b.f32", SL_META_F32, reals, 2);
    const uint8_t flags[] = {1, 0, 1};
    help_gguf_array(g, "b.bool", SL_META_BOOL, flags, 3);
    help_gguf_array(g, "b.none", SL_META_I32, NULL, 0);
    const char *const words[] = {"one", "", "three"};
    help_gguf_strings(g, "b.str", words, 3);
    int32_t many[100];
    for (int32_t i = 0; i < 100; i++) {
        many[i] = i * i;
    }
    help_gguf_array(g, "c.many", SL_META_I32, many, 100);
    char text[400];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    help_gguf_str(g, "c.long", text);
    file_rig_open(&rig);

    file_expect(&rig, "general.architecture", "str", "llama");
    file_expect(&rig, "a.u8", "u8", "255");
    file_expect(&rig, "a.i8", "i8", "-128");
    file_expect(&rig, "a.u16", "u16", "65535");
    file_expect(&rig, "a.i16", "i16", "-32768");
    file_expect(&rig, "a.u32", "u32", "4294967295");
    file_expect(&rig, "a.i32", "i32", "-2147483648");
    file_expect(&rig, "a.u64", "u64", "18446744073709551615");
    file_expect(&rig, "a.i64", "i64", "-9223372036854775808");
    file_expect(&rig, "a.f32", "f32", "0.100000001");
    file_expect(&rig, "a.f64", "f64", "0.10000000000000001");
    file_expect(&rig, "a.true", "bool", "true");
    file_expect(&rig, "a.false", "bool", "false");
    file_expect(&rig, "a.empty", "str", "");
    file_expect(&rig, "a.text", "str", "Stra\xC3\x9F\x65");
    file_expect(&rig, "b.u16", "arr[u16,3]", "[1, 2, 65535]");
    file_expect(&rig, "b.f32", "arr[f32,2]", "[0.5, -1.25]");
    file_expect(&rig, "b.bool", "arr[bool,3]", "[true, false, true]");
    file_expect(&rig, "b.none", "arr[i32,0]", "[]");
    file_expect(&rig, "b.str", "arr[str,3]", "[one, , three]");

    /* Long ones: shortened unless full. */
    char got[4096];
    size_t n = 0, n_full = 0;
    int64_t i = sl_file_find_meta(rig.file, "c.many");
    assert_int_equal(sl_file_meta_count(rig.file, i), 100);
    assert_int_equal(sl_file_get_meta(rig.file, i, false, NULL, NULL, 0, got, sizeof got, &n),
                     SL_OK);
    assert_non_null(strstr(got, "0, 1, 4, 9"));
    assert_non_null(strstr(got, "..."));
    assert_int_equal(sl_file_get_meta(rig.file, i, true, NULL, NULL, 0, got, sizeof got, &n_full),
                     SL_OK);
    assert_non_null(strstr(got, "9604, 9801]"));
    assert_null(strstr(got, "..."));
    assert_true(n < n_full);
    i = sl_file_find_meta(rig.file, "c.long");
    assert_int_equal(sl_file_get_meta(rig.file, i, false, NULL, NULL, 0, got, sizeof got, &n),
                     SL_OK);
    assert_true(n < 200);
    assert_non_null(strstr(got, "..."));
    assert_int_equal(sl_file_get_meta(rig.file, i, true, NULL, NULL, 0, got, sizeof got, &n),
                     SL_OK);
    assert_string_equal(got, text);

    /* Items one by one. */
    i = sl_file_find_meta(rig.file, "b.str");
    assert_int_equal(sl_file_meta_count(rig.file, i), 3);
    assert_int_equal(sl_file_get_meta_item(rig.file, i, 2, got, sizeof got, &n), SL_OK);
    assert_string_equal(got, "three");
    assert_int_equal(sl_file_get_meta_item(rig.file, i, 1, got, sizeof got, &n), SL_OK);
    assert_string_equal(got, "");
    assert_int_equal(sl_file_get_meta_item(rig.file, i, 3, got, sizeof got, &n), SL_EINVAL);
    assert_int_equal(sl_file_get_meta_item(rig.file, i, -1, got, sizeof got, &n), SL_EINVAL);
    i = sl_file_find_meta(rig.file, "c.many");
    assert_int_equal(sl_file_get_meta_item(rig.file, i, 99, got, sizeof got, &n), SL_OK);
    assert_string_equal(got, "9801");
    i = sl_file_find_meta(rig.file, "a.u64");
    assert_int_equal(sl_file_meta_count(rig.file, i), 1);
    assert_int_equal(sl_file_get_meta_item(rig.file, i, 0, got, sizeof got, &n), SL_OK);
    assert_string_equal(got, "18446744073709551615");
    assert_int_equal(sl_file_get_meta_item(rig.file, i, 1, got, sizeof got, &n), SL_EINVAL);

    /* Out of range. */
    sl_file_info info;
    sl_file_get_info(rig.file, &info);
    assert_int_equal(info.n_meta, g->n_meta);
    assert_int_equal(sl_file_find_meta(rig.file, "no.such.key"), -1);
    assert_int_equal(sl_file_find_meta(rig.file, NULL), -1);
    assert_int_equal(sl_file_meta_count(rig.file, info.n_meta), -1);
    assert_int_equal(sl_file_meta_count(rig.file, -1), -1);
    assert_int_equal(
        sl_file_get_meta(rig.file, info.n_meta, false, NULL, NULL, 0, got, sizeof got, &n),
        SL_EINVAL);
    assert_int_equal(sl_file_get_meta(rig.file, -1, false, NULL, NULL, 0, got, sizeof got, &n),
                     SL_EINVAL);
    assert_int_equal(sl_file_get_meta(NULL, 0, false, NULL, NULL, 0, got, sizeof got, &n),
                     SL_EINVAL);
    file_rig_close(&rig);
}

static void test_text_is_one_line(void **state) {
    (void)state;
    file_rig rig = {.gguf = help_gguf_new()};
    help_gguf_str(rig.gguf, "general.architecture", "llama");
    help_gguf_str(rig.gguf, "a.lines", "one\ntwo\r\nthree\tfour");
    file_rig_open(&rig);
    char got[256];
    size_t n = 0;
    const int64_t i = sl_file_find_meta(rig.file, "a.lines");
    assert_int_equal(sl_file_get_meta(rig.file, i, false, NULL, NULL, 0, got, sizeof got, &n),
                     SL_OK);
    assert_null(strchr(got, '\n'));
    assert_null(strchr(got, '\r'));
    assert_non_null(strstr(got, "three"));
    file_rig_close(&rig);
}

static void test_tensors(void **state) {
    (void)state;
    file_rig rig = {.gguf = help_gguf_new()};
    help_gguf *g = rig.gguf;
    help_gguf_str(g, "general.architecture", "llama");
    help_gguf_tensor(g, "a", SL_QTYPE_F32, 1, (int64_t[]){5}, NULL, 20);
    help_gguf_tensor(g, "b", SL_QTYPE_Q4_K, 2, (int64_t[]){3, 512}, NULL, 3 * 2 * 144);
    help_gguf_tensor(g, "c", SL_QTYPE_F16, 4, (int64_t[]){2, 3, 4, 5}, NULL, 240);
    file_rig_open(&rig);
    sl_file_info info;
    sl_file_get_info(rig.file, &info);
    assert_string_equal(info.format, "GGUF");
    assert_int_equal(info.version, 3);
    assert_int_equal(info.n_file, 1);
    assert_int_equal(info.n_tensor, 3);
    assert_int_equal(info.n_param, 5 + 1536 + 120);
    assert_int_equal(info.tensor_bytes, 20 + 864 + 240);
    assert_int_equal(info.alignment, 32);
    assert_int_equal(info.size_bytes, rig.source.size_bytes);
    const struct {
        const char *name, *type;
        int32_t n_dim;
        int64_t dim[4];
        uint64_t size_bytes;
    } want[] = {{"a", "F32", 1, {5}, 20},
                {"b", "Q4_K", 2, {3, 512}, 864},
                {"c", "F16", 4, {2, 3, 4, 5}, 240}};
    for (int64_t i = 0; i < 3; i++) {
        sl_tensor_info t;
        assert_int_equal(sl_file_get_tensor(rig.file, i, &t), SL_OK);
        assert_string_equal(t.name, want[i].name);
        assert_string_equal(t.type, want[i].type);
        assert_int_equal(t.n_dim, want[i].n_dim);
        for (int32_t k = 0; k < t.n_dim; k++) {
            assert_int_equal(t.dim[k], want[i].dim[k]);
        }
        assert_int_equal(t.size_bytes, want[i].size_bytes);
        assert_int_equal(t.i_file, 0);
        assert_int_equal(t.offset_bytes % 32, 0);
        assert_true(t.offset_bytes + t.size_bytes <= info.size_bytes);
    }
    sl_tensor_info t;
    assert_int_equal(sl_file_get_tensor(rig.file, 3, &t), SL_EINVAL);
    assert_int_equal(sl_file_get_tensor(rig.file, -1, &t), SL_EINVAL);
    assert_int_equal(sl_file_get_tensor(rig.file, 0, NULL), SL_EINVAL);
    assert_int_equal(sl_file_get_tensor(NULL, 0, &t), SL_EINVAL);
    /* A directory without a model in it: opening it as one says what is missing. */
    sl_error err;
    sl_model *model = NULL;
    const sl_model_options options = {.size = sizeof options, .source = &rig.source};
    const sl_status status = sl_model_open(rig.engine, NULL, &options, &model, &err);
    assert_true(status == SL_EFORMAT || status == SL_ENOTSUP || status == SL_ENOTFOUND);
    assert_null(model);
    assert_true(err.text[0] != '\0');
    file_rig_close(&rig);
}

/* An architecture that is not known is named. */
static void test_unknown_architecture(void **state) {
    (void)state;
    file_rig rig = {.gguf = help_gguf_new()};
    help_gguf_str(rig.gguf, "general.architecture", "hal9000");
    help_gguf_str(rig.gguf, "tokenizer.ggml.model", "gpt2");
    help_gguf_str(rig.gguf, "tokenizer.ggml.pre", "default");
    const char *const tokens[] = {"a", "b", "ab"};
    const char *const merges[] = {"a b"};
    help_gguf_strings(rig.gguf, "tokenizer.ggml.tokens", tokens, 3);
    help_gguf_strings(rig.gguf, "tokenizer.ggml.merges", merges, 1);
    help_gguf_tensor(rig.gguf, "token_embd.weight", SL_QTYPE_F32, 2, (int64_t[]){3, 32}, NULL,
                     3 * 32 * 4);
    file_rig_open(&rig);
    sl_error err;
    sl_model *model = NULL;
    const sl_model_options options = {.size = sizeof options, .source = &rig.source};
    GOLDEN_STATUS(sl_model_open(rig.engine, NULL, &options, &model, &err), SL_ENOTSUP, &err);
    assert_non_null(strstr(err.text, "hal9000"));
    assert_null(model);
    /* Its vocabulary can be used all the same. */
    const sl_model_options vocab = {
        .size = sizeof vocab, .source = &rig.source, .vocab_only = true};
    GOLDEN_STATUS(sl_model_open(rig.engine, NULL, &vocab, &model, &err), SL_OK, &err);
    int32_t ids[8];
    size_t n = 0;
    GOLDEN_STATUS(sl_tokenize(model, "abb", 3, SL_TOKENIZE_NO_BOS, ids, 8, &n, &err), SL_OK, &err);
    assert_int_equal(n, 2);
    assert_int_equal(ids[0], 2);
    assert_int_equal(ids[1], 1);
    sl_session *session = NULL;
    GOLDEN_STATUS(sl_session_open(model, NULL, &session, &err), SL_EINVAL, &err);
    sl_model_close(model);
    file_rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_text_is_one_line),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_unknown_architecture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
