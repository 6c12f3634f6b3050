/* kern_avx2.c - the row of AVX2 with FMA and F16C: x86 since 2013 (Haswell) and 2015 (Excavator).
 *
 * Threads     any.
 * Not here    the kernels themselves (kern_avx2_*.c). */
#include "kern/fills.h"

#if defined(__x86_64__)

#include "kern/cpu_x86.h"

static void avx2_fill(sl_kern *kern) {
    sl_kern_avx2_elem(kern);
    sl_kern_avx2_attn(kern);
    sl_kern_avx2_mul32(kern);
    sl_kern_avx2_mulk(kern);
    sl_kern_avx2_mulf(kern);
}

const sl_isa sl_isa_avx2 = {.name = "avx2", .usable = sl_cpu_x86_avx2, .fill = avx2_fill};

#else

/* A file must declare something. */
typedef int avx2_nothing_here;

#endif
