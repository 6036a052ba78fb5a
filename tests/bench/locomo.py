"""Recall on LoCoMo (Maharana et al., ACL 2024; CC BY-NC 4.0, so its file is not part of this project).

    python tests/bench/locomo.py locomo10.json [--json results.json]

One vault per conversation, one memory per turn; a question counts if it has evidence that exists. `any@k` is
the share of questions with any evidence turn among the first k hits, `frac@k` the mean share of their evidence
turns.
"""

import argparse
import json
import math
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from memseal import Vault
from memseal.embedding import default_embedder

CATEGORIES = {4: "single-hop", 2: "temporal", 1: "multi-hop", 3: "open-domain", 5: "adversarial"}
CUTS = (1, 5, 10)
LIMIT = max(CUTS)


@dataclass(frozen=True)
class Question:
    """A question and the turns that answer it."""

    text: str
    category: int
    evidence: frozenset[str]


def turns_of(conversation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each turn's id and its fields for `remember_many`."""
    sessions = sorted(int(key.split("_")[1]) for key in conversation if re.fullmatch(r"session_\d+", key))
    for session in sessions:
        spoken_at = datetime.strptime(conversation[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(
            tzinfo=UTC
        )
        for position, turn in enumerate(conversation[f"session_{session}"]):
            caption = turn.get("blip_caption")
            yield (
                turn["dia_id"],
                {
                    "content": f"{turn['text']} [shared a photo of {caption}]" if caption else turn["text"],
                    "source": "locomo",
                    "author": turn["speaker"],
                    "thread": f"session {session}",
                    "position": position,
                    "captured_at": spoken_at,
                },
            )


def questions_of(rows: list[dict[str, Any]], turns: set[str]) -> list[Question]:
    """Return the questions that have evidence; ids such as `D8:6; D9:17`, `D:11:26`, `D30:05` are put right."""
    found: list[Question] = []
    for row in rows:
        pairs = re.findall(r"D:?(\d+):(\d+)", " ".join(row.get("evidence", [])))
        evidence = frozenset(f"D{int(session)}:{int(turn)}" for session, turn in pairs) & turns
        if evidence:
            found.append(Question(row["question"], row["category"], evidence))
    return found


def measure(question: Question, ranked: list[str]) -> dict[str, float]:
    """Return the figures of one question from the turns that were found, best first."""
    ranks = [place for place, turn in enumerate(ranked) if turn in question.evidence]
    figures = {f"any@{cut}": float(any(rank < cut for rank in ranks)) for cut in CUTS}
    for cut in CUTS:
        figures[f"frac@{cut}"] = sum(rank < cut for rank in ranks) / len(question.evidence)
    figures["MRR"] = 1 / (ranks[0] + 1) if ranks else 0.0
    ideal = sum(1 / math.log2(place + 2) for place in range(min(len(question.evidence), LIMIT)))
    figures["nDCG@10"] = sum(1 / math.log2(rank + 2) for rank in ranks) / ideal
    return figures


def run(sample: dict[str, Any], folder: Path) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield category and figures of each question of one conversation."""
    turns = list(turns_of(sample["conversation"]))
    with Vault.create(folder, passphrase="a passphrase for a benchmark") as vault:
        memories = vault.remember_many([fields for _, fields in turns])
        # Two turns may be one memory: the same words, by the same person, in one session.
        turn_of: dict[str, list[str]] = {}
        for (turn, _), memory in zip(turns, memories, strict=True):
            turn_of.setdefault(memory.id, []).append(turn)
        for question in questions_of(sample["qa"], {turn for turn, _ in turns}):
            started = perf_counter()
            hits = vault.search(question.text, limit=LIMIT)
            milliseconds = 1000 * (perf_counter() - started)
            # Of turns that are one memory, the one that is evidence stands for it.
            ranked = [next((turn for turn in turn_of[hit.memory.id] if turn in question.evidence), "") for hit in hits]
            yield question.category, measure(question, ranked) | {"ms": milliseconds}


def table(results: list[tuple[int, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Return the mean of each figure by category and overall."""
    groups = {name: [row for category, row in results if category == key] for key, name in CATEGORIES.items()}
    groups["all"] = [row for _, row in results]
    return {
        name: {"n": float(len(rows))} | {figure: mean(row[figure] for row in rows) for figure in rows[0]}
        for name, rows in groups.items()
        if rows
    }


def show(console: Console, means: dict[str, dict[str, float]]) -> None:
    """Print the means as a table."""
    figures = list(means["all"])
    embedder = default_embedder()
    shown = Table(
        title="Recall on LoCoMo, one memory per turn",
        caption=f"embedder: {embedder.name if embedder else 'none, words alone'}; ms: one search, embedding included",
        box=None,
        padding=(0, 1, 0, 0),
    )
    for column in ("category", *figures):
        shown.add_column(column, justify="left" if column == "category" else "right")
    for name, row in means.items():
        cells = [f"{row[figure]:.0f}" if figure in ("n", "ms") else f"{row[figure]:.3f}" for figure in figures]
        shown.add_row(name, *cells, style="bold" if name == "all" else "")
    console.print(shown)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="Recall on LoCoMo.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--json", type=Path, help="also write the means to this file")
    arguments = parser.parse_args()
    samples = json.loads(arguments.file.read_text(encoding="utf-8"))
    console = Console()
    results: list[tuple[int, dict[str, float]]] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, sample in enumerate(track(samples, "conversations", console=console)):
            results += run(sample, Path(folder) / f"{number}.vault")
    means = table(results)
    show(console, means)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(means, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
