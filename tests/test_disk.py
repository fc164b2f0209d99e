"""Word counts on disk: what is written comes back, a block at a time; what is damaged is refused."""

import json
import os
import pickle
import stat
import time

import numpy as np
import pytest
import scipy.sparse as sp
from internals import disk
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import VIPSLDA, PrivateCGSLDA
from skdplda.datasets import make_lda_corpus, open_counts, write_counts

X = np.random.default_rng(0).poisson(0.4, size=(50, 12))
X[0] = 1  # what the tests damage are the first numbers of this document
X = sp.csr_array(X)


@pytest.fixture
def counts(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "BLOCK", 8)
    return write_counts(tmp_path / "corpus", (X[i : i + 9] for i in range(0, 50, 9)))


@pytest.mark.parametrize("active", [None, np.ones(50), np.arange(50) % 5 == 0, np.arange(50) == 49, np.zeros(50)])
def test_blocks_hold_what_was_written(counts, active):
    blocks = list(open_counts(counts.path).blocks(active))
    numbers = np.concatenate([numbers for numbers, _ in blocks] or [[]]).astype(int)
    assert numbers.tolist() == np.flatnonzero(np.ones(50) if active is None else active).tolist()
    for numbers, block in blocks:
        assert len(numbers) <= 8
        assert (block.indptr.dtype, block.indices.dtype, block.data.dtype) == (np.int64, np.int32, np.int32)
        np.testing.assert_array_equal(block.toarray(), X[numbers].toarray())
    assert counts.shape == X.shape
    assert counts.nnz == X.nnz


def test_the_digest_is_of_the_content(tmp_path):
    same = [write_counts(tmp_path / name, chunks).digest for name, chunks in (("a", [X]), ("b", [X]), ("c", [2 * X]))]
    assert same[0] == same[1] != same[2]


@pytest.mark.parametrize(
    ("chunks", "said"),
    [
        ([X, X[:, :5]], "chunk 1 has 5 words and the first 12: the vocabulary changed"),
        ([X, -X], "chunk 1 must hold non-negative integer counts"),
        ([X * 0.5], "chunk 0 must hold non-negative integer counts"),
        ([], "at least one document"),
    ],
)
def test_bad_chunks_are_refused_and_leave_nothing_to_open(tmp_path, chunks, said):
    with pytest.raises(ValueError, match=said):
        write_counts(tmp_path / "corpus", chunks)
    with pytest.raises(ValueError, match="no complete folder of counts"):
        open_counts(tmp_path / "corpus")


def test_a_folder_is_never_overwritten(counts):
    with pytest.raises(FileExistsError):
        write_counts(counts.path, [X])


@pytest.mark.parametrize("damage", ["cut", "header", "version", "missing"])
def test_a_damaged_folder_is_refused(counts, tmp_path, damage):
    folder = tmp_path / "corpus"
    if damage == "cut":
        (folder / "data").write_bytes((folder / "data").read_bytes()[:-4])
    elif damage == "header":
        (folder / "header.json").write_text("{")
    elif damage == "version":
        header = json.loads((folder / "header.json").read_text())
        (folder / "header.json").write_text(json.dumps(header | {"version": 99}))
    else:
        (folder / "indptr").unlink()
    with pytest.raises(ValueError, match="no complete folder of counts"):
        open_counts(folder)


def test_duplicates_are_summed(tmp_path):
    twice = sp.csr_array((np.ones(3, int), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 4))
    ((_, block),) = write_counts(tmp_path / "corpus", [twice]).blocks()
    np.testing.assert_array_equal(block.toarray(), twice.toarray())


def changed(counts, name, place, value):
    """Write another number into an array of a folder, as a failing disk would."""
    path = f"{counts.path}/{name}"
    array = np.fromfile(path, disk.ARRAYS[name])
    array[place] = value
    array.tofile(path)


DAMAGE = [
    ("indices", 3, 25),
    ("indices", 3, -5),
    ("indices", 3, 200_000_000),
    ("data", 3, -1),
    ("data", 3, 7),  # a count like any other, that nobody wrote
    ("indptr", 5, 2**40),
    ("indptr", 5, -3),
    ("indptr", 0, 1),
]


@pytest.mark.parametrize("damage", DAMAGE, ids=str)
def test_a_folder_whose_numbers_were_changed_is_not_opened(counts, damage):
    changed(counts, *damage)
    with pytest.raises(ValueError, match="no complete folder of counts"):
        open_counts(counts.path)


@pytest.mark.parametrize("damage", [damage for damage in DAMAGE if damage[2] != 7], ids=str)
def test_a_fit_refuses_a_folder_that_is_damaged_after_it_was_opened(counts, damage):
    changed(counts, *damage)
    for active in (None, np.arange(50) % 2 == 0):
        with pytest.raises(ValueError, match=r"does not hold what it held|damaged sparse matrix"):
            list(counts.blocks(active))
    with pytest.raises(ValueError, match=r"does not hold what it held|damaged sparse matrix"):
        VIPSLDA(3, max_iter=2).fit(counts)


@pytest.mark.parametrize("groups", [None, np.arange(50) // 2], ids=["documents", "users"])
def test_a_folder_that_is_written_during_a_fit_ends_it(counts, groups):
    """Users' weights are of what the first pass read: larger counts in a later one would break their bound."""

    def write(report):
        path = f"{counts.path}/data"
        before = os.stat(path)
        time.sleep(0.02)  # more than the clock of a file system resolves
        with open(path, "r+b") as file:
            file.write((1000 * np.fromfile(path, disk.ARRAYS["data"])).tobytes())
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # as programs do that copy

    model = VIPSLDA(3, max_iter=3, callback=write)
    with pytest.raises(ValueError, match="its files were changed"):
        model.fit(counts, groups=groups)
    assert not hasattr(model, "components_")
    again = pickle.loads(pickle.dumps(counts))  # elsewhere, a file has other times
    assert (again.path, again.shape, again.digest) == (counts.path, counts.shape, counts.digest)
    assert sum(len(numbers) for numbers, _ in again.blocks()) == 50


@pytest.mark.parametrize("shape", [[50], [50, 0], [50, 2**40], [2**70, 12], [-50, 12], [50.5, 12], "no", [[50], 12]])
def test_a_header_with_an_impossible_shape_is_refused(counts, shape):
    path = f"{counts.path}/header.json"
    with open(path) as file:
        header = json.load(file)
    with open(path, "w") as file:
        json.dump(header | {"shape": shape}, file)
    with pytest.raises(ValueError, match="no complete folder of counts"):
        open_counts(counts.path)


def test_counts_on_disk_are_readable_by_their_owner_only(counts, tmp_path):
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "corpus").iterdir()}
    assert modes == dict.fromkeys(["header.json", *disk.ARRAYS], 0o600)


def test_texts_are_counted_on_the_way_to_the_disk(tmp_path, capsys):
    texts = ["iron zinc iron", "pear", "", "zinc pear"] * 5000
    words = CountVectorizer(vocabulary=["iron", "pear", "zinc"])
    counts = write_counts(tmp_path / "corpus", (text for text in texts), vectorizer=words, verbose=1)
    assert "20000 documents" in capsys.readouterr().err
    assert (sp.vstack([block for _, block in counts.blocks()]) != words.transform(texts)).nnz == 0
    with pytest.raises(ValueError, match="chunks must hold a text in each row; row 1"):
        write_counts(tmp_path / "other", ["iron", None], vectorizer=words)
    with pytest.raises(FileExistsError, match="open_counts opens it if it is complete"):
        write_counts(tmp_path / "corpus", texts, vectorizer=words)


def test_any_model_transforms_documents_on_disk_and_says_who_fits_them(counts):
    X = sp.vstack([block for _, block in counts.blocks()])
    model = PrivateCGSLDA(2, max_iter=2).fit(X)
    np.testing.assert_array_equal(model.transform(counts), model.transform(X))
    with pytest.raises(TypeError, match="VIPSLDA fits documents on disk"):
        PrivateCGSLDA(2).fit(counts)
    with pytest.raises(TypeError, match="which is on disk"):
        model.score(counts)


def test_documents_on_disk_vote_for_their_prior_as_those_in_memory(tmp_path):
    corpus = make_lda_corpus(300, 40, 4, mean_length=10, doc_topic_prior=1.0, random_state=0).data
    source = write_counts(tmp_path / "counts", (corpus[i : i + 70] for i in range(0, 300, 70)))
    fits = [VIPSLDA(4, epsilon=np.inf, max_iter=6, random_state=0).fit(data) for data in (corpus, source)]
    np.testing.assert_array_equal(*(fit.doc_topic_prior_ for fit in fits))
    assert fits[0].doc_topic_prior_[0] == 2.5  # 25 times the default


@pytest.mark.filterwarnings("ignore:n_components=32 exceeds")
def test_documents_on_disk_begin_as_topics_as_those_in_memory(tmp_path):
    """They are read in blocks, of 25 tokens and more on average."""
    long = sp.csr_array(sp.vstack([10 * X, 20 * X]))
    source = write_counts(tmp_path / "long", (long[i : i + 9] for i in range(0, 100, 9)))
    fits = [VIPSLDA(32, epsilon=np.inf, max_iter=2, random_state=0).fit(data) for data in (long, source)]
    np.testing.assert_array_equal(*(fit.components_ for fit in fits))
    short = VIPSLDA(32, epsilon=np.inf, max_iter=2, random_state=0).fit(sp.vstack([X, 2 * X]))
    assert X.sum() / 25 < 25 < long.sum() / 100 and np.abs(short.topic_word_ - fits[0].topic_word_).max() > 0.01
