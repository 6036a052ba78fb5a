"""Kept sessions of the sanitizer: one sealed file each, under a secret that an erase forgets (vault-format §8f)."""

from typing import Any, Final

from memseal.errors import FormatError
from memseal.format.derivation import session_id, session_key
from memseal.format.fields import Fields
from memseal.format.keys import SessionSecret
from memseal.format.preamble import PREAMBLE_SIZE, Kind, Preamble, decode_preamble
from memseal.format.records import HEADER_SIZE, decode_header, open_record, seal_record
from memseal.format.values import decode_map, encode_value

_NONCE: Final = bytes(12)
_CODE: Final = "record_content"


def seal_session(secret: SessionSecret, file_id: tuple[bytes, bytes], name: str, session: dict[str, Any]) -> bytes:
    """Return the file of a session; `file_id` are vault and device id (16 bytes each)."""
    own = session_id(secret, *file_id, name)
    preamble = _preamble(file_id[0], own)
    content = encode_value({"name": name, "session": session})
    return preamble + seal_record(session_key(secret, *file_id, own), preamble, 0, content)


def open_session(
    secret: SessionSecret, file_id: tuple[bytes, bytes], own: bytes, file: bytes
) -> tuple[str, dict[str, Any]]:
    """Return the name and the session of a file; `own` is the id (16 bytes) that names it. Raises `FormatError`."""
    decode_preamble(file, Kind.SESSION, file_id[0])
    preamble = _preamble(file_id[0], own)
    if file[:PREAMBLE_SIZE] != preamble:
        raise FormatError("stream_mismatch", "a session under the name of another")
    content = memoryview(file)
    place = decode_header(content, PREAMBLE_SIZE, 0)
    if place.end != len(file):
        raise FormatError("record_length", "the file of a session has more than its record")
    body = content[PREAMBLE_SIZE + HEADER_SIZE :]
    fields = Fields(decode_map(open_record(session_key(secret, *file_id, own), preamble, 0, body)), _CODE, "session")
    session = fields.get("session")
    fields.check(type(session) is dict, "session")
    return fields.text("name"), session


def _preamble(vault_id: bytes, own: bytes) -> bytes:
    return Preamble(Kind.SESSION, 0, vault_id, own, _NONCE).to_bytes()
