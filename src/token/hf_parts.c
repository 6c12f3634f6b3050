/* hf_parts.c - the small parts of a tokenizer.json: normalizer, pre_tokenizer, post_processor, decoder.
 *
 * Each part is null, one component, or a "Sequence" of components; a component says its "type". The tables below list
 * the types that are understood, with a function each; any other, and any setting that would change the ids in a way
 * that is not implemented, is refused by name. Sequences inside sequences are refused too, so nothing here recurses.
 *
 * Threads: none of its own.
 * Not here: tokens and merges (hf_json.c). */
#include <string.h>

#include "base/error.h"
#include "token/hf_own.h"

/* U+2581, which SentencePiece writes for a space. */
#define HF_MARK "\xE2\x96\x81"

typedef sl_status (*hf_component_fn)(sl_hf_file *f, sl_vocab *v, sl_json *j);

typedef struct hf_component {
    const char *type;
    hf_component_fn read;
} hf_component;

bool sl_hf_type_of(sl_json j, sl_json_text *type) {
    sl_json_text key;
    bool found = false;
    if (sl_json_peek(&j) != SL_JSON_OBJECT || !sl_json_enter_object(&j)) {
        return false;
    }
    while (!found && sl_json_next_key(&j, &key)) {
        if (sl_json_text_is(&key, "type")) {
            found = sl_json_string(&j, type);
        } else {
            (void)sl_json_skip(&j);
        }
    }
    return found;
}

const char *sl_hf_shown(const sl_json_text *text, char *buffer, size_t cap) {
    const size_t n = sl_json_text_copy(text, buffer, cap - 1);
    buffer[n < cap - 1 ? n : cap - 1] = '\0';
    return buffer;
}

static sl_status hf_refuse(sl_hf_file *f, const char *part, const char *what,
                           const sl_json_text *value) {
    char shown[160];
    return SL_FAIL(f->err, SL_ENOTSUP, "%s: %s: %s '%s' is not supported", f->name, part, what,
                   sl_hf_shown(value, shown, sizeof shown));
}

/* The component that j stands at; j moves past it. */
static sl_status hf_read_one(sl_hf_file *f, sl_vocab *v, sl_json *j, const char *part,
                             const hf_component *table, size_t n_table) {
    sl_json_text type;
    if (!sl_hf_type_of(*j, &type)) {
        sl_json copy = *j;
        (void)sl_json_skip(&copy);
        if (copy.failed) {
            return sl_json_fail(&copy, f->err, f->name);
        }
        return SL_FAIL(f->err, SL_EFORMAT, "%s: %s: a component without a type", f->name, part);
    }
    for (size_t i = 0; i < n_table; i++) {
        if (sl_json_text_is(&type, table[i].type)) {
            SL_TRY(table[i].read(f, v, j));
            return j->failed ? sl_json_fail(j, f->err, f->name) : SL_OK;
        }
    }
    return hf_refuse(f, part, "type", &type);
}

/* null, a component, or a sequence whose components are in the list `list`. */
static sl_status hf_read_part(sl_hf_file *f, sl_vocab *v, sl_json j, const char *part,
                              const char *list, const hf_component *table, size_t n_table) {
    sl_json_text type;
    sl_json_text key;
    if (sl_json_peek(&j) == SL_JSON_NULL) {
        return SL_OK;
    }
    if (!sl_hf_type_of(j, &type) || !sl_json_text_is(&type, "Sequence")) {
        return hf_read_one(f, v, &j, part, table, n_table);
    }
    (void)sl_json_enter_object(&j);
    while (sl_json_next_key(&j, &key)) {
        if (!sl_json_text_is(&key, list)) {
            (void)sl_json_skip(&j);
            continue;
        }
        (void)sl_json_enter_array(&j);
        while (sl_json_next_item(&j)) {
            SL_TRY(hf_read_one(f, v, &j, part, table, n_table));
        }
    }
    return j.failed ? sl_json_fail(&j, f->err, f->name) : SL_OK;
}

static sl_status hf_pass(sl_hf_file *f, sl_vocab *v, sl_json *j) {
    (void)f;
    (void)v;
    (void)sl_json_skip(j);
    return SL_OK;
}

/* {"String": s} or {"Regex": s} */
static bool hf_pattern(sl_json *j, sl_json_text *text, bool *regex) {
    sl_json_text key;
    bool found = false;
    if (!sl_json_enter_object(j)) {
        return false;
    }
    while (sl_json_next_key(j, &key)) {
        if (sl_json_text_is(&key, "String") || sl_json_text_is(&key, "Regex")) {
            *regex = sl_json_text_is(&key, "Regex");
            found = sl_json_string(j, text);
        } else {
            (void)sl_json_skip(j);
        }
    }
    return found;
}

/* Replace {pattern, content}: is it exactly this? */
static sl_status hf_replace(sl_hf_file *f, sl_json *j, const char *part, const char *from,
                            const char *to) {
    sl_json_text key;
    sl_json_text pattern = {"", 0, false};
    sl_json_text content = {"", 0, false};
    bool regex = false;
    (void)sl_json_enter_object(j);
    while (sl_json_next_key(j, &key)) {
        if (sl_json_text_is(&key, "pattern")) {
            (void)hf_pattern(j, &pattern, &regex);
        } else if (sl_json_text_is(&key, "content")) {
            (void)sl_json_string(j, &content);
        } else {
            (void)sl_json_skip(j);
        }
    }
    if (j->failed) {
        return SL_OK; /* the caller reports it */
    }
    if (regex || !sl_json_text_is(&pattern, from) || !sl_json_text_is(&content, to)) {
        return hf_refuse(f, part, regex ? "Replace of the expression" : "Replace of", &pattern);
    }
    return SL_OK;
}

/* ---- normalizer ---- */

static sl_status hf_norm_nfc(sl_hf_file *f, sl_vocab *v, sl_json *j) {
    (void)f;
    v->nfc = true;
    (void)sl_json_skip(j);
    return SL_OK;
}

static sl_status hf_norm_replace(sl_hf_file *f, sl_vocab *v, sl_json *j) {
    v->space_mark = true;
    return hf_replace(f, j, "normalizer", " ", HF_MARK);
}

static sl_status hf_norm_prepend(sl_hf_file *f, sl_vocab *v, sl_json *j) {
    sl_json_text key;
    (void)sl_json_enter_object(j);
    while (sl_json_next_key(j, &key)) {
        sl_json_text text;
        if (!sl_json_text_is(&key, "prepend")) {
            (void)sl_json_skip(j);
        } else if (sl_json_string(j, &text) && !sl_json_text_is(&text, HF_MARK)) {
            return hf_refuse(f, "normalizer", "Prepend of", &text);
        }
    }
    v->prefix = SL_PREFIX_EACH;
    f->prepend = true;
    return SL_OK;
}

sl_status sl_hf_read_normalizer(sl_hf_file *f, sl_vocab *v) {
    static const hf_component table[] = {
        {"NFC", hf_norm_nfc},
        {"Replace", hf_norm_replace},
        {"Prepend", hf_norm_prepend},
    };
    if (!f->has_normalizer) {
        return SL_OK;
    }
    return hf_read_part(f, v, f->normalizer, "normalizer", "normalizers", table,
                        sizeof table / sizeof table[0]);
}

/* ---- pre_tokenizer ---- */

static sl_status hf_add_stage(sl_hf_file *f, sl_pre_cut cut, const char *what) {
    if (f->byte_level || f->n_stage == SL_PRE_MAX_STAGE) {
        return SL_FAIL(f->err, SL_ENOTSUP, "%s: pre_tokenizer: %s %s is not supported", f->name,
                       what, f->byte_level ? "after ByteLevel" : "as a fifth stage");
    }
    f->stage[f->n_stage++] = cut;
    return SL_OK;
}

static sl_status hf_pre_byte_level(sl_hf_file *f, sl_vocab *v, sl_json *j) {
    sl_json_text key;
    bool prefix = true;
    bool regex = true;
    (void)sl_json_enter_object(j);
    while (sl_json_next_key(j, &key)) {
        if (sl_json_text_is(&key, "add_prefix_space")) {
            (void)sl_json_bool(j, &prefix);
        } else if (sl_json_text_is(&key, "use_regex")) {
            (void)sl_json_bool(j, &regex);
        } else {
            (void)sl_json_skip(j);
        }
    }
    if (prefix && f->n_stage > 0) {
        return SL_FAIL(f->err, SL_ENOTSUP,
                       "%s: pre_tokenizer: ByteLevel with add_prefix_space after another stage is "
                       "not supported",
                       f->name);
    }
    if (regex) {
        SL_TRY(hf_add_stage(f, sl_pre_stage_gpt2(), "ByteLevel"));
    }
    if (prefix) {
        v->prefix = SL_PREFIX_EACH;
        v->prefix_if_absent = true;
        v->prefix_late = true;
    }
    f->byte_level = true;
    return SL_OK;
}

static sl_status hf_pre_split(sl_hf_file *f, sl_vocab *v, sl_json *j) {
    sl_json_text key;
    sl_json_text pattern = {"", 0, false};
    sl_json_text behavior = {"", 0, false};
    bool regex = false;
    bool invert = false;
    (void)sl_json_enter_object(j);
    while (sl_json_next_key(j, &key)) {
        if (sl_json_text_is(&key, "pattern")) {
            (void)hf_pattern(j, &pattern, &regex);
        } else if (sl_json_text_is(&key, "behavior")) {
            (void)sl_json_string(j, &behavior);
        } else if (sl_json_text_is(&key, "invert")) {
            (void)sl_json_bool(j, &invert);
        } else {
            (void)sl_json_skip(j);
        }
    }
    if (j->failed) {
        return SL_OK;
    }
    /* After every space has become U+2581 there is none left to split at. */
    if (!regex && v->space_mark && sl_json_text_is(&pattern, " ")) {
        return SL_OK;
    }
    char text[512];
    const size_t n = sl_json_text_copy(&pattern, text, sizeof text);
    const sl_pre_cut cut = regex && n <= sizeof text ? sl_pre_stage_of_regex(text, n) : NULL;
    if (cut == NULL) {
        return hf_refuse(f, "pre_tokenizer",
                         regex ? "Split by the expression" : "Split by the text", &pattern);
    }
    if (invert || !sl_json_text_is(&behavior, "Isolated")) {
        return hf_refuse(f, "pre_tokenizer", invert ? "inverted Split" : "Split", &behavior);
    }
    return hf_add_stage(f, cut, "Split");
}

static sl_status hf_pre_digits(sl_hf_file *f, sl_vocab *v, sl_json *j) {
    sl_json_text key;
    bool individual = false;
    (void)v;
    (void)sl_json_enter_object(j);
    while (sl_json_next_key(j, &key)) {
        if (sl_json_text_is(&key, "individual_digits")) {
            (void)sl_json_bool(j, &individual);
        } else {
            (void)sl_json_skip(j);
        }
    }
    return hf_add_stage(f, individual ? sl_pre_stage_digit() : sl_pre_stage_of_regex("\\p{N}+", 6),
                        "Digits");
}

/* Fields that the pre-tokenizer and the decoder share. */
static sl_status hf_metaspace(sl_hf_file *f, sl_json *j, const char *part, sl_space_prefix *prefix,
                              bool *split) {
    sl_json_text key;
    sl_json_text text;
    bool old = true; /* add_prefix_space of older files */
    *prefix = SL_PREFIX_EACH;
    *split = true;
    (void)sl_json_enter_object(j);
    while (sl_json_next_key(j, &key)) {
        if (sl_json_text_is(&key, "replacement")) {
            if (sl_json_string(j, &text) && !sl_json_text_is(&text, HF_MARK)) {
                return hf_refuse(f, part, "Metaspace with", &text);
            }
        } else if (sl_json_text_is(&key, "prepend_scheme")) {
            if (!sl_json_string(j, &text)) {
                break;
            }
            if (sl_json_text_is(&text, "first")) {
                *prefix = SL_PREFIX_FIRST;
            } else if (sl_json_text_is(&text, "never")) {
                *prefix = SL_PREFIX_NONE;
            } else if (!sl_json_text_is(&text, "always")) {
                return hf_refuse(f, part, "Metaspace scheme", &text);
            }
        } else if (sl_json_text_is(&key, "split")) {
            (void)sl_json_bool(j, split);
        } else if (sl_json_text_is(&key, "add_prefix_space")) {
            (void)sl_json_bool(j, &old);
        } else {
            (void)sl_json_skip(j);
        }
    }
    if (!old) {
        *prefix = SL_PREFIX_NONE;
    }
    return SL_OK;
}

static sl_status hf_pre_metaspace(sl_hf_file *f, sl_vocab *v, sl_json *j) {
    sl_space_prefix prefix;
    SL_TRY(hf_metaspace(f, j, "pre_tokenizer", &prefix, &v->space_splits));
    if (v->prefix != SL_PREFIX_NONE && prefix != SL_PREFIX_NONE) {
        return SL_FAIL(f->err, SL_ENOTSUP,
                       "%s: pre_tokenizer: Metaspace after a Prepend normalizer is not supported",
                       f->name);
    }
    if (prefix != SL_PREFIX_NONE) {
        v->prefix = prefix;
        v->prefix_if_absent = true;
        v->prefix_late = true;
    }
    v->space_mark = true;
    return SL_OK;
}

sl_status sl_hf_read_pre_tokenizer(sl_hf_file *f, sl_vocab *v) {
    static const hf_component table[] = {
        {"ByteLevel", hf_pre_byte_level},
        {"Split", hf_pre_split},
        {"Digits", hf_pre_digits},
        {"Metaspace", hf_pre_metaspace},
    };
    if (!f->has_pre) {
        return SL_OK;
    }
    return hf_read_part(f, v, f->pre, "pre_tokenizer", "pretokenizers", table,
                        sizeof table / sizeof table[0]);
}

/* ---- post_processor ---- */

/* {"SpecialToken": {"id": text}} -> 1, {"Sequence": ...} -> 2, anything else -> 0. */
static int hf_template_item(sl_json *j, sl_json_text *special) {
    sl_json_text key;
    int kind = 0;
    (void)sl_json_enter_object(j);
    while (sl_json_next_key(j, &key)) {
        if (!sl_json_text_is(&key, "SpecialToken")) {
            kind = sl_json_text_is(&key, "Sequence") ? 2 : kind;
            (void)sl_json_skip(j);
            continue;
        }
        kind = 1;
        (void)sl_json_enter_object(j);
        while (sl_json_next_key(j, &key)) {
            if (sl_json_text_is(&key, "id")) {
                (void)sl_json_string(j, special);
            } else {
                (void)sl_json_skip(j);
            }
        }
    }
    return kind;
}

/* special_tokens: name -> {"ids": [id]}; -1: not there, or not one id. */
static int32_t hf_template_id(sl_json j, const char *name) {
    sl_json_text key;
    int64_t id = -1;
    int32_t n = 0;
    (void)sl_json_enter_object(&j);
    while (sl_json_next_key(&j, &key)) {
        if (!sl_json_text_is(&key, name)) {
            (void)sl_json_skip(&j);
            continue;
        }
        (void)sl_json_enter_object(&j);
        while (sl_json_next_key(&j, &key)) {
            if (!sl_json_text_is(&key, "ids")) {
                (void)sl_json_skip(&j);
                continue;
            }
            (void)sl_json_enter_array(&j);
            while (sl_json_next_item(&j)) {
                n += sl_json_int(&j, &id) ? 1 : 0;
            }
        }
    }
    return n == 1 && id >= 0 && id < SL_MAX_VOCAB && !j.failed ? (int32_t)id : -1;
}

static sl_status hf_post_template(sl_hf_file *f, sl_vocab *v, sl_json *j) {
    sl_json_text key;
    sl_json_text special[2];
    sl_json tokens = *j;
    int32_t n_before = 0;
    int32_t n_after = 0;
    bool body = false;
    bool odd = false;
    bool has_tokens = false;
    (void)v;
    (void)sl_json_enter_object(j);
    while (sl_json_next_key(j, &key)) {
        if (sl_json_text_is(&key, "special_tokens")) {
            tokens = *j;
            has_tokens = true;
        }
        if (!sl_json_text_is(&key, "single")) {
            (void)sl_json_skip(j);
            continue;
        }
        (void)sl_json_enter_array(j);
        while (sl_json_next_item(j)) {
            sl_json_text text = {"", 0, false};
            const int kind = hf_template_item(j, &text);
            odd |= kind == 0 || (kind == 2 && body);
            body |= kind == 2;
            if (kind == 1) {
                special[body ? 1 : 0] = text;
                n_before += body ? 0 : 1;
                n_after += body ? 1 : 0;
            }
        }
    }
    if (j->failed) {
        return SL_OK;
    }
    if (odd || !body || n_before > 1 || n_after > 1 || (n_before + n_after > 0 && !has_tokens)) {
        return SL_FAIL(f->err, SL_ENOTSUP,
                       "%s: post_processor: only templates of at most one token before and one "
                       "after the text are supported",
                       f->name);
    }
    int32_t *ids[2] = {&f->id_template_bos, &f->id_template_eos};
    for (int i = 0; i < 2; i++) {
        char name[256];
        if ((i == 0 ? n_before : n_after) == 0) {
            continue;
        }
        *ids[i] = hf_template_id(tokens, sl_hf_shown(&special[i], name, sizeof name));
        if (*ids[i] < 0) {
            return SL_FAIL(f->err, SL_EFORMAT,
                           "%s: post_processor: special_tokens gives no single id for '%s'",
                           f->name, name);
        }
    }
    f->has_template = true;
    return SL_OK;
}

sl_status sl_hf_read_post_processor(sl_hf_file *f) {
    static const hf_component table[] = {
        {"ByteLevel", hf_pass}, /* only moves offsets */
        {"TemplateProcessing", hf_post_template},
    };
    f->id_template_bos = f->id_template_eos = -1;
    if (!f->has_post) {
        return SL_OK;
    }
    return hf_read_part(f, NULL, f->post, "post_processor", "processors", table,
                        sizeof table / sizeof table[0]);
}

/* ---- decoder ---- */

static sl_status hf_dec_replace(sl_hf_file *f, sl_vocab *v, sl_json *j) {
    (void)v;
    return hf_replace(f, j, "decoder", HF_MARK, " ");
}

static sl_status hf_dec_strip(sl_hf_file *f, sl_vocab *v, sl_json *j) {
    sl_json_text key;
    sl_json_text content = {"", 0, false};
    int64_t start = 0;
    int64_t stop = 0;
    (void)sl_json_enter_object(j);
    while (sl_json_next_key(j, &key)) {
        if (sl_json_text_is(&key, "content")) {
            (void)sl_json_string(j, &content);
        } else if (sl_json_text_is(&key, "start")) {
            (void)sl_json_int(j, &start);
        } else if (sl_json_text_is(&key, "stop")) {
            (void)sl_json_int(j, &stop);
        } else {
            (void)sl_json_skip(j);
        }
    }
    if (j->failed) {
        return SL_OK;
    }
    if (!sl_json_text_is(&content, " ") || start < 0 || start > 1 || stop != 0) {
        return hf_refuse(f, "decoder", "Strip of", &content);
    }
    v->strip_first = start == 1;
    return SL_OK;
}

static sl_status hf_dec_metaspace(sl_hf_file *f, sl_vocab *v, sl_json *j) {
    sl_space_prefix prefix;
    bool split;
    SL_TRY(hf_metaspace(f, j, "decoder", &prefix, &split));
    v->strip_first = prefix != SL_PREFIX_NONE;
    return SL_OK;
}

sl_status sl_hf_read_decoder(sl_hf_file *f, sl_vocab *v) {
    static const hf_component table[] = {
        {"ByteLevel", hf_pass},      {"ByteFallback", hf_pass}, {"Fuse", hf_pass},
        {"Replace", hf_dec_replace}, {"Strip", hf_dec_strip},   {"Metaspace", hf_dec_metaspace},
    };
    if (!f->has_decoder) {
        return SL_OK;
    }
    return hf_read_part(f, v, f->decoder, "decoder", "decoders", table,
                        sizeof table / sizeof table[0]);
}
