"""How long a selection takes at 100 million (unit, word) entries that lie on disk, and from an iterator of texts.

The documents are synthetic: 100 draws each from Zipf's law over a million words, less repetitions. The matrix is
written as three files first (not timed), mapped into memory, and given to `DPVocabularySelector`; texts are made on the
way and given to `DPCountVectorizer`. Times are processor seconds of one thread. For texts, "of texts" is the part that
makes them, "of words" what cutting them into words takes alone, by the same function, and "of selection" what remains
once all words are counted. Memory is the most of this process, pages of the mapped files included.

    SKDPLDA_SCRATCH=FOLDER python benchmarks/vocabulary_scale.py    # 500 MB
"""

import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from apart import apart, peak, scratch
from results import Table, run

from skdplda import DPCountVectorizer, DPVocabularySelector

N_WORDS, DRAWS, BLOCK = 1_000_000, 115, 20_000  # 115 draws leave about 100 different words


@dataclass(frozen=True)
class Settings:
    """Of a row."""

    method: str
    source: str = "disk"
    documents: int = 1_100_000
    epsilon: float = 5.0


def cells():
    """Return what there is to measure."""
    return [Settings(name) for name in ("sieve", "mad2r", "weighted_gaussian")] + [Settings("sieve", "texts")]


def documents(n_documents, seed=0):
    """Yield blocks of documents: arrays of start and of sorted word numbers."""
    rng = np.random.default_rng(seed)
    cumulative = np.cumsum(1 / np.arange(1, N_WORDS + 1))
    for first in range(0, n_documents, BLOCK):
        n = min(BLOCK, n_documents - first)
        words = np.sort(np.searchsorted(cumulative, rng.random((n, DRAWS)) * cumulative[-1]).astype(np.int32), axis=1)
        new = np.diff(words, axis=1, prepend=-1) > 0
        yield np.append(0, np.cumsum(new.sum(axis=1))), words[new]


def write(folder, n_documents):
    """Write the matrix, block by block, if the folder has none; return the number of entries."""
    if (folder / "start.bin").exists():
        return int(np.fromfile(folder / "start.bin", np.int64)[-1])
    starts = [np.zeros(1, np.int64)]
    with open(folder / "words.bin", "wb") as file:
        for start, words in documents(n_documents):
            starts.append(start[1:] + starts[-1][-1])
            words.tofile(file)
    starts = np.concatenate(starts)
    starts.tofile(folder / "start.bin")
    np.ones(starts[-1], np.int8).tofile(folder / "counts.bin")
    return int(starts[-1])


def mapped(folder, n_documents):
    """Return the matrix, which stays on disk."""
    types = {"counts": np.int8, "words": np.int32, "start": np.int64}
    arrays = [np.memmap(folder / f"{name}.bin", dtype, mode="r") for name, dtype in types.items()]
    return sp.csr_array(tuple(arrays), shape=(n_documents, N_WORDS))


def texts(n_documents):
    """Yield documents as texts."""
    names = np.array([f"w{i}" for i in range(N_WORDS)], dtype=object)
    for start, words in documents(n_documents):
        for a, b in pairwise(start.tolist()):
            yield " ".join(names[words[a:b]])


class Timed(DPCountVectorizer):
    """Keeps when the selection began."""

    def _select(self, X, *arguments):
        self.began = time.process_time()
        self.entries = X.nnz
        return super()._select(X, *arguments)


def from_texts(s):
    """Return the values of a row."""
    n_documents = s.documents
    clocks = [time.process_time()]
    for _ in texts(n_documents):
        pass
    clocks.append(time.process_time())
    analyze = DPCountVectorizer().build_analyzer()
    for text in texts(n_documents):
        analyze(text)
    clocks.append(time.process_time())
    fitted = Timed(epsilon=s.epsilon, method=s.method).fit(texts(n_documents))
    clocks.append(time.process_time())
    making, cutting, whole = np.diff(clocks)
    row = {"entries": fitted.entries, "CPU s": whole - making, "of texts": making}
    row |= {"of words": cutting - making, "of selection": clocks[-1] - fitted.began}
    return row | {"selected": len(fitted.vocabulary_)}


def from_disk(s, folder):
    """Return the values of a row."""
    n_entries = write(folder, s.documents)
    X = mapped(folder, s.documents)
    begin = time.process_time()
    fitted = DPVocabularySelector(s.epsilon, method=s.method).fit(X)
    seconds = time.process_time() - begin
    return {"entries": n_entries, "CPU s": seconds, "of texts": 0, "selected": int(fitted.support_.sum())}


def work(s, folder):
    """Return the values of a row, and the most memory of this process."""
    return (from_texts(s) if s.source == "texts" else from_disk(s, folder)) | {"MB": peak() / 2**20}


def measure(s):
    """Do so in a process of its own."""
    folder = scratch() / f"zipf_{s.documents}"
    folder.mkdir(exist_ok=True)
    return apart(work, s, folder)


TABLES = [
    Table("vocabulary_scale", Settings, cells, measure, timed=True),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
