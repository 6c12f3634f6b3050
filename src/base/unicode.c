/* unicode.c - categories and classes of characters, see unicode.h.
 *
 * A binary search over about three thousand ranges (13 KiB); ASCII, which is most of most texts, has a table of its own
 * of 128 classes, written out below from the same data (a test compares them).
 *
 * Threads: read-only.
 * Not here: normalisation (unicode_nfc.c), the data (unicode_tables.c, generated). */
#include "base/unicode.h"

sl_unicode_category sl_unicode_category_of(uint32_t code) {
    if (code > 0x10FFFF) {
        return SL_UNICODE_CN;
    }
    uint32_t lo = 0;
    uint32_t hi = sl_unicode_n_range;
    while (hi - lo > 1) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (sl_unicode_range[mid] >> 5 <= code) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return (sl_unicode_category)(sl_unicode_range[lo] & 31);
}

static bool unicode_is_space(uint32_t code) {
    return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

static uint32_t unicode_ascii_class(uint32_t code) {
    if (code >= 'a' && code <= 'z') {
        return SL_CLASS_LETTER | SL_CLASS_LOWER;
    }
    if (code >= 'A' && code <= 'Z') {
        return SL_CLASS_LETTER | SL_CLASS_UPPER;
    }
    if (code >= '0' && code <= '9') {
        return SL_CLASS_NUMBER;
    }
    if (code == ' ' || (code >= 9 && code <= 13)) {
        return SL_CLASS_SPACE;
    }
    if (code < ' ' || code == 127) {
        return 0;
    }
    if (code == '$' || code == '+' || (code >= '<' && code <= '>') || code == '^' || code == '`' ||
        code == '|' || code == '~') {
        return SL_CLASS_SYMBOL;
    }
    return code == '_' ? SL_CLASS_PUNCT | SL_CLASS_CONNECTOR : SL_CLASS_PUNCT;
}

uint32_t sl_unicode_class_of(uint32_t code) {
    if (code < 128) {
        return unicode_ascii_class(code);
    }
    static const uint16_t of_category[30] = {
        [SL_UNICODE_LU] = SL_CLASS_LETTER | SL_CLASS_UPPER,
        [SL_UNICODE_LL] = SL_CLASS_LETTER | SL_CLASS_LOWER,
        [SL_UNICODE_LT] = SL_CLASS_LETTER | SL_CLASS_UPPER,
        [SL_UNICODE_LM] = SL_CLASS_LETTER | SL_CLASS_CASELESS,
        [SL_UNICODE_LO] = SL_CLASS_LETTER | SL_CLASS_CASELESS,
        [SL_UNICODE_MN] = SL_CLASS_MARK,
        [SL_UNICODE_MC] = SL_CLASS_MARK,
        [SL_UNICODE_ME] = SL_CLASS_MARK,
        [SL_UNICODE_ND] = SL_CLASS_NUMBER,
        [SL_UNICODE_NL] = SL_CLASS_NUMBER,
        [SL_UNICODE_NO] = SL_CLASS_NUMBER,
        [SL_UNICODE_PC] = SL_CLASS_PUNCT | SL_CLASS_CONNECTOR,
        [SL_UNICODE_PD] = SL_CLASS_PUNCT,
        [SL_UNICODE_PS] = SL_CLASS_PUNCT,
        [SL_UNICODE_PE] = SL_CLASS_PUNCT,
        [SL_UNICODE_PI] = SL_CLASS_PUNCT,
        [SL_UNICODE_PF] = SL_CLASS_PUNCT,
        [SL_UNICODE_PO] = SL_CLASS_PUNCT,
        [SL_UNICODE_SM] = SL_CLASS_SYMBOL,
        [SL_UNICODE_SC] = SL_CLASS_SYMBOL,
        [SL_UNICODE_SK] = SL_CLASS_SYMBOL,
        [SL_UNICODE_SO] = SL_CLASS_SYMBOL,
    };
    if (unicode_is_space(code)) {
        return SL_CLASS_SPACE;
    }
    return of_category[sl_unicode_category_of(code)];
}
