/* pre_rules.c - the stages of pre-tokenizers, each a published regular expression written out by hand; see pre.h.
 *
 * Where an expression can fail to match, the text between matches is a part too (a "gap"); pre_with_gaps makes that of a
 * function that says how much matches at one place. Every function looks at each character a bounded number of times for
 * each part that it makes, so a walk is linear.
 *
 * Threads: no state.
 * Not here: the walk over stages (pre.c). */
#include "token/pre.h"

#include <string.h>

#include "base/unicode.h"
#include "base/utf8.h"

/* ---- characters ---- */

#define PRE_LETTER SL_CLASS_LETTER
#define PRE_NUMBER SL_CLASS_NUMBER
#define PRE_SPACE SL_CLASS_SPACE

typedef struct pre_char {
    uint32_t code, kind;
    size_t len; /* 0: the end of the text */
} pre_char;

static pre_char pre_at(const uint8_t *p, size_t n, size_t at) {
    pre_char c = {0, 0, 0};
    if (at < n) {
        c.code = sl_utf8_next(p + at, n - at, &c.len);
        c.kind = sl_unicode_class_of(c.code);
    }
    return c;
}

/* Where the run of characters of these classes that begins at `at` ends. */
static size_t pre_run(const uint8_t *p, size_t n, size_t at, uint32_t kinds) {
    for (pre_char c = pre_at(p, n, at); c.len > 0 && (c.kind & kinds) != 0; c = pre_at(p, n, at)) {
        at += c.len;
    }
    return at;
}

/* The same for characters of none of these classes. */
static size_t pre_run_not(const uint8_t *p, size_t n, size_t at, uint32_t kinds) {
    for (pre_char c = pre_at(p, n, at); c.len > 0 && (c.kind & kinds) == 0; c = pre_at(p, n, at)) {
        at += c.len;
    }
    return at;
}

static size_t pre_run_newlines(const uint8_t *p, size_t n, size_t at, bool slash) {
    while (at < n && (p[at] == '\r' || p[at] == '\n' || (slash && p[at] == '/'))) {
        at++;
    }
    return at;
}

/* At most max numbers. */
static size_t pre_run_numbers(const uint8_t *p, size_t n, int max) {
    size_t at = 0;
    for (int i = 0; i < max; i++) {
        const pre_char c = pre_at(p, n, at);
        if (c.len == 0 || (c.kind & PRE_NUMBER) == 0) {
            break;
        }
        at += c.len;
    }
    return at;
}

/* \s+(?!\S)|\s+ : white space up to the end of the text, or else all but its last character, which stays for the word
 * that follows; a single one is a part alone. p[0] is white space. */
static size_t pre_white(const uint8_t *p, size_t n) {
    size_t at = 0;
    size_t last = 0;
    for (pre_char c = pre_at(p, n, 0); c.len > 0 && (c.kind & PRE_SPACE) != 0;
         c = pre_at(p, n, at)) {
        last = at;
        at += c.len;
    }
    return at == n || last == 0 ? at : last;
}

/* \s*[\r\n]+ at white space: up to the last line break of the run; 0: there is none. */
static size_t pre_white_to_newline(const uint8_t *p, size_t n) {
    size_t at = 0;
    size_t end = 0;
    for (pre_char c = pre_at(p, n, 0); c.len > 0 && (c.kind & PRE_SPACE) != 0;
         c = pre_at(p, n, at)) {
        at += c.len;
        if (c.code == '\r' || c.code == '\n') {
            end = at;
        }
    }
    return end;
}

static bool pre_is_break(uint32_t code) { return code == '\r' || code == '\n'; }

static size_t pre_with_gaps(const uint8_t *p, size_t n,
                            size_t (*match)(const uint8_t *p, size_t n)) {
    size_t at = match(p, n);
    if (at > 0) {
        return at;
    }
    do {
        at += pre_at(p, n, at).len;
    } while (at < n && match(p + at, n - at) == 0);
    return at;
}

/* ---- GPT-2:  's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ ---- */

static size_t pre_contraction(const uint8_t *p, size_t n) {
    if (n < 2 || p[0] != '\'') {
        return 0;
    }
    if (p[1] == 's' || p[1] == 't' || p[1] == 'm' || p[1] == 'd') {
        return 2;
    }
    if (n < 3) {
        return 0;
    }
    const bool two = (p[1] == 'r' && p[2] == 'e') || (p[1] == 'v' && p[2] == 'e') ||
                     (p[1] == 'l' && p[2] == 'l');
    return two ? 3 : 0;
}

/* The same in either case. U+017F, the long s, is an s when case does not count. */
static size_t pre_contraction_any_case(const uint8_t *p, size_t n) {
    if (n < 2 || p[0] != '\'') {
        return 0;
    }
    if (n >= 3 && p[1] == 0xC5 && p[2] == 0xBF) {
        return 3;
    }
    uint8_t low[3] = {'\'', 0, 0};
    for (size_t i = 1; i < 3 && i < n; i++) {
        low[i] = p[i] >= 'A' && p[i] <= 'Z' ? (uint8_t)(p[i] + 32) : p[i];
    }
    return pre_contraction(low, n < 3 ? n : 3);
}

static size_t pre_cut_gpt2(const uint8_t *p, size_t n) {
    const size_t contraction = pre_contraction(p, n);
    if (contraction > 0) {
        return contraction;
    }
    const pre_char first = pre_at(p, n, 0);
    size_t at = 0;
    pre_char c = first;
    if (first.code == ' ' && n > 1) {
        at = 1;
        c = pre_at(p, n, 1);
    }
    if ((c.kind & PRE_LETTER) != 0) {
        return pre_run(p, n, at, PRE_LETTER);
    }
    if ((c.kind & PRE_NUMBER) != 0) {
        return pre_run(p, n, at, PRE_NUMBER);
    }
    if ((c.kind & PRE_SPACE) == 0) {
        return pre_run_not(p, n, at, PRE_LETTER | PRE_NUMBER | PRE_SPACE);
    }
    return pre_white(p, n);
}

/* ---- the cl100k family:
 *   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
 * with `letters` for the class after the optional character, `digits` for the longest number. ---- */

static size_t pre_other_or_white(const uint8_t *p, size_t n, uint32_t letters, bool slash) {
    const pre_char first = pre_at(p, n, 0);
    const uint32_t taken = letters | PRE_NUMBER | PRE_SPACE;
    const size_t at = first.code == ' ' ? 1 : 0;
    const size_t end = pre_run_not(p, n, at, taken);
    if (end > at) {
        return pre_run_newlines(p, n, end, slash);
    }
    const size_t line = pre_white_to_newline(p, n);
    return line > 0 ? line : pre_white(p, n);
}

static size_t pre_cl100k(const uint8_t *p, size_t n, uint32_t letters, int digits) {
    const size_t contraction = pre_contraction_any_case(p, n);
    if (contraction > 0) {
        return contraction;
    }
    const pre_char first = pre_at(p, n, 0);
    if ((first.kind & letters) != 0) {
        return pre_run(p, n, 0, letters);
    }
    if ((first.kind & PRE_NUMBER) != 0) {
        return pre_run_numbers(p, n, digits);
    }
    if (!pre_is_break(first.code) && (pre_at(p, n, first.len).kind & letters) != 0) {
        return pre_run(p, n, first.len, letters);
    }
    return pre_other_or_white(p, n, letters, false);
}

static size_t pre_cut_llama3(const uint8_t *p, size_t n) { return pre_cl100k(p, n, PRE_LETTER, 3); }

static size_t pre_cut_qwen2(const uint8_t *p, size_t n) { return pre_cl100k(p, n, PRE_LETTER, 1); }

static size_t pre_cut_qwen35(const uint8_t *p, size_t n) {
    return pre_cl100k(p, n, PRE_LETTER | SL_CLASS_MARK, 1);
}

/* ---- o200k and tekken: words change where the case does.
 *   P?U*L+ C? | P?U+L* C? | \p{N}{1,3} | ?[^\s\p{L}\p{N}]+[\r\n/]* | \s*[\r\n]+ | \s+(?!\S) | \s+
 *   P = [^\r\n\p{L}\p{N}]   U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]   L = [\p{Ll}\p{Lm}\p{Lo}\p{M}]   C = a contraction ---- */

#define PRE_UPPERISH (SL_CLASS_UPPER | SL_CLASS_CASELESS | SL_CLASS_MARK)
#define PRE_LOWERISH (SL_CLASS_LOWER | SL_CLASS_CASELESS | SL_CLASS_MARK)

/* U*L+ from `at`; 0: no match. When nothing lower follows the run of U, the match shrinks to the last of the run that is
 * in L as well. */
static size_t pre_upper_then_lower(const uint8_t *p, size_t n, size_t at) {
    size_t end = at;
    size_t both = 0;
    for (pre_char c = pre_at(p, n, end); c.len > 0 && (c.kind & PRE_UPPERISH) != 0;
         c = pre_at(p, n, end)) {
        end += c.len;
        if ((c.kind & PRE_LOWERISH) != 0) {
            both = end;
        }
    }
    const size_t lower = pre_run(p, n, end, PRE_LOWERISH);
    return lower > end ? lower : both;
}

/* U+L* from `at`; 0: no match. */
static size_t pre_upper_maybe_lower(const uint8_t *p, size_t n, size_t at) {
    const size_t end = pre_run(p, n, at, PRE_UPPERISH);
    return end > at ? pre_run(p, n, end, PRE_LOWERISH) : 0;
}

static size_t pre_cased(const uint8_t *p, size_t n, int digits, bool contractions) {
    const pre_char first = pre_at(p, n, 0);
    const bool prefix = !pre_is_break(first.code) && (first.kind & (PRE_LETTER | PRE_NUMBER)) == 0;
    size_t end = prefix ? pre_upper_then_lower(p, n, first.len) : 0;
    if (end == 0) {
        end = pre_upper_then_lower(p, n, 0);
    }
    if (end == 0 && prefix) {
        end = pre_upper_maybe_lower(p, n, first.len);
    }
    if (end == 0) {
        end = pre_upper_maybe_lower(p, n, 0);
    }
    if (end > 0) {
        return contractions && end < n ? end + pre_contraction_any_case(p + end, n - end) : end;
    }
    if ((first.kind & PRE_NUMBER) != 0) {
        return pre_run_numbers(p, n, digits);
    }
    return pre_other_or_white(p, n, PRE_LETTER, true);
}

static size_t pre_cut_o200k(const uint8_t *p, size_t n) { return pre_cased(p, n, 3, true); }

static size_t pre_cut_tekken(const uint8_t *p, size_t n) { return pre_cased(p, n, 1, false); }

/* ---- single classes ---- */

/* \p{N} */
static size_t pre_match_digit(const uint8_t *p, size_t n) { return pre_run_numbers(p, n, 1); }

static size_t pre_cut_digit(const uint8_t *p, size_t n) {
    return pre_with_gaps(p, n, pre_match_digit);
}

/* \p{N}{1,3} */
static size_t pre_match_numbers_3(const uint8_t *p, size_t n) { return pre_run_numbers(p, n, 3); }

static size_t pre_cut_numbers_3(const uint8_t *p, size_t n) {
    return pre_with_gaps(p, n, pre_match_numbers_3);
}

/* \p{N}+ */
static size_t pre_cut_numbers(const uint8_t *p, size_t n) {
    const size_t end = pre_run(p, n, 0, PRE_NUMBER);
    return end > 0 ? end : pre_run_not(p, n, 0, PRE_NUMBER);
}

/* [0-9][0-9][0-9] */
static size_t pre_match_three_digits(const uint8_t *p, size_t n) {
    if (n < 3) {
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return 0;
        }
    }
    return 3;
}

static size_t pre_cut_three_digits(const uint8_t *p, size_t n) {
    return pre_with_gaps(p, n, pre_match_three_digits);
}

/* [\p{P}\$\+<=>\^~\|]+ and the same with the back tick. */
static size_t pre_punct(const uint8_t *p, size_t n, bool tick) {
    size_t at = 0;
    for (pre_char c = pre_at(p, n, 0); c.len > 0; c = pre_at(p, n, at)) {
        const bool ascii_symbol = c.code < 128 && (c.kind & SL_CLASS_SYMBOL) != 0;
        const bool in = (c.kind & SL_CLASS_PUNCT) != 0 || (ascii_symbol && (tick || c.code != '`'));
        if (!in) {
            break;
        }
        at += c.len;
    }
    return at;
}

static size_t pre_match_punct(const uint8_t *p, size_t n) { return pre_punct(p, n, false); }

static size_t pre_match_punct_tick(const uint8_t *p, size_t n) { return pre_punct(p, n, true); }

static size_t pre_cut_punct(const uint8_t *p, size_t n) {
    return pre_with_gaps(p, n, pre_match_punct);
}

static size_t pre_cut_punct_tick(const uint8_t *p, size_t n) {
    return pre_with_gaps(p, n, pre_match_punct_tick);
}

/* ---- DeepSeek ---- */

/* [\r\n] */
static size_t pre_match_newline(const uint8_t *p, size_t n) {
    return n > 0 && pre_is_break(p[0]) ? 1 : 0;
}

static size_t pre_cut_newline(const uint8_t *p, size_t n) {
    return pre_with_gaps(p, n, pre_match_newline);
}

/* \s?[...]+ */
static size_t pre_match_space_run(const uint8_t *p, size_t n, uint32_t kinds) {
    const pre_char first = pre_at(p, n, 0);
    const size_t at = (first.kind & PRE_SPACE) != 0 ? first.len : 0;
    const size_t end = pre_run(p, n, at, kinds);
    return end > at ? end : 0;
}

static size_t pre_match_space_letters(const uint8_t *p, size_t n) {
    return pre_match_space_run(p, n, PRE_LETTER);
}

static size_t pre_cut_space_letters(const uint8_t *p, size_t n) {
    return pre_with_gaps(p, n, pre_match_space_letters);
}

static size_t pre_match_space_punct(const uint8_t *p, size_t n) {
    return pre_match_space_run(p, n, SL_CLASS_PUNCT);
}

static size_t pre_cut_space_punct(const uint8_t *p, size_t n) {
    return pre_with_gaps(p, n, pre_match_space_punct);
}

/* Runs of characters from U+0800 to U+9FA5 and U+AC00 to U+D7FF; then each number alone. Two stages of the published
 * rule in one: no character belongs to both. */
static bool pre_is_coder_wide(uint32_t code) {
    return (code >= 0x0800 && code <= 0x9FA5) || (code >= 0xAC00 && code <= 0xD7FF);
}

static size_t pre_cut_coder_rest(const uint8_t *p, size_t n) {
    size_t at = 0;
    pre_char c = pre_at(p, n, 0);
    const bool wide = pre_is_coder_wide(c.code);
    if ((c.kind & PRE_NUMBER) != 0) {
        return c.len;
    }
    while (c.len > 0 && pre_is_coder_wide(c.code) == wide && (c.kind & PRE_NUMBER) == 0) {
        at += c.len;
        c = pre_at(p, n, at);
    }
    return at;
}

/* Runs of Han, Hiragana and Katakana. */
static bool pre_is_cjk(uint32_t code) {
    return (code >= 0x4E00 && code <= 0x9FA5) || (code >= 0x3040 && code <= 0x30FF);
}

static size_t pre_cut_cjk(const uint8_t *p, size_t n) {
    size_t at = 0;
    pre_char c = pre_at(p, n, 0);
    const bool wide = pre_is_cjk(c.code);
    while (c.len > 0 && pre_is_cjk(c.code) == wide) {
        at += c.len;
        c = pre_at(p, n, at);
    }
    return at;
}

static bool pre_is_ascii_letter(uint32_t code) {
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
}

/* [ASCII punctuation][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t pre_match_deepseek3(const uint8_t *p, size_t n) {
    const uint32_t word = PRE_LETTER | SL_CLASS_MARK;
    const uint32_t signs = SL_CLASS_PUNCT | SL_CLASS_SYMBOL;
    const pre_char first = pre_at(p, n, 0);
    const pre_char second = pre_at(p, n, first.len);
    if (first.code < 128 && (first.kind & signs) != 0 && second.len > 0 &&
        pre_is_ascii_letter(second.code)) {
        size_t at = first.len;
        while (at < n && pre_is_ascii_letter(p[at])) {
            at++;
        }
        return at;
    }
    if ((first.kind & word) != 0) {
        return pre_run(p, n, 0, word);
    }
    if (!pre_is_break(first.code) && (first.kind & signs) == 0 && (second.kind & word) != 0) {
        return pre_run(p, n, first.len, word);
    }
    const size_t at = first.code == ' ' ? 1 : 0;
    const size_t end = pre_run(p, n, at, signs);
    if (end > at) {
        return pre_run_newlines(p, n, end, false);
    }
    if ((first.kind & PRE_SPACE) == 0) {
        return 0;
    }
    const size_t line = pre_white_to_newline(p, n);
    return line > 0 ? line : pre_white(p, n);
}

static size_t pre_cut_deepseek3(const uint8_t *p, size_t n) {
    return pre_with_gaps(p, n, pre_match_deepseek3);
}

/* ---- the table ---- */

const sl_pre_rule sl_pre_rules[] = {
#define X(name, aliases, ignore_merges, add_bos, ...) \
    {name, aliases, ignore_merges, add_bos, {__VA_ARGS__}},
#include "token/pretokenizers.def"
#undef X
};

const int32_t sl_pre_n_rule = (int32_t)(sizeof sl_pre_rules / sizeof sl_pre_rules[0]);

sl_pre_cut sl_pre_stage_gpt2(void) { return pre_cut_gpt2; }

sl_pre_cut sl_pre_stage_digit(void) { return pre_cut_digit; }

/* Published expressions, as they stand in tokenizer.json files. */
static const struct {
    const char *regex;
    sl_pre_cut cut;
} pre_regexes[] = {
    {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     pre_cut_gpt2},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
     "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     pre_cut_llama3},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
     "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     pre_cut_qwen2},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| "
     "?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     pre_cut_qwen35},
    {"[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+"
     "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| "
     "?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     pre_cut_o200k},
    {"[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|"
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|"
     "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     pre_cut_tekken},
    {"\\p{N}", pre_cut_digit},
    {"\\p{N}{1,3}", pre_cut_numbers_3},
    {"\\p{N}+", pre_cut_numbers},
    {"[0-9][0-9][0-9]", pre_cut_three_digits},
    {"[\r\n]", pre_cut_newline},
    {"[\\r\\n]", pre_cut_newline},
    {"\\s?\\p{L}+", pre_cut_space_letters},
    {"\\s?\\p{P}+", pre_cut_space_punct},
    {"[一-龥぀-ゟ゠-ヿ]+", pre_cut_cjk},
    {"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?"
     "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
     pre_cut_deepseek3},
    {"[!\\\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?"
     "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     pre_cut_deepseek3},
};

sl_pre_cut sl_pre_stage_of_regex(const char *regex, size_t n) {
    for (size_t i = 0; i < sizeof pre_regexes / sizeof pre_regexes[0]; i++) {
        if (strlen(pre_regexes[i].regex) == n && memcmp(pre_regexes[i].regex, regex, n) == 0) {
            return pre_regexes[i].cut;
        }
    }
    return NULL;
}
