/* models.c - see models.h.
 *
 * A word with a slash or with the ending .gguf is a path, and so is the name of a regular file that is there. Any other
 * word is looked up among the fetched models. A folder with several model files (parts of a split model apart) is no
 * single model: then the file has to be named. */
#include "models.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "text_io.h"

#define MODELS_MAX 1024

bool cli_models_folder(char path[CLI_MAX_PATH]) {
    const char *given = getenv("SLUICE_MODELS");
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int n = 0;
    if (given != NULL && given[0] != '\0') {
        n = snprintf(path, CLI_MAX_PATH, "%s", given);
    } else if (cache != NULL && cache[0] != '\0') {
        n = snprintf(path, CLI_MAX_PATH, "%s/sluice/models", cache);
    } else if (home != NULL && home[0] != '\0') {
        n = snprintf(path, CLI_MAX_PATH, "%s/.cache/sluice/models", home);
    }
    return n > 0 && n < CLI_MAX_PATH;
}

static bool models_ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* "name-00002-of-00005.gguf": a part of a split model that is not its first. */
static bool models_is_later_part(const char *name) {
    const char *of = strstr(name, "-of-");
    return of != NULL && of - name > 6 && of[-6] == '-' && strncmp(of - 5, "00001", 5) != 0 &&
           strspn(of - 5, "0123456789") == 5;
}

/* The model files of a folder: how many there are (2: several), and the path of the first by name. */
static int models_in_folder(const char *folder, char path[CLI_MAX_PATH]) {
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        return 0;
    }
    int n = 0;
    char best[256] = "";
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        const char *name = entry->d_name;
        if (!models_ends_with(name, ".gguf") || name[0] == '.' || strlen(name) >= sizeof best ||
            models_is_later_part(name)) {
            continue;
        }
        if (best[0] == '\0' || strcmp(name, best) < 0) {
            (void)snprintf(best, sizeof best, "%s", name);
        }
        n = n < 2 ? n + 1 : n;
    }
    (void)closedir(dir);
    const int n_path = snprintf(path, CLI_MAX_PATH, "%s/%s", folder, best);
    return n_path > 0 && n_path < CLI_MAX_PATH ? n : 0;
}

static int models_compare(const void *a, const void *b) {
    return strcmp(((const cli_model_entry *)a)->name, ((const cli_model_entry *)b)->name);
}

bool cli_models_list(cli_model_entry **out, size_t *n) {
    *out = NULL;
    *n = 0;
    char folder[CLI_MAX_PATH];
    DIR *dir = cli_models_folder(folder) ? opendir(folder) : NULL;
    if (dir == NULL) {
        return true;
    }
    bool ok = true;
    size_t cap = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL && *n < MODELS_MAX;
         entry = readdir(dir)) {
        char below[CLI_MAX_PATH];
        const int size = snprintf(below, sizeof below, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] == '.' || size < 0 || size >= CLI_MAX_PATH) {
            continue;
        }
        if (*n == cap) {
            cap = cap * 2 + 8;
            cli_model_entry *more = realloc(*out, cap * sizeof **out);
            if (more == NULL) {
                ok = false;
                break;
            }
            *out = more;
        }
        cli_model_entry *model = *out + *n;
        struct stat info;
        if (strlen(entry->d_name) < sizeof model->name &&
            models_in_folder(below, model->path) == 1 && stat(model->path, &info) == 0) {
            (void)snprintf(model->name, sizeof model->name, "%s", entry->d_name);
            model->size_bytes = (uint64_t)info.st_size;
            ++*n;
        }
    }
    (void)closedir(dir);
    if (!ok) {
        free(*out);
        *out = NULL;
        *n = 0;
        return false;
    }
    if (*n != 0) {
        qsort(*out, *n, sizeof **out, models_compare);
    }
    return true;
}

static int models_say_unknown(const char *model, const char *folder) {
    cli_model_entry *entries;
    size_t n;
    char there[1024] = "";
    if (cli_models_list(&entries, &n)) {
        size_t at = 0;
        for (size_t i = 0; i < n && at + sizeof entries[i].name + 2 < sizeof there; i++) {
            at += (size_t)snprintf(there + at, sizeof there - at, "%s%s", i > 0 ? ", " : "",
                                   entries[i].name);
        }
        free(entries);
    }
    return cli_fail(CLI_FAILED,
                    "there is no file '%s' and no fetched model of that name in %s (%s%s); "
                    "tools/fetch-models.sh NAME fetches one, a path with a '/' names a file",
                    model, folder, there[0] != '\0' ? "there are: " : "there are none", there);
}

int cli_model_path(const char *model, char path[CLI_MAX_PATH]) {
    struct stat info;
    const bool is_file = stat(model, &info) == 0 && !S_ISDIR(info.st_mode);
    char folder[CLI_MAX_PATH];
    if (strlen(model) >= CLI_MAX_PATH) {
        return cli_fail(CLI_FAILED, "the path of the model is longer than %d bytes",
                        CLI_MAX_PATH - 1);
    }
    if (model[0] == '\0') {
        return cli_fail(CLI_USAGE,
                        "MODEL is empty; give the path of a model file or the name of a model");
    }
    if (!is_file && strchr(model, '/') == NULL && !models_ends_with(model, ".gguf") &&
        strcmp(model, ".") != 0 && strcmp(model, "..") != 0 && cli_models_folder(folder)) {
        char below[CLI_MAX_PATH];
        const int size = snprintf(below, sizeof below, "%s/%s", folder, model);
        const int n = size > 0 && size < CLI_MAX_PATH ? models_in_folder(below, path) : 0;
        if (n == 1) {
            return CLI_OK;
        }
        if (n > 1) {
            return cli_fail(CLI_FAILED, "'%s' has several model files; give the path of one in %s",
                            model, below);
        }
        if (stat(model, &info) != 0) {
            return models_say_unknown(model, folder);
        }
    }
    /* Whatever is wrong with a path (nothing there, a folder, no model) the library says best. */
    (void)snprintf(path, CLI_MAX_PATH, "%s", model);
    return CLI_OK;
}
