/* test_store.c - every kind of store gives the same bytes, at any offset and size, from any number of threads. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "help_paths.h"
#include "store/store.h"

/* Some bounce buffers, some blocks and an odd end. */
#define N_BYTES ((size_t)3 * 1024 * 1024 + 4096 * 3 + 1234)

static uint8_t *truth;
static char folder[256];

static uint32_t step(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void write_file(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static int set_up(void **state) {
    (void)state;
    truth = malloc(N_BYTES);
    assert_non_null(truth);
    uint32_t seed = 1;
    for (size_t i = 0; i < N_BYTES; i++) {
        truth[i] = (uint8_t)step(&seed);
    }
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(folder, sizeof folder, "%s/sluice-store-XXXXXX", tmp != NULL ? tmp : "/tmp");
    assert_non_null(mkdtemp(folder));
    write_file(help_text("%s/data", folder), truth, N_BYTES);
    write_file(help_text("%s/empty", folder), truth, 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    (void)unlink(help_text("%s/data", folder));
    (void)unlink(help_text("%s/empty", folder));
    (void)rmdir(folder);
    free(truth);
    return 0;
}

static int fetch_truth(void *user, uint64_t offset, void *dst, size_t size) {
    (void)user;
    if (offset > N_BYTES || size > N_BYTES - offset) {
        return 1;
    }
    memcpy(dst, truth + offset, size);
    return 0;
}

#define N_KIND 4
static const char *const kinds[N_KIND] = {"mmap", "direct", "memory", "callback"};

static sl_store *open_kind(sl_ledger *ledger, int i_kind) {
    sl_store *store = NULL;
    sl_error err;
    const sl_source memory = {.data = truth, .size_bytes = N_BYTES},
                    callback = {.read = fetch_truth, .size_bytes = N_BYTES};
    const sl_status status =
        i_kind < 2
            ? sl_store_open_path(ledger, kinds[i_kind], help_text("%s/data", folder), &store, &err)
            : sl_store_open_source(ledger, i_kind == 2 ? &memory : &callback, NULL, &store, &err);
    if (status != SL_OK) {
        fail_msg("%s: %s", kinds[i_kind], err.text);
    }
    assert_string_equal(store->kind->name, kinds[i_kind]);
    assert_int_equal(store->size_bytes, N_BYTES);
    return store;
}

static void close_all(sl_ledger *ledger, sl_store *store) {
    sl_store_close(store);
    sl_memory memory;
    sl_ledger_read(ledger, &memory);
    assert_int_equal(memory.total_bytes, 0);
    assert_int_equal(memory.mapped_bytes, 0);
}

static void test_names(void **state) {
    (void)state;
    assert_string_equal(sl_store_names(), "mmap direct");
    for (int i = 0; i < N_KIND; i++) {
        const sl_store_kind *kind = sl_store_find(kinds[i]);
        assert_non_null(kind);
        assert_string_equal(kind->name, kinds[i]);
        /* The list holds exactly the kinds that open a path. */
        assert_int_equal(kind->from_path, strstr(sl_store_names(), kinds[i]) != NULL);
    }
    assert_null(sl_store_find("tape"));
    assert_null(sl_store_find(""));
    sl_store_close(NULL);
}

static void test_refusals(void **state) {
    (void)state;
    sl_ledger ledger;
    sl_ledger_init(&ledger, 0);
    sl_store *store = NULL;
    sl_error err;
    const char *data = help_text("%s/data", folder);
    assert_int_equal(sl_store_open_path(&ledger, "tape", data, &store, &err), SL_EINVAL);
    assert_non_null(strstr(err.text, "'tape'"));
    assert_non_null(strstr(err.text, "mmap direct"));
    assert_int_equal(sl_store_open_path(&ledger, "memory", data, &store, &err), SL_EINVAL);
    assert_int_equal(sl_store_open_path(&ledger, NULL, "", &store, &err), SL_EINVAL);
    assert_int_equal(sl_store_open_path(&ledger, NULL, NULL, &store, &err), SL_EINVAL);
    for (int i = 0; i < 2; i++) {
        const char *missing = help_text("%s/missing", folder);
        assert_int_equal(sl_store_open_path(&ledger, kinds[i], missing, &store, &err),
                         SL_ENOTFOUND);
        assert_non_null(strstr(err.text, missing));
        assert_int_equal(sl_store_open_path(&ledger, kinds[i], folder, &store, &err), SL_EINVAL);
        assert_non_null(strstr(err.text, "directory"));
    }
    const sl_source none = {.size_bytes = 3};
    const sl_source both = {.data = truth, .read = fetch_truth, .size_bytes = 3};
    assert_int_equal(sl_store_open_source(&ledger, &none, "x", &store, &err), SL_EINVAL);
    assert_int_equal(sl_store_open_source(&ledger, &both, "x", &store, &err), SL_EINVAL);
    assert_null(store);
    close_all(&ledger, NULL);
}

static void check_read(sl_store *store, uint64_t offset, uint8_t *dst, size_t n) {
    sl_error err;
    dst[n] = 0x5A;
    if (sl_store_read(store, offset, dst, n, &err) != SL_OK) {
        fail_msg("%s: %s", store->kind->name, err.text);
    }
    if (memcmp(dst, truth + offset, n) != 0) {
        fail_msg("%s: %zu bytes at %llu are wrong", store->kind->name, n,
                 (unsigned long long)offset);
    }
    assert_int_equal(dst[n], 0x5A);
}

static void test_reads(void **state) {
    (void)state;
    uint8_t *buffer = NULL;
    assert_int_equal(posix_memalign((void **)&buffer, 4096, N_BYTES + 3 * 4096), 0);
    for (int i_kind = 0; i_kind < N_KIND; i_kind++) {
        sl_ledger ledger;
        sl_ledger_init(&ledger, 0);
        sl_store *store = open_kind(&ledger, i_kind);
        check_read(store, 0, buffer, N_BYTES);
        check_read(store, 0, buffer + 1, N_BYTES);
        check_read(store, N_BYTES - 1, buffer + 7, 1);
        check_read(store, N_BYTES, buffer, 0);
        /* Around the borders of blocks and of the bounce buffer, with dst on the same place in its block or not. */
        static const int64_t around[] = {
            0, 4096, 8192, 1 << 20, (1 << 20) + 4096, (int64_t)N_BYTES};
        for (size_t a = 0; a < sizeof around / sizeof around[0]; a++) {
            for (size_t b = a; b < sizeof around / sizeof around[0]; b++) {
                for (int64_t d = -1; d <= 1; d++) {
                    for (int64_t e = -1; e <= 1; e++) {
                        const int64_t from = around[a] + d, to = around[b] + e;
                        if (from >= 0 && to >= from && to <= (int64_t)N_BYTES) {
                            check_read(store, (uint64_t)from, buffer + from % 4096,
                                       (size_t)(to - from));
                            check_read(store, (uint64_t)from, buffer + 5, (size_t)(to - from));
                        }
                    }
                }
            }
        }
        uint32_t seed = 7;
        for (int k = 0; k < 500; k++) {
            const uint64_t offset = step(&seed) % N_BYTES;
            size_t n = step(&seed) % (k % 10 == 0 ? N_BYTES : 20000);
            if (n > N_BYTES - offset) {
                n = (size_t)(N_BYTES - offset);
            }
            check_read(store, offset, buffer + (k % 3 == 0 ? offset : step(&seed)) % 4096, n);
        }
        close_all(&ledger, store);
    }
    free(buffer);
}

static void test_outside(void **state) {
    (void)state;
    static const struct {
        uint64_t offset;
        size_t n;
    } wrong[] = {{N_BYTES, 1},    {0, N_BYTES + 1}, {N_BYTES + 1, 0},      {UINT64_MAX, 1},
                 {UINT64_MAX, 0}, {1, SIZE_MAX},    {UINT64_MAX - 10, 20}, {N_BYTES - 1, 2}};
    for (int i_kind = 0; i_kind < N_KIND; i_kind++) {
        sl_ledger ledger;
        sl_ledger_init(&ledger, 0);
        sl_store *store = open_kind(&ledger, i_kind);
        uint8_t byte = 0x11;
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
            sl_error err;
            assert_int_equal(sl_store_read(store, wrong[i].offset, &byte, wrong[i].n, &err),
                             SL_EIO);
            assert_non_null(strstr(err.text, help_text("%llu", (unsigned long long)N_BYTES)));
            assert_non_null(
                strstr(err.text, help_text("%llu", (unsigned long long)wrong[i].offset)));
            assert_non_null(strstr(err.text, store->name));
            assert_null(sl_store_map(store, wrong[i].offset, wrong[i].n));
        }
        assert_int_equal(byte, 0x11);
        close_all(&ledger, store);
    }
}

static void test_map(void **state) {
    (void)state;
    for (int i_kind = 0; i_kind < N_KIND; i_kind++) {
        sl_ledger ledger;
        sl_ledger_init(&ledger, 0);
        sl_store *store = open_kind(&ledger, i_kind);
        const uint8_t *p = sl_store_map(store, 777, 5000);
        if (i_kind == 0 || i_kind == 2) {
            assert_non_null(p);
            assert_memory_equal(p, truth + 777, 5000);
            assert_ptr_equal(sl_store_map(store, 0, N_BYTES), p - 777);
        } else {
            assert_null(p);
        }
        sl_memory memory;
        sl_ledger_read(&ledger, &memory);
        assert_int_equal(memory.mapped_bytes, i_kind == 0 ? N_BYTES : 0);
        assert_true(memory.total_bytes < (size_t)1
                                             << 21); /* a bounce buffer at most, never the file */
        close_all(&ledger, store);
    }
}

static void test_empty(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        sl_ledger ledger;
        sl_ledger_init(&ledger, 0);
        sl_store *store = NULL;
        uint8_t byte;
        assert_int_equal(
            sl_store_open_path(&ledger, kinds[i], help_text("%s/empty", folder), &store, NULL),
            SL_OK);
        assert_int_equal(store->size_bytes, 0);
        assert_int_equal(sl_store_read(store, 0, &byte, 0, NULL), SL_OK);
        assert_int_equal(sl_store_read(store, 0, &byte, 1, NULL), SL_EIO);
        assert_null(sl_store_map(store, 0, 0));
        close_all(&ledger, store);
    }
}

/* A file that is cut short while it is open: the direct store says so, and gives what is still there. */
static void test_shrunk(void **state) {
    (void)state;
    const char *path = help_text("%s/shrinks", folder);
    write_file(path, truth, 100000);
    sl_ledger ledger;
    sl_ledger_init(&ledger, 0);
    sl_store *store = NULL;
    assert_int_equal(sl_store_open_path(&ledger, "direct", path, &store, NULL), SL_OK);
    assert_int_equal(truncate(path, 50001), 0);
    uint8_t *buffer = NULL;
    assert_int_equal(posix_memalign((void **)&buffer, 4096, 100000 + 4096), 0);
    for (size_t shift = 0; shift < 2; shift++) { /* straight into dst, and through the buffer */
        sl_error err;
        check_read(store, 0, buffer + shift, 50001);
        check_read(store, 49000, buffer + shift, 1001);
        assert_int_equal(sl_store_read(store, 0, buffer + shift, 100000, &err), SL_EIO);
        assert_non_null(strstr(err.text, "50001"));
        assert_non_null(strstr(err.text, "100000"));
        assert_non_null(strstr(err.text, path));
        assert_int_equal(sl_store_read(store, 50000, buffer + shift, 2, &err), SL_EIO);
        assert_int_equal(sl_store_read(store, 90000, buffer + shift, 1, &err), SL_EIO);
    }
    free(buffer);
    close_all(&ledger, store);
    (void)unlink(path);
}

static int fetch_bad(void *user, uint64_t offset, void *dst, size_t size) {
    (void)offset;
    memset(dst, 1, size / 2); /* half of it, then the failure */
    return *(const int *)user;
}

static void test_callback_fails(void **state) {
    (void)state;
    static const int codes[] = {1, -1, -12345};
    for (size_t i = 0; i < 3; i++) {
        sl_ledger ledger;
        sl_ledger_init(&ledger, 0);
        sl_store *store = NULL;
        sl_error err;
        int code = codes[i];
        const sl_source source = {.read = fetch_bad, .user = &code, .size_bytes = 1000};
        assert_int_equal(sl_store_open_source(&ledger, &source, "archive/m.gguf", &store, &err),
                         SL_OK);
        uint8_t bytes[100];
        assert_int_equal(sl_store_read(store, 33, bytes, 100, &err), SL_EIO);
        assert_non_null(strstr(err.text, "archive/m.gguf"));
        assert_non_null(strstr(err.text, help_text("%d", code)));
        assert_non_null(strstr(err.text, "33"));
        code = 0;
        assert_int_equal(sl_store_read(store, 33, bytes, 100, &err), SL_OK);
        close_all(&ledger, store);
    }
}

/* Every allocation of open fails once; what was taken is given back. */
static void test_no_memory(void **state) {
    (void)state;
    for (int i_kind = 0; i_kind < N_KIND; i_kind++) {
        int64_t n = 0;
        for (;; n++) {
            sl_ledger ledger;
            sl_ledger_init(&ledger, 0);
            atomic_store(&ledger.fail_after, n);
            sl_store *store = NULL;
            sl_error err;
            const sl_source memory = {.data = truth, .size_bytes = N_BYTES},
                            callback = {.read = fetch_truth, .size_bytes = N_BYTES};
            const sl_status status =
                i_kind < 2 ? sl_store_open_path(&ledger, kinds[i_kind],
                                                help_text("%s/data", folder), &store, &err)
                           : sl_store_open_source(&ledger, i_kind == 2 ? &memory : &callback, NULL,
                                                  &store, &err);
            if (status == SL_OK) {
                uint8_t bytes[10];
                assert_int_equal(sl_store_read(store, 5, bytes, 10, NULL), SL_OK);
                close_all(&ledger, store);
                break;
            }
            assert_int_equal(status, SL_ENOMEM);
            assert_null(store);
            close_all(&ledger, NULL);
        }
        assert_true(n >= 1 && n < 10);
    }
}

typedef struct reader {
    sl_store *store;
    uint32_t seed;
    atomic_int *n_wrong;
} reader;

static void *read_many(void *arg) {
    reader *r = arg;
    uint8_t *buffer = malloc(300000 + 4096);
    if (buffer == NULL) {
        atomic_fetch_add(r->n_wrong, 1);
        return NULL;
    }
    for (int k = 0; k < 300; k++) {
        const uint64_t offset = step(&r->seed) % N_BYTES;
        size_t n = step(&r->seed) % 300000;
        if (n > N_BYTES - offset) {
            n = (size_t)(N_BYTES - offset);
        }
        uint8_t *dst = buffer + step(&r->seed) % 4096;
        if (sl_store_read(r->store, offset, dst, n, NULL) != SL_OK ||
            memcmp(dst, truth + offset, n) != 0) {
            atomic_fetch_add(r->n_wrong, 1);
        }
    }
    free(buffer);
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    for (int i_kind = 0; i_kind < N_KIND; i_kind++) {
        sl_ledger ledger;
        sl_ledger_init(&ledger, 0);
        sl_store *store = open_kind(&ledger, i_kind);
        sl_memory before, after;
        sl_ledger_read(&ledger, &before);
        atomic_int n_wrong = 0;
        reader readers[4];
        pthread_t threads[4];
        for (uint32_t i = 0; i < 4; i++) {
            readers[i] = (reader){store, i * 77 + 1, &n_wrong};
            assert_int_equal(pthread_create(&threads[i], NULL, read_many, &readers[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        }
        assert_int_equal(atomic_load(&n_wrong), 0);
        sl_ledger_read(&ledger, &after);
        assert_int_equal(before.n_alloc, after.n_alloc); /* reading allocates nothing */
        close_all(&ledger, store);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),     cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_reads),     cmocka_unit_test(test_outside),
        cmocka_unit_test(test_map),       cmocka_unit_test(test_empty),
        cmocka_unit_test(test_shrunk),    cmocka_unit_test(test_callback_fails),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
