"""Spending: the shares of a budget add up to no more than the whole, in floating point as it is written.

`take` itself runs on symbols. However many releases it allows, their precisions, 1 / multiplier**2, add up to at most
that of the whole budget.
"""

import types

import z3
from contributions import loaded
from llvm import Failed, Solver

FILE = "skdplda/privacy/_spending.py"
UNIT = z3.Q(1, 2**53)  # relative error of an operation that IEEE 754 rounds


class Flow:
    """What is known on one path, and the decisions that led there."""

    def __init__(self, decisions):
        self.solver, self.decisions, self.taken, self.n = Solver(hub=""), decisions, [], 0

    def rounded(self, exact):
        """Return a rounded result: within a factor of 1 +- 2**-53 of the exact one, above the subnormal numbers."""
        self.n += 1
        error, result = z3.Real(f"error{self.n}"), z3.Real(f"result{self.n}")
        self.solver.facts += [error >= -UNIT, error <= UNIT, result == exact * (1 + error)]
        return Double(self, result)


class Truth:
    def __init__(self, flow, condition):
        self.flow, self.condition = flow, condition

    def __bool__(self):
        i = len(self.flow.taken)
        choice = self.flow.decisions[i] if i < len(self.flow.decisions) else True
        self.flow.taken.append(choice)
        self.flow.solver.facts.append(self.condition if choice else z3.Not(self.condition))
        return choice


class Double:
    """A double that is a number: `take` refuses what is not finite."""

    def __init__(self, flow, value):
        self.flow, self.value = flow, value

    def __gt__(self, other):
        return Truth(self.flow, self.value > exactly(other))

    def __le__(self, other):
        return Truth(self.flow, self.value <= exactly(other))

    def __rtruediv__(self, other):
        return self.flow.rounded(exactly(other) / self.value)

    def __truediv__(self, other):
        return self.flow.rounded(self.value / exactly(other))

    def __mul__(self, other):
        return self.flow.rounded(self.value * exactly(other))

    __rmul__ = __mul__

    def __add__(self, other):
        return self.flow.rounded(self.value + exactly(other))

    __radd__ = __add__


def exactly(number):
    """Return a double as an exact rational."""
    return number.value if isinstance(number, Double) else z3.Q(*float(number).as_integer_ratio())


def release(mutation, decisions):
    """Run one `take` after others, whose shares add up to `before`; return the path, and what it gave."""
    flow = Flow(decisions)
    whole, before, share = z3.Reals("whole before share")
    flow.solver.facts += [whole > 0, before >= 0]

    def fsum(shares):  # correctly rounded, as the documentation of Python says
        if [type(x) for x in shares] != [str, Double]:
            raise Failed("other shares are added up")
        return flow.rounded(before + shares[1].value)

    def sqrt(x):
        flow.n += 1
        root = z3.Real(f"root{flow.n}")
        flow.solver.facts += [root >= 0, root * root == x.value]
        return flow.rounded(root)

    fake = types.SimpleNamespace(fsum=fsum, sqrt=sqrt, isfinite=lambda x: True)
    module = loaded(FILE, mutation, math=fake, float=lambda x: x)
    plan = types.SimpleNamespace(divides=True, multipliers=(Double(flow, whole),))
    spending = module.Spending(plan)
    spending._shares = ["before"]
    spending.multipliers = [None]
    try:
        multiplier = spending.take(Double(flow, share))
    except RuntimeError:
        return flow, None, module
    if spending.multipliers[1:] != [multiplier] or len(spending._shares) != 2 or spending._shares[1].value is not share:
        raise Failed("what is taken is not noted")
    return flow, multiplier.value, module


def prove(mutation=None):
    waiting, n_paths, n_shown, allowed = [()], 0, 0, 0
    whole, before, share = z3.Reals("whole before share")
    while waiting:
        decisions = waiting.pop()
        flow, multiplier, module = release(mutation, decisions)
        n_paths += 1
        waiting += [(*flow.taken[:i], not flow.taken[i]) for i in range(len(decisions), len(flow.taken))]
        if multiplier is None:
            continue
        allowed += 1
        solver = flow.solver
        rounding = z3.Q(*float(module.ROUNDING).as_integer_ratio())
        most = (1 + rounding) / (1 - 4 * UNIT)
        solver.show(share > 0, "a share is positive")
        solver.show(before + share <= most, "shares add up to no more than one and the rounding")
        # (whole / multiplier)**2 <= share / most, step by step: of the quotient, of its root, of the product
        factors, roots = errors(solver)
        q, r, m, e1, e2, e3 = z3.Reals("q r m e1 e2 e3")
        bounds = [z3.And(e >= -UNIT, e <= UNIT) for e in (e1, e2, e3)]
        asked = quotient(solver, share)
        n_shown += 1
        step = Solver(share > 0, q * share == asked * (1 + e1), *bounds, hub="")
        step.show(q * share >= asked * (1 - UNIT), "the quotient")
        step = Solver(*bounds, r > 0, q > 0, r * r == q, m == r * (1 + e2) * (1 + e3), hub="")
        step.show(m >= r * (1 - UNIT) * (1 - UNIT), "the root and the product")
        worst = asked * (1 - UNIT) * ((1 - UNIT) * (1 - UNIT)) * ((1 - UNIT) * (1 - UNIT))
        Solver(hub="").show(worst >= most, "noise is larger by what rounding may have made the shares larger")
        structure(solver, factors, roots, multiplier, whole)
        n_shown += solver.n_shown + 4
    if not allowed:
        raise Failed("nothing is ever allowed")
    # precisions of releases: each at most share / most of the whole's, so together at most the sum over most
    total, c = z3.Reals("total c")
    Solver(c > 0, total <= c, hub="").show(total / c <= 1, "the sum of precisions")
    return f"{n_shown + 1} claims on {n_paths} paths, for any number of releases"


def errors(solver):
    """Return the roundings of a path, result == exact * (1 + error), and its roots, root * root == x."""
    factors = [f for f in solver.facts if f.decl().kind() == z3.Z3_OP_EQ and str(f.arg(0)).startswith("result")]
    roots = [f for f in solver.facts if f.decl().kind() == z3.Z3_OP_EQ and str(f.arg(0)).startswith("root")]
    return factors, roots


def quotient(solver, share):
    """Return what is divided by the share: the only division."""
    found = [
        f.arg(1).arg(0) for f in errors(solver)[0]
        if f.arg(1).arg(0).decl().kind() == z3.Z3_OP_DIV and f.arg(1).arg(0).arg(1).eq(share)
    ]  # fmt: skip
    if len(found) != 1:
        raise Failed("a share is not divided by once")
    return found[0].arg(0)


def structure(solver, factors, roots, multiplier, whole):
    """Show that the multiplier is the whole's times the root of that quotient, each rounded once."""
    if len(roots) != 1:
        raise Failed("not one root")
    last = next(f for f in factors if f.arg(0).eq(multiplier))
    root = next(f for f in factors if f.arg(1).arg(0).eq(z3.Real(str(roots[0].arg(0).arg(0)))))
    divided = next(f for f in factors if f.arg(0).eq(roots[0].arg(1)))
    if divided.arg(1).arg(0).decl().kind() != z3.Z3_OP_DIV:
        raise Failed("the root is not of the quotient")
    z = last.arg(1).arg(0)
    if not (z.eq(whole * root.arg(0)) or z.eq(root.arg(0) * whole)):
        raise Failed(f"the multiplier is {z}")


ROOT = "self.plan.multipliers[0] * math.sqrt((1 + 2 * ROUNDING) / share)"
MUTANTS = {
    "the margin for rounding is left out": (FILE, ROOT, "self.plan.multipliers[0] * math.sqrt(1.0 / share)"),
    "the root is left out": (FILE, ROOT, "self.plan.multipliers[0] * ((1 + 2 * ROUNDING) / share)"),
    "negative shares are allowed": (FILE, "share > 0 and math.fsum", "math.fsum"),
    "the last share is not added up": (FILE, "math.fsum([*self._shares, share])", "math.fsum(self._shares)"),
    "shares are not noted": (FILE, "            self._shares.append(share)\n", ""),
    "two budgets are spent": (FILE, "<= 1 + ROUNDING", "<= 2 + ROUNDING"),
}
