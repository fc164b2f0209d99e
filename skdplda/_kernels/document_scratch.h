/* What one thread works with for a document: its rows of a table, weights of topics, sums. */
#ifndef SKDPLDA_DOCUMENT_SCRATCH_H
#define SKDPLDA_DOCUMENT_SCRATCH_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "simd.h"

#define LANES 16
#define FEW 8                 /* vectors of a sum that stay in registers */

typedef float v4 __attribute__((vector_size(16), may_alias));
typedef int32_t i4 __attribute__((vector_size(16)));

typedef struct {              /* what one thread works with */
    int64_t words;            /* of a document, at most */
    float *memory, *gamma, *theta, *total, *alpha, *other, *block, *ratio, *count;
    float *column, *sums;     /* sixteen topics' numbers of all words, and for each sixteen sums of what it has of them */
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
    const size_t whole = (words + LANES) / LANES * LANES, width = stride;
    if (!a) return NULL;
    a->words = words;
    a->memory = aligned_alloc(64, ((4 + LANES) * width + (2 + LANES + width) * whole + LANES * LANES) * sizeof(float));
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
    a->count = a->ratio + whole;
    a->block = a->count + whole;
    a->column = a->block + (size_t)stride * whole;
    a->sums = a->column + LANES * whole;
    a->cell = a->topic + stride;
    return a;
}

#define COPIES "document_sums.h"
#include "simd_copies.h"
#endif
