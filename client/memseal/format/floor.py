"""The floor of a keyring version: which checkpoint holds what each log says, and up to where (vault-format §7)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memseal.format.counters import most_counter
from memseal.format.fields import U53, Fields
from memseal.format.log import End
from memseal.format.preamble import ID_SIZE, PREAMBLE_SIZE, stream_id_of
from memseal.format.records import BODY_LIMIT, HEADER_SIZE, SMALLEST_RECORD

_FIELDS = frozenset("checkpoint digest parts logs".split())
_ROW = ("stream", "epoch", "nonce", "segment", "length", "records", "chain", "counter")
_DIGEST_SIZE = 32
_NONCE_SIZE = 12
# Rows times entries: whose log a row is takes a hash for each pair, and no version may take minutes to judge.
_OWNERS_LIMIT = 1 << 22


@dataclass(frozen=True)
class Row:
    """Up to where a checkpoint holds one log, the counter of the record there, the segment that begins after it.

    With epoch and nonce (12 bytes) the log's preamble can be made again.
    """

    epoch: int
    nonce: bytes
    segment: int
    end: End
    counter: int


@dataclass(frozen=True)
class Floor:
    """A committed checkpoint: its id, the hash of its manifest's file, its parts' ids, and a row for each log."""

    checkpoint: bytes
    digest: bytes
    parts: tuple[bytes, ...]
    rows: Mapping[bytes, Row]
    others: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_value(self) -> dict[str, Any]:
        """Return the floor as it stands in a public section."""
        logs = [
            [stream_id, row.epoch, row.nonce, row.segment, row.end.length, row.end.records, row.end.chain, row.counter]
            for stream_id, row in self.rows.items()
        ]
        value = {"checkpoint": self.checkpoint, "digest": self.digest, "parts": list(self.parts), "logs": logs}
        return {**value, **self.others}

    def may_follow(self, before: "Floor | None") -> bool:
        """Return whether a version may have this floor after that one (rule K8)."""
        if before is None:
            return True
        return self.checkpoint != before.checkpoint and all(
            stream_id in self.rows and _not_below(row, self.rows[stream_id]) for stream_id, row in before.rows.items()
        )

    def is_possible(self, vault_id: bytes, epoch: int, signers: Iterable[bytes]) -> bool:
        """Return whether there can be such logs in a vault with this epoch and these entries' keys (rule K8)."""
        keys = tuple(signers)
        return len(self.rows) * len(keys) <= _OWNERS_LIMIT and all(
            row.epoch <= epoch
            and _is_possible(row)
            and any(stream_id_of(vault_id, key, row.nonce) == stream_id for key in keys)
            for stream_id, row in self.rows.items()
        )


def _is_possible(row: Row) -> bool:
    records, sealed = row.end.records, row.end.length - PREAMBLE_SIZE
    least, most = records * SMALLEST_RECORD, records * (HEADER_SIZE + BODY_LIMIT)
    # Each segment has a record at least.
    return max(1, row.segment) <= records and least <= sealed <= most and row.counter <= most_counter(row.epoch)


def _not_below(before: Row, after: Row) -> bool:
    if after.end.length == before.end.length:
        return after == before
    return (
        (after.epoch, after.nonce) == (before.epoch, before.nonce)
        and after.segment >= before.segment
        and after.end.length > before.end.length
        and after.end.records >= before.end.records
        and after.counter >= before.counter
    )


def decode_floor(value: Any, code: str) -> Floor:
    """Return a floor from a public section; raises `FormatError` with this code."""
    fields = Fields(value, code, "floor")
    parts = [Fields({"part": part}, code, "floor").size("part", ID_SIZE) for part in fields.array("parts")]
    rows = dict[bytes, Row]()
    for values in fields.tuples("logs", len(_ROW)):
        row = Fields(dict(zip(_ROW, values, strict=True)), code, "floor")
        stream_id = row.size("stream", ID_SIZE)
        fields.check(stream_id not in rows, "logs")
        end = End(row.count("length", PREAMBLE_SIZE, U53), row.count("records"), row.size("chain", _DIGEST_SIZE))
        rows[stream_id] = Row(
            epoch=row.count("epoch", 1),
            nonce=row.size("nonce", _NONCE_SIZE),
            segment=row.count("segment"),
            end=end,
            counter=row.count("counter", below=U53),
        )
    fields.check(len(set(parts)) == len(parts), "parts")
    return Floor(
        checkpoint=fields.size("checkpoint", ID_SIZE),
        digest=fields.size("digest", _DIGEST_SIZE),
        parts=tuple(parts),
        rows=rows,
        others=fields.others(_FIELDS),
    )
