"""Tables of noise: every probability that they hold is within a factor of 1 +- 2**-100 of its law, by ball arithmetic.

For each scale of a grid, each entry that the kernel reads from a table of privacy/_noise.py is compared with the law,
which flint's arb encloses. Within a bucket an integer has its part of a rectangle and of a wedge; what the wedge's own
arithmetic may add, and what is beyond the cut, is argued in doc/theory/noise.rst.
"""

import math

from contributions import loaded
from llvm import Failed

FILE = "skdplda/privacy/_noise.py"
# Single integers | buckets (64), offsets in the first word | outside (2**22), extremes, and scales between.
SCALES = (0.05, 0.3, 1.0, 7.3, 63.9, 64.0, 127.9, 300.0, 2.0**22 - 1, 2.0**22, 1e9, 2.0**50, 2.0**-40)
MANY = 1000  # of --all: 2**-40 to 2**50
BITS = 800  # of enclosures
WEDGE = -111  # log2 of what wedge_draw may add, 7 * 2**-114: doc/theory/noise.rst
LIMIT = -100


def grid(n):
    """Return n scales at equal ratios, with all their bits."""
    return [2.0 ** (-40 + 90 * (i + 0.37) / n) for i in range(n)]


def ends_of(table):
    """Return the ends of the entries as whole numbers, and how many bits they have."""
    words = zip(table.high.tolist(), table.low.tolist(), table.least.tolist(), strict=True)
    return [(high << 128) + (low << 64) + least for high, low, least in words], 191 - table.folded


def law_of(name, scale):
    """Return enclosures: P(magnitude >= x), and the density of Y at y, of doc/theory/noise.rst."""
    from flint import arb

    s = arb(scale)
    if name == "gaussian":
        root = arb(2).sqrt() * s
        return (
            lambda x: ((2 * arb(x) - 1) / (2 * root)).erfc(),
            lambda y: 2 * (-(((arb(y) + arb(0.5)) / s) ** 2) / 2).exp() / (s * (2 * arb.pi()).sqrt()),
        )
    q = (-1 / s).exp()
    whole = 2 * q / (1 + q)
    return lambda x: whole * (-(arb(x) - 1) / s).exp(), lambda y: whole * (-arb(y) / s).exp() / s


def worst(module, name, scale):
    """Return log2 of an upper bound on the relative error of all integers of a table."""
    from flint import arb, ctx

    ctx.prec = BITS
    table = (module._gaussian_table if name == "gaussian" else module._laplace_table).__wrapped__(scale)
    (ends, bits), (at_least, density) = ends_of(table), law_of(name, scale)
    masses = [arb(b - a) / arb(2) ** bits for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    if ends[-1] != 1 << bits or ends != sorted(ends):
        raise Failed(f"{name}, {scale}: the ends do not ascend to one")
    width, errors = 2**table.shift, []
    n_buckets = (len(ends) - 1) // 2 if table.shift else len(ends) - 1
    left = arb(ends[n_buckets] - ends[table.cut]) / arb(2) ** bits  # beyond the cut: up to two runs of entries
    if table.shift:
        left += arb(ends[-1] - ends[n_buckets + table.cut]) / arb(2) ** bits
    beyond = at_least(1 + table.cut * width)
    if not table.cut:  # at tiny scales the tail gets 2**-64, and sends back what is too much
        if beyond < arb(2) ** -64:
            errors.append(abs(left * 2**64 - 1))
            masses[0] = 1 - left * 2**64 * beyond
        else:
            errors.append(abs(left / beyond - 1))
    else:
        errors.append(abs(left / beyond - 1))
    errors.append(abs(masses[0] / (1 - at_least(1)) - 1))
    for b in range(table.cut):
        exact = at_least(1 + b * width) - at_least(1 + (b + 1) * width)
        if not table.shift:
            errors.append(abs(masses[1 + b] / exact - 1))
            continue
        rectangle = width * density((b + 1) * width)
        wedge, steepest = exact - rectangle, density(b * width) / density((b + 1) * width) - 1
        # an integer's part of the wedge is at most `steepest` times its part of the rectangle
        errors.append(
            abs(masses[1 + b] / rectangle - 1) + abs(masses[1 + n_buckets + b] / wedge - 1) * steepest + arb(2) ** WEDGE
        )
    if table.shift:  # what the wedge is drawn by
        h = arb(width) / arb(scale)
        slope, bend = (h / (2 * arb(scale)) + h * h, h * h) if name == "gaussian" else (h, arb(0))
        words = table.wedge.tolist()
        for i, value in enumerate((slope, bend)):
            held = arb((words[2 * i] << 64) + words[2 * i + 1]) / arb(2) ** 128
            if not abs(held - value) < arb(2) ** -127:
                raise Failed(f"{name}, {scale}: a constant of the wedge is wrong by 2**-127 or more")
    for error in errors:
        if not error < arb(2) ** LIMIT:
            raise Failed(f"{name}, {scale}: an integer's probability is wrong by {error.upper().str(3)} of it")
    most = max(float(error.upper()) for error in errors)
    return (math.log2(most) if most else -BITS), len(errors)


def prove(mutation=None, n=20):
    module, most, n_entries, scales = loaded(FILE, mutation), -math.inf, 0, [*SCALES, *grid(n)]
    for scale in scales:
        for name in ("gaussian", "laplace"):
            error, entries = worst(module, name, scale)
            most, n_entries = max(most, error), n_entries + entries
    return f"{n_entries} entries of {2 * len(scales)} tables enclosed, all within 2**{most:.1f} of their law"


MUTANTS = {
    "a series ends too early": (FILE, "while term >> (PRECISION - 200):", "while term >> (PRECISION - 90):"),
    "the density of a bucket has too few terms": (FILE, "max(SERIES_BITS - 215", "max(SERIES_BITS - 80"),
    "rectangles end at the inner edge": (FILE, "return _pack(tails, floors[1:],", "return _pack(tails, floors[:-1],"),
    "ends have 128 bits": (
        FILE,
        "ends.append(end >> (PRECISION - bits - 128))",
        "ends.append(end >> (PRECISION - bits - 64) << 64)",
    ),
    "the wedge has the slope of another scale": (
        FILE,
        "first * width + width**2, width**2, cut)",
        "first * width + width**2, width, cut)",
    ),
}
