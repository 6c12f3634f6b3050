/* fills.h - the parts of each instruction set's row; called by its fill() only. */
#ifndef SL_KERN_FILLS_H
#define SL_KERN_FILLS_H

#include "kern/kern.h"

void sl_kern_scalar_elem(sl_kern *kern);  /* activations, norm, add, scale, glu, softcap, rope */
void sl_kern_scalar_attn(sl_kern *kern);  /* kv_store, attention, exp_sum */
void sl_kern_scalar_mul32(sl_kern *kern); /* types of 32 elements */
void sl_kern_scalar_mulk(sl_kern *kern);  /* types of 256 elements */
void sl_kern_scalar_mulf(sl_kern *kern);  /* F32, F16, BF16 and mul_exact */

void sl_kern_avx2_elem(sl_kern *kern);
void sl_kern_avx2_attn(sl_kern *kern);
void sl_kern_avx2_mul32(sl_kern *kern);
void sl_kern_avx2_mulk(sl_kern *kern);
void sl_kern_avx2_mulf(sl_kern *kern);

#endif
