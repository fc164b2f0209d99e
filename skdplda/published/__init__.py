"""The papers' forms whose privacy is only claimed, and the monitor that is a diagnostic, to reproduce and attack them.

Each warns on every fit, and its guarantee says why its number does not hold or is not proven. The safe classes beside
them, named in "See Also", have the forms that are proven.
"""

from skdplda.published._gibbs import CDPLDA, CDPLDAPlus, InherentPrivacyLDA, PriTopLDA
from skdplda.published._hdp import PublishedHDPLDA
from skdplda.published._item_frequency import PublishedItemFrequencySelector
from skdplda.published._pctd import PublishedPCTD
from skdplda.published._vips import CLAIMED_ACCOUNTINGS, PublishedVIPSLDA, vips_noise_multiplier

__all__ = [
    "CDPLDA",
    "CLAIMED_ACCOUNTINGS",
    "CDPLDAPlus",
    "InherentPrivacyLDA",
    "PriTopLDA",
    "PublishedHDPLDA",
    "PublishedItemFrequencySelector",
    "PublishedPCTD",
    "PublishedVIPSLDA",
    "vips_noise_multiplier",
]
