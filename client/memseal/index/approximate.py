"""Approximate search: one bit for each dimension of a vector, scanned whole, to choose what is compared exactly."""

from typing import Any, Self

import faiss
import numpy as np
from numpy.typing import NDArray

# Other versions may lay out their codes in another way.
FORMAT = f"faiss {faiss.__version__}"


class ApproximateIndex:
    """RaBitQ codes (Gao and Long, SIGMOD 2024) of unit vectors, row by row, about 1/14 of the size of float16.

    A code depends on its own vector alone: nothing is trained, so any vector can be added at any time, recall does not
    depend on how the vectors lie, and when the codes are wiped nothing remembers one that was erased. Not safe for
    several threads.
    """

    def __init__(self, dimension: int) -> None:
        # FAISS' own stubs know neither this class nor what it holds.
        library: Any = faiss
        self._faiss: Any = library.IndexRaBitQFastScan(dimension, library.METRIC_INNER_PRODUCT)
        # In the place of a mean that training would compute.
        library.copy_array_to_vector(np.zeros(dimension, np.float32), self._faiss.center)
        self._faiss.is_trained = True

    @classmethod
    def from_bytes(cls, dimension: int, rows: int, content: NDArray[np.uint8]) -> Self | None:
        """Return the index that `to_bytes` gave, or None where it is not of these vectors or of another FAISS."""
        library: Any = faiss
        index = cls(dimension)
        try:
            index._faiss = library.deserialize_index(content)
        except RuntimeError:
            return None
        same = isinstance(index._faiss, library.IndexRaBitQFastScan)
        return index if same and (index._faiss.d, len(index)) == (dimension, rows) else None

    def __len__(self) -> int:
        return int(self._faiss.ntotal)

    def add(self, vectors: NDArray[np.float16]) -> None:
        """Add the codes of vectors, shape (n, dimension), as the next rows."""
        self._faiss.add(np.ascontiguousarray(vectors, np.float32))

    def nearest(self, query: NDArray[np.float32], count: int) -> NDArray[np.int64]:
        """Return the `count` rows that seem to be nearest to a query, shape (1, dimension), in no order."""
        rows: NDArray[np.int64] = self._faiss.search(query, count)[1][0]
        return rows[rows >= 0]

    def wipe(self) -> None:
        """Overwrite all codes and forget them: a vector can be guessed from its code."""
        codes = self._faiss.codes
        if codes.size():
            faiss.rev_swig_ptr(codes.data(), codes.size())[:] = 0
        self._faiss.reset()

    def to_bytes(self) -> NDArray[np.uint8]:
        """Return what `from_bytes` takes."""
        content: NDArray[np.uint8] = faiss.serialize_index(self._faiss)
        return content
