"""Make a checkpoint of an open vault and commit it as the floor (vault-format §8b)."""

import contextlib
import secrets
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from memseal.errors import FormatError, RemoteRefused
from memseal.format.checkpoint import PART_TARGET, Covered, Manifest, PartEntry, manifest_preamble, seal_manifest
from memseal.format.derivation import checkpoint_key
from memseal.format.floor import Floor, Row
from memseal.format.preamble import ID_SIZE
from memseal.format.primitives import sha256
from memseal.store.folder import CHECKPOINTS, LOGS, PARTS
from memseal.sync.messages import GetHeads, Heads, PutObject, Stored, objects_of
from memseal.sync.session import expect
from memseal.vault.checkpoint.covering import coverage, epochs_needed, held_back, quarantine
from memseal.vault.checkpoint.doubling import keep_doubles
from memseal.vault.checkpoint.gleaning import Gleaned
from memseal.vault.checkpoint.parts import from_logs, from_part, seal_parts
from memseal.vault.checkpoint.settling import object_file, settle_floor, unsettle
from memseal.vault.folder.checkpoints import check_part, checkpoint_file, part_file, read_manifest
from memseal.vault.folder.floors import floor_with, newest_rows
from memseal.vault.folder.opening import Opened, save_marks, strip_older
from memseal.vault.folder.repair_advice import advised
from memseal.vault.keys.rekeying import renew
from memseal.vault.keys.versions import Change
from memseal.vault.remote import syncing

# Records that make a checkpoint worth its while. It saves about 1 KiB for each that it puts together with others
# (decisions/checkpoints.md): here 32 MiB. Of large records, as bulk writes leave them, it would save nothing, and take
# 35 µs of processor time for each memory.
_WORTH_RECORDS = 32 << 10
# A smaller part is put together with others: else every checkpoint would leave one more.
_COUNTED = (LOGS, CHECKPOINTS, PARTS)
_SMALL_PART = PART_TARGET // 4


@dataclass(frozen=True)
class Compaction:
    """What a compaction did; sizes in bytes are those of logs and checkpoint in the vault's folder."""

    parts_made: int
    parts_kept: int
    size_before: int
    size_after: int
    held_back: tuple[str, ...]
    """Logs that could not be covered to their end: they hold records that were not applied in full."""


@dataclass(frozen=True)
class _Made:
    floor: Floor
    parts_made: int
    parts_kept: int


def compact(
    opened: Opened, remote: str | None, *, thorough: bool, given_up: Collection[bytes] = ()
) -> Compaction | None:
    """Cover all logs by a checkpoint and drop what it covers; None where there was nothing to do.

    `given_up`: manifest and parts of the present checkpoint that are damaged; what could be saved is in the logs.
    `thorough`: parts that hold something without effect are made anew. With a server the floor is committed there;
    raises what a synchronisation raises, and `FormatError` where the present checkpoint is damaged or not here.
    """
    before, made = _size(opened), list[_Made]()
    keep_doubles(opened)  # a checkpoint holds only what counts
    address = remote or opened.device.marks.server

    def change() -> Change | None:
        there = _put_there(opened, address, None) if address else None
        rows = coverage(opened.logbook, None if there is None else there.logs)
        nowhere = there is not None and not there.floor_whole
        try:
            making = _make(opened, rows, thorough, given_up, nowhere=nowhere)
        except FormatError as error:
            raise error if address else FormatError(error.code, advised(str(error))) from error
        if making is None:
            return None
        if address:
            newest = opened.keychain.keyring.public.floor
            known = newest.parts if newest is not None and there is not None and there.floor_whole else ()
            _put_there(opened, address, making.floor, known)
        made.append(making)
        return Change(floor=making.floor, epochs=epochs_needed(opened.logbook, rows))

    renew(opened, change, remote)
    if not made:
        return None
    opened.logbook.floor_applied = made[-1].floor.checkpoint  # it holds what is open here
    settle_floor(opened)
    strip_older(opened)
    left = held_back(opened.logbook, made[-1].floor.rows)
    if not left:
        opened.logbook.view.state.erasures.note_covered()
    save_marks(opened)
    return Compaction(made[-1].parts_made, made[-1].parts_kept, before, _size(opened), tuple(left))


def compact_when_due(opened: Opened, remote: str | None) -> None:
    """Make a checkpoint where the logs have grown by so many records that opening and joining would feel it.

    What keeps it from being committed (another device was quicker, the server is full) is left to the next time.
    """
    rows = newest_rows(opened.keychain.keyring)
    uncovered = sum(
        log.end.records - (rows[stream_id].end.records if stream_id in rows else log.start.records)
        for stream_id, log in opened.logbook.logs.items()
    )
    damaged = any(not each.dismissed for each in quarantine(opened.logbook)) or any(
        finding.where.startswith((CHECKPOINTS, PARTS)) for finding in opened.logbook.findings
    )
    if uncovered >= _WORTH_RECORDS and not damaged:
        with contextlib.suppress(RemoteRefused):
            compact(opened, remote, thorough=False)


def _put_there(opened: Opened, address: str, floor: Floor | None, known: Collection[bytes] = ()) -> Heads:
    """Put a checkpoint's objects on the server, but for parts that are known to be there; return what it has."""
    transport = syncing.open_transport(address, opened.device.vault_id, opened.device.keys.sign)
    try:
        for shelf, object_id in () if floor is None else objects_of(floor.checkpoint, floor.parts):
            if shelf == "parts" and object_id in known:
                continue
            content = opened.folder.read(object_file(shelf, object_id)) or b""
            expect(transport.send(PutObject(shelf, object_id, content)), Stored)
        return expect(transport.send(GetHeads()), Heads)
    finally:
        transport.close()


# ── making ──────────────────────────────────────────────────────────────────────────────────────────


def _make(
    opened: Opened, rows: Mapping[bytes, Row], thorough: bool, given_up: Collection[bytes], *, nowhere: bool
) -> _Made | None:
    """Write parts and manifest into the vault's folder; None where the floor would say what it says already.

    `nowhere`: the server says that it does not have the newest floor's checkpoint.
    """
    logbook, newest = opened.logbook, opened.keychain.keyring.public.floor
    floor = newest if newest is None or given_up else _base(opened, newest, nowhere=nowhere)
    before: Mapping[bytes, Row] = {} if floor is None else floor.rows
    moved = [(stream_id, row) for stream_id, row in rows.items() if before.get(stream_id) != row]
    erasing = logbook.view.state.erasures.is_due()
    if floor == newest and not moved and not erasing and not thorough and not given_up:
        return None
    old = None
    if floor is not None and floor.checkpoint not in given_up:
        old = read_manifest(opened.folder, opened.keychain, floor)
        old = replace(old, parts=tuple(entry for entry in old.parts if entry.id not in given_up))
    kept = list[PartEntry]()
    unsettle(opened)
    sources = _sources(opened, old, before, moved, thorough or erasing, kept)
    model = "" if logbook.view.pinned is None else logbook.view.pinned[0]
    made = list(seal_parts(opened.folder, opened.device.vault_id, model, sources))
    counter = max([0 if old is None else old.counter, *(row.counter for row in rows.values())])
    logs = {stream_id: Covered(row.end, row.counter) for stream_id, row in rows.items()}
    manifest = Manifest(opened.device.signing_public, counter, logs, (*kept, *made))
    checkpoint_id, content = _seal(opened, manifest)
    opened.folder.replace(checkpoint_file(checkpoint_id), content)
    ids = tuple(entry.id for entry in manifest.parts)
    following = Floor(checkpoint_id, sha256(content), ids, rows)
    if newest is not None:
        following = replace(following, others=newest.others)
    return _Made(following, len(made), len(kept))


def _base(opened: Opened, newest: Floor, *, nowhere: bool) -> Floor | None:
    """Return the floor to go on from: the newest, or where its checkpoint does not come, the one that is applied.

    That one (None: no floor) and the logs here say the same, if they reach as far as the newest floor. Where neither
    this device nor the server has the checkpoint they need not: else no device could make a checkpoint again, or erase,
    when one has committed a floor far ahead of all logs. Whoever has it compares it with the next one.
    """
    logbook = opened.logbook
    if newest.checkpoint == logbook.floor_applied:
        return newest
    applied = floor_with(opened.keychain.keyring, logbook.floor_applied)
    if nowhere:
        return applied
    held = {each.stream_id for each in quarantine(logbook)}
    for stream_id, row in newest.rows.items():
        log, base = logbook.logs.get(stream_id), None if applied is None else applied.rows.get(stream_id)
        if base == row:
            continue
        begin = 0 if base is None else base.end.records
        if log is None or stream_id in held or log.start.records > begin or not logbook.follows(stream_id, row):
            return newest
    return applied


def _sources(
    opened: Opened,
    old: Manifest | None,
    before: Mapping[bytes, Row],
    moved: list[tuple[bytes, Row]],
    again: bool,
    kept: list[PartEntry],
) -> Iterator[tuple[Gleaned, int]]:
    """Yield what the new parts are to hold; parts of the present checkpoint that stay are added to `kept`."""
    logbook = opened.logbook
    for entry in () if old is None else old.parts:
        content = opened.folder.read(part_file(entry.id)) or b""
        check_part(content, opened.device.vault_id, entry)  # what is damaged here is not dropped for it: sync mends it
        gleaned = from_part(opened.folder, logbook, old, entry) if old and (again or entry.length < _SMALL_PART) else []
        if entry.length < _SMALL_PART or any(each.dropped for each, _ in gleaned):
            yield from gleaned
        else:
            kept.append(entry)
    ends = [
        (stream_id, before[stream_id].end.records if stream_id in before else 0, row.end.records)
        for stream_id, row in moved
    ]
    highest = max((log.counter for log in logbook.logs.values()), default=0)
    yield from from_logs(logbook, ends, highest)


def _seal(opened: Opened, manifest: Manifest) -> tuple[bytes, bytes]:
    chain, vault_id, checkpoint_id = opened.keychain, opened.device.vault_id, secrets.token_bytes(ID_SIZE)
    epoch = chain.keyring.public.epoch
    preamble = manifest_preamble(vault_id, epoch, chain.keyring.epoch_digest(epoch) or b"", checkpoint_id)
    key = checkpoint_key(chain.vault_key, vault_id, checkpoint_id)
    return checkpoint_id, seal_manifest(manifest, preamble, key, opened.device.keys.sign)


def _size(opened: Opened) -> int:
    """Return how many bytes logs and checkpoint take in the vault's folder."""
    folder = opened.folder
    return sum(folder.size(f"{part}/{stem}.mseal") or 0 for part in _COUNTED for stem in folder.stems(part))
