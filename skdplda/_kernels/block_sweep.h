/* Gibbs draws of the topics of one block of documents, from delayed counts (AD-LDA: Newman, Asuncion, Smyth and Welling
 * (2009), Distributed algorithms for topic models, JMLR 10).
 *
 * The table stays as it was before the sweep, so that documents do not see each other. In document d a token of word w has
 *     p(z = k)  ~  row[k] (n_dk + alpha[k]),     row[k] = (table[w, k] + beta) / (total[k] + V beta),
 * where n_dk and table leave the token itself out.
 *
 * The block is visited group by group of words: their rows lie in L1, the state of the block's documents in L2, and
 * neighbouring draws belong to different documents, so the processor overlaps them. A document still sees its own
 * tokens one after the other, in the order (group of words, occurrence, word), whatever the blocks are.
 *
 * The sweeps are compiled for three kinds of x86-64 processor (simd.h). Sixteen lanes are added in the same order
 * everywhere, so that results do not depend on the processor.
 */
#ifndef SKDPLDA_BLOCK_SWEEP_H
#define SKDPLDA_BLOCK_SWEEP_H
#include "sweep_scratch.h"

/* Choose the integer that a token weighs in documents of this kind, so that alpha times it is almost an integer too, and
 * set `prior` (K, padded) to what that is at most; 0 where none fits all documents of the kind. */
static int32_t choose_token_weight(delayed_table *f, int32_t kind, int16_t *prior) {
    const int64_t longest = kind < KINDS - 1 ? most_tokens[kind] : INT32_MAX;
    int32_t chosen = 0;
    double total = 0, most = 0, least_excess = 0;
    for (int32_t k = 0; k < f->n_topics; k++) {
        total += f->alpha[k];
        most = f->alpha[k] > most ? f->alpha[k] : most;
    }
    for (int32_t u = 1; u <= 64; u++) {
        double excess = 0;
        if (u * (longest + most) > 32766 || u * (longest + total) + f->n_topics > MOST_WEIGHT) break;
        for (int32_t k = 0; k < f->n_topics; k++)
            excess += ceil(u * (double)f->alpha[k] * (1 - 1e-6)) / u - f->alpha[k];
        if (chosen && excess > least_excess - 1e-6 * total) continue;
        chosen = u;
        least_excess = excess;
    }
    f->loose = 0;
    for (int32_t k = 0; k < padded_pairs(f->n_topics); k++) {
        const double exact = k < f->n_topics ? chosen * (double)f->alpha[k] : 0;
        prior[k] = (int16_t)ceil(exact * (1 - 1e-6));
        f->loose |= prior[k] > exact * (1 + 1e-6);
    }
    f->token_weight = chosen;
    f->prior = prior;
    return chosen;
}

#include "dense_reference.h"
#define COPIES "lanes.h"
#include "simd_copies.h"
#define COPIES "dense_sweep.h"
#include "simd_copies.h"
#define COPIES "document_slots.h"
#include "simd_copies.h"
#define COPIES "sparse_sweep.h"
#include "simd_copies.h"

/* Add the columns of the words [first, last) to `total` (K). */
static void add_columns(const int32_t *counts, const float *table, int32_t n_topics, int64_t first, int64_t last,
                        double *total) {
    for (int64_t w = first; w < last; w++)
        if (counts) for (int32_t k = 0; k < n_topics; k++) total[k] += counts[w * n_topics + k];
        else for (int32_t k = 0; k < n_topics; k++) total[k] += table[w * n_topics + k];
}

/* Bounds of the rows of the words [first, last); row (K, padded) is scratch. */
#define quantize_rows(...) DISPATCH(quantize_rows, __VA_ARGS__)

static int sweep_block(const token_block *b, const delayed_table *f, int n_sweeps, scratch *a) {
    if (!f->quantized) return DISPATCH(sweep_sparse, b, f, n_sweeps, a);
    return f->reference ? sweep_reference(b, f, n_sweeps, a) : DISPATCH(sweep_dense, b, f, n_sweeps, a);
}
#endif
