/* gguf.c - GGUF version 2 and 3.
 *
 *     offset  size  meaning                                          all integers little-endian
 *     0       4     "GGUF"
 *     4       4     version
 *     8       8     number of tensors
 *     16      8     number of metadata entries
 *     24      ...   entries:  u64 n, n bytes of key;  u32 type;  value
 *                   value     u8 i8 u16 i16 u32 i32 f32 bool(1) u64 i64 f64: itself;  str: u64 n, n bytes;
 *                             arr: u32 item type, u64 n, n values
 *     ...     ...   tensors:  u64 n, n bytes of name;  u32 n_dim;  u64 dim[n_dim], innermost first;  u32 type;  u64 offset
 *     ...     ...   padding to a multiple of general.alignment (u32; 32 when absent): here offset 0 of the data
 *
 * Version 3 differs from 2 only in allowing big-endian files, which are refused. A tensor of no dimensions is one number.
 * A split model is several such files: the first has the metadata, each has its own tensors, and split.no, split.count
 * (and in the first split.tensors.count) tie them together.
 *
 * The header is walked twice. The first walk checks everything, allocates nothing and finds the header's length; the
 * second fills the directory. Where the store has addresses both run in place. Where not, the first sees the header
 * through a small window that forgets what it has read, and the second sees a copy of exactly the header's length, which
 * the metadata values keep pointing into.
 *
 * Invariants  memory is bounded by the file's real size, whatever its counts say; time is linear in the header.
 * Threads     open on one; read-only afterwards.
 * Not here    the walk (gguf_walk.c), unique tensor names and overlaps (container.c), values (meta.c). */
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "format/gguf_walk.h"
#include "format/name_index.h"

/* What stays until close. */
typedef struct gguf_own {
    void *header; /* of the first file */
    size_t n_header;
} gguf_own;

/* ---- one file ------------------------------------------------------------------------------------------------------ */

/* The first walk: checks all of the header and leaves the reader at its end. */
static sl_status gguf_scan(sl_gguf_part *part, sl_error *err) {
    SL_TRY(sl_gguf_walk_head(part, err));
    SL_TRY(sl_gguf_walk_meta(part, err));
    return sl_gguf_walk_tensors(part, NULL, 0, NULL, err);
}

/* Put the whole header where the second walk can point into it. */
static sl_status gguf_prepare(sl_gguf_part *part, sl_store *store, sl_error *err) {
    *part = (sl_gguf_part){.r = {.store = store}};
    size_t size;
    if (sl_u64_to_size(store->size_bytes, &size)) {
        part->r.window = (const uint8_t *)sl_store_map(store, 0, size);
        if (part->r.window != NULL) {
            part->r.n_window = size;
            return gguf_scan(part, err);
        }
    }
    void *window;
    SL_TRY(sl_alloc(store->ledger, SL_ACCOUNT_IO, SL_GGUF_WINDOW_BYTES, &window,
                    "a window on a file's header", err));
    part->r.buffer = (uint8_t *)window;
    const sl_status status = gguf_scan(part, err);
    sl_release(store->ledger, SL_ACCOUNT_IO, window, SL_GGUF_WINDOW_BYTES);
    SL_TRY(status);
    const size_t n_header = (size_t)part->r.at; /* bounded by SL_MAX_HEADER_BYTES */
    void *header;
    SL_TRY(sl_alloc(store->ledger, SL_ACCOUNT_IO, n_header, &header, "a file's header", err));
    part->header = header;
    part->n_header = n_header;
    part->r =
        (sl_gguf_reader){.store = store, .window = (const uint8_t *)header, .n_window = n_header};
    return sl_store_read(store, 0, header, n_header, err);
}

static void gguf_part_done(sl_gguf_part *part) {
    if (part->header != NULL) {
        sl_release(part->r.store->ledger, SL_ACCOUNT_IO, part->header, part->n_header);
        part->header = NULL;
    }
}

/* Head and metadata, for good. Keys go into `arena`; twins are refused. */
static sl_status gguf_read_meta(sl_gguf_part *part, sl_arena *arena, sl_error *err) {
    SL_TRY(sl_gguf_walk_head(part, err));
    void *p;
    SL_TRY(sl_arena_take(arena, (size_t)part->n_meta * sizeof(sl_meta), &p,
                         "the list of a model's metadata", err));
    part->meta = (sl_meta *)p;
    part->arena = arena;
    SL_TRY(sl_gguf_walk_meta(part, err));
    sl_arena scratch;
    sl_arena_init(&scratch, arena->ledger, SL_ACCOUNT_IO, 1024);
    sl_name_index index;
    int64_t i_twin = -1;
    sl_status status = sl_name_index_build(&index, &scratch, part->meta, sizeof(sl_meta),
                                           (int64_t)part->n_meta, &i_twin, NULL, err);
    if (status == SL_OK && i_twin >= 0) {
        status = SL_FAIL(err, SL_EFORMAT, "%s: the metadata has the key '%.*s' twice",
                         part->r.store->name, SL_GGUF_SHOWN_KEY, part->meta[i_twin].key);
    }
    sl_arena_done(&scratch);
    return status;
}

/* ---- split models -------------------------------------------------------------------------------------------------- */

/* "-00001-of-00003.gguf" */
#define GGUF_SUFFIX_BYTES 20

static void gguf_put_number(char *digits, int64_t value) {
    for (int k = 4; k >= 0; k--) {
        digits[k] = (char)('0' + value % 10);
        value /= 10;
    }
}

/* Write the name of part i of n over the end of path, which is at least as long as the pattern. */
static void gguf_part_name(char *path, size_t n_path, int64_t i, int64_t n) {
    char *suffix = path + n_path - GGUF_SUFFIX_BYTES;
    memcpy(suffix, "-00000-of-00000.gguf", GGUF_SUFFIX_BYTES);
    gguf_put_number(suffix + 1, i + 1);
    gguf_put_number(suffix + 10, n);
}

/* How a split file's name has to end; false: path does not end so. */
static bool gguf_has_part_name(const char *path, int64_t i, int64_t n) {
    const size_t n_path = strlen(path);
    char suffix[GGUF_SUFFIX_BYTES];
    gguf_part_name(suffix, GGUF_SUFFIX_BYTES, i, n);
    return n_path >= GGUF_SUFFIX_BYTES &&
           memcmp(path + n_path - GGUF_SUFFIX_BYTES, suffix, GGUF_SUFFIX_BYTES) == 0;
}

/* What the first file says of its split. */
static sl_status gguf_check_first(const sl_gguf_part *first, const char *path, sl_error *err) {
    const char *name = first->r.store->name;
    const int64_t n = first->split_count;
    if (n > SL_MAX_SPLIT) {
        return SL_FAIL(err, SL_ELIMIT, "%s: split.count is %lld files; the limit is %d", name,
                       (long long)n, SL_MAX_SPLIT);
    }
    if (first->split_no >= n) {
        return SL_FAIL(err, SL_EFORMAT,
                       "%s: split.no is %lld, but split.count says there are %lld files", name,
                       (long long)first->split_no, (long long)n);
    }
    if (first->split_no > 0) {
        return SL_FAIL(err, SL_EINVAL,
                       "%s: this is file %lld of a model of %lld; open the first, whose name ends "
                       "with -00001-of-%05lld.gguf",
                       name, (long long)first->split_no + 1, (long long)n, (long long)n);
    }
    if (path == NULL) {
        return SL_FAIL(err, SL_ENOTSUP,
                       "%s: a model split into %lld files cannot be opened from a source; open it "
                       "by its path, or merge the files",
                       name, (long long)n);
    }
    if (!gguf_has_part_name(path, 0, n)) {
        return SL_FAIL(err, SL_EFORMAT,
                       "%s: split.count says that this is the first of %lld files, so its name has "
                       "to end with -00001-of-%05lld.gguf for the others to be found",
                       name, (long long)n, (long long)n);
    }
    return SL_OK;
}

/* Open the stores of the other files; c->store holds what was opened, whatever comes of it. */
static sl_status gguf_open_stores(sl_container *c, int32_t n, const char *path,
                                  const char *store_kind, sl_error *err) {
    void *p;
    SL_TRY(sl_arena_take(&c->arena, (size_t)n * sizeof(sl_store *), &p,
                         "the list of a model's files", err));
    sl_store **list = (sl_store **)p;
    list[0] = c->store[0];
    c->store = list;
    const size_t n_path = strlen(path);
    SL_TRY(sl_alloc(c->ledger, SL_ACCOUNT_IO, n_path + 1, &p, "the name of a split file", err));
    char *name = (char *)p;
    memcpy(name, path, n_path + 1);
    sl_status status = SL_OK;
    for (int32_t i = 1; i < n && status == SL_OK; i++) {
        gguf_part_name(name, n_path, i, n);
        status = sl_store_open_path(c->ledger, store_kind, name, &list[i], err);
        if (status == SL_OK) {
            c->n_store = i + 1;
        } else {
            sl_error_prefix(err, "file %d of %d of a split model", (int)(i + 1), (int)n);
        }
    }
    sl_release(c->ledger, SL_ACCOUNT_IO, name, n_path + 1);
    return status;
}

/* The counts of all files, from their heads alone, so that the table of tensors can be made in one piece. */
static sl_status gguf_count_tensors(const sl_container *c, const sl_gguf_part *first, uint64_t *out,
                                    sl_error *err) {
    uint64_t n = first->n_tensor;
    for (int32_t i = 1; i < c->n_store; i++) {
        uint8_t head[SL_GGUF_HEAD_BYTES];
        sl_store *store = c->store[i];
        if (store->size_bytes < sizeof head) {
            return SL_FAIL(err, SL_EFORMAT,
                           "%s: truncated GGUF: the file has %llu bytes; the download may be "
                           "incomplete",
                           store->name, (unsigned long long)store->size_bytes);
        }
        SL_TRY(sl_store_read(store, 0, head, sizeof head, err));
        sl_gguf_part part = {.r = {.store = store, .window = head, .n_window = sizeof head}};
        SL_TRY(sl_gguf_walk_head(&part, err));
        n += part.n_tensor; /* at most SL_MAX_SPLIT * SL_MAX_TENSOR */
        if (n > SL_MAX_TENSOR) {
            return SL_FAIL(err, SL_ELIMIT,
                           "%s: with this file the split model has %llu tensors; the limit is %d",
                           store->name, (unsigned long long)n, SL_MAX_TENSOR);
        }
    }
    if (first->split_tensors >= 0 && n != (uint64_t)first->split_tensors) {
        return SL_FAIL(err, SL_EFORMAT,
                       "%s: split.tensors.count is %lld, but its %d files have %llu tensors",
                       c->store[0]->name, (long long)first->split_tensors, (int)c->n_store,
                       (unsigned long long)n);
    }
    *out = n;
    return SL_OK;
}

static sl_status gguf_check_other(const sl_gguf_part *part, const sl_gguf_part *first, int32_t i,
                                  sl_error *err) {
    if (part->split_count != first->split_count) {
        return SL_FAIL(err, SL_EFORMAT,
                       "%s: split.count is %lld here and %lld in the first file (-1: absent); the "
                       "files belong to different models",
                       part->r.store->name, (long long)part->split_count,
                       (long long)first->split_count);
    }
    if (part->split_no != i) {
        return SL_FAIL(err, SL_EFORMAT,
                       "%s: split.no is %lld (-1: absent), but its name makes it %d",
                       part->r.store->name, (long long)part->split_no, (int)i);
    }
    return SL_OK;
}

/* File i > 0: its tensors into rows, which has room for n_room; its metadata only ties it to the first. */
static sl_status gguf_add_other(sl_container *c, const sl_gguf_part *first, int32_t i,
                                sl_tensor *rows, uint64_t n_room, uint64_t *n_out, sl_error *err) {
    sl_gguf_part part;
    sl_arena scratch;
    sl_arena_init(&scratch, c->ledger, SL_ACCOUNT_IO, 4096);
    sl_status status = gguf_prepare(&part, c->store[i], err);
    if (status == SL_OK) {
        status = gguf_read_meta(&part, &scratch, err);
    }
    if (status == SL_OK) {
        status = gguf_check_other(&part, first, i, err);
    }
    if (status == SL_OK && part.n_tensor > n_room) {
        status = SL_FAIL(err, SL_EIO, "%s: the file changed while its header was being read",
                         part.r.store->name);
    }
    if (status == SL_OK) {
        status = sl_gguf_walk_tensors(&part, rows, i, &c->arena, err);
    }
    if (status == SL_OK) {
        status = sl_gguf_place(&part, rows, err);
        *n_out = part.n_tensor;
    }
    gguf_part_done(&part);
    sl_arena_done(&scratch);
    return status;
}

/* ---- the format ---------------------------------------------------------------------------------------------------- */

static bool gguf_probe(const uint8_t *head, size_t n_head) {
    return n_head >= 4 && memcmp(head, "GGUF", 4) == 0;
}

/* With the first file's header at hand: fill the container. */
static sl_status gguf_fill(sl_container *c, sl_gguf_part *first, const char *path,
                           const char *store_kind, sl_error *err) {
    SL_TRY(gguf_read_meta(first, &c->arena, err));
    uint64_t n_tensor = first->n_tensor;
    if (first->split_count > 1 || first->split_no > 0) {
        SL_TRY(gguf_check_first(first, path, err));
        SL_TRY(gguf_open_stores(c, (int32_t)first->split_count, path, store_kind, err));
        SL_TRY(gguf_count_tensors(c, first, &n_tensor, err));
    }
    void *p;
    SL_TRY(sl_arena_take(&c->arena, (size_t)n_tensor * sizeof(sl_tensor), &p,
                         "the list of a model's tensors", err));
    sl_tensor *rows = (sl_tensor *)p;
    SL_TRY(sl_gguf_walk_tensors(first, rows, 0, &c->arena, err));
    SL_TRY(sl_gguf_place(first, rows, err));
    uint64_t n = first->n_tensor;
    for (int32_t i = 1; i < c->n_store; i++) {
        uint64_t n_more = 0;
        SL_TRY(gguf_add_other(c, first, i, rows + n, n_tensor - n, &n_more, err));
        n += n_more;
    }
    c->version = (int32_t)first->version;
    c->alignment = first->alignment;
    c->meta = first->meta;
    c->n_meta = (int64_t)first->n_meta;
    c->tensor = rows;
    c->n_tensor = (int64_t)n;
    return SL_OK;
}

static sl_status gguf_open(sl_container *c, const char *path, const char *store_kind,
                           sl_error *err) {
    void *p;
    SL_TRY(sl_arena_take(&c->arena, sizeof(gguf_own), &p, "what GGUF keeps of a file", err));
    sl_gguf_part first;
    sl_status status = gguf_prepare(&first, c->store[0], err);
    if (status == SL_OK) {
        status = gguf_fill(c, &first, path, store_kind, err);
    }
    if (status != SL_OK) {
        gguf_part_done(&first);
        return status;
    }
    gguf_own *own = (gguf_own *)p;
    *own = (gguf_own){.header = first.header, .n_header = first.n_header};
    c->own = own;
    return SL_OK;
}

static void gguf_close(sl_container *c) {
    const gguf_own *own = (const gguf_own *)c->own;
    if (own != NULL) {
        sl_release(c->ledger, SL_ACCOUNT_IO, own->header, own->n_header);
    }
}

const sl_container_format sl_format_gguf = {
    .name = "GGUF",
    .probe = gguf_probe,
    .open = gguf_open,
    .close = gguf_close,
};
