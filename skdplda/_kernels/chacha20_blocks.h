/* Blocks of a ChaCha20 stream, several side by side; see chacha20.h. Compiled once for each target. */
typedef uint32_t TARGET(chacha20_row) __attribute__((vector_size(16 << SIMD)));

#define ROTATE(v, n) ((v) << (n) | (v) >> (32 - (n)))
#define QUARTER(a, b, c, d) \
    x[a] += x[b]; x[d] ^= x[a]; x[d] = ROTATE(x[d], 16); \
    x[c] += x[d]; x[b] ^= x[c]; x[b] = ROTATE(x[b], 12); \
    x[a] += x[b]; x[d] ^= x[a]; x[d] = ROTATE(x[d], 8); \
    x[c] += x[d]; x[b] ^= x[c]; x[b] = ROTATE(x[b], 7);

/* `blocks` blocks from the state's counter on, a multiple of the lanes, in groups of four: chacha20.h says in which order. */
static void TARGET(chacha20_blocks)(const uint32_t *state, uint32_t *words, int blocks) {
    enum { WIDTH = 4 << SIMD };
    for (int first = 0; first < blocks; first += WIDTH) {
        TARGET(chacha20_row) x[16], start[16];
        for (int i = 0; i < 16; i++)
            for (int lane = 0; lane < WIDTH; lane++)
                start[i][lane] = state[i] + (i == 12 ? (uint32_t)(first + lane) : 0);
        memcpy(x, start, sizeof x);
        for (int round = 0; round < 20; round += 2) {
            QUARTER(0, 4, 8, 12) QUARTER(1, 5, 9, 13) QUARTER(2, 6, 10, 14) QUARTER(3, 7, 11, 15)
            QUARTER(0, 5, 10, 15) QUARTER(1, 6, 11, 12) QUARTER(2, 7, 8, 13) QUARTER(3, 4, 9, 14)
        }
        for (int i = 0; i < 16; i++) {
            x[i] += start[i];
            for (int group = 0; group < WIDTH / 4; group++)
                memcpy(words + ((first / 4 + group) * 16 + i) * 4, (const char *)(x + i) + 16 * group, 16);
        }
    }
}
#undef ROTATE
#undef QUARTER
