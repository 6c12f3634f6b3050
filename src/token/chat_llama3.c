/* chat_llama3.c - the form of Llama 3, 3.1, 3.2 and 3.3.
 *
 *     <|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|>   for each message, content trimmed
 *
 * From 3.1 on there always is a system message, which begins with two dates. The library has no clock: where the
 * template would ask for today's date, its own default is used, as in a renderer without strftime_now.
 *
 * Threads: no state. */
#include "base/error.h"
#include "token/chat_match.h"

enum { LLAMA3_DATES = 1, LLAMA3_ALWAYS = 2 };

#define LLAMA3_HEADER "'<|start_header_id|>'+message.role+'<|end_header_id|>\n\n'"
#define LLAMA3_ASSISTANT "{{'<|start_header_id|>assistant<|end_header_id|>\n\n'}}"
#define LLAMA3_PROMPT "{%if add_generation_prompt%}" LLAMA3_ASSISTANT "{%endif%}"

#define LLAMA3_PLAIN                                                      \
    "{%set loop_messages=messages%}{%for message in loop_messages%}"      \
    "{%set content=" LLAMA3_HEADER "+message.content|trim+'<|eot_id|>'%}" \
    "{%if loop.index0==0%}{%set content=bos_token+content%}{%endif%}{{content}}{%endfor%}"

#define LLAMA3_HEAD                                                                          \
    "{{bos_token}}{%if custom_tools is defined%}{%set tools=custom_tools%}{%endif%}"         \
    "{%if not tools_in_user_message is defined%}{%set tools_in_user_message=true%}{%endif%}" \
    "{%if not date_string is defined%}"
#define LLAMA3_SYSTEM                                                                  \
    "{%endif%}{%if not tools is defined%}{%set tools=none%}{%endif%}"                  \
    "{%if messages[0].role=='system'%}{%set system_message=messages[0].content|trim%}" \
    "{%set messages=messages[1:]%}{%else%}{%set system_message=''%}{%endif%}"          \
    "{{'<|start_header_id|>system<|end_header_id|>\n\n'}}"
#define LLAMA3_TAIL                                                                      \
    "{{'" SL_CHAT_TEXT "Today Date: '+date_string+'\n\n'}}"                              \
    "{%if tools is not none and not tools_in_user_message%}" SL_CHAT_ANY "{%endif%}"     \
    "{{system_message}}{{'<|eot_id|>'}}"                                                 \
    "{%if tools_in_user_message and not tools is none%}" SL_CHAT_ANY                     \
    "{{first_user_message+'<|eot_id|>'}}{%endif%}"                                       \
    "{%for message in messages%}"                                                        \
    "{%if not(message.role=='ipython'or message.role=='tool'or'tool_calls'in message)%}" \
    "{{" LLAMA3_HEADER "+message.content|trim+'<|eot_id|>'}}"                            \
    "{%elif'tool_calls'in message%}" SL_CHAT_ANY                                         \
    "{%elif message.role=='tool'or message.role=='ipython'%}" SL_CHAT_ANY                \
    "{%endif%}{%endfor%}" LLAMA3_PROMPT

static const sl_chat_variant llama3_variant[] = {
    {LLAMA3_PLAIN LLAMA3_ASSISTANT, LLAMA3_ALWAYS},
    {LLAMA3_PLAIN LLAMA3_PROMPT, 0},
    /* 3.1, 3.3 */
    {LLAMA3_HEAD "{%set date_string='" SL_CHAT_TEXT "'%}" LLAMA3_SYSTEM
                 "{%if builtin_tools is defined or tools is not none%}"
                 "{{'Environment: ipython\n'}}{%endif%}"
                 "{%if builtin_tools is defined%}" SL_CHAT_ANY "{%endif%}" LLAMA3_TAIL,
     LLAMA3_DATES},
    /* 3.2 */
    {LLAMA3_HEAD "{%if strftime_now is defined%}{%set date_string=strftime_now('%d %b %Y')%}"
                 "{%else%}{%set date_string='" SL_CHAT_TEXT "'%}{%endif%}" LLAMA3_SYSTEM
                 "{%if tools is not none%}{{'Environment: ipython\n'}}{%endif%}" LLAMA3_TAIL,
     LLAMA3_DATES},
};

static const sl_chat_variant *llama3_find(const char *source, size_t n_source,
                                          sl_chat_capture *captures) {
    return sl_chat_match(llama3_variant, sizeof llama3_variant / sizeof *llama3_variant, source,
                         n_source, captures);
}

static bool llama3_recognise(const char *source, size_t n_source) {
    return llama3_find(source, n_source, NULL) != NULL;
}

static sl_status llama3_header(sl_chat_text *out, sl_chat_role role, sl_error *err) {
    SL_TRY(sl_chat_put(out, "<|start_header_id|>", err));
    SL_TRY(sl_chat_put(out, sl_chat_role_name(role), err));
    return sl_chat_put(out, "<|end_header_id|>\n\n", err);
}

static sl_status llama3_render(sl_chat_text *out, const char *source, size_t n_source,
                               const sl_message *messages, size_t n_message,
                               bool add_generation_prompt, sl_error *err) {
    sl_chat_capture capture[SL_CHAT_MAX_CAPTURE];
    const sl_chat_variant *const variant = llama3_find(source, n_source, capture);
    const uint32_t flags = variant != NULL ? variant->flags : 0;
    size_t i = 0;
    if ((flags & LLAMA3_DATES) != 0) {
        SL_TRY(llama3_header(out, SL_CHAT_SYSTEM, err));
        SL_TRY(sl_chat_put_capture(out, &capture[1], err)); /* the knowledge's date */
        SL_TRY(sl_chat_put(out, "Today Date: ", err));
        SL_TRY(sl_chat_put_capture(out, &capture[0], err));
        SL_TRY(sl_chat_put(out, "\n\n", err));
        if (sl_chat_role_of(&messages[0]) == SL_CHAT_SYSTEM) {
            SL_TRY(sl_chat_put_trimmed(out, &messages[i++], err));
        }
        SL_TRY(sl_chat_put(out, "<|eot_id|>", err));
    }
    for (; i < n_message; i++) {
        SL_TRY(llama3_header(out, sl_chat_role_of(&messages[i]), err));
        SL_TRY(sl_chat_put_trimmed(out, &messages[i], err));
        SL_TRY(sl_chat_put(out, "<|eot_id|>", err));
    }
    if (add_generation_prompt || (flags & LLAMA3_ALWAYS) != 0) {
        SL_TRY(llama3_header(out, SL_CHAT_ASSISTANT, err));
    }
    return SL_OK;
}

const sl_chat_form sl_chat_form_llama3 = {
    .name = "llama3", .recognise = llama3_recognise, .render = llama3_render, .renders_bos = false};
