/* kern_avx2_mulf.c - matrix products with f32 activations, AVX2: F32, F16, BF16, and mul_exact of every type.
 *
 * avx2_mulf_body.h has the loops. mul_exact decodes a run of 256 elements of eight rows to f32 and goes on with the
 * F32 product's sums, so it equals the F32 product of decoded weights to the bit.
 *
 * Threads     any. */
#include "kern/fills.h"

#if defined(__x86_64__)

#include "kern/avx2.h"

/* Three columns; the last one again where there are fewer. */
typedef struct avx2_cols {
    const float *at[3];
} avx2_cols;

AVX2_INLINE void avx2_cols_init(avx2_cols *cols, const uint8_t *x, size_t x_stride,
                                int64_t n_left) {
    for (int64_t c = 0; c < 3; c++) {
        cols->at[c] = (const void *)(x + (size_t)(c < n_left ? c : n_left - 1) * x_stride);
    }
}

AVX2_INLINE void avx2_zero(__m256 *v, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        v[i] = _mm256_setzero_ps();
    }
}

AVX2_INLINE void avx2_store_8x1(const __m256 sum[8], int64_t n_row, float *y) {
    const __m128 low = avx2_sum4(sum[0], sum[1], sum[2], sum[3]);
    const __m128 high = avx2_sum4(sum[4], sum[5], sum[6], sum[7]);
    avx2_store_some(y, _mm256_set_m128(high, low), n_row);
}

AVX2_INLINE void avx2_store_4x3(const __m256 sum[12], int64_t n_row, int64_t n_col, float *y,
                                int64_t y_stride) {
    for (int64_t c = 0; c < 3 && c < n_col; c++) {
        const __m256 *s = sum + 4 * c;
        float part[4];
        _mm_storeu_ps(part, avx2_sum4(s[0], s[1], s[2], s[3]));
        memcpy(y + c * y_stride, part, (size_t)(n_row < 4 ? n_row : 4) * sizeof(float));
    }
}

AVX2_INLINE __m256 avx2_load_f32(const uint8_t *p) { return _mm256_loadu_ps((const void *)p); }

AVX2_INLINE __m256 avx2_some_f32(const uint8_t *p, int64_t n) {
    float part[8] = {0};
    memcpy(part, p, (size_t)n * 4);
    return _mm256_loadu_ps(part);
}

AVX2_INLINE __m256 avx2_load_f16(const uint8_t *p) { return _mm256_cvtph_ps(avx2_load16(p)); }

AVX2_INLINE __m256 avx2_some_f16(const uint8_t *p, int64_t n) {
    uint8_t part[16] = {0};
    memcpy(part, p, (size_t)n * 2);
    return avx2_load_f16(part);
}

AVX2_INLINE __m256 avx2_load_bf16(const uint8_t *p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(avx2_load16(p)), 16));
}

AVX2_INLINE __m256 avx2_some_bf16(const uint8_t *p, int64_t n) {
    uint8_t part[16] = {0};
    memcpy(part, p, (size_t)n * 2);
    return avx2_load_bf16(part);
}

#define MF_NAME avx2_mul_f32
#define MF_BYTES 4
#define MF_LOAD avx2_load_f32
#define MF_SOME avx2_some_f32
#include "kern/avx2_mulf_body.h"

#define MF_NAME avx2_mul_f16
#define MF_BYTES 2
#define MF_LOAD avx2_load_f16
#define MF_SOME avx2_some_f16
#include "kern/avx2_mulf_body.h"

#define MF_NAME avx2_mul_bf16
#define MF_BYTES 2
#define MF_LOAD avx2_load_bf16
#define MF_SOME avx2_some_bf16
#include "kern/avx2_mulf_body.h"

/* ---- mul_exact ---- */

#define AVX2_RUN 256
#define AVX2_EXACT_COLS 12 /* columns that share one decoding: four tiles of three */

typedef void (*avx2_decode)(const uint8_t *src, float *dst, int64_t n);

/* One run of each row, decoded; where there are fewer than eight, the last one stands for the rest. */
AVX2_INLINE void avx2_decode_run(avx2_decode decode, const avx2_rows *rows, size_t at, int64_t n,
                                 int64_t n_row, float run[8][AVX2_RUN], avx2_rows *out) {
    for (int64_t r = 0; r < 8; r++) {
        if (r < n_row) {
            decode(rows->at[r] + at, run[r], n);
        }
        out->at[r] = (const void *)run[r < n_row ? r : n_row - 1];
    }
}

AVX2_TARGET static void avx2_exact_col(avx2_decode decode, size_t run_bytes, const avx2_rows *rows,
                                       int64_t n_row, int64_t n, const float *x, float *y) {
    float run[8][AVX2_RUN];
    __m256 sum[8];
    size_t at = 0;
    avx2_zero(sum, 8);
    for (int64_t k = 0; k < n; k += AVX2_RUN, at += run_bytes) {
        const int64_t n_run = n - k < AVX2_RUN ? n - k : AVX2_RUN;
        avx2_rows f32;
        avx2_decode_run(decode, rows, at, n_run, n_row, run, &f32);
        avx2_mul_f32_8x1(&f32, x + k, n_run, sum);
    }
    avx2_store_8x1(sum, n_row, y);
}

AVX2_TARGET static void avx2_exact_cols(avx2_decode decode, size_t run_bytes, const avx2_rows *rows,
                                        int64_t n_row, int64_t n_col, int64_t n, const uint8_t *x,
                                        size_t x_stride, float *y, int64_t y_stride) {
    float run[8][AVX2_RUN];
    __m256 sum[AVX2_EXACT_COLS / 3][2][12];
    size_t at = 0;
    avx2_zero(sum[0][0], AVX2_EXACT_COLS / 3 * 2 * 12);
    for (int64_t k = 0; k < n; k += AVX2_RUN, at += run_bytes) {
        const int64_t n_run = n - k < AVX2_RUN ? n - k : AVX2_RUN;
        avx2_rows f32;
        avx2_decode_run(decode, rows, at, n_run, n_row, run, &f32);
        for (int64_t c = 0; c < n_col; c += 3) {
            avx2_cols cols;
            avx2_cols_init(&cols, x + (size_t)c * x_stride + (size_t)k * sizeof(float), x_stride,
                           n_col - c);
            avx2_mul_f32_4x3(&f32, 0, cols.at, n_run, sum[c / 3][0]);
            if (n_row > 4) {
                avx2_mul_f32_4x3(&f32, 4, cols.at, n_run, sum[c / 3][1]);
            }
        }
    }
    for (int64_t c = 0; c < n_col; c += 3) {
        avx2_store_4x3(sum[c / 3][0], n_row, n_col - c, y + c * y_stride, y_stride);
        if (n_row > 4) {
            avx2_store_4x3(sum[c / 3][1], n_row - 4, n_col - c, y + c * y_stride + 4, y_stride);
        }
    }
}

AVX2_TARGET static void avx2_exact(avx2_decode decode, size_t run_bytes, int64_t n_row,
                                   int64_t n_col, int64_t n, const uint8_t *w, size_t w_stride,
                                   const uint8_t *x, size_t x_stride, float *y, int64_t y_stride) {
    for (int64_t r = 0; r < n_row; r += 8) {
        const int64_t n_some = n_row - r < 8 ? n_row - r : 8;
        avx2_rows rows;
        avx2_rows_init(&rows, w + (size_t)r * w_stride, w_stride, n_some);
        for (int64_t c = 0; c < n_col; c += AVX2_EXACT_COLS) {
            const int64_t n_tile = n_col - c < AVX2_EXACT_COLS ? n_col - c : AVX2_EXACT_COLS;
            const uint8_t *x_tile = x + (size_t)c * x_stride;
            float *y_tile = y + c * y_stride + r;
            if (n_tile == 1) {
                avx2_exact_col(decode, run_bytes, &rows, n_some, n, (const void *)x_tile, y_tile);
            } else {
                avx2_exact_cols(decode, run_bytes, &rows, n_some, n_tile, n, x_tile, x_stride,
                                y_tile, y_stride);
            }
        }
    }
}

/* One function a row of the type table, because a kernel isn't told its type. */
#define X(NAME, id, n_elem, n_byte, decode_fn, encode_fn)                                       \
    static void avx2_exact_##NAME(int64_t n_row, int64_t n_col, int64_t n, const uint8_t *w,    \
                                  size_t w_stride, const uint8_t *x, size_t x_stride, float *y, \
                                  int64_t y_stride) {                                           \
        avx2_exact(sl_qtype_find(id)->decode, (size_t)AVX2_RUN / (n_elem) * (n_byte), n_row,    \
                   n_col, n, w, w_stride, x, x_stride, y, y_stride);                            \
    }
#include "quant/qtypes.def"
#undef X

void sl_kern_avx2_mulf(sl_kern *kern) {
#define X(NAME, id, n_elem, n_byte, decode_fn, encode_fn)                   \
    if (kern->mul_exact[id].fn != NULL) {                                   \
        kern->mul_exact[id] = (sl_mul_slot){avx2_exact_##NAME, SL_ACT_F32}; \
    }
#include "quant/qtypes.def"
#undef X
    kern->mul[SL_QTYPE_F32] = (sl_mul_slot){avx2_mul_f32, SL_ACT_F32};
    kern->mul[SL_QTYPE_F16] = (sl_mul_slot){avx2_mul_f16, SL_ACT_F32};
    kern->mul[SL_QTYPE_BF16] = (sl_mul_slot){avx2_mul_bf16, SL_ACT_F32};
    kern->mul_exact[SL_QTYPE_F32] = kern->mul[SL_QTYPE_F32];
    kern->mul_exact[SL_QTYPE_F16] = kern->mul[SL_QTYPE_F16];
    kern->mul_exact[SL_QTYPE_BF16] = kern->mul[SL_QTYPE_BF16];
}

#else

void sl_kern_avx2_mulf(sl_kern *kern) { (void)kern; }

#endif
