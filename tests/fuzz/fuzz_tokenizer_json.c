/* fuzz_tokenizer_json.c - any bytes as a tokenizer.json; one that opens must encode and decode without a fault. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "token/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_must(bool good) {
    if (!good) {
        abort();
    }
}

static void fuzz_use(const sl_tokenizer *t, const char *text, size_t n, uint32_t flags) {
    enum { CAP = 4096 };
    static int32_t ids[CAP];
    sl_tokenizer_info info;
    sl_error err;
    size_t n_ids = 0;
    sl_tokenizer_get_info(t, &info);
    const sl_status status =
        sl_tokenizer_encode(t, text, n, flags, NULL, 0, ids, CAP, &n_ids, &err);
    fuzz_must(status == SL_OK || status == SL_ELIMIT || status == SL_ENOTSUP);
    bool first = true;
    for (size_t i = 0; status == SL_OK && i < n_ids; i++) {
        fuzz_must(ids[i] >= 0 && ids[i] < info.n_vocab);
        size_t n_piece;
        const char *piece = sl_tokenizer_piece(t, ids[i], false, &first, &n_piece);
        fuzz_must(n_piece <= SL_MAX_TOKEN_BYTES + 1);
        fuzz_must(n_piece == 0 || piece[n_piece - 1] == piece[n_piece - 1]);
        (void)sl_tokenizer_is_eog(t, ids[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sl_ledger ledger;
    sl_ledger_init(&ledger, (size_t)16 << 20);
    sl_tokenizer *t = NULL;
    sl_error err;
    memset(&err, 0, sizeof err);
    const sl_status status = sl_tokenizer_open_json(&ledger, data, size, "fuzz", NULL, &t, &err);
    if (status == SL_OK) {
        static const char text[] =
            "Hello  world<s>\n it's 123 \xE4\xBD\xA0\xF0\x9F\x98\x80\xFF a\xCC\x81"
            "\xE2\x96\x81<0x41> ab aab";
        fuzz_use(t, text, sizeof text - 1, 0);
        fuzz_use(t, (const char *)data, size < 256 ? size : 256, SL_TOKENIZE_NO_SPECIAL);
    } else {
        fuzz_must(t == NULL && err.code == status && err.text[0] != '\0');
    }
    sl_tokenizer_close(t);
    sl_memory memory;
    sl_ledger_read(&ledger, &memory);
    fuzz_must(memory.total_bytes == 0);
    return 0;
}
