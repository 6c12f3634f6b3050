/* hf_own.h - what the readers of tokenizer.json share. */
#ifndef SL_TOKEN_HF_OWN_H
#define SL_TOKEN_HF_OWN_H

#include "base/json.h"
#include "token/pre.h"
#include "token/vocab.h"

/* One entry of added_tokens. */
typedef struct sl_hf_added {
    int32_t id;
    uint8_t flag; /* SL_TOKEN_FLAG_LSTRIP, RSTRIP, WORD, NORM */
    bool special;
    bool in_vocab; /* the model's vocabulary has it too */
    sl_json_text content;
} sl_hf_added;

/* Readers that stand at the parts of the file; parts of type NONE are absent. Reading goes over a copy. */
typedef struct sl_hf_file {
    const char *name; /* for errors */
    sl_error *err;
    sl_json added, model, normalizer, pre, post, decoder;
    bool has_added, has_model, has_normalizer, has_pre, has_post, has_decoder;

    /* The model. */
    sl_json vocab, merges;
    bool has_vocab, has_merges;
    bool has_unk;
    sl_json_text unk;

    /* What the parts said. */
    bool byte_level; /* the pre-tokenizer maps bytes to an alphabet */
    bool prepend;    /* a normaliser puts a space in front */
    sl_pre_cut stage[SL_PRE_MAX_STAGE];
    int32_t n_stage;
    bool has_template;
    int32_t id_template_bos, id_template_eos;

    sl_hf_added *item; /* sorted by id */
    size_t n_item, cap_item;
} sl_hf_file;

/* Read a part; null and absent are fine. SL_ENOTSUP names the field and its type. */
sl_status sl_hf_read_normalizer(sl_hf_file *f, sl_vocab *v);
sl_status sl_hf_read_pre_tokenizer(sl_hf_file *f, sl_vocab *v);
sl_status sl_hf_read_post_processor(sl_hf_file *f);
sl_status sl_hf_read_decoder(sl_hf_file *f, sl_vocab *v);

/* Read added_tokens into f->item. */
sl_status sl_hf_read_added(sl_hf_file *f, sl_ledger *ledger);
/* Tokens with their kinds and flags; then the caller indexes them, builds the matchers, and reads the rest by them. */
sl_status sl_hf_read_tokens(sl_hf_file *f, sl_vocab *v);
/* Added tokens by the text that they are looked for by: as written, or with norm set as the normaliser would have it. */
sl_status sl_hf_add_cuts(sl_hf_file *f, const sl_vocab *v, sl_matcher *m, bool norm);
sl_status sl_hf_read_unk(sl_hf_file *f, sl_vocab *v);
sl_status sl_hf_read_merges(sl_hf_file *f, sl_vocab *v);

/* The error of a reader that has failed. */
sl_status sl_hf_broken(const sl_hf_file *f, const sl_json *j);
/* The "type" of the object that j (a copy) stands at; false: no object, or no type (the reader may have failed). */
bool sl_hf_type_of(sl_json j, sl_json_text *type);
/* A copy of the text for messages: at most cap - 1 bytes, NUL-terminated. Returns buffer. */
const char *sl_hf_shown(const sl_json_text *text, char *buffer, size_t cap);

#endif
