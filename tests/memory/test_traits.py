"""The rarer fields of a memory (vault-format §9)."""

from typing import Any

import pytest

from memseal.errors import FormatError, MemoryInvalid
from memseal.memory.memory import Draft, draft
from memseal.memory.traits import (
    AFFINITY,
    MAX_SOURCES,
    OWNER_ONLY,
    PLAIN,
    Derivation,
    Location,
    carried_on,
    check_traits,
    read_traits,
)

ONE, TWO = "01" * 16, "02" * 16
GIVEN: dict[str, Any] = {
    "type": "persona",
    "tier": AFFINITY,
    "owner": "Ann",
    "policy": {"access": "owner"},
    "location": Location(52.52, 13.405, "Berlin"),
    "derived_from": (ONE, TWO),
    "derivation": Derivation("pattern/1", "tea", "0a" * 16, 2),
}


def made(**traits: Any) -> Draft:
    return draft("she likes tea", source="app", **traits)


def test_what_is_written_is_sound_and_reads_the_same() -> None:
    others = made(**GIVEN).others
    check_traits(others)
    read = read_traits(others)
    assert (read.type, read.tier, read.owner, read.stated_policy) == ("persona", AFFINITY, "Ann", OWNER_ONLY)
    assert (read.location, read.derived_from, read.derivation) == (
        GIVEN["location"],
        GIVEN["derived_from"],
        GIVEN["derivation"],
    )


def test_an_atom_without_anything_stores_nothing() -> None:
    assert not made(type=None, tier="atom", owner=None, policy=None, location=None, derived_from=[]).others
    assert read_traits({}) is PLAIN
    assert read_traits({"media": [], "newer": 1}) is PLAIN


def test_a_source_that_is_named_twice_is_stored_once() -> None:
    assert made(derived_from=[TWO, ONE, TWO]).others["derived_from"] == [bytes([2]) * 16, bytes([1]) * 16]


def test_degrees_are_kept_to_a_centimetre() -> None:
    assert made(location={"lat": -33.8567844, "lon": 151.2152967}).others["location"] == {
        "lat": -338_567_844,
        "lon": 1_512_152_967,
    }
    assert read_traits(made(location={"lat": -33.8567844, "lon": 151.2152967}).others).location == Location(
        -33.8567844, 151.2152967
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("type", "dream"),
        ("type", ""),
        ("tier", "molecule"),
        ("owner", " "),
        ("policy", {"access": "everybody"}),
        ("policy", {}),
        ("location", {}),
        ("location", {"lat": 1.0}),
        ("location", {"lat": 90.1, "lon": 0}),
        ("location", {"lat": 0, "lon": float("nan")}),
        ("location", {"lat": 0, "lon": float("inf")}),
        ("location", {"place": ""}),
        ("location", {"place": "home", "planet": "Mars"}),
        ("derived_from", ["zz"]),
        ("derived_from", [f"{number:032x}" for number in range(MAX_SOURCES + 1)]),
        ("derivation", Derivation("", "tea", ONE, 1)),
        ("derivation", Derivation("rule", "tea", ONE, 0)),
    ],
)
def test_what_cannot_be_stored_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(MemoryInvalid):
        made(**{field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("owner", 7),
        ("policy", "owner"),
        ("location", "Berlin"),
        ("location", {"lat": True, "lon": 0}),
        ("location", {"lat": "52", "lon": "13"}),
        ("derived_from", ONE),
        ("derived_from", [7]),
        ("colour", "green"),
    ],
)
def test_what_is_of_a_wrong_type_is_a_type_error(field: str, value: Any) -> None:
    with pytest.raises(TypeError):
        made(**{field: value})


@pytest.mark.parametrize("tier", ["composite", "affinity"])
def test_what_was_made_of_nothing_is_an_atom(tier: str) -> None:
    with pytest.raises(MemoryInvalid, match="derived_from"):
        made(tier=tier)


def test_newer_software_is_understood_as_far_as_it_goes() -> None:
    others = {"type": "dream", "tier": "molecule", "policy": {"access": "group", "grants": [1]}}
    check_traits(others)
    read = read_traits(others)
    assert (read.type, read.tier) == ("dream", "molecule")
    assert carried_on(read) == {"type": "dream", "policy": {"access": "group", "grants": [1]}}


def test_a_wrong_field_names_itself_and_shows_nothing() -> None:
    with pytest.raises(FormatError, match=r"operation\.location") as refused:
        check_traits({"location": {"place": ""}, "owner": "secret"})
    assert refused.value.code == "operation_invalid"
    assert "secret" not in str(refused.value)


def test_a_repr_shows_no_text() -> None:
    read = read_traits(made(**GIVEN).others)
    assert not any(text in repr(read) for text in ("Ann", "Berlin", "tea"))
