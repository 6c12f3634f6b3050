/* utf8.h - UTF-8 as the Unicode standard defines it (no overlong forms, no surrogates, at most U+10FFFF). */
#ifndef SL_BASE_UTF8_H
#define SL_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length 1..4 of the character that starts at p (n bytes follow, n >= 1); 0: incomplete but valid so far;
 * -1: p[0] cannot start a character here. */
int sl_utf8_len(const uint8_t *p, size_t n);

/* The character at p and its length; an invalid or cut byte gives U+FFFD and length 1. n >= 1. */
uint32_t sl_utf8_next(const uint8_t *p, size_t n, size_t *len);

/* Write a code point (0..10FFFF, surrogates become U+FFFD); returns its length 1..4. */
size_t sl_utf8_put(uint32_t code, uint8_t out[4]);

/* Bytes at the end of p[0..n) that may be the start of a character not yet complete: 0..3. */
size_t sl_utf8_tail(const uint8_t *p, size_t n);

#endif
