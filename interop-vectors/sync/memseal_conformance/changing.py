"""Change a version's public section as a case describes it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from memseal_conformance.containers import sha256
from memseal_conformance.forms import call
from memseal_conformance.things import Log
from memseal_conformance.values import Source


class Things(Protocol):
    """Gives what changes name."""

    def log(self, written: Any) -> Log:
        """Return a log."""
        ...

    def octets(self, written: Any) -> bytes:
        """Return bytes."""
        ...

    def value(self, written: Any) -> Any:
        """Return a value."""
        ...


class Changer:
    """Changes one map of fields, step by step."""

    def __init__(self, source: Source, things: Things, fields: dict[str, Any]) -> None:
        self._source = source
        self._things = things
        self._fields = fields
        self._forms: Mapping[str, Callable[..., None]] = {
            "add": self._add,
            "add many": self._add_many,
            "end": self._end,
            "epoch": self._epoch,
            "renew": self._renew,
            "floor": self._floor,
            "set": self._set,
            "remove": self._remove,
        }

    def change(self, changes: Sequence[Any]) -> None:
        """Make these changes, one after the other."""
        for written in changes:
            call(self._forms, written)

    def _add(self, name: str) -> None:
        self._fields["devices"].append(self._source.entry(name, self._fields["version"]))

    def _add_many(self, count: int) -> None:
        for number in range(count):
            self._add(f"device {number}")

    def _end(self, position: int, *, streams: Sequence[tuple[str, int]] = ()) -> None:
        ends = [(self._things.log(name), records) for name, records in streams]
        rows = [[log.stream, records, log.chain(records), log.length(records)] for log, records in ends]
        self._fields["devices"][position]["ended"] = {"version": self._fields["version"], "streams": rows}

    def _epoch(self, name: str) -> None:
        self._fields["epoch"] += 1
        self._fields["epoch_since"] = self._fields["version"]
        self._fields["epoch_key"] = self._source.public(name)

    def _renew(self, purpose: str) -> None:
        before = self._fields[purpose]
        generation = 1 if before is None else before["generation"] + 1
        self._fields[purpose] = self._source.opener(purpose, generation, self._fields["version"])

    def _floor(self, manifest: Any, *, named: str, parts: Sequence[str] = (), rows: Sequence[Any] = ()) -> None:
        self._fields["floor"] = {
            "checkpoint": self._source.object_id(named),
            "digest": sha256(self._things.octets(manifest)),
            "parts": [self._source.object_id(name) for name in parts],
            "logs": [self._things.log(name).row(*place) for name, *place in rows],
        }

    def _set(self, path: str, *, to: Any) -> None:
        parent, last = self._place(path)
        parent[last] = self._things.value(to)

    def _remove(self, path: str) -> None:
        parent, last = self._place(path)
        del parent[last]

    def _place(self, path: str) -> tuple[Any, int | str]:
        """Find what a path like `devices.1.wrap` names."""
        parent: Any = self._fields
        *above, last = [int(step) if step.isdecimal() else step for step in path.split(".")]
        for step in above:
            parent = parent[step]
        return parent, last
