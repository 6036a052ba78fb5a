"""A plain folder as a remote: a USB stick, or one that another program synchronises (sync-protocol §7)."""

from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path

from memseal.errors import RemoteUnreachable
from memseal.format.floor import Floor, Row
from memseal.format.keyring import decode_version
from memseal.format.primitives import sha256
from memseal.sync.messages import (
    Answer,
    Content,
    GetHeads,
    GetKeyring,
    GetLog,
    GetObject,
    Heads,
    PutKeyring,
    PutObject,
    PutSegment,
    Refused,
    Request,
    Shelf,
    Stored,
    objects_of,
)
from memseal.transport import Heard
from memseal.transport.folder_files import Files, add, read
from memseal.transport.folder_keys import FolderKeys
from memseal.transport.folder_logs import FolderLogs

_SHELVES: tuple[Shelf, ...] = ("checkpoints", "parts")


class FolderTransport:
    """Objects as files below `<folder>/<vault id>`, laid out as in a bucket; an existing name is never replaced."""

    carries_keys = False

    def __init__(self, folder: Path, vault_id: bytes, files: Files) -> None:
        """Take the folder, which must be there, and the vault."""
        self.address = str(folder)
        self._folder, self._files, self._vault_id = folder, files, vault_id
        self._root = folder / vault_id.hex()
        self._keys = FolderKeys(self._root, vault_id, files)
        self._logs = FolderLogs(self._root / "logs", files)
        self._rows: Mapping[bytes, Row] = {}
        """As the newest version here says when the heads are asked for, which every round begins with."""
        self._check()

    def send(self, request: Request) -> Answer:
        """Carry out a request on the folder."""
        self._check()
        match request:
            case GetHeads():
                return self._heads()
            case GetLog(stream_id, start, limit):
                return self._logs.read(stream_id, start, limit, self._rows.get(stream_id))
            case PutSegment(stream_id, number, content, _):
                return self._logs.store(stream_id, number, content, self._rows.get(stream_id))
            case GetObject(shelf, object_id, start):
                return self._object(shelf, object_id, start)
            case PutObject(shelf, object_id, content):
                if not self._has(shelf, object_id):
                    add(self._files, self._root / shelf, object_id.hex(), content)
                return Stored()
            case GetKeyring(version, _):
                found = None if version is None else self._keys.read(version)
                return Refused("not_found", 0, "the folder does not carry this") if found is None else Content(found)
            case PutKeyring(_, content, _):
                return self._put_version(content)

    def listen(self, tag: str, seconds: int) -> Future[Heard]:
        """Answer at once: a folder cannot say when it changes."""
        self._check()
        heard, seen = Future[Heard](), self._tag()
        heard.set_result(Heard(None if seen == tag else self._heads(), seen))
        return heard

    def break_off(self) -> None:
        """Do nothing: nothing here waits."""

    def close(self) -> None:
        """Do nothing: nothing is held open."""

    def _check(self) -> None:
        try:
            there = self._folder.is_dir()
        except OSError as error:  # a name that is too long, or a folder above that may not be entered
            reason = error.strerror or type(error).__name__
            raise RemoteUnreachable(f"the folder cannot be looked at ({reason}): check its path and rights") from error
        if not there:
            raise RemoteUnreachable(f"the folder {self._folder} is not there: is the drive connected?")

    def _tag(self) -> str:
        """Return what changes with each file that comes or goes."""
        shelves = [(shelf, self._files.names(self._root / shelf)) for shelf in _SHELVES]
        return sha256(repr((self._keys.names(), shelves, list(self._logs.names()))).encode()).hex()

    def _heads(self) -> Heads:
        newest = self._keys.newest()
        floor = None if newest is None else newest.public.floor
        self._rows = {} if floor is None else floor.rows
        return Heads(
            keyring=None,
            logs=self._logs.ends(self._rows),
            floor_whole=floor is None or self._has_all(floor),
            carried=None if newest is None else (newest.public.version, newest.digest),
            moving=self._keys.highest() > (0 if newest is None else newest.public.version),
            untidy=newest is not None and bool(self._needless(newest.public.version, floor)),
        )

    def _object(self, shelf: Shelf, object_id: bytes, start: int) -> Answer:
        path = self._root / shelf / object_id.hex()
        content, size = read(self._files, path, start), self._files.size(path)
        if content is None or size is None:
            return Refused("not_found", 0, "the folder does not carry this")
        return Content(content, size)

    def _has(self, shelf: Shelf, object_id: bytes) -> bool:
        return bool(self._files.size(self._root / shelf / object_id.hex()))

    def _has_all(self, floor: Floor) -> bool:
        return all(self._has(*each) for each in objects_of(floor.checkpoint, floor.parts))

    def _put_version(self, content: bytes) -> Answer:
        """Add a version that the device has accepted, and remove what it makes needless where it is the newest here."""
        if not self._keys.put(content):
            return Refused("keyring_conflict", 0, "the folder carries another keyring version of this number")
        version, newest = decode_version(content, self._vault_id), self._keys.newest()
        if newest is not None and newest.digest == version.digest:
            for path in self._needless(version.public.version, version.public.floor):
                self._files.remove(path)
        return Stored()

    def _needless(self, number: int, floor: Floor | None) -> list[Path]:
        """Return what a keyring version makes needless: nothing that its checkpoint holds, before that is here."""
        needless = self._keys.older_sealed(number)
        if floor is None or not self._has_all(floor):
            return needless
        named = {(shelf, object_id.hex()) for shelf, object_id in objects_of(floor.checkpoint, floor.parts)}
        for shelf in _SHELVES:
            names = self._files.names(self._root / shelf)
            needless += [self._root / shelf / name for name in names if _is_id(name) and (shelf, name) not in named]
        return needless + self._logs.below(floor.rows)


def _is_id(name: str) -> bool:
    return len(name) == 32 and all(digit in "0123456789abcdef" for digit in name)
