"""A device that misbehaves, or was ended: the others stay usable, their memories right, damage is named."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memseal.errors import BoxMissing, DeviceEnded, FormatError, LocalRollback, PassphraseWrong
from memseal.format.content import Column, Content
from memseal.format.counters import most_counter
from memseal.format.derivation import log_key
from memseal.format.log import LogWriter
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.records import HEADER_SIZE, open_record
from memseal.format.segment import Segment
from memseal.memory.memory import parse_id
from memseal.surfaces.cli import main
from memseal.sync.messages import GetHeads, GetKeyring, GetLog, Heads, PutKeyring, PutSegment, Refused, Stored
from memseal.transport.http import HttpTransport
from memseal.vault.folder import opening
from memseal.vault.folder.device import Device
from memseal.vault.folder.keychain import Keychain
from memseal.vault.keys import passphrases
from memseal.vault.vault import Vault
from tests.scenarios.hostile_server import HostileServer, hostile_server
from tests.scenarios.hostile_world import EVERYTHING, World, codes, contents, joined, stream_of
from tests.vault.small_vault import PASSPHRASE, open_vault, stretch_of

Fields = dict[str, Any]
MOST = 1 << 53


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileServer]:
    with hostile_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def world(server: HostileServer, tmp_path: Path) -> Iterator[World]:
    """Device two is the hostile one; what it wrote until now was honest, and `one` has it."""
    begun = World.begin(server, tmp_path)
    begun.one.sync()
    yield begun
    begun.close()


def connected(world: World, device: Device) -> closing[HttpTransport]:
    """A connection that signs with a device's own key."""
    return closing(HttpTransport(world.server.url, device.vault_id, device.keys.sign))


def put(
    world: World,
    *operations: Any,
    columns: Sequence[Column] = (),
    stream_id: bytes | None = None,
    previous: int | None = None,
    **meta: Any,
) -> None:
    """Put a record of device two's making on the server, in its own log or in another's."""
    stream_id = stream_id or stream_of(world.two)
    log, device = world.two._opened.logbook.logs[stream_id], world.two._opened.device
    counter = log.counter if previous is None else previous
    fields = {"previous": counter, "heads": [], "operations": list(operations), **meta}
    with connected(world, device) as transport:
        heads = transport.send(GetHeads())
        assert isinstance(heads, Heads)
        there = heads.logs[stream_id]
        writer = LogWriter(log.stream.preamble, log.stream.key, device.keys.sign, there.end)
        records, _ = writer.write([Content(b"", False, fields, tuple(columns))])
        segment = Segment(there.end, b"".join(records)).to_bytes()
        refill = stream_id != stream_of(world.two)
        assert transport.send(PutSegment(stream_id, there.next, segment, refill)) == Stored()


def memory(content: str = "of the hostile device", **fields: Any) -> Fields:
    return {
        "op": "remember",
        "id": secrets.token_bytes(16),
        "content": content,
        "kind": "note",
        "source": "test",
        "written_at": 1,
        **fields,
    }


def some_id() -> bytes:
    return secrets.token_bytes(16)


def honest(world: World) -> dict[str, str]:
    """The honest memories by id, as device one has them."""
    return {each.id: each.content for each in world.one.list(state="all") if each.content in EVERYTHING}


def assert_usable(world: World, *expected: str) -> None:
    """Device one notices what is expected, keeps what is right and goes on; a new device ends in the same state."""
    before = honest(world)
    assert sorted(before.values()) == EVERYTHING
    world.one.sync()
    assert sorted({finding.code for finding in world.one.status().findings}) == sorted(expected)
    assert honest(world) == before
    mine = world.one.remember("written afterwards", source="test", embedding=_vector(world))
    assert world.one.sync().remote
    for query in ("first of one", "written afterwards"):
        assert query in {hit.memory.content for hit in world.one.search(query)}
    digest = world.one.state_digest()
    world.one.close()
    world.one = open_vault(world.folder / "one")
    assert world.one.state_digest() == digest
    assert honest(world) == before
    with joined(world.server, world.folder / "three", world.one.emergency_kit) as three:
        three.sync(world.server.url)
        assert three.get(mine.id).content == "written afterwards"
        assert three.state_digest() == digest


def _vector(world: World) -> np.ndarray | None:
    pinned = world.one._opened.logbook.view.pinned
    return None if pinned is None or pinned[1] > 1_000 else np.ones(pinned[1])


# ── operations ──────────────────────────────────────────────────────────────────────────────────────


def superseding_itself() -> list[Fields]:
    name = some_id()
    return [memory(op="supersede", id=name, of=name)]


def superseding_each_other() -> list[Fields]:
    a, b, c = some_id(), some_id(), some_id()
    return [memory(op="supersede", id=new, of=old) for new, old in ((a, b), (b, c), (c, a))]


OPERATIONS: dict[str, tuple[Callable[[], list[Any]], list[str]]] = {
    "a memory that supersedes itself": (superseding_itself, []),
    "memories that supersede each other in a ring": (superseding_each_other, []),
    "a memory that supersedes none": (lambda: [memory(op="supersede", of=some_id())], []),
    "a stamp above its record": (lambda: [memory(stamp=[MOST - 1, 0])], ["stamp_invalid"]),
    "a stamp below zero": (lambda: [memory(stamp=[-1, 0])], ["stamp_invalid"]),
    "a stamp that is none": (lambda: [memory(stamp="first")], ["stamp_invalid"]),
    "times beyond any calendar": (
        lambda: [memory("early", written_at=-(1 << 63)), memory("late", written_at=(1 << 63) - 1, captured_at=1 << 62)],
        [],
    ),
    "times beyond 64 bits": (lambda: [memory(written_at=1 << 63)], ["operation_invalid"]),
    "a text of megabytes": (lambda: [memory("word " * 1_000_000)], []),
    "a text of one word of megabytes": (lambda: [memory("x" * 5_000_000)], []),
    "a text of controls": (lambda: [memory("\0\x1b[2J\u202e\r\n", author="\0", thread="\0")], []),
    "an empty text": (lambda: [memory("")], ["operation_invalid"]),
    "a text that is bytes": (lambda: [memory(content=b"bytes")], ["operation_invalid"]),  # type: ignore[arg-type]
    "a kind nobody knows": (lambda: [memory(kind="\x1b[31m")], []),
    "ten thousand tags": (lambda: [memory(tags=[f"tag {number}" for number in range(10_000)])], []),
    "a position at the edge": (lambda: [memory(thread="t", position=-(1 << 63)), memory(thread="t", position=1)], []),
    "fields nobody knows": (lambda: [memory(of=None, same=7, n={"deep": [[[]]]}, state=3)], []),
    "no operation at all": (lambda: [None, 7, "text", [], {}], ["operation_invalid"]),
    "an operation nobody knows": (lambda: [{"op": "\x1b[31mexplode", "id": some_id()}], ["operation_unknown"]),
    "a retraction of nothing": (lambda: [{"op": "retract", "id": some_id(), "target": some_id(), "at": 1}], []),
    "a vector from a row that is not there": (lambda: [memory(embedding=(1 << 32) - 1)], []),
    "a setting that is a list of lists": (
        lambda: [{"op": "setting", "id": some_id(), "name": "embedding", "value": [[[[1]]]], "at": 1}],
        [],
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_of_a_hostile_device_leave_the_others_usable(world: World, name: str) -> None:
    make, expected = OPERATIONS[name]
    put(world, *make())
    assert_usable(world, *expected)


METAS: dict[str, tuple[Fields, list[str]]] = {
    "a counter beyond the limit": ({"previous": MOST}, ["counter_limit"]),
    "a counter beyond 64 bits": ({"previous": (1 << 64) - 1}, ["counter_limit"]),
    "a counter below zero": ({"previous": -1}, ["operation_invalid"]),
    "a counter that is false": ({"previous": 2}, ["counter_false"]),
    "heads that are none": ({"heads": [[1, 2, 3, 4]]}, ["operation_invalid"]),
    "operations that are a map": ({"operations": {"op": "remember"}}, ["operation_invalid"]),
    "records of a stream that nobody knows": ({"heads": [[b"s" * 16, 7, b"c" * 32, 9]]}, ["withheld"]),
}


@pytest.mark.parametrize("name", METAS)
def test_meta_of_a_hostile_device_leaves_the_others_usable(world: World, name: str) -> None:
    meta, expected = METAS[name]
    put(world, memory(), **meta)
    assert_usable(world, *expected)


def test_counter_at_the_limit_of_all_has_no_effect(world: World) -> None:
    put(world, memory(), previous=MOST - 1)
    assert_usable(world, "counter_limit")


def test_highest_counter_of_an_epoch_makes_the_next_device_that_syncs_begin_another(world: World) -> None:
    """Each time: a device can use up the counters of an epoch, and no more."""
    put(world, memory("first attack"), previous=most_counter(1) - 1)
    world.one.sync()
    assert epoch_of(world.one) == 2
    world.one.remember("between the attacks", source="test")
    world.one.sync()
    world.two.sync()
    assert epoch_of(world.two) == 2
    world.two.remember("in epoch 2", source="test")  # begins a log of this epoch
    world.two.sync()
    put(world, memory("second attack"), previous=most_counter(2) - 1)
    world.one.sync()
    assert epoch_of(world.one) == 3
    written = world.one.remember("written afterwards", source="test")
    world.one.retract(written.id, reason="a test")
    world.one.restore(written.id)
    assert world.one.sync().remote
    assert {"between the attacks", "written afterwards"} <= set(contents(world.one))
    with joined(world.server, world.folder / "three", world.one.emergency_kit) as three:
        three.sync()
        assert three.state_digest() == world.one.state_digest()


def epoch_of(vault: Vault) -> int:
    return vault._opened.keychain.keyring.public.epoch


def test_counter_of_another_log_that_proves_false_is_named(world: World) -> None:
    other = world.two._opened.logbook.logs[stream_of(world.one)]
    head = [other.head.stream_id, 0, other.head.chain, 1_000_000]
    put(world, memory(), heads=[head])
    world.one.sync()
    assert "counter_false" in {finding.code for finding in world.one.status().findings}


# ── what belongs to others ──────────────────────────────────────────────────────────────────────────


def test_record_forged_in_another_devices_log_is_not_taken_and_its_owner_goes_on(world: World) -> None:
    put(world, memory("forged"), stream_id=stream_of(world.one))
    with joined(world.server, world.folder / "three", world.one.emergency_kit) as three:
        assert codes(three.sync(world.server.url)) == ["signature_invalid"]
        assert contents(three) == EVERYTHING
        world.one.remember("written afterwards", source="test")
        for vault in (world.one, three, world.one):
            vault.sync()
        assert contents(world.one) == contents(three) == sorted([*EVERYTHING, "written afterwards"])
        assert world.one.state_digest() == three.state_digest()


def test_known_id_with_other_content_and_a_higher_stamp_is_named_and_kept_beside(world: World) -> None:
    (target,) = [each for each in world.one.list() if each.content == "first of one"]
    put(world, memory("something else", id=parse_id(target.id)))
    assert_usable(world, "id_taken")
    assert world.one.get(target.id).content == "first of one"
    assert "something else" in contents(world.one)


def test_known_id_with_other_content_and_a_lower_stamp_is_named_and_loses_nothing(world: World) -> None:
    (target,) = [each for each in world.one.list() if each.content == "first of one"]
    put(world, memory("something else", id=parse_id(target.id), stamp=[0, 0]))
    assert codes(world.one.sync()) == ["id_taken"]
    assert [finding.code for finding in world.one.status().findings] == ["id_taken"]
    assert contents(world.one) == sorted([*EVERYTHING, "something else"])
    assert world.one.get(target.id).content == "something else"
    world.one.sync()
    for compacted in (False, True):
        if compacted:
            world.one.compact()
        with joined(world.server, world.folder / f"three {compacted}", world.one.emergency_kit) as three:
            three.sync(world.server.url)
            assert contents(three) == sorted([*EVERYTHING, "something else"])
            assert three.state_digest() == world.one.state_digest()
    world.one.close()
    world.one = open_vault(world.folder / "one")
    assert list(world.one.status().findings) == []


def test_memory_that_lost_its_id_and_was_erased_stays_erased(world: World) -> None:
    (target,) = [each for each in world.one.list() if each.content == "first of one"]
    put(world, memory("something else", id=parse_id(target.id), stamp=[0, 0]))
    world.one.sync()
    (other,) = [each for each in world.one.list() if each.content == "first of one"]
    assert world.one.erase(other.id).done
    world.one.close()
    world.one = open_vault(world.folder / "one")
    world.one.sync()
    assert "first of one" not in contents(world.one)
    assert "something else" in contents(world.one)


# ── vectors ─────────────────────────────────────────────────────────────────────────────────────────


def column(vectors: np.ndarray, model: str = "caller") -> Column:
    return Column("embedding", model, "f2", vectors.shape[1], len(vectors), vectors.astype("<f2").tobytes())


@pytest.fixture
def pinned(world: World) -> World:
    """A world whose device one has pinned a model of three dimensions, and has a vector for one memory."""
    world.one.remember("with a vector", source="test", embedding=[1, 0, 0])
    world.one.sync()
    world.two.sync()
    return world


def nearest(world: World) -> str:
    return world.one.search(vector=[1, 0.1, 0], limit=1)[0].memory.content


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_vector_that_is_not_finite_is_passed_over_and_named(pinned: World, value: float) -> None:
    put(
        pinned, memory(embedding=0), memory("good", embedding=1), columns=[column(np.array([[value, 0, 0], [0, 1, 0]]))]
    )
    assert_usable(pinned, "column_value")
    assert nearest(pinned) in ("with a vector", "written afterwards")


def test_vector_that_is_not_of_unit_length_does_not_come_first_everywhere(pinned: World) -> None:
    put(pinned, memory("loud", embedding=0), columns=[column(np.array([[3e4, 3e4, 3e4]]))])
    pinned.one.sync()
    assert nearest(pinned) == "with a vector"


PINS: dict[str, Any] = {
    "another model": {"model": "another", "dimension": 3},
    "another dimension": {"model": "caller", "dimension": 2},
    "many dimensions": {"model": "caller", "dimension": 1 << 16},
    "too many dimensions": {"model": "caller", "dimension": 1 << 40},
    "no dimension": {"model": "caller", "dimension": 0},
    "nothing": None,
}


@pytest.mark.parametrize("name", PINS)
def test_pin_of_another_model_leaves_words_and_writing(pinned: World, name: str) -> None:
    pin = {"op": "setting", "id": some_id(), "name": "embedding", "value": PINS[name], "at": 1}
    put(pinned, pin, previous=1_000)
    pinned.one.sync()
    assert {hit.memory.content for hit in pinned.one.search("with a vector", limit=1)} == {"with a vector"}
    digest = pinned.one.state_digest()
    pinned.one.close()
    pinned.one = open_vault(pinned.folder / "one")
    assert pinned.one.state_digest() == digest
    assert pinned.one.remember("written afterwards", source="test").content == "written afterwards"
    pinned.one.sync()
    with joined(pinned.server, pinned.folder / "three", pinned.one.emergency_kit) as three:
        three.sync(pinned.server.url)
        assert three.state_digest() == pinned.one.state_digest()


# ── names ───────────────────────────────────────────────────────────────────────────────────────────


def test_name_of_a_device_draws_nothing_in_the_status(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    joined(world.server, world.folder / "\x1b[2J\u202eevil\r\n", world.one.emergency_kit).close()
    world.one.sync()
    assert "\x1b[2J\u202eevil\r\n" in {device.name for device in world.one.status().devices}
    world.one.close()
    monkeypatch.setattr(opening, "stretch", lambda passphrase, salt, cost: stretch_of(passphrase)(salt, cost))
    monkeypatch.setenv("MEMSEAL_PASSPHRASE", PASSPHRASE)
    monkeypatch.setenv("MEMSEAL_MODEL", "none")
    for more in ([], ["--json"]):
        assert main(["status", "--vault", str(world.folder / "one"), *more]) == 0
        out = capsys.readouterr().out
        assert "evil" in out
        assert all(character.isprintable() or character == "\n" for character in out)


# ── a device that was ended ─────────────────────────────────────────────────────────────────────────


@pytest.fixture
def ended(world: World) -> Path:
    """A copy of device two from before it took on new keys; since then it wrote something new."""
    world.two.sync()
    old = world.copy_of("two")
    with world.two._writing() as opened:
        passphrases.change(opened, stretch_of(PASSPHRASE), stretch_of("a newer passphrase"), "a newer passphrase", None)
    world.two.remember("written under the new keys", source="test")
    world.two.sync()
    world.one.sync()
    return old


def test_device_that_was_ended_can_neither_read_nor_write(world: World, ended: Path) -> None:
    with open_vault(ended) as thief:
        device = thief._opened.device
        stream_id = stream_of(thief)
        segment = Segment(thief._opened.logbook.logs[stream_id].end, bytes(2_000)).to_bytes()
        version = thief._opened.keychain.keyring.newest
        requests = (
            GetHeads(),
            GetKeyring(None),
            GetKeyring(3),
            GetLog(stream_id, 0, 1_000),
            PutSegment(stream_id, 9, segment, False),
            PutSegment(stream_id, 9, segment, True),
            PutKeyring(4, version.content),
        )
        with connected(world, device) as transport:
            answers = [transport.send(request) for request in requests]
        assert [each.code for each in answers if isinstance(each, Refused)] == ["key_ended"] * len(requests)
        thief.remember("of the thief", source="test")
        with pytest.raises(DeviceEnded):
            thief.sync()
    world.one.sync()
    assert "of the thief" not in contents(world.one)


def test_old_keys_open_nothing_that_was_written_after_they_were_ended(world: World, ended: Path) -> None:
    new = stream_of(world.two)
    newest = world.one._opened.keychain.keyring
    content = (world.folder / "one" / "logs" / f"{new.hex()}.mseal").read_bytes()
    preamble, body = content[:PREAMBLE_SIZE], memoryview(content)[PREAMBLE_SIZE + HEADER_SIZE :][:1_160]
    body = body[: int.from_bytes(content[PREAMBLE_SIZE : PREAMBLE_SIZE + 4], "big")]
    with open_vault(ended) as thief:
        chain, device = thief._opened.keychain, thief._opened.device
        with pytest.raises(BoxMissing):
            Keychain.open(newest, device.keys.wrap, device.signing_public)
        for vault_key in (chain.vault_key, *chain.secrets.history.values()):
            with pytest.raises(FormatError) as caught:
                open_record(log_key(vault_key, device.vault_id, new), preamble, 0, body)
            assert caught.value.code == "record_sealed"
        with pytest.raises(FormatError):
            chain.stream(preamble, new)
    true_key = world.one._opened.logbook.logs[new].stream.key
    assert open_record(true_key, preamble, 0, body)


def test_old_device_file_and_old_passphrase_do_not_open_the_newest_files(world: World, ended: Path) -> None:
    world.two.close()
    newest = world.folder / "two"
    (newest / "device.mseal").write_bytes((ended / "device.mseal").read_bytes())
    with pytest.raises(LocalRollback):
        open_vault(newest)
    with pytest.raises(PassphraseWrong):
        open_vault(newest, passphrase="a newer passphrase")


def test_log_of_an_ended_device_does_not_grow_with_the_help_of_the_server(world: World, ended: Path) -> None:
    """What the old keys sign beyond the end that the keyring names counts nowhere."""
    with open_vault(ended) as thief:
        thief.remember("of the thief", source="test")
        stream_id = stream_of(thief)
        longer = (ended / "logs" / f"{stream_id.hex()}.mseal").read_bytes()
    target = world.folder / "one" / "logs" / f"{stream_id.hex()}.mseal"
    world.one.close()
    assert longer.startswith(target.read_bytes())
    target.write_bytes(longer)
    world.one = open_vault(world.folder / "one")
    assert "of the thief" not in contents(world.one)
    assert "stream_ended" in {finding.code for finding in world.one.status().findings}
