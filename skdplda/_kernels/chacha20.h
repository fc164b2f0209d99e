/* ChaCha20 as a stream of 64-bit words, for noise and for every draw that is released: who sees the outputs
 * learns nothing of the key or of the other outputs. (random_stream.h is faster, and only for hidden draws.)
 * Source: Nir and Langley (2018), ChaCha20 and Poly1305 for IETF protocols, RFC 8439, sections 2.1 to 2.4.
 * Blocks are left interleaved in groups of LANES: a fixed permutation of the RFC's key stream, whatever the processor.
 * A stream starts with one group, for many streams are short, and goes on in sixteen blocks, which AVX-512 computes side
 * by side, AVX2 in two halves and others in four quarters.
 */
#ifndef SKDPLDA_CHACHA20_H
#define SKDPLDA_CHACHA20_H
#include <stdint.h>
#include <string.h>
#include "simd.h"

#define CHACHA20_LANES 4
#define CHACHA20_BLOCKS 16 /* at once, after the first LANES */

typedef struct {
    uint32_t state[16];                   /* constants, key, counter, nonce */
    uint32_t words[16 * CHACHA20_BLOCKS]; /* word i of lane l of group g is words[(16 g + i) LANES + l] */
    int next, end;                        /* first word not yet given out; how many there are */
} chacha20_stream;

#define COPIES "chacha20_blocks.h"
#include "simd_copies.h"

/* The next blocks. The counter has 32 bits: a stream ends, and would repeat, after 2^32 blocks. */
static __attribute__((noinline)) void chacha20_refill(chacha20_stream *s) {
    DISPATCH(chacha20_blocks, s->state, s->words, CHACHA20_BLOCKS);
    s->state[12] += CHACHA20_BLOCKS;
    s->next = 0;
    s->end = 16 * CHACHA20_BLOCKS;
}

/* The stream of one (key, nonce), from block 0: 256 bits of key, 96 bits of nonce. */
static inline void chacha20_start(chacha20_stream *s, const uint32_t *key, uint32_t n0, uint32_t n1, uint32_t n2) {
    const uint32_t head[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}; /* "expand 32-byte k" */
    const uint32_t tail[4] = {0, n0, n1, n2};
    memcpy(s->state, head, sizeof head);
    memcpy(s->state + 4, key, 32);
    memcpy(s->state + 12, tail, sizeof tail);
    chacha20_blocks_plain(s->state, s->words, CHACHA20_LANES);
    s->state[12] += CHACHA20_LANES;
    s->next = 0;
    s->end = 16 * CHACHA20_LANES;
}

static inline uint64_t chacha20_u64(chacha20_stream *s) {
    if (s->next == s->end) chacha20_refill(s);
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
