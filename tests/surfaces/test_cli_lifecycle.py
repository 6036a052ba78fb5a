"""History, proposals, capture, secrets and forgetting on the command line."""

import json

import pytest

from memseal.surfaces.cli import exits
from tests.surfaces.conftest import Command

KEY = "AKIA" + "IOSFODNN7EXAMPLE"
DAYS = ("2024-01-01", "2024-01-10", "2024-01-20")


@pytest.fixture
def moved(cli: Command) -> list[str]:
    """The ids of a memory that was superseded once."""
    old = cli("remember", "Ann lives in Oslo", "--at", DAYS[0], "--json").document["memory"]["id"]
    new = cli("supersede", old, "Ann lives in Rome", "--at", DAYS[1], "--reason", "she moved", "--json")
    return [old, new.document["memory"]["id"]]


def test_believed_and_as_of_show_the_version_of_that_day(cli: Command, moved: list[str]) -> None:
    for day, content in ((DAYS[0], "Ann lives in Oslo"), (DAYS[2], "Ann lives in Rome")):
        (version,) = cli("believed", "Ann", day, "--json").document["versions"]
        assert version["memory"]["content"] == content
        assert [each["content"] for each in cli("list", "--as-of", day, "--json").document["memories"]] == [content]
        assert [
            each["memory"]["content"] for each in cli("recall", "Ann", "--as-of", day, "--json").document["hits"]
        ] == [content]
    assert "from 2024-01-01 00:00 UTC to 2024-01-10 00:00 UTC" in cli("believed", moved[0], DAYS[0]).out
    assert cli("believed", "Ann", "2023-01-01").out == "Nothing here was believed about that then.\n"


def test_history_diff_and_revert(cli: Command, moved: list[str]) -> None:
    document = cli("history", moved[0], "--json").document
    assert [each["memory"]["id"] for each in document["versions"]] == moved
    assert [each["what"] for each in document["changes"]] == ["written", "written", "superseded"]
    assert "she moved" in cli("history", moved[1]).out
    difference = cli("diff", "2024-01-01", "2100-01-01", "--json").document
    assert difference["written"] == moved
    assert difference["superseded"] == [{"memory": moved[0], "by": moved[1]}]
    assert cli("diff", "2001-01-01", "2001-01-02").out == "Nothing was done in that time.\n"
    assert cli("diff", "2024-02-01", "2024-01-01").code == exits.USAGE
    assert cli("revert", moved[1], "--reason", "no", "--json").document["memory"]["content"] == "Ann lives in Oslo"
    assert cli("revert", moved[0], "--reason", "no").code == 3


def test_held_memory_waits_until_it_is_accepted(cli: Command) -> None:
    run = cli("remember", "tea at five", "--untrusted", "--json")
    held = run.document["memory"]
    assert (held["state"], run.document["new"]) == ("held", False)
    assert "held for review" in cli("remember", "tea at six", "--untrusted").out
    listed = cli("proposals", "--json").document["proposals"]
    assert [each["memory"]["content"] for each in listed] == ["tea at five", "tea at six"]
    assert "tea at five" in cli("proposals").out
    assert cli("accept", held["id"], "--json").document["memory"]["id"] == held["id"]
    assert cli("reject", listed[1]["id"], "--reason", "no", "--json").document == {"rejected": listed[1]["id"]}
    assert cli("proposals").out == "Nothing waits for a decision.\n"
    assert cli("accept", held["id"], "--json").error["code"] == "proposal_unknown"


def test_sources_are_held_shown_and_let_go(cli: Command) -> None:
    assert cli("hold", "web*", "--json").document == {"held_sources": ["web*"]}
    assert cli("remember", "x", "--source", "web page", "--json").document["memory"]["state"] == "held"
    assert cli("hold").out == "web*\n"
    assert cli("hold", "--nothing").out == "No source is held for review.\n"


def test_capture_is_off_until_it_is_switched_on_and_reports_without_texts(cli: Command) -> None:
    said = [
        {"role": "user", "content": "I live in Oslo. My password is hunter22.", "at": "2024-03-01"},
        {"role": "assistant", "content": "I live in a computer."},
    ]
    lines = "\n".join(map(json.dumps, said)).encode()
    assert cli("capture", "-", "--json", stdin=lines).error["code"] == "capture_off"
    assert cli("capture", "--on", "--json").document == {"capture": {"on": True, "allow": []}}
    run = cli("capture", "-", "--json", stdin=lines)
    assert (len(run.document["proposed"]), run.document["refused"]) == (1, {"credentials": 1})
    assert "hunter22" not in run.out + run.err
    assert cli("capture", "-", stdin=json.dumps(said).encode()).out.splitlines()[0] == "0 proposed, 1 known already"
    (proposal,) = cli("proposals", "--json").document["proposals"]
    assert (proposal["memory"]["source"], proposal["memory"]["captured_at"]) == (
        "capture:chat",
        "2024-03-01T00:00:00+00:00",
    )


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        ((), b""),
        (("-", "--on"), b""),
        (("--on", "--allow", "credentials"), b""),
        (("-",), b"{"),
        (("-",), b"[1]"),
        (("-",), b'{"content": "x"}'),
        (("-",), b'{"role": "user", "content": "x", "at": "soon"}'),
    ],
)
def test_capture_that_cannot_be_meant_is_wrong_usage(cli: Command, arguments: tuple[str, ...], stdin: bytes) -> None:
    assert cli("capture", *arguments, stdin=stdin).code == exits.USAGE


def test_secret_is_refused_with_a_way_on_and_found_by_the_audit(cli: Command) -> None:
    run = cli("remember", f"use {KEY}", "--json")
    assert run.error["code"] == "secret_in_memory"
    assert KEY not in run.out + run.err
    assert cli("audit").out == "No secret was found.\n"
    assert (
        cli("remember", f"use {KEY}", "--secrets", "redact", "--json").document["memory"]["content"] == "use [secret]"
    )
    kept = cli("remember", f"use {KEY}", "--secrets", "keep", "--json").document["memory"]["id"]
    found = cli("audit", "--json")
    assert (found.code, found.document) == (
        exits.NOT_ALL,
        {"exposed": [{"id": kept, "sure": {"provider key": 1}, "possible": {}}]},
    )
    assert KEY not in cli("audit").out


def test_forgetting_by_words_shows_ids_and_changes_nothing(cli: Command, moved: list[str]) -> None:
    assert {each["id"] for each in cli("forget", "Ann", "--json").document["memories"]} == set(moved)
    assert moved[0] in cli("forget", "Ann").out
    assert cli("list", "--json").document["total"] == 1


def test_erase_by_source_by_ids_and_of_all(cli: Command, moved: list[str]) -> None:
    cli("remember", "from mail", "--source", "mail")
    cli("remember", "held from mail", "--source", "mail", "--untrusted")
    assert len(cli("erase", "--source", "mail", "--yes", "--json").document["erasure"]["erased"]) == 2
    assert cli("erase", "--source", "mail", "--yes").code == exits.USAGE
    assert cli("erase", "--yes").code == cli("erase", moved[0], "--all", "--yes").code == exits.USAGE
    cli("remember", "another")
    assert len(cli("erase", "--all", "--yes", "--json").document["erasure"]["erased"]) == 3
    assert cli("list", "--state", "all", "--json").document["total"] == 0


def test_conflicts_and_resolve_say_what_there_is(cli: Command) -> None:
    assert cli("conflicts").out == "There are no conflicts.\n"
    assert cli("conflicts", "--json").document == {"conflicts": []}
    assert cli("resolve", "0" * 32, "--json").error["code"] == "proposal_unknown"
