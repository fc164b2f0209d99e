/* Sweep of a block whose documents hold one weight a topic: no search, no indirection; for up to DENSE_TOPICS topics.
 *
 * The weights n_dk + alpha[k] of the block's documents lie in L2. Sixteen lanes sum the products with the word's row;
 * a draw picks the lane, then the group of four vectors, then the vector. The token itself is left out of two or three
 * numbers, not of the vectors in memory: a vector load right after a scalar store to it would stall.
 *
 * Compiled once for each target: TARGET(name) tells the copies apart.
 */

/* Weight of topic k, with the changes that leave the token itself out. */
typedef struct { int32_t old, was; float fix_old[2], fix_was[2]; } TARGET(leave_out);

INLINE float TARGET(weight)(const float *row, const float *state, const TARGET(leave_out) *x, int two, int32_t k) {
    float p = row[k] * state[k] + x->fix_old[k == x->old];
    return two ? p + x->fix_was[k == x->was] : p;
}

/* The token's new topic. `n` vectors cover the topics; `two`: the topics `was` and `old` differ. */
INLINE int32_t TARGET(draw_dense)(const float *row, const v16 *held, const float *state, int32_t n, int32_t n_topics,
                                  const TARGET(leave_out) *x, int two, v16 *part, float uniform) {
    const i16 lane_number = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const int32_t groups = (n + 3) / 4;
    float before[LANES + 1] __attribute__((aligned(64)));
    lanes sum = {.all = {0}}, cumulative;
    float target;
    int32_t lane, k, group = 0, first = x->old / LANES / 4, second = x->was / LANES / 4;
    if (n <= 4) for (int32_t i = 0; i < n; i++) sum.all += held[i] * ((const v16 *)state)[i];
    else for (int32_t g = 0, i = 0; g < groups; g++) {
        for (; i < 4 * g + 4 && i < n; i++) sum.all += ((const v16 *)row)[i] * ((const v16 *)state)[i];
        part[g] = sum.all;
    }
    sum.all += (v16)((i16)(x->fix_old[1] + (v16){0}) & (lane_number == x->old % LANES));
    if (two) sum.all += (v16)((i16)(x->fix_was[1] + (v16){0}) & (lane_number == x->was % LANES));
    cumulative = TARGET(prefix_sum)(sum);
    target = uniform * cumulative.lane[LANES - 1];
    lane = TARGET(lanes_below)(cumulative, target);
    before[0] = 0;
    memcpy(before + 1, &cumulative, sizeof(cumulative));
    target -= before[lane];
    if (n > 4) {
        const float of_old = x->fix_old[lane == x->old % LANES], of_was = x->fix_was[lane == x->was % LANES];
        float base = 0;
        for (int32_t g = 0; g < groups - 1; g++) {
            float end = ((const float *)part)[g * LANES + lane] + (g >= first ? of_old : 0);
            if (two) end += g >= second ? of_was : 0;
            group += target >= end;
            base = target >= end ? end : base;
        }
        target -= base;
    }
    lane += group * 4 * LANES;
    k = lane;
    for (int32_t q = 0; q < (n < 4 ? n - 1 : 3); q++) {
        target -= TARGET(weight)(row, state, x, two, lane + q * LANES);
        k += target >= 0 ? LANES : 0;
    }
    return k < n_topics ? k : n_topics - 1; /* rounding may point one past the end */
}

INLINE float TARGET(change)(float weight, float alpha, float by) { /* of a count, rounded as if made anew */
    const float whole = 12582912;
    return weight - alpha + whole - whole + by + alpha;
}

INLINE void TARGET(dense_segment)(const token_block *b, const frozen_table *f, scratch *a, int64_t g, int32_t n) {
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    const uint8_t *active = f->active ? f->active + b->first_document : NULL;
    const uint16_t *document = b->document, *reference = b->reference;
    const float *row = a->row, *alpha = f->alpha, *scale = f->scale;
    const int32_t stride = padded(f->n_topics);
    uint16_t *topic = b->topic;
    uint64_t place = (uint64_t)b->word[g] << 32; /* word and occurrence */
    int32_t previous = -1;
    v16 held[4];
    if (n <= 4) for (int32_t i = 0; i < n; i++) held[i] = ((const v16 *)row)[i];
    for (uint32_t t = b->start[g]; t < b->start[g + 1]; t++) {
        const int32_t d = document[t] & (SILENT - 1), old = topic[t], was = reference[t];
        float *state = a->state + (size_t)d * stride, kept = 0, uniform;
        TARGET(leave_out) x = {0, 0, {0, 0}, {0, 0}};
        int32_t k;
        place += d <= previous;
        previous = d;
        if (active && !active[d]) continue;
        uniform = (float)(int32_t)(mix64(a->key[d] + place * golden) >> 40) * 0x1p-24f;
        if (old != UNASSIGNED) {
            float weight = row[old];
            kept = TARGET(change)(state[old], alpha[old], -1);
            if (was == old) {
                float least = f->beta * scale[old];
                weight -= f->own * scale[old];
                weight = weight > least ? weight : least;
            }
            x.old = old;
            x.fix_old[1] = weight * kept - row[old] * state[old];
        }
        if (was != old && was != UNASSIGNED && f->own > 0) {
            float least = f->beta * scale[was], weight = row[was] - f->own * scale[was];
            x.was = was;
            x.fix_was[1] = ((weight > least ? weight : least) - row[was]) * state[was];
            k = TARGET(draw_dense)(row, held, state, n, f->n_topics, &x, 1, a->part, uniform);
        } else k = TARGET(draw_dense)(row, held, state, n, f->n_topics, &x, 0, a->part, uniform);
        if (old != UNASSIGNED) state[old] = kept;
        state[k] = TARGET(change)(state[k], alpha[k], 1);
        topic[t] = (uint16_t)k;
    }
}

static int TARGET(sweep_dense)(const token_block *b, const frozen_table *f, int n_sweeps, scratch *a) {
    const int32_t stride = padded(f->n_topics), n = stride / LANES;
    const uint8_t *active = f->active ? f->active + b->first_document : NULL;
    memset(a->state, 0, b->n_documents * (size_t)stride * sizeof(float));
    for (int64_t t = 0; t < b->n_tokens; t++) if (b->topic[t] != UNASSIGNED)
        a->state[(size_t)(b->document[t] & (SILENT - 1)) * stride + b->topic[t]]++;
    for (int64_t d = 0; d < b->n_documents; d++) if (!active || active[d])
        for (int32_t i = 0; i < n; i++) ((v16 *)a->state)[d * n + i] += ((const v16 *)f->alpha)[i];
    for (int sweep = 0; sweep < n_sweeps; sweep++) {
        make_keys(b, f, sweep, a);
        for (int64_t g = 0; g < b->n_segments; g++) {
            TARGET(make_row)(f, b->word[g], a->row);
            switch (n) {
            case 1: TARGET(dense_segment)(b, f, a, g, 1); break;
            case 2: TARGET(dense_segment)(b, f, a, g, 2); break;
            case 3: TARGET(dense_segment)(b, f, a, g, 3); break;
            case 4: TARGET(dense_segment)(b, f, a, g, 4); break;
            default: TARGET(dense_segment)(b, f, a, g, n);
            }
        }
    }
    return 0;
}
