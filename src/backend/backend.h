/* backend.h - who computes the ops of a graph.
 *
 * A backend is one row of backends.def. It is asked for by name and used or refused, never silently replaced.
 *
 * Threads: run is called by one thread at a time (the engine's lock); the rest from any. */
#ifndef SL_BACKEND_BACKEND_H
#define SL_BACKEND_BACKEND_H

#include "graph/pass.h"

typedef struct sl_backend sl_backend;

typedef struct sl_backend_options {
    int32_t n_thread; /* at least 1 */
    const char *isa;  /* NULL: best */
    bool exact;       /* f32 activations for every weight type */
} sl_backend_options;

typedef struct sl_backend_kind {
    const char *name;
    sl_status (*open)(sl_ledger *ledger, const sl_backend_options *options, sl_backend **out,
                      sl_error *err);
    void (*close)(sl_backend *b);
    /* Execute the ops of one program of the pass's graph. Cannot fail: what a program needs was checked when it was
     * built (mul_act, ops). */
    void (*run)(sl_backend *b, const sl_pass *pass, const sl_program *program);
    /* How activations must be prepared for a product with this weight type; false: this backend has no kernel for it. */
    bool (*mul_act)(const sl_backend *b, const sl_qtype_info *type, sl_act *out);
    const char *(*isa)(const sl_backend *b);
} sl_backend_kind;

struct sl_backend {
    const sl_backend_kind *kind;
    sl_ledger *ledger;
};

#define X(name) extern const sl_backend_kind sl_backend_##name;
#include "backend/backends.def"
#undef X

const sl_backend_kind *sl_backend_find(const char *name); /* NULL: no such backend */
const char *sl_backend_names(void);

#endif
