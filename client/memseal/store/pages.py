"""Keep key bytes out of swap: lock the pages of memory that they lie in."""

import ctypes
import mmap
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from typing import Final, Protocol

_PAGE: Final = mmap.PAGESIZE


class Locker(Protocol):
    """The system's two calls; an address and a length in bytes, True where it was done."""

    def lock(self, address: int, length: int) -> bool:
        """Keep these bytes in RAM."""
        ...

    def unlock(self, address: int, length: int) -> bool:
        """Let them go."""
        ...


class _Posix:
    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self._lock, self._unlock = library.mlock, library.munlock
        for call in (self._lock, self._unlock):
            call.argtypes, call.restype = (ctypes.c_void_p, ctypes.c_size_t), ctypes.c_int

    def lock(self, address: int, length: int) -> bool:
        return bool(self._lock(address, length) == 0)

    def unlock(self, address: int, length: int) -> bool:
        return bool(self._unlock(address, length) == 0)


class _Windows:
    def __init__(self) -> None:
        library = ctypes.CDLL("kernel32", use_last_error=True)
        self._lock, self._unlock = library.VirtualLock, library.VirtualUnlock
        for call in (self._lock, self._unlock):
            call.argtypes, call.restype = (ctypes.c_void_p, ctypes.c_size_t), ctypes.c_int

    def lock(self, address: int, length: int) -> bool:
        return bool(self._lock(address, length))

    def unlock(self, address: int, length: int) -> bool:
        return bool(self._unlock(address, length))


def system_locker() -> Locker | None:
    """Return this system's calls, or None where it has none."""
    try:
        return _Windows() if sys.platform == "win32" else _Posix()
    except (AttributeError, OSError):
        return None


# The system counts no locks of a page, and two vaults may have keys in one.
_holders: Counter[int] = Counter()
_busy = threading.Lock()


class LockedPages:
    """The pages that hold some byte strings, locked until `release`."""

    def __init__(self, locker: Locker | None = None) -> None:
        """Take the system's calls, if not others."""
        self._locker = locker or system_locker()
        self._pages = set[int]()
        self.refused = 0
        """How many pages the system would not lock."""

    def __len__(self) -> int:
        return len(self._pages)

    def hold(self, secrets: Iterable[bytes]) -> None:
        """Lock the pages of these, too; what is locked already costs nothing. The bytes must stay alive."""
        wanted = set[int]().union(*map(_pages_of, secrets))
        self.refused = 0
        with _busy:
            for page in sorted(wanted - self._pages):
                if self._locker is not None and (_holders[page] or self._locker.lock(page, _PAGE)):
                    _holders[page] += 1
                    self._pages.add(page)
                else:
                    self.refused += 1

    def release(self) -> None:
        """Let all pages go that nobody else holds."""
        with _busy:
            for page in self._pages:
                _holders[page] -= 1
                if not _holders[page] and self._locker is not None:
                    self._locker.unlock(page, _PAGE)
            self._pages.clear()


def _pages_of(secret: bytes) -> range:
    address = ctypes.cast(ctypes.c_char_p(secret), ctypes.c_void_p).value or 0
    return range(address - address % _PAGE, address + len(secret), _PAGE)
