"""The console script `skdplda`: a demo, private topics, their price, released models, attacks and audits."""

import argparse
import csv
import json
import math
import os
import sys
import warnings
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from skdplda._cli_attack import add_attack_commands
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.models import PrivateCGSLDA
from skdplda.releases import load_released

__all__ = ["main"]

SURE = 4  # standard deviations of noise that a count must exceed to be shown without doubt
USAGE_ERROR, INTERRUPTED = 2, 130
MECHANISMS = ("gaussian", "laplace", "inherent", "laplace-first", "laplace-every", "laplace-last")
SEED = "an integer of at least 0"
FORMATS = ("auto", "lines", "folder", "jsonl", "csv", "uci")
OUTPUTS = ("topics.npz", "top_words.csv", "privacy.txt", "privacy.json")
NO_VOCABULARY = (
    "--vocabulary is needed: a file of words that is public, one a line. Words taken from the documents would tell"
    " which words occur in them, and no noise would hide it. Use --leaky-vocabulary N to take the N most frequent"
    " words all the same."
)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors take one line."""

    def error(self, message):
        self.exit(USAGE_ERROR, f"{self.prog}: error: {message}\n")


def main(argv=None):
    """Run the console script.

    Parameters
    ----------
    argv : list of str, default=None
        Arguments; None takes those of the process.

    Returns
    -------
    code : int
        0, 2 for usage and bad input, 130 when interrupted.
    """
    args = _parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", PrivacyLeakWarning)
            warnings.showwarning = _show_warning
            args.run(args)
            sys.stdout.flush()
    except KeyboardInterrupt:
        print(f"\nskdplda: interrupted{_where_to_resume(args)}", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError, ImportError) as error:
        message = " ".join(str(error).split())
        print(f"skdplda {args.command}: error: {message}", file=sys.stderr)
        return USAGE_ERROR
    return 0


def _parser():
    """Return the parser of all commands."""
    parser = _Parser(prog="skdplda", description="Differentially private topic models.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"skdplda {version('skdplda')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="{demo,fit,cost,show,attack,audit}")

    whole = _number(int, "an integer of at least 1")
    price = _price_options(whole)

    demo = commands.add_parser("demo", help="what topics look like with and without privacy (about half a minute)")
    demo.add_argument("--output", default=".", metavar="DIR", help="folder of the picture (default: this one)")
    demo.add_argument("--seed", type=_number(int, SEED, least=0), metavar="N", help="make the noise repeatable")
    demo.set_defaults(run=_demo)

    fit = commands.add_parser("fit", parents=[price], help="private topics of a corpus")
    _corpus_options(fit, whole)
    fit.add_argument("--top-words", type=whole, default=10, metavar="N", help="words shown a topic (default: 10)")
    fit.add_argument("--output", default="skdplda_topics", metavar="DIR", help="new folder (default: skdplda_topics)")
    fit.add_argument("--checkpoint", metavar="FILE", help="resume from, and save to, FILE; as private as the data")
    fit.set_defaults(run=_fit)

    cost = commands.add_parser("cost", parents=[price], help="what a fit would promise, without data")
    cost.set_defaults(run=_cost)

    show = commands.add_parser("show", help="the model card of a released model")
    show.add_argument("file", help="written by ReleasedTopicModel.save")
    show.add_argument("--json", action="store_true", help="print JSON")
    show.set_defaults(run=_show)

    add_attack_commands(
        commands,
        prices=(_price_options(whole, required=False), price),
        corpus_options=lambda command: _corpus_options(command, whole),
        whole=whole,
        seed=_number(int, SEED, least=0),
        model=_model,
        read_corpus=_read_corpus,
    )
    return parser


def _price_options(whole, required=True):
    """Return a parser of what a private fit costs."""
    positive, share = _number(float, "a positive number, or inf"), _number(float, "a number above 0, at most 1", 1)
    price = argparse.ArgumentParser(add_help=False)
    price.add_argument(
        "--epsilon", type=positive, required=required, metavar="E", help="privacy loss of the whole fit; inf: no noise"
    )
    price.add_argument(
        "--delta",
        metavar="D",
        type=_number(float, "a number above 0, below 1", math.nextafter(1, 0)),
        help="probability of a larger loss, well below 1 / (public estimate of the number of documents);"
        " needed for Gaussian noise",
    )
    price.add_argument("--rounds", type=whole, metavar="T", help="noisy releases (default: 20, or 100 without noise)")
    price.add_argument("--mechanism", choices=MECHANISMS, default="gaussian", help="default: gaussian")
    price.add_argument(
        "--sampling-rate", type=share, default=1.0, metavar="Q", help="of documents a round (default: 1)"
    )
    price.add_argument("--json", action="store_true", help="print JSON")
    return price


def _corpus_options(command, whole):
    """Add what every command needs that reads a corpus."""
    command.add_argument(
        "corpus", help="text file (one document a line), folder of .txt, .jsonl, .csv, or UCI docword file"
    )
    command.add_argument("--format", choices=FORMATS, default="auto", help="of the corpus (default: by its name)")
    command.add_argument("--column", metavar="NAME", help="column or key of the text, for .csv and .jsonl")
    command.add_argument("--topics", type=whole, default=10, metavar="K", help="number of topics (default: 10)")
    words = command.add_mutually_exclusive_group()
    words.add_argument("--vocabulary", metavar="FILE", help="public words, one a line (for UCI: the vocab file)")
    words.add_argument("--leaky-vocabulary", type=whole, metavar="N", help="N most frequent words; NOT private")
    command.add_argument("--jobs", type=int, default=1, metavar="N", help="threads (default: 1; -1: all cores)")


def _number(kind, what, largest=math.inf, least=None):
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


def _demo(args):
    from skdplda._demo import run_demo

    run_demo(args.output, seed=args.seed)


def _model(args, **options):
    """Return the estimator, its parameters checked and its price known."""
    delta = args.delta
    if delta is None:
        if args.mechanism == "gaussian" and math.isfinite(args.epsilon):
            raise ValueError(
                "--delta is needed for Gaussian noise; choose it well below 1 / (public estimate of the number of"
                " documents), or use --mechanism laplace, which has none."
            )
        delta = 1e-5  # not used
    model = PrivateCGSLDA(
        epsilon=args.epsilon,
        delta=delta,
        mechanism=args.mechanism,
        max_iter=args.rounds,
        sampling_rate=args.sampling_rate,
        **options,
    )
    return model, model.privacy_cost()


def _cost(args):
    model, guarantee = _model(args)
    noise = model.noise_deviation()
    if args.json:
        print(json.dumps({"privacy": json.loads(guarantee.to_json()), "noise": noise}, indent=2))
        return
    print(guarantee)
    if noise:
        print(
            f"\nEach cell of the topic-word table gets noise of standard deviation {noise['first_round']:.4g} in the"
            f" first and {noise['last_round']:.4g} in the\nlast of {noise['rounds']} rounds; the model, which weighs"
            f" them, is left with {noise['in_model']:.4g}. Here a document of 25\ndifferent words counts each once,"
            " and every document weighs the same. A word stands out in a\ntopic where the corpus has it there clearly"
            " more often than that."
        )


def _show(args):
    print(load_released(args.file).card("json" if args.json else "markdown"), end="")


def _fit(args):
    model, guarantee = _model(
        args, n_components=args.topics, n_jobs=args.jobs, checkpoint=args.checkpoint, verbose=sys.stderr.isatty()
    )
    output = Path(args.output)
    if (output / OUTPUTS[0]).exists():
        raise ValueError(f"--output: {os.fspath(output)!r} already holds {OUTPUTS[0]}; give another folder.")
    X, words = _read_corpus(args)
    if not X.shape[0]:
        raise ValueError(f"CORPUS: {args.corpus!r} holds no documents.")
    if args.top_words > len(words):
        raise ValueError(f"--top-words must be at most the {len(words)} words of the vocabulary; got {args.top_words}.")
    output.mkdir(parents=True, exist_ok=True)
    print(f"{X.shape[0]:,} documents, {X.sum():,} tokens of {len(words):,} words (not released)", file=sys.stderr)
    model.fit(X)
    guarantee = model.privacy_guarantee_
    if args.leaky_vocabulary:
        leak = f"the vocabulary: the {len(words)} most frequent words were taken from the documents without noise"
        others = (item for item in guarantee.not_covered if not item.startswith("the vocabulary"))
        guarantee = replace(guarantee, not_covered=(leak, *others))
    top = model.top_words(args.top_words, words)
    _save(output, model, words, top, guarantee)
    if args.json:
        files = {name: os.fspath((output / name).resolve()) for name in OUTPUTS}
        report = {
            "top_words": top.to_numpy().tolist(),
            "privacy": json.loads(guarantee.to_json()),
            "noise": model.noise_deviation(),
            "files": files,
        }
        print(json.dumps(report, indent=2))
        return
    _print_topics(model, top)
    print(f"\n{guarantee}\n\nSaved {', '.join(OUTPUTS)} to {output.resolve()}")


def _print_topics(model, top):
    """Print the top words, those that noise alone could have brought up in parentheses: post-processing."""
    import numpy as np

    noise = model.noise_deviation()
    least = SURE * noise["in_model"] if noise else 0.0
    weights = -np.sort(-model.components_, axis=1)
    for topic, row in enumerate(top.to_numpy()):
        shown = (word if weight > least else f"({word})" for word, weight in zip(row, weights[topic], strict=False))
        print(f"topic {topic:<3}  {' '.join(shown)}")
    if (weights[:, : top.shape[1]] <= least).any():
        print(
            f"\nWords in parentheses may be noise: their count is below {least:.4g}, {SURE} standard deviations of it."
        )


def _save(output, model, words, top, guarantee):
    """Write the released values and what was promised; nothing else of the fit."""
    import numpy as np

    np.savez(output / OUTPUTS[0], components=model.components_, feature_names=np.array(words, dtype=str))
    top.columns = [f"word_{place}" for place in range(1, top.shape[1] + 1)]
    top.reset_index(drop=True).to_csv(output / OUTPUTS[1], index_label="topic")
    (output / OUTPUTS[2]).write_text(f"{guarantee}\n", encoding="utf-8")
    (output / OUTPUTS[3]).write_text(f"{guarantee.to_json()}\n", encoding="utf-8")


def _read_corpus(args):
    """Return the counts of a corpus and its words."""
    path = Path(args.corpus)
    if not path.exists():
        raise ValueError(f"CORPUS: there is no file or folder {args.corpus!r}.")
    form = _format(path) if args.format == "auto" else args.format
    if form == "uci":
        from skdplda.datasets import load_uci_bow

        if args.vocabulary is None:
            raise ValueError("--vocabulary is needed: a UCI docword file names words by number; give its vocab file.")
        corpus = load_uci_bow(path, args.vocabulary)
        return corpus.data, corpus.feature_names
    if args.vocabulary is None and args.leaky_vocabulary is None:
        raise ValueError(NO_VOCABULARY)
    from sklearn.feature_extraction.text import CountVectorizer

    if args.vocabulary is None:
        warnings.warn(
            f"--leaky-vocabulary takes the {args.leaky_vocabulary} most frequent words from the documents without"
            " noise: the guarantee does not cover which words these are.",
            PrivacyLeakWarning,
            stacklevel=1,
        )
        vectorizer = CountVectorizer(stop_words="english", max_features=args.leaky_vocabulary)
    else:
        vectorizer = CountVectorizer(vocabulary=_read_words(args.vocabulary))
    X = vectorizer.fit_transform(_documents(path, form, args.column))
    return X, vectorizer.get_feature_names_out()


def _format(path):
    """Return the format that a path's name tells."""
    if path.is_dir():
        return "folder"
    if path.name.startswith("docword."):
        return "uci"
    return {".jsonl": "jsonl", ".csv": "csv"}.get(path.suffix, "lines")


def _read_words(path):
    """Return the distinct words of a vocabulary file, lower case, in its order."""
    lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    words = list(dict.fromkeys(line.strip().lower() for line in lines if line.strip()))
    if not words:
        raise ValueError(f"--vocabulary: {path!r} holds no words.")
    return words


def _documents(path, form, column):
    """Yield the text of each document."""
    if form == "folder":
        files = sorted(path.rglob("*.txt"))
        if not files:
            raise ValueError(f"CORPUS: the folder {os.fspath(path)!r} holds no .txt files.")
        for file in files:
            yield file.read_text(encoding="utf-8-sig")
        return
    if form in ("jsonl", "csv") and column is None:
        raise ValueError(f"--column is needed for a .{form} file: the name of its text.")
    with path.open(encoding="utf-8-sig", newline="" if form == "csv" else None) as file:
        if form == "lines":
            yield from (line for line in file if line.strip())
        elif form == "csv":
            csv.field_size_limit(2**31 - 1)
            rows = csv.DictReader(file)
            if column not in (rows.fieldnames or ()):
                raise ValueError(f"--column must be one of {rows.fieldnames or []}; got {column!r}.")
            yield from (row[column] or "" for row in rows)
        else:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _json_text(path, number, line, column)


def _json_text(path, number, line, column):
    """Return the text of one JSON line."""
    try:
        text = json.loads(line)[column]
    except (ValueError, KeyError, TypeError):
        text = None
    if not isinstance(text, str):
        raise ValueError(f"CORPUS: {path}, line {number}: must be a JSON object with text under --column {column!r}.")
    return text


def _where_to_resume(args):
    """Return the end of the sentence that an interrupted user reads."""
    directory = getattr(args, "directory", None)
    if directory is not None:
        return f"; the models trained are in {directory}: run the same command to go on. It is as private as the data."
    checkpoint = getattr(args, "checkpoint", None)
    if checkpoint is None:
        return "; nothing was saved."
    if not os.path.exists(checkpoint):
        return f"; the checkpoint {checkpoint} was not written yet."
    return f"; the rounds done are in {checkpoint}: run the same command to go on. It is as private as the data."


def _show_warning(message, category, filename, lineno, file=None, line=None):
    print(f"skdplda: warning: {' '.join(str(message).split())}", file=sys.stderr)
