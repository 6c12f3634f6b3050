/* hf_vocab.c - the tokens and merges of a tokenizer.json.
 *
 * The vocabulary is walked three times (how much, where each token goes, its text), the merges twice. So loading costs
 * the finished tables and the list of added tokens, whatever the size of the file.
 *
 *     vocab         {text: id}        in any order, with holes; texts in GPT-2's alphabet or with U+2581 for spaces
 *     added_tokens  [{id, content}]   literal; some are in the vocabulary too, under the same id
 *
 * Threads: none of its own.
 * Not here: where the parts of the file are (hf_json.c). */
#include <string.h>

#include "base/error.h"
#include "token/hf_own.h"
#include "token/vocab_model.h"

/* A copy of the text in buf, at most SL_MAX_TOKEN_BYTES. */
static sl_status hf_text(const sl_hf_file *f, const sl_json_text *text, char *buf, size_t *n) {
    *n = sl_json_text_copy(text, buf, SL_MAX_TOKEN_BYTES);
    if (*n > SL_MAX_TOKEN_BYTES) {
        return SL_FAIL(f->err, SL_ELIMIT, "%s: a token has %zu bytes; %d is the limit", f->name, *n,
                       SL_MAX_TOKEN_BYTES);
    }
    return SL_OK;
}

/* ---- added tokens ---- */

static sl_status hf_read_added_one(const sl_hf_file *f, sl_json *j, sl_hf_added *item) {
    sl_json_text key;
    int64_t id = -1;
    bool has_content = false;
    *item = (sl_hf_added){.flag = SL_TOKEN_FLAG_NORM}; /* the default of old files */
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
        return sl_hf_broken(f, j);
    }
    if (id < 0 || id >= SL_MAX_VOCAB || !has_content) {
        return SL_FAIL(f->err, SL_EFORMAT, "%s: added_tokens: %s", f->name,
                       has_content ? "an id is missing or outside 0..4194303"
                                   : "a token without content");
    }
    item->id = (int32_t)id;
    return SL_OK;
}

static void hf_sink(sl_hf_added *item, size_t i, size_t n) {
    const sl_hf_added moved = item[i];
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

sl_status sl_hf_read_added(sl_hf_file *f, sl_ledger *ledger) {
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
        return sl_hf_broken(f, &j);
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
        const sl_hf_added top = f->item[0];
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

static sl_hf_added *hf_added_of(const sl_hf_file *f, int64_t id) {
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
static bool hf_is_late(const sl_hf_added *added) {
    return (added->flag & SL_TOKEN_FLAG_NORM) != 0 && !added->special;
}

/* ---- tokens ---- */

/* The bytes of a token (dst NULL: only how many), and its kind and flags. */
static size_t hf_token(const sl_hf_file *f, const sl_vocab *v, const sl_hf_added *added,
                       const char *text, size_t n, char *dst, uint8_t *kind, uint8_t *flag) {
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
static sl_status hf_measure(sl_hf_file *f, const sl_vocab *v, int32_t *n_token, size_t *n_bytes) {
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
        sl_hf_added *added = hf_added_of(f, id);
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
        return sl_hf_broken(f, &j);
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
static sl_status hf_place(sl_hf_file *f, sl_vocab *v, bool fill) {
    char text[SL_MAX_TOKEN_BYTES];
    size_t n_text;
    sl_json j = f->vocab;
    sl_json_text key;
    uint8_t kind;
    uint8_t flag;
    (void)sl_json_enter_object(&j);
    for (size_t i = 0; !j.failed;) {
        int64_t id = -1;
        const sl_hf_added *added = NULL;
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
    return j.failed ? sl_hf_broken(f, &j) : SL_OK;
}

sl_status sl_hf_read_tokens(sl_hf_file *f, sl_vocab *v) {
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
static int32_t hf_find(const sl_hf_file *f, const sl_vocab *v, const sl_json_text *name) {
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

sl_status sl_hf_read_unk(sl_hf_file *f, sl_vocab *v) {
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
                       sl_hf_shown(&f->unk, shown, sizeof shown));
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

static sl_status hf_merge_one(sl_hf_file *f, sl_vocab *v, const sl_json_text part[2],
                              size_t i_merge) {
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
                           f->name, i_merge, sl_hf_shown(&part[i], shown, sizeof shown));
        }
    }
    if (sl_vocab_add_merge(v, id[0], id[1])) {
        return SL_OK;
    }
    return SL_FAIL(f->err, SL_EFORMAT, "%s: merge %zu makes no token of the vocabulary", f->name,
                   i_merge);
}

sl_status sl_hf_read_merges(sl_hf_file *f, sl_vocab *v) {
    size_t n = 0;
    sl_json j = f->merges;
    (void)sl_json_enter_array(&j);
    while (sl_json_next_item(&j)) {
        (void)sl_json_skip(&j);
        n++;
    }
    if (j.failed) {
        return sl_hf_broken(f, &j);
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
        return sl_hf_broken(f, &j);
    }
    sl_vocab_index_merges(v, true);
    return SL_OK;
}

/* ---- matchers ---- */

/* The text that a token is looked for by: as written, or with norm set as the normaliser would have it. */
sl_status sl_hf_add_cuts(sl_hf_file *f, const sl_vocab *v, sl_matcher *m, bool norm) {
    char text[SL_MAX_TOKEN_BYTES];
    char undone[SL_MAX_TOKEN_BYTES + 1];
    size_t n;
    size_t n_match = 0;
    size_t n_text = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < f->n_item; i++) {
            const sl_hf_added *a = &f->item[i];
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
