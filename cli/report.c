/* report.c - see report.h. The accounts come from the library's own list, so a new one shows up without an edit. */
#define _GNU_SOURCE
#include "report.h"

#include <time.h>

cli_size cli_size_text(uint64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    cli_size out;
    double value = (double)bytes;
    int i = 0;
    while (value >= 1024.0 && i < 4) {
        value /= 1024.0;
        i++;
    }
    (void)snprintf(out.text, sizeof out.text, i == 0 ? "%.0f %s" : "%.1f %s", value, units[i]);
    return out;
}

cli_size cli_count_text(uint64_t count) {
    static const char *const units[] = {"", " k", " M", " G", " T"};
    cli_size out;
    double value = (double)count;
    int i = 0;
    while (value >= 1000.0 && i < 4) {
        value /= 1000.0;
        i++;
    }
    (void)snprintf(out.text, sizeof out.text, i == 0 ? "%.0f%s" : "%.1f%s", value, units[i]);
    return out;
}

uint64_t cli_now_us(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

void cli_report_memory(FILE *out, const sl_memory *memory) {
    fprintf(out, "memory            now          peak\n");
    for (int i = 0; i < SL_ACCOUNT_COUNT; i++) {
        if (memory->peak_bytes[i] != 0) {
            fprintf(out, "  %-9s %12s  %12s\n", sl_account_name((sl_account)i),
                    cli_size_text(memory->now_bytes[i]).text,
                    cli_size_text(memory->peak_bytes[i]).text);
        }
    }
    fprintf(out, "  %-9s %12s  %12s\n", "total", cli_size_text(memory->total_bytes).text,
            cli_size_text(memory->total_peak_bytes).text);
    if (memory->limit_bytes != 0) {
        fprintf(out, "  %-9s %12s\n", "limit", cli_size_text(memory->limit_bytes).text);
    }
    if (memory->mapped_bytes != 0) {
        fprintf(out, "  %-9s %12s  (the model's file, in the system's page cache)\n", "mapped",
                cli_size_text(memory->mapped_bytes).text);
    }
}

void cli_json_memory(cli_json *j, const char *key, const sl_memory *memory) {
    cli_json_open(j, key, '{');
    cli_json_uint(j, "total_bytes", memory->total_bytes);
    cli_json_uint(j, "total_peak_bytes", memory->total_peak_bytes);
    cli_json_uint(j, "limit_bytes", memory->limit_bytes);
    cli_json_uint(j, "mapped_bytes", memory->mapped_bytes);
    cli_json_uint(j, "n_alloc", memory->n_alloc);
    cli_json_open(j, "accounts", '{');
    for (int i = 0; i < SL_ACCOUNT_COUNT; i++) {
        cli_json_open(j, sl_account_name((sl_account)i), '{');
        cli_json_uint(j, "now_bytes", memory->now_bytes[i]);
        cli_json_uint(j, "peak_bytes", memory->peak_bytes[i]);
        cli_json_close(j);
    }
    cli_json_close(j);
    cli_json_close(j);
}

void cli_json_estimate(cli_json *j, const char *key, const sl_estimate *estimate) {
    cli_json_open(j, key, '{');
    cli_json_uint(j, "total_bytes", estimate->total_bytes);
    cli_json_uint(j, "peak_bytes", estimate->peak_bytes);
    cli_json_uint(j, "mapped_bytes", estimate->mapped_bytes);
    cli_json_open(j, "accounts", '{');
    for (int i = 0; i < SL_ACCOUNT_COUNT; i++) {
        cli_json_uint(j, sl_account_name((sl_account)i), estimate->account_bytes[i]);
    }
    cli_json_close(j);
    cli_json_close(j);
}
