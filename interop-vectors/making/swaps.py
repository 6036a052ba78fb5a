"""Vectors of whole objects of one kind in the place of another (§3)."""

from hashlib import sha256
from typing import Any

from making import sessions, traces
from making.book import Book
from making.checkpoints import CHECKPOINT_ID, ROWS, tagged_row
from making.keyrings import Map, follow, sets, vault_key
from making.people import VAULT, seed
from making.sealing import PASSPHRASE
from making.vaults import standing
from making.world import world

RULE = "vault-format §3"


def add(book: Book) -> None:
    """Every object to every opener but its own; the objects are those of the other groups."""
    group, here = book.group("swap"), standing(book)
    objects = {
        "keyring": here.world.one.content,
        "log": here.ann.whole(),
        "device": here.device,
        "manifest": book.files["cases/checkpoint/manifest-content.mseal"],
        "part": book.files["cases/checkpoint/part-content.mseal"],
        "media": book.files["cases/media/two-content.mseal"],
        "bundle": book.files["cases/bundle/three-content.mseal"],
        "trace": book.files["cases/trace/two-content.mseal"],
        "session": book.files["cases/session/one-content.mseal"],
    }
    for wanted, opener in _OPENERS.items():
        for found, content in objects.items():
            if found == wanted:
                continue
            name, title = f"{found}-for-{wanted}", f"{_named(found)} in the place of {_named(wanted)}"
            operation, given, gives = opener(book, content)
            code = _CODES.get(wanted, "kind_mismatch")
            if {wanted, found} == {"manifest", "part"}:  # both are of kind 3: id and epoch tell them apart
                code = "checkpoint_mismatch"
            if gives is None:
                group.refused(name, RULE, title, operation, given, code)
            else:
                group.found(name, RULE, title, operation, given, code, **gives)


_CODES = {"device": "device_file"}
_NAMES = {
    "keyring": "a keyring version",
    "device": "a device file",
    "media": "a media item",
    "trace": "a file of traces",
    "session": "a kept session",
}


def _named(kind: str) -> str:
    return _NAMES.get(kind, f"a {kind}")


Opener = tuple[str, Map, Map | None]


def _keyring(book: Book, content: bytes) -> Opener:
    return "decode_keyring", {"content": content, "vault_id": VAULT}, None


def _log(book: Book, content: bytes) -> Opener:
    versions = [version.stripped() for version in (world(book).one, world(book).two)]
    keys = [[1, {"bytes": vault_key(1).hex()}]]
    return "place_log", {"content": content, "name": content[32:48], "versions": versions, "vault_keys": keys}, None


def _device(book: Book, content: bytes) -> Opener:
    given = {"content": content, "versions": [world(book).one.content], "passphrase": PASSPHRASE}
    return "open_device", given, None


def _manifest(book: Book, content: bytes) -> Opener:
    here = world(book)
    floor = {"checkpoint": CHECKPOINT_ID, "digest": sha256(content).digest(), "parts": [], "logs": ROWS}
    versions = [here.one, here.two, here.three, follow(here.three, sets("floor", to=floor))]
    keys = [[epoch, {"bytes": vault_key(epoch).hex()}] for epoch in (1, 2)]
    given = {"content": content, "versions": [each.stripped() for each in versions], "vault_keys": keys}
    return "open_manifest", given, None


def _part(book: Book, content: bytes) -> Opener:
    row = [seed("part sound", 16), seed("part key sound"), len(content), 2, seed("chain")]
    given = {"content": content, "vault_id": VAULT, "row": tagged_row(row), "counter": 10}
    return "open_part", given, {"records": 0, "operations": 0}


def _media(book: Book, content: bytes) -> Opener:
    named = {"id": seed("media", 16), "key": seed("media key"), "bytes": 40, "digest": seed("any item")}
    return "open_media", {"content": content, "vault_id": VAULT, "named": named}, None


def _bundle(book: Book, content: bytes) -> Opener:
    return "open_bundle", {"content": content, "passphrase": PASSPHRASE}, None


def _trace(book: Book, content: bytes) -> Opener:
    return "open_traces", traces.given(content), None


def _session(book: Book, content: bytes) -> Opener:
    return "open_session", sessions.given(content), None


_OPENERS: dict[str, Any] = {
    "keyring": _keyring,
    "log": _log,
    "device": _device,
    "manifest": _manifest,
    "part": _part,
    "media": _media,
    "bundle": _bundle,
    "trace": _trace,
    "session": _session,
}
