from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from memseal.privacy.spans import Span, resolve
from tests.sanitize.building import TYPES

TEXT = "Chris Singh - chrissingh@msn.com, MED-123456 at Park & Sons LLP"


def found(text: str, *marked: tuple[str, str, float]) -> list[tuple[str, str]]:
    spans = [Span(text.index(value), text.index(value) + len(value), kind, score) for value, kind, score in marked]
    return [(text[span.start : span.end], span.type) for span in resolve(text, spans)]


def test_person_that_runs_into_an_address_gives_both() -> None:
    whole = "Chris Singh - chrissingh@msn.com"
    assert found(TEXT, (whole, "PERSON", 0.8), ("chrissingh@msn.com", "EMAIL", 1.0)) == [
        ("Chris Singh", "PERSON"),
        ("chrissingh@msn.com", "EMAIL"),
    ]


def test_three_readings_of_one_number_are_one_value() -> None:
    assert found(TEXT, ("123456", "PHONE_NUMBER", 0.9), ("MED-123456", "US_SSN", 0.7), ("MED-1234", "IBAN", 0.6)) == [
        ("MED-123456", "PHONE_NUMBER")
    ]


def test_longer_name_takes_in_its_part() -> None:
    assert found(TEXT, ("Park", "PERSON", 0.9), ("Park & Sons LLP", "ORGANIZATION", 0.7)) == [
        ("Park & Sons LLP", "ORGANIZATION")
    ]


@given(
    st.text(max_size=40),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.sampled_from(TYPES), st.floats(0, 1)), max_size=8),
)
def test_resolved_spans_do_not_overlap_and_cover_what_was_found(
    text: str, drawn: list[tuple[int, int, str, float]]
) -> None:
    spans = [
        Span(start, end, kind, score)
        for low, high, kind, score in drawn
        for start, end in [sorted((min(low, len(text)), min(high, len(text))))]
        if start < end
    ]
    resolved = resolve(text, spans)
    assert all(left.end <= right.start for left, right in pairwise(resolved))
    covered = {place for span in resolved for place in range(span.start, span.end)}
    assert {place for span in spans for place in range(span.start, span.end) if text[place].isalnum()} <= covered
