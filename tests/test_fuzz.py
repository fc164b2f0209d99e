"""Damaged and hostile input, made by chance: nothing crashes, nothing damaged is accepted, errors are as documented.

The runs are bounded and always the same. What has broken once stands in the tests of its module, under its own name.
"""

import json
import subprocess
import sys
from io import BytesIO

import numpy as np
import pytest
import scipy.sparse as sp
from forged_files import members_of, write_checkpoint, write_members
from fuzz_readers import READERS, WORDS, model, read
from internals import checkpoint as _checkpoint
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from skdplda import PrivateCGSLDA, load_released, privacy_guarantee
from skdplda.datasets import open_counts, write_counts
from skdplda.local import LocalRandomizer, make_report, read_reports

hypothesis = pytest.importorskip("hypothesis")
st = pytest.importorskip("hypothesis.strategies")

pytestmark = pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")

bounded = hypothesis.settings(
    max_examples=100,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)


@st.composite
def damaged(draw, content):
    """Content with bytes flipped, cut out, put in or repeated."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        length = draw(st.sampled_from([1, 2, 4, 8, 64]))
        kind = draw(st.sampled_from(["flip", "cut", "insert", "repeat", "truncate", "zero"]))
        if kind == "flip" and data:
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "cut":
            del data[at : at + length]
        elif kind == "insert":
            data[at:at] = draw(st.binary(min_size=length, max_size=length))
        elif kind == "repeat":
            data[at:at] = data[at : at + length]
        elif kind == "truncate":
            del data[at:]
        else:
            data[at : at + length] = bytes(len(data[at : at + length]))
    return bytes(data)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 2**31, 2**63, 2**70])
    | st.floats()
    | st.sampled_from(["", "a", "\x1b[2J", "<script>", "inf", "nan", r"(a+)+b", "proven"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "kind", "text"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@st.composite
def edited(draw, value):
    """JSON with one value, at any depth, replaced by another."""
    if isinstance(value, dict) and value and draw(st.integers(0, 3)):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: draw(edited(value[key]))}
    if isinstance(value, list) and value and draw(st.integers(0, 3)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], draw(edited(value[place])), *value[place + 1 :]]
    return draw(PLAIN)


# --- matrices: a child process takes those that a kernel could die of -----------------------------------


MATRICES = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
import scipy.sparse as sp
from skdplda import HDPLDA, PCTD, VIPSLDA, DPVocabularySelector, LocalPrivateLDA, PrivateCGSLDA
from skdplda.local import LocalRandomizer
from skdplda.semantics import UnitMatrix
rng = np.random.default_rng(0)
MODELS = [PrivateCGSLDA(2, max_iter=1), VIPSLDA(2, max_iter=1), HDPLDA(2, max_iter=1), PCTD(2, max_iter=1),
          LocalPrivateLDA(2, max_iter=1), LocalRandomizer(), DPVocabularySelector(epsilon=100.0)]
ODD = [-1, -5, 2, 20, 21, 25, 200, 2**15, 2**31 - 1, -(2**31), 2**40, -(2**62)]
TYPES = [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64, np.float32, np.float64, bool, complex, object]
good = bad = 0
for _ in range(240):
    X = sp.csr_array(rng.poisson(0.5, size=(12, 20)).astype(np.int64))
    parts = {"data": X.data, "indices": X.indices.astype(np.int64), "indptr": X.indptr.astype(np.int64)}
    name = rng.choice(["data", "indices", "indptr", "nothing"])
    if name != "nothing":
        if name == "data" and rng.random() < 0.5:
            parts[name] = parts[name].astype(TYPES[rng.integers(len(TYPES))])
        elif rng.random() < 0.2:
            parts[name] = parts[name][: rng.integers(len(parts[name]))]
        else:
            parts[name][rng.integers(len(parts[name]), size=rng.integers(1, 3))] = rng.choice(
                [odd for odd in ODD if name != "data" or odd < 2**15])  # long documents are tested elsewhere
    for key, value in parts.items():
        setattr(X, key, value)
    units = rng.random() < 0.2
    try:
        if units:
            PCTD(2, max_iter=1).fit(UnitMatrix(np.arange(13), X))
        else:
            MODELS[rng.integers(len(MODELS))].fit(X)
        good += 1
    except (ValueError, TypeError) as error:
        bad += 1
print(good, bad)
"""


def test_no_matrix_ends_the_process():
    command = [sys.executable, "-c", MATRICES]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr
    good, bad = map(int, found.stdout.split())
    assert good >= 24 and bad >= 48


@bounded
@hypothesis.given(data=st.data())
def test_accepted_matrices_mean_what_they_say(data):
    X = sp.csr_array(np.random.default_rng(0).poisson(0.5, size=(6, 5)).astype(np.int32))
    name = data.draw(st.sampled_from(["indices", "indptr"]))
    getattr(X, name)[data.draw(st.integers(0, 6))] = data.draw(st.integers(-3, 8))
    try:
        model = PrivateCGSLDA(2, max_iter=1, epsilon=np.inf).fit(X)
    except ValueError:
        return
    dense = np.zeros((6, 5))
    for row in range(6):
        for place in range(X.indptr[row], X.indptr[row + 1]):
            dense[row, X.indices[place]] += X.data[place]
    prior = (model.components_.sum() - dense.sum()) / dense.shape[1]  # of a word, in all topics
    np.testing.assert_allclose(model.components_.sum(axis=0) - prior, dense.sum(axis=0), atol=1e-6)


# --- vocabularies ---------------------------------------------------------------------------------------


@bounded
@hypothesis.given(words=st.lists(st.text(max_size=12), min_size=1, max_size=4, unique=True), many=st.booleans())
def test_a_proven_vocabulary_holds_what_texts_give(words, many):
    vectorizer = CountVectorizer(vocabulary=words, ngram_range=(1, 3 if many else 1))
    try:
        status = privacy_guarantee(make_pipeline(vectorizer, PrivateCGSLDA(2))).status
    except ValueError:
        return
    assert status == "proven"
    assert all(vectorizer.transform([word]).sum(axis=0)[0, column] for column, word in enumerate(words))


# --- released models ------------------------------------------------------------------------------------


MODEL = model()


@bounded
@hypothesis.given(content=damaged(MODEL._content()))
def test_a_damaged_release_is_refused_or_the_same(content, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "fuzz.zip"
    path.write_bytes(content)
    try:
        again = load_released(path)
    except ValueError as error:
        assert "cannot be read" in str(error)
    else:
        assert again._content() == MODEL._content()


@bounded
@hypothesis.given(data=st.data())
def test_an_edited_release_is_refused_or_harmless(data, tmp_path_factory):
    members = members_of(MODEL)
    members["header.json"] = json.dumps(data.draw(edited(json.loads(members["header.json"])))).encode()
    if data.draw(st.integers(0, 3)) == 0:
        members["topic_word.npy"] = data.draw(damaged(members["topic_word.npy"]))
    path = tmp_path_factory.getbasetemp() / "fuzz.zip"
    write_members(path, members)
    try:
        model = load_released(path)
    except ValueError as error:
        assert "\x1b" not in str(error)
        return
    assert model.topic_word_.shape == (2, 3)
    np.testing.assert_allclose(model.topic_word_.sum(axis=1), 1)
    for card in (model.card(), model.card("json"), str(model.top_words(3).to_numpy())):
        assert "\x1b" not in card
    assert "<script" not in model.card() + model.card("json")
    if model.text_ is not None:
        model.transform(["pear " + "a" * 40 + "!"])


# --- reports, checkpoints, folders ------------------------------------------------------------------------


EXACT = LocalRandomizer(float("inf"))
REPORTS = [make_report([word], WORDS, EXACT) for word in WORDS[:4]]


@bounded
@hypothesis.given(content=damaged(b"".join(REPORTS)))
def test_damaged_reports_are_never_read(content):
    batch = read_reports([content, REPORTS[0]], WORDS, EXACT)
    for row in batch.data.toarray():
        assert make_report([WORDS[i] for i in np.flatnonzero(row)], WORDS, EXACT) in REPORTS
    assert batch.sources[-1] == 1
    assert all(isinstance(reason, str) and number == 0 for number, reason in batch.rejected)


HEADER = {"run": "a", "n_done": 3, "identity": "b", "key": 64 * "c", "multipliers": [0.5]}
ARRAYS = {"table": np.arange(12.0).reshape(3, 4), "total": np.arange(5)}


def checkpoint_bytes():
    content = BytesIO()
    write_checkpoint(content, HEADER, ARRAYS)
    return content.getvalue()


@bounded
@hypothesis.given(content=damaged(checkpoint_bytes()))
def test_a_damaged_checkpoint_is_refused_or_the_same(content, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "fuzz.npz"
    path.write_bytes(content)
    try:
        header, arrays = _checkpoint.load(path)
    except ValueError as error:
        assert "checkpoint" in str(error)
        return
    assert {name: header[name] for name in HEADER} == HEADER
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)


@bounded
@hypothesis.given(data=st.data())
def test_a_damaged_folder_is_refused_or_the_same(data, tmp_path_factory):
    X = sp.csr_array(np.random.default_rng(0).poisson(0.5, size=(9, 7)))
    folder = tmp_path_factory.mktemp("fuzz") / "counts"
    opened = write_counts(folder, [X])
    path = folder / data.draw(st.sampled_from(["indptr", "indices", "data", "header.json"]))
    content = path.read_bytes()
    if path.suffix and data.draw(st.booleans()):
        path.write_text(json.dumps(data.draw(edited(json.loads(content)))))
    else:
        path.write_bytes(data.draw(damaged(content)))
    try:
        found = list(open_counts(folder).blocks())
    except ValueError as error:
        assert "no complete folder of counts" in str(error)
    else:
        np.testing.assert_array_equal(sp.vstack([block for _, block in found]).toarray(), X.toarray())
    try:  # opened before the damage: what is read is a matrix of counts, or refused
        found = list(opened.blocks())
    except ValueError:
        return
    for _, block in found:
        assert block.shape[1] == 7 and block.data.min(initial=0) >= 0
        assert block.indices.min(initial=0) >= 0 and block.indices.max(initial=0) < 7


# --- what fuzz_readers.py begins with ---------------------------------------------------------------------


@pytest.mark.parametrize("name", READERS)
def test_readers_read_good_content_and_nothing_else_than_a_refusal_comes_of_damage(name, tmp_path):
    good = READERS[name][0]()
    assert read(name, good, tmp_path)

    @hypothesis.settings(bounded, max_examples=60)
    @hypothesis.given(content=damaged(good))
    def damage(content):
        read(name, content, tmp_path)

    damage()
