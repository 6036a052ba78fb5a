"""The approximate index beside the exact one: when there is one, how it is built, and how it follows."""

from collections.abc import Callable, Iterable
from math import ceil
from threading import Event, Lock, Thread

import numpy as np
from numpy.typing import NDArray

from memseal.index.approximate import ApproximateIndex

# Measured (format-spec/decisions/search.md): up to here an exact search costs 7 ms, about what choosing would.
APPROXIMATE_FROM = 200_000
# With fewer bits than this a code says too little.
_LEAST_DIMENSION = 64
# What is to be compared exactly: this part of the vectors that a filter leaves, and not less than this many, or this
# many for each wanted hit.
_COMPARED_PART = 1 / 250
_LEAST_COMPARED = 1_000
_COMPARED_FOR_EACH = 20
# Where a filter leaves less than this part, or more than that part of all would have to be chosen, so that enough of
# them are what it leaves, comparing all that it leaves costs less (measured among 400,000).
_LEAST_SHARE = 0.1
_MOST_CHOSEN = 1 / 40
# A search waits for one step's copy at most.
_STEP = 16_384
# Of so many vectors that were replaced the codes are of the former ones: the index is made anew.
_RESTATED_LIMIT = 1_000

Rows = Callable[[int, int], NDArray[np.float16]]
"""Returns a copy of the vectors from a row on, so many at most; called under the lock."""


class Approximation:
    """What chooses the rows to be compared exactly; every method but those that say so is called under the lock."""

    def __init__(self, dimension: int, lock: Lock, rows: Rows) -> None:
        """Take the lock that guards the vectors, and how to read them."""
        self._dimension = dimension
        self._lock = lock
        self._rows = rows
        self._index: ApproximateIndex | None = None
        self._restated = set[int]()
        self._generation = 0
        self._builder: Thread | None = None
        self._stopped = Event()

    def fits(self, total: int) -> bool:
        """Return whether there should be an index for so many vectors; needs no lock."""
        return total >= APPROXIMATE_FROM and self._dimension >= _LEAST_DIMENSION

    @property
    def is_ready(self) -> bool:
        """Whether there is an index; needs no lock."""
        return self._index is not None

    def take(self, index: ApproximateIndex) -> None:
        """Go on with an index that was kept."""
        self._index = index

    def added(self, vectors: NDArray[np.float16], total: int) -> None:
        """Note new rows, which make so many; where they are the first to need an index, one begins to be built.

        It is there for the first search then, and for the cache, for which closing would have to wait.
        """
        if self._index is not None:
            self._index.add(vectors)
        elif self.fits(total):
            self._begin()

    def restated(self, rows: Iterable[int]) -> None:
        """Note rows that have other vectors from now on."""
        if self._index is not None or self._builder is not None:
            self._restated.update(rows)
            if len(self._restated) > _RESTATED_LIMIT:
                self.forget()

    def forget(self) -> None:
        """Leave nothing of any code, and let the next search have an index made anew."""
        self._generation += 1
        self._restated.clear()
        if self._index is not None:
            self._index.wipe()
            self._index = None

    def choose(self, query: NDArray[np.float32], limit: int, total: int, share: float) -> NDArray[np.int64] | None:
        """Return the rows that may be among the `limit` nearest, ascending; None where all have to be compared.

        `share` is the part of all rows that may be found at all. Where there is no index yet, one begins to be built.
        """
        if share < _LEAST_SHARE or not self.fits(total):
            return None
        if self._index is None:
            self._begin()
            return None
        count = ceil(max(_LEAST_COMPARED, total * share * _COMPARED_PART, _COMPARED_FOR_EACH * limit) / share)
        if count > total * _MOST_CHOSEN:
            return None
        rows = self._index.nearest(query, count)
        return np.unique(np.concatenate([rows, np.fromiter(self._restated, np.int64)]))

    def content(self) -> NDArray[np.uint8] | None:
        """Return the index as bytes, where it has the code of every row as it is now."""
        return None if self._index is None or self._restated else self._index.to_bytes()

    def settle(self) -> None:
        """Wait until what is being built is there; not called under the lock."""
        builder = self._builder
        if builder is not None:
            builder.join()

    def close(self) -> None:
        """End the building, and wait for its thread; not called under the lock."""
        self._stopped.set()
        self.settle()
        # Or the vectors would hold themselves through it, and their gigabyte would wait for the garbage collector.
        self._rows = _no_rows
        self._index = None

    def _begin(self) -> None:
        if self._builder is None and not self._stopped.is_set():
            self._restated.clear()
            self._builder = Thread(target=self._build, name="memseal-vectors")
            self._builder.start()

    def _build(self) -> None:
        """Build until every row has its code; FAISS lets go of the GIL meanwhile, and the exact index answers."""
        while not self._built():
            pass

    def _built(self) -> bool:
        """Go through all rows once; returns False where what was read had to be forgotten meanwhile."""
        index, generation = ApproximateIndex(self._dimension), self._generation
        while True:
            with self._lock:
                rows = self._rows(len(index), _STEP)
                forgotten, stopped = generation != self._generation, self._stopped.is_set()
                if not forgotten and not stopped and not len(rows):
                    self._index, self._builder = index, None
                    return True
                if stopped:
                    self._builder = None
            if forgotten or stopped:
                index.wipe()
                return stopped
            index.add(rows)


def _no_rows(first: int, count: int) -> NDArray[np.float16]:
    return np.empty((0, 0), np.float16)


def built(dimension: int, pieces: Iterable[NDArray[np.float16]]) -> NDArray[np.uint8]:
    """Return the bytes of an index of all these vectors, in their order."""
    index = ApproximateIndex(dimension)
    for piece in pieces:
        index.add(piece)
    return index.to_bytes()
