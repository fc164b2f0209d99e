"""How a fit pays: asked before it reads data, charged before its first release, once for an interrupted run."""

from contextlib import contextmanager
from typing import Any

from skdplda._types import Iterator
from skdplda.privacy._accountant import ENTERED, active_accountant
from skdplda.privacy._guarantee import PrivacyGuarantee

__all__ = ["Payment", "prepaid"]


class Payment:
    """What one fit owes the ledger that is open around it; without one, nothing.

    Parameters
    ----------
    guarantee : PrivacyGuarantee
        What the fit promises.
    label : str
        The payer, for the ledger.

    Examples
    --------
    >>> from skdplda.privacy import Payment, PrivacyAccountant, PrivacyGuarantee, pure_event
    >>> with PrivacyAccountant(epsilon=1.0) as accountant:
    ...     payment = Payment(PrivacyGuarantee(epsilon=0.5, status="proven", event=pure_event(0.5)), "topics")
    ...     payment.check()
    ...     payment.charge("run 1")
    ...     payment.charge("run 1")  # the same run, resumed
    >>> accountant.remaining_epsilon
    0.5
    """

    def __init__(self, guarantee: PrivacyGuarantee, label: str) -> None:
        self.guarantee, self._label = guarantee, label
        self._accountant = active_accountant()

    def check(self, run: str | None = None) -> None:
        """Raise what the ledger raises if it cannot afford the fit, and spend nothing.

        Parameters
        ----------
        run : str, default=None
            The interrupted run that is to go on; None for a new one.

        Raises
        ------
        BudgetExceededError, IncompatibleGuaranteeError, ValueError
            As `PrivacyAccountant.check`.
        """
        if self._accountant is not None and not self._charged(run):
            self._accountant.check(self.guarantee)

    def charge(self, run: str) -> None:
        """Spend, unless this run has been paid for.

        Parameters
        ----------
        run : str
            Name of the run; a resumed one keeps it.

        Raises
        ------
        BudgetExceededError, IncompatibleGuaranteeError, ValueError
            As `PrivacyAccountant.spend`.
        """
        if self._accountant is not None and not self._charged(run):
            self._accountant.spend(self.guarantee, label=self._name(run))

    def _name(self, run):
        return f"{self._label} {run}"

    def _charged(self, run):
        return any(entry.label == self._name(run) for entry in self._accountant.ledger)


@contextmanager
def prepaid() -> Iterator[Any]:
    """Let fits inside the block pass the open ledger by: an enclosing release has paid for them.

    Examples
    --------
    >>> from skdplda.privacy import Payment, PrivacyAccountant, PrivacyGuarantee, prepaid
    >>> with PrivacyAccountant(epsilon=1.0) as accountant:
    ...     with prepaid():
    ...         Payment(PrivacyGuarantee(epsilon=5.0), "a run of a search").charge("1")
    >>> accountant.remaining_epsilon
    1.0
    """
    token = ENTERED.set(())
    try:
        yield
    finally:
        ENTERED.reset(token)
