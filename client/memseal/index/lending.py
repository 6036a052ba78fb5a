"""What a memory is found by beside its own words: those of the versions that it replaced (recall.md §4)."""

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memseal.index.lexical import Matches
from memseal.index.vectors import VectorIndex
from memseal.recall.weights import LENT

# From each version to the one that stands for it now. A step is taken once, so that a forged circle ends.
_NEWEST: Final = """
WITH RECURSIVE line (version, n) AS (
    SELECT value, value FROM json_each(:versions)
    UNION
    SELECT line.version, m.superseded_by FROM line JOIN memories m ON m.n = line.n WHERE m.superseded_by IS NOT NULL
)
SELECT line.version, line.n, length(v.content) + coalesce(length(v.author), 0), substr(v.content, 1, :start)
FROM line JOIN memories m ON m.n = line.n JOIN memories v ON v.n = line.version
WHERE m.superseded_by IS NULL
ORDER BY line.version
"""


@dataclass(frozen=True)
class Lent:
    """Versions that were replaced: what each lends of its scores, and which memory stands for it now; of one length."""

    versions: NDArray[np.int64]
    newest: NDArray[np.int64]
    lexical: NDArray[np.float64]
    matched: NDArray[np.uint64]
    cosine: NDArray[np.float64]

    def given(
        self,
        numbers: NDArray[np.int64],
        lexical: NDArray[np.float64],
        matched: NDArray[np.uint64],
        cosine: NDArray[np.float64],
    ) -> NDArray[np.int64]:
        """Raise the scores of memories, with ascending `numbers`, to what their versions lend them.

        Returns for each the version that lent it something, -1 where none did.
        """
        givers = np.full(numbers.size, -1)
        places = np.searchsorted(numbers, self.newest)
        here = np.flatnonzero(places < numbers.size)
        here = here[numbers[places[here]] == self.newest[here]]  # the others may not be found
        for place, row in zip(here.tolist(), places[here].tolist(), strict=True):
            by_words = self.lexical[place] > lexical[row]
            by_meaning = self.cosine[place] > np.nan_to_num(cosine[row], nan=-1.0)  # False for NaN
            if by_words:
                lexical[row] = self.lexical[place]
                matched[row] |= self.matched[place]
            if by_meaning:
                cosine[row] = self.cosine[place]
            if by_words or by_meaning:
                givers[row] = self.versions[place]
        return givers


def lend(
    connection: sqlite3.Connection,
    matches: Matches,
    vectors: VectorIndex | None,
    query_vector: NDArray[np.float32] | None,
    replaced: NDArray[np.bool_],
    pool: int,
    begins: int,
    reads: Callable[[str], bool] | None,
) -> Lent:
    """Return the best `pool` by each engine of the versions that were `replaced` (a mask by number).

    What the model does not read by its first `begins` characters lends no meaning.
    """
    found = [matches.best(pool, replaced)]
    if vectors is not None and query_vector is not None:
        found.append(vectors.search(query_vector, pool, replaced)[0])
    listed = json.dumps(np.unique(np.concatenate(found)).tolist())
    rows = connection.execute(_NEWEST, {"versions": listed, "start": begins}).fetchall()
    versions = np.array([row[0] for row in rows], np.int64)
    lexical, matched = matches.scores(versions, np.array([row[2] for row in rows], np.int64))
    cosine = np.full(versions.size, np.nan)
    if vectors is not None and query_vector is not None:
        cosine = vectors.similarities(query_vector, versions).astype(np.float64)
        if reads is not None:
            cosine[[not reads(row[3]) for row in rows]] = np.nan
    return Lent(versions, np.array([row[1] for row in rows], np.int64), LENT * lexical, matched, LENT * cosine)
