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

/* What the name alone may change. */
enum {
    NAME_TRUSTED, /* nothing: the file must call it a control token */
    NAME_USER,    /* a user-defined token of this name is a control token */
    NAME_ANY      /* so is a normal one */
};

typedef struct vocab_name {
    const char *text;
    uint8_t promote;
    bool ends; /* ends a generation, whatever EOS is */
    bool turn; /* candidate for EOT, best first */
    bool eos;  /* candidate for EOS where no file says, best first */
} vocab_name;

static const vocab_name vocab_names[] = {
    {"<|eot_id|>", NAME_ANY, true, true, false},
    {"<|im_end|>", NAME_ANY, true, true, false},
    {"<end_of_turn>", NAME_ANY, true, true, false},
    {"<|end|>", NAME_ANY, true, true, false},
    {"<turn|>", NAME_USER, true, true, false},
    {"<|return|>", NAME_ANY, true, false, true},
    {"<|endoftext|>", NAME_ANY, true, true, true},
    {"<|end_of_text|>", NAME_ANY, true, true, true},
    {"<EOT>", NAME_USER, true, true, false},
    {"_<EOT>", NAME_USER, true, true, false},
    {"[EOT]", NAME_USER, true, true, false},
    {"<｜end▁of▁sentence｜>", NAME_ANY, true, true, true},
    {"<end_of_utterance>", NAME_ANY, true, true, false},
    {"<eos>", NAME_TRUSTED, true, false, true},
    /* Elsewhere the end of a struck-out text. */
    {"</s>", NAME_TRUSTED, false, false, true},
    {"<|eom_id|>", NAME_ANY, true, false, false},
    {"<|call|>", NAME_ANY, true, false, false},
    {"<|flush|>", NAME_ANY, true, false, false},
    {"<|calls|>", NAME_ANY, true, false, false},
    {"[EOS]", NAME_USER, true, false, false},
    {"[e~[", NAME_USER, true, false, false},
    {"<|tool_response>", NAME_USER, true, false, false},
    /* Code models end what they fill in with one of these. */
    {"<|fim_pad|>", NAME_USER, true, false, false},
    {"<fim-pad>", NAME_USER, true, false, false},
    {"<fim_pad>", NAME_USER, true, false, false},
    {"<|fim_repo|>", NAME_USER, true, false, false},
    {"<|repo_name|>", NAME_USER, true, false, false},
    {"<fim-repo>", NAME_USER, true, false, false},
    {"<reponame>", NAME_USER, true, false, false},
    {"<|file_sep|>", NAME_USER, true, false, false},
};

static const vocab_name *vocab_name_find(const char *text, size_t n) {
    for (size_t i = 0; i < sizeof vocab_names / sizeof vocab_names[0]; i++) {
        if (strlen(vocab_names[i].text) == n && memcmp(vocab_names[i].text, text, n) == 0) {
            return &vocab_names[i];
        }
    }
    return NULL;
}

/* The kind that the name gives the token. */
static bool vocab_name_is_control(sl_vocab *v, int32_t id, const vocab_name *name) {
    const bool promote = (v->kind[id] == SL_TOKEN_USER && name->promote >= NAME_USER) ||
                         (v->kind[id] == SL_TOKEN_NORMAL && name->promote == NAME_ANY);
    if (promote) {
        v->kind[id] = SL_TOKEN_CONTROL;
        v->flag[id] |= SL_TOKEN_FLAG_CUT | SL_TOKEN_FLAG_LITERAL | SL_TOKEN_FLAG_UNLISTED;
    }
    return v->kind[id] == SL_TOKEN_CONTROL;
}

void sl_vocab_mark_eog(sl_vocab *v) {
    const vocab_name *turn = NULL;
    const vocab_name *eos = NULL;
    int32_t id_turn = -1;
    int32_t id_eos = -1;
    int32_t id_end = -1;
    bool has_return = false;
    bool has_call = false;
    for (int32_t id = 0; id < v->n_token; id++) {
        size_t n;
        const char *text = sl_vocab_text(v, id, &n);
        const vocab_name *name = n >= 4 && n <= 40 ? vocab_name_find(text, n) : NULL;
        if (name == NULL || !vocab_name_is_control(v, id, name)) {
            continue;
        }
        if (name->ends) {
            v->flag[id] |= SL_TOKEN_FLAG_EOG;
        }
        has_return |= strcmp(name->text, "<|return|>") == 0 || strcmp(name->text, "<|flush|>") == 0;
        has_call |= strcmp(name->text, "<|call|>") == 0 || strcmp(name->text, "<|calls|>") == 0;
        id_end = strcmp(name->text, "<|end|>") == 0 ? id : id_end;
        if (name->turn && (turn == NULL || name < turn)) {
            turn = name;
            id_turn = id;
        }
        if (name->eos && (eos == NULL || name < eos)) {
            eos = name;
            id_eos = id;
        }
    }
    if (v->id_eos < 0) {
        v->id_eos = id_eos;
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
