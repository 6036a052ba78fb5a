"""The decoder of kept sessions, behind the sealing: what whoever has the session secret can write."""

from collections.abc import Iterator
from random import Random
from typing import Any

from memseal.errors import MemsealError
from memseal.format import primitives
from memseal.format.derivation import session_id, session_key
from memseal.format.keys import SessionSecret
from memseal.format.preamble import Kind, Preamble
from memseal.format.records import HEADER_SIZE, seal_record
from memseal.format.session import open_session, seal_session
from memseal.sanitize import Sanitizer
from tests.bench.fuzzing import mutation
from tests.bench.fuzzing.mutation import packed, unpacked
from tests.bench.fuzzing.target import Target
from tests.sanitize.building import rules

REFUSALS: tuple[type[Exception], ...] = (MemsealError,)
_SECRET = SessionSecret(primitives.sha256(b"a session secret"))
_FILE_ID = bytes(range(16)), bytes(range(16, 32))
_NAME = "a chat"
_TEXT = "Dear Sarah Chen, is s.chen@example.com still yours, or 555-0142?"
_DETECTOR = rules()


def _file(content: bytes) -> None:
    """Open what follows the name's id: a content that is sealed here, or with a first byte over 7F a file as it is."""
    sealed_here, content = content[:1] <= b"\x7f", content[1:]
    value = unpacked(content) if sealed_here else None
    own = session_id(_SECRET, *_FILE_ID, _name_in(value))
    if sealed_here:
        preamble = Preamble(Kind.SESSION, 0, _FILE_ID[0], own, bytes(12)).to_bytes()
        content = preamble + seal_record(session_key(_SECRET, *_FILE_ID, own), preamble, 0, content)
    found, session = open_session(_SECRET, _FILE_ID, own, content)
    again = seal_session(_SECRET, _FILE_ID, found, session)
    if repr(open_session(_SECRET, _FILE_ID, own, again)) != repr((found, session)):
        raise AssertionError("a session that was read can be kept and read")
    _go_on(session)


def _name_in(value: Any) -> str:
    """Return the name by which a content opens, so that what lies behind that check is reached too."""
    name: object = value.get("name") if isinstance(value, dict) else None
    is_readable = isinstance(name, str) and not any("\ud800" <= letter <= "\udfff" for letter in name)
    return str(name) if is_readable else _NAME


def _go_on(session: dict[str, Any]) -> None:
    sanitizer = Sanitizer(detector=_DETECTOR)
    sanitizer.load(session)
    sanitizer.restore(_TEXT)
    if sanitizer.restore(sanitizer.sanitize(_TEXT).text) != _TEXT:
        raise AssertionError("a session that goes on gives back what it replaces")
    sanitizer.save()


def _files() -> Iterator[bytes]:
    sanitizer = Sanitizer(detector=_DETECTOR, contacts=["Sarah Chen"], seed=bytes(32))
    yield b"\0" + packed({"name": _NAME, "session": sanitizer.save()})
    sanitizer.sanitize(_TEXT)
    yield b"\0" + packed({"name": _NAME, "session": sanitizer.save()})
    yield b"\xff" + seal_session(_SECRET, _FILE_ID, _NAME, sanitizer.save())


def _change(content: bytes, random: Random) -> bytes:
    if content[:1] <= b"\x7f":
        return mutation.behind(1, mutation.change_packed)(content, random)
    changed = mutation.scratched(content[1:], random)
    return content[:1] + mutation.with_crc(mutation.with_crc(changed, 0, 60), 64, 64 + HEADER_SIZE - 4)


TARGETS = {"session": Target(_file, _files, REFUSALS, _change)}
