"""Contributions: what `scaled` and `add_whole` of rounds/_bounds.py let through has the norm bound at most.

The functions themselves run, in Python, on arrays of symbols: `numpy` is replaced by the few operations that they use.
What a value is before the last test does not matter, and is left open: any double, infinities and no numbers too.
"""

import sys
import types
from pathlib import Path

import z3
from llvm import EXACT, ROOT, Failed, Solver

BEYOND = EXACT // 2
FILE = "skdplda/rounds/_bounds.py"


def loaded(file, mutation=None, **names):
    """Run the source of a module, or a mutation of it, and replace names in it."""
    source = Path(ROOT, file).read_text()
    if mutation:
        old, new = mutation[1:]
        if source.count(old) != 1:
            raise ValueError(f"{file}: a mutation's text must stand there once: {old}")
        source = source.replace(old, new)
    module = types.ModuleType(f"proof of {file}")
    sys.modules[module.__name__] = module  # as dataclasses ask
    exec(compile(source, file, "exec"), module.__dict__)
    module.__dict__.update(names)
    return module


class Bound:
    """What is known of a double >= 0 that was made by rounding a whole number: see `rounding`."""

    def __init__(self, context, exact, no_number):
        self.value, self.exact, self.no_number = context.new("double"), exact, no_number
        context.solver.facts += [
            self.value >= 0,
            z3.Or(z3.And(self.value == exact, exact <= EXACT), self.value > BEYOND),
        ]

    def __le__(self, most):
        return z3.And(z3.Not(self.no_number), self.value <= most)

    def __gt__(self, most):
        return z3.And(z3.Not(self.no_number), self.value > most)


class Number:
    """A whole number, and whether it is none: infinite, or no number at all."""

    def __init__(self, context, name, finite=False):
        self.context, self.number, self.square = context, context.new(name), context.new(f"square of {name}")
        self.none = z3.BoolVal(False) if finite else z3.Bool(f"none {self.number}")
        # of the square of a whole number: it is not less, and 0 if and only if the number is
        context.solver.facts += [self.square >= self.number, self.square >= -self.number, self.square >= 0]

    def power(self, order):
        exact = self.square if order == 2 else z3.If(self.number >= 0, self.number, -self.number)
        no_number = z3.Bool(f"no number {self.context.new('')}")
        result = Bound(self.context, exact, z3.And(self.none, no_number))
        # infinite, or no number: then so is what is made of it
        self.context.solver.facts.append(z3.Implies(self.none, result.value > BEYOND))
        return result


class Open:
    """Any double."""


class Context:
    def __init__(self):
        self.solver, self.n, self.shown = Solver(hub=""), 0, 0

    def new(self, name):
        self.n += 1
        return z3.Int(f"{name}!{self.n}")


class Array:
    """A small array of symbols, with the operations that the functions use. `mask` says which rows were chosen."""

    def __init__(self, context, items, shape, kind, mask=None):
        self.context, self.items, self.shape, self.mask = context, list(items), tuple(shape), mask
        self.dtype = types.SimpleNamespace(kind=kind)
        self.ndim, self.size = len(self.shape), len(self.items)

    def __len__(self):
        return self.shape[0]

    def like(self, items, shape=None, kind=None):
        return Array(self.context, items, self.shape if shape is None else shape, kind or self.dtype.kind, self.mask)

    def reshape(self, *shape):
        shape = shape[0] if isinstance(shape[0], tuple) else shape
        return self.like(self.items, shape)

    def rows(self):
        width = len(self.items) // len(self)
        return [self.items[i * width : (i + 1) * width] for i in range(len(self))]

    def open_(self, *_):
        """Arithmetic of which nothing is used: any doubles, of the same shape."""
        return self.like([Open() for _ in self.items], kind="f")

    __truediv__ = __rtruediv__ = __floordiv__ = __add__ = __and__ = __rmul__ = open_

    def __mul__(self, other):
        if other is self and all(isinstance(x, Number) for x in self.items):
            return self.like([x.power(2) for x in self.items])
        return self.open_()

    def sum(self, axis):
        assert axis == 1
        return self.like([added(self.context, row) for row in self.rows()], (len(self),))

    def __le__(self, most):
        return self.like([x <= most for x in self.items], kind="b")

    def __gt__(self, most):
        return self.like([x > most for x in self.items], kind="b")

    def __invert__(self):
        return self.like([z3.Not(x) for x in self.items])

    def __getitem__(self, key):
        if isinstance(key, list):  # numbers of units, which are known
            return self.like([self.items[i] for i in key], (len(key),))
        if isinstance(key, tuple):
            return self[key[0]] if isinstance(key[0], list) else self
        if isinstance(key, Array):  # rows that are chosen
            return Array(self.context, self.items, self.shape, self.dtype.kind, key.items)
        raise TypeError(f"index {key!r}")

    def __setitem__(self, mask, value):
        assert value == 0
        width = len(self.items) // len(self)
        for i, x in enumerate(self.items):
            zero, old = mask.items[i // width], x
            x = self.items[i] = object.__new__(Number)
            x.context, x.none = self.context, z3.And(old.none, z3.Not(zero))
            x.number, x.square = z3.If(zero, 0, old.number), z3.If(zero, 0, old.square)

    def astype(self, kind):
        for x in self.items:
            self.context.solver.show(
                z3.And(z3.Not(x.none), x.number >= -(2**63), x.number < 2**63), "a number of 64 bits"
            )
        return self.like(self.items, kind="i")


def added(context, numbers):
    """Return a sum in any order, by `rounding`."""
    if any(isinstance(x, (Open, Number)) for x in numbers):
        return Open()
    none = z3.Or([x.no_number for x in numbers])
    result = Bound(context, z3.Sum([x.exact for x in numbers]), none)
    context.solver.facts += [z3.Implies(x.value > BEYOND, result.value > BEYOND) for x in numbers]
    return result


class Numpy:
    """The few functions of numpy that are used, on symbols."""

    int64, float64 = "i", "f"

    def __init__(self, context):
        self.context = context
        self.add = types.SimpleNamespace(at=lambda *_: None)  # the sum is any number: integers wrap around

    def prod(self, shape):
        result = 1
        for n in shape:
            result *= n
        return result

    def zeros(self, shape, dtype=None):
        shape = shape if isinstance(shape, tuple) else (shape,)
        return Array(self.context, [Open() for _ in range(self.prod(shape))], shape, "f")

    def abs(self, a):
        return a.like([Absolute(x) if isinstance(x, Number) else Open() for x in a.items])

    def trunc(self, a):
        return a.like([Number(self.context, "whole") for _ in a.items], kind="f")

    def asarray(self, a, dtype=None):
        return a

    def maximum(self, a, b):
        return a.open_()

    def sqrt(self, a):
        return a.open_()

    def bincount(self, unit, weights, n_units):
        parts = [[x for u, x in zip(unit, weights.items, strict=True) if u == i] for i in range(n_units)]
        return Array(self.context, [added(self.context, part) for part in parts], (n_units,), "f")


class Absolute(Bound):
    def __init__(self, x):
        other = x.power(1)
        self.value, self.exact, self.no_number = other.value, other.exact, other.no_number


def inputs(context, shape, kind):
    n = Numpy(context).prod(shape)
    make = (lambda: Open()) if kind == "f" else (lambda: Number(context, "input", finite=True))
    return Array(context, [make() for _ in range(n)], shape, kind)


def bounded(context, array, unit, bound, order):
    """Show that each unit's numbers have the norm at most."""
    for u in sorted(set(unit)):
        powers = []
        for i, (row, v) in enumerate(zip(array.rows(), unit, strict=True)):
            if v == u:
                power = [x.square if order == 2 else z3.If(x.number >= 0, x.number, -x.number) for x in row]
                powers += [p if array.mask is None else z3.If(array.mask[i], p, 0) for p in power]
        context.solver.show(z3.Sum(powers) <= bound**order, "a unit's norm is the bound at most")


def rounding():
    """Sums of whole doubles that are rounded: exact up to 2**53, and never back below 2**52.

    Of IEEE 754 it assumes that a result is a rounded exact one, that rounding keeps order, and that whole numbers of at
    most 2**53 are not rounded.
    """
    s1, s2, t1, t2, s, x, i = z3.Ints("s1 s2 t1 t2 s x i")
    within = lambda s, t: z3.Or(z3.And(s == t, t <= EXACT), s > BEYOND)  # noqa: E731

    def rounded(result, exact):
        keeps = [z3.Implies(exact >= c, result >= c) for c in (BEYOND + 1, EXACT)]  # c are doubles themselves
        return z3.And(z3.Implies(exact <= EXACT, result == exact), *keeps)

    shown = Solver(s1 >= 0, s2 >= 0, t1 >= 0, t2 >= 0, within(s1, t1), within(s2, t2), rounded(s, s1 + s2))
    shown.show(within(s, t1 + t2), "a sum")
    shown = Solver(x >= 0, rounded(s, x * x), x * x == i)
    shown.show(within(s, i), "a square of a whole double")
    # of a whole number of 64 bits that becomes a double first
    shown = Solver(i >= 0, rounded(x, i), rounded(s, x * x))
    shown.show(z3.Implies(x * x >= EXACT, s > BEYOND), "a large square")
    return 3


def scaled(mutation=None):
    shown = 0
    for shape, kind in (((3,), "i"), ((3, 2), "i"), ((3,), "f"), ((3, 2), "f")):
        context = Context()
        module = loaded(FILE, mutation, np=Numpy(context))
        module._finest = lambda rows, unit, n, c=context: inputs(c, rows.shape, "i")  # any whole numbers
        unit = [0, 1, 0]
        result = module.scaled(inputs(context, shape, kind), unit, 2)
        if result.shape != shape:
            raise Failed("another shape")
        bounded(context, result, unit, module.NORM_BOUND, 2)
        shown += context.solver.n_shown
    return shown


def add_whole(mutation=None):
    shown = 0
    for order in (1, 2):
        for shape in ((3,), (3, 2)):
            context = Context()
            module = loaded(FILE, mutation, np=Numpy(context))
            made, added_ = object.__new__(module.Contributions), []
            made._norm = order
            made._checked = lambda method, values, place, part, n: (place, part)
            made._merged = lambda values, place, part: (values, place, part)
            made._add = lambda values, place, a=added_: a.append(values)
            part = [0, 1, 0]
            module.np.errstate = None
            places = Array(context, [Open()] * 3, (3,), "i")
            made.add_whole.__wrapped__(made, inputs(context, shape, "i"), places, part, 2)
            if len(added_) != 1 or added_[0].shape != shape:
                raise Failed("something else is added")
            bounded(context, added_[0], part, module.NORM_BOUND, order)
            shown += context.solver.n_shown
    return shown


def prove(mutation=None):
    return f"{rounding() + scaled(mutation) + add_whole(mutation)} claims on eight shapes"


TEST = "rows[~(_norms(rows, unit, n_units, 2) <= NORM_BOUND**2)[unit]] = 0"
MUTANTS = {
    "no numbers pass the test of the norm": (
        FILE,
        TEST,
        "rows[(_norms(rows, unit, n_units, 2) > NORM_BOUND**2)[unit]] = 0",
    ),
    "the norm is not squared": (FILE, TEST, "rows[~(_norms(rows, unit, n_units, 1) <= NORM_BOUND**2)[unit]] = 0"),
    "each row has a bound of its own": (
        FILE,
        TEST,
        "rows[~(_norms(rows, list(range(len(rows))), len(rows), 2) <= NORM_BOUND**2)] = 0",
    ),
    "whole numbers beyond the bound are added": (
        FILE,
        "sound = (norms <= NORM_BOUND**self._norm)[part]",
        "sound = (norms <= NORM_BOUND**2)[part]",
    ),
}
