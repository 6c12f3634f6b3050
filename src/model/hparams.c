/* hparams.c - reading hyper-parameters from a container's metadata, every one checked against its range. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "model/arch.h"

static const char *hp_key(const sl_build *b, const char *key, char *buffer, size_t cap) {
    (void)snprintf(buffer, cap, "%s.%s", b->net->arch->name, key);
    return buffer;
}

const sl_meta *sl_hp_find(const sl_build *b, const char *key) {
    char name[160];
    return sl_meta_find(b->container, hp_key(b, key, name, sizeof name));
}

/* The entry as a number; items of an array must be equal. *found false: absent and not required. */
static sl_status hp_number(const sl_build *b, const char *key, bool required, bool whole,
                           bool *found, double *value, sl_error *err) {
    char name[160];
    const sl_meta *m = sl_meta_find(b->container, hp_key(b, key, name, sizeof name));
    *found = m != NULL;
    if (m == NULL) {
        return required ? SL_FAIL(err, SL_EFORMAT, "key '%s' is missing", name) : SL_OK;
    }
    for (int64_t i = 0; i < m->n_item; i++) {
        double item;
        int64_t item_i64;
        const bool good = whole ? sl_meta_i64(m, i, &item_i64) && (item = (double)item_i64, true)
                                : sl_meta_f64(m, i, &item);
        if (!good) {
            return SL_FAIL(err, SL_EFORMAT, "key '%s' has the type %s, a %s is expected", name,
                           sl_meta_type_name(m->type == SL_META_ARR ? m->item : m->type),
                           whole ? "whole number" : "number");
        }
        if (i > 0 && item != *value) {
            return SL_FAIL(err, SL_ENOTSUP,
                           "key '%s' differs between layers (%g, %g), which is not supported", name,
                           *value, item);
        }
        *value = item;
    }
    if (m->n_item == 0) {
        return SL_FAIL(err, SL_EFORMAT, "key '%s' is an empty array", name);
    }
    return SL_OK;
}

sl_status sl_hp_i32(const sl_build *b, const char *key, bool required, int32_t lowest,
                    int32_t highest, int32_t *value, sl_error *err) {
    bool found;
    double v = 0;
    SL_TRY(hp_number(b, key, required, true, &found, &v, err));
    if (found && !(v >= lowest && v <= highest)) {
        return SL_FAIL(err, SL_EFORMAT, "key '%s.%s' is %.0f, outside %d..%d", b->net->arch->name,
                       key, v, lowest, highest);
    }
    if (found) {
        *value = (int32_t)v;
    }
    return SL_OK;
}

sl_status sl_hp_f32(const sl_build *b, const char *key, bool required, float lowest, float highest,
                    float *value, sl_error *err) {
    bool found;
    double v = 0;
    SL_TRY(hp_number(b, key, required, false, &found, &v, err));
    if (found && !(v >= (double)lowest && v <= (double)highest)) { /* a NaN is outside too */
        return SL_FAIL(err, SL_EFORMAT, "key '%s.%s' is %g, outside %g..%g", b->net->arch->name,
                       key, v, (double)lowest, (double)highest);
    }
    if (found) {
        *value = (float)v;
    }
    return SL_OK;
}
