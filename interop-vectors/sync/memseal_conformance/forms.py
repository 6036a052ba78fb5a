"""Call the function that a JSON object names by one of its members, with the others as arguments."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

Value = TypeVar("Value")


class CaseInvalid(Exception):
    """A case that this runner does not understand; it stops, for what is passed over is not proven."""


def call(forms: Mapping[str, Callable[..., Any]], written: Any) -> Any:
    """Return what the form gives: `{"cut": "v2", "last": 1}` calls `forms["cut"]("v2", last=1)`."""
    members = members_of(written)
    named = [name for name in members if name in forms]
    if len(named) != 1:
        raise CaseInvalid(f"it is none of {', '.join(forms)}, or several: {written!r:.80}")
    others = {name: value for name, value in members.items() if name != named[0]}
    return pass_on(forms[named[0]], members[named[0]], **others)


def pass_on(function: Callable[..., Value], /, *arguments: Any, **others: Any) -> Value:
    """Call a function with arguments that come from a case, if it takes them."""
    try:
        inspect.signature(function).bind(*arguments, **others)
    except TypeError as error:
        raise CaseInvalid(str(error)) from None
    return function(*arguments, **others)


def members_of(written: Any) -> dict[str, Any]:
    """Return a JSON object's members."""
    if not isinstance(written, dict):
        raise CaseInvalid(f"an object was expected, and not {written!r:.80}")
    return cast("dict[str, Any]", written)
