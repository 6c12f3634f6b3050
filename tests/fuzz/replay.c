/* replay.c - run a fuzz target over saved inputs, without a fuzzer: every file named, and every file of every folder named
 * and of its subfolders. A crash or a sanitizer's report fails the case; so does a corpus that is not there or empty.
 *
 *     replay_gguf tests/data/fuzz/gguf */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "help_paths.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Folders of a corpus are few levels deep; more is a mistake. */
#define REPLAY_MAX_DEPTH 8

static size_t replay_n_file;

static bool replay_file(const char *path) {
    size_t n = 0;
    char *data = help_read(path, &n);
    if (data == NULL) {
        fprintf(stderr, "replay: cannot read %s\n", path);
        return false;
    }
    /* An exact block of its own, so that a sanitizer sees a read past the end. */
    uint8_t *exact = malloc(n != 0 ? n : 1);
    if (exact == NULL) {
        free(data);
        return false;
    }
    memcpy(exact, data, n);
    free(data);
    printf("%s\n", path);
    (void)fflush(stdout); /* the last line before a crash names the input */
    (void)LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    replay_n_file++;
    return true;
}

static bool replay_path(const char *path, int depth) {
    struct stat info;
    if (stat(path, &info) != 0) {
        fprintf(stderr, "replay: %s is not there\n", path);
        return false;
    }
    if (!S_ISDIR(info.st_mode)) {
        return replay_file(path);
    }
    struct dirent **entry = NULL;
    const int n = depth < REPLAY_MAX_DEPTH ? scandir(path, &entry, NULL, alphasort) : -1;
    bool good = n >= 0;
    if (!good) {
        fprintf(stderr, "replay: cannot list %s\n", path);
    }
    for (int i = 0; i < n; i++) {
        if (strcmp(entry[i]->d_name, ".") != 0 && strcmp(entry[i]->d_name, "..") != 0) {
            const size_t n_child = strlen(path) + strlen(entry[i]->d_name) + 2;
            char *child = malloc(n_child);
            if (child == NULL) {
                good = false;
            } else {
                (void)snprintf(child, n_child, "%s/%s", path, entry[i]->d_name);
                good = replay_path(child, depth + 1) && good;
                free(child);
            }
        }
        free(entry[i]);
    }
    free(entry);
    return good;
}

int main(int n_arg, char **arg) {
    bool good = n_arg > 1;
    for (int i = 1; i < n_arg; i++) {
        good = replay_path(arg[i], 0) && good;
    }
    printf("%zu inputs\n", replay_n_file);
    return good && replay_n_file != 0 ? 0 : 1;
}
