/* Sweep of a block from a table that lists the topics of each word. Compiled once for each target.
 *
 * With T the table, s = scale and n the document's counts, the weight of a topic is a sum of three parts,
 *     (T[w, k] + beta) s[k] n[k],   T[w, k] s[k] alpha[k]   and   beta s[k] alpha[k],
 * over the document's slots, the word's list and all topics: a draw costs the topics that its document has. The second
 * part is the same for all tokens of a word, the third for all tokens; both are searched from a guide.
 */

/* Weights of the words' topics in a row that has beta s elsewhere; sums of the second part. */
static void TARGET(enter_word)(const delayed_table *f, const listed_table *t, int32_t w, float *row, cumulated *c) {
    float sum = 0;
    c->n = (int32_t)(t->start[w + 1] - t->start[w]);
    for (int32_t i = 0; i < c->n; i++) {
        const int32_t k = t->topic[t->start[w] + i];
        const float weight = (float)t->count[t->start[w] + i] * f->scale[k];
        row[k] += weight;
        c->end[i] = sum += weight * f->alpha[k];
    }
    c->total = sum;
}

static void TARGET(leave_word)(const delayed_table *f, const listed_table *t, int32_t w, float *row) {
    for (int64_t e = t->start[w]; e < t->start[w + 1]; e++) row[t->topic[e]] = f->beta * f->scale[t->topic[e]];
}

/* Weigh the slots of the batch's n tokens, which belong to different documents. */
INLINE void TARGET(weigh_batch)(const token_block *b, const delayed_table *f, listed_scratch *s, int32_t n, uint64_t place) {
    scratch *a = s->slots;
    listed_batch *x = s->batch;
    float *product = s->product;
    for (int32_t i = 0; i < n; i++) {
        const int32_t d = b->document[x->token[i]], counted = b->counted[x->token[i]];
        const int64_t next = (int64_t)x->token[i] + AHEAD, ahead = a->list[next < b->n_tokens ? b->document[next] : d].first;
        float self = 0;
        for (int64_t j = 0; j < FETCHED * LANES; j += LANES) {
            __builtin_prefetch(a->count + ahead + j);
            if (j % (2 * LANES) == 0) __builtin_prefetch(a->topic + ahead + j);
        }
        x->gap[i] = 0;
        if (counted != UNASSIGNED) { /* the self-count correction: nothing below beta is left of the row */
            const float most = a->row[counted] - f->beta * f->scale[counted];
            self = f->self_count * f->scale[counted];
            self = self < most ? self : most;
            x->gap[i] = self * f->alpha[counted];
        }
        x->rest.lane[i] = s->word.total > x->gap[i] ? s->word.total - x->gap[i] : 0;
        x->random.lane[i] = (float)(mix64(a->key[d] + place * GOLDEN) >> 40) * 0x1p-24f;
        x->product[i] = product;
        x->sum[i].all = (i16)TARGET(weigh_slots)(a, a->list + d, b->topic[x->token[i]], counted, self, product).all;
        product += (size_t)a->list[d].blocks * LANES;
    }
}

/* Choose between the document's slots and the rest, and the lane of the slot. */
INLINE void TARGET(choose_lanes)(listed_batch *x, float all) {
    for (int h = 0; h < BATCH / TARGET(WIDTH); h++) {
        TARGET(ints) column[LANES], lane = {0}, in_document;
        TARGET(reals) *end = (TARGET(reals) *)column, target, below;
        TARGET(columns)(x->sum + h * TARGET(WIDTH), column);
        for (int l = 1; l < LANES; l++) end[l] += end[l - 1];
        target = ((TARGET(reals) *)&x->random)[h] * (end[LANES - 1] + ((TARGET(reals) *)&x->rest)[h] + all);
        in_document = target < end[LANES - 1];
        below = end[LANES - 1] - end[LANES - 1];
        for (int l = 0; l < LANES - 1; l++) {
            const TARGET(ints) past = end[l] <= target;
            lane -= past;
            below = (TARGET(reals))((past & (TARGET(ints))end[l]) | (~past & (TARGET(ints))below));
        }
        below = (TARGET(reals))((in_document & (TARGET(ints))below) | (~in_document & (TARGET(ints))end[LANES - 1]));
        ((TARGET(ints) *)&x->lane)[h] = lane;
        ((TARGET(ints) *)&x->in_document)[h] = in_document;
        ((TARGET(reals) *)&x->inside)[h] = target - below;
    }
}

/* The slot of a lane that holds the target. */
INLINE int32_t TARGET(find_in_lane)(const float *product, int32_t n_blocks, int32_t lane, float target) {
    int32_t j = lane;
    for (int32_t i = 0; i < n_blocks - 1; i++) {
        target -= product[lane + i * LANES];
        j += target >= 0 ? LANES : 0;
    }
    if (product[j] <= 0) for (j = 0; product[j] <= 0; j++); /* rounding may point to a vacant slot */
    return j;
}

/* Draw the topics of the batch's n tokens of a word, whose list of topics is `listed`. */
INLINE void TARGET(draw_batch)(const token_block *b, const delayed_table *f, listed_scratch *s, int32_t n, uint64_t place,
                               const int32_t *listed) {
    scratch *a = s->slots;
    listed_batch *x = s->batch;
    TARGET(weigh_batch)(b, f, s, n, place);
    TARGET(choose_lanes)(x, s->all.total);
    for (int32_t i = 0; i < n; i++) {
        const int32_t counted = b->counted[x->token[i]];
        slot_list *l = a->list + b->document[x->token[i]];
        const float target = x->inside.lane[i];
        int64_t slot;
        if (x->in_document.lane[i]) {
            slot = l->first + TARGET(find_in_lane)(x->product[i], l->blocks, x->lane.lane[i], target);
        } else {
            int32_t k;
            if (target < x->rest.lane[i]) { /* the gap is in the cell of `counted`, and the cells behind it move up */
                k = listed[find_entry(&s->word, target)];
                if (k >= counted) k = listed[find_entry(&s->word, target + x->gap[i])];
            } else k = find_entry(&s->all, target - x->rest.lane[i]);
            slot = TARGET(slot_of)(a, l, (uint16_t)k);
        }
        a->count[slot]++;
        b->topic[x->token[i]] = a->topic[slot];
    }
}

static void TARGET(sweep_listed)(const token_block *b, const delayed_table *f, const listed_table *t, int n_sweeps,
                                 listed_scratch *s) {
    const uint8_t *active = f->active ? f->active + b->first_document : NULL;
    for (int32_t k = 0; k < f->n_topics; k++) s->slots->row[k] = f->beta * f->scale[k];
    for (int sweep = 0; sweep < n_sweeps; sweep++) {
        occurrences occurrence = {.group = -1};
        int32_t entered = -1;
        make_keys(b, f, sweep, s->slots);
        list_documents(b, f->n_topics, s);
        for (int64_t g = 0; g < b->n_segments; g++) {
            const int32_t w = b->word[g];
            const uint64_t place = place_of(b, &occurrence, w);
            if (w != entered) {
                if (entered >= 0) TARGET(leave_word)(f, t, entered, s->slots->row);
                TARGET(enter_word)(f, t, entered = w, s->slots->row, &s->word);
            }
            for (uint32_t i = b->start[g]; i < b->start[g + 1];) {
                int32_t n = 0;
                for (; i < b->start[g + 1] && n < BATCH; i++)
                    if (!active || active[b->document[i]]) s->batch->token[n++] = i;
                if (n) TARGET(draw_batch)(b, f, s, n, place, t->topic + t->start[w]);
            }
        }
        if (entered >= 0) TARGET(leave_word)(f, t, entered, s->slots->row);
    }
}
