/* quant_types.c - the table of weight types, the sizes of rows, and the two 16-bit floats.
 *
 * The table is qtypes.def, once as rows in the file's order and once as an index from GGUF's number to the row, so that
 * a number from a file is looked up without a search. Both are constants.
 *
 * Threads     any: nothing here changes.
 * Not here    the block formats (quant_plain.c, quant_legacy.c, quant_k.c, quant_iq4.c). */
#include "quant/quant_codec.h"

#include "base/checked.h"

/* A row without code. */
#define sl_decode_none NULL
#define sl_encode_none NULL

static const sl_qtype_info qtype_rows[] = {
#define X(NAME, id, n_elem, n_byte, decode, encode) \
    {#NAME, id, n_elem, n_byte, sl_decode_##decode, sl_encode_##encode},
#include "quant/qtypes.def"
#undef X
};

enum {
#define X(NAME, id, n_elem, n_byte, decode, encode) QTYPE_ROW_##NAME,
#include "quant/qtypes.def"
#undef X
    QTYPE_ROW_COUNT
};

/* Row number plus one; 0: no type has this id. Two rows with one id would make compilers warn here. */
static const int8_t qtype_row_of_id[SL_QTYPE_CAP] = {
#define X(NAME, id, n_elem, n_byte, decode, encode) [id] = QTYPE_ROW_##NAME + 1,
#include "quant/qtypes.def"
#undef X
};

_Static_assert(QTYPE_ROW_COUNT < 127, "row numbers are kept in int8_t");
#define X(NAME, id, n_elem, n_byte, decode, encode)                                \
    _Static_assert((id) >= 0 && (id) < SL_QTYPE_CAP, #NAME ": id within the cap"); \
    _Static_assert((n_elem) > 0 && (n_byte) > 0, #NAME ": a block has a size");
#include "quant/qtypes.def"
#undef X

const sl_qtype_info *sl_qtype_find(int64_t id) {
    if (id < 0 || id >= SL_QTYPE_CAP || qtype_row_of_id[id] == 0) {
        return NULL;
    }
    return &qtype_rows[qtype_row_of_id[id] - 1];
}

const sl_qtype_info *sl_qtype_find_name(const char *name) {
    for (int32_t i = 0; name != NULL && i < QTYPE_ROW_COUNT; i++) {
        if (strcmp(qtype_rows[i].name, name) == 0) {
            return &qtype_rows[i];
        }
    }
    return NULL;
}

int32_t sl_qtype_count(void) { return QTYPE_ROW_COUNT; }

const sl_qtype_info *sl_qtype_at(int32_t i_row) {
    return i_row >= 0 && i_row < QTYPE_ROW_COUNT ? &qtype_rows[i_row] : NULL;
}

bool sl_qtype_row_bytes(const sl_qtype_info *type, uint64_t n, uint64_t *out) {
    if (type == NULL || n % (uint64_t)type->n_elem != 0) {
        return false;
    }
    return sl_mul_u64(n / (uint64_t)type->n_elem, (uint64_t)type->n_byte, out);
}

/* A half has 5 bits of exponent (bias 15) and 10 of mantissa, a float 8 (bias 127) and 23: the exponents differ by 112.
 * A subnormal half is mantissa * 2^-24, which a float holds exactly. */
float sl_f16_to_f32(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t exponent = (h >> 10) & 31u;
    const uint32_t mantissa = h & 0x3ffu;
    if (exponent == 0) {
        return quant_bits_float(sign | quant_float_bits((float)mantissa * 0x1p-24f));
    }
    if (exponent == 31) {
        /* A signalling NaN comes out quiet, as from the instruction that converts. */
        const uint32_t quiet = mantissa != 0 ? 0x400000u : 0u;
        return quant_bits_float(sign | 0x7f800000u | quiet | (mantissa << 13));
    }
    return quant_bits_float(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

uint16_t sl_f32_to_f16(float f) {
    const uint32_t bits = quant_float_bits(f);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) {
        return (uint16_t)(sign | 0x7e00u | ((size >> 13) & 0x3ffu));
    }
    if (size >= 0x47800000u) {
        /* 65536 and above. What lies between the largest half and 65536 is left to the rounding below. */
        return (uint16_t)(sign | 0x7c00u);
    }
    if (size >= 0x38800000u) {
        /* Normal. Half of the last kept bit less one, plus that bit: ties go to even. A carry out of the mantissa goes
         * into the exponent, where it belongs, up to infinity. */
        const uint32_t rounded = size + 0xfffu + ((size >> 13) & 1u);
        return (uint16_t)(sign | ((rounded >> 13) - (112u << 10)));
    }
    /* Subnormal: in 0.5 + x a float's last bit is 2^-24, a subnormal half's own unit, so that the addition rounds. */
    const uint32_t rounded = quant_float_bits(quant_bits_float(size) + 0.5f);
    return (uint16_t)(sign | (rounded - 0x3f000000u));
}

float sl_bf16_to_f32(uint16_t h) { return quant_bits_float((uint32_t)h << 16); }

uint16_t sl_f32_to_bf16(float f) {
    const uint32_t bits = quant_float_bits(f);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        /* The bits that say NaN may all be among those that go: set one that stays. */
        return (uint16_t)((bits >> 16) | 0x40u);
    }
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
