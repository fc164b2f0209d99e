"""What the estimators that fit by private rounds have in common, beside the loop."""

import warnings
from contextlib import closing, nullcontext

import numpy as np

from skdplda.models._checkpoint import fingerprint, interrupted_key
from skdplda.models._rounds import run_rounds
from skdplda.privacy import Randomness

__all__ = ["fit_rounds", "randomness_of", "settings_of", "warn_of_large_delta", "warn_of_spare_topics"]

NO_MATTER = ("checkpoint", "callback", "n_jobs", "verbose")  # parameters that another run of the same fit may change


def settings_of(estimator):
    """Return, as text, the parameters that another run of the same fit must not change.

    A generator counts by its type: its address and its state are others in each run.
    """
    settings = {name: value for name, value in estimator.get_params().items() if name not in NO_MATTER}
    if isinstance(settings["random_state"], np.random.RandomState):
        settings["random_state"] = np.random.RandomState
    return str(sorted(settings.items()))


def randomness_of(estimator):
    """Return the `Randomness` of a fit: that of the interrupted run, where a checkpoint goes on with one.

    A round that is done again then draws the same hidden state, sample and noise, so that the copies of a checkpoint
    all release the same.
    """
    randomness = Randomness(estimator.random_state, type(estimator).__name__)
    key = interrupted_key(estimator.checkpoint)
    if key is not None:
        randomness.root = key
    return randomness


def warn_of_spare_topics(n_components, n_words, stacklevel=4):
    """Warn the caller of `fit` that there are more topics than words."""
    if n_components > n_words:
        warnings.warn(
            f"n_components={n_components} exceeds the {n_words} words of X: some topics will be alike or"
            " empty. Use at most as many topics as words.",
            UserWarning,
            stacklevel=stacklevel,
        )


def warn_of_large_delta(delta, nominal_size, stacklevel):
    """Warn that a guarantee says little about single units, where a public estimate of their number is known."""
    if nominal_size is not None and delta >= 1 / nominal_size:
        warnings.warn(
            f"delta={delta:g} is not below 1 / nominal_size = {1 / nominal_size:g}: publishing some"
            " documents whole would satisfy it. Choose a much smaller delta.",
            UserWarning,
            stacklevel=stacklevel,
        )


def fit_rounds(estimator, e_step, rule, plan, randomness, *, prior, payment, data, n_threads):
    """Run the private loop for an estimator and set `components_` and `n_iter_`.

    Parameters
    ----------
    estimator : BaseTopicModel
        With the parameters `checkpoint`, `callback` and `verbose`.
    e_step, rule, plan, randomness
        As in `run_rounds`.
    prior : float
        Added to the pseudo-counts of the model.
    payment : Payment
        Charged before the first release.
    data : tuple of ndarray
        What a checkpoint must belong to.
    n_threads : int
        The result does not depend on it.
    """
    identity = ""
    if estimator.checkpoint is not None:
        identity = f"{type(estimator).__name__} {settings_of(estimator)} {fingerprint(*data)}"
    with closing(e_step) if hasattr(e_step, "close") else nullcontext():
        run_rounds(
            e_step,
            rule,
            plan,
            randomness,
            n_threads=n_threads,
            before_release=payment.charge,
            checkpoint=estimator.checkpoint,
            identity=identity,
            callback=estimator.callback,
            verbose=estimator.verbose,
        )
    estimator.components_ = np.ascontiguousarray(rule.pseudo_counts().T) + prior
    estimator.n_iter_ = plan.n_rounds
