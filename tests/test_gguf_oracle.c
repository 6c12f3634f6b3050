/* test_gguf_oracle.c - files that other programs wrote give one directory, whatever the store: every GGUF of the oracle. */
#define _GNU_SOURCE
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_gguf.h"
#include "help_paths.h"

static char oracle[4096]; /* a copy: help_text uses its buffers again */

static void same_directory(const char *path, const sl_container *a, const sl_container *b) {
    assert_int_equal(a->n_meta, b->n_meta);
    assert_int_equal(a->n_tensor, b->n_tensor);
    assert_true(a->alignment == b->alignment);
    for (int64_t i = 0; i < a->n_meta; i++) {
        const sl_meta *m = &a->meta[i], *k = &b->meta[i];
        assert_string_equal(m->key, k->key);
        assert_true(m->type == k->type && m->item == k->item && m->n_item == k->n_item);
        assert_int_equal(m->size_bytes, k->size_bytes);
        assert_memory_equal(m->data, k->data, m->size_bytes);
    }
    for (int64_t i = 0; i < a->n_tensor; i++) {
        const sl_tensor *t = &a->tensor[i], *u = &b->tensor[i];
        assert_string_equal(t->name, u->name);
        assert_ptr_equal(t->type, u->type);
        assert_true(t->n_dim == u->n_dim && memcmp(t->dim, u->dim, sizeof t->dim) == 0);
        assert_true(t->offset_bytes == u->offset_bytes && t->size_bytes == u->size_bytes);
        const uint8_t *p = sl_store_map(a->store[0], t->offset_bytes, (size_t)t->size_bytes);
        uint8_t *read = malloc((size_t)t->size_bytes);
        assert_non_null(p);
        assert_non_null(read);
        assert_int_equal(
            sl_store_read(b->store[0], u->offset_bytes, read, (size_t)u->size_bytes, NULL), SL_OK);
        if (memcmp(p, read, (size_t)t->size_bytes) != 0) {
            fail_msg("%s: tensor '%s' reads differently", path, t->name);
        }
        free(read);
    }
}

static void check_file(const char *path) {
    sl_ledger ledger;
    sl_ledger_init(&ledger, 0);
    sl_container *mapped = NULL, *other = NULL;
    sl_error err;
    if (sl_container_open(&ledger, path, "mmap", NULL, &mapped, &err) != SL_OK) {
        fail_msg("%s", err.text);
    }
    const char *wrong = help_walk_container(mapped);
    if (wrong != NULL) {
        fail_msg("%s: %s", path, wrong);
    }
    assert_non_null(sl_meta_find(mapped, "general.architecture"));
    assert_true(mapped->n_tensor > 0);
    size_t n;
    char *bytes = help_read(path, &n);
    assert_non_null(bytes);
    for (int way = 0; way < 3; way++) {
        const sl_status status =
            way == 2 ? sl_container_open(&ledger, path, "direct", NULL, &other, &err)
                     : help_open_bytes(way, &ledger, bytes, n, &other, &err);
        if (status != SL_OK) {
            fail_msg("%s", err.text);
        }
        same_directory(path, mapped, other);
        sl_container_close(other);
    }
    free(bytes);
    sl_container_close(mapped);
    sl_memory memory;
    sl_ledger_read(&ledger, &memory);
    assert_int_equal(memory.total_bytes, 0);
    assert_int_equal(memory.mapped_bytes, 0);
}

static void test_oracle(void **state) {
    (void)state;
    static const char *const folders[] = {"gguf", "quants"};
    int n_file = 0;
    for (int i = 0; i < 2; i++) {
        DIR *dir = opendir(help_text("%s/%s", oracle, folders[i]));
        assert_non_null(dir);
        for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
            const size_t n = strlen(e->d_name);
            if (n > 5 && strcmp(e->d_name + n - 5, ".gguf") == 0) {
                char path[8192];
                (void)snprintf(path, sizeof path, "%s/%s/%s", oracle, folders[i], e->d_name);
                check_file(path);
                n_file++;
            }
        }
        (void)closedir(dir);
    }
    assert_true(n_file > 30);
}

int main(void) {
    const char *found = help_oracle();
    if (found == NULL) {
        help_skip("the oracle's folder is not there (set SLUICE_ORACLE)");
    }
    (void)snprintf(oracle, sizeof oracle, "%s", found);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
