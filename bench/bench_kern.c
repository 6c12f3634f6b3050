/* bench_kern.c - speed of the matrix products, one thread: GB/s of weights and GFLOP/s, by instruction set, type and
 * number of columns.
 *
 *     bench_kern [isa [type]]
 *
 * Weights are a matrix of 64 MiB for one column (so that it comes from memory, not from caches) and 4 MiB for more; rows
 * have 2048 elements. The median of several passes. Each result is first checked against the scalar row.
 *
 * Not here    whole models (that is the program's own timing). */
#define _POSIX_C_SOURCE 200809L

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kern/kern.h"

#define N_ELEM 2048
#define N_PASS 9
#define MAX_COL 64

/* Time that this thread had a processor: what others do on the machine disturbs it least. */
static double bench_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int bench_order(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void *bench_alloc(size_t size) {
    void *p = aligned_alloc(64, (size + 63) / 64 * 64);
    if (p == NULL) {
        fprintf(stderr, "bench_kern: no memory for %zu bytes\n", size);
        exit(1);
    }
    return p;
}

static uint32_t bench_random(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

/* Encoded random rows; there are 64 different ones, which is enough to check and quick to make. */
static void bench_weights(const sl_qtype_info *type, size_t row_bytes, int64_t n_row, uint8_t *w) {
    float *row = bench_alloc(N_ELEM * sizeof(float));
    const int64_t n_distinct = n_row < 64 ? n_row : 64;
    for (int64_t r = 0; r < n_distinct; r++) {
        for (int32_t i = 0; i < N_ELEM; i++) {
            row[i] = ((float)(bench_random() & 0xffff) / 65536.0f - 0.5f) * 0.1f;
        }
        type->encode(row, w + (size_t)r * row_bytes, N_ELEM);
    }
    for (int64_t r = n_distinct; r < n_row; r++) {
        memcpy(w + (size_t)r * row_bytes, w + (size_t)(r % n_distinct) * row_bytes, row_bytes);
    }
    free(row);
}

static double bench_worst(const float *y, const float *truth, int64_t n) {
    double top = 0.0;
    double worst = 0.0;
    for (int64_t i = 0; i < n; i++) {
        top = fmax(top, fabs((double)truth[i]));
        worst = fmax(worst, fabs((double)y[i] - (double)truth[i]));
    }
    return worst / (top > 0.0 ? top : 1.0);
}

static bool bench_one(const sl_kern *scalar, const sl_kern *kern, const sl_qtype_info *type,
                      int64_t n_col) {
    const sl_mul_slot slot = kern->mul[type->id];
    uint64_t row_bytes = 0;
    if (slot.fn == NULL || type->encode == NULL || !sl_qtype_row_bytes(type, N_ELEM, &row_bytes)) {
        return true;
    }
    const bool slow = strcmp(kern->isa, "scalar") == 0;
    const size_t want = (size_t)(n_col == 1 && !slow ? 64 : slow ? 1 : 4) << 20;
    const int64_t n_row = (int64_t)(want / row_bytes) / 8 * 8;
    const size_t x_stride = (sl_act_bytes(slot.act, N_ELEM) + 63) / 64 * 64;
    uint8_t *w = bench_alloc((size_t)n_row * row_bytes);
    uint8_t *x = bench_alloc(x_stride * (size_t)n_col);
    float *raw = bench_alloc(N_ELEM * sizeof(float));
    float *y = bench_alloc((size_t)(n_row * n_col) * sizeof(float));
    float *truth = bench_alloc((size_t)(n_row * n_col) * sizeof(float));
    bench_weights(type, (size_t)row_bytes, n_row, w);
    for (int64_t c = 0; c < n_col; c++) {
        for (int32_t i = 0; i < N_ELEM; i++) {
            raw[i] = (float)(bench_random() & 0xffff) / 65536.0f - 0.5f;
        }
        if (slot.act == SL_ACT_F32) {
            memcpy(x + (size_t)c * x_stride, raw, N_ELEM * sizeof(float));
        } else {
            kern->act[slot.act](raw, N_ELEM, x + (size_t)c * x_stride);
        }
    }
    double seconds[N_PASS];
    for (int32_t i = 0; i < N_PASS; i++) {
        const double start = bench_now();
        slot.fn(n_row, n_col, N_ELEM, w, (size_t)row_bytes, x, x_stride, y, n_row);
        seconds[i] = bench_now() - start;
    }
    qsort(seconds, N_PASS, sizeof seconds[0], bench_order);
    const int64_t n_check = n_row < 64 ? n_row : 64;
    scalar->mul[type->id].fn(n_check, n_col, N_ELEM, w, (size_t)row_bytes, x, x_stride, truth,
                             n_row);
    double worst = 0.0;
    for (int64_t c = 0; c < n_col; c++) {
        worst = fmax(worst, bench_worst(y + c * n_row, truth + c * n_row, n_check));
    }
    const double median = seconds[N_PASS / 2];
    printf("%-8s %-8s %7d %9.2f %9.1f   %.1e%s\n", kern->isa, type->name, (int)n_col,
           (double)n_row * (double)row_bytes / median * 1e-9,
           2.0 * (double)n_row * (double)n_col * N_ELEM / median * 1e-9, worst,
           worst < 1e-4 ? "" : "   WRONG");
    free(w);
    free(x);
    free(raw);
    free(y);
    free(truth);
    return worst < 1e-4;
}

int main(int argc, char **argv) {
    static const int64_t cols[] = {1, 4, 16, MAX_COL};
    bool good = true;
    sl_kern scalar;
    sl_kern_init(&scalar, "scalar", NULL);
    printf("%-8s %-8s %7s %9s %9s   %s\n", "isa", "type", "columns", "GB/s", "GFLOP/s",
           "off scalar");
    for (int32_t i = 0; i < sl_isa_count(); i++) {
        sl_kern kern;
        if ((argc > 1 && strcmp(argv[1], sl_isa_at(i)->name) != 0) ||
            sl_kern_init(&kern, sl_isa_at(i)->name, NULL) != SL_OK) {
            continue;
        }
        for (int32_t k = 0; k < sl_qtype_count(); k++) {
            const sl_qtype_info *type = sl_qtype_at(k);
            for (int32_t c = 0; c < 4; c++) {
                if (argc <= 2 || strcmp(argv[2], type->name) == 0) {
                    good = bench_one(&scalar, &kern, type, cols[c]) && good;
                }
            }
        }
    }
    return good ? 0 : 1;
}
