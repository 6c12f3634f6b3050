/* cpu_x86.h - which instruction sets this x86 and its operating system offer. */
#ifndef SL_KERN_CPU_X86_H
#define SL_KERN_CPU_X86_H

#include <stdbool.h>

/* AVX2 with FMA and F16C, and the system saves the upper halves of the registers. Always false elsewhere than x86. */
bool sl_cpu_x86_avx2(void);

#endif
