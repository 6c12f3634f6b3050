/* numbers.c - see numbers.h.
 *
 * The C library's own readers skip spaces, accept hexadecimal and stop where they like, so integers are read by hand
 * and only the value of a text whose characters have been checked is left to strtod. */
#include "numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool numbers_digit(char c) { return c >= '0' && c <= '9'; }

bool cli_read_u64(const char *text, uint64_t *out) {
    uint64_t value = 0;
    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (!numbers_digit(*text)) {
            return false;
        }
        const uint64_t digit = (uint64_t)(*text - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

bool cli_read_i64(const char *text, int64_t *out) {
    const bool negative = *text == '-';
    uint64_t value;
    if (!cli_read_u64(text + (negative ? 1 : 0), &value) || value > (uint64_t)INT64_MAX) {
        return false;
    }
    *out = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

bool cli_read_real(const char *text, double *out) {
    const char *at = text;
    if (*at == '-') {
        at++;
    }
    if (!numbers_digit(*at) && !(*at == '.' && numbers_digit(at[1]))) {
        return false;
    }
    if (strspn(at, "0123456789.eE+-") != strlen(at)) {
        return false;
    }
    char *end;
    const double value = strtod(text, &end);
    if (*end != '\0' || !isfinite(value)) {
        return false;
    }
    *out = value;
    return true;
}

static bool numbers_same_word(const char *a, const char *b) {
    for (; *a != '\0' && *b != '\0'; a++, b++) {
        const char upper = *a >= 'a' && *a <= 'z' ? (char)(*a - 'a' + 'A') : *a;
        if (upper != *b) {
            return false;
        }
    }
    return *a == *b;
}

bool cli_read_size(const char *text, size_t *out) {
    static const struct {
        const char *name;
        unsigned shift;
    } units[] = {{"", 0},     {"B", 0},   {"K", 10},   {"KB", 10}, {"KIB", 10},
                 {"M", 20},   {"MB", 20}, {"MIB", 20}, {"G", 30},  {"GB", 30},
                 {"GIB", 30}, {"T", 40},  {"TB", 40},  {"TIB", 40}};
    char number[32];
    const size_t n = strspn(text, "0123456789.");
    if (n == 0 || n >= sizeof number) {
        return false;
    }
    memcpy(number, text, n);
    number[n] = '\0';
    unsigned shift = 0;
    bool known = false;
    for (size_t i = 0; i < sizeof units / sizeof units[0] && !known; i++) {
        known = numbers_same_word(text + n, units[i].name);
        shift = units[i].shift;
    }
    if (!known) {
        return false;
    }
    uint64_t whole;
    if (cli_read_u64(number, &whole)) {
        if (whole > (SIZE_MAX >> shift)) {
            return false;
        }
        *out = (size_t)whole << shift;
        return true;
    }
    double real;
    if (!cli_read_real(number, &real) || real < 0 || number[n - 1] == '.') {
        return false;
    }
    const double bytes = ldexp(real, (int)shift);
    if (bytes >= 9007199254740992.0) {
        return false;
    }
    *out = (size_t)bytes;
    return true;
}
