"""What the sanitizer overlooks, damages and costs, and what two others do with the same texts.

    python tests/bench/sanitizer.py [--texts FILE.jsonl …] [--most 1000]

Without files: the comparison alone, with presidio-anonymizer and vaultmem where they are installed (`.[bench]`). Each
line of a file has a `text`; what is measured then: texts that come back exactly, whole and streamed, known values that
are left, characters per CPU-second, memory; and where its lines name `spans`, what of them each tool lets out. No text
is printed.
"""

import argparse
import importlib
import importlib.util
import json
import os
import re
import resource
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

import memseal
from memseal.sanitize import offline
from memseal.sanitize.model import DEFAULT_MODEL

SEED = bytes(32)


class Case(NamedTuple):
    """A text, what of it must not leave, and what a reply does with it."""

    text: str
    private: tuple[str, ...]
    bend: Callable[[str], str] = str


CASES = (
    Case("Jordan and Sarah Chen met in Jordan.", ("Sarah", "Chen")),
    Case("Sarah Chen called. SARAH CHEN will call again, said sarah chen.", ("sarah", "chen")),
    Case("Sarah Chen's car is red, and Sarah likes it.", ("Sarah", "Chen")),
    Case("Write to james@parkaccounting.com. Then rest.", ("james", "parkaccounting")),
    Case("Dr. Emily Carter called; Emily wants the scans.", ("Emily", "Carter")),
    Case("my wifi password is Tr0ub4dor&3 ok", ("Tr0ub4dor",)),
    Case("token ghp_16C7e42F292c6912E7710c838347Ae178B4a", ("ghp_16C7",)),
    Case("Maria Lopez, born 12 March 1984, MRN 00482913", ("Maria", "Lopez", "1984", "00482913")),
    Case("a@example.com b@example.org c@example.net", ("a@", "b@", "c@")),
    Case("[EMAIL_1] is ours, sarah@example.com is hers", ("sarah@",)),
    Case("Please thank Sarah Chen today.", ("Sarah", "Chen"), str.upper),
    Case("Samuel L. Whitaker Jr. signed for Globex Inc.", ("Samuel", "Whitaker", "Globex")),
)


class Tool(NamedTuple):
    """A sanitizer under test: a new session gives what hides a text and what restores a reply."""

    name: str
    session: Callable[[], tuple[Callable[[str], str], Callable[[str], str]]]


def ours() -> Tool:
    """Return memseal's."""

    def session() -> tuple[Callable[[str], str], Callable[[str], str]]:
        sanitizer = memseal.Sanitizer(seed=SEED)
        return sanitizer.sanitize, sanitizer.restore

    return Tool("memseal", session)


def presidio() -> Tool:
    """Return Presidio's anonymizer with a counter for each value, as its documentation shows it."""
    analyzer = offline.load("presidio_analyzer")
    engine = offline.load("presidio_analyzer.nlp_engine").SpacyNlpEngine(
        models=[{"lang_code": "en", "model_name": DEFAULT_MODEL}]
    )
    analyze = analyzer.AnalyzerEngine(nlp_engine=engine, supported_languages=["en"]).analyze
    anonymizer = importlib.import_module("presidio_anonymizer")
    operator = importlib.import_module("presidio_anonymizer.entities").OperatorConfig

    def session() -> tuple[Callable[[str], str], Callable[[str], str]]:
        known: dict[str, str] = {}

        def hide(text: str) -> str:
            replace = operator("custom", {"lambda": lambda value: known.setdefault(value, f"<VALUE_{len(known) + 1}>")})
            found = analyze(text=text, language="en", score_threshold=0.3)
            hidden: str = anonymizer.AnonymizerEngine().anonymize(text, found, {"DEFAULT": replace}).text
            return hidden

        def restore(reply: str) -> str:
            for value, token in sorted(known.items(), key=lambda pair: -len(pair[1])):
                reply = reply.replace(token, value)
            return reply

        return hide, restore

    return Tool("presidio-anonymizer", session)


def vaultmem() -> Tool:
    """Return VaultMem's, with the same language model under the name that it asks for."""
    spacy = offline.load("spacy")
    load, is_package = spacy.load, spacy.util.is_package
    path = importlib.import_module(DEFAULT_MODEL)
    spacy.util.is_package = lambda name: name == "en_core_web_sm" or is_package(name)
    loaded = cache(path.load)  # once, or a new session for each text would mostly load
    spacy.load = lambda name, **options: loaded() if name == "en_core_web_sm" else load(name, **options)
    kind = importlib.import_module("vaultmem.sanitize").Sanitizer

    def session() -> tuple[Callable[[str], str], Callable[[str], str]]:
        sanitizer, known = kind(backend="spacy"), dict[str, str]()

        def hide(text: str) -> str:
            hidden, pairs = sanitizer.sanitize(text)
            known.update(pairs)
            return str(hidden)

        return hide, lambda reply: str(sanitizer.restore(reply, known))

    return Tool("vaultmem", session)


def tools_here() -> list[Tool]:
    """Return memseal's sanitizer and the others that are installed."""
    tools = [ours()]
    if all(importlib.util.find_spec(name) for name in ("presidio_analyzer", "presidio_anonymizer", DEFAULT_MODEL)):
        os.environ["TLDEXTRACT_CACHE"] = os.devnull
        extractor = offline.load("tldextract")
        extractor.extract = extractor.TLDExtract(suffix_list_urls=(), cache_dir=None)
        tools.append(presidio())
        if importlib.util.find_spec("vaultmem"):
            tools.append(vaultmem())
    return tools


def compare(console: Console, tools: Sequence[Tool]) -> None:
    """Print what each tool lets out and brings back."""
    table = Table(
        "text", *(tool.name for tool in tools), title="private words that leave; does the reply come back right?"
    )
    totals = [[0, 0] for _ in tools]
    for case in CASES:
        row: list[str] = []
        for total, tool in zip(totals, tools, strict=True):
            hide, restore = tool.session()
            hidden = hide(case.text)
            left = sum(word.casefold() in hidden.casefold() for word in case.private)
            right = restore(case.bend(str(hidden))) == case.bend(case.text)
            total[0] += left
            total[1] += right
            row.append(f"{left} of {len(case.private)}, {'yes' if right else 'no'}")
        table.add_row(case.text, *row)
    words = sum(len(case.private) for case in CASES)
    table.add_row("all", *(f"{left} of {words}, {right} of {len(CASES)}" for left, right in totals))
    console.print(table)


def measure(console: Console, files: Sequence[str], most: int) -> None:
    """Print what happens to real texts."""
    texts = [json.loads(line)["text"] for file in files for line in Path(file).read_text("utf-8").splitlines() if line]
    texts = texts[:: max(1, len(texts) // most)][:most]
    sanitizer = memseal.Sanitizer(seed=SEED)
    sanitizer.sanitize("Dear Ann Lee, warm up")
    counts = dict.fromkeys(("refused", "damaged", "streamed otherwise", "values left", "repaired"), 0)
    spent = 0.0
    for text in texts:
        began = time.process_time()
        try:
            clean = sanitizer.sanitize(text)
        except memseal.MemsealError:
            counts["refused"] += 1
            continue
        finally:
            spent += time.process_time() - began
        counts["damaged"] += sanitizer.restore(clean) != text
        pieces = [clean[start : start + 3] for start in range(0, len(clean), 3)]
        counts["streamed otherwise"] += "".join(sanitizer.restore_stream(pieces)) != text
        counts["repaired"] += sum(item.repaired for item in clean.report.items)
        counts["values left"] += _left(clean, clean.report.items)
    table = Table("what", "count", title=f"{len(texts)} texts")
    for name, count in counts.items():
        table.add_row(name, f"{count:,}")
    table.add_row("characters per CPU-second", f"{sum(map(len, texts)) / spent:,.0f}")
    table.add_row("MB at most", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f}")
    console.print(table)


def compare_labelled(console: Console, tools: Sequence[Tool], files: Sequence[str], most: int) -> None:
    """Print how many values that a file names each tool lets out, and how many texts come back as they were."""
    table = Table("file", "what", *(tool.name for tool in tools), title="the same texts, a new session for each")
    for file in files:
        lines = [json.loads(line) for line in Path(file).read_text("utf-8").splitlines() if line]
        labelled = [line for line in lines if line.get("spans")]
        labelled = labelled[:: max(1, len(labelled) // most)][:most]
        results = [_result(tool, labelled) for tool in tools]
        values = sum(len(_values(line)) for line in labelled)
        table.add_row(Path(file).stem, f"of {values:,} values leave", *(f"{left / values:.1%}" for left, *_ in results))
        table.add_row("", f"of {len(labelled)} texts come back changed", *(f"{changed}" for _, changed, _ in results))
        table.add_row(
            "", "ms a text, of processor time", *(f"{1000 * spent / len(labelled):.0f}" for *_, spent in results)
        )
    console.print(table)


def _result(tool: Tool, labelled: Sequence[Any]) -> tuple[int, int, float]:
    left = changed = 0
    began = time.process_time()
    for line in labelled:
        hide, restore = tool.session()
        hidden = str(hide(line["text"]))
        changed += restore(hidden) != line["text"]
        left += sum(re.search(rf"(?<!\w){re.escape(value)}(?!\w)", hidden) is not None for value in _values(line))
    return left, changed, time.process_time() - began


def _values(line: Any) -> set[str]:
    # What stays on purpose, in all three tools: titles, dates in general, nationalities.
    kept = ("TITLE", "DATE_TIME", "TIMESTAMP", "DATE", "NRP", "AGE")
    return {line["text"][span["start"] : span["end"]] for span in line["spans"] if span["type"] not in kept}


def _left(clean: str, items: Sequence[Any]) -> int:
    """Count values of several characters that the outgoing text still has, beside stand-ins."""
    rest = clean
    for item in items:
        rest = rest.replace(item.standin, "\0")
    return sum(len(item.value) > 4 and item.value.casefold() in rest.casefold() for item in items)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", nargs="*", default=[], metavar="FILE")
    parser.add_argument("--most", type=int, default=1_000)
    chosen = parser.parse_args()
    console = Console(width=140)
    tools = tools_here()
    if chosen.texts:
        measure(console, chosen.texts, chosen.most)
        compare_labelled(console, tools, chosen.texts, chosen.most)
    compare(console, tools)


if __name__ == "__main__":
    main()
