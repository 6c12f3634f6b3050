/* limits.h - every limit of the library, each with its reason. */
#ifndef SL_BASE_LIMITS_H
#define SL_BASE_LIMITS_H

/* Threads of one engine. Decode is bound by memory long before; more only widens the barrier. */
#define SL_MAX_THREADS 256

/* Bytes of a stack that we make for a worker. Kernels keep a few KiB on it; the rest is libc's own need. */
#define SL_STACK_BYTES ((size_t)256 * 1024)

/* Dimensions of a tensor: the container formats know no more. */
#define SL_MAX_DIM 4

/* Metadata entries, tensors and files of one model. The largest published models have about 100 k tensors (experts
 * stored one by one); a count beyond these is a damaged header, and refusing it early bounds the work. */
#define SL_MAX_META (1 << 16)
#define SL_MAX_TENSOR (1 << 20)
#define SL_MAX_SPLIT 1024

/* Bytes of a tensor's name and of a metadata key: the GGUF specification's own bounds (it says 64 and 65535). */
#define SL_MAX_TENSOR_NAME 64
#define SL_MAX_META_KEY 65535

/* Bytes of a file's header, metadata and directory together. The largest published ones (vocabularies of 262144 tokens
 * with merges) have 16 MiB. */
#define SL_MAX_HEADER_BYTES ((uint64_t)1 << 30)

/* Tokens of a vocabulary; ids are int32 and the widest published vocabulary has 2^18 and a few. */
#define SL_MAX_VOCAB (1 << 22)

/* Bytes of one token. Longest seen: runs of 256 spaces or dashes; 8 KiB leaves room and bounds the matcher. */
#define SL_MAX_TOKEN_BYTES 8192

/* Bytes of one text to tokenise: offsets inside the tokenizer are int32. */
#define SL_MAX_TEXT_BYTES ((size_t)1 << 30)

/* Model dimensions. Far above what is published, low enough that products of two fit an int64 with room. */
#define SL_MAX_LAYER 1024
#define SL_MAX_EMBD (1 << 20)
#define SL_MAX_HEAD 4096
#define SL_MAX_D_HEAD 1024
#define SL_MAX_CTX (1 << 28)

/* Rows of one pass. Beyond a few hundred, prefill is bound by arithmetic and only scratch grows. */
#define SL_MAX_BATCH 4096

/* Stop strings of a request, and bytes of each: the tail that must be held back is bounded by the longest. */
#define SL_MAX_STOP 16
#define SL_MAX_STOP_BYTES 1024

/* Nesting of JSON: tokenizer.json needs about 10. */
#define SL_MAX_JSON_DEPTH 64

/* Messages of a conversation given to a template. */
#define SL_MAX_MESSAGE 65536

#endif
