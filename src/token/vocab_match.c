/* vocab_match.c - find the tokens that are cut out of a text before anything else.
 *
 * The strings lie sorted, so those that share the first d bytes of the text are one range, and one more byte narrows the
 * range by two binary searches. Walking down costs as many steps as the text agrees with any string, whatever the number
 * of strings (Gemma has 6,400), and the last string that ended on the way is the longest match.
 *
 * Threads: read-only after sorting.
 * Not here: which matches count (tokenizer_encode.c). */
#include <string.h>

#include "base/error.h"
#include "token/vocab.h"

sl_status sl_matcher_reserve(sl_matcher *m, sl_ledger *ledger, size_t n, size_t n_text,
                             sl_error *err) {
    m->ledger = ledger;
    if (n == 0) {
        return SL_OK;
    }
    if (n > SL_MAX_VOCAB || n_text > UINT32_MAX) {
        return SL_FAIL(err, SL_ELIMIT, "%zu special tokens of %zu bytes are more than the limit", n,
                       n_text);
    }
    void *p;
    SL_TRY(sl_alloc(ledger, SL_ACCOUNT_TOKEN, n * sizeof *m->match, &p, "special tokens", err));
    m->match = p;
    m->cap = (uint32_t)n;
    SL_TRY(sl_alloc(ledger, SL_ACCOUNT_TOKEN, n_text, &p, "special tokens", err));
    m->text = p;
    m->cap_text = n_text;
    return SL_OK;
}

void sl_matcher_done(sl_matcher *m) {
    if (m->ledger != NULL) {
        sl_release(m->ledger, SL_ACCOUNT_TOKEN, m->match, m->cap * sizeof *m->match);
        sl_release(m->ledger, SL_ACCOUNT_TOKEN, m->text, m->cap_text);
    }
    memset(m, 0, sizeof *m);
}

void sl_matcher_add(sl_matcher *m, const char *text, size_t n, int32_t id) {
    if (n == 0 || m->n == m->cap || m->cap_text - m->n_text < n) {
        return;
    }
    memcpy(m->text + m->n_text, text, n);
    m->match[m->n++] = (sl_match){.begin = (uint32_t)m->n_text, .n = (uint32_t)n, .id = id};
    m->n_text += n;
    const unsigned first = (uint8_t)text[0];
    m->first[first >> 5] |= UINT32_C(1) << (first & 31);
}

/* Order of two strings; equal ones in the order in which they were added. */
static bool matcher_less(const sl_matcher *m, const sl_match *a, const sl_match *b) {
    const uint32_t n = a->n < b->n ? a->n : b->n;
    const int order = memcmp(m->text + a->begin, m->text + b->begin, n);
    if (order != 0) {
        return order < 0;
    }
    return a->n != b->n ? a->n < b->n : a->begin < b->begin;
}

static void matcher_sink(sl_matcher *m, uint32_t i, uint32_t n) {
    const sl_match moved = m->match[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= n) {
            break;
        }
        if (child + 1 < n && matcher_less(m, &m->match[child], &m->match[child + 1])) {
            child++;
        }
        if (!matcher_less(m, &moved, &m->match[child])) {
            break;
        }
        m->match[i] = m->match[child];
        i = child;
    }
    m->match[i] = moved;
}

void sl_matcher_sort(sl_matcher *m) {
    for (uint32_t i = m->n / 2; i-- > 0;) {
        matcher_sink(m, i, m->n);
    }
    for (uint32_t n = m->n; n-- > 1;) {
        const sl_match top = m->match[0];
        m->match[0] = m->match[n];
        m->match[n] = top;
        matcher_sink(m, 0, n);
    }
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const sl_match *a = &m->match[i];
        const sl_match *b = n_kept > 0 ? &m->match[n_kept - 1] : NULL;
        if (b == NULL || a->n != b->n ||
            memcmp(m->text + a->begin, m->text + b->begin, a->n) != 0) {
            m->match[n_kept++] = *a;
        }
    }
    m->n = n_kept;
}

/* The first string in [lo, hi) whose byte at `depth` is at least `byte` (all of them are longer than depth). */
static uint32_t matcher_bound(const sl_matcher *m, uint32_t lo, uint32_t hi, uint32_t depth,
                              unsigned byte) {
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if ((uint8_t)m->text[m->match[mid].begin + depth] < byte) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

int32_t sl_matcher_find(const sl_matcher *m, const char *text, size_t n,
                        bool (*ok)(const void *user, int32_t id, size_t n), const void *user,
                        size_t *n_match) {
    int32_t found = -1;
    const unsigned first = n > 0 ? (uint8_t)text[0] : 0;
    if (n == 0 || (m->first[first >> 5] >> (first & 31) & 1) == 0) {
        return -1;
    }
    uint32_t lo = 0;
    uint32_t hi = m->n;
    for (uint32_t depth = 0; depth < n && lo < hi; depth++) {
        const unsigned byte = (uint8_t)text[depth];
        lo = matcher_bound(m, lo, hi, depth, byte);
        hi = matcher_bound(m, lo, hi, depth, byte + 1);
        if (lo < hi && m->match[lo].n == depth + 1) {
            if (ok(user, m->match[lo].id, depth + 1)) {
                found = m->match[lo].id;
                *n_match = depth + 1;
            }
            lo++;
        }
    }
    return found;
}

int32_t sl_matcher_exact(const sl_matcher *m, const char *text, size_t n) {
    uint32_t lo = 0;
    uint32_t hi = m->n;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        const sl_match *a = &m->match[mid];
        const size_t k = a->n < n ? a->n : n;
        const int order = memcmp(m->text + a->begin, text, k);
        if (order == 0 && a->n == n) {
            return a->id;
        }
        if (order < 0 || (order == 0 && a->n < n)) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return -1;
}
