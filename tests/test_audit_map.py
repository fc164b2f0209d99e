"""The audit map: the only places that add up what privacy units contribute, and the only places that draw noise.

An auditor reads the files of `MAP`, which README.md, CONTRIBUTING.md and the docstring of `skdplda/rounds/_loop.py`
name, and the functions that the map lists for each. Any other place is found in the package's syntax trees, by the name
of what it calls.
"""

import ast
import re
from pathlib import Path

import pytest

import skdplda
from skdplda.privacy import MECHANISMS

ROOT = Path(skdplda.__file__).parent

# Kernels that add up contributions; NumPy's grouped sums; and methods that return a sum: of E-steps (`collect`), of the
# words of units (`used`, `shared`, `filled`) and of workers (`total`; the function of that name adds up any numbers).
SUMS = {
    "sum_weighted",
    "word_sums",
    "count_topics",
    "share_equally",
    "reroute",
    "fill_gaussian",
    "fill_level",
    "fill_first",
}
SUM_CALLS = {"e_step", "add.at", "add.reduceat", "collect", "used", "shared", "filled", "total"}
SUM_METHODS = ("_sum_", "_votes")  # how methods begin that add up by other means: those of E-steps, by convention
# Samplers of noise, `Mechanism.sampler` and `NoisePlan.draw`; randomized response; topics whose draws are released; and
# NumPy's laws, of which published forms are made.
NOISE = {"rounded_gaussian", "discrete_laplace", "discrete_gaussian", "sampler", "randomize", "randomize_bits"}
NOISE |= {law.sampler.__name__ for law in MECHANISMS.values()}
NOISE |= {"released_sweep", "laplace_last_sweep"}
NOISE |= {"laplace", "normal", "standard_normal", "multivariate_normal", "geometric", "standard_t", "standard_cauchy"}
NOISE_CALLS = {"draw"}

# File to audit: what happens there, the functions that add up, and those that draw noise, as file:function.
MAP = {
    "rounds/_loop.py": (
        "Private rounds: the noisy sum of units, each bounded by rounds/_sensitivity.py, on workers too.",
        {
            "rounds/_loop.py:run_round",
            "rounds/_estep_gibbs.py:GibbsEStep.collect",
            "rounds/_estep_gibbs.py:GibbsEStep._sum_soft_counts",
            "rounds/_estep_gibbs.py:GibbsEStep.restore",  # the counts from which the next sweep goes on
            "rounds/_estep_gibbs.py:StartedGibbsEStep.collect",  # of the two E-steps that it consists of
            "rounds/_expected.py:ExpectedTopics.collect",  # without noise only
            "rounds/_estep_listed.py:ListedEStep.collect",  # the same
            "rounds/_estep_segments.py:SegmentEStep.collect",
            "rounds/_estep_variational.py:VariationalEStep.collect",
            # Where releases divide the budget; lemmas are those of doc/theory/adaptive.rst.
            "rounds/_estep_adaptive.py:AdaptiveEStep.collect",  # topics: bounded by the E-step of the model
            "rounds/_estep_adaptive.py:AdaptiveEStep._sum_some_topics",  # the same, of fewer words: Lemma 6
            "rounds/_estep_adaptive.py:AdaptiveEStep._sum_words",  # unit_weights of rounds/_sensitivity.py: Lemma 1
            "rounds/_estep_adaptive.py:AdaptiveEStep._sum_fit",  # of clipped numbers, by _votes
            "rounds/_estep_adaptive.py:AdaptiveEStep._sum_votes",  # the same
            "rounds/_estep_adaptive.py:AdaptiveEStep._sum_priors",  # scaled to norm 1: Lemma 7
            "rounds/_estep_adaptive.py:AdaptiveEStep._votes",  # the mean of a unit's: Lemmas 2 and 7
            "rounds/_estep_adaptive.py:AdaptiveEStep._sum_vectors",  # products of rows of length 1: Lemma 3
            "rounds/_estep_adaptive.py:AdaptiveEStep._sum_clusters",  # the same, or unit_weights for users: Lemma 4
            # Clusters of embeddings; lemmas are those of doc/theory/embedding.rst.
            "rounds/_estep_clusters.py:scaled_to_grid",  # a unit's norm, in integers: Lemma 2
            "rounds/_estep_clusters.py:ClusterEStep._sum_directions",  # SIZE and STEP, or scaled_to_grid: Lemmas 2, 3
            "rounds/_estep_clusters.py:ClusterEStep._add_shared",  # the latter
            "rounds/_estep_clusters.py:ClusterEStep._unit_sums",  # before it is scaled there
            "rounds/_estep_clusters.py:ClusterEStep._sum_words",  # unit_weights of rounds/_sensitivity.py
            "rounds/_estep_clusters.py:ClusterEStep._sum_cluster_words",  # scaled_to_grid
            "models/_periods.py:PeriodEStep.__init__",  # a unit's sum, which it bounds: doc/theory/periods.rst
            "models/_periods.py:PeriodEStep.collect",
            "rounds/_sharded.py:PartialEStep.collect",
            "rounds/_sharded.py:ShardedEStep.collect",
            "distributed/_actor.py:Actor.total",
            "distributed/_pool.py:ActorPool.total.ask",
        },
        {"rounds/_loop.py:run_round", "rounds/_plan.py:NoisePlan.draw"},  # of the scale of NoisePlan.multiplier
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
        {"models/_pctd_noise.py:NoisySegmentEStep.collect"},
        {
            "models/_pctd_noise.py:noisy_segments",
            "models/_pctd_noise.py:likelihood_noise",
            "models/_pctd_noise.py:sum_noise",
            "models/_pctd_noise.py:NoisySegmentEStep.collect",
        },
    ),
    "models/_published_gibbs.py": (
        "Published forms, claimed: exact counts, Laplace noise of floating-point numbers.",
        {"models/_published_gibbs.py:_SequentialState.__init__"},
        {"models/_published_gibbs.py:_SequentialState.add_noise", "models/_published_gibbs.py:fit_published"},
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
# Found by the same names, and neither in a fit nor of private data.
OTHER = {
    "models/_base.py:BaseRoundsModel.audit_contributions",  # one unit's contribution, for the audit of its bound
    "audit/_designs.py:RoundsDesign._added",  # what canaries would add, which the audit has made
    "audit/_designs.py:SelectionDesign.__init__",  # simulates the noise of a selection, without data
    "models/_embedding.py:EmbeddingTopics.audit_contributions",  # the same
    "models/_clusters.py:projection_matrix",  # a public matrix, always the same
    "rounds/_clusters.py:PublicStart.spread",  # public random directions
    "rounds/_prior.py:_strongest",  # directions from which a method of powers starts, always the same
    "attacks/_poisoning.py:poisoning_attack",  # directions of planted records
    "metrics/_likelihood.py:_sum_logarithms",  # a score of documents, which nobody releases
    "audit/_released_checks.py:exact_moves",  # of topics that a fit has released
    "models/_local.py:LocalPrivateLDA._sample",  # topics of reports, which are randomized
}
WHAT_TO_DO = (
    "which the audit map does not have. Noise goes through the registry of skdplda/privacy/_mechanisms.py, and a sum of"
    " contributions through an E-step (doc/architecture.rst). If this place is needed all the same: bound what one unit"
    " adds, account for the noise, prove it in doc/theory/, and add the function to MAP in tests/test_audit_map.py."
)


def places(names, calls):
    """Return file:function of each use of a name, and of each call of a name or method, in the package."""
    paths = [path for path in ROOT.rglob("*.py") if path.parent.name != "plots"]  # pictures are drawn, too
    return {
        f"{path.relative_to(ROOT).as_posix()}:{where}"
        for path in paths
        for where in functions_with(ast.parse(path.read_text()), names, calls)
    }


def functions_with(node, names, calls, where=()):
    """Yield the path of each function, or "" for the module, in which a name is used or something is called.

    Where sums are sought, functions that are named like `SUM_METHODS` are found by their own names.
    """
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        where = (*where, node.name)
        if calls >= SUM_CALLS and node.name.startswith(SUM_METHODS):
            yield ".".join(where)
    variable = isinstance(node, ast.Name) and node.id == "sampler"  # of any kind
    used, called = None if variable else last_name(node), last_name(node.func) if isinstance(node, ast.Call) else None
    called = None if called == "total" and isinstance(node.func, ast.Name) else called
    if used in names or called in calls:
        yield ".".join(where)
    for child in ast.iter_child_nodes(node):
        yield from functions_with(child, names, calls, where)


def last_name(node):
    """Return the last part of a dotted name; of NumPy's ufuncs, whose methods have common names, the last two."""
    name = getattr(node, "attr", getattr(node, "id", None))
    return f"{last_name(node.value)}.{name}" if name in ("at", "reduceat") and hasattr(node, "value") else name


@pytest.mark.parametrize(
    ("what", "names", "calls", "column"),
    [
        ("adds up contributions", SUMS, SUM_CALLS, 1),
        ("draws noise", NOISE, NOISE_CALLS, 2),
    ],
)
def test_nothing_else_adds_up_contributions_or_draws_noise(what, names, calls, column):
    mapped = set().union(*(row[column] for row in MAP.values()))
    found = places(names, calls)
    for place in sorted(found - mapped - OTHER):
        raise AssertionError(f"skdplda/{place.replace(':', ', ')} {what}, {WHAT_TO_DO}")
    assert mapped <= found, f"gone, or renamed: {sorted(mapped - found)}"


@pytest.mark.parametrize(
    ("code", "column"),
    [
        ("noise = rng.laplace(size=total.shape)", 2),
        ("noise = privacy.rounded_gaussian(sigma, shape)", 2),
        ("draw = mechanism_of('laplace').sampler", 2),
        ("noisy = total + plan.draw(0, shape, key)", 2),
        ("law = partial(discrete_laplace, 2.0)", 2),
        ("np.add.at(counts, words, 1)", 1),
        ("total = e_step.collect(table, 0, None)", 1),
    ],
)
def test_a_new_place_would_be_found(code, column):
    tree = ast.parse(f"class Model:\n    def fit(self):\n        {code}")
    names, calls = (SUMS, SUM_CALLS) if column == 1 else (NOISE, NOISE_CALLS)
    assert list(functions_with(tree, names, calls)) == ["Model.fit"]


def test_a_new_question_would_be_found():
    """`AdaptiveEStep` answers a question by the method `_sum_` of its kind, with any sum of NumPy's."""
    tree = ast.parse("class AdaptiveEStep:\n    def _sum_lengths(self, X):\n        return X.sum()")
    assert list(functions_with(tree, SUMS, SUM_CALLS)) == ["AdaptiveEStep._sum_lengths"]
    assert not list(functions_with(tree, NOISE, NOISE_CALLS))


def test_every_other_place_is_still_there():
    assert places(SUMS | NOISE, SUM_CALLS | NOISE_CALLS) >= OTHER


def test_the_kernel_of_noise_has_one_user():
    users = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if imports_noise_kernel(path)}
    assert users == {"privacy/_noise.py", "local/_channel.py"}  # the second takes a key from it


def imports_noise_kernel(path):
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    names = {f"{node.module}.{alias.name}." for node in nodes for alias in node.names}
    return any(name.startswith("skdplda._kernels._noise.") for name in names)


def paragraph(file, begin, end):
    """Return the part of a file from one mark to the next one after it."""
    text = (ROOT.parent / file).read_text()
    start = text.index(begin)
    return text[start : text.index(end, start + len(begin))]


@pytest.mark.skipif(not (ROOT.parent / "README.md").exists(), reason="an installed package has no README.md")
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
