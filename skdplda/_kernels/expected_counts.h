/* Expected topic counts of words, given how many tokens of each document have each topic.
 *
 * Sums have eight lanes, whatever the processor. What is added to a table is rounded to a grid first, so that sums in
 * double precision are exact, and the same in any order.
 */
#ifndef SKDPLDA_EXPECTED_COUNTS_H
#define SKDPLDA_EXPECTED_COUNTS_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EIGHT 8
#define ON_GRID(x, bits) ((double)(x) + 0x1.8p52 / (1 << (bits)) - 0x1.8p52 / (1 << (bits))) /* a multiple of 2^-bits */

typedef struct {          /* a block of documents, word by word, and the topics of all documents */
    const int64_t *word;  /* word -> first entry of the block; V + 1 */
    const int32_t *document, *count; /* entry -> document of all, tokens */
    const int64_t *start; /* document -> first of its topics, a multiple of EIGHT; D + 1 */
    const uint16_t *topic;
    const float *tokens;  /* of the document in the topic; 0 where a list is filled up */
    float *next;          /* these numbers as this table has them */
} expected_block;

static inline float eight_sum(const float *s) {
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* row[k] = (table[k] + beta) scale[k]; its product with alpha. */
static float expected_row(const float *restrict table, const float *restrict scale, const float *restrict alpha, float beta,
                          int32_t n_topics, float *restrict row) {
    float sum[EIGHT] = {0};
    int32_t k = 0;
    for (; k + EIGHT <= n_topics; k += EIGHT)
        for (int l = 0; l < EIGHT; l++) {
            row[k + l] = (table[k + l] + beta) * scale[k + l];
            sum[l] += row[k + l] * alpha[k + l];
        }
    for (; k < n_topics; k++) {
        row[k] = (table[k] + beta) * scale[k];
        sum[k % EIGHT] += row[k] * alpha[k];
    }
    return eight_sum(sum);
}

/* Add to `sum`, K + 1 numbers, what the block's tokens of a word say. With Z the weight of all topics, a, of the prior's
 * part of it, and c tokens, that is c a / Z times the document's tokens in each topic, and c a / Z itself. */
static void expect_word(const expected_block *b, int32_t w, const float *restrict row, const float *restrict alpha,
                        float prior, int32_t n_topics, float *restrict product, double *restrict sum) {
    for (int64_t e = b->word[w]; e < b->word[w + 1]; e++) {
        const int64_t first = b->start[b->document[e]], n = b->start[b->document[e] + 1] - first;
        const uint16_t *restrict topic = b->topic + first;
        const float *restrict tokens = b->tokens + first;
        float *restrict next = b->next + first, part[EIGHT] = {0}, all, each;
        double share;
        for (int64_t i = 0; i < n; i += EIGHT)
            for (int l = 0; l < EIGHT; l++) {
                const float weight = row[topic[i + l]];
                part[l] += weight * tokens[i + l];
                product[i + l] = weight * (tokens[i + l] + alpha[topic[i + l]]);
            }
        all = eight_sum(part) + prior;
        each = (float)b->count[e] / all;
        share = ON_GRID(each * prior, 24);
        sum[n_topics] += share;
        for (int64_t i = 0; i < n; i++) next[i] += each * product[i];
        for (int64_t i = 0; i < n; i++) sum[topic[i]] += ON_GRID(share * tokens[i], 16);
    }
}

/* The same for all words of a block; `sums` is V x (K + 1), `busy` has a flag a word, or is NULL if there is one block. */
static int expect_block(const expected_block *b, const float *table, const float *scale, const float *alpha, float beta,
                        int32_t n_words, int32_t n_topics, double *sums, uint8_t *busy) {
    float *row = malloc(n_topics * sizeof(float)), *product = malloc((n_topics + EIGHT) * sizeof(float));
    double *own = malloc((n_topics + 1) * sizeof(double));
    const int enough = row && product && own;
    for (int32_t w = 0; enough && w < n_words; w++) {
        double *sum = sums + (size_t)w * (n_topics + 1);
        float prior;
        if (b->word[w] == b->word[w + 1]) continue;
        prior = expected_row(table + (size_t)w * n_topics, scale, alpha, beta, n_topics, row);
        if (!busy) { expect_word(b, w, row, alpha, prior, n_topics, product, sum); continue; }
        memset(own, 0, (n_topics + 1) * sizeof(double));
        expect_word(b, w, row, alpha, prior, n_topics, product, own);
        while (__atomic_test_and_set(busy + w, __ATOMIC_ACQUIRE)); /* another block adds to the same word */
        for (int32_t k = 0; k <= n_topics; k++) sum[k] += own[k];
        __atomic_clear(busy + w, __ATOMIC_RELEASE);
    }
    free(row); free(product); free(own);
    return enough ? 0 : -1;
}

/* The expected counts of a word, from its sums. */
static void finish_word(const double *sum, const float *table, const float *scale, const float *alpha, float beta,
                        int32_t n_topics, float *out) {
    const float prior = expected_row(table, scale, alpha, beta, n_topics, out);
    for (int32_t k = 0; k < n_topics; k++)
        out[k] = (float)(out[k] * (sum[k] + alpha[k] * sum[n_topics]) / prior);
}
#endif
