/* help_golden.c - see help_golden.h. */
#include "help_golden.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_gguf.h"
#include "help_paths.h"

const char *const golden_tree[] = {
    "llama_rope3_tied-f16", "llama_spm-q8_0",   "qwen2-q8_0", "gemma3_text-q8_0",
    "qwen3_k256-q4_k",      "mistral_swa-q8_0", NULL};

const char *golden_path(const char *file) { return help_text("%s/golden/%s", SL_TEST_DATA, file); }

void *golden_alloc(size_t n, size_t size) {
    void *p = calloc(n > 0 ? n : 1, size);
    if (p == NULL) {
        fail_msg("the test itself is out of memory (%zu x %zu bytes)", n, size);
    }
    return p;
}

/* ---- the .vec reader: one word after another ---------------------------------------------------------------------- */

typedef struct vec_reader {
    const char *path;
    char *at;
    int line;
} vec_reader;

static bool vec_key(vec_reader *r, char *key, size_t cap) {
    while (*r->at == '\n' || *r->at == '#') {
        char *end = strchr(r->at, '\n');
        if (end == NULL) {
            return false;
        }
        r->at = end + 1;
        r->line++;
    }
    const size_t n = strcspn(r->at, " \n");
    if (n == 0 || n >= cap) {
        return false;
    }
    memcpy(key, r->at, n);
    key[n] = '\0';
    r->at += n;
    return true;
}

static void vec_word(vec_reader *r, char *out, size_t cap) {
    r->at += *r->at == ' ';
    const size_t n = strcspn(r->at, " \n");
    if (n == 0 || n >= cap) {
        fail_msg("%s:%d: a word of 1..%zu letters is missing", r->path, r->line, cap - 1);
    }
    memcpy(out, r->at, n);
    out[n] = '\0';
    r->at += n;
}

static double vec_double(vec_reader *r) {
    char *end = NULL;
    const double value = strtod(r->at, &end);
    if (end == r->at) {
        fail_msg("%s:%d: a number is missing", r->path, r->line);
    }
    r->at = end;
    return value;
}

static int32_t vec_int(vec_reader *r, int32_t low, int32_t high) {
    char *end = NULL;
    const long value = strtol(r->at, &end, 10);
    if (end == r->at || value < low || value > high) {
        fail_msg("%s:%d: an integer in %d..%d is missing", r->path, r->line, low, high);
    }
    r->at = end;
    return (int32_t)value;
}

static int32_t *vec_ints(vec_reader *r, int32_t *n, int32_t want) {
    *n = vec_int(r, 1, 1 << 20);
    if (want > 0 && *n != want) {
        fail_msg("%s:%d: %d values where %d belong", r->path, r->line, *n, want);
    }
    int32_t *out = golden_alloc((size_t)*n, sizeof *out);
    for (int32_t i = 0; i < *n; i++) {
        out[i] = vec_int(r, 0, 1 << 24);
    }
    return out;
}

static float *vec_floats(vec_reader *r, int32_t want) {
    const int32_t n = vec_int(r, 1, 1 << 24);
    if (n != want) {
        fail_msg("%s:%d: %d values where %d belong", r->path, r->line, n, want);
    }
    float *out = golden_alloc((size_t)n, sizeof *out);
    for (int32_t i = 0; i < n; i++) {
        out[i] = strtof(r->at, &r->at);
    }
    return out;
}

static void vec_item(vec_reader *r, const char *key, golden_vec *vec, golden_prompt *p) {
    int32_t n = 0;
    if (strcmp(key, "ids") == 0) {
        p->ids = vec_ints(r, &p->n_ids, 0);
    } else if (strcmp(key, "argmax") == 0) {
        p->argmax = vec_ints(r, &n, p->n_ids);
    } else if (strcmp(key, "max") == 0) {
        p->max = vec_floats(r, p->n_ids);
    } else if (strcmp(key, "logsumexp") == 0) {
        p->logsumexp = vec_floats(r, p->n_ids);
    } else if (strcmp(key, "last") == 0) {
        p->last = vec_floats(r, vec->n_vocab);
    } else if (strcmp(key, "logits") == 0) {
        p->logits = vec_floats(r, p->n_ids * vec->n_vocab);
    } else if (strcmp(key, "greedy") == 0) {
        p->greedy = vec_ints(r, &p->n_greedy, 0);
    } else if (strcmp(key, "gaps") == 0) {
        p->gaps = vec_floats(r, p->n_greedy);
    } else if (strcmp(key, "noise") == 0 && p->n_noise < GOLDEN_MAX_NOISE) {
        golden_noise *noise = &p->noise[p->n_noise++];
        vec_word(r, noise->type, sizeof noise->type);
        noise->nmse = vec_double(r);
        noise->max = vec_double(r);
    } else {
        fail_msg("%s:%d: the item '%s' is not known or comes too often", r->path, r->line, key);
    }
}

void golden_load(const char *path, golden_vec *out) {
    char *text = help_read(path, NULL);
    if (text == NULL) {
        fail_msg("%s cannot be read", path);
    }
    memset(out, 0, sizeof *out);
    vec_reader r = {path, text, 1};
    golden_prompt *p = NULL;
    char key[32];
    bool ended = false;
    while (!ended && vec_key(&r, key, sizeof key)) {
        if (strcmp(key, "end") == 0) {
            ended = true;
        } else if (strcmp(key, "model") == 0) {
            vec_word(&r, out->model, sizeof out->model);
        } else if (strcmp(key, "n_vocab") == 0) {
            out->n_vocab = vec_int(&r, 1, 1 << 22);
        } else if (strcmp(key, "window") == 0) {
            out->window = vec_int(&r, 1, 1 << 22);
        } else if (strcmp(key, "prompt") == 0 && out->n_prompt < GOLDEN_MAX_PROMPT) {
            p = &out->prompt[out->n_prompt++];
            vec_word(&r, p->name, sizeof p->name);
        } else if (p == NULL) {
            fail_msg("%s:%d: '%s' stands before the first prompt", path, r.line, key);
        } else {
            vec_item(&r, key, out, p);
        }
        if (*r.at != '\n') {
            fail_msg("%s:%d: more than '%s' asks for", path, r.line, key);
        }
    }
    if (!ended || out->n_prompt == 0) {
        fail_msg("%s:%d: the file ends early", path, r.line);
    }
    for (int32_t i = 0; i < out->n_prompt; i++) {
        const golden_prompt *have = &out->prompt[i];
        if (have->ids == NULL || have->argmax == NULL || have->max == NULL || have->last == NULL) {
            fail_msg("%s: prompt '%s' lacks ids, argmax, max or last", path, have->name);
        }
    }
    free(text);
}

void golden_free(golden_vec *vec) {
    for (int32_t i = 0; i < vec->n_prompt; i++) {
        golden_prompt *p = &vec->prompt[i];
        free(p->ids);
        free(p->argmax);
        free(p->max);
        free(p->logsumexp);
        free(p->last);
        free(p->logits);
        free(p->greedy);
        free(p->gaps);
    }
    memset(vec, 0, sizeof *vec);
}

const golden_prompt *golden_find(const golden_vec *vec, const char *name) {
    for (int32_t i = 0; i < vec->n_prompt; i++) {
        if (strcmp(vec->prompt[i].name, name) == 0) {
            return &vec->prompt[i];
        }
    }
    return NULL;
}

/* ---- the model under test ------------------------------------------------------------------------------------------- */

void golden_status(sl_status got, sl_status want, const sl_error *err, const char *file, int line) {
    if (got != want) {
        print_error("%s, expected %s%s%s\n", sl_status_name(got), sl_status_name(want),
                    got != SL_OK && err != NULL ? ": " : "",
                    got != SL_OK && err != NULL ? err->text : "");
        _fail(file, line);
    }
    if (want != SL_OK && err != NULL) {
        if (err->code != want || err->text[0] == '\0' || strchr(err->text, '\n') != NULL) {
            print_error("the status is %s but the error says %s '%s'\n", sl_status_name(want),
                        sl_status_name(err->code), err->text);
            _fail(file, line);
        }
    }
}

void golden_open(golden_rig *rig, const char *path, const sl_engine_options *engine_options,
                 const sl_model_options *model_options, const sl_session_options *session_options) {
    sl_error err;
    memset(rig, 0, sizeof *rig);
    GOLDEN_STATUS(sl_engine_open(engine_options, &rig->engine, &err), SL_OK, &err);
    GOLDEN_STATUS(sl_model_open(rig->engine, path, model_options, &rig->model, &err), SL_OK, &err);
    GOLDEN_STATUS(sl_session_open(rig->model, session_options, &rig->session, &err), SL_OK, &err);
    sl_model_info info;
    sl_model_get_info(rig->model, &info);
    rig->n_vocab = info.n_vocab;
}

void golden_close(golden_rig *rig) {
    sl_session_close(rig->session);
    sl_model_close(rig->model);
    sl_engine_close(rig->engine);
    memset(rig, 0, sizeof *rig);
}

typedef struct logits_sink {
    float *out;
    int32_t n_seen;
    int32_t n_vocab;
    bool ordered;
} logits_sink;

static void logits_collect(void *user, int32_t i_token, const float *logits, int32_t n_vocab) {
    logits_sink *sink = user;
    if (i_token != sink->n_seen || n_vocab != sink->n_vocab) {
        sink->ordered = false;
        return;
    }
    memcpy(sink->out + (size_t)i_token * (size_t)n_vocab, logits, (size_t)n_vocab * sizeof *logits);
    sink->n_seen++;
}

void golden_eval(golden_rig *rig, const int32_t *ids, int32_t n_ids, float *out) {
    sl_error err;
    logits_sink sink = {out, 0, rig->n_vocab, true};
    GOLDEN_STATUS(
        sl_session_eval(rig->session, ids, (size_t)n_ids, SL_WANT_ALL, logits_collect, &sink, &err),
        SL_OK, &err);
    assert_true(sink.ordered);
    assert_int_equal(sink.n_seen, n_ids);
}

double golden_nmse(const float *a, const float *b, size_t n, double *max_abs) {
    double error = 0, power = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)a[i] - (double)b[i];
        error += d * d;
        power += (double)b[i] * (double)b[i];
        /* Written so that a NaN wins and is seen. */
        most = fabs(d) <= most ? most : fabs(d);
    }
    if (max_abs != NULL) {
        *max_abs = most;
    }
    return error / power;
}

int32_t golden_argmax(const float *x, int32_t n) {
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++) {
        best = x[i] > x[best] ? i : best;
    }
    return best;
}

float golden_gap(const float *x, int32_t n) {
    const int32_t best = golden_argmax(x, n);
    float second = -INFINITY;
    for (int32_t i = 0; i < n; i++) {
        if (i != best && x[i] > second) {
            second = x[i];
        }
    }
    return x[best] - second;
}

struct help_gguf *golden_chat_gguf(void) {
    enum { N_ASCII = 94, N_TOKEN = N_ASCII + 4 };
    static char ascii[N_ASCII][2];
    const char *tokens[N_TOKEN];
    int32_t kinds[N_TOKEN];
    for (int32_t i = 0; i < N_ASCII; i++) {
        ascii[i][0] = (char)('!' + i);
        tokens[i] = ascii[i];
        kinds[i] = 1;
    }
    /* The byte-level alphabet's letters for space and line end, then the control tokens. */
    tokens[N_ASCII] = "\xC4\xA0";
    tokens[N_ASCII + 1] = "\xC4\x8A";
    tokens[N_ASCII + 2] = "<|im_start|>";
    tokens[N_ASCII + 3] = "<|im_end|>";
    kinds[N_ASCII] = kinds[N_ASCII + 1] = 1;
    kinds[N_ASCII + 2] = kinds[N_ASCII + 3] = 3;
    const char *const merges[] = {"a b"};
    help_gguf *g = help_gguf_new();
    help_gguf_str(g, "general.architecture", "llama");
    help_gguf_str(g, "tokenizer.ggml.model", "gpt2");
    help_gguf_str(g, "tokenizer.ggml.pre", "default");
    help_gguf_strings(g, "tokenizer.ggml.tokens", tokens, N_TOKEN);
    help_gguf_array(g, "tokenizer.ggml.token_type", SL_META_I32, kinds, N_TOKEN);
    help_gguf_strings(g, "tokenizer.ggml.merges", merges, 1);
    help_gguf_u32(g, "tokenizer.ggml.eos_token_id", N_ASCII + 3);
    help_gguf_str(g, "tokenizer.chat_template",
                  "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
                  "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
                  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}");
    return g;
}
