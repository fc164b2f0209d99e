"""How long a selection takes at 100 million (unit, word) entries that lie on disk, and from an iterator of texts.

The documents are synthetic: 100 draws each from Zipf's law over a million words, less repetitions. The matrix is
written as three files first (not timed), mapped into memory, and given to `DPVocabularySelector`; texts are made on the
way and given to `DPCountVectorizer`. Times are processor seconds of one thread; memory is the most of this process,
pages of the mapped files included.

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
        begin = time.process_time()
        n_entries = sum(len(words) for _, words in documents(args.texts))
        sum(len(text) for text in texts(args.texts))
        making = 2 * (time.process_time() - begin)  # not more than this is of making texts
        begin = time.process_time()
        fitted = DPCountVectorizer(mechanism=args.mechanism).fit(texts(args.texts))
        row |= {"documents": args.texts, "entries": n_entries, "CPU s": time.process_time() - begin, "of texts": making}
        row["selected"] = len(fitted.vocabulary_)
    else:
        n_entries = write(args.folder, args.documents)
        X = mapped(args.folder, args.documents)
        begin = time.process_time()
        fitted = DPVocabularySelector(mechanism=args.mechanism).fit(X)
        row |= {"documents": args.documents, "entries": n_entries, "CPU s": time.process_time() - begin, "of texts": 0}
        row["selected"] = int(fitted.support_.sum())
    row["MB"] = memory()
    print(row)
    if args.output:
        path = args.output / "vocabulary_scale.csv"
        table = pd.concat([*([pd.read_csv(path)] if path.exists() else []), pd.DataFrame([row])])
        table.to_csv(path, index=False, float_format="%.4g", lineterminator="\n")


if __name__ == "__main__":
    main()
