"""Opens all that can be opened in a vault's folder, with every key that is there or was kept: what a thief would do."""

import contextlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from memseal.errors import BoxMissing, FormatError
from memseal.format.base import decode_base
from memseal.format.boxes import open_device_box, open_secrets
from memseal.format.checkpoint import open_manifest
from memseal.format.content import decode_content
from memseal.format.derivation import cache_key, checkpoint_key, log_key
from memseal.format.device_file import DeviceFile, KeySet, Stretch, decode_device_file, open_key_set, open_marks
from memseal.format.keyring import decode_version
from memseal.format.keys import CacheSecret, RecordKey, VaultKey
from memseal.format.pieces import open_piece, piece_size
from memseal.format.preamble import ID_SIZE, PREAMBLE_SIZE
from memseal.format.primitives import public_signing_key
from memseal.format.records import HEADER_SIZE, Place, open_record, scan
from memseal.format.values import encode_value
from memseal.vault.folder.device import decode_marks
from tests.vault.small_vault import PASSPHRASE, stretch_of


def vault_keys(folder: Path, passphrase: str = PASSPHRASE, keyring: Path | None = None) -> list[VaultKey]:
    """Every vault key that this device's keys open in any keyring version of its folder, or of a kept copy of it."""
    found = list[VaultKey]()
    for keys in _key_sets(folder, stretch_of(passphrase)):
        for path in sorted((keyring or folder / "keyring").iterdir()):
            version = decode_version(path.read_bytes())
            with contextlib.suppress(BoxMissing, FormatError):
                newest = open_device_box(version, keys.wrap, public_signing_key(keys.sign))
                found += [newest, *open_secrets(version, newest).history.values()]
    return found


def plaintexts(folder: Path, keys: Iterable[VaultKey], passphrase: str = PASSPHRASE) -> Iterator[bytes]:
    """Everything that opens in any file of a vault's folder with these vault keys and the device's own."""
    keys = list(keys)
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    parts = dict[bytes, RecordKey]()
    for path, content in files.items():
        stream_id = content[32 : 32 + ID_SIZE]
        for key in keys:
            vault_id = _vault_id(content)
            if path.parent.name == "logs":
                yield from _records(content, log_key(key, vault_id, stream_id))
            if path.parent.name == "checkpoints":
                with contextlib.suppress(FormatError):
                    manifest = open_manifest(content, checkpoint_key(key, vault_id, stream_id))
                    parts |= {entry.id: entry.key for entry in manifest.parts}
    for path, content in files.items():
        if path.parent.name == "parts":
            yield from chain.from_iterable(_records(content, key) for key in parts.values())
        if path.parent.name == "cache":
            for key_set in _key_sets(folder, stretch_of(passphrase)):
                for secret in _cache_secrets(folder, key_set):
                    own = cache_key(key_set.local, secret, _vault_id(content), content[32:48], content[48:60])
                    yield from _pieces(content, own)
        yield content


def _vault_id(content: bytes) -> bytes:
    return content[16 : 16 + ID_SIZE]


def _key_sets(folder: Path, stretch: Stretch) -> list[KeySet]:
    file: DeviceFile = decode_device_file((folder / "device.mseal").read_bytes())
    opened = [open_key_set(file, slot, stretch) for slot in file.slots]
    return [each for each in opened if each is not None]


def _cache_secrets(folder: Path, keys: KeySet) -> list[CacheSecret]:
    file = decode_device_file((folder / "device.mseal").read_bytes())
    return [mark.secret for mark in decode_marks(open_marks(file, keys.local)).caches]


def _places(content: bytes) -> Iterator[Place]:
    base = decode_base(content)
    begin = PREAMBLE_SIZE if base is None else PREAMBLE_SIZE + len(base.to_bytes())
    index = 0 if base is None else base.end.records
    for place in scan(memoryview(content), begin, index):
        if isinstance(place, Place):
            yield place


def _records(content: bytes, key: RecordKey) -> Iterator[bytes]:
    preamble = content[:PREAMBLE_SIZE]
    for place in _places(content):
        with contextlib.suppress(FormatError):
            body = memoryview(content)[place.offset + HEADER_SIZE : place.end]
            record, _ = decode_content(open_record(key, preamble, place.index, body), preamble, place.index)
            yield encode_value(record.meta)
            yield from (bytes(column.content) for column in record.columns)


def _pieces(content: bytes, key: RecordKey) -> Iterator[bytes]:
    preamble = content[:PREAMBLE_SIZE]
    for place in _places(content):
        with contextlib.suppress(FormatError):
            target = memoryview(bytearray(_opened_size(place)))
            open_piece(key, preamble, place.index, content[place.offset : place.end], target)
            yield bytes(target)


def _opened_size(place: Place) -> int:
    """How long a piece is when it is opened."""
    return next(size for size in range(place.length, 0, -1) if piece_size(size) == HEADER_SIZE + place.length)
