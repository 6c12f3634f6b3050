/* help_memory.h - what the tests of the books of memory share. */
#ifndef SL_TEST_HELP_MEMORY_H
#define SL_TEST_HELP_MEMORY_H

#include "sluice.h"

/* The path of a tree model, "qwen2-q8_0". */
void memory_path(char *out, size_t cap, const char *name);
/* A prompt of ids that every tiny model has. */
void memory_ids(int32_t *ids, int32_t n);
size_t memory_max(size_t a, size_t b);

/* A file in memory that a callback hands out, and that can be made to fail. */
typedef struct memory_file {
    char *data;
    size_t size;
    size_t n_read;  /* reads so far */
    size_t i_fail;  /* this read fails; SIZE_MAX: none */
    size_t i_later; /* all from this one on fail */
} memory_file;

/* Read a file whole; free(file->data) when done. */
void memory_load(memory_file *file, const char *path);

/* How a model's bytes arrive: "mmap", "direct", "memory", "callback"; ends with NULL. */
extern const char *const memory_stores[];
/* Options for one of them; `source` is where out->source will point. */
void memory_store_options(const char *store, memory_file *file, sl_source *source,
                          sl_model_options *out);

/* The running test fails unless the books hold what they held, account by account. */
void memory_same(const sl_engine *engine, const sl_memory *before, const char *what);

#endif
