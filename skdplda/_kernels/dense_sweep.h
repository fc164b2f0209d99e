/* Sweep of a block whose documents hold one small integer a topic; for up to DENSE_TOPICS topics, and not the longest
 * documents. dense_reference.h is the same in scalar C; read it first.
 *
 * A draw is proposed in integers and accepted by exact weights. A document holds
 * m[k] = token_weight n_dk + ceil(token_weight alpha[k]), and a word q[k], a bound of its row in steps of 2^-15 of the
 * largest entry. So q[k] m[k] bounds the weight from above, tightly, and one instruction adds the products of 32 topics.
 * The place of a draw inside the cell of its topic is uniform, so the draw is accepted if that place lies below the exact
 * weight. Most places lie below a bound of integers and need no exact weight; a rejected draw is repeated. Therefore the
 * law is exact, and no sum is ever rounded.
 *
 * One draw is a chain of more than 100 cycles. Draws of different documents do not depend on each other, so a batch of
 * them goes through each stage together: the products draw by draw, the search with one draw in each lane of a
 * register. The token itself is left out of one number, `fix`, and not out of the vectors in memory, because a vector
 * load right after a scalar store would stall.
 *
 * Compiled once for each target: TARGET(name) tells the copies apart.
 */

/* The bounds q of a word's row, and how many of its steps are 1. */
INLINE void TARGET(quantize_row)(const delayed_table *f, int32_t w, float *row) {
    const int32_t stride = padded_pairs(f->n_topics), filled = padded(f->n_topics);
    int16_t *q = f->quantized + (size_t)w * stride;
    TARGET(reals) largest = {0};
    float most = 0, steps;
    TARGET(make_row)(f, w, row);
    for (int32_t k = 0; k < filled; k += TARGET(WIDTH)) {
        const TARGET(reals) some = *(const TARGET(reals) *)(row + k);
        const TARGET(ints) larger = some > largest;
        largest = (TARGET(reals))(((TARGET(ints))some & larger) | ((TARGET(ints))largest & ~larger));
    }
    for (int j = 0; j < TARGET(WIDTH); j++) most = largest[j] > most ? largest[j] : most;
    steps = f->steps[w] = MOST_STEPS / most;
    for (int32_t k = 0; k < filled; k++) q[k] = (int16_t)((int32_t)(row[k] * steps) + 1);
    for (int32_t k = f->n_topics; k < stride; k++) q[k] = 0;
}

static void TARGET(quantize_rows)(const delayed_table *f, int32_t first, int32_t last, float *row) {
    for (int32_t w = first; w < last; w++) TARGET(quantize_row)(f, w, row);
}

/* Where the sweep stands: the next token, its segment's end, word, and place in the stream of a document. */
typedef struct {
    uint32_t token, end;
    int64_t segment;
    uint64_t place;
    int32_t word;
    occurrences occurrence;
} TARGET(cursor);

INLINE void TARGET(next_segment)(const token_block *b, const delayed_table *f, int32_t stride, TARGET(cursor) *c) {
    c->word = b->word[c->segment];
    c->end = b->start[++c->segment];
    c->place = place_of(b, &c->occurrence, c->word) * GOLDEN;
    if (stride >= 512 && c->segment < b->n_segments) { /* to the second-level cache, while this word is drawn */
        const char *row = (const char *)(f->quantized + (size_t)b->word[c->segment] * stride);
        for (int32_t j = 0; j < stride * 2; j += 64) __builtin_prefetch(row + j, 0, 2);
    }
}

/* Leave the token of draw i out of the product of its topic, and out of its row: the self-count correction. */
INLINE void TARGET(leave_out)(const token_block *b, const delayed_table *f, batch *x, int32_t i) {
    const uint32_t token = (uint32_t)x->token.lane[i];
    const int32_t old = b->topic[token], counted = b->counted[token];
    x->old.lane[i] = -1;
    x->fix.lane[i] = 0;
    x->doubt |= f->self_count > 0 && counted != old && counted != UNASSIGNED;
    if (old == UNASSIGNED) return;
    const int32_t q = x->row[i][old], m = x->state[i][old];
    int32_t corrected = q;
    if (f->self_count > 0 && counted == old) {
        const float step = f->scale[old] * f->steps[x->word.lane[i]];
        const float least = step * f->beta, most = (float)q - step * f->self_count;
        corrected = (int32_t)(most > least ? most : least) + 1;
        corrected -= (corrected - q) & -(corrected > q);
    }
    x->old.lane[i] = old;
    x->fix.lane[i] = corrected * (m - f->token_weight) - q * m;
}

#if SIMD == 1
#define EACH_OF_EIGHT(of) of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7)
/* `leave_out` of draws `first` to `first` + 7 of tokens that follow each other; 0 if one has no topic yet. What is set of
 * draws beyond the last one, of tokens that were not collected, is not used. */
INLINE int TARGET(leave_out_eight)(const token_block *b, const delayed_table *f, batch *x, uint32_t token, int32_t first) {
    const uint16_t *topic = b->topic + token + first;
    const int16_t *const *row = x->row + first;
    int16_t *const *state = x->state + first;
    const int32_t *word = x->word.lane + first;
    const __m128i narrow = _mm_loadu_si128((const __m128i_u *)topic), none = _mm_set1_epi16(-1);
    if (_mm_movemask_epi8(_mm_cmpeq_epi16(narrow, none))) return 0;
#define OF_ROW(i) row[i][topic[i]]
#define OF_STATE(i) state[i][topic[i]]
    const __m256i old = _mm256_cvtepu16_epi32(narrow);
    const __m256i q = _mm256_cvtepi16_epi32(_mm_setr_epi16(EACH_OF_EIGHT(OF_ROW)));
    const __m256i m = _mm256_cvtepi16_epi32(_mm_setr_epi16(EACH_OF_EIGHT(OF_STATE)));
    const __m256i without = _mm256_sub_epi32(m, _mm256_set1_epi32(f->token_weight));
    __m256i corrected = q;
    if (f->self_count > 0) {
#define OF_SCALE(i) f->scale[topic[i]]
#define OF_STEPS(i) f->steps[word[i]]
        const __m128i counted = _mm_loadu_si128((const __m128i_u *)(b->counted + token + first));
        const __m128i same = _mm_cmpeq_epi16(narrow, counted);
        const __m128i neither = _mm_andnot_si128(_mm_or_si128(same, _mm_cmpeq_epi16(counted, none)), none);
        const __m256 step = _mm256_setr_ps(EACH_OF_EIGHT(OF_SCALE)) * _mm256_setr_ps(EACH_OF_EIGHT(OF_STEPS));
        const __m256 most = _mm256_cvtepi32_ps(q) - step * f->self_count, least = step * f->beta;
        const __m256i bound = _mm256_add_epi32(_mm256_cvttps_epi32(_mm256_max_ps(most, least)), _mm256_set1_epi32(1));
        corrected = _mm256_blendv_epi8(q, _mm256_min_epi32(q, bound), _mm256_cvtepi16_epi32(same));
        x->doubt |= (_mm_movemask_epi8(neither) & ((1u << 2 * (x->n - first < 8 ? x->n - first : 8)) - 1)) != 0;
    }
    *(__m256i *)(x->old.lane + first) = old;
    *(__m256i *)(x->fix.lane + first) = _mm256_sub_epi32(_mm256_mullo_epi32(corrected, without), _mm256_mullo_epi32(q, m));
    return 1;
#undef OF_ROW
#undef OF_STATE
#undef OF_SCALE
#undef OF_STEPS
}
#undef EACH_OF_EIGHT
#endif

/* Collect tokens of different documents, from one segment and the next. */
INLINE void TARGET(collect)(const token_block *b, const delayed_table *f, scratch *a, int32_t stride,
                            TARGET(cursor) *c) {
    const uint8_t *active = f->active ? f->active + b->first_document : NULL;
    batch *x = a->batch;
    const uint32_t now = ++a->batches;
    int32_t n = 0, done = 0;
    while (n < BATCH) {
        if (c->token == c->end) {
            if (c->segment == b->n_segments) break;
            TARGET(next_segment)(b, f, stride, c);
        }
        const int32_t d = b->document[c->token];
        if (a->last_batch[d] == now) break;
        a->last_batch[d] = now;
        x->token.lane[n] = (int32_t)c->token++;
        x->word.lane[n] = c->word;
        x->random[n] = a->key[d] + c->place;
        x->state[n] = a->state + (size_t)d * stride;
        x->row[n] = f->quantized + (size_t)c->word * stride;
        n += active ? active[d] : 1;
    }
    x->n = n;
    x->doubt = 0;
    for (int32_t i = 0; i < BATCH; i++) x->random[i] = mix64(x->random[i]);
#if SIMD == 1
    if (!active && c->token - n + BATCH <= b->n_tokens)
        while (done < n && TARGET(leave_out_eight)(b, f, x, c->token - n, done)) done += 8;
#endif
    for (; done < n; done++) TARGET(leave_out)(b, f, x, done);
}

#if SIMD == 2
INLINE __m512i TARGET(load_sixteen)(const uint16_t *x) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)x));
}

INLINE u64x8 TARGET(widen)(__m512i x, int half) {
    return (u64x8)_mm512_cvtepu32_epi64(half ? _mm512_extracti32x8_epi32(x, 1) : _mm512_castsi512_si256(x));
}

/* cell[at] of the lanes in the mask, 0 in the others. */
INLINE __m512i TARGET(gather_cells)(__mmask16 mask, __m512i at, const int16_t *cell) {
    const __m512i pair = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), mask, at, cell, 2);
    return _mm512_srai_epi32(_mm512_slli_epi32(pair, 16), 16);
}

/* `leave_out` of sixteen draws, by document, word and steps of its row. */
INLINE void TARGET(leave_out_sixteen)(const token_block *b, const delayed_table *f, const scratch *a, int32_t stride,
                                      uint32_t token, __m512i document, __m512i word, __m512 steps) {
    const __m512i none = _mm512_set1_epi32(UNASSIGNED), wide = _mm512_set1_epi32(stride);
    const __m512i old = TARGET(load_sixteen)(b->topic + token), counted = TARGET(load_sixteen)(b->counted + token);
    const __mmask16 assigned = _mm512_cmpneq_epi32_mask(old, none), same = _mm512_cmpeq_epi32_mask(old, counted);
    const __m512i in_row = _mm512_add_epi32(_mm512_mullo_epi32(word, wide), old);
    const __m512i in_state = _mm512_add_epi32(_mm512_mullo_epi32(document, wide), old);
    const __m512i q = TARGET(gather_cells)(assigned, in_row, f->quantized);
    const __m512i m = TARGET(gather_cells)(assigned, in_state, a->state);
    const __m512i without = _mm512_sub_epi32(m, _mm512_set1_epi32(f->token_weight));
    __m512i corrected = q;
    batch *x = a->batch;
    if (f->self_count > 0) {
        const __m512 step = _mm512_mul_ps(_mm512_mask_i32gather_ps(steps, assigned & same, old, f->scale, 4), steps);
        const __m512 most = _mm512_sub_ps(_mm512_cvtepi32_ps(q), _mm512_mul_ps(step, _mm512_set1_ps(f->self_count)));
        const __m512 least = _mm512_mul_ps(step, _mm512_set1_ps(f->beta));
        corrected = _mm512_add_epi32(_mm512_cvttps_epi32(_mm512_max_ps(most, least)), _mm512_set1_epi32(1));
        corrected = _mm512_mask_min_epi32(q, same, q, corrected);
    }
    x->doubt = f->self_count > 0 && (~same & _mm512_cmpneq_epi32_mask(counted, none));
    _mm512_store_si512(&x->old, _mm512_mask_mov_epi32(_mm512_set1_epi32(-1), assigned, old));
    _mm512_store_si512(&x->fix, _mm512_maskz_sub_epi32(assigned,
        _mm512_mullo_epi32(corrected, without), _mm512_mullo_epi32(q, m)));
}

/* `collect` of sixteen tokens that follow each other, up to the first document that repeats. */
INLINE void TARGET(collect_next)(const token_block *b, const delayed_table *f, scratch *a, int32_t stride,
                                 TARGET(cursor) *c) {
    batch *x = a->batch;
    const uint32_t t = c->token;
    const __m512i document = TARGET(load_sixteen)(b->document + t), twins = _mm512_conflict_epi32(document);
    const int32_t n = __builtin_ctz(_mm512_test_epi32_mask(twins, twins) | 1 << BATCH);
    __m512i word = _mm512_setzero_si512();
    __m512 steps = _mm512_setzero_ps();
    u64x8 place[2] = {{0}};
    for (int32_t i = 0; i < n; i = (int32_t)(c->end - t)) { /* each segment fills all lanes from its first token on */
        const uint32_t from = 65535u << i & 65535;
        if (t + i == c->end) TARGET(next_segment)(b, f, stride, c);
        word = _mm512_mask_set1_epi32(word, (__mmask16)from, c->word);
        steps = _mm512_mask_mov_ps(steps, (__mmask16)from, _mm512_set1_ps(f->steps[c->word]));
        for (int h = 0; h < 2; h++) place[h] = (u64x8)_mm512_mask_set1_epi64(
            (__m512i)place[h], (__mmask8)(from >> 8 * h), (long long)c->place);
    }
    c->token = t + n;
    for (int h = 0; h < 2; h++) {
        const u64x8 wide = TARGET(widen)(document, h);
        *(u64x8 *)(x->random + 8 * h) = TARGET(mix)(
            TARGET(mix)(a->sweep_key ^ (wide + a->first)) + place[h]);
        *(u64x8 *)(x->state + 8 * h) = (uint64_t)a->state + wide * (uint64_t)(2 * stride);
        *(u64x8 *)(x->row + 8 * h) = (uint64_t)f->quantized + TARGET(widen)(word, h) * (uint64_t)(2 * stride);
    }
    x->n = n;
    _mm512_store_si512(&x->word, word);
    _mm512_store_si512(&x->token, (__m512i)((i16)_mm512_set1_epi32((int)t) + lane_number));
    TARGET(leave_out_sixteen)(b, f, a, stride, t, document, word, steps);
}
#endif

/* Sum the products of each draw by lane; keep the sums before the end of each group but the last. */
INLINE void TARGET(add_batch)(const scratch *a, int32_t n, int32_t group) {
    const int32_t groups = (n + group - 1) / group;
    batch *x = a->batch;
    for (int32_t i = 0; i < x->n; i++) {
        const int16_t *r = x->row[i], *s = x->state[i];
        TARGET(some_sums) sum[TARGET(SUMS)] = {0}, *part = (TARGET(some_sums) *)(a->part + i * (groups - 1));
        for (int32_t g = 0; g < groups - 1; g++, part += TARGET(SUMS)) {
            for (int32_t v = 0; v < group; v++, r += 2 * LANES, s += 2 * LANES) TARGET(add_products)(sum, r, s);
            for (int q = 0; q < TARGET(SUMS); q++) part[q] = sum[q];
        }
        for (int32_t v = 0; v < n - (groups - 1) * group; v++, r += 2 * LANES, s += 2 * LANES)
            TARGET(add_products)(sum, r, s);
        for (int q = 0; q < TARGET(SUMS); q++) ((TARGET(some_sums) *)(x->sum + i))[q] = sum[q];
    }
    for (int32_t i = x->n; i < BATCH; i++) { /* of no draw: zeros, which overflow nowhere */
        memset(x->sum + i, 0, sizeof x->sum[i]);
        memset(a->part + i * (groups - 1), 0, (groups - 1) * sizeof a->part[0]);
        x->fix.lane[i] = x->old.lane[i] = 0;
    }
}

/* A search of WIDTH draws, each for the cell that holds its random place: by lane, then by group of vectors, then by
 * vector, then by neighbour. Masks choose, because branches could not be predicted. */
typedef union { TARGET(ints) all; int32_t one[TARGET(WIDTH)]; } TARGET(whole);
typedef struct {
    TARGET(ints) place; /* from the start of the cells that are left */
    TARGET(ints) fix;   /* what the token itself takes from the product of its topic */
    TARGET(ints) old;   /* topic of the token, or -1 */
    TARGET(whole) at;   /* first topic that is left */
} TARGET(search);

/* Whether the place lies beyond the end of a part; then `base` is where the next one starts. */
INLINE TARGET(ints) TARGET(beyond)(TARGET(ints) place, TARGET(ints) end, TARGET(ints) *base) {
    const TARGET(ints) over = place >= end;
    *base += (end - *base) & over;
    return over;
}

/* Draw the place below the sum of all products, and find its lane. */
INLINE TARGET(whole) TARGET(find_lane)(const batch *x, int32_t first, TARGET(search) *s) {
    TARGET(ints) column[LANES], sum = {0}, base = {0};
    TARGET(whole) lane = {.all = {0}};
    TARGET(columns)(x->sum + first, column);
    for (int l = 0; l < LANES; l++) column[l] = sum += column[l] + (s->fix & ((s->old >> 1 & (LANES - 1)) == l));
    s->place = TARGET(random_below)(x->random + first, sum);
    for (int l = 0; l < LANES - 1; l++) lane.all -= TARGET(beyond)(s->place, column[l], &base);
    s->place -= base;
    s->at.all = 2 * lane.all;
    return lane;
}

/* Find the group of vectors, of `group` each, from the sums before their ends. */
INLINE TARGET(ints) TARGET(find_group)(const scratch *a, int32_t first, int32_t groups, int32_t group,
                                       TARGET(whole) lane, TARGET(search) *s) {
    const int32_t wide = 2 * LANES * group;
    const TARGET(ints) old = s->old - s->at.all, fix = s->fix & ((old & (2 * LANES - 1)) < 2); /* of this lane only */
    TARGET(ints) base = {0}, k = {0};
    for (int32_t g = 0; g < groups - 1; g++) {
        TARGET(whole) end;
        for (int i = 0; i < TARGET(WIDTH); i++)
            end.one[i] = ((int32_t *)(a->part + (first + i) * (groups - 1) + g))[lane.one[i]];
        k -= TARGET(beyond)(s->place, end.all + (fix & (old < (g + 1) * wide)), &base);
    }
    s->place -= base;
    s->at.all += k *= wide;
    return k;
}

/* Find the vector, and load its two neighbours q and m. `k` is where the group starts; the row's end may cut it short. */
INLINE void TARGET(find_vector)(const batch *x, int32_t first, int32_t n, int32_t group, TARGET(ints) k,
                                TARGET(search) *s, TARGET(ints) *q, TARGET(ints) *m) {
    const int32_t width = n < group ? n : group;
    const TARGET(ints) old = (s->old - s->at.all) & -2;
    TARGET(whole) row[4], state[4];
    TARGET(ints) sum = {0}, base = {0};
    if (first + TARGET(WIDTH) > x->n) memset(row, 0, sizeof row), memset(state, 0, sizeof state);
    for (int i = 0; i < TARGET(WIDTH) && first + i < x->n; i++) for (int32_t v = 0; v < width; v++) {
        memcpy(row[v].one + i, x->row[first + i] + s->at.one[i] + 2 * LANES * v, 4);
        memcpy(state[v].one + i, x->state[first + i] + s->at.one[i] + 2 * LANES * v, 4);
    }
    *q = row[0].all;
    *m = state[0].all;
    for (int32_t v = 0; v < width - 1; v++) {
        TARGET(ints) product = TARGET(pair_products)(row[v].all, state[v].all) + (s->fix & (old == 2 * LANES * v)), over;
        if (n % group) product &= k + 2 * LANES * v < 2 * LANES * n;
        over = TARGET(beyond)(s->place, sum += product, &base);
        *q ^= (*q ^ row[v + 1].all) & over;
        *m ^= (*m ^ state[v + 1].all) & over;
        s->at.all += 2 * LANES & over;
    }
    s->place -= base;
}

/* Propose topics for WIDTH draws: those whose cells hold the random places. Sets `drawn`, how far `inside` the cells the
 * places lie, and `unsure` where that may be above the exact weight. */
INLINE void TARGET(propose_some)(const scratch *a, int32_t first, int32_t n, int32_t group, int32_t loose) {
    typedef TARGET(ints) ints;
    const int32_t groups = (n + group - 1) / group;
    batch *x = a->batch;
    TARGET(search) s = {.fix = *(ints *)(x->fix.lane + first), .old = *(ints *)(x->old.lane + first)};
    ints k = {0}, q, m, old, end, over;
    const TARGET(whole) lane = TARGET(find_lane)(x, first, &s);
    if (groups > 1) k = TARGET(find_group)(a, first, groups, group, lane, &s);
    TARGET(find_vector)(x, first, n, group, k, &s, &q, &m);
    old = s.old - s.at.all;
    end = TARGET(first_products)(q, m) + (s.fix & (old == 0));
    over = s.place >= end; /* of the two neighbours, the second */
    q ^= (q ^ q >> 16) & over;
    m = (m ^ ((m ^ m >> 16) & over)) & 65535;
    old += over;
    s.place -= end & over;
    *(ints *)(x->drawn.lane + first) = s.at.all - over;
    *(ints *)(x->inside.lane + first) = s.place;
    *(ints *)(x->unsure.lane + first) = s.place >= TARGET(first_products)(q, m - loose) + (s.fix & (old == 0)) - 2 * m;
}

INLINE void TARGET(propose)(const scratch *a, int32_t n, int32_t group, int32_t loose) {
    for (int32_t first = 0; first < a->batch->n; first += TARGET(WIDTH)) TARGET(propose_some)(a, first, n, group, loose);
}

/* The exact weight of a topic for draw i of the batch. */
static float TARGET(weight)(const token_block *b, const delayed_table *f, const batch *x, int32_t i, int32_t k) {
    const int32_t others = x->state[i][k] - f->prior[k] - (k == x->old.lane[i] ? f->token_weight : 0);
    const int is_counted = b->counted[(uint32_t)x->token.lane[i]] == k;
    return exact_weight(f, x->word.lane[i], k, is_counted, others, f->steps[x->word.lane[i]]);
}

/* Invert the exact weights, after too many rejections. */
static __attribute__((noinline, cold)) int32_t TARGET(draw_exactly)(
    const token_block *b, const delayed_table *f, const batch *x, int32_t i, uint64_t random) {
    double total = 0, target;
    int32_t k;
    for (k = 0; k < f->n_topics; k++) total += TARGET(weight)(b, f, x, i, k);
    target = (double)(random >> 11) * 0x1p-53 * total;
    for (k = 0; k < f->n_topics - 1; k++) if ((target -= TARGET(weight)(b, f, x, i, k)) < 0) break;
    return k;
}

/* Whether the place of draw i of the batch lies below the exact weight. */
static __attribute__((noinline)) int TARGET(accept)(const token_block *b, const delayed_table *f, const batch *x,
                                                    int32_t i) {
    uint64_t total = (uint64_t)(int64_t)x->fix.lane[i];
    for (int l = 0; l < LANES; l++) total += (uint64_t)x->sum[i].lane[l];
    return (float)x->inside.lane[i] + (float)(x->random[i] * total >> 40) * 0x1p-24f
        < TARGET(weight)(b, f, x, i, x->drawn.lane[i]);
}

/* New topics of the batch; n vectors of 32 cover the topics. */
INLINE void TARGET(draw_batch)(const token_block *b, const delayed_table *f, const scratch *a, int32_t n, int32_t group) {
    batch *x = a->batch;
    uint32_t rejected = 0;
    TARGET(add_batch)(a, n, group);
    TARGET(propose)(a, n, group, f->loose);
    for (int32_t i = 0; i < x->n; i++) {
        const int32_t doubt = x->doubt && x->drawn.lane[i] == b->counted[(uint32_t)x->token.lane[i]];
        if (__builtin_expect(x->unsure.lane[i] | doubt, 0))
            rejected |= (uint32_t)!TARGET(accept)(b, f, x, i) << i;
    }
    for (int attempt = 1; __builtin_expect(rejected, 0); attempt++) { /* the others come out as before */
        const uint32_t again = rejected;
        for (int32_t i = 0; i < x->n; i++) if (again >> i & 1) x->random[i] = mix64(x->random[i] + GOLDEN);
        if (attempt < PROPOSALS) TARGET(propose)(a, n, group, f->loose);
        for (int32_t i = 0; i < x->n; i++) if (again >> i & 1) {
            if (attempt == PROPOSALS) x->drawn.lane[i] = TARGET(draw_exactly)(b, f, x, i, x->random[i]);
            if (attempt == PROPOSALS || TARGET(accept)(b, f, x, i)) rejected ^= 1u << i;
        }
    }
}

INLINE void TARGET(draw_block)(const token_block *b, const delayed_table *f, scratch *a, int32_t n, int32_t group) {
    TARGET(cursor) c = {.occurrence = {.group = -1}};
    batch *x = a->batch;
    for (int32_t i = 0; i < BATCH; i++) x->state[i] = a->state, x->row[i] = f->quantized, x->word.lane[i] = 0;
    do {
#if SIMD == 2
        if (!f->active && c.token + BATCH <= b->n_tokens && (int64_t)f->n_words * n * 2 * LANES < INT32_MAX)
            TARGET(collect_next)(b, f, a, n * 2 * LANES, &c);
        else
#endif
        TARGET(collect)(b, f, a, n * 2 * LANES, &c);
        TARGET(draw_batch)(b, f, a, n, group);
        for (int32_t i = 0; i < x->n; i++) {
            const int32_t k = x->drawn.lane[i], old = x->old.lane[i];
            if (old >= 0) x->state[i][old] -= f->token_weight;
            x->state[i][k] += f->token_weight;
            b->topic[(uint32_t)x->token.lane[i]] = (uint16_t)k;
        }
    } while (c.token < c.end || c.segment < b->n_segments);
}

static int TARGET(sweep_dense)(const token_block *b, const delayed_table *f, int n_sweeps, scratch *a) {
    const int32_t stride = padded_pairs(f->n_topics), n = stride / (2 * LANES);
    const uint8_t *active = f->active ? f->active + b->first_document : NULL;
    for (int64_t d = 0; d < b->n_documents; d++) if (holds(b, d) && (!active || active[d]))
        memcpy(a->state + d * stride, f->prior, stride * sizeof(int16_t));
    for (int64_t t = 0; t < b->n_tokens; t++) if (b->topic[t] != UNASSIGNED)
        a->state[(size_t)b->document[t] * stride + b->topic[t]] += f->token_weight;
    for (int sweep = 0; sweep < n_sweeps; sweep++) {
        make_keys(b, f, sweep, a);
        memset(a->last_batch, 0, b->n_documents * sizeof(uint32_t));
        a->batches = 0;
#define CASE(n) case n: TARGET(draw_block)(b, f, a, n, 2); break;
        switch (n) { /* a copy for each small number of vectors */
            ONE_TO_EIGHT(CASE)
            default: TARGET(draw_block)(b, f, a, n, 4);
        }
#undef CASE
    }
    return 0;
}
