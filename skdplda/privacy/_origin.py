"""Whose class states a guarantee: theorems are about the classes of this package, as they stand.

A subclass that was written elsewhere may do anything in its fit. What it states is claimed, unless its base says which
methods others may add under the theorem, and it replaces no other.
"""

import sys
from abc import ABCMeta
from dataclasses import replace
from inspect import signature
from typing import Any

from skdplda.privacy._guarantee import PrivacyGuarantee, doubted
from skdplda.privacy._units import Status

PACKAGE = __name__.partition(".")[0]
# What a class has of its own in any case, and what neither touches a fit nor what is stated of it.
HARMLESS = {
    "__annotate__", "__annotate_func__", "__annotations__", "__annotations_cache__", "__dict__", "__doc__",
    "__firstlineno__", "__init__", "__module__", "__qualname__", "__slotnames__", "__static_attributes__",
    "__weakref__",
    "_parameter_constraints", "_sklearn_auto_wrap_output_keys",
}  # fmt: skip
BESIDE = {"__getattr__", "__sklearn_clone__"}  # what Python and scikit-learn ask of a class first, if it is there
STATED = {"privacy_guarantee_", "_shared_guarantee"}  # what a fit states; a property by this name would say it instead
OUTSIDE = "no theorem here covers its class, which is not of this package"


def is_of_package(kind: type) -> bool:
    """Whether a class stands in this package under its own name; a copy by another name does not."""
    if kind.__module__.partition(".")[0] != PACKAGE:
        return False
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is kind


def _replaced(owner):
    """Return the names of the package that an object, or its class, has put something else in the place of, sorted."""
    if type(type(owner)) not in (type, ABCMeta):  # which says what the class is, and what its instances are
        return ["the metaclass"]
    kinds = type(owner).__mro__
    first = next((kind for kind in kinds if is_of_package(kind)), object)
    known = BESIDE | set(() if first is object else dir(first))
    # Of all classes that the first one of the package does not derive from: one behind it replaces, too, what Python
    # asks of `object`, and what stands behind itself.
    others = [(name, value) for kind in kinds if kind not in first.__mro__ for name, value in vars(kind).items()]
    own = {name for name, _ in others} & known - HARMLESS
    own = {name for name in own if not (name.startswith("set_") and name.endswith("_request"))}  # by scikit-learn
    # A property in the place of a parameter may be one number to the noise and another to the statement.
    parameters = STATED | {*getattr(first, "_parameter_constraints", ()), *signature(type(owner).__init__).parameters}
    properties = {name for name, value in others if name in parameters and hasattr(type(value), "__get__")}
    shadows = {name for name in vars(owner) if callable(getattr(type(owner), name, None))}
    return sorted(own | properties | shadows)


def _added(owner):
    """Return the methods that others may add under a theorem, if this object's class does nothing else; or None."""
    base = next((kind for kind in type(owner).__mro__ if is_of_package(kind)), object)
    hooks = vars(base).get("_open_hooks")  # not those of a base of the base
    if hooks is None or _replaced(owner) or not all(callable(getattr(owner, hook, None)) for hook in hooks):
        return None
    return hooks


def is_covered(owner: Any) -> bool:
    """Whether the theorems that an object's base cites cover its class, too.

    They do if it is one of this package and none of its methods was replaced. The class of another author is covered if
    it derives from a base with `_open_hooks` at once, adds these methods, and replaces nothing. Nor may any other class
    that it derives from, in front of that base or behind it.
    """
    if is_of_package(type(owner)):
        return not _replaced(owner)
    return _added(owner) is not None


def stated_guarantee(owner: Any, guarantee: PrivacyGuarantee) -> PrivacyGuarantee:
    """Return what is left of a guarantee that an object states of itself, by its class.

    It is the same for classes of this package; with an assumption on the methods that others may add; else claimed.
    """
    name, replaced = type(owner).__name__, ", ".join(_replaced(owner))
    if is_covered(owner):
        hooks = () if is_of_package(type(owner)) else _added(owner)
        added = tuple(f"{name}.{hook}, which is not of this package, treats each document on its own" for hook in hooks)
        return replace(guarantee, assumptions=(*guarantee.assumptions, *added)) if added else guarantee
    if not guarantee.epsilon < float("inf") or not (guarantee.status == Status.PROVEN or guarantee.reason):
        return guarantee
    return doubted(guarantee, f"{OUTSIDE} ({name} replaces {replaced})" if replaced else f"{OUTSIDE} ({name})")


def believed_guarantee(guarantee: PrivacyGuarantee) -> PrivacyGuarantee:
    """Return a guarantee without the doubt that `stated_guarantee` had, for who trusts the class."""
    reasons = guarantee.reason.split("; ")
    left = "; ".join(reason for reason in reasons if not reason.startswith(OUTSIDE))
    if left == guarantee.reason:
        return guarantee
    return replace(guarantee, reason=left, status=guarantee.status if left else Status.PROVEN)
