/* stream.h - from token bytes to text that may be shown.
 *
 * Two things must be held back: the beginning of a UTF-8 character whose end has not come, and a tail that may become a
 * stop string. What is released is always whole characters and never part of a stop string; whichever stop string
 * begins first in the text wins (of those that begin together, the one completed first; of those, the first listed).
 * Bytes that can't be UTF-8 become U+FFFD, one for each maximal invalid part, as the Unicode standard recommends.
 *
 * Memory: one block from the ledger (account misc) at init, none later: sl_stream_bytes tells how much.
 * Threads: one at a time. */
#ifndef SL_TOKEN_STREAM_H
#define SL_TOKEN_STREAM_H

#include "base/ledger.h"

typedef struct sl_stream sl_stream;

/* Ledger bytes of a stream with these stop strings whose pieces have at most max_piece bytes. */
size_t sl_stream_bytes(const char *const *stop, size_t n_stop, size_t max_piece);
/* SL_EINVAL: a stop string that is empty, not valid UTF-8 or longer than SL_MAX_STOP_BYTES, or more than SL_MAX_STOP.
 * The strings are copied. */
sl_status sl_stream_open(sl_ledger *ledger, const char *const *stop, size_t n_stop,
                         size_t max_piece, sl_stream **out, sl_error *err);
void sl_stream_close(sl_stream *s);

/* Feed the bytes of one token (n <= max_piece). *text, *n_text: what may be shown now, borrowed until the next call.
 * Returns the index of the stop string that was completed, or -1; after a stop nothing more may be fed. */
int32_t sl_stream_feed(sl_stream *s, const char *bytes, size_t n, const char **text,
                       size_t *n_text);
/* The end: what was held back; a cut character becomes one U+FFFD. Returns the stop string that the text ended with
 * while an earlier, longer one was still possible ("bc" when "abcd" might have come), or -1. */
int32_t sl_stream_flush(sl_stream *s, const char **text, size_t *n_text);

#endif
