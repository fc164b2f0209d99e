/* Sweep of documents from a table that lists the topics of each word. Compiled once for each target.
 *
 * With T the table, s = scale and n the document's counts, the weight of a topic is a sum of three parts,
 *     T[w, k] s[k] (n[k] + alpha[k]),   beta s[k] n[k]   and   beta s[k] alpha[k],
 * over the word's list, the document's topics and all topics: a draw costs the topics that its word has. The first part is
 * weighed anew for each token, of the second the sum is kept, and the third is the same for all tokens.
 */

/* near[k] of WIDTH topics. (The gather instruction of AVX2 takes longer on Zen 4.) */
INLINE TARGET(reals) TARGET(nearby)(const float *near, const uint16_t *k) {
#if SIMD == 2
    return (TARGET(reals))_mm512_i32gather_ps(_mm512_cvtepu16_epi32(_mm256_load_si256((const __m256i *)k)), near, 4);
#elif SIMD == 1
    return (TARGET(reals)){near[k[0]], near[k[1]], near[k[2]], near[k[3]], near[k[4]], near[k[5]], near[k[6]], near[k[7]]};
#else
    return (TARGET(reals)){near[k[0]], near[k[1]], near[k[2]], near[k[3]]};
#endif
}

/* Weigh a word's topics in the document: sums by lane, in `sum` those up to each block. */
INLINE lanes TARGET(weigh_word)(const uint16_t *topic, const float *weight, int32_t n_blocks, const float *near, float *sum) {
    enum { PARTS = LANES / TARGET(WIDTH) };
    TARGET(reals) total[PARTS] = {{0}};
    lanes result;
    for (int32_t i = 0; i < n_blocks; i++, topic += LANES, weight += LANES, sum += LANES)
        for (int h = 0; h < PARTS; h++) {
            total[h] += TARGET(nearby)(near, topic + h * TARGET(WIDTH)) * ((const TARGET(reals) *)weight)[h];
            ((TARGET(reals) *)sum)[h] = total[h];
        }
    for (int h = 0; h < PARTS; h++) ((TARGET(reals) *)&result)[h] = total[h];
    return result;
}

/* Make prefix sums, in quarters of registers, because GCC keeps longer vectors in memory; returns the last. */
INLINE float TARGET(end_lanes)(lanes *x) {
    v4 end[4];
    for (int q = 0; q < 4; q++) end[q] = x->quarter[q];
    TARGET(prefix_quarters)(end);
    for (int q = 0; q < 4; q++) x->quarter[q] = end[q];
    return end[3][3];
}

/* How many lanes end at the target or before. */
INLINE int32_t TARGET(ended_lanes)(const lanes *x, float target) {
    i4 n = {0};
    for (int q = 0; q < 4; q++) n -= x->quarter[q] <= target;
    return n[0] + n[1] + (n[2] + n[3]);
}

/* The topic whose part of the document's tokens, times scale, holds the target. */
static uint16_t TARGET(find_met)(const delayed_table *f, const listed_scratch *s, int32_t n_met, float target) {
    uint16_t found = s->met[0];
    float sum = 0;
    for (int32_t i = 0; i < n_met && sum <= target; i++) {
        const uint16_t k = s->met[i];
        if (!s->tokens[k]) continue;
        sum += f->scale[k] * (float)s->tokens[k];
        found = k;
    }
    return found;
}

/* Draw the topics of one document; `key` names its random numbers. */
static void TARGET(draw_document)(const listed_tokens *x, const delayed_table *f, const listed_table *t, const topic_cells *c,
                                  int64_t d, uint64_t key, listed_scratch *s) {
    float *near = s->near;
    int32_t *tokens = s->tokens, n_met = 0;
    int64_t i = x->first[d];
    double here = 0; /* sum of scale over the document's tokens */
    for (int64_t j = i; j < x->first[d + 1]; j++) {
        const uint16_t k = x->topic[j];
        if (k == UNASSIGNED) continue;
        if (tokens[k] == NOT_MET) { s->met[n_met++] = k; tokens[k] = 0; }
        near[k] = (float)++tokens[k] + f->alpha[k];
        here += f->scale[k];
    }
    for (int64_t e = x->indptr[d]; e < x->indptr[d + 1]; e++) {
        const int32_t w = x->word[e], n_blocks = (int32_t)((t->start[w + 1] - t->start[w]) / LANES);
        const uint16_t *listed = t->topic + t->start[w];
        const float *weight = t->weight + t->start[w];
        for (int32_t occurrence = 0; occurrence < x->count[e]; occurrence++, i++) {
            const uint64_t random = mix64(key + (((uint64_t)w << 32) + (uint64_t)occurrence) * GOLDEN);
            const int32_t old = x->topic[i], place = x->place[i];
            float all, before, target;
            uint16_t k;
            lanes ends;
            if (old != UNASSIGNED) { /* the token leaves its document */
                near[old] = (float)--tokens[old] + f->alpha[old];
                here -= f->scale[old];
            }
            if (place == UNASSIGNED) ends = TARGET(weigh_word)(listed, weight, n_blocks, near, s->sum);
            else { /* and the table: its topic weighs less for once. The self-count correction leaves nothing below beta */
                float *own = near + listed[place];
                const float self = f->self_count * f->scale[listed[place]], whole = *own;
                *own *= self < weight[place] ? (weight[place] - self) / weight[place] : 0;
                ends = TARGET(weigh_word)(listed, weight, n_blocks, near, s->sum);
                *own = whole;
            }
            all = TARGET(end_lanes)(&ends);
            before = here > 0 ? f->beta * (float)here : 0;
            target = (float)(random >> 40) * 0x1p-24f * (all + before + c->total);
            if (target < all) {
                const int32_t lane = TARGET(ended_lanes)(&ends, target);
                const float *sum = s->sum + lane;
                int32_t block = 0;
                if (lane) target -= ends.lane[lane - 1];
                for (int32_t b = 0; b < n_blocks - 1; b++) block += sum[b * LANES] <= target;
                k = listed[block * LANES + lane];
            } else if (target - all < before) k = TARGET(find_met)(f, s, n_met, (target - all) / f->beta);
            else {
                const uint64_t within = (random & 0xffffffffff) * (uint64_t)f->n_topics; /* the bits that `target` has not */
                k = (uint16_t)(within >> 40);
                if ((float)(within >> 16 & 0xffffff) * 0x1p-24f >= c->own[k]) k = c->other[k];
            }
            if (tokens[k] == NOT_MET) { s->met[n_met++] = k; tokens[k] = 0; }
            near[k] = (float)++tokens[k] + f->alpha[k];
            here += f->scale[k];
            x->topic[i] = k;
        }
    }
    for (int32_t m = 0; m < n_met; m++) {
        near[s->met[m]] = f->alpha[s->met[m]];
        tokens[s->met[m]] = NOT_MET;
    }
}

static void TARGET(sweep_listed)(const listed_tokens *x, const delayed_table *f, const listed_table *t, const topic_cells *c,
                                 int n_sweeps, int64_t first, int64_t last, listed_scratch *s) {
    for (int64_t d = first; d < last; d++)
        for (int sweep = 0; sweep < n_sweeps && !(f->active && !f->active[d]); sweep++)
            TARGET(draw_document)(x, f, t, c, d, document_key(f, sweep_key(f, sweep), d), s);
}
