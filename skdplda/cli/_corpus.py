"""What the commands read: corpora of every format, and lists of words."""

import codecs
import csv
import gzip
import io
import json
import os
import re
import sys
import unicodedata
import zlib
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from skdplda._optional import import_optional
from skdplda._validation import check_public_words, is_missing
from skdplda._warnings import warn
from skdplda.cli._numbers import below_one, whole
from skdplda.exceptions import PrivacyLeakWarning

FORMATS = ("auto", "lines", "folder", "jsonl", "json", "csv", "tsv", "parquet", "uci")
TABLES = ("jsonl", "json", "csv", "tsv", "parquet")  # of rows, of which a column is the text
BY_NAME = {f".{form}": form for form in TABLES} | {".txt": "lines", ".text": "lines", "": "lines", ".ndjson": "jsonl"}
BLOCK = 1000  # rows of a parquet file read at a time
STANDARD_INPUT = "-"
NO_VOCABULARY = (
    "which words? {}--vocabulary FILE takes public ones, one a line. Words taken from the documents would tell which"
    " words occur in them, and no noise would hide it: --leaky-vocabulary N takes the N most frequent words all the"
    " same."
)
PRIVATE_WORDS = "--private-words selects them from the documents, for a share of epsilon; "


def add_corpus(command):
    """Add the options of every command that reads documents."""
    command.add_argument(
        "corpus",
        metavar="CORPUS",
        help=".txt file (one document a line), folder of .txt, .csv, .tsv, .json or .jsonl (each plain or .gz),"
        " .parquet, UCI docword file; -: lines of the standard input",
    )
    documents = command.add_argument_group("documents")
    documents.add_argument(
        "--format",
        choices=FORMATS,
        default="auto",
        metavar="F",
        help=f"{', '.join(FORMATS[1:])} (default: by the name)",
    )
    documents.add_argument("--column", metavar="NAME", help="column or key of the text, for tables")
    documents.add_argument("--delimiter", metavar="C", help="between the columns of .csv and .tsv (default: , and tab)")
    documents.add_argument("--encoding", default="utf-8", metavar="NAME", help="of text files (default: utf-8)")
    return documents


def add_vocabulary(command):
    """Add the options of what chooses the words; return their group, of which a user gives one."""
    words = command.add_argument_group("words (give one)").add_mutually_exclusive_group()
    words.add_argument("--vocabulary", metavar="FILE", help="public words, one a line (for UCI: the vocab file)")
    words.add_argument("--leaky-vocabulary", type=whole, metavar="N", help="N most frequent words; NOT private")
    return words


def add_private_words(words, share):
    """Add the option that selects the words privately, for a share of epsilon that has a default."""
    words.add_argument(
        "--private-words",
        type=below_one,
        nargs="?",
        const=share,
        metavar="S",
        help=f"select the words privately, for the share S of epsilon (default: {share})",
    )


def read_corpus(args):
    """Return the counts of a corpus, its words, and the vectorizer that counted them (None for UCI)."""
    documents = Texts(args)
    if documents.form == "uci":
        return *read_uci(args), None
    vectorizer = public_words(args, documents)
    X = vectorizer.fit_transform(documents)
    refuse_empty(X)
    return X, vectorizer.get_feature_names_out(), vectorizer


def refuse_empty(X):
    """Refuse documents of which no word is in the vocabulary: the topics would be noise alone, and be paid for.

    That all documents are without words is a fact about all of them, which one document can change: where this error
    is published, it is an output that no guarantee covers. It warns the curator, who holds the documents, of a wrong
    file, before anything is spent; estimators, which may run where nobody looks, do not check. So does `insights`.
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
        raise ValueError(NO_VOCABULARY.format(PRIVATE_WORDS if hasattr(args, "private_words") else ""))
    warn(
        f"--leaky-vocabulary takes the {args.leaky_vocabulary} most frequent words from the documents without noise:"
        " the guarantee does not cover which words these are.",
        PrivacyLeakWarning,
    )
    from skdplda.datasets import frequent_words

    if args.corpus == STANDARD_INPUT:
        raise ValueError("--leaky-vocabulary reads the documents twice; save the standard input to a file first.")
    return CountVectorizer(vocabulary=frequent_words(documents, args.leaky_vocabulary, stop_words="english"))


def read_words(path):
    """Return the distinct words of a vocabulary file, lower case, in its order, each with the line it is first on."""
    words = {}
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"--vocabulary: {path!r} cannot be read: {error}.") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            words.setdefault(line.strip().lower(), number)
    if not words:
        raise ValueError(f"--vocabulary: {path!r} holds no words.")
    return words


class Texts:
    """The texts of a corpus, one at a time, with a progress bar on a terminal.

    `args` has the options of `add_corpus`, and maybe `users`. `form` is one of FORMATS, not "auto"; `users` says, after
    the texts were read, who wrote each of them, and is None without --users.
    """

    def __init__(self, args):
        self.path, self.column, self.by = Path(args.corpus), args.column, getattr(args, "users", None)
        self.name, self.delimiter = getattr(args, "id", None), args.delimiter
        self.form = form_of_corpus(args)
        if args.corpus == STANDARD_INPUT and self.form in ("folder", "uci", "parquet"):
            raise ValueError(f"--format {self.form} cannot be read from the standard input.")
        named = {"--column": self.column, "--users": self.by, "--id": self.name}
        if self.form in TABLES and self.column is None:
            raise ValueError(f"--column is needed for a .{self.form} file: the name of its text.")
        for option, value in named.items():
            if value is not None and self.form not in TABLES:
                raise ValueError(
                    f"{option} needs a table, with rows of named columns: {', '.join(f'.{form}' for form in TABLES)};"
                    f" got {self.form}. Is CORPUS of another --format?"
                )
        if self.delimiter is not None and self.form not in ("csv", "tsv"):
            raise ValueError(f"--delimiter is for .csv and .tsv; got {self.form}.")
        self.delimiter = {"\\t": "\t", "tab": "\t"}.get(self.delimiter, self.delimiter)
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise ValueError(f"--delimiter must be one character, or tab; got {args.delimiter!r}.")
        try:
            io.TextIOWrapper(io.BytesIO(), encoding=args.encoding)  # other codecs, such as rot13, are of no files
            self.encoding = {"utf-8": "utf-8-sig"}.get(codecs.lookup(args.encoding).name, args.encoding)
        except (LookupError, ValueError):
            raise ValueError(f"--encoding: there is none of texts that is called {args.encoding!r}.") from None
        self.users, self._file = None, self.path

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
        readers = {"folder": self._folder, "lines": self._lines, "csv": self._csv, "tsv": self._csv}
        readers |= {"jsonl": self._jsonl, "json": self._json, "parquet": self._parquet}
        rows = readers[self.form]()
        try:
            yield from tqdm(rows, desc="reading", unit=" documents", leave=False, disable=not sys.stderr.isatty())
        except (UnicodeError, csv.Error, gzip.BadGzipFile, EOFError, zlib.error) as error:  # EOFError: cut short
            raise ValueError(f"CORPUS: {os.fspath(self._file)!r} cannot be read: {error}.") from None

    def _folder(self):
        files = sorted(self.path.rglob("*.txt"))
        if not files:
            raise ValueError(f"CORPUS: the folder {os.fspath(self.path)!r} holds no .txt files.")
        for file in files:
            self._file = file
            yield file.relative_to(self.path).as_posix(), file.read_text(encoding=self.encoding), None

    def _lines(self):
        with self._open() as file:
            yield from ((place, line, None) for place, line in enumerate(filter(str.strip, file)))

    def _csv(self):
        csv.field_size_limit(2**31 - 1)
        with self._open(newline="") as file:
            rows = csv.DictReader(file, delimiter=self.delimiter or ("\t" if self.form == "tsv" else ","))
            self._check_columns(rows.fieldnames or (), " in line 1")
            for place, row in enumerate(rows):
                yield self._name(row, place), row[self.column] or "", self._user(row, f"line {rows.line_num}")

    def _check_columns(self, columns, where=""):
        """Refuse names that no column has. They may be a document, and are shown if each is a word."""
        words = columns and all(re.fullmatch(r"\w[\w.-]{0,29}", str(column)) for column in columns)
        shown = f" ({', '.join(map(repr, columns))})" if words else ""
        for option, name in (("--column", self.column), ("--users", self.by), ("--id", self.name)):
            if name is not None and name not in columns:
                raise ValueError(
                    f"{option}: none of the {len(columns)} columns{shown}{where} of CORPUS is named {name!r}."
                    + (" Is it of another --delimiter?" if len(columns) == 1 and self.form in ("csv", "tsv") else "")
                )

    def _jsonl(self):
        with self._open() as file:
            lines = ((number, line) for number, line in enumerate(file, start=1) if line.strip())
            for place, (number, line) in enumerate(lines):
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    row = None
                yield self._object(row, place, f"line {number}")

    def _json(self):
        with self._open() as file:
            try:
                rows = json.load(file)
            except (ValueError, RecursionError):
                raise ValueError(f"CORPUS: {os.fspath(self.path)!r} is no JSON. One object a line is .jsonl.") from None
        if not isinstance(rows, list):
            raise ValueError(f"CORPUS: {os.fspath(self.path)!r} must hold a list of JSON objects, one a document.")
        yield from (self._object(row, place, f"entry {place + 1}") for place, row in enumerate(rows))

    def _object(self, row, place, where):
        """Return a document that is a JSON object."""
        text = row.get(self.column) if isinstance(row, dict) else None
        if not isinstance(text, str):
            raise ValueError(
                f"CORPUS: {self.path}, {where}: must be a JSON object with text under --column {self.column!r}."
            )
        return self._name(row, place), text, self._user(row, where)

    def _parquet(self):
        parquet = import_optional("pyarrow.parquet", purpose="A .parquet file", install="pyarrow")
        from pyarrow import ArrowInvalid

        try:
            file = parquet.ParquetFile(self.path)
        except ArrowInvalid:
            raise ValueError(f"CORPUS: {os.fspath(self.path)!r} is no parquet file.") from None
        with file:
            self._check_columns(file.schema_arrow.names)
            columns = [name for name in dict.fromkeys((self.column, self.by, self.name)) if name is not None]
            place = 0
            for block in file.iter_batches(BLOCK, columns=columns):
                for row in block.to_pylist():
                    text = row[self.column]
                    if not isinstance(text, str | None):
                        raise ValueError(f"CORPUS: --column {self.column!r} must hold text; row {place + 1} has other.")
                    yield self._name(row, place), text or "", self._user(row, f"row {place + 1}")
                    place += 1

    def _name(self, row, place):
        """Return what a document is called: its number, or its value under --id."""
        return place if self.name is None else str(row.get(self.name))

    def _user(self, row, where):
        if self.by is None:
            return None
        user = row.get(self.by)
        if is_missing(user) or not str(user).strip():
            raise ValueError(f"CORPUS: {self.path}, {where}: has no user under --users {self.by!r}.")
        if isinstance(user, (dict, list, bool)):
            raise ValueError(
                f"CORPUS: {self.path}, {where}: the user under --users {self.by!r} must be a text or a number; got a"
                f" {type(user).__name__}."
            )
        if isinstance(user, float):
            if abs(user) >= 2**53:
                raise ValueError(
                    f"CORPUS: {self.path}, {where}: the user under --users {self.by!r} is a number so large that"
                    " different ones are the same, and two users one. Write integers, or texts."
                )
            user = int(user) if user.is_integer() else user  # 1.0 is 1
        return unicodedata.normalize("NFC", str(user).strip())

    @contextmanager
    def _open(self, newline=None):
        if os.fspath(self.path) == STANDARD_INPUT:
            yield sys.stdin
            return
        opener = gzip.open if self.path.suffix == ".gz" else open
        with opener(self.path, "rt", encoding=self.encoding, newline=newline) as file:
            yield file


def form_of_corpus(args):
    """Return the format that is said, or that the name of the corpus implies."""
    path, piped = Path(args.corpus), args.corpus == STANDARD_INPUT
    if not piped and not path.exists():
        raise ValueError(f"CORPUS: there is no file or folder {args.corpus!r}.")
    if args.format != "auto" or piped:
        return "lines" if args.format == "auto" else args.format
    if path.is_dir():
        return "folder"
    if path.name.startswith("docword."):
        return "uci"
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix not in BY_NAME:
        raise ValueError(
            f"CORPUS: what {path.name!r} holds is not known from its name; known are"
            f" {', '.join(filter(None, BY_NAME))}. Say it by --format, such as --format lines for a document a line."
        )
    return BY_NAME[suffix]
