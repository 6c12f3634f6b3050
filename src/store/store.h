/* store.h - bytes at an offset.
 *
 * A store is a read-only run of bytes: a mapped file, a file read unbuffered, a block of memory, a host's callback.
 * Each kind is one file and one row of stores.def.
 *
 * Threads: read and map may be called from several threads at once. */
#ifndef SL_STORE_STORE_H
#define SL_STORE_STORE_H

#include "base/ledger.h"

typedef struct sl_store sl_store;

/* What a kind supplies. */
typedef struct sl_store_kind {
    const char *name;
    bool from_path; /* can be opened by name (the user's --store); otherwise from an sl_source */
    /* Exactly one of path and source is non-NULL. `name` is for errors. */
    sl_status (*open)(sl_ledger *ledger, const char *path, const sl_source *source,
                      const char *name, sl_store **out, sl_error *err);
    void (*close)(sl_store *store);
    sl_status (*read)(sl_store *store, uint64_t offset, void *dst, size_t size, sl_error *err);
    const void *(*map)(sl_store *store, uint64_t offset,
                       size_t size); /* NULL: this kind has no addresses */
} sl_store_kind;

/* The part that all kinds begin with. */
struct sl_store {
    const sl_store_kind *kind;
    sl_ledger *ledger;
    uint64_t size_bytes;
    const char *name; /* for errors; owned by the store */
};

#define X(name, listed) extern const sl_store_kind sl_store_##name;
#include "store/stores.def"
#undef X

const sl_store_kind *sl_store_find(const char *name); /* NULL: no such kind */
const char *sl_store_names(void);                     /* of those that open a path: "mmap direct" */

/* kind NULL: mmap. SL_EINVAL for an unknown kind (the known ones are named), and what the kind's open says. */
sl_status sl_store_open_path(sl_ledger *ledger, const char *kind, const char *path, sl_store **out,
                             sl_error *err);
/* source->data: memory; source->read: callback. name may be NULL. */
sl_status sl_store_open_source(sl_ledger *ledger, const sl_source *source, const char *name,
                               sl_store **out, sl_error *err);
void sl_store_close(sl_store *store);

/* Exactly size bytes at offset. Ranges outside the store are SL_EIO naming both, checked here once for all kinds.
 * Any alignment: the direct store goes through an aligned bounce buffer where it must (allocated at open). */
sl_status sl_store_read(sl_store *store, uint64_t offset, void *dst, size_t size, sl_error *err);
/* The bytes in place, or NULL if the kind has no addresses or the range is outside. */
const void *sl_store_map(sl_store *store, uint64_t offset, size_t size);

/* ---- for the kinds: the common part of open and close ---- */

/* A zeroed block of struct_bytes (account io) that begins with a filled sl_store, a copy of the name behind it. */
sl_status sl_store_make(sl_ledger *ledger, const sl_store_kind *kind, size_t struct_bytes,
                        const char *name, sl_store **out, sl_error *err);
void sl_store_unmake(sl_store *store, size_t struct_bytes);

#endif
