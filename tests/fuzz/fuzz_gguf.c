/* fuzz_gguf.c - any bytes as a GGUF file: opened from memory and through a callback, which must agree, and walked whole. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "help_gguf.h"

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

static sl_status fuzz_open(sl_ledger *ledger, const sl_source *source, sl_error *err) {
    sl_container *c = NULL;
    memset(err, 0, sizeof *err);
    const sl_status status = sl_container_open(ledger, "fuzz", NULL, source, &c, err);
    if (status == SL_OK) {
        fuzz_must(help_walk_container(c) == NULL);
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
