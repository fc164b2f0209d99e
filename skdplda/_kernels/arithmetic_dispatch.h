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
#define sum_many(...) DISPATCH(sum_row, __VA_ARGS__)
#define combine(...) DISPATCH(combine_rows, __VA_ARGS__)
#define em_steps(...) DISPATCH(em, __VA_ARGS__)
#define weighted_gram(...) DISPATCH(gram_rows, __VA_ARGS__)
#define combine_sparse(...) DISPATCH(combine_some, __VA_ARGS__)
