"""The name lists that stand-ins are drawn from."""

import importlib
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from memseal.privacy.lexicon import Lexicon
from memseal.privacy.pools import Pools

# Where a name is at home is the first of these lists that has it; the key is what a pool is called.
_LOCALES: Final = {
    locale: locale.partition("_")[0]
    for locale in """
    en_US en_GB de_DE es_ES fr_FR it_IT pt_BR nl_NL pl_PL cs_CZ sv_SE no_NO fi_FI hu_HU ro_RO tr_TR en_IN vi_VN is_IS
    ru_RU el_GR ar_SA ko_KR zh_CN ja_JP
    """.split()
} | {"en_IN": "hi"}
_PACKED: Final = ("zh", "ja", "ko")
_OTHER_SCRIPTS: Final = ("ru", "el", "ar")
_LENGTHS: Final = range(4, 12)


@cache
def pools(lexicon: Lexicon) -> Pools:
    """Return the pools, without names that are words too."""
    first: dict[tuple[str, str], set[str]] = {}
    last: dict[tuple[str, str], set[str]] = {}
    home: dict[str, str] = {}
    for locale, key in _LOCALES.items():
        provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
        for gender, attribute in (("f", "first_names_female"), ("m", "first_names_male")):
            names = set(_listed(provider, attribute))
            first.setdefault((key, gender), set()).update(names)
            first.setdefault((key, ""), set()).update(names)
        surnames = {
            name
            for attribute in dir(provider)
            if attribute.startswith("last_names")
            for name in _listed(provider, attribute)
        }
        last.setdefault((key, ""), set()).update(surnames)
        for gender, attribute in (("f", "last_names_female"), ("m", "last_names_male")):
            if own := set(_listed(provider, attribute)):
                last[key, gender] = own
        for name in (*first[key, ""], *surnames):
            home.setdefault(name.casefold(), key)
    for key in _PACKED:  # a name in these scripts is one word: family name, then given name
        families, given = sorted(last[key, ""]), sorted(first[key, ""])
        whole = {family + own for family in families[:60] for own in given[:60]}
        first |= {(key, gender): whole for gender in ("f", "m", "")}
        last[key, ""] = whole
    everyone = {name for (key, _), names in first.items() if key not in _PACKED for name in names}
    return Pools(
        {place: _usable(place[0], names, lexicon) for place, names in first.items()},
        {place: _usable(place[0], names - everyone, lexicon) for place, names in last.items()},
        home,
    )


def _listed(provider: Any, attribute: str) -> Iterable[str]:
    return [name for name in getattr(provider, attribute, ()) if isinstance(name, str)]


_FEWEST: Final = 40  # with fewer, names would repeat what they stand for too often: the default's are taken


def _usable(key: str, names: Iterable[str], lexicon: Lexicon) -> tuple[str, ...]:
    if key in _PACKED:
        return tuple(sorted(name for name in names if 2 <= len(name) <= 4 and not name.isascii()))
    # Of Latin letters only those that every reply spells the same way: ü may come back as ue, u or \u00fc.
    usable = tuple(
        sorted(
            name
            for name in names
            if name.isalpha()
            and (name.isascii() or key in _OTHER_SCRIPTS)
            and len(name) in _LENGTHS
            and name[1:].islower()
            and name.casefold() not in lexicon.words
            and not lexicon.is_word(name.casefold())
        )
    )
    return usable if len(usable) >= _FEWEST else ()
