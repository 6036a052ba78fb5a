"""Proposals as settings: what is stored is read again, and nothing else passes for one."""

from typing import Any

import pytest

from memseal.memory.memory import Draft
from memseal.memory.operations import Remember
from memseal.memory.proposals import (
    PROPOSAL,
    Stored,
    conflict_id,
    pair_id,
    proposed_id,
    statement_id,
    stored_from,
)

OLD = b"o" * 16


def stored(content: str = "I live in Oslo", of: bytes | None = None) -> Stored:
    operation = Remember(statement_id(content, of), Draft(content, "chat", tags=("a",)), 5, of=of, reason="moved")
    return Stored(operation._replace(reason=None if of is None else "moved"), "said", 7)


@pytest.mark.parametrize("of", [None, OLD])
def test_proposal_comes_back_as_it_was_stored(of: bytes | None) -> None:
    one = stored(of=of)
    assert stored_from(one.name, one.to_value()) == one


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        "text",
        {**stored().to_value(), "why": 1},
        {**stored().to_value(), "at": None},
        {**stored().to_value(), "operation": []},
        {**stored().to_value(), "operation": {}},
        {**stored().to_value(), "operation": {**stored().to_value()["operation"], "kind": 1}},
        {**stored().to_value(), "operation": {"op": "erase", "id": b"x" * 16, "targets": [OLD], "at": 1}},
    ],
)
def test_what_is_no_proposal_is_none(value: Any) -> None:
    assert stored_from(stored().name, value) is None


def test_proposal_under_the_name_of_another_is_none() -> None:
    assert stored_from(PROPOSAL + "0" * 32, stored().to_value()) is None


@pytest.mark.parametrize("digits", ["", "0" * 31, "0" * 33, "A" * 32, "g" * 32, " " * 32, "00 " * 10 + "00"])
def test_name_without_an_id_names_nothing(digits: str) -> None:
    assert proposed_id(PROPOSAL + digits) == b""


@pytest.mark.parametrize("other", ["i live in OSLO.", "I  live\nin Oslo ", "Ｉ live in Oslo!", "I live in Oslo"])
def test_one_statement_in_two_spellings_is_one_proposal(other: str) -> None:
    assert statement_id(other) == statement_id("I live in Oslo")


def test_same_statement_in_place_of_a_memory_is_another_proposal() -> None:
    assert len({statement_id("x"), statement_id("x", OLD), statement_id("y", OLD)}) == 3


def test_ids_of_pairs_and_conflicts_do_not_depend_on_the_order() -> None:
    one, two, three = b"1" * 16, b"2" * 16, b"3" * 16
    assert pair_id(one, two) == pair_id(two, one) != pair_id(one, three)
    assert conflict_id([one, two]) == conflict_id([two, one]) != conflict_id([one, two, three])
