/* chat_mistral.c - the forms of Mistral AI, which differ in spaces and in where the system text goes.
 *
 *     name      user                      assistant          system text
 *     v0        [INST] U [/INST]          A</s>              refused by the template; before the first user text
 *     v1        ' [INST] U [/INST]'       ' A</s>'           before the first user text, an empty line between
 *     v3        [INST] U[/INST]           ' A</s>' (trimmed) before the last user text if that ends the conversation
 *     v3 tekken [INST]U[/INST]            A</s>              the same
 *     v7        [INST] U[/INST]           ' A</s>'           [SYSTEM_PROMPT] S[/SYSTEM_PROMPT] where it stands
 *
 * A template says eos_token; all models of this form have "</s>" there. A form adds no prompt for the answer.
 *
 * Threads: no state. */
#include "base/error.h"
#include "token/chat_match.h"

#define MISTRAL_RAISE "{{raise_exception('" SL_CHAT_TEXT "')}}"
#define MISTRAL_HEAD                                                              \
    "{%if messages[0].role=='system'%}{%set system_message=messages[0].content%}" \
    "{%set loop_messages=messages[1:]%}{%else%}{%set loop_messages=messages%}{%endif%}"

/* v0; space: after the end of an answer (0.1). */
#define MISTRAL_V0(space)                                                        \
    "{{bos_token}}{%for message in messages%}"                                   \
    "{%if(message.role=='user')!=(loop.index0%2==0)%}" MISTRAL_RAISE "{%endif%}" \
    "{%if message.role=='user'%}{{'[INST] '+message.content+' [/INST]'}}"        \
    "{%elif message.role=='assistant'%}{{message.content+eos_token" space "}}"   \
    "{%else%}" MISTRAL_RAISE "{%endif%}{%endfor%}"

/* v3: text after [INST], the answer. */
#define MISTRAL_V3(space, answer)                                                      \
    MISTRAL_HEAD                                                                       \
    "{%if not tools is defined%}{%set tools=none%}{%endif%}"                           \
    "{%set user_messages=loop_messages|selectattr('role','equalto','user')|list%}"     \
    "{%set ns=namespace()%}{%set ns.index=0%}{%for message in loop_messages%}"         \
    "{%if not(message.role=='tool'or message.role=='tool_results'or"                   \
    "(message.tool_calls is defined and message.tool_calls is not none))%}"            \
    "{%if(message.role=='user')!=(ns.index%2==0)%}" MISTRAL_RAISE "{%endif%}"          \
    "{%set ns.index=ns.index+1%}{%endif%}{%endfor%}{{bos_token}}"                      \
    "{%for message in loop_messages%}{%if message.role=='user'%}"                      \
    "{%if tools is not none and(message==user_messages[-1])%}" SL_CHAT_ANY "{%endif%}" \
    "{%if loop.last and system_message is defined%}"                                   \
    "{{'[INST]" space "'+system_message+'\n\n'+message.content+'[/INST]'}}"            \
    "{%else%}{{'[INST]" space "'+message.content+'[/INST]'}}{%endif%}"                 \
    "{%elif" SL_CHAT_ANY                                                               \
    "message.tool_calls is defined and message.tool_calls is not none" SL_CHAT_ANY     \
    "%}" SL_CHAT_ANY "{%elif message.role=='assistant'%}{{" answer "+eos_token}}"      \
    "{%elif message.role=='tool_results'or message.role=='tool'%}" SL_CHAT_ANY         \
    "{%else%}" MISTRAL_RAISE "{%endif%}{%endfor%}"

/* How a variant writes a turn, and where its system text goes. */
typedef enum mistral_system { MISTRAL_FIRST, MISTRAL_LAST, MISTRAL_PLACE } mistral_system;

typedef struct mistral_style {
    const char *user, *user_end, *answer, *answer_end;
    const char *gap; /* between system and user text */
    mistral_system system;
    bool trim; /* answers */
} mistral_style;

static const mistral_style mistral_styles[] = {
    {"[INST] ", " [/INST]", "", "</s>", "\n", MISTRAL_FIRST, false},
    {"[INST] ", " [/INST]", "", "</s> ", "\n", MISTRAL_FIRST, false},
    {" [INST] ", " [/INST]", " ", "</s>", "\n\n", MISTRAL_FIRST, false},
    {"[INST] ", "[/INST]", " ", "</s>", "\n\n", MISTRAL_LAST, true},
    {"[INST]", "[/INST]", "", "</s>", "\n\n", MISTRAL_LAST, false},
    {"[INST] ", "[/INST]", " ", "</s>", "", MISTRAL_PLACE, false},
};

/* flags: the style's index. */
static const sl_chat_variant mistral_variant[] = {
    {MISTRAL_V0(""), 0},
    {MISTRAL_V0("+' '"), 1},
    {MISTRAL_HEAD "{{bos_token}}{%for message in loop_messages%}"
                  "{%if(message.role=='user')!=(loop.index0%2==0)%}" MISTRAL_RAISE "{%endif%}"
                  "{%if message.role=='user'%}{%if loop.first and system_message is defined%}"
                  "{{' [INST] '+system_message+'\n\n'+message.content+' [/INST]'}}"
                  "{%else%}{{' [INST] '+message.content+' [/INST]'}}{%endif%}"
                  "{%elif message.role=='assistant'%}{{' '+message.content+eos_token}}"
                  "{%else%}" MISTRAL_RAISE "{%endif%}{%endfor%}",
     2},
    {MISTRAL_V3(" ", "' '+message.content|trim"), 3},
    {MISTRAL_V3("", "message.content"), 4},
    {"{{bos_token}}{%for message in messages%}{%if message.role=='user'%}"
     "{{'[INST] '+message.content+'[/INST]'}}{%elif message.role=='system'%}"
     "{{'[SYSTEM_PROMPT] '+message.content+'[/SYSTEM_PROMPT]'}}"
     "{%elif message.role=='assistant'%}{{' '+message.content+eos_token}}"
     "{%else%}" MISTRAL_RAISE "{%endif%}{%endfor%}",
     5},
};

static const sl_chat_variant *mistral_find(const char *source, size_t n_source) {
    return sl_chat_match(mistral_variant, sizeof mistral_variant / sizeof *mistral_variant, source,
                         n_source, NULL);
}

static bool mistral_recognise(const char *source, size_t n_source) {
    return mistral_find(source, n_source) != NULL;
}

static sl_status mistral_render(sl_chat_text *out, const char *source, size_t n_source,
                                const sl_message *messages, size_t n_message,
                                bool add_generation_prompt, sl_error *err) {
    (void)add_generation_prompt; /* after [/INST] the answer begins */
    const sl_chat_variant *const variant = mistral_find(source, n_source);
    const mistral_style *const style = &mistral_styles[variant != NULL ? variant->flags : 0];
    const sl_message *system = NULL;
    size_t i = 0;
    if (style->system != MISTRAL_PLACE) {
        if (sl_chat_role_of(&messages[0]) == SL_CHAT_SYSTEM) {
            system = &messages[i++];
        }
        SL_TRY(sl_chat_check_turns(messages, n_message, i, false, err));
    }
    const size_t i_system = style->system == MISTRAL_LAST ? n_message - 1 : i;
    for (; i < n_message; i++) {
        const sl_message *const m = &messages[i];
        const sl_chat_role role = sl_chat_role_of(m);
        if (role == SL_CHAT_SYSTEM) {
            SL_TRY(sl_chat_put(out, "[SYSTEM_PROMPT] ", err));
            SL_TRY(sl_chat_put_message(out, m, err));
            SL_TRY(sl_chat_put(out, "[/SYSTEM_PROMPT]", err));
        } else if (role == SL_CHAT_USER) {
            SL_TRY(sl_chat_put(out, style->user, err));
            if (system != NULL && i == i_system) {
                SL_TRY(sl_chat_put_message(out, system, err));
                SL_TRY(sl_chat_put(out, style->gap, err));
            }
            SL_TRY(sl_chat_put_message(out, m, err));
            SL_TRY(sl_chat_put(out, style->user_end, err));
        } else {
            SL_TRY(sl_chat_put(out, style->answer, err));
            SL_TRY(style->trim ? sl_chat_put_trimmed(out, m, err)
                               : sl_chat_put_message(out, m, err));
            SL_TRY(sl_chat_put(out, style->answer_end, err));
        }
    }
    return SL_OK;
}

const sl_chat_form sl_chat_form_mistral = {.name = "mistral",
                                           .recognise = mistral_recognise,
                                           .render = mistral_render,
                                           .renders_bos = false};
