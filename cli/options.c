/* options.c - see options.h.
 *
 * getopt_long does the walking (bundled letters, "--name=value", operands in between, "--"); names, checks and help
 * come from the command's table. Shortened long names are refused although getopt_long would take them: a script that
 * uses one would break when a longer sibling is added. */
#define _GNU_SOURCE
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "numbers.h"
#include "text_io.h"

#define OPTIONS_MAX 48
#define OPTIONS_HELP_COLUMN 26
#define OPTIONS_WIDTH 96

bool cli_kind_flag(const cli_option *option, void *field, const char *value, char *why,
                   size_t cap_why) {
    (void)option, (void)value, (void)why, (void)cap_why;
    *(bool *)field = true;
    return true;
}

bool cli_kind_text(const cli_option *option, void *field, const char *value, char *why,
                   size_t cap_why) {
    (void)option, (void)why, (void)cap_why;
    *(const char **)field = value;
    return true;
}

bool cli_kind_list(const cli_option *option, void *field, const char *value, char *why,
                   size_t cap_why) {
    (void)option;
    cli_list *list = field;
    if (list->n == CLI_MAX_LIST) {
        (void)snprintf(why, cap_why, "given more than %d times", CLI_MAX_LIST);
        return false;
    }
    list->item[list->n++] = value;
    return true;
}

/* The range as text: whole numbers without a fraction, and an open end in words. */
static void options_range(const cli_option *option, char *out, size_t cap) {
    if (option->high >= 2147483647.0) {
        (void)snprintf(out, cap, "%.10g or more", option->low);
    } else {
        (void)snprintf(out, cap, "%.10g to %.10g", option->low, option->high);
    }
}

bool cli_kind_int(const cli_option *option, void *field, const char *value, char *why,
                  size_t cap_why) {
    int64_t number;
    char range[64];
    options_range(option, range, sizeof range);
    if (!cli_read_i64(value, &number)) {
        (void)snprintf(why, cap_why, "'%s' is not a whole number (%s)", value, range);
        return false;
    }
    if ((double)number < option->low || (double)number > option->high) {
        (void)snprintf(why, cap_why, "%s is outside its range (%s)", value, range);
        return false;
    }
    *(int32_t *)field = (int32_t)number;
    return true;
}

bool cli_kind_auto(const cli_option *option, void *field, const char *value, char *why,
                   size_t cap_why) {
    if (strcmp(value, "auto") == 0) {
        *(int32_t *)field = 0;
        return true;
    }
    int64_t number;
    char range[64];
    options_range(option, range, sizeof range);
    if (!cli_read_i64(value, &number)) {
        (void)snprintf(why, cap_why, "'%s' is neither 'auto' nor a whole number (%s)", value,
                       range);
        return false;
    }
    return cli_kind_int(option, field, value, why, cap_why);
}

bool cli_kind_real(const cli_option *option, void *field, const char *value, char *why,
                   size_t cap_why) {
    double number;
    char range[64];
    options_range(option, range, sizeof range);
    if (!cli_read_real(value, &number)) {
        (void)snprintf(why, cap_why, "'%s' is not a number (%s)", value, range);
        return false;
    }
    if (number < option->low || number > option->high) {
        (void)snprintf(why, cap_why, "%s is outside its range (%s)", value, range);
        return false;
    }
    *(float *)field = (float)number;
    return true;
}

bool cli_kind_size(const cli_option *option, void *field, const char *value, char *why,
                   size_t cap_why) {
    (void)option;
    size_t bytes;
    if (!cli_read_size(value, &bytes) || bytes == 0) {
        (void)snprintf(why, cap_why, "'%s' is not a size in bytes (for example 512MB or 1.5GiB)",
                       value);
        return false;
    }
    *(size_t *)field = bytes;
    return true;
}

bool cli_kind_seed(const cli_option *option, void *field, const char *value, char *why,
                   size_t cap_why) {
    (void)option;
    cli_seed *seed = field;
    if (!cli_read_u64(value, &seed->value)) {
        (void)snprintf(why, cap_why, "'%s' is not a whole number (0 to %llu)", value,
                       (unsigned long long)UINT64_MAX);
        return false;
    }
    seed->given = true;
    return true;
}

/* Edit distance with one row of state; words longer than the row are never near. */
static size_t options_distance(const char *a, const char *b) {
    size_t row[33];
    const size_t n_a = strlen(a), n_b = strlen(b);
    if (n_a > 64 || n_b > 32) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= n_b; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= n_a; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            const size_t change = corner + (a[i - 1] != b[j - 1] ? 1 : 0);
            corner = row[j];
            size_t best = row[j - 1] + 1 < row[j] + 1 ? row[j - 1] + 1 : row[j] + 1;
            best = change < best ? change : best;
            row[j] = best;
        }
    }
    return row[n_b];
}

const char *cli_nearest(const char *word, const char *const *names, size_t n) {
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    const size_t n_word = strlen(word);
    for (size_t i = 0; i < n; i++) {
        /* A beginning of a name is the likeliest slip, whatever is missing at its end. */
        const bool begins = n_word >= 2 && strncmp(word, names[i], n_word) == 0;
        const size_t distance = begins ? 0 : options_distance(word, names[i]);
        const size_t n_name = strlen(names[i]);
        const size_t most = n_name <= 3 ? 1 : n_name / 3 + 1;
        if (distance <= most && distance < best_distance) {
            best = names[i];
            best_distance = distance;
        }
    }
    return best;
}

static bool options_unknown(const cli_command *command, const char *given) {
    const char *names[OPTIONS_MAX + 1];
    size_t n = 0;
    for (size_t i = 0; i < command->n_option; i++) {
        names[n++] = command->options[i].name;
    }
    names[n++] = "help";
    char word[64] = "";
    const char *bare = given + strspn(given, "-");
    const size_t n_word = strcspn(bare, "=");
    memcpy(word, bare, n_word < sizeof word ? n_word : sizeof word - 1);
    const char *near = strncmp(given, "--", 2) == 0 ? cli_nearest(word, names, n) : NULL;
    const int n_shown = (int)strcspn(given, "=");
    if (near != NULL) {
        cli_fail(CLI_USAGE, "%s: unknown option '%.*s'; did you mean --%s?", command->name, n_shown,
                 given, near);
    } else {
        cli_fail(CLI_USAGE, "%s: unknown option '%.*s'; 'sluice %s --help' lists them",
                 command->name, n_shown, given, command->name);
    }
    return false;
}

static bool options_set(const cli_command *command, const cli_option *option, void *args,
                        const char *value) {
    char why[512];
    if (option->kind(option, (char *)args + option->offset, value, why, sizeof why)) {
        return true;
    }
    cli_fail(CLI_USAGE, "%s: --%s: %s", command->name, option->name, why);
    return false;
}

static bool options_operands(const cli_command *command, int n, char **operand, void *args) {
    cli_args *common = args;
    int n_want = 0;
    while (command->operands[n_want] != NULL) {
        n_want++;
    }
    if (n < n_want) {
        cli_fail(CLI_USAGE, "%s: %s is missing: sluice %s %s", command->name, command->operands[n],
                 command->name, command->synopsis);
        return false;
    }
    if (n > n_want) {
        cli_fail(CLI_USAGE, "%s: unexpected argument '%s': sluice %s %s", command->name,
                 operand[n_want], command->name, command->synopsis);
        return false;
    }
    for (int i = 0; i < n; i++) {
        common->operand[i] = operand[i];
    }
    return true;
}

bool cli_options_parse(const cli_command *command, int argc, char **argv, void *args, bool *help) {
    enum { FIRST = 256, HELP = FIRST + OPTIONS_MAX };
    struct option table[OPTIONS_MAX + 2] = {0};
    char letters[2 * OPTIONS_MAX + 8] = ":h";
    const size_t n_option = command->n_option < OPTIONS_MAX ? command->n_option : OPTIONS_MAX;
    for (size_t i = 0; i < n_option; i++) {
        const cli_option *option = &command->options[i];
        table[i].name = option->name;
        table[i].has_arg = option->arg != NULL ? required_argument : no_argument;
        table[i].val = FIRST + (int)i;
        if (option->letter != 0) {
            const size_t at = strlen(letters);
            letters[at] = option->letter;
            letters[at + 1] = option->arg != NULL ? ':' : '\0';
        }
        if (option->initial != NULL && !options_set(command, option, args, option->initial)) {
            return false;
        }
    }
    table[n_option] = (struct option){.name = "help", .has_arg = no_argument, .val = HELP};
    opterr = 0;
    optind = 0; /* glibc: forget an earlier walk */
    for (;;) {
        const int got = getopt_long(argc, argv, letters, table, NULL);
        if (got == -1) {
            break;
        }
        if (got == 'h' || got == HELP) {
            *help = true;
            return true;
        }
        /* The word that was read last holds the option, unless that word is its value. */
        const int i_word = optind - 1;
        const char *word = optarg != NULL && optarg == argv[i_word] && i_word >= 1
                               ? argv[i_word - 1]
                               : argv[i_word];
        if (got == '?' || got == ':') {
            if (got == '?' && optopt < FIRST) {
                char letter[3] = {'-', (char)optopt, '\0'};
                return options_unknown(command, optopt != 0 ? letter : argv[i_word]);
            }
            if (optopt == HELP) {
                cli_fail(CLI_USAGE, "%s: --help takes no value", command->name);
                return false;
            }
            const cli_option *option = NULL;
            for (size_t i = 0; i < n_option; i++) {
                if (optopt == FIRST + (int)i || optopt == command->options[i].letter) {
                    option = &command->options[i];
                }
            }
            if (option == NULL) {
                return options_unknown(command, argv[i_word]);
            }
            cli_fail(CLI_USAGE,
                     got == ':' ? "%s: --%s needs a value (%s)" : "%s: --%s takes no value",
                     command->name, option->name, option->arg);
            return false;
        }
        const cli_option *option = NULL;
        for (size_t i = 0; i < n_option && option == NULL; i++) {
            if (got == FIRST + (int)i ||
                (command->options[i].letter != 0 && got == command->options[i].letter)) {
                option = &command->options[i];
            }
        }
        if (option == NULL) {
            return options_unknown(command, word);
        }
        if (got >= FIRST && strcspn(word, "=") != strlen(option->name) + 2) {
            return options_unknown(command, word);
        }
        if (!options_set(command, option, args, optarg)) {
            return false;
        }
    }
    return options_operands(command, argc - optind, argv + optind, args);
}

/* Words of text from the help column on, broken at the width. */
static void options_wrap(const char *text) {
    size_t column = OPTIONS_HELP_COLUMN;
    for (size_t n = strcspn(text, " "); n != 0; n = strcspn(text, " ")) {
        if (column > OPTIONS_HELP_COLUMN && column + 1 + n > OPTIONS_WIDTH) {
            cli_outf("\n%*s", OPTIONS_HELP_COLUMN, "");
            column = OPTIONS_HELP_COLUMN;
        } else if (column > OPTIONS_HELP_COLUMN) {
            cli_out(" ", 1);
            column++;
        }
        cli_outf("%.*s", (int)n, text);
        column += n;
        text += n + strspn(text + n, " ");
    }
    cli_outf("\n");
}

static void options_help_row(const cli_option *option) {
    char left[96];
    char right[512];
    const int n = snprintf(left, sizeof left, "  %s%c%s --%s%s%s", option->letter != 0 ? "-" : " ",
                           option->letter != 0 ? option->letter : ' ',
                           option->letter != 0 ? "," : " ", option->name,
                           option->arg != NULL ? " " : "", option->arg != NULL ? option->arg : "");
    cli_outf("%s", left);
    if (n >= OPTIONS_HELP_COLUMN - 1) {
        cli_outf("\n%*s", OPTIONS_HELP_COLUMN, "");
    } else {
        cli_outf("%*s", OPTIONS_HELP_COLUMN - n, "");
    }
    if (option->initial != NULL) {
        (void)snprintf(right, sizeof right, "%s (default %s)", option->help, option->initial);
    } else {
        (void)snprintf(right, sizeof right, "%s", option->help);
    }
    options_wrap(right);
}

void cli_options_help(const cli_command *command) {
    static const cli_option help_row = {.name = "help", .letter = 'h', .help = "this text"};
    cli_outf("Usage: sluice %s %s\n\n%s\nOptions:\n", command->name, command->synopsis,
             command->about);
    for (size_t i = 0; i < command->n_option; i++) {
        options_help_row(&command->options[i]);
    }
    options_help_row(&help_row);
    cli_outf("\nExamples:\n%s", command->examples);
}
