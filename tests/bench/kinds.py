"""Recall on other memories than conversations: unordered facts, and a diary with dates.

    python tests/bench/kinds.py [--json results.json]

What late interaction and the stages of a conversation must not make worse. The facts and their questions are in
`labelled/facts.json`, the diary and its questions in `examples/data/`; both were written for this project.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import mean
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from memseal import Vault
from memseal.recall.late import Effort
from memseal.surfaces.demo.diary import find_diary

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.bench.locomo import Question, measure

EFFORTS: Final[tuple[Effort, ...]] = ("economy", "default", "best")
FIGURES: Final = ("any@1", "any@5", "any@10", "MRR")
LABELLED = Path(__file__).parent / "labelled"


@dataclass(frozen=True)
class Labelled:
    """Memories by a name, as `remember_many` takes them, and questions with the names that answer each."""

    memories: dict[str, dict[str, Any]]
    questions: Sequence[Question]


def facts() -> Labelled:
    """Return the unordered facts."""
    value = json.loads((LABELLED / "facts.json").read_text(encoding="utf-8"))
    memories = {f"{place}": {"content": text, "source": "facts"} for place, text in enumerate(value["facts"])}
    questions = [Question(each["text"], 0, frozenset(map(str, each["answers"]))) for each in value["questions"]]
    return Labelled(memories, questions)


def diary() -> Labelled:
    """Return the diary of the examples."""
    found = find_diary()
    if found is None:
        raise FileNotFoundError("the diary is in examples/data of the source tree")
    memories: dict[str, dict[str, Any]] = {}
    for line in found.path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        fields = {name: row[name] for name in ("content", "author", "thread", "position") if row.get(name) is not None}
        memories[row["id"]] = fields | {"source": "diary", "captured_at": datetime.fromisoformat(row["captured_at"])}
    return Labelled(memories, [Question(text, 0, frozenset({entry})) for entry, text in found.questions.items()])


def run(labelled: Labelled, folder: Path) -> Iterator[tuple[Effort, dict[str, float]]]:
    """Yield the figures of each question at each effort."""
    with Vault.create(folder, passphrase="a passphrase for a benchmark") as vault:
        names = dict(
            zip(
                (memory.id for memory in vault.remember_many(list(labelled.memories.values()))),
                labelled.memories,
                strict=True,
            )
        )
        for effort in EFFORTS:
            for question in labelled.questions:
                hits = vault.search(question.text, limit=10, effort=effort)
                yield effort, measure(question, [names[hit.memory.id] for hit in hits])


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="Recall on facts and a diary.")
    parser.add_argument("--json", type=Path, help="also write the means to this file")
    arguments = parser.parse_args()
    shown = Table(box=None, padding=(0, 1, 0, 0))
    for column in ("memories", "effort", "questions", *FIGURES):
        shown.add_column(column, justify="left" if column in ("memories", "effort") else "right")
    means: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, labelled in (("facts", facts()), ("diary", diary())):
            results = list(run(labelled, Path(folder) / name))
            for effort in EFFORTS:
                rows = [figures for each, figures in results if each == effort]
                row = {figure: mean(each[figure] for each in rows) for figure in FIGURES}
                means.setdefault(name, {})[effort] = row
                shown.add_row(name, effort, f"{len(rows)}", *(f"{row[figure]:.3f}" for figure in FIGURES))
    Console().print(shown)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(means, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
