"""What a fit by private rounds costs, and how much noise it has, from its parameters alone: the price of it.

Neither data nor estimators are needed, nor scikit-learn, so that the command line tells a price at once; estimators
state the same by the same code.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skdplda._arithmetic import total
from skdplda.privacy import MECHANISMS, PrivacyGuarantee, seeded_guarantee
from skdplda.rounds._guarantee import rounds_guarantee
from skdplda.rounds._plans import PRECISION_RATIO, BudgetPlan, NoisePlan, growing

__all__ = ["GibbsPrice", "VariationalPrice", "least_share", "planned_noise"]

# What NORM_BOUND is in the tables, in tokens. Only its size relative to the priors matters. By definition, a document
# of 25 different words counts each of them once (its L2 norm is 5).
BOUND_IN_TOKENS = 5.0
# Exponential forgetting factor of the averaged releases; frontier_ablation.csv, row "model: no forgetting".
FORGET = 0.2
FORGET_SQUARES = (1 - FORGET) * (1 - FORGET)  # the factor of variances that belongs to it
# Shares of the budget that releases divide, chosen on Enron, KOS, news and NIPS; doc/frontier.rst, "Little budget": of
# word frequencies and of votes; the part of what is left that words get where the signal is scarce; and of the question
# which prior of topic proportions it is, where none is given (not tuned: little, and above FIT_SHARE).
WORDS_SHARE, VOTES_SHARE, LATE_SHARE, PRIORS_SHARE = 0.06, 0.02, 0.25, 0.015
# Of the question whether vectors fit, and of clusters of documents by vectors.
FIT_SHARE, VECTORS_SHARE = 0.01, 0.1
# Frequent words first: the signals below which they come, and their share.
FREQUENT_SIGNAL, FREQUENT_SHARE = 60.0, 0.1
# Topic rounds: START + signal / STEP, MOST_ROUNDS at most. Chosen on KOS and Enron's senders.
START, STEP, MOST_ROUNDS = 4, 6.0, 20
FEW, FEW_RATIO = 6, 4.0  # so few rounds have a smaller PRECISION_RATIO
# Rounds with noise; frontier_ablation.csv, rows "10 rounds" and "40 rounds".
PRIVATE_ROUNDS = 20


@dataclass(frozen=True)
class RoundsPrice:
    """The price of a fit by private rounds; a subclass has what its E-step adds."""

    epsilon: float  # of the whole fit, as delta
    delta: float
    max_iter: int | None = None  # rounds of topics; None for the default
    mechanism: str = "gaussian"  # one of `skdplda.privacy.MECHANISMS`
    sampling_rate: float = 1.0  # probability that a unit takes part in a round
    plain: bool = True  # whether the fit has the default form in all else, so that releases may divide the budget

    exact_rounds: ClassVar[int]
    exact_priors: ClassVar[tuple[str, ...]] = ("doc_topic_prior_",)  # of default fits without noise

    @property
    def hidden(self) -> tuple[str, ...]:
        """Assumptions on hidden draws: none, where topics are inferred."""
        return ()

    @property
    def divided(self) -> bool:
        """Whether releases decide how the budget is divided: Gaussian noise, and all units in every round."""
        usual = self.plain and self.mechanism == "gaussian" and self.sampling_rate == 1
        return usual and math.isfinite(self.epsilon)

    @property
    def n_rounds(self) -> int:
        """Rounds of topics, where the budget is divided before."""
        default = self.exact_rounds if math.isinf(self.epsilon) else PRIVATE_ROUNDS
        return default if self.max_iter is None else self.max_iter

    def plan(self) -> NoisePlan:
        """Return the noise of all rounds."""
        if self.divided:
            return BudgetPlan.of(self.epsilon, self.delta, least_share(self.max_iter))
        return NoisePlan.calibrate(self.mechanism, self.epsilon, self.delta, self.n_rounds, self.sampling_rate)

    def guarantee(
        self,
        plan: NoisePlan,
        unit: str = "document",
        random_state: Any = None,
        *,
        hidden: tuple[str, ...] = (),
        priors: tuple[str, ...] | None = None,
        **stated: Any,
    ) -> PrivacyGuarantee:
        """Return the guarantee of a plan; `hidden` are further draws, and `stated` is for `rounds_guarantee`.

        `priors` of None are those of a fit that is given none.
        """
        drawn = "; ".join((*self.hidden, *hidden))
        if priors is None:
            exact = math.isinf(self.epsilon) and self.sampling_rate == 1
            priors = self.exact_priors if exact else ("doc_topic_prior_",) if self.divided else ()
        guarantee = rounds_guarantee(plan, unit, self.epsilon, self.delta, hidden=drawn, priors=priors, **stated)
        return seeded_guarantee(guarantee, random_state)

    def noise(self, plan: NoisePlan, n_components: int | None = None, **options: bool) -> dict[str, Any] | None:
        """Return `noise_deviation` of an estimator, of more than one topic if their number is None.

        `options` are those of `planned_noise`. None where the noise is not known, or there is none.
        """
        if not self.divided:
            return None
        if n_components == 1:  # word frequencies alone, released once
            first = last = model = BOUND_IN_TOKENS * plan.deviation(0)
            rounds = 1
        else:
            first, last, model = (BOUND_IN_TOKENS * noise for noise in planned_noise(plan, self.max_iter, **options))
            rounds = self.max_iter or MOST_ROUNDS
        numbers = {"first_round": first, "last_round": last, "in_model": model}
        return {name: float(number) for name, number in numbers.items()} | {"rounds": rounds}


class VariationalPrice(RoundsPrice):
    """The price of `VIPSLDA` in full batches."""

    exact_rounds = 50  # not tuned


class GibbsPrice(RoundsPrice):
    """The price of `PrivateCGSLDA`."""

    exact_rounds = 100  # of one sweep, not tuned
    exact_priors = ("doc_topic_prior_", "topic_word_prior_ with short texts")

    @property
    def hidden(self) -> tuple[str, ...]:
        """Assumptions on hidden draws, of noise under which topics are drawn."""
        inferred = MECHANISMS[self.mechanism].norm == 2
        return () if inferred else ("the hidden topic draws of different documents act as independent ones",)

    def noise(self, plan: NoisePlan, n_components: int | None = None, **options: bool) -> dict[str, Any] | None:
        """Return `noise_deviation` of the estimator."""
        if self.divided or plan.noiseless:
            return super().noise(plan, n_components, **options)
        scale = BOUND_IN_TOKENS / plan.sampling_rate
        return {
            "first_round": scale * plan.deviation(0),
            "last_round": scale * plan.deviation(-1),
            "in_model": model_noise(plan),
            "rounds": plan.n_rounds,
        }


def least_share(n_rounds):
    """Return a bound below the share of every release, of at most `n_rounds` (None: MOST_ROUNDS) topic rounds."""
    left = 1 - (WORDS_SHARE + FIT_SHARE + max(VECTORS_SHARE, FREQUENT_SHARE) + VOTES_SHARE + PRIORS_SHARE)
    return min(FIT_SHARE, (1 - LATE_SHARE) * left / (PRECISION_RATIO * (n_rounds or MOST_ROUNDS)) * (1 - 1e-9))


def topic_shares(n_rounds, left, infers):
    """Return the shares of so many topic rounds, which leave a part of what is `left` for votes and priors."""
    precisions = growing(n_rounds, PRECISION_RATIO if n_rounds > FEW else FEW_RATIO)
    left -= VOTES_SHARE * (n_rounds > 1)  # after a single round, nothing is to decide
    left -= PRIORS_SHARE * infers
    return (precisions * (left / total(precisions))).tolist()


def planned_noise(plan, n_rounds=None, *, vectors=False, infers=True):
    """Return the greatest standard deviations of noise in a cell of released topics, without data.

    They are of the first round, the last one and the weighted mean of all, over the norm of a contribution. `n_rounds`
    of None are those that the releases may choose; public `vectors`, and a prior that is inferred, have shares of their
    own.
    """
    left = 1 - WORDS_SHARE - FIT_SHARE * vectors
    after_frequent = left - max(FREQUENT_SHARE, VECTORS_SHARE * vectors)
    if n_rounds is not None:
        return tuple(noise_of_topics(plan, n_rounds, after_frequent, LATE_SHARE, infers))
    most = round(START + FREQUENT_SIGNAL / STEP)  # where the signal is so weak that frequent words come first
    return tuple(
        np.maximum(
            noise_of_topics(plan, MOST_ROUNDS, left, 0.0, infers),
            noise_of_topics(plan, most, after_frequent, LATE_SHARE, infers),
        ).tolist()
    )


def noise_of_topics(plan, n_rounds, left, late, infers):
    """Return the three numbers of `planned_noise`, (3,), where so much of the budget is left for topics and votes.

    `late` is the part that words may get of it after the first round.
    """
    first, *later = topic_shares(n_rounds, left, infers)
    shares = [first, *((1 - late) * share for share in later)]
    weight = squares = 0.0
    for share in shares:
        weight, squares = (1 - FORGET) * weight + share, FORGET_SQUARES * squares + share
    return plan.deviation(0) * np.array([*(1 / np.sqrt([shares[0], shares[-1]])), math.sqrt(squares) / weight])


def model_noise(plan, bound_in_tokens=BOUND_IN_TOKENS):
    """Return the standard deviation of the noise in a cell of the model of `SmoothedTables`."""
    deviation = np.array([plan.deviation(t) for t in range(plan.n_rounds)])
    forgotten = np.cumprod(np.append(1.0, np.full(plan.n_rounds - 1, 1 - FORGET)))
    weight = forgotten[::-1] / deviation**2
    return math.sqrt(total((weight * deviation) ** 2)) / total(weight) * bound_in_tokens / plan.sampling_rate
