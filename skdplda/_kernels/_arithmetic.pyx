"""Elementary functions, and a random law, whose bits are the same on every processor.

NumPy's `exp` and `log`, SciPy's special functions and the C library may differ in the last bit from one processor or
version to another. These do not: see arithmetic.h.
"""

from cython.parallel cimport prange
from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint64_t

import numpy as np

from skdplda._kernels._random_stream cimport random_stream, stream_double, stream_of
from skdplda._kernels._simd cimport choose_simd

__all__ = ["digamma", "exp", "expm1", "gamma_rows", "log", "log1p", "log_ndtr", "mills", "ndtr", "ndtri"]

cdef extern from "arithmetic_dispatch.h" nogil:
    void exp_many(const double *x, double *out, int64_t n)
    void log_many(const double *x, double *out, int64_t n)
    void log1p_many(const double *x, double *out, int64_t n)
    void expm1_many(const double *x, double *out, int64_t n)
    void digamma_many(const double *x, double *out, int64_t n)
    void mills_many(const double *x, double *out, int64_t n)
    void ndtr_many(const double *x, double *out, int64_t n)
    void log_ndtr_many(const double *x, double *out, int64_t n)
    void ndtri_many(const double *x, double *out, int64_t n)
    double exp_one(double x)
    double log_one(double x)
    double log1p_one(double x)
    double expm1_one(double x)
    double mills_one(double x)
    double ndtr_one(double x)
    double log_ndtr_one(double x)
    double ndtri_one(double p)

ctypedef void (*loop)(const double *x, double *out, int64_t n) noexcept nogil

choose_simd()


cdef over(loop function, x):
    """Apply a function to a number or to all numbers of an array; the result has the shape, as float64."""
    values = np.asarray(x, np.float64)
    flat = np.ascontiguousarray(values).reshape(-1)
    found = np.empty(flat.shape)
    cdef const double[::1] given = flat
    cdef double[::1] out = found
    cdef int64_t n = given.shape[0]
    if n:
        with nogil:
            function(&given[0], &out[0], n)
    return found.reshape(values.shape) if values.ndim else float(found[0])


def exp(x):
    """exp(x), within 1 ulp.

    Equivalent to: ``np.exp(x)``, to 1 ulp
    """
    return exp_one(x) if isinstance(x, float) else over(exp_many, x)


def log(x):
    """Natural logarithm of x, within 1 ulp; -inf of 0, NaN below.

    Equivalent to: ``np.log(x)``, to 1 ulp
    """
    return log_one(x) if isinstance(x, float) else over(log_many, x)


def log1p(x):
    """log(1 + x), within 2 ulp.

    Equivalent to: ``np.log1p(x)``, to 2 ulp
    """
    return log1p_one(x) if isinstance(x, float) else over(log1p_many, x)


def expm1(x):
    """exp(x) - 1, within 3 ulp.

    Equivalent to: ``np.expm1(x)``, to 3 ulp
    """
    return expm1_one(x) if isinstance(x, float) else over(expm1_many, x)


def digamma(x):
    """Logarithmic derivative of the gamma function, of positive numbers; NaN of others.

    Equivalent to: ``scipy.special.digamma(x)``, to 2**-50 of 1 + its absolute value
    """
    return over(digamma_many, x)


def mills(x):
    """Mills' ratio of the normal distribution, P(Z > x) over the density at x, within 4 ulp; 6 below 0.

    Equivalent to: ``np.sqrt(np.pi / 2) * scipy.special.erfcx(x / np.sqrt(2))``, to 6 ulp
    """
    return mills_one(x) if isinstance(x, float) else over(mills_many, x)


def ndtr(x):
    """P(Z <= x) of the normal distribution, within 6 ulp.

    Equivalent to: ``scipy.special.ndtr(x)``, to 6 ulp
    """
    return ndtr_one(x) if isinstance(x, float) else over(ndtr_many, x)


def log_ndtr(x):
    """log P(Z <= x) of the normal distribution, within 6 ulp.

    Equivalent to: ``scipy.special.log_ndtr(x)``, to 6 ulp
    """
    return log_ndtr_one(x) if isinstance(x, float) else over(log_ndtr_many, x)


def ndtri(p):
    """The x with P(Z <= x) = p, within 2**-50 of 1 + its absolute value; NaN outside [0, 1].

    Equivalent to: ``scipy.special.ndtri(p)``, to 2**-50 of 1 + its absolute value
    """
    return ndtri_one(p) if isinstance(p, float) else over(ndtri_many, p)


cdef void fill_gamma(uint64_t seed, int64_t row, double shape, float *out, int64_t n) noexcept nogil:
    """Numbers of the Gamma distribution of mean 1. Source: Marsaglia and Tsang (2000), ACM TOMS 26(3)."""
    cdef random_stream stream = stream_of(seed, 0, row)
    cdef double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d), x = 0, y = 0, square, v, u, spare = 0
    cdef int64_t j = 0
    cdef bint spared = False
    while j < n:
        if shape == 1:
            out[j] = -log_one(1 - stream_double(&stream))
            j += 1
            continue
        if spared:  # the polar method makes two normal numbers at a time
            x = spare
        else:
            square = 0
            while not 0 < square < 1:
                x = 2 * stream_double(&stream) - 1
                y = 2 * stream_double(&stream) - 1
                square = x * x + y * y
            v = sqrt(-2 * log_one(square) / square)
            x, spare = x * v, y * v
        spared = not spared
        v = 1 + c * x
        if v <= 0:
            continue
        v = v * v * v
        u = 1 - stream_double(&stream)
        square = x * x
        if u < 1 - 0.0331 * square * square or log_one(u) < 0.5 * square + d * (1 - v + log_one(v)):
            out[j] = d * v / shape
            j += 1


def gamma_rows(uint64_t seed, double shape, int64_t n_rows, int64_t n_columns, int n_threads=1):
    """Independent numbers of the Gamma distribution of a shape of at least 1 and mean 1, row by row.

    Equivalent to: ``rng.gamma(shape, 1 / shape, (n_rows, n_columns)).astype(np.float32)``, in law
    """
    if not shape >= 1:
        raise ValueError(f"shape must be at least 1; got {shape!r}")
    found = np.empty((n_rows, n_columns), np.float32)
    cdef float[:, ::1] out = found
    cdef int64_t i
    if n_columns:
        for i in prange(n_rows, nogil=True, num_threads=n_threads, schedule="static"):
            fill_gamma(seed, i, shape, &out[i, 0], n_columns)
    return found
