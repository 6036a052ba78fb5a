"""The values that providers' clients give and take: mappings, or objects of their own data classes."""

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final, cast

_DEEPEST: Final = 64


def is_value(answer: Any) -> bool:
    """Whether an answer is data all through, rather than an object that goes and gets some."""
    kinds = (str, bytes, int, float, list, dict, tuple)
    return (answer is None or isinstance(answer, kinds) or is_record(answer)) and _is_data(answer, 0)


def is_record(value: Any) -> bool:
    """Whether an object is one of a client's data classes."""
    if isinstance(value, type):
        return False
    return hasattr(value, "model_dump") or dataclasses.is_dataclass(value) or isinstance(value, SimpleNamespace)


def is_stream(answer: Any) -> bool:
    """Whether an answer arrives in pieces; models of a client can be iterated as well, but have fields."""
    return hasattr(answer, "__next__") or (
        hasattr(answer, "__iter__")
        and not isinstance(answer, (str, bytes, list, dict, tuple))
        and not is_record(answer)
    )


def plain(value: Any) -> Any:
    """Return messages with the client's data classes as mappings: what it answered is often sent back to it."""
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    if isinstance(value, SimpleNamespace):
        return plain(vars(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in cast("Sequence[Any]", value)]
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in cast("dict[Any, Any]", value).items()}
    return cast("Any", value)


def fields_of(record: Any) -> dict[str, Any]:
    """Return a record's fields, those that its class does not name too."""
    if isinstance(record, dict):
        return cast("dict[str, Any]", record)
    if dataclasses.is_dataclass(record):
        return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    more: dict[str, Any] = getattr(record, "__pydantic_extra__", None) or {}
    return {**vars(record), **more}


def with_fields(record: Any, changed: Mapping[str, Any]) -> Any:
    """Return a copy of a record with other values in some fields; it keeps its type, and nothing is validated anew."""
    made = copy.copy(record)
    for name, value in changed.items():
        put(made, name, value)
    return made


def get(holder: Any, name: str) -> Any:
    """Return a field of a mapping or an object, or nothing where it has none."""
    return cast("dict[str, Any]", holder).get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def put(holder: Any, name: str, value: Any) -> None:
    """Set a field of a mapping or an object, one that is frozen too: these are copies of our own."""
    if isinstance(holder, dict):
        holder[name] = value
        return
    more: dict[str, Any] | None = getattr(holder, "__pydantic_extra__", None)
    if more is not None and name in more:
        more[name] = value
    elif hasattr(holder, "model_dump"):
        vars(holder)[name] = value
    else:
        object.__setattr__(holder, name, value)


def listed(holder: Any, name: str) -> list[Any]:
    """Return a field that is a list, or an empty one."""
    found = get(holder, name)
    return list(cast("Sequence[Any]", found)) if isinstance(found, list) else []


def _is_data(value: Any, depth: int) -> bool:
    """Whether nothing in a value can be called: what can be may send something, and has to stay guarded."""
    if value is None or isinstance(value, (str, bytes, int, float)):
        return True
    if callable(value) or depth > _DEEPEST:
        return False
    if isinstance(value, (list, tuple)):
        return all(_is_data(item, depth + 1) for item in cast("Sequence[Any]", value))
    fields: Mapping[Any, Any] = cast("Any", value) if isinstance(value, dict) else getattr(value, "__dict__", {})
    more: Mapping[str, Any] = getattr(cast("Any", value), "__pydantic_extra__", None) or {}
    return all(_is_data(item, depth + 1) for item in (*fields.values(), *more.values()))
