"""The logs of a folder remote: segments as files, `logs/<stream>/<number>` (sync-protocol §7)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from memseal.errors import FormatError
from memseal.format.content import chain_next, chain_start
from memseal.format.floor import Row
from memseal.format.log import End
from memseal.format.preamble import ID_SIZE, PREAMBLE_SIZE
from memseal.format.records import places
from memseal.format.segment import FIRST, Segment, decode_segment
from memseal.sync.messages import Answer, Content, Refused, RemoteLog, Stored
from memseal.transport.folder_files import Files, add, numbered, numbers, read

Rows = Mapping[bytes, Row]


@dataclass(frozen=True)
class _Span:
    """A segment's number, and where the log stands before and after it."""

    number: int
    start: End
    end: End


class FolderLogs:
    """Segments that continue one another; what a copying program has not finished counts when it is whole."""

    def __init__(self, folder: Path, files: Files) -> None:
        """Take the folder of all logs."""
        self._folder, self._files = folder, files
        # What was whole stays as it is: a name is never replaced.
        self._whole: dict[Path, tuple[End, End]] = {}

    def names(self) -> Iterator[tuple[str, int | None]]:
        """Yield what is there: the names below this folder, and sizes."""
        for name in self._files.names(self._folder):
            for each in self._files.names(self._folder / name):
                yield f"{name}/{each}", self._files.size(self._folder / name / each)

    def ends(self, rows: Rows) -> dict[bytes, RemoteLog]:
        """Return where each log ends; one of which nothing lies above its row ends there."""
        ends = {stream_id: RemoteLog(row.end, row.segment) for stream_id, row in rows.items()}
        for stream_id, folder in self._folders().items():
            chained = self._chained(folder, rows.get(stream_id))
            if chained:
                # Numbers go on after the last file, also after one that does not continue the log.
                ends[stream_id] = RemoteLog(chained[-1].end, self._numbers(folder)[-1] + 1)
        return ends

    def read(self, stream_id: bytes, start: int, limit: int, row: Row | None) -> Answer:
        """Return bytes of a log from an offset on."""
        folder = self._folders().get(stream_id)
        chained = [] if folder is None else self._chained(folder, row)
        if folder is None or not chained:
            return Content(b"")
        if start < chained[0].start.length:
            return Refused("below_floor", 0, "the folder has this only in the checkpoint")
        pieces, wanted = list[bytes](), start
        for span in chained:
            if span.end.length > wanted and sum(map(len, pieces)) < limit:
                content = read(self._files, folder / numbered(span.number)) or b""
                try:
                    piece = decode_segment(content).piece
                except FormatError:
                    break  # taken away, or spoilt, meanwhile
                pieces.append(piece[wanted - span.start.length :])
                wanted = span.end.length
        return Content(b"".join(pieces)[:limit])

    def store(self, stream_id: bytes, number: int, content: bytes, row: Row | None) -> Answer:
        """Add a segment, if it continues the log."""
        folder = self._folders().get(stream_id, self._folder / stream_id.hex())
        chained = self._chained(folder, row)
        end = chained[-1].end if chained else FIRST if row is None else row.end
        if decode_segment(content).start != end:
            return Refused("segment_order", 0, "the segment does not continue the log in the folder")
        if self._files.size(folder / numbered(number)) is not None:
            # What is there does not continue the log, or this segment would not: it is passed over by everybody.
            number = self._numbers(folder)[-1] + 1
        add(self._files, folder, numbered(number), content)
        return Stored()

    def below(self, rows: Rows) -> list[Path]:
        """Return the files that a checkpoint holds all of."""
        found = list[Path]()
        for stream_id, folder in self._folders().items():
            row = rows.get(stream_id)
            for span in [] if row is None else self._chained(folder, row):
                if row is not None and span.end.length <= row.end.length:
                    found.append(folder / numbered(span.number))
        return found

    def _folders(self) -> dict[bytes, Path]:
        """Return each log's folder; some file systems show other letters than were written."""
        found: dict[bytes, Path] = {}
        for name in sorted(self._files.names(self._folder), reverse=True):  # small letters last: they win
            stream_id = _stream_id(name)
            if stream_id is not None:
                found[stream_id] = self._folder / name
        return dict(sorted(found.items()))

    def _chained(self, folder: Path, row: Row | None) -> list[_Span]:
        """Return the segments that continue one another; others are passed over.

        They begin with the log, or, where its beginning was dropped, with one that reaches up to the row at least.
        """
        spans, end = list[_Span](), FIRST
        for number in self._numbers(folder):
            found = self._span(folder / numbered(number))
            if found is None:
                continue
            start, after = found
            is_base = not spans and row is not None and 0 < start.length <= row.end.length
            if start == end or is_base:
                spans.append(_Span(number, start, after))
                end = after
        return spans

    def _span(self, path: Path) -> tuple[End, End] | None:
        if path not in self._whole:
            try:
                segment = decode_segment(read(self._files, path) or b"")
                self._whole[path] = segment.start, _end_of(segment)
            except FormatError:
                return None  # half-copied by whoever carries the folder: it counts when it is whole
        return self._whole[path]

    def _numbers(self, folder: Path) -> list[int]:
        return numbers(self._files.names(folder))


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
    return raw if len(raw) == ID_SIZE and name.lower() == raw.hex() else None
