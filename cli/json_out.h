/* json_out.h - a small JSON writer: always valid JSON in valid UTF-8, whatever the texts hold.
 *
 *     cli_json j = {0};
 *     cli_json_open(&j, NULL, '{');
 *     cli_json_text(&j, "name", text, n);         {"name":"...",
 *     cli_json_open(&j, "ids", '[');               "ids":[
 *     cli_json_int(&j, NULL, 7);                    7
 *     cli_json_close(&j);                          ]
 *     cli_json_close(&j);                         }
 *
 * Bytes that are not UTF-8 become U+FFFD; control characters, also DEL and C1, are escaped, so the line is safe on a
 * terminal too. A number that is not finite is null. */
#ifndef SLUICE_CLI_JSON_OUT_H
#define SLUICE_CLI_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLI_JSON_DEPTH 16

typedef struct cli_json {
    char end[CLI_JSON_DEPTH];  /* closing brackets of what is open */
    bool some[CLI_JSON_DEPTH]; /* is there a value already? */
    int depth;
} cli_json;

/* key is NULL inside an array and for the outermost value. */
void cli_json_open(cli_json *j, const char *key, char bracket);
void cli_json_close(cli_json *j); /* the outermost ends the line */
void cli_json_text(cli_json *j, const char *key, const char *bytes, size_t n);
void cli_json_str(cli_json *j, const char *key, const char *text); /* NULL: null */
/* The bytes as pairs of hexadecimal digits. */
void cli_json_hex(cli_json *j, const char *key, const char *bytes, size_t n);
void cli_json_int(cli_json *j, const char *key, int64_t value);
void cli_json_uint(cli_json *j, const char *key, uint64_t value);
void cli_json_real(cli_json *j, const char *key, double value);
void cli_json_bool(cli_json *j, const char *key, bool value);
void cli_json_null(cli_json *j, const char *key);
/* Words separated by spaces, as an array. */
void cli_json_words(cli_json *j, const char *key, const char *words);

#endif
