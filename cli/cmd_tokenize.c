/* cmd_tokenize.c - sluice tokenize: text to ids, as the model would see it.
 *
 * Only the vocabulary is loaded, so files without weights do. Standard input is taken byte for byte. */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "json_out.h"
#include "models.h"
#include "sluice.h"
#include "text_io.h"

typedef struct tokenize_args {
    cli_args common;
    const char *model;
    const char *tokenizer_json;
    bool ids;
    bool no_bos;
} tokenize_args;

static void tokenize_show_ids(const int32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++) {
        cli_outf(i > 0 ? " %d" : "%d", (int)ids[i]);
    }
    cli_out("\n", 1);
}

static const char *tokenize_bytes(const sl_model *model, int32_t id, size_t *n) {
    const char *bytes = "";
    *n = 0;
    return sl_token_bytes(model, id, &bytes, n) == SL_OK ? bytes : "";
}

/* A token a line: its id, and its bytes as one readable line. */
static void tokenize_show_table(const sl_model *model, const int32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes;
        const char *bytes = tokenize_bytes(model, ids[i], &n_bytes);
        cli_outf("%8d  \"", (int)ids[i]);
        cli_out_escaped(bytes, n_bytes, true);
        cli_outf("\"%s\n", sl_token_is_control(model, ids[i]) ? "  control" : "");
    }
    cli_outf("%zu token%s\n", n, n == 1 ? "" : "s");
}

static void tokenize_show_json(const sl_model *model, const int32_t *ids, size_t n) {
    cli_json j = {0};
    cli_json_open(&j, NULL, '{');
    cli_json_uint(&j, "n_token", n);
    cli_json_open(&j, "ids", '[');
    for (size_t i = 0; i < n; i++) {
        cli_json_int(&j, NULL, ids[i]);
    }
    cli_json_close(&j);
    cli_json_open(&j, "tokens", '[');
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes;
        const char *bytes = tokenize_bytes(model, ids[i], &n_bytes);
        cli_json_open(&j, NULL, '{');
        cli_json_int(&j, "id", ids[i]);
        cli_json_text(&j, "text", bytes, n_bytes);
        /* The text alone loses bytes that are no whole character; these are all of them. */
        cli_json_hex(&j, "hex", bytes, n_bytes);
        cli_json_bool(&j, "control", sl_token_is_control(model, ids[i]));
        cli_json_close(&j);
    }
    cli_json_close(&j);
    cli_json_close(&j);
}

/* Ids of a text in memory of our own; NULL on failure, which is then said. */
static int32_t *tokenize_all(const sl_model *model, const char *text, size_t n_text, uint32_t flags,
                             size_t *n) {
    sl_error err;
    /* A token has at least one byte, apart from the few that the model's policy adds. */
    size_t cap = n_text + 16;
    int32_t *ids = calloc(cap, sizeof *ids);
    if (ids == NULL) {
        cli_fail(CLI_FAILED, "the system has no more memory");
        return NULL;
    }
    sl_status status = sl_tokenize(model, text, n_text, flags, ids, cap, n, &err);
    if (status == SL_ELIMIT && *n > cap) {
        free(ids);
        cap = *n;
        ids = calloc(cap, sizeof *ids);
        if (ids == NULL) {
            cli_fail(CLI_FAILED, "the system has no more memory");
            return NULL;
        }
        status = sl_tokenize(model, text, n_text, flags, ids, cap, n, &err);
    }
    if (status != SL_OK) {
        cli_fail(CLI_FAILED, "%s", err.text);
        free(ids);
        return NULL;
    }
    return ids;
}

static int tokenize_with(const tokenize_args *args, const sl_model *model, const char *text,
                         size_t n_text) {
    size_t n = 0;
    int32_t *ids = tokenize_all(model, text, n_text, args->no_bos ? SL_TOKENIZE_NO_BOS : 0, &n);
    if (ids == NULL) {
        return CLI_FAILED;
    }
    if (args->common.json) {
        tokenize_show_json(model, ids, n);
    } else if (args->ids) {
        tokenize_show_ids(ids, n);
    } else {
        tokenize_show_table(model, ids, n);
    }
    free(ids);
    return CLI_OK;
}

static int tokenize_run(const void *opaque) {
    const tokenize_args *args = opaque;
    if (args->model == NULL) {
        return cli_fail(CLI_USAGE, "tokenize: --model is missing: whose vocabulary?");
    }
    char path[CLI_MAX_PATH];
    const int found = cli_model_path(args->model, path);
    if (found != CLI_OK) {
        return found;
    }
    const char *operand = args->common.operand[0];
    cli_text input = {0};
    const bool from_stdin = strcmp(operand, "-") == 0;
    if (from_stdin && !cli_read_all("-", &input)) {
        return CLI_FAILED;
    }
    int code = CLI_FAILED;
    sl_engine *engine = NULL;
    sl_model *model = NULL;
    sl_error err;
    const sl_engine_options engine_options = {.size = sizeof engine_options, .n_thread = 1};
    const sl_model_options model_options = {
        .size = sizeof model_options, .vocab_only = true, .tokenizer_json = args->tokenizer_json};
    if (sl_engine_open(&engine_options, &engine, &err) != SL_OK ||
        sl_model_open(engine, path, &model_options, &model, &err) != SL_OK) {
        code = cli_fail(CLI_FAILED, "%s", err.text);
    } else if (from_stdin) {
        code = tokenize_with(args, model, input.bytes != NULL ? input.bytes : "", input.n);
    } else {
        code = tokenize_with(args, model, operand, strlen(operand));
    }
    sl_model_close(model);
    sl_engine_close(engine);
    cli_text_done(&input);
    return code;
}

static const cli_option tokenize_options[] = {
    {.name = "model",
     .letter = 'm',
     .kind = cli_kind_text,
     .offset = offsetof(tokenize_args, model),
     .arg = "MODEL",
     .help = "whose vocabulary; a file without weights will do"},
    {.name = "tokenizer-json",
     .kind = cli_kind_text,
     .offset = offsetof(tokenize_args, tokenizer_json),
     .arg = "PATH",
     .help = "use this tokenizer.json instead of the vocabulary in the model"},
    {.name = "ids",
     .kind = cli_kind_flag,
     .offset = offsetof(tokenize_args, ids),
     .help = "the ids alone, on one line"},
    {.name = "no-bos",
     .kind = cli_kind_flag,
     .offset = offsetof(tokenize_args, no_bos),
     .help = "without the tokens that the model's own policy adds at the beginning and the end"},
    {.name = "json",
     .kind = cli_kind_flag,
     .offset = offsetof(tokenize_args, common.json),
     .help = "one JSON object instead of text (docs/CLI.md)"},
};

const cli_command cli_command_tokenize = {
    .name = "tokenize",
    .line = "text to token ids",
    .synopsis = "TEXT --model MODEL [options]",
    .about = "Shows the tokens of TEXT as the model would see them. With - as TEXT, the text is "
             "standard\n"
             "input, byte for byte: no line feed is added or cut. A TEXT that begins with a dash "
             "goes behind\n"
             "a word of two dashes: sluice tokenize --model smollm2 -- '-5'.\n",
    .examples = "  sluice tokenize 'Hello, world' --model smollm2\n"
                "  sluice tokenize 'Hello, world' --model smollm2 --ids --no-bos\n"
                "  sluice tokenize - --model vocabulary.gguf --json < text.txt\n",
    .operands = {"TEXT", NULL},
    .options = tokenize_options,
    .n_option = sizeof tokenize_options / sizeof tokenize_options[0],
    .args_size = sizeof(tokenize_args),
    .run = tokenize_run,
};
