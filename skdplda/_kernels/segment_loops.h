/* Likelihoods of segments; compiled once for each target: TARGET(name) tells the copies apart. */

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
