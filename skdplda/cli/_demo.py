"""What `skdplda demo` shows: real text without and with noise, and a corpus large enough for privacy."""

import math
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from skdplda.cli._numbers import seed
from skdplda.datasets import frequent_words, load_lee, topic_recovery
from skdplda.exceptions import NoisyTopicsWarning, PrivacyLeakWarning
from skdplda.metrics import coherence, unigram_perplexity
from skdplda.models import PrivateCGSLDA
from skdplda.plots import PrivacyUtilityDisplay, TopWordsDisplay
from skdplda.reports import report

# Sizes that take less than half a minute; epsilons that show the whole range, from useless to as good as without noise.
N_TOPICS, N_WORDS = 5, 300
LEE_WORDS = r"\b[^\W\d_]{3,}\b"  # cut as in the corpus of the second part
STOP_WORDS = sorted({*ENGLISH_STOP_WORDS, "said", "says"})
LEE_EPSILONS = (20.0, 10.0)
PLANTED_EPSILONS = (0.1, 0.5, 2.0, 5.0)
SHOWN_EPSILON, REPEATS = 5.0, 3
# Per cent of the gain kept by thirty single fits, each with fresh noise: least, mean and most. At 0.5 nine of them held
# two topics in one and kept 78 to 89; README.md has these numbers, and a test holds both to what a fit keeps.
KEPT = {0.1: (54, 67, 77), 0.5: (78, 91, 95)}
N_DOCUMENTS, MEAN_LENGTH, TEST_DOCUMENTS = 20_000, 30, 2_000
PICTURE, PAGE = "skdplda_demo.png", "topics.html"
CELL = 33  # characters of a column of words


def add_demo(command):
    """Add the arguments of `demo`."""
    command.add_argument("--output", default=".", metavar="DIR", help="folder of the picture (default: this one)")
    command.add_argument("--seed", type=seed, metavar="N", help="make the noise repeatable")
    command.set_defaults(run=lambda args: run_demo(args.output, seed=args.seed) and None)


def run_demo(output=".", *, seed=None, n_documents=N_DOCUMENTS, n_jobs=-1):
    """Fit, compare, print and draw; return the path of the picture; a page of topics is beside it, in `output`.

    `seed` is that of all noise: None takes the system's entropy, as a release must. Documents and fits without noise
    never change. The models do not depend on `n_jobs`.
    """
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    options = {"random_state": seed, "n_jobs": n_jobs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)  # said once, in words, below
        warnings.simplefilter("ignore", NoisyTopicsWarning)  # which the demo is about
        words, topics = _real_text(options)
        shown, curve = _planted_corpus(words, topics, n_documents, options)
    print(f"\nPrivacy statement of the fit at epsilon = {SHOWN_EPSILON:g}\n\n{shown.privacy_guarantee_}\n")
    if seed is not None:
        print(f"All noise came from --seed {seed}, to be repeatable. Never fix a seed for a model that you release.")
    print("The demo fits many models on one corpus. On private data every fit spends its own epsilon.")
    picture = output / PICTURE
    _progress(f"drawing {picture}")
    _draw(shown, words, curve, picture)
    title = f"Demo: topics of {n_documents:,} synthetic documents"
    page = report(shown, output / PAGE, feature_names=words, title=title)
    print(f"Picture saved to {picture.resolve()}, page to {page.resolve()}")
    return picture


def _real_text(options):
    """Print what noise does to 300 articles; return the words and topics of the fit without noise."""
    lee = load_lee()
    words = np.array(frequent_words(lee.data, N_WORDS, stop_words=STOP_WORDS, token_pattern=LEE_WORDS), dtype=object)
    counts = CountVectorizer(vocabulary=words, token_pattern=LEE_WORDS).transform(lee.data)
    held_out = np.arange(len(lee.data)) % 5 == 0
    X, X_test = counts[~held_out], counts[held_out]
    models = {}
    for epsilon in (math.inf, *LEE_EPSILONS):
        _progress(f"news articles, {_label(epsilon)}")
        models[epsilon] = _fit(X, epsilon, options, starts=8, rounds=100)
    topics = models[math.inf].topic_word_

    print(f"1. Real text: {X.shape[0]} news articles (Lee corpus), {N_WORDS} words, {N_TOPICS} topics\n")
    _print_topics({_label(epsilon): model for epsilon, model in models.items()}, words, topics)
    rows = [("unigram (no topics)", unigram_perplexity(X, X_test), None)]
    for epsilon, model in models.items():
        quality = coherence(model, lee.tokens, words, measure="c_npmi", n_words=10)
        rows.append((_label(epsilon), model.perplexity(X_test), quality))
    print(f"\n  {'':<20}  {'held-out perplexity':>19}  {'coherence (NPMI)':>16}")
    for name, perplexity, quality in rows:
        print(f"  {name:<20}  {perplexity:>19.1f}  {'' if quality is None else f'{quality:16.3f}'}".rstrip())
    print(
        "\n  Lower perplexity and higher coherence are better. The noise that hides one document is as large in a"
        f"\n  small corpus as in a large one: among {X.shape[0]} documents it drowns the topics at any epsilon worth"
        "\n  promising. The words, too, were taken from these articles; for private text, bring a public list."
    )
    return words, topics


def _planted_corpus(words, topics, n_documents, options):
    """Print what noise does to a large corpus drawn from known topics; return a model and the curve."""
    X = _draw_documents(topics, n_documents + TEST_DOCUMENTS)
    X, X_test = X[:n_documents], X[n_documents:]
    models = {}  # epsilon -> fits that differ in their noise
    for epsilon in (math.inf, *PLANTED_EPSILONS):
        _progress(f"synthetic documents, {_label(epsilon)}")
        repeats = 1 if math.isinf(epsilon) else REPEATS
        models[epsilon] = [_fit(X, epsilon, options, starts=3, rounds=40, repeat=i) for i in range(repeats)]
    unigram = unigram_perplexity(X, X_test)
    scores = {epsilon: [fit.perplexity(X_test) for fit in fits] for epsilon, fits in models.items()}
    exact = scores[math.inf][0]

    print(f"\n2. Enough text: {n_documents:,} synthetic documents drawn from the {N_TOPICS} topics above\n")
    shown = {"planted": topics, **{_label(e): models[e][0] for e in (math.inf, SHOWN_EPSILON)}}
    _print_topics(shown, words, topics)
    print(f"\n  {'':<20}  {'held-out perplexity':>19}  {'gain kept':>9}  {'topics recovered':>16}")
    print(f"  {'unigram (no topics)':<20}  {unigram:>19.1f}")
    for epsilon in sorted(models, reverse=True):
        perplexity = np.mean(scores[epsilon])
        kept = _gain_kept(perplexity, unigram, exact)
        recovered = np.mean([topic_recovery(topics, fit.topic_word_).mean for fit in models[epsilon]])
        print(f"  {_label(epsilon):<20}  {perplexity:>19.1f}  {kept:>9.0%}  {recovered:>16.0%}")
    print(
        f"\n  Means of {REPEATS} fits. Gain kept: share of the step from the unigram to no noise. Topics recovered:"
        "\n  overlap with the planted topics after matching (1 minus total variation)."
    )
    if n_documents == N_DOCUMENTS:
        ranges = (f"{least} to {most} % at epsilon {epsilon:g}" for epsilon, (least, _, most) in KEPT.items())
        print(f"  Noise differs from run to run: thirty single fits kept {' and '.join(ranges)}.")
    curve = PrivacyUtilityDisplay(
        epsilons=PLANTED_EPSILONS,
        scores=[scores[epsilon] for epsilon in PLANTED_EPSILONS],
        non_private=exact,
        unigram=unigram,
    )
    return models[SHOWN_EPSILON][0], curve


def _fit(X, epsilon, options, *, starts, rounds, repeat=0):
    """Return a fitted model; without noise, where repeating is free, the best of a few fixed starts."""
    options = {**options, "epsilon": epsilon}
    if math.isfinite(epsilon):
        if options["random_state"] is not None:
            options["random_state"] += repeat
        return PrivateCGSLDA(N_TOPICS, **options).fit(X)
    options["max_iter"] = rounds
    models = [PrivateCGSLDA(N_TOPICS, **{**options, "random_state": start}).fit(X) for start in range(starts)]
    return min(models, key=lambda model: model.perplexity(X))


def _gain_kept(perplexity, unigram, exact):
    return (unigram - perplexity) / (unigram - exact)


def _draw_documents(topics, n_documents):
    """Return the counts of documents drawn from given topics, the same at every call."""
    rng = np.random.default_rng(0)
    doc_topic = rng.dirichlet(np.full(len(topics), 0.1), n_documents)
    lengths = rng.poisson(MEAN_LENGTH, n_documents)
    return csr_matrix(rng.multinomial(lengths, doc_topic @ topics))


def _draw(model, words, curve, picture):
    """Draw the two panels without touching pyplot's state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1.9, 1])
    TopWordsDisplay.from_estimator(
        model, feature_names=words, n_words=8, ax=left.subplots(1, N_TOPICS), n_columns=N_TOPICS
    )
    left.suptitle(f"Topics found at epsilon = {SHOWN_EPSILON:g}", fontsize="large")
    curve.plot(ax=right.subplots())
    figure.savefig(picture, dpi=150)


def _print_topics(models, words, reference):
    """Print the top words of several models side by side, each matched to the reference topics."""
    print("  " + f"{'topic':<7}" + "".join(f"{name:<{CELL}}" for name in models).rstrip())
    columns = []
    for model in models.values():
        topic_word = getattr(model, "topic_word_", model)
        order = topic_recovery(reference, topic_word).permutation
        columns.append([_cell(words[np.argsort(-topic_word[topic], kind="stable")]) for topic in order])
    for topic, cells in enumerate(zip(*columns, strict=True)):
        print("  " + f"{topic:<7}" + "".join(f"{cell:<{CELL}}" for cell in cells).rstrip())


def _cell(words):
    """Return as many of the words as fit a column."""
    text = words[0]
    for word in words[1:]:
        if len(text) + len(word) + 3 > CELL:
            break
        text += f" {word}"
    return text


def _label(epsilon):
    return "no noise" if math.isinf(epsilon) else f"epsilon {epsilon:g}"


def _progress(what):
    print(f"... {what}", file=sys.stderr, flush=True)
