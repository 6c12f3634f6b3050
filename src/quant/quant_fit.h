/* quant_fit.h - the search for scales and codes that the encoders of 256-element blocks share.
 *
 * Two kinds of blocks, each of groups whose scales are small integers times one half-precision number:
 *
 *     scaled   w = d * scale[g] * value(code)                value from a grid with both signs
 *     affine   w = d * scale[g] * code - dmin * min[g]       code from 0 up
 *
 * What is made smallest is the plain sum of squared errors: with nothing known about the activations, an error in any
 * weight of a row costs the same. The results depend on the numbers alone, on every machine. */
#ifndef SL_QUANT_QUANT_FIT_H
#define SL_QUANT_QUANT_FIT_H

#include "quant/quant.h"

#define QUANT_FIT_ELEM 256  /* most elements of a block */
#define QUANT_FIT_GROUP 16  /* most groups of a block */
#define QUANT_FIT_VALUES 16 /* codes of a grid that is a table */

typedef struct quant_grid {
    int32_t low; /* value of code 0 */
    int32_t high;
    /* NULL: every integer from low to high; else QUANT_FIT_VALUES values, ascending. */
    const int8_t *values;
    /* First guesses: the element of the largest size lands on ratio * low or ratio * high, for n_ratio ratios. */
    float ratio_low;
    float ratio_high;
    int32_t n_ratio;
} quant_grid;

typedef struct quant_scaled {
    const quant_grid *grid;
    int32_t n_group;
    int32_t n_elem;    /* of a group: 16 or 32 */
    int32_t scale_low; /* below 0 */
    int32_t scale_high;
    int32_t reach; /* integer scales tried to either side of the nearest */
} quant_scaled;

typedef struct quant_affine {
    int32_t n_group;
    int32_t n_elem; /* of a group: 16 or 32 */
    int32_t code_high;
    int32_t scale_high; /* of both scales and minima */
    /* First guesses: the range of a group covers code_high + more codes, for n_more numbers from more_low on. */
    float more_low;
    float more_high;
    int32_t n_more;
} quant_affine;

typedef struct quant_block {
    uint16_t d;    /* half */
    uint16_t dmin; /* half; 0 for scaled blocks */
    int32_t scale[QUANT_FIT_GROUP];
    int32_t min[QUANT_FIT_GROUP]; /* 0 for scaled blocks */
    uint8_t code[QUANT_FIT_ELEM];
} quant_block;

/* Each reads n_group * n_elem numbers (anything: a NaN counts as 0, what is too large as the largest that the format
 * holds) and fills *out. */
void quant_fit_scaled(const quant_scaled *shape, const float *src, quant_block *out);
void quant_fit_affine(const quant_affine *shape, const float *src, quant_block *out);

/* One group with a half-precision step of its own: w = d * value(code); n is 16 or 32.
 * Returns d. */
uint16_t quant_fit_single(const quant_grid *grid, const float *src, int32_t n, uint8_t *code);

#endif
