/* A small generator for draws that stay hidden (Gibbs assignments): xoshiro256++ seeded from a key.
 * It is NOT for noise and not for released draws: its state can be read off its outputs.
 * Source: Blackman and Vigna (2021), Scrambled linear pseudorandom number generators, ACM TOMS 47(4).
 */
#ifndef SKDPLDA_RANDOM_STREAM_H
#define SKDPLDA_RANDOM_STREAM_H
#include <stdint.h>

typedef struct { uint64_t s[4]; } random_stream;

static inline uint64_t mix64(uint64_t x) { /* the finaliser of SplitMix64, a bijection */
    x ^= x >> 30; x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27; x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* One stream for each (seed, sweep, number): the result of a sweep cannot depend on who runs it, or when. */
static inline random_stream stream_of(uint64_t seed, uint64_t sweep, uint64_t number) {
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    random_stream r;
    uint64_t key = mix64(mix64(mix64(seed + golden) ^ (sweep + golden)) ^ (number + golden));
    for (int i = 0; i < 4; i++) r.s[i] = mix64(key += golden);
    return r;
}

static inline uint64_t stream_u64(random_stream *r) {
    uint64_t *s = r->s, sum = s[0] + s[3];
    uint64_t result = ((sum << 23) | (sum >> 41)) + s[0], t = s[1] << 17;
    s[2] ^= s[0]; s[3] ^= s[1]; s[1] ^= s[2]; s[0] ^= s[3]; s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return result;
}

/* Uniform on [0, 1), with 53 bits. */
static inline double stream_double(random_stream *r) { return (double)(stream_u64(r) >> 11) * 0x1p-53; }

#endif
