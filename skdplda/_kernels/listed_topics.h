/* Gibbs draws from a table that lists the topics of each word, and such lists of what was drawn.
 *
 * For many topics and tables without noise, where most numbers of a table are zeros: nothing here is of the size of words
 * times topics, neither in bytes nor in steps.
 */
#ifndef SKDPLDA_LISTED_TOPICS_H
#define SKDPLDA_LISTED_TOPICS_H
#include "sweep_scratch.h"

#define AHEAD 6 /* tokens between the fetching of a document's slots and their use */
#define FETCHED 8 /* lanes of slots */

typedef struct {              /* the topics of each word, ascending, and their counts, which are positive */
    const int64_t *start;     /* word -> first entry; V + 1 */
    const int32_t *topic, *count;
} listed_table;

typedef struct {              /* entries with weights, to be drawn from */
    int32_t n;
    float total, *end;        /* of all; entry -> sum of the weights up to it */
} cumulated;

typedef struct {              /* draws of one word's topic in different documents, side by side */
    uint32_t token[BATCH];
    whole_lanes sum[BATCH];   /* draw -> its products, summed by lane */
    whole_lanes lane, in_document;
    lanes random, rest, inside; /* the random number; weight of the word's list; where in the lane, or behind the document */
    float gap[BATCH];         /* what the self-count correction takes from the word's list */
    float *product[BATCH];    /* draw -> weight of each slot */
} listed_batch;

typedef struct {              /* what one thread works with */
    scratch *slots;
    listed_batch *batch;
    cumulated word, all;      /* topics of a word, and all topics */
    float *product;
    uint16_t *topics;         /* of the block's tokens, by document */
    uint32_t *seen;           /* topic -> tokens of a document, or of a word */
    uint64_t *used;           /* a bit for each topic */
    int64_t *next;            /* document -> its next token; block -> its next segment */
} listed_scratch;

/* The entry whose part of the total holds the target: a search without branches, which draws side by side share. */
static inline int32_t find_entry(const cumulated *c, float target) {
    int32_t first = 0;
    for (int32_t n = c->n, half; n > 1; n -= half) {
        half = n / 2;
        first += c->end[first + half - 1] <= target ? half : 0;
    }
    return first;
}

static void listed_free(listed_scratch *s) {
    if (!s) return;
    scratch_free(s->slots);
    free(s->word.end); free(s->all.end); free(s->batch); free(s->product);
    free(s->topics); free(s->seen); free(s->used); free(s->next);
    free(s);
}

/* Lanes of slots that a block's documents need at most. */
static int64_t slots_of(const token_block *b, const int64_t *first_token, int32_t n_topics) {
    int64_t n = 0;
    for (int64_t d = b->first_document; d < b->first_document + b->n_documents; d++) {
        const int64_t tokens = first_token[d + 1] - first_token[d];
        n += padded((int32_t)(tokens < n_topics ? tokens : n_topics));
    }
    return n;
}

/* `documents`, `tokens` and `slots` are the most of a block. */
static listed_scratch *listed_new(const delayed_table *f, int64_t documents, int64_t tokens, int64_t slots) {
    const int32_t K = f->n_topics;
    listed_scratch *s = calloc(1, sizeof(listed_scratch));
    float sum = 0;
    if (!s) return NULL;
    s->slots = scratch_new(K, 0, documents + 1);
    s->topics = malloc((tokens + 1) * sizeof(uint16_t));
    s->seen = calloc(K, sizeof(uint32_t));
    s->next = malloc((documents + 2) * sizeof(int64_t));
    s->word.end = malloc(K * sizeof(float));
    s->all.end = malloc(K * sizeof(float));
    s->batch = aligned(sizeof(listed_batch));
    s->product = aligned(BATCH * (size_t)padded(K) * sizeof(float));
    if (s->slots) {
        s->slots->size = slots + LANES;
        s->slots->count = aligned(s->slots->size * sizeof(float));
        s->slots->topic = aligned(s->slots->size * sizeof(uint16_t));
    }
    if (!s->slots || !s->slots->count || !s->slots->topic || !s->topics || !s->seen || !s->next
        || !s->word.end || !s->all.end || !s->batch || !s->product) { listed_free(s); return NULL; }
    memset(s->batch, 0, sizeof(listed_batch));
    s->all.n = K;
    for (int32_t k = 0; k < K; k++) s->all.end[k] = sum += f->beta * f->scale[k] * f->alpha[k];
    s->all.total = sum;
    return s;
}

/* Make the slots of the block's documents: topics in the order in which their tokens have them. */
static void list_documents(const token_block *b, int32_t n_topics, listed_scratch *s) {
    scratch *a = s->slots;
    int64_t *next = s->next + 1;
    memset(s->next, 0, (b->n_documents + 2) * sizeof(int64_t));
    for (int64_t t = 0; t < b->n_tokens; t++) next[b->document[t]]++;
    for (int64_t d = 0, n = 0; d < b->n_documents; d++) {
        slot_list *l = a->list + d;
        l->capacity = padded((int32_t)(next[d] < n_topics ? next[d] : n_topics)) / LANES;
        l->first = d ? a->list[d - 1].first + (int64_t)a->list[d - 1].capacity * LANES : 0;
        n += next[d];
        next[d] = n - next[d];
    }
    for (int64_t t = 0; t < b->n_tokens; t++) s->topics[next[b->document[t]]++] = b->topic[t];
    for (int64_t d = 0, t = 0; d < b->n_documents; d++) {
        slot_list *l = a->list + d;
        int64_t n = l->first;
        for (; t < next[d]; t++) {
            const uint16_t k = s->topics[t];
            if (k == UNASSIGNED) continue;
            if (!s->seen[k]++) a->topic[n++] = k;
        }
        for (int64_t i = l->first; i < n; i++) {
            a->count[i] = (float)s->seen[a->topic[i]];
            s->seen[a->topic[i]] = 0;
        }
        for (; (n - l->first) % LANES; n++) { a->count[n] = 0; a->topic[n] = 0; }
        l->blocks = (int32_t)((n - l->first) / LANES);
    }
}

/* List the topics of the words [first, last), each word from entry `room[word]` on, and set the lengths of the lists; the
 * tokens' topics are now those of the sum. `seen` (K zeros), `used` (K bits, zeros) and `next` are scratch. */
static int list_words(token_block *blocks, int64_t n_blocks, int32_t n_topics, int32_t first, int32_t last,
                       const int64_t *room, int32_t *topic, int32_t *count, int64_t *length, uint32_t *seen,
                       uint64_t *used, int64_t *next) {
    for (int64_t i = 0; i < n_blocks; i++) next[i] = find_word(blocks + i, first);
    for (int32_t w = first; w < last; w++) {
        int64_t n = room[w];
        if (room[w + 1] == room[w]) { length[w] = 0; continue; }
        for (int64_t i = 0; i < n_blocks; i++) {
            const token_block *b = blocks + i;
            int64_t g = next[i];
            for (; g < b->n_segments && b->word[g] == w; g++)
                for (uint32_t t = b->start[g]; t < b->start[g + 1]; t++) {
                    const uint16_t k = b->topic[t];
                    b->counted[t] = k;
                    if (k == UNASSIGNED) continue;
                    seen[k]++;
                    used[k / 64] |= UINT64_C(1) << k % 64;
                }
            next[i] = g;
        }
        for (int32_t i = 0; i < (n_topics + 63) / 64; i++)
            for (uint64_t bits = used[i]; bits; bits &= bits - 1) {
                const int32_t k = 64 * i + __builtin_ctzll(bits);
                topic[n] = k;
                count[n++] = (int32_t)seen[k];
                seen[k] = 0;
                used[i] = 0;
            }
        length[w] = n - room[w];
    }
    return 0;
}

#define COPIES "lanes.h"
#include "simd_copies.h"
#define COPIES "document_slots.h"
#include "simd_copies.h"
#define COPIES "listed_sweep.h"
#include "simd_copies.h"

static int sweep_listed(const token_block *b, const delayed_table *f, const listed_table *t, int n_sweeps,
                        listed_scratch *s) {
    DISPATCH(sweep_listed, b, f, t, n_sweeps, s);
    return 0;
}
#endif
