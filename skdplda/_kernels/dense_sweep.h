/* Sweep of a block whose documents hold one weight a topic: no search, no indirection; for up to DENSE_TOPICS topics.
 *
 * The weights n_dk + alpha[k] of the block's documents lie in L2. Sixteen lanes sum the products with the word's row;
 * a draw picks the lane, then the group of four vectors, then the vector. The token itself is left out of one or two
 * numbers (fix), not of the vectors in memory: a vector load right after a scalar store to it would stall.
 *
 * One draw is a chain of about 150 cycles. Draws of different documents do not depend on each other, so a batch of
 * them goes through each stage together, and the processor overlaps as many as a stage is short.
 *
 * Compiled once for each target: TARGET(name) tells the copies apart.
 */

INLINE float TARGET(change)(float weight, float alpha, float by) { /* of a count, rounded as if made anew */
    const float whole = 12582912;
    return weight - alpha + whole - whole + by + alpha;
}

/* Collect tokens of different documents from `*t` on; return whether one of them needs two fixes. */
INLINE int TARGET(collect)(const token_block *b, const frozen_table *f, scratch *a, batch *x, uint64_t *place,
                           uint32_t *t, uint32_t end) {
    const uint8_t *active = f->active ? f->active + b->first_document : NULL;
    const size_t stride = padded(f->n_topics);
    const uint32_t first = *t, last = end - first < BATCH ? end : first + BATCH;
    int32_t n = 0, previous = -1, two = 0;
    uint32_t i;
    for (i = first; i < last; i++) {
        const int32_t d = b->document[i];
        if (d <= previous) break;
        previous = d;
        x->token[n] = i;
        x->key[n] = a->key[d] + *place;
        x->state[n] = a->state + d * stride;
        n += active ? active[d] : 1;
    }
    *t = i;
    if (i < end && b->document[i] <= previous) *place += UINT64_C(0x9e3779b97f4a7c15);
    x->n = n;
    for (i = 0; i < BATCH; i++) x->uniform[i] = (float)(int32_t)(mix64(x->key[i]) >> 40) * 0x1p-24f;
    for (int32_t i = 0; i < n; i++) {
        const int32_t old = b->topic[x->token[i]], was = b->reference[x->token[i]];
        x->old[i] = x->was[i] = 0;
        x->fix_old[i][1] = x->fix_was[i][1] = 0;
        x->fresh[i] = old == UNASSIGNED;
        if (old != UNASSIGNED) {
            const float *state = x->state[i];
            const float kept = TARGET(change)(state[old], f->alpha[old], -1);
            const float weight = was == old ? a->reduced[old] : a->row[old];
            x->old[i] = old;
            x->kept[i] = kept;
            x->fix_old[i][1] = weight * kept - a->row[old] * state[old];
        }
        if (was != old && was != UNASSIGNED && f->own > 0) {
            x->was[i] = was;
            x->fix_was[i][1] = (a->reduced[was] - a->row[was]) * x->state[i][was];
            two = 1;
        }
    }
    return two;
}

/* New topics of the batch. `n` vectors cover the topics; `two`: some tokens need two fixes; `wide`: n > 4. */
INLINE void TARGET(draw_batch)(scratch *a, batch *x, int32_t n, int32_t n_topics, int two, int wide) {
    const i16 lane_number = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const int32_t groups = (n + 3) / 4;
    const float *row = a->row;
    v16 held[4];
    if (!wide) for (int32_t i = 0; i < n; i++) held[i] = ((const v16 *)row)[i];
    for (int32_t i = 0; i < x->n; i++) {
        const v16 *r = (const v16 *)row, *s = (const v16 *)x->state[i];
        v16 *part = a->part + i * groups;
        lanes sum = {.all = {0}}, cumulative;
        float target;
        int32_t lane;
        if (!wide) for (int32_t j = 0; j < n; j++) sum.all += held[j] * s[j];
        else {
            for (int32_t g = 0; g < groups - 1; g++, r += 4, s += 4)
                part[g] = sum.all += (r[0] * s[0] + r[1] * s[1]) + (r[2] * s[2] + r[3] * s[3]);
            for (int32_t j = 4 * groups - 4; j < n; j++, r++, s++) sum.all += *r * *s;
        }
        sum.all += (v16)((i16)(x->fix_old[i][1] + (v16){0}) & (lane_number == x->old[i] % LANES));
        if (two) sum.all += (v16)((i16)(x->fix_was[i][1] + (v16){0}) & (lane_number == x->was[i] % LANES));
        cumulative = TARGET(prefix_sum)(sum);
        target = x->uniform[i] * cumulative.lane[LANES - 1];
        lane = TARGET(lanes_below)(cumulative, target);
        x->lane[i] = lane;
        x->target[i] = target;
        x->before[2 * i + 1] = cumulative.all;
    }
    for (int32_t i = 0; i < x->n; i++) {
        const float *state = x->state[i];
        const int32_t old = x->old[i], was = x->was[i];
        int32_t lane = x->lane[i], k, group = 0;
        float target = x->target[i] - ((const float *)x->before)[(2 * i + 1) * LANES - 1 + lane];
        if (wide) {
            const float of_old = x->fix_old[i][lane == old % LANES], of_was = x->fix_was[i][lane == was % LANES];
            const float *part = (const float *)(a->part + i * groups) + lane;
            float base = 0;
            for (int32_t g = 0; g < groups - 1; g++) {
                float end = part[g * LANES] + (g >= old / (4 * LANES) ? of_old : 0);
                if (two) end += g >= was / (4 * LANES) ? of_was : 0;
                group += target >= end;
                base = target >= end ? end : base;
            }
            target -= base;
        }
        k = lane += group * 4 * LANES;
#pragma GCC unroll 3
        for (int32_t q = 0; q < (wide || n > 3 ? 3 : n - 1); q++) {
            float p = row[lane + q * LANES] * state[lane + q * LANES] + x->fix_old[i][lane + q * LANES == old];
            if (two) p += x->fix_was[i][lane + q * LANES == was];
            target -= p;
            k += target >= 0 ? LANES : 0;
        }
        x->drawn[i] = k < n_topics ? k : n_topics - 1; /* rounding may point one past the end */
    }
}

INLINE void TARGET(dense_segment)(const token_block *b, const frozen_table *f, scratch *a, int64_t g, int32_t n, int wide) {
    batch *x = a->batch;
    uint64_t place = ((uint64_t)b->word[g] << 32) * UINT64_C(0x9e3779b97f4a7c15); /* word and occurrence */
    for (uint32_t t = b->start[g]; t < b->start[g + 1];) {
        if (TARGET(collect)(b, f, a, x, &place, &t, b->start[g + 1])) TARGET(draw_batch)(a, x, n, f->n_topics, 1, wide);
        else TARGET(draw_batch)(a, x, n, f->n_topics, 0, wide);
        for (int32_t i = 0; i < x->n; i++) {
            float *state = x->state[i];
            const int32_t k = x->drawn[i];
            if (!x->fresh[i]) state[x->old[i]] = x->kept[i];
            state[k] = TARGET(change)(state[k], f->alpha[k], 1);
            b->topic[x->token[i]] = (uint16_t)k;
        }
    }
}

static int TARGET(sweep_dense)(const token_block *b, const frozen_table *f, int n_sweeps, scratch *a) {
    const int32_t stride = padded(f->n_topics), n = stride / LANES;
    const uint8_t *active = f->active ? f->active + b->first_document : NULL;
    memset(a->state, 0, b->n_documents * (size_t)stride * sizeof(float));
    for (int64_t t = 0; t < b->n_tokens; t++) if (b->topic[t] != UNASSIGNED)
        a->state[(size_t)b->document[t] * stride + b->topic[t]]++;
    for (int64_t d = 0; d < b->n_documents; d++) if (!active || active[d])
        for (int32_t i = 0; i < n; i++) ((v16 *)a->state)[d * n + i] += ((const v16 *)f->alpha)[i];
    for (int sweep = 0; sweep < n_sweeps; sweep++) {
        make_keys(b, f, sweep, a);
        for (int64_t g = 0; g < b->n_segments; g++) {
            TARGET(make_row)(f, b->word[g], a->row);
            for (int32_t i = 0; i < n; i++) { /* without the token itself, at least beta */
                v16 least = ((const v16 *)f->scale)[i] * f->beta;
                v16 less = ((const v16 *)a->row)[i] - ((const v16 *)f->scale)[i] * f->own;
                i16 over = less > least;
                ((v16 *)a->reduced)[i] = (v16)(((i16)less & over) | ((i16)least & ~over));
            }
            switch (n) {
            case 1: TARGET(dense_segment)(b, f, a, g, 1, 0); break;
            case 2: TARGET(dense_segment)(b, f, a, g, 2, 0); break;
            case 3: TARGET(dense_segment)(b, f, a, g, 3, 0); break;
            case 4: TARGET(dense_segment)(b, f, a, g, 4, 0); break;
            default: TARGET(dense_segment)(b, f, a, g, n, 1);
            }
        }
    }
    return 0;
}
