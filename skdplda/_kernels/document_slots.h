/* The topics that a document uses, as slots of a topic and a count, in whole lanes. Compiled once for each target. */

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

#if defined(__SSE2__)
/* A bit for each of sixteen counts: whether it is positive; of topics: whether it is the one. */
INLINE unsigned TARGET(positive)(const float *count) {
#if SIMD == 2
    return _mm512_cmp_ps_mask(_mm512_load_ps(count), _mm512_setzero_ps(), _CMP_GT_OS);
#else
    __m128i more[4];
    for (int q = 0; q < 4; q++) more[q] = (__m128i)_mm_cmpgt_ps(_mm_load_ps(count + 4 * q), _mm_setzero_ps());
    return _mm_movemask_epi8(_mm_packs_epi16(_mm_packs_epi32(more[0], more[1]), _mm_packs_epi32(more[2], more[3])));
#endif
}

INLINE unsigned TARGET(equal)(const uint16_t *topics, uint16_t topic) {
#if SIMD == 2
    return _mm256_cmpeq_epi16_mask(_mm256_load_si256((const __m256i *)topics), _mm256_set1_epi16((short)topic));
#else
    const __m128i *x = (const __m128i *)topics, one = _mm_set1_epi16((short)topic);
    return _mm_movemask_epi8(_mm_packs_epi16(_mm_cmpeq_epi16(x[0], one), _mm_cmpeq_epi16(x[1], one)));
#endif
}
#endif

/* The slot of a topic in a document's list: its own, else a free one, else a new one; -1 without memory. */
INLINE int64_t TARGET(slot_of)(scratch *a, slot_list *l, uint16_t topic) {
    int64_t vacant = -1;
#if defined(__SSE2__)
    for (int32_t j = 0; j < l->blocks; j++) {
        const int64_t first = l->first + (int64_t)j * LANES;
        const unsigned used = TARGET(positive)(a->count + first), same = used & TARGET(equal)(a->topic + first, topic);
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

#if SIMD == 2
/* Take the token out of its slot, and weigh all slots of the document: `product`, and its sums by lane. */
INLINE lanes TARGET(weigh_slots)(const scratch *a, const slot_list *l, int32_t old, int32_t counted, float self,
                                 float *product) {
    const uint16_t *slot = a->topic + l->first;
    lanes sum = {.all = {0}};
    for (int32_t i = 0; i < l->blocks; i++) {
        v16 *count = (v16 *)(a->count + l->first) + i, weight, left = *count;
        const __m512i k = _mm512_cvtepu16_epi32(_mm256_load_si256((const __m256i *)slot + i));
        const __mmask16 own = _mm512_cmpeq_epi32_mask(k, _mm512_set1_epi32(old));
        const __mmask16 same = _mm512_cmpeq_epi32_mask(k, _mm512_set1_epi32(counted));
        weight = (v16)_mm512_i32gather_ps(k, a->row, 4);
        left = (v16)_mm512_mask_sub_ps((__m512)left, own, (__m512)left, _mm512_set1_ps(1));
        left = (v16)_mm512_max_ps((__m512)left, _mm512_setzero_ps());
        weight = (v16)_mm512_mask_sub_ps((__m512)weight, same, (__m512)weight, _mm512_set1_ps(self));
        *count = left;
        sum.all += ((v16 *)product)[i] = weight * left;
    }
    return sum;
}
#else
/* row[k] of WIDTH slots. (The gather instruction of AVX2 takes a fifth longer on Zen 4.) */
INLINE TARGET(reals) TARGET(gather)(const float *row, const uint16_t *k) {
#if SIMD == 1
    return (TARGET(reals)){row[k[0]], row[k[1]], row[k[2]], row[k[3]], row[k[4]], row[k[5]], row[k[6]], row[k[7]]};
#else
    return (TARGET(reals)){row[k[0]], row[k[1]], row[k[2]], row[k[3]]};
#endif
}

/* The same in registers of the target. */
INLINE lanes TARGET(weigh_slots)(const scratch *a, const slot_list *l, int32_t old, int32_t counted, float self,
                                 float *product) {
    enum { PARTS = LANES / TARGET(WIDTH) };
    const uint16_t *slot = a->topic + l->first;
    const float *row = a->row;
    float *count = a->count + l->first;
    const int32_t n_blocks = l->blocks;
    const TARGET(ints) own = (TARGET(ints)){0} + old, same = (TARGET(ints)){0} + counted;
    const TARGET(reals) zero = {0}, one = zero + 1, less = zero + self;
    TARGET(reals) sum[PARTS] = {zero};
    lanes result;
    for (int32_t i = 0; i < n_blocks; i++, slot += LANES, count += LANES, product += LANES)
        for (int h = 0; h < PARTS; h++) {
            const TARGET(ints) k = __builtin_convertvector(((const TARGET(shorts) *)slot)[h], TARGET(ints));
            TARGET(reals) left = ((TARGET(reals) *)count)[h], weight = TARGET(gather)(row, slot + h * TARGET(WIDTH));
            left -= (TARGET(reals))((TARGET(ints))one & (k == own));
            left = (TARGET(reals))((TARGET(ints))left & (left > 0));
            weight -= (TARGET(reals))((TARGET(ints))less & (k == same));
            ((TARGET(reals) *)count)[h] = left;
            sum[h] += ((TARGET(reals) *)product)[h] = weight * left;
        }
    for (int h = 0; h < PARTS; h++) ((TARGET(reals) *)&result)[h] = sum[h];
    return result;
}
#endif

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
