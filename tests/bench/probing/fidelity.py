"""Trace fidelity: of random recalls, how many texts are told from the trace byte for byte, after everything changed.

    python tests/bench/probing/fidelity.py [--recalls 200] [--memories 300] [--seed 1] [--json]

Between the recalls memories are superseded and retracted; then the vault is closed and opened anew. Also counted: of as
many injections the whole text, and after erases how many traces still hold a text that was erased. Must be 1.0 and 0.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))

from memseal import Vault
from memseal.format.trace import Trace
from tests.vault.small_vault import new_folder, open_vault

_WORDS = (
    "harbour lantern otter meadow violin copper winter ladder pepper garden mirror saddle candle river thunder basket "
    "button castle dragon engine forest guitar hammer island jacket kettle lemon magnet needle orange pillow quartz"
).split()
_ALL = 1_000_000
_ODD = ("<b>", "`x`", "\u202e", "\n", "ä\u0301", "🦦", "</memories>", "[INST]", "\u200b", '"')


def run(recalls: int = 200, memories: int = 300, seed: int = 1) -> dict[str, Any]:
    """Return counts and fractions; `fidelity` is the fraction of texts that are the same byte for byte."""
    random = Random(seed)
    with tempfile.TemporaryDirectory(prefix="memseal-probe-") as folder:
        path = new_folder(Path(folder) / "vault").path
        with open_vault(path) as vault:
            live = [vault.remember(_text(random), source=_text(random)[:30]).id for _ in range(memories)]
            given = [_step(vault, random, live, number) for number in range(recalls)]
        with open_vault(path) as vault:
            exact = sum(vault.explain(trace).text == text for trace, text in given)
            whole = sum(text != "" for _, text in given)
            before = _contents(vault)
            for memory in random.sample(live, max(1, len(live) // 20)):
                if memory in {each.id for each in vault.list(limit=_ALL, state="all")}:  # not gone with another's line
                    vault.erase(memory)
            gone = before - _contents(vault)
            left = sum(_holds(each, gone) for each in vault.traces(limit=len(given) + 1))
    return {
        "texts": len(given),
        "not_empty": whole,
        "exact": exact,
        "fidelity": exact / len(given),
        "erased": len(gone),
        "traces_that_hold_erased_text": left,
        "ok": exact == len(given) and left == 0,
    }


def _step(vault: Vault, random: Random, live: list[str], number: int) -> tuple[str, str]:
    """Change something, recall, and now and then inject; returns the id of the trace and what was given out."""
    place = random.randrange(len(live))
    match random.randrange(4):
        case 0:
            live[place] = vault.supersede(live[place], _text(random), source="chat").id
        case 1:
            vault.retract(live[place], reason="a probe")
            vault.restore(live[place])
        case _:
            pass
    query = " ".join(random.choices(_WORDS, k=random.randint(1, 3)))
    packet = vault.recall(query, random.choice((200, 600, 4_000)), turn=f"turn {number}")
    if number % 2:
        text = f"System: help.\n{packet.text}\nUser: {query}"
        return vault.note_injection(text, packet=packet) or "", text
    return packet.trace_id or "", packet.text


def _text(random: Random) -> str:
    words = random.choices(_WORDS, k=random.randint(3, 40))
    if random.random() < 0.3:
        words.insert(random.randrange(len(words)), random.choice(_ODD))
    return " ".join(words)


def _contents(vault: Vault) -> set[str]:
    return {each.content for each in vault.list(limit=_ALL, state="all")}


def _holds(trace: Trace, gone: set[str]) -> bool:
    """Whether a line of the trace still quotes one of these contents, whole or cut."""
    decoder = json.JSONDecoder()
    for piece in trace.pieces or ():
        if piece.memory is not None and piece.text is not None:
            quoted, _ = decoder.raw_decode(piece.text[2:])
            if any(content.startswith(str(quoted)) for content in gone):
                return True
    return False


def main() -> int:
    """Run the probe and print it; 1 where it did not come out as it must."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--recalls", type=int, default=200)
    parser.add_argument("--memories", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = run(given.recalls, given.memories, given.seed)
    if given.json:
        print(json.dumps(found))
    else:
        print(f"trace fidelity {found['fidelity']:.3f} ({found['exact']} of {found['texts']} texts, byte for byte)")
        print(f"traces that hold what was erased: {found['traces_that_hold_erased_text']}")
    return 0 if found["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
