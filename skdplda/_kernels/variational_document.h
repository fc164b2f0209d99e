/* The E-step of one document; see variational_step.h. Compiled once for each target: TARGET(name) tells them apart. */

/* As TARGET(gather) for CVB0, where total[k] is the sum of the words' soft counts. With `keep`, `row` becomes B T' / T, so that
 * T row ratio are the soft counts. */
INLINE void TARGET(gather_collapsed)(document_scratch *a, int64_t words, int32_t n, int keep) {
    enum { STEP = TARGET(REGISTERS) };
    const int32_t all = n * STEP;
    const TARGET(floats) *theta = (TARGET(floats) *)a->theta, *alpha = (TARGET(floats) *)a->alpha;
    const float *other[LANES], *four[4];
    TARGET(floats) sum[STEP][4];
    for (int32_t i = 0; i < LANES; i++) other[i] = a->other + i * n * LANES;
    memset(a->total, 0, n * LANES * sizeof(float));
    for (int64_t first = 0; first < words; first += LANES) {
        const int32_t some = words - first < LANES ? (int32_t)(words - first) : LANES;
        const float **row = a->row + first;
        float *ratio = a->ratio + first;
        for (int32_t i = 0; i < some; i += 4) {
            TARGET(four_rows)(row, i, some, four);
            const v4 t = TARGET(four_sums)(four, a->theta, n), inverse = 1.0f / t;
            for (int32_t m = 0; m < 4; m++) {
                const TARGET(floats) *r = (const TARGET(floats) *)four[m];
                TARGET(floats) *o = (TARGET(floats) *)other[i + m];
                TARGET(floats) part[STEP] = {{0}};
                for (int32_t j = 0; j < all; j += STEP) for (int32_t h = 0; h < STEP; h++) {
                    const TARGET(floats) soft = theta[j + h] * r[j + h] * inverse[m];
                    const TARGET(floats) rest = r[j + h] * TARGET(larger)(theta[j + h] - soft, alpha[j + h]);
                    o[j + h] = rest;
                    part[h] += rest;
                }
                for (int32_t h = 0; h < STEP; h++) sum[h][m] = part[h];
            }
            *(v4 *)(ratio + i) = (v4)((i4)TARGET(quotients)(a->count + first + i, TARGET(four_totals)(sum)) & (t > 0));
        }
        TARGET(add_all)(other, ratio, some, n, a->total);
        for (int32_t i = 0; keep && i < some; i++) {
            TARGET(floats) *to = (TARGET(floats) *)(a->block + (first + i) * n * LANES);
            for (int32_t j = 0; j < all; j++) {
                const TARGET(ints) used = theta[j] > 0;
                to[j] = (TARGET(floats))((TARGET(ints))(((const TARGET(floats) *)other[i])[j] / theta[j]) & used);
            }
            row[i] = (const float *)to;
        }
    }
}

/* Once for each target, because it has a copy for each small number of vectors. */
static __attribute__((noinline)) void TARGET(gather_any_collapsed)(document_scratch *a, int64_t words, int32_t n,
                                                                   int keep) {
#define CASE(n) case n: TARGET(gather_collapsed)(a, words, n, keep); break;
    switch (n) {
        ONE_TO_EIGHT(CASE)
        default: TARGET(gather_collapsed)(a, words, n, keep);
    }
#undef CASE
}

/* Keep the topics with more than `cut` counts if that halves the work, or if there are columns; whether there are then. */
INLINE int TARGET(drop_topics)(const variational_problem *p, document_scratch *a, int64_t words, int32_t *k, int columns) {
    int32_t kept = 0, stride;
    for (int32_t j = 0; j < *k; j++) kept += a->gamma[j] - a->alpha[j] > p->cut;
    stride = padded(kept);
    if (!kept || kept == *k || (!columns && 2 * stride > padded(*k))) return columns;
    kept = 0;
    for (int32_t j = 0; j < *k; j++) {
        if (!(a->gamma[j] - a->alpha[j] > p->cut)) continue;
        a->cell[kept] = j;
        a->topic[kept] = a->topic[j];
        a->gamma[kept] = a->gamma[j];
        a->theta[kept] = a->theta[j];
        a->alpha[kept++] = a->alpha[j];
    }
    if (columns) TARGET(leave_columns)(a, words, kept);
    else for (int64_t i = 0; i < words; i++) {
        const float *row = a->row[i];
        float *to = a->block + i * stride; /* never beyond what `row` still needs: rows only get shorter */
        for (int32_t j = 0; j < kept; j++) to[j] = row[a->cell[j]];
        for (int32_t j = kept; j < stride; j++) to[j] = 0;
        a->row[i] = to;
    }
    for (int32_t j = kept; j < stride; j++) a->gamma[j] = a->alpha[j] = a->theta[j] = 0;
    *k = kept;
    if (columns || !TARGET(few_topics)(p, words, kept)) return columns;
    TARGET(make_columns)(a, words, kept);
    return 1;
}

/* Add the soft counts of a word, on the grid and rounded towards zero, to the sum. They never add up to more than `most`,
 * whatever the rounding of floats did, because the sensitivity of the sum rests on that. */
INLINE void TARGET(add_soft_counts)(document_scratch *a, const float *row, float scale, int64_t most, int32_t k,
                                    int64_t *sum) {
    int64_t excess = -most;
    if (!(scale > 0 && scale < 3e38f)) return; /* a word that no topic explains; of others all products are finite */
    if (most < 1 << 30) {
        int64_t all = 0; /* of at most 2^16 cells of 2^31 */
        for (int32_t j = 0; j < k; j++) {
            const int32_t cell = (int32_t)(a->theta[j] * row[j] * scale);
            a->cell[j] = cell > 0 ? cell : 0; /* none is negative, whatever the table holds */
            all += a->cell[j];
        }
        excess += all;
        for (int32_t j = 0; excess > 0 && j < k; j++) {
            const int32_t less = a->cell[j] < excess ? a->cell[j] : (int32_t)excess;
            a->cell[j] -= less;
            excess -= less;
        }
        for (int32_t j = 0; j < k; j++) sum[a->topic[j]] += a->cell[j];
    } else { /* only without noise: `most` of a bounded contribution is at most the grid */
        for (int32_t j = 0; j < k; j++) sum[a->topic[j]] += (int64_t)((double)a->theta[j] * row[j] * scale);
    }
}

static int TARGET(infer)(const variational_problem *p, document_scratch *a, int64_t d, const soft_sum *s, unit_sum *u) {
    enum { STEP = TARGET(REGISTERS) };
    const int64_t first = p->indptr[d], words = p->indptr[d + 1] - first;
    const int32_t *word = p->indices + first;
    const int64_t weight = p->weight ? p->weight[d] : p->token_weight;
    float *state = p->state ? p->state + (size_t)d * p->n_topics : NULL;
    int32_t k = p->n_topics, iteration = 0, next_drop = 2;
    int columns = TARGET(few_topics)(p, words, k);
    const float length = TARGET(note_counts)(a, p->counts + first, words);
    float change;
    double squares = 0;
    memset(a->gamma, 0, 4 * (size_t)p->stride * sizeof(float));
    for (int32_t j = 0; j < k; j++) {
        a->topic[j] = j;
        a->alpha[j] = p->alpha[j];
        a->gamma[j] = p->alpha[j] + (state && state[j] >= 0 ? state[j] : length / k);
    }
    if (length <= 0) return 0;
    for (int64_t i = 0; i < words; i++) {
        a->row[i] = p->expected + (size_t)word[i] * p->stride;
        for (int32_t j = 0; j < p->stride; j += LANES) __builtin_prefetch(a->row[i] + j);
    }
    if (columns) TARGET(make_columns)(a, words, k);
    do {
        const int32_t n = padded(k) / LANES;
        const float beyond = iteration + 1 < p->max_iter ? p->beyond : 0;
        if (p->collapsed) memcpy(a->theta, a->gamma, n * LANES * sizeof(float));
        else TARGET(exp_digamma_all)(a->gamma, a->theta, n * LANES);
        for (int32_t j = k; j < n * LANES; j++) a->theta[j] = 0;
        if (columns) TARGET(gather_columns)(a, words, k, 0);
        else if (p->collapsed) TARGET(gather_any_collapsed)(a, words, n, 0);
        else TARGET(gather_any)(a, words, n);
        TARGET(lanes) moved = {.lane = {0}};
        for (int32_t j = 0; j < n * STEP; j++) {
            TARGET(floats) soft = ((TARGET(floats) *)a->total)[j];
            if (!p->collapsed) soft *= ((TARGET(floats) *)a->theta)[j];
            const TARGET(floats) least = ((TARGET(floats) *)a->alpha)[j], before = ((TARGET(floats) *)a->gamma)[j];
            TARGET(floats) next = least + soft;
            if (beyond > 0) next = TARGET(larger)(next + beyond * (next - before), least);
            const TARGET(floats) by = next - before;
            moved.part[j % STEP] += (TARGET(floats))((TARGET(ints))by & 0x7fffffff);
            ((TARGET(floats) *)a->gamma)[j] = next;
        }
        change = 0;
        if (columns) {
            const v4 *quarter = (const v4 *)&moved, four = (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
            change = (four[0] + four[1]) + (four[2] + four[3]);
        } else for (int32_t j = 0; j < LANES; j++) change += moved.lane[j];
        if (++iteration == next_drop && iteration < p->max_iter && change > p->tol * p->n_topics) {
            columns = TARGET(drop_topics)(p, a, words, &k, columns);
            next_drop *= 2;
        }
    } while (iteration < p->max_iter && change > p->tol * p->n_topics);
    if (columns) TARGET(gather_columns)(a, words, k, 1);
    else if (p->collapsed) TARGET(gather_any_collapsed)(a, words, padded(k) / LANES, 1);
    if (state) {
        memset(state, 0, p->n_topics * sizeof(float));
        for (int32_t j = 0; j < k; j++) state[a->topic[j]] = a->gamma[j] > a->alpha[j] ? a->gamma[j] - a->alpha[j] : 0;
    }
    if (p->norm) {
        for (int64_t i = 0; i < words; i += LANES)
            squares = TARGET(weighed)(p, a, word, i, words - i < LANES ? (int32_t)(words - i) : LANES, padded(k) / LANES, squares);
        if (u) TARGET(add_to_unit)(p, a, u, word, words, k);
        else TARGET(add_scaled_soft_counts)(p, a, s, word, words, k, squares);
        return iteration;
    }
    for (int64_t i = 0; i < words; i++)
        TARGET(add_soft_counts)(a, a->row[i], a->ratio[i] * weight, weight * p->counts[first + i], k,
                                s->sum + (size_t)word[i] * p->n_topics);
    return iteration;
}
