/* Sweep of a block whose documents list the topics that they use: for many topics.
 *
 * p(z = k) splits into a part over the document's slots (topic, count) and a part row[k] alpha[k] that is the same
 * for every document, up to the token itself. Compiled once for each target.
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

/* A topic from the part that all documents share: its lane, then its group of vectors, then the vector. `before` holds
 * the sums by lane of what comes before each group. */
static int32_t TARGET(draw_shared)(const float *row, const float *alpha, int32_t n_blocks, int32_t reference, float own,
                           lanes sum, const v16 *before, float target) {
    const int32_t own_block = reference / LANES;
    float own_part = 0, base = 0;
    int32_t k, last, group = 0;
    lanes cumulative;
    if (reference != UNASSIGNED) sum.lane[reference % LANES] -= own * alpha[reference];
    cumulative = TARGET(prefix_sum)(sum);
    k = TARGET(lanes_below)(cumulative, target);
    if (k >= LANES) k = LANES - 1;
    target -= cumulative.lane[k] - sum.lane[k];
    if (reference != UNASSIGNED && reference % LANES == k) own_part = own * alpha[reference];
    for (int32_t g = 1; g * SHARED_GROUP < n_blocks; g++) {
        const float end = ((const float *)(before + g))[k] - (own_block < g * SHARED_GROUP ? own_part : 0);
        group = target >= end ? g : group;
        base = target >= end ? end : base;
    }
    target -= base;
    for (last = -1, k += group * SHARED_GROUP * LANES; k < n_blocks * LANES; k += LANES) {
        float p = (row[k] - (k == reference ? own : 0)) * alpha[k];
        if (p <= 0) continue;
        last = k;
        target -= p;
        if (target < 0) break;
    }
    if (last < 0) /* rounding may point past the lane's last topic */
        for (last = n_blocks * LANES - 1; last > 0 && row[last] * alpha[last] <= 0; last--);
    return last;
}

static int TARGET(sweep_sparse)(const token_block *b, const frozen_table *f, int n_sweeps, scratch *a) {
    const int32_t row_blocks = (f->n_topics + LANES - 1) / LANES;
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    const uint8_t *active = f->active ? f->active + b->first_document : NULL;
    const uint16_t *document = b->document, *reference = b->reference;
    float *row = a->row, *product = a->product;
    v16 *before = a->before;
    uint16_t *topic = b->topic;
    a->used = 0;
    memset(a->list, 0, b->n_documents * sizeof(slot_list));
    for (int64_t d = 0; d < b->n_documents; d++) if (!active || active[d]) if (TARGET(add_lanes)(a, a->list + d)) return -1;
    for (int64_t t = 0; t < b->n_tokens; t++) if (topic[t] != UNASSIGNED) {
        int32_t d = document[t];
        if (active && !active[d]) continue;
        int64_t slot = TARGET(slot_of)(a, a->list + d, topic[t]);
        if (slot < 0) return -1;
        a->count[slot]++;
    }
    for (int sweep = 0; sweep < n_sweeps; sweep++) {
        make_keys(b, f, sweep, a);
        occurrences occurrence = {.group = -1};
        lanes shared = {.all = {0}};
        float shared_total = 0;
        for (int64_t g = 0; g < b->n_segments; g++) {
            const int32_t w = b->word[g];
            const uint64_t place = place_of(b, &occurrence, w);
            if (!g || b->word[g - 1] != w) {
                TARGET(make_row)(f, w, row);
                shared.all = (v16){0};
                for (int32_t k = 0; k < row_blocks; k++) {
                    if (k % SHARED_GROUP == 0) before[k / SHARED_GROUP] = shared.all;
                    shared.all += ((const v16 *)row)[k] * ((const v16 *)f->alpha)[k];
                }
                shared_total = TARGET(prefix_sum)(shared).lane[LANES - 1];
            }
            for (uint32_t t = b->start[g]; t < b->start[g + 1]; t++) {
                const int32_t d = document[t];
                const int32_t was = reference[t], old = topic[t];
                if (active && !active[d]) continue;
                slot_list *l = a->list + d;
                float *count = a->count + l->first;
                const uint16_t *slot = a->topic + l->first;
                const int32_t n_blocks = l->blocks;
                float own = 0;
                if (was != UNASSIGNED) {
                    float most = row[was] - f->beta * f->scale[was];
                    own = f->own * f->scale[was];
                    own = own < most ? own : most;
                }
                float rest = shared_total - (was == UNASSIGNED ? 0 : own * f->alpha[was]), target, total;
                lanes sum = {.all = {0}}, cumulative;
                int32_t lane, j;
                for (int32_t i = 0; i < n_blocks; i++) {
                    v16 weight, p, m = ((const v16 *)count)[i];
                    i16 k = __builtin_convertvector(((const u16 *)slot)[i], i16);
                    weight = TARGET(gather)(row, slot + i * LANES);
                    m += __builtin_convertvector(k == old, v16);
                    m = (v16)((i16)m & (m > 0));
                    weight += __builtin_convertvector(k == was, v16) * own;
                    p = weight * m;
                    ((v16 *)count)[i] = m;
                    ((v16 *)product)[i] = p;
                    sum.all += p;
                }
                cumulative = TARGET(prefix_sum)(sum);
                total = cumulative.lane[LANES - 1];
                target = (float)(mix64(a->key[d] + place * golden) >> 40) * 0x1p-24f * (total + rest);
                if (target >= total) {
                    int32_t k = TARGET(draw_shared)(row, f->alpha, row_blocks, was, own, shared, before, target - total);
                    int64_t s = TARGET(slot_of)(a, l, (uint16_t)k);
                    if (s < 0) return -1;
                    a->count[s]++;
                    topic[t] = (uint16_t)k;
                    continue;
                }
                lane = TARGET(lanes_below)(cumulative, target);
                target -= cumulative.lane[lane] - sum.lane[lane];
                j = lane;
                for (int32_t i = 0; i < n_blocks - 1; i++) {
                    target -= product[lane + i * LANES];
                    j += target >= 0 ? LANES : 0;
                }
                if (product[j] <= 0) for (j = 0; product[j] <= 0; j++); /* rounding may point to a vacant slot */
                count[j]++;
                topic[t] = slot[j];
            }
        }
    }
    return 0;
}
