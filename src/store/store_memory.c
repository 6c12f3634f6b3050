/* store_memory.c - a block of memory that the host lends.
 *
 * Threads     any number; nothing changes after open. */
#include <string.h>

#include "base/error.h"
#include "store/store.h"

typedef struct store_memory {
    sl_store base;
    const uint8_t *data;
} store_memory;

static sl_status store_memory_open(sl_ledger *ledger, const char *path, const sl_source *source,
                                   const char *name, sl_store **out, sl_error *err) {
    (void)path;
    sl_store *store;
    SL_TRY(sl_store_make(ledger, &sl_store_memory, sizeof(store_memory), name, &store, err));
    store->size_bytes = source->size_bytes;
    ((store_memory *)store)->data = (const uint8_t *)source->data;
    *out = store;
    return SL_OK;
}

static void store_memory_close(sl_store *store) { sl_store_unmake(store, sizeof(store_memory)); }

static sl_status store_memory_read(sl_store *store, uint64_t offset, void *dst, size_t size,
                                   sl_error *err) {
    (void)err;
    memcpy(dst, ((store_memory *)store)->data + offset, size);
    return SL_OK;
}

static const void *store_memory_map(sl_store *store, uint64_t offset, size_t size) {
    (void)size;
    return ((store_memory *)store)->data + offset;
}

const sl_store_kind sl_store_memory = {
    .name = "memory",
    .from_path = false,
    .open = store_memory_open,
    .close = store_memory_close,
    .read = store_memory_read,
    .map = store_memory_map,
};
