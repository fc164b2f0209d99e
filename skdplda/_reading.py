"""Words of texts as numbers, each text read once: compiled, in threads, where a CountVectorizer cuts in a known way.

Threads get texts in batches, and number the words of a batch by themselves; batches are then joined in the order of the
texts, so that numbers follow the order of appearance, whatever the number of threads. A function of the user's runs in
the calling thread, and so does the iterator over the texts.
"""

from collections import defaultdict, deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

from skdplda._checks import effective_n_jobs
from skdplda._kernels._words import TextReader, Words, tally
from skdplda._texts import LETTERS, SIGNS
from skdplda._types import Function, Iterable, Iterator

SKLEARN_PATTERN = CountVectorizer().token_pattern
PATTERNS = {LETTERS: False, SKLEARN_PATTERN: True}  # that the kernel knows: whether a word may begin with a digit
UNEVEN = "\u0130\u03a3"  # of these alone the small letter is two characters, or depends on the others
BATCH, OBJECT = 2**19, 64  # characters of a batch; what a text counts beside its own


class ReadTexts:
    """The words of texts in their order: `names`, and `parts`, pairs (numbers, sizes) of some texts each.

    A number is the place of a word's name, or has it in `columns`: a negative one leaves the word out.
    """

    def __init__(
        self, names: list[str], parts: list[tuple[np.ndarray, np.ndarray]], columns: np.ndarray | None = None
    ) -> None:
        self.names, self.parts, self.columns = names, parts, columns

    def __len__(self) -> int:
        return sum(len(sizes) for _, sizes in self.parts)

    def among(self, names: list[str]) -> "ReadTexts":
        """Return the same texts with words of these names only."""
        column = {name: j for j, name in enumerate(names)}
        columns = np.array([column.get(name, -1) for name in self.names], np.int32)
        if self.columns is not None:
            columns = np.where(self.columns >= 0, columns[self.columns], -1).astype(np.int32)
        return ReadTexts(names, self.parts, columns)

    def without(self, words: Iterable[str], longest: int) -> "ReadTexts":
        """Return the same texts without some words and those of more than `longest` characters."""
        words = frozenset(words)
        return self.among([name for name in self.names if name not in words and len(name) <= longest])

    def counts(self, n_jobs: int | None = None) -> sp.csr_array:
        """Return how often each text has each word, int32, of shape (n_texts, n_words), columns ascending."""
        n_words = len(self.names)

        def groups():
            group: list = []
            for part in self.parts:  # small ones together, since a pass over all words comes with each
                group.append(part)
                if sum(numbers.size for numbers, _ in group) > n_words:
                    yield [np.concatenate(arrays) for arrays in zip(*group, strict=True)]
                    group = []
            if group:
                yield [np.concatenate(arrays) for arrays in zip(*group, strict=True)]

        def count(group):
            return tally(*group, n_words, self.columns)

        return stacked(in_order(count, groups(), effective_n_jobs(n_jobs)), n_words)


def read_texts(
    documents: Iterable, counter: CountVectorizer, *, longest: int | None = None, n_jobs: int | None = None
) -> ReadTexts:
    """Read the words, or n-grams, of documents as an unfitted `CountVectorizer` cuts them, in order of appearance.

    Those of more than `longest` characters are left out.
    """
    reader = _reader(counter, None, longest, n_jobs)
    parts = list(reader.parts(documents)) or [(np.empty(0, np.int32), np.empty(0, np.int64))]
    return ReadTexts(reader.names(), parts)


def count_words(
    documents: Iterable, counter: CountVectorizer, words: Iterable[str], *, n_jobs: int | None = None
) -> sp.csr_array:
    """Count given words, as `CountVectorizer.transform`, int32, of shape (n_documents, n_words), columns ascending."""
    words = list(words)
    reader = _reader(counter, words, None, n_jobs)
    return stacked(reader.parts(documents, lambda numbers, sizes: tally(numbers, sizes, len(words))), len(words))


def is_compiled(counter: CountVectorizer) -> bool:
    """Whether texts are cut without Python."""
    return counter.analyzer == "word" and counter.tokenizer is None and counter.token_pattern in PATTERNS


def in_order(function: Function, items: Iterable, n_threads: int) -> Iterator[Any]:
    """Yield what a function makes of items, in their order; the next items are read while threads work."""
    if n_threads == 1:
        yield from map(function, items)
        return
    waiting: deque = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def stacked(tallied: Iterable, n_words: int) -> sp.csr_array:
    """Return one matrix of what `tally` makes of parts."""
    starts, found, counts = [np.zeros(1, np.int64)], [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    for start, numbers, data in tallied:
        starts.append(start[1:] + starts[-1][-1])
        found.append(numbers)
        counts.append(data)
    start = np.concatenate(starts)
    start = start.astype(np.int32) if start[-1] < 2**31 else start  # as that of the columns, which else are copied
    X = sp.csr_array((np.concatenate(counts), np.concatenate(found), start), shape=(len(start) - 1, n_words))
    X.has_canonical_format = True
    return X


def _reader(counter, words, longest, n_jobs):
    analyze = counter.build_analyzer()  # it checks the parameters, and warns of stop words that do not fit
    if is_compiled(counter):
        return _CompiledReader(counter, words, longest, effective_n_jobs(n_jobs))
    return _PythonReader(analyze, words, longest)


class _PythonReader:
    """Words that an analyzer makes, numbered by a dictionary."""

    def __init__(self, analyze, words, longest):
        self._analyze, self._longest, self._learns = analyze, longest, words is None
        self._number: defaultdict = defaultdict()
        self._number.update((word, j) for j, word in enumerate(words or ()))
        if self._learns:
            self._number.default_factory = self._number.__len__

    def names(self):
        """Return the words."""
        return list(self._number)

    def parts(self, documents, finish=lambda *part: part):
        """Yield what a function makes of (numbers, sizes)."""
        numbers, sizes, number = [], [], self._number
        for document in documents:
            before = len(numbers)
            words = self._analyze(document)
            if self._learns:
                longest = self._longest
                numbers += [number[word] for word in words if longest is None or len(word) <= longest]
            else:
                numbers += [number[word] for word in words if word in number]
            sizes.append(len(numbers) - before)
            if len(numbers) > BATCH:
                yield finish(np.array(numbers, np.int32), np.array(sizes, np.int64))
                numbers, sizes = [], []
        yield finish(np.array(numbers, np.int32), np.array(sizes, np.int64))


class _CompiledReader:
    """Words that the kernel cuts and numbers."""

    def __init__(self, counter, words, longest, n_threads):
        self._decode, self._n_threads = counter.decode, n_threads
        own = counter.preprocessor is not None or counter.strip_accents is not None
        self._prepare = counter.build_preprocessor() if own else self._lower if counter.lowercase else None
        stopped = counter.get_stop_words() or ()
        self._left_out = Words(word for word in stopped if isinstance(word, str))
        self._words = Words(words or ())
        least, most = counter.ngram_range
        self._options = {
            "signs": () if PATTERNS[counter.token_pattern] else SIGNS,
            "digits": PATTERNS[counter.token_pattern],
            "lower": counter.lowercase and not own,
            "least": least,
            "most": most,
            "learn": words is None,
            "longest": longest or 0,
        }

    @staticmethod
    def _lower(text):
        """Put a text into lower case where the kernel would do it otherwise."""
        return text.lower() if not text.isascii() and any(character in text for character in UNEVEN) else text

    def names(self):
        """Return the words."""
        return self._words.names()

    def _texts(self, documents):
        for document in documents:
            text = self._decode(document)
            yield text if self._prepare is None else self._prepare(text)

    def parts(self, documents, finish=lambda *part: part):
        """Yield what a function makes of (numbers, sizes)."""
        if self._n_threads == 1:
            reader, size = TextReader(self._words, self._left_out, **self._options), 0
            for text in self._texts(documents):
                reader.read((text,))
                size += len(text)
                if size > BATCH:
                    yield finish(*reader.take())
                    size = 0
            yield finish(*reader.take())
        elif self._options["learn"]:
            for words, (numbers, sizes) in in_order(self._read_new, self._batches(documents), self._n_threads):
                yield finish(self._words.merge(words)[numbers], sizes)
        else:

            def read(batch):
                reader = TextReader(self._words, self._left_out, **self._options)
                reader.read(batch)
                return finish(*reader.take())

            yield from in_order(read, self._batches(documents), self._n_threads)

    def _read_new(self, batch):
        words = Words()
        reader = TextReader(words, self._left_out, **self._options)
        reader.read(batch)
        return words, reader.take()

    def _batches(self, documents):
        batch, size = [], 0
        for text in self._texts(documents):
            batch.append(text)
            size += len(text) + OBJECT
            if size > BATCH:
                yield tuple(batch)
                batch, size = [], 0
        if batch:
            yield tuple(batch)
