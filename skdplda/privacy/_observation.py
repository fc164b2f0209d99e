"""A way for audits to see every release of a fit while it runs. Nothing is kept, in the estimator or here."""

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from skdplda._types import Function

_OBSERVER: ContextVar[Function | None] = ContextVar("observer of releases", default=None)


@contextmanager
def observing(observer: Function) -> Any:
    """Let an audit see the releases of the fits inside.

    `observer` is called with the kind of a release, and its released and public values by name. It must not change
    them.
    """
    token = _OBSERVER.set(observer)
    try:
        yield
    finally:
        _OBSERVER.reset(token)


def observe(kind: str, **values: Any) -> None:
    """Show a release, a "round", "sweep" or "selection", to the audit that runs, if one does.

    The values are what was released, with its noise, and what was public before; of words, the noisy weights of all,
    and not only of those above the threshold.
    """
    observer = _OBSERVER.get()
    if observer is not None:
        observer(kind, **values)
