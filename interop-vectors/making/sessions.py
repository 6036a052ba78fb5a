"""Vectors of kept sessions (§8f)."""

from typing import Any

from making.book import Book, Value
from making.containers import SESSION, TRACE, flipped, frame, header, pack, plaintext, preamble, record
from making.keyrings import Map
from making.people import ANN, BEN, OTHER_VAULT, VAULT, seed
from memseal.format import primitives

RULE = "vault-format §8f"
SECRET = seed("session secret")
NAME = "tax letters"
SESSION_MAP: Map = {
    "version": 1,
    "seed": seed("a session", 16),
    "entries": [["Marta Ilves", "PERSON", {"title": "Sarah Chen"}], ["[IBAN_1]", "IBAN", {"title": "EE38…"}]],
    "names": {"sarah chen": "Marta Ilves"},
}


def session_id(name: str, secret: bytes = SECRET, vault: bytes = VAULT, device: bytes = ANN.id) -> bytes:
    return primitives.derive(secret, b"", "memseal/v1/session-id", vault, device, name.encode())[:16]


def session_key(own: bytes) -> bytes:
    return primitives.derive(SECRET, b"", "memseal/v1/session", VAULT, ANN.id, own)


def given(content: bytes, **changes: Any) -> Map:
    """What a case gives of a file that should be the session of `NAME`."""
    own = session_id(NAME)
    return {"content": content, "id": own, "secret": SECRET, "vault_id": VAULT, "device_id": ANN.id} | changes


def add(book: Book) -> None:
    _Sessions(book).add()


class _Sessions:
    def __init__(self, book: Book) -> None:
        self._group = book.group("session")
        self._own = session_id(NAME)
        self._begin = preamble(SESSION, stream=self._own)
        self._record = self._sealed("sound", {"name": NAME, "session": SESSION_MAP})
        self._whole = self._begin + self._record

    def add(self) -> None:
        self._opens("one", "a session as it was kept", self._whole, NAME, SESSION_MAP)
        self._add_sound()
        self._add_preambles()
        self._add_framing()
        self._add_sealing()
        self._add_contents()

    def _add_sound(self) -> None:
        self._opens_made("empty", "a session without a field", NAME, {})
        self._opens_made("name-nfd", "its name is taken as it is, not normalised", "Zoe\u0308", SESSION_MAP)
        self._opens_made("name-space", "white space around a name belongs to it", " tax letters ", SESSION_MAP)
        large = {"seen": [f"word {number}" for number in range(2_000)]}
        self._opens_made("chunks", "a session of several chunks", NAME, large)
        self._opens_made("unknown", "a field that is not known is passed over", NAME, {"version": 9}, newer=[1, {}])

    def _add_preambles(self) -> None:
        def begin(**changes: Any) -> bytes:
            kind = changes.pop("kind", SESSION)
            return preamble(kind, **{"stream": self._own} | changes) + self._record

        self._refused("preamble-short", "63 bytes", self._whole[:63], "preamble_short")
        self._refused("preamble-none", "an empty file", b"", "preamble_short")
        self._refused("preamble-magic", "another magic", begin(magic=b"\x89MSEAX\r\n"), "preamble_magic")
        self._refused("preamble-flipped", "a flipped bit in its id", flipped(self._whole, 40), "preamble_damaged")
        self._refused("preamble-newer", "of a newer format", begin(version=2), "version_unknown")
        self._refused("preamble-suite", "of another suite", begin(suite=2), "suite_unknown")
        self._refused("preamble-kind", "a file of traces in its place", begin(kind=TRACE), "kind_mismatch")
        self._refused("preamble-reserved", "byte 11 is not zero", begin(reserved=1), "preamble_reserved")
        self._refused("preamble-vault", "of another vault", begin(vault=OTHER_VAULT), "vault_mismatch")
        self._refused("preamble-epoch", "it has an epoch", begin(epoch=1), "stream_mismatch")
        self._refused("preamble-nonce", "it has a nonce", begin(nonce=b"\1" + bytes(11)), "stream_mismatch")
        other = begin(stream=session_id("another"))
        self._refused("preamble-id", "its id is not the one that names the file", other, "stream_mismatch")
        self._refused(
            "renamed", "a sound file under another's name", self._whole, "stream_mismatch", id=session_id("another")
        )

    def _add_framing(self) -> None:
        body = self._record[12:]
        self._refused("record-none", "there is no record", self._begin, "record_torn")
        self._refused("record-cut-header", "the header is cut", self._whole[:75], "record_torn")
        self._refused("record-cut", "the last byte is missing", self._whole[:-1], "record_torn")
        self._refused("record-header", "a flipped bit in the header", flipped(self._whole, 66), "record_header")
        self._refused("record-index", "its index is 1", self._begin + frame(1, body), "record_order")
        long = self._begin + header((64 << 20) + 1, 0) + body
        self._refused("record-length", "a length beyond 64 MiB", long, "record_length")
        self._refused("record-more", "a byte after the record", self._whole + b"\0", "record_length")
        self._refused("record-twice", "the record twice", self._whole + self._record, "record_length")
        second = self._sealed("second", {"name": NAME, "session": SESSION_MAP}, index=1)
        self._refused("record-second", "a second record that opens", self._whole + second, "record_length")
        empty = self._begin + frame(0, b"")
        self._refused("record-empty", "a record without a body", empty, "record_sealed")

    def _add_sealing(self) -> None:
        self._refused("flipped", "a flipped bit in what is sealed", flipped(self._whole, -1), "record_sealed")
        self._refused(
            "commitment", "a flipped bit in the commitment", flipped(self._whole, 64 + 12 + 24), "record_sealed"
        )
        self._refused(
            "secret", "another secret: an erase forgot the one before", self._whole, "record_sealed", secret=seed("x")
        )
        self._refused("device", "another device", self._whole, "record_sealed", device_id=BEN.id)
        name = "another"
        other = preamble(SESSION, stream=session_id(name))
        moved = record(
            self._group.frozen,
            "another",
            session_key(session_id(name)),
            other,
            0,
            plaintext(pack({"name": name, "session": {}})),
        )
        self._refused("moved", "the record of another session", self._begin + moved, "record_sealed")
        content = pack({"name": NAME, "session": {}})
        for case, title, plain in (
            ("padding", "the padding is not zero", plaintext(content, filler=b"\1")),
            ("padding-size", "the padding is 16 bytes short", plaintext(content, size=1008)),
            ("padding-length", "the length word says more than is there", plaintext(content, length=1021)),
        ):
            made = record(self._group.frozen, case, session_key(self._own), self._begin, 0, plain)
            self._refused(case, title, self._begin + made, "record_padding")

    def _add_contents(self) -> None:
        good: Map = {"name": NAME, "session": SESSION_MAP}
        nested: Any = {}
        for _ in range(32):
            nested = [nested]
        twice = b"\x83" + pack(good)[1:] + pack("name") + pack(NAME)
        for case, title, value, code in (
            ("content-none", "nothing", b"", "msgpack_invalid"),
            ("content-no-msgpack", "no msgpack", b"\xc1", "msgpack_invalid"),
            ("content-array", "an array", pack([NAME, SESSION_MAP]), "msgpack_invalid"),
            ("content-two", "two maps", pack(good) * 2, "msgpack_invalid"),
            ("content-key-twice", "a map with a key twice", twice, "msgpack_invalid"),
            ("content-deep", "a map nested 33 deep", pack(good | {"session": {"a": nested}}), "msgpack_invalid"),
            (
                "content-surrogate",
                "a name that is not UTF-8",
                pack(good).replace(b"tax", b"\xed\xa0\x80"),
                "msgpack_invalid",
            ),
            ("name-none", "no name", pack({"session": SESSION_MAP}), "record_content"),
            ("name-nil", "nil for a name", pack(good | {"name": None}), "record_content"),
            ("name-bytes", "bytes for a name", pack(good | {"name": NAME.encode()}), "record_content"),
            ("session-none", "no session", pack({"name": NAME}), "record_content"),
            ("session-nil", "nil for a session", pack(good | {"session": None}), "record_content"),
            ("session-array", "an array for a session", pack(good | {"session": []}), "record_content"),
            ("session-bytes", "bytes for a session", pack(good | {"session": pack({})}), "record_content"),
            ("name-other", "the name of another session", pack(good | {"name": "another"}), "stream_mismatch"),
            ("name-case", "its name in other letters", pack(good | {"name": "Tax letters"}), "stream_mismatch"),
        ):
            sealed = self._sealed(case, value)
            self._refused(case, f"its content is or has {title}", self._begin + sealed, code)

    def _sealed(self, name: str, content: Any, index: int = 0) -> bytes:
        packed = content if isinstance(content, bytes) else pack(content)
        return record(self._group.frozen, name, session_key(self._own), self._begin, index, plaintext(packed))

    def _opens_made(self, case: str, title: str, name: str, session: Map, **more: Any) -> None:
        own = session_id(name)
        begin = preamble(SESSION, stream=own)
        content = pack({"name": name, "session": session, **more})
        made = record(self._group.frozen, case, session_key(own), begin, 0, plaintext(content))
        self._opens(case, title, begin + made, name, session, id=own)

    def _opens(self, case: str, title: str, content: bytes, name: str, session: Map, **changes: Any) -> None:
        self._group.ok(
            case, RULE, title, "open_session", given(content, **changes), session_name=name, session=Value(session)
        )

    def _refused(self, case: str, title: str, content: bytes, code: str, **changes: Any) -> None:
        self._group.refused(case, RULE, title, "open_session", given(content, **changes), code)
