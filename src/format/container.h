/* container.h - what a model file holds: metadata and a directory of tensors, whatever the format.
 *
 * A container format is one file and one row of containers.def. Shapes are turned round here: outermost first.
 * Metadata values stay where the header holds them (mapped, or read once into account io); the accessors decode.
 *
 * Threads: read-only after open, any number. */
#ifndef SL_FORMAT_CONTAINER_H
#define SL_FORMAT_CONTAINER_H

#include "base/arena.h"
#include "base/cursor.h"
#include "base/limits.h"
#include "quant/quant.h"
#include "store/store.h"

typedef enum sl_meta_type {
    SL_META_U8,
    SL_META_I8,
    SL_META_U16,
    SL_META_I16,
    SL_META_U32,
    SL_META_I32,
    SL_META_F32,
    SL_META_BOOL,
    SL_META_STR,
    SL_META_ARR,
    SL_META_U64,
    SL_META_I64,
    SL_META_F64, /* values are GGUF's own */
} sl_meta_type;

typedef struct sl_meta {
    const char *key; /* NUL-terminated, valid UTF-8 */
    sl_meta_type type;
    sl_meta_type item; /* element type of an array, never SL_META_ARR */
    int64_t n_item;    /* elements; 1 for a scalar */
    const uint8_t *
        data; /* little-endian values; strings: u64 length + bytes each. Fully validated at open: lengths,
                            bools are 0 or 1. String bytes may be any. */
    size_t size_bytes;
} sl_meta;

typedef struct sl_tensor {
    const char *name;
    const sl_qtype_info *type;
    int32_t n_dim;           /* 1..SL_MAX_DIM */
    int64_t dim[SL_MAX_DIM]; /* outermost first; unused ones are 1 at the end */
    uint64_t offset_bytes;   /* in its store */
    uint64_t size_bytes;
    int32_t i_store;
} sl_tensor;

typedef struct sl_container_format sl_container_format;

typedef struct sl_container {
    const sl_container_format *format;
    sl_ledger *ledger;
    sl_arena arena; /* names, keys, directory (account io) */
    int32_t version;
    uint64_t alignment;
    int64_t n_meta, n_tensor;
    const sl_meta *meta;     /* in file order; [n_meta] */
    const sl_tensor *tensor; /* in file order; [n_tensor] */
    int32_t n_store;
    sl_store **store; /* one a file of a split model; owned */
    void *own;        /* the format's own; freed by its close */
} sl_container;

struct sl_container_format {
    const char *name; /* "GGUF" */
    /* Does it look like this format? head: the first n_head bytes (up to 64). */
    bool (*probe)(const uint8_t *head, size_t n_head);
    /* c->ledger, arena and store[0] are set; fill the rest. path (may be NULL) finds the other files of a split model,
     * opened with the same kind of store. On failure sl_container_close cleans up what is there. */
    sl_status (*open)(sl_container *c, const char *path, const char *store_kind, sl_error *err);
    void (*close)(sl_container *c); /* may be NULL */
};

#define X(name) extern const sl_container_format sl_format_##name;
#include "format/containers.def"
#undef X

/* source NULL: open path with the kind of store; else source, path for errors only (may be NULL).
 * SL_EFORMAT: no known format ("not a model file: ..." naming what it looks like: HTML, a Git LFS pointer, empty, ...). */
sl_status sl_container_open(sl_ledger *ledger, const char *path, const char *store_kind,
                            const sl_source *source, sl_container **out, sl_error *err);
void sl_container_close(sl_container *c);

/* ---- accessors: linear cost is fine for metadata, tensors are found through a hash ---- */
const sl_meta *sl_meta_find(const sl_container *c, const char *key); /* NULL: absent */
const sl_tensor *sl_tensor_find(const sl_container *c, const char *name);

/* Typed reads of item i (0 for scalars). Integers of any width convert when the value fits; a float never becomes an
 * integer. false: other type, or outside. */
bool sl_meta_i64(const sl_meta *m, int64_t i, int64_t *out);
bool sl_meta_f64(const sl_meta *m, int64_t i, double *out); /* integers convert too */
bool sl_meta_bool(const sl_meta *m, int64_t i, bool *out);
bool sl_meta_str(const sl_meta *m, const char **text, size_t *n); /* a scalar string */
/* Walk the strings of an array (or the one scalar string): sl_cursor at = sl_meta_strings(m); then
 * while (sl_meta_next_str(&at, &text, &n)). An array of another type gives an empty walk. */
sl_cursor sl_meta_strings(const sl_meta *m);
bool sl_meta_next_str(sl_cursor *at, const char **text, size_t *n);
const char *sl_meta_type_name(sl_meta_type type); /* "u32", "str", ... */

#endif
