/* The dense sweep in scalar C: what dense_sweep.h computes for sixteen tokens at a time, to the last bit.
 *
 * It takes one token after the other, so that each step stands alone. It is slow: only tests run it, to compare.
 */
#ifndef SKDPLDA_DENSE_REFERENCE_H
#define SKDPLDA_DENSE_REFERENCE_H

typedef struct {          /* a token, and what its draw depends on */
    const delayed_table *f;
    const int32_t *count; /* topic -> tokens of the document, this one included */
    int32_t word, old;    /* topic that the token has; UNASSIGNED if none */
    int32_t counted;      /* topic that it has in the table; UNASSIGNED if none */
    float steps;          /* of the word's row in 1 */
} reference_draw;

static float row_entry(const delayed_table *f, int32_t w, int32_t k) {
    const size_t cell = (size_t)w * f->n_topics + k;
    return ((f->counts ? (float)f->counts[cell] : f->table[cell]) + f->beta) * f->scale[k];
}

/* Weight of a topic, on the scale of the bounds; `others` is what the document's other tokens of the topic weigh. The
 * dense sweep calls it too, wherever its bounds do not decide. */
static float exact_weight(const delayed_table *f, int32_t w, int32_t k, int is_counted, int32_t others, float steps) {
    const size_t cell = (size_t)w * f->n_topics + k;
    float count = f->counts ? (float)f->counts[cell] : f->table[cell];
    if (is_counted) count = count > f->self_count ? count - f->self_count : 0;
    return (count + f->beta) * f->scale[k] * steps * ((float)others + f->alpha[k] * f->token_weight);
}

static int32_t others_of(const reference_draw *r, int32_t k) {
    return r->f->token_weight * (r->count[k] - (k == r->old));
}

static float reference_weight(const reference_draw *r, int32_t k) {
    return exact_weight(r->f, r->word, k, k == r->counted, others_of(r, k), r->steps);
}

/* The bound q[k] m[k]: an integer that is at least the weight. */
static int32_t reference_bound(const reference_draw *r, int32_t k) {
    const delayed_table *f = r->f;
    int32_t q = (int32_t)(row_entry(f, r->word, k) * r->steps) + 1;
    if (f->self_count > 0 && k == r->old && k == r->counted) { /* the self-count correction of the row */
        const float step = f->scale[k] * r->steps, least = step * f->beta, most = (float)q - step * f->self_count;
        const int32_t corrected = (int32_t)(most > least ? most : least) + 1;
        q = corrected < q ? corrected : q;
    }
    return q * (others_of(r, k) + f->prior[k]);
}

/* The topic whose cell holds the place, which is left counted from the cell's start. Cells stand in the order in which
 * vectors find them: by lane of 16, then by vector of 32 topics, and the two neighbours of a lane side by side. */
static int32_t reference_search(const reference_draw *r, int32_t *place) {
    for (int32_t lane = 0; lane < LANES; lane++)
        for (int32_t pair = 2 * lane; pair < r->f->n_topics; pair += 2 * LANES)
            for (int32_t k = pair; k < pair + 2 && k < r->f->n_topics; k++) {
                const int32_t bound = reference_bound(r, k);
                if (*place < bound) return k;
                *place -= bound;
            }
    return 0; /* never: the place lies below the sum of the bounds */
}

/* Rejection sampling: propose by the bounds, accept by the weights, and after sixteen rejections invert the weights. */
static int32_t reference_topic(const reference_draw *r, uint64_t random) {
    int64_t bounds = 0;
    double total = 0, target;
    int32_t k;
    for (k = 0; k < r->f->n_topics; k++) bounds += reference_bound(r, k);
    for (int attempt = 0; attempt < PROPOSALS; attempt++, random = mix64(random + GOLDEN)) {
        const unsigned __int128 point = (unsigned __int128)random * (uint64_t)bounds;
        int32_t place = (int32_t)(point >> 64);
        k = reference_search(r, &place);
        if ((float)place + (float)((uint64_t)point >> 40) * 0x1p-24f < reference_weight(r, k)) return k;
    }
    for (k = 0; k < r->f->n_topics; k++) total += reference_weight(r, k);
    target = (double)(random >> 11) * 0x1p-53 * total;
    for (k = 0; k < r->f->n_topics - 1; k++) if ((target -= reference_weight(r, k)) < 0) break;
    return k;
}

static int sweep_reference(const token_block *b, const delayed_table *f, int n_sweeps, scratch *a) {
    int32_t *counts = calloc(b->n_documents * (size_t)f->n_topics + 1, sizeof(int32_t));
    if (!counts) return NO_MEMORY;
    for (int64_t t = 0; t < b->n_tokens; t++)
        if (b->topic[t] != UNASSIGNED) counts[(size_t)b->document[t] * f->n_topics + b->topic[t]]++;
    for (int sweep = 0; sweep < n_sweeps; sweep++) {
        occurrences seen = {.group = -1};
        make_keys(b, f, sweep, a);
        for (int64_t g = 0; g < b->n_segments; g++) {
            const int32_t w = b->word[g];
            const uint64_t place = place_of(b, &seen, w) * GOLDEN;
            float most = 0;
            for (int32_t k = 0; k < f->n_topics; k++) most = row_entry(f, w, k) > most ? row_entry(f, w, k) : most;
            for (uint32_t t = b->start[g]; t < b->start[g + 1]; t++) {
                const int32_t d = b->document[t], old = b->topic[t];
                int32_t *count = counts + (size_t)d * f->n_topics;
                const reference_draw r = {f, count, w, old, b->counted[t], MOST_STEPS / most};
                if (f->active && !f->active[b->first_document + d]) continue;
                b->topic[t] = (uint16_t)reference_topic(&r, mix64(a->key[d] + place));
                if (old != UNASSIGNED) count[old]--;
                count[b->topic[t]]++;
            }
        }
    }
    free(counts);
    return 0;
}
#endif
