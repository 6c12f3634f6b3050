/* test_gguf.c - what valid GGUF files give: every metadata type, tensors, alignment, split models, sizes past 2^32. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "help_gguf.h"
#include "help_paths.h"

static void nothing_left(sl_ledger *ledger) {
    sl_memory memory;
    sl_ledger_read(ledger, &memory);
    assert_int_equal(memory.total_bytes, 0);
    assert_int_equal(memory.mapped_bytes, 0);
}

static sl_container *must_open(int way, sl_ledger *ledger, const void *bytes, size_t n) {
    sl_container *c = NULL;
    sl_error err;
    sl_ledger_init(ledger, 0);
    if (help_open_bytes(way, ledger, bytes, n, &c, &err) != SL_OK) {
        fail_msg("%s: %s", help_way_name(way), err.text);
    }
    const char *wrong = help_walk_container(c);
    if (wrong != NULL) {
        fail_msg("%s: %s", help_way_name(way), wrong);
    }
    return c;
}

static void must_close(sl_ledger *ledger, sl_container *c) {
    sl_container_close(c);
    nothing_left(ledger);
}

/* ---- metadata ------------------------------------------------------------------------------------------------------ */

static help_gguf *all_types(uint32_t version) {
    help_gguf *g = help_gguf_new();
    g->version = version;
    help_gguf_str(g, "general.architecture", "llama");
    help_gguf_u8(g, "u8", 255);
    help_gguf_i8(g, "i8", -128);
    help_gguf_u16(g, "u16", 65535);
    help_gguf_i16(g, "i16", -32768);
    help_gguf_u32(g, "u32", 4294967295u);
    help_gguf_i32(g, "i32", INT32_MIN);
    help_gguf_f32(g, "f32", -1.5f);
    help_gguf_bool(g, "yes", true);
    help_gguf_bool(g, "no", false);
    help_gguf_str_n(g, "bytes", "a\0b\xff", 4);
    help_gguf_str(g, "empty", "");
    help_gguf_u64(g, "u64", UINT64_MAX);
    help_gguf_u64(g, "u63", (uint64_t)INT64_MAX);
    help_gguf_i64(g, "i64", INT64_MIN);
    help_gguf_f64(g, "f64", 1e300);
    help_gguf_strings(g, "strs", (const char *const[]){"one", "", "\xc3\xa9", "four"}, 4);
    help_gguf_array(g, "u8s", SL_META_U8, (uint8_t[]){1, 2, 255}, 3);
    help_gguf_array(g, "i8s", SL_META_I8, (int8_t[]){-1, 2}, 2);
    help_gguf_array(g, "u16s", SL_META_U16, (uint16_t[]){1, 65535}, 2);
    help_gguf_array(g, "i16s", SL_META_I16, (int16_t[]){-2, 3}, 2);
    help_gguf_array(g, "u32s", SL_META_U32, (uint32_t[]){7, 4000000000u}, 2);
    help_gguf_array(g, "i32s", SL_META_I32, (int32_t[]){-7, 8, 9}, 3);
    help_gguf_array(g, "f32s", SL_META_F32, (float[]){0.5f, -0.25f}, 2);
    help_gguf_array(g, "bools", SL_META_BOOL, (uint8_t[]){1, 0, 1}, 3);
    help_gguf_array(g, "u64s", SL_META_U64, (uint64_t[]){1, UINT64_MAX}, 2);
    help_gguf_array(g, "i64s", SL_META_I64, (int64_t[]){-1, INT64_MAX}, 2);
    help_gguf_array(g, "f64s", SL_META_F64, (double[]){2.5, -3.5}, 2);
    help_gguf_array(g, "none", SL_META_F64, NULL, 0);
    help_gguf_strings(g, "no strs", NULL, 0);
    help_gguf_str(g, "", "the empty key");
    help_gguf_str(g, "\xe6\xbc\xa2\xe5\xad\x97", "a key in UTF-8");
    return g;
}

static void expect_int(const sl_container *c, const char *key, int64_t i, int64_t want) {
    int64_t got = 0;
    double real = 0;
    bool truth;
    const sl_meta *m = sl_meta_find(c, key);
    assert_non_null(m);
    assert_true(sl_meta_i64(m, i, &got));
    assert_true(got == want);
    assert_true(sl_meta_f64(m, i, &real) && real == (double)want);
    assert_false(sl_meta_bool(m, i, &truth));
    assert_false(sl_meta_i64(m, m->n_item, &got));
    assert_false(sl_meta_i64(m, -1, &got));
    assert_false(sl_meta_i64(m, INT64_MAX, &got));
}

static void expect_real(const sl_container *c, const char *key, int64_t i, double want) {
    int64_t whole;
    double got = 0;
    const sl_meta *m = sl_meta_find(c, key);
    assert_non_null(m);
    assert_true(sl_meta_f64(m, i, &got) && got == want);
    assert_false(sl_meta_i64(m, i, &whole)); /* a float never becomes an integer */
    assert_false(sl_meta_f64(m, m->n_item, &got));
}

static void expect_bool(const sl_container *c, const char *key, int64_t i, bool want) {
    int64_t whole;
    double real;
    bool got = !want;
    const sl_meta *m = sl_meta_find(c, key);
    assert_non_null(m);
    assert_true(sl_meta_bool(m, i, &got) && got == want);
    assert_false(sl_meta_i64(m, i, &whole));
    assert_false(sl_meta_f64(m, i, &real));
    assert_false(sl_meta_bool(m, m->n_item, &got));
}

static void expect_str(const sl_container *c, const char *key, const char *want, size_t n_want) {
    const char *text = NULL;
    size_t n = 0;
    const sl_meta *m = sl_meta_find(c, key);
    assert_non_null(m);
    assert_int_equal(m->type, SL_META_STR);
    assert_true(sl_meta_str(m, &text, &n));
    assert_int_equal(n, n_want);
    assert_memory_equal(text, want, n);
    int64_t whole;
    assert_false(sl_meta_i64(m, 0, &whole));
}

static void expect_strs(const sl_container *c, const char *key, const char *const *want,
                        int n_want) {
    const sl_meta *m = sl_meta_find(c, key);
    assert_non_null(m);
    assert_int_equal(m->type, SL_META_ARR);
    assert_int_equal(m->item, SL_META_STR);
    assert_int_equal(m->n_item, n_want);
    const char *text;
    size_t n;
    assert_false(sl_meta_str(m, &text, &n)); /* an array is no string */
    sl_cursor at = sl_meta_strings(m);
    for (int i = 0; i < n_want; i++) {
        assert_true(sl_meta_next_str(&at, &text, &n));
        assert_int_equal(n, strlen(want[i]));
        assert_memory_equal(text, want[i], n);
    }
    assert_false(sl_meta_next_str(&at, &text, &n));
}

static void check_all_types(const sl_container *c) {
    expect_str(c, "general.architecture", "llama", 5);
    expect_int(c, "u8", 0, 255);
    expect_int(c, "i8", 0, -128);
    expect_int(c, "u16", 0, 65535);
    expect_int(c, "i16", 0, -32768);
    expect_int(c, "u32", 0, 4294967295);
    expect_int(c, "i32", 0, INT32_MIN);
    expect_int(c, "u63", 0, INT64_MAX);
    expect_int(c, "i64", 0, INT64_MIN);
    expect_real(c, "u64", 0, 18446744073709551615.0); /* no int64 holds it */
    expect_real(c, "f32", 0, -1.5);
    expect_real(c, "f64", 0, 1e300);
    expect_bool(c, "yes", 0, true);
    expect_bool(c, "no", 0, false);
    expect_str(c, "bytes", "a\0b\xff", 4);
    expect_str(c, "empty", "", 0);
    expect_strs(c, "strs", (const char *const[]){"one", "", "\xc3\xa9", "four"}, 4);
    expect_strs(c, "no strs", NULL, 0);
    expect_int(c, "u8s", 2, 255);
    expect_int(c, "i8s", 0, -1);
    expect_int(c, "u16s", 1, 65535);
    expect_int(c, "i16s", 0, -2);
    expect_int(c, "u32s", 1, 4000000000);
    expect_int(c, "i32s", 2, 9);
    expect_int(c, "u64s", 0, 1);
    expect_real(c, "u64s", 1, 18446744073709551615.0);
    expect_int(c, "i64s", 1, INT64_MAX);
    expect_real(c, "f32s", 1, -0.25);
    expect_real(c, "f64s", 0, 2.5);
    expect_bool(c, "bools", 0, true);
    expect_bool(c, "bools", 1, false);
    assert_int_equal(sl_meta_find(c, "none")->n_item, 0);
    expect_str(c, "", "the empty key", 13);
    expect_str(c, "\xe6\xbc\xa2\xe5\xad\x97", "a key in UTF-8", 14);
    assert_null(sl_meta_find(c, "u9"));
}

static void test_all_types(void **state) {
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        help_gguf *g = all_types(version);
        size_t n;
        const uint8_t *bytes = help_gguf_bytes(g, &n);
        for (int way = 0; way < HELP_N_WAY; way++) {
            sl_ledger ledger;
            sl_container *c = must_open(way, &ledger, bytes, n);
            assert_int_equal(c->version, version);
            assert_string_equal(c->format->name, "GGUF");
            assert_int_equal(c->n_meta, g->n_meta);
            assert_int_equal(c->n_tensor, 0);
            assert_int_equal(c->n_store, 1);
            assert_int_equal(c->alignment, 32);
            assert_null(sl_tensor_find(c, "x"));
            check_all_types(c);
            must_close(&ledger, c);
        }
        help_gguf_free(g);
    }
    for (int i = SL_META_U8; i <= SL_META_F64; i++) {
        assert_true(strlen(sl_meta_type_name((sl_meta_type)i)) >= 2);
    }
    assert_string_equal(sl_meta_type_name(SL_META_F64), "f64");
    assert_string_equal(sl_meta_type_name((sl_meta_type)13), "?");
}

/* ---- tensors ------------------------------------------------------------------------------------------------------- */

static void test_tensors(void **state) {
    (void)state;
    static const uint32_t alignments[] = {0, 1, 2, 8, 32, 64, 4096, 65536};
    for (size_t a = 0; a < sizeof alignments / sizeof alignments[0]; a++) {
        for (int backwards = 0; backwards < 2; backwards++) {
            help_gguf *g = help_gguf_new();
            g->backwards = backwards != 0;
            if (alignments[a] != 0) { /* 0: the file does not say */
                g->alignment = alignments[a];
                help_gguf_u32(g, "general.alignment", alignments[a]);
            }
            help_gguf_tensor(g, "f32", 0, 2, (int64_t[]){3, 5}, NULL, 60);
            help_gguf_tensor(g, "scalar", 0, 0, NULL, NULL, 4);
            help_gguf_tensor(g, "f16", 1, 4, (int64_t[]){2, 3, 4, 5}, NULL, 240);
            help_gguf_tensor(g, "q8", 8, 3, (int64_t[]){2, 3, 64}, NULL, 6 * 68);
            help_gguf_tensor(g, "q4k", 12, 1, (int64_t[]){512}, NULL, 288);
            char longest[SL_MAX_TENSOR_NAME + 1];
            memset(longest, 'n', SL_MAX_TENSOR_NAME);
            longest[SL_MAX_TENSOR_NAME] = '\0';
            help_gguf_tensor(g, longest, 24, 1, (int64_t[]){1}, NULL, 1);
            size_t n;
            const uint8_t *bytes = help_gguf_bytes(g, &n);
            for (int way = 0; way < HELP_N_WAY; way++) {
                sl_ledger ledger;
                sl_container *c = must_open(way, &ledger, bytes, n);
                assert_int_equal(c->alignment, g->alignment);
                assert_int_equal(c->n_tensor, 6);
                for (int64_t i = 0; i < 6; i++) {
                    const sl_tensor *t = &c->tensor[i];
                    assert_string_equal(t->name, g->tensor[i].name);
                    assert_int_equal(t->type->id, g->tensor[i].type);
                    assert_int_equal(t->size_bytes, g->tensor[i].n_data);
                    assert_int_equal(t->offset_bytes % g->alignment, 0);
                    uint8_t data[512];
                    assert_int_equal(
                        sl_store_read(c->store[0], t->offset_bytes, data, t->size_bytes, NULL),
                        SL_OK);
                    assert_memory_equal(data, g->tensor[i].data, t->size_bytes);
                }
                /* Outermost first; what is unused is 1. */
                const sl_tensor *q8 = sl_tensor_find(c, "q8"), *one = sl_tensor_find(c, "scalar");
                assert_int_equal(q8->n_dim, 3);
                assert_int_equal(q8->dim[0], 2);
                assert_int_equal(q8->dim[1], 3);
                assert_int_equal(q8->dim[2], 64);
                assert_int_equal(q8->dim[3], 1);
                assert_int_equal(one->n_dim, 1);
                assert_int_equal(one->dim[0], 1);
                assert_null(sl_tensor_find(c, "q"));
                assert_null(sl_tensor_find(c, ""));
                must_close(&ledger, c);
            }
            /* Bytes behind the last tensor are nobody's business. */
            uint8_t *more = malloc(n + 1000);
            assert_non_null(more);
            memcpy(more, bytes, n);
            memset(more + n, 0xEE, 1000);
            sl_ledger ledger;
            must_close(&ledger, must_open(HELP_BY_MEMORY, &ledger, more, n + 1000));
            free(more);
            help_gguf_free(g);
        }
    }
}

/* Thousands of names: each is found, and no other. */
static void test_many(void **state) {
    (void)state;
    enum { N = 20000 };
    help_gguf *g = help_gguf_new();
    g->alignment = 1;
    help_gguf_u32(g, "general.alignment", 1);
    for (int i = 0; i < N; i++) {
        help_gguf_tensor(g, help_text("blk.%d.w", i), 24, 1, (int64_t[]){1}, NULL, 1);
    }
    for (int i = 0; i < 3000; i++) {
        help_gguf_i32(g, help_text("key.%d", i), i);
    }
    size_t n;
    const uint8_t *bytes = help_gguf_bytes(g, &n);
    sl_ledger ledger;
    for (int way = 0; way < 2; way++) {
        sl_container *c = must_open(way, &ledger, bytes, n);
        assert_int_equal(c->n_tensor, N);
        assert_int_equal(c->n_meta, 3001);
        for (int i = 0; i < N; i++) {
            assert_ptr_equal(sl_tensor_find(c, help_text("blk.%d.w", i)), &c->tensor[i]);
        }
        assert_null(sl_tensor_find(c, help_text("blk.%d.w", N)));
        must_close(&ledger, c);
    }
    help_gguf_free(g);
}

/* ---- files of many GiB, served without being there ----------------------------------------------------------------- */

typedef struct virtual_file {
    const uint8_t *head;
    size_t n_head;
} virtual_file;

static int fetch_virtual(void *user, uint64_t offset, void *dst, size_t size) {
    const virtual_file *v = user;
    memset(dst, 0, size);
    if (offset < v->n_head) {
        const size_t left = v->n_head - (size_t)offset;
        memcpy(dst, v->head + offset, size < left ? size : left);
    }
    return 0;
}

static sl_status open_virtual(help_gguf *g, uint64_t size, sl_container **c, sl_error *err) {
    static sl_ledger ledger;
    size_t n;
    sl_ledger_init(&ledger, 0);
    static virtual_file v;
    v.head = help_gguf_bytes(g, &n);
    v.n_head = n;
    const sl_source source = {.read = fetch_virtual, .user = &v, .size_bytes = (size_t)size};
    const sl_status status = sl_container_open(&ledger, "virtual", NULL, &source, c, err);
    sl_memory memory;
    sl_ledger_read(&ledger, &memory);
    assert_true(memory.total_peak_bytes < (size_t)1 << 20);
    if (status != SL_OK) {
        assert_int_equal(memory.total_bytes, 0);
    }
    return status;
}

static void test_large(void **state) {
    (void)state;
    static const struct {
        uint32_t type, n_dim;
        int64_t dim[4];
        uint64_t bytes;
    } cases[] = {
        {24, 1, {4294967295}, 4294967295u},
        {24, 1, {4294967296}, 4294967296u},
        {24, 1, {4294967297}, 4294967297u},
        {24, 2, {65536, 65536}, 4294967296u},
        {24, 2, {65537, 65537}, 4295098369u},
        {24, 4, {256, 256, 256, 256}, 4294967296u},
        {0, 1, {1073741824}, 4294967296u},
        {0, 2, {3, 1073741825}, 12884901900u},
        {0, 2, {4294967296, 1}, 17179869184u},
        {8, 2, {4294967296, 32}, 146028888064u},
        {12, 2, {1, 4294967296}, 2415919104u},
        {24, 3, {2097152, 2097152, 2097151}, 9223367638808264704u},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        help_gguf *g = help_gguf_new();
        help_gguf_tensor(g, "big", cases[i].type, cases[i].n_dim, cases[i].dim, NULL, 0);
        const uint64_t far = (cases[i].bytes + 31) / 32 * 32;
        help_gguf_tensor(g, "after", 0, 1, (int64_t[]){1}, NULL, 0)->offset = (int64_t)far;
        size_t n;
        (void)help_gguf_bytes(g, &n);
        const uint64_t start = (g->header_bytes + 31) / 32 * 32, need = start + far + 4;
        sl_container *c = NULL;
        sl_error err;
        if (open_virtual(g, need, &c, &err) != SL_OK) {
            fail_msg("case %zu: %s", i, err.text);
        }
        assert_true(c->tensor[0].size_bytes == cases[i].bytes);
        assert_true(c->tensor[1].offset_bytes == start + far);
        sl_container_close(c);
        c = NULL;
        /* One byte less and the last tensor does not fit; the file cut inside the first, and that is named. */
        assert_int_equal(open_virtual(g, need - 1, &c, &err), SL_EFORMAT);
        assert_non_null(strstr(err.text, "'after'"));
        assert_int_equal(open_virtual(g, start + cases[i].bytes - 1, &c, &err), SL_EFORMAT);
        assert_non_null(strstr(err.text, "'big'"));
        assert_null(c);
        help_gguf_free(g);
    }
}

/* Metadata that claims gigabytes which the file really has: refused by the header's limit, not allocated. */
static void test_large_meta(void **state) {
    (void)state;
    const struct {
        uint32_t type;
        uint8_t value[12];
        size_t n_value;
    } cases[] = {
        {SL_META_ARR, {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, 12},  /* 2^32 bytes */
        {SL_META_ARR, {7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, 12},  /* 2^32 bools */
        {SL_META_ARR, {10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, 12}, /* 2^32 u64 */
        {SL_META_STR, {0, 0, 0, 0, 1, 0, 0, 0}, 8},               /* a string of 2^32 bytes */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        help_gguf *g = help_gguf_new();
        help_gguf_raw(g, "k", 1, cases[i].type, cases[i].value, cases[i].n_value);
        sl_container *c = NULL;
        sl_error err;
        assert_int_equal(open_virtual(g, (uint64_t)1 << 40, &c, &err), SL_ELIMIT);
        assert_non_null(strstr(err.text, "limit"));
        assert_int_equal(open_virtual(g, (uint64_t)1 << 31, &c, &err), SL_EFORMAT);
        assert_null(c);
        help_gguf_free(g);
    }
}

/* ---- split models -------------------------------------------------------------------------------------------------- */

static char folder[256];

static int make_folder(void **state) {
    (void)state;
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(folder, sizeof folder, "%s/sluice-split-XXXXXX", tmp != NULL ? tmp : "/tmp");
    return mkdtemp(folder) == NULL;
}

static const char *part_path(int i, int n) {
    return help_text("%s/m-%05d-of-%05d.gguf", folder, i + 1, n);
}

static int drop_folder(void **state) {
    (void)state;
    for (int n = 1; n <= 4; n++) {
        for (int i = 0; i < n; i++) {
            (void)unlink(part_path(i, n));
        }
    }
    (void)unlink(help_text("%s/other.gguf", folder));
    return rmdir(folder);
}

/* What the three files say; tests change it. */
typedef struct split_plan {
    int no[3], count[3];
    int total;
    const char *name[3][2];
    uint32_t alignment[3];
} split_plan;

static const split_plan good_plan = {.no = {0, 1, 2},
                                     .count = {3, 3, 3},
                                     .total = 5,
                                     .name = {{"a", "b"}, {"c", NULL}, {"d", "e"}},
                                     .alignment = {64, 32, 128}};

static void write_split(const split_plan *plan) {
    for (int i = 0; i < 3; i++) {
        help_gguf *g = help_gguf_new();
        if (i == 0) {
            help_gguf_str(g, "general.architecture", "llama");
        }
        g->alignment = plan->alignment[i];
        if (g->alignment != 32) {
            help_gguf_u32(g, "general.alignment", g->alignment);
        }
        if (plan->no[i] >= 0) {
            help_gguf_u16(g, "split.no", (uint16_t)plan->no[i]);
        }
        if (plan->count[i] >= 0) {
            help_gguf_u16(g, "split.count", (uint16_t)plan->count[i]);
        }
        if (plan->total >= 0) {
            help_gguf_i32(g, "split.tensors.count", plan->total);
        }
        for (int k = 0; k < 2 && plan->name[i][k] != NULL; k++) {
            help_gguf_tensor(g, plan->name[i][k], 0, 1, (int64_t[]){4}, NULL, 16);
        }
        help_gguf_write(g, part_path(i, 3));
        help_gguf_free(g);
    }
}

static sl_status open_split(const char *path, const char *kind, sl_error *err) {
    sl_ledger ledger;
    sl_ledger_init(&ledger, 0);
    sl_container *c = NULL;
    const sl_status status = sl_container_open(&ledger, path, kind, NULL, &c, err);
    assert_true((status == SL_OK) == (c != NULL));
    sl_container_close(c);
    nothing_left(&ledger);
    return status;
}

static void test_split(void **state) {
    (void)state;
    for (int total = -1; total <= 5; total += 6) { /* with and without split.tensors.count */
        split_plan plan = good_plan;
        plan.total = total;
        write_split(&plan);
        for (int i_kind = 0; i_kind < 2; i_kind++) {
            const char *kind = i_kind == 0 ? "mmap" : "direct";
            sl_ledger ledger;
            sl_ledger_init(&ledger, 0);
            sl_container *c = NULL;
            sl_error err;
            if (sl_container_open(&ledger, part_path(0, 3), kind, NULL, &c, &err) != SL_OK) {
                fail_msg("%s: %s", kind, err.text);
            }
            assert_null(help_walk_container(c));
            assert_int_equal(c->n_store, 3);
            assert_int_equal(c->n_tensor, 5);
            assert_int_equal(c->alignment, 64);
            expect_str(c, "general.architecture", "llama", 5);
            static const char *const names[] = {"a", "b", "c", "d", "e"};
            static const int store_of[] = {0, 0, 1, 2, 2}, first[] = {0, 31, 0, 0, 31};
            for (int i = 0; i < 5; i++) {
                const sl_tensor *t = sl_tensor_find(c, names[i]);
                assert_ptr_equal(t, &c->tensor[i]);
                assert_int_equal(t->i_store, store_of[i]);
                uint8_t byte = 0xFF;
                assert_int_equal(
                    sl_store_read(c->store[t->i_store], t->offset_bytes, &byte, 1, NULL), SL_OK);
                assert_int_equal(byte, first[i]);
            }
            must_close(&ledger, c);
        }
    }
}

static void refuse_split(const split_plan *plan, sl_status want, const char *words, int i_named) {
    write_split(plan);
    for (int i_kind = 0; i_kind < 2; i_kind++) {
        sl_error err;
        const sl_status got = open_split(part_path(0, 3), i_kind == 0 ? "mmap" : "direct", &err);
        if (got != want || strstr(err.text, words) == NULL ||
            strstr(err.text, part_path(i_named, 3)) == NULL) {
            fail_msg("wanted %s with '%s' about %s, got %s: %s", sl_status_name(want), words,
                     part_path(i_named, 3), sl_status_name(got), err.text);
        }
    }
}

static void test_split_wrong(void **state) {
    (void)state;
    sl_error err;
    split_plan plan = good_plan;
    plan.total = 6;
    refuse_split(&plan, SL_EFORMAT, "split.tensors.count is 6", 0);
    plan = good_plan;
    plan.count[1] = 4;
    refuse_split(&plan, SL_EFORMAT, "split.count is 4", 1);
    plan = good_plan;
    plan.count[2] = -1;
    refuse_split(&plan, SL_EFORMAT, "split.count", 2);
    plan = good_plan;
    plan.no[1] = 2;
    refuse_split(&plan, SL_EFORMAT, "split.no is 2", 1);
    plan = good_plan;
    plan.no[2] = -1;
    refuse_split(&plan, SL_EFORMAT, "split.no", 2);
    plan = good_plan;
    plan.no[0] = 7;
    refuse_split(&plan, SL_EFORMAT, "split.no is 7", 0);
    plan = good_plan;
    plan.count[0] = 4; /* the name says 3 */
    refuse_split(&plan, SL_EFORMAT, "-00001-of-00004.gguf", 0);
    plan = good_plan;
    plan.count[0] = 2000;
    refuse_split(&plan, SL_ELIMIT, "2000", 0);
    plan = good_plan;
    plan.name[2][1] = "b"; /* a name in two files */
    refuse_split(&plan, SL_EFORMAT, "same name 'b'", 2);

    /* Another part is opened: the error says which to open. */
    write_split(&good_plan);
    assert_int_equal(open_split(part_path(1, 3), "mmap", &err), SL_EINVAL);
    assert_non_null(strstr(err.text, "-00001-of-00003.gguf"));

    /* A name without the pattern; a part that is no GGUF; one cut short; one that is not there. */
    assert_int_equal(rename(part_path(0, 3), help_text("%s/other.gguf", folder)), 0);
    assert_int_equal(open_split(help_text("%s/other.gguf", folder), "mmap", &err), SL_EFORMAT);
    assert_non_null(strstr(err.text, "-00001-of-00003.gguf"));
    write_split(&good_plan);
    struct stat info;
    assert_int_equal(stat(part_path(2, 3), &info), 0);
    for (off_t n = info.st_size - 1; n >= 0; n--) {
        const bool data_only = n > info.st_size - 128; /* the padding of the last tensor */
        assert_int_equal(truncate(part_path(2, 3), n), 0);
        const sl_status status = open_split(part_path(0, 3), n % 16 != 0 ? "mmap" : "direct", &err);
        if (status != SL_OK) {
            assert_int_equal(status, SL_EFORMAT);
            assert_non_null(strstr(err.text, part_path(2, 3)));
        } else {
            assert_true(data_only);
        }
    }
    FILE *f = fopen(part_path(2, 3), "wb");
    assert_non_null(f);
    fprintf(f, "<!doctype html><html><body>not found</body></html>");
    assert_int_equal(fclose(f), 0);
    assert_int_equal(open_split(part_path(0, 3), "mmap", &err), SL_EFORMAT);
    assert_non_null(strstr(err.text, part_path(2, 3)));
    (void)unlink(part_path(2, 3));
    assert_int_equal(open_split(part_path(0, 3), "mmap", &err), SL_ENOTFOUND);
    assert_non_null(strstr(err.text, part_path(2, 3)));

    /* From a source there is no way to the others. */
    size_t n;
    char *bytes = help_read(part_path(0, 3), &n);
    assert_non_null(bytes);
    sl_ledger ledger;
    sl_ledger_init(&ledger, 0);
    sl_container *c = NULL;
    for (int way = 0; way < 2; way++) {
        assert_int_equal(help_open_bytes(way, &ledger, bytes, n, &c, &err), SL_ENOTSUP);
        assert_non_null(strstr(err.text, "source"));
        nothing_left(&ledger);
    }
    free(bytes);
}

/* "Split" into one file: an ordinary model, whatever its name. */
static void test_split_one(void **state) {
    (void)state;
    help_gguf *g = help_gguf_new();
    help_gguf_u16(g, "split.no", 0);
    help_gguf_u16(g, "split.count", 1);
    help_gguf_i32(g, "split.tensors.count", 1);
    help_gguf_tensor(g, "a", 0, 1, (int64_t[]){4}, NULL, 16);
    size_t n;
    const uint8_t *bytes = help_gguf_bytes(g, &n);
    sl_ledger ledger;
    for (int way = 0; way < HELP_N_WAY; way++) {
        must_close(&ledger, must_open(way, &ledger, bytes, n));
    }
    help_gguf_free(g);
    for (int key = 0; key < 3; key++) { /* the keys as something that is no count */
        static const char *const keys[] = {"split.no", "split.count", "split.tensors.count"};
        for (int kind = 0; kind < 3; kind++) {
            g = help_gguf_new();
            if (kind == 0) {
                help_gguf_str(g, keys[key], "3");
            } else if (kind == 1) {
                help_gguf_i32(g, keys[key], -2);
            } else {
                help_gguf_array(g, keys[key], SL_META_U16, (uint16_t[]){3}, 1);
            }
            bytes = help_gguf_bytes(g, &n);
            sl_container *c = NULL;
            sl_error err;
            sl_ledger_init(&ledger, 0);
            assert_int_equal(help_open_bytes(HELP_BY_MEMORY, &ledger, bytes, n, &c, &err),
                             SL_EFORMAT);
            assert_non_null(strstr(err.text, keys[key]));
            help_gguf_free(g);
        }
    }
}

/* Every allocation of opening a split model fails once. */
static void test_split_no_memory(void **state) {
    (void)state;
    write_split(&good_plan);
    for (int i_kind = 0; i_kind < 2; i_kind++) {
        int64_t n = 0;
        for (;; n++) {
            sl_ledger ledger;
            sl_ledger_init(&ledger, 0);
            atomic_store(&ledger.fail_after, n);
            sl_container *c = NULL;
            sl_error err;
            const sl_status status = sl_container_open(
                &ledger, part_path(0, 3), i_kind == 0 ? "mmap" : "direct", NULL, &c, &err);
            sl_container_close(c);
            nothing_left(&ledger);
            if (status == SL_OK) {
                break;
            }
            assert_int_equal(status, SL_ENOMEM);
        }
        assert_true(n > 5 && n < 100);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_types),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_large_meta),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_split_wrong),
        cmocka_unit_test(test_split_one),
        cmocka_unit_test(test_split_no_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
