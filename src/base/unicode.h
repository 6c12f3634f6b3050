/* unicode.h - the character properties that tokenizers ask for, and normalisation form C.
 *
 * The tables are generated (tools/make_unicode.py) and always part of the library: a tokenizer's words must not depend
 * on which system library happens to be installed. Normalisation needs far larger tables and is rarely asked for, so it
 * comes from utf8proc where the build has it.
 *
 * Threads: everything is read-only. */
#ifndef SL_BASE_UNICODE_H
#define SL_BASE_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ledger.h"

/* General category, in the order of the generator. */
typedef enum sl_unicode_category {
    SL_UNICODE_CN,
    SL_UNICODE_LU,
    SL_UNICODE_LL,
    SL_UNICODE_LT,
    SL_UNICODE_LM,
    SL_UNICODE_LO,
    SL_UNICODE_MN,
    SL_UNICODE_MC,
    SL_UNICODE_ME,
    SL_UNICODE_ND,
    SL_UNICODE_NL,
    SL_UNICODE_NO,
    SL_UNICODE_PC,
    SL_UNICODE_PD,
    SL_UNICODE_PS,
    SL_UNICODE_PE,
    SL_UNICODE_PI,
    SL_UNICODE_PF,
    SL_UNICODE_PO,
    SL_UNICODE_SM,
    SL_UNICODE_SC,
    SL_UNICODE_SK,
    SL_UNICODE_SO,
    SL_UNICODE_ZS,
    SL_UNICODE_ZL,
    SL_UNICODE_ZP,
    SL_UNICODE_CC,
    SL_UNICODE_CF,
    SL_UNICODE_CS,
    SL_UNICODE_CO
} sl_unicode_category;

/* Classes as bits, so that "neither letter nor digit nor space" is one test. */
enum {
    SL_CLASS_LETTER = 1,
    SL_CLASS_NUMBER = 2,
    SL_CLASS_MARK = 4,
    SL_CLASS_PUNCT = 8,
    SL_CLASS_SYMBOL = 16,
    /* White_Space, which is not the Z categories: tab and newline are in, U+200B is not. */
    SL_CLASS_SPACE = 32,
    SL_CLASS_UPPER = 64,     /* Lu, Lt */
    SL_CLASS_LOWER = 128,    /* Ll */
    SL_CLASS_CASELESS = 256, /* Lm, Lo */
    SL_CLASS_CONNECTOR = 512 /* Pc: with letters, marks and digits it makes \w */
};

sl_unicode_category sl_unicode_category_of(uint32_t code);
uint32_t sl_unicode_class_of(uint32_t code);

/* Normalisation form C of text[0..n) into a block from the ledger (*cap bytes, to be released by the caller; NULL when
 * the text is already normal and nothing was allocated). Bytes that are not UTF-8 stay as they are.
 * SL_ENOTSUP: a build without utf8proc, and the text has a character from U+0300 on. */
sl_status sl_unicode_nfc(sl_ledger *ledger, sl_account account, const char *text, size_t n,
                         char **out, size_t *n_out, size_t *cap, sl_error *err);

/* Generated. */
extern const char *const sl_unicode_version;
extern const uint32_t sl_unicode_n_range;
extern const uint32_t sl_unicode_range[];

#endif
