"""The vectors' operations on checkpoints, media, bundles and whole vaults."""

from collections.abc import Mapping

from memseal.errors import Finding
from memseal.format import primitives
from memseal.format.base import decode_base
from memseal.format.checkpoint import PartEntry
from memseal.format.keyring import decode_version
from memseal.format.keys import RecordKey
from memseal.format.media import Medium, open_media
from memseal.format.preamble import Kind, decode_preamble
from memseal.vault.copies.bundles import read_bundle
from memseal.vault.folder.checkpoints import checkpoint_file, part_file, read_manifest, read_part, stamped_operations
from memseal.vault.folder.floors import check_base
from memseal.vault.folder.keychain import Keyring
from memseal.vault.folder.opening import open_folder
from memseal.vault.remote.status import all_findings
from tests.interop.manifest import octets
from tests.interop.outcome import Given, Gives, Outcome, memories_of, operation, stretcher, tagged, vault_of
from tests.interop.run_keys import keychain_of

# ── checkpoint ──────────────────────────────────────────────────────────────────────────────────────


@operation
def open_manifest(content: Given, versions: list[Given], vault_keys: list[Given]) -> Outcome:
    keychain = keychain_of(versions, vault_keys)
    floor = keychain.keyring.public.floor
    assert floor is not None
    with vault_of(_file(checkpoint_file(floor.checkpoint), content)) as folder:
        manifest = read_manifest(folder, keychain, floor)
    logs = [
        [tagged(stream_id), row.end.length, row.end.records, tagged(row.end.chain), row.counter]
        for stream_id, row in manifest.logs.items()
    ]
    parts = [
        [tagged(part.id), tagged(part.key.reveal()), part.length, part.records, tagged(part.chain)]
        for part in manifest.parts
    ]
    return Outcome({"made_by": manifest.made_by.hex(), "counter": manifest.counter, "logs": logs, "parts": parts})


@operation
def open_part(content: Given, vault_id: Given, row: list[Given], counter: int) -> Outcome:
    part_id, key, length, records, chain = (value["bytes"] if isinstance(value, dict) else value for value in row)
    name = part_file(bytes.fromhex(part_id))
    entry = PartEntry(bytes.fromhex(part_id), RecordKey(bytes.fromhex(key)), length, records, bytes.fromhex(chain))
    findings = list[Finding]()
    with vault_of(_file(name, content)) as folder:
        opened = list(read_part(folder, octets(vault_id), entry, findings))
    operations = [each for record in opened for each in stamped_operations(record, counter, name, findings)]
    codes = frozenset(finding.code for finding in findings)
    return Outcome({"records": len(opened), "operations": len(operations)}, codes)


def _file(name: str, content: Given) -> Gives:
    return {} if content is None else {name: content}


@operation
def open_base(content: Given, versions: list[Given]) -> Outcome:
    log = octets(content)
    base = decode_base(log)
    assert base is not None
    keyring = Keyring(tuple(decode_version(octets(version)) for version in versions))
    check_base(keyring, decode_preamble(log, Kind.LOG).stream_id, base)
    end = {"length": base.end.length, "records": base.end.records, "chain": base.end.chain.hex()}
    return Outcome({**end, "counter": base.counter})


# ── media and bundle ────────────────────────────────────────────────────────────────────────────────


@operation
def open_media_(content: Given, vault_id: Given, named: Gives) -> Outcome:
    key = RecordKey(octets(named["key"]))
    medium = Medium(octets(named["id"]), key, named["bytes"], octets(named["digest"]), "image/png", None, {})
    pieces = list(open_media(medium, octets(vault_id), memoryview(octets(content))))
    return Outcome({"digest": primitives.sha256(*pieces).hex()})


@operation
def open_bundle(content: Given, passphrase: str) -> Outcome:
    with read_bundle(memoryview(octets(content)), stretcher(passphrase)) as bundle:
        codes = frozenset(finding.code for finding in bundle.findings)
        return Outcome({"memories": memories_of(bundle.view)}, codes)


# ── whole vaults ────────────────────────────────────────────────────────────────────────────────────


@operation
def open_vault(files: Mapping[str, Given], passphrase: str) -> Outcome:
    with vault_of(files) as folder:
        opened = open_folder(folder, stretcher(passphrase), read_only=True)
        try:
            codes = frozenset(finding.code for finding in all_findings(opened))
            return Outcome({"memories": memories_of(opened.logbook.view)}, codes)
        finally:
            opened.logbook.view.close()
