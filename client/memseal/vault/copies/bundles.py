"""Bundles: a full copy of the state in one file, behind a passphrase of its own (vault-format §8d)."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from memseal.errors import DiskError, Finding, FormatError, MemoryUnknown
from memseal.format.bundle import Beginning, begin_bundle, open_beginning
from memseal.format.content import Column
from memseal.format.device_file import Stretch
from memseal.format.fields import U53
from memseal.format.keys import RecordKey
from memseal.format.part import read_run, seal_run
from memseal.format.preamble import ID_SIZE, PREAMBLE_SIZE, Kind, decode_preamble
from memseal.format.primitives import check_passphrase
from memseal.index.dump import Dump, Entry
from memseal.index.view import EMBEDDING, View
from memseal.memory.memory import Memory, to_microseconds
from memseal.memory.operations import Embed, Erase, Operation, Remember, Tagging, encode_operation
from memseal.memory.texts import parse_id
from memseal.store.disk import Disk, OsDisk
from memseal.vault.answers.searching import Hit, counted, listed, search
from memseal.vault.folder.checkpoints import apply_record
from memseal.vault.folder.opening import Opened, stretcher

Progress = Callable[[int, int], None]
_NAME = "bundle"
_SALT_SIZE = 32
# A record: large enough that its fixed cost vanishes, small enough that damage costs little.
_RECORD_BYTES = 1 << 20
_OPERATIONS = 4096
Target = str | PathLike[str] | BinaryIO


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────


def export_bundle(opened: Opened, target: Target, passphrase: str, progress: Progress | None = None) -> int:
    """Write the whole state to a file or stream, and return the number of memories; a file is there whole or not."""
    check_passphrase(passphrase)
    content = pieces(opened, stretcher(passphrase), progress)
    if isinstance(target, str | PathLike):
        _write_file(OsDisk(), _outside(opened, Path(target)), content)
    else:
        for piece in content:
            target.write(piece)
    return opened.logbook.view.state.count()


def pieces(opened: Opened, stretch: Stretch, progress: Progress | None = None) -> Iterator[bytes | bytearray]:
    """Yield the bytes of a bundle, a record at a time."""
    key, salt, bundle_id = RecordKey(secrets.token_bytes(32)), secrets.token_bytes(_SALT_SIZE), new_id()
    beginning = begin_bundle(opened.keychain.vault_id, bundle_id, key, salt, stretch)
    yield beginning.stored
    view = opened.logbook.view
    contents = _contents(view, dump(view), progress or _silent)
    for sealed in seal_run(key, beginning.preamble, beginning.start, contents):
        yield sealed.record


def dump(view: View) -> Dump:
    """Return a view's state as operations, as of now."""
    return Dump(view, to_microseconds(datetime.now(UTC)), new_id)


def new_id() -> bytes:
    """Return a fresh id."""
    return secrets.token_bytes(ID_SIZE)


def _silent(done: int, total: int) -> None:
    pass


def _contents(view: View, entries: Dump, progress: Progress) -> Iterator[tuple[dict[str, Any], tuple[Column, ...]]]:
    total, done = entries.count(), 0
    # The settings first: the model that they pin decides which vectors count.
    if settings := list(entries.settings()):
        yield _record(view, settings)
    for some in in_records(entries.others()):
        done += len(some)
        progress(min(done, total), total)
        yield _record(view, some)
    progress(total, total)


def in_records(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    """Yield entries in groups of about a record's size."""
    some, size = list[Entry](), 0
    for entry in entries:
        more = _weight(entry)
        if some and (size + more > _RECORD_BYTES or len(some) == _OPERATIONS):
            yield some
            some, size = [], 0
        some.append(entry)
        size += more
    if some:
        yield some


def _weight(entry: Entry) -> int:
    """Return about how many bytes an entry takes in a record."""
    size = 200 + len(entry.code or b"")
    match entry.operation:
        case Remember(_, draft):
            return size + 2 * len(draft.content) + sum(8 + 2 * len(tag) for tag in draft.tags)
        case Tagging(add=added, remove=removed):
            return size + sum(8 + 2 * len(tag) for tag in added) + sum(32 + 2 * len(tag) for tag, _ in removed)
        case Erase(_, targets):
            return size + 18 * len(targets)
        case _:
            return size


def _record(view: View, entries: Sequence[Entry]) -> tuple[dict[str, Any], tuple[Column, ...]]:
    operations, columns = with_rows(view, entries)
    values = [encode_operation(operation, entry.stamp) for operation, entry in zip(operations, entries, strict=True)]
    return {"operations": values}, columns


def with_rows(view: View, entries: Sequence[Entry]) -> tuple[list[Operation], tuple[Column, ...]]:
    """Return the operations with the rows of their vectors, and these as a column of the view's pinned model."""
    codes, operations = list[bytes](), list[Operation]()
    for entry in entries:
        operation = entry.operation
        if entry.code is not None and isinstance(operation, Remember | Embed):
            operation = operation._replace(row=len(codes))
            codes.append(entry.code)
        operations.append(operation)
    if not codes or view.pinned is None:
        return operations, ()
    model, width = view.pinned
    return operations, (Column(EMBEDDING, model, "f2", width, len(codes), b"".join(codes)),)


def _outside(opened: Opened, path: Path) -> Path:
    path = path.expanduser().absolute()
    if opened.folder.path in (path, *path.parents):
        raise DiskError("a bundle cannot lie in the vault's own folder: choose a place outside")
    return path


def _write_file(disk: Disk, path: Path, content: Iterator[bytes | bytearray]) -> None:
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        offset = 0
        for piece in content:
            disk.write(fresh, offset, piece)
            offset += len(piece)
        disk.sync(fresh)
        disk.rename(fresh, path)
    except BaseException:
        disk.remove(fresh)
        raise
    disk.sync_folder(path.parent)


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────


class Bundle:
    """A bundle, open for reading; `findings` names what of it is damaged or lost.

    Use `open_bundle`, and `close` it, or use it as a context manager.
    """

    def __init__(self, vault_id: bytes, view: View, findings: Sequence[Finding]) -> None:
        """Take what was read; apps use `open_bundle` instead."""
        self.vault_id = vault_id
        self.findings = tuple(findings)
        self.view = view

    def get(self, memory_id: str) -> Memory:
        """Return a memory by its id, whatever its state; raises `MemoryUnknown`."""
        number = self.view.state.number_of(parse_id(memory_id))
        if number is None:
            raise MemoryUnknown("no memory in the bundle has this id: `list` shows what is there")
        return self.view.state.memories([number])[0]

    def list(self, /, *, limit: int = 100, offset: int = 0, **filters: Any) -> Sequence[Memory]:
        """Return memories by time, newest first; filters as for `Vault.search`."""
        return listed(self.view, limit, offset, filters)

    def count(self, /, **filters: Any) -> int:
        """Return how many memories there are; filters as for `Vault.search`."""
        return counted(self.view, filters)

    def search(self, /, query: str, *, limit: int = 10, **filters: Any) -> Sequence[Hit]:
        """Return the memories that the query's words find, best first; filters as for `Vault.search`."""
        return search(self.view, None, query, None, limit, filters)

    def state_digest(self) -> bytes:
        """Return the 32 bytes that `Vault.state_digest` gave when the bundle was written."""
        return self.view.state.digest()

    def close(self) -> None:
        """Forget everything."""
        self.view.close()

    def __enter__(self) -> Self:
        """Return the bundle itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the bundle."""
        self.close()

    def __repr__(self) -> str:
        """Show how much is in it, and nothing of what."""
        return f"<Bundle of {self.view.state.count()} memories, {len(self.findings)} findings>"


def open_bundle(path: str | PathLike[str], passphrase: str) -> Bundle:
    """Open a bundle for reading, with the passphrase that was chosen for it.

    What is readable of a damaged or cut bundle is served. Raises `BundlePassphrase`, `DiskError`, or `FormatError`
    where the file is no bundle or its beginning is damaged.
    """
    content = OsDisk().read(Path(path).expanduser())
    if content is None:
        raise DiskError("there is no such file: give the path of a bundle")
    return read_bundle(memoryview(content), stretcher(passphrase))


def is_bundle(path: Path) -> bool:
    """Return whether a file begins as a bundle does."""
    try:
        decode_preamble(OsDisk().read(path, 0, PREAMBLE_SIZE) or b"", Kind.BUNDLE)
    except FormatError:
        return False
    return True


def read_bundle(content: memoryview, stretch: Stretch) -> Bundle:
    """Return the bundle that a file's bytes hold."""
    beginning = open_beginning(content, stretch)
    view, findings = _read(View(), beginning, content)
    if view.pin_moved:
        # Vectors came before the setting that says which of them count: read again, knowing it.
        pin = view.state_pin()
        view.close()
        view, findings = _read(View(pin=pin), beginning, content)
        view.release_pin()
    vault_id = decode_preamble(content, Kind.BUNDLE).vault_id
    return Bundle(vault_id, view, findings)


def _read(view: View, beginning: Beginning, content: memoryview) -> tuple[View, list[Finding]]:
    findings = list[Finding]()
    for number, record in enumerate(read_run(_NAME, beginning.key, content, beginning.start), start=1):
        if isinstance(record, Finding):
            findings.append(record)
        else:
            apply_record(view, record, U53 - 1, f"{_NAME} record {number}", findings)
    return view, findings
