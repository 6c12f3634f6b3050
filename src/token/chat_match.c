/* chat_match.c - reading templates as units and comparing them, see chat_match.h.
 *
 * A unit is a byte of code, a byte of literal text (flag UNIT_TEXT), the begin or end of a block tag, or a hole. Output
 * tags have no units of their own: {{ 'a' + b }}c is the literal a, the code b, the literal c, and two codes that
 * follow each other are told apart by one '+'.
 *
 * The comparison is that of file-name patterns: at a mismatch, the last hole takes one unit more and the rest of the
 * pattern is tried again. Both sides are read anew from a copied position, so nothing is allocated.
 *
 * Invariants  at <= size; every call of chat_lex_next moves on or ends.
 * Threads     no state.
 * Not here    the variants (chat_*.c of the forms). */
#include "token/chat_match.h"

#include <string.h>

#include "base/error.h"

enum {
    UNIT_TEXT = 0x100, /* | byte */
    UNIT_BLOCK = 0x200,
    UNIT_BLOCK_END = 0x201,
    UNIT_ANY = 0x300,
    UNIT_ANY_TEXT = 0x301,
    UNIT_END = 0x400,
    UNIT_BAD = 0x401 /* a tag or string without end: equal to nothing */
};

enum { LEX_TEXT, LEX_BLOCK, LEX_OUTPUT, LEX_STRING, LEX_END, LEX_BAD };

/* Templates have a few KiB; the longest published one has 40. The bound keeps a hostile one from costing time. */
#define CHAT_MAX_SOURCE ((size_t)256 * 1024)

static bool chat_is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

static bool chat_is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Plain text from `at` on, up to the next tag. strip: the tag before ends with '-'; block: it swallows a line break. */
static void chat_lex_text(sl_chat_lex *x, bool strip, bool block) {
    const char *const s = x->text;
    const size_t n = x->size;
    if (strip) {
        while (x->at < n && chat_is_space(s[x->at])) {
            x->at++;
        }
    } else if (block && x->at < n && s[x->at] == '\n') {
        x->at++;
    }
    size_t e = x->at;
    while (e < n &&
           !(s[e] == '{' && e + 1 < n && (s[e + 1] == '{' || s[e + 1] == '%' || s[e + 1] == '#'))) {
        e++;
    }
    x->at_tag = e;
    x->end_text = e;
    x->mode = LEX_TEXT;
    if (e >= n) {
        if (e > x->at && s[e - 1] == '\n') { /* one line break at the very end does not count */
            x->end_text = e - 1;
        }
        return;
    }
    const char sign = e + 2 < n ? s[e + 2] : '\0';
    size_t k = e;
    if (sign == '-') {
        while (k > x->at && chat_is_space(s[k - 1])) {
            k--;
        }
        x->end_text = k;
    } else if (s[e + 1] != '{' && sign != '+') { /* indentation before a block tag */
        while (k > x->at && (s[k - 1] == ' ' || s[k - 1] == '\t')) {
            k--;
        }
        if (k == 0 || s[k - 1] == '\n') {
            x->end_text = k;
        }
    }
}

static void chat_lex_init(sl_chat_lex *x, const char *text, size_t size, bool is_holes) {
    memset(x, 0, sizeof *x);
    x->text = text;
    x->size = size;
    x->is_holes = is_holes;
    chat_lex_text(x, false, false);
}

/* Into the tag at at_tag; gives UNIT_BLOCK, or -1: nothing to tell. */
static int chat_lex_tag(sl_chat_lex *x) {
    const char kind = x->text[x->at_tag + 1];
    x->at = x->at_tag + 2;
    if (kind == '#') {
        size_t e = x->at;
        while (e + 1 < x->size && !(x->text[e] == '#' && x->text[e + 1] == '}')) {
            e++;
        }
        if (e + 1 >= x->size) {
            x->mode = LEX_BAD;
            return -1;
        }
        const bool strip = e > x->at && x->text[e - 1] == '-';
        x->at = e + 2;
        chat_lex_text(x, strip, true);
        return -1;
    }
    if (x->at < x->size && (x->text[x->at] == '-' || (kind == '%' && x->text[x->at] == '+'))) {
        x->at++;
    }
    x->mode = kind == '%' ? LEX_BLOCK : LEX_OUTPUT;
    x->word = false;
    x->last = '\0';
    x->end_index = 0;
    x->sum = false;
    x->plus = kind == '{' && x->is_code;
    if (kind == '%') {
        x->is_code = false;
        return UNIT_BLOCK;
    }
    return -1;
}

/* ['name'] after code: the place of the closing quote, else 0. */
static size_t chat_lex_index(const sl_chat_lex *x) {
    const char *const s = x->text;
    size_t i = x->at + 1;
    if (!(x->word || x->last == ']' || x->last == ')') || i >= x->size ||
        (s[i] != '\'' && s[i] != '"')) {
        return 0;
    }
    const char quote = s[i++];
    const size_t begin = i;
    while (i < x->size && chat_is_word(s[i])) {
        i++;
    }
    return i > begin && i + 1 < x->size && s[i] == quote && s[i + 1] == ']' ? i : 0;
}

/* One unit of code, or -1: nothing to tell. */
static int chat_lex_code(sl_chat_lex *x) {
    const char *const s = x->text;
    bool space = false;
    while (x->at < x->size && chat_is_space(s[x->at])) {
        x->at++;
        space = true;
    }
    if (x->at >= x->size) {
        x->mode = LEX_BAD;
        return -1;
    }
    if (x->end_index != 0 && x->at == x->end_index) {
        x->at += 2;
        x->end_index = 0;
        return -1;
    }
    const bool block = x->mode == LEX_BLOCK;
    const size_t sign = s[x->at] == '-' || (block && s[x->at] == '+');
    if (x->at + sign + 1 < x->size && s[x->at + sign] == (block ? '%' : '}') &&
        s[x->at + sign + 1] == '}') {
        if (x->sum) { /* nothing after a '+' */
            x->mode = LEX_BAD;
            return -1;
        }
        const bool strip = sign != 0 && s[x->at] == '-';
        x->at += sign + 2;
        chat_lex_text(x, strip, block && !(sign != 0 && !strip));
        return block ? UNIT_BLOCK_END : -1;
    }
    char c = s[x->at];
    if (c == '\'' || c == '"') {
        x->quote = c;
        x->back = x->mode;
        x->mode = LEX_STRING;
        x->plus = false;
        x->sum = false;
        x->at++;
        return -1;
    }
    const bool operand = x->word || x->last == ']' || x->last == ')' || x->last == '"';
    if ((c == '+' || c == '~') && operand) { /* else a sign, which is a unit like any other */
        x->plus = x->last != '"';
        x->sum = true;
        x->word = false;
        x->last = c;
        x->at++;
        return -1;
    }
    x->sum = false;
    if (x->plus) {
        x->plus = false;
        x->word = false;
        x->last = '+';
        return '+';
    }
    if (space && x->word && chat_is_word(c)) {
        x->word = false;
        x->last = ' ';
        return ' ';
    }
    const size_t end_index = c == '[' ? chat_lex_index(x) : 0;
    if (end_index != 0) {
        x->end_index = end_index;
        x->at++; /* on the quote, which the next line passes */
        c = '.';
    }
    x->at++;
    x->word = chat_is_word(c);
    x->last = c;
    x->is_code = !block;
    return (unsigned char)c;
}

/* One unit of a quoted string, or -1: nothing to tell. */
static int chat_lex_string(sl_chat_lex *x) {
    if (x->at >= x->size) {
        x->mode = LEX_BAD;
        return -1;
    }
    char c = x->text[x->at++];
    if (c == x->quote) {
        x->mode = x->back;
        x->word = false;
        x->is_code = false;
        x->last = '"';
        return -1;
    }
    if (c == '\\' && x->at < x->size) {
        static const char from[] = "ntr\\'\"", to[] = "\n\t\r\\'\"";
        const char *const known = memchr(from, x->text[x->at], sizeof from - 1);
        if (known != NULL) {
            x->at++;
            c = to[known - from];
        }
    }
    return UNIT_TEXT | (unsigned char)c;
}

static int chat_lex_next(sl_chat_lex *x) {
    for (;;) {
        if (x->is_holes && x->mode <= LEX_STRING && x->at < x->size &&
            (x->mode != LEX_TEXT || x->at < x->end_text) &&
            (x->text[x->at] == SL_CHAT_ANY[0] || x->text[x->at] == SL_CHAT_TEXT[0])) {
            const bool any = x->text[x->at++] == SL_CHAT_ANY[0];
            x->is_code = false;
            return any ? UNIT_ANY : UNIT_ANY_TEXT;
        }
        int unit = -1;
        switch (x->mode) {
        case LEX_TEXT:
            if (x->at < x->end_text) {
                x->is_code = false;
                return UNIT_TEXT | (unsigned char)x->text[x->at++];
            }
            if (x->at_tag < x->size) {
                unit = chat_lex_tag(x);
            } else {
                x->mode = LEX_END;
            }
            break;
        case LEX_BLOCK:
        case LEX_OUTPUT:
            unit = chat_lex_code(x);
            break;
        case LEX_STRING:
            unit = chat_lex_string(x);
            break;
        case LEX_END:
            return UNIT_END;
        default:
            return UNIT_BAD;
        }
        if (unit >= 0) {
            return unit;
        }
    }
}

static bool chat_match_one(const char *pattern, const char *source, size_t n_source,
                           sl_chat_capture *captures) {
    sl_chat_lex p, s, p_hole, s_hole;
    int hole = -1;
    size_t n_capture = 0;
    chat_lex_init(&p, pattern, strlen(pattern), true);
    chat_lex_init(&s, source, n_source, false);
    p_hole = p;
    s_hole = s;
    for (;;) {
        const int want = chat_lex_next(&p);
        if (want == UNIT_ANY || want == UNIT_ANY_TEXT) {
            hole = want;
            p_hole = p;
            s_hole = s;
            if (want == UNIT_ANY_TEXT) {
                if (n_capture >= SL_CHAT_MAX_CAPTURE) {
                    return false;
                }
                captures[n_capture++] = (sl_chat_capture){.begin = s, .n_unit = 0};
            }
            continue;
        }
        const int got = chat_lex_next(&s);
        if (got == want && want != UNIT_BAD) {
            if (want == UNIT_END) {
                return true;
            }
            continue;
        }
        if (hole < 0) {
            return false;
        }
        const int taken = chat_lex_next(&s_hole);
        if (taken == UNIT_END || taken == UNIT_BAD) {
            return false;
        }
        if (hole == UNIT_ANY_TEXT) {
            if ((taken & ~0xFF) != UNIT_TEXT) {
                return false;
            }
            captures[n_capture - 1].n_unit++;
        }
        p = p_hole;
        s = s_hole;
    }
}

const sl_chat_variant *sl_chat_match(const sl_chat_variant *variants, size_t n, const char *source,
                                     size_t n_source, sl_chat_capture *captures) {
    sl_chat_capture own[SL_CHAT_MAX_CAPTURE];
    if (source == NULL || n_source > CHAT_MAX_SOURCE) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        if (chat_match_one(variants[i].pattern, source, n_source,
                           captures != NULL ? captures : own)) {
            return &variants[i];
        }
    }
    return NULL;
}

sl_status sl_chat_put_capture(sl_chat_text *out, const sl_chat_capture *capture, sl_error *err) {
    sl_chat_lex x = capture->begin;
    char part[65];
    size_t left = capture->n_unit;
    while (left > 0) {
        size_t n = 0;
        while (n < sizeof part - 1 && left > 0) {
            part[n] = (char)(chat_lex_next(&x) & 0xFF);
            n += part[n] != '\0'; /* a template is text: sl_chat_find refuses one with NUL bytes */
            left--;
        }
        part[n] = '\0';
        SL_TRY(sl_chat_put(out, part, err));
    }
    return SL_OK;
}
