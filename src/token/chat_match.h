/* chat_match.h - is this template, spelling aside, that one?
 *
 * A form's variants are written down as templates themselves. Source and pattern are read as units in which the
 * spellings of one meaning are the same:
 *
 *     white space and '-' of tags; the trimming that block tags do to the text around them; comments
 *     "a" and 'a'; '\n' and a line break inside quotes; message['role'] and message.role
 *     'a' + 'b', 'a' ~ 'b', {{ 'a' }}{{ 'b' }} and plain text between tags
 *
 * and must be equal from the first unit to the last, so that nothing in a source can have gone unnoticed. A pattern may
 * have holes: SL_CHAT_ANY stands for any units (branches that are taken only with tools), SL_CHAT_TEXT for any literal
 * text, which is captured (a default system prompt, a date).
 *
 * Whitespace is as Hugging Face renders it: trim_blocks and lstrip_blocks on.
 *
 * Threads: no state.
 * Not here: evaluating a template. */
#ifndef SL_TOKEN_CHAT_MATCH_H
#define SL_TOKEN_CHAT_MATCH_H

#include "token/chat.h"

#define SL_CHAT_ANY "\x01"
#define SL_CHAT_TEXT "\x02"
#define SL_CHAT_MAX_CAPTURE 4

/* A position in a template. */
typedef struct sl_chat_lex {
    const char *text;
    size_t size, at;
    size_t end_text;  /* of the plain text that is being read; trimmed */
    size_t at_tag;    /* the tag after it */
    size_t end_index; /* the closing quote of a ['name'] that is read as .name; 0: none */
    uint8_t mode, back;
    char quote, last;
    bool word;     /* the last unit was a letter, digit or '_' of code */
    bool plus;     /* a '+' after code, to be told if code follows */
    bool sum;      /* after a '+', before what it adds */
    bool is_code;  /* the last unit was code in an output tag */
    bool is_holes; /* a pattern */
} sl_chat_lex;

typedef struct sl_chat_capture {
    sl_chat_lex begin;
    size_t n_unit;
} sl_chat_capture;

typedef struct sl_chat_variant {
    const char *pattern;
    uint32_t flags; /* the form's own */
} sl_chat_variant;

/* The first of n variants that the source is; NULL: none. captures may be NULL: [SL_CHAT_MAX_CAPTURE]. */
const sl_chat_variant *sl_chat_match(const sl_chat_variant *variants, size_t n, const char *source,
                                     size_t n_source, sl_chat_capture *captures);
/* Append captured text, as text of the template. */
sl_status sl_chat_put_capture(sl_chat_text *out, const sl_chat_capture *capture, sl_error *err);

/* ---- what the forms share (chat.c) ---- */

typedef enum sl_chat_role { SL_CHAT_SYSTEM, SL_CHAT_USER, SL_CHAT_ASSISTANT } sl_chat_role;

/* Of a message that sl_chat_render_form has checked; "developer" is system. */
sl_chat_role sl_chat_role_of(const sl_message *message);
const char *sl_chat_role_name(sl_chat_role role);
/* Append a message's content without white space at its ends, as Python's str.strip. */
sl_status sl_chat_put_trimmed(sl_chat_text *out, const sl_message *message, sl_error *err);
sl_status sl_chat_put_message(sl_chat_text *out, const sl_message *message, sl_error *err);
/* User, assistant, user, ... from message i_first on; SL_EINVAL names the message that breaks it. later_system: a
 * system message may stand where an assistant's is due. */
sl_status sl_chat_check_turns(const sl_message *messages, size_t n_message, size_t i_first,
                              bool later_system, sl_error *err);

#endif
