"""The vectors' operations on recipes, records, contents and logs."""

from memseal.errors import FormatError, RecordTooLarge
from memseal.format import primitives
from memseal.format.compression import decompress
from memseal.format.content import Column, decode_content
from memseal.format.keys import RecordKey, WrappingKey
from memseal.format.log import LogReader, start_of
from memseal.format.preamble import PREAMBLE_SIZE, Kind, decode_preamble
from memseal.format.primitives import Cost
from memseal.format.records import (
    HEADER_SIZE,
    PLAINTEXT_LIMIT,
    Gap,
    decode_header,
    open_record,
    padded_size,
    places,
    scan,
)
from memseal.format.values import decode_value
from memseal.index.view import View
from memseal.memory.memory import Draft
from memseal.memory.operations import (
    Remember,
    make_stamp,
)
from tests.interop.manifest import octets
from tests.interop.outcome import Given, Outcome, operation, tagged

# ── primitives ──────────────────────────────────────────────────────────────────────────────────────


@operation
def derive(ikm: Given, salt: Given, label: str, parts: list[Given]) -> Outcome:
    return Outcome({"output": primitives.derive(octets(ikm), octets(salt), label, *map(octets, parts)).hex()})


@operation
def stretch(passphrase: str, salt: Given, cost: Given) -> Outcome:
    primitives.check_passphrase(passphrase)
    return Outcome({"output": primitives.stretch(passphrase, octets(salt), cost_of(cost)).reveal().hex()})


def cost_of(value: Given) -> Cost:
    if value["name"] != "argon2id":
        raise FormatError("kdf_unknown", "another derivation")
    return Cost(value["memory"], value["passes"], value["lanes"])


@operation
def unwrap(seed: Given, info: Given, wrapped: Given) -> Outcome:
    key = WrappingKey(octets(seed))
    try:
        content = primitives.unwrap(key, octets(info), octets(wrapped))
    except primitives.NotAuthentic:
        raise FormatError("box_sealed", "it does not open") from None
    return Outcome({"content": content.hex(), "public": primitives.public_wrapping_key(key).hex()})


@operation
def check_signing_key(key: Given) -> Outcome:
    if not primitives.is_sound_signing_key(octets(key)):
        raise FormatError("keyring_malformed", "not a sound key")
    return Outcome({})


@operation
def verify(public: Given, message: Given, signature: Given) -> Outcome:
    try:
        primitives.verify(octets(public), octets(signature), octets(message))
    except primitives.NotAuthentic:
        raise FormatError("signature_invalid", "it does not verify") from None
    return Outcome({})


# ── containers ──────────────────────────────────────────────────────────────────────────────────────


@operation
def decode_preamble_(content: Given, kind: int, vault_id: Given) -> Outcome:
    vault = None if vault_id is None else octets(vault_id)
    found = decode_preamble(octets(content), Kind(kind), vault)
    ids = {"vault_id": found.vault_id.hex(), "stream_id": found.stream_id.hex(), "nonce": found.nonce.hex()}
    return Outcome({"epoch": found.epoch, **ids})


@operation
def walk_records(content: Given) -> Outcome:
    return Outcome({"records": [[place.offset, place.length] for place in places(memoryview(octets(content)))]})


@operation
def open_record_(key: Given, preamble: Given, index: int, record: Given) -> Outcome:
    content = memoryview(octets(record))
    place = decode_header(content, 0, index)
    body = open_record(RecordKey(octets(key)), octets(preamble), index, content[HEADER_SIZE : place.end])
    return Outcome({"content": bytes(body).hex()})


@operation
def pad(length: int) -> Outcome:
    if 4 + length > PLAINTEXT_LIMIT:
        raise RecordTooLarge("it does not fit into a record")
    return Outcome({"padded": padded_size(4 + length)})


@operation
def scan_(content: Given) -> Outcome:
    found = list(scan(memoryview(octets(content)), PREAMBLE_SIZE, 0))
    gaps = [piece for piece in found if isinstance(piece, Gap)]
    records = [[piece.index, piece.offset, piece.length] for piece in found if not isinstance(piece, Gap)]
    damaged = [[gap.offset, gap.end] for gap in gaps]
    return Outcome({"records": records, "damaged": damaged}, frozenset(gap.code for gap in gaps))


@operation
def decompress_(frame: Given) -> Outcome:
    return Outcome({"content": decompress(octets(frame)).hex()})


@operation
def decode_msgpack(content: Given) -> Outcome:
    return Outcome({"value": tagged(decode_value(octets(content)))})


@operation
def decode_content_(content: Given, preamble: Given, index: int) -> Outcome:
    found, signed = decode_content(memoryview(octets(content)), octets(preamble), index)
    columns = [
        {
            "name": column.name,
            "model": column.model,
            "width": column.width,
            "rows": column.rows,
            "content": bytes(column.content).hex(),
        }
        for column in found.columns
    ]
    meta = tagged(found.meta)
    return Outcome(
        {
            "chain": found.chain.hex(),
            "signed": signed is not None,
            "more": found.more,
            "meta": meta,
            "columns": columns,
        }
    )


@operation
def read_column(content: Given, width: int) -> Outcome:
    raw = octets(content)
    rows = len(raw) // (2 * width)
    memories = [Remember(bytes([row] * 16), Draft(f"memory {row}", "test"), 0, row) for row in range(rows)]
    view = View(pin=("a model", width))
    try:
        column = Column("embedding", "a model", "f2", width, rows, raw)
        stamped = [(each, make_stamp(1, row, each.id)) for row, each in enumerate(memories)]
        findings = view.apply_decoded(stamped, [column], "record")
        without = {memory_id for memory_id, _, _ in view.state.without_vector(rows)}
    finally:
        view.close()
    usable = [row for row, each in enumerate(memories) if each.id not in without]
    return Outcome({"usable": usable}, frozenset(finding.code for finding in findings))


@operation
def read_log(content: Given, key: Given, owner: Given) -> Outcome:
    log = octets(content)
    preamble = log[:PREAMBLE_SIZE]
    reader = LogReader("log", preamble, RecordKey(octets(key)), octets(owner))
    reading = reader.read(memoryview(log)[PREAMBLE_SIZE:], start_of(preamble))
    end = {"length": reading.end.length, "records": reading.end.records, "chain": reading.end.chain.hex() or None}
    return Outcome(
        {
            "trusted": [record.place.index for record in reading.trusted],
            "waiting": [record.place.index for record in reading.waiting],
            "end": end,
            "torn": reading.torn,
            "appendable": not reading.damaged_end,
        },
        frozenset(finding.code for finding in reading.findings),
    )
