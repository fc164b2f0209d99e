"""What VIPSLDA promises, and what share of the documents a step sees: both from public numbers alone."""

from skdplda.models._promise import claimed_path, rounds_guarantee
from skdplda.privacy import CLAIMED_ACCOUNTINGS, seeded_guarantee

__all__ = ["sampled_share", "vips_guarantee"]

CUT = "the tokens kept of different documents are drawn independently"


def sampled_share(sampling_rate, batch_size, nominal_size):
    """Return the probability that a document (user) takes part in a step.

    Parameters
    ----------
    sampling_rate : float or None
        That probability.
    batch_size, nominal_size : int or None
        In its place: documents of a step, and of the corpus.

    Returns
    -------
    share : float
        1 if nothing is given.

    Raises
    ------
    ValueError
        If they contradict each other, or one is missing.
    """
    if batch_size is None:
        return 1.0 if sampling_rate is None else float(sampling_rate)
    if sampling_rate is not None:
        raise ValueError("give batch_size or sampling_rate, not both: one follows from the other and nominal_size.")
    if nominal_size is None:
        raise ValueError(f"batch_size={batch_size} needs nominal_size, a public estimate of all documents.")
    if batch_size > nominal_size:
        raise ValueError(f"batch_size={batch_size} must be at most nominal_size={nominal_size}.")
    return batch_size / nominal_size


def vips_guarantee(model, unit, plan, stream):
    """Return the guarantee of a fit or a stream.

    Parameters
    ----------
    model : VIPSLDA
        Its parameters are read.
    unit : {"document", "user"}
        What is protected.
    plan : NoisePlan
        The noise of all rounds.
    stream : bool
        Whether batches come through `partial_fit`.

    Returns
    -------
    guarantee : PrivacyGuarantee
        Proven, or claimed for the accountings of the paper.
    """
    assumptions, changes = (), {}
    if stream:
        visits = "every batch" if model.max_visits is None else f"at most {model.max_visits} batches"
        assumptions = (f"a {unit} may come in {visits}, in which depends on no other {unit} nor on the model",)
    if model.accounting in CLAIMED_ACCOUNTINGS and not plan.noiseless:
        changes = claimed_path(model.accounting, plan, model.epsilon, model.delta)
    guarantee = rounds_guarantee(
        plan,
        unit,
        model.epsilon,
        model.delta,
        **changes,
        hidden="" if model.max_doc_length is None else CUT,
        assumptions=assumptions,
    )
    return seeded_guarantee(guarantee, model.random_state)
