/* avx2_mul32_body.h - the loops of one matrix product of a type with blocks of 32; included once a type.
 *
 * Define before:  M32_NAME    the function
 *                 M32_BYTES   of a block
 *                 M32_UNPACK(rows, at, q, d, m)   eight blocks to q[8] (vector g: elements 4 g .. 4 g + 3), *d, *m
 *                 M32_DOT(q, x)                   eight int32 sums over 32 elements of x
 *                 M32_OFFSET  1: add m * (sum of the activations)
 *
 * For each output: sum = fma(d_w d_x, dot, sum), then fma(m, s_x, sum) where there is an offset; blocks in order. The
 * integer part is exact, so no shape of tile can change a bit. */

#define M32_CAT2(a, b) a##b
#define M32_CAT(a, b) M32_CAT2(a, b)
#define M32_TILE_NAME M32_CAT(M32_NAME, _tile)

/* n_col is a constant 1, or up to AVX2_COLS: then the sums live in memory that stays in L1. */
AVX2_INLINE void M32_TILE_NAME(const avx2_rows *rows, int64_t n_row, int64_t n_col, int64_t n_block,
                               const uint8_t *x, size_t x_stride, float *y, int64_t y_stride,
                               uintptr_t next) {
    __m256 sum[AVX2_COLS];
    for (int64_t c = 0; c < n_col; c++) {
        sum[c] = _mm256_setzero_ps();
    }
    for (int64_t b = 0; b < n_block; b++) {
        const size_t at = (size_t)b * M32_BYTES;
        __m256i q[8];
        __m256 d;
        __m256 m;
        avx2_fetch(next + 8 * at, 8 * M32_BYTES);
        M32_UNPACK(rows, at, q, &d, &m);
        for (int64_t c = 0; c < n_col; c++) {
            const void *row = x + (size_t)c * x_stride;
            const sl_act_q8_32 *xb = (const sl_act_q8_32 *)row + b;
            const __m256 dot = _mm256_cvtepi32_ps(M32_DOT(q, xb->qs));
            sum[c] = _mm256_fmadd_ps(_mm256_mul_ps(d, _mm256_set1_ps(xb->d)), dot, sum[c]);
            if (M32_OFFSET) {
                sum[c] = _mm256_fmadd_ps(m, _mm256_set1_ps(xb->s), sum[c]);
            }
        }
    }
    for (int64_t c = 0; c < n_col; c++) {
        avx2_store_some(y + c * y_stride, sum[c], n_row);
    }
}

AVX2_TARGET static void M32_NAME(int64_t n_row, int64_t n_col, int64_t n, const uint8_t *w,
                                 size_t w_stride, const uint8_t *x, size_t x_stride, float *y,
                                 int64_t y_stride) {
    for (int64_t r = 0; r < n_row; r += 8) {
        avx2_rows rows;
        avx2_rows_init(&rows, w + (size_t)r * w_stride, w_stride, n_row - r);
        const uintptr_t next = (uintptr_t)w + (size_t)(r + 8) * w_stride;
        int64_t c = 0;
        for (; n_col - c > 1; c += AVX2_COLS) {
            const int64_t n_tile = n_col - c < AVX2_COLS ? n_col - c : AVX2_COLS;
            M32_TILE_NAME(&rows, n_row - r, n_tile, n / 32, x + (size_t)c * x_stride, x_stride,
                          y + c * y_stride + r, y_stride, next);
        }
        if (n_col - c == 1) {
            M32_TILE_NAME(&rows, n_row - r, 1, n / 32, x + (size_t)c * x_stride, x_stride,
                          y + c * y_stride + r, y_stride, next);
        }
    }
}

#undef M32_CAT2
#undef M32_CAT
#undef M32_TILE_NAME
#undef M32_NAME
#undef M32_BYTES
#undef M32_UNPACK
#undef M32_DOT
#undef M32_OFFSET
