"""Erase memories for good, everywhere, and say where that is done (vault-format §8b and §10)."""

import contextlib
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, TypeAlias

from memseal.errors import (
    DeviceEnded,
    Finding,
    FormatError,
    MemoryUnknown,
    NetworkError,
    PassphraseWrong,
    ServerError,
)
from memseal.format.keyring import DeviceEntry
from memseal.index.state import VaultState
from memseal.memory.memory import from_microseconds
from memseal.memory.operations import Erase
from memseal.memory.proposals import PROPOSAL, folded, stored_from
from memseal.store.folder import CHECKPOINTS
from memseal.vault.checkpoint.covering import quarantine
from memseal.vault.compaction.compacting import compact
from memseal.vault.folder.batch import Batch
from memseal.vault.folder.opening import Opened, clean_traces, drop_stale_cache
from memseal.vault.keys.rekeying import rekey
from memseal.vault.writes.writing import new_id, present

Progress: TypeAlias = Literal["gone", "pending", "requested"]


@dataclass(frozen=True)
class Place:
    """One place that held the content: whether it is gone there, still to go, or another device was asked."""

    name: str
    progress: Progress
    detail: str


@dataclass(frozen=True)
class Erasure:
    """The receipt of one erase; ids are 32 hex digits.

    `survivors` are memories that supersede an erased one and were written elsewhere before the erase was known: keep
    them, or erase them too.
    """

    id: str
    erased: tuple[str, ...]
    survivors: tuple[str, ...]
    at: datetime
    reason: str | None
    places: tuple[Place, ...]

    @property
    def done(self) -> bool:
        """Whether nothing is left to do here and on the server."""
        return all(place.progress != "pending" for place in self.places)


def erase(
    opened: Opened, ids: Iterable[bytes], operation_id: bytes, at: int, reason: str | None, random: bytes
) -> Erasure:
    """Erase memories, all that are the same, ancestors, descendants, and proposals; `at` in µs, `random` 4 bytes.

    What cannot be reached now is pending, and done at a later synchronisation.
    """
    targets, texts = reach(opened.logbook.view.state, ids)
    opened.logbook.write([Batch([Erase(operation_id, targets, at, reason)])], random)
    drop_stale_cache(opened)  # its secret is gone before the receipt says so
    clean_traces(opened, texts)
    # The receipt says what is pending. Whose keys have ended hears of it at the next synchronisation: here it is gone.
    with contextlib.suppress(NetworkError, ServerError, PassphraseWrong, DeviceEnded):
        finish(opened, None)
        note_floors(opened)
    return next(each for each in erasures(opened) if each.id == operation_id.hex())


def reach(state: VaultState, ids: Iterable[bytes]) -> tuple[tuple[bytes, ...], set[str]]:
    """Return the ids that an erase of these names, in order, and the texts that go.

    A proposal that says the same, or would replace what goes, is named as well: it would bring it back. Raises
    `MemoryUnknown` for what is neither a memory nor a proposal.
    """
    targets = set[bytes]()
    for each in ids:
        number = state.number_of(each)
        if number is None and state.setting(PROPOSAL + each.hex()) is None:
            raise MemoryUnknown(f"no memory and no proposal has the id {each.hex()}")
        targets |= {each} if number is None else state.family(number)
    texts = {memory.content for memory in state.memories([state.number_with(each) or 0 for each in sorted(targets)])}
    said = {folded(text) for text in texts}
    for name, value in state.settings_named(PROPOSAL):
        if stored := stored_from(name, value):
            content = stored.operation.draft.content
            if stored.id in targets or stored.operation.of in targets or folded(content) in said:
                targets.add(stored.id)
                texts.add(content)
    return tuple(sorted(targets)), texts


def erase_orphans(opened: Opened) -> None:
    """Erase what a job elsewhere made of memories before it was known there that these are erased."""
    state = opened.logbook.view.state
    if orphans := state.erasures.orphans():
        targets, texts = reach(state, orphans)
        erasure = Erase(new_id(), targets, present(), "made of what was erased")
        opened.logbook.write([Batch([erasure])], secrets.token_bytes(4))
        drop_stale_cache(opened)
        clean_traces(opened, texts)


def finish(opened: Opened, remote: str | None) -> bool:
    """Begin a new epoch, commit a checkpoint without what was erased, and cut the logs; False where that must wait.

    The epoch comes first: the checkpoint is sealed under the new key, so that the older ones can leave the keyring.
    Raises what a synchronisation raises.
    """
    blocked = any(not each.dismissed for each in quarantine(opened.logbook)) or _is_checkpoint_damaged(opened)
    if blocked or not opened.logbook.view.state.erasures.is_due():
        return False
    rekey(opened, remote)
    try:
        return compact(opened, remote, thorough=False) is not None
    except FormatError as error:
        # Damage that this opening had not come upon, because the cache held what is there: named, and not tried again.
        opened.logbook.note(Finding(error.code, CHECKPOINTS, str(error)))
        opened.logbook.floor_applied = b""
        return False


def _is_checkpoint_damaged(opened: Opened) -> bool:
    floor = opened.keychain.keyring.public.floor
    return floor is not None and opened.logbook.floor_applied != floor.checkpoint


def erasures(opened: Opened) -> list[Erasure]:
    """Return the receipts of all erasures, the earliest first."""
    state = opened.logbook.view.state
    return [
        Erasure(
            id=erasure.hex(),
            erased=tuple(target.hex() for target in state.erasures.targets_of(erasure)),
            survivors=tuple(memory.id for memory in state.memories(state.erasures.survivors_of(erasure))),
            at=from_microseconds(at),
            reason=reason,
            places=tuple(
                _places(
                    opened,
                    covered and not state.erasures.reappeared(erasure),
                    opened.device.marks.erasures.get(erasure),
                )
            ),
        )
        for erasure, at, reason, covered in state.erasures.listed()
    ]


def _places(opened: Opened, covered: bool, since: int | None) -> Iterator[Place]:
    for name in ("state", "full-text index", "vectors"):
        yield Place(name, "gone", "removed from memory")
    yield Place("cache", "gone", "deleted, and made anew without it")
    yield Place("sessions", "gone", "all that were kept are ended: any of them may have held it")
    if opened.traces.are_clean(opened.logbook.view.state.erasures.ids):
        yield Place("traces", "gone", "taken out of them, with what was asked for it")
    else:
        yield Place("traces", "pending", "the disk refused: with the next opening or synchronisation")
    blocked = any(not each.dismissed for each in quarantine(opened.logbook))
    waits = "a record that cannot be read holds it back: `quarantine`" if blocked else "with the next synchronisation"
    progress: Progress = "gone" if covered else "pending"
    yield Place("logs", progress, "cut at the floor" if covered else waits)
    yield Place("checkpoint", progress, "made anew without it" if covered else waits)
    yield Place("older keys", progress, "left out of the keyring" if covered else waits)
    server = opened.device.marks.server
    if server:
        yield Place(f"server {server}", progress, "told to delete it with the floor" if covered else waits)
    for address in opened.device.marks.remotes:
        if address != server:
            yield Place(f"remote {address}", "pending", "keeps its copy: delete it there")
    names = opened.keychain.secrets.names
    for entry in opened.keychain.keyring.public.active():
        if entry.id != opened.device.device_id:
            name = f"device {names.get(entry.id) or entry.id.hex()}"
            yield Place(name, *(_progress_of(opened, entry, since) if covered else _REQUESTED))


_REQUESTED: tuple[Progress, str] = ("requested", "at its next synchronisation")


def _progress_of(opened: Opened, entry: DeviceEntry, since: int | None) -> tuple[Progress, str]:
    """Return whether another device has shown that it went over to a floor of the version `since`, which erased.

    It did where it writes in an epoch of that floor or later, and after all that the floor covers: whoever reads so
    far takes the floor over. Others may have done so too, and not written since.
    """
    if since is None or since > len(opened.keychain.keyring.versions):
        return _REQUESTED
    public = opened.keychain.keyring.versions[since - 1].public
    first = min(each.since for each in opened.keychain.keyring.public.devices if each.id == entry.id)
    if first >= since:
        return "gone", "it joined afterwards"
    covered = max((row.counter for row in public.floor.rows.values()), default=0) if public.floor else 0
    for log in opened.logbook.logs.values():
        if log.stream.owner.id == entry.id and log.stream.epoch >= public.epoch and log.counter > covered:
            return "gone", "it has taken the floor over, as what it wrote since shows"
    return _REQUESTED


def note_floors(opened: Opened) -> None:
    """Note of each erase that the newest floor's checkpoint knows with which version that began."""
    marks, version = opened.device.marks, opened.keychain.keyring.public.version
    covered = [erasure for erasure, _, _, is_covered in opened.logbook.view.state.erasures.listed() if is_covered]
    known = {erasure: marks.erasures.get(erasure, version) for erasure in covered}
    if known != marks.erasures:
        opened.device = opened.device.with_marks(replace(marks, erasures=known))
        opened.device.save(opened.folder)
