"""The normal distribution and roots with the same bits everywhere, against 300-bit arithmetic."""

import math

import mpmath
import numpy as np
import pytest
from internals import arithmetic

RANGES = {
    "mills": [(-37, 0, 6), (-1, 0, 6), (0, 1, 4), (0, 8, 4), (8, 60, 4), (60, 1e6, 4)],
    "ndtr": [(-37, -8, 6), (-8, 0, 6), (-1, 1, 6), (0, 40, 6)],
    "log_ndtr": [(-1000, -37, 6), (-37, 0, 6), (-1, 1, 6), (0, 37, 6)],
}


def exact(name, x):
    x = mpmath.mpf(x)
    if name == "ndtr":
        return mpmath.erfc(-x / mpmath.sqrt(2)) / 2
    if name == "mills":
        if x > 1000:  # four terms of the asymptotic series
            return (1 - 1 / x**2 + 3 / x**4 - 15 / x**6) / x
        return mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(x * x / 2) * mpmath.erfc(x / mpmath.sqrt(2))
    return mpmath.log1p(-exact("ndtr", -x)) if x > 0 else mpmath.log(exact("ndtr", x))


@pytest.mark.parametrize(("name", "low", "high", "most"), [(name, *part) for name in RANGES for part in RANGES[name]])
def test_errors_are_within_what_is_stated(name, low, high, most):
    function, x = getattr(arithmetic, name), np.linspace(low, high, 397)[1:-1]
    found = function(x)
    with mpmath.workprec(300):
        for value, number in zip(found.tolist(), x.tolist(), strict=True):
            wrong = abs(mpmath.mpf(value) - exact(name, number)) / math.ulp(value)
            assert wrong <= most, (number, float(wrong))


@pytest.mark.parametrize("name", ["exp", "log", "log1p", "expm1", "mills", "ndtr", "log_ndtr", "ndtri"])
def test_numbers_have_the_bits_of_arrays(name):
    function, x = getattr(arithmetic, name), np.linspace(0.001, 0.999, 333)
    assert (
        [function(value) for value in x.tolist()] == [function(np.array(value)) for value in x] == function(x).tolist()
    )
    assert type(function(np.float64(0.5))) is float


def test_ndtri_turns_ndtr_around():
    p = np.concatenate([np.linspace(0, 1, 203)[1:-1], 0.1 ** np.arange(1, 300, 7), 0.5 + np.array([-1, 0, 1]) / 2**40])
    for chance, x in zip(p.tolist(), arithmetic.ndtri(p).tolist(), strict=True):
        with mpmath.workprec(300):
            beyond = exact("ndtr", x) - chance if x < 0 else (1 - mpmath.mpf(chance)) - exact("ndtr", -x)
            density = mpmath.exp(-(mpmath.mpf(x) ** 2) / 2) / mpmath.sqrt(2 * mpmath.pi)
            assert abs(beyond / density) <= 2.0**-50 * (1 + abs(x))


def test_ends_and_what_is_no_number():
    nan, inf = math.nan, math.inf
    assert arithmetic.ndtri(np.array([0.0, 1.0])).tolist() == [-inf, inf]
    assert np.isnan(arithmetic.ndtri(np.array([nan, -1.0, 2.0]))).all()
    assert arithmetic.ndtr(np.array([-inf, -0.0, 0.0, inf])).tolist() == [0, 0.5, 0.5, 1]
    assert arithmetic.log_ndtr(np.array([-inf, inf])).tolist() == [-inf, 0]
    assert arithmetic.mills(np.array([inf, 1e300, -40.0])).tolist() == [0, 1e-300, inf]
    for name in ("mills", "ndtr", "log_ndtr"):
        assert math.isnan(getattr(arithmetic, name)(nan))


@pytest.mark.parametrize(
    ("function", "low", "high", "at"),
    [
        (lambda x: x * x - 2, 0.0, 5.0, 2**0.5),
        (lambda x: arithmetic.exp(x) - 1e100, 0.0, 700.0, 100 * math.log(10)),
        (lambda x: -1.0 if x < 3 else 1e6, 0.0, 40.0, 3.0),
        (lambda x: math.inf if x > 0.1 else x - 0.1, 0.0, 1.0, 0.1),
        (lambda x: 3.0 - arithmetic.exp(-x), -700.0, -1e-12, -math.log(3)),
    ],
)
def test_a_root_is_found_from_below(function, low, high, at):
    evaluated = []

    def counted(x):
        evaluated.append(x)
        return function(x)

    found = arithmetic.root(counted, low, high, 1e-5)
    assert function(found) <= 0
    assert at - 1e-5 <= found <= at + 1e-15 * abs(at)
    assert len(evaluated) < 100
