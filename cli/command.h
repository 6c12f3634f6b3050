/* command.h - what a command of the program is.
 *
 * A command is one file, cmd_<name>.c, that defines `const cli_command cli_command_<name>`, and one row of
 * commands.def. Its help, its option parsing and its place in `sluice --help` follow from the description here.
 *
 * The program sees nothing of the library but include/sluice.h. */
#ifndef SLUICE_CLI_COMMAND_H
#define SLUICE_CLI_COMMAND_H

#include "options.h"

/* Exit codes: 0 done; 1 it failed; 2 the command line is wrong; 128 + n ended by signal n. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_SIGNAL = 128 };

typedef struct cli_command {
    const char *name;
    const char *line;        /* what it does, for the list of commands */
    const char *synopsis;    /* what follows the name in the usage line */
    const char *about;       /* a paragraph or two, wrapped by hand */
    const char *examples;    /* one a line */
    const char *operands[3]; /* names of the operands, all required, NULL ends them */
    const cli_option *options;
    size_t n_option;
    size_t args_size;             /* of the struct that options and operands are written to */
    int (*run)(const void *args); /* gives the exit code */
} cli_command;

/* Every command's struct of arguments begins with these. */
typedef struct cli_args {
    const char *operand[2];
    bool json;
} cli_args;

#define X(name) extern const cli_command cli_command_##name;
#include "commands.def"
#undef X

extern const cli_command *const cli_commands[];
extern const size_t cli_n_command;

#endif
