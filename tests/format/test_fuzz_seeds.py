"""Inputs by which fuzzing found something: each is refused with a typed error, or read, and does nothing else."""

import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memseal.errors import FormatError, ImportRowError, SanitizerInput
from memseal.format.content import decode_content
from memseal.format.keys import RecordKey
from memseal.format.preamble import Kind, Preamble
from memseal.format.values import encode_value
from memseal.sanitize import Sanitizer
from memseal.surfaces.importing.opening import open_import
from memseal.surfaces.importing.vaultmem import _listed
from memseal.vault.folder.device import Marks, decode_marks
from memseal_server.blobs import StoreUnavailable
from memseal_server.invitations import _read_offer
from tests.sanitize.building import rules

SAMPLES = Path(__file__).parents[1] / "surfaces" / "samples"
PREAMBLE = Preamble(Kind.LOG, 1, bytes(16), bytes(16), bytes(12)).to_bytes()


def content_of(column: dict[str, object], rest: bytes) -> memoryview:
    """The content of an unsigned record whose meta lists one column."""
    meta = encode_value({"operations": [], "columns": [column]})
    return memoryview(bytes(33) + len(meta).to_bytes(4, "big") + meta + rest)


@pytest.mark.parametrize("kind", [{}, [], {"f2": 1}, ["f2"]])
def test_column_whose_type_is_no_text_is_skipped_by_its_bytes(kind: object) -> None:
    column = {"name": "embedding", "type": kind, "width": 2, "rows": 1, "bytes": 4, "model": "a"}
    assert decode_content(content_of(column, bytes(4)), PREAMBLE, 0)[0].columns == ()


@pytest.mark.parametrize("kind", [{}, []])
def test_column_whose_type_is_no_text_still_has_to_fit(kind: object) -> None:
    column = {"name": "embedding", "type": kind, "width": 2, "rows": 1, "bytes": 5, "model": "a"}
    with pytest.raises(FormatError) as refused:
        decode_content(content_of(column, bytes(4)), PREAMBLE, 0)
    assert refused.value.code == "column_length"


@pytest.mark.parametrize("cache", [-1, None, [b"n" * 12], [1 << 40, bytes(32)], [b"n" * 12, 32], [b"n" * 12, b"s"]])
def test_marks_with_a_cache_that_is_no_byte_strings_are_refused(cache: object) -> None:
    """Python's `bytes` makes that many zeros of an integer."""
    with pytest.raises(FormatError) as refused:
        decode_marks({**Marks().to_value(), "cache_secrets": [cache]})
    assert refused.value.code == "record_content"


# ── kept sessions ───────────────────────────────────────────────────────────────────────────────────

ENTRY = ["Marta Ilves", "PERSON", {"title": "Sarah Chen"}]


def saved(**changes: Any) -> dict[str, Any]:
    """A session as `save` gives it, with something exchanged."""
    sanitizer = Sanitizer(detector=rules(), seed=bytes(32))
    return {**sanitizer.save(), "entries": [ENTRY], "names": {"sarah chen": "Marta Ilves"}, **changes}


def test_session_is_loaded_as_it_was_saved() -> None:
    sanitizer = Sanitizer(detector=rules())
    sanitizer.load(saved())
    assert sanitizer.restore("Dear Marta Ilves") == "Dear Sarah Chen"


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 1 << 50},
        {"drawn": -1},
        {"drawn": 1 << 64},
        {"drawn": True},
        {"seen": ["a", 1]},
        {"seen": "a"},
        {"numbers": []},
        {"numbers": {"EMAIL": "1"}},
        {"numbers": {"EMAIL": -1}},
        {"entries": {}},
        {"entries": [[*ENTRY[:2], {}]]},
        {"entries": [[*ENTRY[:2], {"title": ""}]]},
        {"entries": [[*ENTRY[:2], {"title": 1}]]},
        {"entries": [["", *ENTRY[1:]]]},
        {"entries": [[1, *ENTRY[1:]]]},
        {"names": []},
        {"names": {"sarah chen": 1}},
        {"names": {"sarah chen": "nobody"}},
        {"issued": [1 << 50]},
        {"issued": 5},
    ],
)
def test_session_that_was_never_saved_so_is_refused(changes: dict[str, Any]) -> None:
    """Each of these ended in an error without a type, at the loading or at the next reply."""
    with pytest.raises(SanitizerInput, match="no saved session"):
        Sanitizer(detector=rules()).load(saved(**changes))


# ── files of other programs ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("field", ["offset", "size"])
def test_index_of_vaultmem_with_an_infinite_number_is_refused(field: str) -> None:
    entry = {"id": "a", "offset": 0, "size": 1, field: float("inf")}
    key, nonce, header = bytes(32), bytes(12), (b"VMEM\0\1" + bytes(6) + (48).to_bytes(4, "big")).ljust(48, b"\0")
    content = zlib.compress(json.dumps({"atom_map": [entry]}).encode())
    block = nonce + len(content).to_bytes(4, "big") + AESGCM(key).encrypt(nonce, content, header)
    with pytest.raises(ImportRowError, match="index of the vaultmem vault is damaged"):
        _listed(Path("a.vault"), RecordKey(key), header + block)


def test_database_whose_damaged_names_are_no_utf8_is_refused(tmp_path: Path) -> None:
    """SQLite quotes the name in its message, which Python then cannot decode."""
    content = (SAMPLES / "provenmem.db").read_bytes()
    path = tmp_path / "memory.db"
    # The first is the index's name, the second the statement that made it.
    path.write_bytes(content.replace(b"records_active", b"rec\xff\xff\xff\xffactive", 1))
    with pytest.raises(ImportRowError, match="damaged"):
        list(open_import(path)[1])


# ── what lies in a server's store ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "content", [b'{"uses": Infinity, "expires": 1}', b'{"uses": 1, "expires": 1e999}', b"[" * 99_999]
)
def test_damaged_invitation_is_told_as_that(content: bytes) -> None:
    with pytest.raises(StoreUnavailable, match="invitation is damaged"):
        _read_offer(content)
