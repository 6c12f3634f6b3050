/* file.c - sl_file: looking into a model file without loading it. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "engine/engine_internal.h"

sl_status sl_file_open(sl_engine *engine, const char *path, const sl_file_options *options,
                       sl_file **out, sl_error *err) {
    if (engine == NULL || out == NULL) {
        return SL_FAIL(err, SL_EINVAL, "sl_file_open: %s is NULL",
                       engine == NULL ? "engine" : "out");
    }
    sl_file_options o;
    SL_TRY(sl_options_read(&o, sizeof o, options, "file options", err));
    if (path == NULL && o.source == NULL) {
        return SL_FAIL(err, SL_EINVAL, "sl_file_open: neither a path nor a source is given");
    }
    void *p;
    SL_TRY(sl_alloc_zero(&engine->ledger, SL_ACCOUNT_IO, 1, sizeof(sl_file), &p, "file", err));
    sl_file *file = p;
    file->ledger = &engine->ledger;
    const sl_status status =
        sl_container_open(&engine->ledger, path, o.store, o.source, &file->container, err);
    if (status != SL_OK) {
        sl_release(&engine->ledger, SL_ACCOUNT_IO, file, sizeof *file);
        return status;
    }
    *out = file;
    return SL_OK;
}

void sl_file_close(sl_file *file) {
    if (file != NULL) {
        sl_container_close(file->container);
        sl_release(file->ledger, SL_ACCOUNT_IO, file, sizeof *file);
    }
}

static uint64_t file_n_elem(const sl_tensor *t) {
    uint64_t n = 1;
    for (int32_t i = 0; i < t->n_dim; i++) {
        n *= (uint64_t)t->dim[i]; /* the container has checked the product */
    }
    return n;
}

void sl_file_get_info(const sl_file *file, sl_file_info *out) {
    const sl_container *c = file->container;
    *out = (sl_file_info){.format = c->format->name,
                          .version = c->version,
                          .n_file = c->n_store,
                          .n_meta = c->n_meta,
                          .n_tensor = c->n_tensor,
                          .alignment = c->alignment};
    for (int32_t i = 0; i < c->n_store; i++) {
        out->size_bytes += c->store[i]->size_bytes;
    }
    for (int64_t i = 0; i < c->n_tensor; i++) {
        out->n_param += file_n_elem(&c->tensor[i]);
        out->tensor_bytes += c->tensor[i].size_bytes;
    }
}

sl_status sl_file_get_tensor(const sl_file *file, int64_t i_tensor, sl_tensor_info *out) {
    if (file == NULL || out == NULL || i_tensor < 0 || i_tensor >= file->container->n_tensor) {
        return SL_EINVAL;
    }
    const sl_tensor *t = &file->container->tensor[i_tensor];
    *out = (sl_tensor_info){.name = t->name,
                            .type = t->type->name,
                            .n_dim = t->n_dim,
                            .offset_bytes = t->offset_bytes,
                            .size_bytes = t->size_bytes,
                            .i_file = t->i_store};
    memcpy(out->dim, t->dim, sizeof out->dim);
    return SL_OK;
}

/* Text that is cut to its buffer, while the whole length is counted. */
typedef struct file_text {
    char *at;
    size_t cap, n;
} file_text;

static void file_put(file_text *t, const char *bytes, size_t n) {
    if (t->n < t->cap && t->at != NULL) {
        const size_t room = t->cap - t->n;
        memcpy(t->at + t->n, bytes, n < room ? n : room);
    }
    t->n += n;
}

/* A string's bytes on one line: control characters as escapes. */
static void file_put_line(file_text *t, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const uint8_t b = (uint8_t)bytes[i];
        if (b >= 0x20 && b != 0x7f) {
            file_put(t, bytes + i, 1);
        } else if (b == '\n' || b == '\r' || b == '\t') {
            file_put(t, b == '\n' ? "\\n" : b == '\r' ? "\\r" : "\\t", 2);
        } else {
            char escape[8];
            (void)snprintf(escape, sizeof escape, "\\x%02x", b);
            file_put(t, escape, 4);
        }
    }
}

static void file_put_item(file_text *t, const sl_meta *m, sl_meta_type type, int64_t i) {
    char number[64];
    int64_t whole;
    double real;
    bool flag;
    int n = 0;
    if (type == SL_META_BOOL && sl_meta_bool(m, i, &flag)) {
        n = snprintf(number, sizeof number, "%s", flag ? "true" : "false");
    } else if (type == SL_META_F32 && sl_meta_f64(m, i, &real)) {
        n = snprintf(number, sizeof number, "%.9g", real);
    } else if (type == SL_META_F64 && sl_meta_f64(m, i, &real)) {
        n = snprintf(number, sizeof number, "%.17g", real);
    } else if (type == SL_META_U64) { /* may be beyond an int64 */
        sl_cursor at = sl_cursor_make(m->data, m->size_bytes);
        (void)sl_cursor_bytes(&at, (uint64_t)i * sizeof(uint64_t));
        n = snprintf(number, sizeof number, "%llu", (unsigned long long)sl_cursor_u64(&at));
    } else if (sl_meta_i64(m, i, &whole)) {
        n = snprintf(number, sizeof number, "%lld", (long long)whole);
    }
    file_put(t, number, n > 0 ? (size_t)n : 0);
}

#define FILE_SHORT_ITEMS 8
#define FILE_SHORT_TEXT 96

static void file_put_value(file_text *t, const sl_meta *m, bool full) {
    const bool is_array = m->type == SL_META_ARR;
    const sl_meta_type type = is_array ? m->item : m->type;
    const int64_t n = !full && m->n_item > FILE_SHORT_ITEMS ? FILE_SHORT_ITEMS : m->n_item;
    sl_cursor at = sl_meta_strings(m);
    if (is_array) {
        file_put(t, "[", 1);
    }
    for (int64_t i = 0; i < n; i++) {
        if (i > 0) {
            file_put(t, ", ", 2);
        }
        const char *text;
        size_t n_text;
        if (type != SL_META_STR) {
            file_put_item(t, m, type, i);
        } else if (sl_meta_next_str(&at, &text, &n_text)) {
            const bool cut = !full && n_text > FILE_SHORT_TEXT;
            file_put_line(t, text, cut ? FILE_SHORT_TEXT : n_text);
            if (cut) {
                file_put(t, "...", 3);
            }
        }
    }
    if (is_array) {
        file_put(t, n < m->n_item ? ", ...]" : "]", n < m->n_item ? 6 : 1);
    }
}

static void file_end(file_text *t, size_t *n_text) {
    if (t->at != NULL && t->cap > 0) {
        t->at[t->n < t->cap ? t->n : t->cap - 1] = '\0';
    }
    if (n_text != NULL) {
        *n_text = t->n;
    }
}

sl_status sl_file_get_meta(const sl_file *file, int64_t i_meta, bool full, const char **key,
                           char *type, size_t cap_type, char *text, size_t cap_text,
                           size_t *n_text) {
    if (file == NULL || i_meta < 0 || i_meta >= file->container->n_meta) {
        return SL_EINVAL;
    }
    const sl_meta *m = &file->container->meta[i_meta];
    if (key != NULL) {
        *key = m->key;
    }
    if (type != NULL && cap_type > 0) {
        if (m->type == SL_META_ARR) {
            (void)snprintf(type, cap_type, "arr[%s,%lld]", sl_meta_type_name(m->item),
                           (long long)m->n_item);
        } else {
            (void)snprintf(type, cap_type, "%s", sl_meta_type_name(m->type));
        }
    }
    file_text t = {.at = text, .cap = text != NULL ? cap_text : 0};
    file_put_value(&t, m, full);
    file_end(&t, n_text);
    return SL_OK;
}

sl_status sl_file_get_meta_item(const sl_file *file, int64_t i_meta, int64_t i_item, char *text,
                                size_t cap_text, size_t *n_text) {
    if (file == NULL || i_meta < 0 || i_meta >= file->container->n_meta) {
        return SL_EINVAL;
    }
    const sl_meta *m = &file->container->meta[i_meta];
    if (i_item < 0 || i_item >= m->n_item) {
        return SL_EINVAL;
    }
    const sl_meta_type type = m->type == SL_META_ARR ? m->item : m->type;
    file_text t = {.at = text, .cap = text != NULL ? cap_text : 0};
    if (type == SL_META_STR) {
        sl_cursor at = sl_meta_strings(m);
        const char *item = "";
        size_t n_item = 0;
        for (int64_t i = 0; i <= i_item && sl_meta_next_str(&at, &item, &n_item); i++) {
        }
        file_put(&t, item, n_item);
    } else {
        file_put_item(&t, m, type, i_item);
    }
    file_end(&t, n_text);
    return SL_OK;
}

sl_status sl_file_each_meta_item(const sl_file *file, int64_t i_meta, sl_item_fn each, void *user) {
    if (file == NULL || each == NULL || i_meta < 0 || i_meta >= file->container->n_meta) {
        return SL_EINVAL;
    }
    const sl_meta *m = &file->container->meta[i_meta];
    const sl_meta_type type = m->type == SL_META_ARR ? m->item : m->type;
    sl_cursor at = sl_meta_strings(m);
    for (int64_t i = 0; i < m->n_item; i++) {
        char number[64] = {0}; /* so that a number ends with a NUL */
        const char *text = number;
        size_t n_text = 0;
        if (type == SL_META_STR) {
            if (!sl_meta_next_str(&at, &text, &n_text)) {
                return SL_EINTERNAL; /* the header was checked when it was opened */
            }
        } else {
            file_text t = {.at = number, .cap = sizeof number};
            file_put_item(&t, m, type, i);
            n_text = t.n;
        }
        if (!each(user, i, text, n_text)) {
            break;
        }
    }
    return SL_OK;
}

int64_t sl_file_meta_count(const sl_file *file, int64_t i_meta) {
    return file != NULL && i_meta >= 0 && i_meta < file->container->n_meta
               ? file->container->meta[i_meta].n_item
               : -1;
}

int64_t sl_file_find_meta(const sl_file *file, const char *key) {
    const sl_meta *m = file != NULL && key != NULL ? sl_meta_find(file->container, key) : NULL;
    return m != NULL ? (int64_t)(m - file->container->meta) : -1;
}
