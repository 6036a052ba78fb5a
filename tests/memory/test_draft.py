"""What a memory's fields may be, checked before anything is written (vault-format §9)."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.errors import MemoryInvalid
from memseal.memory.memory import (
    KINDS,
    Draft,
    check_reason,
    draft,
    from_microseconds,
    parse_id,
    to_microseconds,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: not text.isspace())
moments = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-9, minutes=-30))]))


def made(**changes: Any) -> Draft:
    fields: dict[str, Any] = {"content": "she likes tea", "source": "app", **changes}
    return draft(fields.pop("content"), **fields)


@given(
    content=texts,
    source=texts,
    kind=st.sampled_from(KINDS),
    tags=st.lists(texts, max_size=4),
    author=st.none() | texts,
    position=st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
    captured_at=st.none() | moments,
)
def test_fields_are_kept_as_they_are(
    content: str,
    source: str,
    kind: str,
    tags: list[str],
    author: str | None,
    position: int | None,
    captured_at: datetime | None,
) -> None:
    kept = made(
        content=content, source=source, kind=kind, tags=tags, author=author, position=position, captured_at=captured_at
    )
    expected = None if captured_at is None else to_microseconds(captured_at)
    assert kept == Draft(content, source, kind, tuple(dict.fromkeys(tags)), author, None, position, expected, None)
    assert expected is None or from_microseconds(expected) == captured_at


def test_defaults_are_a_note_without_anything_else() -> None:
    assert made() == Draft("she likes tea", "app", "note")


TEXT_FIELDS = ["content", "source", "author", "thread", "origin"]


@pytest.mark.parametrize("field", TEXT_FIELDS)
@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u2003", "\u3000\u00a0"])
def test_empty_text_is_refused(field: str, text: str) -> None:
    with pytest.raises(MemoryInvalid, match=field):
        made(**{field: text})


@pytest.mark.parametrize("field", TEXT_FIELDS)
@pytest.mark.parametrize("text", ["\ud800", "secret \udfff words", "\udc00\ud800"])
def test_lone_surrogate_is_refused_without_the_text(field: str, text: str) -> None:
    with pytest.raises(MemoryInvalid, match=field) as refused:
        made(**{field: text})
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("field", TEXT_FIELDS)
@pytest.mark.parametrize("value", [b"bytes", 7, ["list"]])
def test_what_is_no_text_is_a_type_error(field: str, value: object) -> None:
    with pytest.raises(TypeError, match=field):
        made(**{field: value})


@pytest.mark.parametrize("field", ["content", "source"])
def test_required_text_may_not_be_nil(field: str) -> None:
    with pytest.raises(TypeError, match=field):
        made(**{field: None})


def test_text_of_a_subclass_becomes_a_plain_text() -> None:
    class Shout(str):
        pass

    assert type(made(content=Shout("tea")).content) is str


@pytest.mark.parametrize("kind", ["", "Fact", "memory", None, 7])
def test_kind_is_one_of_the_list(kind: Any) -> None:
    with pytest.raises(MemoryInvalid, match="kind"):
        made(kind=kind)


def test_tags_keep_their_order_and_lose_their_doubles() -> None:
    assert made(tags=["b", "a", "b"]).tags == ("b", "a")


@pytest.mark.parametrize(
    ("tags", "error"),
    [
        ("work", TypeError),
        ([""], MemoryInvalid),
        ([" "], MemoryInvalid),
        (["\ud800"], MemoryInvalid),
        ([7], TypeError),
        (None, TypeError),
    ],
)
def test_tags_are_a_list_of_texts(tags: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        made(tags=tags)


@pytest.mark.parametrize("position", [-(1 << 63), 0, (1 << 63) - 1])
def test_position_fits_64_bits(position: int) -> None:
    assert made(position=position).position == position


@pytest.mark.parametrize(
    ("position", "error"),
    [(1 << 63, MemoryInvalid), (-(1 << 63) - 1, MemoryInvalid), (True, TypeError), (1.0, TypeError), ("1", TypeError)],
)
def test_other_position_is_refused(position: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="position"):
        made(position=position)


@pytest.mark.parametrize(
    ("moment", "error"),
    [(datetime(2026, 1, 1), MemoryInvalid), (1767225600, TypeError), ("2026", TypeError)],  # noqa: DTZ001
)
def test_time_is_an_aware_datetime(moment: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="captured_at"):
        made(captured_at=moment)


def test_time_is_counted_in_microseconds_from_1970() -> None:
    assert to_microseconds(datetime(1970, 1, 1, 0, 0, 1, 5, UTC)) == 1_000_005
    assert to_microseconds(datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)) == -1
    with pytest.raises(ValueError, match="zone"):
        to_microseconds(datetime(2026, 1, 1))  # noqa: DTZ001


@given(value=st.integers(-(1 << 63), (1 << 63) - 1))
def test_any_stored_time_can_be_shown(value: int) -> None:
    shown = from_microseconds(value)
    clamped = shown in (datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC))
    assert clamped or to_microseconds(shown) == value


def test_times_beyond_the_calendar_are_clamped() -> None:
    assert from_microseconds((1 << 63) - 1) == datetime.max.replace(tzinfo=UTC)
    assert from_microseconds(-(1 << 63)) == datetime.min.replace(tzinfo=UTC)


def test_reason_is_a_text_or_nothing() -> None:
    assert (check_reason(None), check_reason("wrong")) == (None, "wrong")
    with pytest.raises(MemoryInvalid, match="reason"):
        check_reason("")


@given(raw=st.binary(min_size=16, max_size=16))
def test_id_is_32_hex_digits(raw: bytes) -> None:
    assert parse_id(raw.hex()) == raw
    assert parse_id(raw.hex().upper()) == raw


@pytest.mark.parametrize("value", ["", "0" * 31, "0" * 33, "g" * 32, "0" * 30 + "  ", "00 " * 11 + "0", "é" * 32])
def test_other_text_is_no_id(value: str) -> None:
    with pytest.raises(ValueError, match="32 hex digits"):
        parse_id(value)


def test_id_that_is_no_text_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        parse_id(bytes(16))  # type: ignore[arg-type]
