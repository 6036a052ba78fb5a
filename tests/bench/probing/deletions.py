"""Deletion completeness: after erases no file, index or record that can be opened has anything of what went.

    python tests/bench/probing/deletions.py

Each memory has words that no other has. A third is erased, by id, source and author, among them versions, near copies,
proposals and what was recalled; then the state, its indexes, the vectors, every record of every log and checkpoint, the
traces and every file's bytes are looked through.
"""

import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))

import numpy as np

from memseal import Vault
from memseal.vault.folder.checkpoints import read_manifest, read_part
from tests.vault.small_vault import new_folder, open_vault

_LETTERS: Final = "bcdfghjklmnprstvz"
_VOWELS: Final = "aeiou"
_DIMENSION: Final = 8


def run(folder: Path, memories: int = 120, seed: int = 1) -> dict[str, Any]:
    """Return how many of the words of what was erased were found, by place; `folder` is empty."""
    made = random.Random(seed)
    path = new_folder(folder / "vault").path
    with open_vault(path) as vault:
        words = _filled(vault, made, memories)
        receipts = [vault.erase_all(ids, reason="a probe") for ids in _to_go(vault)]
        gone = {words[memory_id] for receipt in receipts for memory_id in receipt.erased}
        here = _places(vault)
    with open_vault(path) as vault:
        again = _places(vault)
    again["files"] = b"".join(each.read_bytes() for each in path.rglob("*") if each.is_file()).decode("latin-1")
    kept = set(words.values()) - gone
    found = {place: sum(word in text for word in gone) for place, text in {**here, **again}.items()}
    return {
        "erased": len(gone),
        "kept": len(kept),
        "kept_and_found": sum(word in again["state"] for word in kept),
        "found": found,
        "vectors_left": _vectors_beyond(path),
        "ok": not any(found.values()) and all(word in again["state"] for word in kept),
    }


def _word(made: random.Random) -> str:
    return "".join(made.choice(_LETTERS) + made.choice(_VOWELS) for _ in range(6))


def _filled(vault: Vault, made: random.Random, count: int) -> dict[str, str]:
    """Write memories, versions of some, and proposals; returns by id the word that only this one has."""
    vault.hold_sources(["web"])
    words = dict[str, str]()
    for number in range(count):
        word = _word(made)
        source, author = ("mail", "chat", "web")[number % 3], ("Ann", "Bob")[number % 2]
        memory = vault.remember(
            f"{word} was mentioned again",
            source=source,
            author=author,
            embedding=np.eye(_DIMENSION)[number % _DIMENSION],
        )
        words[memory.id] = word
        if source != "web":
            vault.recall(word)  # what was given out is in a trace now, with the question for it
        if number % 3 == 1 and number % 4 == 1:
            newer = _word(made)
            words[vault.supersede(memory.id, f"{newer} was meant", source="chat", reason=f"not {word}").id] = newer
    return words


def _to_go(vault: Vault) -> list[list[str]]:
    """Return the ids of each erase: of one source, of one author's proposals, and of one version of each third line."""
    mail = [memory.id for memory in vault.to_erase(source="mail")]
    bob = [memory.id for memory in vault.to_erase(source="web", author="Bob")]
    old = [memory.id for memory in vault.list(limit=100_000, state="superseded")]
    return [mail, bob, old[::3]]


def _places(vault: Vault) -> dict[str, str]:
    """Return all text that can be read, by the place where it is."""
    opened = vault._opened
    contents = [
        record.content.meta
        for stream_id, log in opened.logbook.logs.items()
        for record in opened.logbook.records(stream_id, 0, log.end.records)
    ]
    floor = opened.keychain.keyring.public.floor
    if floor is not None:
        manifest = read_manifest(opened.folder, opened.keychain, floor)
        for entry in manifest.parts:
            contents += [part.meta for part in read_part(opened.folder, opened.keychain.vault_id, entry, [])]
    return {
        "state": opened.logbook.view.state.image().decode("utf-8", "replace"),
        "records": repr(contents),
        "traces": repr([(each.query, each.pieces, each.terms) for each in vault.traces(limit=100_000)]),
        "proposals": repr([each.memory and each.memory.content for each in vault.proposals(limit=100_000)]),
        "hits": repr([memory.content for memory in vault.list(limit=100_000, state="all")]),
    }


def _vectors_beyond(path: Path) -> int:
    """Return how many vectors there are beyond those of memories."""
    with open_vault(path) as vault:
        view = vault._opened.logbook.view
        return (0 if view.vectors is None else len(view.vectors)) - view.state.count("m.vector IS NOT NULL")


if __name__ == "__main__":
    with TemporaryDirectory(prefix="memseal-probe-") as name:
        for row, value in run(Path(name)).items():
            sys.stdout.write(f"{row:<16}{value}\n")
