/* arena.c - see arena.h. */
#include "base/arena.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"

struct sl_arena_chunk {
    sl_arena_chunk *next;
    size_t size; /* of the allocation, this header included */
    size_t used;
};

#define ARENA_HEAD sl_round_up(sizeof(sl_arena_chunk), 16)

void sl_arena_init(sl_arena *arena, sl_ledger *ledger, sl_account account, size_t chunk_bytes) {
    *arena =
        (sl_arena){.ledger = ledger, .account = account, .chunk_bytes = chunk_bytes, .first = NULL};
}

void sl_arena_done(sl_arena *arena) {
    while (arena->first != NULL) {
        sl_arena_chunk *next = arena->first->next;
        sl_release(arena->ledger, arena->account, arena->first, arena->first->size);
        arena->first = next;
    }
}

sl_status sl_arena_take(sl_arena *arena, size_t size, void **out, const char *what, sl_error *err) {
    if (size > SIZE_MAX / 4) {
        return SL_FAIL(err, SL_ENOMEM, "%s: %zu bytes are more than this machine can address", what,
                       size);
    }
    size = sl_round_up(size, 16);
    sl_arena_chunk *chunk = arena->first;
    if (chunk == NULL || chunk->size - chunk->used < size) {
        const bool own = size > arena->chunk_bytes / 4;
        const size_t bytes = ARENA_HEAD + (own ? size : arena->chunk_bytes);
        void *p;
        SL_TRY(sl_alloc(arena->ledger, arena->account, bytes, &p, what, err));
        chunk = (sl_arena_chunk *)p;
        chunk->size = bytes;
        chunk->used = ARENA_HEAD;
        if (own && arena->first != NULL) { /* keep filling the current chunk */
            chunk->next = arena->first->next;
            arena->first->next = chunk;
        } else {
            chunk->next = arena->first;
            arena->first = chunk;
        }
    }
    *out = (uint8_t *)chunk + chunk->used;
    chunk->used += size;
    return SL_OK;
}

sl_status sl_arena_text(sl_arena *arena, const char *text, size_t n, const char **out,
                        const char *what, sl_error *err) {
    void *p;
    SL_TRY(sl_arena_take(arena, n + 1, &p, what, err));
    if (n != 0) {
        memcpy(p, text, n);
    }
    ((char *)p)[n] = '\0';
    *out = (const char *)p;
    return SL_OK;
}
