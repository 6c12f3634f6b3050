/* hf_own.h - what the readers of tokenizer.json share. */
#ifndef SL_TOKEN_HF_OWN_H
#define SL_TOKEN_HF_OWN_H

#include "base/json.h"
#include "token/pre.h"
#include "token/vocab.h"

/* One entry of added_tokens. */
typedef struct hf_added {
    int32_t id;
    uint8_t flag; /* SL_TOKEN_FLAG_LSTRIP, RSTRIP, WORD, NORM */
    bool special;
    bool in_vocab; /* the model's vocabulary has it too */
    sl_json_text content;
} hf_added;

/* Readers that stand at the parts of the file; parts of type NONE are absent. Reading goes over a copy. */
typedef struct hf_file {
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

    hf_added *item; /* sorted by id */
    size_t n_item, cap_item;
} hf_file;

/* Read a part; null and absent are fine. SL_ENOTSUP names the field and its type. */
sl_status hf_read_normalizer(hf_file *f, sl_vocab *v);
sl_status hf_read_pre_tokenizer(hf_file *f, sl_vocab *v);
sl_status hf_read_post_processor(hf_file *f);
sl_status hf_read_decoder(hf_file *f, sl_vocab *v);

/* The "type" of the object that j (a copy) stands at; false: no object, or no type (the reader may have failed). */
bool hf_type_of(sl_json j, sl_json_text *type);
/* A copy of the text for messages: at most cap - 1 bytes, NUL-terminated. Returns buffer. */
const char *hf_shown(const sl_json_text *text, char *buffer, size_t cap);

#endif
