/* backend.c - the table of backends. */
#include "backend/backend.h"

#include <string.h>

static const sl_backend_kind *const backend_row[] = {
#define X(name) &sl_backend_##name,
#include "backend/backends.def"
#undef X
};

const sl_backend_kind *sl_backend_find(const char *name) {
    for (size_t i = 0; i < sizeof backend_row / sizeof backend_row[0]; i++) {
        if (strcmp(backend_row[i]->name, name) == 0) {
            return backend_row[i];
        }
    }
    return NULL;
}

const char *sl_backend_names(void) {
    static const char names[] =
#define X(name) #name " "
#include "backend/backends.def"
#undef X
        ;
    return names;
}
