"""The command `insights`: what users talk about, as one page, from texts and public word vectors."""

import json
import math
import zipfile

import numpy as np
from sklearn.base import clone

from skdplda._files import DAMAGE
from skdplda.cli._corpus import Texts, add_corpus, add_private_words, read_words
from skdplda.cli._ledger import add_charge, charging
from skdplda.cli._models import add_overwrite, add_report
from skdplda.cli._numbers import below_one, positive, whole
from skdplda.cli._paths import refuse_output, refuse_page, with_cards
from skdplda.models import count_labels
from skdplda.releases import make_insights_pipeline, privacy_guarantee, release
from skdplda.reports import report
from skdplda.semantics import WordVectorEmbedder

MOST_VECTORS = 200_000  # rows of a text file that are read
BATCH = 1000  # texts looked at at a time


def add_insights(command):
    """Add the arguments of `insights`."""
    documents = add_corpus(command)
    documents.add_argument("--users", metavar="NAME", help="of the author: protects all that one wrote")
    command.add_argument(
        "--vectors",
        required=True,
        metavar="FILE",
        help="public word vectors, most frequent words first: text, one word and its numbers a line (GloVe, word2vec),"
        " or .npz with words and vectors",
    )
    words = command.add_mutually_exclusive_group()
    words.add_argument(
        "--vocabulary",
        metavar="FILE",
        help="public words, or phrases, one a line (default: the most frequent words of --vectors)",
    )
    add_private_words(words, 0.2)
    command.add_argument("--epsilon", type=positive, required=True, metavar="E", help="privacy loss of the whole")
    command.add_argument(
        "--delta",
        type=below_one,
        metavar="D",
        help="probability of a larger loss, well below 1 / (public estimate of the number of users, or texts); none"
        " where labels are counted",
    )
    command.add_argument(
        "--labels",
        metavar="FILE",
        help="count these public labels, one a line, in place of clusters; a text has the nearest, or is other",
    )
    command.add_argument(
        "--labels-per-unit", type=whole, default=1, metavar="M", help="labels a user, or text, counts for (default: 1)"
    )
    command.add_argument("--clusters", type=whole, default=20, metavar="K", help="number of clusters (default: 20)")
    add_report(command, required=True)
    command.add_argument(
        "--release", metavar="FILE", help=".zip file of the clusters, to place other texts; its cards beside it"
    )
    command.add_argument("--title", default="What the texts are about", metavar="TEXT", help="heading of the page")
    add_overwrite(command)
    add_charge(command)
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_insights)


def read_vectors(path):
    """Return (words, vectors) of a file: GloVe's or word2vec's text format, or .npz; nothing in it is executed."""
    try:
        if zipfile.is_zipfile(path):
            with np.load(path, allow_pickle=False) as archive:
                words, vectors = archive["words"], archive["vectors"].astype(np.float32)
            words = str(words).split("\n") if words.ndim == 0 else [str(word) for word in words]
            if vectors.ndim != 2 or len(vectors) != len(words) or not words:
                raise ValueError(f"{len(words)} words need as many rows of vectors; got shape {vectors.shape}")
            if not (finite := np.isfinite(vectors).all(axis=1)).all():
                raise ValueError(f"row {finite.argmin()} of vectors, counted from 0, has a number that is not finite")
            return words, vectors
        words, rows = [], []
        with open(path, encoding="utf-8", errors="replace") as file:
            for place, line in enumerate(file, start=1):
                word, *numbers = line.rstrip("\n").split(" ")
                numbers = [value for value in numbers if value]
                if not words and len(numbers) == 1 and word.isdigit():
                    continue  # word2vec: how many words and numbers follow
                if rows and len(numbers) != len(rows[0]):
                    raise ValueError(f"line {place} has {len(numbers)} numbers, others have {len(rows[0])}")
                words.append(word)
                rows.append(np.array(numbers, np.float32))
                if not np.isfinite(rows[-1]).all():
                    raise ValueError(f"line {place} has a number that is not finite")
                if len(rows) == MOST_VECTORS:
                    break
        if not rows:
            raise ValueError("it is empty")
        return words, np.stack(rows)
    except (OSError, *DAMAGE) as error:
        said = getattr(error, "strerror", None) or error
        raise ValueError(f"--vectors: {path!r} cannot be read: {said}.") from None


def distinct(words, vectors):
    """Return words and vectors without repetitions of words in lower case: the first, most frequent, stays."""
    first = {}
    for row, word in enumerate(words):
        first.setdefault(word.lower(), row)
    return list(first), vectors[list(first.values())]


def refuse_foreign(texts, steps):
    """Refuse texts of which no word has a vector, or none is of --vocabulary, as `refuse_empty` does, at its risk.

    Most often the first texts settle it, and no others are read.
    """
    vectorizer = steps.vectorizer
    needed = [(steps.embedder.transform, "has a vector: --vectors")]
    if vectorizer.public_vocabulary is not None:
        counter = clone(vectorizer).fit(None)
        needed.append((lambda some: counter.transform(some).data, "is in the vocabulary: --vocabulary"))
    for rows_of, what in needed:
        if texts and not any(rows_of(texts[i : i + BATCH]).any() for i in range(0, len(texts), BATCH)):
            raise ValueError(
                f"no word of the documents {what} may be of another language, or --column or --format those of"
                " another corpus; nothing was spent."
            )


def refuse_release(args):
    """Refuse a --release that could not be written, before any budget is spent."""
    if args.release is None:
        return
    if not math.isfinite(args.epsilon):
        raise ValueError("--release needs a finite --epsilon: without noise nothing protects what the file says.")
    refuse_output(args, "--release", *with_cards(args.release))


def _insights(args):
    documents = Texts(args)
    if documents.form == "uci":
        raise ValueError("CORPUS: a UCI docword file has counts of words, and no texts to embed.")
    if (args.labels is None) == (args.delta is None):
        raise ValueError("--delta is needed, but for --labels, whose counts have a pure epsilon.")
    refuse_page(args)
    refuse_release(args)
    embedder = WordVectorEmbedder(distinct(*read_vectors(args.vectors)))
    if args.labels is not None:
        _count_labels(args, documents, embedder)
        return
    words = "embedder"
    if args.private_words is not None:
        words = None
    elif args.vocabulary is not None:
        words = list(read_words(args.vocabulary))
    pipeline = make_insights_pipeline(
        args.epsilon,
        args.delta,
        embedder=embedder,
        n_components=args.clusters,
        public_vocabulary=words,
        vocabulary_share=args.private_words or 0.2,
        groups=args.users is not None,
    )
    with charging(args, *(step.privacy_cost(groups=args.users is not None) for _, step in pipeline.steps)):
        texts = list(documents)
        refuse_foreign(texts, pipeline[0])
        pipeline.fit(texts, groups=documents.users)
    _show(args, pipeline)


def _count_labels(args, documents, embedder):
    """Count public labels in place of clusters."""
    labels = list(read_words(args.labels))
    with charging(args):
        texts, given = list(documents), {"epsilon": args.epsilon, "most": args.labels_per_unit}
        found = count_labels(texts, labels, embedder=embedder, groups=documents.users, **given)
    page, info = report(found, args.report, title=args.title), found.table()
    if args.release is not None:
        found.save(args.release, overwrite=args.overwrite)
    if args.json:
        rows = json.loads(info.reset_index().to_json(orient="records"))
        print(json.dumps({"privacy": json.loads(found.privacy_guarantee_.to_json()), "labels": rows}, indent=2))
        return
    for label, row in info.iterrows():
        mark = "" if row["clear"] else "  (may be noise)"
        print(f"{row['count']:10.0f} +- {2 * row['deviation']:.0f}: {label}{mark}")
    print("\n".join(filter(None, [f"\n{found.privacy_guarantee_!r}", str(page), args.release])))


def _show(args, pipeline):
    model = pipeline[-1]
    if args.release is not None:
        release(pipeline).save(args.release, overwrite=args.overwrite)
    page = report(pipeline, args.report, title=args.title)
    info, guarantee = model.topic_info(min(10, model.topic_word_.shape[1])), privacy_guarantee(pipeline)
    if args.json:
        rows = json.loads(info.to_json(orient="records"))
        print(json.dumps({"privacy": json.loads(guarantee.to_json()), "clusters": rows}, indent=2))
        return
    words = model.top_words(len(info["words"][0]), mark_noise=True).to_numpy()
    info, below = info.assign(words=list(words)), ~model._clear_clusters()
    size = "documents" if args.users is None else "weight"
    whole = max(info[size].clip(lower=0).sum(), 1e-9)
    for _, row in info.sort_values(size, ascending=False).iterrows():
        found, error = row[size], 2 * row[f"{size}_deviation"]
        printed = f"{found:10.0f} +- {error:.0f} texts"
        if args.users is not None:
            printed = f"{found / whole:10.1%} +- {error / whole:.1%} of the weight of users"
        print(f"{printed}: {', '.join(row['words'])}")
    if args.users is not None:
        print("\nA weight is no number of users: what one user adds to all clusters together is bounded.")
    if below.any():
        print(
            f"\n{below.sum()} of {len(info)} clusters do not stand out of the noise, by their sizes. Do not"
            " interpret them."
        )
    if any(str(word).startswith("(") for word in words.flat):
        print("\nWords in parentheses do not stand out of the noise in their cluster.")
    print("\n".join(filter(None, [f"\n{guarantee!r}", str(page), args.release])))
