/* Soft counts of a document, scaled to the norm bound and added to the sum; see variational_step.h. Compiled once for each
 * target: TARGET(name) tells the copies apart.
 */
typedef double TARGET(doubles) __attribute__((vector_size(16 << SIMD)));
typedef int32_t TARGET(half_ints) __attribute__((vector_size(8 << SIMD)));

/* Add what is new in the row of a word to the sum. */
INLINE void TARGET(flush_row)(const variational_problem *p, const soft_sum *s, size_t w) {
    int64_t *to = s->sum + w * p->n_topics;
    int32_t *from = s->recent + w * p->stride;
    for (int32_t k = 0; k < p->n_topics; k++) to[k] += from[k];
    memset(from, 0, p->stride * sizeof(int32_t));
    s->uses[w] = 0;
}

static void TARGET(flush_rows)(const variational_problem *p, const soft_sum *s, int64_t n_words) {
    for (int64_t w = 0; w < n_words; w++) if (s->uses[w]) TARGET(flush_row)(p, s, w);
}

#if SIMD == 2
/* Column l of sixteen vectors, in a[l]: their lanes l. */
INLINE void TARGET(transpose)(TARGET(floats) *a) {
    __m512 x[LANES], y[LANES];
    for (int i = 0; i < LANES; i += 2) {
        x[i] = _mm512_unpacklo_ps((__m512)a[i], (__m512)a[i + 1]);
        x[i + 1] = _mm512_unpackhi_ps((__m512)a[i], (__m512)a[i + 1]);
    }
    for (int i = 0; i < LANES; i += 4) for (int j = 0; j < 2; j++) {
        y[i + 2 * j] = (__m512)_mm512_unpacklo_pd((__m512d)x[i + j], (__m512d)x[i + j + 2]);
        y[i + 2 * j + 1] = (__m512)_mm512_unpackhi_pd((__m512d)x[i + j], (__m512d)x[i + j + 2]);
    }
    for (int i = 0; i < LANES; i += 8) for (int j = 0; j < 4; j++) {
        x[i + j] = _mm512_shuffle_f32x4(y[i + j], y[i + j + 4], 0x88);
        x[i + j + 4] = _mm512_shuffle_f32x4(y[i + j], y[i + j + 4], 0xdd);
    }
    for (int j = 0; j < 8; j++) {
        a[j] = (TARGET(floats))_mm512_shuffle_f32x4(x[j], x[j + 8], 0x88);
        a[j + 8] = (TARGET(floats))_mm512_shuffle_f32x4(x[j], x[j + 8], 0xdd);
    }
}
#endif

/* The sum of squares of `some` words' soft counts: each word's squares are added by lane, then its lanes in order, then
 * words in order. */
INLINE double TARGET(squares)(const document_scratch *a, int64_t first, int32_t some, int32_t n, double sum) {
    enum { STEP = TARGET(REGISTERS) };
    const TARGET(floats) *theta = (const TARGET(floats) *)a->theta;
    const float *ratio = a->ratio + first;
    double of_word[LANES] = {0};
    TARGET(lanes) part[LANES];
    for (int32_t i = 0; i < some; i++) {
        const TARGET(floats) *r = (const TARGET(floats) *)a->row[first + i];
        for (int32_t h = 0; h < STEP; h++) {
            TARGET(floats) squares = {0};
            for (int32_t j = h; j < n * STEP; j += STEP) {
                const TARGET(floats) soft = theta[j] * r[j] * ratio[i];
                squares += soft * soft;
            }
            part[i].part[h] = squares;
        }
    }
#if SIMD == 2
    __m512d total[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()};
    for (int32_t i = some; i < LANES; i++) part[i] = (TARGET(lanes)){.lane = {0}};
    TARGET(transpose)(&part[0].part[0]);
    for (int l = 0; l < LANES; l++) {
        total[0] = _mm512_add_pd(total[0], _mm512_cvtps_pd(_mm512_castps512_ps256((__m512)part[l].part[0])));
        total[1] = _mm512_add_pd(total[1], _mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)part[l].part[0], 1)));
    }
    memcpy(of_word, total, sizeof total);
#else
    for (int32_t i = 0; i < some; i++) for (int l = 0; l < LANES; l++) of_word[i] += part[i].lane[l];
#endif
    for (int32_t i = 0; i < some; i++) sum += ratio[i] > 0 ? of_word[i] : 0;
    return sum;
}

/* Add the cells of a word, which are at most 2^24 + 1, squared. Lanes of `sum` are whole numbers, exact below 2^53. */
INLINE void TARGET(add_squares)(TARGET(ints) cell, TARGET(doubles) *sum) {
#if SIMD == 2
    const __m512i x = (__m512i)cell, odd = _mm512_srli_epi64(x, 32);
    const __m512i both = _mm512_add_epi64(_mm512_mul_epi32(x, x), _mm512_mul_epi32(odd, odd));
    *sum += (TARGET(doubles))_mm512_cvtepi64_pd(both);
#elif SIMD == 1
    const __m256i x = (__m256i)cell, odd = _mm256_srli_epi64(x, 32), at = (__m256i)_mm256_set1_pd(0x1p52);
    const __m256i both = _mm256_add_epi64(_mm256_mul_epi32(x, x), _mm256_mul_epi32(odd, odd)); /* below 2^50 */
    *sum += (TARGET(doubles))((__m256d)_mm256_or_si256(both, at) - (__m256d)at);
#else
    union { TARGET(ints) all; TARGET(half_ints) half[2]; } c = {cell};
    for (int h = 0; h < 2; h++) {
        const TARGET(doubles) x = __builtin_convertvector(c.half[h], TARGET(doubles));
        *sum += x * x;
    }
#endif
}

/* Add `sign` times the soft counts of all words, times the scale, in whole numbers and rounded towards zero; return the
 * sum of their squares. A cell is held at one more than the norm, or minus that, where the norm is exceeded in any case:
 * so a row of the recent sum cannot overflow before it is flushed. */
INLINE double TARGET(add_rounded)(const variational_problem *p, document_scratch *a, const soft_sum *s,
                                  const int32_t *word, int64_t words, int32_t k, int32_t n, float scale, int sign) {
    const TARGET(floats) *theta = (const TARGET(floats) *)a->theta;
    const TARGET(ints) most = (TARGET(ints)){0} + (int32_t)(p->norm + 1);
    TARGET(doubles) squares = {0};
    double exact = 0;
    for (int64_t i = 0; i < words; i++) {
        const TARGET(floats) *r = (const TARGET(floats) *)a->row[i];
        const float by = a->ratio[i] * scale;
        const size_t w = (size_t)word[i];
        int32_t *to = s->recent + w * p->stride;
        if (i + 1 < words) {
            const char *next = (const char *)(s->recent + (size_t)word[i + 1] * p->stride);
            for (int32_t j = 0; j < p->stride; j += LANES) __builtin_prefetch(next + 4 * j, 1);
        }
        if (!(by > 0 && by < 3e38f)) continue; /* a word that no topic explains; of others all products are finite */
        for (int32_t j = 0; j < n * TARGET(REGISTERS); j++) {
            const TARGET(floats) soft = theta[j] * r[j] * by;
            TARGET(ints) cell = __builtin_convertvector(soft, TARGET(ints));
#if SIMD == 1
            cell = (TARGET(ints))_mm256_max_epi32(_mm256_min_epi32((__m256i)cell, (__m256i)most), (__m256i)-most);
#else
            const TARGET(ints) over = cell > most, under = cell < -most;
            cell = (cell & ~(over | under)) | (most & over) | (-most & under);
#endif
            TARGET(add_squares)(cell, &squares);
            if (k == p->n_topics) ((TARGET(ints) *)to)[j] += sign > 0 ? cell : -cell; /* none was dropped */
            else ((TARGET(ints) *)a->cell)[j] = cell;
        }
        if (k < p->n_topics) for (int32_t j = 0; j < k; j++) to[a->topic[j]] += sign * a->cell[j];
        if (++s->uses[w] == s->most_uses) TARGET(flush_row)(p, s, w);
    }
    for (int j = 0; j < 2 << SIMD; j++) exact += squares[j];
    return exact;
}

static __attribute__((noinline)) double TARGET(add_rounded_any)(
    const variational_problem *p, document_scratch *a, const soft_sum *s, const int32_t *word, int64_t words, int32_t k,
    float scale, int sign) {
#define CASE(n) case n: return TARGET(add_rounded)(p, a, s, word, words, k, n, scale, sign);
    switch (padded(k) / LANES) { /* a copy for each small number of vectors */
        ONE_TO_EIGHT(CASE)
        default: return TARGET(add_rounded)(p, a, s, word, words, k, padded(k) / LANES, scale, sign);
    }
#undef CASE
}

/* Take them back. */
static __attribute__((noinline, cold)) void TARGET(take_back)(
    const variational_problem *p, document_scratch *a, const soft_sum *s, const int32_t *word, int64_t words, int32_t k,
    float scale) {
    TARGET(add_rounded)(p, a, s, word, words, k, padded(k) / LANES, scale, -1);
}

/* Add the soft counts to the sum, scaled to the norm bound p->norm, in fixed point. The norm is checked in integers, where
 * it is exact: if rounding should exceed it, a smaller scale is tried, and after three attempts nothing is added.
 * `squares` is the sum of their squares before that. */
static __attribute__((noinline)) void TARGET(add_scaled_soft_counts)(
    const variational_problem *p, document_scratch *a, const soft_sum *s, const int32_t *word, int64_t words, int32_t k,
    double squares) {
    const double most = (double)p->norm * (double)p->norm;
    float scale;
    if (!(squares > 0)) return;
    scale = (float)((double)p->norm * (1 - 1e-5) / __builtin_sqrt(squares));
    for (int attempt = 0; attempt < 3; attempt++, scale *= 0.99f) {
        if (TARGET(add_rounded_any)(p, a, s, word, words, k, scale, 1) <= most) return;
        TARGET(take_back)(p, a, s, word, words, k, scale);
    }
}

/* Add the soft counts of a document to those of its unit. */
static __attribute__((noinline)) void TARGET(add_to_unit)(const variational_problem *p, const document_scratch *a, unit_sum *u,
                                                          const int32_t *word, int64_t words, int32_t k) {
    for (int64_t i = 0; i < words; i++) {
        const float *row = a->row[i], by = a->ratio[i];
        float *to;
        if (!(by > 0 && by < 3e38f)) continue; /* a word that no topic explains */
        if (u->place[word[i]] < 0) {
            memset(u->rows->block + u->n * p->stride, 0, p->stride * sizeof(float));
            u->word[u->n] = word[i];
            u->place[word[i]] = (int32_t)u->n++;
        }
        to = u->rows->block + (size_t)u->place[word[i]] * p->stride;
        for (int32_t j = 0; j < k; j++) to[a->topic[j]] += a->theta[j] * row[j] * by;
    }
}

/* Add the soft counts of a unit to the sum, as if they were those of one document, and forget them. */
static void TARGET(add_scaled_unit)(const variational_problem *p, unit_sum *u, const soft_sum *s) {
    const int32_t n = p->stride / LANES;
    document_scratch *a = u->rows;
    double squares = 0;
    for (int32_t j = 0; j < p->stride; j++) a->theta[j] = 1;
    for (int64_t i = 0; i < u->n; i++) {
        a->row[i] = a->block + i * p->stride;
        a->ratio[i] = 1;
        u->place[u->word[i]] = -1;
    }
    for (int64_t i = 0; i < u->n; i += LANES)
        squares = TARGET(squares)(a, i, u->n - i < LANES ? (int32_t)(u->n - i) : LANES, n, squares);
    TARGET(add_scaled_soft_counts)(p, a, s, u->word, u->n, p->n_topics, squares);
    u->n = 0;
}

/* Weigh the ratios of `some` words, and return their soft counts' squares, added to the sum. */
INLINE double TARGET(weighed)(const variational_problem *p, document_scratch *a, const int32_t *word, int64_t first,
                              int32_t some, int32_t n, double sum) {
    if (p->word_weight) for (int64_t i = first; i < first + some; i++) a->ratio[i] *= p->word_weight[word[i]];
    return TARGET(squares)(a, first, some, n, sum);
}
