/* avx2_attn_body.h - attention over one run of a KV cache, for one element type; included once a type.
 *
 * Define before:  KV_NAME(x)       names of the functions
 *                 KV_BYTES         of an element
 *                 KV_LOAD(p, n)    the first n of eight elements as f32, the rest zero
 *
 * A score has eight partial sums, one a lane: element j goes to lane j mod 8 by one fma, in order. */

/* Scores of four tokens for one query; tokens that are absent are the last one again. */
AVX2_INLINE __m128 KV_NAME(score4)(const float *q, const uint8_t *const k[4], int64_t d) {
    __m256 s0 = _mm256_setzero_ps();
    __m256 s1 = _mm256_setzero_ps();
    __m256 s2 = _mm256_setzero_ps();
    __m256 s3 = _mm256_setzero_ps();
    for (int64_t j = 0; j < d; j += 8) {
        const size_t at = (size_t)j * KV_BYTES;
        const __m256 v = avx2_load_some(q + j, d - j);
        s0 = _mm256_fmadd_ps(v, KV_LOAD(k[0] + at, d - j), s0);
        s1 = _mm256_fmadd_ps(v, KV_LOAD(k[1] + at, d - j), s1);
        s2 = _mm256_fmadd_ps(v, KV_LOAD(k[2] + at, d - j), s2);
        s3 = _mm256_fmadd_ps(v, KV_LOAD(k[3] + at, d - j), s3);
    }
    return avx2_sum4(s0, s1, s2, s3);
}

AVX2_TARGET static void KV_NAME(score)(int64_t n_q, int64_t n_tok, int64_t d, const float *q,
                                       int64_t q_stride, const void *k, float scale, float *s,
                                       int64_t s_stride) {
    const size_t row_bytes = (size_t)d * KV_BYTES;
    for (int64_t t = 0; t < n_tok; t += 4) {
        const int64_t n_some = n_tok - t < 4 ? n_tok - t : 4;
        const uint8_t *rows[4];
        for (int64_t i = 0; i < 4; i++) {
            rows[i] = (const uint8_t *)k + (size_t)(t + (i < n_some ? i : n_some - 1)) * row_bytes;
        }
        for (int64_t i = 0; i < n_q; i++) {
            float four[4];
            const __m128 sums = KV_NAME(score4)(q + i * q_stride, rows, d);
            _mm_storeu_ps(four, _mm_mul_ps(sums, _mm_set1_ps(scale)));
            memcpy(s + i * s_stride + t, four, (size_t)n_some * sizeof(float));
        }
    }
}

/* Eight elements of up to four queries (n_q is a constant): each value is read once for all of them. */
AVX2_INLINE void KV_NAME(mix8)(int64_t n_q, int64_t n_tok, int64_t n, const float *p,
                               int64_t p_stride, const float *keep, const uint8_t *v,
                               size_t row_bytes, float *acc, int64_t acc_stride) {
    __m256 sum[4];
    for (int64_t i = 0; i < n_q; i++) {
        sum[i] = _mm256_mul_ps(avx2_load_some(acc + i * acc_stride, n), _mm256_set1_ps(keep[i]));
    }
    for (int64_t t = 0; t < n_tok; t++) {
        const __m256 value = KV_LOAD(v + (size_t)t * row_bytes, n);
        for (int64_t i = 0; i < n_q; i++) {
            sum[i] = _mm256_fmadd_ps(_mm256_set1_ps(p[i * p_stride + t]), value, sum[i]);
        }
    }
    for (int64_t i = 0; i < n_q; i++) {
        avx2_store_some(acc + i * acc_stride, sum[i], n);
    }
}

AVX2_TARGET static void KV_NAME(mix)(int64_t n_q, int64_t n_tok, int64_t d, const float *p,
                                     int64_t p_stride, const float *keep, const void *v, float *acc,
                                     int64_t acc_stride) {
    const size_t row_bytes = (size_t)d * KV_BYTES;
    for (int64_t j = 0; j < d; j += 8) {
        const uint8_t *values = (const uint8_t *)v + (size_t)j * KV_BYTES;
        int64_t i = 0;
        for (; i + 4 <= n_q; i += 4) {
            KV_NAME(mix8)
            (4, n_tok, d - j, p + i * p_stride, p_stride, keep + i, values, row_bytes,
             acc + i * acc_stride + j, acc_stride);
        }
        if (n_q - i == 3) {
            KV_NAME(mix8)
            (3, n_tok, d - j, p + i * p_stride, p_stride, keep + i, values, row_bytes,
             acc + i * acc_stride + j, acc_stride);
        } else if (n_q - i == 2) {
            KV_NAME(mix8)
            (2, n_tok, d - j, p + i * p_stride, p_stride, keep + i, values, row_bytes,
             acc + i * acc_stride + j, acc_stride);
        } else if (n_q - i == 1) {
            KV_NAME(mix8)
            (1, n_tok, d - j, p + i * p_stride, p_stride, keep + i, values, row_bytes,
             acc + i * acc_stride + j, acc_stride);
        }
    }
}

#undef KV_NAME
#undef KV_BYTES
#undef KV_LOAD
