"""The guarantees of PCTD where the word counts of semantic units get noise."""

import math

import numpy as np

from skdplda.privacy import PrivacyGuarantee, Randomness, sampler_assumption
from skdplda.rounds._guarantee import NOT_COVERED

TOKEN_L2 = math.sqrt(2) * (1 + 1e-12)  # one word in the place of another changes two counts of a segment by 1
GUIDE = "skdplda theory guide, PCTD"
STRUCTURE = "the numbers of documents and of semantic units, and which units belong to which document"
CUT = "semantic units are cut without regard to the word that is {}"
SIMILARITY = "similarity: independent of the private texts"
COMMON = {"unit": "token", "not_covered": (NOT_COVERED[0], STRUCTURE, *NOT_COVERED[1:])}


def once_guarantee(plan, epsilon, delta, further=()):
    """Return the guarantee of noise on every unit-word count, drawn once, for one word replaced by another in its unit.

    The plan has one round; epsilon and delta are its target, and `further` are more assumptions.
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
        *further,
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
