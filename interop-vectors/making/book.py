"""The book of cases: collects them group by group, and the files that they name."""

import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from making.frozen import Frozen

# Longer byte strings are files of their own.
INLINE_MOST = 160
_MAGIC = b"\x89MSEAL"


@dataclass(frozen=True)
class Repeated:
    """Bytes that are only written down shortly: a beginning, a piece many times, and an end."""

    start: bytes
    piece: bytes
    times: int
    end: bytes = b""


@dataclass(frozen=True)
class Sparse:
    """Bytes that are mostly zeros, written down shortly."""

    content: bytes

    def pieces(self) -> list[Any]:
        """Runs of zeros as repetitions, and what is between."""
        found = list[Any]()
        for piece in re.split(rb"(\0{256,})", self.content):
            zeros = len(piece) >= 256 and not any(piece)
            found.append({"repeat": "00", "times": len(piece)} if zeros else piece.hex())
        return [piece for piece in found if piece != ""]


@dataclass(frozen=True)
class Value:
    """A msgpack value, written down with tags."""

    value: Any


@dataclass(eq=False)
class Book:
    """All cases, and the content of each file by its path from the folder of the vectors."""

    folder: Path
    cases: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    pages: dict[str, str] = field(default_factory=dict[str, str])
    """Pages that are made from the cases, by their path from the project's root."""
    _paths: dict[bytes, str] = field(default_factory=dict[bytes, str])
    _groups: "dict[str, Group]" = field(default_factory=lambda: dict[str, Group]())

    def group(self, name: str) -> "Group":
        """Return a group; several modules may add to one."""
        if name not in self._groups:
            self._groups[name] = Group(self, name, Frozen(self.folder / "frozen" / f"{name}.json"))
        return self._groups[name]

    def all_files(self) -> dict[str, bytes]:
        """Return the content of each file, what is frozen too."""
        texts = {f"frozen/{name}.json": group.frozen.text() for name, group in self._groups.items()}
        return self.files | {path: text.encode() for path, text in texts.items() if text != "{}\n"}

    def add(self, case: dict[str, Any]) -> None:
        """Take one case; ids are used once."""
        if any(case["id"] == other["id"] for other in self.cases):
            raise ValueError(f"two cases are called {case['id']}")
        self.cases.append(case)

    def path_of(self, content: bytes) -> str:
        """Return where a content is stored that some case has."""
        return self._paths[sha256(content).digest()]

    def store(self, path: str, content: bytes) -> str:
        """Return the path under which a content is stored: the first one, if several cases have it."""
        known = self._paths.setdefault(sha256(content).digest(), path)
        if known == path and self.files.setdefault(path, content) != content:
            raise ValueError(f"two files are called {path}")
        return known


class Group:
    """The cases of one folder."""

    def __init__(self, book: Book, name: str, frozen: Frozen) -> None:
        """Take the book, the folder's name and its frozen bytes."""
        self._book = book
        self.name = name
        self.frozen = frozen

    @property
    def folder(self) -> Path:
        """The folder of the vectors."""
        return self._book.folder

    def ok(self, name: str, rule: str, title: str, operation: str, given: Mapping[str, Any], **gives: Any) -> None:
        """Add a case that succeeds."""
        self._add(name, rule, title, operation, given, {"ok": self._members(name, gives)})

    def refused(self, name: str, rule: str, title: str, operation: str, given: Mapping[str, Any], code: str) -> None:
        """Add a case that is refused."""
        self._add(name, rule, title, operation, given, {"error": code})

    def found(
        self,
        name: str,
        rule: str,
        title: str,
        operation: str,
        given: Mapping[str, Any],
        codes: str,
        **gives: Any,
    ) -> None:
        """Add a case that goes on and names what is wrong; `codes` with spaces between."""
        expect = {"ok": self._members(name, gives), "findings": sorted(codes.split())}
        self._add(name, rule, title, operation, given, expect)

    def _add(
        self, name: str, rule: str, title: str, operation: str, given: Mapping[str, Any], expect: dict[str, Any]
    ) -> None:
        self._book.add(
            {
                "id": f"{self.name}/{name}",
                "title": title,
                "rule": rule,
                "operation": operation,
                "input": self._members(name, given),
                "expect": expect,
            }
        )

    def _members(self, name: str, members: Mapping[str, Any]) -> dict[str, Any]:
        return {member: self._json(value, f"{name}-{member}") for member, value in members.items()}

    def _json(self, value: Any, name: str) -> Any:
        match value:
            case bytes() if len(value) > INLINE_MOST:
                extension = "mseal" if value.startswith(_MAGIC) else "bin"
                return {"file": self._book.store(f"cases/{self.name}/{name.replace('_', '-')}.{extension}", value)}
            case bytes():
                return value.hex()
            case Repeated(start, piece, times, end):
                repeated = {"repeat": piece.hex(), "times": times}
                around = [self._json(start, f"{name}-start"), repeated, self._json(end, f"{name}-end")]
                pieces = [each for each in around if each != ""]
                return repeated if pieces == [repeated] else {"join": pieces}
            case Sparse():
                return {"join": value.pieces()}
            case Value(inner):
                return tagged(inner)
            case dict():
                return {member: self._json(inner, f"{name}-{_slug(member)}") for member, inner in value.items()}
            case list() | tuple():
                return [self._json(inner, f"{name}-{number}") for number, inner in enumerate(value)]
            case _:
                return value


def _slug(member: str) -> str:
    """What a member's name gives to a file's: members can be paths themselves."""
    return member.removesuffix(".mseal").replace("/", "-")


def tagged(value: Any) -> Any:
    """Return a msgpack value as the manifest writes it."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) < 1 << 53 else {"int": str(value)}
        case float():
            return {"float": struct.pack(">d", value).hex()}
        case bytes():
            return {"bytes": value.hex()}
        case list():
            return [tagged(inner) for inner in value]
        case dict():
            return {"map": {name: tagged(inner) for name, inner in value.items()}}
        case _:
            raise TypeError(f"msgpack has no {type(value).__name__}")


def manifest_text(cases: list[dict[str, Any]]) -> str:
    """Return the manifest: ASCII, so that no editor normalises a passphrase; one case per block."""
    return json.dumps({"format": 1, "cases": cases}, indent=1, ensure_ascii=True) + "\n"
