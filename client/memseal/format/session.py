"""Kept sessions of the sanitizer: one sealed file each, under a secret that an erase forgets (vault-format §8f)."""

from typing import Any, Final

from memseal.errors import FormatError
from memseal.format.derivation import session_id, session_key
from memseal.format.fields import Fields
from memseal.format.keys import SessionSecret
from memseal.format.preamble import PREAMBLE_SIZE, Kind, Preamble, decode_preamble
from memseal.format.records import HEADER_SIZE, decode_header, open_record, seal_record
from memseal.format.values import decode_map, encode_value

FRAME_SIZE: Final = PREAMBLE_SIZE + HEADER_SIZE
"""Bytes of a file by which its frame is known."""
_NONCE: Final = bytes(12)
_CODE: Final = "record_content"


def seal_session(secret: SessionSecret, file_id: tuple[bytes, bytes], name: str, session: dict[str, Any]) -> bytes:
    """Return the file of a session; `file_id` are vault and device id (16 bytes each).

    Raises `ValueError` for a session that could not be read again, `RecordTooLarge` for one over 64 MiB.
    """
    own = session_id(secret, *file_id, name)
    preamble = _preamble(file_id[0], own)
    return preamble + seal_record(session_key(secret, *file_id, own), preamble, 0, _encoded(name, session))


def open_session(
    secret: SessionSecret, file_id: tuple[bytes, bytes], own: bytes, file: bytes
) -> tuple[str, dict[str, Any]]:
    """Return the name and the session of a file; `own` is the id (16 bytes) that names it. Raises `FormatError`."""
    check_session_frame(file_id[0], own, file, len(file))
    body = memoryview(file)[FRAME_SIZE:]
    content = open_record(session_key(secret, *file_id, own), _preamble(file_id[0], own), 0, body)
    name, session = _decoded(content)
    if session_id(secret, *file_id, name) != own:
        raise FormatError("stream_mismatch", "a session whose own name is not the one that its file stands for")
    return name, session


def check_session_frame(vault_id: bytes, own: bytes, head: bytes, size: int) -> None:
    """Raise `FormatError` unless a file of this size that begins like this is framed as the session with this id."""
    decode_preamble(head, Kind.SESSION, vault_id)
    if head[:PREAMBLE_SIZE] != _preamble(vault_id, own):
        raise FormatError("stream_mismatch", "a session under the name of another")
    if decode_header(memoryview(head), PREAMBLE_SIZE, 0, size).end != size:
        raise FormatError("record_length", "the file of a session has more than its record")


def _encoded(name: str, session: dict[str, Any]) -> bytes:
    try:
        content = encode_value({"name": name, "session": session})
        _decoded(content)
    except (TypeError, ValueError, OverflowError, FormatError):
        # Not chained: what msgpack says of a value that it cannot hold may show the value.
        raise ValueError("a session is a map of plain values: texts for names, nested less than 31 deep") from None
    return content


def _decoded(content: bytes | memoryview) -> tuple[str, dict[str, Any]]:
    fields = Fields(decode_map(content), _CODE, "session")
    session = fields.get("session")
    fields.check(type(session) is dict, "session")
    return fields.text("name"), session


def _preamble(vault_id: bytes, own: bytes) -> bytes:
    return Preamble(Kind.SESSION, 0, vault_id, own, _NONCE).to_bytes()
