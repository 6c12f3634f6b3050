/* hf_json.c - a vocabulary from a tokenizer.json file. */
#include "base/error.h"
#include "token/vocab.h"

sl_status sl_vocab_load_json(sl_vocab *v, const void *json, size_t n_json, const char *name,
                             const sl_container *side, sl_error *err) {
    (void)v;
    (void)json;
    (void)n_json;
    (void)side;
    return SL_FAIL(err, SL_ENOTSUP, "%s: tokenizer.json is not supported yet", name);
}
