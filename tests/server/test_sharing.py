"""Shared looks: never one that began before it was asked for."""

import asyncio

import pytest

from memseal_server.sharing import Sharing


class World:
    """A number that grows, and looks at it that take until they are let go."""

    def __init__(self) -> None:
        self.number = 0
        self.looks = 0
        self.go_on = asyncio.Event()
        self.began = asyncio.Event()

    async def look(self) -> int:
        self.looks += 1
        seen = self.number
        self.began.set()
        await self.go_on.wait()
        return seen


async def test_those_who_come_before_a_look_begins_share_it() -> None:
    world, sharing = World(), Sharing[str, int]()
    world.go_on.set()
    assert await asyncio.gather(*(sharing.run("a", world.look) for _ in range(9))) == [0] * 9
    assert world.looks == 1
    assert await sharing.run("a", world.look) == 0
    assert world.looks == 2


async def test_whoever_comes_after_a_look_began_gets_the_next_one() -> None:
    world, sharing = World(), Sharing[str, int]()
    first = asyncio.create_task(sharing.run("a", world.look))
    await world.began.wait()
    world.number = 1
    later = [asyncio.create_task(sharing.run("a", world.look)) for _ in range(9)]
    other = asyncio.create_task(sharing.run("b", world.look))
    world.go_on.set()
    assert await first == 0
    assert await asyncio.gather(*later) == [1] * 9
    assert await other == 1
    assert world.looks == 3


async def test_one_that_goes_does_not_end_the_look_of_the_others() -> None:
    world, sharing = World(), Sharing[str, int]()
    waiting = [asyncio.create_task(sharing.run("a", world.look)) for _ in range(3)]
    await world.began.wait()
    waiting[0].cancel()
    world.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting[0]
    assert await asyncio.gather(*waiting[1:]) == [0, 0]


async def test_failure_reaches_all_who_share_it_and_nobody_else() -> None:
    sharing = Sharing[str, int]()

    async def fail() -> int:
        raise ValueError

    results = await asyncio.gather(*(sharing.run("a", fail) for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [ValueError] * 3
    world = World()
    world.go_on.set()
    assert await sharing.run("a", world.look) == 0
