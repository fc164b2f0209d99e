/* Eigenvectors, inverses and orthonormal rows of small matrices, in an order that is written here.
 *
 * LAPACK's depend on the processor in the last bits. Matrices are square, of n rows, one after the other.
 */
#ifndef SKDPLDA_LINEAR_ALGEBRA_H
#define SKDPLDA_LINEAR_ALGEBRA_H
#include "arithmetic.h"

/* to[i] += factor from[i] */
static inline void add_multiple(double factor, const double *from, double *to, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] += factor * from[i];
}

/* Make the symmetric matrix `a` tridiagonal, by reflections: d is the diagonal then, e what is beside it. The rows of `q`
 * become the basis in which it is; v and w have room for n numbers. */
static void tridiagonalize(double *a, double *q, double *d, double *e, double *v, double *w, int64_t n) {
    for (int64_t i = 0; i < n * n; i++) q[i] = 0;
    for (int64_t i = 0; i < n; i++) q[i * n + i] = 1;
    for (int64_t k = 0; k + 2 < n; k++) {
        double square = 0, product = 0;
        for (int64_t i = k + 1; i < n; i++) { v[i] = a[i * n + k]; square += v[i] * v[i]; }
        const double length = sqrt(square), first = v[k + 1];
        e[k] = first > 0 ? -length : length;
        v[k + 1] -= e[k];
        const double scale = length * (length + (first > 0 ? first : -first)); /* half the square of the new v */
        if (!(scale > 0x1p-900)) { e[k] = first; continue; } /* its inverse must be finite; beside 1 it is nothing */
        const double factor = 1 / scale;
        for (int64_t i = k + 1; i < n; i++) w[i] = 0;
        for (int64_t j = k + 1; j < n; j++) add_multiple(v[j], a + j * n + k + 1, w + k + 1, n - k - 1);
        for (int64_t i = k + 1; i < n; i++) { w[i] *= factor; product += w[i] * v[i]; }
        for (int64_t i = k + 1; i < n; i++) w[i] -= 0.5 * factor * product * v[i];
        for (int64_t i = k + 1; i < n; i++) {
            add_multiple(-v[i], w + k + 1, a + i * n + k + 1, n - k - 1);
            add_multiple(-w[i], v + k + 1, a + i * n + k + 1, n - k - 1);
        }
        /* Rows of q are reflected: q <- H q. */
        for (int64_t i = 0; i < n; i++) w[i] = 0;
        for (int64_t j = k + 1; j < n; j++) add_multiple(v[j], q + j * n, w, n);
        for (int64_t j = k + 1; j < n; j++) add_multiple(-factor * v[j], w, q + j * n, n);
    }
    if (n > 1) e[n - 2] = a[(n - 1) * n + n - 2];
    for (int64_t i = 0; i < n; i++) d[i] = a[i * n + i];
}

/* Eigenvalues of the tridiagonal matrix, of numbers of about 1, in d; the rows of q become their vectors. 0 if it does not
 * converge.
 * Implicit shifts: Bowdler, Martin, Reinsch and Wilkinson (1968), The QR and QL algorithms for symmetric matrices. */
static int diagonalize(double *q, double *d, double *e, int64_t n) {
    enum { SLOW_TURNS = 20, MOST_TURNS = 60 };
    e[n - 1] = 0;
    for (int64_t l = 0; l < n; l++) {
        for (int turn = 0;; turn++) {
            const double least = turn < SLOW_TURNS ? 0.125 : 8; /* beside large numbers small ones may not get smaller */
            int64_t m = l;
            while (m + 1 < n && fabs(e[m]) > 0x1p-53 * (fabs(d[m]) + fabs(d[m + 1]) + least)) m++;
            if (m == l) break;
            if (turn == MOST_TURNS) return 0;
            const double slope = (d[l + 1] - d[l]) / (2 * e[l]), root = sqrt(slope * slope + 1);
            double g = d[m] - d[l] + e[l] / (slope + (slope < 0 ? -root : root));
            double s = 1, c = 1, p = 0;
            int64_t i = m - 1;
            for (; i >= l; i--) {
                const double f = s * e[i], b = c * e[i], r = sqrt(f * f + g * g);
                e[i + 1] = r;
                if (r == 0) { d[i + 1] -= p; e[m] = 0; break; }
                s = f / r; c = g / r;
                g = d[i + 1] - p;
                const double t = (d[i] - g) * s + 2 * c * b;
                p = s * t;
                d[i + 1] = g + p;
                g = c * t - b;
                double *lower = q + i * n, *upper = q + (i + 1) * n;
                for (int64_t j = 0; j < n; j++) {
                    const double x = lower[j], y = upper[j];
                    upper[j] = s * x + c * y;
                    lower[j] = c * x - s * y;
                }
            }
            if (i >= l) continue;
            d[l] -= p; e[l] = g; e[m] = 0;
        }
    }
    return 1;
}

/* Replace a positive definite matrix by its inverse, by Cholesky's factors; b has room for n * n numbers. 0 if it is not
 * positive definite. */
static int invert(double *a, double *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {       /* a becomes the lower factor */
        for (int64_t j = 0; j <= i; j++) {
            double sum = a[i * n + j];
            for (int64_t k = 0; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
            if (i > j) a[i * n + j] = sum / a[j * n + j];
            else if (sum > 0) a[i * n + i] = sqrt(sum);
            else return 0;
        }
    }
    for (int64_t i = 0; i < n; i++) {       /* b becomes the inverse of the factor, row by row */
        for (int64_t j = 0; j < n; j++) b[i * n + j] = i == j;
        for (int64_t k = 0; k < i; k++) add_multiple(-a[i * n + k], b + k * n, b + i * n, i);
        for (int64_t j = 0; j <= i; j++) b[i * n + j] /= a[i * n + i];
    }
    for (int64_t i = 0; i < n * n; i++) a[i] = 0;
    for (int64_t k = 0; k < n; k++)         /* a becomes b' b */
        for (int64_t i = 0; i <= k; i++) add_multiple(b[k * n + i], b + k * n, a + i * n, k + 1);
    return 1;
}
#endif
