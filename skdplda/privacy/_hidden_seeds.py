"""Secret seeds of estimators: in no text, on no page, and in no pickle of what is fitted."""

from typing import Any

from skdplda._checks import is_integer
from skdplda._files import fingerprint
from skdplda.privacy._randomness import LEAST_BYTES

SHOWN = "<secret seed>"


class Hidden:
    """A value that does not show itself."""

    def __repr__(self) -> str:
        return SHOWN

    __str__ = __repr__


class SecretBytes(Hidden, bytes):
    """A secret seed."""


class SecretInteger(Hidden, int):
    """A secret seed."""


class SecretText(Hidden, str):
    """What was given in the place of a secret, such as its hexadecimal form: errors that refuse it do not show it."""


def is_secret_seed(value: Any) -> bool:
    """Whether a seed is one that a proven fit may have: bytes, or an integer that nobody finds by trying."""
    return isinstance(value, bytes) or (is_integer(value) and int(value) >= 2 ** (8 * LEAST_BYTES))


class HiddenSeedsMixin:
    """Base of the estimators with a `random_state`: a secret seed is shown nowhere, and a fitted one forgets it.

    `get_params` returns secret seeds as values that are equal and do not show themselves: texts and pages, also those
    of pipelines and searches that hold the estimator, are made of it, and `clone` keeps them. What is not fitted keeps
    its seeds in a pickle, because workers fit what was pickled; what is fitted leaves them out.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters; a secret `random_state` does not show itself, and is equal to what was given."""
        return {name: _hidden(name, value) for name, value in super().get_params(deep).items()}  # type: ignore[misc]

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if self._keeps_seeds():
            return state
        state = {name: _forgotten(name, value) for name, value in state.items()}
        if "_fitted_parameters" in state:
            given = state["_fitted_parameters"].items()
            state["_fitted_parameters"] = {name: _forgotten(name, value, _digest) for name, value in given}
        return state

    def _keeps_seeds(self) -> bool:
        """Whether a pickle is to hold secret seeds: as long as the estimator is not fitted."""
        return not any(name.endswith("_") and not name.startswith("_") for name in vars(self))


def is_seed(name: str) -> bool:
    """Whether a parameter, maybe of a nested estimator, is a random_state."""
    return name.rpartition("__")[2] == "random_state"


def _hidden(name: str, value: Any) -> Any:
    """Return a parameter, a secret seed as one that does not show itself."""
    if is_seed(name) and isinstance(value, str) and len(value) >= LEAST_BYTES:
        return value if isinstance(value, SecretText) else SecretText(value)
    if not (is_seed(name) and is_secret_seed(value)) or isinstance(value, (SecretBytes, SecretInteger)):
        return value
    return SecretBytes(value) if isinstance(value, bytes) else SecretInteger(value)


def _digest(seed: Any) -> str:
    """Return what distinguishes secret seeds, once they are forgotten."""
    return f"a secret seed, forgotten: sha256 {fingerprint(seed)[:16]}"


def _forgotten(name: str, value: Any, left: Any = lambda seed: None) -> Any:
    """Return a part of a state without secret seeds, those of estimators in it that are not fitted included."""
    if is_seed(name) and is_secret_seed(value):
        return left(value)
    if hasattr(value, "get_params") and not isinstance(value, type):
        from sklearn.base import clone

        known = value.get_params().items()
        secret = {inner: None for inner, held in known if is_seed(inner) and is_secret_seed(held)}
        return clone(value).set_params(**secret) if secret and not name.endswith("_") else value
    return value
