/* meta.c - reading metadata values.
 *
 * A value's bytes lie where the header holds them. They were checked at open, and are read through a cursor all the same:
 * a mapped file can change under us, and then the worst is a wrong value. */
#include <string.h>

#include "format/container.h"

static const struct {
    const char *name;
    uint8_t n_bytes; /* 0: no fixed size */
} meta_types[] = {
    [SL_META_U8] = {"u8", 1},   [SL_META_I8] = {"i8", 1},     [SL_META_U16] = {"u16", 2},
    [SL_META_I16] = {"i16", 2}, [SL_META_U32] = {"u32", 4},   [SL_META_I32] = {"i32", 4},
    [SL_META_F32] = {"f32", 4}, [SL_META_BOOL] = {"bool", 1}, [SL_META_STR] = {"str", 0},
    [SL_META_ARR] = {"arr", 0}, [SL_META_U64] = {"u64", 8},   [SL_META_I64] = {"i64", 8},
    [SL_META_F64] = {"f64", 8},
};

const char *sl_meta_type_name(sl_meta_type type) {
    return (size_t)type < sizeof meta_types / sizeof meta_types[0] ? meta_types[type].name : "?";
}

/* A cursor on item i, and its type; false when there is no such item or it has no fixed size. */
static bool meta_item(const sl_meta *m, int64_t i, sl_meta_type *type, sl_cursor *at) {
    *type = m->type == SL_META_ARR ? m->item : m->type;
    const size_t n_bytes = meta_types[*type].n_bytes;
    if (n_bytes == 0 || i < 0 || i >= m->n_item) {
        return false;
    }
    *at = sl_cursor_make(m->data, m->size_bytes);
    (void)sl_cursor_bytes(at, (uint64_t)i * n_bytes);
    return sl_cursor_left(at) >= n_bytes;
}

bool sl_meta_i64(const sl_meta *m, int64_t i, int64_t *out) {
    sl_meta_type type;
    sl_cursor at;
    if (!meta_item(m, i, &type, &at)) {
        return false;
    }
    switch (type) {
    case SL_META_U8:
        *out = sl_cursor_u8(&at);
        return true;
    case SL_META_I8:
        *out = (int8_t)sl_cursor_u8(&at);
        return true;
    case SL_META_U16:
        *out = sl_cursor_u16(&at);
        return true;
    case SL_META_I16:
        *out = (int16_t)sl_cursor_u16(&at);
        return true;
    case SL_META_U32:
        *out = sl_cursor_u32(&at);
        return true;
    case SL_META_I32:
        *out = (int32_t)sl_cursor_u32(&at);
        return true;
    case SL_META_I64:
        *out = (int64_t)sl_cursor_u64(&at);
        return true;
    case SL_META_U64: {
        const uint64_t value = sl_cursor_u64(&at);
        if (value > (uint64_t)INT64_MAX) {
            return false;
        }
        *out = (int64_t)value;
        return true;
    }
    case SL_META_F32:
    case SL_META_BOOL:
    case SL_META_STR:
    case SL_META_ARR:
    case SL_META_F64:
        break;
    }
    return false;
}

bool sl_meta_f64(const sl_meta *m, int64_t i, double *out) {
    sl_meta_type type;
    sl_cursor at;
    if (!meta_item(m, i, &type, &at)) {
        return false;
    }
    if (type == SL_META_F32) {
        *out = (double)sl_cursor_f32(&at);
        return true;
    }
    if (type == SL_META_F64) {
        *out = sl_cursor_f64(&at);
        return true;
    }
    if (type == SL_META_U64) {
        *out = (double)sl_cursor_u64(&at);
        return true;
    }
    int64_t whole;
    if (!sl_meta_i64(m, i, &whole)) {
        return false;
    }
    *out = (double)whole;
    return true;
}

bool sl_meta_bool(const sl_meta *m, int64_t i, bool *out) {
    sl_meta_type type;
    sl_cursor at;
    if (!meta_item(m, i, &type, &at) || type != SL_META_BOOL) {
        return false;
    }
    *out = sl_cursor_u8(&at) != 0;
    return true;
}

bool sl_meta_str(const sl_meta *m, const char **text, size_t *n) {
    if (m->type != SL_META_STR) {
        return false;
    }
    sl_cursor at = sl_meta_strings(m);
    return sl_meta_next_str(&at, text, n);
}

sl_cursor sl_meta_strings(const sl_meta *m) {
    const bool has = m->type == SL_META_STR || (m->type == SL_META_ARR && m->item == SL_META_STR);
    return sl_cursor_make(m->data, has ? m->size_bytes : 0);
}

bool sl_meta_next_str(sl_cursor *at, const char **text, size_t *n) {
    const uint64_t n_text = sl_cursor_u64(at);
    const uint8_t *p = sl_cursor_bytes(at, n_text);
    if (p == NULL) {
        return false;
    }
    *text = (const char *)p;
    *n = (size_t)n_text;
    return true;
}
