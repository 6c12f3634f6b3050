/* json.c - a bounded pull reader for JSON, see json.h.
 *
 * The reader is a position in a block of memory plus one byte for each open container: whether it is an object, and
 * whether nothing has been read in it yet. That byte is all that is needed to know what may come next:
 *
 *     [ 1 , 2 ]        first: a value or ']'        later: ',' and a value, or ']'
 *     { "a" : 1 }      first: a key or '}'          later: ',' and a key, or '}'
 *
 * Strings are checked when they are read (escapes, control characters, UTF-8) and copied out only on demand, so the
 * code that unescapes may rely on well-formed escapes.
 *
 * Numbers become doubles without the C library, whose strtod follows the locale of the host program. Short ones are
 * exact products of two doubles; all others go through a decimal of 800 digits that is shifted bit by bit into place:
 * slow, but it rounds correctly, and 767 digits are the most that can matter.
 *
 * Invariants  at <= size; a failed reader does not move; depth <= SL_MAX_JSON_DEPTH.
 * Threads     one at a time.
 * Not here    writing JSON; finding duplicate keys (the caller sees all of them, in order). */
#include "base/json.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"

#define JSON_TEXT2(x) #x
#define JSON_TEXT(x) JSON_TEXT2(x)

/* Bits of sl_json.first[level]. */
enum { JSON_FIRST = 1, JSON_OBJECT = 2 };

static bool json_stop(sl_json *j, size_t at, const char *why) {
    if (!j->failed) {
        j->failed = true;
        j->at = at;
        j->why = why;
    }
    return false;
}

/* Move past white space; false at the end of the text. */
static bool json_space(sl_json *j) {
    while (j->at < j->size) {
        const uint8_t b = j->data[j->at];
        if (b != ' ' && b != '\n' && b != '\r' && b != '\t') {
            return true;
        }
        j->at++;
    }
    return false;
}

void sl_json_init(sl_json *j, const void *data, size_t size) {
    memset(j, 0, sizeof *j);
    j->data = (const uint8_t *)data;
    j->size = data != NULL ? size : 0;
}

sl_status sl_json_fail(const sl_json *j, sl_error *err, const char *path) {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < j->at; i++) {
        if (j->data[i] == '\n') {
            line++;
            column = 1;
        } else if ((j->data[i] & 0xC0) != 0x80) { /* columns count characters, not bytes */
            column++;
        }
    }
    return SL_FAIL(err, SL_EFORMAT, "%s: line %zu, column %zu: %s", path != NULL ? path : "JSON",
                   line, column, j->why != NULL ? j->why : "another value was expected here");
}

sl_json_type sl_json_peek(sl_json *j) {
    if (j->failed) {
        return SL_JSON_NONE;
    }
    if (!json_space(j)) {
        (void)json_stop(j, j->at, "the text ends where a value was expected");
        return SL_JSON_NONE;
    }
    const uint8_t b = j->data[j->at];
    switch (b) {
    case '{':
        return SL_JSON_OBJECT;
    case '[':
        return SL_JSON_ARRAY;
    case '"':
        return SL_JSON_STRING;
    case 't':
    case 'f':
        return SL_JSON_BOOL;
    case 'n':
        return SL_JSON_NULL;
    case '-':
        return SL_JSON_NUMBER;
    case 0xEF:
        (void)json_stop(j, j->at,
                        "a value was expected; a byte order mark is not part of JSON, remove it");
        return SL_JSON_NONE;
    default:
        if (b >= '0' && b <= '9') {
            return SL_JSON_NUMBER;
        }
        (void)json_stop(j, j->at, "a value was expected");
        return SL_JSON_NONE;
    }
}

/* The next value must be of this type. */
static bool json_expect(sl_json *j, sl_json_type type, const char *why) {
    const sl_json_type next = sl_json_peek(j);
    if (next == SL_JSON_NONE) {
        return false;
    }
    return next == type || json_stop(j, j->at, why);
}

/* ---- containers -------------------------------------------------------------------------------------------------- */

static bool json_enter(sl_json *j, uint8_t bits) {
    if (j->depth >= SL_MAX_JSON_DEPTH) {
        return json_stop(j, j->at, "nested deeper than " JSON_TEXT(SL_MAX_JSON_DEPTH) " levels");
    }
    j->first[j->depth++] = bits;
    j->at++;
    return true;
}

bool sl_json_enter_object(sl_json *j) {
    return json_expect(j, SL_JSON_OBJECT, "an object was expected") &&
           json_enter(j, JSON_FIRST | JSON_OBJECT);
}

bool sl_json_enter_array(sl_json *j) {
    return json_expect(j, SL_JSON_ARRAY, "an array was expected") && json_enter(j, JSON_FIRST);
}

/* Inside a container that `close` ends: true when an element follows, false at its end (which is consumed) or on
 * failure. */
static bool json_more(sl_json *j, uint8_t close, const char *why_end, const char *why_next) {
    if (j->failed) {
        return false;
    }
    if (j->depth <= 0) { /* a call without an enter: the caller's mistake, kept harmless */
        return json_stop(j, j->at, "not inside an array or object");
    }
    if (!json_space(j)) {
        return json_stop(j, j->at, why_end);
    }
    uint8_t *const bits = &j->first[j->depth - 1];
    if (j->data[j->at] == close) {
        j->at++;
        j->depth--;
        return false;
    }
    if ((*bits & JSON_FIRST) != 0) {
        *bits = (uint8_t)(*bits & ~JSON_FIRST);
        return true;
    }
    if (j->data[j->at] != ',') {
        return json_stop(j, j->at, why_next);
    }
    const size_t comma = j->at++;
    if (json_space(j) && j->data[j->at] == close) {
        return json_stop(j, comma, "a comma before the end of an array or object");
    }
    return true;
}

bool sl_json_next_item(sl_json *j) {
    return json_more(j, ']', "the text ends inside an array", "',' or ']' was expected");
}

bool sl_json_next_key(sl_json *j, sl_json_text *key) {
    if (!json_more(j, '}', "the text ends inside an object", "',' or '}' was expected")) {
        return false;
    }
    if (!json_space(j) || j->data[j->at] != '"') {
        return json_stop(j, j->at, "a key in double quotes was expected");
    }
    if (!sl_json_string(j, key)) {
        return false;
    }
    if (!json_space(j) || j->data[j->at] != ':') {
        return json_stop(j, j->at, "':' was expected after a key");
    }
    j->at++;
    return true;
}

/* Enter the next value if it is a container, else consume it. */
static bool json_step(sl_json *j) {
    sl_json_text text;
    bool flag;
    double number;
    switch (sl_json_peek(j)) {
    case SL_JSON_OBJECT:
        return sl_json_enter_object(j);
    case SL_JSON_ARRAY:
        return sl_json_enter_array(j);
    case SL_JSON_STRING:
        return sl_json_string(j, &text);
    case SL_JSON_NUMBER:
        return sl_json_double(j, &number);
    case SL_JSON_BOOL:
        return sl_json_bool(j, &flag);
    case SL_JSON_NULL:
        return sl_json_null(j);
    case SL_JSON_NONE:
        break;
    }
    return false;
}

bool sl_json_skip(sl_json *j) {
    const int32_t base = j->depth;
    do {
        if (!json_step(j)) {
            return false;
        }
        while (j->depth > base) { /* leave what has ended, up to the next value */
            sl_json_text key;
            const bool object = (j->first[j->depth - 1] & JSON_OBJECT) != 0;
            if (object ? sl_json_next_key(j, &key) : sl_json_next_item(j)) {
                break;
            }
            if (j->failed) {
                return false;
            }
        }
    } while (j->depth > base);
    return true;
}

bool sl_json_end(sl_json *j) {
    if (j->failed) {
        return false;
    }
    return !json_space(j) || json_stop(j, j->at, "more text after the end of the value");
}

/* ---- strings ----------------------------------------------------------------------------------------------------- */

static int json_hex(uint8_t b) {
    if (b >= '0' && b <= '9') {
        return b - '0';
    }
    if (b >= 'a' && b <= 'f') {
        return b - 'a' + 10;
    }
    if (b >= 'A' && b <= 'F') {
        return b - 'A' + 10;
    }
    return -1;
}

/* Four hexadecimal digits, or -1. */
static int32_t json_hex4(const uint8_t *p, size_t n) {
    if (n < 4) {
        return -1;
    }
    int32_t code = 0;
    for (int i = 0; i < 4; i++) {
        const int digit = json_hex(p[i]);
        if (digit < 0) {
            return -1;
        }
        code = code * 16 + digit;
    }
    return code;
}

/* The byte that a one-letter escape stands for; 0: none. */
static uint8_t json_escape(uint8_t b) {
    switch (b) {
    case '"':
    case '\\':
    case '/':
        return b;
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return 0;
    }
}

bool sl_json_string(sl_json *j, sl_json_text *out) {
    if (!json_expect(j, SL_JSON_STRING, "a string was expected")) {
        return false;
    }
    const uint8_t *const data = j->data;
    const size_t size = j->size, begin = j->at + 1;
    bool escaped = false;
    size_t i = begin;
    while (i < size) {
        const uint8_t b = data[i];
        if (b == '"') {
            *out = (sl_json_text){
                .raw = (const char *)data + begin, .n_raw = i - begin, .escaped = escaped};
            j->at = i + 1;
            return true;
        }
        if (b == '\\') {
            escaped = true;
            if (i + 1 < size && data[i + 1] == 'u') {
                if (json_hex4(data + i + 2, size - i - 2) < 0) {
                    return json_stop(j, i, "\\u needs four hexadecimal digits");
                }
                i += 6;
            } else if (i + 1 < size && json_escape(data[i + 1]) != 0) {
                i += 2;
            } else {
                return json_stop(j, i, "an unknown escape in a string");
            }
        } else if (b < 0x20) {
            return json_stop(j, i, "a control character in a string; write it as an escape");
        } else if (b < 0x80) {
            i++;
        } else {
            const int len = sl_utf8_len(data + i, size - i);
            if (len <= 0) {
                return json_stop(j, i, "invalid UTF-8 in a string");
            }
            i += (size_t)len;
        }
    }
    return json_stop(j, size, "the text ends inside a string");
}

/* Unescape one unit at raw[0..n): writes its 1..4 bytes and returns their number; *used is what it took. */
static size_t json_unit(const uint8_t *raw, size_t n, uint8_t out[4], size_t *used) {
    *used = 1;
    out[0] = raw[0];
    if (raw[0] != '\\' || n < 2) {
        return 1;
    }
    *used = 2;
    if (raw[1] != 'u') {
        out[0] = json_escape(raw[1]);
        return 1;
    }
    const int32_t high = json_hex4(raw + 2, n - 2);
    if (high < 0) { /* not from sl_json_string */
        return sl_utf8_put(0xFFFD, out);
    }
    *used = 6;
    if (high >= 0xD800 && high <= 0xDBFF && n >= 12 && raw[6] == '\\' && raw[7] == 'u') {
        const int32_t low = json_hex4(raw + 8, n - 8);
        if (low >= 0xDC00 && low <= 0xDFFF) {
            *used = 12;
            return sl_utf8_put(
                0x10000u + (((uint32_t)high - 0xD800u) << 10) + ((uint32_t)low - 0xDC00u), out);
        }
    }
    return sl_utf8_put((uint32_t)high, out); /* a lone surrogate becomes U+FFFD there */
}

bool sl_json_text_is(const sl_json_text *text, const char *plain) {
    const size_t n_plain = strlen(plain);
    if (!text->escaped) {
        return text->n_raw == n_plain && memcmp(text->raw, plain, n_plain) == 0;
    }
    const uint8_t *const raw = (const uint8_t *)text->raw;
    size_t i = 0, at = 0, used;
    while (i < text->n_raw) {
        uint8_t unit[4];
        const size_t n = json_unit(raw + i, text->n_raw - i, unit, &used);
        if (n > n_plain - at || memcmp(unit, plain + at, n) != 0) {
            return false;
        }
        i += used;
        at += n;
    }
    return at == n_plain;
}

size_t sl_json_text_copy(const sl_json_text *text, char *dst, size_t cap) {
    if (!text->escaped) {
        const size_t n = text->n_raw < cap ? text->n_raw : cap;
        if (n > 0) {
            memcpy(dst, text->raw, n);
        }
        return text->n_raw;
    }
    const uint8_t *const raw = (const uint8_t *)text->raw;
    size_t i = 0, at = 0, used;
    while (i < text->n_raw) {
        uint8_t unit[4];
        const size_t n = json_unit(raw + i, text->n_raw - i, unit, &used);
        for (size_t k = 0; k < n; k++, at++) {
            if (at < cap) {
                dst[at] = (char)unit[k];
            }
        }
        i += used;
    }
    return at;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static bool json_word(sl_json *j, const char *word) {
    const size_t n = strlen(word);
    if (j->size - j->at < n || memcmp(j->data + j->at, word, n) != 0) {
        return false;
    }
    j->at += n;
    return true;
}

bool sl_json_bool(sl_json *j, bool *out) {
    if (!json_expect(j, SL_JSON_BOOL, "true or false was expected")) {
        return false;
    }
    const bool yes = json_word(j, "true");
    if (!yes && !json_word(j, "false")) {
        return json_stop(j, j->at, "a value was expected");
    }
    *out = yes;
    return true;
}

bool sl_json_null(sl_json *j) {
    if (!json_expect(j, SL_JSON_NULL, "null was expected")) {
        return false;
    }
    return json_word(j, "null") || json_stop(j, j->at, "a value was expected");
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

#define JSON_CAP_DIGIT 800

/* 0.d0 d1 d2 ... * 10^point; digits beyond the room are only known to be there when one was not zero. */
typedef struct json_decimal {
    int64_t point;
    int32_t n;
    bool more;
    bool negative;
    uint8_t digit[JSON_CAP_DIGIT];
} json_decimal;

static void json_decimal_trim(json_decimal *d) {
    while (d->n > 0 && d->digit[d->n - 1] == 0) {
        d->n--;
    }
}

/* d = d * 2^k, k <= 56: digits from the last to the first, what is carried out goes in front. */
static void json_decimal_left(json_decimal *d, int k) {
    enum { FRONT = 20 }; /* 2^56 has 17 digits */
    uint8_t wide[FRONT + JSON_CAP_DIGIT];
    uint64_t carry = 0;
    int32_t first = FRONT;
    for (int32_t i = d->n - 1; i >= 0; i--) {
        carry += (uint64_t)d->digit[i] << k;
        wide[FRONT + i] = (uint8_t)(carry % 10);
        carry /= 10;
    }
    for (; carry > 0; carry /= 10) {
        wide[--first] = (uint8_t)(carry % 10);
    }
    const int32_t n = d->n + (FRONT - first);
    d->point += FRONT - first;
    d->n = n < JSON_CAP_DIGIT ? n : JSON_CAP_DIGIT;
    memcpy(d->digit, wide + first, (size_t)d->n);
    for (int32_t i = d->n; i < n; i++) {
        d->more = d->more || wide[first + i] != 0;
    }
    json_decimal_trim(d);
}

/* d = d / 2^k, k <= 56: long division from the first digit on. */
static void json_decimal_right(json_decimal *d, int k) {
    const uint64_t mask = ((uint64_t)1 << k) - 1;
    uint64_t rest = 0;
    int32_t from = 0, to = 0;
    while (rest >> k == 0 && (from < d->n || rest > 0)) { /* skip the quotient's leading zeros */
        rest = rest * 10 + (from < d->n ? d->digit[from] : 0);
        from++;
    }
    d->point -= from - 1;
    while (from < d->n || rest > 0) {
        const uint8_t digit = (uint8_t)(rest >> k);
        rest = (rest & mask) * 10 + (from < d->n ? d->digit[from] : 0);
        from++;
        if (to < JSON_CAP_DIGIT) {
            d->digit[to++] = digit;
        } else {
            d->more = d->more || digit != 0;
        }
    }
    d->n = to;
    json_decimal_trim(d);
}

static void json_decimal_shift(json_decimal *d, int64_t k) {
    while (k != 0) {
        const int part = k > 56 ? 56 : k < -56 ? -56 : (int)k;
        if (part > 0) {
            json_decimal_left(d, part);
        } else {
            json_decimal_right(d, -part);
        }
        k -= part;
    }
}

/* The nearest integer, ties to even; d < 2^54. */
static uint64_t json_decimal_round(const json_decimal *d) {
    uint64_t whole = 0;
    for (int32_t i = 0; i < (int32_t)d->point; i++) {
        whole = whole * 10 + (i < d->n ? d->digit[i] : 0);
    }
    const int32_t i = (int32_t)d->point;
    bool up = false;
    if (i >= 0 && i < d->n) {
        up = d->digit[i] >= 5;
        if (d->digit[i] == 5 && i + 1 == d->n && !d->more) {
            up = (whole & 1) != 0;
        }
    }
    return whole + up;
}

static double json_decimal_double(json_decimal *d) {
    /* Powers of two that surely keep 0.1 <= d < 1 from being passed when the point is that many digits away. */
    static const uint8_t step[10] = {1, 3, 6, 9, 13, 16, 19, 23, 26, 29};
    if (d->n == 0 || d->point < -330) {
        return 0.0;
    }
    if (d->point > 310) {
        return (double)INFINITY;
    }
    int64_t exponent = 0;
    while (d->point > 0) {
        const int k = step[d->point < 9 ? d->point : 9];
        json_decimal_shift(d, -k);
        exponent += k;
    }
    while (d->point < 0 || d->digit[0] < 5) {
        const int k = step[d->point > -9 ? -d->point : 9];
        json_decimal_shift(d, k);
        exponent -= k;
    }
    /* Now 1/2 <= d < 1. Below the normal range there are fewer bits than 53. */
    int64_t n_bit = 53;
    if (exponent < -1021) {
        n_bit -= -1021 - exponent;
    }
    if (n_bit < 0) {
        return 0.0; /* less than half of the least number */
    }
    json_decimal_shift(d, n_bit);
    return ldexp((double)json_decimal_round(d), (int)(exponent - n_bit));
}

/* Read the grammar of a number into d. *whole: neither a fraction nor an exponent is written. */
static bool json_number(sl_json *j, json_decimal *d, bool *whole) {
    if (!json_expect(j, SL_JSON_NUMBER, "a number was expected")) {
        return false;
    }
    const uint8_t *const data = j->data;
    const size_t size = j->size;
    size_t i = j->at;
    int64_t n_whole = 0; /* digits before the point, from the first that is not zero */
    bool seen = false;   /* a digit that is not zero */
    d->n = 0;
    d->more = false;
    d->negative = data[i] == '-';
    i += d->negative;
    *whole = true;
    for (int part = 0; part < 2; part++) {
        const size_t begin = i;
        for (; i < size && data[i] >= '0' && data[i] <= '9'; i++) {
            const uint8_t digit = (uint8_t)(data[i] - '0');
            seen = seen || digit != 0;
            if (!seen) {
                n_whole -= part; /* a zero right after the point */
                continue;
            }
            n_whole += 1 - part;
            if (d->n < JSON_CAP_DIGIT) {
                d->digit[d->n++] = digit;
            } else {
                d->more = d->more || digit != 0;
            }
        }
        if (i == begin) {
            return json_stop(j, i, "a digit was expected in a number");
        }
        if (part == 0) {
            if (data[begin] == '0' && i - begin > 1) {
                return json_stop(j, begin, "a number may not begin with 0");
            }
            if (i >= size || data[i] != '.') {
                break;
            }
            *whole = false;
            i++;
        }
    }
    int64_t exponent = 0;
    if (i < size && (data[i] == 'e' || data[i] == 'E')) {
        *whole = false;
        i++;
        const bool minus = i < size && data[i] == '-';
        i += i < size && (data[i] == '-' || data[i] == '+');
        const size_t begin = i;
        for (; i < size && data[i] >= '0' && data[i] <= '9'; i++) {
            if (exponent < INT64_MAX / 100) { /* beyond this, no text is long enough to matter */
                exponent = exponent * 10 + (data[i] - '0');
            }
        }
        if (i == begin) {
            return json_stop(j, i, "a digit was expected in an exponent");
        }
        exponent = minus ? -exponent : exponent;
    }
    d->point = n_whole + exponent;
    json_decimal_trim(d);
    j->at = i;
    return true;
}

bool sl_json_double(sl_json *j, double *out) {
    static const double power[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    json_decimal d;
    bool whole;
    if (!json_number(j, &d, &whole)) {
        return false;
    }
    double value;
    const int64_t exponent = d.point - d.n;
    if (d.n <= 15 && exponent >= -22 && exponent <= 22) { /* both factors exact: one rounding */
        uint64_t digits = 0;
        for (int32_t i = 0; i < d.n; i++) {
            digits = digits * 10 + d.digit[i];
        }
        value = exponent < 0 ? (double)digits / power[-exponent] : (double)digits * power[exponent];
    } else {
        value = json_decimal_double(&d);
    }
    *out = d.negative ? -value : value;
    return true;
}

bool sl_json_int(sl_json *j, int64_t *out) {
    json_decimal d;
    bool whole;
    const size_t at = j->at;
    if (!json_number(j, &d, &whole)) {
        return false;
    }
    if (!whole) {
        return json_stop(j, at, "a whole number was expected");
    }
    if (d.n == 0) {
        *out = 0;
        return true;
    }
    const uint64_t limit = (uint64_t)INT64_MAX + d.negative;
    uint64_t value = 0;
    bool fits = d.point <= 19; /* 2^63 has 19 digits, so the sum below cannot wrap */
    for (int32_t i = 0; fits && i < (int32_t)d.point; i++) {
        value = value * 10 + (i < d.n ? d.digit[i] : 0);
    }
    fits = fits && value <= limit;
    if (!fits) {
        return json_stop(j, at, "a number outside the range of 64-bit integers");
    }
    if (d.negative) {
        *out = value == limit ? INT64_MIN : -(int64_t)value;
    } else {
        *out = (int64_t)value;
    }
    return true;
}
