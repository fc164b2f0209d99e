/* ChaCha20 as a stream of 64-bit words, for noise and for every draw that is released: who sees the outputs
 * learns nothing of the key or of the other outputs. (random_stream.h is faster, and only for hidden draws.)
 * Source: Nir and Langley (2018), ChaCha20 and Poly1305 for IETF protocols, RFC 8439, sections 2.1 to 2.4.
 * LANES blocks are computed side by side and left interleaved: a fixed permutation of the RFC's key stream.
 */
#ifndef SKDPLDA_CHACHA20_H
#define SKDPLDA_CHACHA20_H
#include <stdint.h>
#include <string.h>

#define CHACHA20_LANES 4
#define CHACHA20_WORDS (16 * CHACHA20_LANES)

typedef uint32_t chacha20_vector __attribute__((vector_size(4 * CHACHA20_LANES)));

typedef struct {
    uint32_t state[16];              /* constants, key, counter, nonce */
    uint32_t words[CHACHA20_WORDS];  /* word i of lane l is words[i * CHACHA20_LANES + l] */
    int next;                        /* first word not yet given out */
} chacha20_stream;

#define CHACHA20_ROTATE(v, n) ((v) << (n) | (v) >> (32 - (n)))
#define CHACHA20_QUARTER(a, b, c, d) \
    x[a] += x[b]; x[d] ^= x[a]; x[d] = CHACHA20_ROTATE(x[d], 16); \
    x[c] += x[d]; x[b] ^= x[c]; x[b] = CHACHA20_ROTATE(x[b], 12); \
    x[a] += x[b]; x[d] ^= x[a]; x[d] = CHACHA20_ROTATE(x[d], 8); \
    x[c] += x[d]; x[b] ^= x[c]; x[b] = CHACHA20_ROTATE(x[b], 7);

/* The next LANES blocks. The counter has 32 bits: a stream ends, and would repeat, after 2^32 blocks. */
static inline void chacha20_refill(chacha20_stream *s) {
    chacha20_vector start[16], x[16];
    for (int i = 0; i < 16; i++)
        for (int lane = 0; lane < CHACHA20_LANES; lane++)
            start[i][lane] = s->state[i] + (i == 12 ? (uint32_t)lane : 0);
    memcpy(x, start, sizeof x);
    for (int round = 0; round < 20; round += 2) {
        CHACHA20_QUARTER(0, 4, 8, 12) CHACHA20_QUARTER(1, 5, 9, 13)
        CHACHA20_QUARTER(2, 6, 10, 14) CHACHA20_QUARTER(3, 7, 11, 15)
        CHACHA20_QUARTER(0, 5, 10, 15) CHACHA20_QUARTER(1, 6, 11, 12)
        CHACHA20_QUARTER(2, 7, 8, 13) CHACHA20_QUARTER(3, 4, 9, 14)
    }
    for (int i = 0; i < 16; i++) x[i] += start[i];
    memcpy(s->words, x, sizeof x);
    s->state[12] += CHACHA20_LANES;
    s->next = 0;
}

/* The stream of one (key, nonce), from block 0: 256 bits of key, 96 bits of nonce. */
static inline void chacha20_start(chacha20_stream *s, const uint32_t *key, uint32_t n0, uint32_t n1, uint32_t n2) {
    const uint32_t head[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}; /* "expand 32-byte k" */
    const uint32_t tail[4] = {0, n0, n1, n2};
    memcpy(s->state, head, sizeof head);
    memcpy(s->state + 4, key, 32);
    memcpy(s->state + 12, tail, sizeof tail);
    chacha20_refill(s);
}

static inline uint64_t chacha20_u64(chacha20_stream *s) {
    if (s->next == CHACHA20_WORDS) chacha20_refill(s);
    const uint32_t *word = s->words + s->next;
    s->next += 2;
    return (uint64_t)word[1] << 32 | word[0];
}

/* Overwrite the key and the words; volatile, so that no compiler may leave it out. */
static inline void chacha20_wipe(chacha20_stream *s) {
    volatile unsigned char *byte = (volatile unsigned char *)s;
    for (size_t i = 0; i < sizeof *s; i++) byte[i] = 0;
}

#endif
