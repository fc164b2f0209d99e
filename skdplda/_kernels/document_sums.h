/* What a document gathers from the rows of its words; see document_scratch.h. Compiled once for each target. */

/* Sums of the lanes of sixteen vectors, one in each lane of the result. */
INLINE v16 TARGET(sums)(v16 *a) {
    for (int i = 0; i < 8; i++)
        a[i] = SHUFFLE(i16, a[2 * i], a[2 * i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
             + SHUFFLE(i16, a[2 * i], a[2 * i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    for (int i = 0; i < 4; i++)
        a[i] = SHUFFLE(i16, a[2 * i], a[2 * i + 1], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
             + SHUFFLE(i16, a[2 * i], a[2 * i + 1], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    for (int i = 0; i < 2; i++)
        a[i] = SHUFFLE(i16, a[2 * i], a[2 * i + 1], 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23)
             + SHUFFLE(i16, a[2 * i], a[2 * i + 1], 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    return SHUFFLE(i16, a[0], a[1], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
         + SHUFFLE(i16, a[0], a[1], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
}

/* t_w = sum_k theta[k] B[w, k] of `some` words, in the lanes. */
INLINE v16 TARGET(explained)(const float **row, const v16 *theta, int32_t some, int32_t n) {
    v16 part[LANES];
    for (int32_t i = 0; i < some; i++) {
        const v16 *r = (const v16 *)row[i];
        v16 product = r[0] * theta[0];
        for (int32_t j = 1; j < n; j++) product += r[j] * theta[j];
        part[i] = product;
    }
    for (int32_t i = some; i < LANES; i++) part[i] = (v16){0};
    return TARGET(sums)(part);
}

/* Counts of `some` words, in the lanes. */
INLINE v16 TARGET(in_lanes)(const int32_t *counts, int32_t some) {
    lanes c = {.all = {0}};
    for (int32_t i = 0; i < some; i++) c.lane[i] = (float)counts[i];
    return c.all;
}

/* ratio[w] = counts[w] / t_w (0 where t_w is no positive number), total = sum_w ratio[w] row_w. `n` vectors a row. */
INLINE void TARGET(gather)(document_scratch *a, const int32_t *counts, int64_t words, int32_t n) {
    const v16 *theta = (const v16 *)a->theta;
    v16 *total = (v16 *)a->total, held[FEW];
    for (int32_t j = 0; j < n; j++) total[j] = (v16){0};
    if (n <= FEW) for (int32_t j = 0; j < n; j++) held[j] = (v16){0};
    for (int64_t first = 0; first < words; first += LANES) {
        const int32_t some = words - first < LANES ? (int32_t)(words - first) : LANES;
        const float **row = a->row + first;
        lanes ratio;
        const v16 t = TARGET(explained)(row, theta, some, n);
        const v16 quotient = TARGET(in_lanes)(counts + first, some) / t;
        ratio.all = (v16)((i16)quotient & (t > 0) & (quotient < 3e38f));
        *(v16 *)(a->ratio + first) = ratio.all;
        for (int32_t i = 0; i < some; i++) {
            const v16 *r = (const v16 *)row[i];
            if (n <= FEW) for (int32_t j = 0; j < n; j++) held[j] += ratio.lane[i] * r[j];
            else for (int32_t j = 0; j < n; j++) total[j] += ratio.lane[i] * r[j];
        }
    }
    if (n <= FEW) for (int32_t j = 0; j < n; j++) total[j] = held[j];
}

INLINE void TARGET(gather_any)(document_scratch *a, const int32_t *counts, int64_t words, int32_t n) {
#define CASE(n) case n: TARGET(gather)(a, counts, words, n); break;
    switch (n) { /* a copy for each small number of vectors */
        ONE_TO_EIGHT(CASE)
        default: TARGET(gather)(a, counts, words, n);
    }
#undef CASE
}
