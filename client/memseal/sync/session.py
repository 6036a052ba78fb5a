"""One round of synchronisation (sync-protocol §6): decides which request is next and takes in the answers."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Protocol, TypeAlias, TypeVar

from memseal.errors import (
    Finding,
    FormatError,
    KeyringForked,
    RemoteAnswer,
    RemoteRefused,
    RemoteUnreachable,
    RolledBack,
)
from memseal.format.floor import Floor
from memseal.format.log import End
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

PULL_LIMIT = 8 << 20
"""Bytes asked for at once, as many as a server gives; of a larger record the pieces are held until it is whole."""
# Of a log at once while it goes well: the next piece comes while this one is checked, and one fsync is worth it.
_PIECE = 4 << 20
HELD_MOST = (64 << 20) + PULL_LIMIT
"""More than any record or object takes: what grows beyond it is never whole."""
# Another device can push between our look and our put; each look shows its progress, so few are needed.
_LOOKS = 8
# A process with an older view, or a listing that was no snapshot, shows less for a moment: so often it is looked again.
_LOOKS_AGAIN = 2
# What a log of a keyring version meets that the remote had not shown yet.
_AHEAD = frozenset(("keyring_behind", "stream_mismatch"))
_OTHER_HISTORY = (
    "the remote has another history of this log: it is left alone, and nothing is lost here. The device that writes it"
    " was copied or put back, or the remote replaced it: that device's next synchronisation tells which"
)
_FORKED = (
    "the server's keyring took another way than the one here: it was put back, then changed. Nothing is lost here:"
    " sync with --accept-rollback to join both"
)
_OTHER_KEYRING = "the folder carries another keyring than this device has: sync with the server, which decides"
_RACES = frozenset(("segment_conflict", "segment_order", "epoch_ended", "stream_ended", "below_floor"))


@dataclass(frozen=True)
class LocalLog:
    """A log as this device has it; `mine`: this device writes it under the present epoch."""

    end: End
    mine: bool


@dataclass(frozen=True)
class Seen:
    """What this remote showed before: the keyring version (0: never seen), and the end of each log."""

    keyring: int = 0
    logs: Mapping[bytes, End] = field(default_factory=dict[bytes, End])


Wanted = TypeVar("Wanted", Heads, Content, Stored)
Result = TypeVar("Result")
Steps: TypeAlias = Generator[Request, Answer, Result]
_Following: TypeAlias = tuple[bytes, End] | None


class Replica(Protocol):
    """This device's copy of the vault; what it accepts it has checked, and stored durably."""

    def keyring_version(self) -> int:
        """Return the number of the newest keyring version here."""
        ...

    def keyring_digest(self) -> bytes:
        """Return its digest."""
        ...

    def keyring_content(self, version: int) -> bytes:
        """Return a version's bytes, as whole as they are here."""
        ...

    def is_other(self, version: int, content: bytes) -> bool:
        """Return whether this is another version than the one here under this number; raises `FormatError`."""
        ...

    def accept_keyring(self, content: bytes) -> None:
        """Take the next version; raises `FormatError` where it is not accepted."""
        ...

    def forget_held(self) -> None:
        """Let go of versions that were taken in part, and count with the newest whole one again."""
        ...

    def floor(self) -> Floor | None:
        """Return the newest version's floor."""
        ...

    def wanted_objects(self) -> Sequence[tuple[Shelf, bytes]]:
        """Return which objects of the floor's checkpoint are not here, or damaged: the manifest first."""
        ...

    def object_content(self, shelf: Shelf, object_id: bytes) -> bytes | None:
        """Return a manifest's or part's bytes, or None where it is not here."""
        ...

    def begun_object(self, shelf: Shelf, object_id: bytes) -> bytes:
        """Return what was kept of an object when fetching it broke off: unchecked, and nothing where there is none."""
        ...

    def keep_object(self, shelf: Shelf, object_id: bytes, start: int, piece: bytes) -> None:
        """Keep a piece of an object that is being fetched, so that it need not come again."""
        ...

    def take_object(self, shelf: Shelf, object_id: bytes, content: bytes) -> None:
        """Store a manifest or part durably; raises `FormatError` where it is not the one that the floor names."""
        ...

    def adopt_floor(self) -> None:
        """Apply the floor's checkpoint, where all of it is here and was not applied, and cut the logs at its rows."""
        ...

    def begins_at(self, stream_id: bytes) -> int:
        """Return the offset from which on a log's bytes are here."""
        ...

    def logs(self) -> Mapping[bytes, LocalLog]:
        """Return all logs that can be read here."""
        ...

    def misses_some(self) -> bool:
        """Return whether a log here names records of another that are not here."""
        ...

    def wanted_from(self, stream_id: bytes) -> int:
        """Return the offset from which on a remote's bytes of a log are wanted."""
        ...

    def extend(self, stream_id: bytes, content: bytes) -> int:
        """Take bytes of a log from there on, and return the new offset; raises `FormatError`."""
        ...

    def damaged_from(self, stream_id: bytes, there: int) -> int | None:
        """Return from where on a log is to be fetched again, if it is damaged here and a remote has as much of it."""
        ...

    def mend(self, stream_id: bytes, content: bytes) -> None:
        """Take what a remote has from there on, if it is better."""
        ...

    def fork_from(self, stream_id: bytes, common: End | None) -> End | None:
        """Return from where on an own log could be another one on a remote; None for logs of other devices."""
        ...

    def heal_fork(self, stream_id: bytes, common: End, content: bytes) -> bool:
        """Go on in a fresh stream, if a remote's bytes after `common` prove that an own log was forked there."""
        ...

    def end_at(self, stream_id: bytes, length: int) -> End | None:
        """Return where the log here stands at a length, or None where no record ends there."""
        ...

    def next_segment(self, stream_id: bytes, start: End | None) -> tuple[bytes, End] | None:
        """Return the segment after a place (None: the beginning) and where it ends, or None at the end of the log."""
        ...

    def settle_epoch(self, there: Mapping[bytes, End]) -> None:
        """Write again under the present epoch what was written under an earlier one and no remote has."""
        ...


@dataclass(frozen=True)
class Outcome:
    """What one round did: bytes and segments moved, findings, and what the remote has now."""

    pulled_bytes: int
    pushed_bytes: int
    findings: Sequence[Finding]
    seen: Seen


class SyncSession:
    """Give out requests with `next_request` and take answers with `receive`, until there is none; then `outcome`."""

    def __init__(self, replica: Replica, seen: Seen, *, accept_rollback: bool = False) -> None:
        """Take this device's copy, what the remote showed before, and whether the user accepts that it shows less."""
        self._replica = replica
        self._seen = seen
        self._accept_rollback = accept_rollback
        self._pulled = 0
        self._pushed = 0
        self._findings = list[Finding]()
        self._healed = set[bytes]()
        self._stored = dict[bytes, End]()
        self._refused = dict[bytes, tuple[str, str]]()
        self._ahead: Callable[[], Request | None] | None = None
        self._steps = self._run()
        self._request: Request | None = next(self._steps)

    def next_request(self) -> Request | None:
        """Return the request to carry, or None at the end."""
        return self._request

    @property
    def ahead(self) -> Callable[[], Request | None] | None:
        """What gives the request after the last one, which may be sent before that is answered; None: it depends."""
        return self._ahead

    def receive(self, answer: Answer) -> None:
        """Take the answer to the last request; raises what the round ends with, if it ends badly."""
        self._ahead = None
        try:
            self._request = self._steps.send(answer)
        except StopIteration:
            self._request = None

    def outcome(self) -> Outcome:
        """Return what was done, after the last answer."""
        return Outcome(self._pulled, self._pushed, tuple(self._findings), self._seen)

    # ── the round ───────────────────────────────────────────────────────────────────────────────────

    def _run(self) -> Steps[None]:
        heads = yield from self._register()
        heads = yield from self._look_again(heads)
        heads = yield from self._follow(heads)
        self._check_rollback(heads)
        race: Refused | None = None
        for _ in range(_LOOKS):
            self._replica.settle_epoch({stream_id: each.end for stream_id, each in heads.logs.items()})
            race = yield from self._push_all(heads)
            if race is None:
                break
            heads = yield from self._follow((yield from self._look()))
        if race is not None:
            raise RemoteRefused(race.code, race.status, race.detail)
        if heads.untidy and heads.carried == (self._replica.keyring_version(), self._replica.keyring_digest()):
            yield from self._carry(self._replica.keyring_version())
        self._remember(heads)

    def _follow(self, heads: Heads) -> Steps[Heads]:
        """Take over what the remote has more: keyring, checkpoint, logs; returns the heads that were followed."""
        misses = False
        for _ in range(_LOOKS):
            yield from self._follow_keyring(heads)
            heads = yield from self._follow_floor(heads)
            refused = list[bytes]()
            for stream_id, there in heads.logs.items():
                refused += [stream_id] if (yield from self._pull(stream_id, there)) else []
            if not refused and not (misses := self._replica.misses_some() and not misses):
                break
            heads = more_of(heads, (yield from self._look()))
            if refused and (heads.keyring is None or heads.keyring[0] <= self._replica.keyring_version()):
                self._note_refused(refused)
                break
            # Another device raised the floor meanwhile, or the logs were looked at earlier than those that name them.
        return heads

    def _register(self) -> Steps[Heads]:
        """Look at what is there; put the keyring where the remote does not have this vault."""
        for _ in range(_LOOKS_AGAIN if self._seen.keyring else 0):
            answer = yield GetHeads()
            if not is_unknown(answer):
                return expect(answer, Heads)
        answer = yield GetHeads()
        if not isinstance(answer, Absent) and not (self._seen.keyring and is_unknown(answer)):
            return expect(answer, Heads)
        if self._seen.keyring and not self._accept_rollback:
            what = "this vault" if isinstance(answer, Absent) else "the keys of this device"
            raise RolledBack(
                f"the server does not have {what} any more; nothing is lost here:"
                " sync with --accept-rollback to put everything back"
            )
        for version in range(1, self._replica.keyring_version() + 1):
            yield from self._put_keyring(version)
        return (yield from self._look())

    def _look_again(self, heads: Heads) -> Steps[Heads]:
        """Look again where the remote shows less than before, and return the most that it showed."""
        for _ in range(0 if self._accept_rollback else _LOOKS_AGAIN):
            if not self._shows_less(heads):
                break
            heads = more_of(heads, (yield from self._look()))
        return heads

    def _shows_less(self, heads: Heads) -> bool:
        keyring = self._seen.keyring if heads.keyring is None else heads.keyring[0]
        return keyring < self._seen.keyring or any(
            stream_id not in heads.logs or heads.logs[stream_id].end.length < mark.length
            for stream_id, mark in self._seen.logs.items()
        )

    def _look(self) -> Steps[Heads]:
        return expect((yield GetHeads()), Heads)

    def _put_keyring(self, version: int) -> Steps[None]:
        # A vault's first version is put by who made it. Where there are more, older ones are stripped by now, and this
        # device may not be in them yet: they are put back, and prove themselves.
        refill = self._replica.keyring_version() > 1 or self._seen.keyring > 0
        answer = yield PutKeyring(version, self._replica.keyring_content(version), refill)
        if refill and isinstance(answer, Refused) and answer.code in ("keyring_conflict", "keyring_chain"):
            raise KeyringForked(_FORKED)
        expect(answer, Stored)

    def _follow_keyring(self, heads: Heads) -> Steps[None]:
        if heads.keyring is None:
            return
        there, digest = heads.keyring
        for version in range(self._replica.keyring_version() + 1, there + 1):
            answer = expect((yield GetKeyring(version)), Content)
            try:
                self._replica.accept_keyring(answer.content)
            except FormatError as error:
                if error.code == "keyring_chain" and (yield from self._shows_other(self._replica.keyring_version())):
                    raise KeyringForked(_FORKED) from error
                raise
        here = self._replica.keyring_version()
        if here == there and digest != self._replica.keyring_digest():
            raise KeyringForked(_FORKED)
        if here == there and not heads.whole:
            # It was put back by somebody who had it in part: no device could join, or learn of the new epoch.
            yield from self._put_keyring(here)
        if here > there:
            if there and (yield from self._shows_other(there)):
                raise KeyringForked(_FORKED)
            if there < self._seen.keyring and not self._accept_rollback:
                raise RolledBack(
                    "the server shows an older keyring than before; nothing is lost here:"
                    " sync with --accept-rollback to put the newer one back"
                )
            for version in range(there + 1, here + 1):
                yield from self._put_keyring(version)

    def _shows_other(self, version: int) -> Steps[bool]:
        """Return whether the remote can show another keyring version under a number than the one here."""
        answer = yield GetKeyring(version, public=True)
        return isinstance(answer, Content) and self._replica.is_other(version, answer.content)

    def _follow_floor(self, heads: Heads) -> Steps[Heads]:
        """Fetch what is wanted of the floor's checkpoint and take it over, or put back what the remote lost of it."""
        if heads.keyring is None:
            return (yield from self._follow_carried(heads))
        floor = self._replica.floor()
        if floor is None:
            return heads
        if heads.keyring[0] < self._replica.keyring_version():
            heads = yield from self._look()  # the remote's keyring was put back, and its floor with it
        if not (yield from self._fetch_objects()):
            return heads
        if not heads.floor_whole:
            for shelf, object_id in objects_of(floor.checkpoint, floor.parts):
                yield from self._put_object(shelf, object_id)
        self._replica.adopt_floor()
        return heads

    def _follow_carried(self, heads: Heads) -> Steps[Heads]:
        """Take over what a folder carries of keyring and checkpoint, if it is accepted, and put what it lacks."""
        yield from self._take_carried(0 if heads.carried is None else heads.carried[0])
        here = (self._replica.keyring_version(), self._replica.keyring_digest())
        if heads.carried is None or heads.carried[0] < here[0]:
            for version in range(1, here[0] + 1):
                if not (yield from self._carry(version)):
                    return heads
            heads = yield from self._look()
        if heads.carried is not None and heads.carried[0] == here[0] and heads.carried != here:
            self._note_carried("keyring_forked", _OTHER_KEYRING)
        floor = self._replica.floor()
        if heads.carried != here or floor is None:
            return heads
        if self._replica.wanted_objects():
            # Where the folder does not have it all yet it is on its way, here or there.
            if not heads.floor_whole or not (yield from self._fetch_objects()):
                return heads
        elif not heads.floor_whole:
            for shelf, object_id in objects_of(floor.checkpoint, floor.parts):
                yield from self._put_object(shelf, object_id)
            heads = yield from self._look()
        self._replica.adopt_floor()
        return heads

    def _take_carried(self, newest: int) -> Steps[None]:
        for version in range(self._replica.keyring_version() + 1, newest + 1):
            answer = yield GetKeyring(version)
            if not isinstance(answer, Content):
                break
            try:
                self._replica.accept_keyring(answer.content)
            except FormatError as error:
                self._note_carried(error.code, f"the folder carries a keyring version that does not count: {error}")
                break
        self._replica.forget_held()

    def _carry(self, version: int) -> Steps[bool]:
        """Put a keyring version into a folder, or let it remove what this one makes needless; False for a conflict."""
        answer = yield PutKeyring(version, self._replica.keyring_content(version), refill=True)
        if isinstance(answer, Refused) and answer.code == "keyring_conflict":
            self._note_carried("keyring_forked", _OTHER_KEYRING)
            return False
        expect(answer, Stored)
        return True

    def _note_carried(self, code: str, detail: str) -> None:
        finding = Finding(code, "keyring", detail)
        self._findings += [] if finding in self._findings else [finding]

    def _fetch_objects(self) -> Steps[bool]:
        """Fetch what is wanted of the floor's checkpoint; False where the remote does not give it all."""
        fetched = set[tuple[Shelf, bytes]]()
        # Again, for with the manifest it may show that a part which is here is not the one it names.
        while due := [each for each in self._replica.wanted_objects() if each not in fetched]:
            for shelf, object_id in due:
                if not (yield from self._fetch_object(shelf, object_id)):
                    return False
            fetched.update(due)
        return True

    def _fetch_object(self, shelf: Shelf, object_id: bytes) -> Steps[bool]:
        """Fetch a manifest or part; False, and a finding, where the remote does not give it as it must be."""
        code, detail = "checkpoint_missing", "the remote does not give the vault's checkpoint: sync again later"
        begun = self._replica.begun_object(shelf, object_id)
        # Once more from the beginning, where what was kept of an earlier round may be at fault.
        for kept in (begun, b"") if begun else (b"",):
            content = yield from self._fetch_pieces(shelf, object_id, kept)
            if content is None:
                continue
            try:
                self._replica.take_object(shelf, object_id, content)
            except FormatError as error:
                code, detail = error.code, str(error)
            else:
                return True
        finding = Finding(code, f"{shelf}/{object_id.hex()}.mseal", detail)
        self._findings += [] if finding in self._findings else [finding]
        return False

    def _fetch_pieces(self, shelf: Shelf, object_id: bytes, content: bytes) -> Steps[bytes | None]:
        """Return an object whose beginning is here; None where the remote does not give it. What comes is kept."""
        while True:
            answer = yield GetObject(shelf, object_id, len(content))
            if isinstance(answer, Refused):
                return None
            piece = expect(answer, Content)
            start, content = len(content), content + piece.content
            self._pulled += len(piece.content)
            if len(content) > HELD_MOST:
                raise RemoteAnswer("the remote gave more bytes than any object may have")
            if piece.total is None or not piece.content or len(content) >= piece.total:
                return content
            self._replica.keep_object(shelf, object_id, start, piece.content)

    def _put_object(self, shelf: Shelf, object_id: bytes) -> Steps[None]:
        content = self._replica.object_content(shelf, object_id)
        if content is not None:
            expect((yield PutObject(shelf, object_id, content)), Stored)
            self._pushed += len(content)

    def _check_rollback(self, heads: Heads) -> None:
        for stream_id, mark in self._seen.logs.items():
            there = heads.logs.get(stream_id)
            if (there is None or there.end.length < mark.length) and not self._accept_rollback:
                if heads.moving:
                    raise RemoteUnreachable("the folder is being copied and is not whole yet: try again later")
                what = "folder" if heads.keyring is None else "server"
                raise RolledBack(
                    f"the {what} shows less than it showed before; nothing is lost here:"
                    " sync with --accept-rollback to put it back"
                )

    # ── pulling ─────────────────────────────────────────────────────────────────────────────────────

    def _pull(self, stream_id: bytes, there: RemoteLog) -> Steps[bool]:
        """Fetch what a log has more than here; a log that cannot be taken is a finding, and the others go on.

        Returns whether it may be taken when the keyring was looked at again: the remote may have a newer one by now.
        """
        yield from self._mend(stream_id, there)
        held = b""  # what came and could not be taken yet: the beginning of a record, or of a write
        limit = _PIECE
        while (start := self._replica.wanted_from(stream_id)) + len(held) < there.end.length:
            came = start + len(held) + limit
            self._ahead = partial(GetLog, stream_id, came, _PIECE) if came < there.end.length else None
            answer = yield GetLog(stream_id, start + len(held), limit)
            if isinstance(answer, Refused):
                if answer.code == "below_floor":
                    detail = "the remote says that it has more of this log than it gives"
                    self._refused[stream_id] = ("withheld", detail)
                    return True
                self._note(answer.code, stream_id, answer.detail)
                return False
            content = expect(answer, Content).content
            if len(content) > limit:
                raise RemoteAnswer("the remote gave more bytes than were asked for")
            held += content
            try:
                now = self._replica.extend(stream_id, held)
            except FormatError as error:
                if error.code == "forked" and (yield from self._heal(stream_id)):
                    held = b""
                    continue
                self._refused[stream_id] = (error.code, str(error))
                if error.code in _AHEAD:
                    return True
                self._note(error.code, stream_id, str(error))
                return False
            self._pulled += len(content)
            if not content:
                self._note("withheld", stream_id, "the remote says that it has more of this log than it gives")
            if not content or len(held) > HELD_MOST:
                return False  # the remote has less than it says, or a record that can never be whole
            limit = PULL_LIMIT if now == start else _PIECE
            if now > start:
                # At the end it is looked at once more, alone.
                held = held[now - start :] if start + len(held) < there.end.length else b""
        if held:
            return False  # what is there is not whole or not signed yet: it waits
        here = self._replica.end_at(stream_id, there.end.length)
        if here == there.end or stream_id not in self._replica.logs():
            return False
        if there.end.length < self._replica.begins_at(stream_id):
            return False  # all that the remote has of it lies below the floor
        if (yield from self._heal(stream_id)):
            return (yield from self._pull(stream_id, there))
        self._note("forked", stream_id, _OTHER_HISTORY)
        return False

    def _note_refused(self, stream_ids: Sequence[bytes]) -> None:
        """Name what could not be taken, and why; what lies below a floor that came meanwhile is not missed."""
        floor = self._replica.floor()
        for stream_id in stream_ids:
            code, detail = self._refused[stream_id]
            row = None if floor is None else floor.rows.get(stream_id)
            if code != "withheld" or row is None or self._replica.wanted_from(stream_id) >= row.end.length:
                self._note(code, stream_id, detail)

    def _mend(self, stream_id: bytes, there: RemoteLog) -> Steps[None]:
        """Fetch again what could not be read here, where the remote has as much."""
        start = self._replica.damaged_from(stream_id, there.end.length)
        if start is None:
            return
        answer = yield GetLog(stream_id, start, PULL_LIMIT)
        if isinstance(answer, Content):
            self._pulled += len(answer.content)
            self._replica.mend(stream_id, answer.content)

    def _heal(self, stream_id: bytes) -> Steps[bool]:
        """Let an own log go on in a fresh stream where the remote can show another history of it, once.

        A claim is not enough: what it has after the last common place must have been sealed in this vault.
        """
        common = self._replica.fork_from(stream_id, self._seen.logs.get(stream_id))
        if stream_id in self._healed or common is None:
            return False
        self._healed.add(stream_id)
        answer = yield GetLog(stream_id, common.length, PULL_LIMIT)
        if not isinstance(answer, Content) or not self._replica.heal_fork(stream_id, common, answer.content):
            return False
        detail = "this device was copied or restored: what it had written alone was written again in a fresh log"
        self._note("forked", stream_id, detail)
        return True

    # ── pushing ─────────────────────────────────────────────────────────────────────────────────────

    def _push_all(self, heads: Heads) -> Steps[Refused | None]:
        """Put what the remote lacks; returns the refusal where another device was quicker, and a new look is needed."""
        for stream_id, local in self._replica.logs().items():
            there = heads.logs.get(stream_id)
            if there is not None and there.end.length >= local.end.length:
                continue
            race = yield from self._push(stream_id, local, there)
            if race is not None:
                return race
        return None

    def _push(self, stream_id: bytes, local: LocalLog, there: RemoteLog | None) -> Steps[Refused | None]:
        end, number = (None, 0) if there is None else (there.end, there.next)
        if self._replica.begins_at(stream_id) > (0 if end is None else end.length):
            detail = "the remote lacks what this device keeps only in the checkpoint: sync both with the server"
            self._note("below_floor", stream_id, detail)
            return None
        if end is not None and self._replica.end_at(stream_id, end.length) != end:
            self._note("forked", stream_id, _OTHER_HISTORY)
            return None
        following = self._segment_after(stream_id, local, end)
        while following is not None:
            segment, end = following
            after = cache(partial(self._segment_after, stream_id, local, end))
            if end.length < local.end.length:
                self._ahead = partial(self._put_next, stream_id, local, number + 1, after)
            answer = yield PutSegment(stream_id, number, segment, refill=not local.mine)
            if isinstance(answer, Refused) and answer.code in _RACES:
                return answer
            expect(answer, Stored)
            self._pushed += len(segment)
            self._stored[stream_id] = end
            following, number = after(), number + 1
        return None

    def _segment_after(self, stream_id: bytes, local: LocalLog, end: End | None) -> _Following:
        # What is written meanwhile goes with the next round.
        if end is not None and end.length >= local.end.length:
            return None
        return self._replica.next_segment(stream_id, end)

    def _put_next(
        self, stream_id: bytes, local: LocalLog, number: int, after: Callable[[], _Following]
    ) -> Request | None:
        following = after()
        return None if following is None else PutSegment(stream_id, number, following[0], refill=not local.mine)

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────

    def _remember(self, heads: Heads) -> None:
        """Keep what the remote has now, as far as it is the same here: what it only claims proves nothing later."""
        ends = {stream_id: end for stream_id, end in self._seen.logs.items() if stream_id in heads.logs}
        for stream_id in self._replica.logs():
            there = heads.logs.get(stream_id)
            end = self._stored.get(stream_id) or (there.end if there is not None else None)
            if end is not None and self._replica.end_at(stream_id, end.length) == end:
                ends[stream_id] = end
        version = self._replica.keyring_version() if heads.keyring is not None else 0
        self._seen = Seen(version, ends)

    def _note(self, code: str, stream_id: bytes, detail: str) -> None:
        finding = Finding(code, f"logs/{stream_id.hex()}.mseal", detail)
        if finding not in self._findings:
            self._findings.append(finding)


def is_unknown(answer: Answer) -> bool:
    """Return whether a remote answers as if it did not have the vault, or not the version that lists this device."""
    return isinstance(answer, Absent) or (isinstance(answer, Refused) and answer.code == "key_unknown")


def more_of(one: Heads, other: Heads) -> Heads:
    """Return the most that either of two looks showed: neither needs to be of one moment."""
    logs = dict(one.logs)
    for stream_id, log in other.logs.items():
        if stream_id not in logs or logs[stream_id].end.length < log.end.length:
            logs[stream_id] = log
    newer = one if one.keyring is not None and other.keyring is not None and one.keyring > other.keyring else other
    return replace(newer, logs=logs)


def expect(answer: Answer, kind: type[Wanted]) -> Wanted:
    """Return an answer of the kind that was asked for; raises `RemoteRefused` or `RemoteAnswer`."""
    if isinstance(answer, kind):
        return answer
    if isinstance(answer, Refused):
        raise RemoteRefused(answer.code, answer.status, answer.detail, answer.retry_after_seconds)
    raise RemoteAnswer("the remote answered something else than was asked for")
