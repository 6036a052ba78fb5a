import pytest

from memseal.privacy.doubting import believed
from memseal.privacy.spans import Span
from memseal.sanitize.lexicon import lexicon


def kept(marked: str, kind: str) -> list[str]:
    """Let a model find what is in braces, and return what of that is believed."""
    start, end = marked.index("{"), marked.index("}") - 1
    text = marked.replace("{", "").replace("}", "")
    return [
        text[span.start : span.end]
        for span in believed(text, [Span(start, end, kind, 0.8, "spacy")], lexicon())
        if span.type == kind
    ]


@pytest.mark.parametrize(
    ("kind", "marked", "name"),
    [
        ("PERSON", "then {Oumarou} laughed", "Oumarou"),
        ("PERSON", "then {Grace Hopper} laughed", "Grace Hopper"),
        ("PERSON", "then {Summary Oumarou} laughed", "Oumarou"),
        ("ORGANIZATION", "an offer by {Velquora}'s board", "Velquora"),
        ("ORGANIZATION", "she works at {IBM} now", "IBM"),
        ("ORGANIZATION", "she left {Target} in May", "Target"),
        ("ORGANIZATION", "by {Velquora Delta\nSummary} and others", "Velquora Delta"),
        ("ORGANIZATION", "Ask {Chase} about it", "Chase"),
        ("LOCATION", "the {Quelvsund} office", "Quelvsund"),
        ("LOCATION", "we met in {Split} again", "Split"),
        ("LOCATION", "the {Tampere} office", "Tampere"),
    ],
)
def test_name_of_the_model_is_believed_without_what_is_around_it(kind: str, marked: str, name: str) -> None:
    assert kept(marked, kind) == [name]


@pytest.mark.parametrize(
    ("kind", "marked"),
    [
        ("PERSON", "press it and choose {Reload Window} again"),
        ("PERSON", "so it is “{quoted}” here"),
        ("PERSON", "{Reply C} to cancel"),
        ("ORGANIZATION", "Wi-Fi and {NFC} are off"),
        ("ORGANIZATION", "{The Terms of Service} changed"),
        ("ORGANIZATION", "we drop the {LegacyAdapter} class"),
        ("ORGANIZATION", "learn {Swahili} or Dutch"),
        ("ORGANIZATION", "fix {CVE-2024-31337} first"),
        ("ORGANIZATION", "{gon}na be fun"),
        ("ORGANIZATION", "ORDER BY total {DESC LIMIT 10};"),
        ("LOCATION", "my {Netflix} login"),
        ("LOCATION", "{Airplane Mode} is on"),
        ("LOCATION", "{Monday} is full"),
    ],
)
def test_what_is_no_name_is_not_believed(kind: str, marked: str) -> None:
    assert kept(marked, kind) == []
