"""The guarantees of PCTD where the word counts of semantic units get noise."""

import math

import numpy as np

from skdplda.privacy import PrivacyGuarantee, Randomness, sampler_assumption
from skdplda.rounds._guarantee import NOT_COVERED

__all__ = ["CLAIMED", "GUIDE", "TOKEN_L2", "once_guarantee", "published_guarantee"]

TOKEN_L2 = math.sqrt(2) * (1 + 1e-12)  # one word in the place of another changes two counts of a segment by 1
GUIDE = "skdplda theory guide, PCTD"
REFERENCE = "Shi et al. (2019), Semantic Consistent Topic Discovery with Differential Privacy, Algorithm 1"
STRUCTURE = "the numbers of documents and of semantic units, and which units belong to which document"
CLAIMED = {
    "all": "the noise is drawn anew in each iteration and every draw is counted, for one word present in or absent from"
    " a unit; the published Theorem 1 states an order of magnitude. Documents are not protected, and the noise"
    " is floating point, whose low-order bits the analysis leaves out.",
    "observed": "only counts that are not 0 get noise, so the words that occur in a unit are told apart from those that"
    " do not: a word present in one data set and absent from the other is seen with certainty.",
}
CUT = "semantic units are cut without regard to the word that is {}"
COMMON = {"unit": "token", "not_covered": (NOT_COVERED[0], STRUCTURE, *NOT_COVERED[1:])}


def once_guarantee(plan, epsilon, delta):
    """Return the guarantee of noise on every unit-word count, drawn once, for one word replaced by another in its unit.

    The plan has one round; epsilon and delta are its target.
    """
    private = bool(np.isfinite(epsilon))
    noise = (
        f"rounded Gaussian noise of standard deviation {plan.multipliers[0] * TOKEN_L2:.4g} on the count of every"
        " vocabulary word in every semantic unit, drawn once"
    )
    assumptions = (
        "raw text stays with the curator",
        CUT.format("replaced"),
        Randomness.assumption,
        sampler_assumption(in_delta=True),
    )
    return PrivacyGuarantee(
        epsilon=epsilon,
        delta=delta if private else 0.0,
        status="proven",
        adjacency="replace",
        mechanism=noise if private else "none",
        released=("noisy unit-word counts", "components_", "topic_word_", "n_iter_"),
        assumptions=assumptions if private else (),
        reference=GUIDE,
        event=plan.event if private else None,
        **COMMON,
    )


def published_guarantee(plan, epsilon, delta, support):
    """Return the guarantee of fresh noise in each iteration, for one word present or absent.

    The plan has as many rounds as there are iterations; epsilon and delta are its target. `support`, "all" or
    "observed", says which counts get noise. Claimed; infinite where there is no noise on counts that are 0.
    """
    private = bool(np.isfinite(epsilon))
    counted = private and support == "all"
    where = "every vocabulary word" if support == "all" else "every word that occurs"
    return PrivacyGuarantee(
        epsilon=epsilon if counted else np.inf,
        delta=delta if counted else 0.0,
        status="claimed",
        reason=CLAIMED[support] if private else "no noise is added.",
        mechanism=(
            f"normal noise of standard deviation {plan.multipliers[0]:.4g} on the count of {where} in each"
            f" semantic unit, drawn anew in each of {plan.n_rounds} iterations"
            if private
            else "none"
        ),
        released=("components_", "topic_word_", "n_iter_") if counted else (),
        assumptions=(CUT.format("present or absent"),) * private,
        reference=REFERENCE,
        event=plan.event if counted else None,
        **COMMON,
    )
