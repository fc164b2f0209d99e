/* Topic proportions of one document under a table that does not move, in single precision; see fold_in_document.h. */
#ifndef SKDPLDA_FOLD_IN_H
#define SKDPLDA_FOLD_IN_H
#include "document_scratch.h"

typedef struct {              /* shared by all documents */
    const int64_t *indptr;    /* rows of a document-term matrix */
    const int32_t *indices, *counts;
    const float *rows;        /* word -> stride numbers, 64-byte aligned, zero beyond K */
    const float *alpha;       /* stride, zero beyond K */
    int32_t n_topics, stride, max_iter;
    float tol;                /* relative change of a weight to stop at */
} fold_in_problem;

#define COPIES "fold_in_document.h"
#include "simd_copies.h"

/* `theta` (K) becomes the proportions of document d; returns how often its words were gone through. */
#define fold_in_single(...) DISPATCH(fold_in, __VA_ARGS__)

/* `out` becomes sum_k theta[k] row_w[k] of each word of document d. */
#define explain_document(...) DISPATCH(explain, __VA_ARGS__)
#endif
