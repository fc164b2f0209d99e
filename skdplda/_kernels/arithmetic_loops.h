/* Loops over `arithmetic.h` and `normal_law.h`, compiled once for each target. */
#define LOOP(name) \
    static void TARGET(name##_all)(const double *x, double *out, int64_t n) { \
        for (int64_t i = 0; i < n; i++) out[i] = name##_one(x[i]); \
    }
LOOP(exp) LOOP(log) LOOP(log1p) LOOP(expm1) LOOP(digamma)
LOOP(mills) LOOP(ndtr) LOOP(log_ndtr) LOOP(ndtri)
#undef LOOP

/* Add up n numbers, or n products: lane j has those whose number is j modulo SUM_LANES. */
static double TARGET(sum_row)(const double *a, const double *b, int64_t n) {
    double lane[SUM_LANES] = {0};
    int64_t i = 0;
    if (b)
        for (; i + SUM_LANES <= n; i += SUM_LANES)
            for (int j = 0; j < SUM_LANES; j++) lane[j] += a[i + j] * b[i + j];
    else
        for (; i + SUM_LANES <= n; i += SUM_LANES)
            for (int j = 0; j < SUM_LANES; j++) lane[j] += a[i + j];
    for (int j = 0; i + j < n; j++) lane[j] += b ? a[i + j] * b[i + j] : a[i + j];
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

/* out[j] = a[0] b[0, j] + a[1] b[1, j] + ... in this order, for j < n; rows of b are `stride` apart. */
#define WIDTH 32
static void TARGET(combine_rows)(const double *a, const double *b, double *out, int64_t length, int64_t n, int64_t stride) {
    int64_t j = 0;
    for (; j + WIDTH <= n; j += WIDTH) {
        double sum[WIDTH] = {0};
        for (int64_t p = 0; p < length; p++)
            for (int i = 0; i < WIDTH; i++) sum[i] += a[p] * b[p * stride + j + i];
        memcpy(out + j, sum, sizeof sum);
    }
    if (j < n) {
        double sum[WIDTH] = {0};
        const int rest = (int)(n - j);
        for (int64_t p = 0; p < length; p++)
            for (int i = 0; i < rest; i++) sum[i] += a[p] * b[p * stride + j + i];
        memcpy(out + j, sum, rest * sizeof *sum);
    }
}

/* out[j] += a[0] b[rows[0], j] + ...: a row of a sparse matrix. */
static void TARGET(combine_some)(const double *a, const int32_t *rows, const double *b, double *out, int64_t length, int64_t n) {
    for (int64_t p = 0; p < length; p++) {
        const double *row = b + (int64_t)rows[p] * n;
        for (int64_t j = 0; j < n; j++) out[j] += a[p] * row[j];
    }
}
#undef WIDTH

typedef double TARGET(doubles) __attribute__((vector_size(SIMD == 2 ? 64 : SIMD == 1 ? 32 : 16), aligned(8), may_alias));

/* Steps of EM for the weights of m components. `room` is for 8 m numbers, and for m times as many as observations, in whole
 * blocks of EM_BLOCK, zeros in the end: block by block, with a row for each component, so that a step reads them once. */
static void TARGET(em)(const double *likelihood, const double *first, double strength, double *weights, double *room, int64_t m, int64_t n, int64_t steps) {
    enum { WIDE = sizeof(TARGET(doubles)) / sizeof(double), PARTS = EM_BLOCK / WIDE, LANES = SUM_LANES / WIDE };
    double *lanes = room, *blocks = room + SUM_LANES * m;
    for (int64_t k = 0; k < m; k++)
        for (int64_t i = 0; i < n; i++) blocks[(i / EM_BLOCK * m + k) * EM_BLOCK + i % EM_BLOCK] = likelihood[k * n + i];
    while (steps--) {
        memset(lanes, 0, SUM_LANES * m * sizeof *lanes);
        for (int64_t i = 0; i < n; i += EM_BLOCK) {
            const TARGET(doubles) *const block = (const TARGET(doubles) *)(blocks + i * m);
            TARGET(doubles) inverse[PARTS] = {{0}};
            for (int64_t k = 0; k < m; k++)
                for (int p = 0; p < PARTS; p++) inverse[p] += weights[k] * block[k * PARTS + p];
            for (int p = 0; p < PARTS; p++)
                for (int j = 0; j < WIDE; j++) inverse[p][j] = 1 / (inverse[p][j] > 1e-300 ? inverse[p][j] : 1e-300);
            for (int64_t k = 0; k < m; k++) { /* as `sum_row` adds them up */
                TARGET(doubles) *const lane = (TARGET(doubles) *)(lanes + SUM_LANES * k), sum[LANES];
                for (int p = 0; p < LANES; p++) sum[p] = lane[p];
                for (int p = 0; p < PARTS; p++) sum[p % LANES] += block[k * PARTS + p] * inverse[p];
                for (int p = 0; p < LANES; p++) lane[p] = sum[p];
            }
        }
        for (int64_t k = 0; k < m; k++) weights[k] = weights[k] * TARGET(sum_row)(lanes + SUM_LANES * k, 0, SUM_LANES) + strength * first[k];
        const double sum = TARGET(sum_row)(weights, 0, m);
        for (int64_t k = 0; k < m; k++) weights[k] /= sum;
    }
}

/* out[i, j] = weights[0] a[0, i] a[0, j] + weights[1] a[1, i] a[1, j] + ... in this order, for all j from i on. Rows of a
 * and of out have `stride` numbers, a multiple of 16. Eight sums at a time stay in registers. */
static void TARGET(gram_rows)(const double *a, const double *weights, double *out, int64_t n, int64_t stride) {
    enum { WIDE = sizeof(TARGET(doubles)) / sizeof(double), ACROSS = 2 * WIDE, DOWN = 4 };
    for (int64_t i = 0; i < stride; i += DOWN)
        for (int64_t j = i / ACROSS * ACROSS; j < stride; j += ACROSS) {
            TARGET(doubles) s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, t0 = {0}, t1 = {0}, t2 = {0}, t3 = {0};
            for (int64_t p = 0; p < n; p++) {
                const double *row = a + p * stride;
                const TARGET(doubles) s = *(const TARGET(doubles) *)(row + j), t = *(const TARGET(doubles) *)(row + j + WIDE);
                const double f0 = weights[p] * row[i], f1 = weights[p] * row[i + 1];
                const double f2 = weights[p] * row[i + 2], f3 = weights[p] * row[i + 3];
                s0 += f0 * s; s1 += f1 * s; s2 += f2 * s; s3 += f3 * s;
                t0 += f0 * t; t1 += f1 * t; t2 += f2 * t; t3 += f3 * t;
            }
            TARGET(doubles) *const place[DOWN] = {
                (TARGET(doubles) *)(out + i * stride + j), (TARGET(doubles) *)(out + (i + 1) * stride + j),
                (TARGET(doubles) *)(out + (i + 2) * stride + j), (TARGET(doubles) *)(out + (i + 3) * stride + j)};
            place[0][0] = s0; place[1][0] = s1; place[2][0] = s2; place[3][0] = s3;
            place[0][1] = t0; place[1][1] = t1; place[2][1] = t2; place[3][1] = t3;
        }
}
