/* The tokens of a corpus in blocks of documents, and inside a block group by group of words.
 *
 * A block is ordered by (group of words, occurrence, word, document). Taking a few words together keeps the tokens of one
 * document apart, so that draws that follow each other do not depend on each other. A segment is the run of one word
 * and one occurrence; occurrences count up within a group and need no storage. Six bytes a token: document, topic in the
 * sum, topic now.
 *
 * How a document is drawn follows from its own length, whatever other documents there are: documents are of some kinds by
 * length, and a block holds those of one kind from a range of documents. The others of the range are in other blocks.
 */
#ifndef SKDPLDA_BLOCK_LAYOUT_H
#define SKDPLDA_BLOCK_LAYOUT_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define UNASSIGNED 65535
#define MOST_DOCUMENTS 65535 /* of a block */
#define LANES 16
#define DENSE_TOPICS 2048 /* up to so many, a document holds a number for each topic */
#define CACHE (1 << 20)
#define GROUP 32 /* words that come together, at most; 8 and 64 are not faster (doc/kernels.rst) */
#define KINDS 5 /* of documents, by length; those of the last one list topics */
static const int64_t most_tokens[KINDS - 1] = {511, 3200, 10000, 24000}; /* of a document of each kind */

typedef struct {               /* the tokens of one block */
    int64_t n_segments, n_documents, first_document, n_tokens;
    int32_t together;          /* words of a group: word w belongs to group w / together */
    const uint8_t *kind;       /* document -> its kind */
    uint8_t held_kind;         /* the kind of the documents that are here */
    int32_t *word;             /* segment -> word; groups ascend */
    uint32_t *start;           /* segment -> first token; one more at the end */
    uint16_t *document;        /* token -> document in the block */
    uint16_t *counted;         /* token -> topic that it has in the sum; UNASSIGNED if none */
    uint16_t *topic;           /* token -> topic */
} token_block;

typedef struct {               /* a document-term matrix, by rows */
    const int64_t *indptr;
    const int32_t *indices, *counts;
    int32_t n_words;
} corpus_rows;

enum { NO_MEMORY = -1, BAD_WORD = -2, TWICE = -3, BAD_COUNT = -4, BAD_TOPIC = -5 };

/* The kind of a document of so many tokens. */
static inline uint8_t kind_of(int64_t n_tokens) {
    uint8_t kind = 0;
    while (kind < KINDS - 1 && n_tokens > most_tokens[kind]) kind++;
    return kind;
}

/* Whether a document of the block's range is in the block. */
static inline int holds(const token_block *b, int64_t d) { return b->kind[d] == b->held_kind; }

/* Segments of the documents in a block, or an error. On entry, last_seen (V) holds numbers of other documents, and
 * most (V) zeros; without an error it is left so. */
static inline int64_t count_segments(const corpus_rows *x, const token_block *b, int32_t *last_seen, int32_t *most) {
    const int64_t first = b->first_document, last = first + b->n_documents;
    int64_t n = 0;
    for (int64_t d = first; d < last; d++)
        if (holds(b, d - first)) for (int64_t e = x->indptr[d]; e < x->indptr[d + 1]; e++) {
            int32_t w = x->indices[e];
            if (w < 0 || w >= x->n_words) return BAD_WORD;
            if (x->counts[e] < 0) return BAD_COUNT;
            if (!x->counts[e]) continue;
            if (last_seen[w] == d) return TWICE;
            last_seen[w] = (int32_t)d;
            n += x->counts[e] > most[w] ? x->counts[e] - most[w] : 0;
            most[w] = x->counts[e] > most[w] ? x->counts[e] : most[w];
        }
    for (int64_t d = first; d < last; d++)
        if (holds(b, d - first)) for (int64_t e = x->indptr[d]; e < x->indptr[d + 1]; e++) most[x->indices[e]] = 0;
    return n;
}

typedef struct { int32_t count; uint16_t document; } entry;

/* Fill a block, by a counting sort over words; cursor (V + 1) is scratch. */
static inline int fill_block(const corpus_rows *x, token_block *b, int64_t *cursor) {
    const int64_t first = b->first_document, last = first + b->n_documents;
    int64_t size = 0, t = 0, g = 0;
    entry *entries;
    for (int64_t d = first; d < last; d++) size += holds(b, d - first) ? x->indptr[d + 1] - x->indptr[d] : 0;
    if (!(entries = malloc((size + 1) * sizeof(entry)))) return NO_MEMORY;
    memset(cursor, 0, (x->n_words + (size_t)1) * sizeof(int64_t));
    for (int64_t d = first; d < last; d++)
        if (holds(b, d - first))
            for (int64_t e = x->indptr[d]; e < x->indptr[d + 1]; e++) cursor[x->indices[e] + 1] += x->counts[e] > 0;
    for (int32_t w = 0; w < x->n_words; w++) cursor[w + 1] += cursor[w];
    for (int64_t d = first; d < last; d++)
        if (holds(b, d - first)) for (int64_t e = x->indptr[d]; e < x->indptr[d + 1]; e++) if (x->counts[e]) {
            entry new = {x->counts[e], (uint16_t)(d - first)};
            entries[cursor[x->indices[e]]++] = new;
        }
    for (int32_t w = 0; w < x->n_words; w += b->together) { /* cursor[w] is now the end of word w */
        entry *word[GROUP];
        int64_t left[GROUP], any = 0;
        for (int32_t j = 0; j < b->together && w + j < x->n_words; j++) {
            word[j] = entries + (w + j ? cursor[w + j - 1] : 0);
            any += left[j] = entries + cursor[w + j] - word[j];
        }
        for (int32_t occurrence = 1; any; occurrence++) {
            any = 0;
            for (int32_t j = 0; j < b->together && w + j < x->n_words; j++) {
                const int64_t n = left[j];
                if (!n) continue;
                b->word[g] = w + j;
                b->start[g++] = (uint32_t)t;
                left[j] = 0;
                for (int64_t i = 0; i < n; i++) {
                    b->document[t++] = word[j][i].document;
                    if (word[j][i].count > occurrence) word[j][left[j]++] = word[j][i];
                }
                any += left[j];
            }
        }
    }
    b->start[g] = (uint32_t)t;
    free(entries);
    return 0;
}

/* First segment of a block whose word is at least w, the first word of a group. */
static inline int64_t find_word(const token_block *b, int32_t w) {
    int64_t low = 0, high = b->n_segments;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (b->word[middle] / b->together < w / b->together) low = middle + 1; else high = middle;
    }
    return low;
}

/* Bring `sum` (V x K) up to date for the words [first, last), whole groups. */
static inline void move_words(const token_block *b, int32_t n_topics, int32_t first, int32_t last, int32_t *sum) {
    for (int64_t g = find_word(b, first); g < b->n_segments && b->word[g] < last; g++) {
        int32_t *row = sum + (size_t)b->word[g] * n_topics;
        for (uint32_t t = b->start[g]; t < b->start[g + 1]; t++) {
            const uint16_t was = b->counted[t], now = b->topic[t];
            if (now == UNASSIGNED) continue;
            if (was != UNASSIGNED) row[was]--; /* also where was == now, because that branch could not be predicted */
            row[now]++;
            b->counted[t] = now;
        }
    }
}

/* Add each document's weight once a token to `sum`, for the words [first, last), whole groups. */
static inline void sum_words(const token_block *b, int32_t n_topics, int32_t first, int32_t last, const int32_t *weight,
                      int64_t *sum) {
    weight += b->first_document;
    for (int64_t g = find_word(b, first); g < b->n_segments && b->word[g] < last; g++) {
        int64_t *row = sum + (size_t)b->word[g] * n_topics;
        for (uint32_t t = b->start[g]; t < b->start[g + 1]; t++)
            if (b->topic[t] != UNASSIGNED) row[b->topic[t]] += weight[b->document[t]];
    }
}

/* Set `sum` (D x K) to each document's number of tokens in each topic. */
static inline void count_documents(const token_block *b, int32_t n_topics, float *sum) {
    sum += (size_t)b->first_document * n_topics;
    for (int64_t d = 0; d < b->n_documents; d++)
        if (holds(b, d)) memset(sum + (size_t)d * n_topics, 0, n_topics * sizeof(float));
    for (int64_t t = 0; t < b->n_tokens; t++)
        if (b->topic[t] != UNASSIGNED) sum[(size_t)b->document[t] * n_topics + b->topic[t]]++;
}

/* Copy topics between the block and an array ordered by document, then as in the block; cursor: D first places. */
static inline int copy_topics(const token_block *b, int64_t *cursor, uint16_t *ordered, int into_block,
                              int32_t n_topics) {
    cursor += b->first_document;
    for (int64_t t = 0; t < b->n_tokens; t++) {
        uint16_t *place = ordered + cursor[b->document[t]]++;
        if (!into_block) { *place = b->topic[t]; continue; }
        if (*place >= n_topics && *place != UNASSIGNED) return BAD_TOPIC;
        b->topic[t] = *place;
        b->counted[t] = *place;
    }
    return 0;
}

static inline int32_t padded(int32_t n) { return (n + LANES - 1) / LANES * LANES; }
static inline int32_t padded_pairs(int32_t n) { return (n + 2 * LANES - 1) / (2 * LANES) * 2 * LANES; }

/* A block's documents fill a second-level cache: larger blocks have longer runs of a word. */
static inline int64_t documents_per_block(int32_t n_topics, int64_t tokens_per_document) {
    int64_t likely = tokens_per_document / 4, slots = padded((int32_t)(likely < n_topics ? likely : n_topics));
    return CACHE / (n_topics <= DENSE_TOPICS ? 2 * padded_pairs(n_topics) : 6 * slots + 32) + 1;
}
#endif
