"""Readers of public corpora."""

import gzip
import io
import json
import lzma
import os
import re
from numbers import Real
from operator import index
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from sklearn.utils import Bunch

from skdplda._optional import import_optional
from skdplda._types import Iterable, PathLike, Sequence

_HEADER = ("documents", "words", "entries")  # the first three lines of a UCI bag-of-words file
_INT32_MAX = 2**31 - 1
_WORD = re.compile(r"\b[^\W\d_]{2,}\b")
_QUOTE = re.compile(r"^\s*[>|]|^In article\b|\b(writes|wrote|says|said):\s*$")
_RULE = re.compile(r"\s*[-_=*]*\s*\Z")  # an empty line, or one drawn with dashes
_SUBSETS = ("train", "test", "all")
_PARTS = ("headers", "footers", "quotes")


def load_lee() -> Any:
    """Load 300 short news articles, as bundled with gensim.

    The background corpus of [1]_, for examples and tests without a download.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        With the entries

        data : list of str
            The 300 articles.
        tokens : list of list of str
            Their words of at least two letters, lower case, in reading order: the texts of
            :func:`skdplda.metrics.coherence`.

    References
    ----------
    .. [1] M. D. Lee, B. M. Pincombe, M. B. Welsh (2005). An empirical evaluation of models of text document
       similarity. Proceedings of the 27th Annual Conference of the Cognitive Science Society.

    Examples
    --------
    >>> from skdplda.datasets import load_lee
    >>> lee = load_lee()
    >>> len(lee.data), lee.tokens[0][:3]
    (300, ['hundreds', 'of', 'people'])
    """
    datapath = import_optional("gensim.test.utils", purpose="The corpus of Lee et al.", install="gensim").datapath

    data = Path(datapath("lee_background.cor")).read_text(encoding="utf-8").splitlines()
    return Bunch(data=data, tokens=[_WORD.findall(text.lower()) for text in data])


def load_uci_bow(docword: PathLike, vocabulary: PathLike | Sequence[str] | None = None) -> Any:
    """Load a corpus in the UCI bag-of-words format [1]_.

    The first three lines contain the number of documents D, of words W and of entries NNZ; each further line a
    document, a word (both counted from 1) and how often the word occurs in the document.

    Parameters
    ----------
    docword : str or path-like
        The `docword.*.txt` file, plain or compressed (name ends in `.gz`).
    vocabulary : str, path-like, sequence of str or None, default=None
        The `vocab.*.txt` file, one word a line, plain or `.gz`, or the words themselves. None names the words
        `word1`, `word2` and so on, as the file counts them.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        With the entries

        data : csr_matrix of shape (D, W), int32
            Counts of each word in each document, in canonical form.
        feature_names : ndarray of shape (W,)
            The words.

    Raises
    ------
    ValueError
        If the file does not follow the format (the message names file and line), ends early, or the
        vocabulary does not have W words.

    References
    ----------
    .. [1] D. Newman (2008). Bag of Words. UCI Machine Learning Repository.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from skdplda.datasets import load_uci_bow
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "docword.toy.txt")
    ...     _ = path.write_text("2\\n3\\n3\\n1 1 4\\n1 3 1\\n2 2 2\\n")
    ...     toy = load_uci_bow(path, ["apple", "pear", "plum"])
    >>> toy.data.toarray().tolist()
    [[4, 0, 1], [0, 2, 0]]
    """
    path = os.fspath(docword)
    content = io.BytesIO(_read_bytes(path, "docword"))
    n_documents, n_words, n_entries = (_header_value(path, number, content.readline()) for number in (1, 2, 3))
    body = content.tell()
    table = _parse_entries(content)
    if table is None or not _entries_are_valid(table, n_documents, n_words):
        content.seek(body)
        raise _first_error(path, content, n_documents, n_words)
    if len(table) != n_entries:
        hint = "the file is truncated" if len(table) < n_entries else "the header or the file is wrong"
        raise ValueError(f"{path}: line 3 promises {n_entries} entries, but {len(table)} follow: {hint}.")

    shape = (n_documents, n_words)
    data = csr_matrix((table[:, 2].astype(np.int32), (table[:, 0] - 1, table[:, 1] - 1)), shape=shape)
    data.sum_duplicates()  # old constructors leave them
    if data.nnz != n_entries:
        content.seek(body)
        raise _first_repetition(path, content)
    return Bunch(data=data, feature_names=_read_vocabulary(vocabulary, path, n_words))


def load_gensim_corpus(corpus: Iterable[Sequence[tuple[int, int]]], dictionary: Any) -> Any:
    """Turn a gensim corpus into word counts.

    The columns are those of the dictionary, which the guarantee of a model does not cover: a dictionary that was made
    from private documents tells which words occur in them.

    Parameters
    ----------
    corpus : iterable of list of (int, int)
        Documents as gensim's bags of words: numbers of words, and how often each stands in the document. Whole floats
        are counts too: gensim's corpora on disk have them.
    dictionary : :class:`gensim.corpora.Dictionary` or dict of {int: str}
        The words by number, from 0 without a gap.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        With the entries

        data : csr_matrix of shape (n_documents, n_words), int32
            Counts of each word in each document, in canonical form; a word that is given twice counts twice.
        feature_names : ndarray of shape (n_words,)
            The words.

    Raises
    ------
    ValueError
        If the dictionary has gaps or nothing, or a document (which the message numbers from 0) holds anything but
        numbers of words and positive counts.

    Examples
    --------
    >>> from gensim.corpora import Dictionary
    >>> from skdplda.datasets import load_gensim_corpus
    >>> dictionary = Dictionary([["iron", "zinc"]])  # public words
    >>> corpus = [dictionary.doc2bow(text) for text in (["zinc", "iron", "zinc"], [], ["apple"])]
    >>> load_gensim_corpus(corpus, dictionary).data.toarray().tolist()
    [[1, 2], [0, 0], [0, 0]]
    """
    words = dict(dictionary.items())
    if not words or set(words) != set(range(len(words))):
        raise ValueError(
            f"dictionary must number at least one word, from 0 without a gap; got {len(words)} words. gensim's"
            " Dictionary.compactify() closes gaps."
        )
    columns, counts, start = [], [], [0]
    for number, document in enumerate(corpus):
        try:
            pairs = [(index(word), _whole(count)) for word, count in document]
        except (TypeError, ValueError, OverflowError):
            pairs = [(-1, 0)]
        if any(not (0 <= word < len(words) and 0 < count <= _INT32_MAX) for word, count in pairs):
            raise ValueError(
                f"corpus, document {number}: must hold pairs of a word's number, below {len(words)}, and a positive"
                " integer count."
            )
        columns += [word for word, _ in pairs]
        counts += [count for _, count in pairs]
        start.append(len(columns))
    shape = (len(start) - 1, len(words))
    data = csr_matrix((np.array(counts, np.int32), np.array(columns, np.int32), np.array(start)), shape=shape)
    data.sum_duplicates()
    return Bunch(data=data, feature_names=np.array([words[number] for number in range(len(words))], dtype=object))


def _whole(count):
    """Return a count as an integer; gensim's corpora on disk, such as MmCorpus, have it as a float."""
    if isinstance(count, Real) and count == int(count):
        return int(count)
    return index(count)


def load_20newsgroups(
    subset: Literal["train", "test", "all"] = "train",
    *,
    path: PathLike | None = None,
    remove: tuple[Literal["headers", "footers", "quotes"], ...] = ("headers",),
) -> Any:
    """Load the 20 Newsgroups posts, split by date.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        Which posts.
    path : str, path-like or None, default=None
        A local file of JSON lines with the keys `split`, `label` and `text`, plain or compressed (name ends
        in `.xz` or `.gz`). None downloads the corpus through :func:`sklearn.datasets.fetch_20newsgroups`.
    remove : tuple of {"headers", "footers", "quotes"}, default=("headers",)
        What to strip from each post: everything up to the first blank line, the last block behind a blank or
        dashed line (a signature), and the lines that quote another post. With a `path` the last two are
        rules of thumb of this function, which may differ from scikit-learn's by a line.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        With the entries

        data : list of str
            The posts, in the order of their source.
        target : ndarray of shape (n_posts,), int
            Index of each post's newsgroup in `target_names`.
        target_names : list of str
            The newsgroups, sorted.

    Raises
    ------
    ValueError
        If `subset` or an entry of `remove` is unknown, or a line of the file is not as described.
    """
    if subset not in _SUBSETS:
        raise ValueError(f"subset must be one of {_SUBSETS}, got {subset!r}.")
    if isinstance(remove, str) or not set(remove) <= set(_PARTS):
        raise ValueError(f"remove must be a tuple of entries from {_PARTS}, got {remove!r}.")
    if path is None:
        from sklearn.datasets import fetch_20newsgroups

        try:
            posts = fetch_20newsgroups(subset=subset, remove=tuple(remove), shuffle=False)
        except OSError as error:
            raise OSError(f"20 Newsgroups cannot be downloaded ({error}). Give a file of it as path.") from None
        return Bunch(data=posts.data, target=posts.target, target_names=list(posts.target_names))

    texts, labels, names = [], [], set()
    path = os.fspath(path)
    for number, line in enumerate(io.BytesIO(_read_bytes(path, "path")), start=1):
        try:
            post = json.loads(line)
            split, label, text = post["split"], post["label"], post["text"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path}, line {number}: must be a JSON object with split, label and text ({type(error).__name__})."
            ) from None
        names.add(label)  # of every split, so that train and test number the newsgroups alike
        if subset in ("all", split):
            texts.append(_strip(text, remove))
            labels.append(label)
    target_names = sorted(names)
    target = np.searchsorted(np.array(target_names, dtype=object), np.array(labels, dtype=object))
    return Bunch(data=texts, target=target, target_names=target_names)


def _read_bytes(path, name):
    """Return the content of a file, decompressed as its name says."""
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(Path(path).suffix, open)
    try:
        with opener(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{name} must name a file of the corpus, plain, .gz or .xz; there is no file {path!r}. Give its path, seen"
            f" from {os.getcwd()!r}."
        ) from None
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError) as error:
        raise ValueError(f"{path}: the compressed file is truncated or damaged ({error}).") from None


def _header_value(path, number, line):
    """Return the integer that line `number` of a UCI file must hold."""
    text = line.decode("utf-8", "replace").strip()
    if not re.fullmatch(r"\d+", text) or int(text) > _INT32_MAX:
        raise ValueError(
            f"{path}, line {number}: must hold the number of {_HEADER[number - 1]}, "
            "an integer from 0 to 2**31 - 1. Is this a UCI docword file?"
        )
    return int(text)


def _parse_entries(content):
    """Return the (entries, 3) integers that follow the header, or None if they are anything else."""
    try:
        table = pd.read_csv(content, sep=r"\s+", header=None, dtype=np.int64, engine="c").to_numpy()
    except pd.errors.EmptyDataError:
        return np.empty((0, 3), dtype=np.int64)
    except (ValueError, OverflowError):  # pandas' own parser error is a ValueError
        return None
    return table if table.shape[1] == 3 else None


def _entries_are_valid(table, n_documents, n_words):
    """Whether all documents, words and counts are in their range."""
    return len(table) == 0 or (
        table.min() >= 1
        and table[:, 0].max() <= n_documents
        and table[:, 1].max() <= n_words
        and table[:, 2].max() <= _INT32_MAX
    )


def _first_error(path, content, n_documents, n_words):
    """Return the error of the first line that is no valid entry. Slow: only read when there is one."""
    fields = (("document", n_documents), ("word", n_words), ("count", _INT32_MAX))
    for number, line in enumerate(content, start=4):
        text = line.decode("utf-8", "replace").strip()
        values = text.split()
        if not values:
            continue
        if len(values) != 3:
            return ValueError(f"{path}, line {number}: must hold document, word and count; got {len(values)} entries.")
        for value, (name, largest) in zip(values, fields, strict=True):
            if not re.fullmatch(r"[+-]?\d+", value) or not 1 <= int(value) <= largest:
                return ValueError(f"{path}, line {number}: {name} must be an integer from 1 to {largest}.")
    return ValueError(f"{path}: the entries after line 3 could not be read as integers.")


def _first_repetition(path, content):
    """Return the error of the first line whose document and word stood on an earlier line."""
    seen = {}
    for number, line in enumerate(content, start=4):
        pair = tuple(line.split()[:2])
        if pair and pair in seen:
            return ValueError(f"{path}, line {number}: this document and word were given on line {seen[pair]}.")
        seen[pair] = number
    return ValueError(f"{path}: a document and word pair is given twice.")


def _read_vocabulary(vocabulary, path, n_words):
    """Return the n_words words as an array of str."""
    if vocabulary is None:
        words = [f"word{i}" for i in range(1, n_words + 1)]
    elif isinstance(vocabulary, (str, os.PathLike)):
        words = _read_bytes(os.fspath(vocabulary), "vocabulary").decode("utf-8").split("\n")
        words = [word.strip() for word in words]
        while words and not words[-1]:
            words.pop()
    else:
        words = list(vocabulary)
    if len(words) != n_words:
        raise ValueError(f"vocabulary must have the {n_words} words that {path} promises, got {len(words)}.")
    return np.array(words, dtype=object)


def _strip(text, remove):
    """Strip the named parts of a post."""
    if "headers" in remove:
        text = text.partition("\n\n")[2]
    if "footers" in remove:
        lines = text.strip().split("\n")
        last = max((i for i, line in enumerate(lines) if _RULE.match(line)), default=0)
        text = "\n".join(lines[:last] if last else lines)
    if "quotes" in remove:
        lines = (line for line in text.split("\n") if not _QUOTE.search(line))
        text = "\n".join(lines)
    return text
