/* store_mmap.c - a file mapped into the address space.
 *
 * The system keeps its pages and may drop them at any time, so they are reported (ledger->mapped) and never booked. The
 * descriptor is closed as soon as the map stands.
 *
 * A file that another process cuts short while it is mapped makes the system end this one (SIGBUS): whoever replaces
 * models in place should write a new file and rename it.
 *
 * Threads     any number; nothing changes after open. */
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "store/store.h"

typedef struct store_mmap {
    sl_store base;
    const uint8_t *data; /* NULL for an empty file */
} store_mmap;

static sl_status store_mmap_open(sl_ledger *ledger, const char *path, const sl_source *source,
                                 const char *name, sl_store **out, sl_error *err) {
    (void)source;
    sl_os_file file;
    SL_TRY(sl_os_open(path, false, &file, err));
    const void *data = NULL;
    sl_store *store = NULL;
    sl_status status = sl_os_map_file(&file, &data, path, err);
    if (status == SL_OK) {
        status = sl_store_make(ledger, &sl_store_mmap, sizeof(store_mmap), name, &store, err);
        if (status != SL_OK) {
            sl_os_unmap_file(data, file.size_bytes);
        }
    }
    sl_os_close(&file);
    if (status != SL_OK) {
        return status;
    }
    store->size_bytes = file.size_bytes;
    ((store_mmap *)store)->data = (const uint8_t *)data;
    atomic_fetch_add(&ledger->mapped, (size_t)file.size_bytes);
    *out = store;
    return SL_OK;
}

static void store_mmap_close(sl_store *store) {
    sl_os_unmap_file(((store_mmap *)store)->data, store->size_bytes);
    atomic_fetch_sub(&store->ledger->mapped, (size_t)store->size_bytes);
    sl_store_unmake(store, sizeof(store_mmap));
}

static sl_status store_mmap_read(sl_store *store, uint64_t offset, void *dst, size_t size,
                                 sl_error *err) {
    (void)err;
    memcpy(dst, ((store_mmap *)store)->data + offset, size);
    return SL_OK;
}

static const void *store_mmap_map(sl_store *store, uint64_t offset, size_t size) {
    (void)size;
    const uint8_t *data = ((store_mmap *)store)->data;
    return data == NULL ? NULL : data + offset;
}

const sl_store_kind sl_store_mmap = {
    .name = "mmap",
    .from_path = true,
    .open = store_mmap_open,
    .close = store_mmap_close,
    .read = store_mmap_read,
    .map = store_mmap_map,
};
