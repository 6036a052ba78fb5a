"""Candidates for the tests of the ranking."""

import numpy as np

from memseal.recall.candidates import Candidates


def candidates(
    count: int,
    *,
    lexical: list[float] | None = None,
    cosine: list[float] | None = None,
    matched: list[int] | None = None,
    threads: list[int] | None = None,
    positions: list[int] | None = None,
    authors: list[int] | None = None,
    author_names: tuple[str, ...] = (),
    captured_at: list[int] | None = None,
) -> Candidates:
    """Return `count` candidates numbered from 1, plain wherever nothing is said."""
    return Candidates(
        numbers=np.arange(1, count + 1),
        lexical=np.array(lexical or [0.0] * count),
        matched=np.array(matched or [0] * count, np.uint64),
        cosine=np.array(cosine or [np.nan] * count),
        threads=np.array(threads or [-1] * count, np.int64),
        positions=np.array(positions or [0] * count, np.int64),
        authors=np.array(authors or [-1] * count, np.int64),
        author_names=author_names,
        captured_at=np.array(captured_at or [0] * count, np.int64),
    )
