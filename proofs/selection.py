"""Selection of words: shares, thresholds and the strict test, as privacy/_partition.py has them.

A unit of n words has n equal shares whose squares add up to grid**2 at most, for every n and grid; the threshold is the
least that is safe; and a word is released if and only if the noise is above threshold - weight, of which `_escape`
computes the probability.
"""

import types

import numpy as np
import z3
from contributions import loaded
from llvm import Failed, Solver

FILE = "skdplda/privacy/_partition.py"
THRESHOLDS = (*range(2**12), *(2**i + j for i in range(12, 62) for j in (-1, 0, 1)))


class Number:
    def __init__(self, number):
        self.number = number

    def __mul__(self, other):
        return Number(self.number * other.number)

    def __add__(self, other):
        return Number(self.number + other)

    def __floordiv__(self, other):
        return Number(self.number / other.number)  # rounded down, for positive numbers


def shares(module):
    """For every grid and number of words: the largest share whose squares add up to the grid's square at most."""
    grid, n, square, root = z3.Ints("grid n square root")
    solver = Solver(grid >= 1, n >= 1, square >= 0, hub="")

    def isqrt(x):  # of the documentation of Python
        solver.facts += [square == x.number, root >= 0, root * root <= square, (root + 1) * (root + 1) > square]
        return Number(root)

    module.math = types.SimpleNamespace(**vars(module.math) | {"isqrt": isqrt})
    share = module.equal_share(Number(grid), Number(n)).number
    r, q = z3.Ints("r q")  # of grid**2 / n, rounded down to q; squares of shares are at most q, n of them n q
    whole = Solver(n >= 1, q >= 0, n * q <= grid * grid, r <= q, n * (q - r) >= 0, n * r == n * q - n * (q - r))
    whole.show(n * r <= grid * grid, "n shares of square r")
    solver.facts.append(square == (grid * grid) / n)
    solver.show(share * share <= (grid * grid) / n, "a share's square is a part of the grid's at most")
    solver.show((share + 1) * (share + 1) > (grid * grid) / n, "and no larger share's is")
    below = Solver(n >= 1, grid >= 1, hub="")
    below.show(n * ((grid * grid) / n) <= grid * grid, "n parts are at most the whole")
    return solver.n_shown + 2


def thresholds(module):
    """`_least` returns the least number that is safe."""
    for least in THRESHOLDS:
        found = module._least(lambda k, least=least: k >= least)
        if found != least:
            raise Failed(f"the least safe threshold is {least}, not {found}")
    return len(THRESHOLDS)


def releases(mutation):
    """All noise, weights and thresholds of a box: what is released is what `_escape` bounds."""
    module, n = loaded(FILE, mutation), 0
    box = range(-6, 7)
    for threshold in range(6):
        for weight in range(1, 7):
            noise = np.array(box)
            plan = module.PartitionPlan(
                "weighted_gaussian", 1, 1, "gaussian", (1.0,), (threshold,), (), 0, None, 0.0
            )  # fmt: skip
            units = types.SimpleNamespace(
                used=lambda n=noise: np.ones(len(n), np.int64),
                shared=lambda active, share, n=noise, w=weight: np.full(len(n), w, np.int64),
            )
            module._noise = lambda plan, scale, threshold, exact, randomness, draws, n=noise: (n, draws)
            released = module.select_words(plan, units, None)[0]
            hidden = np.setdiff1d(np.arange(noise.size), released)
            if not np.array_equal(noise[hidden], [z for z in box if z <= threshold - weight]):
                raise Failed(f"threshold {threshold}, weight {weight}: noise {noise[hidden]} hides the word")
            asked = []
            plan = types.SimpleNamespace(
                scales=(1.0,), mechanism="gaussian",
                law=types.SimpleNamespace(log_cdf=lambda x, scale, a=asked: a.append(x) or -0.5),
            )  # fmt: skip
            module._escape(plan, 0, threshold, 1, weight, weight)
            if asked[0] != threshold - weight:
                raise Failed(f"the probability of noise up to {asked[0]} is asked for")
            n += len(box)
    return n


def prove(mutation=None):
    n = shares(loaded(FILE, mutation)), thresholds(loaded(FILE, mutation)), releases(mutation)
    return f"{n[0]} claims about shares; {n[1]} thresholds and {n[2]} outcomes enumerated"


MUTANTS = {
    "shares are rounded up": (
        FILE,
        "return math.isqrt(grid * grid // n_words)",
        "return math.isqrt(grid * grid // n_words) + 1",
    ),
    "words at the threshold are released": (FILE, "passed = noisy > threshold", "passed = noisy >= threshold"),
    "the threshold is one too low": (
        FILE,
        "return bisect_left(range(most), True, key=safe)",
        "return max(bisect_left(range(most), True, key=safe) - 1, 0)",
    ),
    "the threshold is not the least": (
        FILE,
        "        most *= 2\n",
        "        most *= 2\n        if most > 1000: return most\n",
    ),
    "the probability is that of less noise": (
        FILE,
        "plan.law.log_cdf(threshold - weight, scale)",
        "plan.law.log_cdf(threshold - weight + 1, scale)",
    ),
}
