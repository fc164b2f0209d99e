/* Likelihoods and responsibilities of segments; compiled once for each target: TARGET(name) tells the copies apart. */

/* r[j] = exp(counts of segment j . log_phi + extra[j] - largest[j]), largest[j] the largest of these sums. */
static void TARGET(segment_likelihoods)(const long long *start, const int *words, const double *counts, ptrdiff_t n_segments,
                                        const double *log_phi, const double *extra, ptrdiff_t n_topics, double *r,
                                        double *largest) {
    for (ptrdiff_t j = 0; j < n_segments; j++) {
        double *row = r + j * n_topics;
        if (extra) memcpy(row, extra + j * n_topics, n_topics * sizeof *row);
        else memset(row, 0, n_topics * sizeof *row);
        for (long long i = start[j]; i < start[j + 1]; i++) {
            const double *source = log_phi + (ptrdiff_t)words[i] * n_topics, count = counts[i];
            for (ptrdiff_t k = 0; k < n_topics; k++) row[k] += count * source[k];
        }
        double top = row[0];
        for (ptrdiff_t k = 1; k < n_topics; k++) top = row[k] > top ? row[k] : top;
        for (ptrdiff_t k = 0; k < n_topics; k++) row[k] = exp_one(row[k] - top);
        largest[j] = top;
    }
}

/* a[0] b[0] + a[1] b[1] + ..., in eight parts. */
INLINE double TARGET(mass_of)(const double *a, const double *b, ptrdiff_t n) {
    double lane[SUM_LANES] = {0};
    ptrdiff_t i = 0;
    for (; i + SUM_LANES <= n; i += SUM_LANES)
        for (int j = 0; j < SUM_LANES; j++) lane[j] += a[i + j] * b[i + j];
    for (int j = 0; i + j < n; j++) lane[j] += a[i + j] * b[i + j];
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

/* Update a document's theta some times, and return its log-likelihood before. r has its segments' likelihoods, and their
 * responsibilities after the last update; total has room for n_topics numbers. */
static double TARGET(update_document)(double *restrict r, const double *largest, ptrdiff_t n_segments, const double *prior,
                                      ptrdiff_t n_topics, int n_updates, double *restrict theta, double *restrict total) {
    double log_likelihood = 0;
    for (int step = 0; step < n_updates; step++) {
        memcpy(total, prior, n_topics * sizeof *total);
        for (ptrdiff_t j = 0; j < n_segments; j++) {
            double *row = r + j * n_topics;
            const double mass = TARGET(mass_of)(theta, row, n_topics), factor = 1 / mass;
            if (step == 0) log_likelihood += largest[j] + log_one(mass);
            if (!(mass > 0 && mass < INFINITY)) { /* topics that are no numbers: the segment contributes nothing */
                for (ptrdiff_t k = 0; k < n_topics; k++) row[k] = 0;
            } else if (step < n_updates - 1) {
                for (ptrdiff_t k = 0; k < n_topics; k++) total[k] += theta[k] * row[k] * factor;
            } else {
                for (ptrdiff_t k = 0; k < n_topics; k++) {
                    row[k] *= theta[k] * factor;
                    total[k] += row[k];
                }
            }
        }
        double mass = 0;
        for (ptrdiff_t k = 0; k < n_topics; k++) mass += total[k];
        for (ptrdiff_t k = 0; k < n_topics; k++) theta[k] = total[k] / mass;
    }
    return log_likelihood;
}
