/* Sweep of a block whose documents list the topics that they use: for many topics, and for the longest documents.
 *
 * The weight row[k] (n_dk + alpha[k]) splits into row[k] n_dk, over the document's slots (topic, count), and the shared
 * part row[k] alpha[k], which is the same for every document, up to the token itself. So a draw costs the topics that its
 * document uses, not all topics.
 *
 * Sums are in single precision and uniforms have 24 bits: the law of a draw is right to some 2^-22 in total variation.
 * Compiled once for each target.
 */

#define SHARED_GROUP 8 /* vectors */

/* The shared part of a word: its sums by lane and in all. `a->before` holds the sums by lane before each group. */
typedef struct { lanes sum; float total; } TARGET(shared_part);

static TARGET(shared_part) TARGET(sum_shared)(const delayed_table *f, const scratch *a, int32_t n_blocks) {
    TARGET(shared_part) shared = {.sum = {.all = {0}}};
    for (int32_t k = 0; k < n_blocks; k++) {
        if (k % SHARED_GROUP == 0) a->before[k / SHARED_GROUP] = shared.sum.all;
        shared.sum.all += ((const v16 *)a->row)[k] * ((const v16 *)f->alpha)[k];
    }
    shared.total = TARGET(prefix_sum)(shared.sum).lane[LANES - 1];
    return shared;
}

/* A topic from the shared part: its lane, then its group of vectors, then the vector. `self` is the self-count
 * correction of the row, at the topic `counted`. */
static int32_t TARGET(draw_shared)(const scratch *a, const float *alpha, int32_t n_blocks, int32_t counted, float self,
                                   lanes sum, float target) {
    const int32_t self_block = counted / LANES;
    const float *row = a->row;
    float self_part = 0, base = 0;
    int32_t k, last, group = 0;
    lanes cumulative;
    if (counted != UNASSIGNED) sum.lane[counted % LANES] -= self * alpha[counted];
    cumulative = TARGET(prefix_sum)(sum);
    k = TARGET(lanes_below)(cumulative, target);
    if (k >= LANES) k = LANES - 1;
    target -= cumulative.lane[k] - sum.lane[k];
    if (counted != UNASSIGNED && counted % LANES == k) self_part = self * alpha[counted];
    for (int32_t g = 1; g * SHARED_GROUP < n_blocks; g++) {
        const float end = ((const float *)(a->before + g))[k] - (self_block < g * SHARED_GROUP ? self_part : 0);
        group = target >= end ? g : group;
        base = target >= end ? end : base;
    }
    target -= base;
    for (last = -1, k += group * SHARED_GROUP * LANES; k < n_blocks * LANES; k += LANES) {
        float p = (row[k] - (k == counted ? self : 0)) * alpha[k];
        if (p <= 0) continue;
        last = k;
        target -= p;
        if (target < 0) break;
    }
    if (last < 0) /* rounding may point past the lane's last topic */
        for (last = n_blocks * LANES - 1; last > 0 && row[last] * alpha[last] <= 0; last--);
    return last;
}

/* Draw the topic of one token; -1 without memory. */
INLINE int TARGET(draw_sparse)(const token_block *b, const delayed_table *f, scratch *a, uint32_t t, uint64_t place,
                               const TARGET(shared_part) *shared) {
    const int32_t d = b->document[t], counted = b->counted[t];
    slot_list *l = a->list + d;
    float self = 0, rest = shared->total, total, target;
    int64_t slot;
    lanes sum, cumulative;
    if (counted != UNASSIGNED) { /* the self-count correction: nothing below beta is left of the row */
        const float most = a->row[counted] - f->beta * f->scale[counted];
        self = f->self_count * f->scale[counted];
        self = self < most ? self : most;
        rest -= self * f->alpha[counted];
    }
    sum = TARGET(weigh_slots)(a, l, b->topic[t], counted, self, a->product);
    cumulative = TARGET(prefix_sum)(sum);
    total = cumulative.lane[LANES - 1];
    target = (float)(mix64(a->key[d] + place * GOLDEN) >> 40) * 0x1p-24f * (total + rest);
    if (target < total) {
        slot = l->first + TARGET(find_slot)(a->product, l->blocks, sum, cumulative, target);
    } else {
        const int32_t n_blocks = padded(f->n_topics) / LANES;
        const int32_t k = TARGET(draw_shared)(a, f->alpha, n_blocks, counted, self, shared->sum, target - total);
        if ((slot = TARGET(slot_of)(a, l, (uint16_t)k)) < 0) return -1;
    }
    a->count[slot]++;
    b->topic[t] = a->topic[slot];
    return 0;
}

static int TARGET(sweep_sparse)(const token_block *b, const delayed_table *f, int n_sweeps, scratch *a) {
    const uint8_t *active = f->active ? f->active + b->first_document : NULL;
    if (TARGET(list_topics)(b, active, a)) return -1;
    for (int sweep = 0; sweep < n_sweeps; sweep++) {
        occurrences occurrence = {.group = -1};
        TARGET(shared_part) shared = {.total = 0};
        make_keys(b, f, sweep, a);
        for (int64_t g = 0; g < b->n_segments; g++) {
            const int32_t w = b->word[g];
            const uint64_t place = place_of(b, &occurrence, w);
            if (!g || b->word[g - 1] != w) {
                TARGET(make_row)(f, w, a->row);
                shared = TARGET(sum_shared)(f, a, padded(f->n_topics) / LANES);
            }
            for (uint32_t t = b->start[g]; t < b->start[g + 1]; t++)
                if ((!active || active[b->document[t]]) && TARGET(draw_sparse)(b, f, a, t, place, &shared)) return -1;
        }
    }
    return 0;
}
