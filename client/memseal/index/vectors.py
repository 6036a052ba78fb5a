"""Search over the vectors of all memories, in float16 as they lie in the records."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Self

import faiss
import numpy as np
from numpy.typing import NDArray

from memseal.errors import VectorInvalid
from memseal.index import approximation
from memseal.index.approximate import ApproximateIndex

Codes = bytes | bytearray | memoryview | NDArray[np.float16]

_DEAD = -1
_PIECE = 8 << 20


class VectorIndex:
    """Unit vectors of one dimension, each known by its memory's number.

    A number has at most one vector: adding it again replaces the older one. All methods may be called from
    any thread. From `APPROXIMATE_FROM` vectors on an approximate index, built in the background, chooses what is
    compared; until it is there, and where a filter leaves little, all are.
    """

    def __init__(self, dimension: int) -> None:
        if dimension < 1:
            raise ValueError(f"a dimension is at least 1, not {dimension}")
        self.dimension = dimension
        # FAISS' float16 codes are the little-endian floats themselves, so a column of a record goes in
        # without conversion.
        self._faiss: Any = _empty(dimension)
        self._numbers = np.empty(0, np.int64)  # row -> number
        self._rows = np.empty(0, np.int64)  # number -> row
        self._dead = 0
        # What FAISS searches but does not own, until the first add.
        self._buffer: NDArray[np.uint8] | None = None
        # FAISS lets go of the GIL while it searches, and an add moves the memory that is searched.
        self._lock = Lock()
        self._approximation = approximation.Approximation(dimension, self._lock, self._copied)

    def close(self) -> None:
        """End what goes on in the background."""
        self._approximation.close()

    @classmethod
    def from_codes(cls, dimension: int, numbers: NDArray[np.int64], codes: Codes) -> Self:
        """Return an index of the vectors that `numbers()` and `codes()` gave out."""
        index = cls(dimension)
        index.add(numbers, codes)
        return index

    @classmethod
    def with_codes(cls, dimension: int, numbers: NDArray[np.int64], fill: Callable[[memoryview], None]) -> Self:
        """Return an index of these numbers, each once, whose codes `fill` writes straight into what is searched."""
        index = cls(dimension)
        if numbers.size:
            size = numbers.size * dimension * 2
            index._buffer = _serialized(index._faiss, numbers.size, size)
            fill(index._buffer[-size:].data)
            try:
                index._faiss = _borrowing(index._buffer)
            except RuntimeError:
                # A FAISS that writes its files in another way: the codes are copied in instead.
                return cls.from_codes(dimension, numbers, index._buffer[-size:].data)
            index._numbers = _grown(index._numbers, numbers.size)
            index._numbers[: numbers.size] = numbers
            index._rows = _grown(index._rows, int(numbers.max()) + 1)
            index._rows[numbers] = np.arange(numbers.size)
        return index

    def __len__(self) -> int:
        return int(self._faiss.ntotal) - self._dead

    def __contains__(self, number: int) -> bool:
        return 0 <= number < self._rows.size and bool(self._rows[number] != _DEAD)

    def add(self, numbers: NDArray[np.int64], codes: Codes) -> None:
        """Add one unit vector per number, as little-endian float16.

        Raises `VectorInvalid` if the codes are of another size. That they are finite and of unit length was
        checked by whoever sealed or opened the record.
        """
        matrix = self._matrix(codes, numbers.size)
        if numbers.size == 0:
            return
        if numbers.min() < 0:
            raise ValueError("a memory's number is not negative")
        with self._lock:
            self._own()
            # In the place of what is there: of vectors that are given anew and anew, all would be kept.
            rows = self._rows_of(numbers)
            known = rows != _DEAD
            if known.any():
                self._view()[rows[known]] = matrix[known].view("<f2")
                self._approximation.restated(rows[known].tolist())
                numbers, matrix = numbers[~known], matrix[~known]
                if numbers.size == 0:
                    return
            first = self._faiss.ntotal
            self._faiss.add_sa_codes(matrix)
            self._approximation.added(matrix.view("<f2"), self._faiss.ntotal)
            self._numbers = _grown(self._numbers, first + numbers.size)
            self._numbers[first : first + numbers.size] = numbers
            self._rows = _grown(self._rows, int(numbers.max()) + 1)
            self._point_to(numbers, first)

    def drop(self, number: int) -> None:
        """Forget the vector of a number, if it has one; the space is given back by the next `from_codes`."""
        with self._lock:
            if number in self:
                row = self._rows[number]
                self._view()[row] = 0  # a vector can be turned back into its text: an erased one must be gone
                self._approximation.forget()
                self._bury(np.array([row]))
                self._rows[number] = _DEAD

    def search(
        self, query: NDArray[np.float32], limit: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the numbers and cosines of the `limit` nearest vectors, best first, among those `allowed`.

        `allowed` is a mask indexed by number; a number beyond its end is not allowed. It is applied inside
        the search, so that a narrow filter still finds `limit` vectors if there are as many. Of many vectors a few of
        the nearest may be missed, seldom one of the first ten; the cosines are exact.
        """
        wanted = self._query(query)
        with self._lock, _one_thread():
            limit = min(limit, self._faiss.ntotal)
            if limit < 1:
                return np.empty(0, np.int64), np.empty(0, np.float32)
            chosen = self._chosen(wanted, limit, allowed)
            if chosen is not None:
                return self._compared(wanted, limit, chosen)
            # FAISS keeps only a pointer to the bits: `bits` must live until the search is over.
            bits = self._bits(allowed)
            if bits is None:
                scores, rows = self._faiss.search(wanted, limit)
            else:
                scores, rows = self._faiss.search(wanted, limit, params=_only(bits))
            found = rows[0] >= 0
            return self._numbers[rows[0][found]], scores[0][found]

    def _chosen(
        self, query: NDArray[np.float32], limit: int, allowed: NDArray[np.bool_] | None
    ) -> NDArray[np.int64] | None:
        """Return the rows to compare, or None for all; by number, since going through all rows takes a millisecond."""
        total = self._faiss.ntotal
        share = 1.0 if allowed is None else min(1.0, np.count_nonzero(allowed) / total)
        rows = self._approximation.choose(query, limit, total, share)
        if rows is None:
            return None
        numbers = self._numbers[rows]
        kept = numbers != _DEAD
        if allowed is not None:
            kept &= numbers < allowed.size
            kept[kept] = allowed[numbers[kept]]
        # Where what a filter leaves lies far from the query, too few of it are among what was chosen for being near.
        enough = max(limit, rows.size * share / 2)
        return rows[kept] if np.count_nonzero(kept) >= enough else None

    def _compared(
        self, query: NDArray[np.float32], limit: int, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the numbers and cosines of the nearest among some rows; by FAISS, so that equal ones are equal."""
        some = _empty(self.dimension)
        some.add_sa_codes(self._view()[rows].view(np.uint8))
        scores, places = some.search(query, limit)
        return self._numbers[rows[places[0]]], scores[0]

    def similarities(self, query: NDArray[np.float32], numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the cosine of the query to the vector of each number; NaN where there is none."""
        return np.asarray(self.vectors(numbers) @ self._query(query)[0], np.float32)

    def vectors(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of these numbers, shape (n, dimension); a row of NaN where there is none."""
        with self._lock:
            rows = self._rows_of(numbers)
            found = rows != _DEAD
            vectors = np.full((numbers.size, self.dimension), np.nan, np.float32)
            vectors[found] = self._view()[rows[found]]
            return vectors

    def numbers(self) -> NDArray[np.int64]:
        """Return the number of each vector, in the order of `codes()`."""
        with self._lock:
            return self._numbers[self._living()]

    def codes(self) -> bytes:
        """Return all vectors as `from_codes` takes them, in one copy."""
        with self._lock:
            view = self._view()
            return bytes(view.data if self._dead == 0 else view[self._living()].data)

    def take_approximation(self, content: NDArray[np.uint8]) -> None:
        """Go on with what `approximation` gave for these vectors; what does not fit is passed over, and built anew."""
        index = ApproximateIndex.from_bytes(self.dimension, self._faiss.ntotal, content)
        if index is not None:
            self._approximation.take(index)

    def approximation(self) -> NDArray[np.uint8] | None:
        """Return the approximate index for the vectors of `codes()`, or None where there are too few to need one."""
        if not self._approximation.fits(len(self)):
            return None
        self._approximation.settle()
        with self._lock:
            content = None if self._dead else self._approximation.content()
        if content is not None:
            return content
        pieces = (np.frombuffer(piece, "<f2").reshape(-1, self.dimension) for piece in self.code_pieces(_PIECE))
        return approximation.built(self.dimension, pieces)

    def code_pieces(self, size: int) -> Iterator[bytes]:
        """Yield what `codes()` gives in pieces of whole vectors, of about `size` bytes."""
        step = max(1, size // (2 * self.dimension))
        living = self._living()
        for start in range(0, living.size, step):
            with self._lock:
                yield self._view()[living[start : start + step]].tobytes()

    def _rows_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row of each number's vector, `_DEAD` where it has none."""
        rows = np.full(numbers.size, _DEAD, np.int64)
        known = (numbers >= 0) & (numbers < self._rows.size)
        rows[known] = self._rows[numbers[known]]
        return rows

    def _own(self) -> None:
        """Copy borrowed codes into memory that can grow."""
        if self._buffer is not None:
            owning = _empty(self.dimension)
            owning.add_sa_codes(self._view().view(np.uint8))
            self._faiss, self._buffer = owning, None

    def _copied(self, first: int, count: int) -> NDArray[np.float16]:
        return self._view()[first : first + count].copy()

    def _living(self) -> NDArray[np.int64]:
        return np.flatnonzero(self._numbers[: self._faiss.ntotal] != _DEAD)

    def _view(self) -> NDArray[np.float16]:
        """Look at FAISS' own memory; valid only under the lock, because an add may move it."""
        size = self._faiss.ntotal * self.dimension * 2
        if size == 0:
            return np.empty((0, self.dimension), np.float16)
        raw: NDArray[np.uint8] = faiss.rev_swig_ptr(self._faiss.codes.data(), size)
        return raw.view("<f2").reshape(-1, self.dimension)

    def _matrix(self, codes: Codes, count: int) -> NDArray[np.uint8]:
        if isinstance(codes, np.ndarray):
            codes = np.ascontiguousarray(codes, "<f2").data.cast("B") if codes.size else b""
        raw = np.frombuffer(codes, np.uint8)
        if raw.size != count * self.dimension * 2:
            raise VectorInvalid(f"{raw.size} bytes are not {count} float16 vectors of {self.dimension} numbers")
        return raw.reshape(count, self.dimension * 2)

    def _query(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        if query.shape != (self.dimension,):
            raise VectorInvalid(f"the query has shape {query.shape}, the index {self.dimension} dimensions")
        return np.ascontiguousarray(query, np.float32)[np.newaxis]

    def _bits(self, allowed: NDArray[np.bool_] | None) -> NDArray[np.uint8] | None:
        if allowed is None and self._dead == 0:
            return None
        numbers = self._numbers[: self._faiss.ntotal]
        chosen = numbers != _DEAD
        if allowed is not None:
            chosen &= numbers < allowed.size
            chosen[chosen] = allowed[numbers[chosen]]
        return np.packbits(chosen, bitorder="little")

    def _point_to(self, numbers: NDArray[np.int64], first: int) -> None:
        """Let each number point to its new row; of a number that comes twice, the last one counts."""
        rows = np.arange(first, first + numbers.size)
        self._rows[numbers] = rows
        outdone = rows[self._rows[numbers] != rows]
        if outdone.size:
            self._bury(outdone)

    def _bury(self, rows: NDArray[np.int64]) -> None:
        self._numbers[rows] = _DEAD
        self._dead += rows.size


def _empty(dimension: int) -> Any:
    return faiss.IndexScalarQuantizer(dimension, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)


def _serialized(empty: Any, count: int, size: int) -> NDArray[np.uint8]:
    """Return FAISS' file form of an index with room for `count` vectors at its end, `size` bytes not yet written.

    Its own vectors begin zeroed in pages of 4 KiB, which for 100,000 memories takes longer than opening what goes into
    them; numpy asks for large pages and leaves them as they are.
    """
    head = faiss.serialize_index(empty)
    # FAISS, impl/index_write.cpp: fourcc, d (i32), ntotal (i64) at 8; the codes last, after their number (u64).
    head[8:16] = np.frombuffer(count.to_bytes(8, "little"), np.uint8)
    head[-8:] = np.frombuffer(size.to_bytes(8, "little"), np.uint8)
    buffer = np.empty(head.size + size, np.uint8)
    buffer[: head.size] = head
    return buffer


def _borrowing(serialized: NDArray[np.uint8]) -> Any:
    """Return an index that searches the codes where they lie; the buffer must outlive it."""
    library: Any = faiss
    reader = library.ZeroCopyIOReader(library.swig_ptr(serialized), serialized.size)
    return library.read_index(reader, library.IO_FLAG_MMAP)


def _grown(array: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return the array with room for `size` entries; doubling keeps a series of single adds linear."""
    if size <= array.size:
        return array
    grown = np.full(max(size, 2 * array.size, 1024), _DEAD, np.int64)
    grown[: array.size] = array
    return grown


def _only(bits: NDArray[np.uint8]) -> Any:
    # FAISS' own stubs lack these keyword arguments.
    library: Any = faiss
    return library.SearchParameters(sel=library.IDSelectorBitmap(bits))


@contextmanager
def _one_thread() -> Generator[None]:
    """Keep FAISS to one thread: it shares work out by queries, and there is only one query.

    On two cores a search of 100,000 vectors took 5 ms with one thread and 16 ms with two.
    """
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
