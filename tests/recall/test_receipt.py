"""A receipt cannot be made or changed by anybody else."""

import hmac
import json
from dataclasses import fields, replace
from typing import Any

import pytest

from memseal.format.derivation import receipt_key
from memseal.format.keys import LocalKey, ReceiptKey
from memseal.recall.dates import find_period
from memseal.recall.receipt import (
    EXPLAINED,
    Counted,
    Reason,
    Receipt,
    Served,
    gap,
    is_own,
    reason_of,
    sealed,
    time_value,
)

KEY = ReceiptKey(bytes(range(32)))
PLAIN = Receipt(
    vault_id="00" * 16,
    device_id="11" * 16,
    at="2024-03-13T15:30:00+00:00",
    status="ok",
    reason=None,
    query="where is the tea? ☕",
    searched="where is the tea? ☕",
    terms=("tea", "☕"),
    time=None,
    engine="words",
    embedder=None,
    degraded=None,
    floor=0.3,
    counted=Counted(considered=3, matched=2, returned=1, dropped=1),
    budget=2_000,
    unit="characters",
    used=190,
    rendered_chars=190,
    used_chars=3,
    text_sha256="22" * 32,
    served=(Served("33" * 16, 0, False, False),),
    complete=True,
)


def changed(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, int | float):
        return value + 1
    return ["x"] if isinstance(value, list) else {"x": 1}


def test_receipt_that_was_sealed_is_known_also_after_json() -> None:
    receipt = sealed(PLAIN, KEY)
    assert is_own(receipt, KEY)
    assert is_own(json.loads(json.dumps(receipt.to_value(), indent=3)), KEY)


@pytest.mark.parametrize("name", [field.name for field in fields(Receipt)])
def test_receipt_with_another_value_in_any_field_is_refused(name: str) -> None:
    value = sealed(PLAIN, KEY).to_value()
    assert not is_own({**value, name: changed(value[name])}, KEY)
    assert not is_own({each: known for each, known in value.items() if each != name}, KEY)


def test_receipt_with_a_field_more_is_refused() -> None:
    assert not is_own({**sealed(PLAIN, KEY).to_value(), "note": "x"}, KEY)


def test_receipt_of_another_vault_device_or_key_is_refused() -> None:
    local, vault, device = LocalKey(bytes(32)), bytes(16), bytes(range(16))
    key = receipt_key(local, vault, device)
    receipt = sealed(PLAIN, key)
    assert is_own(receipt, receipt_key(local, vault, device))
    for other in (
        receipt_key(LocalKey(bytes(31) + b"\1"), vault, device),
        receipt_key(local, device, device),
        receipt_key(local, vault, vault),
    ):
        assert not is_own(receipt, other)


def test_seal_in_another_writing_is_refused() -> None:
    value = sealed(PLAIN, KEY).to_value()
    for seal in (value["seal"].upper(), f" {value['seal']}", f"{value['seal'][:2]} {value['seal'][2:]}"):
        assert not is_own({**value, "seal": seal}, KEY)


@pytest.mark.parametrize("seal", ["", "00" * 32, "zz", None, 3, "00"])
def test_seal_that_is_none_is_refused(seal: Any) -> None:
    assert not is_own({**PLAIN.to_value(), "seal": seal}, KEY)
    assert not is_own({}, KEY)


def test_value_that_json_cannot_hold_is_refused() -> None:
    assert not is_own({**sealed(PLAIN, KEY).to_value(), "floor": float("nan")}, KEY)
    assert not is_own({**sealed(PLAIN, KEY).to_value(), "floor": object()}, KEY)


def test_repr_shows_no_text() -> None:
    assert "tea" not in repr(sealed(replace(PLAIN, time={"phrase": "tea time"}), KEY))


def test_seal_is_what_the_spec_says() -> None:
    fields = {name: each for name, each in PLAIN.to_value().items() if name != "seal"}
    message = b"memseal/v1/receipt" + json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
    assert sealed(PLAIN, KEY).seal == hmac.new(KEY.reveal(), message, "sha256").hexdigest()


# ── gap and reason ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("counted", "over_budget", "expected"),
    [
        (Counted(matched=3, returned=3), 0, ""),
        (Counted(matched=5, returned=3, dropped=2), 2, "2 more over the budget"),
        (
            Counted(matched=9, returned=3, dropped=6, truncated=1),
            2,
            "2 more over the budget; 4 more beyond the limit; 1 cut",
        ),
        (Counted(other_state=1), 0, "1 related but retracted or superseded (state='all' shows them)"),
        (Counted(other_time=2), 0, "2 related but of another time (time='prefer' shows them)"),
        (Counted(near_misses=1), 0, "1 a little under the floor of 0.50 (floor=0.46 shows the nearest)"),
    ],
)
def test_gap_names_what_matches_and_is_not_shown(counted: Counted, over_budget: int, expected: str) -> None:
    assert gap(counted, over_budget, 0.5, 0.46) == expected


@pytest.mark.parametrize(
    ("searchable", "counted", "expected"),
    [
        (False, Counted(), "no_terms"),
        (True, Counted(), "nothing_matched"),
        (True, Counted(near_misses=3), "nothing_matched"),
        (True, Counted(other_state=1), "other_state"),
        (True, Counted(other_state=1, other_time=1), "other_time"),
        (True, Counted(matched=1, dropped=1, other_state=1), "budget"),
    ],
)
def test_empty_says_which(searchable: bool, counted: Counted, expected: Reason) -> None:
    assert reason_of(searchable, counted) == expected
    assert EXPLAINED[expected]


def test_time_of_a_receipt_names_phrase_and_spans() -> None:
    assert time_value(find_period("before May 2023"), "only") == {
        "phrase": "before May 2023",
        "rule": "only",
        "yearly": False,
        "spans": [[None, "2023-05-01T00:00:00+00:00"]],
    }
    assert time_value(find_period("in May"), "prefer") == {
        "phrase": "in May", "rule": "prefer", "yearly": True, "spans": [],
    }  # fmt: skip
    assert time_value(None, "prefer") is None
