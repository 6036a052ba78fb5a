"""The names and words of the two packages that bring them, as one lexicon."""

import importlib
import pkgutil
import unicodedata
from collections.abc import Iterable, Mapping, Set
from functools import cache
from typing import Any, Final

import faker.providers.address
import faker.providers.date_time
import faker.providers.person
from zxcvbn.frequency_lists import FREQUENCY_LISTS

from memseal.privacy.lexicon import Lexicon

_NAMED_FIRST: Final = ("first_names", "first_name", "first_kana_names", "first_romanized_names")
_NAMED_LAST: Final = ("last_names", "last_romanized_names", "last_kana_names")
_FEMALE, _MALE = "f", "m"
_PROPER, _PROPER_RANK = "english_wikipedia", 2_000
_USUAL: Final = 600  # of either gender
# What the lists of places are called, in the languages of all countries.
_PLACES: Final = frozenset(
    """
    cities city_names real_city_names metropolitan_cities province_lgus states provinces regions region_names counties
    """.split()
)
_SHORTEST_PLACE: Final = 3
_SHORTEST_HEARD: Final = 3
_HEARD_RANK: Final = 10_000  # the rarer ones are people's own names


@cache
def lexicon() -> Lexicon:
    """Return what is known of words; it is read once, in well under a second."""
    first: dict[str, str] = {}
    last: set[str] = set()
    for provider in _providers(faker.providers.person):
        _take_first(first, provider)
        for attribute in dir(provider):
            if attribute.startswith(_NAMED_LAST):
                last.update(_parts(_listed(provider, attribute)))
    for name in FREQUENCY_LISTS["female_names"]:
        first.setdefault(name, _FEMALE)
    for name in FREQUENCY_LISTS["male_names"]:
        first.setdefault(name, _MALE)
    last.update(FREQUENCY_LISTS["surnames"])
    words: dict[str, int] = {}
    for source in ("english_wikipedia", "us_tv_and_film"):
        for rank, word in enumerate(FREQUENCY_LISTS[source]):
            if source == _PROPER and rank > _PROPER_RANK and word in first:
                continue  # an encyclopedia's rarer words that are first names are just that
            words[word] = min(rank, words.get(word, rank))
    usual = frozenset(FREQUENCY_LISTS["female_names"][:_USUAL]) | frozenset(FREQUENCY_LISTS["male_names"][:_USUAL])
    return Lexicon(
        first,
        frozenset(last),
        words,
        usual,
        countries=_countries(),
        places=frozenset(_places()),
        heard=_heard(first, last),
        languages=_languages(),
    )


def _providers(package: Any) -> Iterable[Any]:
    for module in pkgutil.iter_modules(package.__path__):
        yield importlib.import_module(f"{package.__name__}.{module.name}").Provider


def _take_first(first: dict[str, str], provider: Any) -> None:
    for attribute in dir(provider):
        if not attribute.startswith(_NAMED_FIRST):
            continue
        gender = _FEMALE if "female" in attribute else _MALE if "male" in attribute else ""
        for name in _parts(_listed(provider, attribute)):
            first[name] = first.get(name) or gender


def _listed(provider: Any, attribute: str) -> Iterable[str]:
    value: Any = getattr(provider, attribute)
    if callable(value) or isinstance(value, property):
        return []
    return [item for item in value if isinstance(item, str)]


def _parts(names: Iterable[str]) -> Iterable[str]:
    for name in names:
        for part in name.casefold().split():
            if len(part) > 1 or not part.isascii():
                yield part.strip(".,")


def _countries() -> frozenset[str]:
    module = importlib.import_module("faker.providers.address.en_US")
    names = [name.casefold() for name in module.Provider.countries if isinstance(name, str)]
    return frozenset(name for name in names if len(name) > _SHORTEST_PLACE)


def _places() -> Iterable[str]:
    """Return cities and regions of all countries that have a list of them, with and without accents."""
    names = [
        name
        for provider in _providers(faker.providers.address)
        for attribute in _PLACES & set(dir(provider))
        for name in _listed(provider, attribute)
    ]
    for country in faker.providers.date_time.Provider.countries:  # with capitals, and a city for each zone of time
        names += (country.capital, *(zone.rpartition("/")[2].replace("_", " ") for zone in country.timezones))
    for name in names:
        low = name.casefold()
        if len(low) >= _SHORTEST_PLACE:
            yield low
            yield "".join(letter for letter in unicodedata.normalize("NFD", low) if not unicodedata.combining(letter))


def _heard(first: Mapping[str, str], last: Set[str]) -> frozenset[str]:
    """Return words that people choose as passwords: what everybody knows and hardly anybody is called."""
    words = FREQUENCY_LISTS["passwords"][:_HEARD_RANK]
    return frozenset(
        word
        for word in words
        if word.isalpha() and len(word) >= _SHORTEST_HEARD and not (word in first or word in last)
    )


def _languages() -> frozenset[str]:
    """Return the names of languages (ISO 639)."""
    return frozenset(name.casefold() for name in faker.providers.person.Provider.language_names)
