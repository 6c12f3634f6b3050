/* store_callback.c - bytes that the host fetches: an archive's member, a browser's blob, a network.
 *
 * Threads     as the host's read function promises (sluice.h: it may be called from several at once). */
#include "base/error.h"
#include "store/store.h"

typedef struct store_callback {
    sl_store base;
    int (*fetch)(void *user, uint64_t offset, void *dst, size_t size);
    void *user;
} store_callback;

static sl_status store_callback_open(sl_ledger *ledger, const char *path, const sl_source *source,
                                     const char *name, sl_store **out, sl_error *err) {
    (void)path;
    sl_store *store;
    SL_TRY(sl_store_make(ledger, &sl_store_callback, sizeof(store_callback), name, &store, err));
    store->size_bytes = source->size_bytes;
    ((store_callback *)store)->fetch = source->read;
    ((store_callback *)store)->user = source->user;
    *out = store;
    return SL_OK;
}

static void store_callback_close(sl_store *store) {
    sl_store_unmake(store, sizeof(store_callback));
}

static sl_status store_callback_read(sl_store *store, uint64_t offset, void *dst, size_t size,
                                     sl_error *err) {
    const store_callback *s = (const store_callback *)store;
    const int code = s->fetch(s->user, offset, dst, size);
    if (code != 0) {
        return SL_FAIL(err, SL_EIO, "%s: the host's read of %zu bytes at %llu failed (it gave %d)",
                       store->name, size, (unsigned long long)offset, code);
    }
    return SL_OK;
}

const sl_store_kind sl_store_callback = {
    .name = "callback",
    .from_path = false,
    .open = store_callback_open,
    .close = store_callback_close,
    .read = store_callback_read,
    .map = NULL,
};
