"""The commands that fit, release and use a model."""

import csv
import hashlib
import io
import json
import math
import os
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from skdplda._files import PRIVATE, whole_file
from skdplda.cli._corpus import (
    TABLES,
    Texts,
    add_corpus,
    add_private_words,
    add_vocabulary,
    form_of_corpus,
    public_words,
    read_uci,
    refuse_empty,
)
from skdplda.cli._cost import add_price, chosen, lacks_delta
from skdplda.cli._ledger import add_charge, charging
from skdplda.cli._numbers import number, whole
from skdplda.cli._paths import OUTPUTS, model_file, refuse_files, refuse_output, refuse_page, with_cards, words_file
from skdplda.model_selection import suggest_n_components
from skdplda.models import VIPSLDA, PrivateCGSLDA
from skdplda.privacy import PrivacyAccountant
from skdplda.releases import FACTS, ReleasedTopicModel, load_released, make_fdptm_pipeline, privacy_guarantee, release
from skdplda.reports import report

MODELS = {"cgs": PrivateCGSLDA, "vips": VIPSLDA}
LEAK = "the vocabulary: the {} most frequent words were taken from the documents without noise"
WORDS_PER_DOCUMENT = 40  # a guess, of which the suggested number of topics has the fourth root
BATCH = 1000  # documents transformed at a time
CURATOR = "topic proportions of a private document are that document's data: no guarantee covers publishing them."


def add_fit(fit):
    """Add the arguments of `fit`."""
    documents = add_corpus(fit)
    documents.add_argument(
        "--users",
        metavar="NAME",
        help="column or key of the author, for tables: protects all that one wrote",
    )
    add_private_words(add_vocabulary(fit), 0.4)
    add_price(fit)
    fit.add_argument(
        "--topics",
        type=topics,
        default=10,
        metavar="K",
        help="number of topics (default: 10); suggest: as many as survive the noise, for so many --documents",
    )
    fit.add_argument(
        "--documents",
        type=whole,
        metavar="N",
        help="public estimate of the number of documents, of users with --users; for --topics suggest",
    )
    fit.add_argument("--top-words", type=whole, default=10, metavar="N", help="words shown a topic (default: 10)")
    fit.add_argument("--output", default="skdplda_topics", metavar="DIR", help="folder (default: skdplda_topics)")
    add_report(fit)
    add_overwrite(fit)
    add_charge(fit)
    fit.add_argument("--checkpoint", metavar="FILE", help="resume from, and save to, FILE; as private as the data")
    add_jobs(fit)
    fit.add_argument("--json", action="store_true", help="print JSON")
    fit.set_defaults(run=_fit)


def topics(text):
    """Return a number of topics, or "suggest"."""
    return text if text == "suggest" else number(int, "an integer of at least 1, or suggest")(text)


def add_jobs(command):
    """Add the number of threads."""
    command.add_argument("--jobs", type=int, default=1, metavar="N", help="threads (default: 1; -1: all cores)")


def add_overwrite(command):
    """Add the permission to replace what a command would write anew."""
    command.add_argument("--overwrite", action="store_true", help="replace files of these names that are there")


def add_report(command, **options):
    """Add the page that shows a model to people."""
    command.add_argument("--report", metavar="PAGE", help="the page to write, .html", **options)


STORED = {"metavar": "MODEL", "help": "released model (.zip), or the folder that fit wrote"}


def add_top_words(top):
    """Add the arguments of `top-words`."""
    top.add_argument("model_path", **STORED)
    top.add_argument("-n", "--number", type=whole, default=10, metavar="N", help="words a topic (default: 10)")
    top.add_argument("--json", action="store_true", help="print JSON")
    top.set_defaults(run=_top_words)


def add_show(show):
    """Add the arguments of `show`."""
    show.add_argument("model_path", **STORED)
    forms = show.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="print JSON")
    forms.add_argument("--registry", action="store_true", help="print an entry for the registry of deployments")
    show.set_defaults(run=_show)


def add_release(publish):
    """Add the arguments of `release`."""
    publish.add_argument("model_path", **STORED)
    publish.add_argument("output", metavar="FILE", help=".zip file; its cards are written beside it")
    add_report(publish)
    add_overwrite(publish)
    for fact, told in FACTS.items():
        publish.add_argument(f"--{fact}", metavar="TEXT", help=f"for the card: {told}")
    publish.add_argument("--ledger", metavar="FILE", help="of the same data: the card lists what was released before")
    publish.add_argument(
        "--allow-unproven", action="store_true", help="although nothing proven covers it; the card will say so"
    )
    publish.add_argument("--json", action="store_true", help="print JSON")
    publish.set_defaults(run=_release)


def add_transform(transform):
    """Add the arguments of `transform`."""
    transform.add_argument("model_path", **STORED)
    documents = add_corpus(transform)
    documents.add_argument("--vocabulary", metavar="FILE", help="for UCI: the vocab file")
    documents.add_argument("--id", metavar="NAME", help="column or key that names a document (default: its number)")
    transform.add_argument(
        "--output", metavar="FILE", help="new file, readable by you alone (default: the standard output)"
    )
    add_jobs(transform)
    transform.add_argument("--json", action="store_true", help="write JSON lines instead of CSV")
    transform.set_defaults(run=_transform)


def make_model(args, **options):
    """Return the estimator, its parameters checked and its price known; options of cgs alone choose it."""
    name, chosen_options = chosen(args)
    model = MODELS[name](**chosen_options, **options)
    return model, model.privacy_cost()


def _refuse_incomplete(args):
    """Name all that is missing at once, where that is more than one option; one is named where it is needed."""
    words = (args.vocabulary, args.leaky_vocabulary, args.private_words)
    missing = {
        "--delta D, well below 1 / (public estimate of the number of documents)": lacks_delta(args),
        "--column NAME, of the text": args.column is None and form_of_corpus(args) in TABLES,
        "words: --private-words, or --vocabulary FILE": all(option is None for option in words),
    }
    if sum(missing.values()) > 1:
        raise ValueError(f"these are needed, too: {'; '.join(option for option in missing if missing[option])}.")


def _fit(args):
    _refuse_incomplete(args)
    options = {"n_jobs": args.jobs, "checkpoint": args.checkpoint, "verbose": sys.stderr.isatty()}
    suggest = args.topics == "suggest"
    if not suggest and args.documents is not None:
        raise ValueError("--documents is for --topics suggest, which asks how many topics survive the noise.")
    if suggest and (
        args.documents is None or not math.isfinite(args.epsilon) or args.mechanism not in (None, "gaussian")
    ):
        raise ValueError(
            "--topics suggest needs --documents N, a public estimate of their number, a finite --epsilon and Gaussian"
            " noise."
        )
    model, _ = make_model(args, **options, **({} if suggest else {"n_components": args.topics}))
    output = Path(args.output)
    if os.path.lexists(output) and not output.is_dir():
        raise ValueError(f"--output: {args.output!r} is no folder; give another name.")
    refuse_files(args, "--output", [output / name for name in OUTPUTS])
    refuse_page(args)
    with charging(args, *_costs(args, model)):
        _fit_and_save(args, model, output, suggest)


def _costs(args, model):
    """Return what a fit will charge; nothing if it may be one that was interrupted, and has paid."""
    if args.checkpoint is not None and (os.path.exists(args.checkpoint) or words_file(args.checkpoint).exists()):
        return []
    groups = args.users is not None
    steps = [model] if args.private_words is None else _private_words(args, model)
    return [step.privacy_cost(groups=groups) for step in steps]


def _fit_and_save(args, model, output, suggest):
    X, words, users, vectorizer, model = _counts(args, model)
    if not X.shape[0]:
        raise ValueError(f"CORPUS: {args.corpus!r} holds no documents.")
    if suggest:
        length = min(WORDS_PER_DOCUMENT, len(words))
        suggestion = suggest_n_components(model.epsilon, model.delta, args.documents, length, len(words))
        model.set_params(n_components=suggestion.n_components)
        print(f"{suggestion.n_components} topics are suggested", file=sys.stderr)
    output.mkdir(parents=True, exist_ok=True)
    print(f"{X.shape[0]:,} documents, {X.sum():,} tokens of {len(words):,} words (not released)", file=sys.stderr)
    model.fit(X, groups=users)
    released = _released(args, vectorizer, model, words)
    top, shown = (released.top_words(args.top_words, mark_noise=mark) for mark in (False, True))
    _save(output, released, top)
    page = _page(args, released)
    if args.checkpoint is not None:
        words_file(args.checkpoint).unlink(missing_ok=True)
    guarantee = released.privacy_guarantee_
    if args.json:
        files = {name: os.fspath((output / name).resolve()) for name in OUTPUTS} | page
        printed = {
            "top_words": top.to_numpy().tolist(),
            "privacy": json.loads(guarantee.to_json()),
            "noise": model.noise_deviation(),
            "files": files,
        }
        print(json.dumps(printed, indent=2))
        return
    _print_topics(shown, top)
    print(f"\n{guarantee}\n\nSaved {', '.join(OUTPUTS)} to {output.resolve()}")
    for path in page.values():
        print(f"Saved the page {path}")


def _counts(args, model):
    """Return counts, words, users or None, the vectorizer or None, and the model, all within the budget."""
    documents = Texts(args)
    if documents.form == "uci":
        if args.private_words is not None:
            raise ValueError("--private-words needs texts; the words of a UCI corpus are given by its vocab file.")
        return *read_uci(args), None, None, model
    if args.private_words is None:
        vectorizer = public_words(args, documents)
        X = vectorizer.transform(documents)
        refuse_empty(X)
    else:
        vectorizer, model = _private_words(args, model)
        texts = list(documents)
        X = _select_words(args, vectorizer, texts, documents.users)
    return X, vectorizer.get_feature_names_out(), documents.users, vectorizer, model


def _select_words(args, vectorizer, texts, users):
    """Fit the vectorizer and count; with a checkpoint, an interrupted run's words are kept: it has paid for one choice.

    The file holds released values, but also a digest of the documents, and so is as private as the checkpoint.
    """
    import numpy as np

    if args.checkpoint is None:
        return vectorizer.fit_transform(texts, groups=users)
    ledger = None if args.ledger is None else os.path.realpath(args.ledger)
    path, settings = words_file(args.checkpoint), sorted(vectorizer.get_params().items())
    identity = hashlib.sha256(json.dumps([str(settings), texts, users]).encode()).hexdigest()
    if path.exists():
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            same, words, weights = kept["identity"] == identity, kept["words"], kept["weights"]
            run, paid = str(kept["run"]), kept["ledger"]
        except (ValueError, KeyError, TypeError):
            raise ValueError(
                f"--checkpoint: {os.fspath(path)!r} is damaged and left as it is; give another name to start anew."
            ) from None
        if not same:
            raise ValueError(
                f"--checkpoint: {os.fspath(path)!r} belongs to a fit with other parameters or other data, and is left"
                " as it is; give another name."
            )
        if paid != ledger:  # which has not paid for them, or once only
            vectorizer._budget_charge("document" if users is None else "user", run).charge(run)
        vectorizer.vocabulary_ = {word: column for column, word in enumerate(words)}
        vectorizer.noisy_weights_ = np.array(weights)
        vectorizer.privacy_guarantee_ = vectorizer.privacy_cost(groups=users is not None)
    else:
        if os.path.exists(args.checkpoint):
            raise ValueError(
                f"--checkpoint: {args.checkpoint!r} is of a fit that has not chosen its words, or has lost"
                f" {os.fspath(path)!r}. It was left as it is: give another name to start anew. Nothing was spent."
            )
        vectorizer.fit(texts, groups=users)
        words, weights = list(vectorizer.vocabulary_), getattr(vectorizer, "noisy_weights_", np.zeros(0)).tolist()
        with whole_file(path, mode=0o600) as file:
            kept = {"identity": identity, "run": uuid4().hex, "ledger": ledger, "words": words, "weights": weights}
            file.write(json.dumps(kept).encode())
    return vectorizer.transform(texts)


def _private_words(args, model):
    """Return an unfitted vectorizer and model that share the budget."""
    if args.delta is None:
        raise ValueError("--delta is needed for --private-words: no word could be released without it.")
    pipeline = make_fdptm_pipeline(
        args.epsilon,
        args.delta,
        vocabulary_share=args.private_words,
        model=model,
        groups=args.users is not None,
    )
    return pipeline["words"], pipeline["topics"]


def _released(args, vectorizer, model, words):
    """Return what a fit releases, with the guarantee of words and topics together."""
    from sklearn.pipeline import make_pipeline

    if vectorizer is None:
        return release(model, feature_names=words, allow_unproven=True)
    found = release(make_pipeline(vectorizer, model), allow_unproven=True)
    if not args.leaky_vocabulary:
        return found
    guarantee = privacy_guarantee(model)
    others = (item for item in guarantee.not_covered if not item.startswith("the vocabulary"))
    return ReleasedTopicModel(
        found.topic_word_,
        found.vocabulary_,
        privacy_guarantee=replace(guarantee, not_covered=(LEAK.format(len(words)), *others)),
        doc_topic_prior=found.doc_topic_prior_,
        text=found.text_,
        details={**found.details_, "leaky_vocabulary": True},
        topic_sizes=found.topic_sizes_,
        topic_names=found.topic_names_,
        signal_to_noise=found.signal_to_noise_,
    )


def _page(args, released):
    """Write the page of --report; return its path by the name that JSON has for it."""
    return {} if args.report is None else {"report": os.fspath(report(released, args.report).resolve())}


def _print_topics(shown, top):
    """Print the words of `top` as they are in `shown`, which has parentheses where they do not stand out of noise."""
    for topic, row in enumerate(shown.to_numpy()):
        print(f"topic {topic:<3}  {' '.join(map(one_line, row))}")
    if (shown.to_numpy() != top.to_numpy()).any():
        print("\nWords in parentheses do not stand out of the noise in their topic.")


def _save(output, released, top):
    """Write the released values and the guarantee; nothing else of the fit."""
    guarantee = released.privacy_guarantee_
    released.save(output / OUTPUTS[0], card=False, overwrite=True)  # `refuse_files` has looked
    top.columns = [f"word_{place}" for place in range(1, top.shape[1] + 1)]
    table = top.reset_index(drop=True).to_csv(index_label="topic")
    for name, text in zip(OUTPUTS[1:], (table, f"{guarantee}\n", f"{guarantee.to_json()}\n"), strict=True):
        with whole_file(output / name) as file:
            file.write(text.encode())


def one_line(word):
    """Write a word, or an n-gram of characters, so that it stays in its line."""
    return " ".join(word.split())


def _load(path):
    """Return the model of a file, or of the folder of a fit."""
    return load_released(model_file(path))


def _top_words(args):
    model = _load(args.model_path)
    top = model.top_words(args.number)
    if args.json:
        print(json.dumps(top.to_numpy().tolist()))
        return
    _print_topics(model.top_words(args.number, mark_noise=True), top)


def _show(args):
    form = "json" if args.json else "registry" if args.registry else "markdown"
    print(_load(args.model_path).card(form), end="")


def _release(args):
    model, output = _load(args.model_path), Path(args.output)
    guarantee = model.privacy_guarantee_
    files = with_cards(output)
    refuse_output(args, "FILE", *files)
    refuse_page(args)
    if not args.allow_unproven:
        if guarantee.status != "proven" or not math.isfinite(guarantee.epsilon):
            raise ValueError(
                f"no proven, finite guarantee covers this model ({guarantee!r}). Fit a proven mechanism with a finite"
                " --epsilon, or use --allow-unproven; the model card will say it."
            )
        if model.details_.get("leaky_vocabulary"):
            raise ValueError(
                f"{guarantee.not_covered[0]}. Fit with --vocabulary or --private-words, or use --allow-unproven; the"
                " model card will say it."
            )
    facts = {fact: getattr(args, fact) for fact in FACTS if getattr(args, fact) is not None}
    ledger = None if args.ledger is None else PrivacyAccountant.open(args.ledger)
    model.describe(ledger=ledger, **facts).save(output, overwrite=args.overwrite)
    files = [*(os.fspath(file.resolve()) for file in files), *_page(args, model).values()]
    if args.json:
        print(json.dumps({"files": files, "privacy": json.loads(guarantee.to_json())}, indent=2))
        return
    print("\n".join([*files, repr(guarantee)]))


def _transform(args):
    model = _load(args.model_path).set_params(n_jobs=args.jobs)
    if args.output is not None and os.path.lexists(args.output):
        raise ValueError(f"--output: {args.output!r} is there already; give another name.")
    documents = Texts(args)
    if documents.form == "uci":
        batches = _uci_batches(args, model)
    else:
        model.make_vectorizer()  # says what is missing of a model that takes counts only
        batches = documents.batches(BATCH)
    print(f"skdplda: note: {CURATOR}", file=sys.stderr)
    columns = None if args.json else ["document", *(f"topic_{topic}" for topic in range(len(model.topic_word_)))]
    with nullcontext() if args.output is None else whole_file(args.output, PRIVATE) as file:
        for names, X in batches:
            text = _rows(names, model.transform(X), columns)
            columns = columns and []  # the first batch has the names of the columns, the others have none
            if file is None:
                sys.stdout.write(text)
            else:
                file.write(text.encode())


def _rows(names, doc_topic, columns):
    """Return lines of JSON (no columns) or of CSV, beginning with the columns."""
    if columns is None:
        rows = zip(names, doc_topic.tolist(), strict=True)
        return "".join(f"{json.dumps({'document': name, 'topics': row})}\n" for name, row in rows)
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerows([columns] if columns else [])
    writer.writerows([name, *(f"{share:.6g}" for share in row)] for name, row in zip(names, doc_topic, strict=True))
    return lines.getvalue()


def _uci_batches(args, model):
    """Yield (numbers, counts) with the columns of the model."""
    import numpy as np
    import scipy.sparse as sp

    X, words = read_uci(args)
    if model.vocabulary_ is None:
        raise ValueError("this model was released without words: nothing tells which column of the corpus is which.")
    column = {word: place for place, word in enumerate(model.vocabulary_)}
    kept = [place for place, word in enumerate(words) if word in column]
    if not kept:
        raise ValueError("--vocabulary: no word of the corpus is a word of the model.")
    places = [column[words[place]] for place in kept]
    to_model = sp.csr_array((np.ones(len(kept), int), (kept, places)), shape=(X.shape[1], len(column)))
    for start in range(0, X.shape[0], BATCH):
        rows = sp.csr_array(X[start : start + BATCH]) @ to_model
        yield list(range(start, start + rows.shape[0])), rows
