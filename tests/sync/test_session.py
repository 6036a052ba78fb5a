"""A round of synchronisation against remotes that lie, lose, refuse and race: real devices, a remote in memory."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from memseal.errors import FormatError, KeyringForked, RemoteAnswer, RemoteRefused, RemoteUnreachable, RolledBack
from memseal.format.log import End
from memseal.sync.messages import (
    Absent,
    Answer,
    Content,
    GetHeads,
    GetKeyring,
    GetLog,
    Heads,
    PutSegment,
    Refused,
    RemoteLog,
    Request,
    Stored,
)
from memseal.sync.session import PULL_LIMIT
from memseal.vault.remote.replica import VaultReplica
from tests.sync.devices import Device, first_device, joined_device, restored
from tests.sync.memory_remote import Break, MemoryRemote, StoredLog

ABSENT_STREAM = bytes(16)


@dataclass
class Pair:
    """Two devices that have synchronised: each has written one memory, and has that of the other."""

    remote: MemoryRemote
    one: Device
    two: Device
    folder: Path

    def clone_of_one(self) -> Device:
        """Return a copy of device one, as a restored backup of it would be."""
        return restored(self.one.disk, self.folder / "clone")

    def show(self, remote: MemoryRemote) -> None:
        """Put another remote in the place of the one there."""
        self.remote.versions, self.remote.logs = remote.versions, remote.logs


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    remote = MemoryRemote()
    with remote.connected():
        one = first_device(tmp_path / "one")
        one.vault.remember("from one", source="test")
        one.sync()
        two = joined_device(tmp_path / "two", remote, one.vault.emergency_kit)
        two.vault.remember("from two", source="test")
        two.sync()
        one.sync()
        yield Pair(remote, one, two, tmp_path)
        one.close()
        two.close()


def contents(device: Device) -> set[str]:
    return {memory.content for memory in device.vault.list(state="all")}


def own_stream(device: Device) -> bytes:
    logbook = device.vault._opened.logbook
    (stream_id,) = [stream_id for stream_id, log in logbook.logs.items() if logbook.is_own(log)]
    return stream_id


def instead_of(kind: type[Request], answer: Answer) -> Callable[[Request, Answer], Answer]:
    return lambda request, true: answer if isinstance(request, kind) else true


def with_log(stream_id: bytes, log: RemoteLog) -> Callable[[Request, Answer], Answer]:
    """Show one more log, or another end of one."""
    return lambda _, answer: (
        replace(answer, logs={**answer.logs, stream_id: log}) if isinstance(answer, Heads) else answer
    )


# ── rolled back ─────────────────────────────────────────────────────────────────────────────────────


def test_vault_that_is_not_there_any_more_is_rolled_back_and_nothing_local_is_lost(pair: Pair) -> None:
    before = pair.one.disk.files()
    pair.show(MemoryRemote())
    with pytest.raises(RolledBack):
        pair.one.sync()
    assert pair.one.disk.files() == before
    assert contents(pair.one) == {"from one", "from two"}


def test_shorter_log_is_rolled_back_and_what_else_is_new_was_taken(pair: Pair) -> None:
    old = pair.remote.copy()
    pair.one.vault.remember("lost again", source="test")
    pair.one.sync()
    pair.two.vault.remember("new", source="test")
    pair.two.sync()
    pair.remote.logs[own_stream(pair.one)] = old.logs[own_stream(pair.one)]
    with pytest.raises(RolledBack):
        pair.one.sync()
    assert contents(pair.one) == {"from one", "from two", "lost again", "new"}


def test_log_that_is_gone_is_rolled_back(pair: Pair) -> None:
    del pair.remote.logs[own_stream(pair.two)]
    with pytest.raises(RolledBack):
        pair.one.sync()
    assert contents(pair.one) == {"from one", "from two"}


def test_older_keyring_is_rolled_back(pair: Pair) -> None:
    del pair.remote.versions[1:]
    with pytest.raises(RolledBack):
        pair.one.sync()


def test_with_consent_everything_is_put_back_as_it_was(pair: Pair) -> None:
    lost = pair.remote.copy()
    pair.show(MemoryRemote())
    pair.one.sync(accept_rollback=True)
    assert {stream: log.content() for stream, log in pair.remote.logs.items()} == {
        stream: log.content() for stream, log in lost.logs.items()
    }
    assert [version.digest for version in pair.remote.versions] == [version.digest for version in lost.versions]
    assert pair.two.sync().findings == []


# ── forked ──────────────────────────────────────────────────────────────────────────────────────────


def branch_of_one(pair: Pair, *contents: str) -> MemoryRemote:
    """Return a remote on which a clone of device one has written something else after the common beginning."""
    here, there = pair.remote.copy(), pair.remote.copy()
    clone = pair.clone_of_one()
    pair.show(there)
    for content in contents:
        clone.vault.remember(content, source="test")
        clone.sync()
    clone.close()
    pair.show(here)
    return there


@pytest.mark.parametrize("others", [["other"], ["other"] * 2 + ["more"], ["other " + "x" * 5_000, "more"]])
def test_other_history_of_a_log_is_found_and_the_other_logs_go_on(pair: Pair, others: list[str]) -> None:
    there = branch_of_one(pair, *others)
    pair.one.vault.remember("mine", source="test")
    pair.one.sync()
    pair.two.sync()
    three = joined_device(pair.folder / "three", pair.remote, pair.two.vault.emergency_kit)
    pair.two.sync()
    there.versions = pair.remote.versions
    pair.show(there)
    three.vault.remember("from three", source="test")
    three.sync()
    log_before = pair.two.vault._opened.folder.read(f"logs/{own_stream(pair.one).hex()}.mseal")
    report = pair.two.sync()
    assert [finding.code for finding in report.findings] == ["forked"]
    assert pair.two.vault._opened.folder.read(f"logs/{own_stream(pair.one).hex()}.mseal") == log_before
    assert contents(pair.two) == {"from one", "from two", "mine", "from three"}
    three.close()


def test_fork_that_is_shorter_is_found_in_every_round_and_is_not_taken_for_a_rollback(pair: Pair) -> None:
    there = branch_of_one(pair, "other")
    backup = pair.two.disk.copy()
    for number in range(2):
        pair.one.vault.remember(f"mine {number}", source="test")
    pair.one.sync()
    pair.two.close()
    pair.show(there)
    # Device two knows the longer branch of device one from elsewhere: from a stick, say.
    two = restored(backup, pair.two.folder)
    name = f"logs/{own_stream(pair.one).hex()}.mseal"
    longer = pair.one.vault._opened.folder.read(name)
    assert longer is not None
    two.vault._opened.folder.replace(name, longer)
    two.reopen(from_cache=False)
    for _ in range(2):
        assert [finding.code for finding in two.sync().findings] == ["forked"]
    two.close()


def test_clone_goes_on_in_a_log_of_its_own_and_nothing_is_lost(pair: Pair) -> None:
    clone = pair.clone_of_one()
    pair.one.vault.remember("from the original", source="test")
    clone.vault.remember("from the clone", source="test")
    for device in (pair.one, clone, pair.one, pair.two, clone):
        device.sync()
    everything = {"from one", "from two", "from the original", "from the clone"}
    assert contents(pair.one) == contents(pair.two) == contents(clone) == everything
    assert len({device.vault.state_digest() for device in (pair.one, pair.two, clone)}) == 1
    clone.close()


# ── lies ────────────────────────────────────────────────────────────────────────────────────────────


def test_answer_longer_than_what_was_asked_for_is_refused(pair: Pair) -> None:
    pair.two.vault.remember("new", source="test")
    pair.two.sync()
    pair.remote.lie = instead_of(GetLog, Content(bytes(PULL_LIMIT + 1)))
    with pytest.raises(RemoteAnswer):
        pair.one.sync()


@pytest.mark.parametrize("length", [10_000, 1 << 50])
def test_log_that_is_said_to_be_longer_than_it_is_ends_and_is_no_rollback_later(pair: Pair, length: int) -> None:
    stream_id = own_stream(pair.two)
    end = pair.remote.logs[stream_id].end
    pair.remote.lie = with_log(stream_id, RemoteLog(End(length, 7, bytes(32)), 2))
    assert pair.one.sync().pulled_bytes == 0
    pair.remote.lie = lambda _, answer: answer
    assert pair.one.sync().findings == []
    assert pair.remote.logs[stream_id].end == end


def test_log_of_another_vault_is_refused_and_named(pair: Pair, tmp_path: Path) -> None:
    stranger = first_device(tmp_path / "stranger")
    stranger.vault.remember("not yours", source="test")
    stream_id = own_stream(stranger)
    content = stranger.disk.files()[stranger.folder / "logs" / f"{stream_id.hex()}.mseal"]
    pair.two.vault.remember("new", source="test")
    pair.two.sync()
    pair.remote.logs = {stream_id: StoredLog([content], End(len(content), 1, bytes(32))), **pair.remote.logs}
    (finding,) = pair.one.sync().findings
    assert (finding.code, finding.where) == ("vault_mismatch", f"logs/{stream_id.hex()}.mseal")
    assert contents(pair.one) == {"from one", "from two", "new"}
    del pair.remote.logs[stream_id]
    assert pair.one.sync().findings == []
    stranger.close()


def test_log_under_another_name_is_refused(pair: Pair) -> None:
    pair.remote.logs[ABSENT_STREAM] = pair.remote.logs[own_stream(pair.two)]
    assert [finding.code for finding in pair.one.sync().findings] == ["stream_mismatch"]


def test_two_logs_with_their_content_swapped_are_refused(pair: Pair) -> None:
    mine, other = own_stream(pair.one), own_stream(pair.two)
    three = joined_device(pair.folder / "three", pair.remote, pair.one.vault.emergency_kit)
    pair.remote.logs[mine], pair.remote.logs[other] = pair.remote.logs[other], pair.remote.logs[mine]
    assert {finding.code for finding in three.sync().findings} == {"stream_mismatch"}
    assert contents(three) == set()
    three.close()


def test_log_of_an_epoch_that_the_keyring_does_not_have_waits(pair: Pair) -> None:
    behind = pair.remote.copy()
    pair.one.change_passphrase("a newer passphrase")
    pair.one.vault.remember("under newer keys", source="test")
    pair.one.sync()
    pair.remote.versions = behind.versions
    newer = next(stream_id for stream_id in pair.remote.logs if stream_id not in behind.logs)
    (finding,) = pair.two.sync().findings
    assert (finding.code, finding.where) == ("keyring_behind", f"logs/{newer.hex()}.mseal")


def test_bytes_that_no_device_sealed_are_not_taken(pair: Pair) -> None:
    pair.two.vault.remember("new", source="test")
    pair.two.sync()
    before = pair.one.vault.state_digest()
    pair.remote.lie = lambda request, answer: Content(bytes(1_172)) if isinstance(request, GetLog) else answer
    pair.one.sync()
    assert pair.one.vault.state_digest() == before
    pair.remote.lie = lambda _, answer: answer
    pair.one.sync()
    assert "new" in contents(pair.one)


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        (GetHeads, Stored()),
        (GetHeads, Content(b"")),
        (GetLog, Absent()),
        (GetLog, Stored()),
        (PutSegment, Content(b"")),
    ],
)
def test_answer_to_another_question_is_refused(pair: Pair, kind: type[Request], answer: Answer) -> None:
    pair.two.vault.remember("new", source="test")
    pair.two.sync()
    pair.one.vault.remember("mine", source="test")
    pair.remote.lie = instead_of(kind, answer)
    with pytest.raises(RemoteAnswer):
        pair.one.sync()
    assert "mine" in contents(pair.one)


# ── keyrings ────────────────────────────────────────────────────────────────────────────────────────


def test_another_keyring_under_the_same_number_stops_the_round(pair: Pair) -> None:
    pair.remote.lie = lambda _, answer: replace(answer, keyring=(2, bytes(32))) if isinstance(answer, Heads) else answer
    with pytest.raises(KeyringForked):
        pair.one.sync()


def test_keyring_version_that_is_not_accepted_stops_the_round(pair: Pair) -> None:
    joined_device(pair.folder / "three", pair.remote, pair.one.vault.emergency_kit).close()
    pair.remote.lie = instead_of(GetKeyring, Content(pair.remote.versions[0].content))
    with pytest.raises(FormatError) as caught:
        pair.one.sync()
    assert caught.value.code == "keyring_chain"
    assert pair.one.vault.status().keyring_version == 2


# ── refusals ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", [GetHeads, PutSegment])
def test_refusal_is_raised_with_its_code(pair: Pair, kind: type[Request]) -> None:
    pair.one.vault.remember("mine", source="test")
    pair.remote.lie = instead_of(kind, Refused("limit", 507, "full"))
    with pytest.raises(RemoteRefused) as caught:
        pair.one.sync()
    assert (caught.value.code, caught.value.status) == ("limit", 507)


def test_refused_log_is_named_and_the_others_go_on(pair: Pair) -> None:
    refused = own_stream(pair.two)
    pair.two.vault.remember("new", source="test")
    pair.two.sync()
    pair.one.vault.remember("mine", source="test")
    pair.remote.lie = instead_of(GetLog, Refused("rate", 429, "later"))
    report = pair.one.sync()
    assert [(finding.code, finding.where) for finding in report.findings] == [("rate", f"logs/{refused.hex()}.mseal")]
    assert report.pushed_bytes > 0
    pair.remote.lie = lambda _, answer: answer
    assert pair.one.sync().findings == []
    assert "new" in contents(pair.one)


# ── races ───────────────────────────────────────────────────────────────────────────────────────────


def once_before(kind: type[Request], action: Callable[[], object]) -> Callable[[Request], None]:
    done = list[bool]()

    def act(request: Request) -> None:
        if isinstance(request, kind) and not done:
            done.append(True)
            action()

    return act


def test_two_devices_that_put_the_same_log_back_both_end_well(pair: Pair) -> None:
    lost = pair.remote.copy()
    pair.show(MemoryRemote())
    pair.remote.before = once_before(PutSegment, lambda: pair.two.sync(accept_rollback=True))
    pair.one.sync(accept_rollback=True)
    assert {stream: log.content() for stream, log in pair.remote.logs.items()} == {
        stream: log.content() for stream, log in lost.logs.items()
    }


def test_epoch_that_ends_between_look_and_put_is_followed(pair: Pair) -> None:
    pair.one.vault.remember("just in time", source="test")
    pair.remote.before = once_before(PutSegment, lambda: pair.two.change_passphrase("a newer passphrase"))
    pair.one.sync()
    pair.two.sync()
    assert pair.one.vault.state_digest() == pair.two.vault.state_digest()
    assert contents(pair.two) == {"from one", "from two", "just in time"}


def test_race_that_never_ends_is_given_up_and_nothing_is_believed_to_be_stored(pair: Pair) -> None:
    pair.one.vault.remember("mine", source="test")
    pair.remote.lie = instead_of(PutSegment, Refused("segment_conflict", 409, "always"))
    stored = pair.remote.copy()
    pair.remote._put_segment = lambda *_: Stored()  # type: ignore[method-assign]
    with pytest.raises(RemoteRefused) as caught:
        pair.one.sync()
    assert caught.value.code == "segment_conflict"
    assert len(pair.remote.requests) < 60
    again = MemoryRemote(stored.versions, stored.logs)
    with again.connected():
        pair.one.sync()
        pair.two.sync()
    assert "mine" in contents(pair.two)


# ── broken off ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("moment", Break)
def test_round_broken_off_at_any_request_goes_on_in_the_next(pair: Pair, moment: Break) -> None:
    for number in range(20):
        for device in (pair.one, pair.two):
            device.vault.remember(f"{device.folder.name} {number}", source="test")
        pair.two.sync()
        pair.remote.breaks = {number: moment}
        try:
            pair.one.sync()
        except RemoteUnreachable:
            pair.one.sync()
        else:
            break
        pair.two.sync()
        assert pair.one.vault.state_digest() == pair.two.vault.state_digest()
        assert pair.one.vault.status().findings == pair.two.vault.status().findings == []
    else:
        pytest.fail("a round has fewer requests than that")
    assert number == 3  # heads, a log, a segment


@pytest.mark.parametrize("moment", Break)
def test_registration_broken_off_at_any_request_goes_on_in_the_next(tmp_path: Path, moment: Break) -> None:
    device = first_device(tmp_path / "one")
    device.vault.remember("first", source="test")
    unregistered = device.disk.copy()
    device.close()
    for number in range(4):
        remote = MemoryRemote(breaks={number: moment})
        again = restored(unregistered, device.folder)
        with remote.connected():
            with pytest.raises(RemoteUnreachable):
                again.sync()
            again.sync()
            two = joined_device(tmp_path / "two", remote, again.vault.emergency_kit)
            two.sync()
        assert contents(two) == {"first"}
        two.close()
        again.close()


def test_passphrase_change_completed_after_a_lost_answer_keeps_what_was_written_between(tmp_path: Path) -> None:
    remote = MemoryRemote()
    with remote.connected():
        device = first_device(tmp_path / "one")
        device.sync()
        remote.breaks = {1: Break.AFTER}
        with pytest.raises(RemoteUnreachable):
            device.change_passphrase("a newer passphrase")
        device.vault.remember("between", source="test")
        device.change_passphrase("a newer passphrase")
        device.reopen(from_cache=False)
        assert contents(device) == {"between"}
        assert device.sync().findings == []
        device.close()


@pytest.mark.parametrize("answer_limit", [200, 1_171, 1_172, 5_000])
def test_record_larger_than_one_answer_is_taken_in_pieces(pair: Pair, answer_limit: int) -> None:
    pair.remote.answer_limit = answer_limit
    for size in (10, 20_000, 10):
        pair.two.vault.remember("x" * size, source="test", author=str(size))
    pair.two.vault.remember_many([{"content": f"memory {number}", "source": "test"} for number in range(20)])
    pair.two.sync()
    assert pair.one.sync().findings == []
    assert pair.one.vault.state_digest() == pair.two.vault.state_digest()


def test_record_damaged_on_the_way_is_whole_after_the_next_round(pair: Pair) -> None:
    pair.two.vault.remember("new", source="test")
    pair.two.vault.remember("newer", source="test")
    pair.two.sync()
    pair.remote.lie = lambda request, answer: (
        Content(answer.content[:100] + b"?" + answer.content[101:])
        if isinstance(request, GetLog) and isinstance(answer, Content)
        else answer
    )
    pair.one.sync()
    pair.remote.lie = lambda _, answer: answer
    pair.one.sync()
    assert {"new", "newer"} <= contents(pair.one)


# ── segments ────────────────────────────────────────────────────────────────────────────────────────


def segments_of(device: Device, starts: Mapping[bytes, End]) -> dict[bytes, list[bytes]]:
    """Return what a device would put of each log, from where a remote has it."""
    found = dict[bytes, list[bytes]]()
    with device.vault._writing() as opened:
        replica = VaultReplica(opened)
        for stream_id in replica.logs():
            end, segments = starts.get(stream_id), list[bytes]()
            while (following := replica.next_segment(stream_id, end)) is not None:
                segment, end = following
                segments.append(segment)
            found[stream_id] = segments
    return found


def ends_of(device: Device) -> dict[bytes, End]:
    with device.vault._writing() as opened:
        return {stream_id: log.end for stream_id, log in VaultReplica(opened).logs().items()}


def test_what_was_just_written_is_put_as_what_is_read_again_from_its_file(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Records have more than a kilobyte each: some segments end in the midst of what was written.
    monkeypatch.setattr("memseal.vault.remote.replica.SEGMENT_TARGET", 5_000)
    begun = ends_of(pair.one)
    for number in range(8):
        pair.one.vault.remember(f"written just now {number}", source="test")
    fresh = [segments_of(pair.one, starts) for starts in ({}, begun)]
    assert sum(len(segments) for segments in fresh[1].values()) > 1
    pair.one.reopen(from_cache=False)
    assert [segments_of(pair.one, starts) for starts in ({}, begun)] == fresh


def test_after_a_log_was_cut_nothing_of_its_former_end_is_put(pair: Pair) -> None:
    clone = pair.clone_of_one()
    for number in range(3):
        pair.one.vault.remember(f"of one {number}", source="test")
        clone.vault.remember(f"of the clone {number}", source="test")
    pair.one.sync()
    report = clone.sync()  # it goes on in a fresh log, and its old one is cut where both were alike
    assert [finding.code for finding in report.findings] == ["forked"]
    fresh = segments_of(clone, {})
    clone.reopen(from_cache=False)
    assert segments_of(clone, {}) == fresh
    pair.two.sync()
    assert pair.two.vault.count() == 8
    clone.close()
