/* test_sample.c - the sampler against its laws: the sets that the filters keep equal those of a naive model that
 * sorts, draws follow the softmax, ties and non-numbers are settled as documented, and nothing is allocated. */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sample/chain.h"
#include "sample/random.h"

static uint64_t state = 7;

static uint32_t rnd(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(((state >> 32) * n) >> 32);
}

static float rnd_logit(int kind) {
    const double u = rnd(1 << 24) / (double)(1 << 24);
    switch (kind) {
    case 0:
        return (float)(u * 30 - 15);
    case 1: /* many ties */
        return (float)((int)(u * 12) - 6) * 0.5f;
    case 2: /* far apart: most weigh nothing */
        return (float)(u * 400 - 200);
    default: /* mixed signs of zero and ties at the top */
        return rnd(3) == 0 ? 0.0f : rnd(2) == 0 ? -0.0f : (float)(-u);
    }
}

static sl_sampler *open_sampler(sl_ledger *ledger, int32_t n_vocab, int32_t n_ctx) {
    sl_sampler *s = NULL;
    sl_error err;
    sl_ledger_init(ledger, 0);
    if (sl_sampler_open(ledger, n_vocab, n_ctx, &s, &err) != SL_OK) {
        fail_msg("%s", err.text);
    }
    return s;
}

static void close_sampler(sl_ledger *ledger, sl_sampler *s) {
    sl_memory memory;
    sl_sampler_close(s);
    sl_ledger_read(ledger, &memory);
    assert_int_equal(memory.total_bytes, 0);
}

/* The published first outputs of both generators. */
static void test_random(void **unused) {
    (void)unused;
    uint64_t seed = 1234567;
    static const uint64_t split[] = {6457827717110365317u, 3203168211198807973u,
                                     9817491932198370423u, 4593380528125082431u,
                                     16408922859458223821u};
    for (int i = 0; i < 5; i++) {
        assert_true(sl_random_splitmix(&seed) == split[i]);
    }
    sl_random r = {{1, 2, 3, 4}};
    static const uint64_t next[] = {11520,
                                    0,
                                    1509978240,
                                    1215971899390074240u,
                                    1216172134540287360u,
                                    607988272756665600u,
                                    16172922978634559625u,
                                    8476171486693032832u,
                                    10595114339597558777u,
                                    2904607092377533576u};
    for (int i = 0; i < 10; i++) {
        assert_true(sl_random_next(&r) == next[i]);
    }
    int count[7] = {0};
    for (int i = 0; i < 70000; i++) {
        count[sl_random_below(&r, 7)]++;
    }
    for (int i = 0; i < 7; i++) {
        assert_in_range(count[i], 9600, 10400);
    }
    assert_int_equal(sl_random_below(&r, 1), 0);
}

static void test_exp(void **unused) {
    (void)unused;
    assert_true(sl_chain_exp(0.0) == 1.0 && sl_chain_exp(-0.0) == 1.0);
    assert_true(sl_chain_exp(-701.0) == 0.0 && sl_chain_exp(-(double)INFINITY) == 0.0);
    assert_true(sl_chain_exp((double)NAN) == 0.0);
    for (int i = 0; i < 200000; i++) {
        const double x = -(rnd(1 << 30) / (double)(1 << 30)) * (i % 2 == 0 ? 700 : 2);
        const double expected = exp(x), got = sl_chain_exp(x);
        if (fabs(got - expected) > 2e-14 * expected) {
            fail_msg("e^%.17g = %.17g, expected %.17g", x, got, expected);
        }
    }
    assert_true(sl_chain_weight(0.0) == SL_WEIGHT_ONE);
    assert_true(sl_chain_weight(-(double)INFINITY) == 0 && sl_chain_weight(-28.42) == 0 &&
                sl_chain_weight(-27.0) == 2);
}

/* ---- the sets that filters keep, against sorting ---- */

static int naive_order(const void *a, const void *b) {
    const sl_candidate *x = a, *y = b;
    if (x->logit != y->logit) {
        return x->logit > y->logit ? -1 : 1;
    }
    return x->id < y->id ? -1 : x->id > y->id;
}

/* How many of the sorted candidates each rule keeps; *close: the answer hangs on the last bits of a sum. */
static int32_t naive_top_p(const sl_candidate *sorted, int32_t n, double p, bool *close) {
    long double total = 0, sum = 0;
    for (int32_t i = 0; i < n; i++) {
        total += expl((long double)sorted[i].logit - (long double)sorted[0].logit);
    }
    for (int32_t i = 0; i < n; i++) {
        sum += expl((long double)sorted[i].logit - (long double)sorted[0].logit);
        *close = *close || fabsl(sum - (long double)p * total) < 1e-9L * total;
        if (sum >= (long double)p * total) {
            return i + 1;
        }
    }
    return n;
}

static int32_t naive_min_p(const sl_candidate *sorted, int32_t n, double min_p) {
    int32_t i = 0;
    while (i < n && exp((double)sorted[i].logit - (double)sorted[0].logit) >= min_p) {
        i++;
    }
    return i;
}

enum { CAP = 262144 };
static sl_candidate chain_item[CAP], naive_item[CAP];
static float chain_logits[CAP];

static void check_sets(sl_chain *c, int32_t n, const sl_sampling *o, int *n_close) {
    bool close = false;
    c->item = chain_item;
    c->n = c->n_vocab = n;
    for (int32_t i = 0; i < n; i++) {
        chain_item[i] = naive_item[i] = (sl_candidate){.logit = chain_logits[i], .id = i};
    }
    static const sl_filter *const row[] = {&sl_filter_top_k, &sl_filter_top_p, &sl_filter_min_p};
    for (int i = 0; i < 3; i++) {
        if (row[i]->on(o)) {
            row[i]->apply(c, o);
        }
    }
    qsort(naive_item, (size_t)n, sizeof *naive_item, naive_order);
    int32_t n_keep = n;
    if (o->top_k > 0 && o->top_k < n_keep) {
        n_keep = o->top_k;
    }
    if (o->top_p > 0 && o->top_p < 1) {
        n_keep = naive_top_p(naive_item, n_keep, (double)o->top_p, &close);
    }
    if (o->min_p > 0) {
        n_keep = naive_min_p(naive_item, n_keep, (double)o->min_p);
    }
    if (close) {
        (*n_close)++;
        return;
    }
    assert_int_equal(c->n, n_keep);
    for (int32_t i = 0; i < c->n; i++) { /* in id order, and each among the naive model's */
        assert_true(i == 0 || c->item[i - 1].id < c->item[i].id);
        assert_true(naive_order(&c->item[i], &naive_item[n_keep - 1]) <= 0);
        assert_true(c->item[i].logit == chain_logits[c->item[i].id]);
    }
}

static void test_sets(void **unused) {
    (void)unused;
    static sl_chain c;
    int n_close = 0;
    for (int round = 0; round < 20000; round++) {
        const int32_t n = 1 + (int32_t)rnd(round % 10 == 0 ? 2000 : 40);
        const int kind = round % 4;
        for (int32_t i = 0; i < n; i++) {
            chain_logits[i] = rnd_logit(kind);
        }
        if (rnd(4) == 0) {
            chain_logits[rnd((uint32_t)n)] = -INFINITY;
            chain_logits[rnd((uint32_t)n)] = 1.0f;
        }
        const sl_sampling o = {
            .top_k = rnd(2) == 0 ? 0 : (int32_t)rnd((uint32_t)n + 3),
            .top_p = rnd(2) == 0 ? 0 : (float)(rnd(1001) / 1000.0),
            .min_p = rnd(2) == 0 ? 0 : (float)(rnd(1001) / 1000.0) * (rnd(2) == 0 ? 1.0f : 0.01f),
        };
        check_sets(&c, n, &o, &n_close);
    }
    assert_true(n_close < 500);
    for (int round = 0; round < 6; round++) { /* the widest vocabularies */
        for (int32_t i = 0; i < CAP; i++) {
            chain_logits[i] = round == 5 ? 0.25f : rnd_logit(round % 3);
        }
        const sl_sampling o[3] = {
            {.top_k = 40, .min_p = 0.05f}, {.top_p = 0.95f}, {.top_k = 200000}};
        for (int k = 0; k < 3; k++) {
            check_sets(&c, CAP, &o[k], &n_close);
        }
    }
}

/* Where a sum is exactly the share, the set is closed there; equal logits fall to the lower ids. */
static void test_ties(void **unused) {
    (void)unused;
    static sl_chain c;
    for (int32_t i = 0; i < 8; i++) {
        chain_item[i] = (sl_candidate){.logit = 2.0f, .id = i};
    }
    c.item = chain_item;
    c.n = c.n_vocab = 8;
    sl_chain_keep_share(&c, 0.5);
    assert_int_equal(c.n, 4);
    assert_int_equal(c.item[3].id, 3);
    sl_chain_keep_count(&c, 3);
    assert_int_equal(c.n, 3);
    assert_int_equal(c.item[2].id, 2);
    sl_chain_keep_share(&c, 1e-30);
    assert_int_equal(c.n, 1);
    assert_int_equal(c.item[0].id, 0);
    const float zero[3] = {-0.0f, 0.0f, -0.0f}; /* equal, whatever the sign */
    for (int32_t i = 0; i < 3; i++) {
        c.item[i] = (sl_candidate){.logit = zero[i], .id = i};
    }
    c.n = 3;
    sl_chain_keep_count(&c, 1);
    assert_int_equal(c.item[0].id, 0);
}

static void test_greedy(void **unused) {
    (void)unused;
    sl_ledger ledger;
    sl_sampler *s = open_sampler(&ledger, 6, 8);
    const sl_sampling o = {.top_k = 3, .top_p = 0.5f};
    sl_sampler_arm(s, &o);
    static const struct {
        float logit[6];
        int32_t id;
    } row[] = {
        {{1, 3, 2, 3, 0, -1}, 1},
        {{-5, -4, -3, -2, -1, -0.5f}, 5},
        {{NAN, NAN, -1e30f, NAN, 1, NAN}, 4},
        {{NAN, NAN, NAN, NAN, NAN, NAN}, 0},
        {{-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY}, 0},
        {{NAN, -INFINITY, NAN, -INFINITY, NAN, -INFINITY}, 0},
        {{1, INFINITY, 2, INFINITY, NAN, 3}, 1},
        {{-INFINITY, NAN, -INFINITY, INFINITY, INFINITY, NAN}, 3},
        {{0.0f, -0.0f, 0.0f, 0.0f, 0.0f, 0.0f}, 0},
        {{-0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f}, 0},
    };
    for (int warm = 0; warm < 3;
         warm++) { /* greedy; drawn when there is one choice; penalty for none */
        const sl_sampling other = {.temperature = warm == 1 ? 1.0f : 0.0f,
                                   .top_k = 1,
                                   .repeat_penalty = warm == 2 ? 1.5f : 0.0f};
        sl_sampler_arm(s, &other);
        for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
            if (sl_sampler_pick(s, row[i].logit) != row[i].id) {
                fail_msg("round %d, row %zu: %d", warm, i, sl_sampler_pick(s, row[i].logit));
            }
        }
    }
    close_sampler(&ledger, s);
}

/* Draws against the probabilities that the options give; chi-square with the 99.99 % bound. */
static void check_distribution(const sl_sampling *o, const float *logits, int32_t n,
                               const double *probability) {
    enum { N_DRAW = 200000 };
    sl_ledger ledger;
    sl_sampler *s = open_sampler(&ledger, n, 8);
    int count[32] = {0};
    sl_sampler_arm(s, o);
    for (int i = 0; i < N_DRAW; i++) {
        count[sl_sampler_pick(s, logits)]++;
    }
    double chi = 0;
    int freedom = -1;
    for (int32_t i = 0; i < n; i++) {
        const double expected = probability[i] * N_DRAW;
        if (probability[i] == 0.0) {
            assert_int_equal(count[i], 0);
            continue;
        }
        chi += (count[i] - expected) * (count[i] - expected) / expected;
        freedom++;
    }
    /* Wilson-Hilferty: a chi-square is about freedom (1 - 2/(9 freedom) + z sqrt(2/(9 freedom)))^3, z = 3.72. */
    const double a = 2.0 / (9.0 * freedom);
    assert_true(freedom < 1 || chi < freedom * pow(1 - a + 3.72 * sqrt(a), 3));
    close_sampler(&ledger, s);
}

static void softmax(const float *logits, int32_t n, double temperature, const bool *keep,
                    double *out) {
    double total = 0;
    for (int32_t i = 0; i < n; i++) {
        out[i] = keep == NULL || keep[i] ? exp((double)logits[i] / temperature) : 0.0;
        total += out[i];
    }
    for (int32_t i = 0; i < n; i++) {
        out[i] /= total;
    }
}

static void test_distribution(void **unused) {
    (void)unused;
    enum { N = 20 };
    float logits[N];
    double p[N];
    bool keep[N];
    for (int32_t i = 0; i < N; i++) {
        logits[i] = (float)((i * 7) % N) * 0.2f - 2.0f;
    }
    static const float temperature[] = {1.0f, 0.5f, 2.0f, 100.0f};
    for (int k = 0; k < 4; k++) {
        const sl_sampling o = {.temperature = temperature[k], .seed = (uint64_t)k};
        softmax(logits, N, (double)temperature[k], NULL, p);
        check_distribution(&o, logits, N, p);
    }
    /* Filters come before the temperature: the sets are those of temperature 1. */
    for (int32_t i = 0; i < N; i++) {
        keep[i] = (double)logits[i] > 1.8 - 5 * 0.2 + 0.1;
    }
    softmax(logits, N, 3.0, keep, p);
    check_distribution(&(sl_sampling){.temperature = 3.0f, .top_k = 5, .seed = 9}, logits, N, p);
    for (int32_t i = 0; i < N; i++) {
        keep[i] = exp((double)logits[i] - 1.8) >= 0.3;
    }
    softmax(logits, N, 0.8, keep, p);
    check_distribution(&(sl_sampling){.temperature = 0.8f, .min_p = 0.3f, .seed = 9}, logits, N, p);
    double order[N], sum = 0;
    softmax(logits, N, 1.0, NULL, order);
    for (int32_t rank = 0; rank < N; rank++) {
        int32_t best = 0;
        for (int32_t i = 1; i < N; i++) {
            best = order[i] > order[best] ? i : best;
        }
        keep[best] = sum < 0.7;
        sum += order[best];
        order[best] = -1;
    }
    softmax(logits, N, 1.5, keep, p);
    check_distribution(&(sl_sampling){.temperature = 1.5f, .top_p = 0.7f, .seed = 9}, logits, N, p);
}

static void test_reproducible(void **unused) {
    (void)unused;
    enum { N = 500, N_PICK = 64 };
    sl_ledger ledger;
    sl_sampler *s = open_sampler(&ledger, N, 100);
    float logits[N];
    int32_t first[N_PICK];
    for (int32_t i = 0; i < N; i++) {
        logits[i] = (float)((i * 37) % 101) * 0.0625f;
    }
    int n_other = 0;
    for (int round = 0; round < 4; round++) { /* seeds 5, 5, 6, 5 */
        const sl_sampling o = {.temperature = 1.25f,
                               .top_p = 0.9f,
                               .repeat_penalty = 1.25f,
                               .seed = round == 2 ? 6 : 5};
        sl_sampler_arm(s, &o);
        for (int i = 0; i < N_PICK; i++) {
            const int32_t id = sl_sampler_pick(s, logits);
            sl_sampler_accept(s, id);
            if (round == 0) {
                first[i] = id;
            } else if (round == 2) {
                n_other += id != first[i];
            } else {
                assert_int_equal(id, first[i]);
            }
        }
    }
    assert_true(n_other > N_PICK / 2);
    /* The same on every machine: these are from a model of the chain in another language. */
    static const int32_t pinned[8] = {494, 27, 262, 425, 212, 352, 166, 472};
    assert_memory_equal(first, pinned, sizeof pinned);
    close_sampler(&ledger, s);
}

/* Greedy picks under a penalty against a model that keeps the whole history. */
static void test_penalty(void **unused) {
    (void)unused;
    enum { N = 12, CTX = 20, LONG = 400 };
    sl_ledger ledger;
    sl_sampler *s = open_sampler(&ledger, N, CTX);
    /* By hand: positive divided, negative multiplied, once each. */
    const float hand[N] = {4, 3.9f, -1, -1.1f, -9, -9, -9, -9, -9, -9, -9, -9};
    sl_sampler_arm(s, &(sl_sampling){.repeat_penalty = 1.1f});
    assert_int_equal(sl_sampler_pick(s, hand), 0);
    sl_sampler_accept(s, 0);
    assert_int_equal(sl_sampler_pick(s, hand), 1); /* 4 / 1.1 < 3.9 */
    sl_sampler_accept(s, 1);
    assert_int_equal(sl_sampler_pick(s, hand), 0); /* both once */
    sl_sampler_accept(s, 0);
    sl_sampler_accept(s, 0);
    assert_int_equal(sl_sampler_pick(s, hand), 0); /* thrice counts once */
    const float below[N] = {-1, -1.05f, -9, -9, -9, -9, -9, -9, -9, -9, -9, -9};
    assert_int_equal(sl_sampler_pick(s, below), 0); /* both multiplied */
    sl_sampler_arm(s, &(sl_sampling){.repeat_penalty = 1.1f});
    sl_sampler_accept(s, 0);
    assert_int_equal(sl_sampler_pick(s, below), 1); /* -1 * 1.1 < -1.05 */
    sl_sampler_accept(s, -1);
    sl_sampler_accept(s, N); /* outside: ignored */
    assert_int_equal(sl_sampler_pick(s, below), 1);
    for (int round = 0; round < 300; round++) {
        int32_t history[LONG], n_history = 0;
        const sl_sampling o = {.repeat_penalty = 0.25f + (float)rnd(12) * 0.25f,
                               .repeat_last_n = (int32_t)rnd(9) - 1};
        sl_sampler_arm(s, &o);
        for (int step = 0; step < 60; step++) {
            float logits[N], moved[N];
            for (int32_t i = 0; i < N; i++) {
                logits[i] = moved[i] = rnd_logit(0);
            }
            int32_t window = o.repeat_last_n == 0  ? 64
                             : o.repeat_last_n < 0 ? CTX
                                                   : o.repeat_last_n;
            window = window < CTX ? window : CTX; /* a history is at most a context long */
            bool seen[N] = {false};
            for (int32_t i = n_history - 1; i >= 0 && i >= n_history - window; i--) {
                seen[history[i]] = true;
            }
            int32_t best = 0;
            for (int32_t i = 0; i < N; i++) {
                if (seen[i] && o.repeat_penalty != 1.0f) {
                    moved[i] =
                        logits[i] > 0 ? logits[i] / o.repeat_penalty : logits[i] * o.repeat_penalty;
                }
                best = moved[i] > moved[best] ? i : best;
            }
            assert_int_equal(sl_sampler_pick(s, logits), best);
            history[n_history++] = (int32_t)rnd(N);
            sl_sampler_accept(s, history[n_history - 1]);
        }
    }
    close_sampler(&ledger, s);
}

/* Any bits as logits, any legal options: an id in range, always. */
static void test_hostile(void **unused) {
    (void)unused;
    enum { N = 64 };
    sl_ledger ledger;
    sl_sampler *s = open_sampler(&ledger, N, 16);
    for (int round = 0; round < 20000; round++) {
        float logits[N];
        const int kind = (int)rnd(4);
        for (int32_t i = 0; i < N; i++) {
            const uint32_t bits =
                kind == 3 ? rnd(UINT32_MAX) | 0x7f000000u : rnd(UINT32_MAX) ^ rnd(2);
            memcpy(&logits[i], &bits, sizeof bits);
            if (kind == 1 && i != 5) {
                logits[i] = rnd(2) == 0 ? NAN : -INFINITY;
            }
        }
        static const float odd[] = {0, 1e-45f, 1e-30f, 0.5f, 1, 1.0000001f, 99, 100};
        const sl_sampling o = {.temperature = odd[rnd(8)],
                               .top_k = (int32_t)rnd(3) * (int32_t)rnd(INT32_MAX / 2),
                               .top_p = rnd(2) == 0 ? 1e-45f : 0.99999994f,
                               .min_p = rnd(2) == 0 ? 1e-45f : 1.0f,
                               .repeat_penalty = odd[rnd(8)],
                               .repeat_last_n = (int32_t)rnd(3) - 1};
        assert_int_equal(sl_sampling_check(&o, NULL), SL_OK);
        sl_sampler_arm(s, &o);
        for (int step = 0; step < 4; step++) {
            const int32_t id = sl_sampler_pick(s, logits);
            assert_in_range(id, 0, N - 1);
            sl_sampler_accept(s, id);
        }
    }
    close_sampler(&ledger, s);
}

static void test_check(void **unused) {
    (void)unused;
    sl_error err;
    assert_int_equal(sl_sampling_check(&(sl_sampling){0}, &err), SL_OK);
    assert_int_equal(sl_sampling_check(&(sl_sampling){.temperature = 100,
                                                      .top_k = INT32_MAX,
                                                      .top_p = 1,
                                                      .min_p = 1,
                                                      .repeat_penalty = 100,
                                                      .repeat_last_n = INT32_MAX},
                                       &err),
                     SL_OK);
    static const struct {
        sl_sampling o;
        const char *text;
    } row[] = {
        {{.temperature = -0.5f}, "temperature is -0.5: must be in 0..100"},
        {{.temperature = 101}, "temperature is 101: must be in 0..100"},
        {{.temperature = INFINITY}, "temperature is inf: must be in 0..100"},
        {{.temperature = NAN}, "temperature is nan: must be in 0..100"},
        {{.top_k = -1}, "top_k is -1: must be at least 0 (0: off)"},
        {{.top_p = 1.5f}, "top_p is 1.5: must be in 0..1"},
        {{.top_p = -1}, "top_p is -1: must be in 0..1"},
        {{.min_p = 2}, "min_p is 2: must be in 0..1"},
        {{.repeat_penalty = -2}, "repeat_penalty is -2: must be in 0..100"},
        {{.repeat_last_n = -2}, "repeat_last_n is -2: must be at least -1 (-1: all)"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        assert_int_equal(sl_sampling_check(&row[i].o, &err), SL_EINVAL);
        assert_string_equal(err.text, row[i].text);
        assert_int_equal(sl_sampling_check(&row[i].o, NULL), SL_EINVAL);
    }
}

static void test_memory(void **unused) {
    (void)unused;
    sl_ledger ledger;
    sl_memory before, after;
    sl_sampler *s = open_sampler(&ledger, CAP, 4096);
    sl_ledger_read(&ledger, &before);
    assert_int_equal(before.total_bytes, sl_sampler_bytes(CAP, 4096));
    assert_int_equal(before.now_bytes[SL_ACCOUNT_MISC], before.total_bytes);
    for (int32_t i = 0; i < CAP; i++) {
        chain_logits[i] = rnd_logit(0);
    }
    for (int round = 0; round < 8; round++) {
        sl_sampler_arm(s, &(sl_sampling){.temperature = (round & 1) != 0 ? 0.9f : 0.0f,
                                         .top_k = (round & 2) != 0 ? 40 : 0,
                                         .top_p = 0.95f,
                                         .min_p = (round & 4) != 0 ? 0.05f : 0.0f,
                                         .repeat_penalty = 1.1f});
        for (int i = 0; i < 3; i++) {
            sl_sampler_accept(s, sl_sampler_pick(s, chain_logits));
        }
    }
    sl_ledger_read(&ledger, &after);
    assert_true(after.n_alloc == before.n_alloc);
    assert_int_equal(after.total_bytes, before.total_bytes);
    close_sampler(&ledger, s);

    sl_error err;
    s = NULL;
    sl_ledger_init(&ledger, sl_sampler_bytes(100, 10) - 1);
    assert_int_equal(sl_sampler_open(&ledger, 100, 10, &s, &err), SL_EBUDGET);
    assert_null(s);
    assert_int_equal(sl_sampler_open(&ledger, 0, 10, &s, &err), SL_EINVAL);
    assert_int_equal(sl_sampler_open(&ledger, 10, 0, &s, &err), SL_EINVAL);
    sl_ledger_init(&ledger, 0);
    ledger.fail_after = 0;
    assert_int_equal(sl_sampler_open(&ledger, 100, 10, &s, NULL), SL_ENOMEM);
    sl_ledger_read(&ledger, &after);
    assert_int_equal(after.total_bytes, 0);
    sl_sampler_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),       cmocka_unit_test(test_exp),
        cmocka_unit_test(test_sets),         cmocka_unit_test(test_ties),
        cmocka_unit_test(test_greedy),       cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_reproducible), cmocka_unit_test(test_penalty),
        cmocka_unit_test(test_hostile),      cmocka_unit_test(test_check),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
