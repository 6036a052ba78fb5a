"""A server that relays a pairing and lies: nothing is joined that the other device does not have."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from dataclasses import replace
from pathlib import Path

import pytest

from memseal.errors import (
    FormatError,
    MemsealError,
    PairingCodeWrong,
    PairingExpired,
    PairingGone,
    PairingInvalid,
    PairingTaken,
    PairingUnfinished,
    RemoteAnswer,
    RemoteRefused,
    RolledBack,
)
from memseal.format.values import encode_value
from tests.scenarios.hostile_server import Asked, HostileServer, Reply, hostile_server, problem
from tests.scenarios.pairing_world import Laptop, is_clean, join, names
from tests.vault.small_vault import new_folder, open_vault


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[tuple[Laptop, HostileServer]]:
    """A laptop whose server relays to a real one, and can lie; its keyring has two versions."""
    (tmp_path / "hostile").mkdir()
    with hostile_server(tmp_path / "hostile") as server:
        laptop = Laptop(tmp_path / "laptop", server.url)
        laptop.vault.rename_device("laptop", "desk")
        yield laptop, server
        laptop.close()


def flipping(part: str) -> Callable[[Asked, Reply], Reply]:
    """Return a lie that changes one bit of a message on its way."""
    beginning, end = {
        "S1": ("/v1/pairing/", "/1"),
        "S2": ("/v1/pairing/", "/2"),
        "J1": ("/pairing/", "/1"),
        "J2": ("/pairing/", "/2"),
    }[part]

    def lie(asked: Asked, reply: Reply) -> Reply:
        if asked.is_("GET", beginning) and asked.path.endswith(end) and reply.status == 200:
            place = len(reply.body) // 2
            body = reply.body[:place] + bytes((reply.body[place] ^ 1,)) + reply.body[place + 1 :]
            return replace(reply, body=body)
        return reply

    return lie


@pytest.mark.parametrize("part", ["S1", "J1", "S2"])
def test_message_that_is_changed_on_its_way_ends_the_pairing(
    part: str, hostile: tuple[Laptop, HostileServer], tmp_path: Path
) -> None:
    laptop, server = hostile
    with server.lying(flipping(part)):
        shown = laptop.shows()
        with pytest.raises((PairingCodeWrong, PairingInvalid)):
            join(tmp_path / "phone", shown.code, laptop.server)
        while not wait([shown.outcome], timeout=0.5).done:
            shown.clock.now += 1000
        with pytest.raises((PairingCodeWrong, PairingInvalid, PairingUnfinished, PairingExpired)):
            shown.device()
    assert is_clean(tmp_path / "phone")
    assert names(laptop.vault) == ["desk"]


def test_last_message_that_is_changed_is_told_and_the_device_is_in(
    hostile: tuple[Laptop, HostileServer], tmp_path: Path
) -> None:
    laptop, server = hostile
    with server.lying(flipping("J2")):
        shown = laptop.shows()
        join(tmp_path / "phone", shown.code, laptop.server)
        with pytest.raises((PairingCodeWrong, PairingInvalid)):
            shown.device()
    assert names(laptop.vault) == ["desk", "phone"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (problem(404, "pairing_gone"), PairingGone),
        (problem(410, "pairing_expired"), PairingExpired),
        (problem(409, "pairing_taken"), PairingTaken),
        (problem(500, "server_error"), RemoteRefused),
        (Reply(200, b""), PairingInvalid),
        (Reply(200, bytes(100)), PairingInvalid),
        (Reply(200, bytes(5000)), PairingInvalid),
        (Reply(200, encode_value({"wrong": True})), PairingInvalid),
        (Reply(200, bytes(1 << 20), endless=True), RemoteAnswer),
        (Reply(418, b"tea"), RemoteAnswer),
    ],
    ids=["gone", "expired", "taken", "failed", "empty", "zeros", "long", "wrong", "endless", "teapot"],
)
def test_answer_that_is_none_is_an_error_and_makes_nothing(
    answer: Reply, error: type[MemsealError], tmp_path: Path
) -> None:
    server = HostileServer()
    with server.lying(lambda asked, reply: answer, swallows=lambda asked: True), pytest.raises(error):
        join(tmp_path / "phone", "4821-3903-5174-2007", server.url)
    server.close()
    assert is_clean(tmp_path / "phone")


@pytest.mark.parametrize("instead", ["another vault", "older", "branch", "longer branch", "empty", "cut", "swapped"])
def test_keyring_that_is_not_the_one_the_other_device_has_is_not_joined(
    instead: str, hostile: tuple[Laptop, HostileServer], tmp_path: Path
) -> None:
    laptop, server = hostile
    first, second = versions_in(laptop.folder)
    match instead:
        case "another vault":
            new_folder(tmp_path / "other")
            versions = versions_in(tmp_path / "other")
        case "older":
            versions = versions_in(laptop.folder.with_name("copy"))
        case "branch" | "longer branch":
            versions = branch(laptop, 1 if instead == "branch" else 2)
        case "empty" | "cut":
            versions = [first, b"" if instead == "empty" else second[:-1]]
        case _:
            versions = [second, first]
    shown, own = laptop.shows(), laptop.vault._opened.device.signing_public.hex()
    lie = showing(versions)
    with server.lying(lambda asked, reply: reply if asked.keyid == own else lie(asked, reply)):
        with pytest.raises((FormatError, RolledBack)):
            join(tmp_path / "phone", shown.code, laptop.server)
        assert not [asked for asked in server.asked if asked.is_("PUT", "/keyring/")]
        shown.is_given_up()
    assert is_clean(tmp_path / "phone")
    assert names(laptop.vault) == ["desk"]


def test_join_that_the_server_hides_is_not_taken_for_done(
    hostile: tuple[Laptop, HostileServer], tmp_path: Path
) -> None:
    laptop, server = hostile
    heads = list[Reply]()
    own = laptop.vault._opened.device.signing_public.hex()

    def hide(asked: Asked, reply: Reply) -> Reply:
        """The shower sees the heads of before, for ever."""
        if asked.keyid == own and asked.is_("GET", "/heads"):
            heads.append(reply)
            return heads[0]
        return reply

    with server.lying(hide):
        shown = laptop.shows()
        join(tmp_path / "phone", shown.code, laptop.server)
        with pytest.raises(PairingUnfinished):
            shown.device()
    assert names(laptop.vault) == ["desk", "phone"]


def test_join_that_the_server_confirms_and_forgets_is_told(
    hostile: tuple[Laptop, HostileServer], tmp_path: Path
) -> None:
    laptop, server = hostile
    shown = laptop.shows()
    with server.lying(swallows=lambda asked: asked.is_("PUT", "/keyring/")):
        with pytest.raises(RemoteRefused):
            join(tmp_path / "phone", shown.code, laptop.server)
        shown.is_given_up()
    assert not (tmp_path / "phone").exists()
    assert names(laptop.vault) == ["desk"]


def showing(versions: Sequence[bytes]) -> Callable[[Asked, Reply], Reply]:
    def lie(asked: Asked, reply: Reply) -> Reply:
        if not asked.is_("GET", "/keyring/"):
            return reply
        name = asked.path.rpartition("/")[2]
        number = len(versions) if name == "latest" else int(name)
        return Reply(200, versions[number - 1]) if number <= len(versions) else reply

    return lie


def branch(laptop: Laptop, renames: int) -> list[bytes]:
    """Return a true keyring of the same vault that goes on from version 1 in another way."""
    copy = laptop.folder.with_name("copy")
    with open_vault(copy) as vault:
        for number in range(renames):
            vault.rename_device(vault.devices()[0].id, f"name {number}")
    return versions_in(copy)


def versions_in(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((folder / "keyring").iterdir())]
