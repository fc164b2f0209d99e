"""Warnings and errors of the package."""


class PrivacyLeakWarning(UserWarning):
    """Something leaves the fit that its privacy guarantee covers only under an assumption, or not at all."""


class NoisyTopicsWarning(UserWarning):
    """Most topics of a fit hold more noise than topic; said from what the fit released.

    Where it is about counts of topics, its attribute `counts` has them: they are paid for, also if warnings are errors.
    """


class BudgetExceededError(ValueError):
    """A fit would cost more than what remains of the privacy budget; no data was read."""


class EmptySelectionError(ValueError):
    """A private selection released no word; its budget is spent."""


class IncompatibleGuaranteeError(ValueError):
    """Guarantees of different unit, adjacency or trust model cannot be composed."""


class UnreachableLedgerError(RuntimeError):
    """A ledger is open that this fit cannot charge, or it is not clear which of several; no data was read."""
