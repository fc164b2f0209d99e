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
