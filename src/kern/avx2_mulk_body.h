/* avx2_mulk_body.h - the loops of one matrix product of a type with blocks of 256; included once a type.
 *
 * A block is worked through in eight units of two runs of 16 elements. Define before:
 *
 *     MK_NAME    the function
 *     MK_BYTES   of a block
 *     MK_BEGIN(rows, at, s)        scales, minima and factors of eight rows' blocks to *s
 *     MK_UNIT(rows, at, u, s, q)   unit u to q[8]: vectors of elements e .. e + 15, then of e + MK_GAP ..
 *     MK_FIRST(u)                  that e
 *     MK_GAP
 *     MK_GROUP                     elements that share a scale vector: 16 or 32
 *     MK_DOT(q, x, scale)          eight int32 sums over 16 elements of x, times the scale
 *     MK_MIN                       1: subtract dmin * (minima . sums); 0: the integer sum starts at
 *     MK_START(s, sums)            (not with MK_MIN) what undoes the offset of unsigned quants
 *
 * For each output: sum = fma(d_w d_x, dot, sum), then fnma(dmin d_x, minima . sums, sum); blocks in order. The integer
 * part is exact, so no shape of tile can change a bit. */

#define MK_CAT2(a, b) a##b
#define MK_CAT(a, b) MK_CAT2(a, b)
#define MK_TILE_NAME MK_CAT(MK_NAME, _tile)

/* n_col is a constant 1, or up to AVX2_COLS: then the sums live in memory that stays in L1. */
AVX2_INLINE void MK_TILE_NAME(const avx2_rows *rows, int64_t n_row, int64_t n_col, int64_t n_block,
                              const uint8_t *x, size_t x_stride, float *y, int64_t y_stride,
                              uintptr_t next) {
    __m256 sum[AVX2_COLS];
    for (int64_t c = 0; c < n_col; c++) {
        sum[c] = _mm256_setzero_ps();
    }
    for (int64_t b = 0; b < n_block; b++) {
        const size_t at = (size_t)b * MK_BYTES;
        const uint8_t *x_block = x + (size_t)b * sizeof(sl_act_q8_256);
        __m256i dot[AVX2_COLS];
        avx2_super s;
        MK_BEGIN(rows, at, &s);
        for (int64_t c = 0; c < n_col; c++) {
#if MK_MIN
            dot[c] = _mm256_setzero_si256();
#else
            const sl_act_q8_256 *xb = (const void *)(x_block + (size_t)c * x_stride);
            dot[c] = MK_START(&s, xb->sums);
#endif
        }
        for (int32_t u = 0; u < 8; u++) {
            __m256i q[8];
            avx2_fetch(next + 8 * at + (size_t)u * MK_BYTES, MK_BYTES);
            MK_UNIT(rows, at, u, &s, q);
            const int32_t e = MK_FIRST(u);
            const __m256i scale_a = s.scale[e / MK_GROUP];
            const __m256i scale_b = s.scale[(e + MK_GAP) / MK_GROUP];
            for (int64_t c = 0; c < n_col; c++) {
                const sl_act_q8_256 *xb = (const void *)(x_block + (size_t)c * x_stride);
                const __m256i a = MK_DOT(q, xb->qs + e, scale_a);
                const __m256i z = MK_DOT(q + 4, xb->qs + e + MK_GAP, scale_b);
                dot[c] = _mm256_add_epi32(dot[c], _mm256_add_epi32(a, z));
            }
        }
        for (int64_t c = 0; c < n_col; c++) {
            const sl_act_q8_256 *xb = (const void *)(x_block + (size_t)c * x_stride);
            const __m256 dx = _mm256_set1_ps(xb->d);
            sum[c] = _mm256_fmadd_ps(_mm256_mul_ps(s.d, dx), _mm256_cvtepi32_ps(dot[c]), sum[c]);
#if MK_MIN
            const __m256 min = _mm256_cvtepi32_ps(avx2_dot_sums(&s, xb->sums));
            sum[c] = _mm256_fnmadd_ps(_mm256_mul_ps(s.dmin, dx), min, sum[c]);
#endif
        }
    }
    for (int64_t c = 0; c < n_col; c++) {
        avx2_store_some(y + c * y_stride, sum[c], n_row);
    }
}

AVX2_TARGET static void MK_NAME(int64_t n_row, int64_t n_col, int64_t n, const uint8_t *w,
                                size_t w_stride, const uint8_t *x, size_t x_stride, float *y,
                                int64_t y_stride) {
    for (int64_t r = 0; r < n_row; r += 8) {
        avx2_rows rows;
        avx2_rows_init(&rows, w + (size_t)r * w_stride, w_stride, n_row - r);
        const uintptr_t next = (uintptr_t)w + (size_t)(r + 8) * w_stride;
        int64_t c = 0;
        for (; n_col - c > 1; c += AVX2_COLS) {
            const int64_t n_tile = n_col - c < AVX2_COLS ? n_col - c : AVX2_COLS;
            MK_TILE_NAME(&rows, n_row - r, n_tile, n / 256, x + (size_t)c * x_stride, x_stride,
                         y + c * y_stride + r, y_stride, next);
        }
        if (n_col - c == 1) {
            MK_TILE_NAME(&rows, n_row - r, 1, n / 256, x + (size_t)c * x_stride, x_stride,
                         y + c * y_stride + r, y_stride, next);
        }
    }
}

#undef MK_CAT2
#undef MK_CAT
#undef MK_TILE_NAME
#undef MK_NAME
#undef MK_BYTES
#undef MK_BEGIN
#undef MK_UNIT
#undef MK_FIRST
#undef MK_GAP
#undef MK_GROUP
#undef MK_DOT
#undef MK_MIN
#undef MK_START
