"""Do what a synchronisation leaves due."""

from typing import Final

from memseal.errors import Finding
from memseal.format.counters import most_counter
from memseal.vault import erasing
from memseal.vault.compacting import compact_when_due
from memseal.vault.doubling import keep_doubles
from memseal.vault.opening import Opened, drop_stale_cache
from memseal.vault.rekeying import rekey

_ROOM: Final = 1 << 31
"""Counters that are left to write with: no honest vault uses up so many while a device is away."""


def tend(opened: Opened, remote: str | None, *, at_server: bool) -> list[Finding]:
    """Drop a stale cache, keep what lost its id; with the server, make room for counters, finish erases, and compact where that is worth it.

    Returns what was noticed; raises what a synchronisation raises.
    """
    drop_stale_cache(opened)
    noticed = keep_doubles(opened)
    if not at_server:
        return noticed
    if is_crowded(opened):
        rekey(opened, remote)
    if not erasing.finish(opened, remote):
        compact_when_due(opened, remote)
    return noticed


def is_crowded(opened: Opened) -> bool:
    """Return whether counters come near the highest of the epoch (vault-format §9): the next one allows higher ones."""
    return opened.logbook.next_counter() > most_counter(opened.keychain.keyring.public.epoch) - _ROOM
