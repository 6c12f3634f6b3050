/* container.c - opening a model file of whatever format, and reading its metadata.
 *
 * The first bytes choose the format. When none fits, the error says what the file looks like, because the commonest
 * "model" that does not load is a web page, a Git LFS pointer or half a download.
 *
 * A format fills the directory; what must hold for all of them is checked here once: tensor names are unique and no two
 * tensors share bytes.
 *
 * Invariants  after open everything is read-only.
 * Not here    the formats themselves (gguf.c, ...). */
#include "format/container.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "format/name_index.h"

/* The arena's chunk. Names are short, and a small file should cost little. */
#define CONTAINER_CHUNK_BYTES ((size_t)16384)
#define CONTAINER_HEAD_BYTES ((size_t)64)

/* What container.h shows, and the index behind it. */
typedef struct container_full {
    sl_container base; /* first: the two pointers are the same */
    sl_name_index tensors;
} container_full;

static const sl_container_format *const container_formats[] = {
#define X(name) &sl_format_##name,
#include "format/containers.def"
#undef X
};

/* ---- what a file that is no model looks like ----------------------------------------------------------------------- */

static const struct {
    const char *bytes; /* what the file begins with, NUL-terminated */
    const char *text;
} container_looks[] = {
    {"version https://git-lfs", "it is a Git LFS pointer, not the file itself; run 'git lfs pull'"},
    {"PK\x03\x04", "it looks like a zip archive, perhaps a PyTorch checkpoint; convert it to GGUF"},
    {"\x80\x02", "it looks like a Python pickle, perhaps a PyTorch checkpoint; convert it to GGUF"},
    {"\x80\x04", "it looks like a Python pickle, perhaps a PyTorch checkpoint; convert it to GGUF"},
    {"lmgg", "it is in the old GGML format (before GGUF); convert it or fetch a GGUF"},
    {"fmgg", "it is in the old GGMF format (before GGUF); convert it or fetch a GGUF"},
    {"tjgg", "it is in the old GGJT format (before GGUF); convert it or fetch a GGUF"},
    {"algg", "it is an old GGLA adapter (before GGUF); convert it or fetch a GGUF"},
    {"FUGG", "its GGUF magic is reversed: the bytes are in the wrong order"},
    {"CELLM", "it is a .cellm file, which this build does not read"},
    {"\x1f\x8b", "it looks like a gzip archive; unpack it first"},
    {"\x28\xb5\x2f\xfd", "it looks like a zstd archive; unpack it first"},
    {"\xfd\x37zXZ", "it looks like an xz archive; unpack it first"},
    {"BZh", "it looks like a bzip2 archive; unpack it first"},
    {"\x7f\x45LF", "it looks like a program"},
    {"%PDF-", "it looks like a PDF document"},
};

/* safetensors: u64 length of a JSON object that follows at once and lies inside the file. */
static bool look_safetensors(const uint8_t *head, size_t n, uint64_t size) {
    sl_cursor c = sl_cursor_make(head, n);
    const uint64_t n_json = sl_cursor_u64(&c);
    return sl_cursor_u8(&c) == '{' && !c.failed && n_json >= 2 && n_json <= size - 8;
}

static bool look_all_zero(const uint8_t *head, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (head[i] != 0) {
            return false;
        }
    }
    return true;
}

static const char *container_looks_like(const uint8_t *head, size_t n, uint64_t size) {
    if (size == 0) {
        return "it is empty; the download may have failed";
    }
    if (n < 4 && memcmp(head, "GGUF", n) == 0) {
        return "it is a truncated GGUF: not even the magic is whole; the download may have failed";
    }
    if (look_safetensors(head, n, size)) {
        return "it looks like a safetensors file, which this build does not read; convert it to "
               "GGUF";
    }
    if (look_all_zero(head, n)) {
        return "it begins with zeros; the download may be incomplete";
    }
    for (size_t i = 0; i < sizeof container_looks / sizeof container_looks[0]; i++) {
        const size_t n_look = strlen(container_looks[i].bytes);
        if (n >= n_look && memcmp(head, container_looks[i].bytes, n_look) == 0) {
            return container_looks[i].text;
        }
    }
    size_t at = n >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (at < n &&
           (head[at] == ' ' || head[at] == '\t' || head[at] == '\r' || head[at] == '\n')) {
        at++;
    }
    if (at < n && head[at] == '<') {
        return "it looks like an HTML or XML page; the download may have failed";
    }
    if (at < n && (head[at] == '{' || head[at] == '[')) {
        return "it looks like JSON text";
    }
    return NULL;
}

static sl_status container_no_format(const char *name, const uint8_t *head, size_t n, uint64_t size,
                                     sl_error *err) {
    const char *look = container_looks_like(head, n, size);
    if (look != NULL) {
        return SL_FAIL(err, SL_EFORMAT, "%s: not a model file (not GGUF): %s", name, look);
    }
    char first[4 * 3 + 1] = "";
    for (size_t i = 0; i < n && i < 4; i++) {
        static const char digit[] = "0123456789abcdef";
        first[3 * i] = ' ';
        first[3 * i + 1] = digit[head[i] >> 4];
        first[3 * i + 2] = digit[head[i] & 15];
        first[3 * i + 3] = '\0';
    }
    return SL_FAIL(err, SL_EFORMAT,
                   "%s: not a model file (not GGUF): it begins with%s, as no known format does",
                   name, first);
}

/* ---- checks of the directory --------------------------------------------------------------------------------------- */

/* By place in the file; where two tensors begin in one place, by place in the directory, so that errors are the same each
 * time. a and b point into one array. */
static int container_order(const sl_tensor *a, const sl_tensor *b) {
    if (a->i_store != b->i_store) {
        return a->i_store < b->i_store ? -1 : 1;
    }
    if (a->offset_bytes != b->offset_bytes) {
        return a->offset_bytes < b->offset_bytes ? -1 : 1;
    }
    return a < b ? -1 : a > b;
}

/* Heap sort of row numbers by place in the file: in place, and no input makes it slow. */
static void container_sift(const sl_tensor *rows, uint32_t *order, size_t at, size_t n) {
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= n) {
            return;
        }
        if (child + 1 < n && container_order(&rows[order[child]], &rows[order[child + 1]]) < 0) {
            child++;
        }
        if (container_order(&rows[order[at]], &rows[order[child]]) >= 0) {
            return;
        }
        const uint32_t swap = order[at];
        order[at] = order[child];
        order[child] = swap;
        at = child;
    }
}

static void container_sort(const sl_tensor *rows, uint32_t *order, size_t n) {
    for (size_t i = 0; i < n; i++) {
        order[i] = (uint32_t)i;
    }
    for (size_t i = n / 2; i-- > 0;) {
        container_sift(rows, order, i, n);
    }
    for (size_t end = n; end-- > 1;) {
        const uint32_t swap = order[0];
        order[0] = order[end];
        order[end] = swap;
        container_sift(rows, order, 0, end);
    }
}

/* a lies before b. Ranges were checked against the file's size, so the sum cannot wrap. */
static sl_status container_check_pair(const sl_container *c, const sl_tensor *a, const sl_tensor *b,
                                      sl_error *err) {
    if (a->i_store == b->i_store && a->offset_bytes + a->size_bytes > b->offset_bytes) {
        return SL_FAIL(err, SL_EFORMAT,
                       "%s: tensors '%s' and '%s' overlap: bytes %llu to %llu and %llu to %llu",
                       c->store[a->i_store]->name, a->name, b->name,
                       (unsigned long long)a->offset_bytes,
                       (unsigned long long)(a->offset_bytes + a->size_bytes),
                       (unsigned long long)b->offset_bytes,
                       (unsigned long long)(b->offset_bytes + b->size_bytes));
    }
    return SL_OK;
}

static sl_status container_check_overlap(const sl_container *c, sl_error *err) {
    bool sorted = true;
    for (int64_t i = 1; i < c->n_tensor && sorted; i++) {
        sorted = container_order(&c->tensor[i - 1], &c->tensor[i]) <= 0;
    }
    if (sorted) { /* as most files are */
        for (int64_t i = 1; i < c->n_tensor; i++) {
            SL_TRY(container_check_pair(c, &c->tensor[i - 1], &c->tensor[i], err));
        }
        return SL_OK;
    }
    const size_t n = (size_t)c->n_tensor;
    void *p;
    SL_TRY(sl_alloc(c->ledger, SL_ACCOUNT_IO, n * sizeof(uint32_t), &p,
                    "the order of the tensors in the file", err));
    uint32_t *order = (uint32_t *)p;
    container_sort(c->tensor, order, n);
    sl_status status = SL_OK;
    for (size_t i = 1; i < n && status == SL_OK; i++) {
        status = container_check_pair(c, &c->tensor[order[i - 1]], &c->tensor[order[i]], err);
    }
    sl_release(c->ledger, SL_ACCOUNT_IO, p, n * sizeof(uint32_t));
    return status;
}

static sl_status container_check(container_full *full, sl_error *err) {
    sl_container *c = &full->base;
    int64_t i_twin, i_first = 0;
    SL_TRY(sl_name_index_build(&full->tensors, &c->arena, c->tensor, sizeof(sl_tensor), c->n_tensor,
                               &i_twin, &i_first, err));
    if (i_twin >= 0) {
        return SL_FAIL(err, SL_EFORMAT, "%s: tensors %lld and %lld have the same name '%s'",
                       c->store[c->tensor[i_twin].i_store]->name, (long long)i_first,
                       (long long)i_twin, c->tensor[i_twin].name);
    }
    return container_check_overlap(c, err);
}

/* ---- open and close ------------------------------------------------------------------------------------------------ */

/* Takes the store, whatever comes of it. */
static sl_status container_open_store(sl_ledger *ledger, sl_store *store, const char *path,
                                      const char *store_kind, sl_container **out, sl_error *err) {
    uint8_t head[CONTAINER_HEAD_BYTES] = {0};
    const size_t n_head = store->size_bytes < sizeof head ? (size_t)store->size_bytes : sizeof head;
    sl_status status = sl_store_read(store, 0, head, n_head, err);
    const sl_container_format *format = NULL;
    if (status == SL_OK) {
        for (size_t i = 0; i < sizeof container_formats / sizeof container_formats[0]; i++) {
            if (container_formats[i]->probe(head, n_head)) {
                format = container_formats[i];
                break;
            }
        }
        if (format == NULL) {
            status = container_no_format(store->name, head, n_head, store->size_bytes, err);
        }
    }
    void *p = NULL;
    if (status == SL_OK) {
        status = sl_alloc_zero(ledger, SL_ACCOUNT_IO, 1, sizeof(container_full), &p,
                               "the directory of a model file", err);
    }
    if (status != SL_OK) {
        sl_store_close(store);
        return status;
    }
    sl_container *c = (sl_container *)p;
    c->format = format;
    c->ledger = ledger;
    sl_arena_init(&c->arena, ledger, SL_ACCOUNT_IO, CONTAINER_CHUNK_BYTES);
    status = sl_arena_take(&c->arena, sizeof(sl_store *), &p, "the list of a model's files", err);
    if (status != SL_OK) {
        sl_store_close(store);
    } else {
        c->store = (sl_store **)p;
        c->store[0] = store;
        c->n_store = 1;
        status = format->open(c, path, store_kind, err);
    }
    if (status == SL_OK) {
        status = container_check((container_full *)c, err);
    }
    if (status != SL_OK) {
        sl_container_close(c);
        return status;
    }
    *out = c;
    return SL_OK;
}

sl_status sl_container_open(sl_ledger *ledger, const char *path, const char *store_kind,
                            const sl_source *source, sl_container **out, sl_error *err) {
    sl_store *store;
    if (source != NULL) {
        SL_TRY(sl_store_open_source(ledger, source, path, &store, err));
        return container_open_store(ledger, store, NULL, NULL, out, err);
    }
    SL_TRY(sl_store_open_path(ledger, store_kind, path, &store, err));
    return container_open_store(ledger, store, path, store_kind, out, err);
}

void sl_container_close(sl_container *c) {
    if (c == NULL) {
        return;
    }
    if (c->format->close != NULL) {
        c->format->close(c);
    }
    for (int32_t i = 0; i < c->n_store; i++) {
        sl_store_close(c->store[i]);
    }
    sl_arena_done(&c->arena);
    sl_release(c->ledger, SL_ACCOUNT_IO, c, sizeof(container_full));
}

const sl_meta *sl_meta_find(const sl_container *c, const char *key) {
    for (int64_t i = 0; i < c->n_meta; i++) {
        if (strcmp(c->meta[i].key, key) == 0) {
            return &c->meta[i];
        }
    }
    return NULL;
}

const sl_tensor *sl_tensor_find(const sl_container *c, const char *name) {
    const int64_t i = sl_name_index_find(&((const container_full *)c)->tensors, name);
    return i < 0 ? NULL : &c->tensor[i];
}
