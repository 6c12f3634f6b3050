/* numbers.h - numbers from the command line, read strictly: the whole text or nothing.
 *
 * "", " 1", "+1", "12x", "0x10", "nan" and what overflows are refused, because a flag that is half understood does
 * something that nobody asked for. */
#ifndef SLUICE_CLI_NUMBERS_H
#define SLUICE_CLI_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool cli_read_u64(const char *text, uint64_t *out); /* digits */
bool cli_read_i64(const char *text, int64_t *out);  /* -? digits */
bool cli_read_real(const char *text, double *out);  /* -? digits, point, exponent; finite */
/* Bytes: digits with an optional fraction and one of B, K, KB, KiB, M, MB, MiB, G, GB, GiB, T, TB, TiB in any case,
 * all powers of 1024. */
bool cli_read_size(const char *text, size_t *out);

#endif
