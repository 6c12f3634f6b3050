/* backend_cpu.c - the CPU backend: a team walks through a program's ops, with a barrier after each.
 *
 * Work is split by output elements only, in chunks taken by whoever is free; each output element is reduced by one
 * thread in the kernel's fixed order. So neither the number of threads nor the shape of the batch changes a bit.
 *
 * Threads: one run at a time. Not here: what an op computes (cpu_mul.c, cpu_attn.c, cpu_row.c), kernels (kern/). */
#include <string.h>

#include "backend/cpu.h"
#include "base/error.h"

static const cpu_op_fn cpu_op_table[SL_OP_COUNT] = {
#define X(NAME, name) cpu_op_##name,
#include "graph/ops.def"
#undef X
};

static void cpu_member(void *arg, sl_member *me) {
    const cpu_backend *b = arg;
    for (int32_t i = 0; i < b->program->n_op; i++) {
        const sl_op *op = &b->pass->graph->op[b->program->i_first + i];
        cpu_op_table[op->kind](b, b->pass, op, me);
        sl_team_meet(me);
    }
}

static void cpu_run(sl_backend *base, const sl_pass *pass, const sl_program *program) {
    cpu_backend *b = (cpu_backend *)base;
    b->pass = pass;
    b->program = program;
    sl_team_run(b->team, cpu_member, b);
}

static bool cpu_mul_act(const sl_backend *base, const sl_qtype_info *type, sl_act *out) {
    const cpu_backend *b = (const cpu_backend *)base;
    const sl_mul_slot *slot = b->exact ? &b->kern.mul_exact[type->id] : &b->kern.mul[type->id];
    if (slot->fn == NULL) {
        return false;
    }
    *out = slot->act;
    return true;
}

static const char *cpu_isa(const sl_backend *base) { return ((const cpu_backend *)base)->kern.isa; }

static void cpu_close(sl_backend *base) {
    if (base != NULL) {
        sl_team_close(((cpu_backend *)base)->team);
        sl_release(base->ledger, SL_ACCOUNT_MISC, base, sizeof(cpu_backend));
    }
}

static sl_status cpu_open(sl_ledger *ledger, const sl_backend_options *options, sl_backend **out,
                          sl_error *err) {
    void *p;
    SL_TRY(sl_alloc_zero(ledger, SL_ACCOUNT_MISC, 1, sizeof(cpu_backend), &p, "cpu backend", err));
    cpu_backend *b = p;
    b->base.kind = &sl_backend_cpu;
    b->base.ledger = ledger;
    b->exact = options->exact;
    sl_status status = sl_kern_init(&b->kern, options->isa, err);
    if (status == SL_OK) {
        status = sl_team_open(ledger, options->n_thread, &b->team, err);
    }
    if (status != SL_OK) {
        sl_release(ledger, SL_ACCOUNT_MISC, b, sizeof *b);
        return status;
    }
    *out = &b->base;
    return SL_OK;
}

const sl_backend_kind sl_backend_cpu = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .run = cpu_run,
    .mul_act = cpu_mul_act,
    .isa = cpu_isa,
};
