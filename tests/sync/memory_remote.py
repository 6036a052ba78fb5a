"""A remote in memory that keeps the rules of the sync protocol, and breaks connections when told to."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

import pytest

from memseal.errors import FormatError, RemoteUnreachable
from memseal.format.acceptance import accept, is_join
from memseal.format.content import chain_next, chain_start
from memseal.format.floor import Floor, Row
from memseal.format.keyring import DeviceEntry, KeyringVersion, decode_version
from memseal.format.keys import SigningKey
from memseal.format.log import End
from memseal.format.preamble import PREAMBLE_SIZE, Kind, Preamble, decode_preamble, stream_id_of
from memseal.format.primitives import public_signing_key, sha256
from memseal.format.records import places
from memseal.format.segment import FIRST, decode_segment
from memseal.sync.messages import (
    Absent,
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
    RemoteLog,
    Request,
    Shelf,
    Stored,
    objects_of,
)
from memseal.transport import Transport
from memseal.vault.remote import syncing

ADDRESS = "memory:"
ANSWER_LIMIT = 8 << 20  # sync-protocol §2: what a remote gives at once, whatever was asked for


class Break(Enum):
    """When a connection breaks: before the remote did what it was asked to, or before its answer came."""

    BEFORE = "before"
    AFTER = "after"


@dataclass
class StoredLog:
    """A log as a remote has it: its segments' pieces from number `first` on, where they start, and where it ends."""

    pieces: list[bytes] = field(default_factory=list[bytes])
    end: End = FIRST
    first: int = 0
    start: End = FIRST

    @property
    def next(self) -> int:
        return self.first + len(self.pieces)

    def content(self) -> bytes:
        return b"".join(self.pieces)

    def cut_at(self, row: Row) -> None:
        """Forget the segments below a floor's row."""
        while self.pieces and self.first < row.segment:
            self.pieces.pop(0)
            self.first += 1
        self.start = row.end
        if not self.pieces:
            self.first, self.end = row.segment, row.end


@dataclass
class MemoryRemote:
    """One vault on a server."""

    versions: list[KeyringVersion] = field(default_factory=list[KeyringVersion])
    logs: dict[bytes, StoredLog] = field(default_factory=dict[bytes, StoredLog])
    objects: dict[tuple[Shelf, bytes], bytes] = field(default_factory=dict[tuple[Shelf, bytes], bytes])
    """Manifests and parts."""
    answer_limit: int = ANSWER_LIMIT
    requests: list[Request] = field(default_factory=list[Request])
    breaks: dict[int, Break] = field(default_factory=dict[int, Break])
    """Which of the coming requests (0: the next) end without an answer."""
    lie: Callable[[Request, Answer], Answer] = lambda request, answer: answer
    """What the remote says instead of its answer."""
    before: Callable[[Request], None] = lambda request: None
    """What happens just before a request arrives."""

    def copy(self) -> "MemoryRemote":
        """Return another remote with the same objects: a backup."""
        logs = {
            stream_id: StoredLog(list(log.pieces), log.end, log.first, log.start)
            for stream_id, log in self.logs.items()
        }
        return MemoryRemote(list(self.versions), logs, dict(self.objects), self.answer_limit)

    @contextmanager
    def connected(self) -> Generator[None]:
        """Let vaults reach this remote under `ADDRESS`."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(syncing, "open_transport", self._open)
            yield

    def _open(self, address: str, vault_id: bytes, key: SigningKey, invitation: str | None = None) -> Transport:
        assert address == ADDRESS
        return MemoryTransport(self, vault_id, public_signing_key(key))

    def exchange(self, request: Request, vault_id: bytes, key: bytes) -> Answer:
        """Answer a request, unless its connection is to break."""
        moment = self.breaks.pop(0, None)
        self.breaks = {number - 1: each for number, each in self.breaks.items()}
        if moment is Break.BEFORE:
            raise RemoteUnreachable("broken off before the request arrived")
        self.before(request)
        self.requests.append(request)
        answer = self.lie(request, self._answer(request, vault_id, key))
        if moment is Break.AFTER:
            raise RemoteUnreachable("broken off before the answer came")
        return answer

    # ── what a server does ──────────────────────────────────────────────────────────────────────────

    def _answer(self, request: Request, vault_id: bytes, key: bytes) -> Answer:
        if not self.versions:
            first = isinstance(request, PutKeyring) and request.version == 1
            return self._put_keyring(request, vault_id) if first and isinstance(request, PutKeyring) else Absent()
        refusal = self._refusal(request, key)
        if refusal is not None:
            return refusal
        match request:
            case GetHeads():
                return self._heads()
            case GetKeyring(version, public):
                return self._keyring(version, public)
            case PutKeyring():
                return self._put_keyring(request, vault_id)
            case GetLog(stream_id, start, limit):
                return self._log(stream_id, start, min(limit, self.answer_limit))
            case PutSegment():
                return self._put_segment(request, vault_id, key)
            case GetObject(shelf, object_id):
                there = self.objects.get((shelf, object_id))
                return Refused("not_found", 404, "no such object") if there is None else Content(there)
            case PutObject(shelf, object_id, content):
                there = self.objects.setdefault((shelf, object_id), content)
                return Stored() if there == content else Refused("object_conflict", 409, "other bytes are there")

    # ── floors ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def _floor(self) -> Floor | None:
        return self.versions[-1].public.floor

    def _has_checkpoint(self, floor: Floor) -> bool:
        return all(each in self.objects for each in objects_of(floor.checkpoint, floor.parts))

    def _floor_refusal(self, floor: Floor) -> Refused | None:
        """Return what sync-protocol §4 says of a new floor, or None."""
        manifest = self.objects.get(("checkpoints", floor.checkpoint))
        if manifest is None or sha256(manifest) != floor.digest or not self._has_checkpoint(floor):
            return Refused("floor_unmet", 409, "the checkpoint is not here")
        for stream_id, row in floor.rows.items():
            log = self.logs.get(stream_id, StoredLog())
            if (log.next, log.end) != (row.segment, row.end) and row != self._row(stream_id):
                return Refused("floor_unmet", 409, "a row is not where a log's segment ends")
        return None

    def _row(self, stream_id: bytes) -> Row | None:
        return None if self._floor is None else self._floor.rows.get(stream_id)

    def _sweep(self) -> None:
        """Delete what the newest floor makes needless."""
        floor = self._floor
        if floor is None:
            return
        for stream_id, row in floor.rows.items():
            self.logs.setdefault(stream_id, StoredLog()).cut_at(row)
        kept = set(objects_of(floor.checkpoint, floor.parts))
        for earlier in (version.public.floor for version in self.versions[:-1]):
            for each in () if earlier is None else objects_of(earlier.checkpoint, earlier.parts):
                if each not in kept:
                    self.objects.pop(each, None)

    def _refusal(self, request: Request, key: bytes) -> Refused | None:
        """Return what sync-protocol §3 says of a key, or None where it may do this."""
        public = self.versions[-1].public
        if any(entry.sign == key for entry in public.active()) or (isinstance(request, PutKeyring) and request.refill):
            return None
        if public.entry_of(key) is not None:
            return Refused("key_ended", 401, "ended")
        if key == public.epoch_key:
            joins = isinstance(request, PutKeyring) and is_join(public, decode_version(request.content).public)
            reads = isinstance(request, GetHeads | GetKeyring | GetLog | GetObject)
            return None if joins or reads else Refused("key_forbidden", 403, "not with the epoch key")
        if key in {opener.request for opener in (public.kit, public.recovery) if opener is not None}:
            return None if isinstance(request, GetKeyring) else Refused("key_forbidden", 403, "only the keyring")
        return Refused("key_unknown", 401, "unknown")

    def _heads(self) -> Heads:
        newest = self.versions[-1]
        logs = {stream_id: RemoteLog(log.end, log.next) for stream_id, log in self.logs.items()}
        floor_whole = self._floor is None or self._has_checkpoint(self._floor)
        return Heads((newest.public.version, newest.digest), logs, floor_whole=floor_whole)

    def _keyring(self, version: int | None, public: bool) -> Answer:
        number = len(self.versions) if version is None else version
        if not 1 <= number <= len(self.versions):
            return Refused("not_found", 404, "no such version")
        found = self.versions[number - 1]
        return Content(found.stripped() if public else found.content)

    def _put_keyring(self, request: PutKeyring, vault_id: bytes) -> Answer:
        if request.version <= len(self.versions):
            there = self.versions[request.version - 1]
            same = request.content in (there.content, there.stripped())
            return Stored() if same else Refused("keyring_conflict", 409, "another is there")
        if request.version != len(self.versions) + 1:
            return Refused("keyring_conflict", 409, "not the next")
        try:
            version = decode_version(request.content, vault_id)
            accept(self.versions[-1] if self.versions else None, version)
        except FormatError as error:
            return Refused(error.code, 422, str(error))
        if version.boxes is None and not request.refill:
            return Refused("keyring_malformed", 422, "stripped")
        floor = version.public.floor
        if floor is not None and self.versions and floor != self._floor and not request.refill:
            refusal = self._floor_refusal(floor)
            if refusal is not None:
                return refusal
        self.versions.append(version)
        self._sweep()
        return Stored()

    def _log(self, stream_id: bytes, start: int, limit: int) -> Answer:
        if stream_id not in self.logs:
            return Refused("not_found", 404, "no such log")
        log = self.logs[stream_id]
        content, start = log.content(), start - log.start.length
        if start < 0:
            return Refused("below_floor", 410, "the checkpoint holds it")
        if start > len(content):
            return Refused("log_range", 416, "beyond the end")
        return Content(content[start : start + limit])

    def _put_segment(self, request: PutSegment, vault_id: bytes, key: bytes) -> Answer:
        log = self.logs.get(request.stream_id, StoredLog())
        segment = decode_segment(request.content)
        if request.number < log.first:
            return Refused("below_floor", 410, "below the floor")
        if request.number < log.next:
            same = log.pieces[request.number - log.first] == segment.piece
            return Stored() if same else Refused("segment_conflict", 409, "other bytes are there")
        if request.number != log.next or segment.start != log.end:
            return Refused("segment_order", 409, "does not continue the log")
        row = self._row(request.stream_id)
        opening = log.pieces[0] if log.pieces else segment.piece
        if row is not None:
            opening = Preamble(Kind.LOG, row.epoch, vault_id, request.stream_id, row.nonce).to_bytes()
        end = _end_of(segment.start, segment.piece)
        refusal = self._stream_refusal(opening[:PREAMBLE_SIZE], request, vault_id, key, end)
        if refusal is not None:
            return refusal
        log.pieces.append(segment.piece)
        log.end = end
        self.logs[request.stream_id] = log
        return Stored()

    def _stream_refusal(
        self, preamble: bytes, request: PutSegment, vault_id: bytes, key: bytes, end: End
    ) -> Refused | None:
        """Return what sync-protocol §4 says of a segment's stream, or None."""
        parsed, public = decode_preamble(preamble, Kind.LOG, vault_id), self.versions[-1].public
        owner = self._owner(parsed.nonce, request.stream_id, vault_id)
        epoch_digest = next(each.digest for each in self.versions if each.public.epoch == parsed.epoch)
        if owner is None or parsed.stream_id != request.stream_id or parsed.nonce[:8] != epoch_digest[:8]:
            return Refused("segment_invalid", 422, "no log of this vault")
        if owner.ended is not None and end.length > owner.ended.streams.get(request.stream_id, FIRST).length:
            return Refused("stream_ended", 409, "beyond the end of its owner")
        if parsed.epoch < public.epoch and not request.refill:
            return Refused("epoch_ended", 409, "of an earlier epoch")
        if owner.sign != key and not request.refill:
            return Refused("key_forbidden", 403, "another device's")
        return None

    def _owner(self, nonce: bytes, stream_id: bytes, vault_id: bytes) -> DeviceEntry | None:
        entries = self.versions[-1].public.devices
        return next((each for each in entries if stream_id_of(vault_id, each.sign, nonce) == stream_id), None)


def _end_of(start: End, piece: bytes) -> End:
    offset, chain = 0, start.chain
    if start == FIRST:
        offset, chain = PREAMBLE_SIZE, chain_start(piece[:PREAMBLE_SIZE])
    found = places(memoryview(piece), offset, start.records)
    for place in found:
        chain = chain_next(chain, piece[place.offset : place.end])
    return End(start.length + len(piece), start.records + len(found), chain)


@dataclass
class MemoryTransport:
    """The way of one key to the remote."""

    remote: MemoryRemote
    vault_id: bytes
    key: bytes
    address: str = ADDRESS
    carries_keys: bool = True

    def send(self, request: Request) -> Answer:
        return self.remote.exchange(request, self.vault_id, self.key)

    def close(self) -> None:
        """Do nothing."""
