"""What of a damaged vault can be read, file by file, and what is lost: the plan of a repair."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from memseal.errors import Finding, FormatError
from memseal.format.base import BASE_SIZE
from memseal.format.checkpoint import Manifest, PartEntry
from memseal.format.content import Column
from memseal.format.floor import Floor
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.index.view import View
from memseal.memory.operations import (
    Embed,
    Operation,
    Retraction,
    Tagging,
    decode_meta,
    decode_operation,
    encode_operation,
)
from memseal.store.folder import CHECKPOINTS, DEVICE, KEYRING, LOGS, PARTS, SESSIONS, TRACES
from memseal.vault.copies.bundles import dump, in_records, with_rows
from memseal.vault.copies.verifying import Progress, log_frames, verify
from memseal.vault.folder import session_files
from memseal.vault.folder.batch import restamped
from memseal.vault.folder.cache import VIEW
from memseal.vault.folder.checkpoints import (
    check_part,
    checkpoint_file,
    operations_of,
    part_file,
    read_manifest,
    read_part,
)
from memseal.vault.folder.floors import newest_rows
from memseal.vault.folder.log import Log
from memseal.vault.folder.log_files import log_file, stream_of
from memseal.vault.folder.opening import Opened

Fate = Literal["kept", "cut", "left out", "made anew"]

# What newer software wrote, or a device said wrongly, is no damage: it is copied as it is.
_NO_DAMAGE = frozenset(
    """
    operation_unknown record_flags version_unknown suite_unknown keyring_behind epoch_mismatch stream_ended
    column_value counter_limit counter_false stamp_invalid operation_invalid id_taken
    """.split()
)
# What is this device's alone, and no part of the vault's state.
_OWN = (f"{TRACES}/", f"{SESSIONS}/")
_CARRIED_ON = frozenset("version_unknown suite_unknown keyring_behind epoch_mismatch".split())


@dataclass(frozen=True)
class FilePlan:
    """What becomes of one damaged file: `saved` records are written again elsewhere, `lost` cannot be read.

    Of a file whose beginning is damaged it is not known how many records are lost: None.
    """

    name: str
    fate: Fate
    kept: int
    saved: int
    lost: int | None


@dataclass(frozen=True)
class RepairPlan:
    """What is damaged, what a copy will hold, and what is lost; nothing has been written.

    `memories` is how many can be read, in any state; all of them will be in the copy. `remotes` are where the vault was
    synchronised: what is whole there heals by `sync`, and nothing of it is lost.
    """

    damage: tuple[Finding, ...]
    files: tuple[FilePlan, ...]
    memories: int
    server: str
    remotes: tuple[str, ...]


def damage_of(damaged: Opened, progress: Progress | None) -> tuple[Finding, ...]:
    """Return what is wrong and not only unfinished: a write that was broken off goes with the next one."""
    torn = {(each.code, each.where) for each in damaged.logbook.torn}
    found = (each for each in verify(damaged, progress=progress) if each.code not in _NO_DAMAGE)
    found = (each for each in found if not each.where.startswith(_OWN))  # a copy brings nothing of them back
    return tuple(each for each in found if (each.code, each.where) not in torn)


@dataclass(frozen=True)
class Cut:
    """Up to where a damaged log is copied: bytes and records of the whole log, with all writes before it whole."""

    length: int
    records: int


@dataclass(frozen=True)
class Saved:
    """What a record says that is to be written again: operations with their first stamps, and their columns."""

    values: list[dict[str, Any]]
    columns: tuple[Column, ...]


class Survey:
    """What of a vault can be read, file by file; holds no more than a piece of any."""

    def __init__(self, damaged: Opened, damage: tuple[Finding, ...]) -> None:
        self.damaged = damaged
        self.damage = damage
        self.folder = damaged.folder
        self.rows = newest_rows(damaged.keychain.keyring)
        self.manifest: Manifest | None = None
        self.given_up = set[bytes]()
        """Manifest and parts of the checkpoint that are damaged or missing."""
        self.cuts: dict[bytes, Cut] = {}
        self.spoilt = _spoilt(damaged)
        """Files of traces and kept sessions that a copy does not get: damaged, or ended by an erase."""
        self._files = list[FilePlan]()
        self._erased = frozenset(damaged.logbook.view.state.erasures.ids)
        self._names = {finding.where.partition("#")[0] for finding in damage}
        self._look_at_checkpoint()
        self.highest = self._highest_counter()
        for log in damaged.logbook.logs.values():
            if log.sound is not None and log.name in self._names:
                self._look_at_log(log)
        self._look_at_rest()

    @property
    def is_damaged_within(self) -> bool:
        """Whether a log or the checkpoint is: not only what is made anew at every opening."""
        return any(name.startswith((LOGS, CHECKPOINTS, PARTS)) for name in self._names)

    @property
    def stands_alone(self) -> bool:
        """Whether the copy gets new keys and a checkpoint of its own: only where no server has the vault's."""
        return self.is_damaged_within and not self.damaged.device.marks.server

    @property
    def needs_view(self) -> bool:
        """Whether the whole state is written again: what a checkpoint that is given up held is in no other file."""
        damaged = any(name.startswith((CHECKPOINTS, PARTS)) for name in self._names)
        return bool(self.given_up) and (damaged or self.stands_alone)

    def plan(self) -> RepairPlan:
        """Return what is going to be done."""
        marks = self.damaged.device.marks
        return RepairPlan(
            self.damage,
            tuple(self._files),
            self.damaged.logbook.view.state.count(),
            marks.server,
            tuple(address for address in marks.remotes if address != marks.server),
        )

    def _look_at_checkpoint(self) -> None:
        floor = self.damaged.keychain.keyring.public.floor
        if floor is None:
            return
        try:
            self.manifest = read_manifest(self.folder, self.damaged.keychain, floor)
        except FormatError:
            self.given_up |= {floor.checkpoint, *floor.parts}
            lost = 0 if self._has_all(floor) else None
            self._files.append(FilePlan(checkpoint_file(floor.checkpoint), "left out", 0, 0, lost))
            return
        for entry in self.manifest.parts:
            if not self._is_whole(entry):
                self.given_up.add(entry.id)
                saved = entry.records if self._has_all(floor) else min(entry.records, self._count(self._of_part(entry)))
                self._files.append(FilePlan(part_file(entry.id), "left out", 0, saved, entry.records - saved))

    def _has_all(self, floor: Floor) -> bool:
        """Return whether a checkpoint's content is here, whatever became of its files: a cache has it too."""
        return self.damaged.logbook.floor_applied == floor.checkpoint

    def _highest_counter(self) -> int:
        """Return the highest counter that any operation's stamp may have."""
        logs = (log.counter for log in self.damaged.logbook.logs.values())
        part = 0 if self.manifest is None else self.manifest.counter
        return max([part, *logs, *(row.counter for row in self.rows.values())])

    def _is_whole(self, entry: PartEntry) -> bool:
        try:
            check_part(self.folder.read(part_file(entry.id)) or b"", self.damaged.device.vault_id, entry)
        except FormatError:
            return False
        return True

    def _look_at_log(self, log: Log) -> None:
        cut = _whole_writes(self.damaged, log)
        self.cuts[log.stream.stream_id] = cut
        saved = self._count(self._of_log(log, cut))
        kept = cut.records - log.start.records
        # At least one: at a damaged end nobody can say how many they were.
        ends = max(log.end.records, self._seen(log.stream.stream_id), cut.records + saved + 1)
        self._files.append(FilePlan(log.name, "cut", kept, saved, ends - cut.records - saved))

    def _look_at_rest(self) -> None:
        """List logs that cannot be opened at all or are missing, and what is made anew."""
        named = {plan.name for plan in self._files}
        for name in sorted(self._names - named):
            if name == VIEW:
                self._files.append(FilePlan(name, "made anew", 0, 0, 0))
            elif name in (DEVICE, KEYRING):
                self._files.append(FilePlan(name, "kept", 0, 0, 0))
            elif name.startswith(LOGS):
                self._files.append(self._rest_of(name))
        self._files += (FilePlan(name, "left out", 0, 0, None) for name in sorted(self.spoilt))

    def _rest_of(self, name: str) -> FilePlan:
        stream_id = stream_of(name)
        log, row, seen = self.damaged.logbook.logs.get(stream_id), self.rows.get(stream_id), self._seen(stream_id)
        if log is not None:
            # Shorter than it was seen, but sound.
            return FilePlan(name, "kept", log.end.records - log.start.records, 0, max(0, seen - log.end.records))
        lost = seen - (0 if row is None else row.end.records)
        all_covered = row is not None and (self.folder.size(name) or 0) <= PREAMBLE_SIZE + BASE_SIZE
        return FilePlan(name, "left out", 0, 0, lost if lost > 0 else 0 if all_covered else None)

    def _seen(self, stream_id: bytes) -> int:
        """Return how many records a log had when it, or its name in another log, was last seen."""
        mark, logs = self.damaged.device.marks.logs.get(stream_id), self.damaged.logbook.logs.values()
        return max([0 if mark is None else mark.records, *(log.named.get(stream_id, 0) for log in logs)])

    def carries_on(self, stream_id: bytes) -> bool:
        """Return whether a log that cannot be read here is one of newer software or newer keys: not damage."""
        findings = self.damaged.logbook.findings
        return any(each.where == log_file(stream_id) and each.code in _CARRIED_ON for each in findings)

    def _count(self, saved: Iterator[Saved]) -> int:
        return sum(1 for _ in saved)

    # ── what is saved ───────────────────────────────────────────────────────────────────────────────

    def saved(self) -> Iterator[Saved]:
        """Yield all that is to be written again."""
        for entry in () if self.manifest is None else self.manifest.parts:
            if entry.id in self.given_up:
                yield from self._of_part(entry)
        if self.needs_view:
            yield from _of_view(self.damaged.logbook.view)
        for stream_id, cut in self.cuts.items():
            yield from self._of_log(self.damaged.logbook.logs[stream_id], cut)

    def _of_part(self, entry: PartEntry) -> Iterator[Saved]:
        counter = 0 if self.manifest is None else self.manifest.counter
        for record in read_part(self.folder, self.damaged.device.vault_id, entry, []):
            values = [value for value in operations_of(record) if value.get("stamp") is not None]
            yield Saved(self._effective(values, counter + 1), record.columns)

    def _of_log(self, log: Log, cut: Cut) -> Iterator[Saved]:
        for record in self.damaged.logbook.records(log.stream.stream_id, cut.records, log.end.records):
            try:
                meta = decode_meta(record.content.meta, log.stream.epoch)
            except FormatError:
                continue  # it has no effect anywhere
            yield Saved(self._effective(meta.operations, meta.counter), record.content.columns)

    def _effective(self, values: Iterable[Any], counter: int) -> list[dict[str, Any]]:
        """Return a record's operations that have an effect: what has none must not come to have one elsewhere."""
        kept = list[dict[str, Any]]()
        for position, value in enumerate(values):
            try:
                operation, _ = decode_operation(value, counter, position)
            except FormatError:
                continue
            if _subject(operation) not in self._erased:
                kept.append(restamped(value, counter, position))
        return kept


def _spoilt(damaged: Opened) -> frozenset[str]:
    sessions = session_files.damage(damaged, damaged.folder, read_data=True)
    found = (*damaged.traces.damage(damaged.device), *sessions)
    return frozenset(each.where.partition("#")[0] for each in found)


def _of_view(view: View) -> Iterator[Saved]:
    """Yield the whole state."""
    entries = dump(view)
    for some in in_records(chain(entries.settings(), entries.others())):
        operations, columns = with_rows(view, some)
        stamped = zip(operations, some, strict=True)
        values = [encode_operation(operation, entry.stamp) for operation, entry in stamped]
        yield Saved(values, columns)


def _subject(operation: Operation) -> bytes:
    """Return the id of the memory that an operation brings or is about."""
    return operation.target if isinstance(operation, Retraction | Tagging | Embed) else operation.id


def _whole_writes(damaged: Opened, log: Log) -> Cut:
    """Return where the last whole write ends in a log's sound beginning."""
    sound, last = log.sound or log.start, log.start.records
    for record in damaged.logbook.records(log.stream.stream_id, log.start.records, sound.records):
        if not record.content.more:
            last = record.place.index + 1
    if last == sound.records:
        return Cut(sound.length, last)
    places = log_frames(damaged.logbook.files, log.stream.stream_id, log.start, sound.length)
    return next(Cut(place.offset, last) for place in places if place.index == last)
