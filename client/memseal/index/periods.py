"""Which memories are of a time, as an SQL condition over `memories m`."""

from collections.abc import Sequence

import numpy as np

from memseal.index.filters import Condition
from memseal.index.gather import Favoured
from memseal.index.state import VaultState
from memseal.recall.period import Period

_TIME = "coalesce(m.captured_at, m.written_at)"
# Two questions, because only the minimum or the maximum alone is read off the index.
_RANGE = """
SELECT (SELECT min(coalesce(captured_at, written_at)) FROM memories),
       (SELECT max(coalesce(captured_at, written_at)) FROM memories)
"""


def of_time(state: VaultState, period: Period, wanted: Condition) -> Condition:
    """Return a condition narrowed to a period; spans in which no memory lies are left out, or there may be hundreds."""
    first, last = state.connection.execute(_RANGE).fetchone()
    bounds = [] if first is None else [each for each in period.bounds() if each[0] <= last and each[1] > first]
    parts = " OR ".join([f"({_TIME} >= ? AND {_TIME} < ?)"] * len(bounds)) or "0"
    values = [bound for pair in bounds for bound in pair]
    return Condition(f"{wanted.where} AND ({parts})", (*wanted.values, *values), narrow=True)


def favoured(state: VaultState, wanted: Condition, count: int) -> Favoured:
    """Return the memories of a condition that `of_time` gave, and the newest `count` of them."""
    return Favoured(state.mask(wanted.where, wanted.values), np.array(_newest(state, wanted, count), np.int64))


def _newest(state: VaultState, wanted: Condition, count: int) -> Sequence[int]:
    rows = state.connection.execute(
        f"SELECT m.n FROM memories m WHERE {wanted.where} ORDER BY {_TIME} DESC, m.n DESC LIMIT ?",  # noqa: S608
        (*wanted.values, count),
    )
    return [row[0] for row in rows]
