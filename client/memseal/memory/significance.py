"""How much a memory counts by how often and how long ago (memory-model §2)."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# Seen weekly for a quarter of a year, twelve times: 1 − e^(−12·κ) = 0.92.
KAPPA: Final = 0.21
DECAY_PER_DAY: Mapping[str, float] = MappingProxyType({"general": 0.005, "medical": 0.002, "archival": 0.0007})
"""λ of each data class."""
DAY_MICROSECONDS: Final = 86_400 * 1_000_000


def significance(seen: int, days: float, decay: float = DECAY_PER_DAY["general"]) -> float:
    """Return σ of what was seen `seen` times, the last of them `days` ago: from 0 to below 1; `decay` is λ per day."""
    return -math.expm1(-KAPPA * max(seen, 0)) * freshness(days, decay)


def freshness(days: float, decay: float) -> float:
    """Return e^(−λ·days): 1 for now and for what is yet to come."""
    return math.exp(-decay * max(days, 0.0))
