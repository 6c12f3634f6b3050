/* help_gguf.c - see help_gguf.h. Written from the layout in gguf.c's head, sharing no code with the reader. */
#define _GNU_SOURCE
#include "help_gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *gguf_need(void *p) {
    if (p == NULL) {
        fprintf(stderr, "help_gguf: out of memory or cannot write\n");
        abort();
    }
    return p;
}

static void gguf_put(uint8_t **to, size_t *n, size_t *cap, const void *bytes, size_t n_bytes) {
    if (*cap - *n < n_bytes) {
        *cap = (*n + n_bytes) * 2 + 256;
        *to = gguf_need(realloc(*to, *cap));
    }
    if (n_bytes != 0) {
        memcpy(*to + *n, bytes, n_bytes);
    }
    *n += n_bytes;
}

static void gguf_le(uint64_t value, uint8_t out[8]) {
    for (int i = 0; i < 8; i++) {
        out[i] = (uint8_t)(value >> (8 * i));
    }
}

static void put_meta(help_gguf *g, const void *bytes, size_t n) {
    gguf_put(&g->meta, &g->n_meta_bytes, &g->cap_meta, bytes, n);
}

static void put_meta_int(help_gguf *g, uint64_t value, size_t n) {
    uint8_t le[8];
    gguf_le(value, le);
    put_meta(g, le, n);
}

static void put_out(help_gguf *g, const void *bytes, size_t n) {
    gguf_put(&g->out, &g->n_out, &g->cap_out, bytes, n);
}

static void put_out_int(help_gguf *g, uint64_t value, size_t n) {
    uint8_t le[8];
    gguf_le(value, le);
    put_out(g, le, n);
}

static void put_key(help_gguf *g, const void *key, size_t n_key, uint32_t type) {
    put_meta_int(g, n_key, 8);
    put_meta(g, key, n_key);
    put_meta_int(g, type, 4);
    g->n_meta++;
}

help_gguf *help_gguf_new(void) {
    help_gguf *g = gguf_need(calloc(1, sizeof *g));
    g->version = 3;
    g->alignment = 32;
    g->n_meta_said = g->n_tensor_said = -1;
    return g;
}

void help_gguf_free(help_gguf *g) {
    for (int64_t i = 0; i < g->n_tensor; i++) {
        free(g->tensor[i].name);
        free(g->tensor[i].data);
    }
    free(g->tensor);
    free(g->meta);
    free(g->out);
    free(g);
}

void help_gguf_raw(help_gguf *g, const void *key, size_t n_key, uint32_t type, const void *value,
                   size_t n_value) {
    put_key(g, key, n_key, type);
    put_meta(g, value, n_value);
}

static void put_scalar(help_gguf *g, const char *key, sl_meta_type type, uint64_t value, size_t n) {
    put_key(g, key, strlen(key), (uint32_t)type);
    put_meta_int(g, value, n);
}

void help_gguf_u8(help_gguf *g, const char *key, uint8_t v) {
    put_scalar(g, key, SL_META_U8, v, 1);
}
void help_gguf_i8(help_gguf *g, const char *key, int8_t v) {
    put_scalar(g, key, SL_META_I8, (uint64_t)v, 1);
}
void help_gguf_u16(help_gguf *g, const char *key, uint16_t v) {
    put_scalar(g, key, SL_META_U16, v, 2);
}
void help_gguf_i16(help_gguf *g, const char *key, int16_t v) {
    put_scalar(g, key, SL_META_I16, (uint64_t)v, 2);
}
void help_gguf_u32(help_gguf *g, const char *key, uint32_t v) {
    put_scalar(g, key, SL_META_U32, v, 4);
}
void help_gguf_i32(help_gguf *g, const char *key, int32_t v) {
    put_scalar(g, key, SL_META_I32, (uint64_t)v, 4);
}
void help_gguf_f32(help_gguf *g, const char *key, float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_scalar(g, key, SL_META_F32, bits, 4);
}
void help_gguf_bool(help_gguf *g, const char *key, bool v) {
    put_scalar(g, key, SL_META_BOOL, v ? 1 : 0, 1);
}
void help_gguf_u64(help_gguf *g, const char *key, uint64_t v) {
    put_scalar(g, key, SL_META_U64, v, 8);
}
void help_gguf_i64(help_gguf *g, const char *key, int64_t v) {
    put_scalar(g, key, SL_META_I64, (uint64_t)v, 8);
}
void help_gguf_f64(help_gguf *g, const char *key, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_scalar(g, key, SL_META_F64, bits, 8);
}

void help_gguf_str_n(help_gguf *g, const char *key, const void *value, size_t n) {
    put_key(g, key, strlen(key), SL_META_STR);
    put_meta_int(g, n, 8);
    put_meta(g, value, n);
}

void help_gguf_str(help_gguf *g, const char *key, const char *value) {
    help_gguf_str_n(g, key, value, strlen(value));
}

void help_gguf_array(help_gguf *g, const char *key, sl_meta_type item, const void *items,
                     size_t n) {
    static const uint8_t bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    put_key(g, key, strlen(key), SL_META_ARR);
    put_meta_int(g, (uint64_t)item, 4);
    put_meta_int(g, n, 8);
    put_meta(g, items, n * bytes[item]);
}

void help_gguf_strings(help_gguf *g, const char *key, const char *const *items, size_t n) {
    put_key(g, key, strlen(key), SL_META_ARR);
    put_meta_int(g, SL_META_STR, 4);
    put_meta_int(g, n, 8);
    for (size_t i = 0; i < n; i++) {
        put_meta_int(g, strlen(items[i]), 8);
        put_meta(g, items[i], strlen(items[i]));
    }
}

help_gguf_tensor_row *help_gguf_tensor(help_gguf *g, const char *name, uint32_t type,
                                       uint32_t n_dim, const int64_t *dim, const void *data,
                                       size_t n_data) {
    if (g->n_tensor == g->cap_tensor) {
        g->cap_tensor = g->cap_tensor * 2 + 16;
        g->tensor = gguf_need(realloc(g->tensor, (size_t)g->cap_tensor * sizeof *g->tensor));
    }
    help_gguf_tensor_row *t = &g->tensor[g->n_tensor];
    memset(t, 0, sizeof *t);
    t->n_name = strlen(name);
    t->name = gguf_need(malloc(t->n_name + 1));
    memcpy(t->name, name, t->n_name + 1);
    t->type = type;
    t->n_dim = n_dim;
    for (uint32_t i = 0; i < n_dim && i < 8; i++) {
        t->dim[i] = (uint64_t)dim[i];
    }
    t->n_data = n_data;
    t->data = gguf_need(malloc(n_data + 1));
    for (size_t i = 0; i < n_data; i++) {
        t->data[i] =
            data != NULL ? ((const uint8_t *)data)[i] : (uint8_t)(i * 7 + (size_t)g->n_tensor * 31);
    }
    t->offset = -1;
    g->n_tensor++;
    return t;
}

static size_t gguf_up(size_t n, size_t align) { return (n + align - 1) / align * align; }

const uint8_t *help_gguf_bytes(help_gguf *g, size_t *n) {
    g->n_out = 0;
    put_out(g, "GGUF", 4);
    put_out_int(g, g->version, 4);
    put_out_int(g, (uint64_t)(g->n_tensor_said >= 0 ? g->n_tensor_said : g->n_tensor), 8);
    put_out_int(g, (uint64_t)(g->n_meta_said >= 0 ? g->n_meta_said : g->n_meta), 8);
    put_out(g, g->meta, g->n_meta_bytes);
    size_t *at = gguf_need(calloc((size_t)g->n_tensor + 1, sizeof *at));
    size_t end = 0;
    for (int64_t k = 0; k < g->n_tensor; k++) {
        const int64_t i = g->backwards ? g->n_tensor - 1 - k : k;
        at[i] = end;
        end = gguf_up(end + g->tensor[i].n_data, g->alignment);
    }
    for (int64_t i = 0; i < g->n_tensor; i++) {
        const help_gguf_tensor_row *t = &g->tensor[i];
        put_out_int(g, t->n_name, 8);
        put_out(g, t->name, t->n_name);
        put_out_int(g, t->n_dim, 4);
        for (uint32_t d = t->n_dim; d-- > 0;) {
            put_out_int(g, d < 8 ? t->dim[d] : 1, 8);
        }
        put_out_int(g, t->type, 4);
        put_out_int(g, t->offset >= 0 ? (uint64_t)t->offset : at[i], 8);
    }
    g->header_bytes = g->n_out;
    if (g->n_tensor != 0) {
        const size_t start = gguf_up(g->n_out, g->alignment);
        const size_t whole = start + end;
        while (g->n_out < whole) {
            static const uint8_t zeros[256];
            const size_t step = whole - g->n_out < sizeof zeros ? whole - g->n_out : sizeof zeros;
            put_out(g, zeros, step);
        }
        for (int64_t i = 0; i < g->n_tensor; i++) {
            memcpy(g->out + start + at[i], g->tensor[i].data, g->tensor[i].n_data);
        }
    }
    free(at);
    *n = g->n_out;
    return g->out;
}

void help_gguf_write(help_gguf *g, const char *path) {
    size_t n;
    const uint8_t *bytes = help_gguf_bytes(g, &n);
    FILE *f = gguf_need(fopen(path, "wb"));
    const bool whole = fwrite(bytes, 1, n, f) == n;
    if (fclose(f) != 0 || !whole) {
        (void)gguf_need(NULL);
    }
}

/* ---- opening ------------------------------------------------------------------------------------------------------- */

const char *help_way_name(int way) {
    static const char *const names[] = {"memory", "callback", "mmap", "direct"};
    return names[way];
}

typedef struct way_bytes {
    const uint8_t *data;
    size_t size;
} way_bytes;

static int way_fetch(void *user, uint64_t offset, void *dst, size_t size) {
    const way_bytes *b = user;
    if (offset > b->size || size > b->size - offset) {
        return 99;
    }
    memcpy(dst, b->data + offset, size);
    return 0;
}

sl_status help_open_bytes(int way, sl_ledger *ledger, const void *bytes, size_t n,
                          sl_container **out, sl_error *err) {
    if (way == HELP_BY_MEMORY) {
        return sl_container_open(ledger, "bytes", NULL,
                                 &(sl_source){.data = bytes, .size_bytes = n}, out, err);
    }
    if (way == HELP_BY_CALLBACK) {
        static way_bytes ring[16]; /* the callback outlives this call */
        static int i_ring;
        way_bytes *b = &ring[i_ring++ & 15];
        *b = (way_bytes){bytes, n};
        return sl_container_open(ledger, "bytes", NULL,
                                 &(sl_source){.read = way_fetch, .user = b, .size_bytes = n}, out,
                                 err);
    }
    const char *tmp = getenv("TMPDIR");
    char path[512];
    (void)snprintf(path, sizeof path, "%s/sluice-bytes-XXXXXX", tmp != NULL ? tmp : "/tmp");
    const int fd = mkstemp(path);
    if (fd < 0 || (n != 0 && write(fd, bytes, n) != (ssize_t)n) || close(fd) != 0) {
        (void)gguf_need(NULL);
    }
    const sl_status status = sl_container_open(ledger, path, help_way_name(way), NULL, out, err);
    (void)unlink(path);
    return status;
}

/* ---- walking ------------------------------------------------------------------------------------------------------- */

static const char *walk_meta(const sl_container *c, const sl_meta *m, uint64_t *sum) {
    const char *text;
    size_t n;
    int64_t n_text = 0;
    const bool is_text = (m->type == SL_META_ARR ? m->item : m->type) == SL_META_STR;
    if (m->key == NULL || strlen(m->key) > SL_MAX_META_KEY || m->n_item < 0 ||
        sl_meta_find(c, m->key) != m) {
        return "a key is wrong or not found";
    }
    if ((m->type != SL_META_ARR && m->n_item != 1) || m->item == SL_META_ARR) {
        return "a value's shape is wrong";
    }
    sl_cursor at = sl_meta_strings(m);
    while (sl_meta_next_str(&at, &text, &n)) {
        for (size_t i = 0; i < n; i++) {
            *sum += (uint8_t)text[i];
        }
        n_text++;
    }
    if (n_text != (is_text ? m->n_item : 0) ||
        sl_meta_str(m, &text, &n) != (m->type == SL_META_STR)) {
        return "strings are missing";
    }
    for (int64_t i = 0; i < m->n_item && i < 4096; i++) {
        int64_t whole = 0;
        double real = 0;
        bool truth = false;
        const bool has_whole = sl_meta_i64(m, i, &whole), has_real = sl_meta_f64(m, i, &real),
                   has_truth = sl_meta_bool(m, i, &truth);
        if ((has_whole || has_real || has_truth) == is_text || (has_whole && !has_real)) {
            return "a value cannot be read";
        }
        *sum += (uint64_t)whole + (uint64_t)truth + (real > 0);
    }
    return NULL;
}

static const char *walk_tensor(const sl_container *c, const sl_tensor *t, uint64_t *sum) {
    if (sl_tensor_find(c, t->name) != t) {
        return "a tensor is not found";
    }
    if (t->n_dim < 1 || t->n_dim > SL_MAX_DIM || t->i_store < 0 || t->i_store >= c->n_store) {
        return "a tensor's shape or file is wrong";
    }
    sl_store *store = c->store[t->i_store];
    if (t->offset_bytes > store->size_bytes ||
        t->size_bytes > store->size_bytes - t->offset_bytes || t->size_bytes == 0) {
        return "a tensor lies outside its file";
    }
    uint64_t n_elem = 1;
    for (int32_t d = 0; d < SL_MAX_DIM; d++) {
        if (t->dim[d] < 1 || (d >= t->n_dim && t->dim[d] != 1)) {
            return "a dimension is wrong";
        }
        n_elem *= (uint64_t)t->dim[d];
    }
    if (n_elem / (uint64_t)t->type->n_elem * (uint64_t)t->type->n_byte != t->size_bytes) {
        return "a tensor's bytes do not fit its shape";
    }
    uint8_t first = 0, last = 0;
    if (sl_store_read(store, t->offset_bytes, &first, 1, NULL) != SL_OK ||
        sl_store_read(store, t->offset_bytes + t->size_bytes - 1, &last, 1, NULL) != SL_OK) {
        return "a tensor cannot be read";
    }
    *sum += first + last;
    return NULL;
}

const char *help_walk_container(const sl_container *c) {
    volatile uint64_t keep = 0; /* the reads must really happen */
    uint64_t sum = 0;
    const char *wrong = NULL;
    for (int64_t i = 0; i < c->n_meta && wrong == NULL; i++) {
        wrong = walk_meta(c, &c->meta[i], &sum);
    }
    for (int64_t i = 0; i < c->n_tensor && wrong == NULL; i++) {
        wrong = walk_tensor(c, &c->tensor[i], &sum);
    }
    keep = sum;
    (void)keep;
    return wrong;
}
