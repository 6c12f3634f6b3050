/* test_plan.c - the scratch plan and the KV pages, against plain models of themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/plan.h"
#include "kv/kv.h"

static uint64_t plan_random_state;

static uint32_t plan_random(uint32_t below) {
    plan_random_state =
        plan_random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(plan_random_state >> 33) % below;
}

/* Random graphs: no two values that live together may overlap, and the block is no larger than all values in a row. */
static void test_random_plans(void **state) {
    (void)state;
    sl_ledger ledger;
    sl_error err;
    sl_ledger_init(&ledger, 0);
    for (uint64_t seed = 0; seed < 300; seed++) {
        plan_random_state = seed;
        sl_graph *g;
        const int32_t n_op = 1 + (int32_t)plan_random(60);
        assert_int_equal(sl_graph_open(&ledger, n_op, 4, 1, &g, &err), SL_OK);
        assert_int_equal(sl_graph_begin(g, &err), SL_OK);
        for (int32_t i = 0; i < n_op; i++) {
            sl_op op = {.kind = SL_OP_NORM};
            for (int k = 0; k < 4; k++) {
                op.in[k] = g->n_value > 0 && plan_random(2)
                               ? (int32_t)plan_random((uint32_t)g->n_value)
                               : -1;
            }
            for (int k = 0; k < SL_OP_MUL_MAX; k++) {
                op.out[k] = -1;
                if (plan_random(3) != 0) {
                    const sl_rows rows = plan_random(4) == 0 ? SL_ROWS_OUT : SL_ROWS_TOK;
                    assert_int_equal(
                        sl_graph_value(g, rows, SL_ACT_F32, 1 + plan_random(500), &op.out[k], &err),
                        SL_OK);
                }
            }
            assert_int_equal(sl_graph_add(g, &op, &err), SL_OK);
        }
        const sl_op more = {.kind = SL_OP_NORM, .in = {-1, -1, -1, -1}, .out = {-1, -1, -1}};
        assert_int_equal(sl_graph_add(g, &more, &err), SL_EINTERNAL); /* no room left */
        size_t *offset = calloc((size_t)g->n_value + 1, sizeof *offset);
        assert_non_null(offset);
        size_t size, sum = 0;
        const int32_t n_row = 1 + (int32_t)plan_random(300), n_out = 1 + (int32_t)plan_random(4);
        assert_int_equal(sl_plan_make(g, n_row, n_out, offset, &size, &err), SL_OK);
        assert_true(sl_plan_is_valid(g, n_row, n_out, offset, size));
        for (int32_t i = 0; i < g->n_value; i++) {
            sum +=
                g->value[i].row_bytes * (size_t)(g->value[i].rows == SL_ROWS_OUT ? n_out : n_row);
        }
        assert_true(size <= sum);
        if (g->n_value > 1) { /* the check itself must be able to fail */
            int32_t a = -1, b = -1;
            for (int32_t i = 0; i < g->n_value && b < 0; i++) {
                for (int32_t k = 0; k < i; k++) {
                    if (g->value[i].i_first <= g->value[k].i_last &&
                        g->value[k].i_first <= g->value[i].i_last) {
                        a = k;
                        b = i;
                    }
                }
            }
            if (b >= 0) {
                offset[b] = offset[a];
                assert_false(sl_plan_is_valid(g, n_row, n_out, offset, size));
            }
        }
        free(offset);
        sl_graph_close(g);
    }
    assert_true(atomic_load(&ledger.total) == 0);
}

/* Random reserve, grow, cut and close of several sequences on one pool: pages are never shared by accident, never lost,
 * and what was written to a token stays. The model is an array of tags. */
#define KV_SEQS 4
#define KV_CTX 100
#define KV_PAGES 16

static uint32_t *kv_tag_at(sl_kv_seq *seq, int32_t i_token) {
    uint8_t *page = sl_kv_seq_table(seq)[i_token / 16];
    return (uint32_t *)(void *)(page + (size_t)(i_token % 16) * sizeof(float));
}

static void test_kv_laws(void **state) {
    (void)state;
    sl_ledger ledger;
    sl_error err;
    sl_ledger_init(&ledger, 0);
    const sl_kv_shape shape = {
        .type = SL_KV_F32, .n_page = 16, .n_layer = 2, .n_head_kv = 3, .d_head = 1};
    sl_kv_pool *pool;
    assert_int_equal(sl_kv_pool_open(&ledger, &shape, KV_PAGES, &pool, &err), SL_OK);
    sl_kv_view view;
    sl_kv_pool_view(pool, &view);
    assert_int_equal(view.head_bytes, 16 * 4);
    assert_int_equal(view.half_bytes, 3 * 16 * 4);
    assert_int_equal(view.layer_bytes, 2 * 3 * 16 * 4);
    sl_kv_seq *seq[KV_SEQS] = {NULL};
    uint32_t tag[KV_SEQS][KV_CTX];
    int32_t n_tok[KV_SEQS] = {0};
    int n_full = 0;
    plan_random_state = 7;
    for (uint32_t step = 1; step < 20000; step++) {
        const uint32_t s = plan_random(KV_SEQS);
        if (seq[s] == NULL) {
            assert_int_equal(sl_kv_seq_open(pool, KV_CTX, &seq[s], &err), SL_OK);
            n_tok[s] = 0;
        } else if (plan_random(40) == 0) {
            sl_kv_seq_close(seq[s]);
            seq[s] = NULL;
        } else if (plan_random(3) == 0) {
            n_tok[s] = (int32_t)plan_random((uint32_t)n_tok[s] + 1);
            sl_kv_seq_set(seq[s], n_tok[s]);
        } else {
            const int32_t n = n_tok[s] + (int32_t)plan_random(40);
            int32_t n_held = 0;
            for (int i = 0; i < KV_SEQS; i++) {
                n_held += seq[i] != NULL ? (n_tok[i] + 15) / 16 : 0;
            }
            const int32_t n_more = (n + 15) / 16 - (n_tok[s] + 15) / 16;
            const sl_status want = n > KV_CTX                   ? SL_ELIMIT
                                   : n_held + n_more > KV_PAGES ? SL_EBUDGET
                                                                : SL_OK;
            assert_int_equal(sl_kv_seq_reserve(seq[s], n, &err), want);
            n_full += want == SL_EBUDGET;
            if (want == SL_OK) {
                for (int32_t t = n_tok[s]; t < n; t++) {
                    *kv_tag_at(seq[s], t) = tag[s][t] = step * 1000 + (uint32_t)t;
                }
                sl_kv_seq_set(seq[s], n);
                n_tok[s] = n;
            }
        }
        int32_t n_held = 0;
        for (int i = 0; i < KV_SEQS; i++) {
            if (seq[i] != NULL) {
                assert_int_equal(sl_kv_seq_n_tok(seq[i]), n_tok[i]);
                n_held += (n_tok[i] + 15) / 16;
                for (int32_t t = 0; t < n_tok[i]; t++) {
                    assert_int_equal(*kv_tag_at(seq[i], t), tag[i][t]);
                }
            }
        }
        assert_int_equal(sl_kv_pool_n_free(pool), KV_PAGES - n_held);
    }
    assert_true(n_full > 100); /* the pool did run dry */
    for (int i = 0; i < KV_SEQS; i++) {
        sl_kv_seq_close(seq[i]);
    }
    sl_kv_pool_close(pool);
    assert_true(atomic_load(&ledger.total) == 0);
}

static void test_kv_sizes(void **state) {
    (void)state;
    sl_ledger ledger;
    sl_error err;
    sl_kv_pool *pool;
    sl_kv_type type;
    sl_ledger_init(&ledger, 0);
    const sl_kv_shape huge = {
        .type = SL_KV_F32, .n_page = 256, .n_layer = 1024, .n_head_kv = 4096, .d_head = 1024};
    assert_int_equal(sl_kv_pool_open(&ledger, &huge, INT32_MAX, &pool, &err), SL_ELIMIT);
    assert_true(sl_kv_type_find(NULL, &type) && type == SL_KV_F16);
    assert_true(sl_kv_type_find("f32", &type) && type == SL_KV_F32);
    assert_false(sl_kv_type_find("f64", &type));
    sl_kv_pool_close(NULL);
    sl_kv_seq_close(NULL);
    assert_true(atomic_load(&ledger.total) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_plans),
        cmocka_unit_test(test_kv_laws),
        cmocka_unit_test(test_kv_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
