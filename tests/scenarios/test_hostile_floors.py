"""Floors by a hostile device, a hostile server, or both: what is lost, and what is named (vault-format §8b)."""

import contextlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memseal.errors import PassphraseWrong, RemoteRefused, RemoteUnreachable, RolledBack
from memseal.format.checkpoint import Covered, Manifest, PartEntry
from memseal.format.counters import most_counter
from memseal.format.floor import Floor, Row
from memseal.format.log import End
from memseal.format.preamble import stream_id_of
from memseal.format.primitives import sha256
from memseal.memory.memory import parse_id
from memseal.sync.messages import (
    Answer,
    Content,
    GetHeads,
    GetLog,
    GetObject,
    Heads,
    PutKeyring,
    Refused,
    Request,
    Stored,
)
from memseal.vault.checkpoint import parts
from memseal.vault.checkpoint.covering import coverage
from memseal.vault.checkpoint.settling import object_file
from memseal.vault.compaction import compacting
from memseal.vault.keys import versions
from memseal.vault.writes.writing import embed_batches
from tests.sync.devices import (
    Device,
    crashes_of,
    first_device,
    first_that_wrote,
    joined_device,
    restored,
    second_that_wrote,
)
from tests.sync.memory_remote import MemoryRemote, MemoryTransport
from tests.vault.crash_disk import ALL_KEPT, ALL_LOST, Choice
from tests.vault.small_vault import everything

Operations = list[dict[str, Any]]
Rows = dict[bytes, Row]


@pytest.fixture
def remote() -> Iterator[MemoryRemote]:
    remote = MemoryRemote()
    with remote.connected():
        yield remote


@pytest.fixture
def victim(tmp_path: Path, remote: MemoryRemote) -> Iterator[Device]:
    with first_that_wrote(tmp_path / "victim", "first of the victim", "second of the victim") as device:
        yield device


@pytest.fixture
def hostile(tmp_path: Path, remote: MemoryRemote, victim: Device) -> Iterator[Device]:
    """A device that has the vault key; what it wrote until now was honest, and everybody has everything."""
    with second_that_wrote(tmp_path / "hostile", remote, victim, "of the hostile device") as device:
        yield device


def held(device: Device) -> Operations:
    """What an honest checkpoint of a device's would hold, made without committing it."""
    logbook, ends = device.vault._opened.logbook, []
    for stream_id, log in logbook.logs.items():
        ends.append((stream_id, 0, log.end.records))
    return [value for gleaned, _ in parts.from_logs(logbook, ends, 1 << 53) for value in gleaned.values]


def commit(
    hostile: Device,
    remote: MemoryRemote,
    operations: Operations,
    rows: Callable[[Rows], Rows] = dict,
    *,
    counter: int | None = None,
    uploads: bool = True,
    refill: bool = False,
    entry: Callable[[PartEntry], PartEntry] = lambda entry: entry,
) -> Floor:
    """Commit a floor whose checkpoint holds just these operations; the hostile device itself forgets it."""
    opened = hostile.vault._opened
    transport = MemoryTransport(remote, opened.device.vault_id, opened.device.signing_public)
    heads = transport.send(GetHeads())
    assert isinstance(heads, Heads)
    covered = rows(coverage(opened.logbook, heads.logs))
    part = parts._seal(opened.folder, opened.device.vault_id, [({"operations": operations}, ())])
    highest = max(row.counter for row in covered.values()) if counter is None else counter
    logs = {stream_id: Covered(row.end, row.counter) for stream_id, row in covered.items()}
    manifest = Manifest(opened.device.signing_public, highest, logs, (entry(part),))
    checkpoint_id, content = compacting._seal(opened, manifest)
    floor = Floor(checkpoint_id, sha256(content), (manifest.parts[0].id,), covered)
    if uploads:
        remote.objects.setdefault(("parts", part.id), opened.folder.read(object_file("parts", part.id)) or b"")
        remote.objects["checkpoints", checkpoint_id] = content
    made = versions.next_version(opened, versions.Change(floor=floor))
    assert transport.send(PutKeyring(made.version.public.version, made.version.content, refill)) == Stored()
    return floor


def codes(device: Device) -> set[str]:
    return {finding.code for finding in device.sync().findings}


def agree(*devices: Device) -> bool:
    return len({device.vault.state_digest() for device in devices}) == 1


def of_all(device: Device) -> set[str]:
    return set(everything(device.vault))


def id_of(device: Device, content: str) -> str:
    return next(memory.id for memory in device.vault.list() if memory.content == content)


ALL = {"first of the victim", "second of the victim", "of the hostile device"}

# ── a restored device and a floor (no hostility needed) ─────────────────────────────────────────────


def test_what_a_restored_device_wrote_is_kept_under_a_floor_of_another(
    remote: MemoryRemote, victim: Device, hostile: Device, tmp_path: Path
) -> None:
    victim.close()
    backup = victim.disk.copy()
    victim.reopen(from_cache=True)
    victim.vault.remember("after the backup", source="test")
    victim.sync()
    hostile.sync()
    hostile.vault.compact()
    victim.close()
    old = restored(backup, tmp_path / "victim")
    old.vault.remember("after the restore", source="test")
    old.sync()
    old.reopen(from_cache=False)
    assert of_all(old) == ALL | {"after the backup", "after the restore"}
    hostile.sync()
    assert of_all(hostile) == of_all(old)
    old.close()


def test_what_a_restored_device_wrote_is_kept_under_a_floor_of_its_own(
    remote: MemoryRemote, victim: Device, hostile: Device, tmp_path: Path
) -> None:
    victim.close()
    backup = victim.disk.copy()
    victim.reopen(from_cache=True)
    victim.vault.remember("after the backup", source="test")
    victim.vault.compact()
    victim.close()
    old = restored(backup, tmp_path / "victim")
    old.vault.remember("after the restore", source="test")
    old.sync()
    old.reopen(from_cache=False)
    assert of_all(old) == ALL | {"after the backup", "after the restore"}
    hostile.sync()
    assert of_all(hostile) == of_all(old)
    old.close()


def test_restored_device_claims_no_false_counter(
    remote: MemoryRemote, victim: Device, hostile: Device, tmp_path: Path
) -> None:
    victim.close()
    backup = victim.disk.copy()
    victim.reopen(from_cache=True)
    victim.vault.remember("after the backup", source="test")
    victim.sync()
    victim.close()
    old = restored(backup, tmp_path / "victim")
    for number in range(5):
        old.vault.remember(f"{number} after the restore", source="test")
    old.sync()
    for device in (hostile, old):
        device.sync()
        device.reopen(from_cache=False)
        assert codes(device) == set()
    assert of_all(hostile) == of_all(old)
    old.close()


# ── a hostile device ────────────────────────────────────────────────────────────────────────────────


def test_checkpoint_that_holds_nothing_is_named_and_makes_nobody_lose_anything(
    remote: MemoryRemote, victim: Device, hostile: Device
) -> None:
    commit(hostile, remote, [])
    assert codes(victim) == {"checkpoint_invalid"}
    victim.reopen(from_cache=False)
    assert of_all(victim) == ALL
    assert victim.sync().findings == []
    hostile.reopen(from_cache=False)
    hostile.sync()
    assert of_all(hostile) == ALL


def test_checkpoint_with_other_content_under_the_same_id_makes_nobody_lose_the_true_one(
    remote: MemoryRemote, victim: Device, hostile: Device
) -> None:
    changed = [{**value, "content": "forged"} if "content" in value else value for value in held(hostile)]
    commit(hostile, remote, changed)
    assert codes(victim) == {"checkpoint_invalid", "id_taken"}
    digest = victim.vault.state_digest()
    victim.reopen(from_cache=False)
    assert of_all(victim) == ALL | {"forged"}
    assert victim.vault.state_digest() == digest


def test_checkpoint_with_other_content_and_lower_stamps_makes_nobody_lose_the_true_one(
    remote: MemoryRemote, victim: Device, hostile: Device
) -> None:
    changed = [{**value, "content": "forged", "stamp": [0, 0]} for value in held(hostile) if "content" in value]
    commit(hostile, remote, changed)
    assert codes(victim) == {"checkpoint_invalid", "id_taken"}
    victim.reopen(from_cache=False)
    assert of_all(victim) == ALL | {"forged"}
    hostile.reopen(from_cache=False)
    for device in (victim, hostile, victim):
        device.sync()
    assert agree(victim, hostile)


def test_checkpoint_after_another_that_holds_nothing_makes_nobody_lose_what_the_first_holds(
    remote: MemoryRemote, victim: Device, hostile: Device
) -> None:
    victim.vault.compact()
    hostile.sync()
    commit(hostile, remote, [])
    assert codes(victim) == {"checkpoint_invalid"}
    victim.reopen(from_cache=False)
    assert of_all(victim) == ALL
    assert victim.sync().findings == []
    hostile.reopen(from_cache=False)
    hostile.sync()
    assert of_all(hostile) == ALL


def test_checkpoint_after_another_with_other_content_makes_nobody_lose_what_the_first_holds(
    remote: MemoryRemote, victim: Device, hostile: Device
) -> None:
    honest = held(hostile)
    victim.vault.compact()
    hostile.sync()
    commit(hostile, remote, [{**value, "content": "forged", "stamp": [0, 0]} for value in honest if "content" in value])
    assert codes(victim) == {"checkpoint_invalid", "id_taken"}
    victim.reopen(from_cache=False)
    assert of_all(victim) == ALL | {"forged"}


def test_checkpoint_with_the_highest_stamps_lets_others_go_on(
    remote: MemoryRemote, victim: Device, hostile: Device
) -> None:
    most, stream_id = most_counter(1), own_stream(hostile)
    pin = {"op": "setting", "id": secrets.token_bytes(16), "name": "x", "value": 1, "at": 1, "stamp": [most, 0]}
    commit(
        hostile,
        remote,
        [*held(hostile), pin],
        lambda rows: {**rows, stream_id: replace(rows[stream_id], counter=most)},
    )
    victim.sync()
    assert victim.vault._opened.keychain.keyring.public.epoch == 2
    victim.vault.remember("afterwards", source="test")
    assert victim.sync().findings == []
    victim.vault.compact()
    victim.reopen(from_cache=False)
    assert of_all(victim) == ALL | {"afterwards"}


def own_stream(device: Device) -> bytes:
    return next(
        stream_id
        for stream_id, log in device.vault._opened.logbook.logs.items()
        if device.vault._opened.logbook.is_own(log)
    )


def collude(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryRemote, "_floor_refusal", lambda self, floor: None)


def false_chain(row: Row) -> Row:
    return replace(row, end=row.end._replace(chain=b"\7" * 32))


def false_length(row: Row) -> Row:
    return replace(row, end=row.end._replace(length=row.end.length + 5000, records=row.end.records + 3))


def false_middle(row: Row) -> Row:
    return replace(row, end=End(row.end.length - 10, row.end.records - 1, row.end.chain))


def far(row: Row) -> Row:
    records = (1 << 32) - 1
    return replace(row, end=End(64 + 1108 * records, records, b"\7" * 32), counter=most_counter(1), segment=records)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("false", [false_chain, false_length, false_middle, far])
def test_false_row_for_a_devices_log_makes_it_lose_nothing(
    remote: MemoryRemote,
    victim: Device,
    hostile: Device,
    monkeypatch: pytest.MonkeyPatch,
    false: Callable[[Row], Row],
    full: bool,
) -> None:
    collude(monkeypatch)
    stream_id = own_stream(victim)
    victim.vault.remember("not pushed yet", source="test")
    commit(hostile, remote, held(hostile) if full else [], lambda rows: {**rows, stream_id: false(rows[stream_id])})
    with contextlib.suppress(RolledBack):  # the server shows its own log shorter than before
        victim.sync()
    victim.vault.remember("afterwards", source="test")
    victim.reopen(from_cache=False)
    assert of_all(victim) == ALL | {"not pushed yet", "afterwards"}


# ── objects that are not as a floor says ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [-1, 0, 1])
def test_part_that_another_manifest_names_with_other_content_is_named(
    remote: MemoryRemote, victim: Device, hostile: Device, size: int
) -> None:
    victim.vault.compact()
    hostile.sync()
    [part] = [each for shelf, each in remote.objects if shelf == "parts"]
    commit(hostile, remote, held(hostile), entry=lambda entry: replace(entry, id=part, length=entry.length + size))
    assert codes(victim) & {"checkpoint_mismatch", "record_sealed"}
    victim.reopen(from_cache=False)
    assert of_all(victim) == ALL
    victim.vault.remember("afterwards", source="test")
    assert "checkpoint_mismatch" in codes(victim)
    assert victim.vault.compact()
    victim.reopen(from_cache=False)
    assert victim.sync().findings == []
    assert of_all(victim) == ALL | {"afterwards"}


def test_checkpoint_that_never_comes_is_named_and_another_can_be_made(
    remote: MemoryRemote, victim: Device, hostile: Device
) -> None:
    commit(hostile, remote, [], uploads=False, refill=True)
    assert codes(victim) == {"checkpoint_missing"}
    victim.reopen(from_cache=False)
    victim.vault.remember("afterwards", source="test")
    assert codes(victim) == {"checkpoint_missing"}
    assert victim.vault.compact()
    victim.vault.erase(id_of(victim, "second of the victim"))
    hostile.reopen(from_cache=False)
    assert codes(victim) == codes(hostile) == set()
    assert victim.vault.erasures()[0].done
    assert of_all(victim) == of_all(hostile) == ALL - {"second of the victim"} | {"afterwards"}


@pytest.mark.parametrize("of", ["victim", "hostile", "nobody"])
@pytest.mark.parametrize("floored", [False, True])
def test_floor_far_ahead_without_its_checkpoint_stops_neither_compaction_nor_erase(
    remote: MemoryRemote, victim: Device, hostile: Device, tmp_path: Path, of: str, floored: bool
) -> None:
    if floored:
        victim.vault.compact()
        hostile.sync()
    names = {"victim": own_stream(victim), "hostile": own_stream(hostile)}

    def rows(honest: Rows) -> Rows:
        if of in names:
            return {**honest, names[of]: far(honest[names[of]])}
        log = hostile.vault._opened.logbook.logs[names["hostile"]]
        nonce = log.stream.preamble[48:56] + b"\7" * 4
        stream_id = stream_id_of(hostile.vault._opened.device.vault_id, log.stream.owner.sign, nonce)
        return {**honest, stream_id: replace(far(honest[names["hostile"]]), nonce=nonce)}

    commit(hostile, remote, [], rows, uploads=False, refill=True)
    victim.vault.remember("not pushed yet", source="test")
    with contextlib.suppress(RolledBack):  # the server shows a log shorter than before
        victim.sync()
    victim.sync(accept_rollback=True)
    victim.vault.remember("afterwards", source="test")
    victim.sync(accept_rollback=True)
    assert victim.vault.compact()
    victim.vault.erase(id_of(victim, "second of the victim"))
    victim.sync()
    assert victim.vault.erasures()[0].done
    left = ALL - {"second of the victim"} | {"not pushed yet", "afterwards"}
    victim.reopen(from_cache=False)
    assert of_all(victim) == left
    assert victim.sync().findings == []
    tablet = joined_device(tmp_path / "tablet", remote, victim.vault.emergency_kit)
    tablet.sync()
    assert of_all(tablet) == left
    assert agree(tablet, victim)
    tablet.close()


def test_server_that_answers_below_floor_for_ever_is_named(
    remote: MemoryRemote, victim: Device, hostile: Device
) -> None:
    hostile.vault.remember("new", source="test")
    hostile.sync()
    remote.lie = lambda request, answer: Refused("below_floor", 410, "no") if isinstance(request, GetLog) else answer
    assert codes(victim) == {"withheld"}
    remote.lie = lambda request, answer: answer
    assert codes(victim) == set()
    assert of_all(victim) == ALL | {"new"}


def test_erase_that_is_in_a_checkpoint_alone_is_listed(remote: MemoryRemote, victim: Device, hostile: Device) -> None:
    ids = [value["id"] for value in held(hostile) if "content" in value]
    erase = {"op": "erase", "id": secrets.token_bytes(16), "targets": ids, "at": 1, "reason": None, "stamp": [1, 0]}
    commit(hostile, remote, [*held(hostile), erase])
    victim.sync()
    assert of_all(victim) == set()
    assert [len(each.erased) for each in victim.vault.erasures()] == [len(ids)]


def test_operations_that_nobody_can_apply_do_not_count_as_held(
    remote: MemoryRemote, victim: Device, hostile: Device
) -> None:
    commit(hostile, remote, [{**value, "stamp": [1 << 40, 0]} for value in held(hostile)])
    assert {"stamp_invalid"} <= codes(victim)
    victim.reopen(from_cache=False)
    assert of_all(victim) == ALL
    victim.sync()
    assert victim.vault.compact()
    victim.reopen(from_cache=False)
    assert of_all(victim) == ALL
    assert codes(victim) == set()


@pytest.mark.parametrize("again", [False, True])
def test_checkpoint_without_vectors_makes_nobody_lose_them(
    remote: MemoryRemote, victim: Device, hostile: Device, again: bool
) -> None:
    memory = victim.vault.remember("with a vector", source="test", embedding=[1.0, 0, 0])
    if again:
        with victim.vault._writing() as opened:
            batches = embed_batches([parse_id(memory.id)], "caller", np.array([[0, 1, 0]], "<f2"))
            opened.logbook.write(batches, b"4444")
    victim.sync()
    hostile.sync()
    without = [
        {name: each for name, each in value.items() if name != "embedding"}
        for value in held(hostile)
        if value["op"] != "embed"
    ]
    commit(hostile, remote, without)
    assert codes(victim) == (set() if again else {"checkpoint_invalid"})
    victim.reopen(from_cache=False)
    assert victim.vault.status().without_vector == 3
    hits = victim.vault.search(vector=[0, 1, 0] if again else [1, 0, 0], limit=1)
    assert [hit.memory.id for hit in hits] == [memory.id]
    hostile.reopen(from_cache=False)
    for device in (hostile, victim):
        device.sync()
    assert agree(victim, hostile)


def test_part_of_many_small_records_is_taken(
    remote: MemoryRemote, victim: Device, hostile: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal = parts._seal
    many: list[parts.Sayings] = [({"operations": []}, ())] * 500
    monkeypatch.setattr(parts, "_seal", lambda folder, vault_id, contents: seal(folder, vault_id, [*contents, *many]))
    commit(hostile, remote, held(hostile))
    assert codes(victim) == set()
    victim.reopen(from_cache=False)
    assert of_all(victim) == ALL


@pytest.mark.parametrize("fate", [ALL_KEPT, ALL_LOST])
@pytest.mark.parametrize("forged", [False, True])
def test_crash_at_any_step_of_taking_over_a_false_checkpoint_loses_nothing(
    remote: MemoryRemote, victim: Device, hostile: Device, forged: bool, fate: Choice
) -> None:
    changed = [{**value, "content": "forged"} for value in held(hostile) if "content" in value]
    commit(hostile, remote, changed if forged else [])
    victim.close()
    stops = list(crashes_of(victim.disk, victim.folder, remote, Device.sync, fate))
    assert len(stops) > 3
    for found, there in stops:
        with there.connected():
            device = restored(found, victim.folder)
            device.sync()
            device.reopen(from_cache=False)
            assert of_all(device) - {"forged"} == ALL
            # What has one id is named for as long as both are there; of which the true one may be the checkpoint's.
            assert codes(device) <= ({"id_taken"} if forged else set())
            device.close()
    victim.reopen(from_cache=True)


@pytest.mark.parametrize("fate", [ALL_KEPT, ALL_LOST])
def test_crash_at_any_step_of_a_restored_device_that_takes_a_floor_over_loses_nothing(
    remote: MemoryRemote, victim: Device, hostile: Device, fate: Choice
) -> None:
    victim.close()
    backup = victim.disk.copy()
    victim.reopen(from_cache=True)
    victim.vault.remember("after the backup", source="test")
    victim.vault.compact()
    victim.close()
    old = restored(backup, victim.folder)
    old.vault.remember("after the restore", source="test")
    old.close()
    stops = list(crashes_of(old.disk, victim.folder, remote, Device.sync, fate))
    assert len(stops) > 3
    for found, there in stops:
        with there.connected():
            device = restored(found, victim.folder)
            device.sync()
            device.reopen(from_cache=False)
            assert of_all(device) == ALL | {"after the backup", "after the restore"}
            assert codes(device) == set()
            device.close()
    victim.reopen(from_cache=True)


# ── a hostile server ────────────────────────────────────────────────────────────────────────────────


def size_of_logs(device: Device) -> int:
    return sum(
        device.disk.size(device.folder / "logs" / name) or 0 for name in device.disk.names(device.folder / "logs")
    )


def instead(shelf: str, content: Callable[[bytes, bytes], bytes]) -> Callable[[Request, Answer], Answer]:
    """Another manifest or part than was asked for."""

    def lie(request: Request, answer: Answer) -> Answer:
        if isinstance(request, GetObject) and request.shelf == shelf and isinstance(answer, Content):
            return Content(content(request.object_id, answer.content))
        return answer

    return lie


@pytest.fixture
def two_parts(remote: MemoryRemote, victim: Device, hostile: Device, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Both parts of the newest floor, which only device `hostile` (an honest one here) has yet."""
    monkeypatch.setattr(compacting, "_SMALL_PART", 1)
    victim.sync()
    hostile.vault.compact()
    hostile.vault.remember("between the floors", source="test")
    hostile.vault.compact(thorough=False)
    floor = remote.versions[-1].public.floor
    assert floor is not None
    assert len(floor.parts) == 2
    return list(floor.parts)


WRONG: dict[str, Callable[[MemoryRemote, list[bytes]], Callable[[Request, Answer], Answer]]] = {
    "parts that are swapped": lambda remote, parts: instead(
        "parts", lambda asked, _: remote.objects["parts", parts[0] if asked == parts[1] else parts[1]]
    ),
    "a part that is cut short": lambda remote, parts: instead("parts", lambda _, content: content[:-1]),
    "a part that is empty": lambda remote, parts: instead("parts", lambda _, content: b""),
    "a part with more at its end": lambda remote, parts: instead("parts", lambda _, content: content + bytes(1200)),
    "a manifest that is cut short": lambda remote, parts: instead("checkpoints", lambda _, content: content[:-1]),
    "a part for the manifest": lambda remote, parts: instead(
        "checkpoints", lambda *_: remote.objects["parts", parts[0]]
    ),
    "a manifest of zeros": lambda remote, parts: instead("checkpoints", lambda _, content: bytes(len(content))),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_object_from_a_server_is_named_and_nothing_is_cut(
    remote: MemoryRemote, victim: Device, two_parts: list[bytes], name: str
) -> None:
    before = size_of_logs(victim)
    remote.lie = WRONG[name](remote, two_parts)
    assert codes(victim) & {"checkpoint_mismatch", "preamble_short", "preamble_magic", "record_header", "record_torn"}
    assert size_of_logs(victim) >= before
    victim.reopen(from_cache=False)
    assert of_all(victim) >= ALL
    remote.lie = lambda request, answer: answer
    assert codes(victim) == set()
    assert of_all(victim) == ALL | {"between the floors"}


def test_older_checkpoint_for_the_newest_floor_is_named_and_nothing_is_cut(
    remote: MemoryRemote, victim: Device, hostile: Device
) -> None:
    hostile.vault.compact()
    older = next(content for (shelf, _), content in remote.objects.items() if shelf == "checkpoints")
    hostile.vault.remember("later", source="test")
    hostile.vault.compact()
    remote.lie = instead("checkpoints", lambda *_: older)
    assert codes(victim) == {"checkpoint_mismatch"}
    victim.reopen(from_cache=False)
    assert of_all(victim) == ALL


def test_objects_of_another_vault_are_named(
    remote: MemoryRemote, victim: Device, hostile: Device, tmp_path: Path
) -> None:
    other = first_device(tmp_path / "other")
    other.vault.remember("of another vault", source="test")
    other.vault.compact()
    [manifest] = other.disk.names(other.folder / "checkpoints")
    content = other.disk.read(other.folder / "checkpoints" / manifest) or b""
    hostile.vault.compact()
    remote.lie = instead("checkpoints", lambda *_: content)
    assert codes(victim) == {"vault_mismatch"}
    assert of_all(victim) == ALL
    other.close()


def test_log_whose_key_is_gone_is_not_missed_while_a_newer_checkpoint_is_to_come(
    remote: MemoryRemote, victim: Device, hostile: Device
) -> None:
    hostile.vault.erase(id_of(hostile, "of the hostile device"))
    victim.sync()
    hostile.vault.remember("later", source="test")
    hostile.vault.compact()
    remote.lie = lambda request, answer: Refused("not_found", 404, "no") if isinstance(request, GetObject) else answer
    victim.sync()
    victim.reopen(from_cache=False)
    assert victim.vault.status().findings == []
    assert of_all(victim) == ALL - {"of the hostile device"}
    remote.lie = lambda request, answer: answer
    assert codes(victim) == set()
    assert of_all(victim) == ALL - {"of the hostile device"} | {"later"}


def test_server_that_says_below_floor_once_costs_nothing(remote: MemoryRemote, victim: Device, hostile: Device) -> None:
    hostile.vault.remember("new", source="test")
    hostile.sync()
    lies = [Refused("below_floor", 410, "no")]
    remote.lie = lambda request, answer: lies.pop() if lies and isinstance(request, GetLog) else answer
    victim.sync()
    assert codes(victim) == set()
    assert of_all(victim) == ALL | {"new"}


@pytest.mark.parametrize("accepted", [False, True])
def test_keyring_of_before_the_floor_is_refused_or_put_back(
    remote: MemoryRemote, victim: Device, hostile: Device, accepted: bool
) -> None:
    old = remote.copy()
    victim.vault.compact()
    for device in (victim, hostile):
        device.sync()
    remote.versions, remote.logs, remote.objects = old.versions, old.logs, old.objects
    if not accepted:
        with pytest.raises(RolledBack):
            victim.sync()
    victim.sync(accept_rollback=True)
    hostile.sync(accept_rollback=True)
    assert codes(victim) == codes(hostile) == set()
    assert of_all(victim) == of_all(hostile) == ALL


def test_floor_that_a_server_stores_and_denies_is_taken_over_at_the_next_synchronisation(
    remote: MemoryRemote, victim: Device, hostile: Device
) -> None:
    def lie(request: Request, answer: Answer) -> Answer:
        return Refused("floor_unmet", 409, "no") if isinstance(request, PutKeyring) else answer

    remote.lie = lie
    with contextlib.suppress(RemoteRefused):
        victim.vault.compact()
    remote.lie = lambda request, answer: answer
    victim.reopen(from_cache=False)
    assert codes(victim) == codes(hostile) == set()
    assert of_all(victim) == of_all(hostile) == ALL


def test_passphrase_change_that_a_server_keeps_to_itself_is_named_and_completed(
    remote: MemoryRemote, victim: Device, hostile: Device
) -> None:
    def lie(request: Request, answer: Answer) -> Answer:
        if isinstance(request, PutKeyring):
            raise RemoteUnreachable("the answer is lost")
        return answer

    remote.lie = lie
    with pytest.raises(RemoteUnreachable):
        victim.change_passphrase("a newer passphrase")
    remote.lie = lambda request, answer: answer
    victim.reopen(from_cache=False)
    victim.vault.remember("meanwhile", source="test")
    with pytest.raises(PassphraseWrong):
        victim.sync()
    victim.change_passphrase("a newer passphrase")
    assert codes(victim) == set()
    hostile.sync()
    assert of_all(hostile) == ALL | {"meanwhile"}


def test_segment_that_a_server_loses_after_the_floor_is_put_back(
    remote: MemoryRemote, victim: Device, hostile: Device
) -> None:
    victim.vault.compact()
    hostile.sync()
    old = remote.copy()
    victim.vault.remember("after the floor", source="test")
    victim.sync()
    remote.logs = old.logs
    with pytest.raises(RolledBack):
        victim.sync()
    victim.sync(accept_rollback=True)
    hostile.sync()
    assert of_all(victim) == of_all(hostile) == ALL | {"after the floor"}


def test_checkpoint_that_a_server_says_it_has_and_does_not_give_is_named_by_who_joins(
    remote: MemoryRemote, victim: Device, hostile: Device, tmp_path: Path
) -> None:
    victim.vault.compact()
    remote.lie = lambda request, answer: Refused("not_found", 404, "no") if isinstance(request, GetObject) else answer
    tablet = joined_device(tmp_path / "tablet", remote, victim.vault.emergency_kit)
    assert codes(tablet) == {"checkpoint_missing"}
    tablet.vault.remember("of the tablet", source="test")
    tablet.sync()
    remote.lie = lambda request, answer: answer
    assert codes(tablet) == codes(victim) == set()
    assert of_all(tablet) == of_all(victim) == ALL | {"of the tablet"}
    tablet.close()


def test_log_that_a_server_shows_whole_again_below_the_floor_changes_nothing(
    remote: MemoryRemote, victim: Device, hostile: Device
) -> None:
    old = remote.copy().logs
    victim.vault.compact()
    hostile.sync()

    def lie(request: Request, answer: Answer) -> Answer:
        return Content(old[request.stream_id].content()) if isinstance(request, GetLog) else answer

    remote.lie = lie
    hostile.vault.remember("after the floor", source="test")
    hostile.sync()
    victim.sync()
    assert of_all(victim) == ALL
    remote.lie = lambda request, answer: answer
    assert codes(victim) == set()
    assert of_all(victim) == ALL | {"after the floor"}
