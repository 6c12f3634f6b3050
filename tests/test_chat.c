/* test_chat.c - chat forms: recognised from real templates and rendered as Jinja2 renders those (tests/data/chat, made
 * by tools/make_chat_cases.py); what is not recognised; what a message's content can never do. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_paths.h"
#include "token/chat.h"

#define CAP_MESSAGE 8

static const struct {
    const char *name, *form;
    bool
        refuses_system; /* the template raises where the form puts the system text before the user's */
    bool turns;         /* a system message alone has no place to go */
} real[] = {
    {"smollm2", "chatml", false, false},       {"openhermes", "chatml", false, false},
    {"qwen2.5-coder", "chatml", false, false}, {"mimo", "chatml", false, false},
    {"qwen3", "chatml", false, false},         {"llama3", "llama3", false, false},
    {"llama3.1", "llama3", false, false},      {"llama3.2", "llama3", false, false},
    {"gemma-7b", "gemma", true, true},         {"gemma2", "gemma", true, true},
    {"gemma3", "gemma", false, true},          {"mistral-v0.2", "mistral", true, true},
    {"mistral-v1", "mistral", false, true},    {"mistral-large-2407", "mistral", false, true},
    {"mistral-nemo", "mistral", false, true},  {"mistral-v7", "mistral", false, false},
};
enum { N_REAL = sizeof real / sizeof *real };

static char *read_template(const char *name, size_t *n) {
    char *source = help_read(help_text("%s/chat/%s.jinja", SL_TEST_DATA, name), n);
    if (source == NULL) {
        fail_msg("no template %s", name);
    }
    return source;
}

/* A conversation of the cases file; at moves past it. */
typedef struct chat_case {
    char title[64], kind[8];
    int prompt;
    size_t n_message;
    sl_message message[CAP_MESSAGE];
    char role[CAP_MESSAGE][16];
    const char *text;
    size_t n_text;
} chat_case;

static bool next_case(const char **at, const char *end, chat_case *c) {
    int used = 0;
    if (*at >= end) {
        return false;
    }
    assert_int_equal(
        sscanf(*at, "case %63s %d %zu\n%n", c->title, &c->prompt, &c->n_message, &used), 3);
    assert_in_range(c->n_message, 1, CAP_MESSAGE);
    *at += used;
    for (size_t i = 0; i < c->n_message;
         i++) { /* %n after the number: content may begin with white space */
        size_t n;
        assert_int_equal(sscanf(*at, "%15s %zu%n", c->role[i], &n, &used), 2);
        *at += used + 1;
        c->message[i] = (sl_message){.role = c->role[i], .content = *at, .n_content = n};
        *at += n + 1;
    }
    assert_int_equal(sscanf(*at, "%7s %zu%n", c->kind, &c->n_text, &used), 2);
    c->text = *at + used + 1;
    *at = c->text + c->n_text + 1;
    return true;
}

/* Spans are sorted, disjoint, not empty; each holds message text only, and outside of them nothing of a message is. */
static void check_spans(const sl_chat_text *out, const chat_case *c) {
    char *outside = malloc(out->n_text + 1);
    size_t n = 0, at = 0;
    for (size_t i = 0; i <= out->n_span; i++) {
        const size_t begin = i < out->n_span ? out->span[i].begin : out->n_text;
        assert_true(begin >= at && begin <= out->n_text);
        memcpy(outside + n, out->text + at, begin - at);
        n += begin - at;
        if (i < out->n_span) {
            assert_true(out->span[i].end > begin && out->span[i].end <= out->n_text);
            at = out->span[i].end;
        }
    }
    outside[n] = '\0';
    if (strcmp(c->title, "control") == 0) {
        assert_null(strstr(outside, "obey"));
        assert_null(strstr(outside, "endoftext"));
        assert_null(strstr(outside, "<s>"));
    }
    if (strcmp(c->title, "tricky") == 0) {
        assert_null(strstr(outside, "Show"));
        assert_null(strstr(outside, "ab"));
    }
    free(outside);
}

static void test_real_templates(void **unused) {
    (void)unused;
    int n_text = 0, n_raise = 0;
    for (int k = 0; k < N_REAL; k++) {
        size_t n_source, n_cases;
        char *source = read_template(real[k].name, &n_source);
        char *cases =
            help_read(help_text("%s/chat/%s.cases", SL_TEST_DATA, real[k].name), &n_cases);
        assert_non_null(cases);
        const sl_chat_form *form = sl_chat_find(source, n_source);
        if (form == NULL || strcmp(form->name, real[k].form) != 0) {
            fail_msg("%s: recognised as %s", real[k].name, form != NULL ? form->name : "nothing");
        }
        const char *at = cases;
        for (chat_case c; next_case(&at, cases + n_cases, &c);) {
            sl_ledger ledger;
            sl_memory memory;
            sl_chat_text out;
            sl_error err = {0};
            sl_ledger_init(&ledger, 0);
            sl_chat_text_init(&out, &ledger);
            const sl_status status = sl_chat_render_form(form, &out, source, n_source, c.message,
                                                         c.n_message, c.prompt != 0, &err);
            const bool system_first = c.role[0][0] == 's' || c.role[0][0] == 'd';
            if (real[k].turns && c.n_message == 1 && system_first) {
                assert_int_equal(status, SL_EINVAL); /* Jinja2 drops the text, or raises */
                n_raise++;
            } else if (strcmp(c.kind, "text") == 0) {
                if (status != SL_OK || out.n_text != c.n_text ||
                    memcmp(out.text, c.text, c.n_text) != 0) {
                    fail_msg("%s, %s: status %d %s\n--- got\n%.*s\n--- expected\n%.*s",
                             real[k].name, c.title, status, err.text, (int)out.n_text, out.text,
                             (int)c.n_text, c.text);
                }
                check_spans(&out, &c);
                n_text++;
            } else if (!(real[k].refuses_system && system_first)) {
                if (status != SL_EINVAL || strstr(err.text, "message ") == NULL) {
                    fail_msg("%s, %s: status %d %s", real[k].name, c.title, status, err.text);
                }
                n_raise++;
            }
            sl_chat_text_done(&out);
            sl_ledger_read(&ledger, &memory);
            assert_int_equal(memory.total_bytes, 0);
        }
        free(cases);
        free(source);
    }
    assert_true(n_text > 400 && n_raise > 20);
}

static void check_render(const char *name, const sl_message *messages, size_t n_message,
                         const char *expected) {
    size_t n_source;
    char *source = read_template(name, &n_source);
    sl_ledger ledger;
    sl_chat_text out;
    sl_error err;
    sl_ledger_init(&ledger, 0);
    sl_chat_text_init(&out, &ledger);
    const sl_chat_form *form = sl_chat_find(source, n_source);
    assert_non_null(form);
    const sl_status status =
        sl_chat_render_form(form, &out, source, n_source, messages, n_message, true, &err);
    if (expected[0] == '!') {
        assert_int_equal(status, SL_EINVAL);
        assert_string_equal(err.text, expected + 1);
    } else {
        assert_int_equal(status, SL_OK);
        assert_int_equal(out.n_text, strlen(expected));
        assert_memory_equal(out.text, expected, out.n_text);
    }
    sl_chat_text_done(&out);
    free(source);
}

#define M(r, text) \
    { .role = (r), .content = (text), .n_content = sizeof(text) - 1 }

/* Where a template has no answer, ours. */
static void test_system_without_place(void **unused) {
    (void)unused;
    const sl_message turns[] = {M("system", "You are a helpful assistant"),
                                M("user", "Hello"),
                                M("assistant", "Hi there"),
                                M("user", "Who are you"),
                                M("assistant", "   I am an assistant   "),
                                M("user", "Another question")};
    check_render("mistral-v0.2", turns, 6,
                 "[INST] You are a helpful assistant\nHello [/INST]Hi there</s>[INST] Who are you "
                 "[/INST]   I am an assistant   </s>[INST] Another question [/INST]");
    for (int i = 0; i < 2; i++) {
        check_render(i == 0 ? "gemma2" : "gemma-7b", turns, 6,
                     "<start_of_turn>user\nYou are a helpful assistant\n\nHello<end_of_turn>\n"
                     "<start_of_turn>model\nHi there<end_of_turn>\n"
                     "<start_of_turn>user\nWho are you<end_of_turn>\n"
                     "<start_of_turn>model\nI am an assistant<end_of_turn>\n"
                     "<start_of_turn>user\nAnother question<end_of_turn>\n<start_of_turn>model\n");
    }
}

static void test_bad_messages(void **unused) {
    (void)unused;
    const sl_message narrator[] = {M("user", "a"), M("narrator<|im_end|>", "b")};
    check_render("smollm2", narrator, 2,
                 "!message 1 has the role 'narrator<|im_end|>': must be system, developer, user or "
                 "assistant");
    const sl_message none[] = {{.role = NULL, .content = "a", .n_content = 1}};
    check_render("smollm2", none, 1,
                 "!message 0 has the role '': must be system, developer, user or assistant");
    const sl_message empty[] = {{.role = "user", .content = NULL, .n_content = 5}};
    check_render("smollm2", empty, 1, "!message 0 has a length but no content");
    check_render("smollm2", empty, 0, "!the conversation has no messages");
    const sl_message two[] = {M("user", "a"), M("user", "b")};
    check_render(
        "gemma3", two, 2,
        "!message 1 has the role 'user' where this model's chat form has a place for "
        "'assistant' only: after an optional system message, user and assistant take turns");
    const sl_message null_user[] = {{.role = "user", .content = NULL, .n_content = 0}};
    check_render("gemma3", null_user, 1,
                 "<start_of_turn>user\n<end_of_turn>\n<start_of_turn>model\n");
}

static void test_refused(void **unused) {
    (void)unused;
    static const char *const file[] = {"phi3.5", "phi4", "lfm2", "vigogne"};
    size_t n;
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        char *source = read_template(help_text("refused/%s", file[i]), &n);
        assert_null(sl_chat_find(source, n));
        free(source);
    }
    static const char *const text[] = {
        "",
        "{",
        "{{",
        "{%",
        "{#",
        "{{ '",
        "{% for message in messages %}",
        "<|im_start|>",
        "{{ bos_token }}",
        /* A change that shows in the text must not pass. */
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n\n' + "
        "message['content'] + "
        "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
        "'<|im_start|>assistant\n' }}"
        "{% endif %}",
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
        "message['content'] + "
        "'<|im_end|>'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% "
        "endif %}",
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
        "message['content'] + "
        "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
        "'<|im_start|>assistant\n' }}"
        "{% endif %}<think>",
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
        "message['content'] + "
        "'<|im_end|>' + '\n'}} {% endfor %}{% if add_generation_prompt %}{{ "
        "'<|im_start|>assistant\n' }}"
        "{% endif %}",
        /* A sign is no concatenation; carriage returns are refused. */
        "{% for message in messages %}{{+'<|im_start|>' + message['role'] + '\n' + "
        "message['content'] + "
        "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
        "'<|im_start|>assistant\n' "
        "}}{% endif %}",
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
        "message['content'] + "
        "'<|im_end|>' + '\n' + }}{% endfor %}{% if add_generation_prompt %}{{ "
        "'<|im_start|>assistant\n' "
        "}}{% endif %}",
        "{% for message in messages %}\r\n{{'<|im_start|>' + message['role'] + '\n' + "
        "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
        "{{ '<|im_start|>assistant\n' }}{% endif %}",
    };
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        if (sl_chat_find(text[i], strlen(text[i])) != NULL) {
            fail_msg("recognised: %s", text[i]);
        }
    }
    assert_null(sl_chat_find(NULL, 0));
    assert_null(sl_chat_find("a\0b", 3));
}

/* Spellings of one template: all are it. */
static void test_spellings(void **unused) {
    (void)unused;
    static const char *const text[] = {
        "{%- for message in messages -%}\n  {{- \"<|im_start|>\" ~ message.role }}\n{{- '\\n' }}\n"
        "  {{- message.content }}{# a note #}<|im_end|>\n{% endfor -%}\n"
        "{%- if add_generation_prompt -%}\n<|im_start|>assistant\n{% endif %}",
        "{% for message in messages %}\n    {% if false_comment is undefined %}{% endif %}",
        "{% for message in messages %}\n{{ '<|im_start|>' + message['role'] + '\\n' + "
        "message[\"content\"] + "
        "'<|im_end|>\\n' }}{% endfor %}\n{% if add_generation_prompt %}\n{{ "
        "'<|im_start|>assistant\\n' }}"
        "{% endif %}\n",
    };
    const bool same[] = {true, false, true};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        const sl_chat_form *form = sl_chat_find(text[i], strlen(text[i]));
        if ((form != NULL) != same[i]) {
            fail_msg("spelling %zu: %s", i, form != NULL ? form->name : "refused");
        }
    }
}

/* Every template cut or changed at every byte: no crash, and what is still recognised still renders. */
static void test_mutations(void **unused) {
    (void)unused;
    const sl_message turns[] = {M("user", "Hi"), M("assistant", "Yes"), M("user", "So")};
    uint64_t state = 11;
    for (int k = 0; k < N_REAL; k++) {
        size_t n;
        char *source = read_template(real[k].name, &n);
        for (size_t cut = 0; cut < n; cut += 1 + n / 400) {
            char *copy = malloc(n);
            memcpy(copy, source, n);
            char *exact = malloc(cut > 0 ? cut : 1);
            memcpy(exact, source, cut);
            (void)sl_chat_find(exact, cut);
            free(exact);
            state = state * 6364136223846793005u + 1442695040888963407u;
            copy[cut] = (char)(state >> 56);
            const sl_chat_form *form = sl_chat_find(copy, n);
            if (form != NULL) {
                sl_ledger ledger;
                sl_chat_text out;
                sl_ledger_init(&ledger, 0);
                sl_chat_text_init(&out, &ledger);
                assert_int_equal(sl_chat_render_form(form, &out, copy, n, turns, 3, true, NULL),
                                 SL_OK);
                sl_chat_text_done(&out);
            }
            free(copy);
        }
        free(source);
    }
}

/* The first allocation fails, then the second, ...: a clean error and nothing left behind. */
static void test_memory(void **unused) {
    (void)unused;
    size_t n;
    char *source = read_template("smollm2", &n);
    sl_message turns[40];
    for (int i = 0; i < 40; i++) {
        turns[i] =
            (sl_message)M("user", "A text of some length, so that the block grows a few times.");
    }
    sl_status status = SL_ENOMEM;
    int64_t fail;
    for (fail = 0; status != SL_OK; fail++) {
        sl_ledger ledger;
        sl_memory memory;
        sl_chat_text out;
        sl_error err;
        sl_ledger_init(&ledger, 0);
        ledger.fail_after = fail;
        sl_chat_text_init(&out, &ledger);
        status =
            sl_chat_render_form(sl_chat_find(source, n), &out, source, n, turns, 40, true, &err);
        assert_true(status == SL_OK || status == SL_ENOMEM);
        sl_chat_text_done(&out);
        sl_ledger_read(&ledger, &memory);
        assert_int_equal(memory.total_bytes, 0);
    }
    assert_true(fail > 3);
    free(source);
}

/* Of all the published templates that the oracle has, these and no others are recognised. */
static void test_oracle(void **unused) {
    (void)unused;
    char oracle[4096]; /* help_text's buffers are few */
    (void)snprintf(oracle, sizeof oracle, "%s", help_oracle() != NULL ? help_oracle() : "");
    if (oracle[0] == '\0') {
        print_message("the oracle's templates are not here\n");
        skip();
    }
    static const struct {
        const char *name, *form;
    } row[] = {
        {"Qwen-Qwen2.5-7B-Instruct", "chatml"},
        {"MiMo-VL", "chatml"},
        {"Qwen-Qwen3-0.6B", "chatml"},
        {"google-gemma-2-2b-it", "gemma"},
        {"meta-llama-Llama-3.1-8B-Instruct", "llama3"},
        {"meta-llama-Llama-3.2-3B-Instruct", "llama3"},
        {"meta-llama-Llama-3.3-70B-Instruct", "llama3"},
        {"mistralai-Mistral-Nemo-Instruct-2407", "mistral"},
        {"Qwen-QwQ-32B", NULL},
        {"Qwen3-Coder", NULL},
        {"HuggingFaceTB-SmolLM3-3B", NULL},
        {"LFM2-8B-A1B", NULL},
        {"Bielik-11B-v3.0-Instruct", NULL},
        {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", NULL},
        {"fireworks-ai-llama-3-firefunction-v2", NULL},
        {"meetkai-functionary-medium-v3.1", NULL},
        {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", NULL},
        {"google-gemma-4-31B-it", NULL},
        {"Mistral-Small-3.2-24B-Instruct-2506", NULL},
        {"unsloth-mistral-Devstral-Small-2507", NULL},
        {"openai-gpt-oss-120b", NULL},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        size_t n;
        char *source = help_read(help_text("%s/templates/jinja/%s.jinja", oracle, row[i].name), &n);
        assert_non_null(source);
        const sl_chat_form *form = sl_chat_find(source, n);
        if ((form != NULL) != (row[i].form != NULL) ||
            (form != NULL && strcmp(form->name, row[i].form) != 0)) {
            fail_msg("%s: %s", row[i].name, form != NULL ? form->name : "refused");
        }
        free(source);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_templates), cmocka_unit_test(test_system_without_place),
        cmocka_unit_test(test_bad_messages),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_spellings),      cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_memory),         cmocka_unit_test(test_oracle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
