/* gguf_walk.c - see gguf_walk.h; the layout is drawn in gguf.c.
 *
 * The reader moves a position through the header. Its window is either the whole header, which then bounds every step, or
 * a buffer of SL_GGUF_WINDOW_BYTES that is refilled from the store; strings and arrays are stepped over without being read.
 *
 * Invariants  a count from the file is believed only after the bytes that are left could hold it; every walk is linear in
 *             the header's bytes and allocates nothing but keys and names. */
#include "format/gguf_walk.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/utf8.h"

#define GGUF_MIN_META_BYTES 13   /* an empty key, a type, a value of one byte */
#define GGUF_MIN_TENSOR_BYTES 25 /* a name of one byte, no dimensions */
#define GGUF_DEFAULT_ALIGNMENT 32

/* ---- reading ------------------------------------------------------------------------------------------------------- */

static uint64_t gguf_left(const sl_gguf_reader *r) { return r->store->size_bytes - r->at; }

static sl_status gguf_cut(const sl_gguf_reader *r, uint64_t n, sl_error *err) {
    return SL_FAIL(err, SL_EFORMAT,
                   "%s: truncated GGUF: %s %llu needs %llu bytes at %llu, but the file ends at "
                   "%llu; the download may be incomplete",
                   r->store->name, r->what, (unsigned long long)r->i_what, (unsigned long long)n,
                   (unsigned long long)r->at, (unsigned long long)r->store->size_bytes);
}

/* n bytes lie ahead in the file, and the header does not grow past its limit. */
static sl_status gguf_ahead(const sl_gguf_reader *r, uint64_t n, sl_error *err) {
    if (n > gguf_left(r)) {
        return gguf_cut(r, n, err);
    }
    if (r->at + n > SL_MAX_HEADER_BYTES) {
        return SL_FAIL(err, SL_ELIMIT,
                       "%s: the GGUF header reaches beyond %llu bytes with %s %llu, the limit",
                       r->store->name, (unsigned long long)SL_MAX_HEADER_BYTES, r->what,
                       (unsigned long long)r->i_what);
    }
    if (r->buffer == NULL && r->at + n > r->n_window) { /* more than the first walk came to */
        return SL_FAIL(err, SL_EIO, "%s: the file changed while its header was being read",
                       r->store->name);
    }
    return SL_OK;
}

/* The next n bytes, n at most SL_GGUF_WINDOW_BYTES; they stay until the next call. */
static sl_status gguf_take(sl_gguf_reader *r, uint64_t n, const uint8_t **out, sl_error *err) {
    SL_TRY(gguf_ahead(r, n, err));
    if (r->at < r->window_at || r->at + n > r->window_at + r->n_window) {
        const uint64_t left = gguf_left(r);
        const size_t n_fill = left < SL_GGUF_WINDOW_BYTES ? (size_t)left : SL_GGUF_WINDOW_BYTES;
        SL_TRY(sl_store_read(r->store, r->at, r->buffer, n_fill, err));
        r->window = r->buffer;
        r->window_at = r->at;
        r->n_window = n_fill;
    }
    *out = r->window + (r->at - r->window_at);
    r->at += n;
    return SL_OK;
}

static sl_status gguf_skip(sl_gguf_reader *r, uint64_t n, sl_error *err) {
    SL_TRY(gguf_ahead(r, n, err));
    r->at += n;
    return SL_OK;
}

static sl_status gguf_u32(sl_gguf_reader *r, uint32_t *out, sl_error *err) {
    const uint8_t *p;
    SL_TRY(gguf_take(r, 4, &p, err));
    sl_cursor c = sl_cursor_make(p, 4);
    *out = sl_cursor_u32(&c);
    return SL_OK;
}

static sl_status gguf_u64(sl_gguf_reader *r, uint64_t *out, sl_error *err) {
    const uint8_t *p;
    SL_TRY(gguf_take(r, 8, &p, err));
    sl_cursor c = sl_cursor_make(p, 8);
    *out = sl_cursor_u64(&c);
    return SL_OK;
}

/* UTF-8 without NUL. */
static bool gguf_is_text(const uint8_t *p, size_t n) {
    size_t i = 0;
    while (i < n) {
        if (p[i] == 0) {
            return false;
        }
        const int len = sl_utf8_len(p + i, n - i);
        if (len <= 0) {
            return false;
        }
        i += (size_t)len;
    }
    return true;
}

/* ---- the head ------------------------------------------------------------------------------------------------------ */

static sl_status gguf_check_version(const sl_gguf_reader *r, uint32_t version, sl_error *err) {
    if (version == 2 || version == 3) {
        return SL_OK;
    }
    if (version != 0 && (version & 0xffff) == 0) {
        const uint32_t turned = (version >> 24) | ((version >> 8) & 0xff00);
        return SL_FAIL(err, SL_ENOTSUP,
                       "%s: big-endian GGUF (version %u in that byte order); only little-endian "
                       "files are read: convert its byte order",
                       r->store->name, turned);
    }
    return SL_FAIL(err, version == 0 ? SL_EFORMAT : SL_ENOTSUP,
                   "%s: GGUF version %u; versions 2 and 3 are read%s", r->store->name, version,
                   version == 1 ? ": convert the file" : "");
}

/* A count fits the bytes that are left at `min` bytes each, and the library's limit. */
static sl_status gguf_check_count(const sl_gguf_reader *r, uint64_t n, uint64_t left, uint64_t min,
                                  uint64_t limit, const char *what, sl_error *err) {
    if (n > left / min) {
        return SL_FAIL(
            err, SL_EFORMAT,
            "%s: the GGUF header counts %llu %s, which the %llu bytes that follow cannot "
            "hold; the file is damaged or truncated",
            r->store->name, (unsigned long long)n, what, (unsigned long long)left);
    }
    if (n > limit) {
        return SL_FAIL(err, SL_ELIMIT, "%s: the GGUF header counts %llu %s; the limit is %llu",
                       r->store->name, (unsigned long long)n, what, (unsigned long long)limit);
    }
    return SL_OK;
}

sl_status sl_gguf_walk_head(sl_gguf_part *part, sl_error *err) {
    sl_gguf_reader *r = &part->r;
    r->at = 0;
    r->what = "header, field";
    r->i_what = 0;
    const uint8_t *magic;
    SL_TRY(gguf_take(r, 4, &magic, err));
    if (memcmp(magic, "GGUF", 4) != 0) {
        return SL_FAIL(err, SL_EFORMAT, "%s: not a GGUF file: its magic is missing",
                       r->store->name);
    }
    r->i_what++;
    SL_TRY(gguf_u32(r, &part->version, err));
    SL_TRY(gguf_check_version(r, part->version, err));
    r->i_what++;
    SL_TRY(gguf_u64(r, &part->n_tensor, err));
    r->i_what++;
    SL_TRY(gguf_u64(r, &part->n_meta, err));
    uint64_t left = gguf_left(r);
    SL_TRY(gguf_check_count(r, part->n_meta, left, GGUF_MIN_META_BYTES, SL_MAX_META,
                            "metadata entries", err));
    left -= part->n_meta * GGUF_MIN_META_BYTES;
    return gguf_check_count(r, part->n_tensor, left, GGUF_MIN_TENSOR_BYTES, SL_MAX_TENSOR,
                            "tensors", err);
}

/* ---- metadata ------------------------------------------------------------------------------------------------------ */

/* By type number: bytes of a value, 0 for those without a fixed size. */
static const uint8_t gguf_value_bytes[] = {
    [SL_META_U8] = 1,  [SL_META_I8] = 1,  [SL_META_U16] = 2,  [SL_META_I16] = 2, [SL_META_U32] = 4,
    [SL_META_I32] = 4, [SL_META_F32] = 4, [SL_META_BOOL] = 1, [SL_META_STR] = 0, [SL_META_ARR] = 0,
    [SL_META_U64] = 8, [SL_META_I64] = 8, [SL_META_F64] = 8,
};
#define GGUF_N_TYPE (sizeof gguf_value_bytes)

static sl_status gguf_walk_type(sl_gguf_reader *r, const char *key, const char *what,
                                sl_meta_type *out, sl_error *err) {
    uint32_t type;
    SL_TRY(gguf_u32(r, &type, err));
    if (type >= GGUF_N_TYPE) {
        return SL_FAIL(err, SL_EFORMAT,
                       "%s: metadata '%s' has the unknown %stype %u (0 to %zu are)", r->store->name,
                       key, what, type, GGUF_N_TYPE - 1);
    }
    *out = (sl_meta_type)type;
    return SL_OK;
}

static sl_status gguf_walk_bools(sl_gguf_reader *r, const char *key, uint64_t n, sl_error *err) {
    SL_TRY(gguf_ahead(r, n, err));
    while (n != 0) {
        const uint64_t n_step = n < SL_GGUF_WINDOW_BYTES ? n : SL_GGUF_WINDOW_BYTES;
        const uint8_t *p;
        SL_TRY(gguf_take(r, n_step, &p, err));
        for (uint64_t i = 0; i < n_step; i++) {
            if (p[i] > 1) {
                return SL_FAIL(err, SL_EFORMAT,
                               "%s: metadata '%s' has the byte %u where a bool must be 0 or 1",
                               r->store->name, key, p[i]);
            }
        }
        n -= n_step;
    }
    return SL_OK;
}

static sl_status gguf_walk_items(sl_gguf_reader *r, const char *key, sl_meta_type type, uint64_t n,
                                 sl_error *err) {
    if (type == SL_META_BOOL) {
        return gguf_walk_bools(r, key, n, err);
    }
    const uint64_t n_bytes = type == SL_META_STR ? 8 : gguf_value_bytes[type];
    if (n > gguf_left(r) / n_bytes) {
        return SL_FAIL(err, SL_EFORMAT,
                       "%s: metadata '%s' counts %llu values of type %s, which the %llu bytes that "
                       "follow cannot hold; the file is damaged or truncated",
                       r->store->name, key, (unsigned long long)n, sl_meta_type_name(type),
                       (unsigned long long)gguf_left(r));
    }
    if (type != SL_META_STR) {
        return gguf_skip(r, n * n_bytes, err);
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t n_text;
        SL_TRY(gguf_u64(r, &n_text, err));
        SL_TRY(gguf_skip(r, n_text, err));
    }
    return SL_OK;
}

/* Keys that the container itself needs. */
typedef enum gguf_special {
    GGUF_PLAIN,
    GGUF_ALIGNMENT,
    GGUF_ARCHITECTURE,
    GGUF_SPLIT_NO,
    GGUF_SPLIT_COUNT,
    GGUF_SPLIT_TENSORS,
} gguf_special;

static gguf_special gguf_which(const uint8_t *key, size_t n) {
    static const char *const names[] = {
        [GGUF_ALIGNMENT] = "general.alignment",
        [GGUF_ARCHITECTURE] = "general.architecture",
        [GGUF_SPLIT_NO] = "split.no",
        [GGUF_SPLIT_COUNT] = "split.count",
        [GGUF_SPLIT_TENSORS] = "split.tensors.count",
    };
    for (size_t i = GGUF_ALIGNMENT; i <= GGUF_SPLIT_TENSORS; i++) {
        if (n == strlen(names[i]) && memcmp(key, names[i], n) == 0) {
            return (gguf_special)i;
        }
    }
    return GGUF_PLAIN;
}

static sl_status gguf_apply(sl_gguf_part *part, gguf_special special, const sl_meta *m,
                            sl_error *err) {
    const char *name = part->r.store->name;
    int64_t value = -1;
    switch (special) {
    case GGUF_PLAIN:
        return SL_OK;
    case GGUF_ARCHITECTURE:
        if (m->type != SL_META_STR) {
            return SL_FAIL(err, SL_EFORMAT, "%s: general.architecture has type %s, not str", name,
                           sl_meta_type_name(m->type));
        }
        return SL_OK;
    case GGUF_ALIGNMENT:
        if (m->type != SL_META_U32 || !sl_meta_i64(m, 0, &value)) {
            return SL_FAIL(err, SL_EFORMAT, "%s: general.alignment has type %s, not u32", name,
                           sl_meta_type_name(m->type));
        }
        if (!sl_is_pow2((uint64_t)value)) {
            return SL_FAIL(err, SL_EFORMAT,
                           "%s: general.alignment is %lld; it must be a power of two", name,
                           (long long)value);
        }
        part->alignment = (uint64_t)value;
        return SL_OK;
    case GGUF_SPLIT_NO:
    case GGUF_SPLIT_COUNT:
    case GGUF_SPLIT_TENSORS:
        if (m->type == SL_META_ARR || !sl_meta_i64(m, 0, &value) || value < 0) {
            return SL_FAIL(err, SL_EFORMAT,
                           "%s: %s has type %s or a value that is no count; a split model needs a "
                           "whole number there",
                           name, m->key, sl_meta_type_name(m->type));
        }
        if (special == GGUF_SPLIT_NO) {
            part->split_no = value;
        } else if (special == GGUF_SPLIT_COUNT) {
            part->split_count = value;
        } else {
            part->split_tensors = value;
        }
        return SL_OK;
    }
    return SL_OK;
}

/* The value of a key. m->data is set only where the bytes stay (second walk) or the value is a fixed few (both). */
static sl_status gguf_walk_value(sl_gguf_reader *r, const char *key, sl_meta *m, sl_error *err) {
    SL_TRY(gguf_walk_type(r, key, "", &m->type, err));
    m->item = m->type;
    m->n_item = 1;
    if (m->type == SL_META_ARR) {
        SL_TRY(gguf_walk_type(r, key, "item ", &m->item, err));
        if (m->item == SL_META_ARR) {
            return SL_FAIL(err, SL_ENOTSUP,
                           "%s: metadata '%s' is an array of arrays, which is not supported",
                           r->store->name, key);
        }
        uint64_t n;
        SL_TRY(gguf_u64(r, &n, err));
        const uint64_t start = r->at;
        SL_TRY(gguf_walk_items(r, key, m->item, n, err));
        m->n_item = (int64_t)n; /* at most the file's bytes, which were just walked */
        m->data = r->buffer == NULL ? r->window + start : NULL;
        m->size_bytes = (size_t)(r->at - start);
        return SL_OK;
    }
    const uint64_t start = r->at;
    if (m->type == SL_META_STR) {
        SL_TRY(gguf_walk_items(r, key, m->type, 1, err));
        m->data = r->buffer == NULL ? r->window + start : NULL;
    } else {
        SL_TRY(gguf_take(r, gguf_value_bytes[m->type], &m->data, err));
        if (m->type == SL_META_BOOL && m->data[0] > 1) {
            return SL_FAIL(err, SL_EFORMAT,
                           "%s: metadata '%s' has the byte %u where a bool must be 0 or 1",
                           r->store->name, key, m->data[0]);
        }
    }
    m->size_bytes = (size_t)(r->at - start);
    return SL_OK;
}

static sl_status gguf_walk_entry(sl_gguf_part *part, uint64_t i, sl_error *err) {
    sl_gguf_reader *r = &part->r;
    r->what = "metadata entry";
    r->i_what = i;
    uint64_t n_key;
    SL_TRY(gguf_u64(r, &n_key, err));
    if (n_key > SL_MAX_META_KEY) {
        return SL_FAIL(err, SL_EFORMAT,
                       "%s: the key of metadata entry %llu has %llu bytes; at most %d are allowed",
                       r->store->name, (unsigned long long)i, (unsigned long long)n_key,
                       SL_MAX_META_KEY);
    }
    const uint8_t *p;
    SL_TRY(gguf_take(r, n_key, &p, err));
    char shown[SL_GGUF_SHOWN_KEY + 1];
    const size_t n_shown = n_key < SL_GGUF_SHOWN_KEY ? (size_t)n_key : SL_GGUF_SHOWN_KEY;
    memcpy(shown, p, n_shown);
    shown[n_shown] = '\0';
    if (!gguf_is_text(p, (size_t)n_key)) {
        return SL_FAIL(err, SL_EFORMAT,
                       "%s: the key of metadata entry %llu ('%s') is not UTF-8 text without NUL",
                       r->store->name, (unsigned long long)i, shown);
    }
    const gguf_special special = gguf_which(p, (size_t)n_key);
    sl_meta m = {.key = shown};
    if (part->meta != NULL) {
        SL_TRY(sl_arena_text(part->arena, (const char *)p, (size_t)n_key, &m.key,
                             "a key of a model's metadata", err));
    }
    SL_TRY(gguf_walk_value(r, shown, &m, err));
    SL_TRY(gguf_apply(part, special, &m, err));
    if (part->meta != NULL) {
        part->meta[i] = m;
    }
    return SL_OK;
}

sl_status sl_gguf_walk_meta(sl_gguf_part *part, sl_error *err) {
    part->alignment = GGUF_DEFAULT_ALIGNMENT;
    part->split_no = part->split_count = part->split_tensors = -1;
    for (uint64_t i = 0; i < part->n_meta; i++) {
        SL_TRY(gguf_walk_entry(part, i, err));
    }
    return SL_OK;
}

/* ---- tensors ------------------------------------------------------------------------------------------------------- */

/* Shape and size of a tensor whose name stands in t->name; dims come innermost first. */
static sl_status gguf_shape(const sl_gguf_reader *r, sl_tensor *t, const uint64_t *dims,
                            uint32_t n_dim, sl_error *err) {
    uint64_t n_row = 1, n_all = 1, row_bytes = 0;
    for (uint32_t i = 0; i < n_dim; i++) {
        bool fits = dims[i] <= (uint64_t)INT64_MAX && sl_mul_u64(n_all, dims[i], &n_all);
        if (fits && i > 0) {
            fits = sl_mul_u64(n_row, dims[i], &n_row);
        }
        if (dims[i] == 0 || !fits || n_all > (uint64_t)INT64_MAX) {
            return SL_FAIL(
                err, SL_EFORMAT, "%s: tensor '%s' has %llu elements in dimension %u of %u%s",
                r->store->name, t->name, (unsigned long long)dims[i], n_dim - 1 - i, n_dim,
                dims[i] == 0 ? "; each must have at least 1" : ", and its size is beyond 63 bits");
        }
        t->dim[n_dim - 1 - i] = (int64_t)dims[i];
    }
    if (dims[0] % (uint64_t)t->type->n_elem != 0) {
        return SL_FAIL(err, SL_EFORMAT,
                       "%s: tensor '%s' of type %s has rows of %llu elements, which is no multiple "
                       "of the type's block of %d",
                       r->store->name, t->name, t->type->name, (unsigned long long)dims[0],
                       t->type->n_elem);
    }
    if (!sl_qtype_row_bytes(t->type, dims[0], &row_bytes) ||
        !sl_mul_u64(row_bytes, n_row, &t->size_bytes)) {
        return SL_FAIL(err, SL_EFORMAT, "%s: the bytes of tensor '%s' are more than 64 bits count",
                       r->store->name, t->name);
    }
    return SL_OK;
}

/* name: SL_MAX_TENSOR_NAME + 1 bytes. t->name points there, t->offset_bytes counts from the start of the data. */
static sl_status gguf_walk_tensor(sl_gguf_part *part, uint64_t i, sl_tensor *t, char *name,
                                  sl_error *err) {
    sl_gguf_reader *r = &part->r;
    r->what = "tensor entry";
    r->i_what = i;
    uint64_t n_name;
    SL_TRY(gguf_u64(r, &n_name, err));
    if (n_name < 1 || n_name > SL_MAX_TENSOR_NAME) {
        return SL_FAIL(
            err, SL_EFORMAT, "%s: the name of tensor %llu has %llu bytes; 1 to %d are allowed",
            r->store->name, (unsigned long long)i, (unsigned long long)n_name, SL_MAX_TENSOR_NAME);
    }
    const uint8_t *p;
    SL_TRY(gguf_take(r, n_name, &p, err));
    memcpy(name, p, (size_t)n_name);
    name[n_name] = '\0';
    if (!gguf_is_text(p, (size_t)n_name)) {
        return SL_FAIL(err, SL_EFORMAT,
                       "%s: the name of tensor %llu ('%s') is not UTF-8 text without NUL",
                       r->store->name, (unsigned long long)i, name);
    }
    *t = (sl_tensor){.name = name, .dim = {1, 1, 1, 1}};
    uint32_t n_dim, type;
    SL_TRY(gguf_u32(r, &n_dim, err));
    if (n_dim > SL_MAX_DIM) {
        return SL_FAIL(err, SL_EFORMAT, "%s: tensor '%s' has %u dimensions; at most %d are allowed",
                       r->store->name, name, n_dim, SL_MAX_DIM);
    }
    uint64_t dims[SL_MAX_DIM] = {1, 1, 1, 1};
    for (uint32_t d = 0; d < n_dim; d++) {
        SL_TRY(gguf_u64(r, &dims[d], err));
    }
    SL_TRY(gguf_u32(r, &type, err));
    SL_TRY(gguf_u64(r, &t->offset_bytes, err));
    t->type = sl_qtype_find(type);
    if (t->type == NULL) {
        return SL_FAIL(err, SL_ENOTSUP,
                       "%s: tensor '%s' has type %u, which is not known; the file is damaged, or "
                       "newer than this library",
                       r->store->name, name, type);
    }
    t->n_dim = n_dim == 0 ? 1 : (int32_t)n_dim;
    SL_TRY(gguf_shape(r, t, dims, (uint32_t)t->n_dim, err));
    if (t->offset_bytes % part->alignment != 0) {
        return SL_FAIL(err, SL_EFORMAT,
                       "%s: tensor '%s' lies at offset %llu, which is no multiple of the file's "
                       "alignment of %llu",
                       r->store->name, name, (unsigned long long)t->offset_bytes,
                       (unsigned long long)part->alignment);
    }
    return SL_OK;
}

sl_status sl_gguf_walk_tensors(sl_gguf_part *part, sl_tensor *rows, int32_t i_store,
                               sl_arena *arena, sl_error *err) {
    for (uint64_t i = 0; i < part->n_tensor; i++) {
        char name[SL_MAX_TENSOR_NAME + 1];
        sl_tensor t;
        SL_TRY(gguf_walk_tensor(part, i, &t, name, err));
        if (rows != NULL) {
            SL_TRY(sl_arena_text(arena, name, strlen(name), &t.name, "the name of a tensor", err));
            t.i_store = i_store;
            rows[i] = t;
        }
    }
    return SL_OK;
}

sl_status sl_gguf_place(const sl_gguf_part *part, sl_tensor *rows, sl_error *err) {
    const uint64_t size = part->r.store->size_bytes;
    uint64_t start = 0;
    const bool has_start = sl_align_u64(part->r.at, part->alignment, &start);
    for (uint64_t i = 0; i < part->n_tensor; i++) {
        uint64_t at, end;
        if (!has_start || !sl_add_u64(start, rows[i].offset_bytes, &at) ||
            !sl_add_u64(at, rows[i].size_bytes, &end)) {
            return SL_FAIL(err, SL_EFORMAT,
                           "%s: tensor '%s' of %llu bytes at offset %llu reaches beyond 64 bits",
                           part->r.store->name, rows[i].name,
                           (unsigned long long)rows[i].size_bytes,
                           (unsigned long long)rows[i].offset_bytes);
        }
        if (end > size) {
            return SL_FAIL(err, SL_EFORMAT,
                           "%s: tensor '%s' takes bytes %llu to %llu, but the file ends at %llu; "
                           "the download may be incomplete",
                           part->r.store->name, rows[i].name, (unsigned long long)at,
                           (unsigned long long)end, (unsigned long long)size);
        }
        rows[i].offset_bytes = at;
    }
    return SL_OK;
}
