/* Fold-in of one document. Compiled once for each target.
 *
 * With phi[w, k] a topic's probability of a word, up to a factor of its own for each w, the weights g[k] = n_k + alpha[k]
 * of a document of counts c_w are the fixed point of
 *     g[k] = alpha[k] + g[k] T[k],     T[k] = sum_w (c_w / t_w) phi[w, k],     t_w = sum_k g[k] phi[w, k].
 * This is expectation maximisation of sum_w c_w log t_w + sum_k alpha[k] log g[k] for a given sum of g, which is strictly
 * concave: there is one fixed point, and from where an iteration starts, or jumps, does not change it.
 *
 * Two things save iterations. Of two steps r and r + v in a row, the next start is g + 2 s r + s^2 v with s = |r| / |v|
 * (scheme S3 of Varadhan and Roland (2008), Simple and globally convergent methods for accelerating the convergence of any
 * EM algorithm); in the second half of max_iter s is 1, which is no jump. And a topic with T[k] < SMALL, which has little
 * more than its prior, takes the weight alpha[k] / (1 - T[k]) and rests there, as part of one number a word, while the
 * others go on alone. All topics are looked at again before a document ends.
 */

#define SMALL 0.25f

/* Once for each target, because it has a copy for each small number of vectors. */
static __attribute__((noinline)) void TARGET(gather_words)(document_scratch *a, int64_t words, int32_t n) {
    TARGET(gather_any)(a, words, n);
}

INLINE int TARGET(any)(TARGET(ints) mask) {
    int32_t found = 0;
    for (int i = 0; i < LANES / TARGET(REGISTERS); i++) found |= mask[i];
    return found != 0;
}

/* total = what follows the weights in `theta`, of `n` vectors, where that of topic `rests` (-1: none) stays as it is; whether
 * a weight changed by more than `tol` times itself. */
static int TARGET(follow)(document_scratch *a, int64_t words, int32_t n, int32_t rests, float tol) {
    const TARGET(floats) *theta = (TARGET(floats) *)a->theta, *alpha = (TARGET(floats) *)a->alpha;
    const int32_t all = n * TARGET(REGISTERS);
    TARGET(floats) *total = (TARGET(floats) *)a->total;
    TARGET(ints) moved = {0};
    TARGET(gather_words)(a, words, n);
    for (int32_t j = 0; j < all; j++) total[j] = alpha[j] + theta[j] * total[j];
    if (rests >= 0) a->total[rests] = a->theta[rests];
    for (int32_t j = 0; j < all; j++)
        moved |= (TARGET(floats))((TARGET(ints))(total[j] - theta[j]) & 0x7fffffff) > tol * theta[j];
    return TARGET(any)(moved);
}

/* Iterate the weights in `theta`, at most `most` times, with jumps before the iteration `last_jump`; how often. */
static int32_t TARGET(iterate)(document_scratch *a, int64_t words, int32_t n, int32_t rests, float tol, int32_t most,
                               int32_t last_jump) {
    enum { STEP = TARGET(REGISTERS) };
    const int32_t all = n * STEP;
    TARGET(floats) *theta = (TARGET(floats) *)a->theta, *start = (TARGET(floats) *)a->other, *once = start + all;
    const TARGET(floats) *total = (TARGET(floats) *)a->total, *alpha = (TARGET(floats) *)a->alpha;
    int32_t done = 0;
    while (done < most) {
        const int first = done++ % 2 == 0, moved = TARGET(follow)(a, words, n, rests, tol);
        if (first && moved) {
            for (int32_t j = 0; j < all; j++) {
                start[j] = theta[j];
                theta[j] = once[j] = total[j];
            }
            continue;
        }
        if (moved && done < last_jump) {
            TARGET(lanes) squares = {.lane = {0}}, bends = {.lane = {0}};
            float square = 0, bend = 0, s;
            for (int32_t j = 0; j < all; j++) {
                const TARGET(floats) r = once[j] - start[j], v = total[j] - once[j] - r;
                squares.part[j % STEP] += r * r;
                bends.part[j % STEP] += v * v;
            }
            for (int32_t j = 0; j < LANES; j++) {
                square += squares.lane[j];
                bend += bends.lane[j];
            }
            s = square > bend && bend > 0 ? __builtin_sqrtf(square / bend) : 1;
            if (!(s < 1e3f)) s = 1;
            for (int32_t j = 0; j < all; j++) {
                const TARGET(floats) r = once[j] - start[j], v = total[j] - once[j] - r, next = start[j] + s * (r + r + s * v);
                theta[j] = TARGET(larger)(alpha[j], next);
            }
        } else for (int32_t j = 0; j < all; j++) theta[j] = total[j];
        if (!moved) break;
    }
    return done;
}

/* ratio[w] = sum_k weight[k] row_w[k] of all words. */
static void TARGET(explained)(document_scratch *a, const float *weight, int64_t words, int32_t n) {
    const float *four[4];
    for (int64_t i = 0; i < words; i += 4) {
        TARGET(four_rows)(a->row + i, 0, words - i < 4 ? (int32_t)(words - i) : 4, four);
        *(v4 *)(a->ratio + i) = TARGET(four_sums)(four, weight, n);
    }
}

/* Leave the topics alone whose weights do not rest: rows of them, and then of one topic of weight 1 for all others. Returns
 * how many do not rest, or -1 if that does not halve the work. `cell` has them, `gamma` all weights. */
static int32_t TARGET(rest)(const fold_in_problem *p, document_scratch *a, int64_t words) {
    const int32_t n = p->stride / LANES;
    float *aside = a->other;
    int32_t kept = 0, stride;
    for (int32_t k = 0; k < p->n_topics; k++) {
        a->cell[kept] = k;
        kept += a->total[k] >= SMALL;
    }
    stride = padded(kept + 1);
    if (2 * stride > p->stride) return -1;
    for (int32_t k = 0; k < p->stride; k++) aside[k] = a->total[k] < SMALL ? a->gamma[k] : 0; /* of the others */
    TARGET(explained)(a, aside, words, n);
    for (int64_t i = 0; i < words; i++) {
        float *to = a->block + i * stride;
        for (int32_t j = 0; j < kept; j++) to[j] = a->row[i][a->cell[j]];
        to[kept] = a->ratio[i];
        for (int32_t j = kept + 1; j < stride; j++) to[j] = 0;
        a->row[i] = to;
    }
    for (int32_t j = 0; j < kept; j++) {
        a->theta[j] = a->gamma[a->cell[j]];
        a->alpha[j] = p->alpha[a->cell[j]];
    }
    a->theta[kept] = a->alpha[kept] = 1;
    for (int32_t j = kept + 1; j < stride; j++) a->theta[j] = a->alpha[j] = 0;
    return kept;
}

static int TARGET(fold_in)(const fold_in_problem *p, document_scratch *a, int64_t d, double *out) {
    const int64_t first = p->indptr[d], words = p->indptr[d + 1] - first;
    const int32_t n = p->stride / LANES, *word = p->indices + first;
    int32_t done = 0, most = p->max_iter, last_jump = most - most / 2;
    const float length = TARGET(note_counts)(a, p->counts + first, words);
    double mass = 0;
    TARGET(floats) *theta = (TARGET(floats) *)a->theta, *gamma = (TARGET(floats) *)a->gamma;
    const TARGET(floats) *total = (TARGET(floats) *)a->total;
    for (int32_t k = 0; k < p->stride; k++) a->theta[k] = k < p->n_topics ? p->alpha[k] + length / p->n_topics : 0;
    for (int32_t moved = length > 0 && most > 0; moved;) {
        TARGET(ints) changed = {0};
        for (int64_t i = 0; i < words; i++) a->row[i] = p->rows + (size_t)word[i] * p->stride;
        memcpy(a->alpha, p->alpha, p->stride * sizeof(float));
        if (!done) done = TARGET(iterate)(a, words, n, -1, p->tol, most < 2 ? most : 2, last_jump);
        if (done >= most) break;
        TARGET(gather_words)(a, words, n);
        done++;
        for (int32_t j = 0; j < n * TARGET(REGISTERS); j++) {
            const TARGET(floats) alpha = ((TARGET(floats) *)p->alpha)[j], larger = alpha + theta[j] * total[j];
            const TARGET(ints) small = total[j] < SMALL, least = (TARGET(ints))(alpha / (1 - total[j]));
            gamma[j] = (TARGET(floats))((least & small) | ((TARGET(ints))larger & ~small));
            changed |= (TARGET(floats))((TARGET(ints))(gamma[j] - theta[j]) & 0x7fffffff) > p->tol * theta[j];
            theta[j] = gamma[j];
        }
        moved = TARGET(any)(changed);
        if (moved && done < most) {
            const int32_t kept = TARGET(rest)(p, a, words), size = kept < 0 ? n : padded(kept + 1) / LANES;
            done += TARGET(iterate)(a, words, size, kept, p->tol / 2, most - done, last_jump - done);
            if (kept >= 0) {
                for (int32_t j = 0; j < kept; j++) a->gamma[a->cell[j]] = a->theta[j];
                memcpy(theta, gamma, p->stride * sizeof(float));
            }
        }
    }
    for (int32_t k = 0; k < p->n_topics; k++) mass += a->theta[k];
    for (int32_t k = 0; k < p->n_topics; k++) out[k] = a->theta[k] / mass;
    return done;
}

static void TARGET(explain)(const fold_in_problem *p, document_scratch *a, int64_t d, const double *theta, double *out) {
    const int64_t words = p->indptr[d + 1] - p->indptr[d];
    memset(a->theta, 0, p->stride * sizeof(float));
    for (int32_t k = 0; k < p->n_topics; k++) a->theta[k] = (float)theta[k];
    for (int64_t i = 0; i < words; i++) a->row[i] = p->rows + (size_t)p->indices[p->indptr[d] + i] * p->stride;
    TARGET(explained)(a, a->theta, words, p->stride / LANES);
    for (int64_t i = 0; i < words; i++) out[p->indptr[d] + i] = a->ratio[i];
}
#undef SMALL
