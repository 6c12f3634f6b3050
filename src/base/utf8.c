/* utf8.c - see utf8.h. Table 3-7 of the Unicode standard: only the second byte has a range that depends on the first. */
#include "base/utf8.h"

int sl_utf8_len(const uint8_t *p, size_t n) {
    const uint8_t b = p[0];
    if (b < 0x80) {
        return 1;
    }
    int len;
    uint8_t low = 0x80, high = 0xBF;
    if (b >= 0xC2 && b <= 0xDF) {
        len = 2;
    } else if (b >= 0xE0 && b <= 0xEF) {
        len = 3;
        low = b == 0xE0 ? 0xA0 : 0x80;
        high = b == 0xED ? 0x9F : 0xBF;
    } else if (b >= 0xF0 && b <= 0xF4) {
        len = 4;
        low = b == 0xF0 ? 0x90 : 0x80;
        high = b == 0xF4 ? 0x8F : 0xBF;
    } else {
        return -1;
    }
    for (int i = 1; i < len; i++) {
        if ((size_t)i >= n) {
            return 0;
        }
        if (p[i] < low || p[i] > high) {
            return -1;
        }
        low = 0x80;
        high = 0xBF;
    }
    return len;
}

uint32_t sl_utf8_next(const uint8_t *p, size_t n, size_t *len) {
    const int k = sl_utf8_len(p, n);
    if (k <= 0) {
        *len = 1;
        return 0xFFFD;
    }
    *len = (size_t)k;
    switch (k) {
    case 1:
        return p[0];
    case 2:
        return ((uint32_t)(p[0] & 0x1F) << 6) | (p[1] & 0x3Fu);
    case 3:
        return ((uint32_t)(p[0] & 0x0F) << 12) | ((uint32_t)(p[1] & 0x3F) << 6) | (p[2] & 0x3Fu);
    default:
        return ((uint32_t)(p[0] & 0x07) << 18) | ((uint32_t)(p[1] & 0x3F) << 12) |
               ((uint32_t)(p[2] & 0x3F) << 6) | (p[3] & 0x3Fu);
    }
}

size_t sl_utf8_put(uint32_t code, uint8_t out[4]) {
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
        code = 0xFFFD;
    }
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xC0 | (code >> 6));
        out[1] = (uint8_t)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xE0 | (code >> 12));
        out[1] = (uint8_t)(0x80 | ((code >> 6) & 0x3F));
        out[2] = (uint8_t)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | (code >> 18));
    out[1] = (uint8_t)(0x80 | ((code >> 12) & 0x3F));
    out[2] = (uint8_t)(0x80 | ((code >> 6) & 0x3F));
    out[3] = (uint8_t)(0x80 | (code & 0x3F));
    return 4;
}

size_t sl_utf8_tail(const uint8_t *p, size_t n) {
    for (size_t k = 1; k <= 3 && k <= n; k++) {
        const uint8_t b = p[n - k];
        if (b < 0x80) {
            return 0;
        }
        if (b >= 0xC0) { /* a lead byte: is what follows it a valid beginning? */
            return sl_utf8_len(p + n - k, k) == 0 ? k : 0;
        }
    }
    return 0;
}
