"""One log of an open vault: where it stands, and what follows from bytes that continue it."""

from dataclasses import dataclass, field, replace

from memseal.errors import FormatError
from memseal.format.base import Base
from memseal.format.content import chain_next
from memseal.format.log import End, Opened, Reading, start_of
from memseal.format.records import decode_header
from memseal.memory.operations import Head
from memseal.vault.folder.keychain import Stream
from memseal.vault.folder.log_files import log_file

# A push that comes later than this many writes reads where they end.
_WRITTEN_MOST = 1024


@dataclass
class Log:
    """One log: how far it is applied, the counter of its last record, and what its records have named."""

    stream: Stream
    end: End
    """Where the applied part ends."""
    counter: int = 0
    named: dict[bytes, int] = field(default_factory=dict[bytes, int])
    """Per other stream, how many of its records this log's records have named."""
    stored: int = 0
    """Bytes of the file that are good: from there on it may be extended. Beyond `end` lies a write not yet whole."""
    appendable: bool = True
    """False where the end is damaged, or the file was put back: a device never writes there again."""
    settled: bool = False
    """Whether a former log of this device ends here for everybody; not known before a synchronisation."""
    sound: End | None = None
    """Where the sound beginning ends, if something after it could not be read: a remote may have it whole."""
    claimed: dict[bytes, int] = field(default_factory=dict[bytes, int])
    """Per other stream, the highest counter that this log's records have claimed for one of its records."""
    base: Base | None = None
    """Where its file begins, if it does so without the log's beginning."""
    written: list[End] = field(default_factory=list[End])
    """Where the latest writes ended that were made while the vault is open, in their order."""

    @classmethod
    def at(cls, stream: Stream, base: Base | None) -> "Log":
        """Return a log of which nothing is applied yet."""
        start = start_of(stream.preamble) if base is None else base.end
        return cls(stream, start, 0 if base is None else base.counter, stored=start.length, base=base)

    @property
    def start(self) -> End:
        """Where the first record in its file stands."""
        return start_of(self.stream.preamble) if self.base is None else self.base.end

    @property
    def head(self) -> Head:
        """The head as another log's record names it."""
        return Head(self.stream.stream_id, self.end.records - 1, self.end.chain, self.counter)

    @property
    def name(self) -> str:
        """The name in findings."""
        return log_file(self.stream.stream_id)

    def wrote(self, end: End) -> None:
        """Note where the log ends after a write."""
        self.written = [*self.known_ends()[-_WRITTEN_MOST:], end]
        self.end, self.stored = end, end.length

    def known_ends(self) -> list[End]:
        """Return ends of writes, in their order, up to its own: none where it was cut since, or is damaged."""
        return self.written if self.written and self.written[-1] == self.end and self.sound is None else []


@dataclass(frozen=True)
class Settled:
    """Whole writes of a reading, and where the log stands with them: applied to `end`, kept to `stored` bytes."""

    reading: Reading
    end: End
    stored: int
    unfinished: bool


def up_to(record: Opened, start: End, content: memoryview) -> End:
    """Return where a log stands after a record of these bytes, which follow `start`."""
    place = record.place
    chain = chain_next(record.content.chain, content[place.offset : place.end])
    return End(start.length + place.end, place.index + 1, chain)


def up_to_damage(start: End, settled: Settled, content: memoryview) -> Settled:
    """Leave out what cannot be read at the end of a remote's bytes, which follow `start`.

    It may be the remote's doing: kept, it would stand where the true records belong, and be handed on to other remotes.
    """
    trusted = settled.reading.trusted
    last = up_to(trusted[-1], start, content) if trusted else start
    return settled if settled.end.length <= last.length else replace(settled, end=last, stored=last.length)


def end_of_whole_records(content: memoryview, begin: End) -> End:
    """Return where the last whole record ends of those that follow a place."""
    end, offset = begin, 0
    while offset < len(content):
        try:
            place = decode_header(content, offset, end.records)
        except FormatError:
            break
        record = content[place.offset : place.end]
        end = End(end.length + len(record), end.records + 1, chain_next(end.chain, record))
        offset = place.end
    return end


def is_fork(log: Log, reading: Reading, content: memoryview) -> bool:
    """Return whether bytes that should follow a log follow another history of it."""
    if not len(content) or not log.end.records or not log.end.chain:
        return False
    first = next(iter([*reading.trusted, *reading.waiting]), None)
    if first is not None and first.place.offset == 0:
        return first.content.chain != log.end.chain
    try:
        decode_header(content, 0, log.end.records)
    except FormatError as error:
        # No record begins where ours ends: the other history has its records elsewhere.
        return error.code != "record_torn"
    return False
