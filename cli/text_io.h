/* text_io.h - bytes in and out of the program.
 *
 * Standard output carries results. When it is a terminal, text that comes from a model or a file is made safe for it:
 * control characters other than line feed and tab, and bytes that are not UTF-8, become U+FFFD, so that no model file
 * and no generated text can drive the terminal. Into files and pipes bytes go as they are. */
#ifndef SLUICE_CLI_TEXT_IO_H
#define SLUICE_CLI_TEXT_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CLI_PRINTF(i_format, i_first) __attribute__((format(printf, i_format, i_first)))
#else
#define CLI_PRINTF(i_format, i_first)
#endif

/* The length of the valid UTF-8 character at bytes (1..4) with its code point, or 0 when there is none. n >= 1. */
size_t cli_utf8(const char *bytes, size_t n, uint32_t *point);

/* A text that grows. Zero is an empty one. */
typedef struct cli_text {
    char *bytes;
    size_t n, cap;
} cli_text;
bool cli_text_put(cli_text *text, const char *bytes, size_t n); /* false: no memory */
void cli_text_done(cli_text *text);

/* All bytes of a file, or of standard input when path is "-". Says what is wrong on stderr itself. */
bool cli_read_all(const char *path, cli_text *out);

/* "sluice: <text>" as one line on stderr, made safe; gives the code back. */
int cli_fail(int code, const char *format, ...) CLI_PRINTF(2, 3);

/* Write to standard output. false when it cannot be written (any more); cli_out_end tells why. */
bool cli_out(const char *bytes, size_t n);
bool cli_outf(const char *format, ...) CLI_PRINTF(1, 2);
/* As one line: \n, \t, and \xNN for other controls and for what is not UTF-8; with quotes as inside of a C string's. */
bool cli_out_escaped(const char *bytes, size_t n, bool quotes);
bool cli_out_flush(void);
bool cli_out_is_terminal(void);
/* Flush; the exit code of the program: code, or CLI_FAILED when something was not written. A reader that went away is
 * no fault worth a message, anything else is. */
int cli_out_end(int code);

/* Text with control characters and broken UTF-8 replaced, for messages. Truncated to cap with "...". */
void cli_safe_text(const char *bytes, size_t n, char *out, size_t cap);

#endif
