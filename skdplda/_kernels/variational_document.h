/* The E-step of one document; see variational_step.h. Compiled once for each target: TARGET(name) tells them apart. */

/* The same for CVB0, where total[k] is the sum of the words' soft counts. With `keep`, `row` becomes B T' / T, so that
 * T row ratio are the soft counts. */
INLINE void TARGET(gather_collapsed)(document_scratch *a, const int32_t *counts, int64_t words, int32_t n, int keep) {
    const v16 *theta = (const v16 *)a->theta, *alpha = (const v16 *)a->alpha;
    v16 *total = (v16 *)a->total, *other = (v16 *)a->other, held[FEW];
    for (int32_t j = 0; j < n; j++) total[j] = (v16){0};
    if (n <= FEW) for (int32_t j = 0; j < n; j++) held[j] = (v16){0};
    for (int64_t first = 0; first < words; first += LANES) {
        const int32_t some = words - first < LANES ? (int32_t)(words - first) : LANES;
        const float **row = a->row + first;
        v16 part[LANES];
        lanes inverse, ratio;
        const v16 t = TARGET(explained)(row, theta, some, n);
        inverse.all = 1.0f / t;
        for (int32_t i = some; i < LANES; i++) part[i] = (v16){0};
        for (int32_t i = 0; i < some; i++) {
            const v16 *r = (const v16 *)row[i];
            v16 *o = other + i * n, sum = {0};
            for (int32_t j = 0; j < n; j++) {
                const v16 soft = theta[j] * r[j] * inverse.lane[i], left = theta[j] - soft;
                const i16 more = left > alpha[j]; /* false where `left` is no number */
                o[j] = r[j] * (v16)(((i16)left & more) | ((i16)alpha[j] & ~more));
                sum += o[j];
            }
            part[i] = sum;
        }
        const v16 left = TARGET(sums)(part), quotient = TARGET(in_lanes)(counts + first, some) / left;
        ratio.all = (v16)((i16)quotient & (t > 0) & (left > 0) & (quotient < 3e38f));
        *(v16 *)(a->ratio + first) = ratio.all;
        for (int32_t i = 0; i < some; i++) {
            const v16 *o = other + i * n;
            if (n <= FEW) for (int32_t j = 0; j < n; j++) held[j] += ratio.lane[i] * o[j];
            else for (int32_t j = 0; j < n; j++) total[j] += ratio.lane[i] * o[j];
        }
        for (int32_t i = 0; keep && i < some; i++) {
            v16 *to = (v16 *)(a->block + (first + i) * n * LANES);
            for (int32_t j = 0; j < n; j++) {
                const i16 used = theta[j] > 0;
                to[j] = (v16)((i16)(other[i * n + j] / theta[j]) & used);
            }
            row[i] = (const float *)to;
        }
    }
    if (n <= FEW) for (int32_t j = 0; j < n; j++) total[j] = held[j];
}

static __attribute__((noinline)) void TARGET(gather_any_collapsed)(document_scratch *a, const int32_t *counts, int64_t words,
                                                                   int32_t n, int keep) {
#define CASE(n) case n: TARGET(gather_collapsed)(a, counts, words, n, keep); break;
    switch (n) {
        ONE_TO_EIGHT(CASE)
        default: TARGET(gather_collapsed)(a, counts, words, n, keep);
    }
#undef CASE
}

/* Keep the topics with more than `cut` counts if that halves the work. */
INLINE void TARGET(drop_topics)(const variational_problem *p, document_scratch *a, int64_t words, int32_t *k) {
    int32_t kept = 0, stride;
    for (int32_t j = 0; j < *k; j++) kept += a->gamma[j] - a->alpha[j] > p->cut;
    stride = padded(kept);
    if (!kept || 2 * stride > padded(*k)) return;
    kept = 0;
    for (int32_t j = 0; j < *k; j++) {
        if (!(a->gamma[j] - a->alpha[j] > p->cut)) continue;
        a->cell[kept] = j;
        a->topic[kept] = a->topic[j];
        a->gamma[kept] = a->gamma[j];
        a->theta[kept] = a->theta[j];
        a->alpha[kept++] = a->alpha[j];
    }
    for (int64_t i = 0; i < words; i++) {
        const float *row = a->row[i];
        float *to = a->block + i * stride; /* never beyond what `row` still needs: rows only get shorter */
        for (int32_t j = 0; j < kept; j++) to[j] = row[a->cell[j]];
        for (int32_t j = kept; j < stride; j++) to[j] = 0;
        a->row[i] = to;
    }
    for (int32_t j = kept; j < stride; j++) a->gamma[j] = a->alpha[j] = a->theta[j] = 0;
    *k = kept;
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

static int TARGET(infer)(const variational_problem *p, document_scratch *a, int64_t d, const soft_sum *s) {
    const int64_t first = p->indptr[d], words = p->indptr[d + 1] - first;
    const int32_t *word = p->indices + first, *counts = p->counts + first;
    const int64_t weight = p->weight ? p->weight[d] : p->token_weight;
    float *state = p->state ? p->state + (size_t)d * p->n_topics : NULL;
    int32_t k = p->n_topics, iteration = 0, next_drop = 2;
    float length = 0, change;
    double squares = 0;
    for (int64_t i = 0; i < words; i++) length += (float)counts[i];
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
    if (p->given) {
        for (int32_t j = 0; j < p->stride; j += LANES) *(v16 *)(a->theta + j) = TARGET(exp_digamma)(*(v16 *)(a->gamma + j));
        for (int32_t j = k; j < p->stride; j++) a->theta[j] = 0;
        squares = TARGET(given_any)(p, a, word, counts, words, p->stride / LANES);
        TARGET(add_scaled_soft_counts)(p, a, s, word, words, k, squares);
        return 0;
    }
    do {
        int32_t n = padded(k) / LANES;
        for (int32_t j = 0; j < n; j++)
            ((v16 *)a->theta)[j] = p->collapsed ? ((v16 *)a->gamma)[j] : TARGET(exp_digamma)(((v16 *)a->gamma)[j]);
        for (int32_t j = k; j < n * LANES; j++) a->theta[j] = 0;
        if (p->collapsed) TARGET(gather_any_collapsed)(a, counts, words, n, 0);
        else TARGET(gather_any)(a, counts, words, n);
        lanes moved = {.all = {0}};
        for (int32_t j = 0; j < n; j++) {
            const v16 sum = ((v16 *)a->total)[j], soft = p->collapsed ? sum : ((v16 *)a->theta)[j] * sum;
            const v16 next = ((v16 *)a->alpha)[j] + soft;
            const v16 by = next - ((v16 *)a->gamma)[j];
            moved.all += (v16)((i16)by & 0x7fffffff);
            ((v16 *)a->gamma)[j] = next;
        }
        change = 0;
        for (int32_t j = 0; j < LANES; j++) change += moved.lane[j];
        if (++iteration == next_drop && iteration < p->max_iter && change > p->tol * p->n_topics) {
            TARGET(drop_topics)(p, a, words, &k);
            next_drop *= 2;
        }
    } while (iteration < p->max_iter && change > p->tol * p->n_topics);
    if (p->collapsed) TARGET(gather_any_collapsed)(a, counts, words, padded(k) / LANES, 1);
    if (state) {
        memset(state, 0, p->n_topics * sizeof(float));
        for (int32_t j = 0; j < k; j++) state[a->topic[j]] = a->gamma[j] > a->alpha[j] ? a->gamma[j] - a->alpha[j] : 0;
    }
    if (p->norm) {
        for (int64_t i = 0; i < words; i += LANES)
            squares = TARGET(weighed)(p, a, word, i, words - i < LANES ? (int32_t)(words - i) : LANES, padded(k) / LANES, squares);
        TARGET(add_scaled_soft_counts)(p, a, s, word, words, k, squares);
        return iteration;
    }
    for (int64_t i = 0; i < words; i++)
        TARGET(add_soft_counts)(a, a->row[i], a->ratio[i] * weight, weight * counts[i], k,
                                s->sum + (size_t)word[i] * p->n_topics);
    return iteration;
}
