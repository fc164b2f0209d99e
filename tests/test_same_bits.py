"""What a seeded fit and a guarantee depend on is computed by operations that have the same bits on every machine.

`tests/fit_digests.py` shows it for some fits; this file forbids what may differ, and has a reason for each exception.
"""

import ast
import re
from pathlib import Path

import pytest

import skdplda

ROOT = Path(skdplda.__file__).parent
FOLDERS = (
    *("privacy", "semantics", "local", "priors", "rounds", "exact", "esteps", "models", "vocabulary", "published"),
    "model_selection",
)
# Functions of NumPy and of the C library (`np.exp`, `math.exp`), methods of arrays, laws of generators, and
# modules whose last bits may differ between processors, versions, numbers of threads or compilers.
FUNCTIONS = set(
    re.findall(
        r"\w+",
        """
        exp exp2 expm1 log log2 log10 log1p pow power float_power sin cos tan tanh sinh cosh arctan logaddexp cbrt
        hypot lgamma gamma erf erfc dist dot vdot inner matmul tensordot einsum trace sum prod mean var std average
        nansum nanmean median quantile percentile cov corrcoef convolve interp geomspace logspace linalg fft
        """,
    )
)
METHODS = {"sum", "mean", "var", "std", "dot", "trace", "prod"}
LAWS = set(
    re.findall(
        r"\w+",
        """
        normal standard_normal multivariate_normal gamma standard_gamma beta chisquare dirichlet laplace exponential
        standard_exponential poisson binomial negative_binomial multinomial geometric logseries uniform
        """,
    )
)
MODULES = ("scipy.special", "scipy.stats", "scipy.optimize", "scipy.linalg", "sklearn.cluster", "sklearn.decomposition")
WHOLE = "whole numbers below 2**53: exact in any order"
FLAGS = "counts flags or sizes"
ONES = "ones times numbers: sums alone, in the order of the entries"
EXCEPTIONS = {
    "esteps/_clusters.py:ClusterEStep._products": WHOLE,
    "esteps/_clusters.py:ClusterEStep._unit_sums": WHOLE,
    "esteps/_clusters.py:ClusterEStep.sum_directions": WHOLE,
    "esteps/_clusters.py:_squares": WHOLE,
    "esteps/_clusters.py:_weighted_sums": WHOLE,
    "models/_cluster_rounds.py:PublicStart.of_rows": WHOLE,
    "models/_clusters.py:BaseClusterModel._cosines": WHOLE,
    "models/_clusters.py:projected_rows": WHOLE,
    "models/_embedding.py:EmbeddingTopics._warn_fitted": FLAGS,
    "models/_hdp_sampler.py:DelayedCountSweeps.sweep": WHOLE,
    "models/_local.py:LocalPrivateLDA._check_budget": FLAGS,
    "models/_local.py:LocalPrivateLDA._reports": WHOLE,
    "models/_local.py:LocalPrivateLDA.fit_prior": WHOLE,
    "models/_local.py:column_sums": WHOLE,
    "models/_local_sampler.py:PartOfBits.__init__": WHOLE,
    "models/_labels.py:LabelCounts.table": "a table for readers, of released counts",
    "models/_labels.py:_nearest": WHOLE,
    "models/_periods.py:TopicCounts.clear_periods": WHOLE,
    "models/_periods.py:TopicCounts.shares": "a table for readers, of released counts",
    "models/_topics.py:TopicsMixin._noise_topics": FLAGS,
    "models/_topics.py:TopicsMixin.find_topics": FLAGS,
    "models/_topics.py:TopicsMixin.merge_topics": FLAGS,
    "models/_topics.py:warn_of_noise": FLAGS,
    "priors/_public.py:PublicPrior.from_texts": WHOLE,
    "priors/_public.py:_applied": WHOLE,
    "priors/_public.py:_association": WHOLE,
    "priors/_public.py:checked_numbers": FLAGS,
    "priors/_seeding.py": "linear_sum_assignment only adds, subtracts and compares",
    "privacy/_filter.py:choose_filter": "powers of a half: exact",
    "privacy/_noise.py:_is_below": "mpmath, in as many bits as the decision needs",
    "privacy/_partition.py:select_words": FLAGS,
    "rounds/_bounds.py:Contributions.add_rows": WHOLE + "; powers of order 1 or 2",
    "rounds/_bounds.py:Contributions.add_whole": "powers of order 1 or 2",
    "rounds/_bounds.py:_norms": WHOLE,
    "rounds/_bounds.py:_square": "compared with a bound that is far away",
    "rounds/_bounds.py:bounded_elsewhere": "compared with a bound that is far away",
    "rounds/_bounds.py:equal_contributions": ONES + "; powers of order 1 or 2",
    "rounds/_bounds.py:scaled": WHOLE,
    "rounds/_bounds.py:unit_weights": ONES + "; powers of order 1 or 2",
    "esteps/_methods.py:check_contribution": WHOLE,
    "semantics/_similarity.py:word_similarity": WHOLE,
    "semantics/_units.py:UnitMatrix.to_counts": ONES,
    "vocabulary/_selection.py:unit_words": ONES,
}


def forbidden(node):
    """Return what of a node of the syntax tree may have other bits elsewhere, or None."""
    if isinstance(node, ast.ImportFrom):
        return node.module if (node.module or "").startswith(MODULES) else None
    if isinstance(node, ast.Import):
        return next((alias.name for alias in node.names if alias.name.startswith(MODULES)), None)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("np", "math"):
        return f"{node.value.id}.{node.attr}" if node.attr in FUNCTIONS else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS | LAWS:
        of_module = isinstance(node.func.value, ast.Name) and node.func.value.id in ("np", "math", "mpmath")
        of_integers = any(key.arg == "dtype" and "int" in ast.unparse(key.value) for key in node.keywords)
        return None if of_module or of_integers else f".{node.func.attr}()"
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.MatMult):
        return "@"
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.Pow):
        base, exponent = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        square = isinstance(exponent, ast.Constant) and exponent.value == 2
        return None if square or (isinstance(base, ast.Constant) and base.value in (2, 10)) else "**"
    return None


def places(source, file):
    """Return {file:function, or the file for its module: what is forbidden there}."""
    found = {}

    def walk(node, where):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            where = (*where, node.name)
        if what := forbidden(node):
            found.setdefault(":".join(filter(None, (file, ".".join(where)))), set()).add(what)
        for child in ast.iter_child_nodes(node):
            walk(child, where)

    walk(ast.parse(source), ())
    return found


def test_fits_and_guarantees_are_computed_by_what_has_the_same_bits_everywhere():
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            found |= places(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    new = {place: what for place, what in found.items() if place not in EXCEPTIONS}
    assert not new, "use skdplda._arithmetic, or give a reason in EXCEPTIONS"
    assert not set(EXCEPTIONS) - set(found), "nothing is left there to except"


@pytest.mark.parametrize(
    "code",
    [
        "np.exp(x)", "math.log(x)", "x @ y", "x @= y", "x.sum()", "x.mean(axis=0)", "np.sum(x, axis=0)", "x**-0.5",
        "x **= 0.5", "np.linalg.norm(x)", "np.einsum('i,i', x, y)", "rng.normal(size=3)", "rng.poisson(x)",
        "from scipy.special import digamma", "import scipy.stats", "from sklearn.cluster import KMeans", "np.dot(x, y)",
    ],
)  # fmt: skip
def test_what_is_forbidden_is_found(code):
    assert places(f"def function(x, y, rng):\n    {code}\n", "file.py")


@pytest.mark.parametrize(
    "code", ["np.sqrt(x)", "x.sum(dtype=np.int64)", "x**2", "2.0**-40", "np.cumsum(x)", "total(x)"]
)
def test_what_is_the_same_everywhere_is_not(code):
    assert not places(f"def function(x):\n    {code}\n", "file.py")
