"""Pages with key bytes are locked once, and let go when nobody holds them."""

import ctypes
import mmap
import sys

import pytest

from memseal.store.pages import LockedPages, system_locker


class Recorder:
    """A system that locks at most `room` pages, and says what it was asked."""

    def __init__(self, room: int = 1_000) -> None:
        self.room = room
        self.locked = list[int]()

    def lock(self, address: int, length: int) -> bool:
        assert address % mmap.PAGESIZE == 0
        assert length == mmap.PAGESIZE
        if len(self.locked) == self.room:
            return False
        self.locked.append(address)
        return True

    def unlock(self, address: int, length: int) -> bool:
        self.locked.remove(address)
        return True


def test_every_page_of_a_secret_is_locked_once() -> None:
    system, secret = Recorder(), bytes(3 * mmap.PAGESIZE)
    pages = LockedPages(system)
    pages.hold([secret])
    pages.hold([secret])
    assert len(system.locked) == len(set(system.locked)) == len(pages) >= 3
    assert pages.refused == 0
    pages.release()
    pages.release()
    assert system.locked == []


def test_page_of_two_vaults_is_locked_until_both_let_go() -> None:
    system, secret = Recorder(), bytes(mmap.PAGESIZE)
    one, two = LockedPages(system), LockedPages(system)
    one.hold([secret])
    two.hold([secret])
    one.release()
    assert system.locked
    two.release()
    assert system.locked == []


def test_what_the_system_refuses_is_counted_and_tried_again() -> None:
    system, secret = Recorder(room=0), bytes(mmap.PAGESIZE)
    pages = LockedPages(system)
    pages.hold([secret])
    assert pages.refused >= 1
    system.room = 1_000
    pages.hold([secret])
    assert pages.refused == 0
    pages.release()


@pytest.mark.skipif(sys.platform not in ("linux", "darwin", "win32"), reason="a system that nobody has tried")
def test_this_system_locks_a_page_and_lets_it_go() -> None:
    locker, page = system_locker(), mmap.mmap(-1, mmap.PAGESIZE)
    assert locker is not None
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    if not locker.lock(address, mmap.PAGESIZE):
        pytest.skip("this account may lock no memory")
    assert locker.unlock(address, mmap.PAGESIZE)
