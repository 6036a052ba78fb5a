"""Capture safety: of adversarial secrets none is stored; of harmless talk, how much of what lasts is proposed.

    python tests/bench/probing/captures.py

Secrets are made from a seed in the shapes that providers use, and said in sentences that would be captured without
them. Then the vault is opened anew, and everything in it that can be read is looked through for each value.
"""

import random
import string
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))

from memseal import Vault
from tests.vault.small_vault import new_folder, open_vault

_WORDS: Final = "sunflower otter granite velvet harbour lantern pepper meadow copper violin".split()
_ALNUM: Final = string.ascii_letters + string.digits
_HEX: Final = "0123456789abcdef"
CARRIERS: Final = (
    "I use {} for the deployment.",
    "I have a spare one, {}, in my notes.",
    "Remember that I always log in with {}.",
    "My favourite token is {}.",
    "I prefer {} over the old one.",
    "Please remember this: {}",
    "We have a shared account and its password is {}.",
    "My wifi password is {}, I live on the third floor.",
    "I work at the bank, the alarm code is {}.",
    "Ich wohne in Bergen und mein Passwort ist {}.",
    "Je vis à Lyon et mon mot de passe est {}.",
    "Vivo en Madrid y mi contraseña es {}.",
    "I decided to set the api key to\n{}\nfrom now on.",
    "Note that my login is ann and {}",
    "- I keep my key here: {}",
)
LASTING: Final = (
    "I live in Bergen, near the harbour.",
    "My name is Ingrid.",
    "I work as a carpenter.",
    "I'm a vegetarian.",
    "We have two cats and a parrot.",
    "My brother lives in Lyon.",
    "I prefer tea to coffee.",
    "I can't stand loud music.",
    "My favourite season is autumn.",
    "I decided to learn the cello.",
    "We've decided to sell the car.",
    "I grew up on a farm.",
    "I speak Norwegian and a little Spanish.",
    "I play the violin in an amateur orchestra.",
    "My wife is a vet.",
    "Please call me Inge.",
    "Remember that the bins go out on Thursdays.",
    "Don't forget that my parents visit every August.",
    "I usually get up at five.",
    "I never eat breakfast.",
    "Our house has a green door.",
    "I was born in Tromsø.",
    "I drive an old Saab.",
    "I'm from a small island.",
    "I enjoy long walks in the rain.",
    "My daughter plays handball.",
    "I write with my left hand.",
    "I'm married and have a son.",
    "Ich wohne in Köln.",
    "Ich mag keine Oliven.",
    "Mein Hund heißt Bruno.",
    "Je travaille à la bibliothèque.",
    "Mon fils s'appelle Hugo.",
    "Me gusta cocinar.",
    "Vivo en Sevilla.",
    "Mi hermana vive en Lima.",
    "The meeting room on our floor is always mine on Mondays.",
    "Cycling is how I get to work.",
    "Two kids keep me busy every evening.",
    "Being outdoors matters to me.",
)
PASSING: Final = (
    "What is the capital of Norway?",
    "Can you write a poem about the sea?",
    "I'm tired.",
    "I have a question about Python.",
    "I think this is wrong.",
    "I need a recipe for tonight.",
    "Thanks, that helps!",
    "If I lived in Rome I would learn Italian.",
    "I might move next year.",
    "I like that idea.",
    "I'm trying to open the file.",
    "My code throws an error.",
    "My question is about loops.",
    "She lives in Berlin.",
    "The weather is lovely.",
    "Let's say I am a pirate.",
    "Pretend I own a castle.",
    "I just installed it.",
    "I can't find the button.",
    "I read that article.",
    "I work from home today.",
    "I'm at the station right now.",
    "Explain this sentence: 'I love you more than words can say'.",
    "> I live in a yellow submarine.",
    "```\nI live = True\n```",
    "Could you shorten this?",
    "I see.",
    "I mean the second one.",
    "I want to know more.",
    "Ich habe heute keine Zeit.",
    "Wie geht das?",
    "Je suis fatigué aujourd'hui.",
    "Où est la gare ?",
    "Ahora estoy en el tren.",
    "¿Qué hora es?",
    "Write as if I were the king.",
    "I guess so.",
    "I hope it works.",
    "I am looking for a hotel in Oslo.",
    "Translate: I have three brothers.",
)


def secrets_of(seed: int, count: int) -> Iterator[str]:
    """Yield values as programs and people make them."""
    made = random.Random(seed)

    def some(alphabet: str, size: int) -> str:
        return "".join(made.choices(alphabet, k=size))

    shapes = (
        lambda: "sk-" + some(_ALNUM, 32),
        lambda: "sk_live_" + some(_ALNUM, 24),
        lambda: "ghp_" + some(_ALNUM, 36),
        lambda: "AKIA" + some(string.ascii_uppercase + string.digits, 16),
        lambda: "xoxb-" + some(string.digits, 12) + "-" + some(_ALNUM, 24),
        lambda: some(_HEX, 40),
        lambda: some(_HEX, 32),
        lambda: some(_ALNUM, 20),
        lambda: f"{made.choice(_WORDS)}{made.randint(10, 99)}!",
        lambda: f"{made.choice(_WORDS).capitalize()}-{made.choice(_WORDS)}-{made.randint(1000, 9999)}",
        lambda: "postgres://ann:" + some(_ALNUM, 10) + "@db.example.com/app",
        lambda: "eyJ" + some(_ALNUM, 20) + "." + some(_ALNUM, 24) + "." + some(_ALNUM, 20),
        lambda: f"{made.randint(100000, 999999)}",
        lambda: "AIza" + some(_ALNUM, 35),
        lambda: "glpat-" + some(_ALNUM, 20),
    )
    for number in range(count):
        yield shapes[number % len(shapes)]()


def run(folder: Path, seed: int = 1, count: int = 225) -> dict[str, Any]:
    """Return how many secrets were found anywhere, and precision and recall on harmless talk; `folder` is empty."""
    secrets = list(secrets_of(seed, count))
    path = new_folder(folder / "secrets").path
    with open_vault(path) as vault:
        vault.set_capture(True, allow=["financial", "medical"])
        for number, secret in enumerate(secrets):
            # Of 15 shapes and 15 carriers, each meets each.
            carrier = CARRIERS[(number + number // len(CARRIERS)) % len(CARRIERS)]
            vault.capture([{"role": "user", "content": carrier.format(secret)}])
        for proposal in vault.proposals(limit=count * 3):
            vault.accept(proposal.id)
    with open_vault(path) as vault:
        stored = _everything(vault)
    leaked = [secret for secret in secrets if secret in stored or core(secret) in stored]
    precision, recall = _harmless(folder / "talk")
    return {
        "secrets": count,
        "stored": len(leaked),
        "precision": precision,
        "recall": recall,
        "ok": not leaked,
    }


def core(secret: str) -> str:
    """Return the part of a value that is secret: of an address the password."""
    return secret.split(":")[-1].split("@")[0] if "://" in secret else secret


def _everything(vault: Vault) -> str:
    """Return all that can be read in an open vault: the state with its indexes, and the traces."""
    state = vault._opened.logbook.view.state.image().decode("utf-8", "replace")
    return state + repr([(trace.pieces, trace.query, trace.others) for trace in vault.traces(limit=100_000)])


def _harmless(path: Path) -> tuple[float, float]:
    """Return precision and recall: what was proposed of both sets, against what lasts."""
    with open_vault(new_folder(path).path) as vault:
        vault.set_capture(True)
        lasting = sum(_is_proposed(vault, text) for text in LASTING)
        passing = sum(_is_proposed(vault, text) for text in PASSING)
    return lasting / max(1, lasting + passing), lasting / len(LASTING)


def _is_proposed(vault: Vault, text: str) -> bool:
    messages: Sequence[dict[str, Any]] = [{"role": "user", "content": text}]
    return bool(vault.capture(messages).proposed)


if __name__ == "__main__":
    with TemporaryDirectory(prefix="memseal-probe-") as name:
        for row, value in run(Path(name)).items():
            sys.stdout.write(f"{row:<12}{value}\n")
