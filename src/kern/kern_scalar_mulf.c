/* kern_scalar_mulf.c - matrix products with f32 activations, in plain C.
 *
 * Eight partial sums: element i goes to sum i mod 8, in order; then ((0+1)+(2+3)) + ((4+5)+(6+7)). mul_exact decodes a
 * run of 256 elements to f32 and goes on with the same sums, so it equals the F32 product of decoded weights to the bit.
 *
 * Threads     any. */
#include "kern/blocks.h"
#include "kern/fills.h"

#define SCALAR_RUN 256

/* Add n products to the eight sums; n is a multiple of 8 except at a row's end. */
static inline void scalar_dot8(const float *w, const float *x, int64_t n, float sum[8]) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (int32_t lane = 0; lane < 8; lane++) {
            sum[lane] += w[i + lane] * x[i + lane];
        }
    }
    for (int32_t lane = 0; i + lane < n; lane++) {
        sum[lane] += w[i + lane] * x[i + lane];
    }
}

typedef void (*scalar_decode)(const uint8_t *src, float *dst, int64_t n);

/* One run of a row is decoded once for up to 16 columns. run_bytes: of SCALAR_RUN elements. */
static void scalar_mulf(scalar_decode decode, size_t run_bytes, int64_t n_row, int64_t n_col,
                        int64_t n, const uint8_t *w, size_t w_stride, const uint8_t *x,
                        size_t x_stride, float *y, int64_t y_stride) {
    for (int64_t r = 0; r < n_row; r++) {
        for (int64_t c_first = 0; c_first < n_col; c_first += 16) {
            const int64_t c_many = n_col - c_first < 16 ? n_col - c_first : 16;
            const uint8_t *src = w + (size_t)r * w_stride;
            float sum[16][8] = {{0}};
            for (int64_t k = 0; k < n; k += SCALAR_RUN, src += run_bytes) {
                const int64_t n_run = n - k < SCALAR_RUN ? n - k : SCALAR_RUN;
                float run[SCALAR_RUN];
                decode(src, run, n_run);
                for (int64_t c = 0; c < c_many; c++) {
                    const void *row = x + (size_t)(c_first + c) * x_stride;
                    scalar_dot8(run, (const float *)row + k, n_run, sum[c]);
                }
            }
            for (int64_t c = 0; c < c_many; c++) {
                const float *s = sum[c];
                y[(c_first + c) * y_stride + r] =
                    ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
            }
        }
    }
}

static void scalar_decode_f32(const uint8_t *src, float *dst, int64_t n) {
    memcpy(dst, src, (size_t)n * sizeof(float));
}

static void scalar_decode_f16(const uint8_t *src, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        dst[i] = kern_half_at(src + 2 * i);
    }
}

static void scalar_decode_bf16(const uint8_t *src, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        dst[i] = kern_float((uint32_t)kern_u16(src + 2 * i) << 16);
    }
}

#define SCALAR_MULF(name, elem_bytes)                                                             \
    static void scalar_mul_##name(int64_t n_row, int64_t n_col, int64_t n, const uint8_t *w,      \
                                  size_t w_stride, const uint8_t *x, size_t x_stride, float *y,   \
                                  int64_t y_stride) {                                             \
        scalar_mulf(scalar_decode_##name, SCALAR_RUN *(elem_bytes), n_row, n_col, n, w, w_stride, \
                    x, x_stride, y, y_stride);                                                    \
    }

SCALAR_MULF(f32, 4)
SCALAR_MULF(f16, 2)
SCALAR_MULF(bf16, 2)

/* mul_exact: one function a row of the type table, because a kernel isn't told its type. */
#define X(NAME, id, n_elem, n_byte, decode_fn, encode_fn)                                         \
    static void scalar_exact_##NAME(int64_t n_row, int64_t n_col, int64_t n, const uint8_t *w,    \
                                    size_t w_stride, const uint8_t *x, size_t x_stride, float *y, \
                                    int64_t y_stride) {                                           \
        scalar_mulf(sl_qtype_find(id)->decode, (size_t)SCALAR_RUN / (n_elem) * (n_byte), n_row,   \
                    n_col, n, w, w_stride, x, x_stride, y, y_stride);                             \
    }
#include "quant/qtypes.def"
#undef X

void sl_kern_scalar_mulf(sl_kern *kern) {
#define X(NAME, id, n_elem, n_byte, decode_fn, encode_fn)                     \
    if (sl_qtype_find(id) != NULL && sl_qtype_find(id)->decode != NULL &&     \
        SCALAR_RUN % (n_elem) == 0) {                                         \
        kern->mul_exact[id] = (sl_mul_slot){scalar_exact_##NAME, SL_ACT_F32}; \
    }
#include "quant/qtypes.def"
#undef X
    kern->mul[SL_QTYPE_F32] = (sl_mul_slot){scalar_mul_f32, SL_ACT_F32};
    kern->mul[SL_QTYPE_F16] = (sl_mul_slot){scalar_mul_f16, SL_ACT_F32};
    kern->mul[SL_QTYPE_BF16] = (sl_mul_slot){scalar_mul_bf16, SL_ACT_F32};
    kern->mul_exact[SL_QTYPE_F32] = kern->mul[SL_QTYPE_F32];
    kern->mul_exact[SL_QTYPE_F16] = kern->mul[SL_QTYPE_F16];
    kern->mul_exact[SL_QTYPE_BF16] = kern->mul[SL_QTYPE_BF16];
}
