"""Write a repaired copy of a damaged vault: a plan first, then all that can be read, and names for what is lost."""

import contextlib
import secrets
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from memseal.errors import DiskError, Finding, FormatError, VaultMissing
from memseal.format.base import BASE_SIZE
from memseal.format.checkpoint import Manifest, PartEntry
from memseal.format.content import Column
from memseal.format.device_file import Stretch
from memseal.format.floor import Floor, Row
from memseal.format.log import End
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.records import SMALLEST_RECORD
from memseal.index.view import View
from memseal.memory.operations import decode_meta, decode_operation, encode_operation
from memseal.store.folder import CHECKPOINTS, DEVICE, KEYRING, LOCK, LOGS, PARTS, VaultFolder
from memseal.store.lock import VaultLock
from memseal.vault.batch import Batch, restamped
from memseal.vault.bundles import dump, in_records, with_rows
from memseal.vault.cache import VIEW
from memseal.vault.checkpoints import check_part, checkpoint_file, operations_of, part_file, read_manifest, read_part
from memseal.vault.compacting import compact
from memseal.vault.device import Marks, read_device_file
from memseal.vault.floors import base_of, newest_rows, preamble_of
from memseal.vault.keychain import load_keyring
from memseal.vault.log import Log
from memseal.vault.log_files import LogFiles, log_file, stream_of
from memseal.vault.opening import Opened, follow_pin, open_folder, save_marks
from memseal.vault.rekeying import rekey
from memseal.vault.verifying import Progress, frames, verify

Fate = Literal["kept", "cut", "left out", "made anew"]

# What newer software wrote, or a device said wrongly, is no damage: it is copied as it is.
_NO_DAMAGE = frozenset(
    """
    operation_unknown record_flags version_unknown suite_unknown keyring_behind epoch_mismatch stream_ended
    column_value counter_limit counter_false stamp_invalid operation_invalid
    """.split()
)
_CARRIED_ON = frozenset("version_unknown suite_unknown keyring_behind epoch_mismatch".split())
_COPIED = 8 << 20  # bytes of a file that are held while it is copied
# Of what is written again at once: as much as a few records, so that each write costs little and little is held.
_WRITE_BYTES = 16 << 20
_WRITE_RECORDS = 256


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


@dataclass(frozen=True)
class Repair:
    """A repaired copy: where it is, how many memories it holds, whether its state is the one that the damaged vault
    served, and what is still to be said of it.
    """

    path: str
    plan: RepairPlan
    memories: int
    same_state: bool
    findings: tuple[Finding, ...]


Agree = Callable[[RepairPlan], bool]


def repair(
    source: VaultFolder, target: Path, stretch: Stretch, agree: Agree, progress: Progress | None = None
) -> Repair | None:
    """Write a repaired copy, if there is damage and `agree` to the plan; the damaged vault is not touched.

    Raises `VaultExists`, `DeviceFileDamaged`, `FormatError` where the keyring is damaged: a copy cannot heal these.
    """
    if source.path in (target, *target.parents):
        raise DiskError("the copy cannot lie in the vault's own folder: choose a place outside")
    with _undisturbed(source), _open(source, stretch) as damaged:
        digest = damaged.logbook.view.state.digest()
        survey = _Survey(damaged, damage := _damage(damaged, progress))
        plan = survey.plan()
        if not damage or not agree(plan):
            return None
        if not survey.needs_view:
            damaged.logbook.view.close()  # one state in memory is enough
        made = list[Repair]()

        def fill(folder: VaultFolder) -> None:
            _copy(survey, folder)
            _write_again(survey, open_folder(folder, stretch, read_only=False))
            made.append(_proved(folder, stretch, plan, digest, target))

        VaultFolder.create(target, source.disk, secrets.token_hex(8), fill)
    return made[0]


def _damage(damaged: Opened, progress: Progress | None) -> tuple[Finding, ...]:
    """Return what is wrong and not only unfinished: a write that was broken off goes with the next one."""
    torn = {(each.code, each.where) for each in damaged.logbook.torn}
    found = (each for each in verify(damaged, progress=progress) if each.code not in _NO_DAMAGE)
    return tuple(each for each in found if (each.code, each.where) not in torn)


@contextlib.contextmanager
def _undisturbed(source: VaultFolder) -> Generator[None]:
    """Keep others from writing meanwhile; on a disk that is read-only nobody can. Raises `VaultBusy`."""
    lock: VaultLock | None = None
    if (source.path / LOCK).exists():
        with contextlib.suppress(DiskError):
            lock = VaultLock(source.path / LOCK)
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


@contextlib.contextmanager
def _open(source: VaultFolder, stretch: Stretch) -> Generator[Opened]:
    """Open the damaged vault for reading; what no copy can heal is an error that says what does."""
    if not source.exists():
        raise VaultMissing(f"no vault is at {source.path}: give the folder of the damaged one")
    file = read_device_file(source)
    try:
        load_keyring(source, file.vault_id)
    except FormatError as error:
        detail = "a copy cannot heal that: put the keyring folder back from a backup, or join again with the kit"
        raise FormatError(error.code, f"the keyring is damaged ({error}): {detail}") from None
    opened = open_folder(source, stretch, read_only=True)
    try:
        yield opened
    finally:
        opened.logbook.view.close()


# ── what is there ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Cut:
    """Up to where a damaged log is copied: bytes and records of the whole log, with all writes before it whole."""

    length: int
    records: int


@dataclass(frozen=True)
class _Saved:
    """What a record says that is to be written again: operations with their first stamps, and their columns."""

    values: list[dict[str, Any]]
    columns: tuple[Column, ...]


class _Survey:
    """What of a vault can be read, file by file; holds no more than a piece of any."""

    def __init__(self, damaged: Opened, damage: tuple[Finding, ...]) -> None:
        self.damaged = damaged
        self.damage = damage
        self.folder = damaged.folder
        self.rows = newest_rows(damaged.keychain.keyring)
        self.manifest: Manifest | None = None
        self.given_up = set[bytes]()
        """Manifest and parts of the checkpoint that are damaged or missing."""
        self.cuts: dict[bytes, _Cut] = {}
        self._files = list[FilePlan]()
        self._names = {finding.where.partition("#")[0] for finding in damage}
        self._look_at_checkpoint()
        self.highest = self._highest_counter()
        for log in damaged.logbook.logs.values():
            if log.sound is not None:
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

    def _count(self, saved: Iterator[_Saved]) -> int:
        return sum(1 for _ in saved)

    # ── what is saved ───────────────────────────────────────────────────────────────────────────────

    def saved(self) -> Iterator[_Saved]:
        """Yield all that is to be written again."""
        for entry in () if self.manifest is None else self.manifest.parts:
            if entry.id in self.given_up:
                yield from self._of_part(entry)
        if self.needs_view:
            yield from _of_view(self.damaged.logbook.view)
        for stream_id, cut in self.cuts.items():
            yield from self._of_log(self.damaged.logbook.logs[stream_id], cut)

    def _of_part(self, entry: PartEntry) -> Iterator[_Saved]:
        counter = 0 if self.manifest is None else self.manifest.counter
        for record in read_part(self.folder, self.damaged.device.vault_id, entry, []):
            values = [value for value in operations_of(record) if value.get("stamp") is not None]
            yield _saved(values, record.columns, counter + 1)

    def _of_log(self, log: Log, cut: _Cut) -> Iterator[_Saved]:
        for record in self.damaged.logbook.records(log.stream.stream_id, cut.records, log.end.records):
            try:
                meta = decode_meta(record.content.meta)
            except FormatError:
                continue  # it has no effect anywhere
            yield _saved(list(meta.operations), record.content.columns, meta.counter)


def _of_view(view: View) -> Iterator[_Saved]:
    """Yield the whole state."""
    entries = dump(view)
    for some in in_records(chain(entries.settings(), entries.others())):
        operations, columns = with_rows(view, some)
        stamped = zip(operations, some, strict=True)
        values = [encode_operation(operation, entry.stamp) for operation, entry in stamped]
        yield _Saved(values, columns)


def _saved(values: list[Any], columns: tuple[Column, ...], counter: int) -> _Saved:
    """Return what has an effect of a record's operations; what has none must not come to have one elsewhere."""
    kept = list[dict[str, Any]]()
    for position, value in enumerate(values):
        try:
            decode_operation(value, counter, position)
        except FormatError:
            continue
        kept.append(restamped(value, counter, position))
    return _Saved(kept, columns)


def _whole_writes(damaged: Opened, log: Log) -> _Cut:
    """Return where the last whole write ends in a log's sound beginning."""
    sound, last = log.sound or log.start, log.start.records
    for record in damaged.logbook.records(log.stream.stream_id, log.start.records, sound.records):
        if not record.content.more:
            last = record.place.index + 1
    if last == sound.records:
        return _Cut(sound.length, last)
    places = frames(damaged.logbook.files, log.stream.stream_id, log.start, sound.length)
    return next(_Cut(place.offset, last) for place in places if place.index == last)


# ── the copy ────────────────────────────────────────────────────────────────────────────────────────


def _copy(survey: _Survey, folder: VaultFolder) -> None:
    """Write what is sound into a new folder, with this device's keys and marks that fit it."""
    source, opened = survey.folder, survey.damaged
    for stem in source.stems(KEYRING):
        _copy_file(source, folder, f"{KEYRING}/{stem}.mseal")
    for shelf in (CHECKPOINTS, PARTS):
        for stem in source.stems(shelf):
            if stem not in {each.hex() for each in survey.given_up}:
                _copy_file(source, folder, f"{shelf}/{stem}.mseal")
    for stream_id in {*survey.rows, *opened.logbook.files.streams()}:
        _copy_log(survey, LogFiles(folder), stream_id)
    opened.device.with_marks(_fitting(opened.device.marks)).save(folder)


def _fitting(marks: Marks) -> Marks:
    """Return marks for the copy: of what is lost, only what a server has is still looked for."""
    furthest = dict[bytes, End]()
    for seen in marks.remotes.values() if marks.server else ():
        for stream_id, end in seen.logs.items():
            if stream_id not in furthest or furthest[stream_id].length < end.length:
                furthest[stream_id] = end
    return replace(marks, logs=furthest, caches=(), settled=b"")


def _copy_file(source: VaultFolder, folder: VaultFolder, name: str) -> None:
    size = source.size(name) or 0
    folder.replace(name, (source.read(name, at, at + _COPIED) or b"" for at in range(0, size, _COPIED)))


def _copy_log(survey: _Survey, files: LogFiles, stream_id: bytes) -> None:
    logbook, row = survey.damaged.logbook, survey.rows.get(stream_id)
    log, cut = logbook.logs.get(stream_id), survey.cuts.get(stream_id)
    end = 0 if log is None else log.stored if cut is None else cut.length
    if row is not None and end < row.end.length:
        _begin_at(survey, files, stream_id, row)
    elif log is not None and end > PREAMBLE_SIZE:
        base = logbook.files.base(stream_id)
        pieces = (
            logbook.files.read(stream_id, at, min(end, at + _COPIED)) for at in range(log.start.length, end, _COPIED)
        )
        files.begin(stream_id, log.stream.preamble, base, next(pieces, b""))
        at = log.start.length + _COPIED
        for piece in pieces:
            files.append(stream_id, at, piece)
            at += len(piece)
    elif log is None and _is_carried_on(survey, stream_id):
        _copy_file(survey.folder, files.folder, log_file(stream_id))


def _begin_at(survey: _Survey, files: LogFiles, stream_id: bytes, row: Row) -> None:
    """Begin a log where the floor lets it: what stands before is in the checkpoint, or written again."""
    files.begin(stream_id, preamble_of(survey.damaged.device.vault_id, stream_id, row), base_of(row))


def _is_carried_on(survey: _Survey, stream_id: bytes) -> bool:
    """Return whether a log that cannot be read here is one of newer software or newer keys: not damage."""
    findings = survey.damaged.logbook.findings
    return any(each.where == log_file(stream_id) and each.code in _CARRIED_ON for each in findings)


def _write_again(survey: _Survey, copy: Opened) -> None:
    """Write what was saved in a fresh stream, and let a new checkpoint cover it; then close the copy.

    A vault that lives on a server gets no new keys and no checkpoint: these are made there, when it is synchronised.
    """
    try:
        if survey.stands_alone:
            rekey(copy, None)  # no stream is gone on with that may go on otherwise elsewhere
        logbook = copy.logbook
        for log in logbook.logs.values():
            log.appendable = log.appendable and not logbook.is_own(log)
        logbook.least_counter = survey.highest
        for batches in _in_writes(survey.saved()):
            logbook.write(batches, secrets.token_bytes(4))
        follow_pin(copy)
        if survey.stands_alone:
            compact(copy, None, thorough=False, given_up=survey.given_up)
        save_marks(copy)
    finally:
        copy.logbook.view.close()


def _in_writes(saved: Iterator[_Saved]) -> Iterator[list[Batch]]:
    batches, size = list[Batch](), 0
    for each in saved:
        if not each.values:
            continue
        batches.append(Batch(columns=each.columns, values=each.values))
        size += SMALLEST_RECORD + sum(len(column.content) for column in each.columns) + sum(map(_weight, each.values))
        if size >= _WRITE_BYTES or len(batches) == _WRITE_RECORDS:
            yield batches
            batches, size = [], 0
    if batches:
        yield batches


def _weight(value: dict[str, Any]) -> int:
    return 200 + sum(len(field) for field in value.values() if isinstance(field, str | bytes))


def _proved(folder: VaultFolder, stretch: Stretch, plan: RepairPlan, digest: bytes, target: Path) -> Repair:
    """Read the copy as anybody would open it, and say how it is."""
    copy = open_folder(folder, stretch, read_only=True)
    try:
        state = copy.logbook.view.state
        return Repair(str(target), plan, state.count(), state.digest() == digest, tuple(verify(copy)))
    finally:
        copy.logbook.view.close()
