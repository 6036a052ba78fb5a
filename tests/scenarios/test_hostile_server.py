"""A server that lies is noticed, gets nothing accepted that no device wrote, and costs nothing that was here."""

import os
import socket
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import argon2
import pytest

from memseal import Vault
from memseal.errors import DiskError, FormatError, MemsealError, RemoteRefused, RolledBack
from memseal.format.boxes import Secrets, build_version
from memseal.format.derivation import epoch_signing_key, kit_request_key
from memseal.format.floor import Floor
from memseal.format.keyring import Ended, KeyringVersion, PublicSection, decode_version
from memseal.format.keys import KitSecret, SigningKey, VaultKey
from memseal.format.kit import parse_kit
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.primitives import Cost, public_signing_key
from memseal.transport import http
from memseal.vault.keys import passphrases
from memseal.vault.keys.creation import NewKit, entry_for, kit_cost, new_key_set
from tests.scenarios.hostile_server import Asked, HostileServer, Lie, Reply, hostile_server, problem
from tests.scenarios.hostile_world import EVERYTHING, World, codes, contents, end_of, stream_of
from tests.vault.small_vault import PASSPHRASE, new_folder, open_vault, stretch_of

LieFor = Callable[[World], Lie]
RECORD = 1_108  # each record of these stories, but the first of a log with a text that is longer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileServer]:
    with hostile_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def world(server: HostileServer, tmp_path: Path) -> Iterator[World]:
    begun = World.begin(server, tmp_path)
    yield begun
    begun.close()


@pytest.fixture(scope="module")
def steady(server: HostileServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world for lies of which nothing may remain."""
    begun = World.begin(server, tmp_path_factory.mktemp("steady"))
    yield begun
    begun.close()


# ── how a lie is judged ─────────────────────────────────────────────────────────────────────────────


def noticed(world: World) -> Sequence[str]:
    """What device one notices when it synchronises: an error's code, or those of findings."""
    try:
        return codes(world.one.sync())
    except MemsealError as error:
        return [error.code]


def assert_nothing_lost(before: dict[str, bytes], world: World) -> None:
    after = world.files()
    assert [name for name, content in before.items() if not after.get(name, b"").startswith(content)] == []


def assert_healed(world: World) -> None:
    """With an honest server all is as if nothing had been, also on disk, and both go on."""
    for vault in (world.one, world.two, world.one):
        vault.sync()
    assert contents(world.one) == contents(world.two) == EVERYTHING
    world.one.remember("later of one", source="test")
    world.two.remember("later of two", source="test")
    for vault in (world.two, world.one, world.two):
        vault.sync()
    world.one.close()
    world.one = open_vault(world.folder / "one")
    assert contents(world.one) == contents(world.two) == sorted([*EVERYTHING, "later of one", "later of two"])
    assert world.one.state_digest() == world.two.state_digest()
    assert world.one.status().findings == []


def suffer(world: World, lie: Lie, *expected: str) -> None:
    before = world.files()
    with world.server.lying(lie):
        assert noticed(world) == list(expected)
    assert_nothing_lost(before, world)
    assert set(contents(world.one)) <= set(EVERYTHING)
    assert_healed(world)


def refuse(world: World, lie: Lie, code: str) -> None:
    """The round ends at once, nothing has changed, and the next one is as if nothing had been."""
    before = world.files()
    with world.server.lying(lie):
        assert noticed(world) == [code]
        assert len(world.server.asked) <= 2
    assert world.files() == before
    assert world.one.sync().findings == []


# ── heads ───────────────────────────────────────────────────────────────────────────────────────────


def heads_saying(change: Callable[[dict[str, Any]], object]) -> Lie:
    def lie(asked: Asked, reply: Reply) -> Reply:
        if not asked.is_("GET", "/heads"):
            return reply
        value = reply.json
        change(value)
        return reply.with_json(value)

    return lie


def heads_being(status: int, body: bytes, **headers: str) -> Lie:
    return lambda asked, reply: Reply(status, body, headers) if asked.is_("GET", "/heads") else reply


def log_said_to_be(owner: str, **members: Any) -> LieFor:
    def lie(world: World) -> Lie:
        name = stream_of(world.one if owner == "one" else world.two).hex()
        return heads_saying(lambda value: value["logs"][name].update(members))

    return lie


def keyring_said_to_be(**members: Any) -> LieFor:
    return lambda _: heads_saying(lambda value: value["keyring"].update(members))


def without_log_of_two(world: World) -> Lie:
    name = stream_of(world.two).hex()
    return heads_saying(lambda value: value["logs"].pop(name))


HEADS: dict[str, tuple[LieFor, str]] = {
    "a log of the other device that is shorter and of another chain": (
        log_said_to_be("two", length=PREAMBLE_SIZE + RECORD, records=1),
        "forked",
    ),
    "a log of the other device that is gone": (without_log_of_two, "rolled_back"),
    "a log of the other device with another chain": (log_said_to_be("two", chain="00" * 32), "forked"),
    "a log of the other device that is longer than given": (log_said_to_be("two", length=99_999), "withheld"),
    "a log of the other device longer than any number": (log_said_to_be("two", length=10**60), "withheld"),
    "the own log that is longer than given": (log_said_to_be("one", length=99_999), "log_range"),
    "another number for the next segment": (log_said_to_be("one", next=77), "segment_order"),
    "a next segment beyond any number": (log_said_to_be("one", next=10**60), "request_invalid"),
    "a length below zero": (log_said_to_be("two", length=-1), "remote_answer"),
    "a length that is no whole number": (log_said_to_be("two", length=1.5), "remote_answer"),
    "a length that is a truth value": (log_said_to_be("two", length=True), "remote_answer"),
    "a chain that is too short": (log_said_to_be("two", chain="00"), "remote_answer"),
    "a chain that is no text": (log_said_to_be("two", chain=None), "remote_answer"),
    "a keyring of another digest": (keyring_said_to_be(digest="11" * 32), "keyring_forked"),
    "a newer keyring that it does not give": (keyring_said_to_be(version=3), "not_found"),
    "a keyring beyond any number": (keyring_said_to_be(version=10**60), "not_found"),
    "an older keyring": (keyring_said_to_be(version=1), "rolled_back"),
    "no keyring": (keyring_said_to_be(version=0), "rolled_back"),
    "a keyring below zero": (keyring_said_to_be(version=-1), "remote_answer"),
    "no logs": (lambda _: heads_saying(lambda value: value.update(logs={})), "rolled_back"),
    "logs that are a list": (lambda _: heads_saying(lambda value: value.update(logs=[])), "remote_answer"),
    "no vault": (lambda _: lambda *_: problem(404, "vault_unknown"), "rolled_back"),
}


@pytest.mark.parametrize("name", HEADS)
def test_heads_that_lie_are_noticed_and_harm_nothing(world: World, name: str) -> None:
    lie, code = HEADS[name]
    suffer(world, lie(world), code)


@pytest.mark.parametrize("length_from", ["remote", "here"])
def test_another_chain_of_the_own_log_that_is_only_claimed_leaves_the_log_as_it_is(
    world: World, length_from: str
) -> None:
    end = end_of(world.one, stream_of(world.one))
    longer = {"length": end.length, "records": end.records} if length_from == "here" else {}
    suffer(world, log_said_to_be("one", chain="00" * 32, **longer)(world), "forked")


def test_another_chain_of_the_own_log_that_is_only_claimed_loses_no_memory(world: World) -> None:
    with world.server.lying(log_said_to_be("one", chain="00" * 32)(world)):
        assert noticed(world) == ["forked"]
    assert {"first of one", "new of one"} <= set(contents(world.one))
    assert_healed(world)


# ── answers that are none ───────────────────────────────────────────────────────────────────────────


ANSWERS: dict[str, Lie] = {
    "a page": heads_being(200, b"<html>"),
    "a page with an error": heads_being(500, b"<html>"),
    "nothing": heads_being(200, b""),
    "no content": heads_being(204, b""),
    "a part": heads_being(206, b"{}"),
    "not modified": heads_being(304, b""),
    "no text": heads_being(200, b"\xff\xfe\x00"),
    "no text in an error": heads_being(500, b"\xff\xfe\x00"),
    "a list in a list in a list": heads_being(200, b"[" * 200_000),
    "a list in a list in an error": heads_being(500, b"[" * 200_000),
    "a number of ten thousand digits": heads_being(200, b"9" * 10_000),
    "an error without a code": heads_being(500, b"{}"),
    "an error that is a list": heads_being(500, b"[]"),
    "a code that draws on the terminal": lambda _, reply: problem(500, "\x1b[31mred\n"),
    "a code as long as a book": lambda _, reply: problem(500, "a" * 100_000),
    "a code that is a list": lambda _, reply: problem(500, ["limit"]),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_that_are_none_are_refused_and_harm_nothing(steady: World, name: str) -> None:
    refuse(steady, ANSWERS[name], "remote_answer")


def test_code_that_draws_on_the_terminal_gets_into_no_finding(world: World) -> None:
    suffer(
        world,
        lambda asked, reply: problem(500, "\x1b[31mred\n") if asked.is_("GET", "/logs/") else reply,
        "remote_answer",
    )


def test_detail_of_an_error_cannot_draw_on_the_terminal(steady: World) -> None:
    with (
        steady.server.lying(lambda *_: problem(507, "limit", "full\x1b[31m\r\n\u202e\x07 and " + "long" * 9_999)),
        pytest.raises(RemoteRefused) as caught,
    ):
        steady.one.sync()
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= 300


def test_members_of_an_error_that_are_of_a_wrong_type_are_passed_over(steady: World) -> None:
    refuse(steady, lambda *_: problem(507, "limit", ["full"]), "limit")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "now", [0, -1, 1e300, -1e18, 10**18, 253_402_300_800, 10**400, float("nan"), float("inf"), True, "x", [1], None]
)
def test_absurd_clock_is_a_refusal(steady: World, now: object) -> None:
    refuse(steady, lambda *_: problem(401, "clock", now=now), "clock")


@pytest.mark.parametrize("reply", [Reply(200, bytes((1 << 20) + 1)), Reply(200, bytes(1 << 16), endless=True)])
def test_answer_larger_than_any_is_not_read_to_its_end(
    steady: World, monkeypatch: pytest.MonkeyPatch, reply: Reply
) -> None:
    monkeypatch.setattr(http, "_ANSWER_MOST", 1 << 20)
    refuse(steady, lambda *_: reply, "remote_answer")


def test_compressed_answer_is_not_expanded(steady: World) -> None:
    refuse(steady, heads_being(200, zlib.compress(bytes(1 << 20)), **{"Content-Encoding": "deflate"}), "remote_answer")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_to_another_host_is_not_followed(steady: World, status: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.setblocking(False)
        location = f"http://localhost:{elsewhere.getsockname()[1]}/"
        refuse(steady, lambda *_: Reply(status, b"", {"Location": location}), "remote_answer")
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


# ── logs ────────────────────────────────────────────────────────────────────────────────────────────


def log_being(change: Callable[[bytes], bytes]) -> LieFor:
    """What is given of the log of two from where device one has it: three records."""
    return lambda _: (
        lambda asked, reply: replace(reply, body=change(reply.body)) if asked.is_("GET", "/logs/") else reply
    )


def flipped(place: int) -> Callable[[bytes], bytes]:
    return lambda content: (
        content[:place] + bytes(byte ^ 1 for byte in content[place : place + 1]) + content[place + 1 :]
    )


def in_order(*records: int) -> Callable[[bytes], bytes]:
    return lambda content: b"".join(content[RECORD * number : RECORD * (number + 1)] for number in records)


def record(index: int, size: int) -> bytes:
    """A record of the right form that nobody sealed."""
    head = size.to_bytes(4, "big") + index.to_bytes(4, "big")
    return head + zlib.crc32(head).to_bytes(4, "big") + bytes(size)


def more_of(owner: str, content: Callable[[World], bytes]) -> LieFor:
    """The log of a device, and something after its end."""

    def lie_for(world: World) -> Lie:
        stream = stream_of(world.one if owner == "one" else world.two)
        more = content(world)
        end = end_of(world.one if owner == "one" else world.two, stream)

        def lie(asked: Asked, reply: Reply) -> Reply:
            if asked.is_("GET", "/heads"):
                return heads_saying(lambda value: value["logs"][stream.hex()].update(length=end.length + len(more)))(
                    asked, reply
                )
            if asked.is_("GET", f"/logs/{stream.hex()}"):
                start = int(asked.query["from"])
                return Reply(200, reply.body + more if start <= end.length and reply.status == 200 else more)
            return reply

        return lie

    return lie_for


def garbage_for(owner: str) -> Callable[[World], bytes]:
    def make(world: World) -> bytes:
        vault = world.one if owner == "one" else world.two
        return record(end_of(vault, stream_of(vault)).records, 1_096)

    return make


def strange_log(world: World) -> bytes:
    new_folder(world.folder / "stranger")
    with open_vault(world.folder / "stranger") as stranger:
        stranger.remember("of a stranger", source="test")
        return (world.folder / "stranger" / "logs" / f"{stream_of(stranger).hex()}.mseal").read_bytes()


def under_another_name(world: World) -> Lie:
    """The log of two, shown once more as another stream."""
    true, name = stream_of(world.two).hex(), "ab" * 16
    content = (world.folder / "two" / "logs" / f"{true}.mseal").read_bytes()

    def lie(asked: Asked, reply: Reply) -> Reply:
        if asked.is_("GET", f"/logs/{name}"):
            return Reply(200, content)
        return heads_saying(lambda value: value["logs"].update({name: value["logs"][true]}))(asked, reply)

    return lie


def other_bytes_as_a_new_log(make: Callable[[World], bytes]) -> LieFor:
    def lie_for(world: World) -> Lie:
        content, name = make(world), "cd" * 16
        log = {"length": len(content), "records": 1, "chain": "00" * 32, "next": 1}

        def lie(asked: Asked, reply: Reply) -> Reply:
            if asked.is_("GET", f"/logs/{name}"):
                return Reply(200, content)
            return heads_saying(lambda value: value["logs"].update({name: log}))(asked, reply)

        return lie

    return lie_for


def file_of_two(name: str) -> Callable[[World], bytes]:
    return lambda world: (world.folder / "two" / name).read_bytes()


def always(content: bytes) -> Callable[[bytes], bytes]:
    return lambda _: content


def log_of_two(world: World) -> bytes:
    return file_of_two(f"logs/{stream_of(world.two).hex()}.mseal")(world)


LOGS: dict[str, tuple[LieFor, str]] = {
    "nothing": (log_being(lambda _: b""), "withheld"),
    "a log that is not there": (
        lambda _: lambda asked, reply: problem(404, "not_found") if asked.is_("GET", "/logs/") else reply,
        "not_found",
    ),
    "a vault that is not there": (
        lambda _: lambda asked, reply: problem(404, "vault_unknown") if asked.is_("GET", "/logs/") else reply,
        "remote_answer",
    ),
    "a flipped bit in the last record": (log_being(flipped(2 * RECORD + 500)), "record_sealed"),
    "a flipped bit in the first header": (log_being(flipped(2)), "forked"),
    "the last record first": (log_being(in_order(2, 0, 1)), "forked"),
    "everything twice": (log_being(in_order(0, 1, 2, 0, 1, 2)), "record_order"),
    "the log from its beginning again": (
        lambda world: log_being(always(log_of_two(world)))(world),
        "forked",
    ),
    "records nobody sealed": (
        log_being(lambda c: record(int.from_bytes(c[4:8], "big"), len(c) - 12)),
        "record_sealed",
    ),
    "more after the end of the other's log": (more_of("two", garbage_for("two")), "record_sealed"),
    "more after the end of the own log": (more_of("one", garbage_for("one")), "record_sealed"),
    "a log under another name": (under_another_name, "stream_mismatch"),
    "a log of another vault": (other_bytes_as_a_new_log(strange_log), "vault_mismatch"),
    "a log of another vault in the place of this": (
        lambda world: log_being(always(strange_log(world)))(world),
        "forked",
    ),
    "a keyring version as a log": (other_bytes_as_a_new_log(file_of_two("keyring/00000002.mseal")), "kind_mismatch"),
    "a device file as a log": (other_bytes_as_a_new_log(file_of_two("device.mseal")), "kind_mismatch"),
    "a lone preamble's half": (other_bytes_as_a_new_log(lambda _: bytes(32)), "preamble_short"),
    "zeros": (other_bytes_as_a_new_log(lambda _: bytes(5_000)), "preamble_magic"),
}


@pytest.mark.parametrize("name", LOGS)
def test_logs_that_lie_are_noticed_and_harm_nothing(world: World, name: str) -> None:
    lie, code = LOGS[name]
    suffer(world, lie(world), code)


def test_answers_cut_short_are_put_together(world: World) -> None:
    suffer(world, log_being(lambda content: content[:500])(world))


BETWEEN = {
    "a flipped bit in the first record": flipped(500),
    "a flipped bit in the second header": flipped(RECORD + 2),
    "a flipped bit in the second record": flipped(RECORD + 500),
    "without the second": in_order(0, 2),
    "the third before the second": in_order(0, 2, 1),
    "the first twice": in_order(0, 0, 1, 2),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_damage_between_good_records_heals_when_the_server_is_honest_again(world: World, name: str) -> None:
    with world.server.lying(log_being(BETWEEN[name])(world)):
        assert noticed(world)
    assert_healed(world)


def test_what_no_device_sealed_is_not_handed_on_to_the_honest_server(world: World) -> None:
    with world.server.lying(more_of("two", garbage_for("two"))(world)):
        noticed(world)
    world.one.sync()
    assert codes(world.two.sync()) == []


# ── what was put ────────────────────────────────────────────────────────────────────────────────────


def is_push(asked: Asked) -> bool:
    return asked.is_("PUT", "/logs/")


def test_push_that_is_confirmed_and_forgotten_is_a_rollback_and_comes_back_with_consent(world: World) -> None:
    before = world.files()
    with world.server.lying(swallows=is_push):
        assert noticed(world) == []
    with pytest.raises(RolledBack):
        world.one.sync()
    assert_nothing_lost(before, world)
    world.one.sync(accept_rollback=True)
    assert_healed(world)


@pytest.mark.parametrize("code", ["segment_conflict", "segment_order", "epoch_ended", "stream_ended"])
def test_push_that_is_always_too_late_is_given_up(world: World, code: str) -> None:
    before = world.files()
    with world.server.lying(lambda asked, reply: problem(409, code) if is_push(asked) else reply, is_push):
        assert noticed(world) == [code]
        assert len(world.server.asked) < 60
    assert_nothing_lost(before, world)
    assert_healed(world)


# ── keyrings ────────────────────────────────────────────────────────────────────────────────────────


def newest(world: World) -> KeyringVersion:
    return world.one._opened.keychain.keyring.newest


def forged(base: KeyringVersion, public: PublicSection, vault_key: VaultKey, *signers: SigningKey) -> KeyringVersion:
    """A version as the server can make it: it has all public bytes and the slot, and keys of its own."""
    hidden = Secrets({}, {}, KitSecret(bytes(16)))
    return build_version(base.vault_id, public, vault_key, hidden, base.slots, signers)


def added_device(base: KeyringVersion) -> KeyringVersion:
    """A version that adds a device of the server's, which signs itself."""
    keys, number, vault_key = new_key_set(), base.public.version + 1, VaultKey(bytes(range(32)))
    devices = (*base.public.devices, entry_for(keys, bytes(16), number))
    public = replace(base.public, version=number, previous=base.digest, devices=devices)
    return forged(base, public, vault_key, keys.sign)


def added_device_and_epoch(base: KeyringVersion) -> KeyringVersion:
    """A version that also begins an epoch with a key of the server's."""
    keys, number, vault_key = new_key_set(), base.public.version + 1, VaultKey(bytes(range(32)))
    epoch = base.public.epoch + 1
    epoch_key = epoch_signing_key(vault_key, base.vault_id, epoch)
    public = replace(
        base.public,
        version=number,
        previous=base.digest,
        devices=(*base.public.devices, entry_for(keys, bytes(16), number)),
        epoch=epoch,
        epoch_since=number,
        epoch_key=public_signing_key(epoch_key),
    )
    return forged(base, public, vault_key, keys.sign, epoch_key)


def of_a_stranger(world: World) -> bytes:
    new_folder(world.folder / "stranger")
    return (world.folder / "stranger" / "keyring" / "00000001.mseal").read_bytes()


def changed(base: KeyringVersion, **fields: Any) -> KeyringVersion:
    """A next version as the server can make it, with other fields and no signature of a device."""
    public = replace(base.public, version=base.public.version + 1, previous=base.digest, **fields)
    return forged(base, public, VaultKey(bytes(range(32))))


def without_a_device(base: KeyringVersion) -> KeyringVersion:
    return changed(base, devices=base.public.devices[:1])


def with_a_device_ended(base: KeyringVersion) -> KeyringVersion:
    first, *others = base.public.devices
    return changed(base, devices=(replace(first, ended=Ended(base.public.version + 1, {})), *others))


def with_other_keys_for_a_device(base: KeyringVersion) -> KeyringVersion:
    first, *others = base.public.devices
    keys = entry_for(new_key_set(), first.id, first.since)
    return changed(base, devices=(keys, *others))


def with_a_kit_of_its_own(base: KeyringVersion) -> KeyringVersion:
    drawn = NewKit.draw(
        base.vault_id, base.public.kit.generation + 1, base.public.version + 1, kit_cost(base.public.kit)
    )
    return changed(base, kit=drawn.entry)


def with_a_floor(base: KeyringVersion) -> KeyringVersion:
    return changed(base, floor=Floor(bytes(16), bytes(32), (), {}))


def with_another_sealed_part(base: KeyringVersion) -> bytes:
    """The next version of a device, with boxes and slot that the server put in the place of its own."""
    true = forged(
        base, replace(base.public, version=base.public.version + 1, previous=base.digest), VaultKey(bytes(32))
    )
    return true.stripped() + base.sealed_part()


KEYRINGS: dict[str, tuple[Callable[[World], bytes], str]] = {
    "a device that signs itself": (lambda world: added_device(newest(world)).content, "keyring_signature"),
    "a device and an epoch of its own": (
        lambda world: added_device_and_epoch(newest(world)).content,
        "keyring_signature",
    ),
    "a device that is gone from the list": (
        lambda world: without_a_device(newest(world)).content,
        "keyring_devices",
    ),
    "a device that is ended": (lambda world: with_a_device_ended(newest(world)).content, "keyring_epoch_needed"),
    "other keys for a device": (lambda world: with_other_keys_for_a_device(newest(world)).content, "keyring_devices"),
    "a kit of its own": (lambda world: with_a_kit_of_its_own(newest(world)).content, "keyring_epoch_needed"),
    "a floor of its own": (lambda world: with_a_floor(newest(world)).content, "keyring_signature"),
    "other boxes and slots": (lambda world: with_another_sealed_part(newest(world)), "keyring_sealed"),
    "the same version again": (lambda world: newest(world).content, "keyring_chain"),
    "the first version again": (file_of_two("keyring/00000001.mseal"), "keyring_chain"),
    "the keyring of another vault": (of_a_stranger, "vault_mismatch"),
    "a log": (log_of_two, "kind_mismatch"),
    "a device file": (file_of_two("device.mseal"), "kind_mismatch"),
    "nothing": (lambda _: b"", "preamble_short"),
    "half of it": (lambda world: newest(world).content[:2_000], "record_torn"),
}


@pytest.mark.parametrize("name", KEYRINGS)
def test_keyrings_that_lie_stop_the_round_and_harm_nothing(world: World, name: str) -> None:
    make, code = KEYRINGS[name]
    content = make(world)

    def lie(asked: Asked, reply: Reply) -> Reply:
        if asked.is_("GET", "/keyring/"):
            return Reply(200, content)
        return heads_saying(lambda value: value["keyring"].update(version=3))(asked, reply)

    suffer(world, lie, code)


def change_passphrase(vault: Vault, new: str = "a newer passphrase") -> None:
    with vault._writing() as opened:
        passphrases.change(opened, stretch_of(PASSPHRASE), stretch_of(new), new, None)


def test_newest_keyring_given_without_its_sealed_part_is_refused(world: World) -> None:
    change_passphrase(world.two)
    before = world.files()

    def lie(asked: Asked, reply: Reply) -> Reply:
        if asked.is_("GET", "/keyring/3"):
            return Reply(200, decode_version(reply.body).stripped())
        return reply

    with world.server.lying(lie, is_push):  # an honest server would refuse what belongs to an ended epoch
        assert noticed(world) == ["keyring_missing"]
    assert_nothing_lost(before, world)
    assert world.one.status().keyring_version == 2
    world.one.sync()
    assert world.one.status().keyring_version == 3


@pytest.mark.parametrize("lie_about", ["reading back", "storing"])
def test_key_change_that_the_server_did_not_keep_is_noticed_and_completed_later(world: World, lie_about: str) -> None:
    older = newest(world).content
    world.one.sync()
    with (
        world.server.lying(
            lambda asked, reply: Reply(200, older) if asked.is_("GET", "/keyring/3") else reply,
            lambda asked: lie_about == "storing" and asked.is_("PUT", "/keyring/"),
        ),
        pytest.raises(RemoteRefused),
    ):
        change_passphrase(world.one)
    assert contents(world.one) == EVERYTHING
    change_passphrase(world.one)
    assert world.one.status().epoch == 2
    world.two.sync()
    world.one.sync()
    assert world.one.state_digest() == world.two.state_digest()
    assert world.one.status().findings == []


# ── joining ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def shared(server: HostileServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    """A vault under a passphrase that costs what it costs, on the server, to be joined."""
    path = tmp_path_factory.mktemp("shared")
    with Vault.create(path / "vault", PASSPHRASE, device_name="first", embedder=None) as vault:
        vault.remember("shared", source="test")
        vault.sync(server.url)
        yield vault


def versions_of(vault: Vault) -> tuple[KeyringVersion, ...]:
    return vault._opened.keychain.keyring.versions


def founded_anew(true: KeyringVersion) -> KeyringVersion:
    """A first version under the vault's id, of a founder of the server's, with the true slot."""
    keys, vault_key = new_key_set(), VaultKey(bytes(range(32)))
    epoch_key = epoch_signing_key(vault_key, true.vault_id, 1)
    public = replace(true.public, devices=(entry_for(keys, bytes(16), 1),), epoch_key=public_signing_key(epoch_key))
    return forged(true, public, vault_key, keys.sign, epoch_key)


def with_cost(vault: Vault, cost: Cost) -> KeyringVersion:
    """The first version with another cost, signed anew by a founder who lends the server a hand."""
    true, opened = versions_of(vault)[0], vault._opened
    vault_key = opened.keychain.vault_key
    epoch_key = epoch_signing_key(vault_key, true.vault_id, 1)
    public = replace(true.public, kit=replace(true.public.kit, cost=cost))
    return forged(true, public, vault_key, opened.device.keys.sign, epoch_key)


FORGERIES: dict[str, tuple[Callable[[KeyringVersion], KeyringVersion], str]] = {
    "a founder of its own": (founded_anew, "keyring_first"),
    "a device that signs itself": (added_device, "keyring_signature"),
    "a device and an epoch of its own": (added_device_and_epoch, "keyring_signature"),
}


def showing(true: Sequence[KeyringVersion], last: KeyringVersion) -> Lie:
    """A server that shows the true versions below this one, and this as the newest."""
    shown = {str(each.public.version): each for each in (*true, last)}

    def lie(asked: Asked, reply: Reply) -> Reply:
        number = asked.path.rpartition("/")[2]
        version = last if number == "latest" else shown.get(number)
        if not asked.is_("GET", "/keyring/") or version is None:
            return reply
        return Reply(200, version.stripped() if "part" in asked.query else version.content)

    return lie


def join(server: HostileServer, path: Path, kit: str, passphrase: str = PASSPHRASE) -> None:
    Vault.join(path / "joined", kit, passphrase, server.url, device_name="new", embedder=None).close()


def assert_not_joined(server: HostileServer, shared: Vault, path: Path) -> None:
    """Nothing was written anywhere, and nobody but the kit's request key has asked for anything."""
    assert list(path.iterdir()) == []
    kit = parse_kit(shared.emergency_kit)
    request_key = public_signing_key(kit_request_key(kit.secret, kit.vault_id, kit.generation)).hex()
    assert {asked.method for asked in server.asked} == {"GET"}
    assert {asked.keyid for asked in server.asked} == {request_key}


@pytest.mark.parametrize("name", FORGERIES)
def test_joining_a_forged_keyring_is_refused_before_anything_is_written(
    server: HostileServer, shared: Vault, tmp_path: Path, name: str
) -> None:
    forge, code = FORGERIES[name]
    true = versions_of(shared)
    with server.lying(showing(true, forge(true[-1]))), pytest.raises(FormatError) as caught:
        join(server, tmp_path, shared.emergency_kit)
    assert caught.value.code == code
    assert_not_joined(server, shared, tmp_path)


def test_joining_another_vault_than_the_kits_is_refused_before_anything_is_written(
    server: HostileServer, shared: Vault, tmp_path: Path
) -> None:
    folder = tmp_path / "stranger"
    new_folder(folder)
    with open_vault(folder) as stranger:
        version = versions_of(stranger)[-1]
    (tmp_path / "here").mkdir()
    with server.lying(showing([], version)), pytest.raises(FormatError) as caught:
        join(server, tmp_path / "here", shared.emergency_kit)
    assert caught.value.code == "vault_mismatch"
    assert_not_joined(server, shared, tmp_path / "here")


COSTS = {
    "kdf_floor": [Cost(8, 3, 4), Cost(65_535, 3, 4), Cost(65_536, 2, 4), Cost(65_536, 3, 0)],
    "kdf_ceiling": [Cost(1_048_577, 3, 4), Cost(65_536, 11, 4), Cost(65_536, 3, 17)],
}


@pytest.mark.parametrize(("code", "cost"), [(code, cost) for code, costs in COSTS.items() for cost in costs])
def test_cost_out_of_bounds_is_refused_before_anything_is_derived(
    server: HostileServer,
    shared: Vault,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    cost: Cost,
) -> None:
    derived = list[object]()
    monkeypatch.setattr(argon2.low_level, "hash_secret_raw", lambda *words, **_: derived.append(words))
    version = with_cost(shared, cost)
    with server.lying(showing([], version)), pytest.raises(FormatError) as caught:
        join(server, tmp_path, shared.emergency_kit)
    assert caught.value.code == code
    assert derived == []
    assert_not_joined(server, shared, tmp_path)


def test_join_that_the_server_did_not_keep_leaves_nothing(server: HostileServer, shared: Vault, tmp_path: Path) -> None:
    with (
        server.lying(swallows=lambda asked: asked.is_("PUT", "/keyring/")),
        pytest.raises(RemoteRefused),
    ):
        join(server, tmp_path, shared.emergency_kit)
    assert list(tmp_path.iterdir()) == []


# ── folders ─────────────────────────────────────────────────────────────────────────────────────────


def segments(stick: Path) -> list[Path]:
    return sorted(path for path in stick.rglob("*") if path.is_file())


def truncate(stick: Path) -> None:
    for path in segments(stick):
        path.write_bytes(path.read_bytes()[:-100])


def empty(stick: Path) -> None:
    for path in segments(stick):
        path.write_bytes(b"")


def swap(stick: Path) -> None:
    first, second, *_ = [path for path in segments(stick) if path.parent.parent.name == "logs"]
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)


def rename_streams(stick: Path) -> None:
    for number, path in enumerate(sorted((next(stick.iterdir()) / "logs").iterdir())):
        path.rename(path.with_name(f"{number:032x}"))


def link_elsewhere(stick: Path) -> None:
    (stick.parent / "elsewhere").write_text("something private\n" * 400, encoding="utf-8")
    for path in segments(stick):
        path.unlink()
        path.symlink_to(stick.parent / "elsewhere")


def strange_names(stick: Path) -> None:
    logs = next(stick.iterdir()) / "logs"
    for name in ("..", "x" * 200, "\u0661" * 10, "-000000001"):
        (logs / f"{name}.odd").mkdir()
        for folder in logs.iterdir():
            (folder / f"{name}.odd").write_bytes(bytes(200))
    for folder in logs.iterdir():
        (folder / ("\u0661" * 10)).write_bytes(bytes(200))


FOLDERS: dict[Callable[[Path], None], list[str]] = {
    truncate: [],
    empty: [],
    swap: ["forked", "record_sealed"],
    rename_streams: ["stream_mismatch"],
    link_elsewhere: [],
    strange_names: [],
}


@pytest.mark.parametrize("harm", FOLDERS, ids=lambda harm: harm.__name__)
def test_folder_that_was_tampered_with_harms_nothing_and_is_filled_up_again(
    world: World, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    world.two.sync(str(stick))
    harm(stick)
    before = world.files()
    report = world.one.sync(str(stick))
    assert_nothing_lost(before, world)
    assert set(contents(world.one)) <= set(EVERYTHING)
    assert codes(report) == FOLDERS[harm]
    world.two.sync(str(stick), accept_rollback=True)
    world.one.sync(str(stick))
    if harm is not swap:  # those files are whole, and stand where others belong for ever
        assert contents(world.one) == contents(world.two) == EVERYTHING
    assert_healed(world)


def test_flipped_bit_in_a_folders_copy_of_the_own_log_leaves_the_log_as_it_is(world: World, tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    world.two.sync(str(stick))
    for path in segments(stick):
        path.write_bytes(flipped(600)(path.read_bytes()))
    before = world.files()
    world.one.sync(str(stick))
    assert_nothing_lost(before, world)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_file_in_a_folder_is_refused_and_not_waited_for(world: World, tmp_path: Path, kind: str) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    world.two.sync(str(stick))
    for path in segments(stick):
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        else:
            path.symlink_to("/dev/zero")
    before = world.files()
    with pytest.raises(DiskError):
        world.one.sync(str(stick))
    assert_nothing_lost(before, world)
    assert_healed(world)


def test_folder_of_another_vault_is_not_touched(world: World, tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    new_folder(tmp_path / "stranger")
    with open_vault(tmp_path / "stranger") as stranger:
        stranger.remember("of a stranger", source="test")
        stranger.sync(str(stick))
    before = {path: path.read_bytes() for path in segments(stick)}
    world.one.sync(str(stick))
    assert {path: path.read_bytes() for path in before} == before
    assert set(contents(world.one)) <= set(EVERYTHING)
