"""The inherent-privacy monitor of collapsed Gibbs sampling: a diagnostic, not a guarantee."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class InherentPrivacyHistory:
    """What the monitor measured up to each iteration of a sequential collapsed Gibbs sampler.

    All numbers are in nats and belong to one run on one corpus, as seen by someone who is shown every topic assignment.
    They describe that run; they guarantee nothing about what was released (doc/theory/monitor.rst).

    Parameters
    ----------
    word_level : array-like of shape (n_iterations,)
        Largest sum, over the draws of one token, of the monitor's epsilon for one removed token
        (Theorem 3 of [1]_, whose "word" is a token: each iteration draws its topic once).
    document_level : array-like of shape (n_iterations,)
        The same for a removed document of the longest length.
    worst_draw : array-like of shape (n_iterations,)
        Largest exact loss of a single draw, one token removed.
    sum_of_draws : array-like of shape (n_iterations,)
        Sum of the exact losses of all draws of all tokens, one token removed.

    Raises
    ------
    ValueError
        If the arrays are of different lengths, or hold other numbers.

    References
    ----------
    .. [1] Zhao, Ren, Yang and Yang (2019). On Privacy Protection of Latent Dirichlet Allocation Model
       Training. IJCAI. Algorithms 1 and 2, Theorem 3.

    Examples
    --------
    >>> from skdplda.privacy import InherentPrivacyHistory
    >>> history = InherentPrivacyHistory([0.1, 0.2], [0.5, 1.0], [4.6, 4.6], [310.0, 600.0])
    >>> history.to_frame()["word_level"].tolist()
    [0.1, 0.2]
    """

    word_level: np.ndarray
    document_level: np.ndarray
    worst_draw: np.ndarray
    sum_of_draws: np.ndarray

    def __post_init__(self):
        for field in fields(self):
            values = np.array(getattr(self, field.name), dtype=np.float64)
            if values.shape != np.shape(self.word_level) or values.ndim != 1:
                raise ValueError(f"{field.name} has shape {values.shape}; each array must be of shape (n_iterations,).")
            values.setflags(write=False)
            object.__setattr__(self, field.name, values)

    def to_frame(self) -> "pd.DataFrame":
        """Return the history as a table with one row an iteration.

        The table is a diagnostic: no column is the epsilon of a differential privacy guarantee, for the reasons
        that the class gives.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_iterations, 4)
            The columns are the attributes; the index, named "iteration", counts from 1.
        """
        import pandas as pd

        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        return pd.DataFrame(columns, index=pd.RangeIndex(1, len(self.word_level) + 1, name="iteration"))
