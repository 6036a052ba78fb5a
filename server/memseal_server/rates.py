"""Count the requests to each vault, and refuse those beyond what one may have."""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable

from memseal_server.problems import Problem

# So many seconds' worth of requests may come at once: a first sync is many small ones.
_BURST_SECONDS = 10


class Rates:
    """What each payer has used of its allowance, in this process: `per_second` in the long run (None: no limit)."""

    def __init__(self, per_second: int | None, clock: Callable[[], float] | None = None) -> None:
        """Take a clock that gives seconds."""
        self._per_second = per_second
        self._clock = clock or asyncio.get_running_loop().time
        # When each payer's allowance will be whole again. Those who are whole are forgotten, so this stays small.
        self._whole_at: OrderedDict[Hashable, float] = OrderedDict()

    def take(self, payer: Hashable) -> None:
        """Count one request; `rate` where the payer has none left now."""
        if self._per_second is None:
            return
        now = self._clock()
        self._forget(now)
        whole_at = max(now, self._whole_at.get(payer, now)) + 1 / self._per_second
        wait = whole_at - now - _BURST_SECONDS
        if wait > 0:
            headers = {"Retry-After": str(math.ceil(wait))}
            raise Problem("rate", "Send fewer requests: wait as long as Retry-After says.", headers=headers)
        self._whole_at[payer] = whole_at
        self._whole_at.move_to_end(payer)

    def _forget(self, now: float) -> None:
        # In the order of their last requests, which is nearly that of becoming whole.
        while self._whole_at and next(iter(self._whole_at.values())) <= now:
            self._whole_at.popitem(last=False)
