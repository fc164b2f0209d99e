/* Rejection inside one bucket of an integer law, in 128-bit fixed point (which Cython cannot spell).
 * A bucket holds width = 2^shift integers. With v in [0, 1) the distance from its outer edge, as a fraction of
 * the bucket, the density there is proportional to exp(A(v)), A(v) = v (alpha + bucket beta - v beta / 2);
 * the wedge is what rises above the outer edge's density: proportional to expm1(A(v)). See doc/theory/noise.rst.
 */
#ifndef SKDPLDA_WEDGE_H
#define SKDPLDA_WEDGE_H
#include "chacha20.h"

typedef unsigned __int128 fixed128; /* the fraction x / 2^128 */

#define INVERSE(n) (~(fixed128)0 / (n))
static const fixed128 inverses[] = {
    INVERSE(1),  INVERSE(2),  INVERSE(3),  INVERSE(4),  INVERSE(5),  INVERSE(6),  INVERSE(7),  INVERSE(8),
    INVERSE(9),  INVERSE(10), INVERSE(11), INVERSE(12), INVERSE(13), INVERSE(14), INVERSE(15), INVERSE(16),
    INVERSE(17), INVERSE(18), INVERSE(19), INVERSE(20), INVERSE(21), INVERSE(22), INVERSE(23), INVERSE(24),
    INVERSE(25), INVERSE(26), INVERSE(27), INVERSE(28), INVERSE(29), INVERSE(30), INVERSE(31), INVERSE(32)};

static inline fixed128 fixed_of(uint64_t high, uint64_t low) { return (fixed128)high << 64 | low; }
static inline uint64_t fixed_high(fixed128 a) { return (uint64_t)(a >> 64); }
static inline uint64_t fixed_low(fixed128 a) { return (uint64_t)a; }

/* a b, rounded down to 128 bits. */
static inline fixed128 fixed_mul(fixed128 a, fixed128 b) {
    const uint64_t a0 = (uint64_t)a, a1 = (uint64_t)(a >> 64), b0 = (uint64_t)b, b1 = (uint64_t)(b >> 64);
    const fixed128 upper = (fixed128)a1 * b0 + ((fixed128)a0 * b0 >> 64);
    const fixed128 lower = (fixed128)a0 * b1 + (uint64_t)upper;
    return (fixed128)a1 * b1 + (upper >> 64) + (lower >> 64);
}

/* exp(a) - 1 for 0 <= a < 1/2; below the truth by less than 2^-121. */
static inline fixed128 fixed_expm1(fixed128 a) {
    fixed128 term = a, sum = a;
    for (int n = 1; n < 32 && term != 0; n++) {
        term = fixed_mul(fixed_mul(term, a), inverses[n]);
        sum += term;
    }
    return sum;
}

/* exp(a) - 1 for 0 <= a < 1/2, wrong by less than 2^-38: eleven terms leave out 2^-40, rounding adds 2^-50. */
static inline double rough_expm1(double a) {
    double factor = 1;
    for (int n = 11; n > 1; n--) factor = 1 + a * (1.0 / n) * factor;
    return a * factor;
}

#define ROUGH 0x1p-32 /* beyond this difference the rough numbers decide as the exact ones do */

static inline double rough_of(uint64_t high) { return (double)high * 0x1p-64; }

/* One integer of the bucket, counted from its inner edge, with the wedge's law. */
static inline uint64_t wedge_draw(
    chacha20_stream *s, uint64_t bucket, int shift, fixed128 alpha, fixed128 beta
) {
    const fixed128 slope = alpha + bucket * beta;
    const double rough_slope = rough_of(fixed_high(slope)), rough_bend = rough_of(fixed_high(beta / 2));
    const double rough_top = rough_expm1(rough_slope - rough_bend);
    for (;;) {
        const uint64_t high = chacha20_u64(s), low = chacha20_u64(s);
        const uint64_t level_high = chacha20_u64(s), level_low = chacha20_u64(s);
        const double rough_v = rough_of(~high);
        const double above = rough_of(level_high) * rough_top - rough_expm1(rough_v * (rough_slope - rough_v * rough_bend));
        int taken = above < 0;
        if (above > -ROUGH && above < ROUGH) {
            const fixed128 v = ~fixed_of(high, low), top = fixed_expm1(slope - beta / 2);
            const fixed128 height = fixed_expm1(fixed_mul(v, slope - fixed_mul(v, beta / 2)));
            taken = fixed_mul(fixed_of(level_high, level_low), top) < height;
        }
        if (taken) return high >> (64 - shift);
    }
}

#endif
