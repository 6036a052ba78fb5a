"""The devices of a vault, as their user is shown them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast

from memseal.errors import FormatError
from memseal.format.keyring import DeviceEntry
from memseal.format.log import End, LogReader
from memseal.format.records import BODY_LIMIT, HEADER_SIZE, decode_header
from memseal.memory.memory import from_microseconds
from memseal.memory.operations import decode_meta
from memseal.vault.folder.log import Log
from memseal.vault.folder.opening import Opened

# A log's last record is looked for in so many bytes: more than all but imports write at once.
_TAIL = 1 << 20


@dataclass(frozen=True)
class DeviceInfo:
    """One device: `since` and `ended` are keyring versions, `records` those of its logs that are here.

    `waiting`: it still sits behind an older passphrase. `last_written_at` is what its own clock said; None if unknown.
    """

    id: str
    name: str
    status: Literal["this", "active", "waiting", "ended"]
    this_device: bool
    since: int
    ended: int | None
    records: int
    last_written_at: datetime | None


def devices(opened: Opened) -> list[DeviceInfo]:
    """Return all devices that the keyring lists, each once, in the order in which they came."""
    entries = dict[bytes, list[DeviceEntry]]()
    for entry in opened.keychain.keyring.public.devices:
        entries.setdefault(entry.id, []).append(entry)
    return [_info(opened, each) for each in entries.values()]


def _info(opened: Opened, entries: Sequence[DeviceEntry]) -> DeviceInfo:
    """Return what is known of the device whose key sets these are; the last one counts."""
    newest, public = entries[-1], opened.keychain.keyring.public
    logs = [log for log in opened.logbook.logs.values() if log.stream.owner.id == newest.id and log.end.records]
    is_this = newest.id == opened.device.device_id
    status: Literal["this", "active", "waiting", "ended"]
    if newest.ended is not None:
        status = "ended"
    elif newest.since < public.passphrase_since:
        status = "waiting"
    else:
        status = "this" if is_this else "active"
    return DeviceInfo(
        id=newest.id.hex(),
        name=opened.keychain.secrets.names.get(newest.id, ""),
        status=status,
        this_device=is_this,
        since=entries[0].since,
        ended=None if newest.ended is None else newest.ended.version,
        records=sum(log.end.records for log in logs),
        last_written_at=_last_written(opened, max(logs, key=lambda log: log.counter)) if logs else None,
    )


def _last_written(opened: Opened, log: Log) -> datetime | None:
    """Return the newest time in a log's last record, as far as it is found near the end."""
    begin = max(log.start.length, log.end.length - _TAIL)
    content = opened.logbook.piece(log.stream.stream_id, begin, log.end.length)
    at = _last_record(content, log.end.records - 1)
    if at is None:
        return None
    reader = LogReader(log.name, log.stream.preamble, log.stream.key, log.stream.owner.sign)
    reading = reader.read(memoryview(content)[at:], End(begin + at, log.end.records - 1, b""))
    times = list[int]()
    for record in reading.trusted:
        try:
            operations = decode_meta(record.content.meta, log.stream.epoch).operations
        except FormatError:
            continue  # it was noted when the log was read
        fields = [cast("dict[str, Any]", each) for each in operations if isinstance(each, dict)]
        found = [each.get(name) for each in fields for name in ("written_at", "at")]
        times += [time for time in found if isinstance(time, int)]
    return from_microseconds(max(times)) if times else None


def _last_record(content: bytes, index: int) -> int | None:
    """Return where the record with this index, which ends the bytes, begins in them."""
    number, place = index.to_bytes(4, "big"), len(content)
    while (place := content.rfind(number, 0, place + len(number) - 1)) >= 0:
        size = int.from_bytes(content[max(0, place - 4) : place], "big")
        if place >= 4 and size <= BODY_LIMIT and place - 4 + HEADER_SIZE + size == len(content):
            try:
                decode_header(memoryview(content), place - 4, index)
            except FormatError:
                continue
            return place - 4
    return None
