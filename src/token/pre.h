/* pre.h - pre-tokenizers: where a text is cut into words before tokens are looked for inside each word.
 *
 * The published rules are regular expressions. Each is written here as a function by hand: it gets the rest of a piece
 * and says how long its first part is. A rule is a list of such stages; every stage cuts the parts that the one before
 * it made, as if each part were a text of its own.
 *
 * Threads: no state but the walk's. */
#ifndef SL_TOKEN_PRE_H
#define SL_TOKEN_PRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_PRE_MAX_STAGE 4

/* Length in bytes of the first part of p[0..n), n >= 1; the result is in 1..n. Bytes that are not UTF-8 count as one
 * character each (U+FFFD, a symbol). */
typedef size_t (*sl_pre_cut)(const uint8_t *p, size_t n);

typedef struct sl_pre_rule {
    const char *name;
    const char *aliases; /* separated by spaces */
    bool ignore_merges, add_bos;
    sl_pre_cut stage[SL_PRE_MAX_STAGE];
} sl_pre_rule;

extern const sl_pre_rule sl_pre_rules[];
extern const int32_t sl_pre_n_rule;

/* By the name in tokenizer.ggml.pre; NULL: none. */
const sl_pre_rule *sl_pre_find(const char *name, size_t n);
/* By stages; NULL: no rule has exactly these. */
const sl_pre_rule *sl_pre_find_stages(const sl_pre_cut *stage, int32_t n_stage);
/* The stage that a published regular expression means, for splits that keep matches and gaps apart; NULL: unknown. */
sl_pre_cut sl_pre_stage_of_regex(const char *regex, size_t n);
/* Stages that tokenizer.json knows by a name of their own. */
sl_pre_cut sl_pre_stage_gpt2(void);
sl_pre_cut sl_pre_stage_digit(void);

typedef struct sl_pre_walk {
    const sl_pre_rule *rule;
    const uint8_t *text;
    size_t n, at;
    size_t end[SL_PRE_MAX_STAGE];
} sl_pre_walk;

static inline sl_pre_walk sl_pre_begin(const sl_pre_rule *rule, const char *text, size_t n) {
    return (sl_pre_walk){.rule = rule, .text = (const uint8_t *)text, .n = n, .at = 0};
}

/* The next word, text[*begin .. *begin + *n); false at the end. */
bool sl_pre_next(sl_pre_walk *w, size_t *begin, size_t *n);

#endif
