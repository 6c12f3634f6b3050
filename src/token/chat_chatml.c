/* chat_chatml.c - the ChatML form: SmolLM2, Qwen 1.5 to 3 and many fine-tunes.
 *
 *     <|im_start|>ROLE\nCONTENT<|im_end|>\n   for each message, content as it is;   prompt: <|im_start|>assistant\n
 *
 * Variants differ in the system prompt that is put first when the conversation has none (taken from the source), and
 * Qwen3's shows the model the reasoning of its answers since the last question only.
 *
 * Threads: no state. */
#include "base/error.h"
#include "token/chat_match.h"

#include <string.h>

enum { CHATML_DEFAULT = 1, CHATML_THINK = 2 };

#define CHATML_LINE "{{'<|im_start|>'+message.role+'\n'+message.content+'<|im_end|>\n'}}"
#define CHATML_PROMPT "{%if add_generation_prompt%}{{'<|im_start|>assistant\n'}}{%endif%}"
#define CHATML_LOOP "{%for message in messages%}"
#define CHATML_FIRST                                   \
    "{%if loop.first and messages[0].role!='system'%}" \
    "{{'<|im_start|>system\n" SL_CHAT_TEXT "<|im_end|>\n'}}{%endif%}"
#define CHATML_UNSET                              \
    "{%if not add_generation_prompt is defined%}" \
    "{%set add_generation_prompt=false%}{%endif%}"
/* With tools the first part is another: not taken here. */
#define CHATML_TOOLS "{%if tools%}" SL_CHAT_ANY "{%else%}"
#define CHATML_TOOL_ROLE "{%elif message.role=='tool'%}" SL_CHAT_ANY "{%endif%}{%endfor%}"

static const sl_chat_variant chatml_variant[] = {
    {CHATML_LOOP CHATML_LINE "{%endfor%}" CHATML_PROMPT, 0},
    {CHATML_UNSET CHATML_LOOP CHATML_LINE "{%endfor%}" CHATML_PROMPT, 0},
    {CHATML_LOOP CHATML_FIRST CHATML_LINE "{%endfor%}" CHATML_PROMPT, CHATML_DEFAULT},
    {CHATML_UNSET CHATML_LOOP CHATML_FIRST CHATML_LINE "{%endfor%}" CHATML_PROMPT, CHATML_DEFAULT},
    /* Qwen2.5, MiMo */
    {CHATML_TOOLS "{%if messages[0].role=='system'%}"
                  "{{'<|im_start|>system\n'+messages[0].content+'<|im_end|>\n'}}"
                  "{%else%}{{'<|im_start|>system\n" SL_CHAT_TEXT
                  "<|im_end|>\n'}}{%endif%}{%endif%}" CHATML_LOOP
                  "{%if(message.role=='user')or(message.role=='system'and not loop.first)or"
                  "(message.role=='assistant'and not message.tool_calls)%}" CHATML_LINE
                  "{%elif message.role=='assistant'%}" SL_CHAT_ANY CHATML_TOOL_ROLE CHATML_PROMPT,
     CHATML_DEFAULT},
    /* Qwen3 */
    {CHATML_TOOLS
     "{%if messages[0].role=='system'%}"
     "{{'<|im_start|>system\n'+messages[0].content+'<|im_end|>\n'}}{%endif%}{%endif%}"
     "{%set ns=namespace(multi_step_tool=true,last_query_index=messages|length-1)%}"
     "{%for message in messages[::-1]%}{%set index=(messages|length-1)-loop.index0%}"
     "{%if ns.multi_step_tool and message.role=='user'and "
     "not(message.content.startswith('<tool_response>')and "
     "message.content.endswith('</tool_response>'))%}"
     "{%set ns.multi_step_tool=false%}{%set "
     "ns.last_query_index=index%}{%endif%}{%endfor%}" CHATML_LOOP
     "{%if(message.role=='user')or(message.role=='system'and not loop.first)%}" CHATML_LINE
     "{%elif message.role=='assistant'%}{%set content=message.content%}{%set reasoning_content=''%}"
     "{%if message.reasoning_content is defined and message.reasoning_content is not none%}"
     "{%set reasoning_content=message.reasoning_content%}{%else%}"
     "{%if'</think>'in message.content%}"
     "{%set content=message.content.split('</think>')[-1].lstrip('\n')%}"
     "{%set reasoning_content=message.content.split('</think>')[0].rstrip('\n')"
     ".split('<think>')[-1].lstrip('\n')%}{%endif%}{%endif%}"
     "{%if loop.index0>ns.last_query_index%}"
     "{%if loop.last or(not loop.last and reasoning_content)%}"
     "{{'<|im_start|>'+message.role+'\n<think>\n'+reasoning_content.strip('\n')+"
     "'\n</think>\n\n'+content.lstrip('\n')}}"
     "{%else%}{{'<|im_start|>'+message.role+'\n'+content}}{%endif%}"
     "{%else%}{{'<|im_start|>'+message.role+'\n'+content}}{%endif%}"
     "{%if message.tool_calls%}" SL_CHAT_ANY "{%endif%}{{'<|im_end|>\n'}}" CHATML_TOOL_ROLE
     "{%if add_generation_prompt%}{{'<|im_start|>assistant\n'}}"
     "{%if enable_thinking is defined and enable_thinking is false%}"
     "{{'<think>\n\n</think>\n\n'}}{%endif%}{%endif%}",
     CHATML_THINK},
};

static const sl_chat_variant *chatml_find(const char *source, size_t n_source,
                                          sl_chat_capture *captures) {
    return sl_chat_match(chatml_variant, sizeof chatml_variant / sizeof *chatml_variant, source,
                         n_source, captures);
}

static bool chatml_recognise(const char *source, size_t n_source) {
    return chatml_find(source, n_source, NULL) != NULL;
}

typedef struct chatml_part {
    const char *text;
    size_t n;
} chatml_part;

static bool chatml_begins(chatml_part p, const char *word) {
    return p.n >= strlen(word) && memcmp(p.text, word, strlen(word)) == 0;
}

/* Where `word` stands in p: the first or the last time; p.n: nowhere. */
static size_t chatml_seek(chatml_part p, const char *word, bool last) {
    const size_t n = strlen(word);
    size_t found = p.n;
    for (size_t i = 0; i + n <= p.n; i++) {
        if (memcmp(p.text + i, word, n) == 0) {
            found = i;
            if (!last) {
                break;
            }
        }
    }
    return found;
}

static chatml_part chatml_after(chatml_part p, size_t n) {
    return (chatml_part){.text = p.text + n, .n = p.n - n};
}

static chatml_part chatml_lstrip(chatml_part p) {
    while (p.n > 0 && p.text[0] == '\n') {
        p = chatml_after(p, 1);
    }
    return p;
}

static chatml_part chatml_rstrip(chatml_part p) {
    while (p.n > 0 && p.text[p.n - 1] == '\n') {
        p.n--;
    }
    return p;
}

/* The last question: a user message that is not a tool's answer; the last message if there is none. */
static size_t chatml_question(const sl_message *messages, size_t n_message) {
    static const char end[] = "</tool_response>";
    for (size_t i = n_message; i-- > 0;) {
        const chatml_part p = {.text = messages[i].content, .n = messages[i].n_content};
        const bool answer = chatml_begins(p, "<tool_response>") && p.n >= sizeof end - 1 &&
                            memcmp(p.text + p.n - (sizeof end - 1), end, sizeof end - 1) == 0;
        if (sl_chat_role_of(&messages[i]) == SL_CHAT_USER && !answer) {
            return i;
        }
    }
    return n_message - 1;
}

/* An answer of Qwen3: its reasoning shown (after the last question) or left out. */
static sl_status chatml_think(sl_chat_text *out, const sl_message *message, bool after, bool last,
                              sl_error *err) {
    chatml_part content = {.text = message->content, .n = message->n_content};
    chatml_part reason = {.text = message->content, .n = 0};
    const chatml_part whole = content;
    const size_t close = chatml_seek(whole, "</think>", false);
    if (close < whole.n) {
        content = chatml_lstrip(
            chatml_after(whole, chatml_seek(whole, "</think>", true) + strlen("</think>")));
        reason = chatml_rstrip((chatml_part){.text = whole.text, .n = close});
        const size_t open = chatml_seek(reason, "<think>", true);
        if (open < reason.n) {
            reason = chatml_after(reason, open + strlen("<think>"));
        }
        reason = chatml_lstrip(reason);
    }
    if (after && (last || reason.n > 0)) {
        reason = chatml_rstrip(reason);
        content = chatml_lstrip(content);
        SL_TRY(sl_chat_put(out, "<think>\n", err));
        SL_TRY(sl_chat_put_content(out, reason.text, reason.n, err));
        SL_TRY(sl_chat_put(out, "\n</think>\n\n", err));
    }
    return sl_chat_put_content(out, content.text, content.n, err);
}

static sl_status chatml_render(sl_chat_text *out, const char *source, size_t n_source,
                               const sl_message *messages, size_t n_message,
                               bool add_generation_prompt, sl_error *err) {
    sl_chat_capture capture[SL_CHAT_MAX_CAPTURE];
    const sl_chat_variant *const variant = chatml_find(source, n_source, capture);
    const uint32_t flags = variant != NULL ? variant->flags : 0;
    if ((flags & CHATML_DEFAULT) != 0 && sl_chat_role_of(&messages[0]) != SL_CHAT_SYSTEM) {
        SL_TRY(sl_chat_put(out, "<|im_start|>system\n", err));
        SL_TRY(sl_chat_put_capture(out, &capture[0], err));
        SL_TRY(sl_chat_put(out, "<|im_end|>\n", err));
    }
    const size_t question = chatml_question(messages, n_message);
    for (size_t i = 0; i < n_message; i++) {
        const sl_chat_role role = sl_chat_role_of(&messages[i]);
        SL_TRY(sl_chat_put(out, "<|im_start|>", err));
        SL_TRY(sl_chat_put(out, sl_chat_role_name(role), err));
        SL_TRY(sl_chat_put(out, "\n", err));
        if ((flags & CHATML_THINK) != 0 && role == SL_CHAT_ASSISTANT) {
            SL_TRY(chatml_think(out, &messages[i], i > question, i + 1 == n_message, err));
        } else {
            SL_TRY(sl_chat_put_message(out, &messages[i], err));
        }
        SL_TRY(sl_chat_put(out, "<|im_end|>\n", err));
    }
    return add_generation_prompt ? sl_chat_put(out, "<|im_start|>assistant\n", err) : SL_OK;
}

const sl_chat_form sl_chat_form_chatml = {
    .name = "chatml", .recognise = chatml_recognise, .render = chatml_render, .renders_bos = false};
