/* What a document gathers from the rows of its words; see document_scratch.h. Compiled once for each target.
 *
 * Sixteen lanes are so many registers of the target: GCC keeps longer vectors in memory.
 */
enum { TARGET(REGISTERS) = 4 >> SIMD };
typedef float TARGET(floats) __attribute__((vector_size(16 << SIMD), may_alias));
typedef int32_t TARGET(ints) __attribute__((vector_size(16 << SIMD), may_alias));
typedef union { TARGET(floats) part[TARGET(REGISTERS)]; float lane[LANES]; } TARGET(lanes);

/* The larger of two numbers, b where one is no number. */
INLINE TARGET(floats) TARGET(larger)(TARGET(floats) a, TARGET(floats) b) {
#if SIMD == 2
    return (TARGET(floats))_mm512_max_ps((__m512)a, (__m512)b);
#elif SIMD == 1
    return (TARGET(floats))_mm256_max_ps((__m256)a, (__m256)b);
#else
    const TARGET(ints) more = a > b;
    return (TARGET(floats))(((TARGET(ints))a & more) | ((TARGET(ints))b & ~more));
#endif
}

/* In each quarter of four lanes, those of a (0 to 3) and of b (4 to 7) that are named. */
#define PICK(q, e) ((e) < 4 ? 4 * (q) + (e) : (4 << SIMD) + 4 * (q) + (e) - 4)
#define PICK_FOUR(q, e, f, g, h) PICK(q, e), PICK(q, f), PICK(q, g), PICK(q, h)
#if SIMD == 2
#define PICKED(a, b, ...) SHUFFLE(TARGET(ints), a, b, PICK_FOUR(0, __VA_ARGS__), PICK_FOUR(1, __VA_ARGS__), \
                                  PICK_FOUR(2, __VA_ARGS__), PICK_FOUR(3, __VA_ARGS__))
#elif SIMD == 1
#define PICKED(a, b, ...) SHUFFLE(TARGET(ints), a, b, PICK_FOUR(0, __VA_ARGS__), PICK_FOUR(1, __VA_ARGS__))
#else
#define PICKED(a, b, ...) SHUFFLE(TARGET(ints), a, b, PICK_FOUR(0, __VA_ARGS__))
#endif

/* The sums of the lanes of four rows, of which there are sixteen each. */
INLINE v4 TARGET(four_totals)(TARGET(floats) sum[TARGET(REGISTERS)][4]) {
    enum { STEP = TARGET(REGISTERS) };
    TARGET(floats) quarter[STEP];
    for (int32_t part = 0; part < STEP; part++) {
        const TARGET(floats) *one = sum[part];
        TARGET(floats) two[2];
        for (int i = 0; i < 2; i++)
            two[i] = PICKED(one[2 * i], one[2 * i + 1], 0, 4, 1, 5) + PICKED(one[2 * i], one[2 * i + 1], 2, 6, 3, 7);
        quarter[part] = PICKED(two[0], two[1], 0, 1, 4, 5) + PICKED(two[0], two[1], 2, 3, 6, 7);
    }
#if SIMD /* quarters 0 and 2, 1 and 3, and then both */
#if SIMD == 2
    const __m256 half = _mm512_castps512_ps256((__m512)quarter[0]) + _mm512_extractf32x8_ps((__m512)quarter[0], 1);
#else
    const __m256 half = (__m256)quarter[0] + (__m256)quarter[1];
#endif
    return _mm256_castps256_ps128(half) + _mm256_extractf128_ps(half, 1);
#else
    return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
#endif
}

/* Turn each quarter of four vectors: number m of the four then has, in quarter q, lane 4 q + m of each. */
INLINE void TARGET(turn)(TARGET(floats) *x) {
    TARGET(floats) y[4];
    for (int i = 0; i < 2; i++) {
        y[i] = PICKED(x[2 * i], x[2 * i + 1], 0, 4, 1, 5);
        y[i + 2] = PICKED(x[2 * i], x[2 * i + 1], 2, 6, 3, 7);
    }
    for (int i = 0; i < 2; i++) {
        x[2 * i] = PICKED(y[2 * i], y[2 * i + 1], 0, 1, 4, 5);
        x[2 * i + 1] = PICKED(y[2 * i], y[2 * i + 1], 2, 3, 6, 7);
    }
}

/* Sums over k of theta[k] row[k] of four rows, of `n` vectors of sixteen lanes. */
INLINE v4 TARGET(four_sums)(const float *const *row, const float *theta, int32_t n) {
    enum { STEP = TARGET(REGISTERS) };
    const TARGET(floats) *weight = (const TARGET(floats) *)theta;
    TARGET(floats) sum[STEP][4];
    for (int32_t part = 0; part < STEP; part++) {
        for (int i = 0; i < 4; i++) sum[part][i] = ((const TARGET(floats) *)row[i])[part] * weight[part];
        for (int32_t j = part + STEP; j < n * STEP; j += STEP)
            for (int i = 0; i < 4; i++) sum[part][i] += ((const TARGET(floats) *)row[i])[j] * weight[j];
    }
    return TARGET(four_totals)(sum);
}
#undef PICK
#undef PICK_FOUR
#undef PICKED

/* Four of `some` rows, from number i on; in the place of one beyond, that of number i. */
INLINE void TARGET(four_rows)(const float *const *row, int32_t i, int32_t some, const float **four) {
    for (int32_t j = 0; j < 4; j++) four[j] = row[i + j < some ? i + j : i];
}

/* counts / t, 0 where t is no positive number. */
INLINE v4 TARGET(quotients)(const float *counts, v4 t) {
    const v4 quotient = *(const v4 *)counts / t;
    return (v4)((i4)quotient & (t > 0) & (quotient < 3e38f));
}

/* total += ratio[w] row_w of `some` words, for `n` registers, which stay where they are meanwhile. */
INLINE void TARGET(add_rows)(const float *const *row, const float *ratio, int32_t some, int32_t n, int32_t first, float *total) {
    TARGET(floats) *to = (TARGET(floats) *)total + first, held[FEW];
    for (int32_t j = 0; j < n; j++) held[j] = to[j];
    for (int32_t i = 0; i < some; i++) {
        const TARGET(floats) *r = (const TARGET(floats) *)row[i] + first;
        for (int32_t j = 0; j < n; j++) held[j] += ratio[i] * r[j];
    }
    for (int32_t j = 0; j < n; j++) to[j] = held[j];
}

/* The same for `n` vectors of sixteen lanes. */
INLINE void TARGET(add_all)(const float *const *row, const float *ratio, int32_t some, int32_t n, float *total) {
    const int32_t all = n * TARGET(REGISTERS);
    int32_t first = 0;
    for (; first + FEW <= all; first += FEW) TARGET(add_rows)(row, ratio, some, FEW, first, total);
    if (all & 4) TARGET(add_rows)(row, ratio, some, 4, first, total), first += 4;
    if (all & 2) TARGET(add_rows)(row, ratio, some, 2, first, total), first += 2;
    if (all & 1) TARGET(add_rows)(row, ratio, some, 1, first, total);
}

/* ratio[w] = count[w] / t_w (0 where t_w is no positive number), total = sum_w ratio[w] row_w. `n` vectors a row. */
INLINE void TARGET(gather)(document_scratch *a, int64_t words, int32_t n) {
    memset(a->total, 0, n * LANES * sizeof(float));
    for (int64_t first = 0; first < words; first += LANES) {
        const int32_t some = words - first < LANES ? (int32_t)(words - first) : LANES;
        const float **row = a->row + first, *four[4];
        float *ratio = a->ratio + first;
        for (int32_t i = 0; i < some; i += 4) {
            TARGET(four_rows)(row, i, some, four);
            *(v4 *)(ratio + i) = TARGET(quotients)(a->count + first + i, TARGET(four_sums)(four, a->theta, n));
        }
        TARGET(add_all)(row, ratio, some, n, a->total);
    }
}

INLINE void TARGET(gather_any)(document_scratch *a, int64_t words, int32_t n) {
#define CASE(n) case n: TARGET(gather)(a, words, n); break;
    switch (n) { /* a copy for each small number of vectors */
        ONE_TO_EIGHT(CASE)
        default: TARGET(gather)(a, words, n);
    }
#undef CASE
}

/* Note the counts of a document's words; returns their sum. */
INLINE float TARGET(note_counts)(document_scratch *a, const int32_t *counts, int64_t words) {
    float length = 0;
    for (int64_t i = 0; i < words; i++) length += a->count[i] = (float)counts[i];
    for (int64_t i = words; i % LANES; i++) a->count[i] = 0;
    return length;
}
