/* What the Gibbs sweeps of a block have in common: the table, what one thread works with, keys of random streams. */
#ifndef SKDPLDA_SWEEP_SCRATCH_H
#define SKDPLDA_SWEEP_SCRATCH_H
#include "block_layout.h"
#include "random_stream.h"
#include "simd.h"
#include <math.h>

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15) /* the step of SplitMix64: mix64 of its multiples is random */
#define BATCH 16 /* draws side by side: what one register of AVX-512 holds */
#define PROPOSALS 16 /* of a draw, at most: rejections are rare unless token_weight alpha is far below 1 */
#define MOST_STEPS 32766 /* of a word's row: its bounds, one more, are int16_t */
#define MOST_WEIGHT 65535 /* of a document: MOST_STEPS times it, the largest sum of products, is below 2^31 */

typedef float v4 __attribute__((vector_size(16)));
typedef int32_t i4 __attribute__((vector_size(16)));
typedef float v16 __attribute__((vector_size(64)));
typedef int32_t i16 __attribute__((vector_size(64)));
typedef uint16_t u16 __attribute__((vector_size(32)));
typedef uint64_t u64x8 __attribute__((vector_size(64)));
static const i16 lane_number = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
typedef union { v16 all; v4 quarter[4]; float lane[LANES]; } lanes;
typedef union { i16 all; i4 quarter[4]; int32_t lane[LANES]; } whole_lanes;

typedef struct {              /* shared by all blocks of a kind */
    const int32_t *counts;    /* V x K, or NULL */
    const float *table;       /* V x K, or NULL */
    const float *scale;       /* K: 1 / (total + V beta), padded with zeros to whole lanes */
    const float *alpha;       /* K, padded with zeros */
    float beta, self_count;   /* weight of a token in the table, which its own draw leaves out */
    int32_t n_words, n_topics;
    uint64_t seed, round;
    int64_t first_document;   /* number of the first document here among those of all parts of a corpus */
    const uint8_t *active;    /* document -> whether it is resampled, or NULL for all */
    int16_t *quantized;       /* dense: V x K, padded; bounds of the rows in steps, or NULL for a sparse sweep */
    float *steps;             /* dense: V; how many steps of a word's row make 1 */
    const int16_t *prior;     /* dense: K, padded; token_weight alpha[k], rounded up */
    int32_t token_weight, loose; /* dense: of a token in its document; whether prior was rounded */
    int reference;            /* dense: whether the scalar reference draws, to compare */
} delayed_table;

typedef struct { int64_t first; int32_t blocks, capacity; } slot_list;

typedef struct {              /* draws of different documents, side by side */
    whole_lanes sum[BATCH];   /* draw -> its products, summed by lane */
    uint64_t random[BATCH];
    int16_t *state[BATCH];
    const int16_t *row[BATCH];
    whole_lanes token, word, old, fix, drawn, inside, unsure;
    int32_t n, doubt;
} batch;

typedef struct { int32_t group; uint32_t seen[GROUP]; } occurrences;

/* Word and occurrence of a segment, as one number; the segments must be taken one after the other. */
INLINE uint64_t place_of(const token_block *b, occurrences *o, int32_t word) {
    if (word / b->together != o->group) {
        memset(o->seen, 0, sizeof o->seen);
        o->group = word / b->together;
    }
    return ((uint64_t)word << 32) + o->seen[word % b->together]++;
}

typedef struct {              /* what one thread works with */
    float *row, *product;     /* K, padded */
    batch *batch;
    uint64_t sweep_key, first, *key; /* of this sweep; of the block's first document; document -> key of its stream */
    int16_t *state;           /* dense: document x K, padded; weights */
    uint32_t *last_batch;     /* dense: document -> the last batch that it is in */
    uint32_t batches;
    i16 *part;                /* dense: partial sums */
    v16 *before;              /* sparse: partial sums */
    slot_list *list;          /* sparse: the documents' topics, in whole lanes */
    float *count;
    uint16_t *topic;
    int64_t used, size;
} scratch;

static void scratch_free(scratch *a) {
    if (!a) return;
    free(a->row); free(a->batch); free(a->product); free(a->key); free(a->state); free(a->part);
    free(a->last_batch); free(a->before);
    free(a->list); free(a->count); free(a->topic);
    free(a);
}

static void *aligned(size_t size) { return aligned_alloc(64, (size + 63) / 64 * 64); }

/* `dense` and `sparse` are the most documents of a block of each kind of sweep; 0 where there is none. */
static scratch *scratch_new(int32_t n_topics, int64_t dense, int64_t sparse) {
    const size_t width = padded_pairs(n_topics) + 8 * LANES; /* reads run past the end, by less than a group */
    scratch *a = calloc(1, sizeof(scratch));
    int complete;
    if (!a) return NULL;
    a->row = aligned(width * sizeof(float));
    a->key = aligned((dense > sparse ? dense : sparse) * sizeof(uint64_t));
    complete = a->row && a->key;
    if (dense) {
        a->batch = aligned(sizeof(batch));
        a->state = aligned((dense * padded_pairs(n_topics) + 8 * LANES) * sizeof(int16_t));
        a->part = aligned(BATCH * width * sizeof(int32_t) / 4);
        a->last_batch = calloc(dense, sizeof(uint32_t));
        complete = complete && a->batch && a->state && a->part && a->last_batch;
        if (complete) memset(a->batch, 0, sizeof(batch));
    }
    if (sparse) {
        a->product = aligned(width * sizeof(float));
        a->list = aligned(sparse * sizeof(slot_list));
        a->before = aligned(width * sizeof(float));
        complete = complete && a->product && a->list && a->before;
    }
    if (complete) memset(a->row, 0, width * sizeof(float));
    else { scratch_free(a); a = NULL; }
    return a;
}

/* What names the random numbers of a sweep; of a document in the sweep of such a key. */
INLINE uint64_t sweep_key(const delayed_table *f, int sweep) {
    return mix64(mix64(mix64(f->seed + GOLDEN) ^ (f->round + GOLDEN)) ^ ((uint64_t)sweep + GOLDEN));
}

INLINE uint64_t document_key(const delayed_table *f, uint64_t sweep, int64_t d) {
    return mix64(sweep ^ ((uint64_t)(f->first_document + d) + GOLDEN));
}

static void make_keys(const token_block *b, const delayed_table *f, int sweep, scratch *a) {
    a->sweep_key = sweep_key(f, sweep);
    a->first = (uint64_t)(f->first_document + b->first_document) + GOLDEN;
    for (int64_t d = 0; d < b->n_documents; d++) a->key[d] = document_key(f, a->sweep_key, b->first_document + d);
}
#endif
