/* name_index.h - from a name to its row, for directories that a file supplies.
 *
 * An open-addressing hash set of row numbers. The hash is keyed with a secret of the process (SipHash-1-3), because the
 * names come from a file: without the key a file could be made whose names all fall on one slot, and opening it would
 * take quadratic time. The key decides only where things lie, never what is found.
 *
 * Rows are structs whose first field is the name (NUL-terminated). Threads: read-only after build. */
#ifndef SL_FORMAT_NAME_INDEX_H
#define SL_FORMAT_NAME_INDEX_H

#include "base/arena.h"

typedef struct sl_name_index {
    const uint8_t *rows; /* borrowed */
    size_t row_bytes;
    uint32_t *slot; /* row + 1, 0 empty; in the arena */
    size_t n_slot;  /* a power of two, at least twice the rows; 0: not built */
    uint64_t key[2];
} sl_name_index;

/* n_row below 2^31. *i_twin is -1, or the first row whose name an earlier row has too (*i_first, may be NULL); the index
 * is then of no use. Memory only from the arena. */
sl_status sl_name_index_build(sl_name_index *index, sl_arena *arena, const void *rows,
                              size_t row_bytes, int64_t n_row, int64_t *i_twin, int64_t *i_first,
                              sl_error *err);
int64_t sl_name_index_find(const sl_name_index *index, const char *name); /* -1: absent */

#endif
