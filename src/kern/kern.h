/* kern.h - CPU kernels: one table of function pointers, filled per ISA.
 *
 * The scalar version of each slot is the truth; an ISA row overwrites the slots that it does better, climbing from the
 * plainest up. The table is a value that its owner (a CPU backend) holds: two engines may use different ISAs.
 *
 * Bits. Each output element of every slot depends only on its own inputs and on (ISA, type), never on how many rows,
 * columns or elements are in the call, where in the call it stands, or the alignment of pointers. So any split of the
 * work gives equal bits. (Tails go through the same arithmetic as full vectors: the same lane order, the same fma.)
 *
 * Aliasing: inputs and outputs may be the same buffer only where a slot says so. No slot allocates or fails.
 * Not here: threads, the choice of what to compute (backend/). */
#ifndef SL_KERN_KERN_H
#define SL_KERN_KERN_H

#include "quant/quant.h"

/* How the activations of a matrix product must be prepared, chosen by the weight type. */
typedef enum sl_act {
    SL_ACT_F32,    /* as they are */
    SL_ACT_Q8_32,  /* blocks of 32: sl_act_q8_32 */
    SL_ACT_Q8_256, /* blocks of 256: sl_act_q8_256 */
    SL_ACT_COUNT
} sl_act;

typedef struct sl_act_q8_32 {
    float d;       /* scale = max|x| / 127 */
    float s;       /* d * sum(qs), for types with an offset */
    int8_t qs[32]; /* round half away from zero of x / d; -127..127 */
} sl_act_q8_32;

typedef struct sl_act_q8_256 {
    float d;
    int8_t qs[256];   /* -127..127 */
    int16_t sums[16]; /* of 16 qs each */
} sl_act_q8_256;

/* Bytes of one prepared row of n elements (n a multiple of the block of every type that uses the kind). */
size_t sl_act_bytes(sl_act act, int64_t n);

/* y[c * y_stride + r] = sum_k w[r][k] * x[c][k]      r < n_row, c < n_col, k < n
 *   w  n_row rows of n elements, w_stride bytes apart, any alignment
 *   x  n_col prepared rows, x_stride bytes apart, 64-aligned
 *   y  f32; y_stride elements between columns
 * Finite inputs: any n_row, n_col >= 0. */
typedef void (*sl_mul_fn)(int64_t n_row, int64_t n_col, int64_t n, const uint8_t *w,
                          size_t w_stride, const uint8_t *x, size_t x_stride, float *y,
                          int64_t y_stride);

typedef struct sl_mul_slot {
    sl_mul_fn fn; /* NULL: no kernel for this type */
    sl_act act;
} sl_mul_slot;

/* Element type of the KV cache. */
typedef enum sl_kv_type { SL_KV_F16, SL_KV_F32, SL_KV_TYPE_COUNT } sl_kv_type;

typedef enum sl_rope_kind {
    SL_ROPE_NONE,
    SL_ROPE_NEIGHBOUR, /* pairs (2i, 2i+1): GGUF's llama family */
    SL_ROPE_HALF,      /* pairs (i, i + n_rot/2): NeoX, Qwen, Gemma */
} sl_rope_kind;

typedef enum sl_glu_kind { SL_GLU_SILU, SL_GLU_GELU_TANH } sl_glu_kind;

typedef struct sl_kern {
    const char *isa; /* name of the last row that filled */

    /* By sl_qtype. `mul` may use integer dot products; `mul_exact` takes f32 activations for every type that can be
     * decoded (decode a block, then the dot product of the F32 row): the yardstick of the tests, and the choice of an
     * engine that is asked for exact activations. */
    sl_mul_slot mul[SL_QTYPE_CAP];
    sl_mul_slot mul_exact[SL_QTYPE_CAP];

    /* Prepare n elements. x and dst 64-aligned; dst sl_act_bytes(act, n). SL_ACT_F32's slot is NULL. */
    void (*act[SL_ACT_COUNT])(const float *x, int64_t n, void *dst);

    /* y = x / sqrt(mean(x^2) + eps) * w      one group of n elements; w NULL: 1; y may be x */
    void (*norm_rms)(int64_t n, const float *x, const float *w, float eps, float *y);
    /* y = a + b       y may be a or b */
    void (*add)(int64_t n, const float *a, const float *b, float *y);
    /* y = x * k       y may be x */
    void (*scale)(int64_t n, const float *x, float k, float *y);
    /* y = act(g) * u       silu(g) = g / (1 + exp(-g)); gelu_tanh(g) = g/2 (1 + tanh(sqrt(2/pi)(g + 0.044715 g^3)));
     * y may be g or u. Error: within 1e-6 relative + 1e-7 absolute of the true value. */
    void (*glu[2])(int64_t n, const float *g, const float *u, float *y);
    /* y = cap * tanh(x / cap)      y may be x */
    void (*softcap)(int64_t n, const float *x, float cap, float *y);
    /* Rotate one head in place: x [d_head], the first n_rot elements; cos_sin [n_rot]: n_rot/2 cosines, then the sines.
     * [SL_ROPE_NEIGHBOUR] and [SL_ROPE_HALF]; [SL_ROPE_NONE] is NULL. */
    void (*rope[3])(int64_t n_rot, const float *cos_sin, float *x);
    /* n values to and from KV elements. Any alignment. */
    void (*kv_store[SL_KV_TYPE_COUNT])(int64_t n, const float *x, void *dst);

    /* Attention over one run of up to 16 tokens of one KV head, for the n_q query heads that share it.
     *   score  s[i * s_stride + t] = scale * dot(q[i], k[t])          q [n_q, d] f32, q_stride elements apart;
     *                                                                  k [n_tok, d] KV elements, contiguous
     *   mix    acc[i][:] = acc[i][:] * keep[i] + sum_t p[i * p_stride + t] * v[t][:]     t in order; acc_stride apart
     * Any d >= 1 (fast for multiples of 8); n_tok 1..16. */
    void (*attn_score[SL_KV_TYPE_COUNT])(int64_t n_q, int64_t n_tok, int64_t d, const float *q,
                                         int64_t q_stride, const void *k, float scale, float *s,
                                         int64_t s_stride);
    void (*attn_mix[SL_KV_TYPE_COUNT])(int64_t n_q, int64_t n_tok, int64_t d, const float *p,
                                       int64_t p_stride, const float *keep, const void *v,
                                       float *acc, int64_t acc_stride);
    /* p[t] = exp(s[t] - max) for t < n (n <= 16); returns the sum in a fixed order. p may be s. exp(-inf) = 0.
     * Error: within 4 ulp. */
    float (*exp_sum)(int64_t n, const float *s, float max, float *p);
} sl_kern;

/* An ISA: one file and one row. */
typedef struct sl_isa {
    const char *name;
    bool (*usable)(void);        /* does this CPU (and operating system) have it? */
    void (*fill)(sl_kern *kern); /* overwrite the slots it does better */
} sl_isa;

#define X(name) extern const sl_isa sl_isa_##name;
#include "kern/isas.def"
#undef X

int32_t sl_isa_count(void);
const sl_isa *sl_isa_at(int32_t i); /* from the plainest up; all that are compiled in */

/* Fill the table up to and including `isa` (NULL: the best usable). SL_EINVAL: no such ISA (the known ones are named);
 * SL_ENOTSUP: this CPU lacks it. */
sl_status sl_kern_init(sl_kern *kern, const char *isa, sl_error *err);

#endif
