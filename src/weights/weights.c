/* weights.c - see weights.h.
 *
 * Vectors and unmapped matrices share one block (account weights), planned when all needs are known. On a dry ledger
 * the block is booked and nothing is read. */
#include "weights/weights.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"

#define WEIGHTS_ALIGN ((size_t)64)
/* Bytes read at once: large enough for any storage, small enough for a prompt cancel and a smooth progress. */
#define WEIGHTS_READ ((size_t)4 << 20)

typedef struct weights_row {
    const sl_tensor *tensor;
    bool is_vector;
    size_t offset; /* in the block, when it has a place there */
    bool in_block;
} weights_row;

struct sl_weights {
    sl_ledger *ledger;
    sl_container *container;
    const sl_backend *backend;
    int32_t n, cap;
    weights_row *row;
    sl_weight_view *view;
    void *block;
    size_t block_bytes;
    bool loaded;
    uint64_t stored_bytes;
};

static size_t weights_table_bytes(int32_t cap) {
    return (size_t)cap * (sizeof(weights_row) + sizeof(sl_weight_view));
}

sl_status sl_weights_open(sl_ledger *ledger, sl_container *c, const sl_backend *backend,
                          int32_t cap_weight, sl_weights **out, sl_error *err) {
    void *p, *table;
    SL_TRY(sl_alloc_zero(ledger, SL_ACCOUNT_MISC, 1, sizeof(sl_weights), &p, "weights", err));
    const sl_status status = sl_alloc_zero(ledger, SL_ACCOUNT_MISC, 1,
                                           weights_table_bytes(cap_weight), &table, "weights", err);
    if (status != SL_OK) {
        sl_release(ledger, SL_ACCOUNT_MISC, p, sizeof(sl_weights));
        return status;
    }
    sl_weights *w = p;
    w->ledger = ledger;
    w->container = c;
    w->backend = backend;
    w->cap = cap_weight;
    w->view = table;
    w->row = (weights_row *)(void *)(w->view + cap_weight);
    *out = w;
    return SL_OK;
}

void sl_weights_close(sl_weights *w) {
    if (w == NULL) {
        return;
    }
    if (w->loaded) {
        sl_release_bulk(w->ledger, SL_ACCOUNT_WEIGHTS, w->block, w->block_bytes);
    }
    sl_container_close(w->container);
    sl_release(w->ledger, SL_ACCOUNT_MISC, w->view, weights_table_bytes(w->cap));
    sl_release(w->ledger, SL_ACCOUNT_MISC, w, sizeof *w);
}

void sl_weights_disown(sl_weights *w) {
    if (w != NULL) {
        w->container = NULL;
    }
}

bool sl_weights_has(const sl_weights *w, const char *name) {
    return sl_tensor_find(w->container, name) != NULL;
}

/* Find the tensor and compare its shape; n_row 0 stands for a vector of n_col. */
static sl_status weights_find(const sl_weights *w, const char *name, int64_t n_row, int64_t n_col,
                              const sl_tensor **out, sl_error *err) {
    const sl_tensor *t = sl_tensor_find(w->container, name);
    if (t == NULL) {
        return SL_FAIL(err, SL_EFORMAT, "tensor '%s' is missing", name);
    }
    int64_t n_other = 1;
    for (int32_t i = 2; i < t->n_dim; i++) {
        n_other *= t->dim[i];
    }
    if (n_row == 0) {
        if (t->n_dim != 1 || t->dim[0] != n_col) {
            return SL_FAIL(err, SL_EFORMAT,
                           "tensor '%s' has %d dimensions, the first %lld; [%lld] is expected",
                           name, t->n_dim, (long long)t->dim[0], (long long)n_col);
        }
    } else if (t->n_dim < 2 || n_other != 1 || t->dim[0] != n_row || t->dim[1] != n_col) {
        return SL_FAIL(err, SL_EFORMAT,
                       "tensor '%s' has the shape [%lld, %lld], [%lld, %lld] is expected", name,
                       (long long)t->dim[0], (long long)(t->n_dim > 1 ? t->dim[1] : 1),
                       (long long)n_row, (long long)n_col);
    }
    *out = t;
    return SL_OK;
}

static sl_status weights_add(sl_weights *w, const char *name, int64_t n_row, int64_t n_col,
                             int32_t *out, sl_error *err) {
    const sl_tensor *t;
    SL_TRY(weights_find(w, name, n_row, n_col, &t, err));
    const bool is_vector = n_row == 0;
    for (int32_t i = 0; i < w->n; i++) {
        if (w->row[i].tensor == t && w->row[i].is_vector == is_vector) {
            *out = i;
            return SL_OK;
        }
    }
    if (w->n >= w->cap) {
        return SL_FAIL(err, SL_EINTERNAL, "the model asks for more than %d weights", w->cap);
    }
    sl_act act;
    if (is_vector ? t->type->decode == NULL
                  : !w->backend->kind->mul_act(w->backend, t->type, &act)) {
        return SL_FAIL(err, SL_ENOTSUP,
                       "tensor '%s' has the type %s, for which the %s backend has no kernel", name,
                       t->type->name, w->backend->kind->name);
    }
    w->row[w->n] = (weights_row){.tensor = t, .is_vector = is_vector};
    sl_weight_view *view = &w->view[w->n];
    view->type = is_vector ? sl_qtype_find(SL_QTYPE_F32) : t->type;
    view->n_row = is_vector ? 1 : n_row;
    view->n_col = n_col;
    uint64_t row_bytes;
    size_t size;
    if (!sl_qtype_row_bytes(view->type, (uint64_t)n_col, &row_bytes) ||
        !sl_u64_to_size(row_bytes, &size)) {
        return SL_FAIL(err, SL_EFORMAT,
                       "tensor '%s': rows of %lld elements are no whole blocks of %s", name,
                       (long long)n_col, view->type->name);
    }
    view->row_bytes = size;
    w->stored_bytes += t->size_bytes;
    *out = w->n++;
    return SL_OK;
}

sl_status sl_weights_matrix(sl_weights *w, const char *name, int64_t n_row, int64_t n_col,
                            int32_t *out, sl_error *err) {
    return weights_add(w, name, n_row, n_col, out, err);
}

sl_status sl_weights_vector(sl_weights *w, const char *name, int64_t n, int32_t *out,
                            sl_error *err) {
    return weights_add(w, name, 0, n, out, err);
}

/* Decode a vector's n values into out, through a buffer on the stack: vectors are stored as blocks of any type. */
static sl_status weights_decode(sl_weights *w, const sl_tensor *t, float *out, sl_error *err) {
    uint8_t buffer[4096];
    const int64_t n = t->dim[0];
    const int64_t step =
        (int64_t)sizeof buffer / t->type->n_byte * t->type->n_elem; /* elements a read */
    for (int64_t at = 0; at < n; at += step) {
        const int64_t k = n - at < step ? n - at : step;
        const uint64_t from = (uint64_t)(at / t->type->n_elem) * (uint64_t)t->type->n_byte;
        const size_t size = (size_t)(k / t->type->n_elem) * (size_t)t->type->n_byte;
        const sl_status status = sl_store_read(w->container->store[t->i_store],
                                               t->offset_bytes + from, buffer, size, err);
        if (status != SL_OK) {
            sl_error_prefix(err, "tensor '%s'", t->name);
            return status;
        }
        t->type->decode(buffer, out + at, k);
    }
    return SL_OK;
}

sl_status sl_weights_read_vector(sl_weights *w, const char *name, int64_t n, float *out,
                                 sl_error *err) {
    const sl_tensor *t;
    SL_TRY(weights_find(w, name, 0, n, &t, err));
    if (t->type->decode == NULL) {
        return SL_FAIL(err, SL_ENOTSUP, "tensor '%s' has the type %s, which cannot be decoded",
                       name, t->type->name);
    }
    return weights_decode(w, t, out, err);
}

static sl_status weights_plan(sl_weights *w, sl_error *err) {
    size_t at = 0;
    for (int32_t i = 0; i < w->n; i++) {
        weights_row *row = &w->row[i];
        const sl_tensor *t = row->tensor;
        size_t size = w->view[i].row_bytes;
        if (!row->is_vector) {
            if (!sl_u64_to_size(t->size_bytes, &size)) {
                return SL_FAIL(err, SL_ENOMEM,
                               "tensor '%s' is larger than this machine's address space", t->name);
            }
            w->view[i].data = sl_store_map(w->container->store[t->i_store], t->offset_bytes, size);
            if (w->view[i].data != NULL) {
                continue;
            }
        }
        row->in_block = true;
        row->offset = at;
        if (!sl_add_size(at, size, &at) || at > SIZE_MAX / 4) {
            return SL_FAIL(err, SL_ENOMEM,
                           "the weights are larger than this machine's address space");
        }
        at = sl_round_up(at, WEIGHTS_ALIGN);
    }
    w->block_bytes = at;
    return SL_OK;
}

/* Read one matrix in parts, so that progress and cancel come through. */
static sl_status weights_read(sl_weights *w, const sl_tensor *t, uint8_t *dst, size_t *done,
                              sl_progress_fn progress, void *user, sl_error *err) {
    for (uint64_t at = 0; at < t->size_bytes;) {
        const size_t size =
            t->size_bytes - at < WEIGHTS_READ ? (size_t)(t->size_bytes - at) : WEIGHTS_READ;
        const sl_status status = sl_store_read(w->container->store[t->i_store],
                                               t->offset_bytes + at, dst + at, size, err);
        if (status != SL_OK) {
            sl_error_prefix(err, "tensor '%s'", t->name);
            return status;
        }
        at += size;
        *done += size;
        if (progress != NULL && !progress(user, (float)((double)*done / (double)w->block_bytes))) {
            return SL_FAIL(err, SL_ECANCEL, "loading was cancelled");
        }
    }
    return SL_OK;
}

static sl_status weights_fill(sl_weights *w, sl_progress_fn progress, void *user, sl_error *err) {
    size_t done = 0;
    for (int32_t i = 0; i < w->n; i++) {
        const weights_row *row = &w->row[i];
        if (!row->in_block) {
            continue;
        }
        uint8_t *dst = (uint8_t *)w->block + row->offset;
        w->view[i].data = dst;
        if (row->is_vector) {
            SL_TRY(weights_decode(w, row->tensor, (float *)(void *)dst, err));
        } else {
            SL_TRY(weights_read(w, row->tensor, dst, &done, progress, user, err));
        }
    }
    return SL_OK;
}

sl_status sl_weights_load(sl_weights *w, sl_progress_fn progress, void *user, sl_error *err) {
    SL_TRY(weights_plan(w, err));
    SL_TRY(sl_alloc_bulk(w->ledger, SL_ACCOUNT_WEIGHTS, w->block_bytes, &w->block, "model weights",
                         err));
    w->loaded = true; /* the block is ours to release from here on */
    if (w->ledger->dry) {
        return SL_OK;
    }
    SL_TRY(weights_fill(w, progress, user, err));
    if (progress != NULL && !progress(user, 1.0f)) {
        return SL_FAIL(err, SL_ECANCEL, "loading was cancelled");
    }
    return SL_OK;
}

void sl_weights_settle(sl_weights *w) {
    for (int32_t i = 0; i < w->n; i++) {
        if (!w->row[i].in_block) {
            return; /* this one still lies in the store */
        }
    }
    sl_container_close(w->container);
    w->container = NULL;
    for (int32_t i = 0; i < w->n; i++) {
        w->row[i].tensor = NULL;
    }
}

const sl_weight_view *sl_weights_view(const sl_weights *w) { return w->view; }

int32_t sl_weights_count(const sl_weights *w) { return w->n; }

uint64_t sl_weights_stored_bytes(const sl_weights *w) { return w->stored_bytes; }
