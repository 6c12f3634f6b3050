/* text.c - the public face of tokenizer and chat forms. */
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "engine/engine_internal.h"

sl_status sl_tokenize(const sl_model *model, const char *text, size_t n_text, uint32_t flags,
                      int32_t *ids, size_t cap, size_t *n_out, sl_error *err) {
    if (model == NULL || (text == NULL && n_text != 0) || n_out == NULL ||
        (ids == NULL && cap != 0)) {
        return SL_FAIL(err, SL_EINVAL, "sl_tokenize: a required argument is NULL");
    }
    return sl_tokenizer_encode(model->tokenizer, text, n_text, flags, NULL, 0, ids, cap, n_out,
                               err);
}

/* A padded embedding has rows beyond the vocabulary: such an id is valid and has no text. */
static int32_t text_n_vocab(const sl_model *model, int32_t *n_token) {
    sl_tokenizer_info info;
    sl_tokenizer_get_info(model->tokenizer, &info);
    *n_token = info.n_vocab;
    return model->net != NULL ? model->net->hp.n_vocab : info.n_vocab;
}

sl_status sl_detokenize(const sl_model *model, const int32_t *ids, size_t n_ids, uint32_t flags,
                        char *text, size_t cap, size_t *n_out, sl_error *err) {
    if (model == NULL || (ids == NULL && n_ids != 0) || n_out == NULL ||
        (text == NULL && cap != 0)) {
        return SL_FAIL(err, SL_EINVAL, "sl_detokenize: a required argument is NULL");
    }
    int32_t n_token;
    const int32_t n_vocab = text_n_vocab(model, &n_token);
    bool first = true;
    size_t total = 0;
    for (size_t i = 0; i < n_ids; i++) {
        if (ids[i] < 0 || ids[i] >= n_vocab) {
            return SL_FAIL(err, SL_EINVAL, "id %d (the %zu-th) is outside the vocabulary of %d",
                           ids[i], i, n_vocab);
        }
        if (ids[i] >= n_token) {
            continue;
        }
        size_t n;
        const char *piece = sl_tokenizer_piece(
            model->tokenizer, ids[i], (flags & SL_DETOKENIZE_SKIP_SPECIAL) != 0, &first, &n);
        if (total < cap && n != 0) {
            memcpy(text + total, piece, n < cap - total ? n : cap - total);
        }
        total += n;
    }
    *n_out = total;
    if (text != NULL && total > cap) {
        return SL_FAIL(err, SL_ELIMIT, "the text has %zu bytes, the buffer %zu", total, cap);
    }
    return SL_OK;
}

sl_status sl_token_bytes(const sl_model *model, int32_t id, const char **bytes, size_t *n_bytes) {
    int32_t n_token;
    if (model == NULL || bytes == NULL || n_bytes == NULL || id < 0 ||
        id >= text_n_vocab(model, &n_token)) {
        return SL_EINVAL;
    }
    if (id >= n_token) {
        *bytes = "";
        *n_bytes = 0;
        return SL_OK;
    }
    *bytes = sl_tokenizer_bytes(model->tokenizer, id, n_bytes);
    return SL_OK;
}

static bool text_in_vocab(const sl_model *model, int32_t id) {
    sl_tokenizer_info info;
    if (model == NULL) {
        return false;
    }
    sl_tokenizer_get_info(model->tokenizer, &info);
    return id >= 0 && id < info.n_vocab;
}

bool sl_token_is_control(const sl_model *model, int32_t id) {
    return text_in_vocab(model, id) && sl_tokenizer_kind(model->tokenizer, id) == SL_TOKEN_CONTROL;
}

bool sl_token_is_eog(const sl_model *model, int32_t id) {
    return text_in_vocab(model, id) && sl_tokenizer_is_eog(model->tokenizer, id);
}

/* Render into `out` (to be done by the caller whatever the status). */
static sl_status text_render(const sl_model *model, const sl_message *messages, size_t n_message,
                             bool add_generation_prompt, sl_chat_text *out, sl_error *err) {
    sl_chat_text_init(out, model->ledger);
    sl_tokenizer_info info;
    sl_tokenizer_get_info(model->tokenizer, &info);
    if (info.chat_template == NULL) {
        return SL_FAIL(err, SL_ENOTSUP, "the model has no chat template; give it a plain prompt");
    }
    if (model->chat == NULL) {
        return SL_FAIL(err, SL_ENOTSUP,
                       "the model's chat template is of no form that is known here (chatml llama3 "
                       "gemma mistral); give it a plain prompt");
    }
    return sl_chat_render_form(model->chat, out, info.chat_template, info.n_chat_template, messages,
                               n_message, add_generation_prompt, err);
}

static sl_status text_check_chat(const sl_model *model, const sl_message *messages,
                                 size_t n_message, const void *dst, size_t cap, const size_t *n_out,
                                 sl_error *err) {
    if (model == NULL || (messages == NULL && n_message != 0) || n_out == NULL ||
        (dst == NULL && cap != 0)) {
        return SL_FAIL(err, SL_EINVAL, "chat: a required argument is NULL");
    }
    return SL_OK;
}

sl_status sl_chat_render(const sl_model *model, const sl_message *messages, size_t n_message,
                         bool add_generation_prompt, char *text, size_t cap, size_t *n_out,
                         sl_error *err) {
    SL_TRY(text_check_chat(model, messages, n_message, text, cap, n_out, err));
    sl_chat_text out;
    sl_status status = text_render(model, messages, n_message, add_generation_prompt, &out, err);
    if (status == SL_OK) {
        *n_out = out.n_text;
        if (text != NULL && out.n_text > cap) {
            status =
                SL_FAIL(err, SL_ELIMIT, "the text has %zu bytes, the buffer %zu", out.n_text, cap);
        } else if (text != NULL && out.n_text != 0) {
            memcpy(text, out.text, out.n_text);
        }
    }
    sl_chat_text_done(&out);
    return status;
}

/* One BOS: the tokenizer adds it by the model's policy unless the rendered text begins with it already. */
sl_status sl_chat_tokenize(const sl_model *model, const sl_message *messages, size_t n_message,
                           bool add_generation_prompt, int32_t *ids, size_t cap, size_t *n_out,
                           sl_error *err) {
    SL_TRY(text_check_chat(model, messages, n_message, ids, cap, n_out, err));
    sl_chat_text out;
    sl_status status = text_render(model, messages, n_message, add_generation_prompt, &out, err);
    if (status == SL_OK) {
        status = sl_tokenizer_encode(model->tokenizer, out.text, out.n_text,
                                     model->chat->renders_bos ? SL_TOKENIZE_NO_BOS : 0, out.span,
                                     out.n_span, ids, cap, n_out, err);
    }
    sl_chat_text_done(&out);
    return status;
}
