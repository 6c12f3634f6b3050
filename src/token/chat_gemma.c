/* chat_gemma.c - the form of Gemma 1, 2 and 3.
 *
 *     <start_of_turn>user\nCONTENT<end_of_turn>\n<start_of_turn>model\n...   content trimmed, turns alternate
 *
 * There is no system role for the beginning. Gemma 3's template puts the system text and an empty line before the first
 * user text; the older ones refuse it, and we do for them what Gemma 3 does. A later system message, in the place of
 * an answer, is a turn of its own, as the templates have it.
 *
 * Threads: no state. */
#include "base/error.h"
#include "token/chat_match.h"

#define GEMMA_TURNS                                                                           \
    "{%if(message.role=='user')!=(loop.index0%2==0)%}{{raise_exception('" SL_CHAT_TEXT "')}}" \
    "{%endif%}{%if(message.role=='assistant')%}{%set role='model'%}{%else%}"                  \
    "{%set role=message.role%}{%endif%}"
#define GEMMA_PROMPT "{%if add_generation_prompt%}{{'<start_of_turn>model\n'}}{%endif%}"
#define GEMMA_2                                                                                \
    "{%if messages[0].role=='system'%}{{raise_exception('" SL_CHAT_TEXT "')}}{%endif%}"        \
    "{%for message in messages%}" GEMMA_TURNS "{{'<start_of_turn>'+role+'\n'+message.content|" \
    "trim+'<end_of_turn>\n'}}{%endfor%}" GEMMA_PROMPT

static const sl_chat_variant gemma_variant[] = {
    {"{{bos_token}}" GEMMA_2, 0},
    {GEMMA_2, 0},
    /* 3 */
    {"{{bos_token}}{%if messages[0].role=='system'%}{%if messages[0].content is string%}"
     "{%set first_user_prefix=messages[0].content+'\n\n'%}{%else%}"
     "{%set first_user_prefix=messages[0].content[0].text+'\n\n'%}{%endif%}"
     "{%set loop_messages=messages[1:]%}{%else%}{%set first_user_prefix=''%}"
     "{%set loop_messages=messages%}{%endif%}{%for message in loop_messages%}" GEMMA_TURNS
     "{{'<start_of_turn>'+role+'\n'+(first_user_prefix if loop.first else'')}}"
     "{%if message.content is string%}{{message.content|trim}}"
     "{%elif message.content is iterable%}" SL_CHAT_ANY "{%else%}{{raise_exception('" SL_CHAT_TEXT
     "')}}{%endif%}{{'<end_of_turn>\n'}}{%endfor%}" GEMMA_PROMPT,
     0},
};

static bool gemma_recognise(const char *source, size_t n_source) {
    return sl_chat_match(gemma_variant, sizeof gemma_variant / sizeof *gemma_variant, source,
                         n_source, NULL) != NULL;
}

static sl_status gemma_render(sl_chat_text *out, const char *source, size_t n_source,
                              const sl_message *messages, size_t n_message,
                              bool add_generation_prompt, sl_error *err) {
    (void)source; /* the variants render alike */
    (void)n_source;
    const size_t i_first = sl_chat_role_of(&messages[0]) == SL_CHAT_SYSTEM ? 1 : 0;
    SL_TRY(sl_chat_check_turns(messages, n_message, i_first, true, err));
    for (size_t i = i_first; i < n_message; i++) {
        const sl_chat_role role = sl_chat_role_of(&messages[i]);
        SL_TRY(sl_chat_put(out, "<start_of_turn>", err));
        SL_TRY(
            sl_chat_put(out, role == SL_CHAT_ASSISTANT ? "model" : sl_chat_role_name(role), err));
        SL_TRY(sl_chat_put(out, "\n", err));
        if (i == 1 && i_first == 1) {
            SL_TRY(sl_chat_put_message(out, &messages[0], err));
            SL_TRY(sl_chat_put(out, "\n\n", err));
        }
        SL_TRY(sl_chat_put_trimmed(out, &messages[i], err));
        SL_TRY(sl_chat_put(out, "<end_of_turn>\n", err));
    }
    return add_generation_prompt ? sl_chat_put(out, "<start_of_turn>model\n", err) : SL_OK;
}

const sl_chat_form sl_chat_form_gemma = {
    .name = "gemma", .recognise = gemma_recognise, .render = gemma_render, .renders_bos = false};
