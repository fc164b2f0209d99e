"""The words of a privacy guarantee: unit, adjacency, trust model and status."""

from enum import StrEnum


class _Word(StrEnum):
    """A closed vocabulary: an unknown word raises an error that lists the known ones."""

    @classmethod
    def _missing_(cls, value):
        names = ", ".join(repr(word.value) for word in cls)
        parameter = {"PrivacyUnit": "unit", "TrustModel": "trust"}.get(cls.__name__, cls.__name__.lower())
        raise ValueError(f"{parameter} must be one of {names}; got {value!r}")


class PrivacyUnit(_Word):
    """What one row of the neighbouring relation is: the thing that is protected.

    Examples
    --------
    >>> from skdplda.privacy import PrivacyUnit
    >>> PrivacyUnit("document") is PrivacyUnit.DOCUMENT
    True
    """

    DOCUMENT = "document"
    TOKEN = "token"  # one word occurrence
    USER = "user"  # all documents of one group
    BIT = "bit"  # the presence of one word in one report


class Adjacency(_Word):
    """How two neighbouring data sets differ: by the presence of one unit, or by its content.

    The two never mix: a guarantee for one is not a guarantee with the same numbers for the other.
    """

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"


class TrustModel(_Word):
    """Who sees raw text: a curator (central), or nobody but its author (local)."""

    CENTRAL = "central"
    LOCAL = "local"


class Status(_Word):
    """How much a guarantee can be leaned on, strongest first."""

    PROVEN = "proven"  # a stated theorem covers exactly the released values
    CLAIMED = "claimed"  # published, but does not hold or is not proven
    DIAGNOSTIC = "diagnostic"  # a measurement, not a guarantee
