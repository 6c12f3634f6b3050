/* kern_scalar.c - the row of plain C: the truth that the others are held to.
 *
 * Every function computes each output by the same steps in the same order wherever it stands, so the promise about
 * bits holds by itself. The compiler may vectorise what keeps the order.
 *
 * Threads     any.
 * Not here    the kernels themselves (kern_scalar_*.c). */
#include "kern/fills.h"

static bool scalar_usable(void) { return true; }

static void scalar_fill(sl_kern *kern) {
    sl_kern_scalar_elem(kern);
    sl_kern_scalar_attn(kern);
    sl_kern_scalar_mul32(kern);
    sl_kern_scalar_mulk(kern);
    sl_kern_scalar_mulf(kern);
}

const sl_isa sl_isa_scalar = {.name = "scalar", .usable = scalar_usable, .fill = scalar_fill};
