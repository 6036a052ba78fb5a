"""The index of faults, and the spec's table of what is told, name tests and codes that are there."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
SPEC = TESTS.parent / "format-spec"
INDEX = (TESTS / "scenarios" / "README.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", INDEX)))
TOLD = (
    (SPEC / "sync-protocol.md").read_text(encoding="utf-8").partition("**What is told.**")[2].partition("**Join**")[0]
)
CODES = sorted(
    {code for row in re.findall(r"^\| [^|]+\|([^|]+)\|", TOLD, re.M) for code in re.findall(r"`(\w+)`", row)}
)
SOURCES = "\n".join(
    path.read_text(encoding="utf-8")
    for folder in ("scenarios", "sync", "format", "vault")
    for path in (TESTS / folder).glob("test_*.py")
    if path != Path(__file__)
)


def test_index_and_table_are_not_empty() -> None:
    assert len(NAMED) > 50
    assert len(CODES) > 15


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_named_test_is_there(file: str, name: str) -> None:
    assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("code", CODES)
def test_code_that_is_told_is_an_error_of_the_spec_and_expected_by_a_test(code: str) -> None:
    assert f"| `{code}` |" in (SPEC / "errors.md").read_text(encoding="utf-8")
    assert f'"{code}"' in SOURCES
