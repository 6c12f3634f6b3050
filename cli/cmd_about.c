/* cmd_about.c - sluice about: what this build and this machine can do, and which models are there. */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "json_out.h"
#include "models.h"
#include "report.h"
#include "sluice.h"
#include "text_io.h"

typedef struct about_args {
    cli_args common;
} about_args;

static void about_json(const sl_about *about, const char *folder, const cli_model_entry *model,
                       size_t n_model) {
    cli_json j = {0};
    cli_json_open(&j, NULL, '{');
    cli_json_str(&j, "version", about->version);
    cli_json_str(&j, "isa", about->isa);
    cli_json_words(&j, "isas", about->isas);
    cli_json_words(&j, "archs", about->archs);
    cli_json_words(&j, "types", about->qtypes);
    cli_json_words(&j, "stores", about->stores);
    cli_json_words(&j, "backends", about->backends);
    cli_json_int(&j, "n_thread", about->n_thread);
    cli_json_int(&j, "n_core", about->n_core);
    cli_json_uint(&j, "ram_bytes", about->ram_bytes);
    cli_json_str(&j, "models_folder", folder);
    cli_json_open(&j, "models", '[');
    for (size_t i = 0; i < n_model; i++) {
        cli_json_open(&j, NULL, '{');
        cli_json_str(&j, "name", model[i].name);
        cli_json_str(&j, "path", model[i].path);
        cli_json_uint(&j, "size_bytes", model[i].size_bytes);
        cli_json_close(&j);
    }
    cli_json_close(&j);
    cli_json_close(&j);
}

/* Words separated by spaces, with their name in front. */
static void about_words(const char *name, const char *words) {
    cli_outf("%-10s", name);
    for (size_t n = 0; *words != '\0'; words += n + strspn(words + n, " ")) {
        n = strcspn(words, " ");
        cli_outf(" %.*s", (int)n, words);
    }
    cli_outf("\n");
}

static void about_text(const sl_about *about, const char *folder, const cli_model_entry *model,
                       size_t n_model) {
    cli_outf("sluice %s\n\n", about->version);
    cli_outf("machine    %d usable cores, %s memory\n", (int)about->n_core,
             cli_size_text(about->ram_bytes).text);
    cli_outf("kernels    %s (this CPU runs: %s)\n", about->isa, about->isas);
    about_words("backends", about->backends);
    about_words("stores", about->stores);
    about_words("models of", about->archs);
    about_words("weights", about->qtypes);
    cli_outf("\nfetched models in %s\n", folder != NULL ? folder : "(no folder: HOME is not set)");
    for (size_t i = 0; i < n_model; i++) {
        cli_outf("  %-14s %10s  %s\n", model[i].name, cli_size_text(model[i].size_bytes).text,
                 strrchr(model[i].path, '/') + 1);
    }
    if (n_model == 0) {
        cli_outf("  none yet; tools/fetch-models.sh smollm2 fetches a small one\n");
    }
}

static int about_run(const void *opaque) {
    const about_args *args = opaque;
    sl_engine *engine = NULL;
    sl_error err;
    if (sl_engine_open(NULL, &engine, &err) != SL_OK) {
        return cli_fail(CLI_FAILED, "%s", err.text);
    }
    sl_about about;
    sl_engine_about(engine, &about);
    char path[CLI_MAX_PATH];
    const char *folder = cli_models_folder(path) ? path : NULL;
    cli_model_entry *model;
    size_t n_model;
    int code = CLI_OK;
    if (!cli_models_list(&model, &n_model)) {
        code = cli_fail(CLI_FAILED, "the system has no more memory");
    } else if (args->common.json) {
        about_json(&about, folder, model, n_model);
    } else {
        about_text(&about, folder, model, n_model);
    }
    free(model);
    sl_engine_close(engine);
    return code;
}

static const cli_option about_options[] = {
    {.name = "json",
     .kind = cli_kind_flag,
     .offset = offsetof(about_args, common.json),
     .help = "one JSON object instead of text (docs/CLI.md)"},
};

const cli_command cli_command_about = {
    .name = "about",
    .line = "what this build and this machine can do, and the models that are there",
    .synopsis = "[--json]",
    .about = "Prints the version, the kernels in use, the architectures and weight types that can "
             "run, and\n"
             "the fetched models.\n",
    .examples = "  sluice about\n  sluice about --json\n",
    .operands = {NULL},
    .options = about_options,
    .n_option = sizeof about_options / sizeof about_options[0],
    .args_size = sizeof(about_args),
    .run = about_run,
};
