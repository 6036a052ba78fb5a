"""Up to where a checkpoint may cover each log, and what keeps it from going further (vault-format §8b)."""

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from memseal.errors import Finding, FormatError
from memseal.format.floor import Row
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.memory.operations import decode_meta
from memseal.sync.messages import RemoteLog
from memseal.vault.folder.floors import newest_rows
from memseal.vault.folder.log_files import log_file
from memseal.vault.folder.logbook import Logbook

# A finding of these is of a record that was not applied in full. What a record says wrongly of others, or an operation
# that is invalid for everybody, keeps nothing back.
_HOLDS_BACK = frozenset(
    """
    record_torn record_header record_length record_order record_sealed record_padding record_flags record_content
    signature_invalid signature_absent zstd_limit zstd_invalid msgpack_invalid column_length operation_unknown
    """.split()
)
_WHERE = re.compile(r"logs/([0-9a-f]{32})\.mseal#(\d+)")


@dataclass(frozen=True)
class Quarantined:
    """One record that was not applied in full: its log, its index, why, and whether it was given up."""

    stream_id: bytes
    record: int
    finding: Finding
    dismissed: bool

    @property
    def name(self) -> str:
        """How people name it: the log's file and the index."""
        return f"{log_file(self.stream_id)}#{self.record}"


def quarantine(logbook: Logbook) -> list[Quarantined]:
    """Return the records that could not be read or trusted, or have an operation that is not known here."""
    dismissed = logbook.view.state.erasures.dismissed()
    listed = list[Quarantined]()
    for finding in logbook.findings:
        place = _WHERE.match(finding.where)
        if place is not None and finding.code in _HOLDS_BACK:
            stream_id, record = bytes.fromhex(place[1]), int(place[2])
            listed.append(Quarantined(stream_id, record, finding, (stream_id, record) in dismissed))
    return listed


def coverage(logbook: Logbook, there: Mapping[bytes, RemoteLog] | None) -> dict[bytes, Row]:
    """Return the rows of the next floor; `there` is what the server holds, None without one.

    A log that cannot be covered to its end keeps the row that it has, if it has one; one of which the server does not
    have the end, as in a full vault, is covered as far as it does.
    """
    held = {each.stream_id for each in quarantine(logbook) if not each.dismissed}
    rows = dict(newest_rows(logbook.keychain.keyring))
    for stream_id, log in logbook.logs.items():
        remote = RemoteLog(log.end, 0) if there is None else there.get(stream_id)
        if stream_id in held or remote is None or not (log.end.records and log.end.chain and remote.end.records):
            continue
        before = rows.get(stream_id)
        if before is not None and before.end.records >= remote.end.records:
            continue
        if remote.end == log.end:
            counter = log.counter
        elif logbook.end_at(log, remote.end.length) == remote.end:
            counter = _counter_at(logbook, stream_id, remote.end.records)
        else:
            continue
        nonce = log.stream.preamble[PREAMBLE_SIZE - 16 : PREAMBLE_SIZE - 4]
        segment = max(remote.next, 0 if before is None else before.segment)
        rows[stream_id] = Row(log.stream.epoch, nonce, segment, remote.end, counter)
    return rows


def _counter_at(logbook: Logbook, stream_id: bytes, records: int) -> int:
    """Return the highest counter among the first records of a log."""
    log = logbook.logs[stream_id]
    highest = 0 if log.base is None else log.base.counter
    for record in logbook.records(stream_id, log.start.records, records):
        with contextlib.suppress(FormatError):  # it was noted when the log was read, and has no effect
            highest = max(highest, decode_meta(record.content.meta, log.stream.epoch).counter)
    return highest


def held_back(logbook: Logbook, rows: Mapping[bytes, Row]) -> list[str]:
    """Return the names of the logs that these rows do not cover to their end."""
    return [
        log_file(stream_id)
        for stream_id, log in logbook.logs.items()
        if log.end.records and (stream_id not in rows or rows[stream_id].end != log.end)
    ]


def epochs_needed(logbook: Logbook, rows: Mapping[bytes, Row]) -> set[int]:
    """Return the epochs of logs with records that these rows do not cover: their keys stay in the history."""
    return {
        log.stream.epoch
        for stream_id, log in logbook.logs.items()
        if stream_id not in rows or rows[stream_id].end.length < log.stored
    }
