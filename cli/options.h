/* options.h - options described once: parsing, checking, defaults and help all come from one table.
 *
 * A row of the table says where in the command's struct the value goes and which kind of value it is. A kind is a
 * function that checks a text and stores it, so a new kind is a new function and no switch. */
#ifndef SLUICE_CLI_OPTIONS_H
#define SLUICE_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_option cli_option;
typedef struct cli_command cli_command;

/* Check value and store it in *field. On failure put the reason into why, as it reads after "--name: ". */
typedef bool (*cli_kind)(const cli_option *option, void *field, const char *value, char *why,
                         size_t cap_why);

struct cli_option {
    const char *name; /* long name, without the dashes */
    char letter;      /* short name, 0: none */
    cli_kind kind;
    size_t offset;       /* of the field in the command's struct */
    const char *arg;     /* how the help calls the value; NULL: the option takes none */
    const char *initial; /* the default as one would type it; NULL: zero */
    double low, high;    /* for kinds that have a range */
    const char *help;
};

#define CLI_MAX_LIST 16

/* Field of a repeatable option. */
typedef struct cli_list {
    const char *item[CLI_MAX_LIST];
    size_t n;
} cli_list;

bool cli_kind_flag(const cli_option *option, void *field, const char *value, char *why,
                   size_t cap_why); /* bool */
bool cli_kind_text(const cli_option *option, void *field, const char *value, char *why,
                   size_t cap_why); /* const char * */
bool cli_kind_list(const cli_option *option, void *field, const char *value, char *why,
                   size_t cap_why); /* cli_list */
bool cli_kind_int(const cli_option *option, void *field, const char *value, char *why,
                  size_t cap_why); /* int32_t in low..high */
bool cli_kind_auto(const cli_option *option, void *field, const char *value, char *why,
                   size_t cap_why); /* int32_t in low..high; "auto" is 0 */
bool cli_kind_real(const cli_option *option, void *field, const char *value, char *why,
                   size_t cap_why); /* float in low..high */
bool cli_kind_size(const cli_option *option, void *field, const char *value, char *why,
                   size_t cap_why); /* size_t, as 64MB or 1.5GiB */

/* Field of an option whose absence matters. */
typedef struct cli_seed {
    uint64_t value;
    bool given;
} cli_seed;
bool cli_kind_seed(const cli_option *option, void *field, const char *value, char *why,
                   size_t cap_why); /* cli_seed */

/* Fill args (zeroed, command->args_size bytes) from the defaults and from argv[0..argc), argv[0] being the command's
 * name. Says what is wrong on stderr itself. *help is set when the help was asked for; the rest is then unchecked.
 * The arguments' order may change (options and operands may be mixed); their texts stay where they are. */
bool cli_options_parse(const cli_command *command, int argc, char **argv, void *args, bool *help);

void cli_options_help(const cli_command *command); /* on stdout */

/* The nearest of n names to a mistyped one, or NULL when none is near. */
const char *cli_nearest(const char *word, const char *const *names, size_t n);

#endif
