/* What _arithmetic.pyx calls: the copy that was chosen when the kernel was loaded. */
#include "arithmetic.h"
#include "normal_law.h"
#define COPIES "arithmetic_loops.h"
#include "simd_copies.h"

#define CALL(name) \
    static void name##_many(const double *x, double *out, int64_t n) { DISPATCH(name##_all, x, out, n); }
CALL(exp) CALL(log) CALL(log1p) CALL(expm1) CALL(digamma)
CALL(mills) CALL(ndtr) CALL(log_ndtr) CALL(ndtri)
#undef CALL
static double sum_many(const double *a, const double *b, int64_t n) { return DISPATCH(sum_row, a, b, n); }
static void combine(const double *a, const double *b, double *out, int64_t length, int64_t n, int64_t stride) {
    DISPATCH(combine_rows, a, b, out, length, n, stride);
}
static void em_steps(const double *likelihood, const double *first, double strength, double *weights, double *density, int64_t m, int64_t n, int64_t steps) {
    DISPATCH(em, likelihood, first, strength, weights, density, m, n, steps);
}
static void weighted_gram(const double *a, const double *weights, double *out, int64_t n, int64_t stride) {
    DISPATCH(gram_rows, a, weights, out, n, stride);
}
static void combine_sparse(const double *a, const int32_t *rows, const double *b, double *out, int64_t length, int64_t n) {
    DISPATCH(combine_some, a, rows, b, out, length, n);
}
