"""Read and extend one log: framing, chain, signatures, trust (vault-format §4 and §5)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from memseal.errors import Finding, FormatError
from memseal.format import primitives
from memseal.format.content import Content, Signed, chain_next, chain_start, decode_content, encode_content
from memseal.format.keys import RecordKey, SigningKey
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.records import Gap, Place, open_record, scan, seal_record

Mapper = Callable[[Callable[[Place], "Opened | Finding"], Iterable[Place]], Iterator["Opened | Finding"]]


@dataclass(frozen=True, slots=True)
class End:
    """Where a log ends: length in bytes, number of records, chain after the last."""

    length: int
    records: int
    chain: bytes


@dataclass(frozen=True, slots=True)
class Opened:
    """One record that opened: its place, content, and signature if it has one."""

    place: Place
    content: Content
    signed: Signed | None


@dataclass(slots=True)
class Reading:
    """What was found in a log: trusted records in order, findings, and where the good part ends."""

    trusted: list[Opened] = field(default_factory=list)
    waiting: list[Opened] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    end: End = field(default_factory=lambda: End(0, 0, b""))
    torn: int = 0
    """Bytes after `end` that are an incomplete record."""
    damaged_end: bool = False
    """Whether what is after `end`, or the last record, is damaged: never append to such a log."""


def start_of(preamble: bytes) -> End:
    """Return the end of a log that has no record yet."""
    return End(PREAMBLE_SIZE, 0, chain_start(preamble))


class LogReader:
    """Opens and checks the records of one log; the name is for findings."""

    def __init__(self, name: str, preamble: bytes, key: RecordKey, owner: bytes) -> None:
        """Take the log's preamble, record key and its owner's public signing key."""
        self._name = name
        self._preamble = preamble
        self._key = key
        self._owner = owner

    def read(
        self, content: memoryview, start: End, verified: End | None = None, mapper: Mapper = map
    ) -> Reading:
        """Read what follows `start`; records up to `verified` need no signature if the chain there is the same."""
        reading = Reading(end=start)
        found = list(scan(content, start.length, start.records))
        opened = dict(
            zip(
                self._indexes(found),
                mapper(lambda place: self._open(content, place), _places(found)),
                strict=True,
            )
        )
        runs, chain = [_Run(start.chain)], start.chain
        for piece in found:
            if isinstance(piece, Gap):
                self._note_gap(reading, piece, len(content))
                chain = b""
                continue
            record = opened[piece.index]
            if isinstance(record, Finding):
                reading.findings.append(record)
                reading.damaged_end = True
            else:
                if record.content.chain != chain:
                    if chain and not reading.damaged_end:
                        reading.findings.append(
                            self._finding("chain_broken", piece.index, "the records before it differ")
                        )
                    runs.append(_Run(record.content.chain))
                    chain = record.content.chain
                runs[-1].records.append(record)
                reading.damaged_end = False
            chain = chain_next(chain, content[piece.offset : piece.end]) if chain else b""
            runs[-1].ends.append(End(piece.end, piece.index + 1, chain))
            reading.end = runs[-1].ends[-1]
        for run in runs:
            self._trust(reading, run, verified, last=run is runs[-1] and not reading.damaged_end)
        return reading

    def _open(self, content: memoryview, place: Place) -> Opened | Finding:
        body = content[place.offset + 12 : place.end]
        try:
            return Opened(
                place,
                *decode_content(
                    open_record(self._key, self._preamble, place.index, body), self._preamble, place.index
                ),
            )
        except FormatError as error:
            return Finding(error.code, f"{self._name}#{place.index}", str(error))

    def _note_gap(self, reading: Reading, gap: Gap, size: int) -> None:
        if gap.code == "record_torn" and gap.end == size:
            reading.torn = gap.end - gap.offset
        else:
            reading.damaged_end = True
        detail = f"{gap.end - gap.offset} bytes at offset {gap.offset} cannot be read"
        reading.findings.append(self._finding(gap.code, gap.index, detail))

    def _trust(self, reading: Reading, run: "_Run", verified: End | None, last: bool) -> None:
        """Sort a run's records into trusted, waiting (at the end of the log) and quarantined."""
        trusted = run.verified_before(verified)
        for number in range(len(run.records) - 1, trusted - 1, -1):
            signed = run.records[number].signed
            if signed is None:
                continue
            try:
                primitives.verify(self._owner, signed.signature, signed.message)
            except primitives.NotAuthentic:
                index = run.records[number].place.index
                reading.findings.append(
                    self._finding("signature_invalid", index, "not signed by the stream's owner")
                )
                continue
            trusted = number + 1
            break
        reading.trusted.extend(run.records[:trusted])
        for record in run.records[trusted:]:
            if last:
                reading.waiting.append(record)
            else:
                reading.findings.append(
                    self._finding("signature_absent", record.place.index, "no signature covers it")
                )

    def _finding(self, code: str, index: int, detail: str) -> Finding:
        return Finding(code, f"{self._name}#{index}", detail)

    @staticmethod
    def _indexes(found: Iterable[Place | Gap]) -> list[int]:
        return [place.index for place in _places(found)]


@dataclass(slots=True)
class _Run:
    """Records in a row whose chains hold."""

    chain: bytes
    records: list[Opened] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)

    def verified_before(self, verified: End | None) -> int:
        """Return how many of the run's records an earlier verification covers: the chain at its end must be the same."""
        if verified is None or verified not in self.ends:
            return 0
        return sum(record.place.end <= verified.length for record in self.records)


def _places(found: Iterable[Place | Gap]) -> list[Place]:
    return [piece for piece in found if isinstance(piece, Place)]


class LogWriter:
    """Makes the records that follow a log's end; owns no file."""

    def __init__(self, preamble: bytes, key: RecordKey, owner: SigningKey, end: End) -> None:
        """Take the log's preamble, record key, its owner's signing key, and where it ends."""
        self._preamble = preamble
        self._key = key
        self._owner = owner
        self.end = end

    def write(self, contents: Sequence[Content]) -> tuple[bytes, End]:
        """Return the stored bytes of one write and the log's end after it; the writer itself does not move."""
        end, pieces = self.end, []
        for number, content in enumerate(contents):
            placed = replace(content, chain=end.chain, more=number + 1 < len(contents))
            body = encode_content(placed, self._preamble, end.records, self._owner)
            record = seal_record(self._key, self._preamble, end.records, body)
            end = End(end.length + len(record), end.records + 1, chain_next(end.chain, record))
            pieces.append(record)
        return b"".join(pieces), end
