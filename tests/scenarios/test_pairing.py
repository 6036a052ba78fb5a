"""A new device joins by a code that another one shows, over a real server that relays."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Queue

import pytest

from memseal.errors import (
    DeviceEnded,
    FolderKeys,
    FormatError,
    MemsealError,
    PairingCodeMalformed,
    PairingCodeWrong,
    PairingExpired,
    PairingGone,
    PairingInvalid,
    PairingTaken,
    PairingUnfinished,
    PassphraseWrong,
    RemoteAnswer,
    RemoteRefused,
    RemoteUnknown,
    RemoteUnreachable,
    RolledBack,
    VaultExists,
)
from memseal.format.values import encode_value
from memseal.store.disk import OsDisk
from memseal.store.folder import VaultFolder
from memseal.vault import pairing, revoking
from memseal.vault.roster import DeviceInfo
from memseal.vault.vault import Vault
from tests.scenarios.conftest import StartServer
from tests.scenarios.hostile_server import Asked, HostileServer, Reply, hostile_server, problem
from tests.vault.small_vault import PASSPHRASE, new_folder, open_vault, stretch_of


class Laptop:
    """A device of a vault on a server, which can show codes."""

    def __init__(self, folder: Path, server: str) -> None:
        self.folder = folder
        self.server = server
        new_folder(folder)
        shutil.copytree(folder, folder.with_name("copy"))
        self.vault = open_vault(folder)
        self.vault.remember("from the laptop", source="test")
        self.vault.sync(server)
        self._threads = ThreadPoolExecutor(4)

    def shows(self, *, scanned: bool = False) -> "Shown":
        """Show a code, and wait in a thread for who uses it."""
        codes, clock = Queue[str](), Clock()

        def run() -> DeviceInfo:
            try:
                return pairing.pair(self.vault._writing, codes.put, self.server, scanned=scanned, clock=clock)
            finally:
                codes.put("")  # so that nobody waits for a code that was never shown

        outcome = self._threads.submit(run)
        return Shown(codes.get(timeout=60), outcome, clock)

    def close(self) -> None:
        self._threads.shutdown()
        self.vault.close()


class Clock:
    """A clock that stands still until the test moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Shown:
    """A code on a screen, and what becomes of it."""

    code: str
    outcome: Future[DeviceInfo]
    clock: Clock

    def device(self) -> DeviceInfo:
        return self.outcome.result(timeout=60)

    def is_given_up(self) -> None:
        """Let the time pass, and see that no device came of it."""
        while not wait([self.outcome], timeout=0.5).done:
            self.clock.now += 1000  # again: it may have gone on to another wait just now
        with pytest.raises((PairingExpired, PairingUnfinished)):
            self.device()


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request is held for a second, so that a clock that was moved is looked at soon."""
    monkeypatch.setattr(pairing, "_WAIT_SECONDS", 1)


@pytest.fixture
def laptop(tmp_path: Path, start_server: StartServer) -> Iterator[Laptop]:
    laptop = Laptop(tmp_path / "laptop", start_server().url)
    yield laptop
    laptop.close()


def join(path: Path, code: str, server: str | None, passphrase: str = PASSPHRASE, name: str = "phone") -> VaultFolder:
    """What `Vault.join_with_code` does, without Argon2id."""
    return pairing.join_with_code(path, OsDisk(), code, stretch_of(passphrase), server, name)


def names(vault: Vault) -> list[str]:
    vault.sync()
    return [device.name for device in vault.devices()]


def is_clean(folder: Path) -> bool:
    """Whether nothing of a join is left where it was to be."""
    return not folder.exists() and not folder.with_name(f".{folder.name}.joining").exists()


# ── by the book ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scanned", [False, True], ids=["typed", "scanned"])
def test_device_joins_by_a_code_and_both_go_on(scanned: bool, laptop: Laptop, tmp_path: Path) -> None:
    shown = laptop.shows(scanned=scanned)
    join(tmp_path / "phone", shown.code, None if scanned else laptop.server)
    device = shown.device()
    assert (device.name, device.status) == ("phone", "active")
    with open_vault(tmp_path / "phone") as phone:
        phone.remember("from the phone", source="test")
        phone.sync()
        assert laptop.vault.sync().new_memories == 1
        assert phone.state_digest() == laptop.vault.state_digest()
        assert phone.status().findings == laptop.vault.status().findings == []
        assert phone.emergency_kit == laptop.vault.emergency_kit
    assert sorted(path.name for path in tmp_path.iterdir() if "phone" in path.name) == ["phone"]


def test_vault_pairs_through_its_own_methods(tmp_path: Path, start_server: StartServer) -> None:
    server, codes = start_server(), Queue[str]()
    with Vault.create(tmp_path / "laptop", "a passphrase", embedder=None) as one, ThreadPoolExecutor() as threads:
        one.sync(server.url)
        outcome = threads.submit(one.pair, codes.put)
        code = codes.get(timeout=60)
        one.remember("written while the code is shown", source="test")
        path = tmp_path / "phone"
        with Vault.join_with_code(path, code, "a passphrase", server.url, device_name="phone", embedder=None) as two:
            assert outcome.result(timeout=60).id == two.devices()[1].id
            two.sync()
            assert two.count() == 1


def test_paired_device_is_as_good_as_any(laptop: Laptop, tmp_path: Path) -> None:
    """It lets another one in, and removes the one that let it in."""
    shown = laptop.shows()
    join(tmp_path / "phone", shown.code, laptop.server)
    shown.device()
    with open_vault(tmp_path / "phone") as phone, phone._writing() as opened:
        revoking.revoke(opened, "laptop", stretch_of(PASSPHRASE), None, None)
    with pytest.raises(DeviceEnded):
        laptop.vault.sync()


# ── what people do ──────────────────────────────────────────────────────────────────────────────────


def other_code(code: str) -> str:
    """A code for the same channel, as somebody guesses it."""
    digits = code.replace("-", "")
    number = int(digits[:-2]) + (1 if digits[13] != "9" else -1)
    return f"{number:014d}{98 - number * 100 % 97:02d}"


def test_wrong_code_is_told_to_both_and_spends_it(laptop: Laptop, tmp_path: Path) -> None:
    shown = laptop.shows()
    with pytest.raises(PairingCodeWrong):
        join(tmp_path / "phone", other_code(shown.code), laptop.server)
    with pytest.raises(PairingCodeWrong):
        shown.device()
    with pytest.raises(PairingTaken):
        join(tmp_path / "phone", shown.code, laptop.server)
    assert is_clean(tmp_path / "phone")
    assert names(laptop.vault) == ["laptop"]


def test_mistyped_code_is_told_before_it_is_spent(laptop: Laptop, tmp_path: Path) -> None:
    shown = laptop.shows()
    wrong = shown.code[:-1] + ("1" if shown.code[-1] != "1" else "2")
    with pytest.raises(PairingCodeMalformed):
        join(tmp_path / "phone", wrong, laptop.server)
    join(tmp_path / "phone", shown.code, laptop.server)
    assert shown.device().name == "phone"


def test_wrong_passphrase_makes_no_device(laptop: Laptop, tmp_path: Path) -> None:
    before = laptop.vault.status().keyring_version
    shown = laptop.shows()
    with pytest.raises(PassphraseWrong):
        join(tmp_path / "phone", shown.code, laptop.server, "not the vault's")
    shown.is_given_up()
    assert is_clean(tmp_path / "phone")
    assert names(laptop.vault) == ["laptop"]
    assert laptop.vault.status().keyring_version == before


def test_code_that_nobody_uses_is_over_after_two_minutes(laptop: Laptop, tmp_path: Path) -> None:
    shown = laptop.shows()
    shown.clock.now = pairing.CODE_SECONDS - 1
    assert not shown.outcome.done()
    shown.clock.now = pairing.CODE_SECONDS
    with pytest.raises(PairingExpired):
        shown.device()


def test_code_that_no_device_shows_is_told(laptop: Laptop, tmp_path: Path) -> None:
    with pytest.raises(PairingGone):
        join(tmp_path / "phone", "4821-3903-5174-2007", laptop.server)
    assert is_clean(tmp_path / "phone")


def test_place_that_is_taken_spends_no_code(laptop: Laptop, tmp_path: Path) -> None:
    shown = laptop.shows()
    with pytest.raises(VaultExists):
        join(tmp_path / "laptop", shown.code, laptop.server)
    with pytest.raises(RemoteUnknown):
        join(tmp_path / "phone", shown.code, None)
    with pytest.raises(FolderKeys):
        join(tmp_path / "phone", shown.code, str(tmp_path))
    join(tmp_path / "phone", shown.code, laptop.server)
    shown.device()


def test_vault_on_no_server_shows_no_code(tmp_path: Path) -> None:
    new_folder(tmp_path / "alone")
    with open_vault(tmp_path / "alone") as vault, pytest.raises(RemoteUnknown):
        vault.pair(lambda code: None)


def test_second_code_of_a_device_ends_the_first(laptop: Laptop, tmp_path: Path) -> None:
    first = laptop.shows()
    second = laptop.shows()
    with pytest.raises((PairingGone, PairingTaken)):
        first.device()
    join(tmp_path / "phone", second.code, laptop.server)
    assert second.device().name == "phone"


def test_keys_that_change_meanwhile_end_the_pairing(laptop: Laptop, tmp_path: Path) -> None:
    """Between the box that was handed over and the join."""
    with pytest.MonkeyPatch.context() as patch:
        prove = pairing.PairingOpener.request_key

        def rekey_first(opener: pairing.PairingOpener) -> object:
            if laptop.vault.status().epoch == 1:
                laptop.vault.rekey()
            return prove(opener)

        patch.setattr(pairing.PairingOpener, "request_key", rekey_first)
        shown = laptop.shows()
        with pytest.raises(PairingExpired):
            join(tmp_path / "phone", shown.code, laptop.server)
        shown.is_given_up()
    assert is_clean(tmp_path / "phone")
    assert names(laptop.vault) == ["laptop"]


# ── cut short ───────────────────────────────────────────────────────────────────────────────────────


def kill_at(moment: str, folder: Path, code: str, server: str) -> None:
    command = [sys.executable, "-m", "tests.scenarios.pairing_process", str(folder), server, moment]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{code}\n")
        process.stdin.flush()
        assert process.stdout.readline() == "halted\n"
        process.kill()


@pytest.mark.parametrize("moment", ["hear 1", "say 1", "said 1", "heard 2", "keep", "put", "answer", "create", "say 2"])
def test_joiner_that_is_killed_leaves_no_entry_without_its_device(moment: str, laptop: Laptop, tmp_path: Path) -> None:
    shown, phone = laptop.shows(), tmp_path / "phone"
    kill_at(moment, phone, shown.code, laptop.server)
    shown.is_given_up()
    if not phone.exists():
        again = laptop.shows()
        join(phone, again.code, laptop.server)
        if not again.outcome.done() and not (tmp_path / ".phone.joining").exists() and moment in ("answer", "create"):
            again.is_given_up()  # the join of before was finished: no code was needed
        else:
            again.device()
    with open_vault(phone) as vault:
        vault.sync()
        assert vault.state_digest() == laptop.vault.state_digest()
    # However it went, the vault has one device more, and that is this one.
    assert names(laptop.vault) == ["laptop", "phone"]


def test_join_that_was_done_when_it_was_cut_short_is_finished_with_the_same_passphrase_alone(
    laptop: Laptop, tmp_path: Path
) -> None:
    shown, phone = laptop.shows(), tmp_path / "phone"
    kill_at("answer", phone, shown.code, laptop.server)
    shown.is_given_up()
    assert names(laptop.vault) == ["laptop", "phone"]
    assert PASSPHRASE.encode() not in (tmp_path / ".phone.joining").read_bytes()
    with pytest.raises((PairingTaken, PairingGone)):
        join(phone, shown.code, laptop.server, "another passphrase")
    join(phone, shown.code, laptop.server)
    assert not (tmp_path / ".phone.joining").exists()


def test_join_that_was_cut_short_before_its_device_was_removed_is_begun_anew(laptop: Laptop, tmp_path: Path) -> None:
    shown, phone = laptop.shows(), tmp_path / "phone"
    kill_at("answer", phone, shown.code, laptop.server)
    shown.is_given_up()
    laptop.vault.sync()
    with laptop.vault._writing() as opened:
        revoking.revoke(opened, "phone", stretch_of(PASSPHRASE), None, None)
    again = laptop.shows()
    join(phone, again.code, laptop.server)
    assert again.device().status == "active"
    assert [device.status for device in laptop.vault.devices()] == ["this", "ended", "active"]


def test_shower_that_cannot_reach_the_server_shows_no_code(laptop: Laptop, tmp_path: Path) -> None:
    laptop.server = "http://127.0.0.1:9"
    shown = laptop.shows()
    assert shown.code == ""
    with pytest.raises(RemoteUnreachable):
        shown.device()


# ── a hostile server ────────────────────────────────────────────────────────────────────────────────


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
    answer: Reply, error: type[MemsealError], hostile: tuple[Laptop, HostileServer], tmp_path: Path
) -> None:
    laptop, server = hostile
    lying = server.lying(lambda asked, reply: answer if asked.is_("GET", "/v1/pairing/") else reply)
    with lying, pytest.raises(error):
        join(tmp_path / "phone", "4821-3903-5174-2007", laptop.server)
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
