/* cursor.h - the only way to read raw bytes: a position in a block of memory that can't leave it.
 *
 * The failed flag is sticky: read twenty things, check once. A failed read gives zero and moves nothing. All integers
 * are little-endian. */
#ifndef SL_BASE_CURSOR_H
#define SL_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct sl_cursor {
    const uint8_t *data;
    size_t size;
    size_t at;
    bool failed;
} sl_cursor;

static inline sl_cursor sl_cursor_make(const void *data, size_t size) {
    return (sl_cursor){.data = (const uint8_t *)data, .size = size, .at = 0, .failed = false};
}

static inline size_t sl_cursor_left(const sl_cursor *c) { return c->failed ? 0 : c->size - c->at; }

/* n bytes, borrowed; NULL when fewer are left (n = 0 gives a valid pointer). */
static inline const uint8_t *sl_cursor_bytes(sl_cursor *c, uint64_t n) {
    if (c->failed || n > c->size - c->at) {
        c->failed = true;
        return NULL;
    }
    const uint8_t *p = c->data + c->at;
    c->at += (size_t)n;
    return p;
}

static inline uint8_t sl_cursor_u8(sl_cursor *c) {
    const uint8_t *p = sl_cursor_bytes(c, 1);
    return p != NULL ? p[0] : 0;
}

static inline uint16_t sl_cursor_u16(sl_cursor *c) {
    const uint8_t *p = sl_cursor_bytes(c, 2);
    return p != NULL ? (uint16_t)(p[0] | ((unsigned)p[1] << 8)) : 0;
}

static inline uint32_t sl_cursor_u32(sl_cursor *c) {
    const uint8_t *p = sl_cursor_bytes(c, 4);
    return p != NULL ? (uint32_t)p[0] | ((uint32_t)p[1] << 8) | ((uint32_t)p[2] << 16) |
                           ((uint32_t)p[3] << 24)
                     : 0;
}

static inline uint64_t sl_cursor_u64(sl_cursor *c) {
    const uint64_t low = sl_cursor_u32(c);
    const uint64_t high = sl_cursor_u32(c);
    return c->failed ? 0 : low | (high << 32);
}

static inline float sl_cursor_f32(sl_cursor *c) {
    const uint32_t bits = sl_cursor_u32(c);
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline double sl_cursor_f64(sl_cursor *c) {
    const uint64_t bits = sl_cursor_u64(c);
    double f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

#endif
