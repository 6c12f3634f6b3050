/* help_paths.h - where tests find data that is not in the tree. */
#ifndef SL_TEST_HELP_PATHS_H
#define SL_TEST_HELP_PATHS_H

#include <stdbool.h>
#include <stddef.h>

/* The oracle's folder: $SLUICE_ORACLE, else <source>/../shared/oracle if it is there; NULL: none. */
const char *help_oracle(void);
/* The cases' folder, likewise: $SLUICE_CASES, else <source>/../shared/cases. */
const char *help_cases(void);
/* A fetched model's file: "<dir>/<name>/<file>" where dir is $SLUICE_MODELS, else $XDG_CACHE_HOME/sluice/models, else
 * ~/.cache/sluice/models. NULL if it is not there. Valid until the next call. */
const char *help_model(const char *name, const char *file);
/* A whole file, NUL-terminated; free() it; NULL if it cannot be read. */
char *help_read(const char *path, size_t *n);
/* printf into one of a few rotating static buffers. */
const char *help_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Print "SKIP: reason" and exit 77. */
void help_skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
