"""vaultmem 0.3.x: a folder with `meta.json` and sealed atoms, read as it lies there and never written to.

Its own reader would give up the whole vault for one damaged atom, cut files, and take a lock. Embeddings are left out:
they are of another model; so are media, of which the text that was made of them is brought.
"""

import base64
import json
import uuid
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from memseal.errors import DiskError, ImportRowError, PassphraseWrong
from memseal.format import primitives
from memseal.format.keys import RecordKey
from memseal.format.primitives import Cost
from memseal.surfaces.importing.items import (
    BadRow,
    ImportItem,
    Reading,
    Said,
    as_list,
    as_object,
    checked,
    count_unknown,
    given,
    items_of,
    label,
    moment_of,
    name_of,
    text_label,
)
from memseal.vault.writes.adopting import Past, derived_id

NAME: Final = "vaultmem"
_HEADER = 48
_NONCE, _LENGTH, _TAG = 12, 4, 16
_KINDS: Final = {"EPISODIC": "episode", "SEMANTIC": "fact", "PERSONA": "preference", "PROCEDURAL": "note"}
# An atom is a text and some numbers; the limit keeps a forged one from filling the memory.
_ATOM_LIMIT = 1 << 26
_CARRIED = frozenset(
    """
    id type granularity content size_tokens embedding supersedes session_id created_at is_churned churn_reason owner
    schema_version language content_type captured_at permissions data_class confidence media_source_path
    """.split()
)


@dataclass(frozen=True)
class Source:
    """A vaultmem vault that its passphrase has opened: the key of its atoms, and where each lies."""

    key: RecordKey
    atoms: tuple[tuple[str, Path, int, int], ...]
    """Id, file, offset and size of each atom, in the order in which they were written."""


def is_vaultmem(folder: Path) -> bool:
    """Return whether a folder looks like a vaultmem vault."""
    return (folder / "meta.json").is_file() and ((folder / "current.vmem").is_file() or (folder / "atoms").is_dir())


def open_source(folder: Path, passphrase: str) -> Source:
    """Open a vault; raises `PassphraseWrong`, `DiskError`, or `ImportRowError` where it is damaged as a whole."""
    key = _key(_meta(folder), passphrase)
    index = folder / "current.vmem"
    atoms = _listed(folder, key, _read(index)) if index.is_file() else []
    blobs = folder / "atoms"
    if blobs.is_dir():
        atoms += [(path.stem, path, 0, path.stat().st_size) for path in sorted(blobs.glob("*.enc"))]
    return Source(key, tuple(atoms))


def read_vaultmem(source: Source, reading: Reading) -> Iterator[ImportItem]:
    """Yield one item for each atom, also for those that were superseded; an error's line is the atom's number."""
    positions = dict[str, int]()

    def item_of(row: tuple[str, Path, int, int]) -> ImportItem:
        # Where each atom has a file of its own, nothing says which came first.
        return _item_of(_atom(source.key, row), positions if row[1].suffix == ".atoms" else None, reading)

    return items_of(enumerate(source.atoms, start=1), item_of, reading.on_error)


# ── opening ─────────────────────────────────────────────────────────────────────────────────────────


def _read(path: Path, offset: int = 0, size: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(size)
    except OSError as error:
        raise DiskError(f"{path.name} cannot be read: {error.strerror}") from error


def _meta(folder: Path) -> Mapping[str, Any]:
    meta = _parsed(_read(folder / "meta.json"))
    if not isinstance(meta, dict):
        raise ImportRowError(1, "meta.json of the vaultmem vault is damaged: without it nothing opens")
    return cast("Mapping[str, Any]", meta)


def _key(meta: Mapping[str, Any], passphrase: str) -> RecordKey:
    try:
        slot = meta["credential_slots"][0]
        salt, nonce, sealed, tag = (
            base64.b64decode(slot[name]) for name in ("kdf_salt", "wrapped_mek_iv", "wrapped_mek_ct", "wrapped_mek_tag")
        )
        cost = Cost(int(meta.get("memory_cost", 65536)), 3, 4)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError):  # JSON's infinity is no integer
        raise ImportRowError(1, "meta.json of the vaultmem vault is damaged: without it nothing opens") from None
    stretched = RecordKey(primitives.stretch(passphrase, salt, cost).reveal())
    try:
        return RecordKey(primitives.open_aes_gcm(stretched, nonce, sealed + tag, b"vmem-mek-v1"))
    except (primitives.NotAuthentic, ValueError):
        raise PassphraseWrong("this passphrase does not open the vaultmem vault: give the one it has") from None


def _listed(folder: Path, key: RecordKey, content: bytes) -> list[tuple[str, Path, int, int]]:
    header = content[:_HEADER]
    offset = int.from_bytes(header[12:16], "big")
    try:
        if header[:4] != b"VMEM" or header[4:6] != b"\0\1":
            raise BadRow
        index = _parsed(_inflated(_open(key, content[offset:], header)))
        entries = cast("Mapping[str, Any]", index)["atom_map"]
        rows = [(entry["id"], folder / "current.atoms", int(entry["offset"]), int(entry["size"])) for entry in entries]
    except (BadRow, KeyError, TypeError, ValueError, OverflowError):
        raise ImportRowError(1, "the index of the vaultmem vault is damaged, or of another version") from None
    return rows


def _open(key: RecordKey, block: bytes, context: bytes) -> bytes:
    size = int.from_bytes(block[_NONCE : _NONCE + _LENGTH], "big")
    start = _NONCE + _LENGTH
    try:
        return primitives.open_aes_gcm(key, block[:_NONCE], block[start : start + size + _TAG], context)
    except primitives.NotAuthentic:
        raise BadRow("the atom does not open: it is damaged") from None


def _inflated(content: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        plain = inflater.decompress(content, _ATOM_LIMIT)
    except zlib.error:
        raise BadRow("the atom is damaged") from None
    if not inflater.eof:
        raise BadRow("the atom is damaged, or larger than can be read")
    return plain


def _parsed(content: bytes) -> object:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


# ── atoms ───────────────────────────────────────────────────────────────────────────────────────────


def _atom(key: RecordKey, row: tuple[str, Path, int, int]) -> Mapping[str, object]:
    name, path, offset, size = row
    try:
        context = uuid.UUID(name).bytes
    except (ValueError, AttributeError, TypeError):
        raise BadRow("the atom has no valid id") from None
    atom = as_object(_parsed(_inflated(_open(key, _read(path, offset, size), context))), "the atom")
    if atom.get("id") != name:
        raise BadRow("the atom stands under another's id")
    return atom


def _item_of(atom: Mapping[str, object], positions: dict[str, int] | None, reading: Reading) -> ImportItem:
    session = text_label(atom, "session_id")
    position = None
    if session is not None and positions is not None:
        position = positions[session] = positions.get(session, 0) + 1
    granularity, path = _text(atom, "granularity") or "ATOM", _text(atom, "media_source_path")
    said = Said(
        content=atom.get("content"),
        source=f"{NAME}:{path}" if path else NAME,
        kind=_KINDS.get(_text(atom, "type"), "note"),
        tags=[] if granularity == "ATOM" else [granularity.lower()],
        author=label(atom, "owner"),
        thread=None if session is None else f"{NAME}/{session}",
        position=position,
        captured_at=moment_of(atom, "captured_at") or moment_of(atom, "created_at"),
    )
    item = checked(said, _origin(name_of(atom, "id")), _past(atom))
    count_unknown(given(atom), _CARRIED, reading.unknown_fields)
    return item


def _past(atom: Mapping[str, object]) -> Past:
    predecessors = [each for each in as_list(atom.get("supersedes"), "supersedes") if isinstance(each, str)]
    churned = atom.get("is_churned") is True
    return Past(
        id=_id(name_of(atom, "id")),
        written_at=moment_of(atom, "created_at"),
        replaces=_id(predecessors[0]) if predecessors else None,
        retracted=churned,
        retract_reason=_text(atom, "churn_reason").lower() or None if churned else None,
    )


def _origin(name: str | None) -> str:
    return f"{NAME}:{name}"


def _id(name: str | None) -> bytes:
    # Of the id alone: atoms never change, and one may name another that comes later.
    return derived_id(_origin(name), "")


def _text(atom: Mapping[str, object], name: str) -> str:
    value = atom.get(name)
    return value if isinstance(value, str) else ""
