/* exp(digamma(x)) of sixteen positive numbers. Compiled once for each target.
 *
 * digamma(x) = digamma(x + 4) - R(x), R(x) = 1/x + 1/(x+1) + 1/(x+2) + 1/(x+3), and with z = x + 7/2
 *     exp(digamma(x + 4)) = z + 1/(24 z) - 37/(5760 z^3) + 10313/(2903040 z^5) - ...
 * (an even expansion about z, whose next term is below 2e-7 of the value). No logarithm is needed. R is held at 30:
 * smaller results than about 3e-13 are rounded up to that, so that no product of two of them vanishes.
 */
INLINE v16 TARGET(exp_digamma)(v16 x) {
    const float whole = 12582912; /* 1.5 2^23: adding it rounds to an integer */
    v16 u = x * (x + 3);
    u = (v16)(((i16)u & (u < 1e18f)) | ((i16)((v16){0} + 1e18f) & ~(u < 1e18f))); /* its square stays finite */
    v16 r = (x + x + 3) * (u + u + 2) / (u * (u + 2));
    const v16 i = 1 / (x + 3.5f), square = i * i;
    const v16 series = (x + 3.5f) + i * (4.1666668e-2f + square * (-6.4236112e-3f + square * 3.5524955e-3f));
    const i16 over = ~(r < 30); /* NaN too */
    r = (v16)(((i16)r & ~over) | ((i16)((v16){0} + 30) & over));
    const v16 turns = r * -1.4426950f + whole;
    const v16 n = turns - whole;
    const v16 rest = (-r - n * 0.69314575f) - n * 1.4286068e-6f;
    v16 power = 1.9875691e-4f * rest + 1.3981999e-3f;
    power = power * rest + 8.3334519e-3f;
    power = power * rest + 4.1665796e-2f;
    power = power * rest + 1.6666666e-1f;
    power = power * rest + 0.5f;
    power = power * rest * rest + rest + 1;
    return series * (v16)((i16)power + ((i16)turns << 23)); /* the low bits of `turns` are the exponent */
}

static void TARGET(exp_digamma_all)(const float *x, float *out, int64_t n) {
    for (int64_t i = 0; i < n / LANES; i++) ((v16 *)out)[i] = TARGET(exp_digamma)(((const v16 *)x)[i]);
}
