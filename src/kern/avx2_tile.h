/* avx2_tile.h - shape of the tiles of quantised matrix products, and how far ahead weights are fetched. */
#ifndef SL_KERN_AVX2_TILE_H
#define SL_KERN_AVX2_TILE_H

#include "kern/avx2.h"

/* Columns that share one unpacking of the weights. */
#define AVX2_COLS 32

/* Eight rows are read side by side. Rows follow each other in memory, so what comes after these eight is the same place
 * eight rows on: it is fetched while this place is worked on. Long rows would be evicted again before they are used;
 * there the place is a fixed distance on in the same row. Prefetching beyond the end is harmless. */
AVX2_INLINE size_t avx2_ahead(size_t w_stride) { return w_stride <= 2048 ? 8 * w_stride : 512; }

AVX2_INLINE void avx2_fetch(const uint8_t *p, size_t off) {
    _mm_prefetch((const void *)((uintptr_t)p + off), _MM_HINT_T0);
}

AVX2_INLINE void avx2_fetch8(const avx2_rows *rows, size_t off) {
    avx2_fetch(rows->at[0], off);
    avx2_fetch(rows->at[1], off);
    avx2_fetch(rows->at[2], off);
    avx2_fetch(rows->at[3], off);
    avx2_fetch(rows->at[4], off);
    avx2_fetch(rows->at[5], off);
    avx2_fetch(rows->at[6], off);
    avx2_fetch(rows->at[7], off);
}

#endif
