"""Reading the published vectors, and counting what came out of them."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

VECTORS = Path(__file__).parent.parent / "vectors"

# The fields of one case as JSON gives them.
Case: TypeAlias = dict[str, Any]
Check: TypeAlias = Callable[[Case], str]

AGREES, DIFFERS, REFUSED = "agrees", "differs", "refused"


def load(name: str) -> Any:
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


def wycheproof_cases(name: str) -> list[Case]:
    """All cases of all groups; each carries its group's fields too."""
    file = load(name)
    cases = [group | case for group in file["testGroups"] for case in group["tests"]]
    assert len(cases) == len({case["tcId"] for case in cases}) == file["numberOfTests"]
    return cases


def bytes_of(case: Case, *names: str) -> tuple[bytes, ...]:
    return tuple(bytes.fromhex(case[name]) for name in names)


def agreement(*pairs: tuple[object, object]) -> str:
    return AGREES if all(ours == theirs for ours, theirs in pairs) else DIFFERS


def count(cases: Iterable[Case], demand: str, check: Check) -> Counter[tuple[str, str]]:
    """Count the pairs of what the vector demands and what came out."""
    return Counter((case[demand], check(case)) for case in cases)
