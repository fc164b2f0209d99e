"""Do topics explain the words of a document that they have not seen, and were not made of?

Topics fit words that co-occur by chance in the documents that they are estimated from, and a repeated word is no new
evidence. So a coin assigns each distinct word of a document to one of two halves, topic proportions are inferred from
one half alone, and the document's own contribution is subtracted from the table.
"""

import numpy as np

from skdplda._arithmetic import log, total
from skdplda._kernels._foldin_rows import fold_in_rows, probabilities, word_rows
from skdplda._kernels._held_out import own_rows, rows_without
from skdplda._rows import entries_of

__all__ = ["gains_of_unseen", "own_parts", "scaled_to_frequencies", "unseen"]

# Of a fold-in: most updates, and the relative change below which it ends.
MAX_ITER, TOL = 100, 1e-3
LEAST = 0.01  # of a cell or a mass: as much is left of it without the document's own part
GOLDEN, MIX = np.uint64(0x9E3779B97F4A7C15), (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def _mixed(x):
    """Return whole numbers of 64 bits that say nothing of those given: the finalizer of SplitMix64."""
    x = (x ^ (x >> np.uint64(30))) * MIX[0]
    x = (x ^ (x >> np.uint64(27))) * MIX[1]
    return x ^ (x >> np.uint64(31))


def documents_of(X):
    """Return the document of each entry, (nnz,)."""
    return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))


def unseen(X):
    """Return for each kind of word of each document whether it is held out, by a fair coin: (nnz,), bool.

    The coin is a public hash of the word and of which words the document has: nothing is drawn.
    """
    words = _mixed((X.indices.astype(np.uint64) + np.uint64(1)) * GOLDEN)
    ends = np.concatenate([np.zeros(1, np.uint64), np.cumsum(words)])  # whole numbers that wrap around: exact
    of_document = _mixed((ends[X.indptr[1:]] - ends[X.indptr[:-1]]) ^ GOLDEN)
    return (_mixed(words ^ of_document[documents_of(X)]) & np.uint64(1)).astype(bool)


def _part(X, document, kept):
    """Return (where documents begin, entries) of some entries."""
    ends = np.cumsum(np.bincount(document[kept], minlength=X.shape[0]))
    return np.concatenate([np.zeros(1, np.int64), ends]), kept


def own_parts(X, counts, left, word_weights, scale, prior, n_threads):
    """Return a function of a slice of documents: what each word of each is expected to have added, (nnz, n_topics).

    `counts`, (n_words, n_topics), are topics in norms of a contribution, and `left` the part of what is contributed to
    a cell that is in them, with one row for all words or a row for each. Topics beyond those of `left` are the word
    frequencies: of a word they lose as much, for its size, as the others together. What a document contributes has norm
    `scale`, (n_documents,), with words weighted by `word_weights`; or, where these are None, each of its tokens has.
    """
    begins, words = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False)
    data = X.data.astype(np.int32, copy=False)
    counts, left, scale = (np.ascontiguousarray(given, np.float64) for given in (counts, left, scale))
    weights, masses = None if word_weights is None else word_weights.astype(np.float64), total(counts, axis=0)
    rows, _, place = word_rows((counts / masses).T, words, n_threads)  # once for all: they may be as large as the model

    def own(some):
        starts, entries = entries_of(begins, some)
        theta = fold_in_rows(starts, place[entries], data[entries], rows, prior, MAX_ITER, TOL, n_threads)
        given = counts, masses, left, scale[some], weights, n_threads
        return own_rows(starts, words[entries], data[entries], theta, *given)

    return own


def scaled_to_frequencies(counts, left, frequencies):
    """Return topics that together have these word frequencies, and what of a contribution is left in them.

    `counts`, (n_words, n_topics), and `left`, as in `own_parts`, are scaled word by word. Else a topic with more noise
    than others makes the frequencies of all wrong, and these explain documents better, where no topics are.
    """
    scale = (frequencies * (total(counts) / np.maximum(total(counts, axis=1), 1e-300)))[:, None]
    return counts * scale, left * scale


def gains_of_unseen(X, counts, own, blend, priors, n_threads, masses=None):
    """Return the nats that topics gain over word frequencies, in all tokens held out of a document.

    They are of each prior, (n_documents, n_priors).
    X are counts, `counts`, (n_words, n_topics), topics, `own`, (nnz, n_topics), what the documents have added to these,
    and `priors`, (n_priors, n_topics), those of topic proportions. Topics are mixed with the word frequencies, of which
    they are the part `blend`. A document without words on one side gains 0. `masses` are the sums of the topics,
    (n_topics,), where they are known.
    """
    counts, own = (np.ascontiguousarray(given, np.float64) for given in (counts, own))
    document, place = documents_of(X), np.arange(X.nnz, dtype=np.int32)
    masses = total(counts, axis=0) if masses is None else masses
    entries = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    rows, peak, words = rows_without(*entries, counts, masses, own, blend, LEAST, n_threads)
    held_out = unseen(X)
    (begins, seen), (starts, judged) = (_part(X, document, np.flatnonzero(part)) for part in (~held_out, held_out))
    tokens, nats = X.data[judged].astype(np.float64), np.empty((X.shape[0], len(priors)))
    for i, prior in enumerate(priors):
        theta = fold_in_rows(begins, place[seen], X.data[seen], rows, prior, MAX_ITER, TOL, n_threads)
        found = probabilities(starts, place[judged], rows, peak, theta, n_threads)
        nats[:, i] = np.bincount(document[judged], tokens * log(found / words[judged]), X.shape[0])
    nats[begins[1:] == begins[:-1]] = 0
    return np.nan_to_num(nats, posinf=0.0, neginf=0.0)
