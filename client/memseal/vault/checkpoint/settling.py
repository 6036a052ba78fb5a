"""Take over a floor: apply its checkpoint, save what it leaves out, then cut the logs (vault-format §8b)."""

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from memseal.errors import Finding, FormatError
from memseal.format.checkpoint import Manifest, PartEntry
from memseal.format.content import Column
from memseal.format.floor import Floor
from memseal.store.folder import CHECKPOINTS, PARTS
from memseal.sync.messages import Shelf, objects_of
from memseal.vault.checkpoint.doubling import keep_doubles
from memseal.vault.checkpoint.gleaning import decoded_values
from memseal.vault.checkpoint.holding import Said, said_in, saved_from
from memseal.vault.folder.checkpoints import (
    check_manifest,
    check_part,
    checkpoint_file,
    complete_manifest,
    floors_to_load,
    operations_of,
    part_file,
    read_manifest,
    read_part,
)
from memseal.vault.folder.keychain import Keyring
from memseal.vault.folder.log_files import log_file
from memseal.vault.folder.opening import Opened, apply_checkpoint


def object_file(shelf: Shelf, object_id: bytes) -> str:
    """Return the name of a manifest's or part's file in the vault's folder."""
    return part_file(object_id) if shelf == "parts" else checkpoint_file(object_id)


def missing_objects(opened: Opened, keyring: Keyring) -> list[tuple[Shelf, bytes]]:
    """Return which objects of the newest floor's checkpoint are not here, or were seen to be damaged."""
    floor = keyring.public.floor
    if floor is None:
        return []
    lengths = dict[bytes, int]()
    with contextlib.suppress(FormatError):  # the manifest is not here yet, or damaged: it is asked for first
        lengths = {entry.id: entry.length for entry in read_manifest(opened.folder, opened.keychain, floor).parts}
    damaged = {finding.where.partition("#")[0] for finding in opened.logbook.findings}

    def is_good(shelf: Shelf, object_id: bytes) -> bool:
        name = object_file(shelf, object_id)
        size = opened.folder.size(name)
        return size is not None and lengths.get(object_id, size) == size and name not in damaged

    return [each for each in reversed(objects_of(floor.checkpoint, floor.parts)) if not is_good(*each)]


def check_object(opened: Opened, shelf: Shelf, object_id: bytes, content: bytes) -> None:
    """Raise `FormatError` unless this is the manifest or part that the newest floor names."""
    floor = opened.keychain.keyring.public.floor
    if floor is None or (shelf == "checkpoints" and object_id != floor.checkpoint):
        raise FormatError("checkpoint_mismatch", "the remote gave a checkpoint that no floor names")
    if shelf == "checkpoints":
        check_manifest(content, opened.keychain, floor)
        return
    manifest = read_manifest(opened.folder, opened.keychain, floor)
    for entry in manifest.parts:
        if entry.id == object_id:
            check_part(content, opened.device.vault_id, entry)


def adopt_floor(opened: Opened) -> None:
    """Apply the newest floor's checkpoint, where it is here and was not applied, and cut the logs at its rows."""
    floor = opened.keychain.keyring.public.floor
    manifest = None if floor is None else complete_manifest(opened.folder, opened.keychain, floor)
    if floor is None or manifest is None:
        return
    if opened.logbook.floor_applied != floor.checkpoint:
        opened.logbook.forget_findings((f"{CHECKPOINTS}/", f"{PARTS}/"))
        apply_checkpoint(opened.folder, opened.device, opened.logbook)
    settle_floor(opened)


def settle_floor(opened: Opened) -> None:
    """Cut the logs at the newest floor, if its checkpoint is applied, and remove what only earlier floors named.

    Each step may be the last: what is left to do is done at the next opening or synchronisation.
    """
    floor = opened.keychain.keyring.public.floor
    manifest = None if floor is None else complete_manifest(opened.folder, opened.keychain, floor)
    if floor is None or manifest is None or opened.logbook.floor_applied != floor.checkpoint:
        return
    due = [stream_id for stream_id, row in floor.rows.items() if not opened.logbook.begins_at(stream_id, row)]
    stray = _stray(opened, floor)
    settled, own = opened.device.marks.settled == floor.checkpoint, manifest.made_by == opened.device.signing_public
    if settled:
        # All of this was done before.
        for name in [*map(log_file, due), *stray]:
            opened.findings.append(Finding("local_rollback", name, "an older state was put back: it is removed again"))
    if not (settled and (own or not due)):
        _save_left_out(opened, manifest, floor, due)
    for stream_id in due:
        opened.logbook.cut_at(stream_id, floor.rows[stream_id])
    if manifest.counter >= opened.logbook.next_counter():
        # A false row: what is written from now on still has to come after all that the checkpoint says.
        opened.logbook.least_counter = manifest.counter
    for name in stray:
        opened.folder.remove(name)
    for folder in {name.partition("/")[0] for name in stray}:
        opened.folder.settle(folder)  # before the mark: what came back with a crash would seem to have been put back
    _mark_settled(opened, floor.checkpoint)


def unsettle(opened: Opened) -> None:
    """Note that files which no floor names may be here from now on: they are being made, not put back."""
    _mark_settled(opened, b"")


def _mark_settled(opened: Opened, checkpoint_id: bytes) -> None:
    if opened.device.marks.settled != checkpoint_id:
        opened.device = opened.device.with_marks(replace(opened.device.marks, settled=checkpoint_id))
        opened.device.save(opened.folder)


def _save_left_out(opened: Opened, manifest: Manifest, floor: Floor, due: list[bytes]) -> None:
    """Write again what has an effect here, is about to be dropped, and is not in the checkpoint."""
    logbook = opened.logbook
    here = [stream_id for stream_id in due if stream_id in logbook.logs]
    others = [stream_id for stream_id in here if not logbook.follows(stream_id, floor.rows[stream_id])]
    # What an own checkpoint covers was in it; if a log has another history, this device was put back since, or copied.
    own = manifest.made_by == opened.device.signing_public
    dropped = others if own else here
    before = [] if own else _parts_before(opened, manifest, floor)
    if not dropped and not before:
        return
    records = (said for former, entries in before for said in _records(opened, former, entries))
    covered = {each: each not in others for each in dropped}
    saved = saved_from(logbook, floor, _said(opened, manifest), covered, records)
    for stream_id in others:
        logbook.abandon(stream_id)
    if saved.batches:
        logbook.write(saved.batches, secrets.token_bytes(4))
    if saved.left_out or saved.changed or saved.vectors:
        counts = f"left out: {saved.left_out}, changed: {saved.changed}, without their vectors: {saved.vectors}"
        detail = f"it does not hold all that it covers; memories {counts}; these were written again"
        opened.findings.append(Finding("checkpoint_invalid", checkpoint_file(floor.checkpoint), detail))
    keep_doubles(opened)


def _parts_before(opened: Opened, manifest: Manifest, floor: Floor) -> list[tuple[Manifest, list[PartEntry]]]:
    """Return the parts of the checkpoint before that this one does not name: what they hold is about to be dropped."""
    kept = {entry.id: entry.chain for entry in manifest.parts}
    for former in floors_to_load(opened.folder, opened.keychain):
        if former.checkpoint != floor.checkpoint:
            old = read_manifest(opened.folder, opened.keychain, former)
            gone = [entry for entry in old.parts if kept.get(entry.id) != entry.chain]
            return [(old, gone)] if gone else []
    return []


def _records(
    opened: Opened, manifest: Manifest, entries: list[PartEntry]
) -> Iterator[tuple[list[dict[str, Any]], Sequence[Column]]]:
    """Yield the stamped operations of a former checkpoint's parts; one with a stamp it may not have was not applied."""
    for entry in entries:
        for record in read_part(opened.folder, opened.device.vault_id, entry, []):
            values = [value for _, _, value in decoded_values(operations_of(record), manifest.counter)]
            yield [value for value in values if value.get("stamp") is not None], record.columns


def _said(opened: Opened, manifest: Manifest) -> Iterator[Said]:
    """Yield the operations of a checkpoint that were applied."""
    for entry in manifest.parts:
        for record in read_part(opened.folder, opened.device.vault_id, entry, []):
            yield from said_in(opened.logbook.view, operations_of(record), record.columns, manifest.counter)


def _stray(opened: Opened, floor: Floor) -> list[str]:
    """Return the files of manifests and parts that the newest floor does not name: only this process makes any here."""
    named = {CHECKPOINTS: {floor.checkpoint.hex()}, PARTS: {part_id.hex() for part_id in floor.parts}}
    return [
        f"{folder}/{stem}.mseal"
        for folder, keep in named.items()
        for stem in opened.folder.stems(folder)
        if stem not in keep
    ]
