/* random.h - the sampler's own generator: xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number
 * generators", 2018), its state filled by splitmix64 so that any seed, 0 too, gives a good start.
 *
 * Integer arithmetic only: the same seed gives the same numbers on every machine. Not for secrets. */
#ifndef SL_SAMPLE_RANDOM_H
#define SL_SAMPLE_RANDOM_H

#include <stdint.h>

typedef struct sl_random {
    uint64_t s[4];
} sl_random;

static inline uint64_t sl_random_splitmix(uint64_t *state) {
    *state += 0x9E3779B97F4A7C15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline void sl_random_seed(sl_random *r, uint64_t seed) {
    for (int i = 0; i < 4; i++) {
        r->s[i] = sl_random_splitmix(&seed);
    }
}

static inline uint64_t sl_random_rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static inline uint64_t sl_random_next(sl_random *r) {
    uint64_t *const s = r->s;
    const uint64_t out = sl_random_rotl(s[1] * 5, 7) * 9;
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = sl_random_rotl(s[3], 45);
    return out;
}

/* Uniform in 0..n-1, exactly: the bits that can matter are drawn until they are below n (twice on average at most).
 * n >= 1. */
static inline uint64_t sl_random_below(sl_random *r, uint64_t n) {
    uint64_t mask = n - 1;
    for (int k = 1; k < 64; k *= 2) {
        mask |= mask >> k;
    }
    for (;;) {
        const uint64_t x =
            (sl_random_next(r) >> 2) & mask; /* n < 2^62 here; the low bits are the weakest */
        if (x < n) {
            return x;
        }
    }
}

#endif
