/* arena.h - many small things that die together: strings and tables of a model.
 *
 *     chunk  [ header | used ........ | free ]  ->  chunk  ->  ...
 *
 * Each chunk is one ledger allocation; a thing larger than a chunk gets one of its own.
 * Threads: one at a time. */
#ifndef SL_BASE_ARENA_H
#define SL_BASE_ARENA_H

#include "base/ledger.h"

typedef struct sl_arena_chunk sl_arena_chunk;

typedef struct sl_arena {
    sl_ledger *ledger;
    sl_account account;
    size_t chunk_bytes;
    sl_arena_chunk *first; /* the one being filled */
} sl_arena;

void sl_arena_init(sl_arena *arena, sl_ledger *ledger, sl_account account, size_t chunk_bytes);
void sl_arena_done(sl_arena *arena); /* releases everything; may be called twice */

/* size bytes aligned to 16, undefined. */
sl_status sl_arena_take(sl_arena *arena, size_t size, void **out, const char *what, sl_error *err);
/* A NUL-terminated copy of n bytes. */
sl_status sl_arena_text(sl_arena *arena, const char *text, size_t n, const char **out,
                        const char *what, sl_error *err);

#endif
