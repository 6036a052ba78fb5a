"""Find out what a file or folder is, and read it with the right reader."""

import zipfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Final, TextIO, cast

from memseal.errors import DiskError, ImportRowError
from memseal.surfaces.importing import chatgpt, claude, locomo, mem0, provenmem, vaultmem
from memseal.surfaces.importing.items import BadRow, ImportItem, OnError, Reading, parse, without_surrogates
from memseal.surfaces.importing.json_stream import array_items
from memseal.surfaces.importing.jsonl import is_row, read_jsonl

_JSONL_SUFFIXES = frozenset({".jsonl", ".ndjson"})
_ZIP = b"PK\x03\x04"
# What assistants' archives hold of conversations; newer ones cut them into several files.
_PARTS: Final = ("conversations", "memories")
_TOLD_BY: Final = 10
"""Items of an array by which its program is told."""
_NEITHER = "the file is none of what can be imported: JSON Lines, LoCoMo, mem0, ChatGPT, Claude, provenmem or vaultmem"


def open_import(
    path: Path,
    *,
    on_error: OnError | None = None,
    unknown_fields: Counter[str] | None = None,
    passphrase: Callable[[], str] | None = None,
) -> tuple[str, Iterator[ImportItem], int]:
    """Return the format's name, the items, and the number of rows, bad ones included.

    Names: `jsonl`, `locomo`, `mem0`, `chatgpt`, `claude`, `provenmem`, `vaultmem`. Long files are streamed, in one pass
    to count and one to read. A name that ends in .jsonl or .ndjson decides, otherwise the content does. A file is a
    regular one, since it is read more than once; `passphrase` is asked for where one is needed. What is none of these
    raises `ImportRowError`, what cannot be read `DiskError`.
    """
    reading = Reading(without_surrogates(path.stem), on_error, unknown_fields)
    if path.is_dir():
        return _open_folder(path, reading, passphrase)
    head = _head(path)
    if head.startswith(provenmem.MAGIC):
        return "provenmem", provenmem.read_provenmem(path, reading), provenmem.count_rows(path)
    if head.startswith(_ZIP):
        return _open_array(_Archive(path), reading)
    if _holds_json_lines(path):
        rows = sum(1 for line in _lines(path) if is_row(line))
        items = read_jsonl(_lines(path), reading.origin, on_error=on_error, unknown_fields=unknown_fields)
        return "jsonl", items, rows
    if _first_character(path) == "[":
        return _open_array(_File(path), reading)
    return _open_document(_parse_document(path), reading)


def _open_folder(
    path: Path, reading: Reading, passphrase: Callable[[], str] | None
) -> tuple[str, Iterator[ImportItem], int]:
    if not vaultmem.is_vaultmem(path) or passphrase is None:
        raise DiskError(f"{path.name} is a folder, and no vaultmem vault: give a file")
    source = vaultmem.open_source(path, passphrase())
    return "vaultmem", vaultmem.read_vaultmem(source, reading), len(source.atoms)


def _open_document(document: object, reading: Reading) -> tuple[str, Iterator[ImportItem], int]:
    rows = mem0.rows_of(document)
    if rows is not None:
        return "mem0", mem0.read_mem0(rows, reading), len(rows)
    if not any(isinstance(sample, dict) and "conversation" in sample for sample in locomo.samples(document)):
        raise ImportRowError(1, _NEITHER)
    return (
        "locomo",
        locomo.read_locomo(document, reading.origin, on_error=reading.on_error, unknown_fields=reading.unknown_fields),
        sum(1 for _ in locomo.turns(document, reading.origin)),
    )


# ── arrays ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _File:
    path: Path

    @contextmanager
    def texts(self) -> Generator[Iterator[TextIO]]:
        """Give the one text."""
        with _translated(self.path), self.path.open(encoding="utf-8", errors="surrogateescape") as file:
            yield iter([cast("TextIO", file)])


@dataclass(frozen=True)
class _Archive:
    path: Path

    @contextmanager
    def texts(self) -> Generator[Iterator[TextIO]]:
        """Give the texts of conversations one after the other; nothing is unpacked to the disk."""
        with _translated(self.path), zipfile.ZipFile(self.path) as archive:
            yield self._members(archive)

    @staticmethod
    def _members(archive: zipfile.ZipFile) -> Iterator[TextIO]:
        for name in sorted(archive.namelist()):
            stem, _, suffix = name.rpartition("/")[2].partition(".")
            if suffix == "json" and stem.startswith(_PARTS):
                with archive.open(name) as file, TextIOWrapper(file, "utf-8", "surrogateescape") as text:
                    yield text


@contextmanager
def _translated(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise DiskError(f"{path.name} cannot be read: {error.strerror}") from error
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise ImportRowError(1, f"the archive is damaged, or sealed ({type(error).__name__}): unpack it") from None


def _open_array(source: _File | _Archive, reading: Reading) -> tuple[str, Iterator[ImportItem], int]:
    # The first may be damaged; whatever it is, it is a row.
    first = list(islice(_array(source, Reading("")), _TOLD_BY))
    if any(map(chatgpt.is_conversation, first)):
        count = sum(1 for _ in chatgpt.messages(_array(source, Reading(""))))
        return "chatgpt", chatgpt.read_chatgpt(_array(source, reading), reading), count
    if any(map(claude.is_conversation, first)):
        count = sum(1 for _ in claude.messages(_array(source, Reading(""))))
        return "claude", claude.read_claude(_array(source, reading), reading), count
    if any(map(mem0.is_row, first)):
        return "mem0", mem0.read_mem0(_array(source, reading), reading), sum(1 for _ in _array(source, Reading("")))
    if isinstance(source, _Archive):
        raise ImportRowError(1, "the archive holds no conversations.json that can be imported")
    return _open_document(_parse_document(source.path), reading)


def _array(source: _File | _Archive, reading: Reading) -> Iterator[object]:
    """Yield the items; where a text goes on no more that is told, at the number of the item."""
    count, problems = 0, list[ImportRowError]()
    with source.texts() as texts:
        for text in texts:
            try:
                for item in array_items(text):
                    count += 1
                    yield item
            except BadRow as problem:
                problems.append(ImportRowError(count + 1, str(problem)))
    for error in problems:
        if reading.on_error is not None:
            reading.on_error(error)


# ── texts ───────────────────────────────────────────────────────────────────────────────────────────


def _head(path: Path) -> bytes:
    with _translated(path), path.open("rb") as file:
        return file.read(16)


def _lines(path: Path) -> Iterator[str]:
    # Bytes that are not UTF-8 become lone surrogates: they spoil their row, not the whole file.
    with _translated(path), path.open(encoding="utf-8", errors="surrogateescape") as file:
        yield from file


def _first_character(path: Path) -> str:
    """Return the first character that is not white space; a line may be as long as the file."""
    with _translated(path), path.open(encoding="utf-8", errors="surrogateescape") as file:
        while piece := file.read(4096):
            if rest := piece.lstrip("\ufeff \t\r\n"):
                return rest[0]
    return ""


def _holds_json_lines(path: Path) -> bool:
    begin = _first_character(path)
    if path.suffix.lower() in _JSONL_SUFFIXES or not begin:
        return True
    if begin == "[":
        return False
    try:
        row = parse(next((line for line in _lines(path) if is_row(line)), ""))
    except BadRow:
        return False
    return isinstance(row, dict) and not any(name in row for name in ("conversation", "results", "memories"))


def _parse_document(path: Path) -> object:
    try:
        return parse("".join(_lines(path)))
    except BadRow:
        raise ImportRowError(1, _NEITHER) from None
