"""What runs on a user's device: randomized presence bits, their reports and the guarantee."""

from skdplda.local._channel import BitChannel, bit_epsilon_of_coin, coin_probability, randomize_bits
from skdplda.local._randomizer import LocalRandomizer
from skdplda.local._reports import ReportBatch, make_report, make_reports, read_reports, report_size

__all__ = [
    "BitChannel",
    "LocalRandomizer",
    "ReportBatch",
    "bit_epsilon_of_coin",
    "coin_probability",
    "make_report",
    "make_reports",
    "randomize_bits",
    "read_reports",
    "report_size",
]
