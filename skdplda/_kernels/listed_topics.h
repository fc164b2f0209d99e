/* Gibbs draws from a table that lists the topics of each word, and such lists of what was drawn.
 *
 * For many topics and tables without noise, where most numbers of a table are zeros: nothing here is of the size of words
 * times topics, neither in bytes nor in steps. Documents are drawn one after the other, so that the numbers of one stay in a
 * near cache.
 */
#ifndef SKDPLDA_LISTED_TOPICS_H
#define SKDPLDA_LISTED_TOPICS_H
#include "sweep_scratch.h"

typedef struct {              /* the tokens of a corpus, document by document, and in each word by word */
    const int64_t *indptr;    /* document -> first of its words */
    const int32_t *word, *count; /* of each word of a document */
    const int64_t *first;     /* document -> first token */
    const int64_t *of_word, *begin; /* word -> first of its documents; document of a word -> first token there */
    const int32_t *many;      /* document of a word -> tokens */
    uint16_t *topic, *counted, *place; /* token -> topic; the one that it has in the table; where its word's list has this */
} listed_tokens;

typedef struct {              /* the topics of each word, ascending; zeros fill whole lanes */
    const int64_t *start;     /* word -> first entry, a multiple of LANES; V + 1 */
    uint16_t *topic;
    float *weight;            /* count times scale */
} listed_table;

typedef struct {              /* K cells of equal weight, of two topics each at most, to draw from beta scale alpha (Walker) */
    float total, *own;        /* of all; cell -> the part of it that is the topic's of its number */
    uint16_t *other;          /* cell -> the topic of the rest */
} topic_cells;

typedef struct {              /* what one thread works with */
    float *near, *sum;        /* topic -> the document's tokens and alpha; block of a list -> sums by lane up to it */
    int32_t *tokens;          /* topic -> the document's tokens; NOT_MET before the first */
    uint16_t *met;            /* the topics that the document has, or had in this sweep */
} listed_scratch;

enum { NOT_MET = -1 };

static void listed_free(listed_scratch *s) {
    if (!s) return;
    free(s->near); free(s->sum); free(s->tokens); free(s->met);
    free(s);
}

/* `longest` is the length of the longest list. */
static listed_scratch *listed_new(const delayed_table *f, int32_t longest) {
    const int32_t K = f->n_topics;
    listed_scratch *s = calloc(1, sizeof(listed_scratch));
    if (!s) return NULL;
    s->near = aligned(padded(K) * sizeof(float));
    s->sum = aligned((padded(longest) + LANES) * sizeof(float));
    s->tokens = malloc(K * sizeof(int32_t));
    s->met = malloc(K * sizeof(uint16_t));
    if (!s->near || !s->sum || !s->tokens || !s->met) { listed_free(s); return NULL; }
    for (int32_t k = 0; k < K; k++) {
        s->near[k] = f->alpha[k];
        s->tokens[k] = NOT_MET;
    }
    return s;
}

static void free_cells(topic_cells *c) {
    if (!c) return;
    free(c->own); free(c->other);
    free(c);
}

/* NULL if there is not enough memory. */
static topic_cells *new_cells(const delayed_table *f) {
    const int32_t K = f->n_topics;
    int32_t small = 0, large = K; /* topics of less than a cell, and of one or more: from the ends of `order` */
    int32_t *order = malloc(K * sizeof(int32_t));
    double total = 0, *weight = malloc(K * sizeof(double)); /* in cells */
    topic_cells *c = calloc(1, sizeof(topic_cells));
    if (c) { c->own = malloc(K * sizeof(float)); c->other = malloc(K * sizeof(uint16_t)); }
    if (!c || !c->own || !c->other || !order || !weight) { free_cells(c); free(order); free(weight); return NULL; }
    for (int32_t k = 0; k < K; k++) total += (double)f->scale[k] * f->alpha[k];
    for (int32_t k = 0; k < K; k++) {
        weight[k] = (double)f->scale[k] * f->alpha[k] * K / total;
        if (weight[k] < 1) order[small++] = k;
        else order[--large] = k;
        c->other[k] = (uint16_t)k;
        c->own[k] = 1;
    }
    while (small && large < K) {
        const int32_t k = order[--small], rest = order[large];
        c->own[k] = (float)weight[k];
        c->other[k] = (uint16_t)rest;
        weight[rest] -= 1 - weight[k];
        if (weight[rest] < 1) {
            large++;
            order[small++] = rest;
        }
    }
    c->total = (float)(total * f->beta);
    free(order); free(weight);
    return c;
}

/* Make the lists of the words [first, last) of a table of topics and counts, and find the tokens' places in them. `rank` (K)
 * is scratch: zeros. */
static void enter_words(const delayed_table *f, const listed_tokens *x, const int64_t *start, const int32_t *topics,
                        const int32_t *counts, int32_t first, int32_t last, listed_table *t, uint16_t *rank) {
    for (int32_t w = first; w < last; w++) {
        const int64_t to = t->start[w] - start[w];
        for (int64_t e = start[w]; e < start[w + 1]; e++) {
            t->topic[to + e] = (uint16_t)topics[e];
            t->weight[to + e] = (float)counts[e] * f->scale[topics[e]];
            rank[topics[e]] = (uint16_t)(e - start[w] + 1);
        }
        for (int64_t e = x->of_word[w]; e < x->of_word[w + 1]; e++)
            for (int64_t i = x->begin[e]; i < x->begin[e] + x->many[e]; i++) {
                const uint16_t found = x->counted[i] == UNASSIGNED ? 0 : rank[x->counted[i]];
                x->place[i] = found ? found - 1 : UNASSIGNED;
            }
        for (int64_t e = start[w]; e < start[w + 1]; e++) rank[topics[e]] = 0;
    }
}

/* List the topics of the words [first, last), each word from entry `room[word]` on, and set the lengths of the lists; the
 * tokens' topics are now those of the table. `seen` (K) and `used` (a bit for each topic) are scratch: zeros. */
static void list_words(const listed_tokens *x, int32_t n_topics, int32_t first, int32_t last, const int64_t *room,
                       int32_t *topic, int32_t *count, int64_t *length, uint32_t *seen, uint64_t *used) {
    for (int32_t w = first; w < last; w++) {
        int64_t n = room[w];
        if (room[w + 1] == room[w]) { length[w] = 0; continue; }
        for (int64_t e = x->of_word[w]; e < x->of_word[w + 1]; e++)
            for (int64_t i = x->begin[e]; i < x->begin[e] + x->many[e]; i++) {
                const uint16_t k = x->topic[i];
                x->counted[i] = k;
                if (k == UNASSIGNED) continue;
                seen[k]++;
                used[k / 64] |= UINT64_C(1) << k % 64;
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
}

#define COPIES "lanes.h"
#include "simd_copies.h"
#define COPIES "listed_sweep.h"
#include "simd_copies.h"

/* Draw the topics of the documents [first, last). */
static int sweep_listed(const listed_tokens *x, const delayed_table *f, const listed_table *t, const topic_cells *c,
                        int n_sweeps, int64_t first, int64_t last, listed_scratch *s) {
    DISPATCH(sweep_listed, x, f, t, c, n_sweeps, first, last, s);
    return 0;
}
#endif
