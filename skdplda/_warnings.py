"""Warnings that point at the line of the user's which asked for what is warned of."""

import sys
import warnings

PASSED_OVER = {"skdplda", "sklearn", "joblib", "contextlib", "tqdm"}  # between that line and the place that warns


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line outside this package, and outside scikit-learn, which wraps `fit` and calls it.

    Candidates of a search do not warn where the model that it fits at the end will.
    """
    level, frame, tries = 2, sys._getframe(1), False
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in PASSED_OVER:
        if tries and getattr(frame.f_locals.get("self"), "refit", False):
            return
        tries |= frame.f_code.co_name == "_fit_and_score"  # of sklearn.model_selection
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
