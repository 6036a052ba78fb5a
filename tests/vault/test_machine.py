"""One vault lives on: writes, key changes, compactions, erases in any order; crashes at any step, damage to any file.

After each step everything that was acknowledged and not hit is there, and nothing is that was erased or never written.
"""

import secrets
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from pathlib import Path
from random import Random
from typing import ClassVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from memseal.errors import Finding, MemsealError, PassphraseWrong
from memseal.memory.memory import State
from memseal.vault.folder import opening
from memseal.vault.keys import passphrases, rekeying
from memseal.vault.vault import Vault
from memseal.vault.writes import writing
from tests.profile import THOROUGH
from tests.vault.carried import Carried, carried
from tests.vault.crash_disk import Choice, Crash, CrashDisk, Fate, Mishap
from tests.vault.small_vault import PASSPHRASE, new_folder, open_vault, power_off, stretch_of

STEPS = 20
EXAMPLES_SHARE = 6  # of the profile's number of examples: each one opens a vault some thirty times
MOST_COPIES = 6
LEFT_BY_CRASHES = {"record_torn", "record_header", "record_sealed", "record_length", "record_order", "chain_broken"}
"""What a crash may leave at the end of a log; it was never acknowledged, and the next write cuts it off."""
CUT_ANEW = "stream_ended"
"""A log that was dropped with its keys is back after a crash, and goes again."""


@dataclass(frozen=True)
class Expected:
    """What is known of one memory; `successor` is the content of the one that replaced it."""

    retracted: bool = False
    successor: str | None = None
    tags: frozenset[str] = frozenset()


Known = Mapping[str, Expected]


@dataclass(frozen=True)
class Act:
    """Something to do with the open vault, and what is known once it has returned."""

    do: Callable[[Vault], object]
    after: Known
    erased: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    passphrase: str | None = None


@dataclass
class Damage:
    """One file of a closed vault as somebody left it."""

    file: Path
    content: bytes
    kind: str
    hit: frozenset[str] = field(default=frozenset())
    """Ids of the memories that what is gone was about."""
    needed: bool = True
    """Whether something is in the file: what no floor names, and a log of which all is dropped, nobody looks at."""
    ids: Mapping[str, str] = field(default_factory=dict[str, str])
    """The id of each memory that was there before, by its content."""


def served(vault: Vault) -> dict[str, Expected]:
    """Return what a vault serves."""
    memories = vault.list(limit=10_000, state="all")
    contents = {memory.id: memory.content for memory in memories}
    assert len(set(contents.values())) == len(contents)
    return {
        memory.content: Expected(
            bool(memory.state & State.RETRACTED),
            None if memory.superseded_by is None else contents.get(memory.superseded_by, "something lost"),
            frozenset(memory.tags),
        )
        for memory in memories
    }


def all_findings(vault: Vault) -> list[Finding]:
    return [*vault.status().findings, *vault.verify()]


class Life(RuleBasedStateMachine):
    """Every story goes on from a copy of `begun`, a vault that was just made; `path` is for its lock alone."""

    begun: ClassVar[CrashDisk]
    path: ClassVar[Path]
    random: ClassVar[Random]
    """Draws the names of files: a story that is told again finds the same ones, in the same order."""

    def __init__(self) -> None:
        super().__init__()
        self.random.seed(2)  # not what the folder was made from: a key would come twice
        self.disk = self.begun.copy()
        self.passphrase, self.former = PASSPHRASE, list[str]()
        self.known: Known = {}
        self.ever, self.erased = set[str](), set[str]()
        self.copies = list[dict[Path, bytes]]()
        self.scarred = False
        """Whether damage was left as it is."""
        self.unsettled = 0
        """2 after a crash, 1 after the next write, 0 once the vault was opened after that."""
        self.vault = self._open()

    # ── acts ────────────────────────────────────────────────────────────────────────────────────────

    @rule(
        name=st.sampled_from(["remember", "remember", "many", "supersede", "retract or restore", "tag"]),
        pick=st.integers(0, 99),
    )
    def write(self, name: str, pick: int) -> None:
        self._acknowledged(self._act(name, pick))

    @rule(name=st.sampled_from(["compact", "erase", "rekey", "change passphrase", "new kit"]), pick=st.integers(0, 99))
    def tend(self, name: str, pick: int) -> None:
        self._acknowledged(self._act(name, pick))

    @rule(from_cache=st.booleans())
    def reopen(self, from_cache: bool) -> None:
        digest = self.vault.state_digest()
        self._close()
        if not from_cache and not self.scarred:
            self.disk.remove(self.path / "cache" / "view.mseal")
        self.vault = self._open()
        assert self.vault.state_digest() == digest
        self.unsettled = 2 if self.unsettled == 2 else 0

    @rule(
        name=st.sampled_from(
            "remember|many|supersede|tag|compact|erase|erase|rekey|change passphrase|new kit|close".split("|")
        ),
        pick=st.integers(0, 99),
        step=st.integers(0, 60),
        fate=st.none() | st.sampled_from(Fate),
        seed=st.integers(0, 9),
    )
    def crash(self, name: str, pick: int, step: int, fate: Fate | None, seed: int) -> None:
        act, returned = self._act(name, pick), False
        self.ever |= act.written
        self.disk.mishap = Mishap(self.disk.changed + step)
        try:
            act.do(self.vault)
            returned = True
        except Crash:
            pass
        except MemsealError:
            assert self.scarred
        power_off(self.vault)
        self.disk = self.disk.after_crash(Choice(fate, seed))
        self.unsettled = 2
        self._come_back(act, returned)

    def _come_back(self, act: Act, returned: bool) -> None:
        """Open after a crash: the act counts whole or not at all."""
        before, passphrase = self.known, act.passphrase or self.passphrase
        if act.passphrase is not None:
            try:
                self.vault = self._open(act.passphrase)
            except PassphraseWrong:
                assert not returned
                passphrase = self.passphrase
                self.vault = self._open()
        else:
            self.vault = self._open()
        found = served(self.vault)
        # With damage that was left, what only the cache had went with it: an erase and a change of keys drop it first.
        whole = found.items().__le__ if self.scarred else found.items().__eq__
        assert whole(act.after.items()) or (not returned and whole(before.items()))
        # What a crash cut is promised to nobody until its receipt says so.
        gone = all(erasure.done for erasure in self.vault.erasures())
        done = found == act.after and found != before and gone
        self._note(replace(act, after=found, erased=act.erased if done else frozenset(), passphrase=passphrase))

    def _acknowledged(self, act: Act) -> None:
        try:
            act.do(self.vault)
        except MemsealError:
            assert self.scarred
            power_off(self.vault)
            self._come_back(act, returned=False)
            return
        self._note(act)
        if act.written:
            self.unsettled = min(self.unsettled, 1)

    def _note(self, act: Act) -> None:
        self.known = act.after
        self.ever |= act.written
        self.erased |= act.erased
        if act.passphrase is not None and act.passphrase != self.passphrase:
            self.former.append(self.passphrase)
            self.passphrase = act.passphrase

    # ── what can be done ────────────────────────────────────────────────────────────────────────────

    def _act(self, name: str, pick: int) -> Act:
        contents = sorted(self.known)
        if name in ("supersede", "retract or restore", "tag", "erase") and not contents:
            name = "remember"
        one = contents[pick % len(contents)] if contents else ""
        match name:
            case "remember":
                return self._remember(pick)
            case "many":
                return self._many(1 + pick % 7)
            case "supersede" if self.known[one].successor is None:
                return self._supersede(one)
            case "retract or restore":
                return self._retract_or_restore(one)
            case "tag":
                return self._tag(one, "red" if pick % 2 else "blue")
            case "erase":
                return self._erase(one)
            case "change passphrase":
                return self._change_passphrase()
            case "new kit":
                return self._new_kit()
            case "rekey":
                return Act(Vault.rekey, self.known)
            case "close":
                return Act(Vault.close, self.known)
            case _:
                return Act(Vault.compact, self.known)

    def _fresh(self, count: int = 1) -> list[str]:
        return [f"memory {len(self.ever) + number:04d}" for number in range(count)]

    def _remember(self, pick: int) -> Act:
        [content] = self._fresh()
        tags = frozenset({"red"} if pick % 3 == 0 else ())
        vector = [1.0, pick, 0, 0] if pick % 2 else None
        return Act(
            lambda vault: vault.remember(content, source="story", tags=tags, embedding=vector),
            {**self.known, content: Expected(tags=tags)},
            written=frozenset({content}),
        )

    def _many(self, count: int) -> Act:
        contents = self._fresh(count)
        items = [{"content": content, "source": "story"} for content in contents]
        vectors = [[1.0, number, 0, 0] for number in range(count)]
        return Act(
            lambda vault: vault.remember_many(items, embeddings=vectors),
            {**self.known, **dict.fromkeys(contents, Expected())},
            written=frozenset(contents),
        )

    def _supersede(self, one: str) -> Act:
        [content] = self._fresh()
        changed = replace(self.known[one], successor=content)
        return Act(
            lambda vault: vault.supersede(self._id(vault, one), content, source="story"),
            {**self.known, one: changed, content: Expected(tags=changed.tags)},
            written=frozenset({content}),
        )

    def _retract_or_restore(self, one: str) -> Act:
        before = self.known[one]

        def do(vault: Vault) -> object:
            if before.retracted:
                return vault.restore(self._id(vault, one))
            return vault.retract(self._id(vault, one), reason="story")

        return Act(do, {**self.known, one: replace(before, retracted=not before.retracted)})

    def _tag(self, one: str, tag: str) -> Act:
        before = self.known[one]
        add, remove = ([], [tag]) if tag in before.tags else ([tag], [])
        return Act(
            lambda vault: vault.tag(self._id(vault, one), add=add, remove=remove),
            {**self.known, one: replace(before, tags=before.tags ^ {tag})},
        )

    def _erase(self, one: str) -> Act:
        gone = self._family(one)
        kept = {content: expected for content, expected in self.known.items() if content not in gone}
        return Act(lambda vault: vault.erase(self._id(vault, one)), kept, erased=frozenset(gone))

    def _family(self, one: str) -> set[str]:
        """The memory with all that it replaced and was replaced by."""
        family, size = {one}, 0
        while len(family) != size:
            size = len(family)
            for content, expected in self.known.items():
                if expected.successor in family:
                    family.add(content)
                if content in family and expected.successor is not None:
                    family.add(expected.successor)
        return family

    def _change_passphrase(self) -> Act:
        old, new = self.passphrase, f"passphrase {len(self.former)}"

        def change(vault: Vault) -> None:
            with vault._writing() as opened:
                passphrases.change(opened, stretch_of(old), stretch_of(new), new, None)

        return Act(change, self.known, passphrase=new)

    def _new_kit(self) -> Act:
        passphrase = stretch_of(self.passphrase)

        def renew(vault: Vault) -> None:
            with vault._writing() as opened:
                rekeying.new_kit(opened, passphrase, None)

        return Act(renew, self.known)

    def _id(self, vault: Vault, content: str) -> str:
        [memory] = [each for each in vault.list(limit=10_000, state="all") if each.content == content]
        return memory.id

    # ── damage ──────────────────────────────────────────────────────────────────────────────────────

    @rule(
        kind=st.sampled_from(["flip", "flip", "cut", "old", "old"]),
        file=st.integers(0, 999),
        place=st.floats(0, 1, exclude_max=True),
        afterwards=st.sampled_from(["undone", "healed", "left"]),
    )
    def damage(self, kind: str, file: int, place: float, afterwards: str) -> None:
        self._close()
        damage = self._damage(kind, file, place)
        if damage is None:
            self.vault = self._open()
            return
        spoiled = self.disk.copy()
        spoiled.remove(damage.file)
        spoiled.write(damage.file, 0, damage.content)
        spoiled = spoiled.copy()
        for passphrase in self.former[-2:]:
            with pytest.raises(MemsealError):
                open_vault(self.path, spoiled.copy(), passphrase)
        try:
            vault = open_vault(self.path, spoiled, self.passphrase)
        except MemsealError:
            assert damage.file.parent.name == "keyring" or damage.file.name == "device.mseal"
            self.vault = self._open()
            return
        self._live_on(damage, spoiled, vault, afterwards)

    def _damage(self, kind: str, file: int, place: float) -> Damage | None:
        files = {path: content for path, content in self.disk.files().items() if path.name != "lock" and content}
        if kind == "old":
            older = [
                (path, content)
                for copy in self.copies
                for path, content in copy.items()
                if files.get(path) != content and path.name != "lock"
            ]
            if not older:
                return None
            path, content = older[file % len(older)]
            intact = files.get(path, b"")
            kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(intact, content, strict=False)))
            return self._with_hit(Damage(path, content, kind), kept, len(intact))
        path = sorted(files)[file % len(files)]
        content, at = files[path], int(place * len(files[path]))
        if kind == "cut":
            return self._with_hit(Damage(path, content[:at], kind), at, len(content))
        flipped = content[:at] + bytes((content[at] ^ 1 << file % 8,)) + content[at + 1 :]
        return self._with_hit(Damage(path, flipped, kind), at, at + 1)

    def _with_hit(self, damage: Damage, start: int, end: int) -> Damage:
        """Note which memories what was at this range of the intact file is about."""
        with open_vault(self.path, self.disk.copy(), self.passphrase, read_only=True) as vault:
            there = carried(vault._opened)
            ids = {memory.content: memory.id for memory in vault.list(limit=10_000, state="all")}
        hit = (each.ids for each in there if each.file == damage.file and each.start < end and start < each.end)
        needed = damage.file.parent.name not in ("logs", "checkpoints", "parts", "cache", "traces", "sessions") or any(
            each.file == damage.file for each in there
        )
        lost = self._only_in_the_cache(frozenset(ids.values())) if self.scarred else frozenset[str]()
        return replace(damage, hit=lost.union(*hit), needed=needed, ids=ids)

    def _only_in_the_cache(self, ids: frozenset[str]) -> frozenset[str]:
        """Return what is nowhere else, since damage was left: any further damage can cost the cache."""
        disk = self.disk.copy()
        disk.remove(self.path / "cache" / "view.mseal")
        with open_vault(self.path, disk, self.passphrase, read_only=True) as vault:
            return ids.difference(memory.id for memory in vault.list(limit=10_000, state="all"))

    def _live_on(self, damage: Damage, spoiled: CrashDisk, vault: Vault, afterwards: str) -> None:
        [content] = self._fresh()
        with vault:
            self._is_honest(damage, vault)
            found = served(vault)
            vault.remember(content, source="story")
            self.ever.add(content)
        with open_vault(self.path, spoiled, self.passphrase) as vault:
            assert served(vault) == {**found, content: Expected()}
            self._nothing_erased(vault, carried(vault._opened))
        intact = self.disk.read(damage.file)
        # Any one old file is told from the others; of several that are put back one after the other nobody says that.
        if afterwards == "left" and damage.kind != "old":
            self.disk, self.scarred, self.known = spoiled, True, {**found, content: Expected()}
        elif (
            afterwards == "healed"
            and not self.scarred
            and intact is not None
            and spoiled.read(damage.file) == damage.content
        ):
            self.disk, self.known = spoiled, {**self.known, content: Expected()}
            self.disk.remove(damage.file)
            self.disk.write(damage.file, 0, intact)
            self.disk = self.disk.copy()
            self.scarred = True  # what was found before the file came back may stay listed
        self.vault = self._open()

    def _is_honest(self, damage: Damage, vault: Vault) -> None:
        """Check a damaged vault: nothing false, nothing erased, all that was not hit, and the loss is named."""
        found = served(vault)
        assert found.keys() <= self.ever - self.erased
        missing = self.known.keys() - found.keys()
        assert {damage.ids[content] for content in missing} <= damage.hit
        # An older copy can bring back what damage that was left had taken.
        revived = self.scarred and damage.kind == "old"
        whole = {content for content, each in damage.ids.items() if each not in damage.hit}
        assert revived or {content: found[content] for content in whole} == {
            content: self.known[content] for content in whole
        }
        changed = missing if revived else found != self.known
        if changed or (damage.needed and damage.kind != "old"):
            assert all_findings(vault)

    # ── what holds ──────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def everything_acknowledged_is_there_and_nothing_else(self) -> None:
        assert served(self.vault) == self.known
        allowed = {*LEFT_BY_CRASHES, CUT_ANEW} if self.unsettled else set[str]()
        found = [each for each in self.vault.status().findings if each.code not in allowed]
        assert self.scarred or found == []

    def _nothing_erased(self, vault: Vault, there: list[Carried]) -> None:
        """Check that erased content is in nothing that can be opened, once it is said to be gone."""
        image = vault._opened.logbook.view.state.image()
        assert not [each for each in self.erased if each.encode() in image]
        if all(erasure.done for erasure in vault.erasures()):
            assert not frozenset[str]().union(*(each.contents for each in there)) & self.erased

    def teardown(self) -> None:
        if self.vault._closed:
            return  # a step failed, and says why
        with ExitStack() as stack:
            stack.callback(power_off, self.vault)
            self._nothing_erased(self.vault, carried(self.vault._opened))
            assert self.scarred or self.unsettled or self.vault.verify() == []

    def _open(self, passphrase: str | None = None) -> Vault:
        return open_vault(self.path, self.disk, passphrase or self.passphrase)

    def _close(self) -> None:
        self.vault.close()
        self.copies = [*self.copies, self.disk.files()][-MOST_COPIES:]


@pytest.fixture(autouse=True)
def small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few memories fill several records, and any log be worth a cache."""
    monkeypatch.setattr(writing, "_RECORD_BYTES", 600)
    monkeypatch.setattr(opening, "_CACHE_WORTH", 1)


def test_whatever_happens_to_a_vault_it_serves_what_it_acknowledged_and_was_not_hit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Story(Life):
        pass

    path = tmp_path / "a vault"
    path.mkdir()
    Story.begun, Story.path, Story.random = CrashDisk(tmp_path), path, Random(1)
    monkeypatch.setattr(secrets, "token_bytes", Story.random.randbytes)
    # With the clock of the machine, records would have other sizes each time, and damage would hit other places.
    clock = count(1_700_000_000_000_000)
    monkeypatch.setattr(writing, "present", lambda: next(clock))
    new_folder(path, Story.begun)
    examples = max(1, settings().max_examples // EXAMPLES_SHARE)
    # Looking for the shortest story takes minutes: who wants it takes the large profile.
    phases = settings().phases if THOROUGH else [Phase.generate]
    run_state_machine_as_test(Story, settings=settings(max_examples=examples, stateful_step_count=STEPS, phases=phases))
