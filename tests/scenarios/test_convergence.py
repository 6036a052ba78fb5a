"""Devices that write, synchronise and break off in any order end in the same state, and nothing is missing."""

import contextlib
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from memseal.errors import KitOrPassphrase, MemoryUnknown, PassphraseWrong, RemoteRefused, RemoteUnreachable
from memseal.memory.memory import Memory, State
from tests.sync.devices import Device, first_device, joined_device, restored
from tests.sync.memory_remote import Break, MemoryRemote
from tests.vault.small_vault import PASSPHRASE

MOST_DEVICES = 4
# Rounds until everybody has everything: each device pushes in the first and pulls in the second; the third is quiet.
ROUNDS = 3
# An erase that was pending is done in the first; what others had written on top of it follows.
ROUNDS_AFTER_ERASES = 5
STEPS = 30
# A story takes half a second: of these fewer than of other properties, in each profile.
EXAMPLES = settings().max_examples // 4
_devices = st.integers(0, MOST_DEVICES - 1)
_picks = st.integers(0, 1 << 16)
_contents = st.sampled_from(["tea", "coffee", "milk", "water"])
_breaks = st.dictionaries(st.integers(0, 12), st.sampled_from(Break), max_size=2)
# Most records of these stories have 1,172 bytes: answers end in the middle of one, between two, or after all.
_answer_limits = st.sampled_from([1_500, 4_000, 1 << 20])


class Devices(RuleBasedStateMachine):
    """Two to four devices and a remote; what each wrote is noted, to be asked for at the end.

    Every story goes on from copies of `begun`: a remote and two devices, closed. `folder` is for locks alone.
    """

    begun: ClassVar[tuple[MemoryRemote, Device, Device]]
    folder: ClassVar[Path]

    def __init__(self) -> None:
        super().__init__()
        remote, *devices = self.begun
        self.remote = remote.copy()
        self.devices = [restored(device.disk, device.folder) for device in devices]
        self.connection = self.remote.connected()
        self.connection.__enter__()
        self.written = dict[str, str]()
        self.erased = set[str]()
        self.passphrase = PASSPHRASE
        self.unfinished = dict[int, str]()
        """Passphrases that a device was about to change to when the connection broke."""

    # ── writing ─────────────────────────────────────────────────────────────────────────────────────

    @rule(device=_devices, content=_contents, tags=st.sets(st.sampled_from(["red", "blue"])))
    def remember(self, device: int, content: str, tags: set[str]) -> None:
        self._note(self._device(device).vault.remember(content, source="story", tags=sorted(tags)))

    @rule(device=_devices, dimension=st.integers(2, 3), count=st.integers(1, 3))
    def remember_with_vectors(self, device: int, dimension: int, count: int) -> None:
        vault = self._device(device).vault
        pinned = vault._opened.logbook.view.pinned
        items = [{"content": f"memory {len(self.written) + number}", "source": "story"} for number in range(count)]
        vectors = np.ones((count, dimension if pinned is None else pinned[1]))
        for memory in vault.remember_many(items, vectors):
            self._note(memory)

    @rule(device=_devices, pick=_picks, content=_contents)
    def supersede(self, device: int, pick: int, content: str) -> None:
        vault = self._device(device).vault
        if (memory := self._pick(device, pick)) is not None and not memory.state & State.SUPERSEDED:
            self._note(vault.supersede(memory.id, content, source="story", reason="changed"))

    @rule(device=_devices, pick=_picks)
    def retract_or_restore(self, device: int, pick: int) -> None:
        vault = self._device(device).vault
        if (memory := self._pick(device, pick)) is not None:
            if memory.state & State.RETRACTED:
                assert not vault.restore(memory.id).state & State.RETRACTED
            else:
                assert vault.retract(memory.id, reason="wrong").reason == "wrong"

    @rule(device=_devices, pick=_picks, tag=st.sampled_from(["red", "blue"]))
    def tag_or_untag(self, device: int, pick: int, tag: str) -> None:
        vault = self._device(device).vault
        if (memory := self._pick(device, pick)) is not None:
            add, remove = ([], [tag]) if tag in memory.tags else ([tag], [])
            assert (tag in vault.tag(memory.id, add=add, remove=remove).tags) is bool(add)

    @rule(device=_devices, pick=_picks, breaks=_breaks)
    def erase(self, device: int, pick: int, breaks: dict[int, Break]) -> None:
        if (memory := self._pick(device, pick)) is not None:
            self.remote.breaks = dict(breaks)
            self.erased.update(self._device(device).vault.erase(memory.id, reason="private").erased)
            self.remote.breaks = {}

    # ── the life of devices ─────────────────────────────────────────────────────────────────────────

    @rule(device=_devices, breaks=_breaks, answer_limit=_answer_limits)
    def sync(self, device: int, breaks: dict[int, Break], answer_limit: int) -> None:
        self.remote.breaks, self.remote.answer_limit = dict(breaks), answer_limit
        # A key that ended with a passphrase change whose answer never came is refused until the change is completed.
        refused = (RemoteRefused, PassphraseWrong) if self._number(device) in self.unfinished else ()
        with contextlib.suppress(RemoteUnreachable, *refused):
            self._device(device).sync()
        self.remote.breaks = {}

    @rule(device=_devices, from_cache=st.booleans())
    def reopen(self, device: int, from_cache: bool) -> None:
        before = self._device(device).vault.state_digest()
        self._device(device).reopen(from_cache=from_cache)
        assert self._device(device).vault.state_digest() == before

    @rule(device=_devices, breaks=_breaks, thorough=st.booleans())
    def compact(self, device: int, breaks: dict[int, Break], thorough: bool) -> None:
        self.remote.breaks = dict(breaks)
        refused = (RemoteRefused, PassphraseWrong) if self._number(device) in self.unfinished else ()
        with contextlib.suppress(RemoteUnreachable, *refused):
            self._device(device).vault.compact(thorough=thorough)
        self.remote.breaks = {}

    @rule(device=_devices, breaks=_breaks)
    def rekey(self, device: int, breaks: dict[int, Break]) -> None:
        self.remote.breaks = dict(breaks)
        refused = (RemoteRefused, PassphraseWrong) if self._number(device) in self.unfinished else ()
        with contextlib.suppress(RemoteUnreachable, *refused):
            self._device(device).vault.rekey()
        self.remote.breaks = {}

    @rule(device=_devices, breaks=_breaks)
    def change_passphrase(self, device: int, breaks: dict[int, Break]) -> None:
        self.remote.breaks = dict(breaks)
        self._change_passphrase(self._number(device), f"passphrase {len(self.remote.versions)}")
        self.remote.breaks = {}

    @precondition(lambda self: len(self.devices) < MOST_DEVICES)
    @rule(device=_devices)
    def join(self, device: int) -> None:
        helper = self._device(device)
        if helper.passphrase == self.passphrase and self._number(device) not in self.unfinished:
            helper.sync()
            self.devices.append(self._joined(helper))

    # ── what holds ──────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def nothing_is_wrong_anywhere(self) -> None:
        for device in self.devices:
            assert device.vault.status().findings == []

    def teardown(self) -> None:
        # All of it, also where a device cannot be closed: the next story must not meet this one's remote.
        with contextlib.ExitStack() as stack:
            stack.callback(self.connection.__exit__, None, None, None)
            stack.callback(self._close_all)
            self._assert_all_agree()

    def _close_all(self) -> None:
        with contextlib.ExitStack() as stack:
            for device in self.devices:
                stack.callback(device.close)

    def _assert_all_agree(self) -> None:
        self.remote.answer_limit = 1 << 20
        for number in range(len(self.devices)):
            if number in self.unfinished:
                self._change_passphrase(number, self.passphrase)
        for _ in range(ROUNDS_AFTER_ERASES if self.erased else ROUNDS - 1):
            for device in self.devices:
                device.sync()
        reports = [device.sync() for device in self.devices]
        assert [(each.pulled_bytes, each.pushed_bytes, each.findings) for each in reports] == [(0, 0, [])] * len(
            reports
        )
        up_to_date = next(device for device in self.devices if device.passphrase == self.passphrase)
        self.devices.append(self._joined(up_to_date))
        assert len({device.vault.state_digest() for device in self.devices}) == 1
        for device in self.devices:
            kept = {each: content for each, content in self.written.items() if each not in self.erased}
            assert {each: device.vault.get(each).content for each in kept} == kept
            for each in self.erased:
                with pytest.raises(MemoryUnknown):
                    device.vault.get(each)
            assert all(erasure.done for erasure in device.vault.erasures())
            assert device.vault.verify() == []

    # ── parts ───────────────────────────────────────────────────────────────────────────────────────

    def _number(self, device: int) -> int:
        return device % len(self.devices)

    def _device(self, device: int) -> Device:
        return self.devices[self._number(device)]

    def _note(self, memory: Memory) -> None:
        self.written[memory.id] = memory.content

    def _pick(self, device: int, pick: int) -> Memory | None:
        memories = self._device(device).vault.list(state="all")
        return memories[pick % len(memories)] if memories else None

    def _joined(self, helper: Device) -> Device:
        path = self.folder / f"joined-{len(self.devices)}"
        device = joined_device(path, self.remote, helper.vault.emergency_kit, self.passphrase)
        device.sync()
        return device

    def _change_passphrase(self, number: int, new: str) -> None:
        """Change it, or complete a change, or take on the one that another device made."""
        device = self.devices[number]
        behind = device.passphrase != self.passphrase and number not in self.unfinished
        wanted = self.passphrase if behind else self.unfinished.get(number, new)
        since = self.remote.versions[-1].public.passphrase_since if self.remote.versions else 1
        try:
            device.change_passphrase(wanted)
            self.unfinished.pop(number, None)
        except RemoteUnreachable:
            self.unfinished[number] = wanted
        except KitOrPassphrase:
            # Another device's change came first: that passphrase counts.
            assert wanted != self.passphrase
            self.unfinished.pop(number, None)
        if self.remote.versions and self.remote.versions[-1].public.passphrase_since > since:
            self.passphrase = wanted


@pytest.fixture
def begun(tmp_path: Path) -> tuple[MemoryRemote, Device, Device]:
    """Return a remote and two devices of one vault, closed."""
    remote = MemoryRemote()
    with remote.connected():
        one = first_device(tmp_path / "one")
        one.sync()
        two = joined_device(tmp_path / "two", remote, one.vault.emergency_kit)
        two.sync()
        one.close()
        two.close()
    return remote, one, two


def test_devices_end_in_the_same_state_and_nothing_is_missing(
    begun: tuple[MemoryRemote, Device, Device], tmp_path: Path
) -> None:
    class Story(Devices):
        pass

    Story.begun, Story.folder = begun, tmp_path
    run_state_machine_as_test(Story, settings=settings(stateful_step_count=STEPS, max_examples=EXAMPLES))


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.integers(0, 2), st.booleans(), _breaks), max_size=16))
def test_copies_of_a_device_end_in_the_same_state_and_nothing_is_missing(
    begun: tuple[MemoryRemote, Device, Device], tmp_path: Path, steps: list[tuple[int, bool, dict[int, Break]]]
) -> None:
    remote, one, two = begun[0].copy(), begun[1], begun[2]
    devices = [restored(one.disk, one.folder), restored(one.disk, tmp_path / "copy"), restored(two.disk, two.folder)]
    written = dict[str, str]()
    with remote.connected(), contextlib.ExitStack() as stack:
        for device in devices:
            stack.callback(device.close)
        for number, writes, breaks in steps:
            if writes:
                memory = devices[number].vault.remember(f"memory {len(written)}", source="story")
                written[memory.id] = memory.content
            else:
                remote.breaks = dict(breaks)
                with contextlib.suppress(RemoteUnreachable):
                    devices[number].sync()
                remote.breaks = {}
        for device in devices * ROUNDS:
            device.sync()
        assert len({device.vault.state_digest() for device in devices}) == 1
        for device in devices:
            assert {each: device.vault.get(each).content for each in written} == written
            assert device.vault.verify() == []
