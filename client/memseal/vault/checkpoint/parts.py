"""Make the parts of a checkpoint: from records that are gone through one by one, in bounded memory."""

import secrets
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

from memseal.format.checkpoint import PART_TARGET, Manifest, PartEntry, part_preamble
from memseal.format.content import Column, Content
from memseal.format.keys import RecordKey
from memseal.format.part import seal_run, start_of_part
from memseal.format.preamble import ID_SIZE
from memseal.format.records import PLAINTEXT_LIMIT
from memseal.store.folder import VaultFolder
from memseal.vault.checkpoint.gleaning import Gleaned, Value, glean, log_values
from memseal.vault.folder.checkpoints import operations_of, part_file, read_part
from memseal.vault.folder.logbook import Logbook

# Records of a part: as large as those of a bulk write, for the same reasons.
_RECORD_BYTES = 2 << 20
_OPERATIONS = 4096
# Of the part's limit, what encoding, padding and sealing may add to what is counted here.
_ROOM = PART_TARGET - (PART_TARGET >> 3)


# Within a part each record waits for the hash of the one before; two parts at once keep two cores busy.
_THREADS = 2

Sayings: TypeAlias = tuple[dict[str, Any], tuple[Column, ...]]
"""Meta and columns of one record."""


def seal_parts(
    folder: VaultFolder, vault_id: bytes, model: str, sources: Iterable[tuple[Gleaned, int]]
) -> Iterator[PartEntry]:
    """Write parts with what was gleaned, durably, and yield what a manifest says of them."""
    due = deque[Future[PartEntry]]()
    with ThreadPoolExecutor(_THREADS) as beside:
        for contents in _divided(model, sources):
            if len(due) == _THREADS:
                yield due.popleft().result()
            due.append(beside.submit(_seal, folder, vault_id, contents))
        while due:
            yield due.popleft().result()


def _divided(model: str, sources: Iterable[tuple[Gleaned, int]]) -> Iterator[list[Sayings]]:
    """Yield what each part is to hold."""
    contents, size = list[Sayings](), 0
    for gleaned, weight in _gathered(sources):
        if contents and size + weight > _ROOM:
            yield contents
            contents, size = [], 0
        contents.append(({"operations": gleaned.values}, gleaned.columns(model)))
        size += weight
    if contents:
        yield contents


def _gathered(sources: Iterable[tuple[Gleaned, int]]) -> Iterator[tuple[Gleaned, int]]:
    """Put what came in small records together, so that it is sealed in large ones."""
    batch, size = Gleaned(), 0
    for gleaned, weight in sources:
        if batch.values and (size + weight > _RECORD_BYTES or len(batch.values) + len(gleaned.values) > _OPERATIONS):
            yield batch, size
            batch, size = Gleaned(), 0
        batch.take(gleaned)
        size += weight
    if batch.values:
        yield batch, size


def _seal(folder: VaultFolder, vault_id: bytes, contents: Sequence[Sayings]) -> PartEntry:
    part_id, key = secrets.token_bytes(ID_SIZE), RecordKey(secrets.token_bytes(32))
    preamble = part_preamble(vault_id, part_id)
    length, records, chain = len(preamble), 0, b""

    def pieces() -> Iterator[bytes | bytearray]:
        # One by one: memory for all of them at once would be new memory, which takes as long to get as to fill.
        nonlocal length, records, chain
        yield preamble
        for sealed in seal_run(key, preamble, start_of_part(preamble), contents):
            length, records, chain = length + len(sealed.record), records + 1, sealed.chain
            yield sealed.record

    folder.replace(part_file(part_id), pieces())
    return PartEntry(part_id, key, length, records, chain)


def from_logs(logbook: Logbook, ends: Iterable[tuple[bytes, int, int]], highest: int) -> Iterator[tuple[Gleaned, int]]:
    """Yield what still counts of logs; `ends` says of each which records, from and up to."""
    for stream_id, first, last in ends:
        if stream_id not in logbook.logs:
            continue  # nobody here has it: a false row, or one of a checkpoint that does not come
        epoch = logbook.logs[stream_id].stream.epoch
        for record in logbook.records(stream_id, first, last):
            yield _gleaned(logbook, log_values(record.content, epoch), record.content, record.place.length, highest)


def from_part(folder: VaultFolder, logbook: Logbook, manifest: Manifest, entry: PartEntry) -> list[tuple[Gleaned, int]]:
    """Return what still counts of a part."""
    records = read_part(folder, logbook.keychain.vault_id, entry, [])
    return [
        _gleaned(logbook, operations_of(record), record, entry.length // entry.records, manifest.counter)
        for record in records
    ]


def _gleaned(logbook: Logbook, values: list[Value], content: Content, size: int, highest: int) -> tuple[Gleaned, int]:
    gleaned = glean(logbook.view, values, content.columns, highest)
    return gleaned, min(size, PLAINTEXT_LIMIT)
