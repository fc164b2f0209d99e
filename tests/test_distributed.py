"""Documents on Dask workers: the same model as on one machine, whatever happens to the workers."""

import errno
import os
import signal
import sys
import threading
import time
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from internals import added
from internals import pool as _pool
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skdplda import (
    HDPLDA,
    PCTD,
    VIPSLDA,
    BudgetExceededError,
    DPVocabularySelector,
    EmbeddingTopics,
    LocalPrivateLDA,
    PrivacyAccountant,
    PrivateCGSLDA,
)
from skdplda.datasets import make_lda_corpus, write_counts
from skdplda.distributed import ActorPool, ShardedCounts, tree
from skdplda.local import LocalRandomizer
from skdplda.published import PriTopLDA
from skdplda.rounds import NoisePlan
from skdplda.semantics import EmbeddedTexts, UnitMatrix

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
db = pytest.importorskip("dask.bag")

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdplda.exceptions.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore:The `Worker:FutureWarning"),
]
SIZES = (150, 90, 160)  # of the blocks


@pytest.fixture(scope="module")
def X():
    return sp.csr_matrix(make_lda_corpus(400, 60, 4, mean_length=30, random_state=0).data)


@pytest.fixture(scope="module")
def blocks(X):
    bounds = np.cumsum([0, *SIZES])
    return [X[a:b] for a, b in pairwise(bounds)]


@pytest.fixture(scope="module")
def client():
    """Workers in processes, forked from one that has imported what they need: one that is killed is soon back."""
    method = {"distributed.worker.multiprocessing-method": "forkserver"}
    with dask.config.set({"distributed.worker.daemon": False, **method}):
        needed = ["distributed", "pandas", "skdplda.distributed", "skdplda.models", "skdplda.vocabulary"]
        distributed.utils.get_mp_context().set_forkserver_preload(needed)
        with (
            distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client


@pytest.fixture
def shards(client, blocks):
    wait_for(client, 2)
    return ShardedCounts([dask.delayed(block) for block in blocks])


def wait_for(client, n_workers):
    """Wait for workers that a nanny has started again; where it gave up, on a busy machine, for others."""
    try:
        client.wait_for_workers(n_workers, timeout=30)
    except TimeoutError:
        client.cluster.scale(n_workers)
        client.wait_for_workers(n_workers, timeout=60)


def forgotten(client):
    """Whether no worker holds documents, soon."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if not any(client.run(lambda dask_worker: len(dask_worker.state.actors)).values()):
            return True
        time.sleep(0.05)
    return False


def kill_one(client):
    """Kill a worker that holds documents, as the system does."""
    held = client.run(lambda dask_worker: (os.getpid(), len(dask_worker.state.actors)))
    for pid in [pid for pid, n in held.values() if n][:1]:
        os.kill(pid, signal.SIGKILL)


def cancel_after(n_done):
    """Return a callback that cancels a fit after so many rounds."""

    def cancel(report):
        if report.n_done == n_done:
            raise KeyboardInterrupt

    return cancel


MODELS = {
    "gibbs": PrivateCGSLDA(4, max_iter=4, local_sweeps=2),
    "gibbs, sampled": PrivateCGSLDA(4, max_iter=4, local_sweeps=2, sampling_rate=0.4),
    "gibbs, laplace": PrivateCGSLDA(4, max_iter=3, local_sweeps=2, mechanism="laplace"),
    "gibbs, no noise": PrivateCGSLDA(4, max_iter=6, epsilon=np.inf),
    "gibbs, from documents": PrivateCGSLDA(32, max_iter=3, epsilon=np.inf),
    "gibbs, lists": PrivateCGSLDA(1501, max_iter=6, epsilon=np.inf),  # the last round of expected counts
    "variational": VIPSLDA(4, max_iter=3),
    "variational, cut": VIPSLDA(4, max_iter=3, max_doc_length=12, sampling_rate=0.5),
    "variational, online": VIPSLDA(4, max_iter=4, learning_method="online", batch_size=40, nominal_size=400),
    "variational, no noise": VIPSLDA(32, max_iter=3, epsilon=np.inf),
}


@pytest.mark.filterwarnings("ignore:n_components=.* exceeds")
@pytest.mark.parametrize("name", MODELS)
def test_equal_to_threads(name, X, shards, client):
    here = clone(MODELS[name]).set_params(random_state=3, n_jobs=2).fit(X)
    there = clone(here).set_params(n_jobs=None).fit(shards)
    assert_array_equal(here.components_, there.components_)
    assert here.privacy_guarantee_ == there.privacy_guarantee_
    assert str(here.privacy_guarantee_) == str(there.privacy_guarantee_)
    assert there.n_features_in_ == X.shape[1]
    assert vars(here).keys() == vars(there).keys()


def test_workers_forget(shards, client):
    clone(MODELS["variational"]).fit(shards)
    assert forgotten(client)


class KillAfter:
    """Callback that kills a worker, `pause` seconds into the next round."""

    def __init__(self, client, n_done, pause=0.0):
        self.client, self.n_done, self.pause = client, n_done, pause

    def __call__(self, report):
        if report.n_done == self.n_done:
            if not self.pause:
                return kill_one(self.client)
            threading.Timer(self.pause, kill_one, [self.client]).start()


def test_a_killed_worker_changes_nothing(X, shards, client, monkeypatch):
    """Not the model, nor the spend, nor how often noise is drawn: once a round."""
    drawn, draw = [], NoisePlan.draw

    def note(self, multiplier, shape, key, n_threads):
        drawn.append(key)
        return draw(self, multiplier, shape, key, n_threads)

    here = clone(MODELS["gibbs, sampled"]).set_params(random_state=5).fit(X)
    there = clone(here).set_params(callback=KillAfter(client, 2))
    monkeypatch.setattr(NoisePlan, "draw", note)
    with PrivacyAccountant(epsilon=np.inf, delta=0.1, accept_claimed=True) as accountant:
        there.fit(shards)
    assert_array_equal(here.components_, there.components_)
    assert there.privacy_guarantee_ == here.privacy_guarantee_
    assert len(accountant.ledger) == 1
    assert len(drawn) == len(set(drawn)) == 4  # a seed makes the keys: that of a round, drawn again, would be the same


def test_a_worker_killed_in_a_round_changes_nothing(X, shards, client):
    model = PrivateCGSLDA(4, max_iter=4, local_sweeps=1000, random_state=5)
    killer = KillAfter(client, 2, pause=0.1)
    assert_array_equal(model.fit(X).components_, clone(model).set_params(callback=killer).fit(shards).components_)


@pytest.mark.filterwarnings("ignore:n_components=.* exceeds")
@pytest.mark.parametrize("name", ["gibbs, no noise", "gibbs, lists"])
def test_a_worker_killed_among_rounds_of_expected_counts_changes_nothing(name, X, shards, client, tmp_path):
    """Each of the last four rounds makes its table in the place of the former; the fit is interrupted there, too."""
    model = clone(MODELS[name]).set_params(max_iter=16, random_state=5)
    here = clone(model).fit(X).components_
    assert_array_equal(here, clone(model).set_params(callback=KillAfter(client, 15)).fit(shards).components_)

    model.set_params(checkpoint=tmp_path / "fit", callback=cancel_after(14))
    with pytest.raises(KeyboardInterrupt):
        model.fit(shards)
    assert_array_equal(here, model.set_params(callback=None).fit(shards).components_)


def test_a_part_that_is_lost_again_and_again(shards, client, monkeypatch):
    monkeypatch.setattr(_pool, "MOST_LOSSES", 0)
    with pytest.raises(RuntimeError, match="was lost 1 times; perhaps they need more memory"):
        clone(MODELS["gibbs"]).set_params(callback=KillAfter(client, 1)).fit(shards)


def test_no_worker_left(shards, client, monkeypatch):
    monkeypatch.setattr(_pool, "PATIENCE", 0.2)
    monkeypatch.setattr(ActorPool, "_addresses", lambda self: {})
    with pytest.raises(RuntimeError, match=r"has no worker, and none came in 0 seconds"):
        clone(MODELS["gibbs"]).fit(shards)


@pytest.mark.parametrize(
    ("name", "n_done"),
    # Of a budget that releases divide: word counts, some of six releases of frequent words, all of them, and topics.
    [("gibbs, sampled", 2), ("variational", 1), ("variational", 2), ("gibbs", 4), ("variational", 7), ("gibbs", 9)],
)
def test_a_cancelled_fit_goes_on_from_its_checkpoint(name, n_done, X, shards, client, tmp_path):

    model = clone(MODELS[name]).set_params(random_state=5, checkpoint=tmp_path / "fit", callback=cancel_after(n_done))
    with PrivacyAccountant(epsilon=10, delta=0.1, accept_claimed=True) as accountant:
        with pytest.raises(KeyboardInterrupt):
            model.fit(shards)
        assert forgotten(client)
        collected = []
        model.set_params(callback=lambda report: collected.append(report.n_done)).fit(shards)
    assert collected[0] == n_done + 1
    assert collected[-1] > 9 or name == "gibbs, sampled"  # frequent words came first
    assert len(accountant.ledger) == 1
    here = clone(model).set_params(checkpoint=None, callback=None).fit(X)
    assert_array_equal(here.components_, model.components_)
    assert not os.listdir(tmp_path)


def test_a_checkpoint_is_resumed_on_another_number_of_workers(X, shards, client, tmp_path, monkeypatch):
    """What tells the data of a checkpoint does not depend on which blocks lie on one worker."""

    model = clone(MODELS["gibbs, sampled"]).set_params(
        random_state=5, checkpoint=tmp_path / "fit", callback=cancel_after(2)
    )
    with pytest.raises(KeyboardInterrupt):
        model.fit(shards)
    addresses = ActorPool._addresses
    monkeypatch.setattr(ActorPool, "_addresses", lambda self: dict(list(addresses(self).items())[:1]))
    model.set_params(callback=None).fit(shards)
    assert_array_equal(clone(model).set_params(checkpoint=None).fit(X).components_, model.components_)


def test_full_disk_on_checkpoint(X, shards, client, tmp_path, monkeypatch):
    """The former checkpoint stays whole: the fit goes on from it when there is room, and spends once."""
    savez, saved = np.savez, []

    def full(file, **arrays):
        saved.append(0)
        if len(saved) == 3:
            file.write(b"half of it")
            raise OSError(errno.ENOSPC, "No space left on device")
        savez(file, **arrays)

    monkeypatch.setattr(np, "savez", full)
    model = clone(MODELS["gibbs, sampled"]).set_params(random_state=5, checkpoint=tmp_path / "fit")
    with PrivacyAccountant(epsilon=10, delta=0.1, accept_claimed=True) as accountant:
        with pytest.raises(OSError, match="No space left"):
            model.fit(shards)
        assert forgotten(client)
        assert os.listdir(tmp_path) == ["fit"]
        model.fit(shards)
    assert len(accountant.ledger) == 1
    assert_array_equal(clone(model).set_params(checkpoint=None).fit(X).components_, model.components_)


@pytest.mark.parametrize(
    ("name", "arrays"),
    [
        (
            "gibbs, laplace",
            {
                **{"e_table_0": (60, 4), "e_rounds": (1,), "e_some": (1,)},
                **{"r_table": (60, 4), "r_sum": (60, 4), "r_words": (60,), "r_weight": ()},
            },
        ),
        (
            "gibbs",
            {
                **{f"e_table_{i}": (60, 4) for i in range(8)},
                **{"e_rounds": (8,), "e_some": (8,), "r_0": (60, 1)},
                **{f"r_{i}": (None, 4) for i in range(1, 7)},
                **{f"r_{i}": (60, 4) for i in (7, 8)},
            },
        ),
    ],
)
def test_checkpoints_of_shards_hold_no_documents(name, arrays, shards, tmp_path):
    """Nor their topics: the tables that workers were asked, and what was released."""

    n_done = 1 if name == "gibbs, laplace" else 9  # a budget that releases divide has words first, then frequent ones
    model = clone(MODELS[name]).set_params(checkpoint=tmp_path / "fit", callback=cancel_after(n_done))
    with pytest.raises(KeyboardInterrupt):
        model.fit(shards)
    with np.load(tmp_path / "fit") as file:
        frequent = int(file["e_table_0"].any(axis=1).sum())
        arrays = {name: tuple(frequent if n is None else n for n in shape) for name, shape in arrays.items()}
        assert {name: file[name].shape for name in file.files if name != "header"} == arrays
    with pytest.raises(ValueError, match="other parameters or other data"):
        clone(model).set_params(callback=None).fit(ShardedCounts(shards.sources[::-1]))


@pytest.mark.parametrize("kind", ["delayed", "folders", "bag", "units", "embeddings"])
def test_users_who_are_scattered_over_blocks(kind, X, blocks, client, tmp_path):
    users = np.arange(400) % 37
    wait_for(client, 2)
    model, whole, source = VIPSLDA(4, epsilon=20.0, random_state=1), X, [dask.delayed(block) for block in blocks]
    if kind == "folders":
        source = [write_counts(tmp_path / str(i), [block]) for i, block in enumerate(blocks)]
    elif kind == "bag":
        source = db.from_sequence(range(3), npartitions=3).map_partitions(lambda part: [blocks[i] for i in part])
    elif kind == "units":
        model, whole = PCTD(4, epsilon=20.0, max_iter=3, random_state=1), UnitMatrix.from_counts(X)
        source = [dask.delayed(UnitMatrix.from_counts(block)) for block in blocks]
    elif kind == "embeddings":
        model, whole = EmbeddingTopics(4, epsilon=20.0, random_state=1), np.random.default_rng(0).normal(size=(400, 6))
        source = [dask.delayed(V) for V in np.split(whole, np.cumsum(SIZES)[:-1])]
    shards, groups = ShardedCounts(source, client=client).by_user(users)
    before = np.append(0, np.cumsum(np.bincount(users)))[users]  # documents of users with smaller names
    order = np.argsort(before * 3 // 400, kind="stable")
    assert_array_equal(groups, users[order])
    found, here = clone(model).fit(shards, groups=groups), clone(model).fit(whole[order], groups=groups)
    assert_array_equal(*(getattr(m, "components_", getattr(m, "cluster_centers_", 0)) for m in (found, here)))
    with pytest.raises(ValueError, match="one entry a document"):
        ShardedCounts(source, client=client).by_user(users[1:])
    with pytest.raises(ValueError, match="groups must be those that by_user returned"):
        clone(model).fit(shards, groups=users)


@pytest.mark.parametrize("model", [MODELS["gibbs, sampled"], MODELS["variational"]], ids=["gibbs", "variational"])
def test_users(model, X, shards):
    """A user's documents in one block; two users' documents are mixed within it."""
    groups = np.repeat([5, 1, 3], SIZES) * 100 + np.arange(400) % 60
    model = clone(model).set_params(random_state=1, epsilon=20.0)  # enough for rounds of topics
    assert_array_equal(model.fit(X, groups=groups).components_, clone(model).fit(shards, groups=groups).components_)
    assert model.n_iter_ > 3
    with pytest.raises(ValueError, match="documents of one user in several blocks, from block 0 to block 2") as error:
        clone(model).fit(shards, groups=np.where(np.isin(np.arange(400), (0, 399)), 7_654_321, groups))
    assert "7654321" not in str(error.value)  # nobody is named
    with pytest.raises(ValueError, match="one entry a document"):
        clone(model).fit(shards, groups=groups[1:])


def test_dask_array_bag_and_folders(X, blocks, client, tmp_path):
    model = clone(MODELS["variational"]).set_params(random_state=1)
    expected = model.fit(X).components_
    array = da.concatenate(
        [da.from_delayed(dask.delayed(b), shape=b.shape, dtype=b.dtype, meta=sp.csr_matrix((0, 0))) for b in blocks]
    )
    bag = db.from_sequence(range(3), npartitions=3).map_partitions(lambda part: [blocks[i] for i in part])
    folders = [write_counts(tmp_path / str(i), [block]) for i, block in enumerate(blocks)]
    wait_for(client, 2)
    for source in (
        array,
        da.from_array(X.toarray(), chunks=(130, 60)),
        bag,
        ShardedCounts(folders, client=client),
        ShardedCounts([folder.path for folder in folders], client=client),
        ShardedCounts(client.scatter(blocks), client=client),
    ):
        assert_array_equal(clone(model).fit(source).components_, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: [b[0], b[1][:, :50], b[2]], "block [12] has (50|60) words and the first (50|60)"),
        (lambda b: [b[0], b[1], b[2][:, :50]], "block [12] has (50|60) words and the first (50|60)"),
        (lambda b: [b[0], b[1], -b[2]], "block 2 must hold non-negative integer counts"),
        (lambda b: [b[0] * 0.5], "block 0 must hold non-negative integer counts"),
        (lambda b: [b[0][:0], b[1][:0]], r"must have documents and words; got shape \(0, 60\)"),
    ],
)
def test_bad_blocks(change, message, blocks, client):
    wait_for(client, 2)
    shards = ShardedCounts([dask.delayed(block) for block in change(blocks)])
    with pytest.raises(ValueError, match=message):
        PrivateCGSLDA(4).fit(shards)
    assert forgotten(client)


@pytest.mark.filterwarnings("ignore:n_components=.* exceeds")
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_damaged_shard_is_refused_and_kills_no_worker(model, blocks, client, tmp_path):
    wait_for(client, 2)
    before = set(client.nthreads())
    folder, broken = write_counts(tmp_path / "part", [blocks[0]]), blocks[1].copy()
    with open(tmp_path / "part" / "indices", "r+b") as file:
        file.write(np.array([200_000_000], np.int32).tobytes())
    broken.indices[3] = 200_000_000
    for source in (ShardedCounts([folder], client=client), ShardedCounts([dask.delayed(broken)], client=client)):
        with pytest.raises(ValueError, match=r"no complete folder of counts|block 0 is a damaged sparse matrix"):
            clone(model).fit(source)
    assert set(client.nthreads()) == before


def test_bad_sources(X, client, tmp_path):
    wait_for(client, 2)
    with pytest.raises(TypeError, match="got a csr_matrix"):
        ShardedCounts(X)
    with pytest.raises(TypeError, match="got a csr_matrix"):
        ShardedCounts([X])
    with pytest.raises(ValueError, match="at least one block"):
        ShardedCounts([])
    with pytest.raises(ValueError, match=r"cut by rows only; got blocks in a grid of shape \(2, 3\)"):
        PrivateCGSLDA().fit(da.from_array(X.toarray(), chunks=(200, 20)))
    with pytest.raises(ValueError, match="no complete folder of counts"):
        PrivateCGSLDA().fit(ShardedCounts([tmp_path / "nowhere"]))
    with pytest.raises(ZeroDivisionError):  # of the user's own graph
        PrivateCGSLDA().fit(ShardedCounts([dask.delayed(lambda: 1 / 0)()]))
    with pytest.raises(ValueError, match="must be on this machine for PriTopLDA"):
        PriTopLDA().fit(ShardedCounts([dask.delayed(X)]))
    with pytest.raises(TypeError, match="VIPSLDA takes these data as a matrix in memory; got a ShardedCounts"):
        VIPSLDA(learning_method="online").partial_fit(ShardedCounts([dask.delayed(X)]))
    with pytest.raises(TypeError, match=r"takes these data as a matrix in memory; got an Array.*compute\(\)"):
        PrivateCGSLDA(epsilon=np.inf, max_iter=1).fit(X).transform(da.from_array(X.toarray()))


def test_clients_that_are_of_no_use(X, client):
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster:
        other = distributed.Client(cluster, set_as_default=False)
        shards = ShardedCounts([dask.delayed(X)], client=other)
        other.close()
    with pytest.raises(ValueError, match="client must be connected to its scheduler; it is closed"):
        PrivateCGSLDA().fit(shards)
    with pytest.raises(ValueError, match="it is closed"):
        ShardedCounts([dask.delayed(X)], client=other)
    with pytest.raises(ValueError, match="must not be asynchronous"):
        ShardedCounts([dask.delayed(X)], client=SimpleNamespace(asynchronous=True))


def test_no_client(X, monkeypatch):
    def none():
        raise ValueError("No clients found")

    monkeypatch.setattr(distributed, "default_client", none)
    with pytest.raises(ValueError, match="client must be given where no Dask client is active"):
        PrivateCGSLDA().fit(da.from_array(X.toarray()))


def test_no_budget_no_reading(client):
    with PrivacyAccountant(epsilon=1, delta=1e-5), pytest.raises(BudgetExceededError):
        PrivateCGSLDA(epsilon=2).fit(ShardedCounts(["nowhere"]))


def test_a_worker_without_the_package(shards, client):
    worker = next(iter(client.nthreads()))

    def forget():
        sys.kept = sys.modules["skdplda"]
        sys.modules["skdplda"] = None

    def remember():
        sys.modules["skdplda"] = sys.kept

    client.run(lambda: __import__("skdplda") and None)
    client.run(forget, workers=[worker])
    try:
        with pytest.raises(RuntimeError, match=f"worker {worker} cannot import skdplda.*install skdplda=="):
            PrivateCGSLDA().fit(shards)
    finally:
        client.run(remember, workers=[worker])


@pytest.mark.parametrize("n", [0, 1, 4, 5, 23, 1000])
def test_tree(n):
    top, below = tree(n)
    children = top + [child for nodes in below for child in nodes]
    assert sorted(children) == list(range(n))
    assert max(map(len, [top, *below])) <= 4
    assert all(child > parent for parent, nodes in enumerate(below) for child in nodes)


@pytest.fixture(scope="module")
def threads():
    """Workers in this process: quick to start, and to lose; as many as the tests close, and some more."""
    with (
        distributed.LocalCluster(
            n_workers=14, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield cluster, client


@pytest.fixture
def close_one(threads):
    """Return a callback that closes a worker with documents after the second round."""
    cluster, client = threads

    def close(report):
        if report.n_done == 2:
            held = client.run(lambda dask_worker: len(dask_worker.state.actors))
            address = next(address for address, n in held.items() if n)
            worker = next(worker for worker in cluster.workers.values() if worker.address == address)
            cluster.sync(worker.close)

    return close


def test_a_deep_tree(X, threads):
    """Each worker waits for the next, and the driver for the first."""
    _, client = threads
    pool = ActorPool(ShardedCounts([dask.delayed(X[i : i + 50]) for i in range(0, 400, 50)], client=client), fan_out=1)
    pool.build(sums_of, [{}] * len(pool.parts))
    for factor in (1, 2):
        assert_array_equal(pool.total("times", (factor,)), factor * X.sum(axis=0).A1)
    pool.close()


@pytest.mark.parametrize("name", ["gibbs, no noise", "gibbs, sampled", "variational", "variational, cut"])
def test_a_closed_worker_changes_nothing(name, X, threads, close_one):
    """Half of the workers are closed by the end; the parts move to those left, below each other in the tree."""
    _, client = threads
    shards = ShardedCounts([dask.delayed(X[i : i + 50]) for i in range(0, 400, 50)], client=client)
    here = clone(MODELS[name]).set_params(random_state=7).fit(X)
    there = clone(here).set_params(callback=close_one).fit(shards)
    assert_array_equal(here.components_, there.components_)


class sums_of:
    def __init__(self, X, n_threads):
        self.sum = X.sum(axis=0)

    def times(self, factor):
        return factor * self.sum


@pytest.mark.parametrize("mechanism", ["sieve", "weighted_gaussian", "sips", "mad2r", "truncated_geometric"])
@pytest.mark.parametrize("users", [False, True])
def test_selection(mechanism, users, X, shards):
    groups = np.repeat([5, 1, 3], SIZES) * 100 + np.arange(400) % 40 if users else None
    selector = DPVocabularySelector(epsilon=6, delta=0.001, method=mechanism, max_words_per_unit=9, random_state=0)
    here, there = clone(selector).fit(X, groups=groups), clone(selector).fit(shards, groups=groups)
    assert 0 < here.support_.sum() < X.shape[1]
    assert_array_equal(here.support_, there.support_)
    assert_array_equal(here.noisy_weights_, there.noisy_weights_)
    assert here.privacy_guarantee_ == there.privacy_guarantee_


def test_selection_that_needs_one_machine(shards, client):
    with pytest.raises(ValueError, match="must be on this machine for method='policy_gaussian'"):
        DPVocabularySelector(method="policy_gaussian").fit(shards)
    selector = DPVocabularySelector(public_vocabulary=[3, 1]).fit(shards)
    assert np.flatnonzero(selector.support_).tolist() == [1, 3]
    with pytest.raises(ValueError, match="column numbers from 0 to 59"):
        DPVocabularySelector(public_vocabulary=[60]).fit(shards)
    assert forgotten(client)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_released_draws(X, threads):
    """`HDPLDA`: the topics stay on the workers, and a trace is refused."""
    _, client = threads
    shards = ShardedCounts([dask.delayed(X[i : i + 50]) for i in range(0, 400, 50)], client=client)
    model = HDPLDA(4, max_iter=4, random_state=1, epsilon=50)
    here = model.fit(X)
    there = clone(model).fit(shards)
    assert_array_equal(here.components_, there.components_)
    assert here.privacy_guarantee_ == there.privacy_guarantee_
    with pytest.raises(TypeError, match="takes these data as a matrix in memory"):
        clone(model).set_params(return_trace=True).fit(shards)


@pytest.mark.parametrize("bit_epsilon", [3.0, np.inf])
def test_reports(bit_epsilon, X, threads):
    """`LocalPrivateLDA`: the server's half, on reports made elsewhere; a second batch goes on from the first."""
    _, client = threads
    randomizer = LocalRandomizer(bit_epsilon=bit_epsilon, random_state=0)
    reports = randomizer.fit(X).transform(X)
    parts = [dask.delayed(reports[i : i + 80]) for i in range(0, 400, 80)]
    shards = ShardedCounts(parts, client=client)
    model = LocalPrivateLDA(3, randomizer=randomizer, input="reports", max_iter=6, random_state=0)
    here, there = clone(model).fit(reports), clone(model).fit(shards)
    assert_array_equal(here.components_, there.components_)
    assert here.privacy_guarantee_ == there.privacy_guarantee_
    assert_array_equal(here.partial_fit(reports).components_, there.partial_fit(shards).components_)
    assert forgotten(client)
    with pytest.raises(ValueError, match="X must be on this machine, unless input='reports'"):
        clone(model).set_params(input="counts").fit(shards)
    with pytest.raises(ValueError, match="X has 50 features, but LocalPrivateLDA is expecting 60"):
        there.partial_fit(ShardedCounts([dask.delayed(reports[:, :50])], client=client))
    with pytest.raises(ValueError, match="must hold presence bits, ones and zeros; got a count of 2"):
        clone(model).fit(ShardedCounts([dask.delayed(2 * reports)], client=client))


@pytest.fixture(scope="module")
def V():
    V = np.random.default_rng(0).normal(size=(400, 6)).astype(np.float32)
    V[[0, 149, 399]] = np.array([[np.nan], [0.0], [np.inf]])
    return V


@pytest.mark.filterwarnings("ignore:.*clusters do not stand out:UserWarning")
class TestEmbeddings:
    """`EmbeddingTopics`: blocks of embeddings, with counts of words or without."""

    MODEL = EmbeddingTopics(4, epsilon=20.0, max_iter=4, random_state=3)

    @staticmethod
    def parts(*arrays, sizes=SIZES, words=None):
        """Return blocks of the first array, or of several as `EmbeddedTexts`."""
        bounds = pairwise(np.cumsum([0, *sizes]))
        blocks = [[array[a:b] for array in arrays] for a, b in bounds]
        return [dask.delayed(EmbeddedTexts(*block, words) if len(block) > 1 else block[0]) for block in blocks]

    @pytest.mark.parametrize(
        ("sizes", "users", "counted", "projection"),  # each pair of two of them
        [
            ((400,), False, False, None),
            ((400,), True, True, 3),
            (SIZES, False, True, None),
            (SIZES, True, False, 3),
            ((0, 1, 9, 300, 90), True, True, None),
            ((0, 1, 9, 300, 90), False, False, 3),
            ((25,) * 16, True, False, None),
            ((25,) * 16, False, True, 3),
        ],
    )
    def test_any_blocks_give_the_same_bits(self, sizes, users, counted, projection, V, X, threads):
        _, client = threads
        blocks = self.parts(V, *([X] if counted else []), sizes=sizes)
        groups = np.repeat(range(len(sizes)), sizes) * 1000 + np.arange(400) % 7 if users else None
        model = clone(self.MODEL).set_params(projection=projection)
        here = model.fit(V, groups=groups, counts=X if counted else None)
        there = clone(model).fit(ShardedCounts(blocks, client=client), groups=groups)
        assert vars(here).keys() == vars(there).keys()
        for name in ("components_", "cluster_centers_", "cluster_sizes_", "centre_", "concentration_"):
            assert_array_equal(getattr(here, name), getattr(there, name))
        assert here.privacy_guarantee_ == there.privacy_guarantee_
        assert_array_equal(here.predict(V), there.predict(V))

    def test_processes_and_other_collections(self, V, X, client, tmp_path):
        wait_for(client, 2)
        words = [f"w{i}" for i in range(60)]
        here = clone(self.MODEL).fit(EmbeddedTexts(V, X, words))
        np.save(tmp_path / "V.npy", V)
        array, counts = da.from_array(V, chunks=(130, 6)), da.from_array(X.toarray(), chunks=(130, 60))
        read = dask.delayed(np.load)(tmp_path / "V.npy", mmap_mode="r")
        blocks = [EmbeddedTexts(V[a:b], X[a:b], words) for a, b in pairwise(np.cumsum([0, *SIZES]))]
        bag = db.from_sequence(range(3), npartitions=3).map_partitions(lambda part: [blocks[i] for i in part])
        for source in ({"X": bag}, {"X": EmbeddedTexts(array, counts, words)}, {"X": ShardedCounts(bag.to_delayed())}):
            there = clone(self.MODEL).fit(**source)
            assert_array_equal(here.components_, there.components_)
            assert here.words_.tolist() == there.words_.tolist() == words
        bags = [bag.map(lambda block, name=name: getattr(block, name)) for name in ("vectors", "counts")]
        for X_, counts_ in ((array, counts), bags, (ShardedCounts([read]), ShardedCounts([dask.delayed(X)]))):
            there = clone(self.MODEL).fit(X_, counts=counts_)
            assert_array_equal(here.components_, there.components_)
            assert there.words_ is None
        assert forgotten(client)

    def test_what_is_public_of_words_counts_on_workers_too(self, V, X, client):
        wait_for(client, 1)
        array, counts = da.from_array(V, chunks=(130, 6)), da.from_array(X.toarray(), chunks=(130, 60))
        words, vectors = [f"w{i}" for i in range(60)], np.random.default_rng(0).normal(size=(60, 6))
        alone = clone(self.MODEL).fit(EmbeddedTexts(V, X, words, vectors))
        here, there = (
            clone(self.MODEL).fit(EmbeddedTexts(*data, words, vectors, np.ravel(X.sum(axis=0)) + 1.0))
            for data in ((V, X), (array, counts))
        )
        assert_array_equal(here.components_, there.components_)
        assert (here.components_ != alone.components_).any()

    @pytest.mark.parametrize("n_done", [1, 4])
    def test_a_closed_worker_and_a_checkpoint_change_nothing(self, n_done, V, X, threads, close_one, tmp_path):
        _, client = threads
        wait_for(client, 2)
        shards = ShardedCounts(self.parts(V, X, sizes=(50,) * 8), client=client)
        here = clone(self.MODEL).fit(V, counts=X)

        there = clone(self.MODEL).set_params(checkpoint=tmp_path / "fit", callback=cancel_after(n_done))
        with pytest.raises(KeyboardInterrupt):
            there.fit(shards)
        with np.load(tmp_path / "fit") as file:
            kept = {name for name in file.files if name != "header"}
        assert kept == {f"r_{i}" for i in range(n_done)}  # released sums, and no document
        with pytest.raises(ValueError, match="other parameters or other data"):
            clone(there).set_params(callback=None).fit(ShardedCounts(self.parts(V, sizes=(50,) * 8), client=client))
        with pytest.raises(ValueError, match="other parameters or other data"):  # of the same bytes
            clone(there).set_params(callback=None).fit(
                ShardedCounts(self.parts(V.view(np.int32), X, sizes=(50,) * 8), client=client)
            )
        there.set_params(callback=close_one).fit(shards)
        assert_array_equal(here.components_, there.components_)
        assert_array_equal(here.cluster_centers_, there.cluster_centers_)

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (lambda V, X: [V, V[:, :5]], "(block 1 has 5|block 0 has 6) dimensions and the first (5|6)"),
            (lambda V, X: [V, V[0]], r"block 1 must be of shape \(n_documents, n_dimensions\); got \(6,\)"),
            (lambda V, X: [V.astype(complex)], "[Cc]omplex"),
            (lambda V, X: [np.array([["a text", "another"]])], r"block 0 must have embeddings.*got texts\. Embed them"),
            (lambda V, X: [V, EmbeddedTexts(V, X)], "counts of the same words, in the same order, or none of them"),
            (lambda V, X: [EmbeddedTexts(V, X), EmbeddedTexts(V, X[:, :9])], "counts of the same words"),
            (lambda V, X: [EmbeddedTexts(V, X * 0.5)], "block 0 must hold non-negative integer counts"),
            (
                lambda V, X: [EmbeddedTexts(pd.DataFrame(V), pd.DataFrame(X.toarray()).iloc[::-1])],
                "counts must have the rows of X in the same order",
            ),
            (lambda V, X: [V[:0]], r"X must have documents and dimensions; got shape \(0, 6\)"),
        ],
    )
    def test_bad_blocks_are_refused(self, change, said, V, X, threads):
        _, client = threads
        with pytest.raises((ValueError, TypeError), match=said):
            clone(self.MODEL).fit(ShardedCounts([dask.delayed(block) for block in change(V, X)], client=client))
        assert forgotten(client)

    def test_blocks_that_change_are_refused(self, V, threads, close_one, tmp_path):
        """Else a worker that reads them again would bound the documents of others as those of a user."""
        _, client = threads
        wait_for(client, 2)

        def block(number):
            path = tmp_path / str(number)
            again = path.exists()
            path.touch()
            return V[50 * number :][: 50 - again]

        shards = ShardedCounts([dask.delayed(block)(number) for number in range(8)], client=client)
        with pytest.raises(RuntimeError, match=r"block \d or one of those after it has other documents than when"):
            clone(self.MODEL).set_params(callback=close_one).fit(shards)

    def test_numbers_are_as_wide_as_their_own_block(self, threads):
        _, client = threads
        narrow = np.array([[100, 1, 0, 0, 0, 0]], np.int8)  # whose squares are no int8
        wide = np.arange(24, dtype=np.int64).reshape(4, 6)
        exact = [
            clone(self.MODEL).fit(ShardedCounts([dask.delayed(np.vstack(rows)) for rows in blocks], client=client))
            for blocks in ([[narrow], [wide]], [[narrow], [wide.astype(np.int8)]])
        ]
        assert_array_equal(exact[0].cluster_centers_, exact[1].cluster_centers_)

    def test_wrong_input_is_refused(self, V, X, threads):
        _, client = threads
        shards = ShardedCounts(self.parts(V), client=client)
        for counts in (X, ShardedCounts([dask.delayed(X)], client=client)):
            with pytest.raises(ValueError, match=r"counts must be on workers as X is.*X has 3 blocks, counts (none|1)"):
                clone(self.MODEL).fit(shards, counts=counts)
        with pytest.raises(ValueError, match=r"counts must have one row a text: vectors have \d+ rows, counts"):
            clone(self.MODEL).fit(
                shards, counts=ShardedCounts(self.parts(X)[::-1][1:] + self.parts(X)[:1], client=client)
            )
        with pytest.raises(ValueError, match="documents of one user in several blocks"):
            clone(self.MODEL).fit(shards, groups=np.zeros(400, int))
        with pytest.raises(ValueError, match="public_rows must have 6 columns"):
            clone(self.MODEL).set_params(public_rows=np.eye(4)).fit(shards)
        with pytest.raises(ValueError, match=r"block [012] must hold embeddings, and is a path"):
            clone(self.MODEL).fit(ShardedCounts(["V.npy"], client=client))
        with pytest.raises(ValueError, match=r"block [012] must hold counts; got EmbeddedTexts"):
            VIPSLDA(3).fit(ShardedCounts(self.parts(V, X), client=client))
        for method in (self.MODEL.audit_contributions, clone(self.MODEL).fit(V).predict):
            with pytest.raises(TypeError, match="EmbeddingTopics takes these embeddings in memory"):
                method(shards)
        assert forgotten(client)


def test_counts_that_do_not_fit():
    half = np.full((1, 1), 2**30, np.int32)
    assert added([(half, [0])] * 1)[0] == 2**30
    with pytest.raises(OverflowError, match=r"more than 2\*\*31 tokens"):
        added([(half, [0]), (half, [1])])


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_semantic_units(rate, X, threads, close_one):
    """`PCTD`, blocks of semantic units, and a worker that is lost."""
    _, client = threads
    wait_for(client, 2)
    units = UnitMatrix(np.arange(0, 401, 2), X)
    shards = ShardedCounts([dask.delayed(units[i : i + 50]) for i in range(0, 200, 50)], client=client)
    model = PCTD(3, max_iter=4, random_state=0, sampling_rate=rate)
    here, there = clone(model).fit(units), clone(model).set_params(callback=close_one).fit(shards)
    assert_array_equal(here.components_, there.components_)
    assert here.privacy_guarantee_ == there.privacy_guarantee_
    with pytest.raises(ValueError, match="X must be on this machine, unless noise_on='statistics'"):
        clone(model).set_params(epsilon=np.inf, sampling_rate=1.0).fit(shards)
    with pytest.raises(ValueError, match="all of word counts, or all of semantic units"):
        clone(model).fit(ShardedCounts([dask.delayed([units, X])], client=client))


def test_a_worker_lost_before_it_was_asked(X, shards, client, monkeypatch):
    """The scheduler may still list a worker that is dead."""
    run = type(client).run

    def lost(self, *arguments, **options):
        found = run(self, *arguments, **options)
        if "on_error" in options:
            found[min(found)] = OSError("Address removed.")
        return found

    monkeypatch.setattr(type(client), "run", lost)
    model = clone(MODELS["variational"]).set_params(random_state=0)
    assert_array_equal(clone(model).fit(X).components_, model.fit(shards).components_)


@pytest.mark.parametrize("moment", [1, 2, 3, 7])  # and three later
def test_a_worker_lost_at_any_moment(moment, X, monkeypatch):
    """While actors are placed, blocks brought, read, states built, sums formed, or a lost part is brought back."""
    waits, wait = [], ActorPool._wait
    with (
        distributed.LocalCluster(n_workers=4, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):

        def lose(self, calls):
            waits.append(0)
            if len(waits) in (moment, moment + 3):
                worker = next(worker for worker in cluster.workers.values() if worker.address in client.nthreads())
                cluster.loop.add_callback(worker.close)
                while worker.address in client.nthreads():
                    time.sleep(0.01)
            return wait(self, calls)

        model = clone(MODELS["gibbs, sampled"]).set_params(random_state=2)
        here = clone(model).fit(X)
        monkeypatch.setattr(ActorPool, "_wait", lose)
        shards = ShardedCounts([dask.delayed(X[i : i + 50]) for i in range(0, 400, 50)], client=client)
        assert_array_equal(here.components_, model.fit(shards).components_)
        assert len(waits) > moment + 3
