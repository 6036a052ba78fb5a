"""Checkpoints: the manifest that names the parts, and the framing of both (vault-format §8b)."""

from collections.abc import Mapping
from dataclasses import dataclass

from memseal.errors import FormatError
from memseal.format import primitives
from memseal.format.content import Content, chain_start, decode_content, encode_content
from memseal.format.fields import U53, Fields
from memseal.format.floor import Floor
from memseal.format.keys import RecordKey, SigningKey
from memseal.format.log import End
from memseal.format.preamble import ID_SIZE, PREAMBLE_SIZE, Kind, Preamble, decode_preamble
from memseal.format.records import HEADER_SIZE, decode_header, open_record, seal_record

PART_TARGET = 16 << 20
_ROW = ("stream", "length", "records", "chain", "counter")
_PART = ("id", "key", "length", "records", "chain")


@dataclass(frozen=True)
class Covered:
    """Up to where a checkpoint holds one log, and the counter of the record there."""

    end: End
    counter: int


@dataclass(frozen=True)
class PartEntry:
    """One part as a manifest names it: id, key, size of its file in bytes, number of records, chain after the last."""

    id: bytes
    key: RecordKey
    length: int
    records: int
    chain: bytes


@dataclass(frozen=True)
class Manifest:
    """What a checkpoint covers and where its operations are; `made_by` is a public signing key."""

    made_by: bytes
    counter: int
    logs: Mapping[bytes, Covered]
    parts: tuple[PartEntry, ...]

    def is_of(self, floor: Floor) -> bool:
        """Return whether a floor says the same of logs and parts."""
        rows = [(stream_id, row.end, row.counter) for stream_id, row in floor.rows.items()]
        logs = [(stream_id, covered.end, covered.counter) for stream_id, covered in self.logs.items()]
        return rows == logs and tuple(part.id for part in self.parts) == floor.parts


def manifest_preamble(vault_id: bytes, epoch: int, epoch_digest: bytes, checkpoint_id: bytes) -> bytes:
    """Return the preamble of a manifest; `epoch_digest` is that of the version that began the epoch."""
    return Preamble(Kind.CHECKPOINT, epoch, vault_id, checkpoint_id, epoch_digest[:8] + bytes(4)).to_bytes()


def part_preamble(vault_id: bytes, part_id: bytes) -> bytes:
    """Return the preamble of a part."""
    return Preamble(Kind.CHECKPOINT, 0, vault_id, part_id, bytes(12)).to_bytes()


def check_part_preamble(content: bytes | memoryview, vault_id: bytes, part_id: bytes) -> None:
    """Raise `FormatError` unless a container begins as this part must."""
    parsed = decode_preamble(content, Kind.CHECKPOINT, vault_id)
    if parsed != Preamble(Kind.CHECKPOINT, 0, vault_id, part_id, bytes(12)):
        raise FormatError("checkpoint_mismatch", "another object stands where a checkpoint's part belongs")


def manifest_epoch(content: bytes, vault_id: bytes, checkpoint_id: bytes) -> tuple[int, bytes]:
    """Return the epoch that a manifest was made in, and how the digest of that epoch's version begins (8 bytes)."""
    parsed = decode_preamble(content, Kind.CHECKPOINT, vault_id)
    if parsed.epoch < 1 or parsed.stream_id != checkpoint_id or parsed.nonce[8:] != bytes(4):
        raise FormatError("checkpoint_mismatch", "another object stands where a checkpoint's manifest belongs")
    return parsed.epoch, parsed.nonce[:8]


def seal_manifest(manifest: Manifest, preamble: bytes, key: RecordKey, owner: SigningKey) -> bytes:
    """Return a manifest's file, signed by the device that made it."""
    logs = [
        [stream_id, covered.end.length, covered.end.records, covered.end.chain, covered.counter]
        for stream_id, covered in manifest.logs.items()
    ]
    parts = [[part.id, part.key.reveal(), part.length, part.records, part.chain] for part in manifest.parts]
    meta = {"made_by": manifest.made_by, "counter": manifest.counter, "logs": logs, "parts": parts}
    content = Content(chain_start(preamble), False, meta, ())
    return preamble + seal_record(key, preamble, 0, encode_content(content, preamble, 0, owner))


def open_manifest(content: bytes, key: RecordKey) -> Manifest:
    """Return what a manifest's file says, its signature checked against `made_by`; raises `FormatError`."""
    preamble, stored = content[:PREAMBLE_SIZE], memoryview(content)
    _require(len(content) > PREAMBLE_SIZE, "it has no record")
    place = decode_header(stored, PREAMBLE_SIZE, 0)
    body = open_record(key, preamble, 0, stored[place.offset + HEADER_SIZE : place.end])
    record, signed = decode_content(body, preamble, 0)
    _require(place.end == len(content), "it has more than one record")
    _require(signed is not None and not record.more and not record.columns, "its record is not one of a manifest")
    _require(record.chain == chain_start(preamble), "its record is not the first")
    manifest = _decode(record)
    if signed is not None:
        try:
            primitives.verify(manifest.made_by, signed.signature, signed.message)
        except primitives.NotAuthentic:
            raise FormatError("signature_invalid", "a checkpoint is not signed by the device that made it") from None
    return manifest


def _require(condition: bool, detail: str) -> None:
    if not condition:
        raise FormatError("checkpoint_invalid", f"a checkpoint's manifest is not as it must be: {detail}")


def _decode(record: Content) -> Manifest:
    fields = Fields(record.meta, "checkpoint_invalid", "manifest")
    logs, parts = dict[bytes, Covered](), dict[bytes, PartEntry]()
    for values in fields.tuples("logs", len(_ROW)):
        row = Fields(dict(zip(_ROW, values, strict=True)), "checkpoint_invalid", "manifest")
        end = End(row.count("length", PREAMBLE_SIZE, U53), row.count("records"), row.size("chain", 32))
        logs[row.size("stream", ID_SIZE)] = Covered(end, row.count("counter", below=U53))
    for values in fields.tuples("parts", len(_PART)):
        part = Fields(dict(zip(_PART, values, strict=True)), "checkpoint_invalid", "part")
        entry = PartEntry(
            part.size("id", ID_SIZE),
            RecordKey(part.size("key", 32)),
            part.count("length", PREAMBLE_SIZE, U53),
            part.count("records", 1),
            part.size("chain", 32),
        )
        parts[entry.id] = entry
    return Manifest(fields.size("made_by", 32), fields.count("counter", below=U53), logs, tuple(parts.values()))
