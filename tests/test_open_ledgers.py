"""A fit charges the ledger that is open, wherever in the program it runs, or it reads no data."""

import asyncio
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import joblib
import numpy as np
import pytest
from conftest import in_a_child
from internals import open_ledgers as _open_ledgers
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline

from skdplda import BudgetExceededError, PrivacyAccountant, PrivateCGSLDA
from skdplda.privacy import BudgetCharge, PrivacyGuarantee, active_accountant, prepaid

X = np.random.default_rng(0).poisson(1.0, size=(24, 6))
BUDGET = {"epsilon": 100.0, "delta": 1e-3}
REFUSED = "cannot write into it: the fit would not be charged"


def lda(**parameters):
    return PrivateCGSLDA(2, max_iter=2, **parameters)


@pytest.fixture
def idle_workers():
    """Workers of joblib that were started before any ledger was opened, and so inherit nothing."""
    joblib.Parallel(2)(joblib.delayed(os.getpid)() for _ in range(4))


def test_fits_in_a_pool_of_threads_are_charged():
    with PrivacyAccountant(**BUDGET) as accountant, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: lda(epsilon=1.0).fit(X), range(8)))
    assert len(accountant.ledger) == 8


def test_threads_cannot_overdraw_the_ledger_of_their_process():
    cost = lda(epsilon=1.0).privacy_cost()

    def fit(_):
        try:
            return lda(epsilon=1.0).fit(X)
        except BudgetExceededError:
            return None

    with PrivacyAccountant(cost.epsilon, cost.delta) as accountant, ThreadPoolExecutor(4) as pool:
        fitted = [model for model in pool.map(fit, range(4)) if model is not None]
    assert len(fitted) == len(accountant.ledger) == 1


@pytest.mark.filterwarnings("ignore:.*was given a random_state")
def test_a_ledger_refuses_samples_that_it_has_had(tmp_path):
    """It composes samples as independent; those of one seed are the same documents."""
    path, secret = tmp_path / "ledger.json", bytes(range(32))
    sampled = {"sampling_rate": 0.5, "epsilon": 1.0}
    with PrivacyAccountant.open(path, **BUDGET):
        lda(**sampled, random_state=secret).fit(X)
    accountant = PrivacyAccountant.open(path)
    with accountant, pytest.raises(BudgetExceededError, match="for a fit on samples: the same documents"):
        lda(**sampled, random_state=secret).fit(X)
    assert len(accountant.ledger) == 1
    with accountant:
        for others in ({"random_state": secret[::-1]}, {}, {}, {"random_state": secret, "sampling_rate": 1.0}):
            lda(**sampled | others).fit(X)
    assert len(accountant.ledger) == 5
    lda(**sampled, random_state=secret).fit(X)  # without a ledger, as ever
    with PrivacyAccountant(np.inf, 1e-4, accept_claimed=True):  # without noise, they promise nothing
        for _ in range(2):
            lda(epsilon=np.inf, sampling_rate=0.5, random_state=secret).fit(X)
    with PrivacyAccountant(0.5, 1e-5) as poor, pytest.raises(BudgetExceededError, match="the budget is"):
        BudgetCharge(lda(**sampled).privacy_cost(), "fit").charge("run", "samples")
    assert not poor._steps  # what was not afforded may come again


def test_a_feature_union_in_two_threads_is_charged_twice():
    union = FeatureUnion([("a", lda()), ("b", lda())], n_jobs=2)
    with PrivacyAccountant(**BUDGET) as accountant, joblib.parallel_config(backend="threading"):
        union.fit(X)
    assert len(accountant.ledger) == 2


@pytest.mark.filterwarnings("ignore:.*worker stopped:UserWarning")
def test_cross_validation_in_worker_processes_is_refused(idle_workers):
    with PrivacyAccountant(**BUDGET) as accountant, pytest.raises(ValueError, match=REFUSED):
        cross_val_score(lda(), X, cv=3, n_jobs=2)
    assert accountant.ledger == ()


def test_a_grid_search_in_worker_processes_is_refused(idle_workers):
    search = GridSearchCV(make_pipeline(lda()), {"privatecgslda__epsilon": [1.0, 2.0]}, cv=2, n_jobs=2)
    with PrivacyAccountant(**BUDGET) as accountant, pytest.raises(ValueError, match=REFUSED):
        search.fit(X)
    assert accountant.ledger == ()


def test_a_feature_union_in_worker_processes_is_refused_until_the_ledger_is_closed(idle_workers):
    with PrivacyAccountant(**BUDGET) as accountant, pytest.raises(RuntimeError, match=REFUSED):
        FeatureUnion([("a", lda()), ("b", lda())], n_jobs=2).fit(X)
    assert accountant.ledger == ()
    FeatureUnion([("a", lda()), ("b", lda())], n_jobs=2).fit(X)


def test_a_forked_child_is_refused_before_data_are_read():
    class NeverRead:
        def __getattr__(self, name):
            raise AssertionError("data were read")

    with PrivacyAccountant(**BUDGET) as accountant:
        assert REFUSED in in_a_child(lambda: lda().fit(NeverRead()))
        assert "would be missing" in in_a_child(lambda: accountant.spend(PrivacyGuarantee(epsilon=1.0)))
        assert "would be missing" in in_a_child(accountant.__enter__)
    assert in_a_child(active_accountant) == "None"
    assert accountant.ledger == ()


def test_a_child_may_open_a_ledger_of_its_own():
    def work():
        with PrivacyAccountant(**BUDGET) as own:
            lda().fit(X)
        return len(own.ledger)

    with PrivacyAccountant(**BUDGET):
        assert in_a_child(work) == "1"


CHILD = """
import numpy as np
from skdplda import PrivateCGSLDA
PrivateCGSLDA(2, max_iter=2).fit(np.ones((4, 6), int))
"""


def test_a_process_started_under_a_ledger_is_refused(tmp_path):
    with PrivacyAccountant(**BUDGET):
        done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=120)
    assert REFUSED in done.stderr
    assert "SKDPLDA_LEDGER" not in os.environ  # later processes know of none


def test_interleaved_blocks_charge_the_ledger_that_is_still_open():
    first, second = PrivacyAccountant(**BUDGET), PrivacyAccountant(**BUDGET)

    def block(accountant):
        with accountant:
            yield

    one, other = block(first), block(second)
    next(one)
    next(other)
    next(one, None)  # the first block ends before the second
    assert active_accountant() is second
    lda().fit(X)
    next(other, None)
    assert active_accountant() is None
    assert (len(first.ledger), len(second.ledger)) == (0, 1)


def test_each_thread_charges_the_ledger_that_it_entered():
    ledgers = [PrivacyAccountant(**BUDGET) for _ in range(2)]
    entered = threading.Barrier(2)

    def fit(accountant):
        with accountant:
            entered.wait(30)
            lda().fit(X)
            entered.wait(30)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(fit, ledgers))
    assert [len(accountant.ledger) for accountant in ledgers] == [1, 1]
    assert active_accountant() is None


def test_a_thread_that_cannot_know_which_of_two_ledgers_pays_is_refused():
    with PrivacyAccountant(**BUDGET) as outer, PrivacyAccountant(**BUDGET) as inner, ThreadPoolExecutor(1) as pool:
        with pytest.raises(RuntimeError, match="2 ledgers are open in this process"):
            pool.submit(lda().fit, X).result()
        assert active_accountant() is inner
    assert outer.ledger == inner.ledger == ()


ENDED = "inside a block of a ledger that has ended since: the fit would not be charged"


def test_a_block_left_in_another_thread_is_closed():
    """Who entered it is told, and may enter a ledger again."""

    def work():
        accountant = PrivacyAccountant(**BUDGET)
        accountant.__enter__()
        thread = threading.Thread(target=accountant.__exit__)
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError, match=ENDED):
            lda().fit(X)
        with accountant:
            lda().fit(X)
        return len(accountant.ledger)

    assert copy_context().run(work) == 1
    assert active_accountant() is None


def test_a_task_that_outlives_its_block_is_refused():
    """Neither is it free, nor does another ledger pay for it."""

    async def late():
        with PrivacyAccountant(**BUDGET) as accountant:
            task = asyncio.create_task(asyncio.to_thread(lda().fit, X))
        with pytest.raises(RuntimeError, match=ENDED):
            await task
        with accountant:
            await asyncio.to_thread(lda().fit, X)
        await asyncio.to_thread(lda().fit, X)  # of no block
        return len(accountant.ledger)

    assert asyncio.run(late()) == 1
    with PrivacyAccountant(**BUDGET) as first:
        context = copy_context()
    with PrivacyAccountant(**BUDGET) as second:
        with pytest.raises(RuntimeError, match=ENDED):
            context.run(lda().fit, X)
        assert ENDED in in_a_child(lambda: context.run(lda().fit, X))
    assert first.ledger == second.ledger == ()


def test_a_ledger_in_a_prepaid_block_is_charged():
    with PrivacyAccountant(**BUDGET) as outer, prepaid():
        assert active_accountant() is None
        with PrivacyAccountant(**BUDGET) as inner:
            assert active_accountant() is inner
        assert active_accountant() is None
    assert outer.ledger == inner.ledger == ()


def test_a_model_saved_under_a_ledger_does_not_bind_who_loads_it():
    with PrivacyAccountant(**BUDGET):
        saved = pickle.dumps(make_pipeline(CountVectorizer(vocabulary=["pear"]), lda()))
        assert vars(pickle.loads(saved)[1]) == vars(lda())
    assert active_accountant() is None
    if not os.path.isdir("/proc/self/fd"):
        return  # whether the block is open still cannot be seen: it binds for a day
    code = "import pickle, sys; pickle.loads(sys.stdin.buffer.read()); from skdplda.privacy import active_accountant;"
    command = ["sh", "-c", f'{sys.executable} -c "{code} assert active_accountant() is None"; exit $?']
    subprocess.run(command, input=saved, check=True, timeout=120)


def test_fits_in_worker_processes_charge_a_ledger_in_a_file(tmp_path, idle_workers):
    path = tmp_path / "ledger.json"
    with PrivacyAccountant.open(path, **BUDGET) as accountant:
        cross_val_score(lda(), X, cv=3, n_jobs=2)
        FeatureUnion([("a", lda()), ("b", lda())], n_jobs=2).fit(X)
        assert in_a_child(lambda: lda().fit(X).components_.shape) == "(2, 6)"
    assert len(accountant.ledger) == len(PrivacyAccountant.open(path).ledger) == 6


@pytest.mark.filterwarnings("default::sklearn.exceptions.FitFailedWarning")
def test_worker_processes_cannot_overdraw_a_ledger_in_a_file(tmp_path, idle_workers):
    cost = lda(epsilon=1.0).privacy_cost()
    with (
        PrivacyAccountant.open(tmp_path / "ledger.json", cost.epsilon, cost.delta) as accountant,
        pytest.warns(FitFailedWarning, match="BudgetExceededError"),
    ):
        scores = cross_val_score(lda(epsilon=1.0), X, cv=4, n_jobs=2)
    assert np.isfinite(scores).sum() == len(accountant.ledger) == 1


SENTENCE = "the environment variable SKDPLDA_LEDGER must be what skdplda wrote"


@pytest.mark.parametrize("text", ["7", '[["me", 1, []]]', "[[1, 2]]", "[" * 100_000])
def test_a_malformed_environment_variable_is_refused_in_a_sentence(text, monkeypatch):
    monkeypatch.setenv("SKDPLDA_LEDGER", text)
    process = _open_ledgers.Process()  # as at the import
    process.inherit()
    monkeypatch.setattr(_open_ledgers, "ancestors", lambda: iter(()))
    monkeypatch.setattr(_open_ledgers, "PROCESS", process)
    with pytest.raises(ValueError, match=f"^{SENTENCE}.*unset it") as error:
        lda().fit(X)
    assert len(str(error.value)) < 400


def test_a_process_with_a_malformed_environment_variable_charges_its_own_ledger_and_else_ends_in_a_sentence():
    code = """
import os, numpy as np
from skdplda import PrivacyAccountant, PrivateCGSLDA
with PrivacyAccountant(epsilon=9.0, delta=1e-4) as accountant:
    PrivateCGSLDA(2, max_iter=2).fit(np.eye(4, dtype=int))
print(len(accountant.ledger), os.environ["SKDPLDA_LEDGER"])
PrivateCGSLDA(2, max_iter=2).fit(np.eye(4, dtype=int))
"""
    environment = {**os.environ, "SKDPLDA_LEDGER": "{"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (1, "1 {\n")
    assert done.stderr.splitlines()[-1].startswith(f"ValueError: {SENTENCE}")


# --- processes that inherit nothing -----------------------------------------------------------------------

LINUX = pytest.mark.skipif(
    not hasattr(os, "memfd_create") or not os.path.isdir("/proc/self/fd"),
    reason="processes see each other on Linux only",
)
WORKERS = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
import numpy as np
from skdplda import PrivacyAccountant, PrivateCGSLDA

X = np.random.default_rng(0).poisson(1.0, size=(24, 6))

def model():
    return PrivateCGSLDA(2, epsilon=0.25, max_iter=2)

def build(_=None):
    return fit(model())

def fit(estimator):
    try:
        estimator.fit(X)
        return "fitted"
    except RuntimeError as error:
        return "refused" if "cannot write into it" in str(error) else str(error)

def tell(function, argument, queue):
    queue.put(function(argument))

def main(method, *paths):
    context = multiprocessing.get_context(method)
    pool, queue = ProcessPoolExecutor(1, mp_context=context), context.SimpleQueue()
    list(pool.map(abs, range(8)))  # so the worker, and the forkserver, are older than the blocks
    for path in paths:
        with PrivacyAccountant.open(path, 9.0, 1e-3) if path else PrivacyAccountant(9.0, 1e-3) as ledger:
            process = context.Process(target=tell, args=(build, None, queue))
            process.start()
            said = [queue.get(), *pool.map(build, range(2)), *pool.map(fit, [model()] * 2)]
            process.join()
        print(len(ledger.ledger), *said)
    pool.shutdown()

if __name__ == "__main__":
    main(*sys.argv[1:])
"""


@LINUX
@pytest.mark.parametrize(
    ("method", "kinds"), [("fork", ["memory"]), ("spawn", ["file"]), ("forkserver", ["file", "memory"])]
)
def test_workers_that_were_started_before_the_block_are_charged_or_refused(tmp_path, method, kinds):
    """Whether they get an estimator or make one; the forkserver is what Python 3.14 starts on Linux by default."""
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    paths = {"file": str(tmp_path / "ledger.json"), "memory": ""}
    command = [sys.executable, "-W", "ignore", str(script), method, *(paths[kind] for kind in kinds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    expected = {"file": "5" + 5 * " fitted", "memory": "0" + 5 * " refused"}
    assert done.stdout.splitlines() == [expected[kind] for kind in kinds]


@LINUX
def test_a_process_with_an_emptied_environment_charges_the_ledger_of_those_it_descends_from(tmp_path):
    needed = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    shell = ["sh", "-c", '"$0" -c "$1"; exit $?', sys.executable, CHILD]  # a grandchild
    with PrivacyAccountant.open(tmp_path / "ledger.json", **BUDGET) as accountant:
        subprocess.run(shell, env=needed, cwd=tmp_path, check=True, timeout=120)
    assert len(accountant.ledger) == 1
    with PrivacyAccountant(**BUDGET):
        done = subprocess.run(shell, env=needed, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert REFUSED in done.stderr


@LINUX
def test_idle_workers_of_joblib_that_make_their_estimators_charge_the_ledger(tmp_path, idle_workers):
    def fit_one(X):  # a local function: workers cannot import the modules of tests
        return PrivateCGSLDA(2, max_iter=2).fit(X).components_.shape

    with PrivacyAccountant.open(tmp_path / "ledger.json", **BUDGET).labelled("in workers") as accountant:
        joblib.Parallel(2)(joblib.delayed(fit_one)(X) for _ in range(4))
        cross_val_score(lda(), X, cv=2, n_jobs=2)
    assert [entry.label for entry in accountant.ledger] == ["in workers"] * 6
    joblib.Parallel(2)(joblib.delayed(fit_one)(X) for _ in range(2))


@pytest.fixture
def dask_from_a_shell(tmp_path):
    """A client of a cluster that nobody here has started, on this machine."""
    distributed = pytest.importorskip("distributed")
    file = tmp_path / "scheduler.json"
    start = f"""
    export SKDPLDA_LEDGER=
    {sys.executable} -m dask scheduler --port 0 --no-dashboard --scheduler-file {file} &
    {sys.executable} -m dask worker --scheduler-file {file} --nthreads 1 --no-dashboard --nworkers 2 &
    """
    subprocess.run(
        ["setsid", "sh", "-c", f"({textwrap.dedent(start)}) > {tmp_path}/dask.txt 2>&1"], check=True, timeout=60
    )
    until = time.monotonic() + 120
    while not file.exists() and time.monotonic() < until:
        time.sleep(0.1)
    with distributed.Client(scheduler_file=str(file), timeout=120) as client:
        client.wait_for_workers(2, timeout=120)
        try:
            yield client
        finally:
            client.shutdown()


@LINUX
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_dask_workers_that_were_started_from_a_shell_charge_the_file_that_they_see(tmp_path, dask_from_a_shell):
    """They descend from no process with a ledger: all that they are told is in the estimators that they get."""
    client, path = dask_from_a_shell, tmp_path / "ledger.json"

    def fit(estimator):
        try:
            return estimator.fit(X).components_.shape
        except RuntimeError as error:
            return str(error)

    def fit_loaded(saved):
        return fit(pickle.loads(saved))

    with PrivacyAccountant.open(path, **BUDGET) as accountant:
        assert client.gather(client.map(fit, [lda() for _ in range(4)], pure=False)) == [(2, 6)] * 4
        saved = pickle.dumps(lda())
    assert len(accountant.ledger) == 4
    with PrivacyAccountant(**BUDGET):
        (said,) = client.gather(client.map(fit, [lda()], pure=False))
        in_memory = pickle.dumps(lda())
    assert REFUSED in said
    # What was saved in a block that is closed by now binds nobody.
    assert client.gather(client.map(fit_loaded, [saved, in_memory] * 2, pure=False)) == [(2, 6)] * 4
    assert len(accountant.ledger) == 4


def told(**fields):
    known = {"pid": 1, "name": "a process", "machine": "another machine", "when": time.time(), "version": 1}
    return _open_ledgers.Announcement(**{**known, "blocks": (("", None),), **fields})


@pytest.fixture
def process(monkeypatch):
    """What this process knows, as if it had been started alone."""
    process = _open_ledgers.Process()
    monkeypatch.setattr(_open_ledgers, "PROCESS", process)
    monkeypatch.setattr(_open_ledgers, "ancestors", lambda: iter(()))
    monkeypatch.setattr(os, "getppid", lambda: 0)  # pytest may be a child of process 1
    monkeypatch.delenv("SKDPLDA_LEDGER", raising=False)
    return process


def test_what_another_machine_tells_holds_for_a_day_and_if_its_file_is_here(process, tmp_path):
    path = str(tmp_path / "ledger.json")
    PrivacyAccountant.open(path, **BUDGET)
    process.receive([told(blocks=((path, "May"),))])
    assert (active_accountant()._address, _open_ledgers.find_open_ledger()[1]) == (path, "May")
    lda().fit(X)
    assert [entry.label for entry in PrivacyAccountant.open(path).ledger] == ["May"]
    process.receive([told(version=2, blocks=((path + ".not", None),))])
    with pytest.raises(RuntimeError, match=r"its file '.*' is not here: the fit would not be charged"):
        lda().fit(X)
    process.receive([told(version=3)])
    with pytest.raises(RuntimeError, match=REFUSED):
        lda().fit(X)
    with PrivacyAccountant(**BUDGET) as own:  # who says which ledger it is need not wait
        lda().fit(X)
        assert "another machine" not in os.environ["SKDPLDA_LEDGER"]  # for whom that would be beyond doubt
    assert len(own.ledger) == 1
    assert "SKDPLDA_LEDGER" not in os.environ
    process.receive([told(version=4, when=time.time() - 2 * 86_400)])
    assert active_accountant() is None
    process.receive([told(version=3)])  # older than what is known
    assert active_accountant() is None


@LINUX
def test_a_process_of_this_machine_is_looked_at(process):
    """One that has ended, or has nothing open, binds nobody; nor does another one of its number."""
    here = {"machine": process.machine}
    with subprocess.Popen(["sleep", "60"]) as child:
        process.receive([told(pid=child.pid, **here)])
        assert active_accountant() is None
        child.kill()
    process.receive([told(pid=child.pid, version=2, **here)])
    assert active_accountant() is None


def test_a_pickle_of_another_version_is_read(process):
    state = lda().__getstate__()
    model = lda()
    model.__setstate__({**state, "_open_ledgers": [(1, 2, [""])]})
    assert vars(model) == vars(lda())
    assert active_accountant() is None


STRESS = """
import os, random, subprocess, sys, threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from skdplda.exceptions import BudgetExceededError
from skdplda.privacy import BudgetCharge, PrivacyAccountant, PrivacyGuarantee, pure_event

GUARANTEE = PrivacyGuarantee(epsilon=1 / 64, status="proven", event=pure_event(1 / 64))

def spend(ledger):
    try:
        ledger.spend(GUARANTEE)
        return 1
    except BudgetExceededError:
        return 0

def spends(path, ledger=None):
    return sum(spend(ledger or PrivacyAccountant.open(path)) for _ in range(6))

def charges():
    done = 0
    for _ in range(6):
        with suppress(BudgetExceededError):
            BudgetCharge(GUARANTEE, "fit").charge(f"{os.getpid()} {random.random()}")
            done += 1
    return done

def forks(path, ledger):
    read, write = os.pipe()
    if not (child := os.fork()):
        try:
            os.write(write, str(spends(path, ledger) + charges()).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return int(os.read(read, 99))

def main(path, *others):
    ledger = PrivacyAccountant.open(path, epsilon=2.0)
    ledger.check(GUARANTEE)  # no thread imports a module while another forks
    children = [subprocess.Popen([sys.executable, __file__, *other], stdout=subprocess.PIPE) for other in others]
    with ledger, ThreadPoolExecutor(4) as threads, ProcessPoolExecutor(1, mp_context=get_context("forkserver")) as pool:
        work = [threads.submit(spends, path, ledger), threads.submit(spends, path), threads.submit(charges)]
        work += [threads.submit(forks, path, ledger), pool.submit(charges), pool.submit(spends, path)]
        done = sum(each.result() for each in work)
    print(done + sum(int(child.communicate()[0]) for child in children))

if __name__ == "__main__":
    main(sys.argv[1], *([path] for path in sys.argv[2:]))
"""


@LINUX
def test_what_processes_threads_and_forks_spend_at_once_is_what_the_ledger_has(tmp_path):
    """By two names of one file, 84 times."""
    path, link, script = tmp_path / "ledger.json", tmp_path / "link.json", tmp_path / "stress.py"
    script.write_text(STRESS)
    ledger = PrivacyAccountant.open(path, epsilon=2.0)
    os.link(path, link)
    command = [sys.executable, "-W", "ignore", str(script), str(path), str(link)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    assert int(done.stdout) == len(ledger.ledger) == 84
    assert ledger.remaining_epsilon == 2.0 - 84 / 64
    assert len({entry.run for entry in ledger.ledger} - {None}) == 36
