"""Canaries for one fit, and attacks on all that it releases: one class for each kind of private mechanism.

A canary has cells of the released tables for itself: a word that no other document has. What its cells hold is
made of its coin and of noise; what it would add is known from public tables, by the same E-step.
"""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp
from scipy.stats import rankdata
from sklearn.base import clone

from skdplda.audit._canaries import below, rows_of_words
from skdplda.audit._pairs import Composition
from skdplda.models import HDPLDA, PCTD, BaseRoundsModel, EmbeddingTopics, PrivateCGSLDA
from skdplda.privacy import compose_events, epsilon_of, gaussian_event, leaves_of, pure_event
from skdplda.rounds import FORGET, NORM_BOUND, BudgetPlan, least_total
from skdplda.semantics import EmbeddedTexts, UnitMatrix
from skdplda.vocabulary import DPVocabularySelector

TOKENS = 20  # of a canary: above the norm bounds of the defaults; `max_norm` may need more
# Of noise in a direction of the cells, where 1 is claimed: what is taken for 0, and what is far below 1. Estimates
# from so many canaries a cell are off by 0.3. All chosen by hand.
LEAST_VARIANCE, SUSPICIOUS, CANARIES_A_CELL = 0.02, 0.5, 50
MOST_PATTERNS = 8  # sampled releases of which all subsets are tried
# Documents that canaries of sweeps share, one of which settles on fewer topics than another, and the most that one has.
DOCUMENTS, MOST_TOGETHER = 8, 50_000
SIMULATED = 4096  # words, whose way through the rounds of a selection is simulated
STEEPNESS = 0.5  # of likelihood ratios, in deviations of cells; chosen on PCTD and VIPSLDA without a corpus
# Other documents of a canary's word, which settle its topic: so many deviations of one round's noise, where these are
# not too many documents in all. Chosen on PCTD, without a corpus.
SETTLING, MOST_OTHERS = 3.0, 800_000
TOPICS_DEVIATION = 3.0  # of a round of topics, over that of a whole budget which releases divide; about


def design_of(estimator, X, n_canaries):
    """Return the canaries and attacks that fit an estimator; ValueError where there are none."""
    if isinstance(estimator, HDPLDA):
        return SweepsDesign(estimator, X, n_canaries)
    if isinstance(estimator, DPVocabularySelector):
        return SelectionDesign(estimator, X, n_canaries)
    if isinstance(estimator, EmbeddingTopics):
        return ClustersDesign(estimator, X, n_canaries)
    if isinstance(estimator, BaseRoundsModel):
        return RoundsDesign(estimator, X, n_canaries)
    raise ValueError(
        f"{type(estimator).__name__} has no private rounds, sweeps or rounds of words with cells for each of many"
        " canaries, which are looked for in one fit; use audit(..., method='repeated') or mechanism_audits."
    )


def of_ranks(values):
    """Return ranks, from -1/2 to 1/2: scores of one number a canary, whatever its law is."""
    return (rankdata(values) - 0.5) / len(values) - 0.5


class Design:
    """Canaries and attacks, with what most designs have in common.

    `coins` says which of the `n_coins` canaries the white box looks for, and which the black box. `n_decisions` is how
    many ways releases that canaries share may send the fit. `shown` has the part of the loss that lies in the canaries'
    cells, for the white box and for the black box: no attack on them can show more of the noise that is claimed.
    """

    coins = slice(None), slice(None)
    n_decisions, shown = 1, (1.0, 1.0)

    @property
    def n_coins(self):
        """As said above."""
        return self._m

    def composition(self):
        """Return what the releases may lose, by the event of their plan."""
        return composition_of(self._plan.event)

    def epsilon(self, factor, delta):
        """Return epsilon at delta where all losses are so many times as large."""
        return epsilon_of(event_of(self.composition().scaled(factor)), delta)


class RoundsDesign(Design):
    """Private rounds: a canary is a document of one word, whose whole contribution is in that word's row.

    Where nothing is drawn in the E-step, as many like it as make the word's topic stand out of the noise are always
    there. So canaries come to one topic in all rounds, which the model shows; what the others add is known.
    """

    def __init__(self, estimator, X, n_canaries):
        self._plan = estimator._plan()
        if self._plan.noiseless or getattr(estimator, "noise_on", "statistics") != "statistics":
            raise ValueError(
                "one fit shows something about private rounds only: noise on the sums of documents, and a finite"
                " epsilon. Use audit(..., method='repeated')."
            )
        self._n_decisions = 2 + estimator._votes_on_prior() if isinstance(self._plan, BudgetPlan) else 1
        self._X, self._first = X, 0 if X is None else X.shape[1]
        self._n_words, self._m = self._first + n_canaries, n_canaries
        tokens = max(TOKENS, math.ceil(getattr(estimator, "max_norm", None) or 1))
        self._canaries = rows_of_words(self._first + np.arange(n_canaries), tokens, self._n_words)
        self._others = 0
        draws = isinstance(estimator, PrivateCGSLDA) and self._plan.law.norm == 1
        if not draws and self._plan.sampling_rate == 1:
            self._others = self._best_number(estimator.n_components)
        self._segments = isinstance(estimator, PCTD)
        self._twin = clone(estimator)._audited_parts(self._documents(None, self._canaries))[0]
        self._seen, self._means, self._llr = [], [], np.zeros(n_canaries)

    def _best_number(self, n_topics):
        """Return how many others have a canary's word, to settle its topic; none where no topics are released."""
        deviation = self._plan.deviation(0)
        if isinstance(self._plan, BudgetPlan):
            if self._m / 2 < least_total(n_topics) * deviation * math.sqrt(self._n_words):
                return 0
            deviation *= TOPICS_DEVIATION
        return min(math.ceil(SETTLING * deviation), MOST_OTHERS // self._m)

    def corpus(self, present):
        """Return the documents, with the canaries that are present."""
        words = np.concatenate([np.repeat(np.arange(self._m), self._others), np.flatnonzero(present)])
        return self._documents(self._X, self._canaries[words])

    def _documents(self, X, canaries):
        """Return documents; for `PCTD` a canary is one semantic unit, which has one topic."""
        if not self._segments:
            return below(X, canaries)
        X = X if X is None or isinstance(X, UnitMatrix) else UnitMatrix.from_counts(X)
        counts = below(None if X is None else X.counts, canaries)
        own = np.arange(canaries.shape[0] + 1)
        start = own if X is None else np.concatenate([X.start[:-1], X.start[-1] + own])
        return UnitMatrix(start, counts, None if X is None else X.words)

    @property
    def n_decisions(self):
        """As in `Design`: topics pay, or one of the votes says that they do not; no attack looks at the prior."""
        return self._n_decisions

    def observe(self, kind, query, noisy, multiplier):
        """Take in a release: the canaries' rows, and what each would add to its own."""
        if query.kind in ("vector_votes", "vectors"):
            raise ValueError("canaries share sums of word vectors, of which one fit shows nothing; use prior=None.")
        if len(noisy) != self._n_words:  # votes, and topics of frequent words alone, which the attack leaves alone
            return
        rows = slice(self._first, self._first + self._m)
        added = np.asarray(self._added(query)[rows], np.float64)
        noisy, scale = np.asarray(noisy[rows], np.float64) - self._others * added, multiplier * NORM_BOUND
        if self._plan.law.norm == 1:
            self._llr += (np.abs(noisy) - np.abs(noisy - added)).sum(axis=1) / scale
            return
        self._seen.append((noisy / scale).astype(np.float32))
        self._means.append((added / scale).astype(np.float32))

    def _added(self, query):
        """Return what all canaries would add to a release."""
        return self._twin.collect(query, len(self._seen), None).total

    def white_box(self):
        """Return a score of each canary from all releases, positive where its presence is likely."""
        if self._plan.law.norm == 1:
            return self._llr
        rate = self._plan.sampling_rate
        dependent = ratios_of_dependent(self._seen, self._means, rate)
        if dependent is not None:
            return dependent
        ratios = [(means * (seen - means / 2)).sum(axis=1) for seen, means in zip(self._seen, self._means, strict=True)]
        if rate < 1:
            return np.logaddexp(math.log1p(-rate), math.log(rate) + np.stack(ratios)).sum(axis=0)
        return np.sum(ratios, axis=0)

    def black_box(self, model):
        """Return a score of each canary from the fitted model alone.

        Its row is larger by its part in some topic, nobody knows which: the mean of such likelihood ratios.
        """
        rows = model.components_[:, self._first : self._first + self._m]
        if self._others:
            return of_ranks(rows.max(axis=0))
        return of_ranks(logsumexp(STEEPNESS * rows / max(rows.std(), 1e-300), axis=0))


def ratios_of_dependent(seen, means, rate=1.0):
    """Return log-likelihood ratios of cells whose noise is not independent; None where it looks as it should.

    Right noise has variance 1 in every direction. Where noise comes again in a later release, some difference of the
    two has less, and reveals more than all else. `seen` and `means`, a list of (n_canaries, n_cells), are the cells of
    each canary in each release, in standard deviations of the noise, and how presence moves them; in a release a unit
    takes part with probability `rate`. Of sampled releases those are judged that have most of that difference.
    """
    release = np.repeat(np.arange(len(seen)), [part.shape[1] for part in seen])
    seen, means = np.concatenate(seen, axis=1), np.concatenate(means, axis=1)
    n_canaries, n_cells = seen.shape
    if n_cells * CANARIES_A_CELL > n_canaries:
        return None
    middle, together = rate * means.mean(axis=0), np.where(release[:, None] == release, rate, rate * rate)
    signal = together * (means.T @ means) / (2 * n_canaries) - np.outer(middle, middle) / 4  # coins are fair
    noise = np.atleast_2d(np.cov(seen.T)) - signal
    values, vectors = np.linalg.eigh(noise)
    if values[0] > SUSPICIOUS:
        return None
    if rate == 1:
        return _ratios(seen, means, values, vectors)
    weight = np.bincount(release, vectors[:, 0] ** 2)
    cells = np.isin(release, np.argsort(-weight)[:MOST_PATTERNS])
    seen, means, (_, own) = seen[:, cells], means[:, cells], np.unique(release[cells], return_inverse=True)
    parts, total = np.linalg.eigh(noise[np.ix_(cells, cells)]), np.full(n_canaries, -np.inf)
    for pattern in product((0, 1), repeat=own.max() + 1):
        chance = sum(math.log(rate if taken else 1 - rate) for taken in pattern)
        total = np.logaddexp(total, chance + _ratios(seen, means * np.array(pattern)[own], *parts))
    return total


def _ratios(seen, means, values, vectors):
    """Return log-likelihood ratios under noise of these variances in these directions."""
    precision = (vectors / np.maximum(values, LEAST_VARIANCE)) @ vectors.T
    return np.einsum("ij,ij->i", means @ precision, seen - means / 2)


class ClustersDesign(RoundsDesign):
    """Clusters of embeddings: a canary is a document of one word of its own, and all canaries have one embedding.

    So all are in one cluster. Its size and its direction, which canaries share, send the fit by the choice of that
    cluster alone, and no attack looks at them: what is seen is the budget's part for words.
    """

    def __init__(self, estimator, X, n_canaries):
        self._plan = estimator._plan()
        if self._plan.noiseless or X is not None:
            raise ValueError("EmbeddingTopics is audited by itself, with a finite epsilon: corpus must be None.")
        self._m = self._n_words = n_canaries
        self._first = self._others = 0
        self._n_clusters, self._share = estimator.n_components, estimator.keyword_share
        self._row = public_row(estimator)
        self._twin = clone(estimator)._audited_parts((self.corpus(np.ones(n_canaries)), None, None))[0]
        self._seen, self._means = [], []

    def corpus(self, present):
        """Return embeddings and words of the canaries that are present."""
        words = np.flatnonzero(present)
        return EmbeddedTexts(np.tile(self._row, (len(words), 1)), rows_of_words(words, TOKENS, self._n_words))

    @property
    def n_decisions(self):
        """As in `Design`: the cluster that canaries are in, or none."""
        return self._n_clusters + 1

    @property
    def shown(self):
        """As in `Design`: directions and sizes have the rest of the budget."""
        return (math.sqrt(self._share),) * 2

    def observe(self, kind, query, noisy, multiplier):
        """Take in a release of words."""
        if query.kind != "directions":
            super().observe(kind, query, self._by_word(query, noisy), multiplier)

    def _by_word(self, query, sums):
        return sums.T if query.kind == "cluster_words" else sums

    def _added(self, query):
        return self._by_word(query, super()._added(query))

    def black_box(self, model):
        """Return a score of each canary from the words of its cluster, which has most."""
        cluster = model.components_.sum(axis=1).argmax()
        return of_ranks(model.components_[cluster])


def public_row(estimator):
    """Return one embedding, of as many numbers as the public arrays of an `EmbeddingTopics` need."""
    rows, projection = estimator._public("public_rows"), estimator._public("projection")
    if rows is not None:
        return rows[:1]
    if projection is not None:
        return projection[:, 0][None]
    n_features = estimator._n_features_of_public() or max(2, estimator.n_components)
    return np.eye(1, max(n_features, estimator.projection or 0))


class SweepsDesign(Design):
    """Hybrid sweeps: a canary is a token, the one or the other of two words of its own.

    For the white box it is a document by itself, so that its draws have all of their range. The black box does not know
    what was drawn: its canaries are in a few documents, whose tokens come to few topics.
    """

    def __init__(self, estimator, X, n_canaries):
        self._plan = estimator._plan()
        if not self._plan.private:
            raise ValueError("one fit shows something about a finite epsilon; use audit(...).")
        self._X, self._m, self._first = X, n_canaries, 0 if X is None else X.shape[1]
        self._llr, self._rows = np.zeros(n_canaries), np.arange(n_canaries)
        self.coins = slice(n_canaries), slice(n_canaries, None)
        self._n_documents = DOCUMENTS + n_canaries // MOST_TOGETHER  # of the black box
        self._document = np.arange(n_canaries) * self._n_documents // n_canaries
        self._n_settling = (TOKENS - 1) * -(-n_canaries // self._n_documents)  # tokens of one more word in each of them

    @property
    def n_coins(self):
        """As in `Design`: each attack has its own."""
        return 2 * self._m

    def corpus(self, present):
        """Return the documents; a canary has its first word where it is present, else its second."""
        rows, absent, m = self._rows, ~np.asarray(present, bool), self._m
        n_words = self._first + 4 * m + self._n_documents
        alone = rows_of_words(self._first + rows + m * absent[:m], 1, n_words)
        together = self._first + 2 * m + rows + m * absent[m:]
        settling = n_words - self._n_documents + np.arange(self._n_documents)
        tokens = np.append(np.ones(m, np.int32), np.full(self._n_documents, self._n_settling, np.int32))
        place = np.append(self._document, np.arange(self._n_documents)), np.append(together, settling)
        shared = sp.csr_array((tokens, place), shape=(self._n_documents, n_words))
        return below(self._X, sp.csr_array(sp.vstack([shared, alone], format="csr")))

    @property
    def shown(self):
        """As in `Design`: at best, half of the draws have all of their range, and the model is a mean of few tables."""
        tables, draws = 2 * self._plan.n_sweeps / self._plan.scale**2, self._plan.n_sweeps * self._plan.eta**2 / 4
        weights = (1 - FORGET) ** np.arange(self._plan.n_sweeps)
        part = weights.sum() ** 2 / (weights**2).sum() / self._plan.n_sweeps
        return math.sqrt((tables + draws / 2) / (tables + draws)), math.sqrt(tables * part / (tables + draws))

    def composition(self):
        """Return what tables and draws may lose."""
        plan, moved = self._plan, 2
        ranges = plan.eta, plan.n_sweeps
        if plan.law.norm == 1:
            return Composition(laplacian=(moved / plan.scale, plan.n_sweeps), ranges=ranges)
        return Composition(gaussian=math.sqrt(moved * plan.n_sweeps) / plan.scale, ranges=ranges)

    def epsilon(self, factor, delta):
        """Return epsilon at delta where all losses are so many times as large."""
        if not factor:
            return 0.0
        return replace(self._plan, scale=self._plan.scale / factor, eta=self._plan.eta * factor).epsilon(delta)

    def observe(self, kind, weights, rate, alpha, topics, noisy):
        """Take in a sweep: how much likelier one word makes the topic that was drawn, and the count it moved."""
        drawn = topics[len(topics) - self._m :].astype(int)
        words = (slice(self._first + k * self._m, self._first + (k + 1) * self._m) for k in (0, 1))
        factor = np.asarray(alpha) * np.asarray(rate)
        chance, counted = [], []
        for part in words:
            own = weights[part].astype(np.float64) * factor
            chance.append(np.log(own[self._rows, drawn] / own.sum(axis=1)))
            counted.append(np.asarray(noisy[part], np.float64)[self._rows, drawn])
        self._llr += chance[0] - chance[1]
        scale = self._plan.scale
        if self._plan.law.norm == 1:
            one, other = (np.abs(count) - np.abs(count - 1) for count in counted)
            self._llr += (one - other) / scale
        else:
            self._llr += (counted[0] - counted[1]) / scale**2

    def white_box(self):
        """Return a score of each canary from all releases, positive where its first word is likely."""
        return self._llr

    def black_box(self, model):
        """Return a score of each canary from the fitted model alone.

        The model shows which topics a document has by its settling word. Noise below 0 is cut: such cells count as the
        mean of what they may have been.
        """
        rows = model.components_[:, self._first + 2 * self._m :]
        shares = rows[:, -self._n_documents :] / rows[:, -self._n_documents :].sum(axis=0)
        counts = rows[:, : -self._n_documents]
        cut = counts <= counts.min()
        counts = np.where(cut, -counts[~cut].mean() if not cut.all() else 0.0, counts)
        scores = counts[:, : self._m] - counts[:, self._m :]
        return (shares[:, self._document] * scores).sum(axis=0)


class SelectionDesign(Design):
    """Rounds of words: a canary is a document of one word that just so many others use that it comes to the last round.

    Whether a word is used at all is not hidden by noise; delta bounds what that gives away.
    """

    def __init__(self, estimator, X, n_canaries):
        self._plan = plan = estimator._plan()
        if plan.mechanism is None or plan.law.deviation != 1.0 or plan.method in (*plan.IN_TURN, "truncated_geometric"):
            raise ValueError(
                f"method={plan.method!r} with mechanism={plan.mechanism!r} has no attack of one fit;"
                " mechanism_audits has an audit of every selection."
            )
        self._X, self._m, self._first = X, n_canaries, 0 if X is None else X.shape[1]
        self._deviations = plan.mean.deviations if plan.coefficients else plan.scales
        self._noise = np.random.default_rng(0).normal(size=(len(plan.scales), SIMULATED))  # of no data
        self._others = self._best_number()
        self._seen, self._means = [], []

    def _rounds(self, weight):
        """Yield (chance to take part, chance to be released then) of each round, for a word of a weight: simulated."""
        plan = self._plan
        noisy = weight * plan.grid + self._noise * np.array(plan.scales)[:, None]
        if plan.coefficients:  # words are judged by the mean of the rounds until then
            noisy = np.cumsum(noisy * np.array(plan.coefficients)[:, None], axis=0) / plan.mean.sums[:, None]
        part = np.ones(SIMULATED, bool)
        for i, (threshold, floor) in enumerate(zip(plan.thresholds, (*plan.floors, -math.inf), strict=True)):
            above = noisy[i] > threshold
            yield part.mean(), (part & above).mean()
            part = part & ~above & (noisy[i] > floor)

    def _best_number(self):
        """Return how many others use a canary's word, so that the precision of the noise that it meets is most."""
        most = math.ceil(self._plan.thresholds[0] / self._plan.grid) + 1
        precision = np.array(self._plan.scales) ** -2.0
        met = [precision @ [part for part, _ in self._rounds(n + 0.5)] for n in range(1, most + 1)]
        return 1 + int(np.argmax(met))

    def corpus(self, present):
        """Return the documents: those that use the canaries' words, and the canaries that are present."""
        words = np.concatenate([np.repeat(np.arange(self._m), self._others), np.flatnonzero(present)])
        return below(self._X, rows_of_words(self._first + words, 1, self._first + self._m))

    @property
    def shown(self):
        """As in `Design`: words do not come to all rounds."""
        precision = np.array(self._plan.scales) ** -2.0
        met = [part for part, _ in self._rounds(self._others + 0.5)]
        return (math.sqrt(precision @ met / precision.sum()),) * 2

    def epsilon(self, factor, delta):
        """Return epsilon where all losses are so many times as large; new words have their part of delta."""
        return epsilon_of(event_of(self.composition().scaled(factor)), delta - self._plan.event_delta)

    def observe(self, kind, words, noisy, scale):
        """Take in a round: the noisy weights of the words that take part."""
        own = words >= self._first
        seen, means = np.zeros(self._m), np.zeros(self._m)
        place = words[own] - self._first
        seen[place] = (noisy[own] - self._others * self._plan.grid) / scale
        means[place] = self._plan.grid / scale
        self._seen.append(seen)
        self._means.append(means)

    def white_box(self):
        """Return a score of each canary from all noisy weights, positive where its presence is likely."""
        seen, means = np.stack(self._seen), np.stack(self._means)
        return (means * (seen - means / 2)).sum(axis=0)

    def black_box(self, model):
        """Return a score of each canary from the released words and their weights."""
        weights = np.full(self._first + self._m, np.nan)
        weights[model.support_] = model.noisy_weights_
        weights = weights[self._first :] * self._plan.grid
        named, hidden = [], []
        for others in (self._others + 1, self._others):
            rounds, released = [], 0.0
            rules = zip(self._deviations, self._plan.thresholds, self._rounds(others), strict=True)
            for scale, threshold, (part, passed) in rules:
                density = math.log(max(part, 1e-300) / scale) - ((weights - others * self._plan.grid) / scale) ** 2 / 2
                rounds.append(np.where(weights > threshold, density, -np.inf))
                released += passed
            named.append(logsumexp(rounds, axis=0))
            hidden.append(math.log(max(1 - released, 1e-300)))
        with np.errstate(invalid="ignore"):
            return np.where(np.isnan(weights), hidden[0] - hidden[1], named[0] - named[1])


def event_of(composition):
    """Return the event of a `Composition` of rounds."""
    mu, rate, rounds = composition.sampled
    epsilon, steps = composition.laplacian
    parts = [gaussian_event(1 / composition.gaussian)] if composition.gaussian else []
    parts += [gaussian_event(1 / mu, rounds, rate)] if rounds and mu else []
    parts += [pure_event(epsilon, steps)] if steps and epsilon else []
    return compose_events(parts)


def composition_of(event):
    """Return the `Composition` of an event of Gaussian rounds, sampled ones too, or of Laplace rounds."""
    gaussian, sampled, laplacian = 0.0, (0.0, 1.0, 0), (0.0, 0)
    for leaf, count in leaves_of(event):
        kind = type(leaf).__name__
        if kind == "GaussianDpEvent":
            gaussian = math.hypot(gaussian, math.sqrt(count) / leaf.noise_multiplier)
        elif kind == "PoissonSampledDpEvent" and not sampled[2]:
            sampled = 1 / leaf.event.noise_multiplier, leaf.sampling_probability, count
        elif kind == "DiscreteLaplaceDpEvent" and not laplacian[1]:
            laplacian = leaf.noise_parameter, count
        else:
            raise ValueError(f"the event {kind} has no attack of one fit; use audit(..., method='repeated').")
    return Composition(gaussian=gaussian, sampled=sampled, laplacian=laplacian)
