"""Fits on the partitions of a Spark RDD: by an imitation whose processes forget at random, and by Spark where it is."""

import shutil
from importlib.util import find_spec
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from internals import spark as _spark
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skdplda import HDPLDA, PCTD, VIPSLDA, DPVocabularySelector, EmbeddingTopics, PrivateCGSLDA
from skdplda.datasets import make_lda_corpus, write_counts
from skdplda.distributed import ShardedCounts
from skdplda.semantics import EmbeddedTexts, UnitMatrix

cloudpickle = pytest.importorskip("cloudpickle")

SIZES = (150, 0, 90, 160)
BOUNDS = np.cumsum((0, *SIZES))
X = sp.csr_array(make_lda_corpus(400, 60, 4, mean_length=30, random_state=0).data)
V = np.random.default_rng(0).normal(size=(400, 6))
USERS = np.repeat(np.arange(4), (70, 80, 90, 160)) * 100 + np.arange(400) % 40  # each in one block
pytestmark = [
    pytest.mark.filterwarnings("ignore:n_components=.* exceeds"),
    pytest.mark.filterwarnings("ignore::skdplda.exceptions.PrivacyLeakWarning"),
]
MODELS = {
    "gibbs": PrivateCGSLDA(4, max_iter=4, epsilon=20.0),
    "gibbs, sampled": PrivateCGSLDA(4, max_iter=4, sampling_rate=0.4),
    "gibbs, no noise": PrivateCGSLDA(32, max_iter=6, epsilon=np.inf),
    "variational": VIPSLDA(4, max_iter=3, epsilon=20.0),
    "variational, no noise": VIPSLDA(4, max_iter=3, epsilon=np.inf),
    "hybrid": HDPLDA(4, max_iter=3, epsilon=20.0),
    "units": PCTD(4, max_iter=3, epsilon=20.0),
    "clusters": EmbeddingTopics(4, max_iter=3, epsilon=20.0),
}


class Rdd:
    """Blocks in partitions: each task runs twice, in a process that was there before or is new, by a coin."""

    def __init__(self, partitions, seed=0):
        self.partitions, self.rng, self.found = partitions, np.random.default_rng(seed), None
        self.context = SimpleNamespace(broadcast=lambda value: Sent(cloudpickle.dumps(value)))

    def getNumPartitions(self):
        return len(self.partitions)

    def mapPartitionsWithIndex(self, task):
        answers, task = Rdd(self.partitions), cloudpickle.dumps(task)
        answers.found = []
        for part, blocks in enumerate(self.partitions):
            for _ in range(2):
                if self.rng.random() < 0.3:
                    _spark.ACTORS.clear()
                given = iter(blocks)
                last = list(cloudpickle.loads(task)(part, given))
                assert not list(given)  # Spark would end the process
            answers.found += last
        return answers

    def treeReduce(self, function):
        total = self.found[-1]
        for one in self.found[:-1]:
            total = function(total, one)
        return total


class Sent:
    def __init__(self, data):
        self.data = data

    @property
    def value(self):
        return cloudpickle.loads(self.data)

    def destroy(self):
        self.data = None


def in_parts(whole):
    """Two blocks in the first partition, none in the second, and one in each of the others."""
    first, *others = [whole[a:b] for a, b in pairwise(BOUNDS)]
    return [[first[:70], first[70:]], [], *([block] for block in others[1:])]


@pytest.fixture(params=["imitation"] + ["spark"] * bool(find_spec("pyspark") and shutil.which("java")), scope="module")
def rdd_of(request):
    if request.param == "imitation":
        yield lambda whole: Rdd(in_parts(whole))
        return
    import pyspark

    settings = {"ui.enabled": "false", "ui.showConsoleProgress": "false", "driver.host": "127.0.0.1"}
    conf = pyspark.SparkConf().setMaster("local[2]")
    for name, value in (settings | {"driver.bindAddress": "127.0.0.1"}).items():
        conf.set(f"spark.{name}", value)
    with pyspark.SparkContext(conf=conf) as context:

        def rdd_of(whole):
            parts = in_parts(whole)
            return context.parallelize(range(len(parts)), len(parts)).flatMap(parts.__getitem__)

        yield rdd_of


@pytest.mark.parametrize("name", MODELS)
def test_equal_to_threads(name, rdd_of):
    whole = {"clusters": V, "units": UnitMatrix.from_counts(X)}.get(name, X)
    here = clone(MODELS[name]).set_params(random_state=3).fit(whole)
    there = clone(here).fit(ShardedCounts(rdd_of(whole)))
    assert_array_equal(*(getattr(m, "components_", getattr(m, "cluster_centers_", None)) for m in (here, there)))
    assert here.privacy_guarantee_ == there.privacy_guarantee_


def test_users(rdd_of):
    model = clone(MODELS["variational"]).set_params(random_state=3)
    found = clone(model).fit(ShardedCounts(rdd_of(X)), groups=USERS)
    assert_array_equal(found.components_, model.fit(X, groups=USERS).components_)
    with pytest.raises(ValueError, match="documents of one user in several blocks"):
        clone(model).fit(ShardedCounts(rdd_of(X)), groups=np.arange(400) % 7)


def test_selected_words(rdd_of):
    selector = DPVocabularySelector(5.0, random_state=0)
    found = clone(selector).fit(ShardedCounts(rdd_of(X))).get_support()
    assert_array_equal(found, selector.fit(X).get_support())


def test_errors_are_those_of_the_blocks(rdd_of):
    model = clone(MODELS["variational"])
    with pytest.raises(ValueError, match=r"block \d must hold non-negative integer counts"):
        model.fit(ShardedCounts(rdd_of(-X)))
    with pytest.raises(ValueError, match=r"X must have documents and words; got shape \(0, 60\)"):
        model.fit(ShardedCounts(rdd_of(X[:0])))
    with pytest.raises(ValueError, match=r"block \d must hold counts; got EmbeddedTexts"):
        model.fit(ShardedCounts(rdd_of(EmbeddedTexts(V, X))))


def test_other_documents_are_noticed():
    class Changing(Rdd):
        def mapPartitionsWithIndex(self, task):
            if self.rng.random() < 0.5:
                self.partitions = self.partitions[::-1]
            return super().mapPartitionsWithIndex(task)

    with pytest.raises(RuntimeError, match="blocks must be the same whenever they are computed"):
        clone(MODELS["gibbs, sampled"]).fit(ShardedCounts(Changing(in_parts(X), seed=2)))


def test_another_version_is_refused(monkeypatch):
    class Older(Rdd):
        def mapPartitionsWithIndex(self, task):
            with monkeypatch.context() as patched:
                patched.setattr(_spark, "version", {"skdplda": "0.0.1"}.get)
                return super().mapPartitionsWithIndex(task)

    with pytest.raises(RuntimeError, match=r"a worker has skdplda 0\.0\.1, this process"):
        clone(MODELS["variational"]).fit(ShardedCounts(Older(in_parts(X))))


def test_a_fit_goes_on_from_its_checkpoint(tmp_path):
    def cancel(report):
        if report.n_done == 2:
            raise KeyboardInterrupt

    model = clone(MODELS["gibbs, sampled"]).set_params(random_state=3)
    expected = clone(model).fit(X).components_
    with pytest.raises(KeyboardInterrupt):
        clone(model).set_params(checkpoint=tmp_path / "fit", callback=cancel).fit(ShardedCounts(Rdd(in_parts(X))))
    model.set_params(checkpoint=tmp_path / "fit")
    assert_array_equal(model.fit(ShardedCounts(Rdd(in_parts(X), seed=1))).components_, expected)


def test_paths_and_what_is_for_dask_only(tmp_path):
    blocks = in_parts(X)
    folders = [write_counts(tmp_path / str(i), [block]).path for i, (block,) in enumerate([blocks[2], blocks[3]])]
    model = clone(MODELS["variational"]).set_params(random_state=3)
    found = clone(model).fit(ShardedCounts(Rdd([[folders[0]], [folders[1]]]))).components_
    assert_array_equal(found, model.fit(X[BOUNDS[2] :]).components_)
    shards = ShardedCounts(Rdd(in_parts(V)))
    assert repr(shards) == "ShardedCounts(4 blocks)"
    with pytest.raises(TypeError, match="by_user is for Dask"):
        shards.by_user(USERS)
    with pytest.raises(TypeError, match="give no counts beside"):
        clone(MODELS["clusters"]).fit(shards, counts=ShardedCounts(Rdd(in_parts(X))))
