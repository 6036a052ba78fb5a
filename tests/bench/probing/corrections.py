"""Correction correctness: after F2 supersedes F1, recall gives F2 alone; retracted, neither; restored, F2 again.

    python tests/bench/probing/corrections.py

Over the distance of the new wording (one word, reworded, no word in common) and the depth of the chain; also, that what
was believed before is F1 still, and that `revert` brings its text back.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))

from memseal import Vault
from memseal.embedding import default_embedder
from memseal.store.disk import OsDisk
from memseal.store.folder import VaultFolder
from tests.vault.small_vault import PASSPHRASE, new_folder, stretch_of

_START: Final = datetime(2024, 1, 1, tzinfo=UTC)
DEPTHS: Final = (1, 2, 4, 8)


class Topic(NamedTuple):
    """A fact, the same corrected in three wordings, from near to far, and a question that asks for it."""

    first: str
    near: str
    reworded: str
    far: str
    question: str


TOPICS: Final = (
    Topic(
        "The dentist appointment is on Tuesday at nine",
        "The dentist appointment is on Friday at nine",
        "They moved my dentist appointment to Friday morning",
        "Teeth get checked Friday, first thing",
        "When is the dentist appointment?",
    ),
    Topic(
        "Our landlord is called Petersen",
        "Our landlord is called Halvorsen",
        "Since the sale our landlord goes by the name Halvorsen",
        "Halvorsen owns these flats now and collects rent",
        "What is our landlord called?",
    ),
    Topic(
        "The spare key lies under the blue pot",
        "The spare key lies under the red pot",
        "I moved the spare key, look under the red flower pot",
        "To get in without mine, lift the crimson planter beside the stairs",
        "Where is the spare key?",
    ),
    Topic(
        "My sister Nora lives in Lisbon",
        "My sister Nora lives in Porto",
        "Nora, my sister, has moved house to Porto",
        "Nora settled down in Porto with her husband",
        "Where does my sister Nora live?",
    ),
    Topic(
        "The swimming pool opens at seven",
        "The swimming pool opens at eight",
        "From now on the swimming pool does not open before eight",
        "Nobody gets to do laps before eight any more",
        "When does the swimming pool open?",
    ),
    Topic(
        "Our team uses Jenkins to build the app",
        "Our team uses Buildkite to build the app",
        "The team has switched, the app is built on Buildkite",
        "Continuous integration runs with Buildkite these days",
        "What does our team use to build the app?",
    ),
)
DISTANCES: Final = ("near", "reworded", "far")


def run(folder: Path) -> dict[str, Any]:
    """Return by distance how many checks held of how many; `folder` is empty. With the default model, if it is here."""
    held, done = Counter[str](), Counter[str]()
    for distance in DISTANCES:
        for depth in DEPTHS:
            with _vault(folder / f"{distance}-{depth}") as vault:
                for topic in TOPICS:
                    for name, ok in _checked(vault, topic, distance, depth):
                        done[f"{distance}: {name}"] += 1
                        held[f"{distance}: {name}"] += ok
    rows = {name: [held[name], count] for name, count in done.items()}
    return {"checks": rows, "ok": all(good == count for good, count in rows.values())}


def _checked(vault: Vault, topic: Topic, distance: str, depth: int) -> Iterator[tuple[str, bool]]:
    """Correct a fact, retract and restore it, and yield what held; depths over one have other values in between."""
    chain = [vault.remember(topic.first, source="probe", captured_at=_START)]
    for step in range(1, depth):
        text = f"{topic.near}, or so it was said in week {step}"
        chain.append(vault.supersede(chain[-1].id, text, source="probe", captured_at=_START + timedelta(days=step)))
    last = _START + timedelta(days=depth)
    current = vault.supersede(chain[-1].id, getattr(topic, distance), source="probe", captured_at=last, reason="news")
    old = {memory.id for memory in chain}

    def found() -> set[str]:
        return {hit.memory.id for hit in vault.recall(topic.question).hits}

    yield "the correction is recalled", current.id in found()
    yield "nothing older is recalled", not found() & old
    vault.retract(current.id, reason="a mistake")
    yield "retracted, neither is", not found() & {*old, current.id}
    vault.restore(current.id)
    yield "restored, it is again", current.id in found() and not found() & old
    before = vault.believed(current.id, at=_START)
    yield "what was believed before is the first", [each.memory.id for each in before] == [chain[0].id]
    windows = [(each.valid_from, each.valid_until) for each in vault.history(current.id).versions]
    yield "no gap and no overlap", all(one[1] == two[0] for one, two in pairwise(windows))
    back = vault.revert(current.id, reason="it was right before")
    yield "reverted, the text of before counts", back.content == chain[-1].content and current.id not in found()


def _vault(path: Path) -> Vault:
    folder = new_folder(path)
    return Vault._open(VaultFolder(folder.path, OsDisk()), stretch_of(PASSPHRASE), False, default_embedder())


if __name__ == "__main__":
    with TemporaryDirectory(prefix="memseal-probe-") as name:
        for row, (good, count) in run(Path(name))["checks"].items():
            sys.stdout.write(f"{row:<50}{good:>4} of {count}\n")
