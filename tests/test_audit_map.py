"""The audit map: the only places that add up what privacy units contribute, and the only places that draw noise.

An auditor reads the files of `MAP`, which README.md, CONTRIBUTING.md and the docstring of `skdplda/rounds/_loop.py`
name, and the functions that the map lists for each. No other place may come in unseen: `audit_places.txt` has all that
adds up numbers, draws or touches documents, function by function, and whatever it does not list fails. When a line is
missing, decide first whether MAP must have the function; `python tests/test_audit_map.py` prints the lines to change.
"""

import ast
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import PACKAGE

from skdplda.privacy import MECHANISMS

PLACES = Path(__file__).with_name("audit_places.txt")
WORD = r"[\w.]+"
# Sums and other statistics of many numbers, by the last name of what is called; "@" is the operator.
SUMS = set(
    re.findall(
        WORD,
        """
        accumulate add.at add.reduce add.reduceat agg aggregate average bincount convolve corrcoef correlate
        count_nonzero Counter cov crosstab cumsum dot eigh einsum fsum groupby histogram histogram2d histogramdd inner
        lstsq matmul mean median multi_dot nanmean nansum norm percentile pivot_table quantile reduce reduceat std sum
        svd tensordot trace value_counts var vdot
        """,
    )
)
# Those of the package: E-steps (`collect`), words of units, workers, methods of kernels, and what makes a `Bounded`.
MAKERS = {"add_scaled", "add_whole", "add_rows", "bounded_by_kernel", "_make_bounded"}
SUMS |= {"collect", "used", "shared", "filled", "total", "sum_weighted", "move"} | MAKERS
SUM_METHODS = ("_sum_", "sum_", "collect", "votes")  # how methods of E-steps and queries begin, by convention
# All laws of NumPy's generators, all of SciPy's (`rvs`), sources of bits, and the samplers of the package.
LAWS = {name for kind in (np.random.Generator, np.random.RandomState) for name in dir(kind) if name[0] != "_"}
SOURCES = set(
    re.findall(
        WORD,
        """
        Generator MT19937 PCG64 PCG64DXSM Philox RandomState SFC64 SeedSequence SystemRandom default_rng getrandbits
        getrandom randbelow randbytes rvs token_bytes token_hex uniform urandom uuid4
        """,
    )
)
SOURCES |= {"sampler", "draw", "randomize", "randomize_bits", *(law.sampler.__name__ for law in MECHANISMS.values())}
MODULES = {"random", "secrets", "scipy.stats", "numpy.random"}  # whose import is told
DOCUMENTS = {"X", "raw_documents", "documents", "texts", "indptr", "doc_topic", "units"}  # by the names that they have
# Of these, only what draws is told: they see released, public or made-up values, or are the curator's own audits.
ONLY_DRAWS = {"attacks", "audit", "datasets", "metrics", "plots", "reports"}

# File to audit: what happens there, the functions that add up, and those that draw noise, as file:function.
MAP = {
    "rounds/_loop.py": (
        "Private rounds: the noisy sum of units, each bounded by rounds/_bounds.py, on workers too.",
        {
            "rounds/_loop.py:converse.answer",
            "exact/_loop.py:answer_exactly.collected",  # without noise, and without a promise
            "esteps/_gibbs.py:GibbsEStep.collect",
            "esteps/_gibbs.py:GibbsEStep.restore",  # the counts from which the next sweep goes on
            "exact/_expected.py:ExpectedTopics.collect",  # without noise only
            "esteps/_listed.py:ListedEStep.collect",  # the same
            "esteps/_segments.py:SegmentEStep.collect",
            "esteps/_variational.py:VariationalEStep.collect",
            # What all of these add up by: each unit's part is checked in whole numbers.
            "rounds/_bounds.py:Contributions.add_rows",
            "rounds/_bounds.py:Contributions._merged",
            "rounds/_bounds.py:Contributions._add",
            "rounds/_bounds.py:weighted_words",
            # Where releases divide the budget; lemmas are those of doc/theory/adaptive.rst.
            "esteps/_adaptive.py:AdaptiveEStep.collect",  # by the query, or topics, by the model's E-step: Lemma 6
            "rounds/_queries.py:WordTotals.collect",  # unit_weights of rounds/_bounds.py: Lemma 1
            "rounds/_queries.py:Votes.collect",  # of norm 1, and of a unit the mean: Lemmas 2 and 7
            "rounds/_queries.py:VectorVotes.votes",  # clipped
            "rounds/_queries.py:TopicVotes.votes",  # clipped
            "rounds/_queries.py:PriorVotes.votes",  # scaled to norm 1: Lemma 7
            "rounds/_held_out.py:own_parts",  # of one document's own part, and of its held-out words: clipped later
            "rounds/_held_out.py:gains_of_unseen",
            "rounds/_queries.py:VectorSums.collect",  # products of rows of length 1: Lemma 3
            "rounds/_queries.py:ClusterCounts.collect",  # the same, or unit_weights for users: Lemma 4
            "rounds/_queries.py:ClusterCounts._add",  # a part of them
            # Clusters of embeddings; lemmas are those of doc/theory/embedding.rst.
            "rounds/_bounds.py:scaled",  # a unit's norm, in integers: Lemma 2
            "esteps/_clusters.py:ClusterEStep.collect",  # by its four methods below
            "esteps/_clusters.py:ClusterEStep.sum_directions",  # SIZE and STEP, or `scaled`: Lemmas 2, 3
            "esteps/_clusters.py:ClusterEStep._add_shared",  # the latter
            "esteps/_clusters.py:ClusterEStep._unit_sums",  # before it is scaled there
            "esteps/_clusters.py:ClusterEStep.sum_words",  # unit_weights of rounds/_bounds.py
            "esteps/_clusters.py:ClusterEStep.sum_cluster_words",  # `scaled`
            "esteps/_clusters.py:ClusterEStep.sum_cluster_votes",  # clipped, of a unit the mean: Lemma 5
            # Estimators of other authors, whatever their documents' values are: doc/theory/rounds.rst.
            "esteps/_methods.py:UnitEStep._add",  # a user's documents, and then units, by `scaled`
            "models/_periods.py:PeriodEStep.collect",  # a unit's sum, which is checked: doc/theory/periods.rst
            "models/_labels.py:LabelEStep.collect",  # 1 / most of the bound for each label: doc/theory/labels.rst
            "esteps/_sharded.py:PartialEStep.collect",
            "esteps/_sharded.py:ShardedEStep.collect",
            "distributed/_actor.py:Actor.total",
            "distributed/_pool.py:ActorPool.total.add_up",
        },
        {"rounds/_loop.py:converse.answer", "rounds/_plans.py:NoisePlan.draw"},  # of the scale of Spending.take
    ),
    "models/_hdp_sampler.py": (
        "HDPLDA: counts in which one token moves two cells by 1, noisy tables, and draws that are released.",
        {
            "models/_hdp_sampler.py:DelayedCountSweeps._draw",
            "models/_hdp_sampler.py:PartOfTokens.draw",
            "models/_hdp_sampler.py:ShardedSweeps._draw",
        },
        {
            "models/_hdp_sampler.py:DelayedCountSweeps.sweep",
            "models/_hdp_sampler.py:DelayedCountSweeps._draw",
            "models/_hdp_sampler.py:PartOfTokens.draw",
            "models/_hdp_accounting.py:HybridPlan.draw",
        },
    ),
    "models/_pctd_noise.py": (
        "PCTD with noise on units: counts of one unit get noise once; what is added up has it already.",
        set(),
        {"models/_pctd_noise.py:noisy_segments"},
    ),
    "published/_pctd_noise.py": (
        "PCTD as published, claimed: normal noise of floating-point numbers in each iteration.",
        {"published/_pctd_noise.py:NoisySegmentEStep.collect"},
        {
            "published/_pctd_noise.py:likelihood_noise",
            "published/_pctd_noise.py:sum_noise",
            "published/_pctd_noise.py:NoisySegmentEStep.collect",
        },
    ),
    "published/_gibbs_sampler.py": (
        "Published forms of Gibbs sampling, claimed: exact counts, Laplace noise of floating-point numbers.",
        {"published/_gibbs_sampler.py:_SequentialState.__init__"},
        {"published/_gibbs_sampler.py:_SequentialState.add_noise", "published/_gibbs_sampler.py:fit_published"},
    ),
    "local/_channel.py": (
        "Local model: randomized response, one report at a time. Sums are of reports.",
        {
            "models/_local_sampler.py:ShardedBits.ones",
            "models/_local_sampler.py:ShardedBits.sizes",
            "models/_local_sampler.py:ShardedBits.divide",
            "models/_local_sampler.py:ShardedBits.draw",
        },
        {
            "local/_channel.py:randomize_bits",
            "local/_randomizer.py:LocalRandomizer.transform",
            "local/_reports.py:make_report",
            "local/_reports.py:make_reports",
            "models/_local.py:LocalPrivateLDA._reports",
        },
    ),
    "privacy/_partition.py": (
        "Words: each unit gives at most one unit of weight, in privacy/_unit_words.py.",
        {
            "privacy/_partition.py:select_words",
            "privacy/_partition.py:reroute",
            "privacy/_unit_words.py:",
            "privacy/_unit_words.py:UnitWords.shared",
            "privacy/_unit_words.py:UnitWords.rerouted",
            "vocabulary/_selection.py:ShardedWords.used",
            "vocabulary/_selection.py:ShardedWords.shared",
            "vocabulary/_selection.py:ShardedWords.rerouted",
            "vocabulary/_selection.py:ShardedWords.size",
        },
        {"privacy/_partition.py:_noise"},
    ),
    "model_selection/_trials.py": (
        "PrivateSearchCV: the noisy sum of units' scores, each from 0 to 1.",
        {"model_selection/_trials.py:private_score"},
        {"model_selection/_trials.py:private_score"},
    ),
    "privacy/_noise.py": (
        "The samplers, which all of these use through the registry in privacy/_mechanisms.py.",
        set(),
        {"privacy/_noise.py:discrete_gaussian", "privacy/_mechanisms.py:"},
    ),
}
WHAT_TO_DO = (
    "is not in tests/audit_places.txt. Noise goes through the registry of skdplda/privacy/_mechanisms.py, and a sum of"
    " contributions through an E-step (doc/architecture.rst). If this place is needed all the same: bound what one unit"
    " adds, account for the noise, prove it in doc/theory/, add the function to MAP, and then its line to the list."
)


def found_in(file, tree):
    """Return {place: what it does} of the syntax tree of a file; a place is file:function, or file: for the module."""
    places = {}
    kernels = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skdplda._kernels")  # or modules of them
        for alias in node.names
    }
    draws_only = file.split("/")[0] in ONLY_DRAWS

    def walk(node, where):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            where = (*where, node.name)
        for what in told(node, kernels, draws_only):
            place = "" if what == "documents" else ".".join(where)
            places.setdefault(f"{file}:{place}", Counter())[what] += 1
        for child in ast.iter_child_nodes(node):
            walk(child, where)

    walk(tree, ())
    if f"{file}:" in places and "documents" in places[f"{file}:"]:
        places[f"{file}:"]["documents"] = 1  # however often
    return places


def told(node, kernels, draws_only):
    """Yield what of a node of the syntax tree is to be told."""
    name = last_name(node)
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        names = [alias.name for alias in node.names]
        names += [node.module, *(f"{node.module}.{name}" for name in names)] if isinstance(node, ast.ImportFrom) else []
        yield from MODULES & set(names)
        yield from (alias.name for alias in node.names if alias.asname and alias.name in SUMS | SOURCES)
    elif isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(node.ctx, ast.Store):
        of_random = isinstance(node, ast.Attribute) and (name in LAWS or last_name(node.value) == "random")
        of_random = of_random and ast.unparse(node) != "np.random"  # whose attribute is told
        of_kernel = name in kernels or (isinstance(node, ast.Attribute) and last_name(node.value) in kernels)
        if name in SOURCES or of_random or of_kernel:  # called or not: it may be handed on
            yield name
    if draws_only:
        return
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.MatMult):
        yield "@"
    elif isinstance(node, ast.Call) and last_name(node.func) in SUMS:
        yield last_name(node.func)
    elif isinstance(node, ast.FunctionDef) and name.startswith(SUM_METHODS):
        yield "def"
    if isinstance(node, (ast.Name, ast.Attribute, ast.arg)) and name in DOCUMENTS:
        yield "documents"


def last_name(node):
    """Return the last part of a dotted name; of NumPy's ufuncs, whose methods have common names, the last two."""
    name = next((getattr(node, kind) for kind in ("attr", "id", "arg", "name") if hasattr(node, kind)), None)
    if name in ("at", "reduceat", "reduce") and isinstance(node, ast.Attribute) and last_name(node.value) == "add":
        return f"add.{name}"
    return name


def found():
    """Return the places of the whole package."""
    places = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        places |= found_in(path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8")))
    return places


@cache
def listed():
    """Return the places of the list."""
    lines = [line for line in PLACES.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    return {place: Counter(what.split()) for place, what in (line.split(" ", 1) for line in lines)}


def test_nothing_adds_up_draws_or_touches_documents_that_is_not_listed():
    known, places = listed(), found()
    for place, what in sorted(places.items()):
        new = what - known.get(place, Counter())
        assert not new, f"skdplda/{place.replace(':', ', ')}: {' '.join(sorted(new.elements()))} {WHAT_TO_DO}"
    assert known == places, "gone: python tests/test_audit_map.py prints the lines to change"


def test_the_map_is_of_listed_places():
    mapped = set().union(*(sums | draws for _, sums, draws in MAP.values()))
    assert mapped <= set(listed()), f"gone, or renamed: {sorted(mapped - set(listed()))}"


# What a hurried change may look like: sums of documents, and noise that nobody accounts for.
PLANTED = [
    "total = X.T @ theta",
    "total = np.bincount(words, weights, n_words)",
    "total = np.einsum('dw,dk->wk', X, theta)",
    "total = X.sum(axis=0)",
    "total = X.T.dot(theta)",
    "total = np.tensordot(X, theta, 1)",
    "np.add.at(total, words, 1)",
    "total = np.add.reduce(rows)",
    "total = np.histogram(words, n_words)[0]",
    "rows @= theta",
    "total = pd.DataFrame(rows).groupby('word').size()",
    "total = Counter(tokens)",
    "mean = np.average(rows, axis=0)",
    "noise = rng.poisson(3.0, total.shape)",
    "noise = stats.laplace.rvs(size=total.shape)",
    "noise = rng.binomial(9, 0.5, total.shape) - 4",
    "noise = np.random.standard_normal(total.shape)",
    "noise = random.gauss(0, 1)",
    "noise = secrets.randbelow(9)",
    "noise = np.frombuffer(os.urandom(8), np.int64)",
    "noise = np.random.default_rng(0)",
    "draw = rng.laplace",
    "law = mechanism_of('laplace').sampler",
    "law = partial(discrete_laplace, 2.0)",
    "import secrets",
    "from scipy import stats",
]


@pytest.mark.parametrize("code", PLANTED)
@pytest.mark.parametrize(
    ("file", "function"),
    [
        ("rounds/_tables.py", "SmoothedTables.update"),
        ("rounds/_adaptive.py", "Knowledge.note_topics"),
        ("models/_vips.py", "VIPSLDA._make_tables"),
        ("models/_base.py", "BaseRoundsModel._model_of"),
        ("releases/_release.py", "release"),
        ("cli/_models.py", ""),
    ],
)
def test_what_is_planted_is_found(code, file, function):
    assert planted(code, file, function)


def test_noise_in_the_counts_of_periods_is_found():
    assert planted("total += np.random.poisson(1.0, total.shape)", "models/_periods.py", "PeriodEStep.collect")
    assert planted("total += np.einsum('dk->k', self._rows)", "models/_periods.py", "PeriodEStep.collect")


def test_a_file_that_begins_to_touch_documents_is_found():
    found = planted("rows = X[:10]", "rounds/_plans.py", "NoisePlan.draw")
    assert found == {"rounds/_plans.py:": {"documents": 1}}
    assert planted("rows = X[:10]", "rounds/_adaptive.py", "adaptive")
    assert planted("def _sum_lengths(self, rows): pass", "esteps/_adaptive.py", "AdaptiveEStep.collect")


@pytest.mark.parametrize(
    "method", ["collect(self, e_step)", "votes(self, X, e_step, numbers)", "sum_lengths(self, query)"]
)
def test_a_new_query_is_found_whatever_it_adds_up_by(method):
    code = f"class Lengths(Query):\n    def {method}:\n        return compute(e_step)"
    for file in ("rounds/_queries.py", "models/_cluster_rounds.py", "esteps/_clusters.py"):
        assert planted(code, file, "")


def test_documents_are_asked_by_the_loops_alone():
    """All other calls of `collect` are of one E-step, or query, by another."""
    calls = {place for place, what in listed().items() if what["collect"]}
    assert {place for place in calls if not place.endswith(".collect")} == {
        "rounds/_loop.py:converse.answer",
        "exact/_loop.py:answer_exactly.collected",
        "models/_base.py:BaseRoundsModel.audit_contributions",  # the curator's own audit
        "models/_embedding.py:EmbeddingTopics.audit_contributions",
        "esteps/_methods.py:check_contribution.rounds",  # of documents that are made up
    }


def test_sums_that_may_get_noise_are_made_in_these_places_alone():
    """`bounded_by_kernel` takes a sum's bound from the kernel, or from workers: the tests below show each unit's."""
    made = {place for place, what in listed().items() if what["bounded_by_kernel"]}
    assert made == {
        "esteps/_gibbs.py:GibbsEStep.collect",  # test_estep_gibbs.py
        "esteps/_variational.py:VariationalEStep.collect",  # test_vips.py
        "esteps/_segments.py:SegmentEStep.collect",  # test_pctd.py
        "esteps/_clusters.py:ClusterEStep.sum_directions",  # test_embedding.py
        "rounds/_queries.py:WordTotals.collect",  # unit_weights: test_sensitivity.py
        "esteps/_clusters.py:ClusterEStep.sum_words",  # the same
        "esteps/_sharded.py:ShardedEStep.collect",  # of what E-steps on workers have bounded: test_distributed.py
    }
    assert {place for place, what in listed().items() if what["_make_bounded"]} == {
        "rounds/_bounds.py:Contributions.bounded",
        "rounds/_bounds.py:bounded_by_kernel",
    }


def planted(code, file, function):
    """Return what is found, and not listed, if a function of a module begins with a line of code."""
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    body = tree.body
    for name in filter(None, function.split(".")):
        body = next(node for node in body if getattr(node, "name", None) == name).body
    body[1:1] = ast.parse(code).body
    places, known = found_in(file, tree), listed()
    new = {place: what - known.get(place, Counter()) for place, what in places.items()}
    return {place: what for place, what in new.items() if what}


def paragraph(file, begin, end):
    """Return the part of a file from one mark to the next one after it."""
    text = (PACKAGE.parent / file).read_text(encoding="utf-8")
    start = text.index(begin)
    return text[start : text.index(end, start + len(begin))]


@pytest.mark.skipif(not (PACKAGE.parent / "README.md").exists(), reason="the source is not beside the tests")
@pytest.mark.parametrize(
    ("file", "begin", "end"),
    [
        ("README.md", "6. ", "\n7. "),
        ("CONTRIBUTING.md", "* **Privacy first.**", "\n* **"),
        ("skdplda/rounds/_loop.py", '"""', '"""'),
    ],
)
def test_the_documents_name_the_files_of_the_map(file, begin, end):
    named = set(re.findall(r"skdplda/(\w+/\w+\.py)", paragraph(file, begin, end)))
    assert named == set(MAP) - {file.removeprefix("skdplda/")}


if __name__ == "__main__":
    known, places = (listed() if PLACES.exists() else {}), found()
    for place in sorted(known.keys() | places.keys()):
        for sign, table in (("-", known), ("+", places)):
            if place in table and known.get(place) != places.get(place):
                sys.stdout.write(f"{sign} {place} {' '.join(sorted(table[place].elements()))}\n")
