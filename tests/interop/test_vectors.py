"""The interop vectors, run through this implementation."""

import re
import subprocess
import sys
from collections import Counter

import jsonschema
import pytest

from memseal.errors import MemsealError
from tests.interop.manifest import FOLDER, ROOT, Case, cases, load, written_out
from tests.interop.running import OPERATIONS

CASES = cases()
LEAST = 200


def _is_negative(case: Case) -> bool:
    return "error" in case["expect"] or "findings" in case["expect"]


def _id(case: Case) -> str:
    return str(case["id"])


@pytest.mark.parametrize("case", [case for case in CASES if "error" in case["expect"]], ids=_id)
def test_what_a_vector_says_is_wrong_is_refused_with_its_code(case: Case) -> None:
    with pytest.raises(MemsealError) as refused:
        OPERATIONS[case["operation"]](**case["input"])
    assert refused.value.code == case["expect"]["error"]


@pytest.mark.parametrize("case", [case for case in CASES if "ok" in case["expect"]], ids=_id)
def test_what_a_vector_says_comes_out(case: Case) -> None:
    outcome = OPERATIONS[case["operation"]](**case["input"])
    assert sorted(outcome.findings) == case["expect"].get("findings", [])
    assert outcome.ok == written_out(case["expect"]["ok"])


# ── the manifest itself ─────────────────────────────────────────────────────────────────────────────


def test_manifest_is_as_its_schema_says() -> None:
    jsonschema.Draft202012Validator(load("manifest.schema.json")).validate(load("manifest.json"))


def test_schema_refuses_unknown_fields_operations_and_codes_and_an_empty_list() -> None:
    validator = jsonschema.Draft202012Validator(load("manifest.schema.json"))
    (sound,) = (case for case in CASES if case["id"] == "record/moved-index")
    broken: list[list[Case]] = [
        [],
        [sound | {"more": 1}],
        [sound | {"operation": "open_everything"}],
        [sound | {"input": sound["input"] | {"more": 1}}],
        [sound | {"input": {}}],
        [sound | {"expect": {"error": "no_such_code"}}],
        [sound | {"expect": {}}],
        [sound | {"expect": sound["expect"] | {"more": 1}}],
        [sound | {"expect": {"ok": {"content": "00", "more": 1}}}],
        [sound | {"expect": {"ok": {"content": "00"}, "findings": []}}],
    ]
    assert validator.is_valid({"format": 1, "cases": [sound]})
    assert [validator.is_valid({"format": 1, "cases": each}) for each in broken] == [False] * len(broken)


def test_ids_are_used_once_and_titles_tell_cases_of_a_group_apart() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES)
    titles = Counter((case["id"].split("/")[0], case["operation"], case["title"]) for case in CASES)
    assert [title for title, count in titles.items() if count > 1] == []


def test_there_are_enough_cases_and_two_thirds_are_negative() -> None:
    negative = sum(map(_is_negative, CASES))
    assert len(CASES) >= LEAST
    assert 3 * negative >= 2 * len(CASES)


def test_codes_of_the_vectors_stand_in_the_table_of_errors() -> None:
    table = (ROOT / "format-spec" / "errors.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    expected = {case["expect"]["error"] for case in CASES if "error" in case["expect"]}
    expected.update(code for case in CASES for code in case["expect"].get("findings", []))
    assert expected - known == set()


def test_readme_counts_the_cases_by_rule_as_the_manifest_does() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| ((?:vault-format|sync-protocol) [^|]+?) \| (\d+ \| \d+) \|$", readme, re.MULTILINE))
    every = Counter(case["rule"] for case in CASES)
    negative = Counter(case["rule"] for case in CASES if _is_negative(case))
    assert listed == {rule: f"{count} | {negative[rule]}" for rule, count in every.items()}


def test_every_file_under_cases_belongs_to_a_case() -> None:
    named = set(re.findall(r'"file": "([^"]+)"', (FOLDER / "manifest.json").read_text(encoding="utf-8")))
    there = {path.relative_to(FOLDER).as_posix() for path in (FOLDER / "cases").rglob("*") if path.is_file()}
    assert there == named


def test_vectors_are_what_the_generator_makes() -> None:
    generator = [sys.executable, str(FOLDER / "generate.py"), "--check"]
    done = subprocess.run(generator, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
