/* fuzz_tokenizer.c - any bytes as text, on two small vocabularies that have every byte: decode(encode(x)) = x, and what
 * lies in a span never becomes a control token.
 *
 * The first byte of the input chooses vocabulary and flags, the second where a span ends. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help_gguf.h"
#include "token/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_must(bool good) {
    if (!good) {
        abort();
    }
}

static void fuzz_put_code(char *out, unsigned code) {
    if (code < 0x80) {
        out[0] = (char)code;
        out[1] = '\0';
    } else {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 63));
        out[2] = '\0';
    }
}

/* The character that GPT-2's alphabet has for a byte. */
static unsigned fuzz_alpha(unsigned byte) {
    unsigned next = 256;
    for (unsigned b = 0; b < 256; b++) {
        const bool plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        if (b == byte) {
            return plain ? b : next;
        }
        next += plain ? 0 : 1;
    }
    return 0;
}

#define MARK "\xE2\x96\x81"

/* 256 bytes, then these: the kind's letter, the text in the form of each vocabulary. */
static const struct {
    int32_t kind;
    const char *bpe, *spm;
} fuzz_more[] = {
    {1, "ab", "ab"},
    {1, "abc", "abc"},
    {1, "aa", "aa"},
    {1, "aaaa", "aaaa"},
    {1,
     "\xC4\xA0"
     "a",
     MARK "a"},
    {1, "\xC4\xA0\xC4\xA0", MARK MARK},
    {1, "\xC3\xA4\xC2\xBD", "\xE4\xBD\xA0"},
    {1, "'s", "'s"},
    {3, "<s>", "<s>"},
    {3, "<|im_end|>", "<|im_end|>"},
    {4, "<think>", "<think>"},
    {4, "\n\n", "\n\n"},
    {4, "  ", "  "},
};
#define FUZZ_N_MORE (sizeof fuzz_more / sizeof fuzz_more[0])

static sl_ledger fuzz_ledger;

static sl_tokenizer *fuzz_make(bool spm) {
    static char text[256][8];
    const char *tokens[256 + FUZZ_N_MORE + 4];
    int32_t kinds[256 + FUZZ_N_MORE + 4];
    float scores[256 + FUZZ_N_MORE + 4];
    static const char *const merges[] = {
        "a b", "ab c", "a a", "aa aa", "\xC4\xA0 a", "\xC4\xA0 \xC4\xA0", "\xC3\xA4 \xC2\xBD",
        "' s"};
    size_t n = 0;
    for (unsigned byte = 0; byte < 256; byte++) {
        if (spm) {
            (void)snprintf(text[byte], sizeof text[byte], "<0x%02X>", byte);
        } else {
            fuzz_put_code(text[byte], fuzz_alpha(byte));
        }
        kinds[n] = spm ? 6 : 1;
        scores[n] = 0.0F;
        tokens[n++] = text[byte];
    }
    for (size_t i = 0; i < FUZZ_N_MORE; i++) {
        kinds[n] = fuzz_more[i].kind;
        scores[n] = -(float)i;
        tokens[n++] = spm ? fuzz_more[i].spm : fuzz_more[i].bpe;
    }
    static const char *const letters[] = {"a", "b", "c", MARK};
    for (size_t i = 0; spm && i < 4; i++) {
        kinds[n] = 1;
        scores[n] = -100.0F;
        tokens[n++] = letters[i];
    }
    help_gguf *g = help_gguf_new();
    help_gguf_str(g, "tokenizer.ggml.model", spm ? "llama" : "gpt2");
    help_gguf_str(g, "tokenizer.ggml.pre", "llama-bpe");
    help_gguf_strings(g, "tokenizer.ggml.tokens", tokens, n);
    help_gguf_array(g, "tokenizer.ggml.token_type", SL_META_I32, kinds, n);
    help_gguf_array(g, "tokenizer.ggml.scores", SL_META_F32, scores, n);
    help_gguf_strings(g, "tokenizer.ggml.merges", merges, sizeof merges / sizeof merges[0]);
    help_gguf_u32(g, "tokenizer.ggml.bos_token_id", 256 + 8);
    help_gguf_bool(g, "tokenizer.ggml.add_space_prefix", false);
    size_t n_bytes;
    const uint8_t *bytes = help_gguf_bytes(g, &n_bytes);
    sl_container *c = NULL;
    sl_tokenizer *t = NULL;
    sl_error err;
    fuzz_must(help_open_bytes(HELP_BY_MEMORY, &fuzz_ledger, bytes, n_bytes, &c, &err) == SL_OK);
    fuzz_must(sl_tokenizer_open_container(&fuzz_ledger, c, &t, &err) == SL_OK);
    sl_container_close(c);
    help_gguf_free(g);
    return t;
}

/* U+2581 reads as a space there. */
static size_t fuzz_marks_to_spaces(char *text, size_t n) {
    size_t n_out = 0;
    for (size_t i = 0; i < n; n_out++) {
        const bool mark = n - i >= 3 && memcmp(text + i, MARK, 3) == 0;
        text[n_out] = mark ? ' ' : text[i];
        i += mark ? 3 : 1;
    }
    return n_out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static sl_tokenizer *both[2];
    static size_t resting;
    sl_memory memory;
    if (both[0] == NULL) {
        sl_ledger_init(&fuzz_ledger, (size_t)64 << 20);
        both[0] = fuzz_make(false);
        both[1] = fuzz_make(true);
        sl_ledger_read(&fuzz_ledger, &memory);
        resting = memory.total_bytes;
    }
    if (size < 2 || size > 4096) {
        return 0;
    }
    const bool spm = (data[0] & 1) != 0;
    const sl_tokenizer *t = both[spm ? 1 : 0];
    const uint32_t flags = SL_TOKENIZE_NO_BOS | ((data[0] & 2) != 0 ? SL_TOKENIZE_NO_SPECIAL : 0u);
    const size_t n = size - 2;
    const sl_text_span span = {0, n * data[1] / 255};
    char text[4096];
    memcpy(text, data + 2, n);
    static int32_t ids[4096];
    static char back[8192];
    size_t n_ids = 0;
    size_t n_back = 0;
    sl_error err;
    fuzz_must(sl_tokenizer_encode(t, text, n, flags, &span, 1, ids, 4096, &n_ids, &err) == SL_OK);
    bool first = true;
    const size_t n_clean = spm ? fuzz_marks_to_spaces(text, n) : n;
    for (size_t i = 0; i < n_ids; i++) {
        size_t n_piece;
        const char *piece = sl_tokenizer_piece(t, ids[i], false, &first, &n_piece);
        fuzz_must(n_back + n_piece <= sizeof back);
        memcpy(back + n_back, piece, n_piece);
        n_back += n_piece;
        if (sl_tokenizer_kind(t, ids[i]) == SL_TOKEN_CONTROL) {
            fuzz_must((flags & SL_TOKENIZE_NO_SPECIAL) == 0);
            fuzz_must(spm ||
                      n_back - n_piece >= span.end); /* there offsets are those of the text */
        }
    }
    fuzz_must(n_back == n_clean && memcmp(back, text, n_back) == 0);
    sl_ledger_read(&fuzz_ledger, &memory);
    fuzz_must(memory.total_bytes == resting);
    return 0;
}
