/* models.h - MODEL on the command line: the path of a file, or the name of a fetched model.
 *
 * Fetched models lie in one folder, a folder a model:  <models>/<name>/<anything>.gguf
 * <models> is $SLUICE_MODELS, else $XDG_CACHE_HOME/sluice/models, else ~/.cache/sluice/models. */
#ifndef SLUICE_CLI_MODELS_H
#define SLUICE_CLI_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLI_MAX_PATH 4096

/* The path of the file that model means, and CLI_OK; else the exit code. Says what is wrong on stderr itself, naming the
 * models that there are. */
int cli_model_path(const char *model, char path[CLI_MAX_PATH]);

typedef struct cli_model_entry {
    char name[256];
    char path[CLI_MAX_PATH];
    uint64_t size_bytes;
} cli_model_entry;

/* The folder of fetched models; false: none of the variables is set. */
bool cli_models_folder(char path[CLI_MAX_PATH]);
/* The fetched models in alphabetical order; *out is to be freed. false: no memory. A folder that is not there holds
 * none. */
bool cli_models_list(cli_model_entry **out, size_t *n);

#endif
