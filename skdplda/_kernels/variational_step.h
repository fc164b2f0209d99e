/* Variational E-step of one document, from a table that does not move.
 *
 * With B[w, k] = exp(E[log topic k's probability of word w]), up to a factor of its own for each w, and
 * T[k] = exp(digamma(gamma[k])), a document of counts c_w iterates
 *     t_w = sum_k T[k] B[w, k],     gamma[k] = alpha[k] + T[k] sum_w (c_w / t_w) B[w, k]
 * and then adds the soft counts (expected topic counts) c_w T[k] B[w, k] / t_w of word w.
 *
 * With `collapsed`, T[k] = gamma[k], and a token does not see itself: word w uses
 *     T'[w, k] = max(T[k] - T[k] B[w, k] / t_w, alpha[k])
 * in place of T[k], both in the sums and in the soft counts. At its fixed point this is CVB0 (Asuncion, Welling, Smyth
 * and Teh, 2009, equation 9), for one token of each word.
 *
 * Soft counts of a bounded norm are scaled to it: those of a document, or of several documents of one unit together.
 *
 * Compiled for three kinds of x86-64 processor (simd.h). Sixteen lanes are added in the same order everywhere, so that
 * results do not depend on the processor.
 */
#ifndef SKDPLDA_VARIATIONAL_STEP_H
#define SKDPLDA_VARIATIONAL_STEP_H
#include "document_scratch.h"

typedef struct {              /* shared by all documents */
    const int64_t *indptr;    /* rows of a document-term matrix */
    const int32_t *indices, *counts;
    const int32_t *weight;    /* document -> weight of a token on the grid, or NULL for `token_weight` */
    const float *expected;    /* V x stride, 64-byte aligned, zero beyond K */
    const float *alpha;       /* stride, zero beyond K */
    int64_t norm;             /* bound of a unit's soft counts, or 0: then each token has its weight */
    const float *word_weight; /* word -> weight of its soft counts, before they are scaled to the norm; or NULL */
    float *state;             /* document x K: counts of its topics, negative if not known; or NULL */
    int32_t token_weight, n_topics, stride, max_iter;
    int32_t collapsed;        /* CVB0: see above */
    float tol, cut;           /* mean change of gamma to stop at; counts of a topic to drop */
    float beyond;             /* over-relaxation: part of its change by which gamma goes further; not in the last iteration */
} variational_problem;

/* The sum of one thread. Soft counts of a bounded norm are added in 32 bits, half the memory of the sum, and a row is
 * flushed to the sum before it could overflow. */
typedef struct {
    int64_t *sum;             /* V x K */
    int32_t *recent;          /* V x stride, zero at first; NULL without a norm */
    uint16_t *uses;           /* word -> how many documents are in its recent row */
    int32_t most_uses;
} soft_sum;

static void soft_sum_free(soft_sum *s) {
    if (!s) return;
    free(s->recent);
    free(s->uses);
    free(s);
}

static soft_sum *soft_sum_new(const variational_problem *p, int64_t n_words, int64_t *sum) {
    soft_sum *s = calloc(1, sizeof(soft_sum));
    const int64_t most = INT32_MAX / (p->norm + 1);
    const size_t bytes = n_words * (size_t)p->stride * sizeof(int32_t);
    if (!s) return NULL;
    s->sum = sum;
    s->most_uses = most < UINT16_MAX ? (int32_t)most : UINT16_MAX;
    if (!p->norm) return s;
    s->uses = calloc(n_words, sizeof(uint16_t));
    s->recent = aligned_alloc(64, bytes);
    if (!s->uses || !s->recent) {
        soft_sum_free(s);
        return NULL;
    }
    memset(s->recent, 0, bytes);
    return s;
}

/* The soft counts of the documents of one unit, before they are scaled: a row for each of its words. */
typedef struct {
    document_scratch *rows; /* as if they were a document: its block has them */
    int32_t *place;         /* word -> its row, or -1 */
    int32_t *word;          /* row -> its word */
    int64_t n;              /* rows in use */
} unit_sum;

static void unit_sum_free(unit_sum *u) {
    if (!u) return;
    scratch_free(u->rows);
    free(u->place);
    free(u->word);
    free(u);
}

/* For units of at most `words` different words. */
static unit_sum *unit_sum_new(const variational_problem *p, int64_t n_words, int64_t words) {
    unit_sum *u = calloc(1, sizeof(unit_sum));
    if (!u) return NULL;
    u->rows = scratch_new(words, p->stride);
    u->place = malloc(n_words * sizeof(int32_t));
    u->word = malloc(words * sizeof(int32_t));
    if (!u->rows || !u->place || !u->word) {
        unit_sum_free(u);
        return NULL;
    }
    memset(u->place, -1, n_words * sizeof(int32_t));
    return u;
}

#define COPIES "exp_digamma.h"
#include "simd_copies.h"
#define COPIES "soft_counts.h"
#include "simd_copies.h"
#define COPIES "topic_columns.h"
#include "simd_copies.h"
#define COPIES "variational_document.h"
#include "simd_copies.h"

/* Infer a document's topics, and add its soft counts to the sum; to those of its unit in place of that, if given. */
#define infer_document(...) DISPATCH(infer, __VA_ARGS__)

/* Add the soft counts of a unit to the sum, scaled to the norm. */
#define add_unit(...) DISPATCH(add_scaled_unit, __VA_ARGS__)

static void flush_sum(const variational_problem *p, const soft_sum *s, int64_t n_words) {
    if (p->norm) DISPATCH(flush_rows, p, s, n_words);
}

/* out[i] = exp(digamma(x[i])) for i < n, both 64-byte aligned, n a multiple of LANES. */
#define exp_digamma_row(...) DISPATCH(exp_digamma_all, __VA_ARGS__)
#endif
