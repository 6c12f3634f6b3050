/* avx2_mulf_body.h - inner loops of one matrix product with f32 activations; included once a type.
 *
 * Define before:  MF_NAME          prefix of the functions
 *                 MF_BYTES         of an element
 *                 MF_LOAD(p)       eight elements as f32
 *                 MF_SOME(p, n)    n < 8 elements, the rest zero
 *
 * For each output eight partial sums, one a lane: element k goes to lane k mod 8 by one fma, in order. Both tiles take
 * the sums so far and give them back, so a row may be done in runs of a multiple of 8 elements. */

#define MF_CAT2(a, b) a##b
#define MF_CAT(a, b) MF_CAT2(a, b)

/* Eight rows, one column. */
AVX2_INLINE void MF_CAT(MF_NAME, _8x1)(const avx2_rows *rows, const float *x, int64_t n,
                                       __m256 sum[8]) {
    const uint8_t *const w0 = rows->at[0];
    const uint8_t *const w1 = rows->at[1];
    const uint8_t *const w2 = rows->at[2];
    const uint8_t *const w3 = rows->at[3];
    const uint8_t *const w4 = rows->at[4];
    const uint8_t *const w5 = rows->at[5];
    const uint8_t *const w6 = rows->at[6];
    const uint8_t *const w7 = rows->at[7];
    __m256 s0 = sum[0];
    __m256 s1 = sum[1];
    __m256 s2 = sum[2];
    __m256 s3 = sum[3];
    __m256 s4 = sum[4];
    __m256 s5 = sum[5];
    __m256 s6 = sum[6];
    __m256 s7 = sum[7];
#define MF_STEP(load, v)                   \
    s0 = _mm256_fmadd_ps(load(w0), v, s0); \
    s1 = _mm256_fmadd_ps(load(w1), v, s1); \
    s2 = _mm256_fmadd_ps(load(w2), v, s2); \
    s3 = _mm256_fmadd_ps(load(w3), v, s3); \
    s4 = _mm256_fmadd_ps(load(w4), v, s4); \
    s5 = _mm256_fmadd_ps(load(w5), v, s5); \
    s6 = _mm256_fmadd_ps(load(w6), v, s6); \
    s7 = _mm256_fmadd_ps(load(w7), v, s7)
    int64_t k = 0;
    for (; k + 8 <= n; k += 8) {
        const size_t at = (size_t)k * MF_BYTES;
#define MF_WHOLE(p) MF_LOAD((p) + at)
        const __m256 v = _mm256_loadu_ps(x + k);
        MF_STEP(MF_WHOLE, v);
    }
    if (k < n) {
        const size_t at = (size_t)k * MF_BYTES;
        const int64_t n_left = n - k;
#define MF_PART(p) MF_SOME((p) + at, n_left)
        const __m256 v = avx2_load_some(x + k, n_left);
        MF_STEP(MF_PART, v);
    }
#undef MF_STEP
    sum[0] = s0;
    sum[1] = s1;
    sum[2] = s2;
    sum[3] = s3;
    sum[4] = s4;
    sum[5] = s5;
    sum[6] = s6;
    sum[7] = s7;
}

/* Four rows from `first`, three columns; sum[4 * column + row]. */
AVX2_INLINE void MF_CAT(MF_NAME, _4x3)(const avx2_rows *rows, int32_t first,
                                       const float *const x[3], int64_t n, __m256 sum[12]) {
    const uint8_t *const w0 = rows->at[first];
    const uint8_t *const w1 = rows->at[first + 1];
    const uint8_t *const w2 = rows->at[first + 2];
    const uint8_t *const w3 = rows->at[first + 3];
    const float *const x0 = x[0];
    const float *const x1 = x[1];
    const float *const x2 = x[2];
    __m256 a0 = sum[0];
    __m256 a1 = sum[1];
    __m256 a2 = sum[2];
    __m256 a3 = sum[3];
    __m256 b0 = sum[4];
    __m256 b1 = sum[5];
    __m256 b2 = sum[6];
    __m256 b3 = sum[7];
    __m256 c0 = sum[8];
    __m256 c1 = sum[9];
    __m256 c2 = sum[10];
    __m256 c3 = sum[11];
#define MF_STEP(load)                    \
    do {                                 \
        __m256 w = load(w0);             \
        a0 = _mm256_fmadd_ps(w, va, a0); \
        b0 = _mm256_fmadd_ps(w, vb, b0); \
        c0 = _mm256_fmadd_ps(w, vc, c0); \
        w = load(w1);                    \
        a1 = _mm256_fmadd_ps(w, va, a1); \
        b1 = _mm256_fmadd_ps(w, vb, b1); \
        c1 = _mm256_fmadd_ps(w, vc, c1); \
        w = load(w2);                    \
        a2 = _mm256_fmadd_ps(w, va, a2); \
        b2 = _mm256_fmadd_ps(w, vb, b2); \
        c2 = _mm256_fmadd_ps(w, vc, c2); \
        w = load(w3);                    \
        a3 = _mm256_fmadd_ps(w, va, a3); \
        b3 = _mm256_fmadd_ps(w, vb, b3); \
        c3 = _mm256_fmadd_ps(w, vc, c3); \
    } while (0)
    int64_t k = 0;
    for (; k + 8 <= n; k += 8) {
        const size_t at = (size_t)k * MF_BYTES;
        const __m256 va = _mm256_loadu_ps(x0 + k);
        const __m256 vb = _mm256_loadu_ps(x1 + k);
        const __m256 vc = _mm256_loadu_ps(x2 + k);
        MF_STEP(MF_WHOLE);
    }
    if (k < n) {
        const size_t at = (size_t)k * MF_BYTES;
        const int64_t n_left = n - k;
        const __m256 va = avx2_load_some(x0 + k, n_left);
        const __m256 vb = avx2_load_some(x1 + k, n_left);
        const __m256 vc = avx2_load_some(x2 + k, n_left);
        MF_STEP(MF_PART);
    }
#undef MF_STEP
#undef MF_WHOLE
#undef MF_PART
    sum[0] = a0;
    sum[1] = a1;
    sum[2] = a2;
    sum[3] = a3;
    sum[4] = b0;
    sum[5] = b1;
    sum[6] = b2;
    sum[7] = b3;
    sum[8] = c0;
    sum[9] = c1;
    sum[10] = c2;
    sum[11] = c3;
}

/* The whole product. */
AVX2_TARGET static void MF_NAME(int64_t n_row, int64_t n_col, int64_t n, const uint8_t *w,
                                size_t w_stride, const uint8_t *x, size_t x_stride, float *y,
                                int64_t y_stride) {
    for (int64_t r = 0; r < n_row; r += 8) {
        avx2_rows rows;
        avx2_rows_init(&rows, w + (size_t)r * w_stride, w_stride, n_row - r);
        int64_t c = 0;
        for (; n_col - c > 1; c += 3) {
            avx2_cols cols;
            avx2_cols_init(&cols, x + (size_t)c * x_stride, x_stride, n_col - c);
            for (int32_t first = 0; first < 8 && first < n_row - r; first += 4) {
                __m256 sum[12];
                avx2_zero(sum, 12);
                MF_CAT(MF_NAME, _4x3)(&rows, first, cols.at, n, sum);
                avx2_store_4x3(sum, n_row - r - first, n_col - c, y + c * y_stride + r + first,
                               y_stride);
            }
        }
        if (n_col - c == 1) {
            const void *x_row = x + (size_t)c * x_stride;
            __m256 sum[8];
            avx2_zero(sum, 8);
            MF_CAT(MF_NAME, _8x1)(&rows, x_row, n, sum);
            avx2_store_8x1(sum, n_row - r, y + c * y_stride + r);
        }
    }
}

#undef MF_CAT2
#undef MF_CAT
#undef MF_NAME
#undef MF_BYTES
#undef MF_LOAD
#undef MF_SOME
