"""The files of a vault's logs, read and written by where bytes stand in the whole log (vault-format §5a)."""

from collections.abc import Collection, Mapping

from memseal.errors import FormatError
from memseal.format.base import BASE_SIZE, Base, decode_base
from memseal.format.log import End, start_of
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.store.folder import LOGS, VaultFolder

_ID_DIGITS = frozenset("0123456789abcdef")


def log_file(stream_id: bytes) -> str:
    """Return the name of a log's file in the vault's folder."""
    return f"{LOGS}/{stream_id.hex()}.mseal"


def stream_of(name: str) -> bytes:
    """Return the id of the stream of which a file has this name."""
    return bytes.fromhex(name.rpartition("/")[2].partition(".")[0])


class LogFiles:
    """Log files, with or without a beginning: offsets and lengths are those of the whole log."""

    def __init__(self, folder: VaultFolder) -> None:
        """Take the vault's folder; nothing is read yet."""
        self.folder = folder
        self._bases: dict[bytes, Base | None] = {}

    def streams(self) -> list[bytes]:
        """Return the ids of all logs in the folder, readable or not."""
        stems = self.folder.stems(LOGS)
        return [bytes.fromhex(stem) for stem in stems if len(stem) == 32 and _ID_DIGITS.issuperset(stem)]

    def preamble(self, stream_id: bytes) -> bytes:
        """Return the preamble of a log's file, or as much of it as there is."""
        return self.folder.read(log_file(stream_id), 0, PREAMBLE_SIZE) or b""

    def base(self, stream_id: bytes) -> Base | None:
        """Return where a file without a beginning begins; None: it has it. Raises `FormatError` `base_damaged`."""
        if stream_id not in self._bases:
            head = self.folder.read(log_file(stream_id), 0, PREAMBLE_SIZE + BASE_SIZE) or b""
            self._bases[stream_id] = decode_base(head)
        return self._bases[stream_id]

    def hold_all(self, preambles: Mapping[bytes, bytes], seen: Collection[bytes]) -> bool:
        """Return whether logs that begin as `preambles` say, and are here or were (`seen`), have their beginning."""
        here = {*seen, *self.streams()}
        return all(
            stream_id not in here or (self.preamble(stream_id) == preamble and self._is_whole(stream_id))
            for stream_id, preamble in preambles.items()
        )

    def _is_whole(self, stream_id: bytes) -> bool:
        try:
            return self.base(stream_id) is None
        except FormatError:
            return False

    def start(self, stream_id: bytes, preamble: bytes) -> End:
        """Return where the first record in the file stands."""
        base = self.base(stream_id)
        return start_of(preamble) if base is None else base.end

    def read(self, stream_id: bytes, start: int, end: int | None = None) -> bytes:
        """Return a log's stored bytes from a record's offset on, up to another's."""
        shift = self._shift(stream_id)
        return self.folder.read(log_file(stream_id), start + shift, None if end is None else end + shift) or b""

    def length(self, stream_id: bytes) -> int:
        """Return how long a log is with what is in its file; 0 where it is missing."""
        size = self.folder.size(log_file(stream_id))
        return 0 if size is None else size - self._shift(stream_id)

    def begin(self, stream_id: bytes, preamble: bytes, base: Base | None, *pieces: bytes) -> None:
        """Put a file in the place of a log's, all or nothing: with these records after its beginning or base."""
        head = preamble if base is None else preamble + base.to_bytes()
        self.folder.append(log_file(stream_id), 0, head, *pieces)
        self._bases[stream_id] = base

    def append(self, stream_id: bytes, offset: int, *pieces: bytes) -> None:
        """Write records at an offset, cutting off what is beyond it; the last piece when the others are durable."""
        self.folder.append(log_file(stream_id), offset + self._shift(stream_id), *pieces)

    def trim(self, stream_id: bytes, preamble: bytes, base: Base) -> None:
        """Drop what stands before a place in the log, all or nothing."""
        self.begin(stream_id, preamble, base, self.read(stream_id, base.end.length))

    def remove(self, stream_id: bytes) -> None:
        """Remove a log's file."""
        self.folder.remove(log_file(stream_id))
        self._bases.pop(stream_id, None)

    def _shift(self, stream_id: bytes) -> int:
        base = self.base(stream_id)
        return 0 if base is None else PREAMBLE_SIZE + BASE_SIZE - base.end.length
