/* kern.c - the ladder of instruction sets, and sizes of prepared activations.
 *
 * The table is filled from the plainest row up to the one that is wanted, each overwriting the slots that it does
 * better, so a row never needs to be complete.
 *
 * Threads     any: nothing is kept here.
 * Not here    the kernels (kern_<isa>*.c). */
#include "kern/kern.h"

#include <string.h>

#include "base/error.h"

static const sl_isa *const kern_isas[] = {
#define X(name) &sl_isa_##name,
#include "kern/isas.def"
#undef X
};

#define KERN_N_ISA ((int32_t)(sizeof kern_isas / sizeof kern_isas[0]))

int32_t sl_isa_count(void) { return KERN_N_ISA; }

const sl_isa *sl_isa_at(int32_t i) { return i >= 0 && i < KERN_N_ISA ? kern_isas[i] : NULL; }

size_t sl_act_bytes(sl_act act, int64_t n) {
    const size_t n_elem = (size_t)n;
    const size_t bytes[SL_ACT_COUNT] = {
        [SL_ACT_F32] = n_elem * sizeof(float),
        [SL_ACT_Q8_32] = (n_elem + 31) / 32 * sizeof(sl_act_q8_32),
        [SL_ACT_Q8_256] = (n_elem + 255) / 256 * sizeof(sl_act_q8_256),
    };
    return bytes[act];
}

/* The names of the sets, all or those that this CPU has, separated by spaces. */
static void kern_names(char *text, size_t cap, bool usable_only) {
    size_t at = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < KERN_N_ISA; i++) {
        const size_t n = strlen(kern_isas[i]->name);
        if ((usable_only && !kern_isas[i]->usable()) || at + n + 2 > cap) {
            continue;
        }
        if (at > 0) {
            text[at++] = ' ';
        }
        memcpy(text + at, kern_isas[i]->name, n + 1);
        at += n;
    }
}

sl_status sl_kern_init(sl_kern *kern, const char *isa, sl_error *err) {
    char names[200];
    int32_t i_top = -1;
    for (int32_t i = 0; i < KERN_N_ISA; i++) {
        if (isa == NULL ? kern_isas[i]->usable() : strcmp(isa, kern_isas[i]->name) == 0) {
            i_top = i;
        }
    }
    if (i_top < 0) {
        kern_names(names, sizeof names, false);
        return SL_FAIL(err, SL_EINVAL,
                       "there are no kernels for instruction set '%.40s'; known: %s",
                       isa != NULL ? isa : "", names);
    }
    if (!kern_isas[i_top]->usable()) {
        kern_names(names, sizeof names, true);
        return SL_FAIL(err, SL_ENOTSUP,
                       "this CPU, or its operating system, lacks instruction set '%s'; it has: %s",
                       kern_isas[i_top]->name, names);
    }
    memset(kern, 0, sizeof *kern);
    for (int32_t i = 0; i <= i_top; i++) {
        if (kern_isas[i]->usable()) {
            kern_isas[i]->fill(kern);
            kern->isa = kern_isas[i]->name;
        }
    }
    return SL_OK;
}
