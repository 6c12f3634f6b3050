/* gguf_walk.h - one pass over the header of one GGUF file; shared by gguf.c and gguf_walk.c only. */
#ifndef SL_FORMAT_GGUF_WALK_H
#define SL_FORMAT_GGUF_WALK_H

#include "format/container.h"

/* The window of the first walk. It must hold the longest thing that is looked at in one piece, a key. */
#define SL_GGUF_WINDOW_BYTES ((size_t)65536)
_Static_assert(SL_GGUF_WINDOW_BYTES >= SL_MAX_META_KEY, "a key must fit the window");

#define SL_GGUF_HEAD_BYTES 24

/* A key as error messages show it: at most this much. */
#define SL_GGUF_SHOWN_KEY 96

typedef struct sl_gguf_reader {
    sl_store *store;
    uint64_t at;
    const uint8_t *window; /* the bytes at window_at, n_window of them */
    uint64_t window_at;
    size_t n_window;
    uint8_t *buffer; /* SL_GGUF_WINDOW_BYTES to refill; NULL: the window is the whole header */
    /* What is being read, for errors: "metadata entry" 3. */
    const char *what;
    uint64_t i_what;
} sl_gguf_reader;

/* One file of a model. */
typedef struct sl_gguf_part {
    sl_gguf_reader r;
    uint32_t version;
    uint64_t n_tensor, n_meta;
    uint64_t alignment;
    int64_t split_no, split_count, split_tensors; /* -1: the file does not say */
    sl_meta *meta;                                /* [n_meta]; NULL during the first walk */
    sl_arena *arena;                              /* of keys */
    void *header;                                 /* our copy; NULL where the store has addresses */
    size_t n_header;
} sl_gguf_part;

/* The three parts of a header, in this order, each from where the last one ended. Everything that a header alone can tell
 * is checked in each walk. */
sl_status sl_gguf_walk_head(sl_gguf_part *part, sl_error *err);
sl_status sl_gguf_walk_meta(sl_gguf_part *part, sl_error *err);
/* rows: room for part->n_tensor, with offsets that count from the start of the data; NULL: only check. The names go into
 * the arena. */
sl_status sl_gguf_walk_tensors(sl_gguf_part *part, sl_tensor *rows, int32_t i_store,
                               sl_arena *arena, sl_error *err);
/* From offsets in the data to offsets in the file, once the walk is over; each tensor must lie inside the file. */
sl_status sl_gguf_place(const sl_gguf_part *part, sl_tensor *rows, sl_error *err);

#endif
