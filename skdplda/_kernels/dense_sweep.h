/* Sweep of a block whose documents hold one small integer a topic; for up to DENSE_TOPICS topics.
 *
 * A draw is proposed in whole numbers and accepted in exact ones. A document holds
 * m[k] = unit n_dk + ceil(unit alpha[k]), and a word q[k] = what its row is at most, in steps of 2^-15 of the largest;
 * so q[k] m[k] bounds the weight from above, tightly, and one instruction adds the products of 32 topics. The place of
 * a draw inside the cell of its topic is uniform, so the draw is accepted if that place lies below the exact weight.
 * Most draws lie below a bound of integers and need no exact weight; else a rejected one is repeated. The law is exact,
 * and no sum is ever rounded.
 *
 * One draw is a chain of more than 100 cycles. Draws of different documents do not depend on each other, so a batch of
 * them goes through each stage together: the products draw by draw, the search with one draw in each lane of a
 * register. The token itself is left out of one number (fix), not of the vectors in memory: a vector load right after
 * a scalar store would stall.
 *
 * Compiled once for each target: TARGET(name) tells the copies apart.
 */

/* The bounds q of a word's row, and how many of its steps are 1. */
INLINE void TARGET(quantize_row)(const frozen_table *f, int32_t w, float *row) {
    const int32_t stride = padded_pairs(f->n_topics), filled = padded(f->n_topics);
    int16_t *q = f->quantized + (size_t)w * stride;
    float most[LANES] = {0}, steps;
    TARGET(make_row)(f, w, row);
    for (int32_t k = 0; k < filled; k += LANES)
        for (int j = 0; j < LANES; j++) most[j] = row[k + j] > most[j] ? row[k + j] : most[j];
    for (int j = 1; j < LANES; j++) most[0] = most[j] > most[0] ? most[j] : most[0];
    steps = f->steps[w] = MOST_STEPS / most[0];
    for (int32_t k = 0; k < filled; k++) q[k] = (int16_t)((int32_t)(row[k] * steps) + 1);
    for (int32_t k = f->n_topics; k < stride; k++) q[k] = 0;
}

static void TARGET(quantize_rows)(const frozen_table *f, int32_t first, int32_t last, float *row) {
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

INLINE void TARGET(next_segment)(const token_block *b, const frozen_table *f, int32_t stride, TARGET(cursor) *c) {
    c->word = b->word[c->segment];
    c->end = b->start[++c->segment];
    c->place = place_of(b, &c->occurrence, c->word) * GOLDEN;
    if (stride >= 512 && c->segment < b->n_segments) { /* to the second-level cache, while this word is drawn */
        const char *row = (const char *)(f->quantized + (size_t)b->word[c->segment] * stride);
        for (int32_t j = 0; j < stride * 2; j += 64) __builtin_prefetch(row + j, 0, 2);
    }
}

/* Collect tokens of different documents, from one segment and the next. */
INLINE void TARGET(collect)(const token_block *b, const frozen_table *f, scratch *a, int32_t stride,
                            TARGET(cursor) *c) {
    const uint8_t *active = f->active ? f->active + b->first_document : NULL;
    const float own = f->own;
    batch *x = a->batch;
    const uint32_t now = ++a->batches;
    int32_t n = 0;
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
    for (int32_t i = 0; i < n; i++) {
        const uint32_t token = (uint32_t)x->token.lane[i];
        const int32_t old = b->topic[token], was = b->reference[token];
        x->old.lane[i] = -1;
        x->fix.lane[i] = 0;
        x->doubt |= own > 0 && was != old && was != UNASSIGNED;
        if (old != UNASSIGNED) {
            int32_t q = x->row[i][old], m = x->state[i][old], less = q;
            if (own > 0 && was == old) { /* q of the row without the token itself */
                const float step = f->scale[old] * f->steps[x->word.lane[i]];
                const float least = step * f->beta, most = (float)q - step * own;
                less = (int32_t)(most > least ? most : least) + 1;
                less -= (less - q) & -(less > q);
            }
            x->old.lane[i] = old;
            x->fix.lane[i] = less * (m - f->unit) - q * m;
        }
    }
}

#if SIMD == 2
/* `collect` of sixteen tokens that follow each other, up to the first document that repeats. */
INLINE void TARGET(collect_next)(const token_block *b, const frozen_table *f, scratch *a, int32_t stride,
                                 TARGET(cursor) *c) {
    batch *x = a->batch;
    const uint32_t t = c->token;
    const __m512i d = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)(b->document + t)));
    const __m512i old = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)(b->topic + t)));
    const __m512i was = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)(b->reference + t)));
    const __m512i none = _mm512_set1_epi32(UNASSIGNED), zero = _mm512_setzero_si512();
    const __mmask16 assigned = _mm512_cmpneq_epi32_mask(old, none), same = _mm512_cmpeq_epi32_mask(old, was);
    const __m512i twins = _mm512_conflict_epi32(d);
    const int32_t n = __builtin_ctz(_mm512_test_epi32_mask(twins, twins) | 1 << BATCH);
    const __m512i cell = _mm512_add_epi32(_mm512_mullo_epi32(d, _mm512_set1_epi32(stride)), old);
    __m512i word = zero, q, m, less;
    __m512 steps = _mm512_setzero_ps(), step;
    u64x8 place[2] = {{0}};
    for (int32_t i = 0; i < n; i = (int32_t)(c->end - t)) { /* segments */
        if (t + i == c->end) TARGET(next_segment)(b, f, stride, c);
        word = _mm512_mask_set1_epi32(word, (__mmask16)(-1 << i), c->word);
        steps = _mm512_mask_mov_ps(steps, (__mmask16)(-1 << i), _mm512_set1_ps(f->steps[c->word]));
        for (int h = 0; h < 2; h++) place[h] = (u64x8)_mm512_mask_set1_epi64(
            (__m512i)place[h], (__mmask8)((-1 << i & 65535) >> 8 * h), (long long)c->place);
    }
    c->token = t + n;
    for (int h = 0; h < 2; h++) {
        const __m256i number = h ? _mm512_extracti32x8_epi32(d, 1) : _mm512_castsi512_si256(d);
        const __m256i of_word = h ? _mm512_extracti32x8_epi32(word, 1) : _mm512_castsi512_si256(word);
        const u64x8 wide = (u64x8)_mm512_cvtepu32_epi64(number);
        *(u64x8 *)(x->random + 8 * h) = TARGET(mix)(
            TARGET(mix)(a->sweep_key ^ (wide + a->first)) + place[h]);
        *(u64x8 *)(x->state + 8 * h) = (uint64_t)a->state + wide * (uint64_t)(2 * stride);
        *(u64x8 *)(x->row + 8 * h) = (uint64_t)f->quantized
            + (u64x8)_mm512_cvtepu32_epi64(of_word) * (uint64_t)(2 * stride);
    }
    _mm512_store_si512(&x->word, word);
    _mm512_store_si512(&x->token, (__m512i)((i16)_mm512_set1_epi32((int)t) + lane_number));
    q = _mm512_add_epi32(_mm512_mullo_epi32(word, _mm512_set1_epi32(stride)), old);
    q = _mm512_mask_i32gather_epi32(zero, assigned, q, f->quantized, 2);
    m = _mm512_mask_i32gather_epi32(zero, assigned, cell, a->state, 2);
    q = _mm512_srai_epi32(_mm512_slli_epi32(q, 16), 16);
    m = _mm512_srai_epi32(_mm512_slli_epi32(m, 16), 16);
    less = q;
    if (f->own > 0) {
        const __m512 scale = _mm512_mask_i32gather_ps(steps, assigned & same, old, f->scale, 4);
        step = _mm512_mul_ps(scale, steps);
        less = _mm512_cvttps_epi32(_mm512_max_ps(
            _mm512_sub_ps(_mm512_cvtepi32_ps(q), _mm512_mul_ps(step, _mm512_set1_ps(f->own))),
            _mm512_mul_ps(step, _mm512_set1_ps(f->beta))));
        less = _mm512_mask_min_epi32(q, same, q, _mm512_add_epi32(less, _mm512_set1_epi32(1)));
    }
    x->n = n;
    x->doubt = f->own > 0 && (~same & _mm512_cmpneq_epi32_mask(was, none));
    _mm512_store_si512(&x->old, _mm512_mask_mov_epi32(_mm512_set1_epi32(-1), assigned, old));
    _mm512_store_si512(&x->fix, _mm512_maskz_sub_epi32(assigned,
        _mm512_mullo_epi32(less, _mm512_sub_epi32(m, _mm512_set1_epi32(f->unit))), _mm512_mullo_epi32(q, m)));
}
#endif

/* The exact weight of a topic, in the units of the products. */
static float TARGET(weight)(const token_block *b, const frozen_table *f, const batch *x, int32_t i, int32_t k) {
    const int32_t w = x->word.lane[i];
    const size_t cell = (size_t)w * f->n_topics + k;
    float count = f->counts ? (float)f->counts[cell] : f->table[cell];
    if (b->reference[(uint32_t)x->token.lane[i]] == k) count = count > f->own ? count - f->own : 0;
    return (count + f->beta) * f->scale[k] * f->steps[w]
        * ((float)(x->state[i][k] - f->prior[k] - (k == x->old.lane[i] ? f->unit : 0)) + f->alpha[k] * f->unit);
}

/* A topic drawn without a proposal: where proposals fail. */
static __attribute__((noinline, cold)) int32_t TARGET(draw_exactly)(
    const token_block *b, const frozen_table *f, const batch *x, int32_t i, uint64_t random) {
    double total = 0, target;
    int32_t k;
    for (k = 0; k < f->n_topics; k++) total += TARGET(weight)(b, f, x, i, k);
    target = (double)(random >> 11) * 0x1p-53 * total;
    for (k = 0; k < f->n_topics - 1; k++) if ((target -= TARGET(weight)(b, f, x, i, k)) < 0) break;
    return k;
}

/* Sum the products of each draw by lane; keep the sums before the end of each group but the last. */
INLINE void TARGET(add_batch)(const scratch *a, int32_t n, int32_t group) {
    const int32_t groups = (n + group - 1) / group;
    batch *x = a->batch;
    for (int32_t i = 0; i < x->n; i++) {
        const int16_t *r = x->row[i], *s = x->state[i];
        TARGET(sums) sum = {0}, *part = (TARGET(sums) *)(a->part + i * (groups - 1));
        for (int32_t g = 0; g < groups - 1; g++) {
            for (int32_t v = 0; v < group; v++, r += 2 * LANES, s += 2 * LANES) sum = TARGET(add_products)(sum, r, s);
            part[g] = sum;
        }
        for (int32_t v = 0; v < n - (groups - 1) * group; v++, r += 2 * LANES, s += 2 * LANES)
            sum = TARGET(add_products)(sum, r, s);
        memcpy(x->sum + i, &sum, sizeof sum);
    }
}

/* Propose topics for WIDTH draws: those whose cells hold the random places. Found by lane, then group of vectors, then
 * vector, then neighbour; masks choose, because branches would be coin tosses. Sets `drawn`, how far `inside` the cells
 * the places lie, and `unsure` where that may be above the exact weight. */
INLINE void TARGET(propose_some)(const scratch *a, int32_t first, int32_t n, int32_t group, int32_t loose) {
    typedef TARGET(ints) ints;
    typedef union { ints all; int32_t one[TARGET(WIDTH)]; } whole;
    const int32_t groups = (n + group - 1) / group, wide = 2 * LANES * group, width = n < group ? n : group;
    batch *x = a->batch;
    const ints fix = *(ints *)(x->fix.lane + first), token_old = *(ints *)(x->old.lane + first);
    ints column[LANES], sum = {0}, base = {0}, k = {0}, old, over, target, q, m;
    whole lane = {.all = {0}}, at, row[4], state[4];
    TARGET(columns)(x->sum + first, column);
    for (int l = 0; l < LANES; l++) column[l] = sum += column[l] + (fix & ((token_old >> 1 & (LANES - 1)) == l));
    target = TARGET(shares)(x->random + first, sum);
    for (int l = 0; l < LANES - 1; l++) {
        over = target >= column[l];
        lane.all -= over;
        base += (column[l] - base) & over;
    }
    target -= base;
    old = token_old - 2 * lane.all; /* from the cell where the search stands */
    if (groups > 1) {
        const ints fix_lane = fix & ((old & (2 * LANES - 1)) < 2);
        base ^= base;
        for (int32_t g = 0; g < groups - 1; g++) {
            whole end;
            for (int i = 0; i < TARGET(WIDTH); i++) end.one[i] = ((int32_t *)(a->part + (first + i) * (groups - 1) + g))[lane.one[i]];
            end.all += fix_lane & (old < (g + 1) * wide);
            over = target >= end.all;
            base += (end.all - base) & over;
            k -= over;
        }
        target -= base;
        k *= wide;
        old -= k;
    }
    at.all = 2 * lane.all + k;
    for (int i = 0; i < TARGET(WIDTH) && first + i < x->n; i++) for (int32_t v = 0; v < width; v++) {
        memcpy(row[v].one + i, x->row[first + i] + at.one[i] + 2 * LANES * v, 4);
        memcpy(state[v].one + i, x->state[first + i] + at.one[i] + 2 * LANES * v, 4);
    }
    q = row[0].all;
    m = state[0].all;
    sum ^= sum;
    base ^= base;
    for (int32_t v = 0; v < width - 1; v++) {
        ints product = TARGET(pair_products)(row[v].all, state[v].all) + (fix & ((old & -2) == 2 * LANES * v));
        if (n % group) product &= k + 2 * LANES * v < 2 * LANES * n; /* the last group may be cut short by the row's end */
        sum += product;
        over = target >= sum;
        base += (sum - base) & over;
        q ^= (q ^ row[v + 1].all) & over;
        m ^= (m ^ state[v + 1].all) & over;
        at.all += 2 * LANES & over;
    }
    old = token_old - at.all;
    target -= base;
    sum = TARGET(first_products)(q, m) + (fix & (old == 0));
    over = target >= sum;
    q ^= (q ^ q >> 16) & over;
    m = (m ^ ((m ^ m >> 16) & over)) & 65535;
    old += over;
    *(ints *)(x->drawn.lane + first) = at.all - over;
    *(ints *)(x->inside.lane + first) = target -= sum & over;
    *(ints *)(x->unsure.lane + first) = target >= TARGET(first_products)(q, m - loose) + (fix & (old == 0)) - 2 * m;
}

INLINE void TARGET(propose)(const scratch *a, int32_t n, int32_t group, int32_t loose) {
    for (int32_t first = 0; first < a->batch->n; first += TARGET(WIDTH)) TARGET(propose_some)(a, first, n, group, loose);
}

/* Whether the place of draw i of the batch lies below the exact weight. */
static __attribute__((noinline)) int TARGET(accept)(const token_block *b, const frozen_table *f, const batch *x,
                                                    int32_t i) {
    uint64_t total = (uint64_t)(int64_t)x->fix.lane[i];
    for (int l = 0; l < LANES; l++) total += (uint64_t)x->sum[i].lane[l];
    return (float)x->inside.lane[i] + (float)(x->random[i] * total >> 40) * 0x1p-24f
        < TARGET(weight)(b, f, x, i, x->drawn.lane[i]);
}

/* New topics of the batch; n vectors of 32 cover the topics. */
INLINE void TARGET(draw_batch)(const token_block *b, const frozen_table *f, const scratch *a, int32_t n, int32_t group) {
    batch *x = a->batch;
    uint32_t rejected = 0;
    TARGET(add_batch)(a, n, group);
    TARGET(propose)(a, n, group, f->loose);
    for (int32_t i = 0; i < x->n; i++) {
        const int32_t doubt = x->doubt && x->drawn.lane[i] == b->reference[(uint32_t)x->token.lane[i]];
        if (__builtin_expect(x->unsure.lane[i] | doubt, 0))
            rejected |= (uint32_t)!TARGET(accept)(b, f, x, i) << i;
    }
    for (int attempt = 1; __builtin_expect(rejected, 0); attempt++) { /* the others come out as before */
        const uint32_t again = rejected;
        for (int32_t i = 0; i < x->n; i++) if (again >> i & 1) x->random[i] = mix64(x->random[i] + GOLDEN);
        if (attempt < 16) TARGET(propose)(a, n, group, f->loose);
        for (int32_t i = 0; i < x->n; i++) if (again >> i & 1) {
            if (attempt == 16) x->drawn.lane[i] = TARGET(draw_exactly)(b, f, x, i, x->random[i]);
            if (attempt == 16 || TARGET(accept)(b, f, x, i)) rejected ^= 1u << i;
        }
    }
}

INLINE void TARGET(draw_block)(const token_block *b, const frozen_table *f, scratch *a, int32_t n, int32_t group) {
    TARGET(cursor) c = {.occurrence = {.group = -1}};
    batch *x = a->batch;
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
            if (old >= 0) x->state[i][old] -= f->unit;
            x->state[i][k] += f->unit;
            b->topic[(uint32_t)x->token.lane[i]] = (uint16_t)k;
        }
    } while (c.token < c.end || c.segment < b->n_segments);
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
        memset(a->last_batch, 0, b->n_documents * sizeof(uint32_t));
        a->batches = 0;
        switch (n) {
        case 1: TARGET(draw_block)(b, f, a, 1, 2); break;
        case 2: TARGET(draw_block)(b, f, a, 2, 2); break;
        case 3: TARGET(draw_block)(b, f, a, 3, 2); break;
        case 4: TARGET(draw_block)(b, f, a, 4, 2); break;
        case 5: TARGET(draw_block)(b, f, a, 5, 2); break;
        case 6: TARGET(draw_block)(b, f, a, 6, 2); break;
        case 7: TARGET(draw_block)(b, f, a, 7, 2); break;
        case 8: TARGET(draw_block)(b, f, a, 8, 2); break;
        default: TARGET(draw_block)(b, f, a, n, 4);
        }
    }
    return 0;
}
