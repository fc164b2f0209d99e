"""What runs on a user's device: randomized presence bits, their reports and the guarantee."""

from typing import TYPE_CHECKING

from skdplda.local._channel import BitChannel, bit_epsilon_of_coin, randomize_bits
from skdplda.local._reports import ReportBatch, make_report, make_reports, read_reports, report_size

if TYPE_CHECKING:
    from skdplda.local._randomizer import LocalRandomizer

__all__ = [
    "BitChannel",
    "LocalRandomizer",
    "ReportBatch",
    "bit_epsilon_of_coin",
    "make_report",
    "make_reports",
    "randomize_bits",
    "read_reports",
    "report_size",
]


def __getattr__(name):
    if name != "LocalRandomizer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from skdplda.local._randomizer import LocalRandomizer  # an estimator of scikit-learn's, which no device needs

    return globals().setdefault(name, LocalRandomizer)
