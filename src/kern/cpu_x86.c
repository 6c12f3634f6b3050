/* cpu_x86.c - ask the processor what it has.
 *
 * A processor that has AVX2 is not enough: the operating system must also save the wide registers when it switches
 * threads, which it says in XCR0. Reading XCR0 is itself only allowed when the OSXSAVE bit is set.
 *
 * Threads     any. Nothing is cached: it is asked once an engine.
 * Not here    the choice among the sets (kern.c). */
#include "kern/cpu_x86.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <stdint.h>

/* The instruction itself: its intrinsic would need a build flag. */
static uint64_t cpu_x86_xcr0(void) {
    uint32_t low;
    uint32_t high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)low | ((uint64_t)high << 32);
}

bool sl_cpu_x86_avx2(void) {
    unsigned a;
    unsigned b;
    unsigned c;
    unsigned d;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0) {
        return false;
    }
    const unsigned want = (1u << 12) | (1u << 27) | (1u << 28) | (1u << 29);
    if ((c & want) != want) { /* FMA, OSXSAVE, AVX, F16C */
        return false;
    }
    if ((cpu_x86_xcr0() & 6u) != 6u) { /* the state of xmm and ymm */
        return false;
    }
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1u << 5)) != 0;
}

#else

bool sl_cpu_x86_avx2(void) { return false; }

#endif
