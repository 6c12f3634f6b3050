/* cpu.h - inside the CPU backend: what its op functions share. */
#ifndef SL_BACKEND_CPU_H
#define SL_BACKEND_CPU_H

#include "backend/backend.h"
#include "base/team.h"

typedef struct cpu_backend {
    sl_backend base;
    sl_kern kern;
    sl_team *team;
    bool exact;
    const sl_pass *pass;       /* of the current run */
    const sl_program *program; /* likewise */
} cpu_backend;

/* Every member of the team calls the op's function; inside, members share the work by sl_team_next. The caller puts a
 * barrier after each op. */
typedef void (*cpu_op_fn)(const cpu_backend *b, const sl_pass *p, const sl_op *op, sl_member *me);

#define X(NAME, name) \
    void cpu_op_##name(const cpu_backend *b, const sl_pass *p, const sl_op *op, sl_member *me);
#include "graph/ops.def"
#undef X

static inline int32_t cpu_n_row(const sl_pass *p, const sl_op *op) {
    return op->rows == SL_ROWS_OUT ? p->n_out : p->n_row;
}

#endif
