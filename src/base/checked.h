/* checked.h - arithmetic on sizes that come from files, requests and users.
 *
 * Each function gives false when the true result does not fit, and leaves *out alone. Nothing else in the library
 * may compute with a number that a file supplied. */
#ifndef SL_BASE_CHECKED_H
#define SL_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool sl_add_size(size_t a, size_t b, size_t *out) {
    if (a > SIZE_MAX - b) {
        return false;
    }
    *out = a + b;
    return true;
}

static inline bool sl_mul_size(size_t a, size_t b, size_t *out) {
    if (b != 0 && a > SIZE_MAX / b) {
        return false;
    }
    *out = a * b;
    return true;
}

static inline bool sl_add_u64(uint64_t a, uint64_t b, uint64_t *out) {
    if (a > UINT64_MAX - b) {
        return false;
    }
    *out = a + b;
    return true;
}

static inline bool sl_mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
    if (b != 0 && a > UINT64_MAX / b) {
        return false;
    }
    *out = a * b;
    return true;
}

/* Round up to a multiple of align (a power of two). */
static inline bool sl_align_u64(uint64_t a, uint64_t align, uint64_t *out) {
    if (a > UINT64_MAX - (align - 1)) {
        return false;
    }
    *out = (a + (align - 1)) & ~(align - 1);
    return true;
}

static inline bool sl_is_pow2(uint64_t a) { return a != 0 && (a & (a - 1)) == 0; }

static inline bool sl_u64_to_size(uint64_t a, size_t *out) {
    if (a > SIZE_MAX) {
        return false;
    }
    *out = (size_t)a;
    return true;
}

static inline bool sl_u64_to_i64(uint64_t a, int64_t *out) {
    if (a > (uint64_t)INT64_MAX) {
        return false;
    }
    *out = (int64_t)a;
    return true;
}

static inline bool sl_i64_to_i32(int64_t a, int32_t *out) {
    if (a < INT32_MIN || a > INT32_MAX) {
        return false;
    }
    *out = (int32_t)a;
    return true;
}

/* For sizes that our own limits keep far below overflow (an assert's job elsewhere): round up to a multiple. */
static inline size_t sl_round_up(size_t a, size_t align) {
    return (a + (align - 1)) / align * align;
}

#endif
