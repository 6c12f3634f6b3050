/* chain.c - counting instead of sorting, see chain.h.
 *
 * A float's bits, turned so that they order like the number, are a key of 32 bits. The cut is found like a word in a
 * dictionary: count (or weigh) the candidates by the first 11 bits of their keys, walk down from the top until the
 * wanted amount is reached, and look closer at that one bucket, by the next 11 bits, then by the last 10:
 *
 *     bucket  | 2047 | 2046 | ... | b | ...        amount above b < wanted <= amount above and in b
 *                                   \__ the same again for the candidates in b
 *
 * In the end b is one logit, and what is still wanted says how many of those that have exactly it may stay.
 *
 * Threads     one at a time.
 * Not here    the filters (filter_*.c), drawing (sampler.c). */
#include "sample/chain.h"

#include <string.h>

double sl_chain_exp(double x) {
    /* x = k ln 2 + r with |r| <= (ln 2)/2; ln 2 in two parts, the first with zeros at its end so that k times it is
     * exact. e^r by its series: the first term left out is below 1e-14. */
    static const double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
    static const double inverse[12] = {
        1.0,       1.0,        1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,
        1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800,
    };
    if (!(x >= -700.0)) {
        return 0.0;
    }
    const int k = (int)(x * 1.4426950408889634 - 0.5); /* x <= 0: rounds to the nearest */
    const double r = (x - k * ln2_high) - k * ln2_low;
    double sum = inverse[11];
    for (int i = 10; i >= 0; i--) {
        sum = sum * r + inverse[i];
    }
    const uint64_t bits = (uint64_t)(1023 + k) << 52; /* 2^k; k >= -1011 */
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return sum * scale;
}

uint64_t sl_chain_weight(double below) {
    if (!(below >
          -28.5)) { /* less than half a unit: saves the exponential for most of a vocabulary */
        return 0;
    }
    return (uint64_t)(sl_chain_exp(below) * (double)SL_WEIGHT_ONE + 0.5);
}

float sl_chain_max(const sl_chain *c) {
    float max = c->item[0].logit;
    for (int32_t i = 1; i < c->n; i++) {
        if (c->item[i].logit > max) {
            max = c->item[i].logit;
        }
    }
    return max;
}

static uint32_t chain_key(float logit) {
    const float plain = logit + 0.0f; /* -0 becomes +0: they are equal */
    uint32_t bits;
    memcpy(&bits, &plain, sizeof bits);
    return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

/* With `weighted`, keep `share` of the weight; else keep `rest` candidates (rest <= n). */
static void chain_keep(sl_chain *c, bool weighted, double share, uint64_t rest) {
    enum { N_LEVEL = 3 };
    static const int shift[N_LEVEL] = {21, 10, 0};
    static const int width[N_LEVEL] = {11, 11, 10};
    const float max = weighted ? sl_chain_max(c) : 0.0f;
    uint32_t prefix = 0;
    for (int level = 0; level < N_LEVEL; level++) {
        const uint32_t mask = ((uint32_t)1 << width[level]) - 1;
        memset(c->bucket, 0, sizeof c->bucket);
        for (int32_t i = 0; i < c->n; i++) {
            const uint32_t key = chain_key(c->item[i].logit);
            if (level == 0 || key >> (shift[level] + width[level]) == prefix) {
                c->bucket[(key >> shift[level]) & mask] +=
                    weighted ? sl_chain_weight((double)c->item[i].logit - (double)max) : 1;
            }
        }
        if (level == 0 && weighted) {
            uint64_t total = 0;
            for (uint32_t b = 0; b <= mask; b++) {
                total += c->bucket[b];
            }
            const double exact = share * (double)total;
            rest = (uint64_t)exact;
            rest += (double)rest < exact;
            rest = rest < 1 ? 1 : rest > total ? total : rest;
        }
        uint32_t b = mask;
        while (b > 0 && c->bucket[b] < rest) {
            rest -= c->bucket[b--];
        }
        prefix = prefix << width[level] | b;
    }
    /* rest is now what those that have this very key must bring: a number of candidates, or of weight. */
    int32_t n = 0;
    for (int32_t i = 0; i < c->n; i++) {
        const sl_candidate item = c->item[i];
        const uint32_t key = chain_key(item.logit);
        if (key < prefix || (key == prefix && rest == 0)) {
            continue;
        }
        if (key == prefix) {
            const uint64_t own = weighted ? sl_chain_weight((double)item.logit - (double)max) : 1;
            rest = rest > own ? rest - own : 0;
        }
        c->item[n++] = item;
    }
    c->n = n;
}

void sl_chain_keep_count(sl_chain *c, uint64_t count) {
    if (count < (uint64_t)c->n) {
        chain_keep(c, false, 0.0, count);
    }
}

void sl_chain_keep_share(sl_chain *c, double share) { chain_keep(c, true, share, 0); }
