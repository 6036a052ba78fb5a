"""The client's decoders of plain bytes: what anyone who touches a file, a stick or a wire can change."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from memseal.errors import MemsealError
from memseal.format.base import BASE_SIZE, decode_base
from memseal.format.compression import decompress
from memseal.format.keys import KitSecret, RecoverySecret, ScannedSecret
from memseal.format.kit import Kit, RecoveryCode, parse_kit, parse_recovery_code
from memseal.format.pairing_code import PairingCode, parse_pairing_code
from memseal.format.preamble import PREAMBLE_SIZE, Kind, decode_preamble
from memseal.format.records import places, scan
from memseal.format.segment import decode_segment
from memseal.format.values import decode_value, encode_value
from memseal.store.disk import OsDisk
from memseal.store.folder import VaultFolder
from memseal.sync.messages import GetHeads, GetLog
from memseal.transport import answers
from memseal.transport.folder import FolderTransport
from memseal.vault.folder import keychain
from tests.bench.fuzzing import mutation, samples
from tests.bench.fuzzing.target import Target
from tests.interop.manifest import octets

REFUSALS: tuple[type[Exception], ...] = (MemsealError,)
_CHANGE = mutation.container(mutation.scratched)
_VAULT = bytes(range(16))
_STREAM = bytes(range(16, 32))


def _claimed(holds: bool, claim: str) -> None:
    if not holds:
        raise AssertionError(f"not so: {claim}")


# ── preamble, framing, base ─────────────────────────────────────────────────────────────────────────


def _preamble(content: bytes) -> None:
    first, content = content[:1] or b"\0", content[1:]
    of_any_vault, kind = divmod(first[0], len(Kind))
    found = decode_preamble(content, Kind(kind + 1), content[16:32] if of_any_vault else _VAULT)
    _claimed(found.to_bytes() == content[:PREAMBLE_SIZE], "a preamble is encoded as it was")


def _preambles() -> Iterator[bytes]:
    for given in samples.inputs("decode_preamble"):
        yield bytes((given["kind"] - 1 + len(Kind),)) + octets(given["content"])


def _change_preamble(content: bytes, random: Random) -> bytes:
    return mutation.with_crc(mutation.scratched(content, random), 1, 61)


def _framing(content: bytes) -> None:
    end = PREAMBLE_SIZE
    for piece in scan(memoryview(content), end, 0):
        _claimed(piece.offset >= end, "a scan only goes on")
        end = piece.end
    _claimed(end == max(len(content), PREAMBLE_SIZE), "a scan reaches the end")
    places(memoryview(content))


def _containers() -> Iterator[bytes]:
    for operation in ("walk_records", "scan", "read_log", "open_part"):
        yield from samples.field(operation, "content")


def _base(content: bytes) -> None:
    found = decode_base(content)
    if found is not None:
        _claimed(found.to_bytes() == content[PREAMBLE_SIZE:][:BASE_SIZE], "a base is encoded as it was")


def _bases() -> Iterator[bytes]:
    return samples.field("open_base", "content")


def _change_base(content: bytes, random: Random) -> bytes:
    return mutation.with_crc(mutation.scratched(content, random), PREAMBLE_SIZE, PREAMBLE_SIZE + BASE_SIZE - 4)


# ── values ──────────────────────────────────────────────────────────────────────────────────────────


def _zstd(content: bytes) -> None:
    decompress(content)


def _frames() -> Iterator[bytes]:
    return samples.field("decompress", "frame")


def _msgpack(content: bytes) -> None:
    value = decode_value(content)
    _claimed(repr(decode_value(encode_value(value))) == repr(value), "a value that was read can be written and read")


def _values() -> Iterator[bytes]:
    for operation in ("decode_msgpack", "decode_meta", "decode_operation"):
        yield from samples.field(operation, "content")


# ── kit, recovery code, pairing code ─────────────────────────────────────────────────────────────────


_PARSERS: tuple[Callable[[str], Kit | RecoveryCode | PairingCode], ...] = (
    parse_kit,
    parse_recovery_code,
    parse_pairing_code,
)


def _code(content: bytes) -> None:
    text = content[1:].decode(errors="surrogateescape")
    parse = _PARSERS[(content[0] if content else 0) % len(_PARSERS)]
    code = parse(text)
    again = parse(code.to_text())
    _claimed(code.to_text() == again.to_text(), "what was read can be written and read")


def _codes() -> Iterator[bytes]:
    yield from (b"\0" + given["text"].encode() for given in samples.inputs("parse_kit"))
    yield from (b"\1" + given["text"].encode() for given in samples.inputs("parse_recovery"))
    yield from (b"\2" + given["text"].encode() for given in samples.inputs("parse_pairing"))


def _change_code(content: bytes, random: Random) -> bytes:
    if random.random() < 0.5:
        return mutation.scratched(content, random)
    server = mutation.scratched(b"https://example.org", random).decode(errors="replace")
    generation = random.choice((0, 1, (1 << 32) - 1))
    kind = random.randrange(len(_PARSERS))
    code: Kit | RecoveryCode | PairingCode = (
        Kit(_VAULT, KitSecret(random.randbytes(16)), generation, server),
        RecoveryCode(_VAULT, RecoverySecret(random.randbytes(32)), generation, server),
        PairingCode(random.randrange(1 << 17), ScannedSecret(random.randbytes(16)), server),
    )[kind]
    return bytes((kind,)) + code.to_text().encode()


# ── versions of a branch that a device goes over to ─────────────────────────────────────────────────


class _BranchFolder(VaultFolder):
    """A vault's folder of one file: the versions of a branch."""

    def __init__(self, content: bytes) -> None:
        super().__init__(Path(), OsDisk())
        self._content = content

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        return self._content[start:end]


def _branch(content: bytes) -> None:
    keychain._branch(_BranchFolder(content))


def _branches() -> Iterator[bytes]:
    versions = [content for content in samples.field("decode_keyring", "content") if len(content) < 1 << 13]
    yield mutation.packed([])
    yield from (mutation.packed([version]) for version in versions)
    yield mutation.packed(versions[:2])


# ── what a remote says ──────────────────────────────────────────────────────────────────────────────


class _Folder:
    """A remote's folder in memory: one log of up to three files."""

    def __init__(self, contents: list[bytes]) -> None:
        self._contents = contents

    def read(self, path: Path, start: int = 0, end: int | None = None) -> bytes | None:
        return self._contents[int(path.name)][start:end]

    def size(self, path: Path) -> int | None:
        return len(self._contents[int(path.name)])

    def names(self, folder: Path) -> list[str]:
        if folder.name == "logs":
            return [_STREAM.hex()]
        return [f"{number:010d}" for number in range(len(self._contents))]

    def write(self, path: Path, offset: int, content: bytes | bytearray) -> None:
        raise NotImplementedError

    def sync(self, path: Path) -> None:
        raise NotImplementedError

    def sync_folder(self, folder: Path) -> None:
        raise NotImplementedError

    def rename(self, source: Path, target: Path) -> None:
        raise NotImplementedError

    def make_folder(self, folder: Path) -> None:
        raise NotImplementedError

    def remove(self, path: Path) -> None:
        raise NotImplementedError


def _segment(content: bytes) -> None:
    size = int.from_bytes(content[:2], "big")
    pieces = [content[2 : 2 + size], content[2 + size :]]
    transport = FolderTransport(Path(), _VAULT, _Folder(pieces))
    transport.send(GetHeads())
    transport.send(GetLog(_STREAM, 0, 1 << 23))
    _claimed(decode_segment(pieces[0]).to_bytes() == pieces[0], "a segment is encoded as it was")


def _segments() -> Iterator[bytes]:
    for content in samples.field("decode_segment", "content"):
        yield len(content).to_bytes(2, "big") + content
    for log in samples.field("read_log", "content"):
        if len(log) < 1 << 15:
            segment = bytes(8) + len(log).to_bytes(8, "big") + bytes(36) + log
            yield len(segment).to_bytes(2, "big") + segment


def _change_segment(content: bytes, random: Random) -> bytes:
    header, piece = content[2:54].ljust(52, b"\0"), _CHANGE(content[54:], random)
    if random.random() < 0.3:
        header = mutation.scratched(header, random)[:52].ljust(52, b"\0")
    size = random.choice((52 + len(piece), len(piece) // 2)) & 0xFFFF
    return size.to_bytes(2, "big") + header[:8] + len(piece).to_bytes(8, "big") + header[16:] + piece


def _heads(content: bytes) -> None:
    answers.read_heads(content)


def _shown() -> Iterator[bytes]:
    for given in samples.inputs("sync"):
        yield from (json.dumps(heads).encode() for heads in given["remote"]["heads"] if heads is not None)


def _problem(content: bytes) -> None:
    answers.clock_of(content)
    answers.refusal(409, content)


def _problems() -> Iterator[bytes]:
    for code in ("clock", "vault_unknown", "segment_order", "limit", "Not a code"):
        members: Mapping[str, Any] = {"now": 1_700_000_000, "end": {"length": 1}, "limit": None}
        yield json.dumps({"type": f"urn:memseal:error:{code}", "code": code, "detail": "a", **members}).encode()


TARGETS = {
    "preamble": Target(_preamble, _preambles, REFUSALS, _change_preamble),
    "framing": Target(_framing, _containers, REFUSALS, _CHANGE),
    "base": Target(_base, _bases, REFUSALS, _change_base),
    "zstd": Target(_zstd, _frames, REFUSALS),
    "msgpack": Target(_msgpack, _values, REFUSALS, mutation.change_packed),
    "code": Target(_code, _codes, REFUSALS, _change_code),
    "branch": Target(_branch, _branches, REFUSALS, mutation.change_packed),
    "segment": Target(_segment, _segments, REFUSALS, _change_segment),
    "heads": Target(_heads, _shown, REFUSALS, mutation.change_json),
    "problem": Target(_problem, _problems, REFUSALS, mutation.change_json),
}
