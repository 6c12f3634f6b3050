/* help_kern.h - inputs, guarded buffers and references for the tests of kern/ (after dav1d's checkasm). */
#ifndef SL_TEST_HELP_KERN_H
#define SL_TEST_HELP_KERN_H

#include "kern/kern.h"

/* ---- pseudo-random numbers: the same on every machine ---- */

typedef struct help_rng {
    uint64_t state;
} help_rng;

help_rng help_rng_make(uint64_t seed);
uint32_t help_rng_next(help_rng *rng);
float help_rng_float(help_rng *rng); /* -1 .. 1 */

/* ---- buffers with guard bytes on both sides ---- */

typedef struct help_guarded {
    uint8_t *data; /* 64-aligned + offset */
    size_t size;
    void *base;
} help_guarded;

help_guarded help_guard(size_t size, size_t offset); /* contents 0xA5 */
bool help_guard_intact(const help_guarded *g);
void help_guard_free(help_guarded *g);

/* ---- inputs ---- */

typedef enum help_mood {
    HELP_UNIFORM,     /* -1 .. 1 */
    HELP_TINY,        /* about 1e-30 */
    HELP_HUGE,        /* about 1e15: with the largest weights near the largest float */
    HELP_ZERO_BLOCKS, /* uniform, but many aligned runs of 32 are zero */
    HELP_SAME,        /* every value +1 or -1, so quants are +127 and -127 */
    HELP_MOOD_COUNT
} help_mood;

void help_floats(help_rng *rng, help_mood mood, int64_t n, float *x);

/* Rows of valid random blocks. HELP_SAME: quants all zero bits or all one bits, scales large: where sums are extreme.
 * HELP_TINY: factors that are subnormal halves; HELP_HUGE: factors near the largest half. */
void help_blocks(help_rng *rng, help_mood mood, int32_t type, int64_t n, uint8_t *row);

/* ---- references ---- */

/* The f32 values that a prepared row stands for. */
void help_act_values(sl_act act, const void *prepared, int64_t n, float *x);

/* sum w x in double, and the size that errors are relative to: in each block of 32 the largest |w| for every |x|. */
double help_dot(const float *w, const float *x, int64_t n, double *size);

/* Distance in units of the last place. */
double help_ulps(float a, double truth);

#endif
