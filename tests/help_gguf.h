/* help_gguf.h - build a GGUF file in memory, right or wrong, for tests.
 *
 *     help_gguf *g = help_gguf_new();
 *     help_gguf_str(g, "general.architecture", "llama");
 *     help_gguf_u32(g, "llama.block_count", 2);
 *     help_gguf_tensor(g, "token_embd.weight", SL_QTYPE_F32, 2, (int64_t[]){4, 8}, data, 4 * 8 * sizeof(float));
 *     size_t n;
 *     const uint8_t *bytes = help_gguf_bytes(g, &n);        (valid until the next change or free)
 *     sl_container_open(&ledger, NULL, NULL, &(sl_source){.data = bytes, .size_bytes = n}, &c, &err);
 *     help_gguf_free(g);
 *
 * Dimensions are outermost first, as everywhere here. The public fields make wrong files; whatever a file can be made of
 * beyond that is a patch of the bytes. Out of memory ends the program. */
#ifndef SL_TEST_HELP_GGUF_H
#define SL_TEST_HELP_GGUF_H

#include <stdbool.h>

#include "format/container.h"

typedef struct help_gguf_tensor_row {
    char *name;
    size_t n_name;
    uint32_t type;
    uint32_t n_dim;
    uint64_t dim[8]; /* outermost first */
    uint8_t *data;
    size_t n_data;
    int64_t offset; /* what the directory says; -1: where the data really is */
} help_gguf_tensor_row;

typedef struct help_gguf {
    /* To be changed by the test, before help_gguf_bytes. */
    uint32_t version;    /* 3 */
    uint32_t alignment;  /* 32; of the data. The key general.alignment is the test's own affair. */
    int64_t n_meta_said; /* -1: the truth */
    int64_t n_tensor_said; /* -1: the truth */
    bool backwards;        /* data in the file from the last tensor to the first */

    help_gguf_tensor_row *tensor;
    int64_t n_tensor, cap_tensor, n_meta;
    size_t header_bytes; /* of the last help_gguf_bytes: where the padding before the data begins */

    uint8_t *meta;
    size_t n_meta_bytes, cap_meta;
    uint8_t *out;
    size_t n_out, cap_out;
} help_gguf;

help_gguf *help_gguf_new(void);
void help_gguf_free(help_gguf *g);

void help_gguf_u8(help_gguf *g, const char *key, uint8_t value);
void help_gguf_i8(help_gguf *g, const char *key, int8_t value);
void help_gguf_u16(help_gguf *g, const char *key, uint16_t value);
void help_gguf_i16(help_gguf *g, const char *key, int16_t value);
void help_gguf_u32(help_gguf *g, const char *key, uint32_t value);
void help_gguf_i32(help_gguf *g, const char *key, int32_t value);
void help_gguf_f32(help_gguf *g, const char *key, float value);
void help_gguf_bool(help_gguf *g, const char *key, bool value);
void help_gguf_str(help_gguf *g, const char *key, const char *value);
void help_gguf_str_n(help_gguf *g, const char *key, const void *value, size_t n);
void help_gguf_u64(help_gguf *g, const char *key, uint64_t value);
void help_gguf_i64(help_gguf *g, const char *key, int64_t value);
void help_gguf_f64(help_gguf *g, const char *key, double value);
/* items: n values as C holds them (a little-endian host), of any type but str and arr. */
void help_gguf_array(help_gguf *g, const char *key, sl_meta_type item, const void *items, size_t n);
void help_gguf_strings(help_gguf *g, const char *key, const char *const *items, size_t n);
/* One entry of anything: the key's bytes, the type number, the value's bytes as they are in the file. */
void help_gguf_raw(help_gguf *g, const void *key, size_t n_key, uint32_t type, const void *value,
                   size_t n_value);

/* data NULL: n_data bytes of a pattern. The row (valid until the next tensor) may be changed to make it wrong. */
help_gguf_tensor_row *help_gguf_tensor(help_gguf *g, const char *name, uint32_t type,
                                       uint32_t n_dim, const int64_t *dim, const void *data,
                                       size_t n_data);

/* The file. With no tensor there is no padding behind the header. */
const uint8_t *help_gguf_bytes(help_gguf *g, size_t *n);
void help_gguf_write(help_gguf *g, const char *path);

/* ---- opening bytes in every way there is ---- */

enum { HELP_BY_MEMORY, HELP_BY_CALLBACK, HELP_BY_MMAP, HELP_BY_DIRECT, HELP_N_WAY };
const char *help_way_name(int way);

/* bytes stay the caller's, until the container is closed. The last two ways go through a file in a temporary folder that
 * is gone when this returns. With no bytes only those two are possible. */
sl_status help_open_bytes(int way, sl_ledger *ledger, const void *bytes, size_t n,
                          sl_container **out, sl_error *err);

/* Read everything that a container promises; NULL, or what is wrong with it. */
const char *help_walk_container(const sl_container *c);

#endif
