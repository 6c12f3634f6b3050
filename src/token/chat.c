/* chat.c - finding the form of a template, checking a conversation, and the text that rendering grows.
 *
 * The BOS token is never rendered: the tokenizer puts it, by the model's own policy, exactly once.
 *
 * Invariants  spans are sorted and disjoint; what came from a message lies inside one, so that the tokenizer sees no
 *             control token in it.
 * Threads     one at a time for one sl_chat_text; finding a form has no state.
 * Not here    reading templates (chat_match.c), the forms (chat_<form>.c). */
#include "token/chat.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/utf8.h"
#include "token/chat_match.h"

#define X(name) extern const sl_chat_form sl_chat_form_##name;
#include "token/chats.def"
#undef X

static const sl_chat_form *const chat_form[] = {
#define X(name) &sl_chat_form_##name,
#include "token/chats.def"
#undef X
};

const sl_chat_form *sl_chat_find(const char *source, size_t n_source) {
    /* Carriage returns would be line breaks, at places where the forms' readers see none: refused rather than read
     * wrongly. */
    if (source == NULL || memchr(source, '\0', n_source) != NULL ||
        memchr(source, '\r', n_source) != NULL) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof chat_form / sizeof *chat_form; i++) {
        if (chat_form[i]->recognise(source, n_source)) {
            return chat_form[i];
        }
    }
    return NULL;
}

void sl_chat_text_init(sl_chat_text *out, sl_ledger *ledger) {
    memset(out, 0, sizeof *out);
    out->ledger = ledger;
}

void sl_chat_text_done(sl_chat_text *out) {
    sl_release(out->ledger, SL_ACCOUNT_MISC, out->text, out->cap_text);
    sl_release(out->ledger, SL_ACCOUNT_MISC, out->span, out->cap_span * sizeof *out->span);
    sl_chat_text_init(out, out->ledger);
}

static sl_status chat_append(sl_chat_text *out, const char *text, size_t n, sl_error *err) {
    size_t need, cap;
    if (!sl_add_size(out->n_text, n, &need) || !sl_mul_size(need, 2, &cap) ||
        need > SL_MAX_TEXT_BYTES) {
        return SL_FAIL(err, SL_ELIMIT, "the conversation has more than %zu bytes of text",
                       SL_MAX_TEXT_BYTES);
    }
    if (need > out->cap_text) {
        cap = cap < 1024 ? 1024 : cap;
        void *p = out->text;
        SL_TRY(sl_resize(out->ledger, SL_ACCOUNT_MISC, &p, out->cap_text, cap, "chat text", err));
        out->text = (char *)p;
        out->cap_text = cap;
    }
    if (n > 0) {
        memcpy(out->text + out->n_text, text, n);
    }
    out->n_text = need;
    return SL_OK;
}

sl_status sl_chat_put(sl_chat_text *out, const char *text, sl_error *err) {
    return chat_append(out, text, strlen(text), err);
}

sl_status sl_chat_put_content(sl_chat_text *out, const char *text, size_t n, sl_error *err) {
    if (n == 0) {
        return SL_OK;
    }
    if (out->n_span == out->cap_span) { /* room first, so that no content is ever without a span */
        const size_t cap = out->cap_span < 8 ? 16 : out->cap_span * 2;
        void *p = out->span;
        SL_TRY(sl_resize(out->ledger, SL_ACCOUNT_MISC, &p, out->cap_span * sizeof *out->span,
                         cap * sizeof *out->span, "chat spans", err));
        out->span = (sl_text_span *)p;
        out->cap_span = cap;
    }
    const size_t begin = out->n_text;
    SL_TRY(chat_append(out, text, n, err));
    if (out->n_span > 0 && out->span[out->n_span - 1].end == begin) {
        out->span[out->n_span - 1].end = out->n_text;
    } else {
        out->span[out->n_span++] = (sl_text_span){.begin = begin, .end = out->n_text};
    }
    return SL_OK;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    sl_chat_role role;
} chat_role_row[] = {
    {"system", SL_CHAT_SYSTEM},
    {"user", SL_CHAT_USER},
    {"assistant", SL_CHAT_ASSISTANT},
    {"developer", SL_CHAT_SYSTEM},
};

enum { CHAT_N_ROLE = sizeof chat_role_row / sizeof *chat_role_row };

static size_t chat_role_find(const char *name) {
    size_t i = 0;
    while (i < CHAT_N_ROLE && strcmp(chat_role_row[i].name, name) != 0) {
        i++;
    }
    return i;
}

sl_chat_role sl_chat_role_of(const sl_message *message) {
    const size_t i = chat_role_find(message->role);
    return i < CHAT_N_ROLE ? chat_role_row[i].role : SL_CHAT_USER;
}

const char *sl_chat_role_name(sl_chat_role role) { return chat_role_row[role].name; }

sl_status sl_chat_put_message(sl_chat_text *out, const sl_message *message, sl_error *err) {
    return sl_chat_put_content(out, message->content, message->n_content, err);
}

/* What Python's str.isspace says of one character. */
static bool chat_is_blank(uint32_t c) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

sl_status sl_chat_put_trimmed(sl_chat_text *out, const sl_message *message, sl_error *err) {
    const uint8_t *const p = (const uint8_t *)message->content;
    size_t begin = 0, end = message->n_content, len;
    while (begin < end && chat_is_blank(sl_utf8_next(p + begin, end - begin, &len))) {
        begin += len;
    }
    while (end > begin) { /* back over the bytes of one character */
        size_t k = 1;
        while (k < 4 && k < end - begin && (p[end - k] & 0xC0) == 0x80) {
            k++;
        }
        if (!chat_is_blank(sl_utf8_next(p + end - k, k, &len)) || len != k) {
            break;
        }
        end -= k;
    }
    return sl_chat_put_content(out, end > begin ? message->content + begin : NULL, end - begin,
                               err);
}

sl_status sl_chat_check_turns(const sl_message *messages, size_t n_message, size_t i_first,
                              bool later_system, sl_error *err) {
    if (i_first >= n_message) {
        return SL_FAIL(err, SL_EINVAL,
                       "the conversation has no user message: this model's chat form needs one "
                       "after the system text");
    }
    for (size_t i = i_first; i < n_message; i++) {
        const sl_chat_role due = (i - i_first) % 2 == 0 ? SL_CHAT_USER : SL_CHAT_ASSISTANT;
        const sl_chat_role role = sl_chat_role_of(&messages[i]);
        if (role != due && !(later_system && role == SL_CHAT_SYSTEM && due == SL_CHAT_ASSISTANT)) {
            return SL_FAIL(err, SL_EINVAL,
                           "message %zu has the role '%s' where this model's chat form has a place "
                           "for '%s' only: after an optional system message, user and assistant "
                           "take turns",
                           i, messages[i].role, sl_chat_role_name(due));
        }
    }
    return SL_OK;
}

sl_status sl_chat_render_form(const sl_chat_form *form, sl_chat_text *out, const char *source,
                              size_t n_source, const sl_message *messages, size_t n_message,
                              bool add_generation_prompt, sl_error *err) {
    if (n_message == 0 || messages == NULL) {
        return SL_FAIL(err, SL_EINVAL, "the conversation has no messages");
    }
    if (n_message > SL_MAX_MESSAGE) {
        return SL_FAIL(err, SL_ELIMIT, "the conversation has %zu messages: at most %d are possible",
                       n_message, SL_MAX_MESSAGE);
    }
    for (size_t i = 0; i < n_message; i++) {
        const sl_message *const m = &messages[i];
        if (m->role == NULL || chat_role_find(m->role) == CHAT_N_ROLE) {
            return SL_FAIL(err, SL_EINVAL,
                           "message %zu has the role '%.40s': must be system, developer, user or "
                           "assistant",
                           i, m->role != NULL ? m->role : "");
        }
        if (m->content == NULL && m->n_content > 0) {
            return SL_FAIL(err, SL_EINVAL, "message %zu has a length but no content", i);
        }
    }
    return form->render(out, source, n_source, messages, n_message, add_generation_prompt, err);
}
