/* tokenizer_encode.c - a text becomes ids: cut out whole tokens, make the rest look as the vocabulary does, hand each
 * piece to the algorithm.
 *
 *     "<s>Hello world<tool>"      raw matcher: control and user-defined tokens, longest at the leftmost place
 *      ^^^           ^^^^^^
 *         "Hello world"           a piece: NFC, U+2581 to space, a space in front, as the file says
 *                                 norm matcher: tokens that are looked for after that
 *         "Hello", " world"       the algorithm's own business
 *
 * What a user wrote (spans) never becomes a control token: a match counts only if it lies wholly outside all spans. The
 * text is cut into pieces and words as a whole all the same, so spans do not change any other token.
 *
 * Threads: all state is on the stack and in blocks of the ledger that live for the call.
 * Not here: the algorithms (bpe.c, spm.c), words (pre.c). */
#include <string.h>

#include "base/error.h"
#include "base/unicode.h"
#include "base/utf8.h"
#include "token/tokenizer_own.h"
#include "token/vocab_model.h"

typedef struct encode_call {
    const sl_vocab *v;
    sl_encoder e;
    const char *text;
    size_t n_text;
    bool no_special;
    const sl_text_span *span;
    size_t n_span, i_span; /* spans before i_span end at or before `at` */
    size_t at;             /* where a match is tried */
    char *buffer[2];       /* a piece as the vocabulary has it; the same with a space in front */
    size_t cap_buffer[2];
} encode_call;

/* ---- which matches count ---- */

/* \w of the regular expressions that the format was made with: letters and what counts as such (numbers of letters,
 * letters in circles and squares), marks, digits, connectors, and the two joiners. */
static bool encode_is_word(uint32_t code) {
    const uint32_t kind = sl_unicode_class_of(code);
    if ((kind & SL_CLASS_NUMBER) != 0) {
        return sl_unicode_category_of(code) != SL_UNICODE_NO;
    }
    return (kind & (SL_CLASS_LETTER | SL_CLASS_MARK | SL_CLASS_CONNECTOR)) != 0 || code == 0x200C ||
           code == 0x200D || (code >= 0x24B6 && code <= 0x24E9) ||
           (code >= 0x1F130 && code <= 0x1F149) || (code >= 0x1F150 && code <= 0x1F169) ||
           (code >= 0x1F170 && code <= 0x1F189);
}

/* The character that ends right before `at`; at > 0. */
static uint32_t encode_char_before(const char *text, size_t at) {
    size_t begin = at - 1;
    for (int i = 0; i < 3 && begin > 0 && ((uint8_t)text[begin] & 0xC0) == 0x80; i++) {
        begin--;
    }
    size_t len;
    const uint32_t code = sl_utf8_next((const uint8_t *)text + begin, at - begin, &len);
    return len == at - begin ? code : 0xFFFD;
}

static bool encode_stands_alone(const char *text, size_t n, size_t begin, size_t end) {
    size_t len;
    return (begin == 0 || !encode_is_word(encode_char_before(text, begin))) &&
           (end >= n || !encode_is_word(sl_utf8_next((const uint8_t *)text + end, n - end, &len)));
}

static bool encode_counts(const void *user, int32_t id, size_t n) {
    const encode_call *c = user;
    const sl_vocab *v = c->v;
    if (v->kind[id] == SL_TOKEN_CONTROL || v->kind[id] == SL_TOKEN_UNKNOWN) {
        if (c->no_special || (c->i_span < c->n_span && c->span[c->i_span].begin < c->at + n)) {
            return false;
        }
    }
    return (v->flag[id] & SL_TOKEN_FLAG_WORD) == 0 ||
           encode_stands_alone(c->text, c->n_text, c->at, c->at + n);
}

/* The same for a normalised piece, whose tokens are never control tokens. */
typedef struct encode_norm {
    const sl_vocab *v;
    const char *text;
    size_t n, at;
} encode_norm;

static bool encode_norm_counts(const void *user, int32_t id, size_t n) {
    const encode_norm *c = user;
    return (c->v->flag[id] & SL_TOKEN_FLAG_WORD) == 0 ||
           encode_stands_alone(c->text, c->n, c->at, c->at + n);
}

/* In a piece whose spaces stand for U+2581, which is no white space, they are none. */
static bool encode_is_space(uint32_t code, bool marked) {
    return (sl_unicode_class_of(code) & SL_CLASS_SPACE) != 0 && !(marked && code == ' ');
}

/* White space around a match that belongs to its token. */
static void encode_strip(uint8_t flag, bool marked, const char *text, size_t n, size_t least,
                         size_t *begin, size_t *end) {
    while ((flag & SL_TOKEN_FLAG_LSTRIP) != 0 && *begin > least) {
        const uint32_t code = encode_char_before(text, *begin);
        uint8_t bytes[4];
        const size_t len = sl_utf8_put(code, bytes);
        if (!encode_is_space(code, marked) || *begin - least < len) {
            break;
        }
        *begin -= len;
    }
    while ((flag & SL_TOKEN_FLAG_RSTRIP) != 0 && *end < n) {
        size_t len;
        const uint32_t code = sl_utf8_next((const uint8_t *)text + *end, n - *end, &len);
        if (!encode_is_space(code, marked)) {
            break;
        }
        *end += len;
    }
}

/* ---- pieces ---- */

static sl_status encode_room(encode_call *c, int which, size_t n) {
    if (n <= c->cap_buffer[which]) {
        return SL_OK;
    }
    sl_release(c->v->ledger, SL_ACCOUNT_TOKEN, c->buffer[which], c->cap_buffer[which]);
    c->buffer[which] = NULL;
    c->cap_buffer[which] = 0;
    void *p;
    SL_TRY(sl_alloc(c->v->ledger, SL_ACCOUNT_TOKEN, n, &p, "text of a piece", c->e.err));
    c->buffer[which] = p;
    c->cap_buffer[which] = n;
    return SL_OK;
}

static bool encode_wants_space(const sl_vocab *v, const char *text, size_t n, bool at_start) {
    if (n == 0 || v->prefix == SL_PREFIX_NONE || (v->prefix == SL_PREFIX_FIRST && !at_start)) {
        return false;
    }
    return !v->prefix_if_absent || text[0] != ' ';
}

/* A piece whose normalised tokens are cut out. */
static sl_status encode_part(encode_call *c, const char *text, size_t n, bool at_start) {
    if (n == 0) {
        return SL_OK;
    }
    if (c->v->prefix_late && encode_wants_space(c->v, text, n, at_start)) {
        SL_TRY(encode_room(c, 1, n + 1));
        c->buffer[1][0] = ' ';
        memcpy(c->buffer[1] + 1, text, n);
        text = c->buffer[1];
        n++;
    }
    return c->v->model->encode(&c->e, text, n);
}

static sl_status encode_parts(encode_call *c, const char *text, size_t n, bool at_start) {
    if (c->v->norm.n == 0) {
        return encode_part(c, text, n, at_start);
    }
    encode_norm norm = {.v = c->v, .text = text, .n = n, .at = 0};
    size_t begin = 0;
    while (norm.at < n) {
        size_t n_match = 0;
        const int32_t id = sl_matcher_find(&c->v->norm, text + norm.at, n - norm.at,
                                           encode_norm_counts, &norm, &n_match);
        if (id < 0) {
            norm.at++;
            continue;
        }
        size_t cut = norm.at;
        size_t end = norm.at + n_match;
        encode_strip(c->v->flag[id], c->v->space_mark, text, n, begin, &cut, &end);
        SL_TRY(encode_part(c, text + begin, cut - begin, at_start && begin == 0));
        sl_encoder_put(&c->e, id);
        begin = norm.at = end;
    }
    return encode_part(c, text + begin, n - begin, at_start && begin == 0);
}

/* U+2581 becomes a space, and a space comes in front where the file wants one. */
static sl_status encode_marked(encode_call *c, const char *text, size_t n, bool at_start) {
    const sl_vocab *v = c->v;
    bool plain;
    SL_TRY(encode_room(c, 0, n + 1));
    char *out = c->buffer[0];
    const size_t n_out = v->space_mark
                             ? sl_token_undo(SL_TOKEN_TEXT_MARK, text, n, out + 1, &plain)
                             : sl_token_undo(SL_TOKEN_TEXT_PLAIN, text, n, out + 1, &plain);
    out[0] = ' ';
    const bool prefix = !v->prefix_late && encode_wants_space(v, out + 1, n_out, at_start);
    return encode_parts(c, prefix ? out : out + 1, n_out + (prefix ? 1 : 0), at_start);
}

static sl_status encode_piece(encode_call *c, size_t begin, size_t end) {
    const sl_vocab *v = c->v;
    const char *text = c->text + begin;
    size_t n = end - begin;
    if (n == 0) {
        return SL_OK;
    }
    char *nfc = NULL;
    size_t cap_nfc = 0;
    if (v->nfc) {
        size_t n_nfc;
        SL_TRY(
            sl_unicode_nfc(v->ledger, SL_ACCOUNT_TOKEN, text, n, &nfc, &n_nfc, &cap_nfc, c->e.err));
        text = nfc != NULL ? nfc : text;
        n = n_nfc;
    }
    const bool as_is = !v->space_mark && (v->prefix == SL_PREFIX_NONE || v->prefix_late);
    const sl_status status =
        as_is ? encode_parts(c, text, n, begin == 0) : encode_marked(c, text, n, begin == 0);
    sl_release(v->ledger, SL_ACCOUNT_TOKEN, nfc, cap_nfc);
    return status;
}

static sl_status encode_all(encode_call *c, bool bos) {
    const sl_vocab *v = c->v;
    size_t begin = 0;
    while (c->at < c->n_text) {
        while (c->i_span < c->n_span && c->span[c->i_span].end <= c->at) {
            c->i_span++;
        }
        size_t n_match = 0;
        const int32_t id = sl_matcher_find(&v->raw, c->text + c->at, c->n_text - c->at,
                                           encode_counts, c, &n_match);
        if (id < 0) {
            c->at++;
            continue;
        }
        size_t cut = c->at;
        size_t end = c->at + n_match;
        encode_strip(v->flag[id], false, c->text, c->n_text, begin, &cut, &end);
        SL_TRY(encode_piece(c, begin, cut));
        /* A text that brings its own BOS gets no second one. */
        if (!(bos && c->at == 0 && id == v->id_bos)) {
            sl_encoder_put(&c->e, id);
        }
        begin = c->at = end;
    }
    return encode_piece(c, begin, c->n_text);
}

static sl_status encode_check(size_t n_text, const sl_text_span *spans, size_t n_span,
                              sl_error *err) {
    if (n_text > SL_MAX_TEXT_BYTES) {
        return SL_FAIL(err, SL_ELIMIT, "a text of %zu bytes; %zu is the limit", n_text,
                       SL_MAX_TEXT_BYTES);
    }
    for (size_t i = 0; i < n_span; i++) {
        if (spans[i].begin > spans[i].end || spans[i].end > n_text ||
            (i > 0 && spans[i].begin < spans[i - 1].end)) {
            return SL_FAIL(err, SL_EINVAL,
                           "span %zu of the text (bytes %zu to %zu of %zu) is not in order", i,
                           spans[i].begin, spans[i].end, n_text);
        }
    }
    return SL_OK;
}

sl_status sl_tokenizer_encode(const sl_tokenizer *t, const char *text, size_t n_text,
                              uint32_t flags, const sl_text_span *spans, size_t n_span,
                              int32_t *ids, size_t cap, size_t *n_out, sl_error *err) {
    const sl_vocab *v = &t->vocab;
    SL_TRY(encode_check(n_text, spans, n_span, err));
    encode_call c = {
        .v = v,
        .e = {.v = v, .ids = ids, .cap = ids != NULL ? cap : 0, .err = err},
        .text = text,
        .n_text = n_text,
        .no_special = (flags & SL_TOKENIZE_NO_SPECIAL) != 0,
        .span = spans,
        .n_span = n_span,
    };
    const bool ends = (flags & SL_TOKENIZE_NO_BOS) == 0;
    const bool bos = ends && v->add_bos;
    if (bos) {
        sl_encoder_put(&c.e, v->id_bos);
    }
    const sl_status status = encode_all(&c, bos);
    if (status == SL_OK && ends && v->add_eos) {
        sl_encoder_put(&c.e, v->id_eos);
    }
    sl_release(v->ledger, SL_ACCOUNT_TOKEN, c.e.symbol, c.e.cap_symbol * sizeof *c.e.symbol);
    sl_release(v->ledger, SL_ACCOUNT_TOKEN, c.e.job, c.e.cap_job * sizeof *c.e.job);
    sl_release(v->ledger, SL_ACCOUNT_TOKEN, c.buffer[0], c.cap_buffer[0]);
    sl_release(v->ledger, SL_ACCOUNT_TOKEN, c.buffer[1], c.cap_buffer[1]);
    SL_TRY(status);
    *n_out = c.e.n;
    if (ids != NULL && c.e.n > cap) {
        return SL_FAIL(err, SL_ELIMIT, "the text has %zu tokens; there is room for %zu", c.e.n,
                       cap);
    }
    return SL_OK;
}
