"""Up to where a checkpoint may cover each log, and what keeps it from going further (vault-format §8b)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from memseal.errors import Finding
from memseal.format.floor import Row
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.sync.messages import RemoteLog
from memseal.vault.floors import newest_rows
from memseal.vault.log import Log
from memseal.vault.log_files import log_file
from memseal.vault.logbook import Logbook

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

    A log that cannot be covered to its end keeps the row that it has, if it has one.
    """
    held = {each.stream_id for each in quarantine(logbook) if not each.dismissed}
    rows = dict(newest_rows(logbook.keychain.keyring))
    for stream_id, log in logbook.logs.items():
        remote = RemoteLog(log.end, 0) if there is None else there.get(stream_id)
        if stream_id not in held and remote is not None and _is_whole(log, remote):
            nonce = log.stream.preamble[PREAMBLE_SIZE - 16 : PREAMBLE_SIZE - 4]
            segment = max(remote.next, rows[stream_id].segment if stream_id in rows else 0)
            row = Row(log.stream.epoch, nonce, segment, log.end, log.counter)
            if stream_id not in rows or rows[stream_id].end != row.end:
                rows[stream_id] = row
    return rows


def _is_whole(log: Log, remote: RemoteLog) -> bool:
    return bool(log.end.records and log.end.chain and remote.end == log.end)


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
