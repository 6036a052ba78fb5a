"""The client's decoders behind the sealing: what a device of the vault, or who knows its passphrase, can write.

Inputs are containers of plain bodies, which are sealed here before they are read.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from memseal.errors import Finding, FormatError, MemsealError
from memseal.format import primitives, records
from memseal.format.boxes import open_recovery_slot, open_secrets
from memseal.format.bundle import begin_bundle
from memseal.format.checkpoint import manifest_epoch, open_manifest
from memseal.format.content import Content, chain_next, chain_start, content_pieces, decode_content, encode_content
from memseal.format.derivation import device_slot_key, marks_key, recovery_slot_key, secrets_key
from memseal.format.device_file import decode_device_file, device_preamble, open_key_set, open_marks
from memseal.format.fields import Fields
from memseal.format.keyring import Slot, Slots, encode_cost
from memseal.format.keys import LocalKey, RecordKey, SigningKey
from memseal.format.log import LogReader, start_of
from memseal.format.media import Medium, open_media
from memseal.format.part import read_run
from memseal.format.pieces import seal_piece
from memseal.format.preamble import PREAMBLE_SIZE, Kind, Preamble
from memseal.format.primitives import STANDARD_COST, sha256
from memseal.format.records import HEADER_SIZE, frame, seal_record
from memseal.index.image import SealedImage
from memseal.index.view import View, decoded
from memseal.memory.operations import decode_meta, decode_operation, encode_operation
from memseal.vault.copies.bundles import read_bundle
from memseal.vault.folder.checkpoints import stamped_operations
from memseal.vault.folder.device import decode_marks
from tests.bench.fuzzing import mutation, samples
from tests.bench.fuzzing.mutation import bodies_of, framed, packed
from tests.bench.fuzzing.target import Target
from tests.format import building
from tests.interop.manifest import octets
from tests.vault.small_vault import stretch_of

REFUSALS: tuple[type[Exception], ...] = (MemsealError,)
_KEY = RecordKey(sha256(b"a key"))
_OWNER = SigningKey(sha256(b"an owner"))
_PUBLIC = primitives.public_signing_key(_OWNER)
_VAULT = bytes(range(16))
_SALT = bytes(32)
_STRETCH = stretch_of("a passphrase")
_CHAIN, _SIGN = 1, 2
_HEAD_SIZE = 37


def _claimed(holds: bool, claim: str) -> None:
    if not holds:
        raise AssertionError(f"not so: {claim}")


def _preamble_of(content: bytes) -> bytes:
    return content[:PREAMBLE_SIZE].ljust(PREAMBLE_SIZE, b"\0")


# ── one record ──────────────────────────────────────────────────────────────────────────────────────

_PREAMBLE = Preamble(Kind.LOG, 1, _VAULT, bytes(16), bytes(12)).to_bytes()


def _record(plaintext: bytes) -> None:
    body = primitives.seal(_KEY, records._context(_PREAMBLE, 0), plaintext)
    content = bytes(records.open_record(_KEY, _PREAMBLE, 0, memoryview(body)))
    size = records.padded_size(4 + len(content))
    whole = len(content).to_bytes(4, "big") + content
    _claimed(whole.ljust(size, b"\0") == plaintext, "there is one plaintext for a content")


def _plaintexts() -> Iterator[bytes]:
    for size in (0, 1, 1020, 1021, 3000, 20_000):
        yield (size.to_bytes(4, "big") + b"a" * size).ljust(records.padded_size(4 + size), b"\0")


def _change_plaintext(plaintext: bytes, random: Random) -> bytes:
    content = mutation.scratched(plaintext[4:].rstrip(b"\0"), random)
    size = len(content) + random.choice((0, 0, 0, -1, 1, 100))
    whole = max(0, size).to_bytes(4, "big") + content
    return whole.ljust(records.padded_size(len(whole)), b"\0")[: 1 << 16]


def _content(content: bytes) -> None:
    found, _ = decode_content(memoryview(content), _PREAMBLE, 0)
    again, _ = decode_content(memoryview(b"".join(content_pieces(found))), _PREAMBLE, 0)
    _claimed(_shown(again) == _shown(found), "a content that was read can be written and read")
    _operations(found.meta)


def _shown(content: Content) -> str:
    columns = [(each.described(), bytes(each.content)) for each in content.columns]
    return repr((content.chain, content.more, content.meta, columns))


def _operations(meta: dict[str, Any]) -> None:
    found = decode_meta(meta, 1)
    for position, value in enumerate(found.operations):
        try:
            operation, stamp = decode_operation(value, found.counter, position)
        except FormatError:
            continue
        if type(operation).__name__ != "Unknown":
            again = decode_operation(encode_operation(operation, None), found.counter, position)[0]
            _claimed(repr(again) == repr(operation), "an operation that was read can be written and read")
            _claimed(len(stamp) == 28, "a stamp has 28 bytes")


def _contents() -> Iterator[bytes]:
    yield from samples.field("decode_content", "content")
    for meta in (*samples.field("decode_meta", "content"), *_merged()):
        yield bytes(32) + b"\0" + len(meta).to_bytes(4, "big") + meta
    for operation in samples.field("decode_operation", "content"):
        meta = packed({"previous": 9, "heads": [], "operations": [mutation.unpacked(operation)]})
        yield bytes(32) + b"\0" + len(meta).to_bytes(4, "big") + meta


def _merged() -> Iterator[bytes]:
    for given in samples.inputs("merge"):
        yield from map(octets, given["records"])


# ── runs of records ─────────────────────────────────────────────────────────────────────────────────


def _sealed(
    key: RecordKey, preamble: bytes, bodies: list[bytes], fix: int, start: bytes = b"", first: int = 0
) -> bytes:
    """Return the records that seal these bodies; chains and signatures are put right where `fix` says so."""
    stored, chain = list[bytes](), start or chain_start(preamble)
    for index, body in enumerate(bodies, start=first):
        content = body
        if len(content) >= _HEAD_SIZE and fix & _CHAIN:
            content = chain + content[32:]
        if len(content) >= _HEAD_SIZE + 64 and fix & _SIGN and content[32] & 1:
            message = b"memseal/v1/sign" + preamble + index.to_bytes(4, "big") + content[:-64]
            content = content[:-64] + primitives.sign(_OWNER, message)
        stored.append(seal_record(key, preamble, index, content))
        chain = chain_next(chain, stored[-1])
    return b"".join(stored)


def _log(content: bytes) -> None:
    fix, content = content[0] if content else 0, content[1:]
    preamble = _preamble_of(content)
    log = memoryview(_sealed(_KEY, preamble, bodies_of(content), fix))
    reading = LogReader("a log", preamble, _KEY, _PUBLIC).read(log, start_of(preamble))
    for opened in (*reading.trusted, *reading.waiting):
        try:
            _operations(opened.content.meta)
        except FormatError:
            continue


def _part(content: bytes) -> None:
    fix, content = content[0] if content else 0, content[1:]
    preamble, findings = _preamble_of(content), list[Finding]()
    part = preamble + _sealed(_KEY, preamble, bodies_of(content), fix)
    for record in read_run("a part", _KEY, memoryview(part)):
        if not isinstance(record, Finding):
            list(stamped_operations(record, 10, "a part", findings))


def _state(content: bytes) -> None:
    """Apply what records say in their order, and in the other: the state is the same."""
    found = list[Content]()
    for index, body in enumerate(bodies_of(content[1:])):
        try:
            found.append(decode_content(memoryview(body), _PREAMBLE, index)[0])
            decode_meta(found[-1].meta, 1)
        except FormatError:
            found = found[:index]
    digests = {_digest(found), _digest(found[::-1])}
    _claimed(len(digests) == 1 or _is_ambiguous(found), "the order of arrival makes no difference")


def _digest(found: list[Content]) -> bytes:
    view = View()
    try:
        for number, each in enumerate(found):
            try:
                said, _ = decoded(decode_meta(each.meta, 1), each.columns, f"record {number}")
            except FormatError:
                continue
            view.apply_all([said])
        return view.state.digest()
    finally:
        view.close()


def _is_ambiguous(found: list[Content]) -> bool:
    """Whether two operations have one id and one stamp: only a device that lies makes such."""
    stamps = list[bytes]()
    for each in found:
        try:
            meta = decode_meta(each.meta, 1)
        except FormatError:
            continue
        for position, value in enumerate(meta.operations):
            try:
                stamps.append(decode_operation(value, meta.counter, position)[1])
            except FormatError:
                continue
    return len(set(stamps)) != len(stamps)


def _logs() -> Iterator[bytes]:
    contents = [content for content in _contents() if len(content) < 5000]
    for start in range(0, len(contents), 3):
        yield bytes((_CHAIN | _SIGN,)) + framed(_PREAMBLE, contents[start : start + 3])


def _histories() -> Iterator[bytes]:
    for given in samples.inputs("merge"):
        metas = list(map(octets, given["records"]))
        bodies = [bytes(33) + len(meta).to_bytes(4, "big") + meta for meta in metas]
        yield b"\0" + framed(_PREAMBLE, bodies)


_CHANGE_RUN = mutation.behind(1, mutation.container(mutation.change_content))


# ── manifest, bundle, media ─────────────────────────────────────────────────────────────────────────


def _manifest(content: bytes) -> None:
    fix, content = content[0] if content else 0, content[1:]
    preamble = _preamble_of(content)
    file = preamble + _sealed(_KEY, preamble, bodies_of(content), fix)
    manifest_epoch(file, file[16:32], file[32:48])
    open_manifest(file, _KEY)


def _manifests() -> Iterator[bytes]:
    preamble = Preamble(Kind.CHECKPOINT, 1, _VAULT, bytes(16), bytes(12)).to_bytes()
    logs = [[bytes((number,)) * 16, 1172, 1, bytes(32), 7] for number in range(3)]
    parts = [[bytes((number,)) * 16, bytes(32), 1172, 1, bytes(32)] for number in range(2)]
    for meta in (
        {"made_by": _PUBLIC, "counter": 7, "logs": logs, "parts": parts},
        {"made_by": _PUBLIC, "counter": 0, "logs": [], "parts": []},
    ):
        body = encode_content(Content(bytes(32), False, meta, ()), preamble, 0, _OWNER)
        yield bytes((_CHAIN | _SIGN,)) + framed(preamble, [body])


def _bundle(content: bytes) -> None:
    fix, content = content[0] if content else 0, content[1:]
    first, *bodies = bodies_of(content) or [b""]
    beginning = _preamble_of(content) + frame(0, first)
    chain = chain_next(chain_start(beginning[:PREAMBLE_SIZE]), beginning[PREAMBLE_SIZE:])
    file = beginning + _sealed(_KEY, beginning[:PREAMBLE_SIZE], bodies, fix, chain, 1)
    read_bundle(memoryview(file), _STRETCH).view.close()


def _bundles() -> Iterator[bytes]:
    beginning = begin_bundle(_VAULT, bytes(16), _KEY, _SALT, _STRETCH, STANDARD_COST)
    first = bodies_of(beginning.stored)[0]
    for run in _logs():
        yield run[:1] + framed(beginning.preamble, [first, *bodies_of(run[1:])])


def _change_bundle(content: bytes, random: Random) -> bytes:
    if random.random() < 0.8:
        return _CHANGE_RUN(content, random)
    first, *bodies = bodies_of(content[1:]) or [b""]
    return content[:1] + framed(content[1:][:PREAMBLE_SIZE], [mutation.change_packed(first, random), *bodies])


def _media(content: bytes) -> None:
    preamble, bodies = _preamble_of(content), bodies_of(content)
    whole = b"".join(bodies)
    digest = hashlib.sha256(whole).digest()
    medium = Medium(preamble[32:48], _KEY, len(whole), digest, "image/png", None, {})
    file = preamble + b"".join(seal_record(_KEY, preamble, index, body) for index, body in enumerate(bodies))
    found = b"".join(open_media(medium, preamble[16:32], memoryview(file)))
    _claimed(found == whole, "an item is what it was")


def _items() -> Iterator[bytes]:
    preamble = Preamble(Kind.MEDIA, 0, _VAULT, bytes(16), bytes(12)).to_bytes()
    for bodies in ([], [b""], [b"a"], [b"a" * 2000, b"b" * 10]):
        yield framed(preamble, bodies)


# ── cache ───────────────────────────────────────────────────────────────────────────────────────────


def _cache(content: bytes) -> None:
    preamble, bodies = _preamble_of(content), bodies_of(content)
    header, *pieces = bodies or [b""]
    file = preamble + seal_record(_KEY, preamble, 0, header)
    file += b"".join(seal_piece(_KEY, preamble, index, piece) for index, piece in enumerate(pieces, start=1))
    image = SealedImage(lambda start, end: file[start:end], _KEY)
    Fields(image.bound, "record_content", "cache")
    image.check()


def _caches() -> Iterator[bytes]:
    preamble = Preamble(Kind.CACHE, 0, _VAULT, bytes(16), bytes(12)).to_bytes()
    header = {"bound": {"keyring": bytes(32), "floor": b"", "logs": [], "findings": []}, "foreign_vectors": 0}
    yield framed(preamble, [packed(header | {"state": 3}), b"abc"])
    vectors = {"dimension": 2, "vectors": 3, "approximate": 5, "approximate_format": "faiss"}
    yield framed(preamble, [packed(header | {"state": 1} | vectors), b"a", bytes(24), bytes(12), bytes(5)])


def _change_cache(content: bytes, random: Random) -> bytes:
    header, *pieces = bodies_of(content) or [b""]
    if random.random() < 0.8:
        return framed(_preamble_of(content), [mutation.change_packed(header, random), *pieces])
    return mutation.container(mutation.scratched)(content, random)


# ── device file, secrets ────────────────────────────────────────────────────────────────────────────

_DEVICE = (_VAULT, bytes(16))
_LOCAL = LocalKey(bytes(32))


def _device(content: bytes) -> None:
    """Read a device file: record 0 as it is, then key sets and marks, sealed for the places where they stand."""
    first, *bodies = bodies_of(content) or [b""]
    slot_key = device_slot_key(_STRETCH(_SALT, STANDARD_COST), _SALT, *_DEVICE, STANDARD_COST)
    keys = [slot_key] * (len(bodies) - 1) + [marks_key(_LOCAL, *_DEVICE)]
    preamble = device_preamble(*_DEVICE)
    sealed = [
        seal_record(key, preamble, index, body)
        for index, (key, body) in enumerate(zip(keys, bodies, strict=bool(bodies)), start=1)
    ]
    file = decode_device_file(_preamble_of(content) + frame(0, first) + b"".join(sealed))
    _claimed(decode_device_file(file.to_bytes()) == file, "a device file that was read can be written and read")
    decode_marks(open_marks(file, _LOCAL))
    for slot in file.slots:
        open_key_set(file, slot, _STRETCH)


def _device_files() -> Iterator[bytes]:
    keys = {"sign": bytes(32), "wrap": bytes(32), "local": bytes(32), "local_before": None}
    ends = [[bytes(16), 1172, 1, bytes(32)]]
    marks = {
        "keyring": 3,
        "digest": bytes(32),
        "logs": ends,
        "remotes": {"https://example.org": {"keyring": 3, "logs": ends}},
        "server": "https://example.org",
        "rewritten": 2,
        "cache_secrets": [[bytes(12), bytes(32)]],
    }
    slot = {"salt": _SALT, "cost": encode_cost(STANDARD_COST)}
    current, pending = {"state": "current", **slot}, {"state": "pending", **slot}
    preamble = device_preamble(*_DEVICE)
    yield framed(preamble, [packed({"slots": [current]}), packed(keys), packed(marks)])
    yield framed(preamble, [packed({"slots": [current, pending]}), packed(keys), packed(keys), packed(marks)])


_STEP = building.first()


def _secrets(content: bytes) -> None:
    kind, content = content[:1], content[1:]
    version = _STEP.version
    if kind > b"\x7f":
        secret = building.recovery_secret(1)
        key = recovery_slot_key(secret, version.vault_id, 1)
        context = b"memseal/v1/recovery-slot" + version.vault_id + (1).to_bytes(4, "big")
        slot = Slot(1, b"", primitives.seal(key, context, content))
        open_recovery_slot(_with(slots=Slots(None, slot)), secret)
    else:
        key = secrets_key(building.vault_key(1), version.vault_id, 1)
        record = seal_record(key, version.content[:PREAMBLE_SIZE], 3, content)
        open_secrets(_with(secrets=record[HEADER_SIZE:]), building.vault_key(1))


def _with(**fields: Any) -> Any:
    public = replace(_STEP.public, recovery=building.recovery_entry(1, 1))
    return replace(_STEP.version, public=public, **fields)


def _secret_maps() -> Iterator[bytes]:
    history = [[1, bytes(32)], [2, bytes(range(32))]]
    yield b"\0" + packed({"history": history, "names": [[bytes(16), "a laptop"]], "kit_secret": bytes(16)})
    yield b"\xff" + packed({"seed": bytes(32), "version": 1, "public": bytes(32)})


TARGETS = {
    "record": Target(_record, _plaintexts, REFUSALS, _change_plaintext),
    "content": Target(_content, _contents, REFUSALS, mutation.change_content),
    "log": Target(_log, _logs, REFUSALS, _CHANGE_RUN),
    "state": Target(_state, _histories, REFUSALS, _CHANGE_RUN),
    "manifest": Target(_manifest, _manifests, REFUSALS, _CHANGE_RUN),
    "part": Target(_part, _logs, REFUSALS, _CHANGE_RUN),
    "bundle": Target(_bundle, _bundles, REFUSALS, _change_bundle),
    "media": Target(_media, _items, REFUSALS, mutation.container(mutation.scratched)),
    "cache": Target(_cache, _caches, REFUSALS, _change_cache),
    "device": Target(_device, _device_files, REFUSALS, mutation.container(mutation.change_packed)),
    "secrets": Target(_secrets, _secret_maps, REFUSALS, mutation.behind(1, mutation.change_packed)),
}
