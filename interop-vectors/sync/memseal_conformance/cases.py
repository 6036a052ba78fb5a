"""Read the cases; a field that is not known stops the run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from memseal_conformance.forms import CaseInvalid, members_of

NEEDS = ("large", "vault_limit")

_FILES = (
    "requests",
    "heads",
    "signatures",
    "keys",
    "keyring",
    "completing",
    "segments",
    "logs",
    "checkpoints",
    "floors",
    "limits",
)


@dataclass(frozen=True)
class Step:
    """One request and what is expected of the answer; the README of the vectors says what each member means."""

    send: str
    key: str = "alice"
    body: Any = None
    sent: Any = None
    hang_up: int | None = None
    headers: Mapping[str, str] | None = None
    sign: Mapping[str, Any] | None = None
    expect: Sequence[str] = ()
    members: Mapping[str, Any] | None = None
    heads: Mapping[str, Any] | None = None
    content: Any = None
    answer: Mapping[str, str] | None = None
    differs: Mapping[str, str] | None = None
    save: Mapping[str, str] | None = None
    seconds: Sequence[float] | None = None
    meanwhile: "Sequence[Step]" = ()


@dataclass(frozen=True)
class Case:
    """One case: what is made, what is sent before (`start`), and the steps that are judged."""

    id: str
    section: str
    title: str
    needs: str | None
    make: Mapping[str, Any]
    start: Sequence[Step]
    steps: Sequence[Step]


def load() -> list[Case]:
    """Return all cases, in the order of their sections."""
    starts: dict[str, Any] = _file("starts")
    found = [case for name in _FILES for case in _section(name, starts)]
    if len({case.id for case in found}) != len(found):
        raise CaseInvalid("two cases have one id")
    return found


def _file(name: str) -> Any:
    return json.loads((resources.files("memseal_conformance") / "cases" / f"{name}.json").read_text(encoding="utf-8"))


def _section(name: str, starts: Mapping[str, Any]) -> list[Case]:
    file = _take(_file(name), name, needed={"format", "section", "cases"})
    if file["format"] != 1 or not file["cases"]:
        raise CaseInvalid(f"{name}: another format, or no cases")
    return [_case(f"{name}/", file["section"], written, starts) for written in file["cases"]]


def _case(prefix: str, section: str, written: Any, starts: Mapping[str, Any]) -> Case:
    known = _take(written, prefix, needed={"id", "title", "steps"}, optional={"start", "make", "needs"})
    where = prefix + known["id"]
    make, start = _start(known.get("start"), starts)
    need = known.get("needs")
    if need not in (None, *NEEDS) or not known["steps"]:
        raise CaseInvalid(f"{where}: it needs what this runner does not know, or has no steps")
    steps = [_step(step, where) for step in known["steps"]]
    return Case(where, section, known["title"], need, {**make, **known.get("make", {})}, start, steps)


def _start(name: str | None, starts: Mapping[str, Any]) -> tuple[dict[str, Any], list[Step]]:
    if name is None:
        return {}, []
    written = _take(starts[name], f"start {name}", needed={"title", "steps"}, optional={"start", "make"})
    make, steps = _start(written.get("start"), starts)
    return {**make, **written.get("make", {})}, steps + [_step(step, name) for step in written["steps"]]


def _step(written: Any, where: str) -> Step:
    known = _take(written, where, needed={"send", "expect"}, optional=set(Step.__dataclass_fields__))
    known["expect"] = [known["expect"]] if isinstance(known["expect"], str) else known["expect"]
    known["meanwhile"] = [_step(step, where) for step in known.get("meanwhile", [])]
    return Step(**known)


def _take(
    written: Any, where: str, *, needed: set[str], optional: set[str] | frozenset[str] = frozenset()
) -> dict[str, Any]:
    members = members_of(written)
    if not needed <= members.keys() <= needed | optional:
        raise CaseInvalid(f"{where}: a member is missing or unknown among {', '.join(members)}")
    return dict(members)
