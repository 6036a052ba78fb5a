"""The index of faults names tests that are there."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
NAMED = sorted(
    set(re.findall(r"`([\w/]+\.py)::(\w+)`", (TESTS / "scenarios" / "README.md").read_text(encoding="utf-8")))
)


def test_index_is_not_empty() -> None:
    assert len(NAMED) > 50


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_named_test_is_there(file: str, name: str) -> None:
    assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8")
