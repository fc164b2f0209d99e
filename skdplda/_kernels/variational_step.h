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
 * Compiled for three kinds of x86-64 processor (simd.h). Sixteen lanes are added in the same order everywhere, so that
 * results do not depend on the processor.
 */
#ifndef SKDPLDA_VARIATIONAL_STEP_H
#define SKDPLDA_VARIATIONAL_STEP_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "simd.h"

#define LANES 16
#define FEW 8                 /* vectors that stay in registers */

typedef float v16 __attribute__((vector_size(64)));
typedef int32_t i16 __attribute__((vector_size(64)));
typedef int32_t i8 __attribute__((vector_size(32), may_alias));
typedef double v8d __attribute__((vector_size(64)));
typedef union { v16 all; float lane[LANES]; } lanes;

typedef struct {              /* shared by all documents */
    const int64_t *indptr;    /* rows of a document-term matrix */
    const int32_t *indices, *counts;
    const int32_t *weight;    /* document -> weight of a token on the grid, or NULL for `token_weight` */
    const float *expected;    /* V x stride, 64-byte aligned, zero beyond K */
    const float *alpha;       /* stride, zero beyond K */
    int64_t norm;             /* bound of a document's soft counts, or 0: then each token has its weight */
    const float *word_weight; /* word -> weight of its soft counts, before they are scaled to the norm; or NULL */
    float *state;             /* document x K: counts of its topics, negative if not known; or NULL */
    int32_t token_weight, n_topics, stride, max_iter;
    int32_t collapsed;        /* CVB0: see below */
    float tol, cut;           /* mean change of gamma to stop at; counts of a topic to drop */
} variational_problem;

typedef struct {              /* what one thread works with */
    int64_t words;            /* of a document, at most */
    float *memory, *gamma, *theta, *total, *alpha, *other, *block, *ratio;
    const float **row;        /* word -> its numbers */
    int32_t *topic, *cell;    /* topics in use */
} document_scratch;

static int32_t padded(int32_t n_topics) { return (n_topics + LANES - 1) / LANES * LANES; }

static void scratch_free(document_scratch *a) {
    if (!a) return;
    free(a->memory);
    free(a->row);
    free(a->topic);
    free(a);
}

static document_scratch *scratch_new(int64_t words, int32_t stride) {
    document_scratch *a = calloc(1, sizeof(document_scratch));
    const size_t whole = (words + LANES) / LANES * LANES;
    if (!a) return NULL;
    a->words = words;
    a->memory = aligned_alloc(64, ((4 + LANES) * (size_t)stride + whole + whole * (size_t)stride) * sizeof(float));
    a->row = malloc(whole * sizeof(float *));
    a->topic = aligned_alloc(64, 2 * (size_t)stride * sizeof(int32_t));
    if (!a->memory || !a->row || !a->topic) {
        scratch_free(a);
        return NULL;
    }
    a->gamma = a->memory;
    a->theta = a->gamma + stride;
    a->total = a->theta + stride;
    a->alpha = a->total + stride;
    a->other = a->alpha + stride;
    a->ratio = a->other + (size_t)LANES * stride;
    a->block = a->ratio + whole;
    a->cell = a->topic + stride;
    return a;
}

#define COPIES "exp_digamma.h"
#include "simd_copies.h"
#define COPIES "variational_document.h"
#include "simd_copies.h"

static int infer_document(const variational_problem *p, document_scratch *a, int64_t d, int64_t *sum) {
    return DISPATCH(infer, p, a, d, sum);
}

/* out[i] = exp(digamma(x[i])) for i < n, both 64-byte aligned, n a multiple of LANES. */
static void exp_digamma_row(const float *x, float *out, int64_t n) {
    DISPATCH(exp_digamma_all, x, out, n);
}
#endif
