"""What running a vector gives, and the operations by their names; byte strings are hex."""

import struct
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from memseal.index.view import View
from memseal.memory.memory import State
from memseal.store.disk import OsDisk
from memseal.store.folder import VaultFolder
from memseal.vault.folder import opening
from tests.interop.manifest import octets

Given = Any
Gives = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What an operation gives, and the codes of what it found wrong."""

    ok: Gives
    findings: frozenset[str] = frozenset()


# Most vectors have one passphrase and salt: each is stretched once.
stretcher = cache(opening.stretcher)

Operation = Callable[..., Outcome]
OPERATIONS: dict[str, Operation] = {}


def operation(run: Operation) -> Operation:
    """Make a function known by its name; its parameters are the fields of the input."""
    OPERATIONS[run.__name__.rstrip("_")] = run
    return run


def tagged(value: Any) -> Any:
    """A msgpack value as the manifest writes it."""
    match value:
        case bytes():
            return {"bytes": value.hex()}
        case float():
            return {"float": struct.pack(">d", value).hex()}
        case bool():
            return value
        case int() if abs(value) >= 1 << 53:
            return {"int": str(value)}
        case list():
            return [tagged(inner) for inner in value]
        case dict():
            return {"map": {name: tagged(inner) for name, inner in value.items()}}
        case _:
            return value


def memories_of(view: View) -> list[Gives]:
    """All memories of a view as the vectors describe them, by id."""
    state, rivals = view.state, dict(view.state.conflicts())
    numbers = [row[0] for row in state.connection.execute("SELECT n FROM memories WHERE same IS NULL")]
    found = dict(zip(numbers, state.memories(numbers), strict=True))
    lost = {number for _, others in rivals.items() for number in others[1:]}
    return sorted(
        (
            {
                "id": each.id,
                "content": each.content,
                "kind": each.kind,
                "tags": sorted(each.tags),
                "active": each.state is State.ACTIVE,
                "retracted": bool(each.state & State.RETRACTED),
                "superseded_by": None if number in lost else each.superseded_by,
                "conflicts": sorted(found[other].id for other in rivals.get(number, [])[1:]),
            }
            for number, each in found.items()
        ),
        key=itemgetter("id"),
    )


@contextmanager
def vault_of(files: Mapping[str, Given]) -> Generator[VaultFolder]:
    """A vault's folder with these files."""
    with TemporaryDirectory() as path:
        for name, content in files.items():
            file = Path(path) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(octets(content))
        yield VaultFolder(Path(path), OsDisk())
