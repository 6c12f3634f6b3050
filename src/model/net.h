/* net.h - a network: hyper-parameters, weights and graph of one model file.
 *
 * net_open reads the hyper-parameters that all architectures share, hands over to the architecture's row (its own
 * hyper-parameters, then its build function), and loads the weights.
 *
 * Threads: read-only after open.
 * Not here: tokenizer, sessions (engine/). */
#ifndef SL_MODEL_NET_H
#define SL_MODEL_NET_H

#include "format/container.h"
#include "graph/graph.h"
#include "weights/weights.h"

typedef struct sl_arch sl_arch;

typedef struct sl_hparams {
    int32_t n_vocab;
    int32_t n_layer;
    int32_t n_embd;
    int32_t n_ff;
    int32_t n_head, n_head_kv, d_head;
    int32_t n_ctx_train;
    int32_t n_rot; /* elements of a head that turn */
    float rope_base;
    float rope_scale; /* positions are divided by it (linear scaling); 1: none */
    float norm_eps;
    int32_t window;      /* sliding window of the layers that have one; 0: none */
    float attn_softcap;  /* 0: none */
    float final_softcap; /* 0: none */
} sl_hparams;

typedef struct sl_net {
    sl_ledger *ledger;
    const sl_arch *arch;
    sl_hparams hp;
    sl_graph *graph;
    sl_weights *weights;
} sl_net;

/* SL_ENOTSUP names the architecture; otherwise the statuses of sl_model_open. On success the container belongs to the
 * net; on failure it stays the caller's. */
sl_status sl_net_open(sl_ledger *ledger, sl_container *c, const sl_backend *backend,
                      sl_progress_fn progress, void *user, sl_net **out, sl_error *err);
void sl_net_close(sl_net *net);

const char *sl_arch_names(void); /* "llama qwen2 ..." */
const char *sl_arch_name(const sl_arch *arch);

#endif
