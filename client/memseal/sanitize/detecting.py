"""What is personal in a text: rules, lists, Presidio and a language model together."""

import base64
import binascii
import importlib.util
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from memseal.privacy.doubting import WORD, believed
from memseal.privacy.folding import Folded, fold
from memseal.privacy.known import Known
from memseal.privacy.lexicon import NOT_NAMES, Lexicon
from memseal.privacy.rules import addresses, contacts, numbers, organisations, people, places, secrets
from memseal.privacy.rules.rule import apply
from memseal.privacy.spans import Span, trimmed
from memseal.sanitize import phones
from memseal.sanitize.lexicon import lexicon
from memseal.sanitize.model import NameModel, default_model
from memseal.sanitize.presidio import presidio_numbers

# What a type needs at least to count; what is not named needs the last.
THRESHOLDS: Final[Mapping[str, float]] = {"PERSON": 0.6, "ORGANIZATION": 0.6, "LOCATION": 0.6, "URL": 0.5}
LEAST: Final = 0.55
_BASE64: Final = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/]{8,200}={0,2}(?![\w+/=-])")
_INSIDE: Final = frozenset(
    ("EMAIL", "URL", "SECRET", "USERNAME", "CRYPTO", "IBAN", "MEDICAL_RECORD_NUMBER", "MAC_ADDRESS")
)
_LINE_OF_CAPITALS: Final = 0.8


class Source(Protocol):
    """Anything that finds spans in one text: an app's own recogniser, for example."""

    def find(self, text: str) -> Iterable[Span]:
        """Return the spans of a text in which lookalikes and invisible characters are gone already."""
        ...


class Detector:
    """Finds what is personal; the same object serves many texts and threads."""

    def __init__(
        self,
        model: NameModel | None = None,
        known: Known | None = None,
        sources: Sequence[Source] = (),
        regions: tuple[str, ...] = phones.REGIONS,
        thresholds: Mapping[str, float] | None = None,
    ) -> None:
        """Take a language model, or none; names known by list; and recognisers of the app's own."""
        self._model = model
        self._known = known or Known()
        self._lexicon = lexicon()
        # Presidio imports spaCy, whatever it is asked for.
        has_presidio = all(importlib.util.find_spec(name) is not None for name in ("presidio_analyzer", "spacy"))
        self._sources: tuple[Source, ...] = (*((presidio_numbers(),) if has_presidio else ()), *sources)
        self._regions = regions
        self._thresholds = {**THRESHOLDS, **(thresholds or {})}
        self.missing = _missing(model, has_presidio)

    def detect(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return what is personal in each text; spans may overlap."""
        folds = [fold(text) for text in texts]
        named = self._names([folded.text for folded in folds])
        return [
            [_mapped(folded, span) for span in self._found(folded.text, names)]
            for folded, names in zip(folds, named, strict=True)
        ]

    def _names(self, texts: Sequence[str]) -> list[list[Span]]:
        if self._model is None:
            return [[] for _ in texts]
        # The model knows names by their capitals: where all or no letters are, it reads them anew, in the same batch.
        odd = [
            (place, changed) for place, text in enumerate(texts) if (changed := _recased(text, self._lexicon)) != text
        ]
        found = self._model.names([*texts, *(changed for _, changed in odd)])
        for (place, _), more in zip(odd, found[len(texts) :], strict=True):
            found[place] = [
                *found[place],
                *(span._replace(source="spacy, recased") for span in more if span.type != "ORGANIZATION"),
            ]
        return found[: len(texts)]

    def _found(self, text: str, named: Iterable[Span]) -> list[Span]:
        data = [
            *apply((*contacts.RULES, *secrets.RULES, *numbers.RULES), text),
            *(
                Span(start, end, "DATE_OF_BIRTH", 0.9, "birth dates of a table")
                for start, end in numbers.dates_in_table(text)
            ),
            *phones.find(text, self._regions),
            *(span for source in self._sources for span in source.find(text)),
        ]
        data = [span for span in data if not (span.source == "ipv4" and contacts.is_version(text, span.start))]
        data = [span for span in data if span.type != "PHONE_NUMBER" or not _overlaps_better(span, data)]
        postal = list(addresses.find(text, self._lexicon))
        people_found = [
            *people.find(text, self._lexicon),
            *organisations.find(text, self._lexicon, postal),
            *places.find(text, self._lexicon),
            *believed(text, named, self._lexicon),
        ]
        natural = [span for span in people_found if not _within(span, data) and not _within(span, postal)]
        natural = _without_rivals(natural)
        listed = list(self._known.find(text))
        again = _mentioned_again(text, [span for span in (*natural, *listed) if span.type == "PERSON"], self._lexicon)
        spans = [
            *data,
            *postal,
            *natural,
            *(span for span in again if not _within(span, data)),
            *listed,
            *self._encoded(text),
        ]
        return [
            tight
            for span in spans
            if span.score >= self._thresholds.get(span.type, LEAST) and (tight := trimmed(text, span)) is not None
        ]

    def _encoded(self, text: str) -> Iterator[Span]:
        for match in _BASE64.finditer(text):
            inside = _decoded(match[0])
            if inside is None:
                continue
            found = list(people.find(inside, self._lexicon)) + list(apply(contacts.RULES, inside))
            if found:
                yield Span(match.start(), match.end(), found[0].type, 0.9, "base64")


def _missing(model: NameModel | None, has_presidio: bool) -> tuple[str, ...]:
    """Say what this installation cannot do."""
    notes: list[str] = []
    if model is None:
        notes.append("no language model: names without a known first name, organisations and places are overlooked")
    if not has_presidio:
        notes.append("presidio-analyzer is not installed: the national identifiers of fewer countries are known")
    return tuple(notes)


def _mapped(folded: Folded, span: Span) -> Span:
    start, end = folded.original(span.start, span.end)
    return span._replace(start=start, end=end)


def _within(span: Span, others: Iterable[Span]) -> bool:
    return any(
        other.start <= span.start
        and span.end <= other.end
        and (other.type in _INSIDE or other.type == "ADDRESS" or other.score >= 0.9)
        for other in others
    )


def _overlaps_better(span: Span, others: Iterable[Span]) -> bool:
    return any(
        other.start < span.end and span.start < other.end and other.score > span.score
        for other in others
        if other.type != "PHONE_NUMBER"
    )


def _without_rivals(spans: Sequence[Span]) -> list[Span]:
    """Drop a lone first name that the model takes for a place or organisation, and the model's view of a sure name."""
    others = [span for span in spans if span.type != "PERSON"]
    sure = [
        span for span in spans if span.type == "PERSON" and span.score >= 0.85 and not span.source.startswith("spacy")
    ]
    listed = [span for span in others if span.source in ("listed place", "country")]
    kept: list[Span] = []
    for span in spans:
        if (
            span.type == "PERSON"
            and span.score < 0.65
            and any(o.start <= span.start and span.end <= o.end for o in others)
        ):
            continue
        if span.type != "PERSON" and any(o.start <= span.start and span.end <= o.end for o in sure):
            continue
        if span.type == "ORGANIZATION" and any(o.start <= span.start and span.end <= o.end for o in listed):
            continue
        kept.append(span)
    return kept


def _mentioned_again(text: str, found: Sequence[Span], lexicon: Lexicon) -> Iterator[Span]:
    """Return other places where a name that was found stands, or a part of it."""
    parts: set[str] = set()
    for span in found:
        for match in WORD.finditer(text, span.start, span.end):
            low = match[0].casefold()
            if len(low) > 2 and low not in NOT_NAMES and (not lexicon.is_word(low) or match[0][0].isupper()):
                parts.add(match[0])
    if not parts:
        return
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(parts, key=len, reverse=True)))})(?!\w)")
    for match in pattern.finditer(text):
        if not any(span.start <= match.start() and match.end() <= span.end for span in found):
            yield Span(match.start(), match.end(), "PERSON", 0.75, "mentioned again")


def _recased(text: str, lexicon: Lexicon) -> str:
    """Give names in a text of small letters, and all words of one of capitals, the case of a sentence."""
    letters = sum(character.isalpha() for character in text)
    capitals = sum(character.isupper() for character in text)
    if letters and capitals / letters > _LINE_OF_CAPITALS:
        return WORD.sub(lambda word: word[0].title() if len(word[0].title()) == len(word[0]) else word[0], text)
    if capitals <= 2:
        return WORD.sub(lambda word: _as_name(word[0], lexicon), text)
    return WORD.sub(lambda word: _softened(word[0], lexicon), text)


def _softened(word: str, lexicon: Lexicon) -> str:
    """Give a word in capitals within a text that is not the case of a name."""
    title = word.title()
    return (
        title
        if len(word) > 3 and word.isupper() and len(title) == len(word) and not lexicon.is_word(word.casefold())
        else word
    )


def _as_name(word: str, lexicon: Lexicon) -> str:
    low = word.casefold()
    known = (low in lexicon.first or low in lexicon.last) and not lexicon.is_word(low)
    return (
        word[0].upper() + word[1:]
        if known and len(word[0].upper()) == 1 and low not in NOT_NAMES and len(low) > 2
        else word
    )


def _decoded(token: str) -> str | None:
    try:
        inside = base64.b64decode(token + "=" * (-len(token) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return inside if inside.isprintable() and len(inside) >= 5 else None


def detector() -> "_Plain":
    """Return the default detector as a function of one text."""
    return _Plain(Detector(default_model()))


class _Plain:
    """A detector as measuring tools call it."""

    def __init__(self, inner: Detector) -> None:
        self._inner = inner

    def __call__(self, text: str) -> list[tuple[int, int, str, float]]:
        return [(span.start, span.end, span.type, span.score) for span in self._inner.detect([text])[0]]
