/* help_memory.c - see help_memory.h. */
#include "help_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help_golden.h"
#include "help_paths.h"
#include <cmocka.h>

void memory_path(char *out, size_t cap, const char *name) {
    (void)snprintf(out, cap, "%s", golden_path(help_text("%s.gguf", name)));
}

/* A prompt of ids that every tiny model has. */
void memory_ids(int32_t *ids, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        ids[i] = 10 + (i * 37) % 400;
    }
}

static int memory_read(void *user, uint64_t offset, void *dst, size_t size) {
    memory_file *file = user;
    const size_t i = file->n_read++;
    if (i == file->i_fail || i >= file->i_later || offset > file->size ||
        size > file->size - offset) {
        return -1;
    }
    memcpy(dst, file->data + offset, size);
    return 0;
}

/* How a model's bytes arrive. */
const char *const memory_stores[] = {"mmap", "direct", "memory", "callback", NULL};

void memory_store_options(const char *store, memory_file *file, sl_source *source,
                          sl_model_options *out) {
    memset(out, 0, sizeof *out);
    memset(source, 0, sizeof *source);
    out->size = sizeof *out;
    source->size_bytes = file->size;
    if (strcmp(store, "memory") == 0) {
        source->data = file->data;
        out->source = source;
    } else if (strcmp(store, "callback") == 0) {
        source->read = memory_read;
        source->user = file;
        out->source = source;
    } else {
        out->store = store;
    }
}

void memory_load(memory_file *file, const char *path) {
    memset(file, 0, sizeof *file);
    file->i_fail = SIZE_MAX;
    file->i_later = SIZE_MAX;
    file->data = help_read(path, &file->size);
    assert_non_null(file->data);
}

size_t memory_max(size_t a, size_t b) { return a > b ? a : b; }

/* The books hold what they held, account by account. */
void memory_same(const sl_engine *engine, const sl_memory *before, const char *what) {
    sl_memory now;
    sl_engine_memory(engine, &now);
    for (int32_t i = 0; i < SL_ACCOUNT_COUNT; i++) {
        if (now.now_bytes[i] != before->now_bytes[i]) {
            fail_msg("%s: account %s holds %zu bytes, %zu before", what,
                     sl_account_name((sl_account)i), now.now_bytes[i], before->now_bytes[i]);
        }
    }
    assert_int_equal(now.total_bytes, before->total_bytes);
    assert_int_equal(now.mapped_bytes, before->mapped_bytes);
}
