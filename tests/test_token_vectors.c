/* test_token_vectors.c - ids that independent implementations give for tricky texts (tests/data/token, see
 * tools/make_token_vectors.py for the format). Vocabularies that have not been fetched are skipped by name. */
#define _GNU_SOURCE /* scandir */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_paths.h"
#include "token/tokenizer.h"

typedef struct vec_text {
    const char *name; /* in the file's own bytes */
    size_t n_name;
    char *text;
    size_t n_text;
} vec_text;

static vec_text vec_texts[1024];
static size_t vec_n_text;
static sl_ledger vec_ledger;

static unsigned vec_hex(const char *p) {
    const char digits[3] = {p[0], p[1], '\0'};
    return (unsigned)strtoul(digits, NULL, 16);
}

/* HEX or HEX*COUNT up to a line's end. */
static char *vec_unhex(const char *p, size_t *n_out) {
    const size_t n = strspn(p, "0123456789abcdef") / 2;
    const size_t count = p[n * 2] == '*' ? (size_t)strtoul(p + n * 2 + 1, NULL, 10) : 1;
    char *text = malloc(n * count + 1);
    assert_non_null(text);
    for (size_t k = 0; k < count; k++) {
        for (size_t i = 0; i < n; i++) {
            text[k * n + i] = (char)vec_hex(p + 2 * i);
        }
    }
    *n_out = n * count;
    return text;
}

static const char *vec_line_end(const char *p) {
    const char *end = strchr(p, '\n');
    return end != NULL ? end : p + strlen(p);
}

static void vec_read_texts(void) {
    static char *file; /* the names point into it */
    size_t n;
    file = help_read(help_text("%s/token/inputs.txt", SL_TEST_DATA), &n);
    assert_non_null(file);
    for (const char *p = file; *p != '\0';) {
        const char *end = vec_line_end(p);
        const char *space = memchr(p, ' ', (size_t)(end - p));
        assert_non_null(space);
        assert_true(vec_n_text < sizeof vec_texts / sizeof vec_texts[0]);
        vec_text *t = &vec_texts[vec_n_text++];
        t->name = p;
        t->n_name = (size_t)(space - p);
        t->text = vec_unhex(space + 1, &t->n_text);
        p = *end == '\n' ? end + 1 : end;
    }
}

static const vec_text *vec_find(const char *name, size_t n) {
    for (size_t i = 0; i < vec_n_text; i++) {
        if (vec_texts[i].n_name == n && memcmp(vec_texts[i].name, name, n) == 0) {
            return &vec_texts[i];
        }
    }
    return NULL;
}

/* The vocabulary that a file's first line names; NULL: not fetched. */
static sl_tokenizer *vec_open(const char *line, const char *name, sl_container **c) {
    char kind[16];
    char file[256];
    sl_error err;
    sl_tokenizer *t = NULL;
    assert_int_equal(sscanf(line, "%15s %255s", kind, file), 2);
    *c = NULL;
    if (strcmp(kind, "json") == 0) {
        size_t n;
        char *json = help_read(help_text("%s/token/%s", SL_TEST_DATA, file), &n);
        assert_non_null(json);
        if (sl_tokenizer_open_json(&vec_ledger, json, n, file, NULL, &t, &err) != SL_OK) {
            fail_msg("%s: %s", name, err.text);
        }
        free(json); /* the tokenizer keeps nothing of it */
        return t;
    }
    const char *path = strcmp(kind, "golden") == 0 ? help_text("%s/golden/%s", SL_TEST_DATA, file)
                                                   : help_model("vocabs", file);
    if (path == NULL) {
        printf("skipped: %s: vocabs/%s is not among the fetched models\n", name, file);
        return NULL;
    }
    if (sl_container_open(&vec_ledger, path, "mmap", NULL, c, &err) != SL_OK ||
        sl_tokenizer_open_container(&vec_ledger, *c, &t, &err) != SL_OK) {
        fail_msg("%s: %s", name, err.text);
    }
    return t;
}

/* NULL: the text needs normalising, and this build cannot. */
static int32_t *vec_encode(const sl_tokenizer *t, const vec_text *text, uint32_t flags, size_t *n) {
    sl_error err;
    size_t n_again;
    const sl_status status =
        sl_tokenizer_encode(t, text->text, text->n_text, flags, NULL, 0, NULL, 0, n, &err);
    if (status == SL_ENOTSUP && strstr(err.text, "utf8proc") != NULL) {
        return NULL;
    }
    assert_int_equal(status, SL_OK);
    int32_t *ids = malloc((*n + 1) * sizeof *ids);
    assert_non_null(ids);
    assert_int_equal(
        sl_tokenizer_encode(t, text->text, text->n_text, flags, NULL, 0, ids, *n, &n_again, &err),
        SL_OK);
    assert_int_equal(*n, n_again);
    return ids;
}

static char *vec_decode(const sl_tokenizer *t, const int32_t *ids, size_t n_ids, size_t *n_text) {
    size_t cap = 64;
    char *text = malloc(cap);
    bool first = true;
    *n_text = 0;
    for (size_t i = 0; i < n_ids; i++) {
        size_t n;
        const char *piece = sl_tokenizer_piece(t, ids[i], false, &first, &n);
        if (*n_text + n > cap) {
            cap = (*n_text + n) * 2;
            text = realloc(text, cap);
        }
        assert_non_null(text);
        memcpy(text + *n_text, piece, n);
        *n_text += n;
    }
    return text;
}

static void vec_ids_are(const char *what, const int32_t *ids, size_t n, const char *p,
                        const char *end) {
    size_t i = 0;
    while (p < end) {
        char *next;
        const long want = strtol(p, &next, 10);
        if (i >= n || ids[i] != want) {
            fail_msg("%s: token %zu is %d, expected %ld", what, i, i < n ? (int)ids[i] : -1, want);
        }
        i++;
        p = next;
        while (p < end && *p == ' ') {
            p++;
        }
    }
    if (i != n) {
        fail_msg("%s: %zu tokens, expected %zu", what, n, i);
    }
}

/* N HEAD... TAIL... */
static void vec_long_ids_are(const char *what, const int32_t *ids, size_t n, const char *p,
                             const char *end) {
    int32_t some[48];
    char *next;
    const size_t n_want = (size_t)strtoul(p, &next, 10);
    if (n != n_want) {
        fail_msg("%s: %zu tokens, expected %zu", what, n, n_want);
    }
    const size_t k = n < 24 ? n : 24;
    memcpy(some, ids, k * sizeof *ids);
    memcpy(some + k, ids + n - k, k * sizeof *ids);
    vec_ids_are(what, some, 2 * k, next + 1, end);
}

static size_t vec_run(const char *name, const char *file) {
    sl_container *c;
    const char *end = vec_line_end(file);
    sl_tokenizer *t = vec_open(file, name, &c);
    size_t n_case = 0;
    for (const char *p = end; t != NULL && p[0] == '\n' && p[1] != '\0'; p = end) {
        const char letter = p[1];
        const char *key = p + 3;
        end = vec_line_end(key);
        const char *space = memchr(key, ' ', (size_t)(end - key));
        const size_t n_key = (size_t)((space != NULL ? space : end) - key);
        const char *rest = space != NULL ? space + 1 : end;
        const vec_text *text = vec_find(key, n_key);
        if (text == NULL) {
            fail_msg("%s: no text '%.*s'", name, (int)n_key, key);
            break; /* not reached */
        }
        const char *what = help_text("%s: text '%.*s'", name, (int)n_key, key);
        uint32_t flags = letter == 's' ? 0 : SL_TOKENIZE_NO_BOS;
        flags |= letter == 'n' ? SL_TOKENIZE_NO_SPECIAL : 0;
        size_t n;
        int32_t *ids = vec_encode(t, text, flags, &n);
        if (ids == NULL) {
            printf("skipped: %s: this build has no utf8proc\n", what);
            continue;
        }
        if (letter == 'b') {
            vec_long_ids_are(what, ids, n, rest, end);
        } else if (letter == 'd') {
            size_t n_want, n_got;
            char *want = vec_unhex(rest, &n_want);
            char *got = vec_decode(t, ids, n, &n_got);
            if (n_got != n_want || memcmp(got, want, n_got) != 0) {
                fail_msg("%s: decodes to '%.*s'", what, (int)n_got, got);
            }
            free(want);
            free(got);
        } else {
            vec_ids_are(what, ids, n, rest, end);
        }
        free(ids);
        n_case++;
    }
    sl_tokenizer_close(t);
    sl_container_close(c);
    return n_case;
}

static int vec_is_vec(const struct dirent *entry) {
    const size_t n = strlen(entry->d_name);
    return n > 4 && strcmp(entry->d_name + n - 4, ".vec") == 0;
}

static void test_vectors(void **state) {
    (void)state;
    struct dirent **entry;
    const int n_file = scandir(help_text("%s/token", SL_TEST_DATA), &entry, vec_is_vec, alphasort);
    assert_true(n_file >= 14);
    sl_ledger_init(&vec_ledger, 0);
    vec_read_texts();
    size_t n_tiny = 0;
    for (int i = 0; i < n_file; i++) {
        size_t n;
        char *file = help_read(help_text("%s/token/%s", SL_TEST_DATA, entry[i]->d_name), &n);
        assert_non_null(file);
        const size_t n_case = vec_run(entry[i]->d_name, file);
        printf("%s: %zu cases\n", entry[i]->d_name, n_case);
        n_tiny += strncmp(file, "vocab", 5) != 0 ? n_case : 0;
        free(file);
        free(entry[i]);
    }
    free(entry);
    assert_true(n_tiny > 1900); /* what needs nothing but the tree has run */
    sl_memory memory;
    sl_ledger_read(&vec_ledger, &memory);
    assert_int_equal(memory.total_bytes, 0);
    for (size_t i = 0; i < vec_n_text; i++) {
        free(vec_texts[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
