"""What a seeded fit and a guarantee depend on is computed by operations that have the same bits on every machine.

`tests/fit_digests.py` shows it for some fits; this file forbids what may differ, and has a reason for each exception.
"""

import ast
import re
from pathlib import Path

import pytest
from conftest import public_estimators

import skdplda

ROOT = Path(skdplda.__file__).parent
# What no fit, guarantee or release depends on.
APART = ("attacks", "audit", "cli", "datasets/_readers.py", "datasets/_synthetic.py", "plots", "reports")
APART += tuple(f"metrics/_{name}.py" for name in ("coherence", "following", "gensim", "topics", "vocabulary"))
# Functions of NumPy and of the C library (`np.exp`, `math.exp`), methods of arrays, laws of generators, sorts that are
# not stable, and modules whose last bits may differ between processors, versions, numbers of threads or compilers.
FUNCTIONS = set(
    re.findall(
        r"\w+",
        """
        exp exp2 expm1 log log2 log10 log1p pow power float_power sin cos tan tanh sinh cosh arctan logaddexp cbrt
        hypot lgamma gamma erf erfc dist dot vdot inner matmul tensordot einsum trace sum prod mean var std average
        nansum nanmean median quantile percentile cov corrcoef convolve interp geomspace logspace linalg fft sumprod
        argpartition partition arcsin arccos arctan2 arccosh arcsinh arctanh asin acos atan atan2 asinh acosh atanh sinc
        logaddexp2 nanvar nanstd nanprod nanpercentile polyfit polyval correlate trapezoid vecdot matvec vecmat i0
        histogram unwrap gradient kron
        """,
    )
)
METHODS = {"sum", "mean", "var", "std", "dot", "trace", "prod", "argpartition"}
LAWS = set(
    re.findall(
        r"\w+",
        """
        normal standard_normal multivariate_normal gamma standard_gamma beta chisquare dirichlet laplace exponential
        standard_exponential poisson binomial negative_binomial multinomial geometric logseries uniform lognormal gumbel
        triangular standard_t standard_cauchy pareto weibull wald logistic vonmises zipf rayleigh noncentral_chisquare
        """,
    )
)
MODULES = re.compile(
    r"scipy\.(special|stats|optimize|linalg|sparse\.linalg|spatial|cluster|signal|fft|integrate|interpolate|ndimage)"
    r"|numpy\.(linalg|fft|polynomial)|(statistics|random|cmath)$|dp_accounting\.(pld|rdp)"
)
# Of scikit-learn, what computes nothing or whole numbers.
SAFE = re.compile(
    r"sklearn(\.(get_config|base|exceptions|pipeline|utils|feature_extraction|feature_selection|model_selection)(\..*)?)?"
)
UNSAFE = re.compile(r"sklearn\.utils\.(extmath|sparsefuncs|fixes|arrayfuncs|graph|multiclass|class_weight)")
REDUCED = {"add", "multiply", "subtract", "divide", "true_divide", "power", "logaddexp", "hypot"}
WHOLE = "whole numbers below 2**53: exact in any order"
FLAGS = "counts flags, steps or sizes"
ONES = "ones times numbers: sums alone, in the order of the entries"
TREE = "a tree of topics that are released, no part of a fit: a last bit of its heights"
ROUNDED = "rounded up to fewer bits than differ: doc/theory/noise.rst, where it may not be enough"
EXCEPTIONS = {
    "_arithmetic.py:total": "of a shape",
    "_files.py:read_array": "of a shape",
    "_reading.py:ReadTexts.__len__": FLAGS,
    "_reading.py:ReadTexts.counts.groups": FLAGS,
    "_rows.py:run_sums": WHOLE,
    "_texts.py:hint_at_clauses": FLAGS,
    "_texts.py:most_frequent": WHOLE,
    "datasets/_disk.py:DiskCounts.blocks": WHOLE,
    "distributed/_actor.py:Part.n_documents": FLAGS,
    "distributed/_documents.py:ShardedDocuments.n_tokens": FLAGS,
    "distributed/_pool.py:Pool._describe": FLAGS,
    "distributed/_shards.py:ShardedCounts.by_user": FLAGS,
    "distributed/_shards.py:n_documents_of": FLAGS,
    "distributed/_shards.py:join_blocks": FLAGS,
    "esteps/_clusters.py:ClusterEStep._products": WHOLE,
    "esteps/_clusters.py:ClusterEStep._unit_sums": WHOLE,
    "esteps/_clusters.py:ClusterEStep.sum_directions": WHOLE,
    "esteps/_clusters.py:_squares": WHOLE,
    "esteps/_clusters.py:_weighted_sums": WHOLE,
    "esteps/_methods.py:check_contribution": WHOLE,
    "exact/_seeds.py:SeedCounts.total": WHOLE,
    "metrics/_likelihood.py:_weighted_sums": WHOLE,
    "metrics/_likelihood.py:unigram_perplexity": WHOLE,
    "models/_base.py:TrainingData.mean_length": WHOLE,
    "models/_cluster_rounds.py:PublicStart.of_rows": WHOLE,
    "models/_clusters.py": TREE,
    "models/_clusters.py:BaseClusterModel._cosines": WHOLE,
    "models/_clusters.py:projected_rows": WHOLE,
    "models/_embedding.py:EmbeddingTopics._warn_fitted": FLAGS,
    "models/_hdp_sampler.py:DelayedCountSweeps.sweep": WHOLE,
    "models/_labels.py:LabelCounts.table": "a table for readers, of released counts",
    "models/_labels.py:_nearest": WHOLE,
    "models/_labels.py:count_labels": FLAGS,
    "models/_local.py:LocalPrivateLDA._check_budget": FLAGS,
    "models/_local.py:LocalPrivateLDA._reports": WHOLE,
    "models/_local.py:LocalPrivateLDA.fit_prior": WHOLE,
    "models/_local.py:column_sums": WHOLE,
    "models/_local_sampler.py:PartOfBits.__init__": WHOLE,
    "models/_periods.py:TopicCounts.clear_periods": WHOLE,
    "models/_periods.py:TopicCounts.shares": "a table for readers, of released counts",
    "models/_topics.py": TREE,
    "models/_topics.py:TopicsMixin._noise_topics": FLAGS,
    "models/_topics.py:TopicsMixin.find_topics": FLAGS,
    "models/_topics.py:TopicsMixin.merge_topics": FLAGS,
    "models/_topics.py:warn_of_noise": FLAGS,
    "priors/_public.py:PublicPrior.from_texts": WHOLE,
    "priors/_public.py:_applied": WHOLE,
    "priors/_public.py:_association": WHOLE,
    "priors/_public.py:checked_numbers": FLAGS,
    "priors/_seeding.py": "linear_sum_assignment only adds, subtracts and compares",
    "privacy/_accounting.py:_Parts.n_convolved": FLAGS,
    "privacy/_accounting.py:_Parts.searches": FLAGS,
    "privacy/_accounting.py:_few": FLAGS,
    "privacy/_accounting.py:_loss_distribution": ROUNDED,
    "privacy/_accounting.py:_sampled_step": ROUNDED,
    "privacy/_accounting.py:renyi_accountant": ROUNDED,
    "privacy/_filter.py:choose_filter": "powers of a half: exact",
    "privacy/_noise.py:_is_below": "mpmath, in as many bits as the decision needs",
    "privacy/_partition.py:select_words": FLAGS,
    "releases/_clusters.py:ReleasedClusterModel.__init__": "compared with a bound that is far away",
    "releases/_guarantee.py": "names of classes",
    "releases/_model.py:ReleasedTopicModel.__init__": "compared with a bound that is far away",
    "releases/_model.py:_check_sizes": "compared with a bound that is far away",
    "rounds/_bounds.py:Contributions.add_rows": WHOLE + "; powers of order 1 or 2",
    "rounds/_bounds.py:Contributions.add_whole": "powers of order 1 or 2",
    "rounds/_bounds.py:_norms": WHOLE,
    "rounds/_bounds.py:_square": "compared with a bound that is far away",
    "rounds/_bounds.py:bounded_by_kernel": "compared with a bound that is far away",
    "rounds/_bounds.py:scaled": WHOLE,
    "rounds/_bounds.py:unit_weights": ONES + "; powers of order 1 or 2",
    "semantics/_similarity.py:word_similarity": WHOLE,
    "semantics/_units.py:UnitMatrix.to_counts": ONES,
    "vocabulary/_selection.py:refuse_repetitions": FLAGS,
    "vocabulary/_selection.py:unit_words": ONES,
}


def of_module(name):
    """Whether the last bits of what a module computes may differ."""
    return bool(MODULES.match(name) or UNSAFE.match(name) or (name.startswith("sklearn") and not SAFE.fullmatch(name)))


def imported(node):
    """Return what an import takes that may have other bits elsewhere, or None."""
    if isinstance(node, ast.Import):
        return next((alias.name for alias in node.names if of_module(alias.name)), None)
    module = node.module or ""
    names = [alias.name for alias in node.names]
    if of_module(module) or (module in ("math", "numpy") and {"*", *FUNCTIONS} & {*names}):
        return module
    return next((name for name in names if of_module(f"{module}.{name}")), None)


def attribute(node):
    """Return the dotted name of an attribute, or None if it is one of an expression."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def called(node):
    """Return what a call does that may have other bits elsewhere, or None."""
    keywords = {key.arg: ast.unparse(key.value) for key in node.keywords}
    if isinstance(node.func, ast.Name):
        floats = node.func.id == "sum" or (node.func.id == "pow" and len(node.args) == 2)
        return f"{node.func.id}()" if floats else None  # sum() compensates from Python 3.12 on
    if not isinstance(node.func, ast.Attribute):
        return None
    name = node.func.attr
    if name == "argsort" and keywords.get("kind") != "'stable'":
        return "argsort() that is not stable"
    if name == "choice" and "p" in keywords:
        return "choice() by probabilities"
    of_module = isinstance(node.func.value, ast.Name) and node.func.value.id in ("np", "math", "mpmath")
    integers = "int" in keywords.get("dtype", "")
    return f".{name}()" if name in METHODS | LAWS and not of_module and not integers else None


def forbidden(node):
    """Return what of a node of the syntax tree may have other bits elsewhere, or None."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return imported(node)
    if isinstance(node, ast.Attribute):
        name = attribute(node) or ""
        head, _, rest = name.partition(".")
        first, _, last = rest.partition(".")
        reduced = head == "np" and first in REDUCED and last in ("reduce", "reduceat")
        wrong = head in ("np", "math") and rest in FUNCTIONS
        wrong = wrong or (head in ("sp", "scipy") and rest and of_module(f"scipy.{rest}"))
        return name if wrong or reduced else None
    if isinstance(node, ast.Call):
        return called(node)
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.MatMult):
        return "@"
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.Pow):
        base, exponent = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        square = isinstance(exponent, ast.Constant) and exponent.value == 2
        return None if square or (isinstance(base, ast.Constant) and base.value == 2) else "**"
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
    for path in sorted(ROOT.rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        if not file.startswith(APART):
            found |= places(path.read_text(encoding="utf-8"), file)
    new = {place: what for place, what in found.items() if place not in EXCEPTIONS}
    assert not new, "use skdplda._arithmetic, or give a reason in EXCEPTIONS"
    assert not set(EXCEPTIONS) - set(found), "nothing is left there to except"


@pytest.mark.parametrize(
    "code",
    [
        "np.exp(x)", "math.log(x)", "x @ y", "x @= y", "x.sum()", "x.mean(axis=0)", "np.sum(x, axis=0)", "x**-0.5",
        "x **= 0.5", "np.linalg.norm(x)", "np.einsum('i,i', x, y)", "rng.normal(size=3)", "rng.poisson(x)",
        "from scipy.special import digamma", "import scipy.stats", "from sklearn.cluster import KMeans", "np.dot(x, y)",
        "np.add.reduce(x)", "np.add.reduceat(x, y)", "np.argsort(x)", "x.argsort(axis=1)", "np.argpartition(x, 3)",
        "from math import log", "from numpy import exp", "from scipy import special", "sp.linalg.norm(x)",
        "scipy.special.digamma(x)", "pow(x, 0.3)", "rng.choice(9, p=x)", "math.sumprod(x, y)", "import numpy.linalg",
        "sum(x)", "10.0**x", "from dp_accounting.pld import x",
        "import random", "from math import *", "np.partition(x, 3)",
        "from sklearn.utils.extmath import safe_sparse_dot", "from sklearn.preprocessing import normalize",
    ],
)  # fmt: skip
def test_what_is_forbidden_is_found(code):
    assert places(f"def function(x, y, rng):\n    {code}\n", "file.py")


@pytest.mark.parametrize(
    "code",
    [
        "np.sqrt(x)",
        "x.sum(dtype=np.int64)",
        "x**2",
        "2.0**-40",
        "np.cumsum(x)",
        "total(x)",
        "np.maximum.reduce(x)",
        "np.argsort(x, kind='stable')",
        "rng.choice(9, 3, replace=False)",
        "from math import sqrt",
        "pow(2, 3, 5)",
        "from scipy import sparse",
        "from sklearn.utils import check_array",
        "sp.csr_array(x)",
    ],
)
def test_what_is_the_same_everywhere_is_not(code):
    assert not places(f"def function(x):\n    {code}\n", "file.py")


def test_each_estimator_has_a_digest():
    """What is public has a seeded fit in `fit_digests.py`, by its name or by that of the pipeline that holds it."""
    source = (Path(__file__).parent / "fit_digests.py").read_text(encoding="utf-8")
    held = {"TextEmbedder": "make_insights_pipeline", "PrivatePipeline": "make_fdptm_pipeline"}
    names = [kind.__name__ for kind in public_estimators()]
    assert len(names) > 15
    assert [name for name in names if held.get(name, name) not in source] == []
