/* cmd_run.c - sluice run: the model's answer to a prompt, streamed.
 *
 * The generated text alone goes to standard output, flushed with every token; what it took goes to standard error when
 * the run ends, however it ends: by itself, by Ctrl-C, or because the reader went away. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "command.h"
#include "interrupt.h"
#include "json_out.h"
#include "models.h"
#include "report.h"
#include "sluice.h"
#include "text_io.h"

typedef struct run_args {
    cli_args common;
    const char *prompt, *file, *system;
    bool chat, quiet, ignore_eog;
    int32_t max_tokens, top_k, repeat_last_n;
    float temperature, top_p, min_p, repeat_penalty;
    cli_seed seed;
    cli_list stop;
    int32_t n_thread, n_ctx, n_batch;
    const char *store, *isa, *kv_type, *tokenizer_json;
    size_t limit_bytes;
} run_args;

/* What one run holds, from the first open to the report. */
typedef struct run_state {
    const run_args *args;
    sl_engine *engine;
    sl_model *model;
    sl_session *session;
    int32_t *ids; /* of the prompt */
    size_t n_ids;
    uint64_t load_us;
    /* of the loading notice */
    uint64_t start_us;
    bool notice_shown;
    int notice_percent;
    /* of the generation */
    cli_text text;  /* with --json: the text */
    cli_text made;  /* with --json: the ids */
    bool line_open; /* the last byte shown was no line feed */
    bool no_memory;
    bool finished; /* result is the library's */
    sl_generate_result result;
} run_state;

static bool run_say(const run_args *args) { return !args->quiet && !args->common.json; }

/* ---- the prompt ---- */

static bool run_check(const run_args *args) {
    if (args->prompt == NULL && args->file == NULL) {
        cli_fail(CLI_USAGE,
                 "run: a prompt is missing: -p TEXT, -p - for standard input, or -f FILE");
        return false;
    }
    if (args->prompt != NULL && args->file != NULL) {
        cli_fail(CLI_USAGE, "run: --prompt and --file cannot both be given");
        return false;
    }
    if (args->system != NULL && !args->chat) {
        cli_fail(CLI_USAGE, "run: --system needs --chat: without it the prompt is the whole text");
        return false;
    }
    for (size_t i = 0; i < args->stop.n; i++) {
        const size_t n = strlen(args->stop.item[i]);
        if (n == 0 || n > 1024) {
            cli_fail(CLI_USAGE, "run: --stop: a stop string has 1 to 1024 bytes, not %zu", n);
            return false;
        }
    }
    return true;
}

static sl_status run_tokenize_into(run_state *run, const char *text, size_t n_text, size_t cap,
                                   sl_error *err) {
    const run_args *args = run->args;
    if (!args->chat) {
        return sl_tokenize(run->model, text, n_text, 0, run->ids, cap, &run->n_ids, err);
    }
    sl_message messages[2];
    size_t n = 0;
    if (args->system != NULL) {
        messages[n++] = (sl_message){"system", args->system, strlen(args->system)};
    }
    messages[n++] = (sl_message){"user", text, n_text};
    return sl_chat_tokenize(run->model, messages, n, true, run->ids, cap, &run->n_ids, err);
}

static bool run_tokenize(run_state *run, const char *text, size_t n_text) {
    sl_error err;
    /* A token has at least one byte; a chat form adds a few. When that guess is short the count is known. */
    size_t cap = n_text + (run->args->system != NULL ? strlen(run->args->system) : 0) + 256;
    for (int round = 0; round < 2; round++) {
        free(run->ids);
        run->ids = calloc(cap, sizeof *run->ids);
        if (run->ids == NULL) {
            cli_fail(CLI_FAILED, "the system has no more memory");
            return false;
        }
        const sl_status status = run_tokenize_into(run, text, n_text, cap, &err);
        if (status == SL_OK) {
            return true;
        }
        if (status != SL_ELIMIT || run->n_ids <= cap) {
            break;
        }
        cap = run->n_ids;
    }
    cli_fail(CLI_FAILED, "%s", err.text);
    return false;
}

/* ---- loading ---- */

static bool run_progress(void *user, float share) {
    run_state *run = user;
    const int percent = (int)(share * 100.0f);
    if (run_say(run->args) && percent != run->notice_percent && isatty(STDERR_FILENO) &&
        cli_now_us() - run->start_us > 500000) {
        fprintf(stderr, "\rloading %3d %%", percent);
        run->notice_shown = true;
        run->notice_percent = percent;
    }
    return cli_interrupted() == 0;
}

/* Is the store one that the library has? Asked before the model is opened, so that a mistyped name is wrong usage. */
static bool run_check_store(const run_state *run) {
    const char *wanted = run->args->store;
    const size_t n = strlen(wanted);
    sl_about about;
    sl_engine_about(run->engine, &about);
    for (const char *at = about.stores; n != 0 && *at != '\0';) {
        const size_t n_word = strcspn(at, " ");
        if (n_word == n && memcmp(at, wanted, n) == 0) {
            return true;
        }
        at += n_word + strspn(at + n_word, " ");
    }
    cli_fail(CLI_USAGE, "run: --store: '%s' is no store; a path can be read by mmap or direct",
             wanted);
    return false;
}

static int run_fault(const sl_error *err) {
    return cli_fail(CLI_FAILED, "%s%s", err->text,
                    err->code == SL_EBUDGET
                        ? "; raise --mem-limit, or lower --ctx for a smaller KV cache"
                        : "");
}

/* What the library calls EINVAL about an engine's or a session's options was a flag of ours. */
static int run_option_fault(const sl_error *err) {
    return err->code == SL_EINVAL ? cli_fail(CLI_USAGE, "run: %s", err->text) : run_fault(err);
}

static int run_open(run_state *run, const char *path) {
    const run_args *args = run->args;
    sl_error err;
    run->start_us = cli_now_us();
    const sl_engine_options engine_options = {.size = sizeof engine_options,
                                              .n_thread = args->n_thread,
                                              .isa = args->isa,
                                              .limit_bytes = args->limit_bytes};
    cli_interrupt_begin();
    const sl_status opened = sl_engine_open(&engine_options, &run->engine, &err);
    cli_interrupt_ready();
    if (opened != SL_OK) {
        return run_option_fault(&err);
    }
    if (!run_check_store(run)) {
        return CLI_USAGE;
    }
    const sl_model_options model_options = {.size = sizeof model_options,
                                            .store = args->store,
                                            .tokenizer_json = args->tokenizer_json,
                                            .progress = run_progress,
                                            .progress_user = run};
    const sl_status loaded = sl_model_open(run->engine, path, &model_options, &run->model, &err);
    if (run->notice_shown) {
        fprintf(stderr, "\r\033[K");
    }
    if (loaded != SL_OK) {
        return loaded == SL_ECANCEL ? CLI_OK : run_fault(&err);
    }
    return CLI_OK;
}

static int run_open_session(run_state *run) {
    sl_error err;
    const sl_session_options options = {.size = sizeof options,
                                        .n_ctx = run->args->n_ctx,
                                        .n_batch = run->args->n_batch,
                                        .kv_type = run->args->kv_type};
    if (sl_session_open(run->model, &options, &run->session, &err) != SL_OK) {
        return run_option_fault(&err);
    }
    cli_interrupt_watch(run->session);
    return CLI_OK;
}

/* ---- generating ---- */

static bool run_on_text(void *user, int32_t id, const char *text, size_t n_text) {
    run_state *run = user;
    if (run->args->common.json) {
        /* The last call of a generation may bring text that was held back, and no token. */
        if (!cli_text_put(&run->text, text, n_text) ||
            (id >= 0 && !cli_text_put(&run->made, (const char *)&id, sizeof id))) {
            run->no_memory = true;
            return false;
        }
    } else if (n_text != 0) {
        run->line_open = text[n_text - 1] != '\n';
        if (!cli_out(text, n_text) || !cli_out_flush()) {
            return false;
        }
    }
    return cli_interrupted() == 0;
}

/* Seeds that a person can type again: 32 random bits. */
static uint64_t run_seed(const run_args *args) {
    uint32_t bits = 0;
    if (args->seed.given) {
        return args->seed.value;
    }
    if (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits) {
        bits = (uint32_t)cli_now_us();
    }
    return bits;
}

static int run_generate(run_state *run) {
    const run_args *args = run->args;
    sl_error err;
    const sl_generate_options options = {
        .size = sizeof options,
        .max_tokens = args->max_tokens,
        .sampling = {.temperature = args->temperature,
                     .top_k = args->top_k,
                     .top_p = args->top_p,
                     .min_p = args->min_p,
                     .repeat_penalty = args->repeat_penalty,
                     .repeat_last_n = args->repeat_last_n,
                     .seed = run_seed(args)},
        .stop = args->stop.item,
        .n_stop = args->stop.n,
        .ignore_eog = args->ignore_eog,
    };
    run->result.seed = options.sampling.seed;
    run->result.i_stop = -1;
    const sl_status status = sl_generate(run->session, run->ids, run->n_ids, &options, run_on_text,
                                         run, &run->result, &err);
    cli_interrupt_watch(NULL);
    if (run->line_open && cli_out_is_terminal()) {
        cli_out("\n", 1);
    }
    if (run->no_memory) {
        return cli_fail(CLI_FAILED, "the system has no more memory");
    }
    if (status == SL_OK) {
        run->finished = true;
        return CLI_OK;
    }
    if (status == SL_ECANCEL) { /* the result says how far it came */
        return CLI_OK;
    }
    return cli_fail(CLI_FAILED, "%s", err.text);
}

/* ---- the report ---- */

static const char *run_finish(const run_state *run) {
    if (cli_interrupted() != 0) {
        return "cancelled";
    }
    if (!run->finished || run->result.finish == SL_FINISH_CALLBACK) {
        return "closed";
    }
    return run->result.finish == SL_FINISH_EOG    ? "eog"
           : run->result.finish == SL_FINISH_STOP ? "stop"
                                                  : "length";
}

static double run_rate(int32_t n, uint64_t us) {
    return n > 0 && us > 0 ? (double)n * 1e6 / (double)us : 0.0;
}

/* Passes of the decode phase: one for every token after the first, and one that found the end. */
static int32_t run_n_decode(const run_state *run) {
    const sl_generate_result *r = &run->result;
    const int32_t n = r->n_generated - 1;
    return n + (run->finished && r->finish == SL_FINISH_EOG ? 1 : 0);
}

static void run_report_text(const run_state *run) {
    const sl_generate_result *r = &run->result;
    sl_about about;
    sl_memory memory;
    sl_engine_about(run->engine, &about);
    sl_engine_memory(run->engine, &memory);
    if (cli_out_is_terminal()) {
        fprintf(stderr, "\n");
    }
    fprintf(stderr, "finish    %s%s, seed %llu, %s on %d thread%s\n", run_finish(run),
            strcmp(run_finish(run), "length") == 0 && run->args->max_tokens == 0
                ? " (the context is full)"
                : "",
            (unsigned long long)r->seed, about.isa, (int)about.n_thread,
            about.n_thread == 1 ? "" : "s");
    fprintf(stderr, "load      %10.1f ms\n", (double)run->load_us / 1e3);
    fprintf(stderr, "first     %10.1f ms  from the prompt to the first token\n",
            (double)r->first_us / 1e3);
    fprintf(stderr, "prefill   %10.1f ms  %6d tokens  %8.1f tok/s\n", (double)r->prefill_us / 1e3,
            (int)r->n_prompt, run_rate(r->n_prompt, r->prefill_us));
    fprintf(stderr, "decode    %10.1f ms  %6d tokens  %8.1f tok/s\n", (double)r->decode_us / 1e3,
            (int)r->n_generated, run_rate(run_n_decode(run), r->decode_us));
    cli_report_memory(stderr, &memory);
}

static void run_report_json(const run_state *run, const char *path) {
    const sl_generate_result *r = &run->result;
    sl_about about;
    sl_memory memory;
    sl_model_info info;
    sl_engine_about(run->engine, &about);
    sl_engine_memory(run->engine, &memory);
    sl_model_get_info(run->model, &info);
    cli_json j = {0};
    cli_json_open(&j, NULL, '{');
    cli_json_text(&j, "text", run->text.bytes != NULL ? run->text.bytes : "", run->text.n);
    cli_json_open(&j, "ids", '[');
    for (size_t i = 0; i + sizeof(int32_t) <= run->made.n; i += sizeof(int32_t)) {
        int32_t id;
        memcpy(&id, run->made.bytes + i, sizeof id);
        cli_json_int(&j, NULL, id);
    }
    cli_json_close(&j);
    cli_json_str(&j, "finish", run_finish(run));
    cli_json_str(&j, "stop",
                 r->i_stop >= 0 && (size_t)r->i_stop < run->args->stop.n
                     ? run->args->stop.item[r->i_stop]
                     : NULL);
    cli_json_int(&j, "n_prompt", r->n_prompt);
    cli_json_int(&j, "n_generated", r->n_generated);
    cli_json_uint(&j, "seed", r->seed);
    cli_json_open(&j, "timings", '{');
    cli_json_real(&j, "load_ms", (double)run->load_us / 1e3);
    cli_json_real(&j, "first_ms", (double)r->first_us / 1e3);
    cli_json_real(&j, "prefill_ms", (double)r->prefill_us / 1e3);
    cli_json_real(&j, "decode_ms", (double)r->decode_us / 1e3);
    cli_json_close(&j);
    cli_json_open(&j, "tok_s", '{');
    cli_json_real(&j, "prefill", run_rate(r->n_prompt, r->prefill_us));
    cli_json_real(&j, "decode", run_rate(run_n_decode(run), r->decode_us));
    cli_json_close(&j);
    cli_json_memory(&j, "memory", &memory);
    cli_json_open(&j, "model", '{');
    cli_json_str(&j, "path", path);
    cli_json_str(&j, "arch", info.arch);
    cli_json_str(&j, "name", info.name);
    cli_json_close(&j);
    cli_json_str(&j, "isa", about.isa);
    cli_json_int(&j, "n_thread", about.n_thread);
    cli_json_int(&j, "n_ctx", sl_session_n_ctx(run->session));
    cli_json_close(&j);
}

static int run_stages(run_state *run, const char *path, const char *text, size_t n_text) {
    int code = run_open(run, path);
    if (code != CLI_OK || cli_interrupted() != 0) {
        return code;
    }
    code = run_open_session(run);
    if (code != CLI_OK) {
        return code;
    }
    run->load_us = cli_now_us() - run->start_us;
    if (!run_tokenize(run, text, n_text)) {
        return CLI_FAILED;
    }
    if (cli_interrupted() != 0) {
        return CLI_OK;
    }
    code = run_generate(run);
    if (code != CLI_OK) {
        return code;
    }
    if (run->args->common.json) {
        run_report_json(run, path);
    } else if (run_say(run->args)) {
        run_report_text(run);
    }
    return CLI_OK;
}

static int run_run(const void *opaque) {
    const run_args *args = opaque;
    char path[CLI_MAX_PATH];
    cli_text input = {0};
    if (!run_check(args)) {
        return CLI_USAGE;
    }
    const int found = cli_model_path(args->common.operand[0], path);
    if (found != CLI_OK) {
        return found;
    }
    const char *text = args->prompt;
    size_t n_text = text != NULL ? strlen(text) : 0;
    if (text == NULL || strcmp(text, "-") == 0) {
        if (!cli_read_all(text == NULL ? args->file : "-", &input)) {
            return CLI_FAILED;
        }
        text = input.bytes != NULL ? input.bytes : "";
        n_text = input.n;
    }
    run_state run = {.args = args, .notice_percent = -1};
    int code = run_stages(&run, path, text, n_text);
    cli_interrupt_watch(NULL);
    sl_session_close(run.session);
    sl_model_close(run.model);
    sl_engine_close(run.engine);
    free(run.ids);
    cli_text_done(&run.text);
    cli_text_done(&run.made);
    cli_text_done(&input);
    return code == CLI_OK && cli_interrupted() != 0 ? CLI_SIGNAL + cli_interrupted() : code;
}

#define RUN_AT(member) .offset = offsetof(run_args, member)

static const cli_option run_options[] = {
    {.name = "prompt",
     .letter = 'p',
     .kind = cli_kind_text,
     RUN_AT(prompt),
     .arg = "TEXT",
     .help = "the prompt; - takes standard input, byte for byte"},
    {.name = "file",
     .letter = 'f',
     .kind = cli_kind_text,
     RUN_AT(file),
     .arg = "PATH",
     .help = "the prompt from a file, byte for byte"},
    {.name = "chat",
     .kind = cli_kind_flag,
     RUN_AT(chat),
     .help =
         "the prompt is a message: put it into the model's own chat template. Without, the model "
         "just continues the text"},
    {.name = "system",
     .kind = cli_kind_text,
     RUN_AT(system),
     .arg = "TEXT",
     .help = "with --chat: the system message"},
    {.name = "max-tokens",
     .letter = 'n',
     .kind = cli_kind_int,
     RUN_AT(max_tokens),
     .arg = "N",
     .low = 1,
     .high = 2147483647,
     .help = "stop after N tokens; without, at the model's end or when the context is full"},
    {.name = "stop",
     .kind = cli_kind_list,
     RUN_AT(stop),
     .arg = "TEXT",
     .help = "stop before this text; may be given up to 16 times"},
    {.name = "ignore-eog",
     .kind = cli_kind_flag,
     RUN_AT(ignore_eog),
     .help = "go on after the model's end"},
    {.name = "temperature",
     .kind = cli_kind_real,
     RUN_AT(temperature),
     .arg = "X",
     .initial = "0.8",
     .low = 0,
     .high = 100,
     .help = "how freely to choose: 0 always takes the likeliest token (greedy)"},
    {.name = "top-k",
     .kind = cli_kind_int,
     RUN_AT(top_k),
     .arg = "N",
     .initial = "40",
     .low = 0,
     .high = 2147483647,
     .help = "choose among the N likeliest tokens; 0: off"},
    {.name = "top-p",
     .kind = cli_kind_real,
     RUN_AT(top_p),
     .arg = "X",
     .initial = "0.95",
     .low = 0,
     .high = 1,
     .help = "choose among the likeliest that make up this share; 0 or 1: off"},
    {.name = "min-p",
     .kind = cli_kind_real,
     RUN_AT(min_p),
     .arg = "X",
     .initial = "0.05",
     .low = 0,
     .high = 1,
     .help = "leave out tokens below this share of the likeliest; 0: off"},
    {.name = "repeat-penalty",
     .kind = cli_kind_real,
     RUN_AT(repeat_penalty),
     .arg = "X",
     .initial = "1",
     .low = 0,
     .high = 100,
     .help = "make recent tokens less likely; 0 or 1: off"},
    {.name = "repeat-last",
     .kind = cli_kind_int,
     RUN_AT(repeat_last_n),
     .arg = "N",
     .initial = "64",
     .low = -1,
     .high = 2147483647,
     .help = "how many tokens are recent; 0: 64, -1: all"},
    {.name = "seed",
     .kind = cli_kind_seed,
     RUN_AT(seed),
     .arg = "N",
     .help = "the same seed, model and prompt give the same text; without, a random one, which is "
             "printed at the end"},
    {.name = "ctx",
     .letter = 'c',
     .kind = cli_kind_int,
     RUN_AT(n_ctx),
     .arg = "N",
     .low = 1,
     .high = 268435456,
     .help =
         "most tokens of prompt and answer together; without, what the model was trained for, at "
         "most 4096"},
    {.name = "batch",
     .kind = cli_kind_int,
     RUN_AT(n_batch),
     .arg = "N",
     .initial = "256",
     .low = 1,
     .high = 4096,
     .help = "tokens of the prompt per pass"},
    {.name = "threads",
     .letter = 't',
     .kind = cli_kind_auto,
     RUN_AT(n_thread),
     .arg = "N|auto",
     .initial = "auto",
     .low = 1,
     .high = 256,
     .help = "compute threads; auto means one a usable core"},
    {.name = "isa",
     .kind = cli_kind_text,
     RUN_AT(isa),
     .arg = "NAME",
     .help = "use these kernels ('sluice about' lists them); without, the best that the CPU has"},
    {.name = "store",
     .kind = cli_kind_text,
     RUN_AT(store),
     .arg = "NAME",
     .initial = "mmap",
     .help =
         "how weights are read: mmap maps the file, direct reads it unbuffered into our memory"},
    {.name = "kv-type",
     .kind = cli_kind_text,
     RUN_AT(kv_type),
     .arg = "TYPE",
     .initial = "f16",
     .help = "type of the KV cache: f16 or f32"},
    {.name = "mem-limit",
     .kind = cli_kind_size,
     RUN_AT(limit_bytes),
     .arg = "SIZE",
     .help =
         "refuse what would take the library's own memory past SIZE (512MB, 1.5GiB; K, M, G and T "
         "are powers of 1024). Mapped files, code and stacks are not in it"},
    {.name = "tokenizer-json",
     .kind = cli_kind_text,
     RUN_AT(tokenizer_json),
     .arg = "PATH",
     .help = "use this tokenizer.json instead of the vocabulary in the model"},
    {.name = "quiet",
     .letter = 'q',
     .kind = cli_kind_flag,
     RUN_AT(quiet),
     .help = "nothing on standard error but errors"},
    {.name = "json",
     .kind = cli_kind_flag,
     RUN_AT(common.json),
     .help = "one JSON object at the end instead of text and report (docs/CLI.md)"},
};

const cli_command cli_command_run = {
    .name = "run",
    .line = "the model's continuation of a prompt, or its answer to a message",
    .synopsis = "MODEL -p PROMPT [options]",
    .about = "Generated text alone goes to standard output, token by token. How long it took and "
             "the memory by\n"
             "account follow on standard error. Ctrl-C ends the answer; a second one ends the "
             "program.\n",
    .examples =
        "  sluice run smollm2 --chat -p 'Why is the sky blue?'\n"
        "  sluice run smollm2 --chat --system 'Answer in one word.' -p 'Capital of France?'\n"
        "  sluice run smollm2 -p 'Once upon a time' --max-tokens 50 --temperature 0\n"
        "  sluice run model.gguf -f notes.txt --stop END --quiet > answer.txt\n"
        "  git diff | sluice run model.gguf --chat --system 'Describe this change.' -p -\n"
        "  sluice run smollm2 -p 'One, two,' --seed 7 --json\n",
    .operands = {"MODEL", NULL},
    .options = run_options,
    .n_option = sizeof run_options / sizeof run_options[0],
    .args_size = sizeof(run_args),
    .run = run_run,
};
