"""Recall on LoCoMo (Maharana et al., ACL 2024; CC BY-NC 4.0, so its file is not part of this project).

    python tests/bench/locomo.py locomo10.json [--stages] [--json results.json]

One vault per conversation, one memory per turn; a question counts if it has evidence that exists. `any@k` is
the share of questions with any evidence turn among the first k hits, `frac@k` the mean share of their evidence
turns. Three settings of `search` are measured on the same vaults; with `--stages` also what each stage of the ranking
adds to the one before.
"""

import argparse
import json
import math
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, median
from time import perf_counter
from typing import Any, Final

from rich.console import Console
from rich.progress import track
from rich.table import Table

from memseal import Vault
from memseal.embedding import default_embedder
from memseal.recall import Weights
from memseal.recall.late import Effort
from memseal.recall.rank import weigh
from memseal.vault.answers.searching import find, question_of

CATEGORIES = {4: "single-hop", 2: "temporal", 1: "multi-hop", 3: "open-domain", 5: "adversarial"}
CUTS = (1, 5, 10)
LIMIT = max(CUTS)
EFFORTS: Final[tuple[Effort, ...]] = ("economy", "default", "best")
_WORDS = Weights(dense=0, one_before=0, two_before=0, one_after=0, two_after=0, thread=0, author=0, date=0)
_MEANING = replace(_WORDS, dense=Weights.dense)
_NEIGHBOURS = replace(
    _MEANING,
    one_before=Weights.one_before,
    two_before=Weights.two_before,
    one_after=Weights.one_after,
    two_after=Weights.two_after,
)
_THREAD = replace(_NEIGHBOURS, thread=Weights.thread)
STAGES = {
    "words": _WORDS,
    "and meaning": _MEANING,
    "and neighbours": _NEIGHBOURS,
    "and the thread": _THREAD,
    "and the author": replace(_THREAD, author=Weights.author),
    "and the date": Weights(),
}


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


@dataclass(frozen=True)
class Result:
    """The figures of one question at one setting."""

    setting: str
    category: int
    figures: dict[str, float]


class Conversation:
    """One conversation in a vault of its own, one memory a turn."""

    def __init__(self, sample: dict[str, Any], vault: Vault) -> None:
        """Remember all turns."""
        turns = list(turns_of(sample["conversation"]))
        memories = vault.remember_many([fields for _, fields in turns])
        self.vault = vault
        self.questions = questions_of(sample["qa"], {turn for turn, _ in turns})
        # Two turns may be one memory: the same words, by the same person, in one session.
        self._turns: dict[str, list[str]] = {}
        for (turn, _), memory in zip(turns, memories, strict=True):
            self._turns.setdefault(memory.id, []).append(turn)

    def ranked(self, question: Question, ids: Iterable[str]) -> list[str]:
        """Return the turns of memories; of turns that are one memory, the one that is evidence stands for it."""
        return [next((turn for turn in self._turns[each] if turn in question.evidence), "") for each in ids]


def efforts(conversation: Conversation) -> Iterator[Result]:
    """Yield what each setting finds, and its time; each text is looked at once before, as in a vault that is in use."""
    codes = conversation.vault._opened.logbook.view.token_codes
    for effort in EFFORTS:
        size, count = codes.size, len(codes)
        for question in conversation.questions:
            conversation.vault.search(question.text, limit=LIMIT, effort=effort)
        bytes_each = (codes.size - size) / max(1, len(codes) - count)
        for question in conversation.questions:
            started = perf_counter()
            hits = conversation.vault.search(question.text, limit=LIMIT, effort=effort)
            milliseconds = 1000 * (perf_counter() - started)
            figures = measure(question, conversation.ranked(question, [hit.memory.id for hit in hits]))
            yield Result(effort, question.category, figures | {"bytes": bytes_each, "ms": milliseconds})


def stages(conversation: Conversation) -> Iterator[Result]:
    """Yield what is found with the stages of the ranking up to one and no further."""
    view, embedder = conversation.vault._opened.logbook.view, default_embedder()
    for question in conversation.questions:
        found = find(view, embedder, question_of(question.text, None, LIMIT, {}, "economy"))
        for name, weights in STAGES.items():
            weighed = weigh(found.query, found.weighed.candidates, floor=found.floor, weights=weights)
            memories = view.state.memories([hit.number for hit in weighed.hits(LIMIT)])
            figures = measure(question, conversation.ranked(question, [memory.id for memory in memories]))
            yield Result(name, question.category, figures)


def table(results: list[Result]) -> dict[str, dict[str, dict[str, float]]]:
    """Return for each setting the mean of each figure by category and overall; of times the median."""
    settings = dict.fromkeys(each.setting for each in results)
    return {setting: _means([each for each in results if each.setting == setting]) for setting in settings}


def _means(results: list[Result]) -> dict[str, dict[str, float]]:
    groups = {name: [each for each in results if each.category == key] for key, name in CATEGORIES.items()}
    groups["all"] = results
    return {
        name: {"n": float(len(rows))}
        | {
            figure: (median if figure == "ms" else mean)(row.figures[figure] for row in rows)
            for figure in rows[0].figures
        }
        for name, rows in groups.items()
        if rows
    }


def show(console: Console, means: dict[str, dict[str, dict[str, float]]]) -> None:
    """Print the means, a table a setting."""
    embedder = default_embedder()
    for setting, groups in means.items():
        figures = list(groups["all"])
        shown = Table(
            title=f"Recall on LoCoMo, one memory per turn: {setting}",
            caption=f"embedder: {embedder.name if embedder else 'none, words alone'}; bytes: kept a memory for late "
            "interaction; ms: median, embedding included",
            box=None,
            padding=(0, 1, 0, 0),
        )
        for column in ("category", *figures):
            shown.add_column(column, justify="left" if column == "category" else "right")
        for name, row in groups.items():
            cells = [
                f"{row[figure]:.0f}" if figure in ("n", "bytes", "ms") else f"{row[figure]:.3f}" for figure in figures
            ]
            shown.add_row(name, *cells, style="bold" if name == "all" else "")
        console.print(shown)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="Recall on LoCoMo.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--stages", action="store_true", help="also what each stage of the ranking adds")
    parser.add_argument("--json", type=Path, help="also write the means to this file")
    arguments = parser.parse_args()
    samples = json.loads(arguments.file.read_text(encoding="utf-8"))
    console = Console()
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, sample in enumerate(track(samples, "conversations", console=console)):
            with Vault.create(Path(folder) / f"{number}.vault", passphrase="a passphrase for a benchmark") as vault:
                conversation = Conversation(sample, vault)
                if arguments.stages:
                    results += stages(conversation)
                results += efforts(conversation)
    means = table(results)
    show(console, means)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(means, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
