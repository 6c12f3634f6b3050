/* help_gguf.c - see help_gguf.h. Written from the layout in gguf.c's head, sharing no code with the reader. */
#include "help_gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    g->tensor = gguf_need(realloc(g->tensor, (size_t)(g->n_tensor + 1) * sizeof *g->tensor));
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
