"""Memories as Markdown: stable, and not to be broken by what is in them."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memseal.surfaces.exporting.markdown import _escaped, _quoted, markdown
from memseal.vault.vault import Vault
from tests.surfaces.conftest import PASSPHRASE

AT = datetime(2025, 3, 1, 10, tzinfo=UTC)
HOSTILE = [
    "# a heading",
    "> a quote\n> > deeper",
    "```\ncode\n# not closed",
    "~~~ sh",
    "<script>alert(1)</script>",
    "</blockquote></body><h1>mine</h1>",
    "<!-- not closed",
    "![tracker](https://example.org/x.png) and [a link](javascript:alert(1))",
    "[x]: https://example.org\n[x]",
    "a\n===\nb\n---",
    "- a\n- b\n1. c\n2) d\n+ e\n* f",
    "---\n***\n___",
    "    indented\n\tcode",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "*bold* __more__ ~~gone~~ `code` $x$ &lt; &#35;",
    "a\r# b\u2028# c\u0085# d\x0b# e\n\n\n# f",
    "ends with a backslash\\\n# next",
    "\\",
    "\u202eevil\u202c \x1b[31mred",
]


def tokens(lines: list[str]) -> list[str]:
    parsed = MarkdownIt("gfm-like", {"linkify": False}).parse("\n".join(lines))
    return [token.type for token in parsed] + [each.type for token in parsed for each in token.children or ()]


ALLOWED = {"blockquote_open", "blockquote_close", "paragraph_open", "paragraph_close", "inline", "text", "hardbreak"}


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_nothing_but_text_in_its_quote(text: str) -> None:
    found = tokens(list(_quoted(text)))
    assert set(found) <= ALLOWED | {"text_special"}
    assert found.count("blockquote_open") == 1


@given(st.text(alphabet=st.sampled_from("ab \n\t\r#>*_-+=`~[]()<>!\\|&$^{}:.019/"), max_size=60))
def test_any_text_is_nothing_but_text_in_its_quote(text: str) -> None:
    found = tokens(list(_quoted(text)))
    assert set(found) <= ALLOWED | {"text_special"}
    assert found.count("blockquote_open") == 1


@given(st.text(alphabet=st.sampled_from("ab #>*_-+=`~[]()<>!\\|&$^{}:.019/"), min_size=1, max_size=40))
def test_any_name_of_a_thread_is_one_heading(name: str) -> None:
    found = tokens([f"## {_escaped(name)}"])
    assert set(found) <= {"heading_open", "heading_close", "inline", "text", "text_special"}


def test_a_text_reads_as_it_was_written() -> None:
    text = "1. *Tea* at 5_o_clock # not a heading\n  - <b>\\o/</b>\n\nnext & last"
    parsed = MarkdownIt().parse("\n".join(_quoted(text)))
    shown = [
        "".join("\n" if c.type == "hardbreak" else c.content for c in t.children or ()) for t in parsed if t.children
    ]
    assert "\n\n".join(shown).replace("\u00a0", " ") == text


def test_the_document_is_the_same_every_time_and_its_headings_are_its_own(vault: Path) -> None:
    with Vault.open(vault, PASSPHRASE, embedder=None) as mine:
        for number, text in enumerate(HOSTILE):
            mine.remember(text, source=text, author=text, thread=text, tags=[text], position=number, captured_at=AT)
        for group, headings in (("day", 2), ("thread", 1 + len(HOSTILE))):
            lines = list(markdown(mine, "all", group))
            assert lines == list(markdown(mine, "all", group))
            found = tokens(lines)
            assert found.count("heading_open") == headings
            assert found.count("blockquote_open") == len(HOSTILE)
            assert not {"html_block", "html_inline", "image", "link_open", "fence", "code_block", "hr"} & set(found)


def test_what_became_of_a_memory_stands_under_it(vault: Path) -> None:
    with Vault.open(vault, PASSPHRASE, embedder=None) as mine:
        old = mine.remember("A", source="chat", tags=["plan"], captured_at=AT)
        new = mine.supersede(old.id, "B", source="chat", reason="A was late")
        text = "\n".join(markdown(mine, "all", "day"))
    assert f"superseded (A was late) · superseded by {new.id} · id {old.id}" in text
    assert f"supersedes {old.id}" in text
    assert "tags: plan" in text
