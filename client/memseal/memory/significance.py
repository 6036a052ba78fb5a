"""How much a memory counts by how often and how long ago (memory-model §2)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Seen weekly for a quarter of a year, twelve times: 1 − e^(−12·κ) = 0.92.
KAPPA: Final = 0.21
DECAY_PER_DAY: Mapping[str, float] = MappingProxyType({"general": 0.005, "medical": 0.002, "archival": 0.0007})
"""λ of each data class."""
DAY_MICROSECONDS: Final = 86_400 * 1_000_000


def significance(seen: ArrayLike, days: ArrayLike, decay: float = DECAY_PER_DAY["general"]) -> NDArray[np.float64]:
    """Return σ of what was seen so often, the last time `days` ago: from 0 to below 1; `decay` is λ per day."""
    often: NDArray[np.float64] = -np.expm1(-KAPPA * np.maximum(seen, 0))
    return often * freshness(days, decay)


def freshness(days: ArrayLike, decay: float) -> NDArray[np.float64]:
    """Return e^(−λ·days): 1 for now and for what is yet to come."""
    fresh: NDArray[np.float64] = np.exp(-decay * np.maximum(days, 0.0))
    return fresh
