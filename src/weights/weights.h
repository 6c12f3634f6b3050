/* weights.h - name to handle, and the bytes behind the handle.
 *
 * A model's build function asks for its weights by name and shape (need); load then makes all of them present, in one
 * of two ways:
 *
 *     the store has addresses (mmap, memory)   matrices stay where they are
 *     it has none (direct, callback)           one block in our own memory, each tensor at a multiple of 64
 *
 * Vectors (norms, biases, factors) are few and small: they always become aligned f32 in our own memory.
 *
 * Threads: need and load by one thread; view by any afterwards.
 * Not here: reading bytes (store/), which weights a model has (model/). Streaming under a budget will live here. */
#ifndef SL_WEIGHTS_WEIGHTS_H
#define SL_WEIGHTS_WEIGHTS_H

#include "backend/backend.h"
#include "format/container.h"
#include "graph/pass.h"

typedef struct sl_weights sl_weights;

/* The container must stay open until load has returned; afterwards the stores are used through it as well when they
 * have addresses, so it is closed by weights_close (ownership of c passes on success). */
sl_status sl_weights_open(sl_ledger *ledger, sl_container *c, const sl_backend *backend,
                          int32_t cap_weight, sl_weights **out, sl_error *err);
void sl_weights_close(sl_weights *w);
/* Give the container back to whoever opened it; NULL fine. After a failure, before close. */
void sl_weights_disown(sl_weights *w);

/* Is there a tensor of this name? */
bool sl_weights_has(const sl_weights *w, const char *name);
/* A matrix [n_row, n_col] for products or embedding rows. SL_EFORMAT: absent or another shape (both named);
 * SL_ENOTSUP: the backend has no kernel for its type (tensor and type named). A name asked for twice has one handle. */
sl_status sl_weights_matrix(sl_weights *w, const char *name, int64_t n_row, int64_t n_col,
                            int32_t *out, sl_error *err);
/* A vector [n], as f32 [1, n]. */
sl_status sl_weights_vector(sl_weights *w, const char *name, int64_t n, int32_t *out,
                            sl_error *err);

typedef bool (*sl_progress_fn)(void *user, float share);
/* Make everything present. SL_EIO, SL_EBUDGET, SL_ENOMEM, SL_ECANCEL. */
sl_status sl_weights_load(sl_weights *w, sl_progress_fn progress, void *user, sl_error *err);

/* After load, when the container is ours: close it and its files if no weight lies in them. */
void sl_weights_settle(sl_weights *w);

const sl_weight_view *sl_weights_view(const sl_weights *w); /* by handle */
int32_t sl_weights_count(const sl_weights *w);
uint64_t sl_weights_stored_bytes(const sl_weights *w); /* of the tensors in use, as stored */
/* A vector's values before load (the builder needs rope factors); reads it now. out [n]. */
sl_status sl_weights_read_vector(sl_weights *w, const char *name, int64_t n, float *out,
                                 sl_error *err);

#endif
