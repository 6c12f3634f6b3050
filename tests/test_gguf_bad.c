/* test_gguf_bad.c - hostile and broken GGUF files: a clean error or a sound container, never a crash, never much memory.
 *
 * The reported faults of tests/data/gguf/malformed, what non-models look like, a valid file cut at every byte and changed
 * at every byte, every allocation and every read failing once, and a file that changes while it is read. */
#define _GNU_SOURCE
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "help_gguf.h"
#include "help_paths.h"

#define GROWTH_BYTES ((size_t)16 << 20)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

/* Open, walk, close; the books are empty afterwards and were never far from it. */
static sl_status try_bytes(int way, const void *bytes, size_t n, sl_error *err) {
    sl_ledger ledger;
    sl_ledger_init(&ledger, 0);
    sl_container *c = NULL;
    memset(err, 0, sizeof *err);
    const sl_status status = help_open_bytes(way, &ledger, bytes, n, &c, err);
    if (status == SL_OK) {
        const char *wrong = help_walk_container(c);
        if (wrong != NULL) {
            fail_msg("%s: accepted, but %s", help_way_name(way), wrong);
        }
    } else {
        assert_null(c);
        assert_int_equal(err->code, status);
        assert_true(strlen(err->text) > 10);
    }
    sl_container_close(c);
    sl_memory memory;
    sl_ledger_read(&ledger, &memory);
    assert_int_equal(memory.total_bytes, 0);
    assert_int_equal(memory.mapped_bytes, 0);
    assert_true(memory.total_peak_bytes < GROWTH_BYTES);
    return status;
}

/* A small file with some of everything. */
static help_gguf *small_file(void) {
    help_gguf *g = help_gguf_new();
    help_gguf_str(g, "general.architecture", "llama");
    help_gguf_u32(g, "general.alignment", 32);
    help_gguf_f32(g, "f", 1.5f);
    help_gguf_bool(g, "b", true);
    help_gguf_u64(g, "u", 77);
    help_gguf_strings(g, "s", (const char *const[]){"a", "bc"}, 2);
    help_gguf_array(g, "bs", SL_META_BOOL, (uint8_t[]){0, 1}, 2);
    help_gguf_array(g, "is", SL_META_I16, (int16_t[]){3, -4, 5}, 3);
    help_gguf_tensor(g, "t0", 0, 2, (int64_t[]){2, 4}, NULL, 32);
    help_gguf_tensor(g, "t1", 8, 1, (int64_t[]){32}, NULL, 34);
    return g;
}

/* ---- the reported faults ------------------------------------------------------------------------------------------- */

static sl_status status_named(const char *name) {
#define X(id, value, text)              \
    if (strcmp(name, "SL_" #id) == 0) { \
        return SL_##id;                 \
    }
    SL_STATUS_LIST(X)
#undef X
    fail_msg("no status %s", name);
    return SL_EINTERNAL;
}

static void check_malformed(const char *file, sl_status want, const char *words) {
    size_t n = 0;
    char *bytes = help_read(help_text("%s/gguf/malformed/%s", SL_TEST_DATA, file), &n);
    if (bytes == NULL) {
        fail_msg("%s is not there", file);
    }
    for (int way = 0; way < HELP_N_WAY; way++) {
        sl_error err;
        if (n == 0 && way <= HELP_BY_CALLBACK) {
            continue; /* a source without bytes is refused before anything is read */
        }
        const sl_status got = try_bytes(way, bytes, n, &err);
        if (got != want || (got != SL_OK && strstr(err.text, words) == NULL)) {
            fail_msg("%s by %s: wanted %s with '%s', got %s: %s", file, help_way_name(way),
                     sl_status_name(want), words, sl_status_name(got), err.text);
        }
        /* What is printed is text, whatever the file holds. */
        for (const char *p = err.text; *p != '\0'; p++) {
            assert_true((unsigned char)*p >= 0x20 && (unsigned char)*p != 0x7f);
        }
    }
    free(bytes);
}

static void test_malformed(void **state) {
    (void)state;
    const char *folder = help_text("%s/gguf/malformed", SL_TEST_DATA);
    int n_file = 0, n_case = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        const size_t n_name = strlen(e->d_name);
        n_file += n_name > 5 && strcmp(e->d_name + n_name - 5, ".gguf") == 0;
    }
    (void)closedir(dir);
    char *table = help_read(help_text("%s/EXPECT.txt", folder), NULL);
    assert_non_null(table);
    char *more = table;
    for (char *line = strsep(&more, "\n"); line != NULL; line = strsep(&more, "\n")) {
        if (line[0] == '#' || line[0] == '\0') {
            continue;
        }
        char *file = strsep(&line, "|"), *status = strsep(&line, "|"), *words = line;
        assert_non_null(words);
        words[strcspn(words, "#")] = '\0';
        for (size_t n = strlen(words); n > 0 && words[n - 1] == ' '; n--) {
            words[n - 1] = '\0';
        }
        check_malformed(file, status_named(status), words);
        n_case++;
    }
    free(table);
    assert_int_equal(n_case, n_file);
    assert_true(n_case >= 30);
}

static void test_looks(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *words;
    } cases[] = {
        {"", 0, "empty"},
        {"G", 1, "truncated"},
        {"GGU", 3, "truncated"},
        {"GGUF", 4, "truncated"},
        {"GGUF\3\0\0\0\1\0\0\0", 12, "truncated"},
        {"<!DOCTYPE html><html>", 21, "HTML"},
        {"\xef\xbb\xbf\r\n  <html>", 14, "HTML"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:1", 55, "Git LFS pointer"},
        {"{\"error\": \"not found\"}", 22, "JSON"},
        {"[1, 2]", 6, "JSON"},
        {"PK\3\4abcdef", 10, "zip"},
        {"\x80\2ctorch", 8, "pickle"},
        {"\x10\0\0\0\0\0\0\0{\"a\":{}}       abc", 27, "safetensors"},
        {"lmggabcd", 8, "GGML"},
        {"fmggabcd", 8, "GGMF"},
        {"tjggabcd", 8, "GGJT"},
        {"FUGG\0\0\0\3", 8, "reversed"},
        {"\x1f\x8b\x08\0\0\0", 6, "gzip"},
        {"\0\0\0\0\0\0\0\0\0\0", 10, "zeros"},
        {"\x12\x34\xab\xcd\xef", 5, "12 34 ab cd"},
        {"\x12", 1, "begins with 12,"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int way = 0; way < HELP_N_WAY; way++) {
            sl_error err;
            if (cases[i].n == 0 && way <= HELP_BY_CALLBACK) {
                continue;
            }
            assert_int_equal(try_bytes(way, cases[i].bytes, cases[i].n, &err), SL_EFORMAT);
            if (strstr(err.text, cases[i].words) == NULL) {
                fail_msg("wanted '%s' in: %s", cases[i].words, err.text);
            }
            assert_non_null(strstr(err.text, way <= HELP_BY_CALLBACK ? "bytes: " : "sluice-bytes"));
        }
    }
}

/* ---- faults made with the writer ----------------------------------------------------------------------------------- */

static void refuse(help_gguf *g, sl_status want, const char *words) {
    size_t n;
    const uint8_t *bytes = help_gguf_bytes(g, &n);
    for (int way = 0; way < 2; way++) {
        sl_error err;
        const sl_status got = try_bytes(way, bytes, n, &err);
        if (got != want || (got != SL_OK && strstr(err.text, words) == NULL)) {
            fail_msg("wanted %s with '%s', got %s: %s", sl_status_name(want), words,
                     sl_status_name(got), err.text);
        }
    }
    help_gguf_free(g);
}

static void test_versions(void **state) {
    (void)state;
    static const struct {
        uint32_t version;
        sl_status want;
        const char *words;
    } cases[] = {{0, SL_EFORMAT, "version 0"},
                 {1, SL_ENOTSUP, "version 1"},
                 {2, SL_OK, ""},
                 {3, SL_OK, ""},
                 {4, SL_ENOTSUP, "version 4"},
                 {0x03000000, SL_ENOTSUP, "big-endian"},
                 {0x02000000, SL_ENOTSUP, "big-endian"},
                 {UINT32_MAX, SL_ENOTSUP, "version 4294967295"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        help_gguf *g = small_file();
        g->version = cases[i].version;
        refuse(g, cases[i].want, cases[i].words);
    }
}

static void test_wrong_meta(void **state) {
    (void)state;
    help_gguf *g = small_file();
    g->n_meta_said = g->n_meta - 1; /* the rest is then read as tensors */
    refuse(g, SL_EFORMAT, "tensor");
    g = small_file();
    g->n_meta_said = 70000; /* more than the bytes hold */
    refuse(g, SL_EFORMAT, "70000");
    g = help_gguf_new();
    static const uint8_t zeros[70000 * 13];
    help_gguf_raw(g, "k", 1, SL_META_U8, zeros, sizeof zeros);
    g->n_meta_said = 65537;
    refuse(g, SL_ELIMIT, "65537");

    /* An array of arrays: valid, but not supported. */
    g = help_gguf_new();
    help_gguf_raw(g, "nested", 6, SL_META_ARR, "\x09\0\0\0\1\0\0\0\0\0\0\0", 12);
    refuse(g, SL_ENOTSUP, "'nested' is an array of arrays");

    /* Keys: NUL inside, cut UTF-8, the longest, one more. */
    g = help_gguf_new();
    help_gguf_raw(g, "a\0b", 3, SL_META_U8, "\1", 1);
    refuse(g, SL_EFORMAT, "without NUL");
    g = help_gguf_new();
    help_gguf_raw(g, "a\xc3", 2, SL_META_U8, "\1", 1);
    refuse(g, SL_EFORMAT, "UTF-8");
    char *key = malloc(SL_MAX_META_KEY + 2);
    assert_non_null(key);
    memset(key, 'k', SL_MAX_META_KEY + 1);
    g = help_gguf_new();
    help_gguf_raw(g, key, SL_MAX_META_KEY, SL_META_U8, "\1", 1);
    refuse(g, SL_OK, "");
    g = help_gguf_new();
    help_gguf_raw(g, key, SL_MAX_META_KEY + 1, SL_META_U8, "\1", 1);
    refuse(g, SL_EFORMAT, "at most 65535");
    /* A long key in an error is shortened, and the error still says what is wrong. */
    g = help_gguf_new();
    help_gguf_raw(g, key, SL_MAX_META_KEY, SL_META_BOOL, "\2", 1);
    refuse(g, SL_EFORMAT, "must be 0 or 1");
    g = help_gguf_new();
    help_gguf_raw(g, key, SL_MAX_META_KEY, SL_META_BOOL, "\1", 1);
    help_gguf_raw(g, key, SL_MAX_META_KEY, SL_META_BOOL, "\1", 1);
    refuse(g, SL_EFORMAT, "twice");
    free(key);
    g = help_gguf_new();
    help_gguf_u8(g, "", 1);
    help_gguf_u8(g, "", 1);
    refuse(g, SL_EFORMAT, "twice");

    /* The alignment: every type but u32, and values that are no power of two. */
    for (uint32_t type = 0; type <= SL_META_F64; type++) {
        g = help_gguf_new();
        static const uint8_t value[32] = {32};
        static const uint8_t size[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
        if (type == SL_META_BOOL) {
            help_gguf_raw(g, "general.alignment", 17, type, "\1", 1);
        } else if (type == SL_META_STR) {
            help_gguf_str(g, "general.alignment", "32");
        } else if (type == SL_META_ARR) {
            help_gguf_array(g, "general.alignment", SL_META_U32, value, 1);
        } else {
            help_gguf_raw(g, "general.alignment", 17, type, value, size[type]);
        }
        refuse(g, type == SL_META_U32 ? SL_OK : SL_EFORMAT, "general.alignment has type");
    }
    static const uint32_t wrong[] = {0, 3, 33, UINT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        g = help_gguf_new();
        help_gguf_u32(g, "general.alignment", wrong[i]);
        refuse(g, SL_EFORMAT, "power of two");
    }
}

static void test_wrong_tensors(void **state) {
    (void)state;
    /* Two tensors that share one byte, or touch. */
    for (int64_t offset = 0; offset <= 64; offset++) {
        help_gguf *g = help_gguf_new();
        g->alignment = 1;
        help_gguf_u32(g, "general.alignment", 1);
        help_gguf_tensor(g, "first", 24, 1, (int64_t[]){32}, NULL, 32);
        help_gguf_tensor(g, "second", 24, 1, (int64_t[]){32}, NULL, 32);
        help_gguf_tensor(g, "third", 24, 1, (int64_t[]){32}, NULL, 32);
        g->tensor[0].offset = 64;
        g->tensor[1].offset = offset;
        g->tensor[2].offset = 0;
        refuse(g, offset == 32 ? SL_OK : SL_EFORMAT,
               offset == 0    ? "'second' and 'third' overlap"
               : offset < 32  ? "'third' and 'second' overlap"
               : offset == 64 ? "'first' and 'second' overlap"
                              : "'second' and 'first' overlap");
    }
    for (uint32_t n_dim = 0; n_dim <= 8; n_dim++) {
        help_gguf *g = help_gguf_new();
        help_gguf_tensor(g, "t", 0, n_dim, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 1}, NULL, 4);
        refuse(g, n_dim <= 4 ? SL_OK : SL_EFORMAT, "dimensions");
    }
    static const int64_t wrong_dims[][2] = {{0, 4},
                                            {4, 0},
                                            {-1, 4},
                                            {4, -1},
                                            {INT64_MIN, 1},
                                            {INT64_MAX, 2},
                                            {(int64_t)1 << 32, (int64_t)1 << 32},
                                            {(int64_t)1 << 31, (int64_t)1 << 32},
                                            {(int64_t)1 << 62, 1},
                                            {1, (int64_t)1 << 62}};
    for (size_t i = 0; i < sizeof wrong_dims / sizeof wrong_dims[0]; i++) {
        help_gguf *g = help_gguf_new();
        help_gguf_tensor(g, "t.wide", 0, 2, wrong_dims[i], NULL, 16);
        refuse(g, SL_EFORMAT, "'t.wide'");
    }
    static const int64_t far[] = {32, 1 << 20, ((int64_t)1 << 62), INT64_MAX - 31};
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        help_gguf *g = help_gguf_new();
        help_gguf_tensor(g, "t.far", 0, 1, (int64_t[]){8}, NULL, 32)->offset = far[i];
        refuse(g, SL_EFORMAT, "'t.far'");
    }
    /* An offset that wraps 64 bits: -32, written over the last eight bytes of the header. */
    help_gguf *g = help_gguf_new();
    help_gguf_tensor(g, "t.wrap", 0, 1, (int64_t[]){8}, NULL, 32);
    size_t n;
    (void)help_gguf_bytes(g, &n);
    memset(g->out + g->header_bytes - 8, 0xFF, 8);
    g->out[g->header_bytes - 8] = 0xE0;
    sl_error err;
    assert_int_equal(try_bytes(HELP_BY_MEMORY, g->out, n, &err), SL_EFORMAT);
    assert_non_null(strstr(err.text, "'t.wrap'"));
    help_gguf_free(g);

    static const struct {
        const char *name;
        size_t n;
    } names[] = {{"", 0}, {"a\0b", 3}, {"\xff", 1}, {"\xc3", 1}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        g = help_gguf_new();
        help_gguf_tensor_row *t = help_gguf_tensor(g, "abcd", 0, 1, (int64_t[]){1}, NULL, 4);
        memcpy(t->name, names[i].name, names[i].n);
        t->n_name = names[i].n;
        refuse(g, SL_EFORMAT, "tensor 0");
    }
    g = small_file();
    g->n_tensor_said = 1 << 20;
    refuse(g, SL_EFORMAT, "1048576 tensors");
    g = small_file();
    g->n_tensor_said = 3; /* one more than there are */
    refuse(g, SL_EFORMAT, "");
    /* Numbers that the type table has no row for. */
    for (uint32_t type = 0; type < 80; type++) {
        if (sl_qtype_find(type) == NULL) {
            g = help_gguf_new();
            help_gguf_tensor(g, "odd", type, 1, (int64_t[]){256}, NULL, 4096);
            refuse(g, SL_ENOTSUP, help_text("'odd' has type %u", type));
        }
    }
    /* Every type of the table, with one row of a block and with one element too few. */
    for (int32_t i = 0; i < 64; i++) {
        const sl_qtype_info *q = sl_qtype_find(i);
        if (q == NULL) {
            continue;
        }
        g = help_gguf_new();
        help_gguf_tensor(g, "t", (uint32_t)i, 2, (int64_t[]){3, q->n_elem}, NULL,
                         3 * (size_t)q->n_byte);
        refuse(g, SL_OK, "");
        if (q->n_elem > 1) {
            g = help_gguf_new();
            help_gguf_tensor(g, "t", (uint32_t)i, 2, (int64_t[]){q->n_elem, q->n_elem - 1}, NULL,
                             (size_t)q->n_byte * (size_t)q->n_elem);
            refuse(g, SL_EFORMAT, q->name);
        }
    }
}

/* ---- every byte ---------------------------------------------------------------------------------------------------- */

static void test_truncated(void **state) {
    (void)state;
    help_gguf *g = small_file();
    size_t n;
    const uint8_t *bytes = help_gguf_bytes(g, &n);
    const size_t start = (g->header_bytes + 31) / 32 * 32;
    for (size_t cut = 0; cut <= n; cut++) {
        for (int way = 0; way < HELP_N_WAY; way++) {
            if ((cut == 0 && way <= HELP_BY_CALLBACK) ||
                (way == HELP_BY_DIRECT && cut % 8 != 0 && cut > 64)) {
                continue;
            }
            uint8_t *exact = malloc(cut + 1); /* so that a sanitizer sees a step too far */
            assert_non_null(exact);
            memcpy(exact, bytes, cut);
            exact = realloc(exact, cut != 0 ? cut : 1);
            assert_non_null(exact);
            sl_error err;
            const sl_status status = try_bytes(way, exact, cut, &err);
            if (cut < start + 32 + 34) {
                if (status != SL_EFORMAT) {
                    fail_msg("cut at %zu by %s: %s: %s", cut, help_way_name(way),
                             sl_status_name(status), err.text);
                }
            } else {
                assert_int_equal(status, SL_OK); /* only padding is gone */
            }
            if (cut >= g->header_bytes && cut < start + 32 + 34) {
                assert_non_null(strstr(err.text, cut < start + 32 ? "'t0'" : "'t1'"));
            }
            free(exact);
        }
    }
    help_gguf_free(g);
}

static void test_flipped(void **state) {
    (void)state;
    help_gguf *g = small_file();
    size_t n;
    const uint8_t *bytes = help_gguf_bytes(g, &n);
    uint8_t *copy = malloc(n);
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    int n_bad = 0, n_good = 0;
    for (size_t i = 0; i < g->header_bytes; i++) {
        const uint8_t was = copy[i];
        const uint8_t values[] = {0,
                                  1,
                                  0x7f,
                                  0x80,
                                  0xff,
                                  (uint8_t)(was + 1),
                                  (uint8_t)(was - 1),
                                  (uint8_t)(was ^ 0x10),
                                  (uint8_t)(was ^ 0x40)};
        for (size_t k = 0; k < sizeof values; k++) {
            sl_error a, b;
            copy[i] = values[k];
            const sl_status by_memory = try_bytes(HELP_BY_MEMORY, copy, n, &a);
            const sl_status by_callback = try_bytes(HELP_BY_CALLBACK, copy, n, &b);
            assert_int_equal(by_memory, by_callback);
            assert_string_equal(a.text, b.text); /* the same fault from every store */
            n_bad += by_memory != SL_OK;
            n_good += by_memory == SL_OK;
        }
        copy[i] = was;
    }
    /* Changing text or a value leaves a valid file, changing a count or a length does not. */
    assert_true(n_bad > 500 && n_good > 500);
    free(copy);
    help_gguf_free(g);
}

/* ---- everything fails once ----------------------------------------------------------------------------------------- */

static void test_no_memory(void **state) {
    (void)state;
    help_gguf *g = small_file();
    g->backwards = true; /* so that the sorting allocates too */
    size_t n;
    const uint8_t *bytes = help_gguf_bytes(g, &n);
    for (int way = 0; way < HELP_N_WAY; way++) {
        for (int limited = 0; limited < 2; limited++) { /* the system fails, or the budget */
            int64_t k = 0;
            for (;; k++) {
                sl_ledger ledger;
                sl_ledger_init(&ledger, limited ? (size_t)k * 500 + 1 : 0);
                atomic_store(&ledger.fail_after, limited ? -1 : k);
                sl_container *c = NULL;
                sl_error err;
                const sl_status status = help_open_bytes(way, &ledger, bytes, n, &c, &err);
                assert_true((status == SL_OK) == (c != NULL));
                sl_container_close(c);
                sl_memory memory;
                sl_ledger_read(&ledger, &memory);
                assert_int_equal(memory.total_bytes, 0);
                assert_int_equal(memory.mapped_bytes, 0);
                if (status == SL_OK) {
                    break;
                }
                assert_int_equal(status, limited ? SL_EBUDGET : SL_ENOMEM);
            }
            assert_true(k >= 3 && k < 5000);
        }
    }
    help_gguf_free(g);
}

/* A source whose read number i_fail fails or, when `lies`, gives changed bytes from then on. */
typedef struct flaky {
    const uint8_t *data;
    size_t size;
    int n_read, i_fail;
    bool half; /* fills half of dst before it fails */
    int64_t i_lie;
    uint8_t lie;
} flaky;

static int fetch_flaky(void *user, uint64_t offset, void *dst, size_t size) {
    flaky *f = user;
    if (offset > f->size || size > f->size - offset) {
        return 99;
    }
    if (f->i_lie < 0 && f->n_read++ == f->i_fail) {
        memcpy(dst, f->data + offset, f->half ? size / 2 : 0);
        return 5;
    }
    memcpy(dst, f->data + offset, size);
    if (f->i_lie >= 0 && f->n_read++ >= f->i_fail && (uint64_t)f->i_lie >= offset &&
        (uint64_t)f->i_lie < offset + size) {
        ((uint8_t *)dst)[(uint64_t)f->i_lie - offset] = f->lie;
    }
    return 0;
}

static sl_status open_flaky(flaky *f, sl_error *err) {
    sl_ledger ledger;
    sl_ledger_init(&ledger, 0);
    sl_container *c = NULL;
    const sl_source source = {.read = fetch_flaky, .user = f, .size_bytes = f->size};
    const sl_status status = sl_container_open(&ledger, "flaky", NULL, &source, &c, err);
    if (status == SL_OK && f->i_lie >= 0) {
        f->i_fail = INT32_MAX; /* the truth again: the values were kept, tensors are read anew */
        assert_null(help_walk_container(c));
    }
    sl_container_close(c);
    sl_memory memory;
    sl_ledger_read(&ledger, &memory);
    assert_int_equal(memory.total_bytes, 0);
    return status;
}

static void test_no_reads(void **state) {
    (void)state;
    help_gguf *g = small_file();
    for (int i = 0; i < 2000; i++) { /* a header of several windows */
        help_gguf_str(g, help_text("filler.%d", i), "some words to fill the window with, and more");
    }
    size_t n;
    const uint8_t *bytes = help_gguf_bytes(g, &n);
    assert_true(g->header_bytes > 2 * 65536);
    for (int half = 0; half < 2; half++) {
        int i = 0;
        for (;; i++) {
            flaky f = {.data = bytes, .size = n, .i_fail = i, .half = half != 0, .i_lie = -1};
            sl_error err;
            const sl_status status = open_flaky(&f, &err);
            if (status == SL_OK) {
                break;
            }
            assert_int_equal(status, SL_EIO);
            assert_non_null(strstr(err.text, "flaky"));
        }
        assert_true(i >= 4 && i < 20); /* the head, the windows, the header */
    }
    help_gguf_free(g);
}

/* Between the walk that checks and the read that stays, one byte changes: any of the header, to several values. */
static void test_changing(void **state) {
    (void)state;
    help_gguf *g = small_file();
    size_t n;
    const uint8_t *bytes = help_gguf_bytes(g, &n);
    int n_bad = 0, n_good = 0;
    for (size_t i = 0; i < g->header_bytes; i++) {
        const uint8_t values[] = {
            0, 1, 0x20, 0xff, (uint8_t)(bytes[i] + 1), (uint8_t)(bytes[i] - 1)};
        for (size_t k = 0; k < sizeof values; k++) {
            flaky f = {
                .data = bytes, .size = n, .i_fail = 2, .i_lie = (int64_t)i, .lie = values[k]};
            sl_error err;
            const sl_status status = open_flaky(&f, &err);
            n_bad += status != SL_OK;
            n_good += status == SL_OK;
        }
    }
    assert_true(n_bad > 100 && n_good > 100);
    help_gguf_free(g);
}

/* The process itself stays small, not only our books. */
static void test_growth(void **state) {
    (void)state;
#if defined(SANITIZED)
    print_message("(not measured under a sanitizer, whose own memory counts too)\n");
#else
    struct rusage before, after;
    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    test_malformed(state);
    test_flipped(state);
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
    assert_true((size_t)(after.ru_maxrss - before.ru_maxrss) * 1024 < GROWTH_BYTES);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growth), /* first, while the process is small */
        cmocka_unit_test(test_malformed),     cmocka_unit_test(test_looks),
        cmocka_unit_test(test_versions),      cmocka_unit_test(test_wrong_meta),
        cmocka_unit_test(test_wrong_tensors), cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_flipped),       cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_no_reads),      cmocka_unit_test(test_changing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
