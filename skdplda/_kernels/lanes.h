/* Sixteen lanes: sums of products, their prefix sum, and the search in it. Compiled once for each target.
 *
 * Floats are added in quarters of four lanes (SSE2, NEON), in the same order for each target.
 */
/* Sixteen sums of two products of neighbours, in as many registers of the target, because GCC keeps longer vectors, and
 * structures of them, in memory. */
#if SIMD == 2
typedef __m512i TARGET(some_sums);
#define ADD_PRODUCTS(sum, a, b) _mm512_dpwssd_epi32(sum, a, b)
#elif SIMD == 1
typedef __m256i TARGET(some_sums);
#define ADD_PRODUCTS(sum, a, b) _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
#elif defined(__SSE2__)
typedef __m128i TARGET(some_sums);
#define ADD_PRODUCTS(sum, a, b) _mm_add_epi32(sum, _mm_madd_epi16(a, b))
#else
typedef int32_t TARGET(some_sums);
#endif
enum { TARGET(SUMS) = LANES * sizeof(int32_t) / sizeof(TARGET(some_sums)) };

INLINE void TARGET(add_products)(TARGET(some_sums) *sum, const int16_t *a, const int16_t *b) {
#if defined(__SSE2__)
    enum { SHORTS = 2 * LANES / TARGET(SUMS) };
    for (int q = 0; q < TARGET(SUMS); q++) sum[q] = ADD_PRODUCTS(
        sum[q], *(const TARGET(some_sums) *)(a + q * SHORTS), *(const TARGET(some_sums) *)(b + q * SHORTS));
#else
    for (int j = 0; j < LANES; j++) sum[j] += a[2 * j] * b[2 * j] + a[2 * j + 1] * b[2 * j + 1];
#endif
}
#undef ADD_PRODUCTS

INLINE u64x8 TARGET(mix)(u64x8 x) { /* mix64 */
    x ^= x >> 30; x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27; x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Inclusive prefix sum of sixteen numbers, in quarters. */
INLINE void TARGET(prefix_quarters)(v4 *x) {
    const v4 zero = {0, 0, 0, 0};
    v4 carry;
    for (int q = 0; q < 4; q++) {
        x[q] += SHUFFLE(i4, zero, x[q], 0, 4, 5, 6);
        x[q] += SHUFFLE(i4, zero, x[q], 0, 1, 4, 5);
    }
    x[1] += SHUFFLE(i4, x[0], x[0], 3, 3, 3, 3);
    x[3] += SHUFFLE(i4, x[2], x[2], 3, 3, 3, 3);
    carry = SHUFFLE(i4, x[1], x[1], 3, 3, 3, 3);
    x[2] += carry;
    x[3] += carry;
}

INLINE lanes TARGET(prefix_sum)(lanes x) {
    TARGET(prefix_quarters)(x.quarter);
    return x;
}

/* How many of the first fifteen lanes are <= value (the lanes ascend). */
INLINE int TARGET(lanes_below)(lanes x, float value) {
    int n = 0;
    for (int l = 0; l < LANES - 1; l++) n += x.lane[l] <= value;
    return n;
}

/* Integers of WIDTH draws, what one register holds. */
enum { TARGET(WIDTH) = 4 << SIMD };
typedef int32_t TARGET(ints) __attribute__((vector_size(4 * TARGET(WIDTH)), may_alias));
typedef float TARGET(reals) __attribute__((vector_size(4 * TARGET(WIDTH)), may_alias));
typedef float TARGET(reals_anywhere) __attribute__((vector_size(4 * TARGET(WIDTH)), aligned(4), may_alias));
typedef int32_t TARGET(ints_anywhere) __attribute__((vector_size(4 * TARGET(WIDTH)), aligned(4), may_alias));
typedef uint16_t TARGET(shorts) __attribute__((vector_size(2 * TARGET(WIDTH)), may_alias));

/* Products of the two numbers of 16 bits in each lane, added. */
INLINE TARGET(ints) TARGET(pair_products)(TARGET(ints) a, TARGET(ints) b) {
#if SIMD == 2
    return (TARGET(ints))_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif SIMD == 1
    return (TARGET(ints))_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (TARGET(ints))_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    return (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}

/* Product of the first of the two. */
INLINE TARGET(ints) TARGET(first_products)(TARGET(ints) a, TARGET(ints) b) {
    return TARGET(pair_products)(a & 65535, b & 65535);
}

/* Column l of the sums of WIDTH draws: those of lane l. */
INLINE void TARGET(columns)(const whole_lanes *rows, TARGET(ints) *column) {
#if SIMD == 2
    __m512i *x = (__m512i *)column, half[LANES];
    for (int i = 0; i < LANES; i += 2) {
        half[i] = _mm512_unpacklo_epi32((__m512i)rows[i].all, (__m512i)rows[i + 1].all);
        half[i + 1] = _mm512_unpackhi_epi32((__m512i)rows[i].all, (__m512i)rows[i + 1].all);
    }
    for (int i = 0; i < LANES; i += 4) for (int j = 0; j < 2; j++) {
        x[i + 2 * j] = _mm512_unpacklo_epi64(half[i + j], half[i + j + 2]);
        x[i + 2 * j + 1] = _mm512_unpackhi_epi64(half[i + j], half[i + j + 2]);
    }
    for (int j = 0; j < 4; j++) for (int i = 0; i < LANES; i += 8) {
        half[j + i] = _mm512_shuffle_i32x4(x[i + j], x[i + j + 4], 0x88);
        half[j + i + 4] = _mm512_shuffle_i32x4(x[i + j], x[i + j + 4], 0xdd);
    }
    for (int j = 0; j < 8; j++) {
        x[j] = _mm512_shuffle_i32x4(half[j], half[j + 8], 0x88);
        x[j + 8] = _mm512_shuffle_i32x4(half[j], half[j + 8], 0xdd);
    }
#elif SIMD == 1
    for (int h = 0; h < 2; h++) { /* lanes 8 h to 8 h + 7 */
        __m256i *x = (__m256i *)column + 8 * h, half[8];
        for (int i = 0; i < 8; i += 2) {
            const __m256i a = ((const __m256i *)(rows + i))[h], b = ((const __m256i *)(rows + i + 1))[h];
            half[i] = _mm256_unpacklo_epi32(a, b);
            half[i + 1] = _mm256_unpackhi_epi32(a, b);
        }
        for (int i = 0; i < 8; i += 4) for (int j = 0; j < 2; j++) {
            x[i + 2 * j] = _mm256_unpacklo_epi64(half[i + j], half[i + j + 2]);
            x[i + 2 * j + 1] = _mm256_unpackhi_epi64(half[i + j], half[i + j + 2]);
        }
        for (int j = 0; j < 4; j++) {
            const __m256i a = x[j], b = x[j + 4];
            x[j] = _mm256_permute2x128_si256(a, b, 0x20);
            x[j + 4] = _mm256_permute2x128_si256(a, b, 0x31);
        }
    }
#else
    for (int l = 0; l < LANES; l++) column[l] = (TARGET(ints)){rows[0].lane[l], rows[1].lane[l], rows[2].lane[l], rows[3].lane[l]};
#endif
}

/* Random integers below totals that are below 2^31: random numbers, as fractions of 2^64, times them, rounded down. */
INLINE TARGET(ints) TARGET(random_below)(const uint64_t *random, TARGET(ints) total) {
#if SIMD == 2
    __m256i half[2];
    for (int h = 0; h < 2; h++) {
        const __m512i r = ((const __m512i *)random)[h];
        const __m512i t = _mm512_cvtepu32_epi64(h ? _mm512_extracti32x8_epi32((__m512i)total, 1) : _mm512_castsi512_si256((__m512i)total));
        const __m512i low = _mm512_srli_epi64(_mm512_mul_epu32(r, t), 32), high = _mm512_mul_epu32(_mm512_srli_epi64(r, 32), t);
        half[h] = _mm512_cvtepi64_epi32(_mm512_srli_epi64(_mm512_add_epi64(low, high), 32));
    }
    return (TARGET(ints))_mm512_inserti32x8(_mm512_castsi256_si512(half[0]), half[1], 1);
#elif SIMD == 1
    __m256i half[2];
    for (int h = 0; h < 2; h++) {
        const __m256i r = ((const __m256i *)random)[h];
        const __m256i t = _mm256_cvtepu32_epi64(h ? _mm256_extracti128_si256((__m256i)total, 1) : _mm256_castsi256_si128((__m256i)total));
        const __m256i low = _mm256_srli_epi64(_mm256_mul_epu32(r, t), 32), high = _mm256_mul_epu32(_mm256_srli_epi64(r, 32), t);
        half[h] = _mm256_srli_epi64(_mm256_add_epi64(low, high), 32);
    }
    const __m256 both = _mm256_shuffle_ps((__m256)half[0], (__m256)half[1], 0x88); /* even lanes, quarter by quarter */
    return (TARGET(ints))_mm256_permute4x64_epi64((__m256i)both, 0xd8);
#else
    TARGET(ints) result;
    for (int i = 0; i < TARGET(WIDTH); i++) result[i] = (int32_t)((unsigned __int128)random[i] * (uint64_t)total[i] >> 64);
    return result;
#endif
}

/* row[k] = (table[w, k] + beta) scale[k]; zero beyond K, because scale is. */
INLINE void TARGET(make_row)(const delayed_table *f, int32_t w, float *row) {
    const size_t first = (size_t)w * f->n_topics;
    const int past_row = first + padded(f->n_topics) <= (size_t)f->n_words * f->n_topics; /* reading whole lanes stays inside the table */
    const int32_t whole = past_row ? padded(f->n_topics) : f->n_topics / LANES * LANES;
    for (int32_t k = 0; k < whole; k += TARGET(WIDTH)) {
        TARGET(reals) count;
        if (f->counts) count = __builtin_convertvector(*(const TARGET(ints_anywhere) *)(f->counts + first + k), TARGET(reals));
        else count = *(const TARGET(reals_anywhere) *)(f->table + first + k);
        *(TARGET(reals) *)(row + k) = (count + f->beta) * *(const TARGET(reals) *)(f->scale + k);
    }
    for (int32_t k = whole; k < f->n_topics; k++)
        row[k] = ((f->counts ? (float)f->counts[first + k] : f->table[first + k]) + f->beta) * f->scale[k];
    if (!past_row) for (int32_t k = f->n_topics; k < padded(f->n_topics); k++) row[k] = 0;
}
