"""Do what a synchronisation leaves due."""

from typing import Final

from memseal.errors import Finding
from memseal.format.counters import most_counter
from memseal.vault.checkpoint.doubling import keep_doubles
from memseal.vault.compaction import erasing
from memseal.vault.compaction.compacting import compact_when_due
from memseal.vault.folder.locking import lock_keys
from memseal.vault.folder.opening import Opened, clean_traces, drop_stale_cache
from memseal.vault.keys.rekeying import end_handed_over, rekey

_ROOM: Final = 1 << 31
"""Counters that are left to write with: no honest vault uses up so many while a device is away."""


def tend(opened: Opened, remote: str | None, *, at_server: bool) -> list[Finding]:
    """Do it: what lost its id is kept; with the server, counters get room, erases are finished, logs compacted.

    Returns what was noticed; raises what a synchronisation raises.
    """
    drop_stale_cache(opened)
    clean_traces(opened)
    noticed = keep_doubles(opened)
    erasing.erase_orphans(opened)
    lock_keys(opened)  # the data class may have come only now
    if not at_server:
        return noticed
    end_handed_over(opened, remote)
    make_room(opened, remote)
    if not erasing.finish(opened, remote):
        compact_when_due(opened, remote)
    erasing.note_floors(opened)
    return noticed


def make_room(opened: Opened, remote: str | None) -> None:
    """Begin an epoch, which allows higher counters, where those of the present one come to an end (vault-format §9)."""
    if opened.logbook.next_counter() > most_counter(opened.keychain.keyring.public.epoch) - _ROOM:
        rekey(opened, remote)
