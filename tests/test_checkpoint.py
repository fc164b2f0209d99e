"""Interrupted fits: what is on disk, what resumes, what is refused, what is paid."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
import zipfile
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from forged_files import read_checkpoint, write_checkpoint
from internals import Transcript, bounded_by_kernel, converse, rounds_of, whole_file
from internals import adaptive as _adaptive
from internals import embedding as _embedding
from internals import plans as _plans
from sklearn.base import clone

from skdplda import PCTD, VIPSLDA, EmbeddingTopics, PrivacyAccountant, PrivateCGSLDA
from skdplda.datasets import make_lda_corpus
from skdplda.privacy import Randomness
from skdplda.rounds import Ask, NoisePlan, Query, Spending

pytestmark = pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")

X = sp.csr_array(make_lda_corpus(120, 20, 3, mean_length=20, random_state=0).data)
EPSILON = 20.0  # so large that the word counts let the rounds of topics begin, whatever the noise
FORMS = [
    {},
    {"mechanism": "discrete-gaussian"},
    {"epsilon": float("inf")},
    {"mechanism": "laplace"},
    {"sampling_rate": 0.5},
    {"epsilon": float("inf"), "sampling_rate": 0.5},
]


def interrupt_after(n_rounds):
    def callback(report):
        if report.n_done == n_rounds:
            raise KeyboardInterrupt

    return callback


def model(path=None, **parameters):
    options = {"epsilon": EPSILON, "max_iter": 6, "random_state": 0, "checkpoint": path}
    return PrivateCGSLDA(3, **options | parameters)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.npz"


@pytest.fixture
def interrupted(path):
    """A checkpoint after three releases: word counts, and two rounds of topics."""
    with pytest.raises(KeyboardInterrupt):
        model(path, callback=interrupt_after(3)).fit(X)
    return path


def test_a_fit_without_a_seed_goes_on_with_its_own_key(path):
    """The hidden draws of both parts have one name, and the run is one run."""
    headers = []
    for n_rounds in (2, 4):
        with pytest.raises(KeyboardInterrupt):
            model(path, random_state=None, callback=interrupt_after(n_rounds)).fit(X)
        headers.append(read_checkpoint(path)[0])
    assert [header["n_done"] for header in headers] == [2, 4]
    assert headers[0]["key"] == headers[1]["key"] and headers[0]["run"] == headers[1]["run"]


@pytest.mark.parametrize("parameters", FORMS)
@pytest.mark.parametrize("groups", [None, np.arange(X.shape[0]) // 2])
def test_a_resumed_fit_ends_like_an_uninterrupted_one(path, parameters, groups):
    expected = model(**parameters).fit(X, groups=groups)
    with pytest.raises(KeyboardInterrupt):
        model(path, callback=interrupt_after(3), **parameters).fit(X, groups=groups)
    assert path.exists()
    rounds = []
    resumed = model(path, callback=rounds.append, n_jobs=2, **parameters).fit(X, groups=groups)
    assert resumed.n_iter_ == expected.n_iter_ >= 5  # what was done is not done again
    assert [report.n_done for report in rounds] == list(range(4, expected.n_iter_ + 1))
    np.testing.assert_array_equal(resumed.components_, expected.components_)
    assert resumed.privacy_guarantee_ == expected.privacy_guarantee_
    assert os.listdir(path.parent) == []


def test_a_fit_without_a_seed_resumes_its_own_hidden_state(path):
    with pytest.raises(KeyboardInterrupt):
        model(path, callback=interrupt_after(3), random_state=None).fit(X)
    header, arrays = read_checkpoint(path)
    rounds = []
    fitted = model(path, callback=rounds.append, random_state=None).fit(X)
    assert [report.n_done for report in rounds] == list(range(4, fitted.n_iter_ + 1)) != []
    assert header["n_done"] == 3
    assert arrays["e_state"].shape == (X.shape[0], arrays["e_n_topics"])
    assert not arrays["e_words"].all()  # it is of the frequent words, which come first
    answers = [arrays[f"r_{number}"] for number in range(3)]
    assert len(arrays) == 3 + sum(name.startswith("e_") for name in arrays)
    assert [answer.shape for answer in answers] == [(20, 1), (arrays["e_words"].sum(), 3), answers[1].shape]
    assert {answer.dtype for answer in answers} == {np.dtype(np.int32)}


@pytest.mark.filterwarnings("ignore:X is a plain document-term matrix")
@pytest.mark.parametrize("estimator", [PrivateCGSLDA, VIPSLDA, PCTD])
@pytest.mark.parametrize("sampling_rate", [1.0, 0.5])
def test_copies_of_a_checkpoint_all_end_in_the_same_model(path, estimator, sampling_rate):
    """A job that is started again five times is one release, not five for the price of one."""
    options = {"epsilon": EPSILON, "max_iter": 4, "checkpoint": path, "sampling_rate": sampling_rate}
    options |= {"max_doc_length": 10} if estimator is VIPSLDA else {}  # which words are cut is drawn, too
    with pytest.raises(KeyboardInterrupt):
        estimator(3, callback=interrupt_after(2), **options).fit(X)
    copy, models = path.read_bytes(), []
    for _ in range(5):
        path.write_bytes(copy)
        models.append(estimator(3, **options).fit(X).components_)
        assert not path.exists()  # and the key of the noise with it
    for components in models[1:]:
        np.testing.assert_array_equal(components, models[0])
    assert not np.array_equal(estimator(3, **options).fit(X).components_, models[0])  # another run is another release


class Total(Query):
    """A query that says what its sum is."""

    kind, lemma = "total", "none"

    def __init__(self, total):
        self.total, self.shape = total, total.shape

    def collect(self, e_step):
        return bounded_by_kernel(self.total, 2, np.inf)


def asks(totals):
    """Ask for totals, and return the answers."""
    answers = []
    for total in totals:
        answers.append((yield Ask(Total(total), None, None, len(totals))))
    return SimpleNamespace(table=None, answers=answers)


class Documents:
    """An E-step without hidden state."""

    n_units = 0

    def __init__(self):
        self.asked = []

    def collect(self, query, round_, active):
        self.asked.append(round_)
        return query.collect(self)

    def arrays(self):
        return {}

    def restore(self, arrays):
        assert not arrays


@pytest.mark.parametrize("with_state", [True, False])
def test_the_loop_itself_goes_on_with_the_key_of_its_checkpoint(path, with_state):
    """Whatever `Randomness` it is given."""
    answers = {} if with_state else {"r_0": np.arange(3, dtype=np.int32)}
    header = {"identity": "", "n_done": 1, "run": "run", "key": "ab" * 32, "multipliers": [1.0]}
    write_checkpoint(path, header, answers)
    state = SimpleNamespace(restore=lambda arrays: None, n_done=0) if with_state else None
    strategy, randomness, runs = (rounds_of(state, 1) if with_state else asks([np.zeros(3)])), Randomness(None), []
    spending = Spending(NoisePlan("gaussian", 1.0, (1.0,), None))
    options = {"transcript": Transcript(path, "", state), "before_release": runs.append}
    found = converse(strategy, Documents(), spending, randomness, **options)
    assert randomness.root == bytes.fromhex("ab" * 32) and runs == ["run"] and spending.multipliers == [1.0]
    assert found is state or found.answers[0].tolist() == [0, 1, 2]
    assert not path.exists()


def test_answers_are_kept_to_the_last_bit_whatever_their_size(path):
    """In 32 bits where they fit, and in 64 where they do not."""
    totals = [np.array(found, np.int64) for found in ([0, 9], [2**40, -(2**50)], [[2**31 + 99]], [], [-(2**31) - 99])]
    plan = NoisePlan("gaussian", 1.0, (2.0**-18,) * 5, None)  # of so little noise that sizes stay

    def stop(report):
        if report.n_done == n_done:
            raise KeyboardInterrupt

    def run(path=None):
        documents, options = Documents(), {"transcript": Transcript(path), "callback": stop}
        found = converse(asks(totals), documents, Spending(plan), Randomness(0), **options)
        return found.answers, documents.asked

    n_done = 0
    whole, asked = run()
    assert asked == [0, 1, 2, 3, 4]
    for n_done in range(1, 6):
        with pytest.raises(KeyboardInterrupt):
            run(path)
        _, arrays = read_checkpoint(path)
        assert [arrays[f"r_{number}"].dtype.itemsize for number in range(n_done)] == [4, 8, 8, 4, 8][:n_done]
        n_done = 0
        again, asked = run(path)
        assert asked == list(range(len(arrays), 5))  # what was answered is not asked again
        for one, other in zip(again, whole, strict=True):
            assert one.dtype == np.int64
            np.testing.assert_array_equal(one, other)


def test_a_resumed_fit_is_paid_once(path):
    seeded = model(path, random_state=None).privacy_cost()
    with PrivacyAccountant(seeded.epsilon, seeded.delta) as accountant:  # enough for one fit
        with pytest.raises(KeyboardInterrupt):
            model(path, callback=interrupt_after(3), random_state=None).fit(X)
        assert len(accountant.ledger) == 1
        model(path, random_state=None).fit(X)
    assert len(accountant.ledger) == 1
    assert not path.exists()


def test_a_resumed_fit_is_charged_to_a_ledger_that_has_not_seen_it(interrupted):
    with PrivacyAccountant(100.0, 1e-3, accept_claimed=True) as accountant:
        model(interrupted).fit(X)
    assert len(accountant.ledger) == 1


@pytest.mark.parametrize(
    "parameters",
    [{"epsilon": 4.0}, {"max_iter": 7}, {"random_state": 1}, {"local_sweeps": 4}, {"doc_topic_prior": 0.2}],
)
def test_a_checkpoint_of_other_parameters_is_refused(interrupted, parameters):
    with pytest.raises(ValueError, match=r"checkpoint '.*fit.npz' belongs to a fit with other parameters or other"):
        model(interrupted, **parameters).fit(X)
    assert interrupted.exists()


def test_a_checkpoint_of_other_data_is_refused(interrupted):
    other = X.copy()
    other.data[0] += 1
    for data, groups in ((other, None), (X[:-1], None), (X, np.arange(X.shape[0]) // 4)):
        with pytest.raises(ValueError, match="delete it or give another path"):
            model(interrupted).fit(data, groups=groups)


@pytest.mark.parametrize("damage", ["cut", "noise", "empty", "foreign", "version", "list", "array"])
def test_a_damaged_checkpoint_is_refused(interrupted, damage):
    content = interrupted.read_bytes()
    if damage == "foreign":
        np.savez(interrupted, a=np.arange(3))
    elif damage == "version":
        write_checkpoint(interrupted, {"version": 99}, {})
    elif damage == "array":
        with interrupted.open("wb") as file:
            np.save(file, np.arange(3))
    elif damage == "list":
        np.savez(interrupted, header=np.array("[1, 2]"))
    else:
        half = len(content) // 2
        flipped = content[:half] + bytes(255 - byte for byte in content[half : half + 40]) + content[half + 40 :]
        interrupted.write_bytes({"cut": content[:half], "noise": flipped, "empty": b""}[damage])
    with pytest.raises(ValueError, match=r"fit.npz' (is no checkpoint|is not of format).*left as it is") as error:
        model(interrupted).fit(X)
    assert "delete it" not in str(error.value)


FIELDS = ("identity", "n_done", "run", "key", "multipliers")  # of a header


def crafted(header, arrays):
    """Yield (name, header, arrays) of checkpoints whose answers, or their noise, are not those of the fit."""
    noise, n_done = header["multipliers"], header["n_done"]
    last = f"r_{n_done - 1}"
    yield "one multiplier less", header | {"multipliers": noise[:-1]}, arrays
    yield "no multipliers", header | {"multipliers": []}, arrays
    yield "one multiplier more", header | {"multipliers": [*noise, noise[-1]]}, arrays
    for factor in (0.5, 1 + 1e-9, 1 - 2**-53):
        for place in {0, n_done - 1}:
            other = [m * factor if i == place else m for i, m in enumerate(noise)]
            yield f"noise {place} times {factor}", header | {"multipliers": other}, arrays
    if noise[0] != noise[-1]:
        yield "noise in another order", header | {"multipliers": noise[::-1]}, arrays
    yield "more releases than answers", header | {"n_done": n_done + 1}, arrays
    yield "fewer releases than answers", header | {"n_done": n_done - 1}, arrays
    more = {"n_done": n_done + 1, "multipliers": [*noise, noise[-1]]}
    if last not in arrays:  # a strategy that goes on from its state
        if n_done == 4:
            yield "more releases than a fit has", header | more, arrays
        return
    yield "no answers", header, {name: array for name, array in arrays.items() if name[:2] != "r_"}
    yield "no last answer", header, {name: array for name, array in arrays.items() if name != last}
    yield "an answer more", header, arrays | {f"r_{n_done}": arrays[last]}
    yield "an answer of another name", header, arrays | {"r_00": arrays[last]}
    shape = (7, 2)  # as no query's
    yield "an answer to another query", header | more, arrays | {f"r_{n_done}": np.zeros(shape, np.int32)}
    yield "an answer of another shape", header, arrays | {last: arrays[last][:, None]}
    yield "an answer transposed", header, arrays | {"r_0": np.ascontiguousarray(arrays["r_0"].T)}
    yield "answers without fractions", header, arrays | {last: arrays[last].astype(np.float64)}


ANSWERED = {
    "answers": (PrivateCGSLDA(3, epsilon=EPSILON, max_iter=6), 3),
    "answers of users": (VIPSLDA(3, epsilon=EPSILON, max_iter=2, doc_topic_prior="infer"), 4),
    "clusters": (EmbeddingTopics(3, epsilon=EPSILON, max_iter=4), 3),
    "state": (PrivateCGSLDA(3, epsilon=EPSILON, max_iter=6, mechanism="discrete-gaussian"), 3),
    "state at the end": (PCTD(3, epsilon=EPSILON, max_iter=4), 4),
    "online": (VIPSLDA(3, epsilon=EPSILON, max_iter=4, learning_method="online"), 2),
}


@pytest.mark.filterwarnings("ignore:X is a plain document-term matrix")
@pytest.mark.parametrize("form", ANSWERED)
def test_a_checkpoint_of_other_answers_or_noise_is_refused_and_costs_nothing(path, form):
    """What is left of the budget follows from what was asked, and its noise is that of the answers, to the last bit."""
    estimator, n_rounds = ANSWERED[form]
    groups = {"groups": np.arange(X.shape[0]) // 2} if form == "answers of users" else {}
    stopped = clone(estimator).set_params(checkpoint=path, random_state=0, callback=interrupt_after(n_rounds))
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, **groups)
    header, arrays = read_checkpoint(path)
    whole, names = clone(estimator).set_params(random_state=0).fit(X, **groups), []
    resumed = clone(estimator).set_params(checkpoint=path, random_state=0)
    unit = whole.privacy_guarantee_.unit
    with PrivacyAccountant(np.inf, 0.5, unit=unit, accept_claimed=True) as ledger:
        for name, other, state in crafted(header, arrays):
            write_checkpoint(path, {key: other[key] for key in FIELDS}, state)
            content = path.read_bytes()
            with pytest.raises(ValueError, match=r"fit.npz' has other releases, or noise, .*left as it is"):
                resumed.fit(X, **groups)
            assert path.read_bytes() == content, name
            names.append(name)
    assert not ledger.ledger and len(set(names)) == len(names) > 8
    write_checkpoint(path, {key: header[key] for key in FIELDS}, arrays)
    np.testing.assert_array_equal(resumed.fit(X, **groups).components_, whole.components_)


@pytest.mark.parametrize("infers", [False, True])
def test_a_checkpoint_after_the_last_answer_is_the_model_and_is_paid(path, infers):
    """Nothing is left to be released, and all of it was; one answer more than was asked is refused."""
    options = {"max_iter": 2, "doc_topic_prior": "infer" if infers else None}
    whole = model(**options).fit(X)
    with pytest.raises(KeyboardInterrupt):
        model(path, callback=interrupt_after(whole.n_iter_), **options).fit(X)
    header, arrays = read_checkpoint(path)
    fields = {key: header[key] for key in FIELDS}
    longer = {"n_done": whole.n_iter_ + 1, "multipliers": [*header["multipliers"], header["multipliers"][-1]]}
    more = arrays | {f"r_{whole.n_iter_}": arrays[f"r_{whole.n_iter_ - 1}"]}
    with PrivacyAccountant(np.inf, 0.5, accept_claimed=True) as ledger:
        write_checkpoint(path, fields | longer, more)
        with pytest.raises(ValueError, match=rf"in the {whole.n_iter_ + 1} rounds that it says are done"):
            model(path, **options).fit(X)
        assert not ledger.ledger
        write_checkpoint(path, fields, arrays)
        reports = []
        resumed = model(path, callback=reports.append, **options).fit(X)
        assert len(ledger.ledger) == 1
    assert not reports and not path.exists() and resumed.n_iter_ == whole.n_iter_
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    assert resumed.privacy_guarantee_ == whole.privacy_guarantee_


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateCGSLDA(3, epsilon=EPSILON, mechanism="discrete-gaussian", max_iter=6),
        PrivateCGSLDA(3, epsilon=EPSILON),
        EmbeddingTopics(3),
    ],
    ids=["state", "answers", "clusters"],
)
def test_a_version_that_divides_the_budget_otherwise_does_not_go_on(path, estimator, monkeypatch):
    """What was released with little noise would be accounted for as if it had more."""
    with pytest.raises(KeyboardInterrupt):
        clone(estimator).set_params(checkpoint=path, callback=interrupt_after(3)).fit(X)
    monkeypatch.setattr(_plans, "PRECISION_RATIO", 5.0)
    monkeypatch.setattr(_adaptive, "WORDS_SHARE", 0.061)
    monkeypatch.setattr(_embedding, "ROUNDS", 30)
    with pytest.raises(ValueError, match=r"or of another version.*left as it is"):
        clone(estimator).set_params(checkpoint=path).fit(X)


@pytest.mark.parametrize("content", [b"my diary of ten years\n" * 100, b"\x93NUMPY", b"PK\x03\x04 no zip"])
def test_nobody_is_advised_to_remove_a_corpus_named_as_checkpoint(tmp_path, content):
    corpus = tmp_path / "corpus.txt"
    corpus.write_bytes(content)
    with pytest.raises(ValueError, match="is no checkpoint") as error:
        model(corpus).fit(X)
    assert "delete it" not in str(error.value)
    assert "diary" not in str(error.value)
    assert corpus.read_bytes() == content


def test_a_checkpoint_takes_neither_mode_nor_target_of_what_waits_at_its_temporary_name(path, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    waiting = tmp_path / f"{path.name}.partial"
    waiting.symlink_to(victim)
    with pytest.raises(KeyboardInterrupt):
        model(path, callback=interrupt_after(2)).fit(X)
    assert victim.read_text() == "precious"
    waiting.unlink()
    waiting.touch(mode=0o666)
    waiting.chmod(0o666)
    path.unlink()
    with pytest.raises(KeyboardInterrupt):
        model(path, callback=interrupt_after(2)).fit(X)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.unlink()
    path.symlink_to(victim)  # broken for the fit: it holds no checkpoint
    with pytest.raises(ValueError, match="is no checkpoint"):
        model(path).fit(X)
    assert victim.read_text() == "precious"


def test_an_array_that_claims_more_than_its_file_holds_is_refused_before_it_is_allocated(interrupted):
    header = np.lib.format.header_data_from_array_1_0(np.zeros(1)) | {"shape": (2**34, 2**20)}
    array = BytesIO()
    np.lib.format.write_array_header_1_0(array, header)
    with zipfile.ZipFile(interrupted) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for name in members:
        with zipfile.ZipFile(interrupted, "w") as archive:
            for other, content in members.items():
                archive.writestr(other, array.getvalue() if other == name else content)
        with pytest.raises(ValueError, match="is no checkpoint"):
            model(interrupted).fit(X)


def test_a_checkpoint_is_readable_by_its_owner_only(interrupted):
    assert stat.S_IMODE(interrupted.stat().st_mode) == 0o600


def test_a_full_disk_keeps_the_former_checkpoint(path, monkeypatch):
    former, savez = [], np.savez

    def full(file, **arrays):
        if len(former) == 3:
            file.write(b"half a file")
            raise OSError(28, "No space left on device")
        savez(file, **arrays)
        former.append(None)

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space left"):
        model(path).fit(X)
    monkeypatch.undo()
    assert os.listdir(path.parent) == ["fit.npz"]
    assert read_checkpoint(path)[0]["n_done"] == 3
    np.testing.assert_array_equal(model(path).fit(X).components_, model().fit(X).components_)


WAIT = f"""
import sys
from {whole_file.__module__} import whole_file
with whole_file(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""


def written_half(path):
    """Start a process that is writing a file, and return it."""
    program = [sys.executable, "-c", WAIT, str(path)]
    process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "writing\n"
    return process


def kill(process):
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


@pytest.mark.parametrize("goes_on", [True, False])
def test_what_a_killed_process_left_of_a_checkpoint_is_removed(path, goes_on):
    """It holds the key of the noise of a model that is published later."""
    if goes_on:
        with pytest.raises(KeyboardInterrupt):
            model(path, callback=interrupt_after(3)).fit(X)
    kill(written_half(path))
    (partial,) = path.parent.glob(f".{path.name}.*.partial")  # named in doc/not_protected.rst
    assert stat.S_IMODE(partial.stat().st_mode) == 0o666 & ~0o022
    kept = path.parent / f".{path.name}.partial"  # of a name that is not ours
    kept.touch()

    def seen(report):
        assert not partial.exists()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model(path, callback=seen).fit(X)
    kill(written_half(path))
    model(path).fit(X)
    assert os.listdir(path.parent) == [kept.name]


def test_what_another_process_is_writing_is_not_removed(path):
    process = written_half(path)
    model(path).fit(X)
    (partial,) = path.parent.glob("*.partial")
    process.communicate("")
    assert not partial.exists() and path.read_bytes() == b"half"


NOWHERE = {
    "folder": lambda tmp_path: tmp_path / "nowhere" / "fit.npz",
    "empty": lambda tmp_path: "",
    "directory": lambda tmp_path: tmp_path,
    "file as folder": lambda tmp_path: tmp_path / "file" / "fit.npz",
    "long": lambda tmp_path: tmp_path / ("x" * 300),
    "null": lambda tmp_path: f"{tmp_path}/a\0b",
    "device": lambda tmp_path: os.devnull,
    "proc": lambda tmp_path: "/proc/fit.npz",
}
CHECKPOINTED = [PrivateCGSLDA(3), VIPSLDA(3), VIPSLDA(3, max_norm=3.0), PCTD(3), EmbeddingTopics(3)]


@pytest.mark.parametrize("estimator", CHECKPOINTED, ids=str)
@pytest.mark.parametrize("place", NOWHERE)
def test_a_checkpoint_that_cannot_be_written_is_refused_before_data_are_read(tmp_path, place, estimator, untouchable):
    (tmp_path / "file").touch()
    with PrivacyAccountant(10.0, 1e-3) as ledger, pytest.raises(ValueError, match="checkpoint must name a file"):
        clone(estimator).set_params(checkpoint=NOWHERE[place](tmp_path)).fit(untouchable())
    assert not ledger.ledger
    assert os.listdir(tmp_path) == ["file"]


def broken_headers(header):
    """Yield headers that no fit has written."""
    for name in header:
        if name in ("format", "version", "arrays"):
            continue
        yield {other: value for other, value in header.items() if other != name}
        for value in (None, True, -1, 2**70, 0.5, "", "x", "g" * 64, [], [None], ["1"], {}, float("nan")):
            if not (name == "run" and isinstance(value, str)) and (name, value) != ("multipliers", header[name]):
                yield header | {name: value}


def broken_arrays(array):
    """Yield what no fit has saved in place of an array."""
    yield None
    yield array[None]
    yield np.zeros(array.shape + (0,), array.dtype)
    for dtype in (bool, np.int8, np.uint64, np.complex128, "M8[s]", "U3", "S2", ">f8"):
        if array.dtype != dtype:
            yield np.zeros(array.shape, dtype)
    if array.ndim:
        yield np.concatenate([array, array, array[:1] if len(array) else np.zeros((1, *array.shape[1:]), array.dtype)])
    if array.dtype.kind == "f" and array.size:
        yield from (np.full(array.shape, value, array.dtype) for value in (np.nan, np.inf, -np.inf, 2.0**120))
    if array.dtype.kind == "U":
        yield np.full(array.shape or (1,), "spent", array.dtype)[: max(len(array), 1)] if array.size else array[None]


EXACT = {"epsilon": np.inf, "max_iter": 12}
FUZZED = {
    "adaptive": (VIPSLDA(3, epsilon=EPSILON, max_iter=4), 3),
    "adaptive, at its end": (VIPSLDA(3, epsilon=EPSILON, max_iter=2, doc_topic_prior="infer"), 4),
    "sampled": (PrivateCGSLDA(3, epsilon=EPSILON, sampling_rate=0.5, max_iter=4), 2),
    "laplace": (PrivateCGSLDA(3, epsilon=EPSILON, mechanism="laplace", max_iter=4), 2),
    "exact": (PrivateCGSLDA(3, **EXACT), 10),
    "inferred": (PrivateCGSLDA(3, **EXACT, doc_topic_prior="infer"), 6),
    "lists": (PrivateCGSLDA(600, **EXACT), 4),
    "online": (VIPSLDA(3, learning_method="online", epsilon=EPSILON, max_iter=4), 2),
    "bounded": (VIPSLDA(3, max_norm=3.0, epsilon=EPSILON, max_iter=4), 2),
    "expected": (VIPSLDA(3, **EXACT, topic_word_prior="infer"), 6),
    "segments": (PCTD(3, epsilon=EPSILON, max_iter=4), 2),
    "EM": (PCTD(3, epsilon=np.inf, max_iter=4), 2),
    "clusters": (EmbeddingTopics(3, epsilon=EPSILON, max_iter=4), 3),
}


@pytest.mark.filterwarnings("ignore:X is a plain document-term matrix", "ignore::UserWarning")
@pytest.mark.parametrize("form", FUZZED)
def test_whatever_a_checkpoint_holds_it_ends_in_one_sentence(path, form):
    """Every field and every array, missing, of another type, shape or dtype, and with numbers that are none."""
    estimator, n_rounds = FUZZED[form]
    stopped = clone(estimator).set_params(checkpoint=path, random_state=0, callback=interrupt_after(n_rounds))
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X)
    header, arrays = read_checkpoint(path)
    damaged = [(broken, arrays) for broken in broken_headers(header)]
    for name in arrays:
        for broken in broken_arrays(arrays[name]):
            rest = {other: array for other, array in arrays.items() if other != name}
            damaged.append((header, rest if broken is None else rest | {name: broken}))
    resumed = clone(estimator).set_params(checkpoint=path, random_state=0)
    with PrivacyAccountant(np.inf, 0.5, accept_claimed=True) as ledger:
        for broken, state in damaged:
            np.savez(path, header=np.array(json.dumps(broken)), **state)
            content = path.read_bytes()
            with pytest.raises(ValueError, match=f"checkpoint '{path}' .*") as error:
                resumed.fit(X)
            assert "left as it is" in str(error.value) or "other parameters or other data" in str(error.value)
            assert path.read_bytes() == content
    assert not ledger.ledger and len(damaged) > 50


SLOW_FIT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are started deaf to control-c
from skdplda import PrivateCGSLDA
from skdplda.datasets import make_lda_corpus

X = make_lda_corpus(300, 50, 3, mean_length=50, random_state=0).data

def report(_):
    print("round", flush=True)

PrivateCGSLDA(3, max_iter=10**6, checkpoint=sys.argv[1], callback=report).fit(X)
"""


def test_control_c_ends_a_fit_within_seconds_and_keeps_the_checkpoint(path):
    command = [sys.executable, "-c", SLOW_FIT, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as fit:
        try:
            for _ in range(3):
                assert fit.stdout.readline() == "round\n"
            fit.send_signal(signal.SIGINT)
            start = time.monotonic()
            _, errors = fit.communicate(timeout=30)
        finally:
            fit.kill()
    assert time.monotonic() - start < 30
    assert fit.returncode in (1, 130, -signal.SIGINT)
    assert "KeyboardInterrupt" in errors
    assert read_checkpoint(path)[0]["n_done"] >= 3
