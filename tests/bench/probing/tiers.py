"""Three tiers: a habit must come before a memory that only has the words of the question, and nothing else may suffer.

Three topics, each with one affinity and five atoms, one of them a decoy: it has the keywords of the question about the
habit, and nothing to do with it. Asked with affinities and, in a second vault, without.

    python tests/bench/probing/tiers.py

The ranking was adjusted on these topics, so they prove that it does what it is for, and nothing about other texts.
"""

import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import mean

from memseal import Vault
from memseal.memory.traits import AFFINITY, Derivation

_NOW = datetime(2024, 6, 1, 12, tzinfo=UTC)
_PASSPHRASE = "a passphrase of a probe"
_RUN = "00" * 16
_SEEN = 12


@dataclass(frozen=True)
class Topic:
    """A habit, four memories of it, a decoy, a question about the habit, and questions about single memories."""

    affinity: str
    atoms: tuple[str, ...]
    decoy: str
    pattern: str
    specific: tuple[tuple[str, int], ...]


TOPICS = (
    Topic(
        "“I walked along the river to calm down”; “The river path helped against the stress of the release”. Again and"
        " again: river, stress; 12 times from 2023-09-04 to 2024-05-31.",
        (
            "I walked along the river after the release was postponed, and felt better",
            "The argument with Tom got loud, so I went out to the river for half an hour",
            "I took the long way by the water because of the audit and came back calmer",
            "I met Nora at the river bridge and she told me about her new job in Oslo",
        ),
        "The stress test of the new bridge: how engineers usually deal with it",
        "How do I usually deal with stress?",
        (("Where did I meet Nora?", 3), ("What did I do when the argument with Tom got loud?", 1)),
    ),
    Topic(
        "“I had porridge with blueberries for breakfast”; “Porridge again before the first call of the morning”. Again"
        " and again: breakfast, porridge; 12 times from 2023-09-04 to 2024-05-31.",
        (
            "I had porridge with blueberries and then the call with the Lisbon office",
            "There were no blueberries left, so the porridge had raisins",
            "I made porridge at six because the train to Bremen left early",
            "I burned the porridge while Ines was telling me about her exam",
        ),
        "The hotel brochure: what guests typically eat in the morning, in pictures",
        "What do I typically eat in the morning?",
        (
            ("What happened to the porridge while Ines talked about her exam?", 3),
            ("Why did the porridge have raisins?", 1),
        ),
    ),
    Topic(
        "“I practised the cello in the evening”; “An evening with the cello and the second suite by Bach”. Again and"
        " again: cello, evening; 12 times from 2023-09-04 to 2024-05-31.",
        (
            "I practised the second suite until the neighbours came home",
            "My cello lesson with Mr Okafor was about bowing and breathing",
            "A string broke in the middle of the sarabande, so I stopped early",
            "I played at the wedding of Lea, and the church was very cold",
        ),
        "The leaflet says what gardeners do every evening in a dry summer",
        "What do I do every evening?",
        (("What broke in the middle of the sarabande?", 2), ("Where did I play for Lea?", 3)),
    ),
)


def reciprocal_rank(vault: Vault, query: str, content: str) -> float:
    """Return 1 / the place of a memory among the hits, 0 where it is none."""
    packet = vault.recall(query, limit=18, now=_NOW)
    for place, hit in enumerate(packet.hits, start=1):
        if hit.memory.content == content:
            return 1 / place
    return 0.0


def filled(path: Path, *, affinities: bool) -> Vault:
    """Return a vault with the topics; without affinities what they say is an atom like any other."""
    vault = Vault.create(path, _PASSPHRASE)
    for topic in TOPICS:
        said = [*topic.atoms, topic.decoy]
        atoms = vault.remember_many(
            {"content": text, "source": "probe", "captured_at": _NOW - timedelta(days=3 * place)}
            for place, text in enumerate(said)
        )
        derived = {
            "type": "persona",
            "tier": AFFINITY,
            "derived_from": [atom.id for atom in atoms[:3]],
            "derivation": Derivation("pattern/1", topic.pattern, _RUN, _SEEN),
        }
        vault.remember_many(
            [{"content": topic.affinity, "source": "probe", "captured_at": _NOW, **(derived if affinities else {})}]
        )
    return vault


def measure(vault: Vault) -> tuple[float, float]:
    """Return the mean reciprocal ranks of the questions about habits, and of those about single memories."""
    patterns = [reciprocal_rank(vault, topic.pattern, topic.affinity) for topic in TOPICS]
    specific = [
        reciprocal_rank(vault, query, topic.atoms[place]) for topic in TOPICS for query, place in topic.specific
    ]
    return mean(patterns), mean(specific)


def run(folder: Path) -> dict[str, tuple[float, float]]:
    """Return what `measure` says of both vaults, made in an empty folder."""
    results: dict[str, tuple[float, float]] = {}
    for name, affinities in (("one tier", False), ("three tiers", True)):
        with filled(folder / name.replace(" ", "-"), affinities=affinities) as vault:
            results[name] = measure(vault)
    return results


def main() -> None:
    """Print the mean reciprocal ranks."""
    with tempfile.TemporaryDirectory(prefix="memseal-probe-") as folder:
        for name, (pattern, specific) in run(Path(folder)).items():
            print(f"{name:12} habits {pattern:.2f}, single memories {specific:.2f}")


if __name__ == "__main__":
    main()
