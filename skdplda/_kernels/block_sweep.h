/* Gibbs draws of the topics of one block of documents, from a frozen table.
 *
 * With every other document frozen in the table, a token of word w in document d has
 *     p(z = k)  ~  row[k] (n_dk + alpha[k]),     row[k] = (table[w, k] + beta) / (total[k] + V beta),
 * where n_dk and table leave the token itself out.
 *
 * The block is visited word by word: the word's row lies in L1, the state of the block's documents in L2, and
 * neighbouring draws belong to different documents, so the processor overlaps them. A document still sees its own
 * tokens one after the other, in the order (word, occurrence), whatever the blocks are.
 *
 * The sweeps are compiled for three kinds of x86-64 processor and picked at run time. Sixteen lanes are added in the
 * same order everywhere, so that results do not depend on the processor.
 */
#ifndef SKDPLDA_BLOCK_SWEEP_H
#define SKDPLDA_BLOCK_SWEEP_H
#include "block_layout.h"
#include "random_stream.h"

#define LANES 16
#define BATCH 16
#define DENSE_TOPICS 512
#define CACHE (640 << 10)
#define INLINE static inline __attribute__((always_inline))

typedef float v4 __attribute__((vector_size(16)));
typedef int32_t i4 __attribute__((vector_size(16)));
typedef float v16 __attribute__((vector_size(64)));
typedef int32_t i16 __attribute__((vector_size(64)));
typedef uint16_t u16 __attribute__((vector_size(32)));
typedef float v16_anywhere __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t i16_anywhere __attribute__((vector_size(64), aligned(4), may_alias));
typedef union { v16 all; v4 quarter[4]; float lane[LANES]; } lanes;

typedef struct {              /* shared by all blocks */
    const int32_t *counts;    /* V x K, or NULL */
    const float *table;       /* V x K, or NULL */
    const float *scale;       /* K: 1 / (total + V beta), padded with zeros to whole lanes */
    const float *alpha;       /* K, padded with zeros */
    float beta, own;
    int32_t n_words, n_topics;
    uint64_t seed, round;
    const uint8_t *active;    /* document -> whether it is resampled, or NULL for all */
} frozen_table;

typedef struct { int64_t first; int32_t blocks, capacity; } slot_list;

typedef struct {              /* draws of different documents, side by side */
    v16 before[2 * BATCH];    /* prefix sums in the odd vectors; zeros in the even ones */
    uint64_t key[BATCH];
    float *state[BATCH];
    float uniform[BATCH], kept[BATCH], target[BATCH], fix_old[BATCH][2], fix_was[BATCH][2];
    uint32_t token[BATCH];
    int32_t old[BATCH], was[BATCH], lane[BATCH], drawn[BATCH], fresh[BATCH], n;
} batch;

typedef struct {              /* what one thread works with */
    float *row, *reduced, *product; /* K, padded; reduced is without the token itself */
    batch *batch;
    uint64_t *key;            /* document -> key of its stream in this sweep */
    float *state;             /* dense: document x K weights */
    v16 *part;                /* dense: partial sums */
    slot_list *list;          /* sparse: the documents' topics, in whole lanes */
    float *count;
    uint16_t *topic;
    int64_t used, size;
} scratch;

static int32_t padded(int32_t n) { return (n + LANES - 1) / LANES * LANES; }

/* A block's documents fill half of a 1 MB second-level cache, or a little more. */
static int64_t documents_per_block(int32_t n_topics, int64_t tokens_per_document) {
    int64_t likely = tokens_per_document / 4, slots = padded((int32_t)(likely < n_topics ? likely : n_topics));
    return CACHE / (n_topics <= DENSE_TOPICS ? 4 * padded(n_topics) : 6 * slots + 32) + 1;
}

static void scratch_free(scratch *a) {
    if (!a) return;
    free(a->row); free(a->reduced); free(a->batch); free(a->product); free(a->key); free(a->state); free(a->part);
    free(a->list); free(a->count); free(a->topic);
    free(a);
}

static void *aligned(size_t size) { return aligned_alloc(64, (size + 63) / 64 * 64); }

static scratch *scratch_new(int64_t n_documents, int32_t n_topics) {
    const size_t width = padded(n_topics) + 4 * LANES; /* reads run past the end, by less than a group */
    const int dense = n_topics <= DENSE_TOPICS;
    scratch *a = calloc(1, sizeof(scratch));
    if (!a) return NULL;
    a->row = aligned(width * sizeof(float));
    a->product = aligned(width * sizeof(float));
    a->reduced = aligned(width * sizeof(float));
    a->batch = aligned(sizeof(batch));
    a->key = aligned(n_documents * sizeof(uint64_t));
    if (dense) a->state = aligned((n_documents * padded(n_topics) + 4 * LANES) * sizeof(float));
    else a->list = aligned(n_documents * sizeof(slot_list));
    a->part = aligned(BATCH * width * sizeof(float) / 4);
    if (!a->row || !a->reduced || !a->batch || !a->product || !a->key || !a->part || !(dense ? (void *)a->state : (void *)a->list)) {
        scratch_free(a);
        return NULL;
    }
    memset(a->row, 0, width * sizeof(float));
    memset(a->batch, 0, sizeof(batch));
    if (dense) memset(a->state, 0, (n_documents * padded(n_topics) + 4 * LANES) * sizeof(float));
    return a;
}

static void make_keys(const token_block *b, const frozen_table *f, int sweep, scratch *a) {
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t key = mix64(mix64(mix64(f->seed + golden) ^ (f->round + golden)) ^ ((uint64_t)sweep + golden));
    for (int64_t d = 0; d < b->n_documents; d++) a->key[d] = mix64(key ^ ((uint64_t)(b->first_document + d) + golden));
}

#define JOIN(name, target) name##_##target
#define TARGET(name) JOIN(name, plain)
#include "lanes.h"
#include "dense_sweep.h"
#include "sparse_sweep.h"
#undef TARGET
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define SKDPLDA_TARGETS
#include <immintrin.h>
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
#define TARGET(name) JOIN(name, avx2)
#include "lanes.h"
#include "dense_sweep.h"
#include "sparse_sweep.h"
#undef TARGET
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
#define TARGET(name) JOIN(name, avx512)
#include "lanes.h"
#include "dense_sweep.h"
#include "sparse_sweep.h"
#undef TARGET
#pragma GCC pop_options
#endif

static int sweep_block(const token_block *b, const frozen_table *f, int n_sweeps, scratch *a) {
    const int dense = f->n_topics <= DENSE_TOPICS;
#ifdef SKDPLDA_TARGETS
    if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        return dense ? sweep_dense_avx512(b, f, n_sweeps, a) : sweep_sparse_avx512(b, f, n_sweeps, a);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return dense ? sweep_dense_avx2(b, f, n_sweeps, a) : sweep_sparse_avx2(b, f, n_sweeps, a);
#endif
    return dense ? sweep_dense_plain(b, f, n_sweeps, a) : sweep_sparse_plain(b, f, n_sweeps, a);
}
#endif
