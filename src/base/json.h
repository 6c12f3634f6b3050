/* json.h - a bounded pull reader for the JSON of model files (tokenizer.json, safetensors headers).
 *
 * The reader walks a block of memory and hands out one event at a time; it builds no tree and allocates nothing, so a
 * 33 MB file costs no memory beyond itself.
 *
 *     sl_json j;  sl_json_init(&j, data, size);
 *     if (sl_json_enter_object(&j)) {
 *         while (sl_json_next_key(&j, &key)) {
 *             if (sl_json_key_is(&key, "vocab")) ... else sl_json_skip(&j);
 *         }
 *     }
 *     if (j.failed) -> sl_json_fail(&j, err, path)
 *
 * RFC 8259, strict: UTF-8 checked, no trailing commas, no NaN, no data after the value (sl_json_end checks), nesting
 * bounded by SL_MAX_JSON_DEPTH. Escaped lone surrogates are accepted and become U+FFFD (published files have them).
 * The failed flag is sticky: after a failure every call returns false and moves nothing.
 * Threads: one at a time. */
#ifndef SL_BASE_JSON_H
#define SL_BASE_JSON_H

#include "base/limits.h"
#include "sluice.h"

typedef enum sl_json_type {
    SL_JSON_NONE,
    SL_JSON_NULL,
    SL_JSON_BOOL,
    SL_JSON_NUMBER,
    SL_JSON_STRING,
    SL_JSON_ARRAY,
    SL_JSON_OBJECT
} sl_json_type;

/* A string as it stands in the file, quotes excluded; `escaped` when it holds backslashes. */
typedef struct sl_json_text {
    const char *raw;
    size_t n_raw;
    bool escaped;
} sl_json_text;

typedef struct sl_json {
    const uint8_t *data;
    size_t size;
    size_t at;
    bool failed;
    const char *why; /* static text, when failed */
    int32_t depth;
    uint8_t first[SL_MAX_JSON_DEPTH]; /* nothing read yet at this level */
} sl_json;

void sl_json_init(sl_json *j, const void *data, size_t size);
sl_status sl_json_fail(const sl_json *j, sl_error *err,
                       const char *path); /* SL_EFORMAT with line, column and why */

sl_json_type
sl_json_peek(sl_json *j); /* type of the value that comes next; SL_JSON_NONE on failure or end */
bool sl_json_enter_object(sl_json *j);
bool sl_json_next_key(
    sl_json *j, sl_json_text *key); /* false at the object's end (then it is left) or on failure */
bool sl_json_enter_array(sl_json *j);
bool sl_json_next_item(
    sl_json
        *j); /* true: a value follows; false at the array's end (then it is left) or on failure */
bool sl_json_string(sl_json *j, sl_json_text *out);
bool sl_json_int(sl_json *j,
                 int64_t *out); /* a number without fraction that fits; otherwise a failure */
bool sl_json_double(sl_json *j,
                    double *out); /* any number; correctly rounded as strtod does in the C locale */
bool sl_json_bool(sl_json *j, bool *out);
bool sl_json_null(sl_json *j);
bool sl_json_skip(sl_json *j); /* any value, iteratively */
bool sl_json_end(sl_json *j);  /* only white space is left */

bool sl_json_text_is(const sl_json_text *text, const char *plain); /* equal after unescaping */
/* Unescape into dst; returns the length the whole text has (bytes); writes at most cap. */
size_t sl_json_text_copy(const sl_json_text *text, char *dst, size_t cap);

#endif
