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
#include "simd.h"

#define EIGHT 8
#define AHEAD 2 /* documents of a word that are fetched before they are needed */
#define GRID_AT(bits) (0x1.8p52 / (1 << (bits))) /* adding it, and taking it away, leaves a multiple of 2^-bits */

typedef struct {          /* a block of documents, word by word, and the topics of all documents */
    const int64_t *word;  /* word -> first entry of the block; V + 1 */
    const uint16_t *document, *count; /* entry -> document of the block, tokens */
    const int64_t *list;  /* document of the block -> first of its topics, a multiple of EIGHT, and first of the next's */
    const uint16_t *topic; /* a list is filled up with the numbers from K + 1 on, so that no two are the same */
    int64_t first, last;  /* of the topics of the block's documents */
    float *tokens;        /* of the document in the topic; 0 where a list is filled up */
    float *next;          /* these numbers as this table has them; of the block's topics alone, by their places in all */
} expected_block;

typedef struct {
    const float *table, *scale; /* V x K; K */
    const float *alpha;         /* K, and zeros up to K + 1 + EIGHT */
    float beta;
    int even;                   /* whether all of alpha are the same number */
    int32_t n_words, n_topics;
} expected_rows;

enum { FREE, HELD, NEVER }; /* what a word's flag says: FREE and NEVER (nothing was added yet) let a block add */

static inline void hold(uint8_t *flag, int *first) {
    uint8_t found;
    do {
        found = __atomic_exchange_n(flag, HELD, __ATOMIC_ACQUIRE);
    } while (found == HELD);
    *first = found == NEVER;
}

#define COPIES "expected_word.h"
#include "simd_copies.h"

/* Add what a block says to the words' sums, V x (K + 1), with a flag for each word. Returns -1 if there is not enough memory. */
#define expect_block(...) DISPATCH(expect_block, __VA_ARGS__)

/* total[k] = sum_w table[w, k], word after word, of some topics. */
#define expected_columns(...) DISPATCH(expected_columns, __VA_ARGS__)

/* The expected counts of a word, from its sums; `out` may be in the place of the table's row. */
#define finish_word(...) DISPATCH(finish_word, __VA_ARGS__)
#endif
