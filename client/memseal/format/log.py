"""Read and extend one log: framing, chain, signatures, trust (vault-format §4 and §5)."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from memseal.errors import Finding, FormatError
from memseal.format import primitives
from memseal.format.content import Content, Signed, chain_next, chain_start, decode_content, encode_content
from memseal.format.keys import RecordKey, SigningKey
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.records import HEADER_SIZE, Gap, Place, open_record, scan, seal_record


class End(NamedTuple):
    """Where a log ends: length in bytes, number of records, chain after the last."""

    length: int
    records: int
    chain: bytes


class Opened(NamedTuple):
    """One record that opened: its place, content, and signature if it has one."""

    place: Place
    content: Content
    signed: Signed | None


@dataclass(slots=True)
class Reading:
    """What was found in a log: trusted records in order, those that wait for a signature, findings, and the end."""

    end: End
    trusted: list[Opened] = field(default_factory=list[Opened])
    waiting: list[Opened] = field(default_factory=list[Opened])
    findings: list[Finding] = field(default_factory=list[Finding])
    torn: int = 0
    """Bytes after `end` that are an incomplete record."""
    sound: End | None = None
    """Where the sound beginning ends, if something after it cannot be read or trusted."""
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

    def read(self, content: memoryview, start: End, verified: End | None = None) -> Reading:
        """Read `content`, the stored bytes from `start` on; records up to `verified` need no signature if the chain
        there is the same. Places are relative to `start`.
        """
        reading = Reading(start)
        runs = [_Run(start.chain)]
        for piece in scan(content, 0, start.records):
            if isinstance(piece, Place):
                self._take(reading, runs, piece, content[piece.offset : piece.end])
            else:
                self._note_gap(reading, piece, len(content), start.length)
                runs.append(_Run(b""))
        reading.end = next((run.end(-1, start) for run in reversed(runs) if run.places), start)
        for run in runs:
            covered = run.verified_before(verified, start)
            self._trust(reading, run, covered, last=run is runs[-1] and not reading.damaged_end)
        if any(finding.code != "record_torn" for finding in reading.findings):
            sound = sum(record.place.end <= runs[0].trusted_to for record in runs[0].records)
            reading.sound = runs[0].end(sound - 1, start) if sound else start
        return reading

    def _take(self, reading: Reading, runs: "list[_Run]", place: Place, stored: memoryview) -> None:
        """Open a record and add it to the run it continues, or begin a new run where the chain does not hold."""
        run, index = runs[-1], place.index
        chain = run.chain
        try:
            body = open_record(self._key, self._preamble, index, stored[HEADER_SIZE:])
            content, signed = decode_content(body, self._preamble, index)
        except FormatError as error:
            reading.findings.append(self._finding(error.code, index, str(error)))
            reading.damaged_end = True
        else:
            if content.chain != chain:
                if chain and not reading.damaged_end:
                    detail = "the records before it are not those it was written after"
                    reading.findings.append(self._finding("chain_broken", index, detail))
                chain = content.chain
                run = _Run(chain)
                runs.append(run)
            run.records.append(Opened(place, content, signed))
            reading.damaged_end = False
        if chain:
            run.chain = chain = chain_next(chain, stored)
        run.places.append(place)
        run.chains.append(chain)

    def _note_gap(self, reading: Reading, gap: Gap, size: int, base: int) -> None:
        if gap.code == "record_torn" and gap.end == size:
            reading.torn = gap.end - gap.offset
        else:
            reading.damaged_end = True
        detail = f"{gap.end - gap.offset} bytes at offset {base + gap.offset} cannot be read"
        reading.findings.append(self._finding(gap.code, gap.index, detail))

    def _trust(self, reading: Reading, run: "_Run", trusted: int, last: bool) -> None:
        """Sort a run's records into trusted (the first `trusted` are), waiting (at the end) and quarantined."""
        for number in range(len(run.records) - 1, trusted - 1, -1):
            signed = run.records[number].signed
            if signed is not None and self._verify(signed):
                trusted = number + 1
                break
            if signed is not None:
                index = run.records[number].place.index
                reading.findings.append(self._finding("signature_invalid", index, "not signed by the stream's owner"))
        reading.trusted.extend(run.records[:trusted])
        run.trusted_to = run.records[trusted - 1].place.end if trusted else 0
        for record in run.records[trusted:]:
            if last:
                reading.waiting.append(record)
            else:
                reading.findings.append(self._finding("signature_absent", record.place.index, "no signature covers it"))

    def _verify(self, signed: Signed) -> bool:
        try:
            primitives.verify(self._owner, signed.signature, signed.message)
        except primitives.NotAuthentic:
            return False
        return True

    def _finding(self, code: str, index: int, detail: str) -> Finding:
        return Finding(code, f"{self._name}#{index}", detail)


@dataclass(slots=True)
class _Run:
    """Records in a row whose chains hold; `chain` is the one after the last, empty where it is not known."""

    chain: bytes
    records: list[Opened] = field(default_factory=list[Opened])
    places: list[Place] = field(default_factory=list[Place])
    """Where all its records stand, in a row: those too that did not open."""
    chains: list[bytes] = field(default_factory=list[bytes])
    """The chain after each place."""
    trusted_to: int = 0

    def end(self, number: int, start: End) -> End:
        """Return where the log ends with a place, given where the bytes begin that places are relative to."""
        place = self.places[number]
        return End(start.length + place.end, place.index + 1, self.chains[number])

    def verified_before(self, verified: End | None, start: End) -> int:
        """Return how many of the run's records an earlier verification covers: the chain at its end is the same."""
        if verified is None or not self.places:
            return 0
        number = verified.records - 1 - self.places[0].index
        if not 0 <= number < len(self.places) or self.end(number, start) != verified:
            return 0
        return bisect_left(self.records, verified.records, key=lambda record: record.place.index)


class LogWriter:
    """Makes the records that follow a log's end; owns no file."""

    def __init__(self, preamble: bytes, key: RecordKey, owner: SigningKey, end: End) -> None:
        """Take the log's preamble, record key, its owner's signing key, and where it ends."""
        self._preamble = preamble
        self._key = key
        self._owner = owner
        self.end = end

    def write(self, contents: Sequence[Content]) -> tuple[list[bytes], End]:
        """Return the records of one write as stored, and the log's end after it; the writer itself does not move."""
        end, pieces = self.end, list[bytes]()
        for number, content in enumerate(contents):
            placed = content._replace(chain=end.chain, more=number + 1 < len(contents))
            body = encode_content(placed, self._preamble, end.records, self._owner)
            record = seal_record(self._key, self._preamble, end.records, body)
            end = End(end.length + len(record), end.records + 1, chain_next(end.chain, record))
            pieces.append(record)
        return pieces, end
