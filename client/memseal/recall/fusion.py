"""Join the lexical and the dense score."""

import numpy as np
from numpy.typing import NDArray

# Scores that differ by less than this part of the best one are as good as equal: without it, a word more in one of two
# memories weighs as much as the time that was asked for.
_LEAST_SPREAD = 0.1


def standardise(
    scores: NDArray[np.float64], counting: NDArray[np.bool_] | None = None, least_spread: float = _LEAST_SPREAD
) -> NDArray[np.float64]:
    """Return z-scores; a missing score (NaN) counts as the mean, equal scores are all 0, and near ones are near it.

    Mean and deviation are those of the scores that are `counting`, or of all. `least_spread` is the part of the best of
    them that the deviation is taken to be at least.
    """
    is_known = ~np.isnan(scores)
    known = scores[is_known if counting is None else is_known & counting]
    spread = max(float(known.std()), least_spread * float(np.abs(known).max())) if known.size else 0.0
    if spread < 1e-9:
        return np.zeros_like(scores)
    return np.where(np.isnan(scores), 0.0, (scores - known.mean()) / spread)


def fuse(
    lexical: NDArray[np.float64],
    cosine: NDArray[np.float64],
    dense: float,
    counting: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """Return `z(lexical) + dense · z(cosine)`, each by the scores that are `counting`."""
    fused: NDArray[np.float64] = standardise(lexical, counting) + dense * standardise(cosine, counting)
    return fused
