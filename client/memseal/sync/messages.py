"""Requests to a remote and its answers, whatever carries them (sync-protocol §2)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from memseal.format.log import End


@dataclass(frozen=True)
class GetHeads:
    """Where everything ends that the remote has."""


@dataclass(frozen=True)
class GetKeyring:
    """One keyring version, or the newest (None); `public`: without its sealed part."""

    version: int | None
    public: bool = False


@dataclass(frozen=True)
class PutKeyring:
    """Store a keyring version, if it is the next; `refill`: a remote that lost it gets it back, perhaps stripped."""

    version: int
    content: bytes
    refill: bool = False


@dataclass(frozen=True)
class GetLog:
    """The bytes of a log from an offset on, as many as the remote gives at once, at most `limit`."""

    stream_id: bytes
    start: int
    limit: int


@dataclass(frozen=True)
class PutSegment:
    """Store a segment, if it is the next; `refill`: it is another device's, or of an earlier epoch."""

    stream_id: bytes
    number: int
    content: bytes
    refill: bool


Shelf: TypeAlias = Literal["checkpoints", "parts"]
"""Where a remote keeps manifests and parts."""


def objects_of(checkpoint: bytes, parts: Iterable[bytes]) -> list[tuple[Shelf, bytes]]:
    """Return the objects of a checkpoint in the order in which they are put: the manifest last."""
    shelved: list[tuple[Shelf, bytes]] = [("parts", part_id) for part_id in parts]
    return [*shelved, ("checkpoints", checkpoint)]


@dataclass(frozen=True)
class GetObject:
    """The bytes of a checkpoint's manifest, or of a part, from an offset on, as many as the remote gives at once."""

    shelf: Shelf
    object_id: bytes
    start: int = 0


@dataclass(frozen=True)
class PutObject:
    """Store a checkpoint's manifest, or a part."""

    shelf: Shelf
    object_id: bytes
    content: bytes


Request: TypeAlias = GetHeads | GetKeyring | PutKeyring | GetLog | PutSegment | GetObject | PutObject


@dataclass(frozen=True)
class RemoteLog:
    """Where a log ends on the remote, and the number of its next segment."""

    end: End
    next: int


@dataclass(frozen=True)
class Heads:
    """All that a remote has; `keyring` is None where the remote carries none (a folder).

    `whole` is False where the newest version's sealed part is missing there, `floor_whole` where something of its
    floor's checkpoint is. `carried` is the newest version, and its digest, that a folder carries whole; `untidy`: it
    still has what that version makes needless; `moving`: it has something of a newer one, which is not whole.
    """

    keyring: tuple[int, bytes] | None
    logs: Mapping[bytes, RemoteLog]
    whole: bool = True
    floor_whole: bool = True
    carried: tuple[int, bytes] | None = None
    untidy: bool = False
    moving: bool = False


@dataclass(frozen=True)
class Absent:
    """The remote does not have this vault."""


@dataclass(frozen=True)
class Content:
    """Bytes that were asked for, perhaps not all of them; `total`: the whole object's length, where it is known."""

    content: bytes
    total: int | None = None


@dataclass(frozen=True)
class Stored:
    """What was put is durable on the remote."""


@dataclass(frozen=True)
class Refused:
    """The remote did not do it: a code of `format-spec/errors.md`, the HTTP status (0: none), and its words."""

    code: str
    status: int
    detail: str
    retry_after_seconds: float = 0.0


Answer: TypeAlias = Heads | Absent | Content | Stored | Refused
