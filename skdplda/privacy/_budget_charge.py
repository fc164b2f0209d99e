"""What a fit charges a ledger: asked before data are read, charged before the first release, once a run."""

import math
from inspect import signature
from threading import Lock
from typing import Any

from skdplda._warnings import warn
from skdplda.exceptions import BudgetExceededError, PrivacyLeakWarning
from skdplda.privacy._accountant import PrivacyAccountant, open_ledger
from skdplda.privacy._guarantee import PrivacyGuarantee

__all__ = ["BudgetCharge"]

STEPS: dict[str, str] = {}  # of streams, that were taken in this process: a digest of the sum that each had
TAKING = Lock()
# Parameters that a ledger does not tell: secrets, paths, and what changes no result.
UNTOLD = ("callback", "checkpoint", "n_jobs", "random_state", "verbose")
MOST_CHARACTERS = 60  # of a parameter that is told
LARGE_DELTA = 1e-3  # above it, a guarantee says little of single documents: no corpus worth a model is that small


class BudgetCharge:
    """What one fit charges the ledger that is open around it. Where none is open, nothing is charged.

    Parameters
    ----------
    guarantee : PrivacyGuarantee
        The guarantee of the fit, which is its cost.
    label : str
        Names the fit in the ledger.
    fitted : estimator, default=None
        What is fitted, to tell its class and parameters in the ledger.

    Examples
    --------
    >>> from skdplda.privacy import BudgetCharge, PrivacyAccountant, PrivacyGuarantee, pure_event
    >>> with PrivacyAccountant(epsilon=1.0) as accountant:
    ...     charge = BudgetCharge(PrivacyGuarantee(epsilon=0.5, status="proven", event=pure_event(0.5)), "topics")
    ...     charge.check()
    ...     charge.charge("run 1")
    ...     charge.charge("run 1")  # the same run, resumed
    >>> accountant.remaining_epsilon
    0.5
    """

    def __init__(self, guarantee: PrivacyGuarantee, label: str, fitted: Any = None) -> None:
        self.guarantee, self._label = guarantee, label
        self._fitted = None if fitted is None else described(fitted)
        self._accountant: PrivacyAccountant | None = None
        self._block_label: str | None = None
        self._asked = False

    def check(self, run: str | None = None) -> None:
        """Raise what the ledger raises if it cannot afford the fit, and spend nothing. A large delta warns.

        Parameters
        ----------
        run : str, default=None
            The interrupted run that is to go on; None for a new one.

        Raises
        ------
        BudgetExceededError, IncompatibleGuaranteeError, ValueError
            As `PrivacyAccountant.check`.
        RuntimeError
            If a ledger is open that cannot be reached, as `active_accountant`.
        """
        if self.guarantee.delta > LARGE_DELTA and math.isfinite(self.guarantee.epsilon):
            warn(
                f"delta={self.guarantee.delta:g} is above {LARGE_DELTA:g}: to publish each document whole with this"
                " probability would satisfy it. Choose delta well below 1 / (public estimate of the number of"
                " documents or users).",
                PrivacyLeakWarning,
            )
        ledger = self._ledger()
        if ledger is not None and not self._charged(ledger, run):
            ledger.check(self.guarantee)

    def charge(self, run: str) -> None:
        """Spend the guarantee, unless this run has been charged already.

        Parameters
        ----------
        run : str
            Name of the run; a resumed one keeps it.

        Raises
        ------
        BudgetExceededError, IncompatibleGuaranteeError, ValueError
            As `PrivacyAccountant.spend`.
        RuntimeError
            If a ledger is open that cannot be reached, as `active_accountant`.
        """
        ledger = self._ledger()
        if ledger is not None:  # two processes may resume one run, of which the ledger charges one
            ledger.spend(self.guarantee, self._block_label, fitted=self._fitted, run=self._name(run))

    def take_step(self, run: str, number: int, digest: str) -> None:
        """Note the sum of a step of a stream, or refuse one that this step has not had: it would be one more release.

        Steps are known to this process, and to the ledger that is open.

        Parameters
        ----------
        run : str
            Name of the stream, which all of its copies have.
        number : int
            Of the step, from 0.
        digest : str
            Of the sum that is about to be released with noise.

        Raises
        ------
        BudgetExceededError
            If the step has been taken with another batch. Nothing was released.
        """
        step, ledger = f"{run} {number}", self._ledger()
        with TAKING:
            known = STEPS.get(step, digest)
            if known == digest and ledger is not None:
                known = ledger._note_step(step, digest)
            if known == digest:
                STEPS[step] = digest
                return
        raise BudgetExceededError(
            f"step {number + 1} of this stream has been taken with another batch, maybe by a copy of it: two releases"
            " of one step cost more than the guarantee says. Go on from the copy that took it, or give it the same"
            " batch again, which makes the same release; or begin a new stream with clone(estimator). Nothing was"
            " released."
        )

    def _ledger(self):
        """Return the ledger that was open when it was first asked for: a fit keeps to one."""
        if not self._asked:
            (self._accountant, self._block_label), self._asked = open_ledger(), True
        return self._accountant

    def _name(self, run):
        return f"{self._label} {run}"

    def _charged(self, ledger, run):
        return run is not None and any(entry.run == self._name(run) for entry in ledger.ledger)


def described(estimator):
    """Return the class of an estimator and what it was given, as far as that is public and short."""
    defaults, told = signature(type(estimator)).parameters, []
    for name, value in estimator.get_params(deep=False).items():
        default = getattr(defaults.get(name), "default", None)
        if name in UNTOLD or (name not in ("epsilon", "delta") and repr(value) == repr(default)):
            continue
        plain = value is None or isinstance(value, (bool, int, float, str))
        text = repr(value) if plain else described(value) if hasattr(value, "get_params") else "..."
        told.append(f"{name}={text if len(text) <= MOST_CHARACTERS or not plain else '...'}")
    return f"{type(estimator).__name__}({', '.join(told)})"
