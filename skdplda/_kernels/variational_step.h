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
#include "document_scratch.h"

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
