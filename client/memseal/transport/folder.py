"""A plain folder as a remote: a USB stick, or one that another program synchronises (sync-protocol §7)."""

import secrets
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

from memseal.errors import FormatError, RemoteUnreachable
from memseal.format.content import chain_next, chain_start
from memseal.format.log import End
from memseal.format.preamble import ID_SIZE, PREAMBLE_SIZE
from memseal.format.primitives import sha256
from memseal.format.records import places
from memseal.format.segment import Segment, decode_segment
from memseal.sync.messages import (
    Answer,
    Content,
    GetHeads,
    GetKeyring,
    GetLog,
    GetObject,
    Heads,
    PutKeyring,
    PutObject,
    PutSegment,
    Refused,
    RemoteLog,
    Request,
    Stored,
)
from memseal.transport import Heard

_DIGITS = 10


class Files(Protocol):
    """What a folder needs of a file system: a part of the vault's own port to it."""

    def read(self, path: Path, start: int = 0, end: int | None = None) -> bytes | None:
        """Return a file's bytes, or None where there is no such file."""
        ...

    def size(self, path: Path) -> int | None:
        """Return a file's length in bytes, or None."""
        ...

    def names(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted; none where there is no such folder."""
        ...

    def write(self, path: Path, offset: int, content: bytes) -> None:
        """Write at an offset, making the file where it is missing."""
        ...

    def sync(self, path: Path) -> None:
        """Make a file's content durable."""
        ...

    def sync_folder(self, folder: Path) -> None:
        """Make the names in a folder durable."""
        ...

    def rename(self, source: Path, target: Path) -> None:
        """Give a file another name."""
        ...

    def make_folder(self, folder: Path) -> None:
        """Make a folder where it is missing."""
        ...


class FolderTransport:
    """Segments as files, `<folder>/<vault id>/logs/<stream>/<number>`; an existing name is never replaced."""

    carries_keys = False

    def __init__(self, folder: Path, vault_id: bytes, files: Files) -> None:
        """Take the folder, which must be there, and the vault."""
        if not folder.is_dir():
            raise RemoteUnreachable(f"the folder {folder} is not there: is the drive connected?")
        self.address = str(folder)
        self._files = files
        self._logs = folder / vault_id.hex() / "logs"
        self._memo: dict[bytes, list[tuple[int, Segment]]] = {}

    def send(self, request: Request) -> Answer:
        """Carry out a request on the folder."""
        match request:
            case GetHeads():
                return self._heads()
            case GetLog(stream_id, start, limit):
                return self._read(stream_id, start, limit)
            case PutSegment(stream_id, number, content, _):
                return self._store(stream_id, number, content)
            case GetObject() | PutObject():
                return Refused("not_found", 0, "a folder carries no checkpoints: sync with a server")
            case GetKeyring() | PutKeyring():
                return Refused("folder_keys", 0, "a folder carries no keys: join, or change keys, with a server")

    def listen(self, tag: str, seconds: int) -> Future[Heard]:
        """Answer at once: a folder cannot say when it changes."""
        heard = Future[Heard]()
        seen = self._look()
        heard.set_result(Heard(None if seen == tag else self._heads(), seen))
        return heard

    def break_off(self) -> None:
        """Do nothing: nothing here waits."""

    def close(self) -> None:
        """Do nothing: nothing is held open."""

    def _look(self) -> str:
        """Return what changes with each file that comes or goes; what was read of them before is forgotten."""
        self._memo.clear()
        found = list[tuple[str, str, int | None]]()
        for name in self._files.names(self._logs):
            folder = self._logs / name
            found += [(name, each, self._files.size(folder / each)) for each in self._files.names(folder)]
        return sha256(repr(found).encode()).hex()

    def _heads(self) -> Heads:
        logs = dict[bytes, RemoteLog]()
        for name in self._files.names(self._logs):
            stream_id = _stream_id(name)
            chained = self._chained(stream_id) if stream_id is not None else []
            if stream_id is not None and chained:
                # Numbers go on after the last file, also after one that does not continue the log.
                logs[stream_id] = RemoteLog(_end_of(chained[-1][1]), self._numbers(stream_id)[-1] + 1)
        return Heads(None, logs)

    def _read(self, stream_id: bytes, start: int, limit: int) -> Answer:
        pieces, wanted = list[bytes](), start
        for _, segment in self._chained(stream_id):
            first, last = segment.start.length, segment.start.length + len(segment.piece)
            if last > wanted and sum(map(len, pieces)) < limit:
                pieces.append(segment.piece[wanted - first :])
                wanted = last
        return Content(b"".join(pieces)[:limit])

    def _store(self, stream_id: bytes, number: int, content: bytes) -> Answer:
        self._memo.pop(stream_id, None)
        chained = self._chained(stream_id)
        end = _end_of(chained[-1][1]) if chained else End(0, 0, bytes(32))
        if decode_segment(content).start != end:
            return Refused("segment_order", 0, "the segment does not continue the log in the folder")
        folder = self._logs / stream_id.hex()
        made = [each for each in (folder, *folder.parents) if not each.is_dir()]
        for each in reversed(made):
            self._files.make_folder(each)
            self._files.sync_folder(each.parent)
        if self._files.size(folder / f"{number:0{_DIGITS}d}") is not None:
            # What is there does not continue the log, or this segment would not: it is passed over by everybody.
            number = self._numbers(stream_id)[-1] + 1
        target, fresh = folder / f"{number:0{_DIGITS}d}", folder / f".{secrets.token_hex(8)}.new"
        self._files.write(fresh, 0, content)
        self._files.sync(fresh)
        self._files.rename(fresh, target)
        self._files.sync_folder(folder)
        self._memo.pop(stream_id)
        return Stored()

    def _chained(self, stream_id: bytes) -> list[tuple[int, Segment]]:
        """Return the segments that continue one another from the beginning; others are passed over."""
        if stream_id in self._memo:
            return self._memo[stream_id]
        chained, end = list[tuple[int, Segment]](), End(0, 0, bytes(32))
        for number in self._numbers(stream_id):
            content = self._files.read(self._logs / stream_id.hex() / f"{number:0{_DIGITS}d}") or b""
            try:
                segment = decode_segment(content)
                if segment.start == end:
                    end = _end_of(segment)
                    chained.append((number, segment))
            except FormatError:
                continue  # half-copied by whoever carries the folder: it counts when it is whole
        self._memo[stream_id] = chained
        return chained

    def _numbers(self, stream_id: bytes) -> list[int]:
        names = self._files.names(self._logs / stream_id.hex())
        return [int(name) for name in names if len(name) == _DIGITS and name.isdecimal()]


def _end_of(segment: Segment) -> End:
    """Return where a log ends after a segment; raises `FormatError` where its records are not well framed."""
    start, piece = segment.start, memoryview(segment.piece)
    chain, offset = start.chain, 0
    if start.length == 0:
        offset = PREAMBLE_SIZE
        chain = chain_start(segment.piece[:PREAMBLE_SIZE])
    found = places(piece, offset, start.records)
    for place in found:
        chain = chain_next(chain, piece[place.offset : place.end])
    return End(start.length + len(piece), start.records + len(found), chain)


def _stream_id(name: str) -> bytes | None:
    try:
        raw = bytes.fromhex(name)
    except ValueError:
        return None
    return raw if len(raw) == ID_SIZE and name == raw.hex() else None
