"""What a fit charges a ledger: checked before data are read, charged before the first release, once a run."""

import math
from inspect import signature
from threading import Lock
from typing import Any

from skdplda._warnings import warn
from skdplda.exceptions import BudgetExceededError, PrivacyLeakWarning
from skdplda.privacy._accountant import PrivacyAccountant, open_ledger
from skdplda.privacy._guarantee import PrivacyGuarantee

STEPS: dict[str, str] = {}  # of streams, that were taken in this process: a digest of the sum that each had
TAKING = Lock()
# Parameters that a ledger does not show: secrets, paths, and what changes no result.
NOT_SHOWN = ("callback", "checkpoint", "n_jobs", "random_state", "verbose")
MOST_CHARACTERS = 60  # of a parameter that is shown
LARGE_DELTA = 1e-3  # above it, a guarantee says little of single documents: no corpus worth a model is that small


class BudgetCharge:
    """What one fit charges the ledger that is open around it, if any: `guarantee`, named by `label`.

    `fitted` is the estimator, whose class and parameters the ledger shows.
    """

    def __init__(self, guarantee: PrivacyGuarantee, label: str, fitted: Any = None) -> None:
        self.guarantee, self._label = guarantee, label
        self._fitted = None if fitted is None else described(fitted)
        self._accountant: PrivacyAccountant | None = None
        self._block_label: str | None = None
        self._looked = False

    def check(self, run: str | None = None) -> None:
        """Raise what the ledger's `check`, or `active_accountant`, raises, and spend nothing. A large delta warns.

        `run` names the interrupted run that is to go on; None is a new one.
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

    def charge(self, run: str, samples: str | None = None) -> None:
        """Spend the guarantee, unless this run, which keeps its name when it is resumed, has been charged already.

        `samples` identifies Poisson samples that follow from a seed: BudgetExceededError if the ledger knows another
        run that had them, since it composes samples as independent.
        """
        ledger = self._ledger()
        if ledger is None:
            return
        with ledger._lock:
            if samples is not None and ledger._steps.get(f"samples {samples}", run) != run:
                raise BudgetExceededError(
                    "random_state was used before under this ledger, for a fit on samples: the same documents would be"
                    " drawn, and the ledger counts on independent samples. Use random_state=None, or another secret."
                    " Nothing was released or spent."
                )
            # Two processes may resume one run, of which the ledger charges one.
            ledger.spend(self.guarantee, self._block_label, fitted=self._fitted, run=self._name(run))
            if samples is not None:
                ledger._note_step(f"samples {samples}", run)

    def take_step(self, run: str, number: int, digest: str) -> None:
        """Note the sum of step `number` of a stream; BudgetExceededError for one that this step has not had.

        It would be one more release. Steps are known to this process, and to the ledger that is open. All copies of a
        stream have the name `run`; `digest` is of the sum that is about to be released with noise.
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
        """Return the ledger that was open at the first look: a fit keeps to one."""
        if not self._looked:
            (self._accountant, self._block_label), self._looked = open_ledger(), True
        return self._accountant

    def _name(self, run):
        return f"{self._label} {run}"

    def _charged(self, ledger, run):
        return run is not None and any(entry.run == self._name(run) for entry in ledger.ledger)


def described(estimator):
    """Return the class of an estimator and what it was given, as far as that is public and short."""
    defaults, shown = signature(type(estimator)).parameters, []
    for name, value in estimator.get_params(deep=False).items():
        default = getattr(defaults.get(name), "default", None)
        if name in NOT_SHOWN or (name not in ("epsilon", "delta") and repr(value) == repr(default)):
            continue
        plain = value is None or isinstance(value, (bool, int, float, str))
        text = repr(value) if plain else described(value) if hasattr(value, "get_params") else "..."
        shown.append(f"{name}={text if len(text) <= MOST_CHARACTERS or not plain else '...'}")
    return f"{type(estimator).__name__}({', '.join(shown)})"
