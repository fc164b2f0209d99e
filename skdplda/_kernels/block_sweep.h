/* Gibbs draws of the topics of one block of documents, from a frozen table.
 *
 * With every other document frozen in the table, a token of word w in document d has
 *     p(z = k)  ~  row[k] (n_dk + alpha[k]),     row[k] = (table[w, k] + beta) / (total[k] + V beta),
 * where n_dk and table leave the token itself out. It splits into a part over the topics that the document uses
 * (its slots: topic, count) and a part row[k] alpha[k] that is the same for every document, up to the token itself.
 *
 * The block is visited word by word: the word's row lies in L1, the slots of the block's documents in L2, and
 * neighbouring draws belong to different documents, so the processor overlaps them. A document still sees its own
 * tokens one after the other, in the order (word, occurrence), whatever the blocks are.
 */
#ifndef SKDPLDA_BLOCK_SWEEP_H
#define SKDPLDA_BLOCK_SWEEP_H
#include <stdlib.h>
#include <string.h>
#include "block_layout.h"
#include "random_stream.h"

#define LANES 16

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(SKDPLDA_NO_CLONES)
#define SKDPLDA_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SKDPLDA_CLONES
#endif
#define INLINE static inline __attribute__((always_inline))

typedef float v4 __attribute__((vector_size(16)));
typedef int32_t i4 __attribute__((vector_size(16)));
typedef float v16 __attribute__((vector_size(64)));
typedef int32_t i16 __attribute__((vector_size(64)));
typedef uint16_t u16 __attribute__((vector_size(32)));
typedef union { v16 all; v4 quarter[4]; float lane[LANES]; } lanes;

typedef struct {              /* shared by all blocks */
    const int32_t *counts;    /* V x K, or NULL */
    const float *table;       /* V x K, or NULL */
    const float *scale;       /* K: 1 / (total + V beta), padded with zeros to whole lanes */
    const float *alpha;       /* K, padded */
    float beta, own;
    int32_t n_topics;
    uint64_t seed, round;
    const uint8_t *active;    /* document -> whether it is resampled, or NULL for all */
} frozen_table;

typedef struct { int64_t first; int32_t blocks, capacity; } slot_list;

typedef struct {              /* the documents' topics: slots, in whole lanes */
    slot_list *list;
    float *count;
    uint16_t *topic;
    int64_t used, size;
    uint64_t *key;            /* document -> key of its stream in this sweep */
    float *row, *product;     /* K, padded */
} slot_arena;

static int arena_reserve(slot_arena *a, int64_t extra) {
    if (a->used + extra <= a->size) return 0;
    int64_t size = 2 * (a->used + extra);
    float *count = aligned_alloc(64, size * sizeof(float));
    uint16_t *topic = aligned_alloc(64, size * sizeof(uint16_t));
    if (!count || !topic) { free(count); free(topic); return -1; }
    if (a->used) {
        memcpy(count, a->count, a->used * sizeof(float));
        memcpy(topic, a->topic, a->used * sizeof(uint16_t));
    }
    free(a->count); free(a->topic);
    a->count = count; a->topic = topic; a->size = size;
    return 0;
}

static int32_t padded(int32_t n) { return (n + LANES - 1) / LANES * LANES; }

static int64_t documents_per_block(int32_t n_topics, int64_t tokens_per_document) {
    int64_t slots = padded((int32_t)(tokens_per_document < n_topics ? tokens_per_document : n_topics));
    return (512 << 10) / (6 * slots + 32) + 1;
}

static void arena_free(slot_arena *a) {
    if (!a) return;
    free(a->list); free(a->count); free(a->topic); free(a->key); free(a->row); free(a->product);
    free(a);
}

static slot_arena *arena_new(int64_t n_documents, int32_t n_topics) {
    slot_arena *a = calloc(1, sizeof(slot_arena));
    if (!a) return NULL;
    a->list = malloc(n_documents * sizeof(slot_list));
    a->key = malloc(n_documents * sizeof(uint64_t));
    a->row = aligned_alloc(64, padded(n_topics) * sizeof(float));
    a->product = aligned_alloc(64, padded(n_topics) * sizeof(float));
    if (a->list && a->key && a->row && a->product) return a;
    arena_free(a);
    return NULL;
}

static int add_lanes(slot_arena *a, slot_list *l) {
    if (l->blocks == l->capacity) {
        int32_t capacity = l->capacity ? 2 * l->capacity : 1;
        int64_t n = (int64_t)l->blocks * LANES;
        if (arena_reserve(a, (int64_t)capacity * LANES)) return -1;
        memcpy(a->count + a->used, a->count + l->first, n * sizeof(float));
        memcpy(a->topic + a->used, a->topic + l->first, n * sizeof(uint16_t));
        l->first = a->used;
        l->capacity = capacity;
        a->used += (int64_t)capacity * LANES;
    }
    memset(a->count + l->first + l->blocks * LANES, 0, LANES * sizeof(float));
    memset(a->topic + l->first + l->blocks * LANES, 0, LANES * sizeof(uint16_t));
    l->blocks++;
    return 0;
}

/* The slot of a topic in a document's list: its own, else a free one, else a new one; -1 without memory. */
INLINE int64_t slot_of(slot_arena *a, slot_list *l, uint16_t topic) {
    int64_t vacant = -1;
    for (int32_t j = 0; j < l->blocks * LANES; j++) {
        if (a->count[l->first + j] > 0) {
            if (a->topic[l->first + j] == topic) return l->first + j;
        } else if (vacant < 0) vacant = l->first + j;
    }
    if (vacant < 0) {
        if (add_lanes(a, l)) return -1;
        vacant = l->first + (l->blocks - 1) * LANES;
    }
    a->topic[vacant] = topic;
    return vacant;
}

/* Inclusive prefix sum over sixteen lanes, in one fixed order on every processor. */
INLINE lanes prefix_sum(lanes x) {
    const v4 zero = {0, 0, 0, 0};
    v4 carry;
    for (int q = 0; q < 4; q++) {
        x.quarter[q] += __builtin_shuffle(zero, x.quarter[q], (i4){0, 4, 5, 6});
        x.quarter[q] += __builtin_shuffle(zero, x.quarter[q], (i4){0, 1, 4, 5});
    }
    x.quarter[1] += __builtin_shuffle(x.quarter[0], (i4){3, 3, 3, 3});
    x.quarter[3] += __builtin_shuffle(x.quarter[2], (i4){3, 3, 3, 3});
    carry = __builtin_shuffle(x.quarter[1], (i4){3, 3, 3, 3});
    x.quarter[2] += carry;
    x.quarter[3] += carry;
    return x;
}

/* How many lanes are <= value (the lanes ascend). */
INLINE int lanes_below(lanes x, float value) {
    const v4 bound = {value, value, value, value};
    i4 n = (x.quarter[0] <= bound) + (x.quarter[1] <= bound) + (x.quarter[2] <= bound) + (x.quarter[3] <= bound);
    n += __builtin_shuffle(n, (i4){2, 3, 0, 1});
    n += __builtin_shuffle(n, (i4){1, 0, 3, 2});
    return -n[0];
}

/* A topic from the part that all documents share. */
static int32_t draw_shared(const float *row, const float *alpha, int32_t n_blocks, int32_t reference, float own,
                           lanes sum, float target) {
    lanes cumulative;
    int32_t k, last;
    if (reference != UNASSIGNED) sum.lane[reference % LANES] -= own * alpha[reference];
    cumulative = prefix_sum(sum);
    k = lanes_below(cumulative, target);
    if (k >= LANES) k = LANES - 1;
    target -= cumulative.lane[k] - sum.lane[k];
    for (last = -1; k < n_blocks * LANES; k += LANES) {
        float p = (row[k] - (k == reference ? own : 0)) * alpha[k];
        if (p <= 0) continue;
        last = k;
        target -= p;
        if (target < 0) break;
    }
    return last;
}

/* Key of the draws of a document in one sweep. */
static inline uint64_t stream_key(uint64_t seed, uint64_t round, uint64_t sweep, uint64_t document) {
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    return mix64(mix64(mix64(mix64(seed + golden) ^ (round + golden)) ^ (sweep + golden)) ^ (document + golden));
}

SKDPLDA_CLONES
static int sweep_block(const token_block *b, const frozen_table *f, int n_sweeps, slot_arena *a) {
    const int32_t row_blocks = (f->n_topics + LANES - 1) / LANES;
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    const uint8_t *active = f->active ? f->active + b->first_document : NULL;
    const uint16_t *document = b->document, *reference = b->reference;
    float *row = a->row, *product = a->product;
    uint16_t *topic = b->topic;
    a->used = 0;
    memset(a->list, 0, b->n_documents * sizeof(slot_list));
    for (int64_t d = 0; d < b->n_documents; d++) if (!active || active[d]) if (add_lanes(a, a->list + d)) return -1;
    for (int64_t t = 0; t < b->n_tokens; t++) if (topic[t] != UNASSIGNED) {
        int32_t d = document[t] & (SILENT - 1);
        if (active && !active[d]) continue;
        int64_t slot = slot_of(a, a->list + d, topic[t]);
        if (slot < 0) return -1;
        a->count[slot]++;
    }
    for (int sweep = 0; sweep < n_sweeps; sweep++) {
        for (int64_t d = 0; d < b->n_documents; d++)
            a->key[d] = stream_key(f->seed, f->round, (uint64_t)sweep, (uint64_t)(b->first_document + d));
        for (int64_t g = 0; g < b->n_segments; g++) {
            const int32_t w = b->word[g];
            lanes shared = {.all = {0}};
            float shared_total;
            int32_t previous = -1;
            uint64_t place = (uint64_t)w << 32; /* word and occurrence */
            if (f->counts) {
                const int32_t *source = f->counts + (size_t)w * f->n_topics;
                for (int32_t k = 0; k < f->n_topics; k++) row[k] = ((float)source[k] + f->beta) * f->scale[k];
            } else {
                const float *source = f->table + (size_t)w * f->n_topics;
                for (int32_t k = 0; k < f->n_topics; k++) row[k] = (source[k] + f->beta) * f->scale[k];
            }
            for (int32_t k = f->n_topics; k < row_blocks * LANES; k++) row[k] = 0;
            for (int32_t k = 0; k < row_blocks; k++) shared.all += ((const v16 *)row)[k] * ((const v16 *)f->alpha)[k];
            shared_total = prefix_sum(shared).lane[LANES - 1];
            for (uint32_t t = b->start[g]; t < b->start[g + 1]; t++) {
                const int32_t d = document[t] & (SILENT - 1);
                const int32_t was = reference[t], old = topic[t];
                place += d <= previous;
                previous = d;
                if (active && !active[d]) continue;
                slot_list *l = a->list + d;
                float *count = a->count + l->first;
                const uint16_t *slot = a->topic + l->first;
                const int32_t n_blocks = l->blocks;
                float own = 0;
                if (was != UNASSIGNED) {
                    float most = row[was] - f->beta * f->scale[was];
                    own = f->own * f->scale[was];
                    own = own < most ? own : most;
                }
                float rest = shared_total - (was == UNASSIGNED ? 0 : own * f->alpha[was]), target, total;
                lanes sum = {.all = {0}}, cumulative;
                int32_t lane, j;
                for (int32_t i = 0; i < n_blocks; i++) {
                    v16 weight, p, m = ((const v16 *)count)[i];
                    i16 k = __builtin_convertvector(((const u16 *)slot)[i], i16);
                    for (int x = 0; x < LANES; x++) weight[x] = row[k[x]];
                    m += __builtin_convertvector(k == old, v16);
                    m = (v16)((i16)m & (m > 0));
                    weight += __builtin_convertvector(k == was, v16) * own;
                    p = weight * m;
                    ((v16 *)count)[i] = m;
                    ((v16 *)product)[i] = p;
                    sum.all += p;
                }
                cumulative = prefix_sum(sum);
                total = cumulative.lane[LANES - 1];
                target = (float)(mix64(a->key[d] + place * golden) >> 40) * 0x1p-24f * (total + rest);
                if (target >= total) {
                    int32_t k = draw_shared(row, f->alpha, row_blocks, was, own, shared, target - total);
                    int64_t s = slot_of(a, l, (uint16_t)k);
                    if (s < 0) return -1;
                    a->count[s]++;
                    topic[t] = (uint16_t)k;
                    continue;
                }
                lane = lanes_below(cumulative, target);
                target -= cumulative.lane[lane] - sum.lane[lane];
                j = lane;
                for (int32_t i = 0; i < n_blocks - 1; i++) {
                    target -= product[lane + i * LANES];
                    j += target >= 0 ? LANES : 0;
                }
                count[j]++;
                topic[t] = slot[j];
            }
        }
    }
    return 0;
}
#endif
