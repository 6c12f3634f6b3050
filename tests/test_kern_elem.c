/* test_kern_elem.c - everything of kern/ that is no matrix product: activations, norm, glu, rope, attention.
 *
 * Each instruction set is held to double precision (or, for activations, to the definition), and to itself: an
 * element's bits don't depend on where it stands or how many there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "help_kern.h"

/* Run a check on every instruction set that this CPU has. */
static void on_each_isa(void (*check)(const sl_kern *kern, const sl_kern *scalar)) {
    sl_kern scalar;
    assert_int_equal(sl_kern_init(&scalar, "scalar", NULL), SL_OK);
    for (int32_t i = 0; i < sl_isa_count(); i++) {
        sl_kern kern;
        if (!sl_isa_at(i)->usable()) {
            print_message("this CPU lacks %s: not tested\n", sl_isa_at(i)->name);
            continue;
        }
        assert_int_equal(sl_kern_init(&kern, sl_isa_at(i)->name, NULL), SL_OK);
        check(&kern, &scalar);
    }
}

static float *floats(const help_guarded *g) { return (float *)(void *)g->data; }

static help_guarded guard_floats(int64_t n, size_t offset) {
    return help_guard((size_t)n * sizeof(float), offset);
}

static void check_near(const char *what, float got, double truth, double relative,
                       double absolute) {
    if (!(fabs((double)got - truth) <= relative * fabs(truth) + absolute)) {
        fail_msg("%s: %.9g, not %.9g", what, (double)got, truth);
    }
}

/* ---- activations ---- */

static int32_t round_away(float v) {
    const double r = round((double)v); /* half away from zero */
    return r > 127.0 ? 127 : r < -127.0 ? -127 : (int32_t)r;
}

static void check_act_block(const float *x, int32_t n, float d, const int8_t *qs) {
    float top = 0.0f;
    for (int32_t i = 0; i < n; i++) {
        top = fmaxf(top, fabsf(x[i]));
    }
    assert_true(d == top / 127.0f);
    for (int32_t i = 0; i < n; i++) {
        assert_int_equal(qs[i], d > 0.0f ? round_away(x[i] / d) : 0);
    }
}

static void check_act(const sl_kern *kern, const sl_kern *scalar) {
    help_rng rng = help_rng_make(1);
    assert_null(kern->act[SL_ACT_F32]);
    for (int32_t round = 0; round < 60; round++) {
        const int64_t n = round / HELP_MOOD_COUNT * 256;
        float *x = aligned_alloc(64, (size_t)(n + 16) * sizeof(float));
        assert_non_null(x);
        help_floats(&rng, (help_mood)(round % HELP_MOOD_COUNT), n, x);
        if (round % 3 == 1) {
            /* Halves of the step: ties, and what is just below and above them. */
            for (int64_t i = 0; i < n; i++) {
                const float tie = (float)((int32_t)(help_rng_next(&rng) % 254) - 127) + 0.5f;
                const uint32_t side = help_rng_next(&rng) % 3;
                x[i] = side == 0 ? tie : nextafterf(tie, side == 1 ? 0.0f : 1000.0f);
                x[i] = i % 32 == 0 ? 127.0f : i % 32 == 1 ? 0.49999997f : x[i];
            }
        }
        if (round % 7 == 6) {
            /* The largest and the smallest floats that there are. */
            for (int64_t i = 0; i < n; i++) {
                x[i] = i / 256 % 2 == 0 ? help_rng_float(&rng) * FLT_MAX
                                        : copysignf((float)(i % 5), help_rng_float(&rng)) * 1e-45f;
            }
        }
        for (int32_t act = SL_ACT_Q8_32; act < SL_ACT_COUNT; act++) {
            help_guarded a = help_guard(sl_act_bytes((sl_act)act, n), 0);
            help_guarded b = help_guard(sl_act_bytes((sl_act)act, n), 0);
            kern->act[act](x, n, a.data);
            scalar->act[act](x, n, b.data);
            assert_true(help_guard_intact(&a));
            assert_memory_equal(a.data, b.data, a.size);
            for (int64_t i = 0; act == SL_ACT_Q8_32 && i < n / 32; i++) {
                const sl_act_q8_32 *q = (const sl_act_q8_32 *)(void *)a.data + i;
                int32_t sum = 0;
                check_act_block(x + 32 * i, 32, q->d, q->qs);
                for (int32_t k = 0; k < 32; k++) {
                    sum += q->qs[k];
                }
                assert_true(q->s == q->d * (float)sum);
            }
            for (int64_t i = 0; act == SL_ACT_Q8_256 && i < n / 256; i++) {
                const sl_act_q8_256 *q = (const sl_act_q8_256 *)(void *)a.data + i;
                check_act_block(x + 256 * i, 256, q->d, q->qs);
                for (int32_t g = 0; g < 16; g++) {
                    int32_t sum = 0;
                    for (int32_t k = 0; k < 16; k++) {
                        sum += q->qs[16 * g + k];
                    }
                    assert_int_equal(q->sums[g], sum);
                }
            }
            help_guard_free(&a);
            help_guard_free(&b);
        }
        free(x);
    }
}

static void test_act(void **state) {
    (void)state;
    on_each_isa(check_act);
    assert_int_equal(sl_act_bytes(SL_ACT_F32, 12), 48);
    assert_int_equal(sl_act_bytes(SL_ACT_Q8_32, 96), 3 * sizeof(sl_act_q8_32));
    assert_int_equal(sl_act_bytes(SL_ACT_Q8_256, 512), 2 * sizeof(sl_act_q8_256));
    assert_int_equal(sl_act_bytes(SL_ACT_Q8_256, 0), 0);
}

/* ---- norm ---- */

static void check_norm(const sl_kern *kern, const sl_kern *scalar) {
    static const int64_t large[] = {576, 640, 896, 2048, 4864};
    help_rng rng = help_rng_make(2);
    (void)scalar;
    for (int64_t i = 0; i <= 205; i++) {
        const int64_t n = i <= 200 ? i : large[i - 201];
        const help_mood mood = (help_mood)(i % HELP_MOOD_COUNT);
        help_guarded x = guard_floats(n, 4);
        help_guarded w = guard_floats(n, 8);
        help_guarded y = guard_floats(n, 12);
        help_floats(&rng, mood, n, floats(&x));
        help_floats(&rng, HELP_UNIFORM, n, floats(&w));
        for (int32_t with_w = 0; with_w < 2; with_w++) {
            double sum = 0.0;
            for (int64_t k = 0; k < n; k++) {
                sum += (double)floats(&x)[k] * (double)floats(&x)[k];
            }
            const double root = sqrt(sum / (double)(n > 0 ? n : 1) + (double)1e-5f);
            kern->norm_rms(n, floats(&x), with_w ? floats(&w) : NULL, 1e-5f, floats(&y));
            assert_true(help_guard_intact(&y));
            for (int64_t k = 0; k < n; k++) {
                const double wk = with_w ? (double)floats(&w)[k] : 1.0;
                check_near("norm_rms", floats(&y)[k], (double)floats(&x)[k] / root * wk, 3e-7,
                           1e-44);
            }
        }
        /* In place. */
        kern->norm_rms(n, floats(&x), floats(&w), 1e-5f, floats(&x));
        assert_true(n == 0 || memcmp(x.data, y.data, x.size) == 0);
        help_guard_free(&x);
        help_guard_free(&w);
        help_guard_free(&y);
    }
}

static void test_norm(void **state) {
    (void)state;
    on_each_isa(check_norm);
}

/* ---- elementwise: y[i] from a[i] and b[i] ---- */

typedef void (*elem_fn)(const sl_kern *kern, int64_t n, const float *a, const float *b, float *y);

static void elem_add(const sl_kern *kern, int64_t n, const float *a, const float *b, float *y) {
    kern->add(n, a, b, y);
}

static void elem_scale(const sl_kern *kern, int64_t n, const float *a, const float *b, float *y) {
    (void)b;
    kern->scale(n, a, 0.37f, y);
}

static void elem_silu(const sl_kern *kern, int64_t n, const float *a, const float *b, float *y) {
    kern->glu[SL_GLU_SILU](n, a, b, y);
}

static void elem_gelu(const sl_kern *kern, int64_t n, const float *a, const float *b, float *y) {
    kern->glu[SL_GLU_GELU_TANH](n, a, b, y);
}

static void elem_softcap(const sl_kern *kern, int64_t n, const float *a, const float *b, float *y) {
    (void)b;
    kern->softcap(n, a, 30.0f, y);
}

static double truth_add(double a, double b) { return a + b; }

static double truth_scale(double a, double b) {
    (void)b;
    return a * (double)0.37f;
}

static double truth_silu(double a, double b) { return a / (1.0 + exp(-a)) * b; }

/* g/2 (1 + tanh z), in the form that loses nothing for large negative z. */
static double truth_gelu(double a, double b) {
    const double z = sqrt(2.0 / acos(-1.0)) * (a + 0.044715 * a * a * a);
    return a / (1.0 + exp(-2.0 * z)) * b;
}

static double truth_softcap(double a, double b) {
    (void)b;
    return 30.0 * tanh(a / 30.0);
}

static const struct {
    const char *name;
    elem_fn fn;
    double (*truth)(double a, double b);
    double relative, absolute;
    bool alias_b;
} elems[] = {
    {"add", elem_add, truth_add, 6e-8, 1e-45, true},
    {"scale", elem_scale, truth_scale, 6e-8, 1e-45, false},
    {"silu", elem_silu, truth_silu, 1e-6, 1e-7, true},
    {"gelu_tanh", elem_gelu, truth_gelu, 1e-6, 1e-7, true},
    {"softcap", elem_softcap, truth_softcap, 1e-6, 1e-7, false},
};

static void elem_inputs(help_rng *rng, int64_t n, float *a, float *b) {
    static const float reach[] = {1.0f, 8.0f, 60.0f, 3000.0f, 1e-4f, 1e-38f};
    for (int64_t i = 0; i < n; i++) {
        a[i] = help_rng_float(rng) * reach[help_rng_next(rng) % 6];
        /* A large factor brings the far tail of silu and gelu back into sight. */
        b[i] = help_rng_float(rng) * (i % 7 == 6 ? 1e20f : reach[help_rng_next(rng) % 4]);
    }
}

static void check_elem(const sl_kern *kern, const sl_kern *scalar) {
    (void)scalar;
    help_rng rng = help_rng_make(3);
    for (size_t e = 0; e < sizeof elems / sizeof elems[0]; e++) {
        for (int64_t n = 0; n <= 200; n++) {
            const size_t off = (size_t)n % 16 * 4;
            help_guarded a = guard_floats(n, off);
            help_guarded b = guard_floats(n, off + 4);
            help_guarded y = guard_floats(n, off + 8);
            elem_inputs(&rng, n, floats(&a), floats(&b));
            elems[e].fn(kern, n, floats(&a), floats(&b), floats(&y));
            assert_true(help_guard_intact(&y));
            for (int64_t i = 0; i < n; i++) {
                const double truth = elems[e].truth((double)floats(&a)[i], (double)floats(&b)[i]);
                check_near(elems[e].name, floats(&y)[i], truth, elems[e].relative,
                           elems[e].absolute);
                /* The same bits alone. */
                float alone = 0.0f;
                elems[e].fn(kern, 1, floats(&a) + i, floats(&b) + i, &alone);
                assert_memory_equal(&alone, floats(&y) + i, sizeof alone);
            }
            if (elems[e].alias_b) {
                help_guarded b2 = guard_floats(n, 0);
                memcpy(b2.data, b.data, b.size);
                elems[e].fn(kern, n, floats(&a), floats(&b2), floats(&b2));
                assert_true(n == 0 || memcmp(b2.data, y.data, y.size) == 0);
                help_guard_free(&b2);
            }
            elems[e].fn(kern, n, floats(&a), floats(&b), floats(&a));
            assert_true(n == 0 || memcmp(a.data, y.data, y.size) == 0);
            help_guard_free(&a);
            help_guard_free(&b);
            help_guard_free(&y);
        }
    }
    /* Far out: no NaN, no overflow on the way. */
    static const float far[] = {FLT_MAX, -FLT_MAX, 1e30f, -1e30f, 90.0f, -90.0f, 0.0f, -0.0f};
    for (int32_t i = 0; i < 8; i++) {
        const float one = 1.0f;
        float y = NAN;
        kern->glu[SL_GLU_SILU](1, &far[i], &one, &y);
        check_near("silu far", y, far[i] > 0.0f ? (double)far[i] : 0.0, 1e-6, 1e-7);
        kern->glu[SL_GLU_GELU_TANH](1, &far[i], &one, &y);
        check_near("gelu far", y, far[i] > 0.0f ? (double)far[i] : 0.0, 1e-6, 1e-7);
        kern->softcap(1, &far[i], 50.0f, &y);
        check_near("softcap far", y, 50.0 * tanh((double)far[i] / 50.0), 1e-6, 1e-7);
    }
}

static void test_elem(void **state) {
    (void)state;
    on_each_isa(check_elem);
}

/* ---- rope ---- */

static void check_rope(const sl_kern *kern, const sl_kern *scalar) {
    help_rng rng = help_rng_make(4);
    (void)scalar;
    assert_null(kern->rope[SL_ROPE_NONE]);
    for (int32_t kind = SL_ROPE_NEIGHBOUR; kind <= SL_ROPE_HALF; kind++) {
        for (int64_t n_rot = 0; n_rot <= 200; n_rot += 2) {
            const int64_t half = n_rot / 2;
            help_guarded cs = guard_floats(n_rot, 4);
            help_guarded x = guard_floats(n_rot, 8);
            help_guarded y = guard_floats(n_rot, 12);
            for (int64_t i = 0; i < half; i++) {
                const double angle = (double)help_rng_float(&rng) * 4.0;
                floats(&cs)[i] = (float)cos(angle);
                floats(&cs)[half + i] = (float)sin(angle);
            }
            help_floats(&rng, HELP_UNIFORM, n_rot, floats(&x));
            memcpy(y.data, x.data, x.size);
            kern->rope[kind](n_rot, floats(&cs), floats(&y));
            assert_true(help_guard_intact(&y));
            for (int64_t i = 0; i < half; i++) {
                const int64_t first = kind == SL_ROPE_HALF ? i : 2 * i;
                const int64_t second = kind == SL_ROPE_HALF ? i + half : 2 * i + 1;
                const double c = (double)floats(&cs)[i];
                const double s = (double)floats(&cs)[half + i];
                const double a = (double)floats(&x)[first];
                const double b = (double)floats(&x)[second];
                check_near("rope", floats(&y)[first], a * c - b * s, 0.0, 2e-7);
                check_near("rope", floats(&y)[second], a * s + b * c, 0.0, 2e-7);
                float pair[2] = {(float)a, (float)b};
                const float turn[2] = {(float)c, (float)s};
                kern->rope[kind](2, turn, pair);
                assert_memory_equal(&pair[0], floats(&y) + first, sizeof(float));
                assert_memory_equal(&pair[1], floats(&y) + second, sizeof(float));
            }
            help_guard_free(&cs);
            help_guard_free(&x);
            help_guard_free(&y);
        }
    }
}

static void test_rope(void **state) {
    (void)state;
    on_each_isa(check_rope);
}

/* ---- KV cache ---- */

static void check_kv_store(const sl_kern *kern, const sl_kern *scalar) {
    static const size_t elem[SL_KV_TYPE_COUNT] = {[SL_KV_F16] = 2, [SL_KV_F32] = 4};
    help_rng rng = help_rng_make(5);
    (void)scalar;
    for (int32_t type = 0; type < SL_KV_TYPE_COUNT; type++) {
        for (int64_t n = 0; n <= 200; n++) {
            help_guarded x = guard_floats(n, 4);
            help_guarded h = help_guard((size_t)n * elem[type], 1 + (size_t)n % 5);
            for (int64_t i = 0; i < n; i++) {
                /* Any exponent, but no NaN: subnormal halves, ties, overflow to infinity. */
                const uint32_t bits = help_rng_next(&rng) & (n % 2 ? 0xffffe000u : 0xfffff000u);
                const uint32_t sane = (bits & 0x8fffffffu) | 0x30000000u;
                const uint32_t put = i % 3 == 0 ? sane : bits & 0xbfffffffu;
                memcpy(floats(&x) + i, &put, sizeof put);
            }
            kern->kv_store[type](n, floats(&x), h.data);
            assert_true(help_guard_intact(&h));
            for (int64_t i = 0; i < n; i++) {
                if (type == SL_KV_F32) {
                    assert_memory_equal(h.data + 4 * i, floats(&x) + i, 4);
                } else {
                    uint16_t got;
                    memcpy(&got, h.data + 2 * i, sizeof got);
                    assert_int_equal(got, sl_f32_to_f16(floats(&x)[i]));
                }
            }
            help_guard_free(&x);
            help_guard_free(&h);
        }
    }
}

static void test_kv_store(void **state) {
    (void)state;
    on_each_isa(check_kv_store);
}

/* Every half there is, through attention: a score with one element of one. */
static void check_kv_half(const sl_kern *kern, const sl_kern *scalar) {
    (void)scalar;
    for (uint32_t h = 0; h < 65536; h++) {
        const uint16_t half = (uint16_t)h;
        const float one = 1.0f;
        float s = 0.0f;
        kern->attn_score[SL_KV_F16](1, 1, 1, &one, 1, &half, 1.0f, &s, 1);
        const float want = sl_f16_to_f32(half);
        assert_true(s == want || (isnan(s) && isnan(want)));
    }
}

static void test_kv_half(void **state) {
    (void)state;
    on_each_isa(check_kv_half);
}

/* ---- attention ---- */

typedef struct attn_case {
    int64_t n_q, n_tok, d, stride;
    help_guarded q, p, keep, kv;
    float *values; /* what the KV elements stand for */
} attn_case;

static attn_case attn_make(help_rng *rng, int32_t type, int64_t n_q, int64_t n_tok, int64_t d) {
    attn_case t = {.n_q = n_q, .n_tok = n_tok, .d = d, .stride = d + (int64_t)(d % 3)};
    const size_t elem = type == SL_KV_F16 ? 2 : 4;
    t.q = guard_floats(n_q * t.stride, 4);
    t.p = guard_floats(n_q * 16, 8);
    t.keep = guard_floats(n_q, 12);
    t.kv = help_guard((size_t)(n_tok * d) * elem, 1 + (size_t)d % 4);
    t.values = malloc((size_t)(n_tok * d + 1) * sizeof(float));
    assert_non_null(t.values);
    help_floats(rng, HELP_UNIFORM, n_q * t.stride, floats(&t.q));
    help_floats(rng, HELP_UNIFORM, n_q * 16, floats(&t.p));
    help_floats(rng, HELP_UNIFORM, n_q, floats(&t.keep));
    for (int64_t i = 0; i < n_tok * d; i++) {
        const float v = help_rng_float(rng);
        const uint16_t h = sl_f32_to_f16(v);
        if (type == SL_KV_F16) {
            memcpy(t.kv.data + 2 * i, &h, 2);
            t.values[i] = sl_f16_to_f32(h);
        } else {
            memcpy(t.kv.data + 4 * i, &v, 4);
            t.values[i] = v;
        }
    }
    return t;
}

static void attn_free(attn_case *t) {
    help_guard_free(&t->q);
    help_guard_free(&t->p);
    help_guard_free(&t->keep);
    help_guard_free(&t->kv);
    free(t->values);
}

static void check_score(const sl_kern *kern, int32_t type, const attn_case *t) {
    const size_t elem = type == SL_KV_F16 ? 2 : 4;
    help_guarded s = guard_floats(t->n_q * 16, 4);
    kern->attn_score[type](t->n_q, t->n_tok, t->d, floats(&t->q), t->stride, t->kv.data, 0.125f,
                           floats(&s), 16);
    assert_true(help_guard_intact(&s));
    for (int64_t i = 0; i < t->n_q; i++) {
        for (int64_t k = 0; k < 16; k++) {
            const uint8_t *gap = s.data + (size_t)(i * 16 + k) * 4;
            if (k >= t->n_tok) {
                assert_true(gap[0] == 0xA5 && gap[3] == 0xA5);
                continue;
            }
            double sum = 0.0;
            double size = 0.0;
            for (int64_t j = 0; j < t->d; j++) {
                const double v =
                    (double)floats(&t->q)[i * t->stride + j] * (double)t->values[k * t->d + j];
                sum += v;
                size += fabs(v);
            }
            check_near("attn_score", floats(&s)[i * 16 + k], sum * 0.125, 0.0, 1e-6 * size + 1e-40);
            float alone = 0.0f;
            kern->attn_score[type](1, 1, t->d, floats(&t->q) + i * t->stride, 0,
                                   t->kv.data + (size_t)(k * t->d) * elem, 0.125f, &alone, 0);
            assert_memory_equal(&alone, gap, sizeof alone);
        }
    }
    help_guard_free(&s);
}

static void check_mix(const sl_kern *kern, int32_t type, const attn_case *t) {
    help_guarded acc = guard_floats(t->n_q * t->stride, 4);
    help_guarded start = guard_floats(t->n_q * t->stride, 4);
    memcpy(start.data, t->q.data, start.size);
    memcpy(acc.data, start.data, acc.size);
    kern->attn_mix[type](t->n_q, t->n_tok, t->d, floats(&t->p), 16, floats(&t->keep), t->kv.data,
                         floats(&acc), t->stride);
    assert_true(help_guard_intact(&acc));
    for (int64_t i = 0; i < t->n_q; i++) {
        float *row = floats(&acc) + i * t->stride;
        const float *first = floats(&start) + i * t->stride;
        float *alone = malloc((size_t)t->d * sizeof(float));
        assert_non_null(alone);
        for (int64_t j = 0; j < t->d; j++) {
            double sum = (double)first[j] * (double)floats(&t->keep)[i];
            double size = fabs(sum);
            for (int64_t k = 0; k < t->n_tok; k++) {
                const double v =
                    (double)floats(&t->p)[i * 16 + k] * (double)t->values[k * t->d + j];
                sum += v;
                size += fabs(v);
            }
            check_near("attn_mix", row[j], sum, 0.0, 1e-6 * size + 1e-40);
        }
        for (int64_t j = t->d; j < t->stride; j++) {
            assert_true(row[j] == first[j]); /* beyond the head: untouched */
        }
        memcpy(alone, first, (size_t)t->d * sizeof(float));
        kern->attn_mix[type](1, t->n_tok, t->d, floats(&t->p) + i * 16, 0, floats(&t->keep) + i,
                             t->kv.data, alone, 0);
        assert_memory_equal(alone, row, (size_t)t->d * sizeof(float));
        free(alone);
    }
    /* Token by token (keep 1 after the first) is the same as all at once. */
    help_guarded step = guard_floats(t->n_q * t->stride, 4);
    memcpy(step.data, start.data, step.size);
    const size_t row_bytes = (size_t)t->d * (type == SL_KV_F16 ? 2 : 4);
    for (int64_t k = 0; k < t->n_tok; k++) {
        for (int64_t i = 0; i < t->n_q; i++) {
            const float one = 1.0f;
            kern->attn_mix[type](
                1, 1, t->d, floats(&t->p) + i * 16 + k, 1, k == 0 ? floats(&t->keep) + i : &one,
                t->kv.data + (size_t)k * row_bytes, floats(&step) + i * t->stride, 0);
        }
    }
    assert_memory_equal(step.data, acc.data, acc.size);
    help_guard_free(&step);
    help_guard_free(&acc);
    help_guard_free(&start);
}

static void check_attn(const sl_kern *kern, const sl_kern *scalar) {
    static const int64_t dims[] = {1, 2, 7, 8, 9, 15, 31, 64, 65, 80, 96, 128, 200, 256};
    help_rng rng = help_rng_make(6);
    (void)scalar;
    for (int32_t type = 0; type < SL_KV_TYPE_COUNT; type++) {
        for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
            for (int64_t n_tok = 1; n_tok <= 16; n_tok++) {
                attn_case t = attn_make(&rng, type, 1 + (n_tok + (int64_t)i) % 9, n_tok, dims[i]);
                check_score(kern, type, &t);
                check_mix(kern, type, &t);
                attn_free(&t);
            }
        }
    }
}

static void test_attn(void **state) {
    (void)state;
    on_each_isa(check_attn);
}

static void check_exp_sum(const sl_kern *kern, const sl_kern *scalar) {
    help_rng rng = help_rng_make(7);
    (void)scalar;
    for (int32_t round = 0; round < 4000; round++) {
        const int64_t n = round % 17;
        help_guarded s = guard_floats(n, 4);
        help_guarded p = guard_floats(n, 8);
        const float reach = (float)(round % 13 * 9);
        float max = -INFINITY;
        for (int64_t i = 0; i < n; i++) {
            floats(&s)[i] =
                help_rng_next(&rng) % 20 == 0 ? -INFINITY : help_rng_float(&rng) * reach;
            max = fmaxf(max, floats(&s)[i]);
        }
        max = isinf(max) ? 0.0f : max;
        const float sum = kern->exp_sum(n, floats(&s), max, floats(&p));
        double want = 0.0;
        assert_true(help_guard_intact(&p));
        for (int64_t i = 0; i < n; i++) {
            const double truth = exp((double)(floats(&s)[i] - max));
            const float got = floats(&p)[i];
            want += truth;
            if (isinf(floats(&s)[i])) {
                assert_true(got == 0.0f);
            }
            if (!(help_ulps(got, truth) <= 4.0)) {
                fail_msg("exp(%.9g): %.9g, not %.9g", (double)(floats(&s)[i] - max), (double)got,
                         truth);
            }
            float alone = 0.0f;
            kern->exp_sum(1, floats(&s) + i, max, &alone);
            assert_memory_equal(&alone, floats(&p) + i, sizeof alone);
        }
        check_near("exp_sum", sum, want, 1e-6, 1e-44);
        /* In place, to the bit. */
        const float again = kern->exp_sum(n, floats(&s), max, floats(&s));
        assert_memory_equal(&again, &sum, sizeof sum);
        assert_true(n == 0 || memcmp(s.data, p.data, s.size) == 0);
        help_guard_free(&s);
        help_guard_free(&p);
    }
}

static void test_exp_sum(void **state) {
    (void)state;
    on_each_isa(check_exp_sum);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_act),      cmocka_unit_test(test_norm),
        cmocka_unit_test(test_elem),     cmocka_unit_test(test_rope),
        cmocka_unit_test(test_kv_store), cmocka_unit_test(test_kv_half),
        cmocka_unit_test(test_attn),     cmocka_unit_test(test_exp_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
