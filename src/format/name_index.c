/* name_index.c - see name_index.h. The hash is SipHash-1-3 (Aumasson, Bernstein 2012), one compression round a word and
 * three at the end: enough against flooding, where nobody sees a hash value. */
#include "format/name_index.h"

#include <string.h>

#include "base/error.h"
#include "base/os.h"

static inline uint64_t sip_rotl(uint64_t x, int n) { return (x << n) | (x >> (64 - n)); }

static inline void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = sip_rotl(v[1], 13) ^ v[0];
    v[3] = sip_rotl(v[3], 16) ^ v[2];
    v[0] = sip_rotl(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = sip_rotl(v[1], 17) ^ v[2];
    v[3] = sip_rotl(v[3], 21) ^ v[0];
    v[2] = sip_rotl(v[2], 32);
}

static uint64_t sip_hash(const uint64_t key[2], const char *text, size_t n) {
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
                     key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
    size_t i = 0;
    for (;;) {
        const size_t n_word = n - i < 8 ? n - i : 8;
        uint64_t word = 0;
        for (size_t k = 0; k < n_word; k++) {
            word |= (uint64_t)(uint8_t)text[i + k] << (8 * k);
        }
        i += n_word;
        if (n_word < 8) {
            word |= (uint64_t)n << 56;
        }
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
        if (n_word < 8) {
            break;
        }
    }
    v[2] ^= 0xff;
    for (int k = 0; k < 3; k++) {
        sip_round(v);
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static const char *index_name(const sl_name_index *index, uint32_t row) {
    return *(const char *const *)(const void *)(index->rows + (size_t)row * index->row_bytes);
}

/* The slot that holds the name, or the empty one where it would go. */
static size_t index_slot(const sl_name_index *index, const char *name) {
    const size_t mask = index->n_slot - 1;
    size_t at = (size_t)sip_hash(index->key, name, strlen(name)) & mask;
    while (index->slot[at] != 0 && strcmp(index_name(index, index->slot[at] - 1), name) != 0) {
        at = (at + 1) & mask;
    }
    return at;
}

sl_status sl_name_index_build(sl_name_index *index, sl_arena *arena, const void *rows,
                              size_t row_bytes, int64_t n_row, int64_t *i_twin, int64_t *i_first,
                              sl_error *err) {
    size_t n_slot = 4;
    while (n_slot < (size_t)n_row * 2) {
        n_slot *= 2;
    }
    void *slot;
    SL_TRY(sl_arena_take(arena, n_slot * sizeof(uint32_t), &slot, "an index of names", err));
    memset(slot, 0, n_slot * sizeof(uint32_t));
    *index = (sl_name_index){.rows = (const uint8_t *)rows,
                             .row_bytes = row_bytes,
                             .slot = (uint32_t *)slot,
                             .n_slot = n_slot,
                             .key = {sl_os_random(), sl_os_random()}};
    *i_twin = -1;
    for (uint32_t row = 0; row < (uint32_t)n_row; row++) {
        const size_t at = index_slot(index, index_name(index, row));
        if (index->slot[at] != 0) {
            *i_twin = (int64_t)row;
            if (i_first != NULL) {
                *i_first = (int64_t)index->slot[at] - 1;
            }
            return SL_OK;
        }
        index->slot[at] = row + 1;
    }
    return SL_OK;
}

int64_t sl_name_index_find(const sl_name_index *index, const char *name) {
    if (index->n_slot == 0) {
        return -1;
    }
    return (int64_t)index->slot[index_slot(index, name)] - 1;
}
