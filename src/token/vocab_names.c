/* vocab_names.c - tokens known by their names: those that end a generation, and the end of a turn.
 *
 * Files give the id of EOS at best, while chat models end a turn with a token of another name. The names below are those
 * of published models; a control token of such a name ends a generation. In GGUF files such tokens are sometimes marked
 * user-defined or even normal: they are control tokens all the same, or a user could end the model's turn by writing
 * the name.
 *
 * Threads: none of its own. */
#include <string.h>

#include "token/vocab.h"

typedef struct vocab_name {
    const char *text;
    bool turn;     /* ends a turn: candidate for EOT, best first */
    bool if_plain; /* also where the file says it is a normal token */
} vocab_name;

static const vocab_name vocab_names[] = {
    {"<|eot_id|>", true, true},
    {"<|im_end|>", true, true},
    {"<end_of_turn>", true, true},
    {"<|end|>", true, true},
    {"<turn|>", true, false},
    {"<|endoftext|>", true, true},
    {"<|end_of_text|>", true, true},
    {"<EOT>", true, false},
    {"_<EOT>", true, false},
    {"[EOT]", true, false},
    {"<｜end▁of▁sentence｜>", true, true},
    {"<end_of_utterance>", true, true},
    {"<|eom_id|>", false, true},
    {"<|return|>", false, true},
    {"<|call|>", false, true},
    {"<|flush|>", false, true},
    {"<|calls|>", false, true},
    {"</s>", false, false},
    {"<eos>", false, false},
    {"[EOS]", false, false},
    {"[e~[", false, false},
    {"<|tool_response>", false, false},
    {"<|fim_pad|>", false, false},
    {"<fim-pad>", false, false},
    {"<fim_pad>", false, false},
    {"<|fim_repo|>", false, false},
    {"<|repo_name|>", false, false},
    {"<fim-repo>", false, false},
    {"<reponame>", false, false},
    {"<|file_sep|>", false, false},
};

static const vocab_name *vocab_name_find(const char *text, size_t n) {
    for (size_t i = 0; i < sizeof vocab_names / sizeof vocab_names[0]; i++) {
        if (strlen(vocab_names[i].text) == n && memcmp(vocab_names[i].text, text, n) == 0) {
            return &vocab_names[i];
        }
    }
    return NULL;
}

void sl_vocab_mark_eog(sl_vocab *v) {
    const vocab_name *turn = NULL;
    int32_t id_turn = -1;
    int32_t id_end = -1;
    bool has_return = false;
    bool has_call = false;
    for (int32_t id = 0; id < v->n_token; id++) {
        size_t n;
        const char *text = sl_vocab_text(v, id, &n);
        const vocab_name *name = n >= 4 && n <= 40 ? vocab_name_find(text, n) : NULL;
        if (name == NULL) {
            continue;
        }
        if (v->kind[id] == SL_TOKEN_USER || (v->kind[id] == SL_TOKEN_NORMAL && name->if_plain)) {
            v->kind[id] = SL_TOKEN_CONTROL;
            v->flag[id] |= SL_TOKEN_FLAG_CUT | SL_TOKEN_FLAG_LITERAL | SL_TOKEN_FLAG_UNLISTED;
        }
        if (v->kind[id] != SL_TOKEN_CONTROL) {
            continue;
        }
        v->flag[id] |= SL_TOKEN_FLAG_EOG;
        has_return |= strcmp(name->text, "<|return|>") == 0 || strcmp(name->text, "<|flush|>") == 0;
        has_call |= strcmp(name->text, "<|call|>") == 0 || strcmp(name->text, "<|calls|>") == 0;
        id_end = strcmp(name->text, "<|end|>") == 0 ? id : id_end;
        if (name->turn && (turn == NULL || name < turn)) {
            turn = name;
            id_turn = id;
        }
    }
    /* In vocabularies with these two, <|end|> only ends a message, and the model goes on with the next. */
    if (has_return && has_call && id_end >= 0 && id_end != v->id_eos) {
        v->flag[id_end] &= (uint8_t)~SL_TOKEN_FLAG_EOG;
        id_turn = id_turn == id_end ? -1 : id_turn;
    }
    if (v->id_eot < 0) {
        v->id_eot = id_turn;
    }
    if (v->id_eos >= 0) {
        v->flag[v->id_eos] |= SL_TOKEN_FLAG_EOG;
    }
    if (v->id_eot >= 0) {
        v->flag[v->id_eot] |= SL_TOKEN_FLAG_EOG;
    }
}
