/* test_token_hostile.c - damaged and unsupported vocabularies: a clean error that names the fault, or defined behaviour. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_gguf.h"
#include "token/tokenizer.h"

static sl_ledger hostile_ledger;

static void hostile_books_are_empty(void) {
    sl_memory memory;
    sl_ledger_read(&hostile_ledger, &memory);
    assert_int_equal(memory.total_bytes, 0);
}

/* ---- GGUF: a small vocabulary of which each part can be left out or replaced ---- */

typedef struct hostile_parts {
    const char *model, *pre;
    const char *token[24];
    size_t n_token;
    int32_t kind[24];
    size_t n_kind; /* 0: no such key */
    float score[24];
    size_t n_score;
    const char *merge[24];
    size_t n_merge;
    bool has_merges;
    int64_t bos, eos, pad; /* -1: no such key */
    int add_bos;           /* -1: no such key */
} hostile_parts;

static hostile_parts hostile_bpe(void) {
    return (hostile_parts){
        .model = "gpt2",
        .pre = "gpt-2",
        .token = {"a", "b", "c", "ab", "abc", "\xC4\xA0",
                  "\xC4\xA0"
                  "a",
                  "<end>", "<|im_end|>", "xy"},
        .n_token = 10,
        .kind = {1, 1, 1, 1, 1, 1, 1, 3, 3, 4},
        .n_kind = 10,
        .merge = {"a b", "ab c", "\xC4\xA0 a"},
        .n_merge = 3,
        .has_merges = true,
        .bos = 7,
        .eos = 7,
        .pad = -1,
        .add_bos = -1,
    };
}

static hostile_parts hostile_spm(void) {
    return (hostile_parts){
        .model = "llama",
        .token = {"<unk>", "<s>", "</s>", "<0x61>", "\xE2\x96\x81", "a", "b", "ab",
                  "\xE2\x96\x81"
                  "ab"},
        .n_token = 9,
        .kind = {2, 3, 3, 6, 1, 1, 1, 1, 1},
        .n_kind = 9,
        .score = {0, 0, 0, 0, -4, -3, -2, -1, -0.5F},
        .n_score = 9,
        .bos = 1,
        .eos = 2,
        .pad = -1,
        .add_bos = -1,
    };
}

static sl_status hostile_open(const hostile_parts *p, sl_tokenizer **t, sl_container **c,
                              help_gguf **g, sl_error *err) {
    *t = NULL;
    *g = help_gguf_new();
    help_gguf_str(*g, "general.architecture", "llama");
    if (p->model != NULL) {
        help_gguf_str(*g, "tokenizer.ggml.model", p->model);
    }
    if (p->pre != NULL) {
        help_gguf_str(*g, "tokenizer.ggml.pre", p->pre);
    }
    help_gguf_strings(*g, "tokenizer.ggml.tokens", p->token, p->n_token);
    if (p->n_kind > 0) {
        help_gguf_array(*g, "tokenizer.ggml.token_type", SL_META_I32, p->kind, p->n_kind);
    }
    if (p->n_score > 0) {
        help_gguf_array(*g, "tokenizer.ggml.scores", SL_META_F32, p->score, p->n_score);
    }
    if (p->has_merges) {
        help_gguf_strings(*g, "tokenizer.ggml.merges", p->merge, p->n_merge);
    }
    if (p->bos >= 0) {
        help_gguf_u32(*g, "tokenizer.ggml.bos_token_id", (uint32_t)p->bos);
    }
    if (p->eos >= 0) {
        help_gguf_u32(*g, "tokenizer.ggml.eos_token_id", (uint32_t)p->eos);
    }
    if (p->pad >= 0) {
        help_gguf_u32(*g, "tokenizer.ggml.padding_token_id", (uint32_t)p->pad);
    }
    if (p->add_bos >= 0) {
        help_gguf_bool(*g, "tokenizer.ggml.add_bos_token", p->add_bos != 0);
    }
    size_t n;
    const uint8_t *bytes = help_gguf_bytes(*g, &n);
    assert_int_equal(help_open_bytes(HELP_BY_MEMORY, &hostile_ledger, bytes, n, c, err), SL_OK);
    memset(err, 0, sizeof *err);
    return sl_tokenizer_open_container(&hostile_ledger, *c, t, err);
}

static void hostile_close(sl_tokenizer *t, sl_container *c, help_gguf *g) {
    sl_tokenizer_close(t);
    sl_container_close(c);
    help_gguf_free(g);
    hostile_books_are_empty();
}

/* It must be refused so. */
static void hostile_refused(const hostile_parts *p, sl_status want, const char *word) {
    sl_tokenizer *t;
    sl_container *c;
    help_gguf *g;
    sl_error err;
    const sl_status status = hostile_open(p, &t, &c, &g, &err);
    if (status != want || err.code != want || strstr(err.text, word) == NULL || t != NULL) {
        fail_msg("status %d, expected %d with '%s': %s", (int)status, (int)want, word, err.text);
    }
    hostile_close(t, c, g);
}

/* It must be taken, and text must become these ids (at most 15, ended by -1). */
static void hostile_taken(const hostile_parts *p, const char *text, uint32_t flags,
                          const int32_t *want) {
    sl_tokenizer *t;
    sl_container *c;
    help_gguf *g;
    sl_error err;
    int32_t ids[16];
    size_t n = 0;
    if (hostile_open(p, &t, &c, &g, &err) != SL_OK ||
        sl_tokenizer_encode(t, text, strlen(text), flags, NULL, 0, ids, 16, &n, &err) != SL_OK) {
        fail_msg("'%s': %s", text, err.text);
    }
    for (size_t i = 0; i < n || want[i] >= 0; i++) {
        if (i >= n || ids[i] != want[i]) {
            fail_msg("'%s': token %zu is %d, expected %d", text, i, i < n ? (int)ids[i] : -1,
                     (int)want[i]);
        }
    }
    hostile_close(t, c, g);
}

#define IDS(...) ((const int32_t[]){__VA_ARGS__, -1})

static void test_sound(void **state) {
    (void)state;
    hostile_parts p = hostile_bpe();
    hostile_taken(&p, "abc ab", 0, IDS(4, 5, 3));
    hostile_taken(&p, " a<end>b", 0, IDS(6, 7, 1));
    hostile_taken(&p, "bxyxya", 0, IDS(1, 9, 9, 0));
    hostile_taken(&p, "bxya", SL_TOKENIZE_NO_SPECIAL, IDS(1, 9, 0)); /* user-defined ones stay */
    hostile_taken(&p, "", 0, (const int32_t[]){-1});
    p = hostile_spm();
    hostile_taken(&p, "ab", 0, IDS(1, 8));
    hostile_taken(&p, "ba", SL_TOKENIZE_NO_BOS, IDS(4, 6, 5));
    hostile_taken(&p, "<s>ab", 0, IDS(1, 8));          /* BOS once */
    hostile_taken(&p, "azzab", 0, IDS(1, 4, 5, 0, 7)); /* unknown ones side by side are one */
    hostile_taken(&p, "<0x61>", SL_TOKENIZE_NO_BOS, IDS(4, 0)); /* not a byte by its name */
}

static void test_gguf_damage(void **state) {
    (void)state;
    hostile_parts p = hostile_bpe();
    p.model = NULL;
    hostile_refused(&p, SL_EFORMAT, "tokenizer.ggml.model");
    p.model = "t5";
    hostile_refused(&p, SL_ENOTSUP, "'t5'");
    p.model = "bert";
    hostile_refused(&p, SL_ENOTSUP, "'bert'");
    p = hostile_bpe();
    p.pre = "no-such-rule";
    hostile_refused(&p, SL_ENOTSUP, "'no-such-rule'");
    p = hostile_bpe();
    p.n_token = 0;
    p.n_kind = 0;
    hostile_refused(&p, SL_EFORMAT, "tokenizer.ggml.tokens");
    p = hostile_bpe();
    p.n_kind = 9;
    hostile_refused(&p, SL_EFORMAT, "tokenizer.ggml.token_type");
    p = hostile_bpe();
    p.has_merges = false;
    hostile_refused(&p, SL_EFORMAT, "tokenizer.ggml.merges");
    p = hostile_spm();
    p.n_score = 3;
    hostile_refused(&p, SL_EFORMAT, "tokenizer.ggml.scores");
    p = hostile_spm();
    const uint32_t nan_bits = 0x7FC00000u;
    memcpy(&p.score[4], &nan_bits, sizeof nan_bits);
    hostile_refused(&p, SL_EFORMAT, "element 4");
    p = hostile_bpe();
    p.add_bos = 1;
    p.bos = -1;
    hostile_refused(&p, SL_EFORMAT, "bos_token_id");
    p.bos = 10; /* one past the end */
    hostile_refused(&p, SL_EFORMAT, "bos_token_id");
    static char huge[SL_MAX_TOKEN_BYTES + 2];
    memset(huge, 'a', SL_MAX_TOKEN_BYTES + 1);
    p = hostile_bpe();
    p.token[4] = huge;
    hostile_refused(&p, SL_ELIMIT, "token 4");
}

static void test_gguf_defined(void **state) {
    (void)state;
    /* No pre: "default". Nothing wrong with bad ids that nobody uses. */
    hostile_parts p = hostile_bpe();
    p.pre = NULL;
    p.bos = 4000000000;
    p.pad = 77;
    hostile_taken(&p, "abc", 0, IDS(4));
    /* Of equal texts the lowest id. */
    p = hostile_bpe();
    p.token[4] = "ab";
    hostile_taken(&p, "ab", 0, IDS(3));
    hostile_taken(&p, "abc", 0, IDS(3, 2));
    /* Merges that name or make no token, that are no pair, that repeat. */
    p = hostile_bpe();
    p.merge[3] = "a z";
    p.merge[4] = "b c";
    p.merge[5] = "a";
    p.merge[6] = "";
    p.merge[7] = " ";
    p.merge[8] = "a b";
    p.merge[9] = "\xFF\xFE \xC4";
    p.n_merge = 10;
    hostile_taken(&p, "abc", 0, IDS(4));
    /* Merges of control tokens never happen. */
    p = hostile_bpe();
    p.token[7] = "cb";
    p.merge[3] = "c b";
    p.n_merge = 4;
    hostile_taken(&p, "cb", SL_TOKENIZE_NO_SPECIAL, IDS(2, 1));
    /* Empty tokens, kinds of no meaning, tokens outside the alphabet. */
    p = hostile_bpe();
    p.token[2] = "";
    p.token[7] = "";
    p.token[9] = "";
    p.kind[0] = 99;
    p.kind[1] = -5;
    p.token[6] = "\xE4\xBD\xA0";
    hostile_taken(&p, "ab", 0, IDS(3));
    /* A byte that has no token gives nothing, or the unknown token. */
    p = hostile_bpe();
    hostile_taken(&p, "azb", 0, IDS(0, 1));
    p = hostile_spm();
    p.n_kind = 0; /* old files: bytes are known by their form */
    hostile_taken(&p, "ab", 0, IDS(1, 8));
    p = hostile_spm();
    p.n_score = 0; /* all alike: from the left */
    hostile_taken(&p, "ab", 0, IDS(1, 8));
    /* Defaults of ids that a vocabulary is too small for. */
    p = hostile_spm();
    p.n_token = 1;
    p.n_kind = p.n_score = 1;
    p.bos = p.eos = -1;
    hostile_refused(&p, SL_EFORMAT, "BOS");
    p.add_bos = 0;
    hostile_taken(&p, "ab", 0, IDS(0));
    /* User-defined tokens: the longest at the leftmost place. */
    p = hostile_bpe();
    p.token[7] = "aa";
    p.token[8] = "aaa";
    p.token[9] = "a<";
    p.kind[7] = p.kind[8] = p.kind[9] = 4;
    hostile_taken(&p, "aaaaa", SL_TOKENIZE_NO_SPECIAL, IDS(8, 7));
    hostile_taken(&p, "aaaa<", SL_TOKENIZE_NO_SPECIAL, IDS(8, 9));
}

/* Keys of the wrong type. */
static void test_gguf_types(void **state) {
    (void)state;
    static const char *const keys[] = {"tokenizer.ggml.tokens", "tokenizer.ggml.token_type",
                                       "tokenizer.ggml.merges", "tokenizer.ggml.model",
                                       "tokenizer.ggml.pre",    "tokenizer.ggml.add_bos_token",
                                       "tokenizer.ggml.scores"};
    static const char *const tokens[] = {"a", "b"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        help_gguf *g = help_gguf_new();
        const bool spm = i == 6;
        if (i != 3) {
            help_gguf_str(g, "tokenizer.ggml.model", spm ? "llama" : "gpt2");
        }
        if (i != 0) {
            help_gguf_strings(g, "tokenizer.ggml.tokens", tokens, 2);
        }
        if (i != 2) {
            help_gguf_strings(g, "tokenizer.ggml.merges", tokens, 2);
        }
        help_gguf_f32(g, keys[i], 1.5F);
        size_t n;
        const uint8_t *bytes = help_gguf_bytes(g, &n);
        sl_container *c;
        sl_tokenizer *t = NULL;
        sl_error err;
        assert_int_equal(help_open_bytes(HELP_BY_MEMORY, &hostile_ledger, bytes, n, &c, &err),
                         SL_OK);
        assert_int_equal(sl_tokenizer_open_container(&hostile_ledger, c, &t, &err), SL_EFORMAT);
        assert_non_null(strstr(err.text, keys[i]));
        hostile_close(t, c, g);
    }
}

/* ---- tokenizer.json ---- */

#define VOCAB "{\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"\\u0120\":4,\"\\u2581\":5,\"<0x41>\":6}"
#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
#define MARK "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\\u2581\"}"

/* %1: fields before, %2: the model's fields. */
static char *hostile_json(const char *fields, const char *model) {
    static char text[8192];
    (void)snprintf(text, sizeof text, "{\"version\":\"1.0\",%s\"model\":{\"type\":\"BPE\",%s}}",
                   fields, model);
    return text;
}

#define GOOD_MODEL "\"vocab\":" VOCAB ",\"merges\":[\"a b\"]"

static void json_is(const char *json, sl_status want, const char *word) {
    sl_tokenizer *t = NULL;
    sl_error err = {0};
    const sl_status status =
        sl_tokenizer_open_json(&hostile_ledger, json, strlen(json), "some.json", NULL, &t, &err);
    if (status != want || (want != SL_OK && (strstr(err.text, word) == NULL || err.code != want ||
                                             strstr(err.text, "some.json") == NULL))) {
        fail_msg("status %d, expected %d with '%s': %s\n%s", (int)status, (int)want, word, err.text,
                 json);
    }
    sl_tokenizer_close(t);
    hostile_books_are_empty();
}

static void test_json_damage(void **state) {
    (void)state;
    const char *bl = "\"pre_tokenizer\":" BYTE_LEVEL ",";
    json_is(hostile_json(bl, GOOD_MODEL), SL_OK, "");
    json_is(hostile_json("\"normalizer\":" MARK ",", GOOD_MODEL), SL_OK, "");
    json_is("", SL_EFORMAT, "line 1");
    json_is("[]", SL_EFORMAT, "object");
    json_is("{}", SL_EFORMAT, "\"model\"");
    json_is("{\"model\":7}", SL_EFORMAT, "object");
    json_is("{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}", SL_ENOTSUP, "'Unigram'");
    json_is("{\"model\":{\"type\":\"WordPiece\",\"vocab\":{}}}", SL_ENOTSUP, "'WordPiece'");
    static const struct {
        const char *model;
        sl_status status;
        const char *word;
    } models[] = {
        {"\"vocab\":{}", SL_EFORMAT, "merges"},
        {"\"merges\":[]", SL_EFORMAT, "vocab"},
        {"\"vocab\":{},\"merges\":[]", SL_EFORMAT, "0 tokens"},
        {"\"vocab\":[],\"merges\":[]", SL_EFORMAT, "vocab"},
        {"\"vocab\":{\"a\":-1},\"merges\":[]", SL_EFORMAT, "id -1"},
        {"\"vocab\":{\"a\":4194304},\"merges\":[]", SL_EFORMAT, "4194304"},
        {"\"vocab\":{\"a\":4194303},\"merges\":[]", SL_EFORMAT, "4194303"},
        {"\"vocab\":{\"a\":1.5},\"merges\":[]", SL_EFORMAT, "line 1"},
        {"\"vocab\":{\"a\":\"b\"},\"merges\":[]", SL_EFORMAT, "line 1"},
        {"\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]", SL_EFORMAT, "used twice"},
        {"\"vocab\":{\"a\":0},\"merges\":7", SL_EFORMAT, "array"},
        {"\"vocab\":{\"a\":0},\"merges\":[7]", SL_EFORMAT, "line 1"},
        {"\"vocab\":{\"a\":0},\"merges\":[\"a\"]", SL_EFORMAT, "merge 0"},
        {"\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]", SL_EFORMAT, "merge 0"},
        {"\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"a\",\"a\"]]", SL_EFORMAT, "merge 0"},
        {"\"vocab\":{\"a\":0},\"merges\":[\"a x\"]", SL_EFORMAT, "'x'"},
        {"\"vocab\":{\"a\":0},\"merges\":[\"a a\"]", SL_EFORMAT, "merge 0"},
        {GOOD_MODEL ",\"unk_token\":\"<unk>\"", SL_EFORMAT, "'<unk>'"},
        {GOOD_MODEL ",\"dropout\":0.1", SL_ENOTSUP, "dropout"},
        {GOOD_MODEL ",\"continuing_subword_prefix\":\"##\"", SL_ENOTSUP, "'##'"},
        {GOOD_MODEL ",\"end_of_word_suffix\":\"</w>\"", SL_ENOTSUP, "'</w>'"},
    };
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        json_is(hostile_json(bl, models[i].model), models[i].status, models[i].word);
    }
}

static void test_json_parts(void **state) {
    (void)state;
#define PRE(x) "\"pre_tokenizer\":" x ","
#define NORM(x) "\"normalizer\":" x ","
#define POST(x) "\"post_processor\":" x "," PRE(BYTE_LEVEL)
#define DEC(x) "\"decoder\":" x "," PRE(BYTE_LEVEL)
#define ADDED(x) "\"added_tokens\":" x "," PRE(BYTE_LEVEL)
#define SPLIT(re, how)                                                                            \
    PRE("{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{" re "},"     \
        "\"behavior\":\"" how "\",\"invert\":false},{\"type\":\"ByteLevel\",\"use_regex\":false," \
        "\"add_prefix_space\":false}]}")
    static const struct {
        const char *fields;
        sl_status status;
        const char *word;
    } parts[] = {
        {"", SL_ENOTSUP, "ByteLevel"},
        {PRE("null") NORM("null"), SL_ENOTSUP, "ByteLevel"},
        {PRE("{\"type\":\"Whitespace\"}"), SL_ENOTSUP, "'Whitespace'"},
        {PRE("{\"x\":1}"), SL_EFORMAT, "without a type"},
        {PRE("7"), SL_EFORMAT, "without a type"},
        {PRE("{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Sequence\"}]}"), SL_ENOTSUP,
         "'Sequence'"},
        {PRE("{\"type\":\"Sequence\",\"pretokenizers\":{}}"), SL_EFORMAT, "array"},
        {SPLIT("\"Regex\":\"\\\\p{N}\"", "Isolated"), SL_ENOTSUP, "sequence of 1"},
        {SPLIT("\"Regex\":\"[a-z]+\"", "Isolated"), SL_ENOTSUP, "'[a-z]+'"},
        {SPLIT("\"String\":\"x\"", "Isolated"), SL_ENOTSUP, "'x'"},
        {SPLIT("\"Regex\":\"\\\\p{N}\"", "Removed"), SL_ENOTSUP, "'Removed'"},
        {PRE("{\"type\":\"Sequence\",\"pretokenizers\":[" BYTE_LEVEL
             ",{\"type\":\"Digits\",\"individual_digits\":true}]}"),
         SL_ENOTSUP, "after ByteLevel"},
        {PRE("{\"type\":\"Metaspace\",\"replacement\":\"_\"}"), SL_ENOTSUP, "'_'"},
        {PRE("{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\",\"prepend_scheme\":\"x\"}"),
         SL_ENOTSUP, "'x'"},
        {PRE("{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\",\"prepend_scheme\":\"first\"}"),
         SL_OK, ""},
        {NORM("{\"type\":\"Lowercase\"}"), SL_ENOTSUP, "'Lowercase'"},
        {NORM("{\"type\":\"Prepend\",\"prepend\":\"x\"}"), SL_ENOTSUP, "'x'"},
        {NORM("{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" \"},\"content\":\"\\u2581\"}"),
         SL_ENOTSUP, "expression"},
        {NORM("{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"b\"}"),
         SL_ENOTSUP, "'a'"},
        {NORM(MARK) PRE(BYTE_LEVEL), SL_ENOTSUP, "ByteLevel"},
        {POST("{\"type\":\"RobertaProcessing\"}"), SL_ENOTSUP, "'RobertaProcessing'"},
        {POST("{\"type\":\"TemplateProcessing\",\"single\":[]}"), SL_ENOTSUP, "templates"},
        {POST("{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"a\"}},"
              "{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{}}"),
         SL_EFORMAT, "'a'"},
        {POST("{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"a\"}},"
              "{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"a\":{\"ids\":[900]}}}"),
         SL_EFORMAT, "outside"},
        {POST("{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"a\"}},"
              "{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"a\":{\"ids\":[0]}}}"),
         SL_OK, ""},
        {DEC("{\"type\":\"WordPiece\"}"), SL_ENOTSUP, "'WordPiece'"},
        {DEC("{\"type\":\"Strip\",\"content\":\" \",\"start\":2,\"stop\":0}"), SL_ENOTSUP, "Strip"},
        {ADDED("7"), SL_EFORMAT, "array"},
        {ADDED("[7]"), SL_EFORMAT, "object"},
        {ADDED("[{\"content\":\"x\"}]"), SL_EFORMAT, "id"},
        {ADDED("[{\"id\":9}]"), SL_EFORMAT, "content"},
        {ADDED("[{\"id\":9,\"content\":\"x\"},{\"id\":9,\"content\":\"y\"}]"), SL_EFORMAT, "twice"},
        {ADDED("[{\"id\":0,\"content\":\"x\"}]"), SL_EFORMAT, "one token"},
        {ADDED("[{\"id\":4194303,\"content\":\"x\"}]"), SL_EFORMAT, "4194303"},
        {ADDED("[{\"id\":9,\"content\":\"\"},{\"id\":8,\"content\":\"\\ud800\"}]"), SL_OK, ""},
        {ADDED("[{\"id\":9,\"content\":\"x\",\"special\":\"yes\"}]"), SL_EFORMAT, "line 1"},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        json_is(hostile_json(parts[i].fields, GOOD_MODEL), parts[i].status, parts[i].word);
    }
}

/* A file that ends too early at any byte, and one with any byte replaced. */
static void test_json_cut(void **state) {
    (void)state;
    const char *json = hostile_json(
        "\"added_tokens\":[{\"id\":7,\"content\":\"<x>\",\"special\":true,\"lstrip\":true}],"
        "\"pre_tokenizer\":" BYTE_LEVEL ",",
        GOOD_MODEL);
    const size_t n = strlen(json);
    char *copy = malloc(n);
    assert_non_null(copy);
    for (size_t cut = 0; cut < n; cut++) {
        sl_tokenizer *t = NULL;
        sl_error err;
        memcpy(copy, json, cut);
        assert_int_equal(sl_tokenizer_open_json(&hostile_ledger, copy, cut, "cut", NULL, &t, &err),
                         SL_EFORMAT);
    }
    static const char replace[] = "\"{}[],:0\\\x01\xFFn";
    for (size_t i = 0; i < n; i++) {
        for (const char *r = replace; *r != '\0'; r++) {
            sl_tokenizer *t = NULL;
            sl_error err;
            memcpy(copy, json, n);
            copy[i] = *r;
            const sl_status status =
                sl_tokenizer_open_json(&hostile_ledger, copy, n, "bent", NULL, &t, &err);
            assert_true(status == SL_OK || status == SL_EFORMAT || status == SL_ENOTSUP);
            if (status == SL_OK) {
                int32_t ids[64];
                size_t n_ids;
                assert_int_equal(
                    sl_tokenizer_encode(t, "a <x>ab c", 9, 0, NULL, 0, ids, 64, &n_ids, &err),
                    SL_OK);
            }
            sl_tokenizer_close(t);
        }
    }
    free(copy);
    hostile_books_are_empty();
}

int main(void) {
    sl_ledger_init(&hostile_ledger, (size_t)16 << 20);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound),        cmocka_unit_test(test_gguf_damage),
        cmocka_unit_test(test_gguf_defined), cmocka_unit_test(test_gguf_types),
        cmocka_unit_test(test_json_damage),  cmocka_unit_test(test_json_parts),
        cmocka_unit_test(test_json_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
