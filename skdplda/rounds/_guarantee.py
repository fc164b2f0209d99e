"""The guarantee of a fit by private rounds."""

from dataclasses import replace

import numpy as np

from skdplda.privacy import PrivacyGuarantee, Randomness, sampler_assumption

NOT_COVERED = (
    "the vocabulary (columns of X), unless it is public or was selected privately",
    "topic proportions of training documents",
    "hyper-parameters tuned on the same data",
)


def rounds_guarantee(plan, unit, epsilon, delta, *, hidden, assumptions=(), has_noise=True, priors=(), **changes):
    """Return the guarantee of `converse` for a plan and a privacy unit, without a limit for `epsilon=inf`.

    Epsilon and delta are the plan's target; mechanisms of pure epsilon do not use delta. `hidden` is the assumption on
    the random draws in the hidden state, empty if there are none; `assumptions` are further ones, where there is noise.
    `has_noise` says whether the model has numbers of signal and noise, if there is noise at all, and `priors` names
    the fitted priors. `changes` are other fields of the guarantee, in place of those of proven rounds.
    """
    private = np.isfinite(epsilon)
    law = plan.law
    stated = [
        "hidden state, checkpoints and raw text stay with the curator",
        *([hidden] if hidden else []),
        Randomness.assumption,
        sampler_assumption(in_delta=law.has_delta),
        *assumptions,
    ]
    if plan.sampling_rate < 1:
        stated.append("which units take part in a round stays secret")
    fields = {
        "mechanism": plan.describe(unit),
        "released": (
            *plan.released,
            "components_",
            "topic_word_",
            "n_iter_",
            *(("signal_to_noise_", "topic_signal_to_noise_") if has_noise and not plan.noiseless else ()),
            *priors,
        ),
        "assumptions": tuple(stated),
        "status": "proven",
        "reference": f"skdplda theory guide, {plan.theorem}",
        "event": plan.event,
        **changes,
    }
    if not private:
        fields |= {"mechanism": "none", "assumptions": (), "event": None}
    delta = delta if law.has_delta and private else 0.0
    return PrivacyGuarantee(epsilon=epsilon, delta=delta, unit=unit, not_covered=NOT_COVERED, **fields)


def with_asked(guarantee, plan, asked):
    """Return the guarantee of a plan, in whose mechanism stand the kinds of sums that the fit has released.

    Where the releases decide what is asked, the plan has all that may be. What was asked is released.
    """
    if not (plan.divides and asked) or plan.noiseless:
        return guarantee
    return replace(guarantee, mechanism=plan.describe(guarantee.unit, asked))
