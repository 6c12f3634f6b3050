/* graph.c - see graph.h. */
#include "graph/graph.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"

const char *sl_op_name(sl_op_kind kind) {
    static const char *const names[] = {
#define X(NAME, name) #name,
#include "graph/ops.def"
#undef X
    };
    return kind < SL_OP_COUNT ? names[kind] : "?";
}

/* Values an op makes at most, so that cap_op bounds the values too. */
#define GRAPH_VALUES_PER_OP SL_OP_MUL_MAX

sl_status sl_graph_open(sl_ledger *ledger, int32_t cap_op, int32_t cap_program, int32_t cap_rope,
                        sl_graph **out, sl_error *err) {
    sl_arena arena;
    sl_arena_init(&arena, ledger, SL_ACCOUNT_MISC, (size_t)64 << 10);
    const int32_t cap_value = cap_op * GRAPH_VALUES_PER_OP;
    void *p[5] = {NULL};
    const size_t size[5] = {
        sizeof(sl_graph), (size_t)cap_value * sizeof(sl_value), (size_t)cap_op * sizeof(sl_op),
        (size_t)cap_program * sizeof(sl_program), (size_t)cap_rope * sizeof(sl_rope)};
    for (int i = 0; i < 5; i++) {
        const sl_status status = sl_arena_take(&arena, size[i], &p[i], "model graph", err);
        if (status != SL_OK) {
            sl_arena_done(&arena);
            return status;
        }
        memset(p[i], 0, size[i]);
    }
    sl_graph *g = p[0];
    g->arena = arena;
    g->value = p[1];
    g->op = p[2];
    g->program = p[3];
    g->rope = p[4];
    g->cap_value = cap_value;
    g->cap_op = cap_op;
    g->cap_program = cap_program;
    g->i_logits = -1;
    *out = g;
    return SL_OK;
}

void sl_graph_close(sl_graph *g) {
    if (g != NULL) {
        sl_arena arena = g->arena; /* the graph itself lies in it */
        sl_arena_done(&arena);
    }
}

sl_status sl_graph_value(sl_graph *g, sl_rows rows, sl_act act, int64_t n_elem, int32_t *out,
                         sl_error *err) {
    if (g->n_value >= g->cap_value) {
        return SL_FAIL(err, SL_EINTERNAL, "graph: more than %d values", g->cap_value);
    }
    g->value[g->n_value] = (sl_value){.rows = rows,
                                      .act = act,
                                      .n_elem = n_elem,
                                      .row_bytes = sl_round_up(sl_act_bytes(act, n_elem), 64),
                                      .i_first = -1,
                                      .i_last = -1};
    *out = g->n_value++;
    return SL_OK;
}

static void graph_touch(sl_graph *g, int32_t i_value) {
    if (i_value < 0) {
        return;
    }
    sl_value *v = &g->value[i_value];
    if (v->i_first < 0) {
        v->i_first = g->n_op;
    }
    v->i_last = g->n_op;
}

sl_status sl_graph_add(sl_graph *g, const sl_op *op, sl_error *err) {
    if (g->n_op >= g->cap_op || g->n_program == 0) {
        return SL_FAIL(err, SL_EINTERNAL, "graph: more than %d ops", g->cap_op);
    }
    for (int i = 0; i < 4; i++) {
        graph_touch(g, op->in[i]);
    }
    for (int i = 0; i < SL_OP_MUL_MAX; i++) {
        graph_touch(g, op->out[i]);
    }
    g->op[g->n_op++] = *op;
    g->program[g->n_program - 1].n_op++;
    return SL_OK;
}

void sl_graph_keep(sl_graph *g, int32_t i_value) { g->value[i_value].i_last = g->n_op - 1; }

sl_status sl_graph_begin(sl_graph *g, sl_error *err) {
    if (g->n_program >= g->cap_program) {
        return SL_FAIL(err, SL_EINTERNAL, "graph: more than %d programs", g->cap_program);
    }
    g->program[g->n_program++] = (sl_program){.i_first = g->n_op, .n_op = 0};
    return SL_OK;
}

sl_status sl_graph_rope(sl_graph *g, const sl_rope *rope, int32_t *out, sl_error *err) {
    void *p;
    const size_t size = (size_t)rope->n_rot / 2 * sizeof(float);
    SL_TRY(sl_arena_take(&g->arena, size, &p, "rotary frequencies", err));
    memcpy(p, rope->inv_freq, size);
    g->rope[g->n_rope] = *rope;
    g->rope[g->n_rope].inv_freq = p;
    *out = g->n_rope++;
    return SL_OK;
}
