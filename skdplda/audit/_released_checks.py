"""Audits of what leaves the curator or the user's device: the topics of tokens, the bits of reports."""

import math
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from skdplda.audit._audit import judged
from skdplda.audit._bounds import epsilon_lower_bound
from skdplda.audit._checks import CERTAIN, corpus

TRACES = 200  # enough to show 1.0 at 1e-6
WORDS, TOKENS = 1000, 200  # of each word
RARE = 0.1  # prior of the topic whose draws lose most, beside 1
REPORT_WORDS, REPORTS = 3, 200_000  # few words, so that each of the 8 reports is seen often
ROUNDING = 1 + 1e-12  # above the rounding error of sums of probabilities


def exact_moves(estimator):
    """Compare how the table changes in the last sweep with the moves of the tokens: noise is to hide them.

    The topics are released. Who knows all words but one reads that one off an exact table of moves.
    """
    X = corpus()
    trace, words = clone(estimator).set_params(random_state=None).audit_trace(X)
    moves = np.zeros(trace.tables.shape[1:])
    np.add.at(moves, (trace.topics[-1], words), 1)
    np.add.at(moves, (trace.topics[-2], words), -1)
    found = int((np.abs(trace.tables[-1] - trace.tables[-2] - moves) < 1e-3).sum())
    return found == moves.size, f"{found} of {moves.size} cells show the exact moves of the last sweep"


def replaced_token(estimator):
    """Tell from many whole traces which of two words is the only token of a document; no other token is of either.

    The score adds up how much likelier the one is: by a table, at the topic drawn, where it counts one; by the draw,
    from a table whose noise prefers topics for words.
    """
    estimator = clone(estimator).set_params(random_state=None)
    X = corpus().toarray()
    first = np.arange(TRACES) % 2 == 0
    scores = np.empty(TRACES)
    for fit, here in enumerate(first):
        X[:, :2] = 0
        X[0] = np.arange(X.shape[1]) == (0 if here else 1)
        trace, _ = estimator.audit_trace(X)
        drawn, sweeps = trace.topics[:, 0].astype(int), np.arange(len(trace.topics))
        shown = np.clip(trace.tables[sweeps + 1, drawn], 0, 1)
        preferred = np.maximum(trace.tables[sweeps], 0)
        preferred = preferred[sweeps, drawn] - preferred[sweeps, 1 - drawn]
        ratio = (shown[:, 0] - shown[:, 1]) * estimator.noise_epsilon
        ratio += np.sign(preferred[:, 0] - preferred[:, 1]) * estimator.inherent_epsilon / 4
        scores[fit] = ratio.sum()
    bound, evidence, refuted = judged(scores, first, estimator.privacy_cost(), False, CERTAIN)
    return refuted, f"{evidence}: epsilon >= {bound:.3g}"


def drawn_topics(estimator):
    """Count the topics drawn for words that the table distinguishes: a draw may do so by its range at most.

    Much noise on the tables makes the weights of words as different as they may be, and one topic is rare: there the
    probabilities differ as much as the weights. Each token is a document. Words are put together by the public table,
    before the topics are drawn from it.
    """
    options = {"noise_epsilon": 1 / TOKENS, "max_iter": 4, "doc_topic_prior": [RARE, 1.0], "random_state": None}
    model = clone(estimator).set_params(**options)
    X = sp.csr_array(sp.kron(sp.eye_array(WORDS, dtype=np.int32), np.ones((TOKENS, 1), np.int32), format="csr"))
    trace, words = model.audit_trace(X)
    confidence = 1 - (1 - CERTAIN) / len(trace.topics)
    largest = 0.0
    for table, topics in zip(trace.tables, trace.topics, strict=False):
        order = np.argsort(np.maximum(table[0], 0) - np.maximum(table[1], 0))
        rare = np.bincount(words[topics == 0], minlength=WORDS)[order]
        few = WORDS // 10
        numbers = int(rare[-few:].sum()), few * TOKENS, int(rare[:few].sum()), few * TOKENS
        largest = max(largest, epsilon_lower_bound(*numbers, confidence=confidence))
    bound = model.inherent_epsilon
    return bool(largest > bound), f"draws lose {largest / bound:.4g} of the bound at least"


def law_of_reports(channel, document):
    """Return the exact probability of each report of a set of words."""
    absent = Fraction(channel.flips, 2**64)
    present = Fraction(1, 2) if channel.mechanism == "asymmetric" else 1 - absent
    most = min(channel.max_words_per_document or len(document), len(document))
    kept = list(combinations(sorted(document), most))
    law = dict.fromkeys(product((0, 1), repeat=channel.n_words), Fraction(0))
    for report, chosen in product(law, kept):
        ones = [present if word in chosen else absent for word in range(channel.n_words)]
        law[report] += Fraction(math.prod(p if bit else 1 - p for p, bit in zip(ones, report, strict=True)), len(kept))
    return law


def worst_reports(estimator, unit):
    """Return (loss, one document, the other, report) of the largest loss of a report, over all pairs of documents."""
    channel = estimator.device_randomizer(REPORT_WORDS).channel(REPORT_WORDS)
    documents = [set(words) for n in range(REPORT_WORDS + 1) for words in combinations(range(REPORT_WORDS), n)]
    pairs = [pair for pair in permutations(documents, 2) if unit != "bit" or len(pair[0] ^ pair[1]) == 1]
    laws = {tuple(document): law_of_reports(channel, document) for document in documents}
    ratio, *found = max(
        (
            (p / laws[tuple(other)][report], one, other, report)
            for one, other in pairs
            for report, p in laws[tuple(one)].items()
        ),
        key=lambda found: found[0],
    )
    return math.log(ratio), *found


def report_law(estimator):
    """Compare the loss of a report with the claims, of the document and of a bit: exactly, for all documents."""
    reports = estimator.device_randomizer(REPORT_WORDS).reports_per_user
    shares = {}
    for unit in ("document", "bit"):
        loss = worst_reports(estimator, unit)[0] * reports  # reports of a user are independent
        shares[unit] = loss / estimator.privacy_cost(n_words=REPORT_WORDS, unit=unit).epsilon
    broken = max(shares.values()) > ROUNDING
    return broken, ", ".join(f"a {unit} loses {share:.9g} of the bound" for unit, share in shares.items())


def drawn_reports(estimator):
    """Draw reports of the two documents, and count the report, that the law says are distinguished best."""
    randomizer = estimator.device_randomizer(REPORT_WORDS).set_params(random_state=None)
    _, *documents, report = worst_reports(estimator, "document")
    numbers = []
    for document in documents:
        counts = np.zeros((REPORTS, REPORT_WORDS), np.int32)
        counts[:, sorted(document)] = 1
        drawn = randomizer.fit_transform(counts).toarray() > 0
        numbers += [int((drawn == np.array(report, bool)).all(axis=1).sum()), REPORTS]
    bound = epsilon_lower_bound(*numbers, confidence=CERTAIN)
    claim = estimator.privacy_cost(n_words=REPORT_WORDS).epsilon / randomizer.reports_per_user
    return bound > claim, f"reports drawn lose {bound / claim:.4g} of the bound at least"
