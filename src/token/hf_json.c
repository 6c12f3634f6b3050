/* hf_json.c - a vocabulary from a tokenizer.json file, as the `tokenizers` library writes it.
 *
 *     { "added_tokens": [ {id, content, special, lstrip, rstrip, single_word, normalized} ],
 *       "normalizer", "pre_tokenizer", "post_processor", "decoder": see hf_parts.c,
 *       "model": { "type": "BPE", "vocab": {text: id}, "merges": ["a b"] or [["a", "b"]], unk_token, fuse_unk,
 *                  byte_fallback, ignore_merges, ... } }
 *
 * The file is walked, never turned into a tree: a first walk remembers where the parts are, the vocabulary is walked
 * three times (how much, where each token goes, its text), the merges twice. So loading costs the finished tables and
 * the list of added tokens, whatever the size of the file.
 *
 * A pre-tokenizer with ByteLevel makes it byte-level BPE (bpe.c); otherwise it is SentencePiece's BPE with ranks
 * instead of scores (spm.c).
 *
 * Threads: none of its own.
 * Not here: the small parts (hf_parts.c); other models than BPE, which are refused by name. */
#include <string.h>

#include "base/error.h"
#include "token/hf_own.h"
#include "token/vocab_model.h"

static sl_status hf_broken(const hf_file *f, const sl_json *j) {
    return sl_json_fail(j, f->err, f->name);
}

/* A copy of the text in buf, at most SL_MAX_TOKEN_BYTES. */
static sl_status hf_text(const hf_file *f, const sl_json_text *text, char *buf, size_t *n) {
    *n = sl_json_text_copy(text, buf, SL_MAX_TOKEN_BYTES);
    if (*n > SL_MAX_TOKEN_BYTES) {
        return SL_FAIL(f->err, SL_ELIMIT, "%s: a token has %zu bytes; %d is the limit", f->name, *n,
                       SL_MAX_TOKEN_BYTES);
    }
    return SL_OK;
}

/* ---- where the parts are ---- */

static sl_status hf_find_parts(hf_file *f, const void *json, size_t n_json) {
    const struct {
        const char *key;
        sl_json *at;
        bool *has;
    } parts[] = {
        {"added_tokens", &f->added, &f->has_added},
        {"normalizer", &f->normalizer, &f->has_normalizer},
        {"pre_tokenizer", &f->pre, &f->has_pre},
        {"post_processor", &f->post, &f->has_post},
        {"decoder", &f->decoder, &f->has_decoder},
        {"model", &f->model, &f->has_model},
    };
    sl_json j;
    sl_json_text key;
    sl_json_init(&j, json, n_json);
    (void)sl_json_enter_object(&j);
    while (sl_json_next_key(&j, &key)) {
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            if (sl_json_text_is(&key, parts[i].key)) {
                *parts[i].at = j;
                *parts[i].has = true;
            }
        }
        (void)sl_json_skip(&j);
    }
    if (!sl_json_end(&j)) {
        return hf_broken(f, &j);
    }
    if (!f->has_model) {
        return SL_FAIL(f->err, SL_EFORMAT, "%s: there is no \"model\": no tokenizer.json", f->name);
    }
    return SL_OK;
}

/* null or empty; else the value is refused. */
static sl_status hf_must_be_empty(hf_file *f, sl_json *j, const char *key) {
    sl_json_text text;
    if (sl_json_peek(j) == SL_JSON_NULL) {
        (void)sl_json_null(j);
        return SL_OK;
    }
    if (sl_json_string(j, &text) && text.n_raw > 0) {
        char shown[64];
        return SL_FAIL(f->err, SL_ENOTSUP, "%s: model: %s '%s' is not supported", f->name, key,
                       hf_shown(&text, shown, sizeof shown));
    }
    return SL_OK;
}

static sl_status hf_no_dropout(hf_file *f, sl_json *j) {
    double dropout = 0.0;
    if (sl_json_peek(j) == SL_JSON_NULL) {
        (void)sl_json_null(j);
    } else if (sl_json_double(j, &dropout) && dropout != 0.0) {
        return SL_FAIL(f->err, SL_ENOTSUP, "%s: model: dropout is not supported", f->name);
    }
    return SL_OK;
}

static sl_status hf_read_model(hf_file *f, sl_vocab *v) {
    sl_json j = f->model;
    sl_json_text key;
    sl_json_text type;
    if (hf_type_of(j, &type) && !sl_json_text_is(&type, "BPE")) {
        char shown[64];
        return SL_FAIL(f->err, SL_ENOTSUP,
                       "%s: tokenizer model type '%s' is not supported; supported: BPE", f->name,
                       hf_shown(&type, shown, sizeof shown));
    }
    (void)sl_json_enter_object(&j);
    while (sl_json_next_key(&j, &key)) {
        const bool null = sl_json_peek(&j) == SL_JSON_NULL;
        if (sl_json_text_is(&key, "vocab")) {
            f->vocab = j;
            f->has_vocab = true;
            (void)sl_json_skip(&j);
        } else if (sl_json_text_is(&key, "merges")) {
            f->merges = j;
            f->has_merges = true;
            (void)sl_json_skip(&j);
        } else if (sl_json_text_is(&key, "unk_token") && !null) {
            f->has_unk = sl_json_string(&j, &f->unk);
        } else if (sl_json_text_is(&key, "fuse_unk") && !null) {
            (void)sl_json_bool(&j, &v->fuse_unk);
        } else if (sl_json_text_is(&key, "byte_fallback") && !null) {
            (void)sl_json_bool(&j, &v->byte_fallback);
        } else if (sl_json_text_is(&key, "ignore_merges") && !null) {
            (void)sl_json_bool(&j, &v->ignore_merges);
        } else if (sl_json_text_is(&key, "continuing_subword_prefix")) {
            SL_TRY(hf_must_be_empty(f, &j, "continuing_subword_prefix"));
        } else if (sl_json_text_is(&key, "end_of_word_suffix")) {
            SL_TRY(hf_must_be_empty(f, &j, "end_of_word_suffix"));
        } else if (sl_json_text_is(&key, "dropout")) {
            SL_TRY(hf_no_dropout(f, &j));
        } else {
            (void)sl_json_skip(&j);
        }
    }
    if (j.failed) {
        return hf_broken(f, &j);
    }
    if (!f->has_vocab || sl_json_peek(&f->vocab) != SL_JSON_OBJECT) {
        return SL_FAIL(f->err, SL_EFORMAT, "%s: model: there is no object \"vocab\"", f->name);
    }
    if (!f->has_merges) {
        return SL_FAIL(f->err, SL_EFORMAT, "%s: model: there are no \"merges\"", f->name);
    }
    return SL_OK;
}

/* ---- added tokens ---- */

static sl_status hf_read_added_one(const hf_file *f, sl_json *j, hf_added *item) {
    sl_json_text key;
    int64_t id = -1;
    bool has_content = false;
    *item = (hf_added){.flag = SL_TOKEN_FLAG_NORM}; /* the default of old files */
    const struct {
        const char *key;
        uint8_t flag;
    } flags[] = {{"lstrip", SL_TOKEN_FLAG_LSTRIP},
                 {"rstrip", SL_TOKEN_FLAG_RSTRIP},
                 {"single_word", SL_TOKEN_FLAG_WORD},
                 {"normalized", SL_TOKEN_FLAG_NORM}};
    (void)sl_json_enter_object(j);
    while (sl_json_next_key(j, &key)) {
        bool known = false;
        for (size_t i = 0; i < sizeof flags / sizeof flags[0] && !known; i++) {
            bool on = false;
            known = sl_json_text_is(&key, flags[i].key);
            if (known && sl_json_bool(j, &on)) {
                item->flag = (uint8_t)((item->flag & ~flags[i].flag) | (on ? flags[i].flag : 0));
            }
        }
        if (sl_json_text_is(&key, "id")) {
            (void)sl_json_int(j, &id);
        } else if (sl_json_text_is(&key, "content")) {
            has_content = sl_json_string(j, &item->content);
        } else if (sl_json_text_is(&key, "special")) {
            (void)sl_json_bool(j, &item->special);
        } else if (!known) {
            (void)sl_json_skip(j);
        }
    }
    if (j->failed) {
        return hf_broken(f, j);
    }
    if (id < 0 || id >= SL_MAX_VOCAB || !has_content) {
        return SL_FAIL(f->err, SL_EFORMAT, "%s: added_tokens: %s", f->name,
                       has_content ? "an id is missing or outside 0..4194303"
                                   : "a token without content");
    }
    item->id = (int32_t)id;
    return SL_OK;
}

static void hf_sink(hf_added *item, size_t i, size_t n) {
    const hf_added moved = item[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n) {
            break;
        }
        if (child + 1 < n && item[child].id < item[child + 1].id) {
            child++;
        }
        if (item[child].id <= moved.id) {
            break;
        }
        item[i] = item[child];
        i = child;
    }
    item[i] = moved;
}

static sl_status hf_read_added(hf_file *f, sl_ledger *ledger) {
    if (!f->has_added || sl_json_peek(&f->added) == SL_JSON_NULL) {
        return SL_OK;
    }
    size_t n = 0;
    sl_json j = f->added;
    (void)sl_json_enter_array(&j);
    while (sl_json_next_item(&j)) {
        (void)sl_json_skip(&j);
        n++;
    }
    if (j.failed) {
        return hf_broken(f, &j);
    }
    if (n > SL_MAX_VOCAB) {
        return SL_FAIL(f->err, SL_ELIMIT, "%s: %zu added tokens; %d is the limit", f->name, n,
                       SL_MAX_VOCAB);
    }
    void *p;
    SL_TRY(sl_alloc_zero(ledger, SL_ACCOUNT_TOKEN, n, sizeof *f->item, &p, "added tokens", f->err));
    f->item = p;
    f->cap_item = n;
    j = f->added;
    (void)sl_json_enter_array(&j);
    while (sl_json_next_item(&j)) {
        SL_TRY(hf_read_added_one(f, &j, &f->item[f->n_item]));
        f->n_item++;
    }
    for (size_t i = n / 2; i-- > 0;) {
        hf_sink(f->item, i, n);
    }
    for (size_t end = n; end-- > 1;) {
        const hf_added top = f->item[0];
        f->item[0] = f->item[end];
        f->item[end] = top;
        hf_sink(f->item, 0, end);
    }
    for (size_t i = 1; i < n; i++) {
        if (f->item[i].id == f->item[i - 1].id) {
            return SL_FAIL(f->err, SL_EFORMAT, "%s: added_tokens: id %d is used twice", f->name,
                           (int)f->item[i].id);
        }
    }
    return SL_OK;
}

static hf_added *hf_added_of(const hf_file *f, int64_t id) {
    size_t lo = 0;
    size_t hi = f->n_item;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (f->item[mid].id < id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < f->n_item && f->item[lo].id == id ? &f->item[lo] : NULL;
}

/* Is it looked for in the normalised text? Control tokens never are: in the text as it came, spans can keep them out. */
static bool hf_is_late(const hf_added *added) {
    return (added->flag & SL_TOKEN_FLAG_NORM) != 0 && !added->special;
}

/* ---- tokens ---- */

/* The bytes of a token (dst NULL: only how many), and its kind and flags. */
static size_t hf_token(const hf_file *f, const sl_vocab *v, const hf_added *added, const char *text,
                       size_t n, char *dst, uint8_t *kind, uint8_t *flag) {
    const sl_token_text form = f->byte_level ? SL_TOKEN_TEXT_ALPHA : SL_TOKEN_TEXT_MARK;
    bool plain = false;
    *kind = SL_TOKEN_NORMAL;
    *flag = 0;
    if (added != NULL) {
        *kind = added->special ? SL_TOKEN_CONTROL : SL_TOKEN_USER;
        *flag = (uint8_t)(added->flag | SL_TOKEN_FLAG_CUT | SL_TOKEN_FLAG_LITERAL);
        /* Merges may pass through a user-defined token if the model knows it by the same bytes. */
        bool same = added->in_vocab && !added->special;
        if (f->byte_level && same) {
            same = sl_token_undo(form, text, n, NULL, &plain) == n && !plain;
        }
        if (!same) {
            *flag |= SL_TOKEN_FLAG_UNLISTED;
        }
        /* Looked for after a space was put in front of the text, so that space is a part of it. */
        const size_t lead = hf_is_late(added) && f->prepend && n > 0 ? 1 : 0;
        if (lead > 0 && dst != NULL) {
            *dst++ = ' ';
        }
        return lead +
               sl_token_undo(f->byte_level ? SL_TOKEN_TEXT_PLAIN : form, text, n, dst, &plain);
    }
    const int byte = !f->byte_level && v->byte_fallback ? sl_token_byte_form(text, n) : -1;
    if (byte >= 0) {
        *kind = SL_TOKEN_BYTE;
        *flag = SL_TOKEN_FLAG_UNLISTED;
        if (dst != NULL) {
            dst[0] = (char)byte;
        }
        return 1;
    }
    const size_t n_out = sl_token_undo(form, text, n, dst, &plain);
    if (plain || (!f->byte_level && memchr(text, ' ', n) != NULL)) {
        *flag |= SL_TOKEN_FLAG_UNLISTED;
    }
    return n_out;
}

static bool hf_same_text(const sl_json_text *a, const char *b, size_t n_b) {
    char buf[SL_MAX_TOKEN_BYTES];
    const size_t n = sl_json_text_copy(a, buf, sizeof buf);
    return n == n_b && n <= sizeof buf && memcmp(buf, b, n) == 0;
}

/* The first walk: how many tokens, how many bytes; which added tokens the model has too. */
static sl_status hf_measure(hf_file *f, const sl_vocab *v, int32_t *n_token, size_t *n_bytes) {
    char text[SL_MAX_TOKEN_BYTES];
    size_t n_text;
    sl_json j = f->vocab;
    sl_json_text key;
    int64_t top = f->n_item > 0 ? f->item[f->n_item - 1].id : -1;
    size_t n_entry = f->n_item;
    uint8_t kind;
    uint8_t flag;
    *n_bytes = 0;
    (void)sl_json_enter_object(&j);
    while (sl_json_next_key(&j, &key)) {
        int64_t id;
        if (!sl_json_int(&j, &id)) {
            break;
        }
        if (id < 0 || id >= SL_MAX_VOCAB) {
            return SL_FAIL(f->err, SL_EFORMAT, "%s: vocab: id %lld is outside 0..%d", f->name,
                           (long long)id, SL_MAX_VOCAB - 1);
        }
        SL_TRY(hf_text(f, &key, text, &n_text));
        hf_added *added = hf_added_of(f, id);
        if (added == NULL) {
            *n_bytes += hf_token(f, v, NULL, text, n_text, NULL, &kind, &flag);
        } else if (hf_same_text(&added->content, text, n_text)) {
            added->in_vocab = true;
        } else {
            return SL_FAIL(f->err, SL_EFORMAT,
                           "%s: id %lld is one token in the vocabulary and another in added_tokens",
                           f->name, (long long)id);
        }
        top = id > top ? id : top;
        n_entry++;
    }
    if (j.failed) {
        return hf_broken(f, &j);
    }
    for (size_t i = 0; i < f->n_item; i++) {
        SL_TRY(hf_text(f, &f->item[i].content, text, &n_text));
        *n_bytes += hf_token(f, v, &f->item[i], text, n_text, NULL, &kind, &flag);
    }
    /* Ids may have holes, but a few tokens with huge ids are damage and would take memory for nothing. */
    if (n_entry == 0 || (uint64_t)top > (uint64_t)n_entry * 2 + 65536) {
        return SL_FAIL(f->err, SL_EFORMAT, "%s: %zu tokens with ids up to %lld", f->name, n_entry,
                       (long long)top);
    }
    *n_token = (int32_t)top + 1;
    return SL_OK;
}

/* The second and third walk: with fill false the length of each token goes to offset[id + 1], with fill true its bytes go
 * to their place. */
static sl_status hf_place(hf_file *f, sl_vocab *v, bool fill) {
    char text[SL_MAX_TOKEN_BYTES];
    size_t n_text;
    sl_json j = f->vocab;
    sl_json_text key;
    uint8_t kind;
    uint8_t flag;
    (void)sl_json_enter_object(&j);
    for (size_t i = 0; !j.failed;) {
        int64_t id = -1;
        const hf_added *added = NULL;
        /* All keys of the vocabulary, then the added tokens. */
        if (j.depth > f->vocab.depth && sl_json_next_key(&j, &key)) {
            if (!sl_json_int(&j, &id)) {
                break;
            }
            if (hf_added_of(f, id) != NULL) {
                continue;
            }
        } else if (!j.failed && i < f->n_item) {
            added = &f->item[i++];
            id = added->id;
            key = added->content;
        } else {
            break;
        }
        SL_TRY(hf_text(f, &key, text, &n_text));
        char *dst = fill ? v->bytes + v->offset[id] : NULL;
        const size_t n = hf_token(f, v, added, text, n_text, dst, &kind, &flag);
        if (!fill) {
            if (v->kind[id] != 0) {
                return SL_FAIL(f->err, SL_EFORMAT, "%s: vocab: id %lld is used twice", f->name,
                               (long long)id);
            }
            v->kind[id] = kind;
            v->flag[id] = flag;
            v->offset[id + 1] = (uint32_t)n;
        }
    }
    return j.failed ? hf_broken(f, &j) : SL_OK;
}

static sl_status hf_read_tokens(hf_file *f, sl_vocab *v) {
    int32_t n_token;
    size_t n_bytes;
    SL_TRY(hf_measure(f, v, &n_token, &n_bytes));
    SL_TRY(sl_vocab_reserve(v, n_token, n_bytes, false, f->err));
    SL_TRY(hf_place(f, v, false));
    for (int32_t id = 0; id < n_token; id++) {
        v->offset[id + 1] += v->offset[id];
        if (v->kind[id] == 0) { /* a hole */
            v->kind[id] = SL_TOKEN_UNUSED;
            v->flag[id] = SL_TOKEN_FLAG_UNLISTED;
        }
    }
    SL_TRY(hf_place(f, v, true));
    for (int32_t id = 0; id < n_token; id++) {
        if (v->kind[id] == SL_TOKEN_BYTE) {
            v->byte_id[(uint8_t)v->bytes[v->offset[id]]] = id;
        }
    }
    return SL_OK;
}

/* A name in the file to an id, or -1. */
static int32_t hf_find(const hf_file *f, const sl_vocab *v, const sl_json_text *name) {
    char text[SL_MAX_TOKEN_BYTES];
    char undone[SL_MAX_TOKEN_BYTES];
    bool plain;
    const size_t n = sl_json_text_copy(name, text, sizeof text);
    if (n > sizeof text) {
        return -1;
    }
    const int byte = !f->byte_level && v->byte_fallback ? sl_token_byte_form(text, n) : -1;
    if (byte >= 0 && v->byte_id[byte] >= 0) {
        return v->byte_id[byte];
    }
    const size_t k = sl_token_undo(f->byte_level ? SL_TOKEN_TEXT_ALPHA : SL_TOKEN_TEXT_MARK, text,
                                   n, undone, &plain);
    return plain ? -1 : sl_vocab_find(v, undone, k);
}

/* A token that is cut out of the text as it came: all control tokens are. */
static int32_t hf_find_cut(const sl_vocab *v, const sl_json_text *name) {
    char text[SL_MAX_TOKEN_BYTES];
    const size_t n = sl_json_text_copy(name, text, sizeof text);
    return n <= sizeof text ? sl_matcher_exact(&v->raw, text, n) : -1;
}

static sl_status hf_read_unk(hf_file *f, sl_vocab *v) {
    char shown[64];
    if (!f->has_unk) {
        return SL_OK;
    }
    v->id_unk = hf_find_cut(v, &f->unk);
    if (v->id_unk < 0) {
        v->id_unk = hf_find(f, v, &f->unk);
    }
    if (v->id_unk < 0) {
        return SL_FAIL(f->err, SL_EFORMAT, "%s: model: unk_token '%s' is no token", f->name,
                       hf_shown(&f->unk, shown, sizeof shown));
    }
    if (v->kind[v->id_unk] == SL_TOKEN_CONTROL) {
        v->kind[v->id_unk] = SL_TOKEN_UNKNOWN;
    }
    return SL_OK;
}

/* ---- merges ---- */

/* "a b" or ["a", "b"]; false: neither. */
static bool hf_merge_parts(sl_json *j, sl_json_text part[2]) {
    sl_json_text text;
    if (sl_json_peek(j) == SL_JSON_ARRAY) {
        int n = 0;
        (void)sl_json_enter_array(j);
        while (sl_json_next_item(j)) {
            if (n == 2 || !sl_json_string(j, &part[n])) {
                return false;
            }
            n++;
        }
        return n == 2;
    }
    if (!sl_json_string(j, &text) || text.n_raw < 3) {
        return false;
    }
    const char *space = memchr(text.raw + 1, ' ', text.n_raw - 1);
    if (space == NULL) {
        return false;
    }
    const size_t n_left = (size_t)(space - text.raw);
    part[0] = (sl_json_text){text.raw, n_left, text.escaped};
    part[1] = (sl_json_text){space + 1, text.n_raw - n_left - 1, text.escaped};
    return true;
}

static bool hf_has_space(const sl_json_text *text) {
    return memchr(text->raw, ' ', text->n_raw) != NULL;
}

static sl_status hf_merge_one(hf_file *f, sl_vocab *v, const sl_json_text part[2], size_t i_merge) {
    char shown[64];
    int32_t id[2];
    for (int i = 0; i < 2; i++) {
        id[i] = hf_find(f, v, &part[i]);
        if (id[i] < 0) {
            /* A merge of control tokens, or of a plain space that the text can't contain, can never happen. */
            if (hf_find_cut(v, &part[i]) >= 0 || (!f->byte_level && hf_has_space(&part[i]))) {
                return SL_OK;
            }
            return SL_FAIL(f->err, SL_EFORMAT, "%s: merge %zu: '%s' is no token of the vocabulary",
                           f->name, i_merge, hf_shown(&part[i], shown, sizeof shown));
        }
    }
    if (sl_vocab_add_merge(v, id[0], id[1])) {
        return SL_OK;
    }
    return SL_FAIL(f->err, SL_EFORMAT, "%s: merge %zu makes no token of the vocabulary", f->name,
                   i_merge);
}

static sl_status hf_read_merges(hf_file *f, sl_vocab *v) {
    size_t n = 0;
    sl_json j = f->merges;
    (void)sl_json_enter_array(&j);
    while (sl_json_next_item(&j)) {
        (void)sl_json_skip(&j);
        n++;
    }
    if (j.failed) {
        return hf_broken(f, &j);
    }
    SL_TRY(sl_vocab_reserve_merges(v, n, f->err));
    j = f->merges;
    (void)sl_json_enter_array(&j);
    for (size_t i = 0; sl_json_next_item(&j); i++) {
        sl_json_text part[2];
        if (!hf_merge_parts(&j, part)) {
            if (j.failed) {
                break;
            }
            return SL_FAIL(f->err, SL_EFORMAT, "%s: merge %zu is no pair of tokens", f->name, i);
        }
        SL_TRY(hf_merge_one(f, v, part, i));
    }
    if (j.failed) {
        return hf_broken(f, &j);
    }
    sl_vocab_index_merges(v, true);
    return SL_OK;
}

/* ---- matchers ---- */

/* The text that a token is looked for by: as written, or with norm set as the normaliser would have it. */
static sl_status hf_add_cuts(hf_file *f, const sl_vocab *v, sl_matcher *m, bool norm) {
    char text[SL_MAX_TOKEN_BYTES];
    char undone[SL_MAX_TOKEN_BYTES + 1];
    size_t n;
    size_t n_match = 0;
    size_t n_text = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < f->n_item; i++) {
            const hf_added *a = &f->item[i];
            if (hf_is_late(a) != norm) {
                continue;
            }
            SL_TRY(hf_text(f, &a->content, text, &n));
            const char *use = text;
            if (norm && v->space_mark) {
                bool plain;
                size_t lead = f->prepend && n > 0 ? 1 : 0;
                undone[0] = ' ';
                n = lead + sl_token_undo(SL_TOKEN_TEXT_MARK, text, n, undone + lead, &plain);
                use = undone;
            }
            if (pass == 0) {
                n_match++;
                n_text += n;
            } else {
                sl_matcher_add(m, use, n, a->id);
            }
        }
        if (pass == 0) {
            SL_TRY(sl_matcher_reserve(m, v->ledger, n_match, n_text, f->err));
        }
    }
    sl_matcher_sort(m);
    return SL_OK;
}

/* ---- all ---- */

static sl_status hf_choose_model(hf_file *f, sl_vocab *v) {
    if (f->byte_level) {
        v->model = &sl_token_model_bpe;
        if (v->space_mark || f->prepend) {
            return SL_FAIL(f->err, SL_ENOTSUP,
                           "%s: a ByteLevel pre_tokenizer after a normalizer that changes spaces "
                           "is not supported",
                           f->name);
        }
        v->skip_missing = true;
        v->pre = sl_pre_find_stages(f->stage, f->n_stage);
        if (v->pre == NULL && f->n_stage > 0) {
            return SL_FAIL(f->err, SL_ENOTSUP,
                           "%s: pre_tokenizer: this sequence of %d stages is not supported",
                           f->name, (int)f->n_stage);
        }
        return SL_OK;
    }
    v->model = &sl_token_model_spm;
    if (f->n_stage > 0 || !v->space_mark) {
        return SL_FAIL(f->err, SL_ENOTSUP,
                       "%s: BPE with neither a ByteLevel pre_tokenizer nor SentencePiece's spaces "
                       "is not supported",
                       f->name);
    }
    return SL_OK;
}

static sl_status hf_policy(hf_file *f, sl_vocab *v, const sl_container *side) {
    if (side != NULL) {
        /* A file without a template leaves BOS to the model file, whose word rule implies one or not. */
        v->add_bos = !f->has_template && v->pre != NULL && v->pre->add_bos &&
                     sl_meta_find(side, "tokenizer.ggml.bos_token_id") != NULL;
        SL_TRY(sl_vocab_load_policy(v, side, f->err));
    }
    if (!f->has_template) {
        return SL_OK;
    }
    v->add_bos = f->id_template_bos >= 0;
    v->add_eos = f->id_template_eos >= 0;
    if (f->id_template_bos >= v->n_token || f->id_template_eos >= v->n_token) {
        return SL_FAIL(f->err, SL_EFORMAT, "%s: post_processor: an id is outside the vocabulary",
                       f->name);
    }
    v->id_bos = v->add_bos ? f->id_template_bos : v->id_bos;
    v->id_eos = v->add_eos ? f->id_template_eos : v->id_eos;
    return SL_OK;
}

static sl_status hf_load(hf_file *f, sl_vocab *v, const void *json, size_t n_json,
                         const sl_container *side) {
    SL_TRY(hf_find_parts(f, json, n_json));
    SL_TRY(hf_read_model(f, v));
    SL_TRY(hf_read_normalizer(f, v));
    SL_TRY(hf_read_pre_tokenizer(f, v));
    SL_TRY(hf_read_post_processor(f));
    SL_TRY(hf_read_decoder(f, v));
    SL_TRY(hf_choose_model(f, v));
    SL_TRY(hf_read_added(f, v->ledger));
    SL_TRY(hf_read_tokens(f, v));
    SL_TRY(hf_policy(f, v, side));
    sl_vocab_mark_eog(v);
    SL_TRY(sl_vocab_index(v, f->err));
    SL_TRY(hf_add_cuts(f, v, &v->raw, false));
    SL_TRY(hf_add_cuts(f, v, &v->norm, true));
    SL_TRY(hf_read_unk(f, v));
    if (f->byte_level) {
        for (int byte = 0; byte < 256; byte++) {
            const char text = (char)byte;
            v->byte_id[byte] = sl_vocab_find(v, &text, 1);
        }
    }
    return hf_read_merges(f, v);
}

sl_status sl_vocab_load_json(sl_vocab *v, const void *json, size_t n_json, const char *name,
                             const sl_container *side, sl_error *err) {
    hf_file f;
    memset(&f, 0, sizeof f);
    f.name = name != NULL ? name : "tokenizer.json";
    f.err = err;
    const sl_status status = hf_load(&f, v, json, n_json, side);
    sl_release(v->ledger, SL_ACCOUNT_TOKEN, f.item, f.cap_item * sizeof *f.item);
    return status;
}
