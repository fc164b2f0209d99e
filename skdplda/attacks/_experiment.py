"""The whole attack on one's own corpus: a target on half of it, shadow models, and every score beside the truth."""

from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.stats import t as student

from skdplda._checks import exact_counts, is_integer
from skdplda._types import Estimator, Function, Matrix, PathLike, Sequence
from skdplda.attacks._few_models import bayesian_ratio_attack, relative_attack
from skdplda.attacks._lira import likelihood_ratio_attack
from skdplda.attacks._result import AttackResult, RateAt
from skdplda.attacks._shadow import check_seed, target_topics, train_shadow_models
from skdplda.attacks._simple import threshold_attack, vocabulary_attack

HUANG = ("max", "std", "negative_entropy")
ATTACKS = {  # name -> of shadow models
    "online": likelihood_ratio_attack,
    "offline": partial(likelihood_ratio_attack, mode="offline"),
    "bayesian": bayesian_ratio_attack,
    "relative": relative_attack,
}
RESAMPLES = 400  # of the bootstrap: the standard error is then known to 4 %


class ExperimentResults(dict[str, AttackResult]):
    """Results of attacks by name, pooled over the repetitions of an experiment.

    Parameters
    ----------
    runs : list of dict of str to AttackResult
        The results of each repetition, all with the same names; kept as the attribute `runs`.
    """

    def __init__(self, runs: list[dict[str, AttackResult]]) -> None:
        super().__init__({name: AttackResult.pool([run[name] for run in runs]) for name in runs[0]})
        self.runs = runs

    def tpr_at(self, name: str, fpr: float, confidence: float = 0.95, random_state: int = 0) -> RateAt:
        """Share of members found, with an interval that has the randomness of training in it.

        `AttackResult.tpr_at` takes the trained models as given. Here whole repetitions are drawn again, with
        replacement, and the rate of each pool is computed at its own threshold. The interval is the pooled rate and the
        bootstrap's standard error times Student's quantile, since repetitions are few.

        Parameters
        ----------
        name : str
            Of an attack.
        fpr : float
            As in `AttackResult.tpr_at`.
        confidence : float, default=0.95
            Of the interval.
        random_state : int, default=0
            Of the bootstrap.

        Returns
        -------
        at : RateAt
            The pooled rate with that interval.

        Raises
        ------
        ValueError
            If there is one repetition only, or the confidence is not between 0 and 1.
        """
        n = len(self.runs)
        if n < 2:
            raise ValueError("repetitions must be at least 2 for an interval over them; got 1.")
        pooled = self[name].tpr_at(fpr, confidence)
        rng, rates = np.random.default_rng(random_state), []
        for _ in range(RESAMPLES):
            drawn = [self.runs[i][name] for i in rng.integers(n, size=n)]
            rates.append(AttackResult.pool(drawn).tpr_at(fpr).rate)
        # a bootstrap of n things has (n - 1) / n of the variance
        half = np.std(rates) * np.sqrt(n / (n - 1)) * student.ppf((1 + confidence) / 2, n - 1)
        return pooled._replace(low=max(0.0, pooled.rate - half), high=min(1.0, pooled.rate + half))


def membership_experiment(
    estimator: Estimator,
    X: Matrix,
    *,
    n_models: int = 128,
    repetitions: int = 1,
    statistics: Sequence[str | Function] = ("zeta",),
    attacks: Sequence[str] = ("online", "offline"),
    thresholds: Sequence[str] = HUANG,
    proportions: Literal["fold-in", "maximum"] = "fold-in",
    vocabulary: Literal["target", "given"] = "target",
    selection: Literal["own", "target"] = "own",
    topic_word: Function | None = None,
    directory: PathLike | None = None,
    n_jobs: int | None = None,
    random_state: int | None = None,
    callback: Function | None = None,
    verbose: int = 0,
) -> ExperimentResults:
    """Attack a learner on a corpus, as section 3.5 of [1]_ does.

    In each repetition a random half of the documents trains the target; the attacks then score all documents.

    Parameters
    ----------
    estimator : estimator
        As in `train_shadow_models`.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Word counts.
    n_models : int, default=128
        Shadow models a repetition, at least 4.
    repetitions : int, default=1
        Targets; the scores of all are put together.
    statistics : sequence of str or callable, default=("zeta",)
        Of the attacks with shadow models: one of each statistic.
    attacks : sequence of {"online", "offline", "bayesian", "relative"}, default=("online", "offline")
        `likelihood_ratio_attack` in two modes, `bayesian_ratio_attack`, which needs fewer models, and
        `relative_attack`, which is of "zeta" alone.
    thresholds : sequence of str, default=("max", "std", "negative_entropy")
        Statistics attacked by one threshold.
    proportions : {"fold-in", "maximum"}, default="fold-in"
        As in `document_statistics`, of shadow models' statistics and of thresholds. Fold-in gives thresholds more than
        the maximum, which the authors of [1]_ use.
    vocabulary : {"target", "given"}, default="target"
        "target" releases the words that the target's half holds: all models then have these, words outside are left
        out of the other documents, and the vocabulary is attacked by itself. "given" takes all words as public.
    selection : {"own", "target"}, default="own"
        Of a pipeline that selects words before its last step: each shadow model selects its own, or all take those with
        which the target was released, as in [1]_, and only the last step is trained.
    topic_word, directory : as in `train_shadow_models`
        Each repetition has a folder in the directory.
    n_jobs : int, default=None
        Models trained at a time, as in joblib.
    random_state : int, default=None
        Of targets and parts. An integer is needed to go on from a directory.
    callback : callable, default=None
        Called after each repetition with (members, documents, topic_word, shadows), to look closer.
    verbose : int, default=0
        Progress bars if positive.

    Returns
    -------
    results : ExperimentResults
        A dictionary of results by name of the attack, repetitions pooled; `results.runs` has those of each repetition.

    Raises
    ------
    ValueError
        If there are fewer than 4 shadow models or 2 documents, or the directory belongs to another run.

    References
    ----------
    .. [1] Manzonelli, Zhang and Vadhan (2024). Membership Inference Attacks and Privacy in Topic Modeling.

    Examples
    --------
    >>> from sklearn.decomposition import LatentDirichletAllocation
    >>> from skdplda.attacks import membership_experiment
    >>> from skdplda.datasets import make_lda_corpus
    >>> X = make_lda_corpus(41, 200, 2, mean_length=20, random_state=0).data
    >>> results = membership_experiment(LatentDirichletAllocation(2, max_iter=2), X, n_models=4, random_state=0)
    >>> sorted(results)[:2]
    ['LiRA offline (zeta)', 'LiRA online (zeta)']
    """
    check_options(vocabulary, repetitions, n_models, attacks)
    if selection not in ("own", "target") or (selection == "target" and not hasattr(estimator, "steps")):
        raise ValueError(f"selection must be 'own', or 'target' for a pipeline that selects words; got {selection!r}.")
    check_seed(random_state, directory)
    X = exact_counts(X)
    if X.shape[0] < 2:
        raise ValueError(f"X must hold at least 2 documents, members and others; got {X.shape[0]}.")
    seeds = np.random.SeedSequence(random_state).generate_state(2 * repetitions).reshape(-1, 2) >> 1
    runs = []
    for number, (seed, shadow_seed) in enumerate(seeds):
        members = random_half(X.shape[0], seed)
        known = np.asarray(X[members].sum(axis=0)) > 0 if vocabulary == "target" else None
        documents = X if known is None else X[:, np.flatnonzero(known)]
        table = target_topics(estimator, documents[members], int(seed), topic_word)
        learner, table_of = estimator, topic_word
        if selection == "target":
            released = np.flatnonzero(table.sum(axis=0) > 0)
            table, documents, learner, table_of = table[:, released], documents[:, released], estimator[-1], None
        shadows = train_shadow_models(
            learner,
            documents,
            n_models,
            statistics=statistics,
            proportions=proportions,
            topic_word=table_of,
            directory=None if directory is None else Path(directory) / f"repetition_{number}",
            n_jobs=n_jobs,
            random_state=int(shadow_seed),
            verbose=verbose,
        )
        results = [] if known is None else [vocabulary_attack(known, X, members)]
        for attack in attacks:
            choices = [{}] if attack == "relative" else [{"statistics": [name]} for name in shadows.names]
            results += [ATTACKS[attack](table, documents, members, shadows, **one) for one in choices]
        results += [threshold_attack(table, documents, members, name, proportions=proportions) for name in thresholds]
        if callback is not None:
            callback(members, documents, table, shadows)
        runs.append({result.name: result for result in results})
    return ExperimentResults(runs)


def check_options(vocabulary, repetitions, n_models, attacks):
    """Raise ValueError unless these are parameters of an experiment."""
    if isinstance(attacks, str) or not all(attack in ATTACKS for attack in attacks):
        raise ValueError(f"attacks must be a sequence of {', '.join(ATTACKS)}; got {attacks!r}.")
    if vocabulary not in ("target", "given"):
        raise ValueError(f"vocabulary must be 'target' or 'given'; got {vocabulary!r}.")
    if not (is_integer(repetitions) and repetitions >= 1):
        raise ValueError(f"repetitions must be an integer of at least 1; got {repetitions!r}.")
    if not (is_integer(n_models) and n_models >= 4):
        raise ValueError(
            f"n_models must be an integer of at least 4, so that two shadow models have each document and two do not;"
            f" got {n_models!r}."
        )


def random_half(n, seed):
    """Return which of n documents train the target."""
    members = np.zeros(n, dtype=bool)
    members[np.random.default_rng(seed).permutation(n)[: n // 2]] = True
    return members
