/* stream.c - what of the text so far may be shown, see stream.h.
 *
 *     bytes of a token -> [tail: <= 3 bytes of a character] -> whole characters -> [hold] -> shown
 *
 * The hold begins where a stop string might. At its first position, each stop string either matches whole (the
 * decision), matches as far as there is text (wait), or does not match (the position is released and the next one is
 * looked at). A later position is never decided before an earlier one, so the stop string that begins first wins even
 * if another inside it was completed before.
 *
 *     stops "abcd", "bc"    text "abc"   held: "abcd" may still come
 *                           text "abcX"  shown: "a", stop "bc"
 *
 * Stop strings are valid UTF-8 and so is the text, hence a match begins at a character and the release is whole
 * characters without a further check.
 *
 * Invariants  n_hold < the longest stop string's length between calls; tail < 4 bytes.
 * Threads     one at a time.
 * Not here    bytes of tokens (tokenizer.h). */
#include "token/stream.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/utf8.h"

typedef struct stream_stop {
    const char *text;
    size_t n;
} stream_stop;

struct sl_stream {
    sl_ledger *ledger;
    size_t size_bytes;
    size_t max_piece;
    stream_stop stop[SL_MAX_STOP];
    int32_t n_stop;
    int32_t i_stopped; /* the stop string that was completed, or -1 */
    uint8_t *raw;      /* tail and the new piece: 3 + max_piece */
    size_t n_tail;
    char *text;     /* shown by the last call, then the hold */
    size_t n_shown; /* to be dropped by the next call */
    size_t n_text;
};

/* Bytes that whole characters of one call take: each byte may become a U+FFFD of three. */
static size_t stream_room(size_t max_piece) { return 3 * (max_piece + 3); }

size_t sl_stream_bytes(const char *const *stop, size_t n_stop, size_t max_piece) {
    size_t n_copy = 0, n_longest = 0;
    for (size_t i = 0; i < n_stop; i++) {
        const size_t n = strlen(stop[i]);
        n_copy += n;
        n_longest = n > n_longest ? n : n_longest;
    }
    return sizeof(sl_stream) + n_copy + n_longest + (max_piece + 3) + stream_room(max_piece);
}

static bool stream_is_utf8(const char *text, size_t n) {
    for (size_t i = 0; i < n;) {
        const int len = sl_utf8_len((const uint8_t *)text + i, n - i);
        if (len <= 0) {
            return false;
        }
        i += (size_t)len;
    }
    return true;
}

sl_status sl_stream_open(sl_ledger *ledger, const char *const *stop, size_t n_stop,
                         size_t max_piece, sl_stream **out, sl_error *err) {
    if (n_stop > SL_MAX_STOP) {
        return SL_FAIL(err, SL_EINVAL, "%zu stop strings: at most %d are possible", n_stop,
                       SL_MAX_STOP);
    }
    for (size_t i = 0; i < n_stop; i++) {
        const size_t n = stop[i] != NULL ? strlen(stop[i]) : 0;
        if (n == 0) {
            return SL_FAIL(err, SL_EINVAL, "stop string %zu is empty", i);
        }
        if (n > SL_MAX_STOP_BYTES) {
            return SL_FAIL(err, SL_EINVAL, "stop string %zu has %zu bytes: at most %d are possible",
                           i, n, SL_MAX_STOP_BYTES);
        }
        if (!stream_is_utf8(stop[i], n)) {
            return SL_FAIL(err, SL_EINVAL,
                           "stop string %zu is not valid UTF-8: it could never occur in the text",
                           i);
        }
    }
    if (max_piece > SIZE_MAX / 8) {
        return SL_FAIL(err, SL_EINVAL, "max_piece is %zu: too large", max_piece);
    }
    const size_t size = sl_stream_bytes(stop, n_stop, max_piece);
    void *block;
    SL_TRY(sl_alloc_zero(ledger, SL_ACCOUNT_MISC, 1, size, &block, "text stream", err));
    sl_stream *const s = (sl_stream *)block;
    char *at = (char *)block + sizeof *s;
    s->ledger = ledger;
    s->size_bytes = size;
    s->max_piece = max_piece;
    s->n_stop = (int32_t)n_stop;
    s->i_stopped = -1;
    for (size_t i = 0; i < n_stop; i++) {
        s->stop[i] = (stream_stop){.text = at, .n = strlen(stop[i])};
        memcpy(at, stop[i], s->stop[i].n);
        at += s->stop[i].n;
    }
    s->raw = (uint8_t *)at;
    s->text = at + max_piece + 3;
    *out = s;
    return SL_OK;
}

void sl_stream_close(sl_stream *s) {
    if (s != NULL) {
        sl_release(s->ledger, SL_ACCOUNT_MISC, s, s->size_bytes);
    }
}

/* Bytes of the invalid part at p that one U+FFFD stands for: as far as it could have been a character, at least 1. */
static size_t stream_bad(const uint8_t *p, size_t n) {
    size_t k = n < 3 ? n : 3;
    while (k > 1 && sl_utf8_len(p, k) != 0) {
        k--;
    }
    return k;
}

/* Turn tail + piece into whole characters at the end of the text; what is incomplete becomes the new tail, or at the
 * `end` one U+FFFD. */
static void stream_decode(sl_stream *s, const char *bytes, size_t n, bool end) {
    if (n > 0) {
        memcpy(s->raw + s->n_tail, bytes, n);
    }
    const size_t n_raw = s->n_tail + n;
    size_t i = 0;
    while (i < n_raw) {
        const int len = sl_utf8_len(s->raw + i, n_raw - i);
        if (len > 0) {
            memcpy(s->text + s->n_text, s->raw + i, (size_t)len);
            s->n_text += (size_t)len;
            i += (size_t)len;
            continue;
        }
        if (len == 0 && !end) {
            break;
        }
        s->n_text += sl_utf8_put(0xFFFD, (uint8_t *)s->text + s->n_text);
        i += len == 0 ? n_raw - i : stream_bad(s->raw + i, n_raw - i);
    }
    s->n_tail = n_raw - i;
    memmove(s->raw, s->raw + i, s->n_tail);
}

/* Look for stop strings from the first position on. At the `end` nothing more can come, so a part is no match. */
static int32_t stream_release(sl_stream *s, bool end) {
    size_t at = 0;
    int32_t found = -1;
    for (; at < s->n_text && found < 0; at++) {
        const size_t left = s->n_text - at;
        bool wait = false;
        for (int32_t i = 0; i < s->n_stop; i++) {
            const stream_stop *const stop = &s->stop[i];
            const size_t n = stop->n < left ? stop->n : left;
            if (memcmp(s->text + at, stop->text, n) != 0) {
                continue;
            }
            if (n < stop->n) {
                wait = true;
            } else if (found < 0 || stop->n < s->stop[found].n) {
                found = i;
            }
        }
        if (found >= 0 || (wait && !end)) {
            break;
        }
    }
    s->n_shown = at;
    return found;
}

static int32_t stream_step(sl_stream *s, const char *bytes, size_t n, bool end, const char **text,
                           size_t *n_text) {
    s->n_text -= s->n_shown;
    memmove(s->text, s->text + s->n_shown, s->n_text);
    s->n_shown = 0;
    if (s->i_stopped < 0) {
        stream_decode(s, bytes, n < s->max_piece ? n : s->max_piece, end);
        s->i_stopped = stream_release(s, end);
        if (s->i_stopped >= 0) { /* the stop string and what came with it are never shown */
            s->n_text = s->n_shown;
            s->n_tail = 0;
        }
    }
    *text = s->text;
    *n_text = s->n_shown;
    return s->i_stopped;
}

int32_t sl_stream_feed(sl_stream *s, const char *bytes, size_t n, const char **text,
                       size_t *n_text) {
    return stream_step(s, bytes, n, false, text, n_text);
}

int32_t sl_stream_flush(sl_stream *s, const char **text, size_t *n_text) {
    return stream_step(s, NULL, 0, true, text, n_text);
}
