"""Late interaction over the open vault (recall.md §4)."""

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memseal.embedding import Contextual, Embedder, Selective
from memseal.errors import EmbedderAnswer, EmbedderUnavailable
from memseal.index.view import View
from memseal.recall import Candidates, Late, Query, index_text
from memseal.recall.late import Effort, LateQuery, Signs, TokenCode, Whole, late_query

_TEXTS = "SELECT n, content, author FROM memories WHERE n IN (SELECT value FROM json_each(?))"


class _Means(NamedTuple):
    top: int
    kind: str
    code: type[Signs] | type[Whole]


# Each text that is looked at for the first time costs a pass of the model.
_MEANS: Final = {"default": _Means(30, "signs", Signs), "best": _Means(50, "whole", Whole)}


def late_of(view: View, embedder: Embedder | None, query: Query, candidates: Candidates, effort: Effort) -> Late | None:
    """Return what late interaction says of the memories, or None where it takes no part.

    It asks the model for the tokens of the query now, and for those of a memory when it first looks at it.
    """
    if effort == "economy" or not isinstance(embedder, Contextual):
        return None
    try:
        tokens = embedder.embed_tokens(query.text)
    except (EmbedderUnavailable, EmbedderAnswer):
        return None
    rarities = dict(zip(query.terms, candidates.rarities, strict=True))
    asked = late_query(tokens.vectors, tokens.words, rarities)
    if asked is None:
        return None
    means, of = _MEANS[effort], embedder

    def scores(numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        return _scores(view, of, asked, means, numbers.tolist())

    return Late(scores, means.top)


def _scores(
    view: View, embedder: Contextual, asked: LateQuery, means: _Means, numbers: Sequence[int]
) -> NDArray[np.float64]:
    rows = view.state.connection.execute(_TEXTS, (json.dumps(numbers),))
    found = {n: _score(view, embedder, asked, means, content, author) for n, content, author in rows}
    return np.array([found.get(number, np.nan) for number in numbers], np.float64)


def _score(
    view: View, embedder: Contextual, asked: LateQuery, means: _Means, content: str, author: str | None
) -> float:
    if isinstance(embedder, Selective) and not embedder.reads(content):
        return float("nan")
    text = index_text(content, author)
    code: TokenCode | None = view.token_codes.get(means.kind, text)
    if code is None:
        try:
            code = means.code.of(embedder.embed_tokens(text).vectors)
        except (EmbedderUnavailable, EmbedderAnswer):
            return float("nan")
        view.token_codes.put(means.kind, text, code)
    return asked.score(code)
