"""Count the requests to each vault, and refuse those beyond what one may have."""

import asyncio
import ipaddress
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable

from memseal_server.problems import Problem

# So many seconds' worth of requests may come at once: a first sync is many small ones.
_BURST_SECONDS = 10
# Of an IPv6 address: what one customer is given is at least this, to draw addresses from as he likes.
_IPV6_BITS = 64


def network_of(address: str | None) -> str:
    """Return what stands for whoever sends from an address: the address, or its network where one has very many."""
    try:
        found = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return ""  # a socket without addresses
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:  # as a socket for both kinds shows it
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, _IPV6_BITS), strict=False))


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
