"""The story that the demo tells, step by step; each step proves what it says."""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from memseal.embedding import Embedder, default_embedder
from memseal.memory.memory import Memory
from memseal.store.folder import LOGS
from memseal.surfaces.cli.pictures import size
from memseal.surfaces.demo.diary import Diary
from memseal.surfaces.demo.plaintext import Sight, database_values, look_for
from memseal.surfaces.demo.server import running_server
from memseal.surfaces.demo.stage import Stage
from memseal.surfaces.importing.jsonl import read_jsonl
from memseal.vault.vault import Vault

PASSPHRASE = "a demo needs no secret"  # noqa: S105  it is printed

_STEP = 32  # the bar should move, and each write has a fixed cost
_ASKED = ("diary-0025", "diary-0081", "diary-0068")
_PATCHED, _FILM = "diary-0020", "diary-0012"
_NEW = "Idris has said it at last: the slates were my spreadsheet's fault. We laughed until the kettle boiled dry."
_CHANGED = "No patch after all: the whole back slope gets new slates and new lead before winter."
_WHY_CHANGED = "the patch leaked within a month"
_WHY_RETRACTED = "I have seen it now, and the dog lives"


@dataclass
class Totals:
    """What the demo did, in numbers."""

    memories: int = 0
    synchronisations: int = 0
    server_bytes: int = 0
    sentences: int = 0
    found: int = 0
    seconds: float = 0.0


class Story:
    """Two devices and a server in one folder, from the first import to the search of the server's disk."""

    def __init__(self, stage: Stage, diary: Diary, folder: Path) -> None:
        """Take where to show, what to import, and an empty folder for everything."""
        self.totals = Totals()
        self._stage, self._diary, self._folder = stage, diary, folder
        self._server = folder / "server"
        self._embedder: Embedder | None = default_embedder()

    def tell(self) -> None:
        """Tell all of it; the stage keeps what held."""
        began, stage = time.monotonic(), self._stage
        with ExitStack() as stack:
            stage.step("A server starts on this machine")
            server = stack.enter_context(running_server(self._server / "store", self._server / "log"))
            stage.say("memseal-server listens on ", (server, "cyan"), " and stores in ", (str(self._server), "dim"))
            laptop = stack.enter_context(self._laptop())
            self._first_sync(laptop, server)
            phone = stack.enter_context(self._phone(laptop, server))
            self._ask(laptop, phone)
            memory, record = self._write_offline(laptop, phone)
            self._meet(laptop, phone)
            self._compare(memory, record)
            self._search_the_server()
            self.totals.memories = laptop.count(state="all")
        self.totals.seconds = time.monotonic() - began

    # ── the steps ───────────────────────────────────────────────────────────────────────────────────

    def _laptop(self) -> Vault:
        self._stage.step("A vault on the laptop takes in a diary")
        vault = Vault.create(self._folder / "laptop", PASSPHRASE, device_name="laptop", embedder=self._embedder)
        lines = self._diary.path.read_text(encoding="utf-8").splitlines()
        items, began = list(read_jsonl(lines, self._diary.path.stem)), time.monotonic()
        with self._stage.progress("importing", len(items)) as advance:
            for start in range(0, len(items), _STEP):
                advance(len(vault.remember_many(items[start : start + _STEP])))
        seconds, done = time.monotonic() - began, "sealed" if self._embedder is None else "embedded, sealed"
        self._stage.claim(f"{vault.count()} entries {done} and stored in {seconds:.1f} s", vault.count() == len(lines))
        return vault

    def _first_sync(self, laptop: Vault, server: str) -> None:
        self._stage.step("The laptop synchronises")
        report = laptop.sync(server)
        self.totals.synchronisations += 1
        self._stage.claim(f"{size(report.pushed_bytes)} of sealed bytes are on the server", not report.findings)

    def _phone(self, laptop: Vault, server: str) -> Vault:
        self._stage.step("A phone joins, with the emergency kit and the passphrase")
        kit = laptop.emergency_kit
        self._stage.say("emergency kit  ", (f"{kit[:31]}…", "yellow"), "  to keep on paper")
        phone = Vault.join(
            self._folder / "phone", kit, PASSPHRASE, server, device_name="phone", embedder=self._embedder
        )
        self.totals.synchronisations += 1
        same = phone.state_digest() == laptop.state_digest()
        self._stage.claim(f"{phone.count()} memories came, and both devices hold the same state", same)
        return phone

    def _ask(self, laptop: Vault, phone: Vault) -> None:
        stage = self._stage
        stage.step("Both answer questions by meaning, each on its own")
        if self._embedder is None:
            stage.say(("No embedding model is installed, so only words count: pip install 'memseal[embed]'", "yellow"))
            return
        for entry in _ASKED:
            question = self._diary.questions[entry]
            stage.say(("? ", "bold magenta"), (question, "italic"))
            wanted = self._memory(laptop, entry)
            answers = [device.search(question, limit=1) for device in (laptop, phone)]
            hits = [hit for answer in answers for hit in answer]
            right = len(hits) == len(answers) and all(hit.memory.id == wanted.id for hit in hits)
            cosine = hits[0].why.cosine if hits else None
            how = "" if cosine is None or hits[0].why.terms else f"  {cosine:.2f}, no word in common"
            stage.claim(f"{stage.quote(wanted.content, 2 + len(how))}{how}", right)

    def _write_offline(self, laptop: Vault, phone: Vault) -> tuple[Memory, bytes]:
        """Write on both, and return the new memory with the bytes that it became in the laptop's log."""
        self._stage.step("Both write while neither sees the other")
        before = self._log_bytes()
        memory = laptop.remember(_NEW, source="demo", author="Marta Quill", tags=["roof", "idris"], kind="episode")
        record = self._log_bytes()[len(before) :]
        patched, film = self._memory(laptop, _PATCHED), self._memory(phone, _FILM)
        laptop.supersede(patched.id, _CHANGED, source="demo", reason=_WHY_CHANGED)
        phone.retract(film.id, reason=_WHY_RETRACTED)
        say, quote = self._stage.say, self._stage.quote
        say(("laptop  + remembers   ", "green"), quote(_NEW, 22))
        say(("laptop  ~ supersedes  ", "yellow"), quote(patched.content, 22))
        say(("phone   - retracts    ", "red"), quote(film.content, 22))
        self._stage.claim("now they differ", laptop.state_digest() != phone.state_digest())
        return memory, record

    def _meet(self, laptop: Vault, phone: Vault) -> None:
        self._stage.step("They synchronise")
        findings = [finding for device in (laptop, phone, laptop) for finding in device.sync().findings]
        self.totals.synchronisations += 3
        digests = [device.state_digest() for device in (laptop, phone)]
        self._stage.claim("nothing was found wrong on the way", not findings)
        self._stage.claim(f"both hold the same state again: {digests[0].hex()[:16]}…", digests[0] == digests[1])
        counts = [(device.status().superseded, device.status().retracted) for device in (laptop, phone)]
        self._stage.claim(
            "on both, one memory is superseded and one retracted, and both are kept", counts == [(1, 1)] * 2
        )

    def _compare(self, memory: Memory, record: bytes) -> None:
        self._stage.step("What you see, and what the server holds of it")
        objects = database_values(self._server / "store" / "objects.db")
        segments = [each for each in objects if record and record in each]
        self._stage.side_by_side(memory, segments[0] if segments else b"", "the segment it is in")
        self._stage.claim("the laptop's sealed record of this memory lies on the server, bit for bit", bool(segments))

    def _search_the_server(self) -> None:
        sentences, totals = self._diary.sentences, self.totals
        self._stage.step("Ten sentences of the diary, looked for in every byte of the server's store")
        control = look_for(sentences, self._diary.path.parent)
        self._stage.claim(
            f"{len(control.found)} of {len(sentences)} found in the diary: the search can find them",
            len(sentences) == len(control.found) == 10,
        )
        sight = look_for([*sentences, _NEW, _CHANGED], self._server)
        totals.found, totals.sentences = sum(text in sentences for text in sight.found), len(sentences)
        totals.server_bytes = sight.size_bytes
        self._stage.claim(
            f"{totals.found} of {totals.sentences} found on the server ({_scope(sight)})", not sight.found
        )

    # ── looking ─────────────────────────────────────────────────────────────────────────────────────

    def _memory(self, vault: Vault, entry: str) -> Memory:
        return vault.list(origin=f"jsonl:{self._diary.path.stem}/{entry}")[0]

    def _log_bytes(self) -> bytes:
        """Return what the laptop has written: before others' logs come in, it has one."""
        [path] = [each for each in (self._folder / "laptop" / LOGS).iterdir() if not each.name.startswith(".")]
        return path.read_bytes()


def _scope(sight: Sight) -> str:
    return (
        f"{sight.files} files, {sight.values} values in its database, {size(sight.size_bytes)}; UTF-8, UTF-16, base64"
    )
