/* chat.h - chat templates recognised from the model's own template source, without executing it.
 *
 * Each form is one row of chats.def: how to recognise it in the template source, and how it renders. The full template
 * language is a module of its own, later. Recognition reads the whole source (chat_match.h): a template that differs
 * in anything that could show in the text matches no row, and a caller reports SL_ENOTSUP.
 *
 * Rendering is into a growing text with the spans that came from messages, so that the tokenizer can be told where
 * control tokens must not be recognised. */
#ifndef SL_TOKEN_CHAT_H
#define SL_TOKEN_CHAT_H

#include "token/tokenizer.h"

typedef struct sl_chat_text {
    sl_ledger *ledger;
    char *text; /* account misc */
    size_t n_text, cap_text;
    sl_text_span *span; /* parts that are message content */
    size_t n_span, cap_span;
} sl_chat_text;

typedef struct sl_chat_form {
    const char *name; /* "chatml" */
    bool (*recognise)(const char *source, size_t n_source);
    sl_status (*render)(sl_chat_text *out, const char *source, size_t n_source,
                        const sl_message *messages, size_t n_message, bool add_generation_prompt,
                        sl_error *err);
    bool
        renders_bos; /* the text begins with the BOS token's text: the tokenizer must not add another */
} sl_chat_form;

/* NULL: none recognises the source. */
const sl_chat_form *sl_chat_find(const char *source, size_t n_source);

void sl_chat_text_init(sl_chat_text *out, sl_ledger *ledger);
void sl_chat_text_done(sl_chat_text *out);
/* Append literal text of the template / content of a message. */
sl_status sl_chat_put(sl_chat_text *out, const char *text, sl_error *err);
sl_status sl_chat_put_content(sl_chat_text *out, const char *text, size_t n, sl_error *err);

/* Check the messages (roles, counts, lengths) and render. SL_EINVAL names the message by number. */
sl_status sl_chat_render_form(const sl_chat_form *form, sl_chat_text *out, const char *source,
                              size_t n_source, const sl_message *messages, size_t n_message,
                              bool add_generation_prompt, sl_error *err);

#endif
