/* text_io.c - see text_io.h.
 *
 * Whether standard output has failed is remembered here, once, so that commands may write line after line and look at
 * the end. That flag and the C library's streams are the program's only state besides the signal handler's. */
#include "text_io.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"

/* The most that is read from a file or from standard input. Far above any context; an endless input stops here. */
#define TEXT_MAX_INPUT ((size_t)256 << 20)

static int text_out_errno; /* of the first failed write, 0: none */

size_t cli_utf8(const char *bytes, size_t n, uint32_t *point) {
    const unsigned char *b = (const unsigned char *)bytes;
    if (b[0] < 0x80) {
        *point = b[0];
        return 1;
    }
    const size_t size = b[0] >= 0xF0 ? 4 : b[0] >= 0xE0 ? 3 : 2;
    if (b[0] < 0xC2 || b[0] > 0xF4 || size > n) {
        return 0;
    }
    uint32_t value = b[0] & (0x7Fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((b[i] & 0xC0) != 0x80) {
            return 0;
        }
        value = value << 6 | (b[i] & 0x3Fu);
    }
    /* Overlong forms, surrogates and what lies beyond Unicode are no characters. */
    if ((size == 3 && value < 0x800) || (size == 4 && (value < 0x10000 || value > 0x10FFFF)) ||
        (value >= 0xD800 && value <= 0xDFFF)) {
        return 0;
    }
    *point = value;
    return size;
}

bool cli_text_put(cli_text *text, const char *bytes, size_t n) {
    if (n > text->cap - text->n) {
        size_t cap = text->cap < 4096 ? 4096 : text->cap;
        while (cap - text->n < n) {
            if (cap > SIZE_MAX / 2) {
                return false;
            }
            cap *= 2;
        }
        char *more = realloc(text->bytes, cap);
        if (more == NULL) {
            return false;
        }
        text->bytes = more;
        text->cap = cap;
    }
    if (n != 0) {
        memcpy(text->bytes + text->n, bytes, n);
    }
    text->n += n;
    return true;
}

void cli_text_done(cli_text *text) {
    free(text->bytes);
    *text = (cli_text){0};
}

bool cli_read_all(const char *path, cli_text *out) {
    const bool from_stdin = strcmp(path, "-") == 0;
    const char *name = from_stdin ? "standard input" : path;
    FILE *f = from_stdin ? stdin : fopen(path, "rb");
    if (f == NULL) {
        cli_fail(CLI_FAILED, "%s: %s", name, strerror(errno));
        return false;
    }
    bool ok = true;
    static char piece[65536];
    for (;;) {
        errno = 0;
        const size_t got = fread(piece, 1, sizeof piece, f);
        if (got == 0) {
            if (ferror(f)) {
                cli_fail(CLI_FAILED, "%s: %s", name, strerror(errno));
                ok = false;
            }
            break;
        }
        if (out->n + got > TEXT_MAX_INPUT) {
            cli_fail(CLI_FAILED, "%s: more than %zu MiB of text; that fits no model's context",
                     name, TEXT_MAX_INPUT >> 20);
            ok = false;
            break;
        }
        if (!cli_text_put(out, piece, got)) {
            cli_fail(CLI_FAILED, "%s: the system has no more memory", name);
            ok = false;
            break;
        }
    }
    if (!from_stdin) {
        (void)fclose(f);
    }
    if (!ok) {
        cli_text_done(out);
    }
    return ok;
}

/* May this character reach a terminal? Not the controls (C0, DEL, C1), and not the marks that reorder what a reader
 * sees. */
static bool text_is_safe(uint32_t point) {
    return point >= 0x20 && !(point >= 0x7F && point < 0xA0) &&
           !(point >= 0x202A && point <= 0x202E) && !(point >= 0x2066 && point <= 0x2069);
}

void cli_safe_text(const char *bytes, size_t n, char *out, size_t cap) {
    size_t at = 0;
    for (size_t i = 0; i < n;) {
        uint32_t point;
        const size_t size = cli_utf8(bytes + i, n - i, &point);
        const bool safe = size != 0 && text_is_safe(point);
        const char *from = safe ? bytes + i : "?";
        const size_t take = safe ? size : 1;
        if (at + take + 4 > cap) {
            memcpy(out + at, "...", 3);
            at += 3;
            break;
        }
        memcpy(out + at, from, take);
        at += take;
        i += size != 0 ? size : 1;
    }
    out[at] = '\0';
}

int cli_fail(int code, const char *format, ...) {
    char text[2048];
    char line[2048];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const size_t size = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    cli_safe_text(text, size, line, sizeof line);
    /* What was written to standard output comes before the message, also on a shared terminal. */
    (void)cli_out_flush();
    fprintf(stderr, "sluice: %s\n", line);
    return code;
}

bool cli_out_is_terminal(void) {
    static int known; /* 0: not asked yet, 1: no, 2: yes */
    if (known == 0) {
        known = isatty(STDOUT_FILENO) ? 2 : 1;
    }
    return known == 2;
}

static bool text_out_bytes(const char *bytes, size_t n) {
    if (text_out_errno != 0) {
        return false;
    }
    errno = 0;
    if (fwrite(bytes, 1, n, stdout) != n) {
        text_out_errno = errno != 0 ? errno : EIO;
        return false;
    }
    return true;
}

bool cli_out(const char *bytes, size_t n) {
    if (!cli_out_is_terminal()) {
        return n == 0 ? text_out_errno == 0 : text_out_bytes(bytes, n);
    }
    size_t from = 0; /* start of the run that is safe as it is */
    for (size_t i = 0; i < n;) {
        uint32_t point;
        const size_t size = cli_utf8(bytes + i, n - i, &point);
        if (size != 0 && (text_is_safe(point) || point == '\n' || point == '\t')) {
            i += size;
            continue;
        }
        if (!text_out_bytes(bytes + from, i - from) || !text_out_bytes("\xEF\xBF\xBD", 3)) {
            return false;
        }
        i += size != 0 ? size : 1;
        from = i;
    }
    return text_out_bytes(bytes + from, n - from);
}

bool cli_outf(const char *format, ...) {
    char small[1024];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (n < 0) {
        return false;
    }
    if ((size_t)n < sizeof small) {
        return cli_out(small, (size_t)n);
    }
    char *large = malloc((size_t)n + 1);
    if (large == NULL) {
        return false;
    }
    va_start(args, format);
    (void)vsnprintf(large, (size_t)n + 1, format, args);
    va_end(args);
    const bool ok = cli_out(large, (size_t)n);
    free(large);
    return ok;
}

bool cli_out_escaped(const char *bytes, size_t n, bool quotes) {
    size_t from = 0;
    for (size_t i = 0; i < n;) {
        uint32_t point = 0;
        const size_t size = cli_utf8(bytes + i, n - i, &point);
        const bool quoted = quotes && (point == '"' || point == '\\');
        if (size != 0 && !quoted && point >= 0x20 && !(point >= 0x7F && point < 0xA0)) {
            i += size;
            continue;
        }
        cli_out(bytes + from, i - from);
        const unsigned char byte = (unsigned char)bytes[i];
        if (size != 0 && (quoted || byte == '\n' || byte == '\t')) {
            cli_outf("\\%c", byte == '\n' ? 'n' : byte == '\t' ? 't' : byte);
        } else {
            cli_outf("\\x%02x", byte);
        }
        i++;
        from = i;
    }
    return cli_out(bytes + from, n - from);
}

bool cli_out_flush(void) {
    if (text_out_errno != 0) {
        return false;
    }
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        text_out_errno = errno != 0 ? errno : EIO;
        return false;
    }
    return true;
}

int cli_out_end(int code) {
    (void)cli_out_flush();
    const int why = text_out_errno;
    if (why == 0) {
        return code;
    }
    if (why != EPIPE) {
        fprintf(stderr, "sluice: the output could not be written: %s\n", strerror(why));
    }
    return code != CLI_OK ? code : CLI_FAILED;
}
