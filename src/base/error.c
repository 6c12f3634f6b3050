/* error.c - statuses, their names, and the one place that formats an error.
 *
 * Not here: printing (the library never does). */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

const char *sl_status_name(sl_status status) {
    switch (status) {
#define X(name, value, text) \
    case SL_##name:          \
        return "SL_" #name;
        SL_STATUS_LIST(X)
#undef X
    }
    return "SL_?";
}

const char *sl_status_text(sl_status status) {
    switch (status) {
#define X(name, value, text) \
    case SL_##name:          \
        return text;
        SL_STATUS_LIST(X)
#undef X
    }
    return "unknown status";
}

const char *sl_account_name(sl_account account) {
    switch (account) {
#define X(name, text, what) \
    case SL_ACCOUNT_##name: \
        return text;
        SL_ACCOUNT_LIST(X)
#undef X
    case SL_ACCOUNT_COUNT:
        break;
    }
    return "?";
}

#define SL_STR2(x) #x
#define SL_STR(x) SL_STR2(x)

const char *sl_version(void) {
    return SL_STR(SL_VERSION_MAJOR) "." SL_STR(SL_VERSION_MINOR) "." SL_STR(SL_VERSION_PATCH);
}

/* Replace control characters and broken UTF-8 by '?'; a character cut at the end is dropped. */
static void error_clean(char *text) {
    size_t i = 0;
    const size_t n = strlen(text);
    while (i < n) {
        const int len = sl_utf8_len((const uint8_t *)text + i, n - i);
        if (len <= 0) {
            if (len == 0) { /* cut off by the buffer's end */
                text[i] = '\0';
                return;
            }
            text[i++] = '?';
            continue;
        }
        if (len == 1 && ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)) {
            text[i] = '?';
        } else if (len == 2 && (unsigned char)text[i] == 0xC2 &&
                   (unsigned char)text[i + 1] < 0xA0) {
            text[i] = text[i + 1] = '?'; /* C1 controls */
        }
        i += (size_t)len;
    }
}

void sl_error_set(sl_error *err, sl_status code, const char *file, int line, const char *format,
                  ...) {
    if (err != NULL) {
        err->code = code;
        err->file = file;
        err->line = line;
        va_list args;
        va_start(args, format);
        (void)vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
        error_clean(err->text);
    }
}

void sl_error_prefix(sl_error *err, const char *format, ...) {
    if (err == NULL) {
        return;
    }
    char old[sizeof err->text];
    memcpy(old, err->text, sizeof old);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (n < 0) {
        n = 0;
    }
    size_t used = (size_t)n < sizeof err->text ? (size_t)n : sizeof err->text - 1;
    const char *const part[2] = {": ", old};
    for (int i = 0; i < 2; i++) { /* what does not fit is cut */
        const size_t n_part = strlen(part[i]), room = sizeof err->text - 1 - used;
        const size_t n_copy = n_part < room ? n_part : room;
        memcpy(err->text + used, part[i], n_copy);
        used += n_copy;
    }
    err->text[used] = '\0';
    error_clean(err->text);
}
