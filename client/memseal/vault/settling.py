"""Take over a floor: apply its checkpoint, save what it leaves out, then cut the logs (vault-format §8b)."""

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import replace

from memseal.errors import Finding, FormatError
from memseal.format.checkpoint import Manifest
from memseal.format.floor import Floor
from memseal.store.folder import CHECKPOINTS, PARTS
from memseal.sync.messages import Shelf, objects_of
from memseal.vault.checkpoints import (
    check_manifest,
    check_part,
    checkpoint_file,
    complete_manifest,
    operations_of,
    part_file,
    read_manifest,
    read_part,
)
from memseal.vault.holding import Said, said_in, saved_from
from memseal.vault.keychain import Keyring
from memseal.vault.log_files import log_file
from memseal.vault.opening import Opened, apply_checkpoint, rebuilt


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
    changed = bool(due) and not (settled and own) and _save_left_out(opened, manifest, floor, due)
    for stream_id in due:
        opened.logbook.cut_at(stream_id, floor.rows[stream_id])
    if changed:
        # Under an id that came twice with one stamp the checkpoint's content counts from now on, here as elsewhere.
        opened.logbook = rebuilt(opened.folder, opened.device, opened.keychain, opened.logbook.view)
        opened.uncached = sum(log.end.length for log in opened.logbook.logs.values())
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


def _save_left_out(opened: Opened, manifest: Manifest, floor: Floor, due: list[bytes]) -> bool:
    """Write again what has an effect here, is about to be dropped, and is not in the checkpoint.

    Returns whether the checkpoint has other content for a memory, of which the true one was then written again.
    """
    logbook = opened.logbook
    here = [stream_id for stream_id in due if stream_id in logbook.logs]
    others = [stream_id for stream_id in here if not logbook.follows(stream_id, floor.rows[stream_id])]
    # What an own checkpoint covers was in it; if a log has another history, this device was put back since, or copied.
    dropped = others if manifest.made_by == opened.device.signing_public else here
    if not dropped:
        return False
    saved = saved_from(logbook, floor, _said(opened, manifest), {each: each not in others for each in dropped})
    for stream_id in others:
        logbook.abandon(stream_id)
    if saved.batches:
        logbook.write(saved.batches, secrets.token_bytes(4))
    if saved.left_out or saved.changed or saved.vectors:
        counts = f"left out: {saved.left_out}, changed: {saved.changed}, without their vectors: {saved.vectors}"
        detail = f"it does not hold all that it covers; memories {counts}; these were written again"
        opened.findings.append(Finding("checkpoint_invalid", checkpoint_file(floor.checkpoint), detail))
    return saved.changed > 0


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
