"""Histories to apply to a view: operations as devices could have written them, early, twice or with other stamps."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from memseal.errors import Finding
from memseal.format.content import Column
from memseal.index.view import EMBEDDING, View
from memseal.memory.memory import Draft
from memseal.memory.operations import Embed, Erase, Operation, Remember, Retraction, Setting, Stamp, Tagging, make_stamp
from tests.index.reference import Stamped

MODEL = "toy"
_IDS = [bytes((number,)) * 16 for number in range(1, 7)]
_OTHERS = [bytes((number,)) * 16 for number in range(101, 107)]
_TAGS = ["red", "blue"]
_ids = st.sampled_from(_IDS)
_reasons = st.sampled_from([None, "because", "so"])


def vector(stamp: Stamp) -> np.ndarray:
    """The vector that an operation brings: told apart by its stamp."""
    raw = np.array([stamp[7] + 1, stamp[11], stamp[-1]], np.float32)
    return np.asarray(raw / np.linalg.norm(raw), np.float16)


@st.composite
def _memories(draw: st.DrawFn) -> Remember:
    what = Draft(
        content=draw(st.sampled_from(["tea", "coffee"])),
        source="test",
        kind="fact",
        tags=tuple(draw(st.lists(st.sampled_from(_TAGS), unique=True))),
        author=draw(st.sampled_from([None, "", "Ann"])),
        captured_at=draw(st.sampled_from([None, 0])),
        others=draw(st.sampled_from([{}, {}, {"tier": "composite", "derived_from": [_IDS[0], _IDS[1]]}])),
    )
    row = 0 if draw(st.booleans()) else None
    of = draw(st.none() | _ids)
    return Remember(draw(_ids), what, 1, row, of, None if of is None else draw(_reasons))


@st.composite
def _taggings(draw: st.DrawFn) -> Tagging:
    removed = st.tuples(st.sampled_from(_TAGS), st.sampled_from([*_IDS, *_OTHERS]))
    add, remove = draw(st.lists(st.sampled_from(_TAGS), max_size=2)), draw(st.lists(removed, max_size=2))
    return Tagging(draw(st.sampled_from(_OTHERS)), draw(_ids), 1, tuple(add), tuple(remove))


_others = st.one_of(
    _memories(),
    _memories(),
    st.builds(Retraction, st.sampled_from(_OTHERS), _ids, st.booleans(), st.just(1), _reasons),
    _taggings(),
    st.builds(Erase, st.sampled_from(_OTHERS), st.lists(_ids, min_size=1, max_size=2).map(tuple), st.just(1), _reasons),
    st.builds(Setting, st.sampled_from(_OTHERS), st.sampled_from(["a", "b"]), st.integers(0, 9), st.just(1)),
)
_embeds = st.builds(Embed, st.sampled_from(_OTHERS), _ids, st.just(0))


@st.composite
def _stamped(draw: st.DrawFn) -> Stamped:
    """An operation and its stamp; a device embeds only what it has seen, so that an `embed` is always later."""
    operation = draw(_others | _embeds)
    counter = draw(st.integers(50, 60) if isinstance(operation, Embed) else st.integers(1, 6))
    return operation, make_stamp(counter, draw(st.integers(0, 2)), operation.id)


histories = st.lists(_stamped(), max_size=14)
"""Operations of which several may have one id, and even one stamp: a hostile device can write such."""


@st.composite
def told_in_two_orders(draw: st.DrawFn) -> tuple[list[list[Stamped]], list[list[Stamped]]]:
    """One history as two sequences of records: in any order, with repetitions, cut anywhere."""
    history = draw(histories)
    return draw(_records(history)), draw(_records(history))


@st.composite
def _records(draw: st.DrawFn, history: list[Stamped]) -> list[list[Stamped]]:
    again = draw(st.lists(st.sampled_from(history), max_size=4)) if history else []
    order = draw(st.permutations([*history, *again]))
    records: list[list[Stamped]] = [[]]
    for row in order:
        if draw(st.booleans()):
            records.append([])
        records[-1].append(row)
    return records


def apply(view: View, operations: Sequence[Stamped]) -> list[Finding]:
    """Apply operations as one record, each vector in its row of the column."""
    placed, rows = list[tuple[Operation, Stamp]](), list[np.ndarray]()
    for operation, stamp in operations:
        if isinstance(operation, Embed | Remember) and operation.row is not None:
            placed.append((operation._replace(row=len(rows)), stamp))
            rows.append(vector(stamp))
        else:
            placed.append((operation, stamp))
    columns: tuple[Column, ...] = ()
    if rows:
        columns = (Column(EMBEDDING, MODEL, "f2", 3, len(rows), np.array(rows, "<f2").tobytes()),)
    return list(view.apply_decoded(placed, columns, "record"))
