"""The state as operations: applying them to an empty view gives the same state, whatever it came from."""

from itertools import count
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from memseal.format.content import Column
from memseal.index.dump import Dump, Entry
from memseal.index.view import View
from memseal.memory.memory import Draft
from memseal.memory.operations import (
    Dismiss,
    Embed,
    Erase,
    Operation,
    Remember,
    Retraction,
    Setting,
    Stamp,
    Tagging,
    make_stamp,
)

IDS = [bytes([number]) * 16 for number in range(1, 7)]
CODES = np.eye(4, dtype="<f2")
COLUMN = Column("embedding", "model", "f2", 4, 4, CODES.tobytes())

ids, texts, tags = st.sampled_from(IDS), st.sampled_from(["one", "two"]), st.sampled_from(["a", "b"])
rows = st.none() | st.integers(0, 3)
captured = st.none() | st.integers(0, 1)
others = st.sampled_from([{}, {"mood": {"deep": [1]}}])
own_tags = st.lists(tags, max_size=2, unique=True).map(tuple)
none = st.none()
drafts = st.builds(Draft, texts, st.just("s"), st.just("note"), own_tags, none, none, none, captured, none, others)
operations: st.SearchStrategy[Operation] = st.one_of(
    st.builds(Remember, ids, drafts, st.integers(0, 9), rows, st.none() | ids, st.none() | texts),
    st.builds(Retraction, ids, ids, st.booleans(), st.integers(0, 9), st.none() | texts),
    st.builds(
        Tagging, ids, ids, st.just(0), st.lists(tags, max_size=2).map(tuple),
        st.lists(st.tuples(tags, ids), max_size=2).map(tuple),
    ),
    st.builds(Embed, ids, ids, st.integers(0, 3)),
    st.builds(Setting, ids, st.sampled_from(["x", "y"]), st.integers(0, 3), st.just(0)),
    st.builds(Erase, ids, st.lists(ids, min_size=1, max_size=2).map(tuple), st.integers(0, 9), st.none() | texts),
    st.builds(Dismiss, ids, ids, st.lists(st.integers(0, 3), min_size=1, max_size=2).map(tuple), st.just(0)),
)  # fmt: skip
logs = st.lists(st.tuples(operations, st.integers(1, 9)), max_size=10)


def pinned() -> View:
    view = View()
    pin: dict[str, Any] = {"model": "model", "dimension": 4}
    view.apply_decoded([(Setting(b"p" * 16, "embedding", pin, 0), make_stamp(0, 0, b"p" * 16))], (), "pin")
    return view


def applied(log: list[tuple[Operation, int]]) -> View:
    view = pinned()
    for position, (operation, counter) in enumerate(log):
        stamped: list[tuple[Operation, Stamp]] = [(operation, make_stamp(counter, position, operation.id))]
        view.apply_decoded(stamped, (COLUMN,), "log")
    return view


def entries_of(view: View) -> list[Entry]:
    numbers = count()
    dump = Dump(view, 0, lambda: next(numbers).to_bytes(16, "big"))
    return [*dump.settings(), *dump.others()]


def told(entries: list[Entry]) -> View:
    view = View()
    for entry in entries:
        operation, columns = entry.operation, tuple[Column, ...]()
        if entry.code is not None and isinstance(operation, Remember | Embed):
            operation = operation._replace(row=0)
            columns = (Column("embedding", "model", "f2", 4, 1, entry.code),)
        view.apply_decoded([(operation, entry.stamp)], columns, "dump", covered=True)
    return view


@settings(max_examples=settings().max_examples // 2)  # each makes several views
@given(logs)
def test_what_is_dumped_gives_the_same_state(log: list[tuple[Operation, int]]) -> None:
    before = applied(log)
    after = told(entries_of(before))
    assert after.state.digest() == before.state.digest()
    assert vectors(after) == vectors(before)


@settings(max_examples=settings().max_examples // 2)  # each makes several views
@given(logs, st.randoms(use_true_random=False))
def test_the_order_of_what_is_dumped_does_not_matter(log: list[tuple[Operation, int]], random: Any) -> None:
    before = applied(log)
    entries = entries_of(before)
    pin, rest = entries[:1], entries[1:]
    random.shuffle(rest)
    assert told([*pin, *rest]).state.digest() == before.state.digest()


def vectors(view: View) -> list[tuple[bytes, bytes]]:
    found = view.state.connection.execute("SELECT n, id FROM memories WHERE vector IS NOT NULL ORDER BY id").fetchall()
    assert view.vectors is not None
    codes = view.vectors.vectors(np.array([number for number, _ in found], np.int64))
    return [(memory_id, code.tobytes()) for (_, memory_id), code in zip(found, codes, strict=True)]


def test_entries_come_in_the_order_of_their_stamps() -> None:
    draft = Draft("text", "source")
    view = applied(
        [
            (Retraction(IDS[3], IDS[0], True, 1, "why"), 9),
            (Remember(IDS[1], draft, 1, of=IDS[0]), 5),
            (Remember(IDS[0], draft, 1, 2), 2),
            (Embed(IDS[2], IDS[1], 1), 7),
        ]
    )
    entries = entries_of(view)[1:]
    assert [type(entry.operation).__name__ for entry in entries] == ["Remember", "Remember", "Embed", "Retraction"]
    assert [entry.stamp for entry in entries] == sorted(entry.stamp for entry in entries)
