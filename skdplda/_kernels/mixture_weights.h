/* Sums over the words of one document, for the maximum-likelihood mixture weights of topics.
 *
 * Sums run in eight interleaved lanes, a fixed order of addition: the same result on every processor. `n` is a multiple
 * of LANES; arrays are padded with a word of count zero.
 */
#ifndef SKDPLDA_MIXTURE_WEIGHTS_H
#define SKDPLDA_MIXTURE_WEIGHTS_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include "arithmetic.h"

#define LANES 8
#define PASSES 6
#define LEAST 1e-130
#define LOG_2 0.693147180559945309
#define FRACTION 0x000fffffffffffff /* of a double's bits */
typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double))));
typedef int64_t whole __attribute__((vector_size(LANES * sizeof(int64_t)), aligned(sizeof(int64_t))));

#define sum_of(x) ((((x)[0] + (x)[4]) + ((x)[2] + (x)[6])) + (((x)[1] + (x)[5]) + ((x)[3] + (x)[7])))

#define COPIES "mixture_sums.h"
#include "simd_copies.h"

#define gather(...) DISPATCH(gather, __VA_ARGS__)
#define mix(...) DISPATCH(mix, __VA_ARGS__)
#define gradient_of(...) DISPATCH(gradient_of, __VA_ARGS__)
#define curvature_of(...) DISPATCH(curvature_of, __VA_ARGS__)
#define log_sum(...) DISPATCH(log_sum, __VA_ARGS__)
#define descend(...) DISPATCH(descend, __VA_ARGS__)

/* A step along `change` that does not lower sum counts log(mixed) - step fall; 0 if none is found.
 *
 * This is concave, so its slope falls: over a step it rises by at least half of the sum of its slopes in the middle and
 * at the end.
 */
static double line_search(const double *counts, const double *mixed, const double *change, ptrdiff_t n, double fall) {
    double step = 1;
    for (int trial = 0; trial < 60; trial++, step *= 0.5) {
        const double end = DISPATCH(slope_at, counts, mixed, change, step, n) - fall;
        if (end >= 0 || end + DISPATCH(slope_at, counts, mixed, change, 0.5 * step, n) - fall >= 0) return step;
    }
    return 0;
}

#endif
