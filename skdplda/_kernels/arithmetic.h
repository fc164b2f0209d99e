/* Elementary functions and sums whose bits are the same on every processor. Compiled once for each target.
 *
 * Only +, -, *, / and square roots are used, which IEEE 754 rounds, in an order that is written here, and never fused.
 * So what is left to a compiler or to a processor is how many numbers it treats at once. The loops have no branches, so
 * that they can be vectors. Errors are stated in units in the last place of the result (ulp), as measured against mpmath.
 */
#ifndef SKDPLDA_ARITHMETIC_H
#define SKDPLDA_ARITHMETIC_H
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "simd.h"

#define LN2_HIGH 0x1.62e42fefa38p-1     /* its product with a whole number below 2^11 is exact */
#define LN2_LOW 0x1.ef35793c7673p-45    /* the rest of the logarithm of 2 */
#define SUM_LANES 8                     /* a sum along a row has so many parts, added up pair by pair */
#define EM_BLOCK 32                     /* observations of a block in steps of EM: whole lanes of sums */

INLINE double of_bits(int64_t bits) { double x; memcpy(&x, &bits, 8); return x; }
INLINE int64_t bits_of(double x) { int64_t bits; memcpy(&bits, &x, 8); return bits; }

/* exp(x), within 1 ulp where it is a normal number. */
INLINE double exp_one(double x) {
    const double whole = 0x1.8p52; /* adding it rounds to an integer, which the low bits hold */
    const double held = x > 710 ? 710 : x < -746 ? -746 : x;
    const double turns = held * 0x1.71547652b82fep+0 + whole;
    const double n = turns - whole;
    const double r = (held - n * LN2_HIGH) - n * LN2_LOW;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = (p * r) * r + r + 1;
    /* Two factors, since 2^n need not be a normal number. */
    const int64_t exponent = (int64_t)((uint64_t)bits_of(turns) - (uint64_t)bits_of(whole));
    const int64_t first = (int64_t)((uint64_t)(exponent + 2048) >> 1) - 1024, second = exponent - first;
    p = p * of_bits((int64_t)((uint64_t)(first + 1023) << 52)) * of_bits((int64_t)((uint64_t)(second + 1023) << 52));
    return x != x ? x : x > 709.782712893384 ? INFINITY : x < -745.1332191019412 ? 0 : p;
}

/* log(x), within 1 ulp. With s = f / (2 + f), log(1 + f) = f - f^2/2 + s (f^2/2 + R), R = 2 (s^2/3 + s^4/5 + ...). */
INLINE double log_one(double x) {
    const int small = x < 0x1p-1022;
    const double scaled = small ? x * 0x1p54 : x;
    const uint64_t bits = (uint64_t)bits_of(scaled);
    const uint64_t above = bits - UINT64_C(0x3fe6a09e667f3bcd); /* sqrt(1/2) */
    const uint64_t turns = (above + (UINT64_C(1) << 62)) >> 52; /* the exponent, and 1024 */
    const double m = of_bits((int64_t)(bits - ((turns - 1024) << 52)));
    const double n = of_bits((int64_t)(UINT64_C(0x4330000000000000) + turns)) - (0x1p52 + (small ? 1078 : 1024));
    const double f = m - 1, s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    double p = 2.0 / 23.0;
    p = p * z + 2.0 / 21.0;
    p = p * z + 2.0 / 19.0;
    p = p * z + 2.0 / 17.0;
    p = p * z + 2.0 / 15.0;
    p = p * z + 2.0 / 13.0;
    p = p * z + 2.0 / 11.0;
    p = p * z + 2.0 / 9.0;
    p = p * z + 2.0 / 7.0;
    p = p * z + 2.0 / 5.0;
    p = p * z + 2.0 / 3.0;
    p = p * z;
    const double found = n * LN2_HIGH - ((half - (s * (half + p) + n * LN2_LOW)) - f);
    return x > 0 && x <= 0x1.fffffffffffffp1023 ? found : x == 0 ? -INFINITY : x > 0 ? x : NAN;
}

/* log(1 + x), within 2 ulp. */
INLINE double log1p_one(double x) {
    const double u = 1 + x, whole = log_one(u);
    const double found = whole - ((u - 1) - x) / u;
    return u == 1 ? x : x > -1 && u <= 0x1.fffffffffffffp1023 ? found : whole;
}

/* exp(x) - 1, within 3 ulp. */
INLINE double expm1_one(double x) {
    const double held = x > 0.5 ? 0.5 : x < -0.5 ? -0.5 : x;
    double p = 1.0 / 355687428096000.0;
    p = p * held + 1.0 / 20922789888000.0;
    p = p * held + 1.0 / 1307674368000.0;
    p = p * held + 1.0 / 87178291200.0;
    p = p * held + 1.0 / 6227020800.0;
    p = p * held + 1.0 / 479001600.0;
    p = p * held + 1.0 / 39916800.0;
    p = p * held + 1.0 / 3628800.0;
    p = p * held + 1.0 / 362880.0;
    p = p * held + 1.0 / 40320.0;
    p = p * held + 1.0 / 5040.0;
    p = p * held + 1.0 / 720.0;
    p = p * held + 1.0 / 120.0;
    p = p * held + 1.0 / 24.0;
    p = p * held + 1.0 / 6.0;
    p = p * held + 0.5;
    p = (p * held) * held + held;
    const double far = exp_one(x) - 1;
    return x >= -0.5 && x <= 0.5 ? p : far;
}

/* digamma(x) for x > 0, within 2^-50 (1 + |digamma(x)|): ten steps of its recurrence, then its asymptotic series. */
INLINE double digamma_one(double x) {
    double steps = 0, y = x;
    for (int i = 0; i < 10; i++) {
        const int below = y < 10;
        steps += below ? 1 / y : 0;
        y += below ? 1 : 0;
    }
    const double i = 1 / y, z = i * i;
    double p = 1.0 / 12.0;
    p = 691.0 / 32760.0 - p * z;
    p = 1.0 / 132.0 - p * z;
    p = 1.0 / 240.0 - p * z;
    p = 1.0 / 252.0 - p * z;
    p = 1.0 / 120.0 - p * z;
    p = 1.0 / 12.0 - p * z;
    return x > 0 ? log_one(y) - (0.5 * i + z * p + steps) : NAN;
}
#endif
