/* quant.h - the block formats of weights: facts, decode, encode.
 *
 * A row of n elements is n / n_elem blocks of n_byte bytes, n a multiple of n_elem. Every type that the containers can
 * name has a row in qtypes.def, so that sizes are right even for those that have no code yet.
 *
 * Not here: kernels (kern/), which read the same bytes. */
#ifndef SL_QUANT_QUANT_H
#define SL_QUANT_QUANT_H

#include "sluice.h"

/* Ids are GGUF's own numbers, so a file's number is the id once it is known to be in the table. */
typedef enum sl_qtype {
#define X(NAME, id, n_elem, n_byte, decode, encode) SL_QTYPE_##NAME = id,
#include "quant/qtypes.def"
#undef X
} sl_qtype;

#define SL_QTYPE_CAP 64 /* every id is below */

typedef struct sl_qtype_info {
    const char *name; /* "Q4_K" */
    int32_t id;
    int32_t n_elem; /* elements a block */
    int32_t n_byte; /* bytes a block */
    /* One row: n elements, a multiple of n_elem. Any alignment of src. NULL: facts only. */
    void (*decode)(const uint8_t *src, float *dst, int64_t n);
    /* NULL: cannot be made. Never reads or writes outside; NaN and infinities in give some valid block. Deterministic. */
    void (*encode)(const float *src, uint8_t *dst, int64_t n);
} sl_qtype_info;

const sl_qtype_info *sl_qtype_find(int64_t id); /* NULL: unknown id */
const sl_qtype_info *
sl_qtype_find_name(const char *name); /* upper case as in the table; NULL: unknown */
int32_t sl_qtype_count(void);         /* rows of the table */
const sl_qtype_info *sl_qtype_at(int32_t i_row);

/* Bytes of a row of n elements. false: n is no multiple of the block, or overflow. */
bool sl_qtype_row_bytes(const sl_qtype_info *type, uint64_t n, uint64_t *out);

float sl_f16_to_f32(uint16_t h);
uint16_t
sl_f32_to_f16(float f); /* round to nearest, ties to even; overflow to infinity, NaN stays NaN */
float sl_bf16_to_f32(uint16_t h);
uint16_t sl_f32_to_bf16(float f); /* round to nearest even; NaN stays NaN */

#endif
