/* help_paths.c - see help_paths.h. */
#define _GNU_SOURCE
#include "help_paths.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static bool exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

const char *help_text(const char *format, ...) {
    static char buffer[8][4096];
    static int i_next;
    char *out = buffer[i_next++ & 7];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(out, sizeof buffer[0], format, args);
    va_end(args);
    return out;
}

static const char *shared_folder(const char *variable, const char *name) {
    const char *given = getenv(variable);
    if (given != NULL && given[0] != '\0') {
        return exists(given) ? given : NULL;
    }
    const char *path = help_text("%s/../shared/%s", SL_SOURCE_DIR, name);
    return exists(path) ? path : NULL;
}

const char *help_oracle(void) { return shared_folder("SLUICE_ORACLE", "oracle"); }
const char *help_cases(void) { return shared_folder("SLUICE_CASES", "cases"); }

const char *help_model(const char *name, const char *file) {
    const char *dir = getenv("SLUICE_MODELS");
    if (dir == NULL || dir[0] == '\0') {
        const char *cache = getenv("XDG_CACHE_HOME");
        const char *home = getenv("HOME");
        dir = cache != NULL && cache[0] != '\0'
                  ? help_text("%s/sluice/models", cache)
                  : help_text("%s/.cache/sluice/models", home != NULL ? home : "");
    }
    const char *path = help_text("%s/%s/%s", dir, name, file);
    return exists(path) ? path : NULL;
}

char *help_read(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        return NULL;
    }
    char *data = NULL;
    size_t size = 0, cap = 0;
    for (;;) {
        if (cap - size < 65536) {
            cap = cap * 2 + 65536;
            char *more = realloc(data, cap + 1);
            if (more == NULL) {
                break;
            }
            data = more;
        }
        const size_t got = fread(data + size, 1, cap - size, f);
        if (got == 0) {
            break;
        }
        size += got;
    }
    (void)fclose(f);
    if (data != NULL) {
        data[size] = '\0';
    }
    if (n != NULL) {
        *n = size;
    }
    return data;
}

void help_skip(const char *format, ...) {
    va_list args;
    va_start(args, format);
    printf("SKIP: ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
    exit(77);
}
