"""Let a command take options that belong together as one value: a dataclass whose fields are options."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, cast


def spread(command: Callable[..., int]) -> Callable[..., int]:
    """Return the command with every dataclass among its parameters spread into that one's fields, in their place.

    Typer reads a signature and knows nothing of groups, so it is shown the fields, and the command gets the value.
    """
    signature = inspect.signature(command)
    annotations: dict[str, Any] = {name: each.annotation for name, each in signature.parameters.items()}
    groups = {name: kind for name, kind in annotations.items() if isinstance(kind, type) and is_dataclass(kind)}
    fields = {name: inspect.signature(group).parameters for name, group in groups.items()}

    @functools.wraps(command)
    def run(**given: Any) -> int:
        made = {name: group(**{each: given.pop(each) for each in fields[name]}) for name, group in groups.items()}
        return command(**given, **made)

    shown = list[inspect.Parameter]()
    for name, parameter in signature.parameters.items():
        shown += fields[name].values() if name in groups else [parameter]
    # By keyword alone: a field may have a default where what follows it has none.
    shown = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in shown]
    cast("Any", run).__signature__ = signature.replace(parameters=shown)
    return run
