/* Gibbs draws of one document's topics from a frozen table.
 *
 * For a token of word w in document d, with every other document frozen in the table,
 *     p(z = k)  ~  (table[w, k] - own + beta) * scale[k] * (n_dk + alpha[k]),
 * where n_dk and own leave the token itself out. The draw costs one fused pass over the topics that the document
 * uses (columns), sixteen at a time; the topics it does not use have a known total (rest) and are searched only
 * when the draw falls there, after which the topic is a column too.
 *
 * A column set is compact: rows[i, j] caches the weight of distinct word i and column j, so sweeps after the first
 * read nothing but the cache. Few topics (K <= dense_limit): every topic is a column from the start.
 */
#ifndef SKDPLDA_DOCUMENT_SWEEP_H
#define SKDPLDA_DOCUMENT_SWEEP_H
#include <stdlib.h>
#include <string.h>
#include "random_stream.h"

#define LANES 16
#define UNASSIGNED 65535

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(SKDPLDA_NO_CLONES)
#define SKDPLDA_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SKDPLDA_CLONES
#endif
#define INLINE static inline __attribute__((always_inline))

typedef float v4 __attribute__((vector_size(16)));
typedef int32_t i4 __attribute__((vector_size(16)));
typedef float v16 __attribute__((vector_size(64)));
typedef union { v16 all; v4 quarter[4]; float lane[LANES]; } lanes;

typedef struct {           /* what every document shares: public */
    const float *table;    /* V x K */
    const float *scale;    /* K: 1 / (total + V beta) */
    const float *alpha;    /* K */
    const float *rest;     /* V: sum_k alpha scale (table + beta) */
    float beta, own;
    int32_t n_topics, dense_limit;
} frozen_table;

typedef struct {           /* one thread's scratch; grows, never shrinks */
    float *rows, *weight, *product, *remainder;
    int32_t *count, *topic, *column_of, *word, *first, *filled;
    uint16_t *column, *reference;
    size_t rows_size, tokens_size;
} scratch;

static int scratch_init(scratch *s, int32_t n_topics) {
    size_t padded = (size_t)(n_topics + 2 * LANES) / LANES * LANES;
    memset(s, 0, sizeof *s);
    s->weight = aligned_alloc(64, padded * sizeof(float));
    s->product = aligned_alloc(64, padded * sizeof(float));
    s->count = malloc(padded * sizeof(int32_t));
    s->topic = malloc(padded * sizeof(int32_t));
    s->column_of = malloc(padded * sizeof(int32_t));
    if (!s->weight || !s->product || !s->count || !s->topic || !s->column_of) return -1;
    for (int32_t k = 0; k < n_topics; k++) s->column_of[k] = -1;
    return 0;
}

static void scratch_free(scratch *s) {
    free(s->rows); free(s->weight); free(s->product); free(s->remainder); free(s->count); free(s->topic);
    free(s->column_of); free(s->word); free(s->first); free(s->filled); free(s->column); free(s->reference);
}

static int reserve_tokens(scratch *s, size_t n) {
    if (n <= s->tokens_size) return 0;
    n += n / 2;
    free(s->remainder); free(s->word); free(s->first); free(s->filled); free(s->column); free(s->reference);
    s->remainder = malloc(n * sizeof(float));
    s->word = malloc(n * sizeof(int32_t));
    s->first = malloc((n + 1) * sizeof(int32_t));
    s->filled = malloc(n * sizeof(int32_t));
    s->column = malloc(n * sizeof(uint16_t));
    s->reference = malloc(n * sizeof(uint16_t));
    s->tokens_size = n;
    return s->remainder && s->word && s->first && s->filled && s->column && s->reference ? 0 : -1;
}

static int reserve_rows(scratch *s, size_t n) {
    if (n <= s->rows_size) return 0;
    free(s->rows);
    s->rows_size = (n + n / 2 + LANES - 1) / LANES * LANES;
    s->rows = aligned_alloc(64, s->rows_size * sizeof(float));
    return s->rows ? 0 : -1;
}

/* Inclusive prefix sum over sixteen lanes, in one fixed order on every processor. */
INLINE lanes prefix_sum(lanes x) {
    const v4 zero = {0, 0, 0, 0};
    v4 carry;
    for (int q = 0; q < 4; q++) {
        x.quarter[q] += __builtin_shuffle(zero, x.quarter[q], (i4){0, 4, 5, 6});
        x.quarter[q] += __builtin_shuffle(zero, x.quarter[q], (i4){0, 1, 4, 5});
    }
    x.quarter[1] += __builtin_shuffle(x.quarter[0], (i4){3, 3, 3, 3});
    x.quarter[3] += __builtin_shuffle(x.quarter[2], (i4){3, 3, 3, 3});
    carry = __builtin_shuffle(x.quarter[1], (i4){3, 3, 3, 3});
    x.quarter[2] += carry;
    x.quarter[3] += carry;
    return x;
}

/* How many lanes are <= value (the lanes ascend). */
INLINE int lanes_below(lanes x, float value) {
    const v4 bound = {value, value, value, value};
    i4 n = (x.quarter[0] <= bound) + (x.quarter[1] <= bound) + (x.quarter[2] <= bound) + (x.quarter[3] <= bound);
    n += __builtin_shuffle(n, (i4){2, 3, 0, 1});
    n += __builtin_shuffle(n, (i4){1, 0, 3, 2});
    return -n[0];
}

INLINE void set_weight(scratch *s, const frozen_table *f, int32_t j) {
    int32_t k = s->topic[j];
    s->weight[j] = ((float)s->count[j] + f->alpha[k]) * f->scale[k];
}

/* Fill columns [filled, n_columns) of row i from the table, with the document's own moves applied. */
INLINE void fill_row(scratch *s, const frozen_table *f, int32_t i, int32_t n_columns, size_t stride) {
    const float *source = f->table + (size_t)s->word[i] * f->n_topics;
    float *row = s->rows + i * stride;
    int32_t begin = s->filled[i];
    if (n_columns == f->n_topics && begin == 0 && s->topic[n_columns - 1] == n_columns - 1 && n_columns <= f->dense_limit) {
        for (int32_t j = 0; j < n_columns; j++) row[j] = source[j] + f->beta;
        s->remainder[i] = 0;
    } else {
        float used = 0;
        if (begin == 0) s->remainder[i] = f->rest[s->word[i]];
        for (int32_t j = begin; j < n_columns; j++) {
            int32_t k = s->topic[j];
            row[j] = source[k] + f->beta;
            used += row[j] * f->alpha[k] * f->scale[k];
        }
        s->remainder[i] -= used;
        if (!(s->remainder[i] > 0)) s->remainder[i] = 0;
    }
    if (begin == 0) for (size_t j = n_columns; j < stride; j++) row[j] = 0;
    for (int32_t t = s->first[i]; t < s->first[i + 1]; t++) {
        int32_t now = s->column[t];
        int32_t was = s->reference[t] == UNASSIGNED ? -1 : s->column_of[s->reference[t]];
        if (was == now) continue;
        if (was >= begin && was < n_columns) row[was] -= f->own;
        if (now != UNASSIGNED && now >= begin && now < n_columns) row[now] += f->own;
    }
    s->filled[i] = n_columns;
}

/* A topic outside the columns, with probability proportional to alpha scale (table + beta). */
static int32_t draw_outside(const scratch *s, const frozen_table *f, int32_t word, float target) {
    const float *source = f->table + (size_t)word * f->n_topics;
    int32_t last = -1;
    for (int32_t k = 0; k < f->n_topics; k++) {
        if (s->column_of[k] >= 0) continue;
        last = k;
        target -= (source[k] + f->beta) * f->alpha[k] * f->scale[k];
        if (target < 0) break;
    }
    return last;
}

/* INOUT topics[n]; returns the number of tokens whose topic changed in the last sweep, or -1 without memory. */
SKDPLDA_CLONES
static int64_t sweep_document(
    const int32_t *words, uint16_t *topics, int32_t n, const frozen_table *f, int n_sweeps, random_stream *stream,
    scratch *s
) {
    int32_t n_rows = 0, n_columns = 0;
    size_t stride;
    if (n == 0) return 0;
    if (reserve_tokens(s, n)) return -1;
    for (int32_t t = 0; t < n; t++) {
        if (t == 0 || words[t] != words[t - 1]) { s->word[n_rows] = words[t]; s->filled[n_rows] = 0; s->first[n_rows++] = t; }
        s->reference[t] = topics[t];
    }
    s->first[n_rows] = n;
    if (f->n_topics <= f->dense_limit) {
        n_columns = f->n_topics;
        for (int32_t k = 0; k < n_columns; k++) { s->column_of[k] = s->topic[k] = k; s->count[k] = 0; }
    }
    for (int32_t t = 0; t < n; t++) {
        int32_t k = topics[t], j;
        if (k == UNASSIGNED) { s->column[t] = UNASSIGNED; continue; }
        j = s->column_of[k];
        if (j < 0) { j = s->column_of[k] = n_columns; s->topic[n_columns] = k; s->count[n_columns++] = 0; }
        s->count[j]++;
        s->column[t] = (uint16_t)j;
    }
    stride = f->n_topics <= f->dense_limit ? f->n_topics : n_columns + (n_columns < 32 ? 32 : n_columns);
    if (stride > (size_t)f->n_topics) stride = f->n_topics;
    stride = (stride + LANES - 1) / LANES * LANES;
    if (reserve_rows(s, stride * n_rows)) return -1;
    for (int32_t j = 0; j < n_columns; j++) set_weight(s, f, j);
    for (size_t j = n_columns; j < stride; j++) s->weight[j] = 0;

    for (int sweep = 0; sweep < n_sweeps; sweep++)
    for (int32_t i = 0; i < n_rows; i++) {
        float *row = s->rows + i * stride;
        if (s->filled[i] < n_columns) fill_row(s, f, i, n_columns, stride);
        for (int32_t t = s->first[i]; t < s->first[i + 1]; t++) {
            int32_t j = s->column[t], n_blocks, lane, block;
            lanes sum, cumulative;
            float total, target;
            if (j != UNASSIGNED) {
                s->count[j]--;
                set_weight(s, f, j);
                row[j] = row[j] - f->own > f->beta ? row[j] - f->own : f->beta;
            }
            if (s->filled[i] < n_columns) fill_row(s, f, i, n_columns, stride);
            n_blocks = (n_columns + LANES - 1) / LANES;
            sum.all = (v16){0};
            for (block = 0; block < n_blocks; block++) {
                v16 p = ((const v16 *)row)[block] * ((const v16 *)s->weight)[block];
                ((v16 *)s->product)[block] = p;
                sum.all += p;
            }
            cumulative = prefix_sum(sum);
            total = cumulative.lane[LANES - 1];
            target = stream_float(stream) * (total + s->remainder[i]);
            if (target >= total) {
                int32_t k = s->remainder[i] > 0 ? draw_outside(s, f, s->word[i], target - total) : -1;
                if (k >= 0) {
                    /* TODO grow */
                    if ((size_t)n_columns < stride) {
                        j = s->column_of[k] = n_columns;
                        s->topic[n_columns] = k; s->count[n_columns++] = 0;
                    } else { j = s->column[t]; if (j == UNASSIGNED) j = 0; }
                    goto drawn;
                }
                target = total * 0.999999f;
            }
            lane = lanes_below(cumulative, target);
            target -= cumulative.lane[lane] - sum.lane[lane];
            j = lane;
            for (block = 0; block < n_blocks - 1; block++) {
                target -= s->product[j];
                if (target < 0) break;
                j += LANES;
            }
            while (s->product[j] <= 0 && j >= LANES) j -= LANES;
        drawn:
            s->column[t] = (uint16_t)j;
            s->count[j]++;
            set_weight(s, f, j);
            row[j] += f->own;
        }
    }
    for (int32_t t = 0; t < n; t++) topics[t] = (uint16_t)s->topic[s->column[t]];
    if (f->n_topics > f->dense_limit) for (int32_t j = 0; j < n_columns; j++) s->column_of[s->topic[j]] = -1;
    return 0;
}
#endif
