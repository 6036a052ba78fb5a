"""`memseal-conformance`: a true server passes, servers that lie do not, and the cases are what they should be."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from memseal_conformance.cases import Case, Step, load
from memseal_conformance.forms import CaseInvalid
from memseal_conformance.making import Maker
from memseal_conformance.values import Source
from tests.interop.lying_proxy import Answer, Lie, lying_proxy
from tests.interop.manifest import FOLDER, ROOT
from tests.ports import silent_port

SYNC = FOLDER / "sync"
FILES = sorted((SYNC / "memseal_conformance" / "cases").glob("*.json"))
CASES = load()
LEAST_STEPS = 80
VAULT_LIMIT_BYTES = 6_000_000
_END_SECONDS = 120


@contextmanager
def server(store: Path, *options: str) -> Generator[str]:
    """A server process; gives its origin."""
    arguments = ["--store", str(store), "--listen", "127.0.0.1:0", "--log-level", "error", *options]
    program = [sys.executable, "-m", "memseal_server", *arguments]
    with subprocess.Popen(program, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().removeprefix("listening on ").strip()
        finally:
            process.kill()
            process.wait(_END_SECONDS)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server for all tests: each run finds the vaults of those before."""
    with server(tmp_path_factory.mktemp("server"), "--max-vault-bytes", str(VAULT_LIMIT_BYTES)) as listening:
        yield listening


def run(url: str, *options: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "memseal_conformance", url, *options]
    environment = {**os.environ, "PYTHONUTF8": "1"}
    return subprocess.run(program, capture_output=True, encoding="utf-8", env=environment, check=False)


def failed(url: str, *options: str) -> dict[str, str]:
    """The cases that fail, with their sentences."""
    document = json.loads(run(url, "--json", *options).stdout)
    return {case["id"]: case["sentence"] for case in document["cases"] if case["outcome"] == "failed"}


# ── a true server ───────────────────────────────────────────────────────────────────────────────────


def test_our_server_passes_and_what_was_not_tested_is_named(origin: str) -> None:
    done = run(origin, "--vault-limit", str(VAULT_LIMIT_BYTES))
    large = [case for case in CASES if case.needs == "large"]
    assert (done.stdout.splitlines()[-1], done.stderr) == (f"{len(CASES) - len(large)} passed, 0 failed", "")
    assert done.returncode == 0
    assert [f"skipped  {case.id}: {case.title}" in done.stdout.splitlines() for case in large] == [True] * len(large)


def test_table_has_a_row_for_each_section_that_was_run(origin: str) -> None:
    done = run(origin, "--only", "logs", "--only", "requests/health")
    assert done.stdout.splitlines()[1:3] == [
        f"{'sync-protocol §2, §5: requests and errors':41}       1       0        0",
        f"{'sync-protocol §2: logs':41}      12       0        0",
    ]


def test_a_run_can_be_repeated_where_its_vaults_are_already(origin: str) -> None:
    assert [run(origin, "--only", "segments/same-again").returncode for _ in range(2)] == [0, 0]


def test_a_run_with_the_seed_of_another_is_refused_where_its_vaults_are(origin: str) -> None:
    again = ["--only", "heads/registered", "--seed", "00" * 31 + "01"]
    assert failed(origin, *again) == {}
    done = run(origin, *again)
    assert done.returncode == 2
    assert "the vaults of this seed are there already" in done.stderr


def test_json_has_numbers_seed_and_every_case(origin: str) -> None:
    done = run(origin, "--json", "--only", "limits", "--seed", "ab" * 32)
    document = json.loads(done.stdout)
    assert {name: value for name, value in document.items() if name != "cases"} == {
        "url": origin,
        "seed": "ab" * 32,
        "passed": 2,
        "failed": 0,
        "skipped": 4,
    }
    assert document["cases"][0] == {
        "id": "limits/version",
        "section": "sync-protocol §4: limits",
        "title": "a version of more than 4 MiB",
        "outcome": "passed",
        "sentence": "",
    }


def test_server_behind_a_proxy_is_tested_under_its_identity(tmp_path: Path) -> None:
    with server(tmp_path, "--url", "https://vaults.example") as origin:
        refused = run(origin)
        assert refused.returncode == 2
        assert "say one of ['https://vaults.example'] with --identity" in refused.stderr
        assert failed(origin, "--identity", "https://vaults.example", "--only", "logs/whole") == {}


# ── no server to test ───────────────────────────────────────────────────────────────────────────────


def test_an_address_where_nothing_listens_is_named() -> None:
    with silent_port() as port:
        url = f"http://127.0.0.1:{port}"
        done = run(url)
    assert done.returncode == 2
    assert done.stderr.startswith(f"memseal-conformance: no answer from {url}: ")


def test_a_server_of_another_kind_is_named(origin: str) -> None:
    def other(method: str, target: str, answer: Answer) -> Answer:
        return Answer(404, {"Content-Type": "text/html"}, b"<h1>Not found</h1>")

    with lying_proxy(origin, other) as url:
        done = run(url, "--identity", origin)
    assert done.returncode == 2
    assert f"no memseal server is at {url}" in done.stderr
    assert "404 (text/html)" in done.stderr


def test_a_server_that_takes_no_new_vaults_is_named(tmp_path: Path) -> None:
    with server(tmp_path, "--registration", "closed") as origin:
        done = run(origin)
    assert done.returncode == 2
    assert "open its registration" in done.stderr


@pytest.mark.parametrize("arguments", [["vaults.example"], ["http://x/path"], ["http://x", "--seed", "00"]])
def test_wrong_arguments_are_refused(arguments: list[str]) -> None:
    assert run(*arguments).returncode == 2


def test_cases_that_do_not_exist_are_no_pass(origin: str) -> None:
    done = run(origin, "--only", "nothing")
    assert (done.returncode, done.stderr) == (2, "memseal-conformance: no case begins with nothing\n")


# ── servers that lie ────────────────────────────────────────────────────────────────────────────────


@dataclass
class StaleHeads:
    """Shows the heads that it showed first, whatever came since."""

    shown: dict[str, Answer]

    def __call__(self, method: str, target: str, answer: Answer) -> Answer:
        if target.endswith("/heads") and answer.status == 200:
            return self.shown.setdefault(target, answer)
        return answer


def takes_everything(method: str, target: str, answer: Answer) -> Answer:
    return Answer(201, {}, b"") if method == "PUT" and answer.status >= 400 else answer


def words_for_problems(method: str, target: str, answer: Answer) -> Answer:
    return Answer(answer.status, {"Content-Type": "text/plain"}, b"no") if answer.status == 405 else answer


def _with_problem(answer: Answer, **members: Any) -> Answer:
    if answer.status < 400:
        return answer
    problem = {**json.loads(answer.body), **members}
    kept = {name: value for name, value in problem.items() if value is not None}
    return replace(answer, body=json.dumps(kept).encode())


def quotes_the_path(method: str, target: str, answer: Answer) -> Answer:
    return _with_problem(answer, detail=f"There is nothing at {target}.")


def other_type(method: str, target: str, answer: Answer) -> Answer:
    return _with_problem(answer, type="about:blank")


def no_detail(method: str, target: str, answer: Answer) -> Answer:
    return _with_problem(answer, detail=None)


def no_time(method: str, target: str, answer: Answer) -> Answer:
    return _with_problem(answer, now=None)


def no_end(method: str, target: str, answer: Answer) -> Answer:
    return _with_problem(answer, end=None)


def no_headers(method: str, target: str, answer: Answer) -> Answer:
    return replace(answer, headers={"Content-Type": answer.headers.get("Content-Type", "text/plain")})


def cut_bodies(method: str, target: str, answer: Answer) -> Answer:
    return replace(answer, body=answer.body[:-1]) if answer.status == 200 and "/logs/" in target else answer


def whole_for_ranges(method: str, target: str, answer: Answer) -> Answer:
    return replace(answer, status=200) if answer.status == 206 else answer


def nothing_is_gone(method: str, target: str, answer: Answer) -> Answer:
    return Answer(200, {"Memseal-Log-Length": "4496"}, b"") if answer.status == 410 else answer


def impatient(method: str, target: str, answer: Answer) -> Answer:
    return replace(answer, status=200) if answer.status == 304 else answer


LIES: list[tuple[Lie, str, str]] = [
    (takes_everything, "segments/order-gap", "should have been answered with 409 segment_order, and was with 201."),
    (takes_everything, "keyring/k10-forged", "with 422 keyring_signature, and was with 201."),
    (takes_everything, "signatures/body-replaced", "with 400 content_digest, and was with 201."),
    (takes_everything, "floors/unmet-part", "with 409 floor_unmet, and was with 201."),
    (takes_everything, "checkpoints/part-conflict", "with 409 object_conflict, and was with 201."),
    (words_for_problems, "requests/method-unknown", "with 405 method_unknown, and was with 405."),
    (quotes_the_path, "logs/unknown", "quotes an id or key in `detail`."),
    (other_type, "logs/unknown", "have the `type` urn:memseal:error:not_found, and has about:blank."),
    (no_detail, "logs/unknown", "should have a `detail`, and has none."),
    (no_time, "signatures/clock-behind", "should have the member `now` an integer, and has none."),
    (no_end, "segments/order-start", "should have the member `end` "),
    (StaleHeads({}), "heads/read-your-writes", "should show the `logs` "),
    (StaleHeads({}), "heads/tag-after-version", "should have another ETag than before"),
    (no_headers, "heads/tag-current", "should have the header ETag, and has none."),
    (no_headers, "logs/whole", "should have the header Memseal-Log-Length: 4496, and has none."),
    (cut_bodies, "logs/last-byte", "should have brought 1 certain bytes, and brought 0 others."),
    (whole_for_ranges, "checkpoints/range-first", "should have been answered with 206, and was with 200."),
    (nothing_is_gone, "floors/below-410", "should have been answered with 410 below_floor, and was with 200."),
    (impatient, "heads/wait-over", "should have been answered with 304, and was with 200."),
]


@pytest.mark.parametrize(("lie", "case", "sentence"), LIES, ids=lambda value: getattr(value, "__name__", None))
def test_a_server_that_lies_fails(origin: str, lie: Lie, case: str, sentence: str) -> None:
    with lying_proxy(origin, lie) as url:
        sentences = failed(url, "--identity", origin, "--only", case)
    assert sentence in sentences[case]


def test_failure_is_told_in_the_table_and_by_the_exit_code(origin: str) -> None:
    sentence = "should have brought 4496 certain bytes, and brought 4495 others."
    with lying_proxy(origin, cut_bodies) as url:
        done = run(url, "--identity", origin, "--only", "logs/whole", "--only", "logs/unknown")
    assert done.returncode == 1
    assert done.stdout.splitlines()[1:] == [
        "sync-protocol §2: logs       1       1        0",
        "",
        "failed  logs/whole: a log from its beginning",
        f"        GET logs/{{stream a}}, signed by alice, {sentence}",
        "",
        "1 passed, 1 failed",
    ]


def test_a_proxy_that_changes_nothing_passes(origin: str) -> None:
    with lying_proxy(origin, lambda method, target, answer: answer) as url:
        assert failed(url, "--identity", origin, "--only", "logs", "--only", "heads/tag") == {}


# ── the cases ───────────────────────────────────────────────────────────────────────────────────────


def _schema(definition: str) -> jsonschema.Draft202012Validator:
    schema: dict[str, Any] = json.loads((SYNC / "schema.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]})


def _codes(steps: Sequence[Step]) -> set[str]:
    return {outcome.partition(" ")[2] for step in steps for outcome in step.expect} - {""}


def _is_refusal(case: Case) -> bool:
    return any(step.expect[0][0] in "45n" for step in case.steps)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_cases_are_as_their_schema_says(file: Path) -> None:
    definition = "starts" if file.stem == "starts" else "section"
    _schema(definition).validate(json.loads(file.read_text(encoding="utf-8")))


def test_every_file_of_cases_is_run() -> None:
    assert {case.id.partition("/")[0] for case in CASES} | {"starts"} == {file.stem for file in FILES}


@pytest.mark.parametrize(
    "broken",
    [
        {"more": 1},
        {"steps": []},
        {"needs": "luck"},
        {"make": {"v1": {"first": "alice", "more": 1}}},
        {"steps": [{"send": "GET heads", "expect": "200", "more": 1}]},
        {"steps": [{"send": "GET heads", "expect": "200", "sign": {"more": 1}}]},
        {"steps": [{"send": "GET heads", "expect": "200", "heads": {"more": 1}}]},
        {"steps": [{"send": "GET heads"}]},
    ],
)
def test_schema_refuses_what_it_does_not_know(broken: dict[str, Any]) -> None:
    sound = {"id": "sound", "title": "sound", "steps": [{"send": "GET heads", "expect": "200"}]}
    assert _schema("case").is_valid(sound)
    assert not _schema("case").is_valid({**sound, **broken})


@pytest.mark.parametrize(
    "thing",
    [
        {"first": "alice", "more": 1},
        {"second": "alice"},
        {"first": "alice", "changes": [{"add": "bob", "more": 1}]},
        {"first": "alice", "changes": [{"forget": "bob"}]},
        {"first": "alice", "changes": [{"set": "kit", "to": {"secret": "x"}}]},
        {"flip": {"hex": "00"}},
        "nothing",
        7,
    ],
)
def test_runner_stops_at_a_thing_that_it_does_not_know(thing: Any) -> None:
    with pytest.raises(CaseInvalid):
        Maker(Source(b"", "case"), {}, None).octets(thing)


@pytest.mark.parametrize("text", ["{secret a}", "{stream nothing}"])
def test_runner_stops_at_a_place_that_it_does_not_know(text: str) -> None:
    with pytest.raises(CaseInvalid):
        Maker(Source(b"", "case"), {}, None).filled(text)


def test_there_are_enough_steps_and_most_cases_are_refusals() -> None:
    assert sum(len(case.steps) for case in CASES) >= LEAST_STEPS
    assert 2 * sum(map(_is_refusal, CASES)) > len(CASES)


def test_titles_tell_cases_of_a_section_apart() -> None:
    titles = Counter((case.section, case.title) for case in CASES)
    assert [title for title, count in titles.items() if count > 1] == []


def test_every_code_that_the_protocol_names_is_expected_by_a_case() -> None:
    protocol = (ROOT / "format-spec" / "sync-protocol.md").read_text(encoding="utf-8").partition("## 6.")[0]
    named = set(re.findall(r"\b[45][0-9]{2} `([a-z_]+)`", protocol))
    # None of them can be called forth from outside.
    of_the_operator = {"registration_closed", "timeout", "rate", "busy", "server_error", "store_unavailable"}
    of_the_operator |= {"invitation_needed", "invitation_refused"}
    expected = set().union(*(_codes(case.steps) for case in CASES))
    assert named - expected == of_the_operator


def test_codes_of_the_cases_stand_in_the_table_of_errors() -> None:
    table = (ROOT / "format-spec" / "errors.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    assert set().union(*(_codes(case.steps) for case in CASES)) <= known


def test_readme_counts_the_cases_as_they_are() -> None:
    readme = (SYNC / "README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| (sync-protocol [^|]+?) \| (\d+ \| \d+) \|$", readme, re.MULTILINE))
    every = Counter(case.section for case in CASES)
    refusals = Counter(case.section for case in CASES if _is_refusal(case))
    assert listed == {section: f"{count} | {refusals[section]}" for section, count in every.items()}
