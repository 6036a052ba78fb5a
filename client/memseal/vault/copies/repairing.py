"""Write a repaired copy of a damaged vault: a plan first, then all that can be read, and names for what is lost."""

import contextlib
import secrets
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memseal.errors import DiskError, Finding, FormatError, VaultMissing
from memseal.format.device_file import Stretch
from memseal.format.log import End
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.records import SMALLEST_RECORD
from memseal.store.folder import CHECKPOINTS, KEYRING, LOCK, PARTS, VaultFolder
from memseal.store.lock import VaultLock
from memseal.vault.compaction.compacting import compact
from memseal.vault.copies.surveying import RepairPlan, Saved, Survey, damage_of
from memseal.vault.copies.verifying import Progress, verify
from memseal.vault.folder import session_files
from memseal.vault.folder.batch import Batch
from memseal.vault.folder.device import Marks, read_device_file
from memseal.vault.folder.floors import base_of, preamble_of
from memseal.vault.folder.keychain import load_keyring
from memseal.vault.folder.log_files import LogFiles, log_file
from memseal.vault.folder.opening import Opened, follow_pin, open_folder, save_marks
from memseal.vault.folder.switching import CARRIED
from memseal.vault.folder.tracing import FENCE
from memseal.vault.keys.rekeying import rekey

_COPIED = 8 << 20  # bytes of a file that are held while it is copied
# Of what is written again at once: as much as a few records, so that each write costs little and little is held.
_WRITE_BYTES = 16 << 20
_WRITE_RECORDS = 256


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
        survey = Survey(damaged, damage := damage_of(damaged, progress))
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


# ── the copy ────────────────────────────────────────────────────────────────────────────────────────


def _copy(survey: Survey, folder: VaultFolder) -> None:
    """Write what is sound into a new folder, with this device's keys and marks that fit it."""
    source, opened = survey.folder, survey.damaged
    for stem in source.stems(KEYRING):
        _copy_file(source, folder, f"{KEYRING}/{stem}.mseal")
    if source.size(CARRIED) is not None:
        _copy_file(source, folder, CARRIED)
    for shelf in (CHECKPOINTS, PARTS):
        for stem in source.stems(shelf):
            if stem not in {each.hex() for each in survey.given_up}:
                _copy_file(source, folder, f"{shelf}/{stem}.mseal")
    fences = [FENCE] if source.size(FENCE) else []
    for name in (*opened.traces.names(), *fences, *session_files.files(source)):
        if name not in survey.spoilt:
            _copy_file(source, folder, name)
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


def _copy_log(survey: Survey, files: LogFiles, stream_id: bytes) -> None:
    logbook, row = survey.damaged.logbook, survey.rows.get(stream_id)
    log, cut = logbook.logs.get(stream_id), survey.cuts.get(stream_id)
    end = 0 if log is None else log.stored if cut is None else cut.length
    if row is not None and end < row.end.length:
        # What stands before is in the checkpoint, or written again.
        files.begin(stream_id, preamble_of(survey.damaged.device.vault_id, stream_id, row), base_of(row))
    elif log is not None and end > PREAMBLE_SIZE:
        starts = range(log.start.length, end, _COPIED)
        pieces = (logbook.files.read(stream_id, at, min(end, at + _COPIED)) for at in starts)
        files.begin(stream_id, log.stream.preamble, logbook.files.base(stream_id), next(pieces, b""))
        for at, piece in zip(starts[1:], pieces, strict=True):
            files.append(stream_id, at, piece)
    elif log is None and survey.carries_on(stream_id):
        _copy_file(survey.folder, files.folder, log_file(stream_id))


def _write_again(survey: Survey, copy: Opened) -> None:
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


def _in_writes(saved: Iterator[Saved]) -> Iterator[list[Batch]]:
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
