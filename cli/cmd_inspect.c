/* cmd_inspect.c - sluice inspect: what a model file holds, and whether and in how much memory it can run.
 *
 * The directory of the file is shown even when the model cannot run: then the reason is part of the answer and not a
 * failure of the command. */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "json_out.h"
#include "models.h"
#include "report.h"
#include "sluice.h"
#include "text_io.h"

typedef struct inspect_args {
    cli_args common;
    const char *store;
    bool full;
} inspect_args;

/* Everything that is shown, gathered first so that both forms of output have the same. */
typedef struct inspect_facts {
    const char *path;
    const sl_file *file;
    sl_file_info info;
    sl_model_info model; /* strings live as long as the opened vocabulary */
    bool has_model;
    sl_error model_error;
    sl_estimate load, session;
    bool can_run, has_session;
    sl_error load_error;
    bool full;
} inspect_facts;

typedef struct inspect_type {
    const char *name;
    int64_t n_tensor;
    uint64_t bytes;
} inspect_type;

#define INSPECT_MAX_TYPES 64
/* Bytes of a metadata value that are shown without --full. */
#define INSPECT_WIDTH 72

/* Tensors by weight type, the order of first use. */
static size_t inspect_types(const inspect_facts *facts, inspect_type types[INSPECT_MAX_TYPES]) {
    size_t n = 0;
    for (int64_t i = 0; i < facts->info.n_tensor; i++) {
        sl_tensor_info tensor;
        if (sl_file_get_tensor(facts->file, i, &tensor) != SL_OK) {
            break;
        }
        size_t at = 0;
        while (at < n && strcmp(types[at].name, tensor.type) != 0) {
            at++;
        }
        if (at == n) {
            if (n == INSPECT_MAX_TYPES) {
                continue;
            }
            types[n++] = (inspect_type){.name = tensor.type};
        }
        types[at].n_tensor++;
        types[at].bytes += tensor.size_bytes;
    }
    return n;
}

/* One metadata value as text in memory of our own, n its length; NULL: no memory. */
static char *inspect_meta(const inspect_facts *facts, int64_t i_meta, bool full, const char **key,
                          char *type, size_t cap_type, size_t *n) {
    size_t cap = 4096;
    for (;;) {
        char *text = malloc(cap);
        if (text == NULL) {
            return NULL;
        }
        text[0] = '\0';
        *n = 0;
        const sl_status status =
            sl_file_get_meta(facts->file, i_meta, full, key, type, cap_type, text, cap, n);
        if (status != SL_OK) {
            text[0] = '\0';
            *n = 0;
            return text;
        }
        if (*n < cap) {
            return text;
        }
        if (!full) { /* a short form is far shorter; what is cut here is cut anyway */
            *n = cap - 1;
            return text;
        }
        cap = *n + 1;
        free(text);
    }
}

/* The longest beginning of at most n bytes that ends no character in the middle. */
static size_t inspect_cut(const char *text, size_t n) {
    while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) {
        n--;
    }
    return n;
}

static void inspect_print_ids(const sl_model_info *model) {
    const struct {
        const char *name;
        int32_t id;
    } ids[] = {{"bos", model->id_bos},
               {"eos", model->id_eos},
               {"eot", model->id_eot},
               {"unk", model->id_unk},
               {"pad", model->id_pad}};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        if (ids[i].id >= 0) {
            cli_outf(", %s %d", ids[i].name, (int)ids[i].id);
        }
    }
}

static void inspect_text_model(const inspect_facts *facts) {
    const sl_model_info *m = &facts->model;
    if (!facts->has_model) {
        cli_outf("tokenizer  not usable: %s\n", facts->model_error.text);
    } else {
        cli_outf("model      %s%s%s%s\n", m->arch[0] != '\0' ? m->arch : "(no architecture named)",
                 m->name[0] != '\0' ? ", \"" : "", m->name, m->name[0] != '\0' ? "\"" : "");
        if (m->n_layer > 0) {
            cli_outf(
                "shape      n_layer %d, n_embd %d, n_ff %d, n_head %d, n_head_kv %d, d_head %d, "
                "n_ctx_train %d\n",
                (int)m->n_layer, (int)m->n_embd, (int)m->n_ff, (int)m->n_head, (int)m->n_head_kv,
                (int)m->d_head, (int)m->n_ctx_train);
        }
        cli_outf("tokenizer  %s, n_vocab %d", m->tokenizer, (int)m->n_vocab);
        inspect_print_ids(m);
        cli_outf("\nchat       %s\n", m->chat[0] != '\0' ? m->chat : "no template of a known form");
    }
    if (!facts->can_run) {
        cli_outf("runs       no: %s\n", facts->load_error.text);
        return;
    }
    cli_outf("runs       yes; the model takes %s", cli_size_text(facts->load.total_bytes).text);
    if (facts->load.mapped_bytes != 0) {
        cli_outf(" and %s mapped", cli_size_text(facts->load.mapped_bytes).text);
    }
    if (facts->has_session) {
        cli_outf(", a session %s", cli_size_text(facts->session.total_bytes).text);
    }
    cli_outf("\n");
}

static void inspect_text_tensors(const inspect_facts *facts) {
    cli_outf("\ntensors\n");
    for (int64_t i = 0; i < facts->info.n_tensor; i++) {
        sl_tensor_info tensor;
        if (sl_file_get_tensor(facts->file, i, &tensor) != SL_OK) {
            break;
        }
        char shape[96] = "";
        size_t at = 0;
        for (int32_t d = 0; d < tensor.n_dim && d < 4; d++) {
            at += (size_t)snprintf(shape + at, sizeof shape - at, d > 0 ? ", %lld" : "%lld",
                                   (long long)tensor.dim[d]);
        }
        cli_outf("  %-36s %-8s [%s]  %s\n", tensor.name, tensor.type, shape,
                 cli_size_text(tensor.size_bytes).text);
    }
}

static int inspect_text(const inspect_facts *facts) {
    const sl_file_info *info = &facts->info;
    cli_outf("file       %s\n", facts->path);
    cli_outf("format     %s version %d, %d file%s, %s, alignment %llu\n", info->format,
             (int)info->version, (int)info->n_file, info->n_file == 1 ? "" : "s",
             cli_size_text(info->size_bytes).text, (unsigned long long)info->alignment);
    inspect_text_model(facts);
    cli_outf("weights    %s parameters in %lld tensors, %s\n", cli_count_text(info->n_param).text,
             (long long)info->n_tensor, cli_size_text(info->tensor_bytes).text);
    inspect_type types[INSPECT_MAX_TYPES];
    const size_t n_type = inspect_types(facts, types);
    for (size_t i = 0; i < n_type; i++) {
        cli_outf("           %-8s %5lld tensors %12s\n", types[i].name,
                 (long long)types[i].n_tensor, cli_size_text(types[i].bytes).text);
    }
    cli_outf("\nmetadata\n");
    for (int64_t i = 0; i < info->n_meta; i++) {
        const char *key = "";
        char type[64] = "";
        size_t n;
        char *text = inspect_meta(facts, i, facts->full, &key, type, sizeof type, &n);
        if (text == NULL) {
            return cli_fail(CLI_FAILED, "the system has no more memory");
        }
        cli_outf("  %-42s %-16s ", key, type);
        const bool cut = !facts->full && n > INSPECT_WIDTH;
        cli_out_escaped(text, cut ? inspect_cut(text, INSPECT_WIDTH) : n, false);
        cli_out("...", cut ? 3 : 0);
        cli_out("\n", 1);
        free(text);
    }
    if (facts->full) {
        inspect_text_tensors(facts);
    }
    return CLI_OK;
}

static bool inspect_type_is(const char *type, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(type, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A value as JSON: numbers and booleans as such, everything else as a string; a number that JSON has no word for
 * (inf, nan) is null. */
static void inspect_json_value(cli_json *j, const char *key, const char *type, const char *text,
                               size_t n) {
    static const char *const whole[] = {"u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"};
    static const char *const real[] = {"f32", "f64"};
    if (strcmp(type, "bool") == 0) {
        cli_json_bool(j, key, strcmp(text, "true") == 0);
    } else if (inspect_type_is(type, whole, sizeof whole / sizeof whole[0])) {
        if (text[0] == '-') {
            cli_json_int(j, key, strtoll(text, NULL, 10));
        } else {
            cli_json_uint(j, key, strtoull(text, NULL, 10));
        }
    } else if (inspect_type_is(type, real, sizeof real / sizeof real[0])) {
        cli_json_real(j, key, strtod(text, NULL));
    } else {
        cli_json_text(j, key, text, n);
    }
}

/* "arr[u32,12]" is an array of 12 u32: the item type goes to item, the result is the number of items, -1: a scalar. */
static int64_t inspect_array(const char *type, char item[16]) {
    const char *comma = strchr(type, ',');
    if (strncmp(type, "arr[", 4) != 0 || comma == NULL || comma - type - 4 >= 16) {
        return -1;
    }
    memcpy(item, type + 4, (size_t)(comma - type - 4));
    item[comma - type - 4] = '\0';
    return strtoll(comma + 1, NULL, 10);
}

typedef struct inspect_items {
    cli_json *json;
    const char *key;  /* NULL inside an array */
    const char *type; /* of an item */
} inspect_items;

static bool inspect_json_item(void *user, int64_t i_item, const char *text, size_t n_text) {
    (void)i_item;
    const inspect_items *items = user;
    inspect_json_value(items->json, items->key, items->type, text, n_text);
    return true;
}

static bool inspect_json_meta(cli_json *j, const inspect_facts *facts, int64_t i_meta) {
    const char *key = "";
    char type[64] = "";
    char item[16];
    size_t n;
    char *text = inspect_meta(facts, i_meta, false, &key, type, sizeof type, &n);
    if (text == NULL) {
        return false;
    }
    free(text);
    cli_json_open(j, NULL, '{');
    cli_json_str(j, "key", key);
    cli_json_str(j, "type", type);
    const int64_t n_item = inspect_array(type, item);
    const bool is_array = n_item >= 0;
    if (is_array) {
        cli_json_int(j, "n_item", n_item);
    }
    if (!is_array || facts->full) {
        inspect_items items = {
            .json = j, .key = is_array ? NULL : "value", .type = is_array ? item : type};
        if (is_array) {
            cli_json_open(j, "value", '[');
        }
        (void)sl_file_each_meta_item(facts->file, i_meta, inspect_json_item, &items);
        if (is_array) {
            cli_json_close(j);
        }
    }
    cli_json_close(j);
    return true;
}

static void inspect_json_id(cli_json *j, const char *key, int32_t id) {
    if (id >= 0) {
        cli_json_int(j, key, id);
    } else {
        cli_json_null(j, key);
    }
}

static void inspect_json_model(cli_json *j, const inspect_facts *facts) {
    const sl_model_info *m = &facts->model;
    if (!facts->has_model) {
        cli_json_null(j, "model");
    } else {
        cli_json_open(j, "model", '{');
        cli_json_str(j, "arch", m->arch);
        cli_json_str(j, "name", m->name);
        cli_json_int(j, "n_vocab", m->n_vocab);
        cli_json_int(j, "n_layer", m->n_layer);
        cli_json_int(j, "n_embd", m->n_embd);
        cli_json_int(j, "n_ff", m->n_ff);
        cli_json_int(j, "n_head", m->n_head);
        cli_json_int(j, "n_head_kv", m->n_head_kv);
        cli_json_int(j, "d_head", m->d_head);
        cli_json_int(j, "n_ctx_train", m->n_ctx_train);
        cli_json_str(j, "tokenizer", m->tokenizer);
        cli_json_str(j, "chat", m->chat[0] != '\0' ? m->chat : NULL);
        inspect_json_id(j, "id_bos", m->id_bos);
        inspect_json_id(j, "id_eos", m->id_eos);
        inspect_json_id(j, "id_eot", m->id_eot);
        inspect_json_id(j, "id_unk", m->id_unk);
        inspect_json_id(j, "id_pad", m->id_pad);
        cli_json_close(j);
    }
    cli_json_str(j, "model_error", facts->has_model ? NULL : facts->model_error.text);
    cli_json_bool(j, "runs", facts->can_run);
    cli_json_str(j, "runs_error", facts->can_run ? NULL : facts->load_error.text);
    if (facts->can_run) {
        cli_json_estimate(j, "load", &facts->load);
    } else {
        cli_json_null(j, "load");
    }
    if (facts->has_session) {
        cli_json_estimate(j, "session", &facts->session);
    } else {
        cli_json_null(j, "session");
    }
}

static int inspect_json(const inspect_facts *facts) {
    const sl_file_info *info = &facts->info;
    cli_json j = {0};
    cli_json_open(&j, NULL, '{');
    cli_json_str(&j, "path", facts->path);
    cli_json_str(&j, "format", info->format);
    cli_json_int(&j, "version", info->version);
    cli_json_int(&j, "n_file", info->n_file);
    cli_json_uint(&j, "size_bytes", info->size_bytes);
    cli_json_uint(&j, "alignment", info->alignment);
    cli_json_uint(&j, "n_param", info->n_param);
    cli_json_uint(&j, "tensor_bytes", info->tensor_bytes);
    cli_json_int(&j, "n_meta", info->n_meta);
    cli_json_int(&j, "n_tensor", info->n_tensor);
    inspect_json_model(&j, facts);
    inspect_type types[INSPECT_MAX_TYPES];
    const size_t n_type = inspect_types(facts, types);
    cli_json_open(&j, "types", '[');
    for (size_t i = 0; i < n_type; i++) {
        cli_json_open(&j, NULL, '{');
        cli_json_str(&j, "type", types[i].name);
        cli_json_int(&j, "n_tensor", types[i].n_tensor);
        cli_json_uint(&j, "size_bytes", types[i].bytes);
        cli_json_close(&j);
    }
    cli_json_close(&j);
    cli_json_open(&j, "metadata", '[');
    for (int64_t i = 0; i < info->n_meta; i++) {
        if (!inspect_json_meta(&j, facts, i)) {
            return cli_fail(CLI_FAILED, "the system has no more memory");
        }
    }
    cli_json_close(&j);
    cli_json_open(&j, "tensors", '[');
    for (int64_t i = 0; i < info->n_tensor; i++) {
        sl_tensor_info tensor;
        if (sl_file_get_tensor(facts->file, i, &tensor) != SL_OK) {
            break;
        }
        cli_json_open(&j, NULL, '{');
        cli_json_str(&j, "name", tensor.name);
        cli_json_str(&j, "type", tensor.type);
        cli_json_open(&j, "shape", '[');
        for (int32_t d = 0; d < tensor.n_dim && d < 4; d++) {
            cli_json_int(&j, NULL, tensor.dim[d]);
        }
        cli_json_close(&j);
        cli_json_int(&j, "i_file", tensor.i_file);
        cli_json_uint(&j, "offset_bytes", tensor.offset_bytes);
        cli_json_uint(&j, "size_bytes", tensor.size_bytes);
        cli_json_close(&j);
    }
    cli_json_close(&j);
    cli_json_close(&j);
    return CLI_OK;
}

/* What the library makes of the model. It is opened with its file mapped, which reads next to nothing of the weights;
 * where that fails, because it cannot run or has no weights, the vocabulary alone. */
static void inspect_model(inspect_facts *facts, sl_engine *engine, const char *store,
                          sl_model **model) {
    sl_model_options options = {.size = sizeof options, .store = store};
    facts->can_run =
        sl_model_estimate(engine, facts->path, &options, &facts->load, &facts->load_error) == SL_OK;
    options.store = "mmap";
    options.vocab_only =
        !facts->can_run || sl_model_open(engine, facts->path, &options, model, NULL) != SL_OK;
    if (options.vocab_only &&
        sl_model_open(engine, facts->path, &options, model, &facts->model_error) != SL_OK) {
        return;
    }
    facts->has_model = true;
    sl_model_get_info(*model, &facts->model);
    facts->has_session =
        !options.vocab_only && sl_session_estimate(*model, NULL, &facts->session, NULL) == SL_OK;
}

static int inspect_run(const void *opaque) {
    const inspect_args *args = opaque;
    char path[CLI_MAX_PATH];
    const int found = cli_model_path(args->common.operand[0], path);
    if (found != CLI_OK) {
        return found;
    }
    sl_engine *engine = NULL;
    sl_file *file = NULL;
    sl_model *model = NULL;
    sl_error err;
    const sl_engine_options engine_options = {.size = sizeof engine_options, .n_thread = 1};
    const sl_file_options file_options = {.size = sizeof file_options, .store = args->store};
    int code = CLI_FAILED;
    if (sl_engine_open(&engine_options, &engine, &err) != SL_OK ||
        sl_file_open(engine, path, &file_options, &file, &err) != SL_OK) {
        code = cli_fail(CLI_FAILED, "%s", err.text);
    } else {
        inspect_facts facts = {.path = path, .file = file, .full = args->full};
        sl_file_get_info(file, &facts.info);
        inspect_model(&facts, engine, args->store, &model);
        code = args->common.json ? inspect_json(&facts) : inspect_text(&facts);
    }
    sl_model_close(model);
    sl_file_close(file);
    sl_engine_close(engine);
    return code;
}

static const cli_option inspect_options[] = {
    {.name = "full",
     .kind = cli_kind_flag,
     .offset = offsetof(inspect_args, full),
     .help = "metadata values at full length, and every tensor"},
    {.name = "store",
     .kind = cli_kind_text,
     .offset = offsetof(inspect_args, store),
     .arg = "NAME",
     .initial = "mmap",
     .help = "how the file is read and the memory reckoned: mmap or direct"},
    {.name = "json",
     .kind = cli_kind_flag,
     .offset = offsetof(inspect_args, common.json),
     .help = "one JSON object instead of text (docs/CLI.md); arrays of metadata only with --full"},
};

const cli_command cli_command_inspect = {
    .name = "inspect",
    .line = "what a model file holds, and whether it can run",
    .synopsis = "MODEL [--full] [options]",
    .about = "Prints the model's shape, tokenizer and chat form, its tensors by weight type, its "
             "metadata, and\n"
             "the memory that it would take. A model that cannot run is shown as well, with the "
             "reason.\n",
    .examples = "  sluice inspect smollm2\n"
                "  sluice inspect model.gguf --full\n"
                "  sluice inspect model.gguf --json | python3 -m json.tool\n",
    .operands = {"MODEL", NULL},
    .options = inspect_options,
    .n_option = sizeof inspect_options / sizeof inspect_options[0],
    .args_size = sizeof(inspect_args),
    .run = inspect_run,
};
