"""How long a selection takes at 100 million (unit, word) entries that lie on disk, and from an iterator of texts.

The documents are synthetic: 100 draws each from Zipf's law over a million words, less repetitions. The matrix is
written as three files first (not timed), mapped into memory, and given to `DPVocabularySelector`; texts are made on the
way and given to `DPCountVectorizer`. Times are processor seconds of one thread. For texts, "of texts" is the part that
makes them, "of words" what cutting them into words takes alone, by the same function, and "of selection" what remains
once all words are counted. Memory is the most of this process, pages of the mapped files included.

    python benchmarks/vocabulary_scale.py --folder SCRATCH
"""

import argparse
import resource
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from results import STAMP, code_of, data_of
from results import write as write_table

from skdplda import DPCountVectorizer, DPVocabularySelector

N_WORDS, DRAWS, BLOCK = 1_000_000, 115, 20_000  # 115 draws leave about 100 different words
MECHANISMS = ("sieve", "mad2r", "weighted_gaussian")


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


def from_texts(n_documents, mechanism):
    """Return the values of a row."""
    clocks = [time.process_time()]
    for _ in texts(n_documents):
        pass
    clocks.append(time.process_time())
    analyze = DPCountVectorizer().build_analyzer()
    for text in texts(n_documents):
        analyze(text)
    clocks.append(time.process_time())
    fitted = Timed(mechanism=mechanism).fit(texts(n_documents))
    clocks.append(time.process_time())
    making, cutting, whole = np.diff(clocks)
    row = {"documents": n_documents, "entries": fitted.entries, "CPU s": whole - making, "of texts": making}
    row |= {"of words": cutting - making, "of selection": clocks[-1] - fitted.began}
    return row | {"selected": len(fitted.vocabulary_)}


def memory():
    """Return the most memory of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    """Print and save the table."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--folder", type=Path, required=True, help="scratch folder for 500 MB")
    parser.add_argument("--documents", type=int, default=1_100_000)
    parser.add_argument("--mechanism", choices=MECHANISMS, default="sieve", help="one a process: memory is the most")
    parser.add_argument("--texts", type=int, default=0, help="from an iterator of so many texts, in place of the disk")
    parser.add_argument("--output", type=Path, help="folder for vocabulary_scale.csv, to which the row is added")
    args = parser.parse_args()
    row = {"mechanism": args.mechanism, "source": "texts" if args.texts else "disk"}
    if args.texts:
        row |= from_texts(args.texts, args.mechanism)
    else:
        n_entries = write(args.folder, args.documents)
        X = mapped(args.folder, args.documents)
        begin = time.process_time()
        fitted = DPVocabularySelector(method=args.mechanism).fit(X)
        row |= {"documents": args.documents, "entries": n_entries, "CPU s": time.process_time() - begin, "of texts": 0}
        row["selected"] = int(fitted.support_.sum())
    row["MB"] = memory()
    print(row)
    if args.output:
        roots = [from_texts, "skdplda.DPCountVectorizer"] if args.texts else [write, "skdplda.DPVocabularySelector"]
        row |= dict(zip(STAMP, (code_of(*roots), data_of()), strict=True))
        path, keys = args.output / "vocabulary_scale.csv", ["mechanism", "source", "documents"]
        older = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=keys)
        same = (older[keys].astype(str) == [str(row[key]) for key in keys]).all(axis=1)
        write_table(pd.concat([older[~same], pd.DataFrame([row])]), path)


if __name__ == "__main__":
    main()
