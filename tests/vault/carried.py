"""Where in a vault's files each memory lies: what damage in one place may cost, and no more."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memseal.errors import FormatError
from memseal.format.base import BASE_SIZE, decode_base
from memseal.format.content import Content, decode_content
from memseal.format.floor import Floor
from memseal.format.keys import RecordKey
from memseal.format.log import LogReader, start_of
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.records import HEADER_SIZE, open_record, places
from memseal.vault.folder.checkpoints import checkpoint_file, part_file, read_manifest
from memseal.vault.folder.log_files import log_file
from memseal.vault.folder.opening import Opened


@dataclass(frozen=True)
class Carried:
    """A range of a file, the ids of the memories that what lies there is about, and the texts that it holds."""

    file: Path
    start: int
    end: int
    ids: frozenset[str]
    contents: frozenset[str]


def carried(opened: Opened) -> list[Carried]:
    """Return what every write of every log, every record of a part, and the beginning of each such file carry."""
    return [*_in_logs(opened), *_in_checkpoint(opened)]


def _in_logs(opened: Opened) -> Iterator[Carried]:
    for stream_id, log in opened.logbook.logs.items():
        path, content = opened.folder.path / log_file(stream_id), opened.folder.read(log_file(stream_id)) or b""
        preamble, base = content[:PREAMBLE_SIZE], decode_base(content)
        begin = PREAMBLE_SIZE if base is None else PREAMBLE_SIZE + BASE_SIZE
        reader = LogReader(log.name, preamble, log.stream.key, log.stream.owner.sign)
        reading = reader.read(memoryview(content)[begin:], start_of(preamble) if base is None else base.end)
        records = [*reading.trusted, *reading.waiting]
        found = [
            _carried(path, (begin + record.place.offset, begin + record.place.end), record.content)
            for record in records
        ]
        # A write of several records is there when the one that ends it is.
        writes, at_once = list[list[Carried]](), list[Carried]()
        for record, each in zip(records, found, strict=True):
            at_once.append(each)
            if not record.content.more:
                writes.append(at_once)
                at_once = []
        yield from (_joined(write, write[0].start) for write in writes)
        if found:
            yield _joined(found, 0, begin)


def _in_checkpoint(opened: Opened) -> Iterator[Carried]:
    floor = opened.keychain.keyring.public.floor
    if floor is None:
        return
    try:
        manifest = read_manifest(opened.folder, opened.keychain, floor)
    except FormatError:
        return
    every = [each for part in manifest.parts for each in _in_part(opened, part.id, part.key)]
    yield from every
    yield _joined_at(opened, floor, every)


def _joined_at(opened: Opened, floor: Floor, every: list[Carried]) -> Carried:
    """The manifest: without it no part can be read."""
    file = opened.folder.path / checkpoint_file(floor.checkpoint)
    size = opened.folder.size(checkpoint_file(floor.checkpoint)) or 0
    ids = frozenset[str]().union(*(each.ids for each in every))
    return Carried(file, 0, size, ids, frozenset[str]())


def _in_part(opened: Opened, part_id: bytes, key: RecordKey) -> Iterator[Carried]:
    path, content = opened.folder.path / part_file(part_id), opened.folder.read(part_file(part_id)) or b""
    preamble, view, found = content[:PREAMBLE_SIZE], memoryview(content), list[Carried]()
    try:
        for place in places(view):
            body = open_record(key, preamble, place.index, view[place.offset + HEADER_SIZE : place.end])
            record = decode_content(body, preamble, place.index)[0]
            found.append(_carried(path, (place.offset, place.end), record))
    except FormatError:
        pass  # damaged before: what follows is not counted on
    yield from found
    if found:
        yield _joined(found, 0, PREAMBLE_SIZE)


def _joined(several: list[Carried], start: int, end: int | None = None) -> Carried:
    return Carried(
        several[0].file,
        start,
        several[-1].end if end is None else end,
        frozenset[str]().union(*(each.ids for each in several)),
        frozenset[str]().union(*(each.contents for each in several)),
    )


def _carried(path: Path, extent: tuple[int, int], record: Content) -> Carried:
    operations: list[dict[str, Any]] = record.meta["operations"]
    ids = {value.hex() for each in operations for value in _ids(each)}
    contents = {each["content"] for each in operations if "content" in each}
    return Carried(path, *extent, frozenset(ids), frozenset(contents))


def _ids(operation: dict[str, Any]) -> Iterator[bytes]:
    yield operation["id"]
    yield from (operation[name] for name in ("target", "of") if name in operation)
    yield from operation.get("targets", ())
