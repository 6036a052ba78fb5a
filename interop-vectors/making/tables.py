"""The tables in README.md that are made from the cases and operations."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

from making.operations import OPERATIONS, Fields

_ROW = re.compile(r"^\| `([a-z0-9_]+)` \|", re.MULTILINE)


def codes(errors: Path) -> list[str]:
    """Return the codes of errors.md."""
    return _ROW.findall(errors.read_text(encoding="utf-8"))


def filled(readme: str, cases: list[dict[str, Any]]) -> str:
    """Return the README with its tables made anew."""
    for name, table in (("operations", _operations()), ("groups", _groups(cases)), ("rules", _rules(cases))):
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        if begin not in readme or end not in readme:
            raise ValueError(f"README.md has no place for the table of {name}")
        head, rest = readme.split(begin)
        readme = f"{head}{begin}\n{table}\n{end}{rest.split(end)[1]}"
    return readme


def is_negative(case: dict[str, Any]) -> bool:
    """Return whether a case shows that something wrong is refused or named."""
    return "error" in case["expect"] or "findings" in case["expect"]


def _operations() -> str:
    lines = ["| operation | level | input | `ok` | what it does |", "|---|---|---|---|---|"]
    for name, operation in OPERATIONS.items():
        takes, gives = _members(operation.takes), _members(operation.gives)
        lines.append(f"| `{name}` | {operation.level} | {takes} | {gives} | {operation.says} |")
    return "\n".join(lines)


def _members(fields: Fields) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in fields.items()) or "nothing"


GROUPS = {
    "primitives": "derivation, passphrases, wrapping, signatures, public keys",
    "preamble": "the 64 bytes at the start of every container, and every kind in the place of every other",
    "record": "framing, sealing and padding of single records",
    "content": "what a log's record carries: flags, columns, zstd and msgpack with their bounds",
    "log": "whole logs: order, splices, chain, signatures, damage",
    "keyring": "versions alone (K1), one after the other (K2 to K10), boxes and secrets",
    "branches": "two branches of a keyring: which is followed, and what a version that joins them ends",
    "kit": "emergency kit and recovery code: the strings, and what they open",
    "pairing": "codes, the exchange on the curve, and what both sides say",
    "device": "device files, and passphrases that changed",
    "place": "which logs a keyring has, and whose they are",
    "checkpoint": "manifests, parts, and logs without their beginning",
    "media": "media items",
    "bundle": "bundles",
    "trace": "files of traces",
    "session": "kept sessions of the sanitizer",
    "state": "metas, operations, and what they come to in any order",
    "vault": "whole vaults with one wrong file",
    "sync": "segments, and rounds with servers that lie",
    "swap": "whole objects of one kind in the place of another",
    "example": "each step of the [worked example](../format-spec/worked-example.md)",
}


def _groups(cases: list[dict[str, Any]]) -> str:
    names = [case["id"].split("/")[0] for case in cases]
    every = Counter(names)
    negative = Counter(name for name, case in zip(names, cases, strict=True) if is_negative(case))
    lines = ["| group | shows | cases | of them negative |", "|---|---|---|---|"]
    lines += [f"| {name} | {GROUPS[name]} | {count} | {negative[name]} |" for name, count in every.items()]
    return "\n".join(lines)


def _rules(cases: list[dict[str, Any]]) -> str:
    return _counted("rule", [case["rule"] for case in cases], cases)


def _counted(what: str, names: list[str], cases: list[dict[str, Any]]) -> str:
    every = Counter(names)
    negative = Counter(name for name, case in zip(names, cases, strict=True) if is_negative(case))
    lines = [f"| {what} | cases | of them negative |", "|---|---|---|"]
    lines += [f"| {name} | {every[name]} | {negative[name]} |" for name in sorted(every, key=_order)]
    lines.append(f"| all | {len(cases)} | {sum(negative.values())} |")
    return "\n".join(lines)


def _order(name: str) -> list[tuple[int, str]]:
    return [(int(digits or 0), letters) for digits, letters in re.findall(r"(\d*)(\D*)", name)]
