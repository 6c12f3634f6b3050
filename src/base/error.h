/* error.h - filling an sl_error where the fault is found.
 *
 * The text is written once, by whoever finds the fault, with what, where (offset, tensor, key) and what would help.
 * Callers may put words in front (sl_error_prefix), never replace it. */
#ifndef SL_BASE_ERROR_H
#define SL_BASE_ERROR_H

#include "sluice.h"

/* Fill *err (may be NULL) and give the code back:  return SL_FAIL(err, SL_EFORMAT, "key '%s': ...", key);
 * Bytes that are not printable UTF-8 and line breaks in the text become '?', so that a hostile name cannot break a
 * terminal or a log. (The macro's value is the code itself, so that a compiler sees it is not SL_OK.) */
#define SL_FAIL(err, code, ...) \
    (sl_error_set((err), (code), __FILE__, __LINE__, __VA_ARGS__), (sl_status)(code))

void sl_error_set(sl_error *err, sl_status code, const char *file, int line, const char *format,
                  ...) SL_PRINTF(5, 6);

/* Put "<words>: " in front of the text; keeps code, file and line. Returns the code (err NULL: SL_OK is not known, so
 * pass the status on yourself). */
void sl_error_prefix(sl_error *err, const char *format, ...) SL_PRINTF(2, 3);

/* Forward a failed status out of the current function. */
#define SL_TRY(expr)                             \
    do {                                         \
        const sl_status sl_try_status_ = (expr); \
        if (sl_try_status_ != SL_OK) {           \
            return sl_try_status_;               \
        }                                        \
    } while (0)

#endif
