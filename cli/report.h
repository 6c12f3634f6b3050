/* report.h - numbers for people and for scripts: sizes, times, and the books of memory. */
#ifndef SLUICE_CLI_REPORT_H
#define SLUICE_CLI_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "json_out.h"
#include "sluice.h"

typedef struct cli_size {
    char text[24];
} cli_size;
cli_size cli_size_text(uint64_t bytes);  /* "93.2 MiB" */
cli_size cli_count_text(uint64_t count); /* "134.5 M" */

uint64_t cli_now_us(void); /* monotonic */

void cli_report_memory(FILE *out, const sl_memory *memory);
void cli_json_memory(cli_json *j, const char *key, const sl_memory *memory);
/* What an open would take: {"total_bytes":...,"peak_bytes":...,"mapped_bytes":...,"accounts":{...}} */
void cli_json_estimate(cli_json *j, const char *key, const sl_estimate *estimate);

#endif
