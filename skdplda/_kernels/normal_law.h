/* The normal distribution, with the same bits on every processor; see arithmetic.h. Compiled once for each target.
 *
 * All of it follows from Mills' ratio M(x) = P(Z > x) / density(x), which for x >= 0 has no exponential in it. The
 * coefficients are those of the Chebyshev series of (x + 7/8) M(x) in t = (x - 5) / (x + 5), to degree 25, as powers of
 * t; what is left out is below 2^-58. Their absolute values add up to less than 2, so that nothing cancels.
 */
#ifndef SKDPLDA_NORMAL_LAW_H
#define SKDPLDA_NORMAL_LAW_H
#include "arithmetic.h"

#define ROOT_2PI 0x1.40d931ff62706p+1        /* sqrt(2 pi) */
#define OVER_ROOT_2PI 0x1.9884533d43651p-2   /* 1 / sqrt(2 pi) */
#define LOG_ROOT_2PI 0x1.d67f1c864beb5p-1    /* log(2 pi) / 2 */

/* M(x) for x >= 0, within 4 ulp. */
INLINE double mills_above(double x) {
    const double held = x < 0x1p100 ? x : 0x1p100;
    const double t = (held - 5) / (held + 5);
    double p = 0x1.82e202048bde5p-33;
    p = p * t + 0x1.e4803d8780921p-35;
    p = p * t - 0x1.1d42528489f65p-29;
    p = p * t - 0x1.127443d80a74cp-30;
    p = p * t + 0x1.eb61cafb027e3p-27;
    p = p * t + 0x1.4705ca2366db5p-27;
    p = p * t - 0x1.69f7421e63e92p-24;
    p = p * t - 0x1.12c66fc0449d9p-24;
    p = p * t + 0x1.116648627acd8p-21;
    p = p * t + 0x1.3fd20470cd521p-22;
    p = p * t - 0x1.c28e64937e4bfp-19;
    p = p * t + 0x1.26490fd3d09e2p-25;
    p = p * t + 0x1.83b4dec0fe35cp-16;
    p = p * t - 0x1.c3183949a700dp-16;
    p = p * t - 0x1.1a6f9b02878d0p-13;
    p = p * t + 0x1.f3193ab44bed6p-12;
    p = p * t - 0x1.7a314a48a31f2p-16;
    p = p * t - 0x1.17d815c5e9ca7p-8;
    p = p * t + 0x1.180fb7ab85a47p-6;
    p = p * t - 0x1.4e97c0645d9c4p-5;
    p = p * t + 0x1.19f952cb6bca1p-4;
    p = p * t - 0x1.4c7b0fc3d4a4cp-4;
    p = p * t + 0x1.9d00c501a7049p-5;
    p = p * t + 0x1.53434d615d74fp-5;
    p = p * t - 0x1.79ef28f4dc377p-3;
    p = p * t + 0x1.21fbbf69eaa93p+0;
    return x < 0x1p100 ? p / (held + 0.875) : 1 / x;
}

/* exp(x^2 / 2) if `sign` is 0.5, exp(-x^2 / 2) if it is -0.5; the square is divided so that it has no rounding error. */
INLINE double exp_square(double x, double sign) {
    const double held = x < 0x1p64 ? x : 0x1p64;
    const double high = of_bits(bits_of(held) & ~INT64_C(0x7ffffff)), low = held - high;
    return exp_one(sign * high * high) * exp_one(sign * low * (held + high));
}

/* M(x), within 4 ulp for x >= 0, and 6 below; inf far below 0. */
INLINE double mills_one(double x) {
    const double size = fabs(x), above = mills_above(size);
    return x < 0 ? ROOT_2PI * exp_square(size, 0.5) - above : above;
}

/* P(Z <= x), within 6 ulp where it is a normal number. */
INLINE double ndtr_one(double x) {
    const double size = fabs(x), tail = exp_square(size, -0.5) * (OVER_ROOT_2PI * mills_above(size));
    return x > 0 ? 1 - tail : x <= 0 ? tail : x;
}

/* log P(Z <= x), within 6 ulp. Above 0 it is log(1 - tail), as in log1p_one; below, the logarithms of M and of the density. */
INLINE double log_ndtr_one(double x) {
    const double size = fabs(x), ratio = mills_above(size), tail = exp_square(size, -0.5) * (OVER_ROOT_2PI * ratio);
    const double u = 1 - tail, found = log_one(x > 0 ? u : ratio);
    const double above = u == 1 ? -tail : found - ((u - 1) + tail) / u;
    return x > 0 ? above : x <= 0 ? (found - LOG_ROOT_2PI) - 0.5 * size * size : x;
}

/* The x with P(Z <= x) = p, within 2^-50 (1 + |x|): Newton's method for log P(Z > z), which is concave, from above. */
INLINE double ndtri_one(double p) {
    const double small = p < 0.5 ? p : 1 - p, target = log_one(small) + LOG_ROOT_2PI;
    double z = small > 0 ? sqrt(-2 * log_one(2 * small)) : 1;
    for (int i = 0; i < 8; i++) {
        const double ratio = mills_above(z);
        z += ratio * ((log_one(ratio) - target) - 0.5 * z * z);
    }
    z = small > 0 ? z : small == 0 ? INFINITY : NAN;
    return p < 0.5 ? -z : z;
}
#endif
