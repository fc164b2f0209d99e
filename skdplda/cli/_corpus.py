"""What the commands read: corpora of every format, lists of words, numbers."""

import argparse
import csv
import gzip
import json
import math
import os
import sys
import warnings
import zlib
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from skdplda._validation import check_public_words
from skdplda.exceptions import PrivacyLeakWarning

__all__ = [
    "FORMATS",
    "Documents",
    "add_corpus",
    "add_vocabulary",
    "number",
    "public_words",
    "read_corpus",
    "read_uci",
    "read_words",
    "refuse_empty",
    "seed",
    "whole",
]

FORMATS = ("auto", "lines", "folder", "jsonl", "csv", "uci")
STANDARD_INPUT = "-"
NO_VOCABULARY = (
    "--vocabulary is needed: a file of words that is public, one a line. Words taken from the documents would tell"
    " which words occur in them, and no noise would hide it. Use --leaky-vocabulary N to take the N most frequent"
    " words all the same."
)


def number(kind, what, largest=math.inf, least=None):
    """Return an argparse type: a number from `least`, or else above 0, of at most `largest`."""

    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not (0 < value <= largest or value == least):
            raise argparse.ArgumentTypeError(f"must be {what}; got {text!r}")
        return value

    return parse


whole, seed = number(int, "an integer of at least 1"), number(int, "an integer of at least 0", least=0)


def add_corpus(command):
    """Add the options of every command that reads documents."""
    command.add_argument(
        "corpus",
        metavar="CORPUS",
        help="text file (one document a line), folder of .txt, .jsonl or .csv (each plain or .gz), UCI docword file;"
        " -: lines of the standard input",
    )
    documents = command.add_argument_group("documents")
    documents.add_argument(
        "--format",
        choices=FORMATS,
        default="auto",
        metavar="F",
        help=f"{', '.join(FORMATS[1:])} (default: by the name)",
    )
    documents.add_argument("--column", metavar="NAME", help="column or key of the text, for .csv and .jsonl")
    return documents


def add_vocabulary(command):
    """Add the options of what chooses the words; return their group, of which a user gives one."""
    words = command.add_argument_group("words (give one)").add_mutually_exclusive_group()
    words.add_argument("--vocabulary", metavar="FILE", help="public words, one a line (for UCI: the vocab file)")
    words.add_argument("--leaky-vocabulary", type=whole, metavar="N", help="N most frequent words; NOT private")
    return words


def read_corpus(args):
    """Return the counts of a corpus, its words, and the vectorizer that counted them (None for UCI)."""
    documents = Documents(args)
    if documents.form == "uci":
        return *read_uci(args), None
    vectorizer = public_words(args, documents)
    X = vectorizer.fit_transform(documents)
    refuse_empty(X)
    return X, vectorizer.get_feature_names_out(), vectorizer


def refuse_empty(X):
    """Refuse documents of which no word is in the vocabulary: the topics would be noise alone, and be paid for.

    That all documents are without words is a fact about all of them, which one document can change: where this error
    is published, it is an output that no guarantee covers. It tells the curator, who holds the documents, of a wrong
    file, before anything is spent; estimators, which may run where nobody looks, do not ask.
    """
    if X.shape[0] and not X.nnz:
        raise ValueError(
            "no word of the vocabulary occurs in the documents; nothing was spent. Is it of another language, or are"
            " --column or --format those of another corpus?"
        )


def read_uci(args):
    """Return the counts and the words of a UCI corpus."""
    from skdplda.datasets import load_uci_bow

    if args.vocabulary is None:
        raise ValueError("--vocabulary is needed: a UCI docword file names words by number; give its vocab file.")
    corpus = load_uci_bow(args.corpus, args.vocabulary)
    spaced = [line for line, word in enumerate(corpus.feature_names, start=1) if len(word.split()) != 1]
    if spaced:
        raise ValueError(
            f"--vocabulary: {args.vocabulary!r} has {len(spaced)} lines that are no single word (the first: line"
            f" {spaced[0]}). Words are released, so they must not be documents."
        )
    refuse_empty(corpus.data)
    return corpus.data, corpus.feature_names


def public_words(args, documents):
    """Return the vectorizer of the words in a file, or, with a warning, of frequent words of the documents."""
    from sklearn.feature_extraction.text import CountVectorizer

    if args.vocabulary is not None:
        lines = read_words(args.vocabulary)
        vectorizer = CountVectorizer(vocabulary=list(lines))
        try:
            check_public_words(vectorizer, list(lines), f"--vocabulary: {args.vocabulary!r}", list(lines.values()))
        except ValueError as error:
            raise ValueError(f"{error}; the numbers are of lines.") from None
        return vectorizer
    if args.leaky_vocabulary is None:
        raise ValueError(NO_VOCABULARY)
    warnings.warn(
        f"--leaky-vocabulary takes the {args.leaky_vocabulary} most frequent words from the documents without noise:"
        " the guarantee does not cover which words these are.",
        PrivacyLeakWarning,
        stacklevel=1,
    )
    if args.corpus == STANDARD_INPUT:
        raise ValueError("--leaky-vocabulary reads the documents twice; save the standard input to a file first.")
    found = CountVectorizer(stop_words="english", max_features=args.leaky_vocabulary).fit(documents)
    return CountVectorizer(vocabulary=found.get_feature_names_out())


def read_words(path):
    """Return the distinct words of a vocabulary file, lower case, in its order, each with the line it is first on."""
    words = {}
    for number, line in enumerate(Path(path).read_text(encoding="utf-8-sig").splitlines(), start=1):
        if line.strip():
            words.setdefault(line.strip().lower(), number)
    if not words:
        raise ValueError(f"--vocabulary: {path!r} holds no words.")
    return words


class Documents:
    """The texts of a corpus, one at a time, with a progress bar on a terminal.

    `args` has the options of `add_corpus`, and maybe `users`. `form` is one of FORMATS, not "auto"; `users` says, after
    the texts were read, who wrote each of them, and is None without --users.
    """

    def __init__(self, args):
        self.path, self.column, self.by = Path(args.corpus), args.column, getattr(args, "users", None)
        piped = args.corpus == STANDARD_INPUT
        if not piped and not self.path.exists():
            raise ValueError(f"CORPUS: there is no file or folder {args.corpus!r}.")
        self.form = args.format if args.format != "auto" else "lines" if piped else form_of(self.path)
        if piped and self.form in ("folder", "uci"):
            raise ValueError(f"--format {self.form} cannot be read from the standard input.")
        if self.form in ("jsonl", "csv") and self.column is None:
            raise ValueError(f"--column is needed for a .{self.form} file: the name of its text.")
        if self.by is not None and self.form not in ("jsonl", "csv"):
            raise ValueError(f"--users needs a .csv or .jsonl corpus, which tells who wrote what; got {self.form}.")
        self.users = None

    def __iter__(self):
        self.users = None if self.by is None else []
        for _, text, user in self._rows():
            if self.by is not None:
                self.users.append(user)
            yield text

    def batches(self, size):
        """Yield (names, texts) of some documents: places in the file, or paths in the folder."""
        rows = self._rows()
        while batch := list(islice(rows, size)):
            yield [name for name, _, _ in batch], [text for _, text, _ in batch]

    def _rows(self):
        rows = {"folder": self._folder, "lines": self._lines, "csv": self._csv, "jsonl": self._jsonl}[self.form]()
        try:
            yield from tqdm(rows, desc="reading", unit=" documents", leave=False, disable=not sys.stderr.isatty())
        except (UnicodeDecodeError, csv.Error, gzip.BadGzipFile, EOFError, zlib.error) as error:  # EOFError: cut short
            raise ValueError(f"CORPUS: {os.fspath(self.path)!r} cannot be read: {error}.") from None

    def _folder(self):
        files = sorted(self.path.rglob("*.txt"))
        if not files:
            raise ValueError(f"CORPUS: the folder {os.fspath(self.path)!r} holds no .txt files.")
        for file in files:
            yield file.relative_to(self.path).as_posix(), file.read_text(encoding="utf-8-sig"), None

    def _lines(self):
        with self._open() as file:
            yield from ((place, line, None) for place, line in enumerate(filter(str.strip, file)))

    def _csv(self):
        csv.field_size_limit(2**31 - 1)
        with self._open(newline="") as file:
            rows = csv.DictReader(file)
            for option, name in (("--column", self.column), ("--users", self.by)):
                if name is not None and name not in (rows.fieldnames or ()):
                    found = len(rows.fieldnames or ())
                    raise ValueError(f"{option}: none of the {found} columns in line 1 of CORPUS is named {name!r}.")
            for place, row in enumerate(rows):
                yield place, row[self.column] or "", self._user(row, rows.line_num)

    def _jsonl(self):
        with self._open() as file:
            lines = ((number, line) for number, line in enumerate(file, start=1) if line.strip())
            for place, (number, line) in enumerate(lines):
                try:
                    row = json.loads(line)
                    text = row[self.column]
                except (ValueError, KeyError, TypeError):
                    text = None
                if not isinstance(text, str):
                    raise ValueError(
                        f"CORPUS: {self.path}, line {number}: must be a JSON object with text under --column"
                        f" {self.column!r}."
                    )
                yield place, text, self._user(row, number)

    def _user(self, row, line):
        if self.by is None:
            return None
        user = row.get(self.by)
        if user is None or user == "":
            raise ValueError(f"CORPUS: {self.path}, line {line}: has no user under --users {self.by!r}.")
        return str(user)

    @contextmanager
    def _open(self, newline=None):
        if os.fspath(self.path) == STANDARD_INPUT:
            yield sys.stdin
            return
        opener = gzip.open if self.path.suffix == ".gz" else open
        with opener(self.path, "rt", encoding="utf-8-sig", newline=newline) as file:
            yield file


def form_of(path):
    """Return the format that a path's name tells."""
    if path.is_dir():
        return "folder"
    if path.name.startswith("docword."):
        return "uci"
    return {".jsonl": "jsonl", ".csv": "csv"}.get(Path(path.name.removesuffix(".gz")).suffix, "lines")
