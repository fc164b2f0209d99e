/* exp(digamma(x)) of as many positive numbers as a register of the target has. Compiled once for each target.
 *
 * digamma(x) = digamma(x + 4) - R(x), R(x) = 1/x + 1/(x+1) + 1/(x+2) + 1/(x+3), and with z = x + 7/2
 *     exp(digamma(x + 4)) = z + 1/(24 z) - 37/(5760 z^3) + 10313/(2903040 z^5) - ...
 * (an even expansion about z, whose next term is below 2e-7 of the value). No logarithm is needed. R is held at 30:
 * smaller results than about 3e-13 are rounded up to that, so that no product of two of them vanishes.
 */
typedef uint32_t TARGET(bits) __attribute__((vector_size(sizeof(TARGET(floats))), may_alias)); /* sums wrap */

INLINE TARGET(floats) TARGET(exp_digamma)(TARGET(floats) x) {
    const float whole = 12582912; /* 1.5 2^23: adding it rounds to an integer */
    TARGET(floats) u = x * (x + 3);
    const TARGET(ints) below = u < 1e18f; /* its square stays finite */
    u = (TARGET(floats))(((TARGET(ints))u & below) | ((TARGET(ints))((TARGET(floats)){0} + 1e18f) & ~below));
    TARGET(floats) r = (x + x + 3) * (u + u + 2) / (u * (u + 2));
    const TARGET(floats) i = 1 / (x + 3.5f), square = i * i;
    const TARGET(floats) series = (x + 3.5f) + i * (4.1666668e-2f + square * (-6.4236112e-3f + square * 3.5524955e-3f));
    const TARGET(ints) over = ~(r < 30); /* NaN too */
    r = (TARGET(floats))(((TARGET(ints))r & ~over) | ((TARGET(ints))((TARGET(floats)){0} + 30) & over));
    const TARGET(floats) turns = r * -1.4426950f + whole;
    const TARGET(floats) n = turns - whole;
    const TARGET(floats) rest = (-r - n * 0.69314575f) - n * 1.4286068e-6f;
    TARGET(floats) power = 1.9875691e-4f * rest + 1.3981999e-3f;
    power = power * rest + 8.3334519e-3f;
    power = power * rest + 4.1665796e-2f;
    power = power * rest + 1.6666666e-1f;
    power = power * rest + 0.5f;
    power = power * rest * rest + rest + 1;
    return series * (TARGET(floats))((TARGET(bits))power + ((TARGET(bits))turns << 23)); /* the low bits of `turns` are the exponent */
}

static void TARGET(exp_digamma_all)(const float *x, float *out, int64_t n) {
    for (int64_t i = 0; i < n / LANES * TARGET(REGISTERS); i++) ((TARGET(floats) *)out)[i] = TARGET(exp_digamma)(((const TARGET(floats) *)x)[i]);
}
