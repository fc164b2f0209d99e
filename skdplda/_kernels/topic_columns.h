/* CVB0 of one document with few topics; see variational_step.h. Compiled once for each target: TARGET(name) tells them apart.
 *
 * Each topic has a column, its numbers of all words, of which sixteen are in as many lanes: what is added up over topics is
 * so without a step across lanes. Lanes beyond the last word have zeros, and so has one column beyond an odd number.
 */
/* Whether columns are less work than rows. */
INLINE int TARGET(few_topics)(const variational_problem *p, int64_t words, int32_t k) {
    return p->collapsed && k <= LANES && 2 * words >= LANES;
}

INLINE int64_t TARGET(column_size)(int64_t words) { return (words + LANES - 1) / LANES * LANES; }

/* Make the columns of the words' rows. */
INLINE void TARGET(make_columns)(document_scratch *a, int64_t words, int32_t k) {
    enum { STEP = TARGET(REGISTERS), WIDTH = LANES / STEP };
    const int64_t size = TARGET(column_size)(words);
    memset(a->sums, 0, LANES * sizeof(float));
    for (int64_t i = 0; i < size; i += 4) for (int32_t h = 0; h < STEP; h++) {
        TARGET(floats) x[4];
        for (int m = 0; m < 4; m++) x[m] = ((const TARGET(floats) *)(i + m < words ? a->row[i + m] : a->sums))[h];
        TARGET(turn)(x);
        for (int q = 0; q < WIDTH / 4; q++) for (int m = 0; m < 4; m++) {
            const int32_t j = h * WIDTH + 4 * q + m;
            if (j < k + k % 2) *(v4 *)(a->column + j * size + i) = ((const v4 *)&x[m])[q];
        }
    }
}

/* Leave the columns of the topics in `cell`. */
INLINE void TARGET(leave_columns)(document_scratch *a, int64_t words, int32_t k) {
    const int64_t size = TARGET(column_size)(words);
    for (int32_t j = 0; j < k; j++) memmove(a->column + j * size, a->column + a->cell[j] * size, size * sizeof(float));
    if (k % 2) memset(a->column + k * size, 0, size * sizeof(float));
}

/* As TARGET(gather_collapsed), of `n` pairs of columns. With `keep`, rows become B T', and T one. */
INLINE void TARGET(gather_pairs)(document_scratch *a, int64_t words, int32_t n, int keep) {
    enum { STEP = TARGET(REGISTERS), WIDTH = LANES / STEP };
    const int64_t all = TARGET(column_size)(words) / WIDTH;
    const int32_t *alpha = (const int32_t *)a->alpha;
    const float *theta = a->theta;
    TARGET(floats) *sums = (TARGET(floats) *)a->sums, rest[LANES];
    memset(sums, 0, LANES * LANES * sizeof(float));
    for (int32_t j = 2 * n; j < LANES; j++) rest[j] = (TARGET(floats)){0};
    for (int64_t i = 0; i < all; i++) {
        const TARGET(floats) *b = (const TARGET(floats) *)a->column + i;
        TARGET(floats) *sum = sums + i % STEP, t[2] = {{0}}, left[2] = {{0}};
        for (int32_t j = 0; j < 2 * n; j++) t[j % 2] += rest[j] = theta[j] * b[j * all];
        t[0] += t[1];
        const TARGET(floats) inverse = 1.0f / t[0];
        for (int32_t j = 0; j < 2 * n; j++) {
            const TARGET(floats) least = (TARGET(floats))((TARGET(ints)){0} | alpha[j]);
            left[j % 2] += rest[j] = b[j * all] * TARGET(larger)(theta[j] - rest[j] * inverse, least);
        }
        left[0] += left[1];
        const TARGET(floats) quotient = ((const TARGET(floats) *)a->count)[i] / left[0];
        const TARGET(ints) fine = (t[0] > 0) & (left[0] > 0) & (quotient < 3e38f);
        const TARGET(floats) ratio = (TARGET(floats))((TARGET(ints))quotient & fine);
        ((TARGET(floats) *)a->ratio)[i] = ratio;
        for (int32_t j = 0; j < 2 * n; j++) sum[j * STEP] += rest[j] * ratio;
        for (int32_t j = 0; keep && j < LANES; j += 4) {
            float *row = a->block + i * WIDTH * LANES + j;
            TARGET(turn)(rest + j);
            for (int q = 0; q < WIDTH / 4; q++)
                for (int m = 0; m < 4; m++) *(v4 *)(row + (4 * q + m) * LANES) = ((const v4 *)&rest[j + m])[q];
        }
    }
    for (int32_t j = 0; j < LANES; j += 4) {
        TARGET(floats) four[STEP][4];
        for (int m = 0; m < 4; m++) for (int h = 0; h < STEP; h++) four[h][m] = sums[(j + m) * STEP + h];
        *(v4 *)(a->total + j) = TARGET(four_totals)(four);
    }
}

static __attribute__((noinline)) void TARGET(gather_columns)(document_scratch *a, int64_t words, int32_t k, int keep) {
#define CASE(n) case n: TARGET(gather_pairs)(a, words, n, keep); break;
    switch ((k + 1) / 2) { ONE_TO_EIGHT(CASE) }
#undef CASE
    if (!keep) return;
    for (int64_t i = 0; i < words; i++) a->row[i] = a->block + i * LANES;
    for (int32_t j = 0; j < k; j++) a->theta[j] = 1;
}
