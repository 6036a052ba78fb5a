"""The rarer fields of a memory: its type and tier, whose it is, where it was, what it was made of (vault-format §9)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from memseal.errors import MemoryInvalid
from memseal.format.fields import U32, Fields
from memseal.format.media import decode_media
from memseal.memory.texts import ID_SIZE, check_text, parse_id
from memseal.memory.types import TYPES

ATOM, COMPOSITE, AFFINITY = TIERS = ("atom", "composite", "affinity")
# A group that is larger is cut into several; 16 KiB of ids are more than most texts.
MAX_SOURCES: Final = 1_024
_MAX_POLICY: Final = 32
OWNER_ONLY: Mapping[str, Any] = MappingProxyType({"access": "owner"})
_DEGREE: Final = 10_000_000
"""Locations are stored in 10⁻⁷ degrees, about a centimetre: as integers they are the same in every language."""

Others: TypeAlias = Mapping[str, Any]
"""Fields of a memory as they are stored, all but the common ones."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where something was: degrees north and east (WGS 84), or the name of a place, or both."""

    lat: float | None = None
    lon: float | None = None
    place: str | None = None


@dataclass(frozen=True, slots=True)
class Derivation:
    """How a memory was made of others: the job's rule, what of (`key`), its run (32 hex digits), from how many."""

    rule: str
    key: str = field(repr=False)
    run: str
    count: int


@dataclass(frozen=True, slots=True)
class Traits:
    """The rarer fields of one memory; `type` and `stated_policy` are None where its writer named none."""

    type: str | None = None
    tier: str = ATOM
    owner: str | None = field(default=None, repr=False)
    stated_policy: Mapping[str, Any] | None = None
    location: Location | None = field(default=None, repr=False)
    derived_from: tuple[str, ...] = ()
    derivation: Derivation | None = None


PLAIN: Final = Traits()


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────


def written_traits(
    *,
    type: str | None = None,  # noqa: A002 - the word of the specification
    tier: str | None = None,
    owner: str | None = None,
    policy: Mapping[str, Any] | None = None,
    location: Location | Mapping[str, Any] | None = None,
    derived_from: Iterable[str] = (),
    derivation: Derivation | Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the fields as they are stored; raises `MemoryInvalid` or `TypeError` that name the field."""
    if type is not None and type not in TYPES:
        raise MemoryInvalid(f"type is one of {', '.join(TYPES)}")
    if tier is not None and tier not in TIERS:
        raise MemoryInvalid(f"tier is one of {', '.join(TIERS)}")
    sources = _written_sources(derived_from)
    if tier not in (None, ATOM) and not sources:
        raise MemoryInvalid(f"a memory of tier {tier} names in derived_from what it was made of")
    written = {
        "type": type,
        "tier": None if tier == ATOM else tier,
        "owner": None if owner is None else check_text("owner", owner),
        "policy": None if policy is None else _written_policy(policy),
        "location": None if location is None else _written_location(location),
        "derived_from": sources or None,
        "derivation": None if derivation is None else _written_derivation(derivation),
    }
    return {name: value for name, value in written.items() if value is not None}


def _written_sources(derived_from: Iterable[str]) -> list[bytes]:
    if isinstance(derived_from, str):
        raise TypeError("derived_from is a list of memory ids, not one text")
    sources = _written_ids("derived_from", derived_from)
    if len(sources) > MAX_SOURCES:
        raise MemoryInvalid(f"derived_from names at most {MAX_SOURCES} memories")
    return sources


def _written_ids(name: str, ids: Iterable[str]) -> list[bytes]:
    try:
        return list(dict.fromkeys(parse_id(each) for each in ids))
    except ValueError as error:
        raise MemoryInvalid(f"{name}: {error}") from None


def _written_policy(policy: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(policy, Mapping):
        raise TypeError(f"policy is a mapping, not {policy.__class__.__name__}")
    if dict(policy) != OWNER_ONLY:
        raise MemoryInvalid("policy is {'access': 'owner'}: there is no other yet")
    return dict(OWNER_ONLY)


def _written_location(location: Location | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(location, Mapping):
        if unknown := set(location) - {"lat", "lon", "place"}:
            raise MemoryInvalid(f"location has lat, lon and place, no {sorted(map(str, unknown))[0]!r}")
        location = Location(**location)
    elif not isinstance(location, Location):
        raise TypeError(f"location is a mapping or a Location, not {location.__class__.__name__}")
    if (location.lat is None) != (location.lon is None):
        raise MemoryInvalid("location has lat and lon, or neither")
    if location.lat is None and location.place is None:
        raise MemoryInvalid("location has lat and lon, or a place")
    written: dict[str, Any] = {}
    if location.lat is not None and location.lon is not None:
        written = {"lat": _written_degrees("lat", location.lat, 90), "lon": _written_degrees("lon", location.lon, 180)}
    if location.place is not None:
        written["place"] = check_text("place", location.place)
    return written


def _written_degrees(name: str, value: float, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is a number of degrees, not {value.__class__.__name__}")
    if not -most <= value <= most:
        raise MemoryInvalid(f"{name} is from -{most} to {most} degrees")
    return round(value * _DEGREE)


def _written_derivation(derivation: Derivation | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(derivation, Mapping):
        if set(derivation) != {"rule", "key", "run", "count"}:
            raise MemoryInvalid("derivation has rule, key, run and count")
        derivation = Derivation(**derivation)
    elif not isinstance(derivation, Derivation):
        raise TypeError(f"derivation is a mapping or a Derivation, not {derivation.__class__.__name__}")
    if derivation.count.__class__ is not int or not 1 <= derivation.count < U32:
        raise MemoryInvalid("derivation.count is how many memories it was made of, from 1")
    return {
        "rule": check_text("derivation.rule", derivation.rule),
        "key": check_text("derivation.key", derivation.key),
        "run": _written_ids("derivation.run", [derivation.run])[0],
        "count": derivation.count,
    }


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────


def check_traits(others: Others) -> None:
    """Refuse a field that is not what it must be; raises `FormatError` `operation_invalid`."""
    for name, value in others.items():
        if value is not None and (check := _CHECKS.get(name)) is not None:
            check(Fields(others, "operation_invalid", "operation"), name, value)


def read_traits(others: Others) -> Traits:
    """Return the rarer fields of a memory from what `check_traits` has passed."""
    if others.keys().isdisjoint(_READ):
        return PLAIN
    policy, location, derivation = others.get("policy"), others.get("location"), others.get("derivation")
    return Traits(
        type=others.get("type"),
        tier=tier_of(others) or ATOM,
        owner=others.get("owner"),
        stated_policy=None if policy is None else MappingProxyType(policy),
        location=None if location is None else _read_location(location),
        derived_from=tuple(each.hex() for each in sources_of(others)),
        derivation=None if derivation is None else _read_derivation(derivation),
    )


def sources_of(others: Others) -> list[bytes]:
    """Return the ids of the memories from which one was made."""
    return others.get("derived_from") or []


def tier_of(others: Others) -> str | None:
    """Return the tier of what was derived, None of an atom."""
    tier: str | None = others.get("tier")
    return None if tier == ATOM else tier


def seen_of(others: Others) -> int | None:
    """Return from how many memories a job made one."""
    derivation = others.get("derivation")
    return None if derivation is None else derivation["count"]


def carried_on(traits: Traits) -> dict[str, Any]:
    """Return the fields that a memory hands on to the one that supersedes it, as they are stored."""
    policy = None if traits.stated_policy is None else dict(traits.stated_policy)
    handed = {"type": traits.type, "owner": traits.owner, "policy": policy}
    return {name: value for name, value in handed.items() if value is not None}


def _read_location(value: Mapping[str, Any]) -> Location:
    lat, lon = value.get("lat"), value.get("lon")
    return Location(None if lat is None else lat / _DEGREE, None if lon is None else lon / _DEGREE, value.get("place"))


def _read_derivation(value: Mapping[str, Any]) -> Derivation:
    return Derivation(value["rule"], value["key"], value["run"].hex(), value["count"])


def _check_filled(fields: Fields, name: str, value: Any) -> None:
    fields.check(value.__class__ is str and value != "", name)


def _check_policy(fields: Fields, name: str, value: Any) -> None:
    fields.check(value.__class__ is dict and len(value) <= _MAX_POLICY, name)
    _check_filled(fields, name, value.get("access"))


def _check_location(fields: Fields, name: str, value: Any) -> None:
    fields.check(value.__class__ is dict, name)
    lat, lon, place = value.get("lat"), value.get("lon"), value.get("place")
    fields.check((lat is None) == (lon is None) and (lat is not None or place is not None), name)
    fields.check(lat is None or (_is_degrees(lat, 90) and _is_degrees(lon, 180)), name)
    if place is not None:
        _check_filled(fields, name, place)


def _is_degrees(value: Any, most: int) -> bool:
    return value.__class__ is int and -most * _DEGREE <= value <= most * _DEGREE


def _check_sources(fields: Fields, name: str, value: Any) -> None:
    fields.check(value.__class__ is list and 0 < len(value) <= MAX_SOURCES, name)
    fields.check(all(each.__class__ is bytes and len(each) == ID_SIZE for each in value), name)


def _check_derivation(fields: Fields, name: str, value: Any) -> None:
    inner = Fields(value, "operation_invalid", f"operation.{name}")
    for each in ("rule", "key"):
        inner.check(inner.text(each) != "", each)
    inner.size("run", ID_SIZE)
    inner.count("count", 1)


def _check_media(_fields: Fields, _name: str, value: Any) -> None:
    decode_media(value)  # carried on as it is: this layer has no use for it


_CHECKS: Mapping[str, Callable[[Fields, str, Any], None]] = {
    "type": _check_filled,
    "tier": _check_filled,
    "owner": _check_filled,
    "policy": _check_policy,
    "location": _check_location,
    "derived_from": _check_sources,
    "derivation": _check_derivation,
    "media": _check_media,
}
_READ: Final = frozenset(_CHECKS) - {"media"}
