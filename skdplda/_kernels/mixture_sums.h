/* The sums of mixture_weights.h; compiled once for each target: TARGET(name) tells the copies apart. */

/* Copy the words topic by topic, padded to n; return the number of tokens. Words that no topic can produce, or so rarely
 * that squares of 1 / probability would overflow, get the count zero, like the padding, and the probability one.
 */
static double TARGET(gather)(const int *words, const int *given, ptrdiff_t n_words, ptrdiff_t n, const double *topic_word,
                             int n_topics, double *table, double *counts) {
    ptrdiff_t length = 0;
    if (!n_words) return 0;
    for (ptrdiff_t i = 0; i < n; i += LANES) {
        const double *row[LANES];
        lanes mass = {0};
        for (int j = 0; j < LANES; j++) row[j] = topic_word + (ptrdiff_t)words[i + j < n_words ? i + j : 0] * n_topics;
        for (int j = LANES; j < 2 * LANES; j++)
            __builtin_prefetch(topic_word + (ptrdiff_t)words[i + j < n_words ? i + j : 0] * n_topics);
        for (int k = 0; k < n_topics; k++) {
            const lanes p = {row[0][k], row[1][k], row[2][k], row[3][k], row[4][k], row[5][k], row[6][k], row[7][k]};
            mass += p;
            *(lanes *)(table + k * n + i) = p;
        }
        for (int j = 0; j < LANES; j++) {
            const int count = i + j < n_words && mass[j] > LEAST && given[i + j] > 0 ? given[i + j] : 0;
            counts[i + j] = count, length += count;
            if (!count)
                for (int k = 0; k < n_topics; k++) table[k * n + i + j] = 1;
        }
    }
    return length;
}

/* mixed = sum_k weight[k] table[k]; skips weights of zero. */
static void TARGET(mix)(const double *table, const double *weight, int n_topics, ptrdiff_t n, double *mixed) {
    int k[4], found = 0, first = 1;
    for (int topic = 0; topic <= n_topics; topic++) {
        if (topic < n_topics) {
            if (weight[topic] == 0) continue;
            k[found++] = topic;
            if (found < 4) continue;
        } else if (!found && !first) {
            break;
        }
        const double *row[4];
        double w[4];
        for (int j = 0; j < 4; j++) {
            row[j] = table + (j < found ? k[j] * n : 0);
            w[j] = j < found ? weight[k[j]] : 0;
        }
        for (ptrdiff_t i = 0; i < n; i += LANES) {
            lanes sum = (w[0] * *(const lanes *)(row[0] + i) + w[1] * *(const lanes *)(row[1] + i)) +
                        (w[2] * *(const lanes *)(row[2] + i) + w[3] * *(const lanes *)(row[3] + i));
            if (!first) sum += *(const lanes *)(mixed + i);
            *(lanes *)(mixed + i) = sum;
        }
        first = found = 0;
    }
}

/* inverse = 1 / mixed; ratio = counts / mixed; gradient[k] = ratio . table[k]. */
static void TARGET(gradient_of)(const double *table, const double *counts, const double *mixed, int n_topics,
                                ptrdiff_t n, double *inverse, double *ratio, double *gradient) {
    int k = 0;
    for (ptrdiff_t i = 0; i < n; i += LANES) {
        const lanes one_over = 1 / *(const lanes *)(mixed + i);
        *(lanes *)(inverse + i) = one_over;
        *(lanes *)(ratio + i) = *(const lanes *)(counts + i) * one_over;
    }
    for (; k + 4 <= n_topics; k += 4) {
        const double *row = table + k * n;
        lanes a = {0}, b = {0}, c = {0}, d = {0};
        for (ptrdiff_t i = 0; i < n; i += LANES) {
            const lanes r = *(const lanes *)(ratio + i);
            a += r * *(const lanes *)(row + i);
            b += r * *(const lanes *)(row + n + i);
            c += r * *(const lanes *)(row + 2 * n + i);
            d += r * *(const lanes *)(row + 3 * n + i);
        }
        gradient[k] = sum_of(a), gradient[k + 1] = sum_of(b), gradient[k + 2] = sum_of(c), gradient[k + 3] = sum_of(d);
    }
    for (; k < n_topics; k++) {
        lanes a = {0};
        for (ptrdiff_t i = 0; i < n; i += LANES)
            a += *(const lanes *)(ratio + i) * *(const lanes *)(table + k * n + i);
        gradient[k] = sum_of(a);
    }
}

/* curvature[a, b] = sum_i table[a, i] table[b, i] / mixed[i]^2 counts[i], for the topics `active`; symmetric. */
static void TARGET(curvature_of)(const double *table, const double *ratio, const double *inverse, const int *active,
                                 int n_active, ptrdiff_t n, double *scaled, double *scale, double *curvature) {
    for (ptrdiff_t i = 0; i < n; i += LANES)
        *(lanes *)(scale + i) = *(const lanes *)(ratio + i) * *(const lanes *)(inverse + i);
    for (int a = 0; a < n_active; a++) {
        const double *row = table + active[a] * n;
        int b = 0;
        for (ptrdiff_t i = 0; i < n; i += LANES)
            *(lanes *)(scaled + i) = *(const lanes *)(row + i) * *(const lanes *)(scale + i);
        for (; b + 3 <= a; b += 4) { /* four at once; the one beyond the diagonal, if any, is its own mirror */
            const double *p = table + active[b] * n, *q = table + active[b + 1] * n, *r = table + active[b + 2] * n,
                         *s = table + active[b + 3] * n;
            lanes x = {0}, y = {0}, z = {0}, w = {0};
            for (ptrdiff_t i = 0; i < n; i += LANES) {
                const lanes m = *(const lanes *)(scaled + i);
                x += m * *(const lanes *)(p + i), y += m * *(const lanes *)(q + i);
                z += m * *(const lanes *)(r + i), w += m * *(const lanes *)(s + i);
            }
            curvature[a * n_active + b] = curvature[b * n_active + a] = sum_of(x);
            curvature[a * n_active + b + 1] = curvature[(b + 1) * n_active + a] = sum_of(y);
            curvature[a * n_active + b + 2] = curvature[(b + 2) * n_active + a] = sum_of(z);
            curvature[a * n_active + b + 3] = curvature[(b + 3) * n_active + a] = sum_of(w);
        }
        for (; b <= a; b++) {
            lanes x = {0};
            for (ptrdiff_t i = 0; i < n; i += LANES)
                x += *(const lanes *)(scaled + i) * *(const lanes *)(table + active[b] * n + i);
            curvature[a * n_active + b] = curvature[b * n_active + a] = sum_of(x);
        }
    }
}

/* Slope of sum counts log(mixed + step change) in step. */
static double TARGET(slope_at)(const double *counts, const double *mixed, const double *change, double step,
                               ptrdiff_t n) {
    lanes sum = {0};
    for (ptrdiff_t i = 0; i < n; i += LANES) {
        const lanes v = *(const lanes *)(change + i);
        sum += *(const lanes *)(counts + i) * v / (*(const lanes *)(mixed + i) + step * v);
    }
    return sum_of(sum);
}

/* sum counts log(mixed), as the logarithm of a product of powers.
 *
 * Powers by the binary digits of the counts, the highest first: all squared, then times the words with the next digit. The
 * product is kept from 1 to 2, its binary exponent apart. `scratch` takes the whole counts.
 */
static double TARGET(log_sum)(const double *counts, const double *mixed, ptrdiff_t n, double *scratch) {
    lanes product = {1, 1, 1, 1, 1, 1, 1, 1};
    const whole one = (whole)product;
    whole exponent = {0}, digits = {0}, tiny = {0};
    double total = 0;
    for (ptrdiff_t i = 0; i < n; i += LANES) {
        const whole count = __builtin_convertvector(*(const lanes *)(counts + i), whole);
        *(whole *)(scratch + i) = count;
        digits |= count;
        tiny |= *(const lanes *)(mixed + i) < DBL_MIN;
    }
    for (int j = 1; j < LANES; j++) digits[0] |= digits[j], tiny[0] |= tiny[j];
    if (tiny[0]) { /* such numbers have no binary exponent of their own */
        for (ptrdiff_t i = 0; i < n; i++) total += counts[i] > 0 ? counts[i] * log_one(mixed[i]) : 0;
        return total;
    }
    for (int place = digits[0] ? ilogb((double)digits[0]) : -1; place >= 0; place--) {
        product *= product, exponent += exponent;
        for (ptrdiff_t i = 0; i < n; i += LANES) {
            const whole has = -(*(const whole *)(scratch + i) >> place & 1);
            product *= (lanes)((*(const whole *)(mixed + i) & has) | (one & ~has));
            exponent += ((whole)product >> 52) - 1023;
            product = (lanes)(((whole)product & FRACTION) | one);
        }
    }
    for (int j = 0; j < LANES; j++) total += log_one(product[j]) + exponent[j] * LOG_2;
    return total;
}

/* Minimize p'Hp / 2 + g'p over p >= -weight by cyclic descent. A few passes suffice, because the outer loop corrects what is left. */
static void TARGET(descend)(const double *curvature, const double *weight, const double *slope, int size, double *step,
                            double *residual, double *inverse) {
    double largest = 0;
    for (int k = 0; k < size; k++) {
        step[k] = 0, residual[k] = slope[k];
        largest = fmax(largest, curvature[k * size + k]);
    }
    for (int k = 0; k < size; k++) inverse[k] = 1 / (curvature[k * size + k] + 1e-10 * largest); /* topics may be alike */
    for (int pass = 0; pass < PASSES; pass++) {
        for (int k = 0; k < size; k++) {
            double change = -residual[k] * inverse[k];
            if (weight[k] + step[k] + change < 0) change = -weight[k] - step[k];
            if (change == 0) continue;
            step[k] += change;
            for (int j = 0; j < size; j++) residual[j] += change * curvature[k * size + j];
        }
    }
}
