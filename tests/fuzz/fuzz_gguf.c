/* fuzz_gguf.c - any bytes as a GGUF file: opened from memory and through a callback, which must agree, and walked whole. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/container.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct fuzz_bytes {
    const uint8_t *data;
    size_t size;
} fuzz_bytes;

static int fuzz_fetch(void *user, uint64_t offset, void *dst, size_t size) {
    const fuzz_bytes *b = user;
    if (offset > b->size || size > b->size - offset) {
        abort(); /* the store asked for what it does not have */
    }
    memcpy(dst, b->data + offset, size);
    return 0;
}

static void fuzz_must(bool good) {
    if (!good) {
        abort();
    }
}

static volatile uint64_t fuzz_sink; /* keeps the reads below from being optimised away */

static void fuzz_walk_meta(const sl_meta *m) {
    fuzz_must(m->key != NULL && strlen(m->key) <= SL_MAX_META_KEY && m->n_item >= 0);
    uint64_t sum = 0;
    const char *text;
    size_t n;
    int64_t n_text = 0;
    sl_cursor at = sl_meta_strings(m);
    while (sl_meta_next_str(&at, &text, &n)) {
        for (size_t i = 0; i < n; i++) {
            sum += (uint8_t)text[i];
        }
        n_text++;
    }
    const bool is_text = (m->type == SL_META_ARR ? m->item : m->type) == SL_META_STR;
    fuzz_must(n_text == (is_text ? m->n_item : 0));
    fuzz_must(sl_meta_str(m, &text, &n) == (m->type == SL_META_STR));
    for (int64_t i = 0; i < m->n_item && i < 4096; i++) {
        int64_t whole = 0;
        double real = 0;
        bool truth = false;
        const bool has_whole = sl_meta_i64(m, i, &whole), has_real = sl_meta_f64(m, i, &real),
                   has_truth = sl_meta_bool(m, i, &truth);
        fuzz_must((has_whole || has_real || has_truth) != is_text);
        sum += (uint64_t)whole + (uint64_t)truth + (real > 0);
    }
    fuzz_sink += sum;
}

static void fuzz_walk(const sl_container *c) {
    for (int64_t i = 0; i < c->n_meta; i++) {
        fuzz_walk_meta(&c->meta[i]);
        fuzz_must(sl_meta_find(c, c->meta[i].key) == &c->meta[i]);
    }
    for (int64_t i = 0; i < c->n_tensor; i++) {
        const sl_tensor *t = &c->tensor[i];
        fuzz_must(sl_tensor_find(c, t->name) == t);
        fuzz_must(t->n_dim >= 1 && t->n_dim <= SL_MAX_DIM && t->i_store == 0);
        fuzz_must(t->offset_bytes <= c->store[0]->size_bytes &&
                  t->size_bytes <= c->store[0]->size_bytes - t->offset_bytes);
        uint64_t n_elem = 1;
        for (int32_t d = 0; d < SL_MAX_DIM; d++) {
            fuzz_must(t->dim[d] >= 1);
            n_elem *= (uint64_t)t->dim[d];
        }
        fuzz_must(n_elem / (uint64_t)t->type->n_elem * (uint64_t)t->type->n_byte == t->size_bytes);
        uint8_t first;
        fuzz_must(sl_store_read(c->store[0], t->offset_bytes, &first, 1, NULL) == SL_OK);
        fuzz_sink += first;
    }
}

static sl_status fuzz_open(sl_ledger *ledger, const sl_source *source, sl_error *err) {
    sl_container *c = NULL;
    memset(err, 0, sizeof *err);
    const sl_status status = sl_container_open(ledger, "fuzz", NULL, source, &c, err);
    if (status == SL_OK) {
        fuzz_walk(c);
    } else {
        fuzz_must(c == NULL && err->code == status && strstr(err->text, "fuzz") != NULL);
    }
    sl_container_close(c);
    sl_memory memory;
    sl_ledger_read(ledger, &memory);
    fuzz_must(memory.total_bytes == 0);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) {
        return 0; /* a source of no bytes has no data pointer */
    }
    sl_ledger ledger;
    sl_error a, b;
    sl_ledger_init(&ledger, (size_t)64 << 20);
    fuzz_bytes bytes = {data, size};
    const sl_status sa = fuzz_open(&ledger, &(sl_source){.data = data, .size_bytes = size}, &a);
    const sl_status sb = fuzz_open(
        &ledger, &(sl_source){.read = fuzz_fetch, .user = &bytes, .size_bytes = size}, &b);
    fuzz_must(sa == sb && strcmp(a.text, b.text) == 0);
    return 0;
}
