/* store.c - the kinds of store, and what is the same for all of them.
 *
 * Every read passes the range check here, so a kind never sees an offset outside itself.
 *
 * Threads     read and map only read the store's fixed part; what a kind changes while reading it guards itself.
 * Not here    the kinds (store_<name>.c); what the bytes mean (format/). */
#include "store/store.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"

static const sl_store_kind *const store_kinds[] = {
#define X(name, listed) &sl_store_##name,
#include "store/stores.def"
#undef X
};

const sl_store_kind *sl_store_find(const char *name) {
    for (size_t i = 0; i < sizeof store_kinds / sizeof store_kinds[0]; i++) {
        if (strcmp(store_kinds[i]->name, name) == 0) {
            return store_kinds[i];
        }
    }
    return NULL;
}

const char *sl_store_names(void) {
    return ""
#define X(name, listed) listed
#include "store/stores.def"
#undef X
        ;
}

sl_status sl_store_open_path(sl_ledger *ledger, const char *kind, const char *path, sl_store **out,
                             sl_error *err) {
    if (path == NULL || path[0] == '\0') {
        return SL_FAIL(err, SL_EINVAL, "a file needs a path; an empty one was given");
    }
    const sl_store_kind *k = kind == NULL ? &sl_store_mmap : sl_store_find(kind);
    if (k == NULL || !k->from_path) {
        return SL_FAIL(err, SL_EINVAL, "there is no store '%.40s' for files; there are: %s", kind,
                       sl_store_names());
    }
    return k->open(ledger, path, NULL, path, out, err);
}

sl_status sl_store_open_source(sl_ledger *ledger, const sl_source *source, const char *name,
                               sl_store **out, sl_error *err) {
    if ((source->data != NULL) == (source->read != NULL)) {
        return SL_FAIL(err, SL_EINVAL, "a source needs either data or a read function, not %s",
                       source->data != NULL ? "both" : "neither");
    }
    if (source->data != NULL) {
        return sl_store_memory.open(ledger, NULL, source, name != NULL ? name : "(memory)", out,
                                    err);
    }
    return sl_store_callback.open(ledger, NULL, source, name != NULL ? name : "(source)", out, err);
}

void sl_store_close(sl_store *store) {
    if (store != NULL) {
        store->kind->close(store);
    }
}

static bool store_has(const sl_store *store, uint64_t offset, size_t size) {
    return offset <= store->size_bytes && size <= store->size_bytes - offset;
}

sl_status sl_store_read(sl_store *store, uint64_t offset, void *dst, size_t size, sl_error *err) {
    if (!store_has(store, offset, size)) {
        return SL_FAIL(err, SL_EIO, "%s: %zu bytes at %llu are outside its %llu bytes", store->name,
                       size, (unsigned long long)offset, (unsigned long long)store->size_bytes);
    }
    return size == 0 ? SL_OK : store->kind->read(store, offset, dst, size, err);
}

const void *sl_store_map(sl_store *store, uint64_t offset, size_t size) {
    if (store->kind->map == NULL || !store_has(store, offset, size)) {
        return NULL;
    }
    return store->kind->map(store, offset, size);
}

sl_status sl_store_make(sl_ledger *ledger, const sl_store_kind *kind, size_t struct_bytes,
                        const char *name, sl_store **out, sl_error *err) {
    const size_t n_name = strlen(name) + 1;
    size_t bytes;
    if (!sl_add_size(struct_bytes, n_name, &bytes)) {
        return SL_FAIL(err, SL_EINVAL, "a name of %zu bytes is too long", n_name - 1);
    }
    void *p;
    SL_TRY(sl_alloc_zero(ledger, SL_ACCOUNT_IO, 1, bytes, &p, "a store", err));
    char *copy = (char *)p + struct_bytes;
    memcpy(copy, name, n_name);
    sl_store *store = (sl_store *)p;
    store->kind = kind;
    store->ledger = ledger;
    store->name = copy;
    *out = store;
    return SL_OK;
}

void sl_store_unmake(sl_store *store, size_t struct_bytes) {
    sl_release(store->ledger, SL_ACCOUNT_IO, store, struct_bytes + strlen(store->name) + 1);
}
