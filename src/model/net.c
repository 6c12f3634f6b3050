/* net.c - see net.h. */
#include "model/net.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "model/arch.h"

static const sl_arch *const net_arch_row[] = {
#define X(name) &sl_arch_##name,
#include "model/archs.def"
#undef X
};

const char *sl_arch_names(void) {
    static const char names[] =
#define X(name) #name " "
#include "model/archs.def"
#undef X
        ;
    return names;
}

const char *sl_arch_name(const sl_arch *arch) { return arch->name; }

static sl_status net_find_arch(const sl_container *c, const sl_arch **out, sl_error *err) {
    const sl_meta *m = sl_meta_find(c, "general.architecture");
    const char *name;
    size_t n;
    if (m == NULL || !sl_meta_str(m, &name, &n)) {
        return SL_FAIL(
            err, SL_EFORMAT,
            "key 'general.architecture' is missing: the file does not say what model it is");
    }
    for (size_t i = 0; i < sizeof net_arch_row / sizeof net_arch_row[0]; i++) {
        if (strlen(net_arch_row[i]->name) == n && memcmp(net_arch_row[i]->name, name, n) == 0) {
            *out = net_arch_row[i];
            return SL_OK;
        }
    }
    return SL_FAIL(err, SL_ENOTSUP, "architecture '%.*s' is not supported; supported are: %s",
                   n < 64 ? (int)n : 64, name, sl_arch_names());
}

/* "none", "linear" with a factor; anything else would compute something different, so it is refused. */
static sl_status net_rope_scaling(sl_build *b, sl_error *err) {
    sl_hparams *hp = &b->net->hp;
    hp->rope_scale = 1.0f;
    const sl_meta *m = sl_hp_find(b, "rope.scaling.type");
    const char *kind = "none";
    size_t n = 4;
    if (m != NULL && !sl_meta_str(m, &kind, &n)) {
        return SL_FAIL(err, SL_EFORMAT, "key '%s.rope.scaling.type' is no string",
                       b->net->arch->name);
    }
    if (n == 4 && memcmp(kind, "none", 4) == 0) {
        /* An older key, from before the type had a name. */
        return sl_hp_f32(b, "rope.scale_linear", false, 1e-6f, 1e6f, &hp->rope_scale, err);
    }
    if (n == 6 && memcmp(kind, "linear", 6) == 0) {
        return sl_hp_f32(b, "rope.scaling.factor", true, 1e-6f, 1e6f, &hp->rope_scale, err);
    }
    return SL_FAIL(err, SL_ENOTSUP,
                   "rope scaling '%.*s' is not supported; supported are: none linear",
                   n < 64 ? (int)n : 64, kind);
}

static sl_status net_read_shared(sl_build *b, sl_error *err) {
    sl_hparams *hp = &b->net->hp;
    const sl_tensor *embd = sl_tensor_find(b->container, "token_embd.weight");
    if (embd == NULL) {
        return SL_FAIL(err, SL_EFORMAT,
                       b->container->n_tensor == 0 ? "the file holds a vocabulary only, no weights"
                                                   : "tensor 'token_embd.weight' is missing");
    }
    if (embd->n_dim != 2 || embd->dim[0] < 1 || embd->dim[0] > SL_MAX_VOCAB) {
        return SL_FAIL(err, SL_EFORMAT, "tensor 'token_embd.weight' has %lld rows, outside 1..%d",
                       (long long)embd->dim[0], SL_MAX_VOCAB);
    }
    hp->n_vocab = (int32_t)embd->dim[0];
    SL_TRY(sl_hp_i32(b, "block_count", true, 1, SL_MAX_LAYER, &hp->n_layer, err));
    SL_TRY(sl_hp_i32(b, "embedding_length", true, 1, SL_MAX_EMBD, &hp->n_embd, err));
    SL_TRY(sl_hp_i32(b, "feed_forward_length", true, 1, SL_MAX_EMBD, &hp->n_ff, err));
    SL_TRY(sl_hp_i32(b, "attention.head_count", true, 1, SL_MAX_HEAD, &hp->n_head, err));
    hp->n_head_kv = hp->n_head;
    SL_TRY(sl_hp_i32(b, "attention.head_count_kv", false, 1, SL_MAX_HEAD, &hp->n_head_kv, err));
    if (hp->n_head % hp->n_head_kv != 0) {
        return SL_FAIL(err, SL_EFORMAT, "%d attention heads cannot share %d KV heads evenly",
                       hp->n_head, hp->n_head_kv);
    }
    hp->d_head = hp->n_embd / hp->n_head;
    SL_TRY(sl_hp_i32(b, "attention.key_length", false, 1, SL_MAX_D_HEAD, &hp->d_head, err));
    int32_t d_value = hp->d_head;
    SL_TRY(sl_hp_i32(b, "attention.value_length", false, 1, SL_MAX_D_HEAD, &d_value, err));
    if (d_value != hp->d_head) {
        return SL_FAIL(err, SL_ENOTSUP,
                       "keys of %d and values of %d elements: different lengths are not supported",
                       hp->d_head, d_value);
    }
    if (hp->d_head < 1 || hp->d_head > SL_MAX_D_HEAD) {
        return SL_FAIL(err, SL_EFORMAT, "heads of %d elements are outside 1..%d", hp->d_head,
                       SL_MAX_D_HEAD);
    }
    hp->n_rot = hp->d_head;
    SL_TRY(sl_hp_i32(b, "rope.dimension_count", false, 2, SL_MAX_D_HEAD, &hp->n_rot, err));
    if (hp->n_rot > hp->d_head || hp->n_rot % 2 != 0) {
        return SL_FAIL(err, SL_EFORMAT, "rotary embedding of %d elements does not fit heads of %d",
                       hp->n_rot, hp->d_head);
    }
    hp->rope_base = 10000.0f;
    SL_TRY(sl_hp_f32(b, "rope.freq_base", false, 1.0f, 1e30f, &hp->rope_base, err));
    SL_TRY(net_rope_scaling(b, err));
    SL_TRY(sl_hp_f32(b, "attention.layer_norm_rms_epsilon", true, 0.0f, 1.0f, &hp->norm_eps, err));
    SL_TRY(sl_hp_i32(b, "context_length", true, 1, SL_MAX_CTX, &hp->n_ctx_train, err));
    SL_TRY(sl_hp_i32(b, "attention.sliding_window", false, 0, SL_MAX_CTX, &hp->window, err));
    int32_t n_expert = 0;
    SL_TRY(sl_hp_i32(b, "expert_count", false, 0, 1 << 20, &n_expert, err));
    if (n_expert > 0) {
        return SL_FAIL(err, SL_ENOTSUP, "a mixture of %d experts is not supported yet", n_expert);
    }
    return SL_OK;
}

/* Ops of a block: 2 norms, 2 post norms, up to 3 preparations of 4 inputs, 3 products, 1 glu, 2 attention. */
#define NET_OPS_PER_LAYER 24
#define NET_OPS_OUTSIDE 16
/* Weights of a block: 7 matrices with biases, 6 norms. */
#define NET_WEIGHTS_PER_LAYER 24
#define NET_WEIGHTS_OUTSIDE 8
#define NET_ROPES 4

static sl_status net_build(sl_build *b, sl_container *c, sl_error *err) {
    sl_net *net = b->net;
    SL_TRY(net_find_arch(c, &net->arch, err));
    SL_TRY(net_read_shared(b, err));
    if (net->arch->read != NULL) {
        SL_TRY(net->arch->read(b, err));
    }
    const int32_t n_layer = net->hp.n_layer;
    SL_TRY(sl_graph_open(net->ledger, n_layer * NET_OPS_PER_LAYER + NET_OPS_OUTSIDE, n_layer + 2,
                         NET_ROPES, &net->graph, err));
    SL_TRY(sl_weights_open(net->ledger, c, b->backend,
                           n_layer * NET_WEIGHTS_PER_LAYER + NET_WEIGHTS_OUTSIDE, &net->weights,
                           err));
    return net->arch->build(b, err);
}

sl_status sl_net_open(sl_ledger *ledger, sl_container *c, const sl_backend *backend,
                      sl_progress_fn progress, void *user, sl_net **out, sl_error *err) {
    void *p;
    SL_TRY(sl_alloc_zero(ledger, SL_ACCOUNT_MISC, 1, sizeof(sl_net), &p, "model", err));
    sl_net *net = p;
    net->ledger = ledger;
    sl_build b = {.net = net, .container = c, .backend = backend};
    for (int i = 0; i < SL_BUILD_ACTS; i++) {
        b.act[i].prepared = -1;
    }
    sl_status status = net_build(&b, c, err);
    if (status == SL_OK) {
        status = sl_weights_load(net->weights, progress, user, err);
    }
    if (status != SL_OK) {
        sl_weights_disown(net->weights); /* the container stays the caller's */
        sl_net_close(net);
        return status;
    }
    *out = net;
    return SL_OK;
}

void sl_net_close(sl_net *net) {
    if (net != NULL) {
        sl_graph_close(net->graph);
        sl_weights_close(net->weights);
        sl_release(net->ledger, SL_ACCOUNT_MISC, net, sizeof *net);
    }
}
