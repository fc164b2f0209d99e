/* Sweep of a block whose documents list the topics that they use: for many topics, and for the longest documents.
 *
 * The weight row[k] (n_dk + alpha[k]) splits into row[k] n_dk, over the document's slots (topic, count), and the shared
 * part row[k] alpha[k], which is the same for every document, up to the token itself. So a draw costs the topics that its
 * document uses, not all topics.
 *
 * Sums are in single precision and uniforms have 24 bits: the law of a draw is right to some 2^-22 in total variation.
 * Compiled once for each target.
 */

static int TARGET(arena_reserve)(scratch *a, int64_t extra) {
    if (a->used + extra <= a->size) return 0;
    int64_t size = 2 * (a->used + extra);
    float *count = aligned_alloc(64, size * sizeof(float));
    uint16_t *topic = aligned_alloc(64, size * sizeof(uint16_t));
    if (!count || !topic) { free(count); free(topic); return -1; }
    if (a->used) {
        memcpy(count, a->count, a->used * sizeof(float));
        memcpy(topic, a->topic, a->used * sizeof(uint16_t));
    }
    free(a->count); free(a->topic);
    a->count = count; a->topic = topic; a->size = size;
    return 0;
}

static int TARGET(add_lanes)(scratch *a, slot_list *l) {
    if (l->blocks == l->capacity) {
        int32_t capacity = l->capacity ? 2 * l->capacity : 1;
        int64_t n = (int64_t)l->blocks * LANES;
        if (TARGET(arena_reserve)(a, (int64_t)capacity * LANES)) return -1;
        memcpy(a->count + a->used, a->count + l->first, n * sizeof(float));
        memcpy(a->topic + a->used, a->topic + l->first, n * sizeof(uint16_t));
        l->first = a->used;
        l->capacity = capacity;
        a->used += (int64_t)capacity * LANES;
    }
    memset(a->count + l->first + l->blocks * LANES, 0, LANES * sizeof(float));
    memset(a->topic + l->first + l->blocks * LANES, 0, LANES * sizeof(uint16_t));
    l->blocks++;
    return 0;
}

/* The slot of a topic in a document's list: its own, else a free one, else a new one; -1 without memory. */
INLINE int64_t TARGET(slot_of)(scratch *a, slot_list *l, uint16_t topic) {
    int64_t vacant = -1;
#if SIMD == 2
    for (int32_t j = 0; j < l->blocks; j++) {
        const int64_t first = l->first + (int64_t)j * LANES;
        const __m512 count = _mm512_load_ps(a->count + first);
        const __m256i here = _mm256_load_si256((const __m256i *)(a->topic + first));
        const unsigned used = _mm512_cmp_ps_mask(count, _mm512_setzero_ps(), _CMP_GT_OS);
        const unsigned same = used & _mm256_cmpeq_epi16_mask(here, _mm256_set1_epi16((short)topic));
        if (same) return first + __builtin_ctz(same);
        if (vacant < 0 && used != 0xffff) vacant = first + __builtin_ctz(~used);
    }
#else
    for (int32_t j = 0; j < l->blocks * LANES; j++) {
        if (a->count[l->first + j] > 0) {
            if (a->topic[l->first + j] == topic) return l->first + j;
        } else if (vacant < 0) vacant = l->first + j;
    }
#endif
    if (vacant < 0) {
        if (TARGET(add_lanes)(a, l)) return -1;
        vacant = l->first + (l->blocks - 1) * LANES;
    }
    a->topic[vacant] = topic;
    return vacant;
}

/* row[k] of sixteen slots. Loads that are inserted one by one are faster on Zen than its gather instruction. */
INLINE v16 TARGET(gather)(const float *row, const uint16_t *k) {
#if SIMD == 2
    __m128 part[4];
    for (int q = 0; q < 4; q++) {
        uint64_t four;
        memcpy(&four, k + 4 * q, 8);
        part[q] = _mm_set_ps(row[four >> 48], row[four >> 32 & 65535], row[four >> 16 & 65535], row[four & 65535]);
    }
    const __m512 low = _mm512_castps256_ps512(_mm256_set_m128(part[1], part[0]));
    return (v16)_mm512_insertf32x8(low, _mm256_set_m128(part[3], part[2]), 1);
#else
    v16 weight;
    for (int x = 0; x < LANES; x++) weight[x] = row[k[x]];
    return weight;
#endif
}

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

/* Take the token out of its slot, and weigh all slots of the document: `a->product`, and its sums by lane. */
INLINE lanes TARGET(weigh_slots)(const scratch *a, const slot_list *l, int32_t old, int32_t counted, float self) {
    const uint16_t *slot = a->topic + l->first;
    lanes sum = {.all = {0}};
    for (int32_t i = 0; i < l->blocks; i++) {
        v16 *count = (v16 *)(a->count + l->first) + i, weight, left = *count;
        const i16 k = __builtin_convertvector(((const u16 *)slot)[i], i16);
        weight = TARGET(gather)(a->row, slot + i * LANES);
        left += __builtin_convertvector(k == old, v16);
        left = (v16)((i16)left & (left > 0));
        weight += __builtin_convertvector(k == counted, v16) * self;
        *count = left;
        sum.all += ((v16 *)a->product)[i] = weight * left;
    }
    return sum;
}

/* The slot that holds the target: its lane, then its vector. */
INLINE int32_t TARGET(find_slot)(const float *product, int32_t n_blocks, lanes sum, lanes cumulative, float target) {
    const int32_t lane = TARGET(lanes_below)(cumulative, target);
    int32_t j = lane;
    target -= cumulative.lane[lane] - sum.lane[lane];
    for (int32_t i = 0; i < n_blocks - 1; i++) {
        target -= product[lane + i * LANES];
        j += target >= 0 ? LANES : 0;
    }
    if (product[j] <= 0) for (j = 0; product[j] <= 0; j++); /* rounding may point to a vacant slot */
    return j;
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
    sum = TARGET(weigh_slots)(a, l, b->topic[t], counted, self);
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

/* Make the lists of the block's documents from the topics that their tokens have; -1 without memory. */
static int TARGET(list_topics)(const token_block *b, const uint8_t *active, scratch *a) {
    a->used = 0;
    memset(a->list, 0, b->n_documents * sizeof(slot_list));
    for (int64_t d = 0; d < b->n_documents; d++)
        if (holds(b, d) && (!active || active[d]) && TARGET(add_lanes)(a, a->list + d)) return -1;
    for (int64_t t = 0; t < b->n_tokens; t++) {
        const int32_t d = b->document[t];
        if (b->topic[t] == UNASSIGNED || (active && !active[d])) continue;
        const int64_t slot = TARGET(slot_of)(a, a->list + d, b->topic[t]);
        if (slot < 0) return -1;
        a->count[slot]++;
    }
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
