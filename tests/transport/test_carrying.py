"""Requests that are sent before the one before them is answered: what arrives is the same."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memseal.errors import RemoteUnreachable
from memseal.sync import session
from memseal.sync.messages import Answer, GetLog, PutSegment, Request
from memseal.transport import Transport
from memseal.vault.remote import replica, syncing
from tests.sync.devices import Device, first_device, joined_device
from tests.sync.memory_remote import Break, MemoryRemote

# A record takes 1,108 bytes and more: a few fit.
SIZE = 4_000
COUNT = 20


@dataclass
class Sent:
    """A request to a remote in memory that is carried out at once, or when its answer is waited for."""

    exchange: Callable[[], Answer]
    early: bool
    dropped: list["Sent"]
    found: Answer | RemoteUnreachable | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.early:
            self._exchange()

    def answer(self) -> Answer:
        self._exchange()
        if isinstance(self.found, RemoteUnreachable):
            raise self.found
        assert self.found is not None
        return self.found

    def drop(self) -> None:
        self.dropped.append(self)

    def _exchange(self) -> None:
        try:
            self.found = self.found or self.exchange()
        except RemoteUnreachable as error:
            self.found = error


@dataclass
class AheadTransport:
    """The way to a remote in memory on which requests overlap; with `disorder` a later one arrives first."""

    inner: Transport
    disorder: bool
    begun: list[Request]
    dropped: list[Sent]

    @property
    def address(self) -> str:
        return self.inner.address

    @property
    def carries_keys(self) -> bool:
        return True

    def send(self, request: Request) -> Answer:
        return self.begin(request).answer()

    def begin(self, request: Request) -> Sent:
        self.begun.append(request)
        waits = self.disorder and isinstance(request, PutSegment) and request.number % 2 == 0
        return Sent(lambda: self.inner.send(request), not waits, self.dropped)

    def close(self) -> None:
        self.inner.close()


@dataclass
class World:
    """Two devices, of which one has much that the other lacks, and a remote."""

    remote: MemoryRemote
    one: Device
    two: Device
    disorder: bool = False
    begun: list[Request] = field(default_factory=list[Request])
    dropped: list[Sent] = field(default_factory=list[Sent])

    def of_kind(self, kind: type[PutSegment] | type[GetLog]) -> list[Request]:
        return [request for request in self.begun if isinstance(request, kind)]

    def contents(self, device: Device) -> list[str]:
        return sorted(memory.content for memory in device.vault.list(limit=10 * COUNT))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    remote = MemoryRemote()
    with remote.connected():
        one = first_device(tmp_path / "one")
        one.sync()
        two = joined_device(tmp_path / "two", remote, one.vault.emergency_kit)
        one.sync()
        found, inner = World(remote, one, two), syncing.open_transport
        for number in range(COUNT):
            one.vault.remember(f"memory {number}", source="test")

        def ahead(*arguments: object) -> AheadTransport:
            return AheadTransport(inner(*arguments), found.disorder, found.begun, found.dropped)  # type: ignore[arg-type]

        # Within the remote's own, so that they are undone in order.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(syncing, "open_transport", ahead)
            patch.setattr(replica, "SEGMENT_TARGET", SIZE)
            patch.setattr(session, "_PIECE", SIZE)
            yield found
        one.close()
        two.close()


def test_each_segment_is_put_once_and_each_piece_is_fetched_once(world: World) -> None:
    report = world.one.sync()
    puts = [request.number for request in world.of_kind(PutSegment) if isinstance(request, PutSegment)]
    assert puts == list(range(len(puts)))
    assert len(puts) > 3
    assert report.findings == []
    report = world.two.sync()
    starts = [request.start for request in world.of_kind(GetLog) if isinstance(request, GetLog)]
    assert starts == list(range(0, report.pulled_bytes, SIZE))
    assert len(starts) > 3
    assert world.dropped == []
    assert world.contents(world.two) == world.contents(world.one)
    assert world.one.vault.state_digest() == world.two.vault.state_digest()


def test_segment_that_arrived_before_the_one_before_it_is_put_once_more(world: World) -> None:
    world.disorder = True
    assert world.one.sync().findings == []
    world.two.sync()
    puts = [request.number for request in world.of_kind(PutSegment) if isinstance(request, PutSegment)]
    assert puts == [0, 1, 2, 1, *range(3, max(puts) + 1)]  # from then on one after the other
    assert world.one.vault.state_digest() == world.two.vault.state_digest()


@pytest.mark.parametrize("moment", Break)
@pytest.mark.parametrize("exchange", range(7))
def test_round_that_breaks_off_anywhere_is_completed_by_the_next(world: World, exchange: int, moment: Break) -> None:
    for device in (world.one, world.two):
        world.remote.breaks = {exchange: moment}
        try:
            device.sync()
        except RemoteUnreachable:
            world.remote.breaks = {}
            device.sync()
        assert not world.remote.breaks
    assert world.contents(world.two) == world.contents(world.one)
    assert world.one.vault.state_digest() == world.two.vault.state_digest()


def test_what_was_sent_ahead_and_is_not_wanted_is_dropped(world: World) -> None:
    world.one.sync()
    # Half of what was asked for: the next piece begins elsewhere than was thought.
    world.remote.answer_limit = SIZE // 2
    world.two.sync()
    assert world.dropped
    assert world.contents(world.two) == world.contents(world.one)
