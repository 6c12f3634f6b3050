/* main.c - the program: finds the command, reads its options, runs it, sees to it that all output was written.
 *
 * Results go to standard output, everything else to standard error. The program knows the library by include/sluice.h
 * alone; commands are rows of commands.def. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "sluice.h"
#include "text_io.h"

const cli_command *const cli_commands[] = {
#define X(name) &cli_command_##name,
#include "commands.def"
#undef X
};
const size_t cli_n_command = sizeof cli_commands / sizeof cli_commands[0];

static void main_help(void) {
    cli_outf("Usage: sluice COMMAND [arguments]\n\n"
             "Runs language models on the memory there is.\n\nCommands:\n");
    for (size_t i = 0; i < cli_n_command; i++) {
        cli_outf("  %-10s %s\n", cli_commands[i]->name, cli_commands[i]->line);
    }
    cli_outf("\nOptions:\n"
             "  --help     this text; 'sluice COMMAND --help' tells more, with examples\n"
             "  --version  the version alone\n"
             "\nMODEL is the path of a model file (GGUF), or the name of a fetched model. Fetched "
             "models lie in\n"
             "$SLUICE_MODELS, else $XDG_CACHE_HOME/sluice/models, else ~/.cache/sluice/models, a "
             "folder a model;\n"
             "'sluice about' lists them, tools/fetch-models.sh fetches one.\n"
             "\nExamples:\n"
             "  sluice run smollm2 --chat -p 'Why is the sky blue?'\n"
             "  sluice inspect model.gguf\n"
             "  echo -n 'some text' | sluice tokenize - --model smollm2 --ids\n"
             "\nExit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted (128 + the signal's "
             "number).\n");
}

static const cli_command *main_find(const char *name) {
    for (size_t i = 0; i < cli_n_command; i++) {
        if (strcmp(cli_commands[i]->name, name) == 0) {
            return cli_commands[i];
        }
    }
    return NULL;
}

static int main_unknown(const char *name) {
    const char *names[32] = {"--help", "--version"};
    size_t n = 2;
    for (size_t i = 0; i < cli_n_command && n < 32; i++) {
        names[n++] = cli_commands[i]->name;
    }
    const char *near = cli_nearest(name, names, n);
    const char *kind = name[0] == '-' ? "option" : "command";
    if (near != NULL) {
        return cli_fail(CLI_USAGE, "unknown %s '%s'; did you mean '%s'?", kind, name, near);
    }
    return cli_fail(CLI_USAGE, "unknown %s '%s'; 'sluice --help' lists what there is", kind, name);
}

static int main_command(const cli_command *command, int argc, char **argv) {
    void *args = calloc(1, command->args_size);
    if (args == NULL) {
        return cli_fail(CLI_FAILED, "the system has no more memory");
    }
    bool help = false;
    int code = CLI_USAGE;
    if (cli_options_parse(command, argc, argv, args, &help)) {
        if (help) {
            cli_options_help(command);
            code = CLI_OK;
        } else {
            code = command->run(args);
        }
    }
    free(args);
    return code;
}

static int main_dispatch(int argc, char **argv) {
    if (argc < 2) {
        return cli_fail(CLI_USAGE, "a command is missing; 'sluice --help' lists them");
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0) {
        cli_outf("%s\n", sl_version());
        return CLI_OK;
    }
    const bool help =
        strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0;
    if (help && argc < 3) {
        main_help();
        return CLI_OK;
    }
    const cli_command *command = main_find(help ? argv[2] : name);
    if (command == NULL) {
        return main_unknown(help ? argv[2] : name);
    }
    if (help) {
        cli_options_help(command);
        return CLI_OK;
    }
    return main_command(command, argc - 1, argv + 1);
}

int main(int argc, char **argv) {
    /* A reader that goes away is noticed where we write, not by a signal in the middle of a pass. */
    (void)signal(SIGPIPE, SIG_IGN);
    return cli_out_end(main_dispatch(argc, argv));
}
