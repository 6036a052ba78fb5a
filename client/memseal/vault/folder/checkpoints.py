"""Read the checkpoint that the newest floor names, and apply it (vault-format §8b)."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from memseal.errors import Finding, FormatError
from memseal.format.checkpoint import Manifest, PartEntry, check_part_preamble, manifest_epoch, open_manifest
from memseal.format.content import Content
from memseal.format.derivation import checkpoint_key
from memseal.format.floor import Floor
from memseal.format.part import chain_of, read_run
from memseal.format.primitives import sha256
from memseal.index.view import View
from memseal.memory.operations import Operation, Stamp, decode_operation
from memseal.store.folder import CHECKPOINTS, PARTS, VaultFolder
from memseal.vault.folder.collections_off import no_collections
from memseal.vault.folder.keychain import Keychain


def checkpoint_file(checkpoint_id: bytes) -> str:
    """Return the name of a manifest's file in the vault's folder."""
    return f"{CHECKPOINTS}/{checkpoint_id.hex()}.mseal"


def part_file(part_id: bytes) -> str:
    """Return the name of a part's file in the vault's folder."""
    return f"{PARTS}/{part_id.hex()}.mseal"


def floor_to_load(folder: VaultFolder, keychain: Keychain) -> tuple[Floor | None, bool]:
    """Return the newest floor whose checkpoint is here in full, and True; else the newest one of all, and False."""
    floors = floors_to_load(folder, keychain)
    return (floors[0], True) if floors else (keychain.keyring.public.floor, False)


def floors_to_load(folder: VaultFolder, keychain: Keychain) -> list[Floor]:
    """Return the floors whose checkpoints are here in full, the newest first.

    A floor that was made elsewhere may be known while its checkpoint is still to come, or proves to be another than it
    says: until then the one before it, and logs that begin where that one ends, say all that there is.
    """
    floors = {
        floor.checkpoint: floor
        for version in reversed(keychain.keyring.versions)
        if (floor := version.public.floor) is not None
    }
    return [floor for floor in floors.values() if complete_manifest(folder, keychain, floor) is not None]


def damage_of_incomplete(folder: VaultFolder, keychain: Keychain, floor: Floor) -> list[Finding]:
    """Return what is wrong with the files that are here of a checkpoint that is not here in full."""
    try:
        manifest = read_manifest(folder, keychain, floor)
    except FormatError as error:
        missing = error.code == "checkpoint_missing"
        return [] if missing else [Finding(error.code, checkpoint_file(floor.checkpoint), str(error))]
    sizes = {entry.id: folder.size(part_file(entry.id)) for entry in manifest.parts}
    return [
        Finding("checkpoint_mismatch", part_file(entry.id), "a part of the vault's checkpoint is damaged: sync")
        for entry in manifest.parts
        if sizes[entry.id] not in (None, entry.length)
    ]


def complete_manifest(folder: VaultFolder, keychain: Keychain, floor: Floor) -> Manifest | None:
    """Return a floor's manifest, if it and all parts are here."""
    try:
        manifest = read_manifest(folder, keychain, floor)
    except FormatError:
        return None
    whole = all(folder.size(part_file(entry.id)) == entry.length for entry in manifest.parts)
    return manifest if whole else None


def load_checkpoint(folder: VaultFolder, keychain: Keychain, view: View, floor: Floor) -> list[Finding]:
    """Apply a floor's checkpoint, as far as it can be read; returns what is wrong with it."""
    findings = list[Finding]()
    try:
        manifest = read_manifest(folder, keychain, floor)
    except FormatError as error:
        return [Finding(error.code, checkpoint_file(floor.checkpoint), str(error))]
    view.loading = True
    with no_collections():
        for entry, records, wrong in _read_ahead(folder, keychain.vault_id, manifest):
            for record in records:
                apply_record(view, record, manifest.counter, part_file(entry.id), wrong)
            findings += wrong
    view.loading = False
    view.scrub()
    return findings


def _read_ahead(
    folder: VaultFolder, vault_id: bytes, manifest: Manifest
) -> Iterator[tuple[PartEntry, list[Content], list[Finding]]]:
    """Yield each part's records and what is wrong with it; the next one is opened meanwhile, on another core."""

    def read(entry: PartEntry) -> tuple[PartEntry, list[Content], list[Finding]]:
        wrong = list[Finding]()
        return entry, list(read_part(folder, vault_id, entry, wrong)), wrong

    due = deque[Future[tuple[PartEntry, list[Content], list[Finding]]]]()
    with ThreadPoolExecutor(1) as beside:
        for entry in manifest.parts:
            due.append(beside.submit(read, entry))
            if len(due) > 1:
                yield due.popleft().result()
        while due:
            yield due.popleft().result()


def read_manifest(folder: VaultFolder, keychain: Keychain, floor: Floor) -> Manifest:
    """Return the manifest that a floor names; raises `FormatError`."""
    content = folder.read(checkpoint_file(floor.checkpoint))
    if content is None:
        raise FormatError("checkpoint_missing", "the vault's checkpoint is not here: sync to get it")
    return check_manifest(content, keychain, floor)


def check_manifest(content: bytes, keychain: Keychain, floor: Floor) -> Manifest:
    """Return what a manifest's file says, if it is the one that a floor names; raises `FormatError`."""
    epoch, begun = manifest_epoch(content, keychain.vault_id, floor.checkpoint)
    if sha256(content) != floor.digest:
        raise FormatError("checkpoint_mismatch", "the vault's checkpoint is damaged or another: sync to get it again")
    vault_key, digest = keychain.vault_key_of(epoch), keychain.keyring.epoch_digest(epoch)
    if vault_key is None or digest is None or digest[:8] != begun:
        raise FormatError("epoch_mismatch", "the vault's checkpoint was made under keys this vault does not have")
    manifest = open_manifest(content, checkpoint_key(vault_key, keychain.vault_id, floor.checkpoint))
    if keychain.keyring.public.entry_of(manifest.made_by) is None:
        raise FormatError("signature_invalid", "the vault's checkpoint is not signed by a device of this vault")
    if not manifest.is_of(floor):
        raise FormatError("checkpoint_mismatch", "the vault's checkpoint does not hold what the keyring says")
    if manifest.counter > max((row.counter for row in floor.rows.values()), default=0):
        raise FormatError("checkpoint_invalid", "the vault's checkpoint has a counter that no log of it has")
    return manifest


def read_part(folder: VaultFolder, vault_id: bytes, entry: PartEntry, findings: list[Finding]) -> Iterator[Content]:
    """Yield the records of a part that can be read; what is wrong is added to the findings."""
    name, content = part_file(entry.id), folder.read(part_file(entry.id))
    if content is None:
        findings.append(Finding("checkpoint_missing", name, "a part of the vault's checkpoint is not here: sync"))
        return
    try:
        check_part_preamble(content, vault_id, entry.id)
    except FormatError as error:
        findings.append(Finding(error.code, name, str(error)))
        return
    wrong, opened = len(findings), 0
    if len(content) != entry.length:
        detail = "a part of the vault's checkpoint has another length than its manifest says"
        findings.append(Finding("checkpoint_mismatch", name, detail))
    for record in read_run(name, entry.key, memoryview(content), chain_after=entry.chain):
        if isinstance(record, Finding):
            findings.append(record)
        else:
            opened += 1
            yield record
    if opened != entry.records and len(findings) == wrong:
        detail = "a part of the vault's checkpoint has another number of records than its manifest says"
        findings.append(Finding("checkpoint_mismatch", name, detail))


def check_part(content: bytes, vault_id: bytes, entry: PartEntry) -> None:
    """Raise `FormatError` unless a file is the part that a manifest names."""
    check_part_preamble(content, vault_id, entry.id)
    if len(content) != entry.length or chain_of(memoryview(content)) != entry.chain:
        raise FormatError("checkpoint_mismatch", "a part of the vault's checkpoint is damaged: sync to get it again")


def apply_record(view: View, record: Content, counter: int, where: str, findings: list[Finding]) -> None:
    """Apply what one record of a part says; `counter` is the highest that its checkpoint covers."""
    operations = list(stamped_operations(record, counter, where, findings))
    findings += view.apply_decoded(operations, record.columns, where, covered=True)


def stamped_operations(
    record: Content, counter: int, where: str, findings: list[Finding]
) -> Iterator[tuple[Operation, Stamp]]:
    """Yield the operations of a part's or bundle's record with the stamps they carry."""
    for position, value in enumerate(operations_of(record)):
        try:
            if value.get("stamp") is None:
                raise FormatError("checkpoint_invalid", "an operation has no stamp")
            yield decode_operation(value, counter + 1, position)
        except FormatError as error:
            findings.append(Finding(error.code, f"{where}.{position}", str(error)))


def operations_of(record: Content) -> list[dict[str, Any]]:
    """Return the operations of a part's or bundle's record as maps; what is none is an empty one."""
    values: list[Any] = record.meta.get("operations", [])
    return [value if type(value) is dict else {} for value in values] if type(values) is list else []
