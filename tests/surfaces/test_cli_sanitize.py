import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from memseal.privacy.report import Item, Report
from memseal.surfaces.cli import exits
from memseal.surfaces.sanitize_page import page
from tests.surfaces.conftest import Command

pytest.importorskip("faker", reason="the extra `sanitize` is not installed")
TEXT = "Dear Sarah Chen <b>x</b>,\nmail s.chen@example.com.\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "letter.txt"
    path.write_text(TEXT, encoding="utf-8", newline="\n")
    return path


def test_text_goes_out_with_stand_ins(cli: Command, file: Path) -> None:
    run = cli("sanitize", str(file))
    assert run.code == exits.DONE
    assert run.out.endswith("<b>x</b>,\nmail [EMAIL_1].\n")
    assert "Chen" not in run.out


def test_report_shows_values_and_stand_ins_side_by_side(cli: Command, file: Path) -> None:
    run = cli("sanitize", str(file), "--report")
    assert "Sarah Chen" in run.out
    assert "[EMAIL_1]" in run.out
    assert "1 EMAIL, 1 PERSON" in run.out


def test_page_shows_both_texts_and_trace_shows_no_value(cli: Command, file: Path, tmp_path: Path) -> None:
    run = cli("sanitize", str(file), "--html", str(tmp_path / "p.html"), "--trace", str(tmp_path / "t.json"), "--json")
    shown = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert shown.count("s.chen@example.com") == 2
    assert "<b>x</b>" not in shown
    trace = (tmp_path / "t.json").read_text(encoding="utf-8")
    assert "chen" not in trace.lower()
    assert json.loads(trace)["counts"] == {"EMAIL": 1, "PERSON": 1} == run.document["counts"]
    assert cli("sanitize", str(file), "--html", str(tmp_path / "p.html")).code == exits.USAGE


def test_named_terms_are_replaced_and_allowed_ones_stay(cli: Command, file: Path) -> None:
    run = cli("sanitize", str(file), "--name", "mail", "--allow", "Sarah Chen", "--allow", "s.chen@example.com")
    assert run.out.startswith("Dear Sarah Chen <b>x</b>,\n")
    assert "\nmail" not in run.out


def test_text_that_is_not_utf8_is_refused(cli: Command, file: Path) -> None:
    file.write_bytes(b"\xff\xfe")
    assert cli("sanitize", str(file)).code == exits.USAGE


def test_page_cannot_be_made_to_run_or_fetch_anything() -> None:
    class Tags(HTMLParser):
        seen: set[str] = set()  # noqa: RUF012

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.seen.add(tag)
            assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)

    hostile = "<script>alert(1)</script><img src=x onerror=y> \u202e\x1b[31m\"'&"
    item = Item("PERSON", hostile, 0, len(hostile), hostile, hostile)
    tags = Tags()
    tags.feed(page(hostile, hostile, Report((item,), (hostile,))))
    assert not {"script", "img"} & tags.seen
    assert "\x1b" not in page(hostile, hostile, Report((item,)))
