/* store_direct.c - a file read past the page cache, so that the memory a model takes is the memory we booked.
 *
 * Unbuffered reads want offset, size and destination on multiples of SL_OS_DIRECT_ALIGN. A request is cut into
 *
 *     | head | whole blocks ............................. | tail |
 *       via    straight into dst where dst has the same     via
 *     bounce   distance to a block's border as the offset   bounce
 *
 * and goes through the bounce buffer altogether where dst is not so placed. Where the file system refuses unbuffered
 * access the file is read plainly (sl_os_open decides).
 *
 * Invariants  the bounce buffer is made at open; reading allocates nothing.
 * Threads     the bounce buffer has one user at a time (mutex); reads straight into dst run side by side. */
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "store/store.h"

/* One request of this size keeps a storage device busy; more would only be memory. */
#define DIRECT_BOUNCE_BYTES ((size_t)1 << 20)

typedef struct store_direct {
    sl_store base;
    sl_os_file file;
    sl_os_mutex mutex;
    void *block;     /* DIRECT_BOUNCE_BYTES and what alignment costs; NULL when reads are plain */
    uint8_t *bounce; /* inside block, aligned */
} store_direct;

#define DIRECT_BLOCK_BYTES (DIRECT_BOUNCE_BYTES + SL_OS_DIRECT_ALIGN)

static sl_status direct_init(store_direct *s, sl_error *err) {
    if (s->file.direct) {
        SL_TRY(sl_alloc(s->base.ledger, SL_ACCOUNT_IO, DIRECT_BLOCK_BYTES, &s->block,
                        "the buffer of the direct store", err));
        const size_t over = (uintptr_t)s->block % SL_OS_DIRECT_ALIGN;
        s->bounce = (uint8_t *)s->block + (over != 0 ? SL_OS_DIRECT_ALIGN - over : 0);
    }
    const sl_status status = sl_os_mutex_init(&s->mutex, err);
    if (status != SL_OK) {
        sl_release(s->base.ledger, SL_ACCOUNT_IO, s->block, DIRECT_BLOCK_BYTES);
    }
    return status;
}

static sl_status store_direct_open(sl_ledger *ledger, const char *path, const sl_source *source,
                                   const char *name, sl_store **out, sl_error *err) {
    (void)source;
    sl_os_file file;
    SL_TRY(sl_os_open(path, true, &file, err));
    sl_store *store;
    sl_status status =
        sl_store_make(ledger, &sl_store_direct, sizeof(store_direct), name, &store, err);
    if (status != SL_OK) {
        sl_os_close(&file);
        return status;
    }
    store->size_bytes = file.size_bytes;
    store_direct *s = (store_direct *)store;
    s->file = file;
    status = direct_init(s, err);
    if (status != SL_OK) {
        sl_os_close(&file);
        sl_store_unmake(store, sizeof(store_direct));
        return status;
    }
    *out = store;
    return SL_OK;
}

static void store_direct_close(sl_store *store) {
    store_direct *s = (store_direct *)store;
    sl_os_mutex_done(&s->mutex);
    sl_release(store->ledger, SL_ACCOUNT_IO, s->block, DIRECT_BLOCK_BYTES);
    sl_os_close(&s->file);
    sl_store_unmake(store, sizeof(store_direct));
}

/* The file's size was taken at open and every request lies inside it, so less than asked for means that it shrank. */
static sl_status direct_shrank(const store_direct *s, uint64_t end, uint64_t wanted,
                               sl_error *err) {
    return SL_FAIL(err, SL_EIO,
                   "%s: the file had %llu bytes when it was opened and now ends at %llu, before "
                   "%llu; it was changed while in use",
                   s->base.name, (unsigned long long)s->base.size_bytes, (unsigned long long)end,
                   (unsigned long long)wanted);
}

/* Up to one bounce buffer of bytes, starting with the block that holds `offset`; *n_out is how many were copied. */
static sl_status direct_bounce(store_direct *s, uint64_t offset, uint8_t *dst, size_t size,
                               size_t *n_out, sl_error *err) {
    const size_t skip = (size_t)(offset % SL_OS_DIRECT_ALIGN);
    size_t n = DIRECT_BOUNCE_BYTES - skip;
    if (n > size) {
        n = size;
    }
    if (((uintptr_t)dst - offset) % SL_OS_DIRECT_ALIGN == 0 && skip != 0 &&
        n > SL_OS_DIRECT_ALIGN - skip) {
        n = SL_OS_DIRECT_ALIGN - skip; /* only the head: the rest can go straight into dst */
    }
    const size_t want =
        (skip + n + SL_OS_DIRECT_ALIGN - 1) / SL_OS_DIRECT_ALIGN * SL_OS_DIRECT_ALIGN;
    size_t got = 0;
    sl_os_mutex_lock(&s->mutex);
    sl_status status =
        sl_os_read(&s->file, offset - skip, s->bounce, want, &got, s->base.name, err);
    if (status == SL_OK && got < skip + n) {
        status = direct_shrank(s, offset - skip + got, offset + n, err);
    }
    if (status == SL_OK) {
        memcpy(dst, s->bounce + skip, n);
    }
    sl_os_mutex_unlock(&s->mutex);
    *n_out = n;
    return status;
}

static sl_status store_direct_read(sl_store *store, uint64_t offset, void *dst, size_t size,
                                   sl_error *err) {
    store_direct *s = (store_direct *)store;
    uint8_t *to = (uint8_t *)dst;
    while (size != 0) {
        size_t n = size;
        if (!s->file.direct) {
            size_t got = 0;
            SL_TRY(sl_os_read(&s->file, offset, to, n, &got, store->name, err));
            if (got != n) {
                return direct_shrank(s, offset + got, offset + n, err);
            }
        } else if (offset % SL_OS_DIRECT_ALIGN == 0 && (uintptr_t)to % SL_OS_DIRECT_ALIGN == 0 &&
                   size >= SL_OS_DIRECT_ALIGN) {
            n = size / SL_OS_DIRECT_ALIGN * SL_OS_DIRECT_ALIGN;
            size_t got = 0;
            SL_TRY(sl_os_read(&s->file, offset, to, n, &got, store->name, err));
            if (got != n) {
                return direct_shrank(s, offset + got, offset + n, err);
            }
        } else {
            SL_TRY(direct_bounce(s, offset, to, size, &n, err));
        }
        offset += n;
        to += n;
        size -= n;
    }
    return SL_OK;
}

const sl_store_kind sl_store_direct = {
    .name = "direct",
    .from_path = true,
    .open = store_direct_open,
    .close = store_direct_close,
    .read = store_direct_read,
    .map = NULL,
};
