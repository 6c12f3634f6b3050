/* avx2_tile.h - shape of the tiles of quantised matrix products, and how far ahead weights are fetched. */
#ifndef SL_KERN_AVX2_TILE_H
#define SL_KERN_AVX2_TILE_H

#include "kern/avx2.h"

/* Columns that share one unpacking of the weights. */
#define AVX2_COLS 32

/* Eight rows are read side by side, in places that a CPU's own prefetcher may not follow. Rows follow each other in
 * memory, so what is needed next is what comes after these eight; it is fetched in order, `n` bytes for every n that are
 * worked on. Beyond the end of the matrix that does no harm. */
AVX2_INLINE void avx2_fetch(uintptr_t at, size_t n) {
    for (size_t i = 0; i < n; i += 64) {
        _mm_prefetch((const void *)(at + i), _MM_HINT_T0);
    }
}

#endif
