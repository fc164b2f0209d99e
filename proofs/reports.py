"""Randomized response: the law of flips in integers, and that it keeps the stated loss of a bit.

A gap of more than g positions has exactly survival[g] of the 2**64 words, which is 2**64 (1 - q)**(g + 1) but for less
than 1 + 2**-323, for every q = flips / 2**64; and `flips` keeps bit_epsilon, with what that costs.
"""

from contextlib import suppress
from itertools import pairwise

import z3
from contributions import loaded
from llvm import Failed, Machine, Pointer, Solver, bits, compiled, paths

FILE = "skdplda/local/_channel.py"
HEADER = "report_gaps.h"
REACH = 4  # entries of the table in the proof of the search
DRIVER = """
#include "report_gaps.h"
int64_t gap_in(const uint64_t *survival, int64_t reach, uint64_t word, int64_t first) {
    return gap_of(survival, reach, word, first);
}
"""


def search(mutation):
    """The compiled search: more than g positions if and only if the word is below survival[g]."""
    made, shown = compiled(DRIVER, mutation if mutation and mutation[0] == HEADER else None), 0
    table, word = [z3.BitVec(f"survival{g}", 64) for g in range(REACH)], z3.BitVec("word", 64)
    for reach in range(REACH + 1):
        for first in range(reach + 1):

            def run(decisions, reach=reach, first=first):
                nonlocal shown
                # it descends, and the guide is right: the word is below all numbers before `first`
                solver = Solver(*(z3.UGT(a, b) for a, b in pairwise(table)), hub="")
                solver.facts += [z3.ULT(word, x) for x in table[:first]]
                machine = Machine(made, solver, {}, decisions)
                memory = Pointer({8 * g: (8, table[g]) for g in range(reach)}, 0)
                found = machine.call("gap_in", [memory, bits(reach, 64), word, bits(first, 64)])
                for g in range(reach):
                    solver.show((found > g) == z3.ULT(word, table[g]), f"a gap is longer than {g} for survival words")
                solver.show(z3.And(found >= 0, found <= reach), "a gap of the table")
                shown += solver.n_shown
                return machine

            paths(run)
    return shown


class Count:
    """A whole number of Python that is not known, and at least 0."""

    def __init__(self, number):
        self.number = number

    def __rsub__(self, other):
        return Count(other - self.number)

    def __lshift__(self, n):
        return Count(self.number * 2**n)

    def __rshift__(self, n):
        return Count(self.number / 2**n)  # of z3: rounded down, for numbers that are not negative

    def __mul__(self, other):
        return Count(self.number * other.number)

    def __bool__(self):
        return True  # the table goes on; how long it is does not matter here


class Stop(Exception):
    pass


def table(mutation):
    """Return how many claims about `_gap_tables` were shown, for every number of flips."""
    flips, n_steps, entries = z3.Int("flips"), 4, []
    solver = Solver(flips >= 1, flips <= 2**63, hub="")

    class Numpy:
        uint64 = None

        def array(self, survival, dtype):
            entries.extend(x.number for x in survival)
            raise Stop

    def least(count, most):
        solver.show(count.number <= most, "an entry fits into 64 bits")
        return count

    module = loaded(FILE, mutation if mutation and mutation[0] == FILE else None, np=Numpy(), min=least)
    module.LONGEST_GAP = n_steps
    solver.cuts = []
    # left after each step, as it must be: rounded down from the one before
    stay, precision = 2**64 - flips, 2 ** (module.PRECISION - 64)
    left = [z3.Int(f"left{g}") for g in range(n_steps)]
    solver.facts += [left[0] == stay * precision, *(x >= 0 for x in left), *(x <= left[0] for x in left)]
    solver.facts += [b == (a * stay) / 2**64 for a, b in pairwise(left)]
    with suppress(Stop):
        module._gap_tables.__wrapped__(Count(flips))
    if len(entries) != n_steps:
        raise Failed("another number of entries")
    for g in range(n_steps):
        known = Solver(*solver.facts[:4], hub="")
        expected = stay * precision
        for _ in range(g):
            expected = (expected * stay) / 2**64
        known.show(entries[g] == expected / precision, f"entry {g} is what is left, rounded down")
        solver.n_shown += 1
    # one step, from any number left, T being without any rounding; and as often as the table is long
    a, b, s, e, exact = z3.Ints("a b s e exact")
    step = Solver(
        a >= 0, s >= 0, s <= 2**64, e >= 0, exact >= a, exact <= a + e, b * 2**64 <= a * s, a * s < b * 2**64 + 2**64
    )
    t = z3.Int("t")  # 2**64 times the next number without rounding
    step.facts += [t == exact * s, (exact - a) * s >= 0, (exact - a) * s <= e * 2**64, t == a * s + (exact - a) * s]
    step.show(z3.And(t >= b * 2**64, t <= (b + e + 1) * 2**64), "a step is wrong by one more unit")
    d, s2 = z3.Ints("d s2")
    Solver(d >= 0, d <= e, s2 >= 0, s2 <= 2**64, hub="").show(
        z3.And(d * s2 >= 0, z3.Implies(d == 0, d * s2 == 0)), "a product of numbers that are not negative"
    )
    if not (module.PRECISION >= 400 and 2 ** (module.PRECISION - 64 - 323) > 4096):
        raise Failed("4096 units are more than 2**-323")
    return solver.n_shown + 2


EPSILONS = (1e-6, 1e-3, 0.01, 0.1, 0.5, 1.0, 1.7, 2.0, 3.3, 5.0, 8.0, 12.0)
WORDS = (1, 10, 1000, 50_000, 10**6)


def losses(mutation):
    """Enclose the loss of a bit by intervals, with what the sampler's rounding may add, on a grid."""
    from mpmath import iv, mp

    module, n, iv.prec = loaded(FILE, mutation if mutation and mutation[0] == FILE else None), 0, 300
    for mechanism in module.MECHANISMS:
        for epsilon in EPSILONS:
            for n_words in WORDS:
                k = module._flips.__wrapped__(epsilon, mechanism, n_words)
                whole = iv.mpf(2**64)
                present = whole - k if mechanism == "symmetric" else whole / 2
                loss = iv.log(present / k) + iv.mpf(128 * n_words) / (k - 64)  # doc/theory/local.rst
                other = iv.log((whole - k) / (k if mechanism == "symmetric" else whole / 2)) + iv.mpf(128 * n_words) / (
                    k - 64
                )
                if not (0 < k <= 2**63 and loss.b <= mp.mpf(epsilon) and other.b <= mp.mpf(epsilon) and k == int(k)):
                    raise Failed(f"the loss of {mechanism}, {epsilon}, {n_words} words is up to {loss.b}")
                n += 1
    return n


def prove(mutation=None):
    n_losses = losses(mutation)
    n = search(mutation), table(mutation)
    return f"{n[0]} claims about the search, {n[1]} about tables of any flips; {n_losses} losses enclosed"


MUTANTS = {
    "a word that is equal goes on": (HEADER, "word < survival[first]", "word <= survival[first]"),
    "the first entry is left out": (HEADER, "return first;", "return first + (first == 0);"),
    "a step keeps too much": (FILE, "left = left * stay >> 64", "left = left * stay >> 63"),
    "entries are of the next gap": (
        FILE,
        "survival.append(min(left >> (PRECISION - 64), 2**64 - 1))\n        left = left * stay >> 64",
        "left = left * stay >> 64\n        survival.append(min(left >> (PRECISION - 64), 2**64 - 1))",
    ),
    "the cost of rounding is forgotten": (FILE, "inverse(target - slack)))", "inverse(target)))"),
}
