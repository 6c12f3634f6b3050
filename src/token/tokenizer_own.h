/* tokenizer_own.h - what a tokenizer is inside. */
#ifndef SL_TOKEN_TOKENIZER_OWN_H
#define SL_TOKEN_TOKENIZER_OWN_H

#include "token/vocab.h"

struct sl_tokenizer {
    sl_vocab vocab;
};

#endif
