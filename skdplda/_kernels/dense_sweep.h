/* Sweep of a block whose documents hold one small integer a topic; for up to DENSE_TOPICS topics.
 *
 * A draw is proposed in whole numbers and accepted in exact ones. A document holds m[k] = unit n_dk + ceil(unit alpha[k])
 * and a word q[k] = what its row is at most, in 2^15 steps of the largest; so q[k] m[k] bounds the weight from above,
 * tightly, and one instruction adds the products of 32 topics. The place of a draw inside the cell of its topic is
 * uniform, so the draw is accepted if that place lies below the exact weight. Most draws lie below a bound of integers
 * and need no exact weight; else a rejected one is repeated. The law is exact, and no sum is ever rounded.
 *
 * One draw is a chain of more than 100 cycles. Draws of different documents do not depend on each other, so a batch of
 * them goes through each stage together, and the processor overlaps as many as a stage is short. The token itself is
 * left out of one number (fix), not of the vectors in memory: a vector load right after a scalar store would stall.
 *
 * Compiled once for each target: TARGET(name) tells the copies apart.
 */

/* The bounds q of a word's row; its step goes to `steps`, in units of 1. */
INLINE void TARGET(quantize_row)(const frozen_table *f, int32_t w, float *row) {
    const int32_t whole = padded(f->n_topics) / LANES, stride = padded_pairs(f->n_topics);
    int16_t *q = f->quantized + (size_t)w * stride;
    v16 most = {0}, steps;
    TARGET(make_row)(f, w, row);
    for (int32_t i = 0; i < whole; i++) {
        const v16 r = ((const v16 *)row)[i];
        const i16 over = r > most;
        most = (v16)(((i16)r & over) | ((i16)most & ~over));
    }
    for (int j = 1; j < LANES; j++) most[0] = most[j] > most[0] ? most[j] : most[0];
    f->steps[w] = MOST_STEPS / most[0];
    steps = f->steps[w] + (v16){0};
    for (int32_t i = 0; i < whole; i++)
        *(h16 *)(q + i * LANES) = __builtin_convertvector(
            __builtin_convertvector(((const v16 *)row)[i] * steps, i16) + 1, h16);
    for (int32_t k = f->n_topics; k < stride; k++) q[k] = 0;
}

static void TARGET(quantize_rows)(const frozen_table *f, int32_t first, int32_t last, float *row) {
    for (int32_t w = first; w < last; w++) TARGET(quantize_row)(f, w, row);
}

/* Collect tokens of different documents from `*t` on. */
INLINE void TARGET(collect)(const token_block *b, const frozen_table *f, scratch *a, const int16_t *row, float steps,
                            uint64_t *place, uint32_t *t, uint32_t end) {
    const uint8_t *active = f->active ? f->active + b->first_document : NULL;
    const size_t stride = padded_pairs(f->n_topics);
    const uint32_t first = *t, last = end - first < BATCH ? end : first + BATCH;
    const float own = f->own;
    batch *x = a->batch;
    int32_t n = 0, previous = -1;
    uint32_t i;
    for (i = first; i < last; i++) {
        const int32_t d = b->document[i];
        if (d <= previous) break;
        previous = d;
        x->token[n] = i;
        x->random[n] = a->key[d] + *place;
        x->state[n] = a->state + d * stride;
        n += active ? active[d] : 1;
    }
    *t = i;
    if (i < end && b->document[i] <= previous) *place += UINT64_C(0x9e3779b97f4a7c15);
    x->n = n;
    x->doubt = 0;
    for (i = 0; i < BATCH; i++) x->random[i] = mix64(x->random[i]);
    for (int32_t i = 0; i < n; i++) {
        const int32_t old = b->topic[x->token[i]];
        const int32_t was = b->reference[x->token[i]];
        x->old[i] = -1;
        x->fix[i] = 0;
        x->doubt |= own > 0 && was != old && was != UNASSIGNED;
        if (old != UNASSIGNED) {
            int32_t q = row[old], m = x->state[i][old], less = q;
            if (own > 0 && was == old) { /* q of the row without the token itself */
                const float step = f->scale[old] * steps, least = step * f->beta, most = (float)q - step * own;
                less = (int32_t)(most > least ? most : least) + 1;
                less = less < q ? less : q;
            }
            x->old[i] = old;
            x->fix[i] = less * (m - f->unit) - q * m;
        }
    }
}

/* The exact weight of a topic, in the units of the products. */
static float TARGET(weight)(const token_block *b, const frozen_table *f, const batch *x, int32_t i, int32_t w, int32_t k) {
    const size_t cell = (size_t)w * f->n_topics + k;
    float count = f->counts ? (float)f->counts[cell] : f->table[cell];
    if (b->reference[x->token[i]] == k) count = count > f->own ? count - f->own : 0;
    return (count + f->beta) * f->scale[k] * f->steps[w]
        * ((float)(x->state[i][k] - f->prior[k] - (k == x->old[i] ? f->unit : 0)) + f->alpha[k] * f->unit);
}

/* A topic drawn without a proposal: where proposals fail. */
static __attribute__((noinline, cold)) int32_t TARGET(draw_exactly)(
    const token_block *b, const frozen_table *f, const batch *x, int32_t i, int32_t w, uint64_t random) {
    double total = 0, target;
    int32_t k;
    for (k = 0; k < f->n_topics; k++) total += TARGET(weight)(b, f, x, i, w, k);
    target = (double)(random >> 11) * 0x1p-53 * total;
    for (k = 0; k < f->n_topics - 1; k++) if ((target -= TARGET(weight)(b, f, x, i, w, k)) < 0) break;
    return k;
}

/* The topic whose cell holds draw i of the batch: its lane, the group of vectors within the lane, the vector, the neighbour.
 * `*inside` is the place inside the cell, `*sure` what the exact weight reaches at least. */
INLINE int32_t TARGET(find)(const scratch *a, const batch *x, int32_t i, int32_t lane, int32_t target, const int16_t *row,
                            int32_t n, int32_t group, int32_t loose, int32_t *inside, int32_t *sure) {
    const int32_t groups = (n + group - 1) / group, old = x->old[i], fix = x->fix[i];
    const int16_t *state = x->state[i];
    const int32_t *part = (const int32_t *)(a->part + i * (groups - 1)) + lane;
    const int32_t fix_lane = lane == old / 2 % LANES ? fix : 0, old_group = old / (2 * LANES * group);
    int32_t base = 0, sum, k = 2 * lane, cell, m, q, next;
    target -= ((const int32_t *)x->before)[(2 * i + 1) * LANES - 1 + lane];
    for (int32_t g = 0; g < groups - 1; g++) {
        const int32_t end = part[g * LANES] + (g >= old_group ? fix_lane : 0);
        k = target >= end ? 2 * lane + (g + 1) * group * 2 * LANES : k;
        base = target >= end ? end : base;
    }
    target -= base;
    base = sum = 0;
    next = k;
#pragma GCC unroll 3
    for (int32_t v = 0; v < (n < group ? n : group) - 1; v++, next += 2 * LANES) {
        sum += row[next] * state[next] + row[next + 1] * state[next + 1] + (next / 2 == old >> 1 ? fix : 0);
        k = target >= sum ? next + 2 * LANES : k;
        base = target >= sum ? sum : base;
    }
    target -= base;
    cell = row[k] * state[k] + (k == old ? fix : 0);
    base = target >= cell ? cell : 0;
    k += target >= cell;
    target -= base;
    q = row[k], m = state[k];
    *inside = target;
    *sure = q * m + (k == old ? fix : 0) - 2 * m - loose * q;
    return k;
}

/* Settle draw i of the batch, whose place no bound of integers has settled. */
static __attribute__((noinline)) int32_t TARGET(settle)(
    const token_block *b, const frozen_table *f, const scratch *a, int32_t i, int32_t w, const int16_t *row,
    int32_t n, int32_t group, int32_t k, int32_t inside) {
    const batch *x = a->batch;
    whole_lanes cumulative;
    uint64_t random = x->random[i];
    memcpy(&cumulative, x->before + 2 * i + 1, sizeof cumulative);
    for (int attempt = 0; attempt < 16; attempt++) {
        const uint64_t total = (uint64_t)cumulative.lane[LANES - 1], below = random * total;
        int32_t target, sure;
        if ((float)inside + (float)(below >> 40) * 0x1p-24f < TARGET(weight)(b, f, x, i, w, k)) return k;
        random = mix64(random + UINT64_C(0x9e3779b97f4a7c15));
        target = (int32_t)((unsigned __int128)random * total >> 64);
        k = TARGET(find)(a, x, i, TARGET(counts_below)(cumulative, target), target, row, n, group, 1, &inside, &sure);
    }
    return TARGET(draw_exactly)(b, f, x, i, w, mix64(random + UINT64_C(0x9e3779b97f4a7c15)));
}

/* New topics of the batch; n vectors of 32 cover the topics. */
INLINE void TARGET(draw_batch)(const token_block *b, const frozen_table *f, scratch *a, int32_t w, const int16_t *row,
                               int32_t n, int32_t group) {
    const i16 lane_number = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const int32_t groups = (n + group - 1) / group, held = n <= 8;
    batch *x = a->batch;
    s32 hold[8];
    if (held) for (int32_t v = 0; v < n; v++) hold[v] = ((const s32 *)row)[v];
    for (int32_t i = 0; i < x->n; i++) {
        const s32 *s = (const s32 *)x->state[i];
        i16 *part = a->part + i * (groups - 1);
        whole_lanes sum = {.all = {0}}, cumulative;
        int32_t target;
        if (held) for (int32_t v = 0; v < n; v++) {
            if (v && v % group == 0) *part++ = sum.all;
            sum.all = TARGET(add_products)(sum.all, hold[v], s[v]);
        } else {
            const s32 *r = (const s32 *)row;
            for (int32_t g = 0; g < groups - 1; g++, r += group, s += group) {
                for (int32_t v = 0; v < group; v++) sum.all = TARGET(add_products)(sum.all, r[v], s[v]);
                *part++ = sum.all;
            }
            for (; r < (const s32 *)row + n; r++, s++) sum.all = TARGET(add_products)(sum.all, *r, *s);
        }
        sum.all += (x->fix[i] + (i16){0}) & (lane_number == x->old[i] / 2 % LANES);
        cumulative = TARGET(prefix_count)(sum);
        target = (int32_t)((unsigned __int128)x->random[i] * (uint64_t)cumulative.lane[LANES - 1] >> 64);
        x->lane[i] = TARGET(counts_below)(cumulative, target);
        x->target[i] = target;
        x->before[2 * i + 1] = cumulative.all;
    }
    for (int32_t i = 0; i < x->n; i++) {
        int32_t inside, sure, k;
        k = TARGET(find)(a, x, i, x->lane[i], x->target[i], row, n, group, f->loose, &inside, &sure);
        if (__builtin_expect(inside >= sure || (x->doubt && k == b->reference[x->token[i]]), 0))
             k = TARGET(settle)(b, f, a, i, w, row, n, group, k, inside);
        x->drawn[i] = k;
    }
}

INLINE void TARGET(dense_segment)(const token_block *b, const frozen_table *f, scratch *a, int64_t g, int32_t n,
                                  int32_t group) {
    const int32_t w = b->word[g], unit = f->unit;
    const int16_t *row = f->quantized + (size_t)w * (n * 2 * LANES);
    const float steps = f->steps[w];
    batch *x = a->batch;
    uint64_t place = ((uint64_t)w << 32) * UINT64_C(0x9e3779b97f4a7c15); /* word and occurrence */
    for (uint32_t t = b->start[g]; t < b->start[g + 1];) {
        TARGET(collect)(b, f, a, row, steps, &place, &t, b->start[g + 1]);
        TARGET(draw_batch)(b, f, a, w, row, n, group);
        for (int32_t i = 0; i < x->n; i++) {
            const int32_t k = x->drawn[i], old = x->old[i];
            if (old >= 0) x->state[i][old] -= unit;
            x->state[i][k] += unit;
            b->topic[x->token[i]] = (uint16_t)k;
        }
    }
}

static int TARGET(sweep_dense)(const token_block *b, const frozen_table *f, int n_sweeps, scratch *a) {
    const int32_t stride = padded_pairs(f->n_topics), n = stride / (2 * LANES);
    const uint8_t *active = f->active ? f->active + b->first_document : NULL;
    for (int64_t d = 0; d < b->n_documents; d++) if (!active || active[d])
        memcpy(a->state + d * stride, f->prior, stride * sizeof(int16_t));
    for (int64_t t = 0; t < b->n_tokens; t++) if (b->topic[t] != UNASSIGNED)
        a->state[(size_t)b->document[t] * stride + b->topic[t]] += f->unit;
    for (int sweep = 0; sweep < n_sweeps; sweep++) {
        make_keys(b, f, sweep, a);
        for (int64_t g = 0; g < b->n_segments; g++) switch (n) {
            case 1: TARGET(dense_segment)(b, f, a, g, 1, 2); break;
            case 2: TARGET(dense_segment)(b, f, a, g, 2, 2); break;
            case 3: TARGET(dense_segment)(b, f, a, g, 3, 2); break;
            case 4: TARGET(dense_segment)(b, f, a, g, 4, 2); break;
            case 5: TARGET(dense_segment)(b, f, a, g, 5, 2); break;
            case 6: TARGET(dense_segment)(b, f, a, g, 6, 2); break;
            case 7: TARGET(dense_segment)(b, f, a, g, 7, 2); break;
            case 8: TARGET(dense_segment)(b, f, a, g, 8, 2); break;
            default: TARGET(dense_segment)(b, f, a, g, n, 4);
        }
    }
    return 0;
}
