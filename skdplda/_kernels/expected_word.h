/* Expected counts of one word after the other; see expected_counts.h. Compiled once for each target.
 *
 * Eight lanes are so many registers of the target: GCC keeps longer vectors in memory.
 */
enum { TARGET(PARTS) = SIMD ? 1 : 2, TARGET(LANES) = EIGHT / TARGET(PARTS) };
typedef float TARGET(floats) __attribute__((vector_size(4 * TARGET(LANES)), may_alias, aligned(4)));
typedef double TARGET(doubles) __attribute__((vector_size(16 << SIMD), may_alias, aligned(8)));

/* The numbers of a row at some topics. */
INLINE TARGET(floats) TARGET(at)(const float *row, const uint16_t *t) {
#if SIMD
    return (TARGET(floats)){row[t[0]], row[t[1]], row[t[2]], row[t[3]], row[t[4]], row[t[5]], row[t[6]], row[t[7]]};
#else
    return (TARGET(floats)){row[t[0]], row[t[1]], row[t[2]], row[t[3]]};
#endif
}

INLINE TARGET(doubles) TARGET(doubled)(const float *x) {
#if SIMD == 2
    return (TARGET(doubles))_mm512_cvtps_pd(_mm256_loadu_ps(x));
#elif SIMD == 1
    return (TARGET(doubles))_mm256_cvtps_pd(_mm_loadu_ps(x));
#else
    return (TARGET(doubles)){x[0], x[1]};
#endif
}

/* Lanes in the order ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). */
INLINE float TARGET(eight_sum)(const TARGET(floats) *s) {
#if SIMD
    const TARGET(floats) x = *s;
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
#else
    const TARGET(floats) x = s[0] + s[1];
    return (x[0] + x[2]) + (x[1] + x[3]);
#endif
}

/* row[k] = (table[w, k] + beta) scale[k], and zeros where lists are filled up; its product with alpha.
 * `row` may be in the place of the table's. */
INLINE float TARGET(expected_row)(const expected_rows *r, int32_t w, float *row) {
    enum { STEP = TARGET(LANES) };
    const float *table = r->table + (size_t)w * r->n_topics, *scale = r->scale, *alpha = r->alpha;
    TARGET(floats) sum[TARGET(PARTS)] = {0};
    float *rest = (float *)sum;
    int32_t k = 0;
    for (; k + EIGHT <= r->n_topics; k += EIGHT) for (int p = 0; p < TARGET(PARTS); p++) {
        const int32_t at = k + p * STEP;
        const TARGET(floats) weight = (*(const TARGET(floats) *)(table + at) + r->beta) * *(const TARGET(floats) *)(scale + at);
        *(TARGET(floats) *)(row + at) = weight;
        sum[p] += weight * *(const TARGET(floats) *)(alpha + at);
    }
    for (; k < r->n_topics; k++) {
        row[k] = (table[k] + r->beta) * scale[k];
        rest[k % EIGHT] += row[k] * alpha[k];
    }
    return TARGET(eight_sum)(sum);
}

/* Set product[i] = row[t] (tokens[i] + alpha[t]) of a document's topics t; return the sum of row[t] tokens[i]. */
INLINE float TARGET(weigh)(const uint16_t *topic, const float *tokens, int64_t n, const float *row, const float *alpha, int even,
                           float *product) {
    TARGET(floats) sum[TARGET(PARTS)] = {0};
    const TARGET(floats) same = (TARGET(floats)){0} + alpha[0];
    for (int64_t i = 0; i < n; i += EIGHT) for (int p = 0; p < TARGET(PARTS); p++) {
        const int64_t at = i + p * TARGET(LANES);
        const TARGET(floats) weight = TARGET(at)(row, topic + at), few = *(const TARGET(floats) *)(tokens + at);
        sum[p] += weight * few;
        *(TARGET(floats) *)(product + at) = weight * (few + (even ? same : TARGET(at)(alpha, topic + at)));
    }
    return TARGET(eight_sum)(sum);
}

/* Fetch what the word's later documents need. */
INLINE void TARGET(fetch)(const expected_block *b, const int64_t *list) {
    const int64_t first = list[0], last = list[1];
    for (int64_t i = first; i < last; i += 2 * EIGHT) {
        __builtin_prefetch(b->tokens + i);
        __builtin_prefetch(b->next + i, 1);
    }
    for (int64_t i = first; i < last; i += 4 * EIGHT) __builtin_prefetch(b->topic + i);
}

/* Add to `sum`, K + 1 numbers and some for what lists are filled up with, what the block's tokens of a word say. With Z the
 * weight of all topics, a, of the prior's part of it, and c tokens, that is c a / Z times the document's tokens in each
 * topic, and c a / Z itself. */
INLINE void TARGET(expect_word)(const expected_block *b, const expected_rows *r, int32_t w, const float *row, float prior,
                                int even, float *product, double *sum) {
    enum { FEW = sizeof(TARGET(doubles)) / sizeof(double) };
    const int64_t stop = b->word[w + 1];
    for (int64_t e = b->word[w]; e < stop; e++) {
        const int64_t *list = b->list + 2 * b->document[e], first = list[0], n = list[1] - first;
        const float *tokens = b->tokens + first;
        const uint16_t *topic = b->topic + first;
        float *next = b->next + first, each;
        double share;
        if (e + AHEAD < stop) TARGET(fetch)(b, b->list + 2 * b->document[e + AHEAD]);
        each = (float)b->count[e] / (TARGET(weigh)(topic, tokens, n, row, r->alpha, even, product) + prior);
        share = (double)(each * prior) + GRID_AT(24) - GRID_AT(24);
        sum[r->n_topics] += share;
        for (int64_t i = 0; i < n; i += TARGET(LANES))
            *(TARGET(floats) *)(next + i) += each * *(const TARGET(floats) *)(product + i);
        for (int64_t i = 0; i < n; i += FEW) {
            const TARGET(doubles) whole = share * TARGET(doubled)(tokens + i) + GRID_AT(16) - GRID_AT(16);
            for (int l = 0; l < FEW; l++) sum[topic[i + l]] += whole[l];
        }
    }
}

static int TARGET(expect_block)(const expected_block *b, const expected_rows *r, double *sums, uint8_t *flag) {
    const int32_t K = r->n_topics, room = K + 2 * EIGHT;
    float *row = calloc(room, sizeof(float)), *product = malloc(room * sizeof(float));
    double *own = malloc(room * sizeof(double));
    const int enough = row && product && own;
    for (int32_t w = 0; enough && w < r->n_words; w++) {
        double *sum = sums + (size_t)w * (K + 1);
        float prior;
        int none_yet;
        if (b->word[w] == b->word[w + 1]) continue;
        prior = TARGET(expected_row)(r, w, row);
        memset(own, 0, room * sizeof(double));
        if (r->even) TARGET(expect_word)(b, r, w, row, prior, 1, product, own);
        else TARGET(expect_word)(b, r, w, row, prior, 0, product, own);
        hold(flag + w, &none_yet);
        if (none_yet) memcpy(sum, own, (K + 1) * sizeof(double));
        else for (int32_t k = 0; k <= K; k++) sum[k] += own[k];
        __atomic_store_n(flag + w, FREE, __ATOMIC_RELEASE);
    }
    free(row); free(product); free(own);
    return enough ? 0 : -1;
}

static void TARGET(expected_columns)(const float *table, int32_t n_words, int32_t n_topics, int32_t first, int32_t last,
                                     double *restrict total) {
    for (int32_t w = 0; w < n_words; w++, table += n_topics) for (int32_t k = first; k < last; k++) total[k] += table[k];
}

static void TARGET(finish_word)(const double *sum, const expected_rows *r, int32_t w, float *out) {
    const float prior = TARGET(expected_row)(r, w, out);
    for (int32_t k = 0; k < r->n_topics; k++)
        out[k] = (float)(out[k] * (sum[k] + r->alpha[k] * sum[r->n_topics]) / prior);
}
