"""Who joins by kit proves that the keyring it is shown is the kit's vault's, before it writes anything."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from memseal.errors import FormatError, KitOrPassphrase, MemsealError
from memseal.format.keyring import decode_version
from memseal.format.kit import parse_kit
from memseal.store.disk import OsDisk
from memseal.vault.keys import rekeying
from memseal.vault.keys.joining import join_with
from memseal.vault.keys.proving import KitOpener
from tests.scenarios.hostile_server import Asked, HostileServer, Lie, Reply, hostile_server
from tests.vault.small_vault import PASSPHRASE, new_folder, open_vault, stretch_of


@dataclass
class Scene:
    """A vault whose keyring has three versions on a server that can lie: a kit, a newer kit, another name."""

    server: HostileServer
    folder: Path
    old_kit: str
    kit: str

    def versions(self, folder: str = "vault") -> list[bytes]:
        """The versions in a folder, all as they are kept there."""
        return [path.read_bytes() for path in sorted((self.folder / folder / "keyring").iterdir())]

    def join(self, kit: str, passphrase: str = PASSPHRASE) -> None:
        stretch = stretch_of(passphrase)
        opener = KitOpener(parse_kit(kit), stretch)
        join_with(self.folder / "new" / "phone", OsDisk(), opener, stretch, self.server.url, "phone")

    def nothing_was_written(self) -> bool:
        return not list((self.folder / "new").iterdir()) and {asked.method for asked in self.server.asked} == {"GET"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("first contact")
    with hostile_server(folder) as server:
        new_folder(folder / "vault")
        shutil.copytree(folder / "vault", folder / "as it was")
        with open_vault(folder / "vault") as vault:
            old_kit = vault.emergency_kit
            vault.sync(server.url)
            with vault._writing() as opened:
                rekeying.new_kit(opened, stretch_of(PASSPHRASE), None)
            vault.rename_device("laptop", "desk")
            kit = vault.emergency_kit
        with open_vault(folder / "as it was") as branch:
            branch.rename_device("laptop", "another name")
            branch.rename_device("another name", "yet another")
        new_folder(folder / "stranger")
        yield Scene(server, folder, old_kit, kit)


@pytest.fixture
def scene(made: Scene) -> Scene:
    shutil.rmtree(made.folder / "new", ignore_errors=True)
    (made.folder / "new").mkdir()
    return made


def showing(versions: Sequence[bytes]) -> Lie:
    """A server that shows these versions, whoever asks."""

    def lie(asked: Asked, reply: Reply) -> Reply:
        if not asked.is_("GET", "/keyring/"):
            return reply
        name = asked.path.rpartition("/")[2]
        return Reply(200, versions[-1 if name == "latest" else int(name) - 1])

    return lie


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


SHOWN: dict[str, tuple[Callable[[Scene], list[bytes]], type[MemsealError]]] = {
    "another vault": (lambda scene: scene.versions("stranger"), FormatError),
    "the keyring of before": (lambda scene: scene.versions("as it was")[:1], FormatError),
    "a branch without the newer kit": (lambda scene: scene.versions("as it was"), KitOrPassphrase),
    "nothing": (lambda scene: [b"", b"", b""], FormatError),
    "an older version that is empty": (lambda scene: [scene.versions()[0], b"", scene.versions()[2]], FormatError),
    "half a version": (lambda scene: [*scene.versions()[:2], cut(scene.versions()[2])], FormatError),
    "half an older version": (lambda scene: [cut(scene.versions()[0]), *scene.versions()[1:]], FormatError),
    "versions that changed places": (
        lambda scene: [scene.versions()[1], scene.versions()[0], scene.versions()[2]],
        FormatError,
    ),
    "one version left out": (lambda scene: [scene.versions()[0], scene.versions()[2]], FormatError),
    "the middle of a branch": (
        lambda scene: [scene.versions()[0], scene.versions("as it was")[1], scene.versions()[2]],
        FormatError,
    ),
    "the end without its sealed part": (lambda scene: [*scene.versions()[:2], stripped(scene)], FormatError),
}


def stripped(scene: Scene) -> bytes:
    return decode_version(scene.versions()[2]).stripped()


@pytest.mark.parametrize("name", SHOWN)
def test_keyring_that_is_not_the_kits_is_refused_before_anything_is_written(scene: Scene, name: str) -> None:
    shown, error = SHOWN[name]
    with scene.server.lying(showing(shown(scene))), pytest.raises(error):
        scene.join(scene.kit)
    assert scene.nothing_was_written()


def test_kit_of_before_opens_nothing_in_the_newest_keyring(scene: Scene) -> None:
    with scene.server.lying(showing(scene.versions())), pytest.raises(KitOrPassphrase):
        scene.join(scene.old_kit)
    assert scene.nothing_was_written()


def test_wrong_passphrase_writes_nothing(scene: Scene) -> None:
    with scene.server.lying(), pytest.raises(KitOrPassphrase):
        scene.join(scene.kit, "another passphrase")
    assert scene.nothing_was_written()


def test_true_keyring_is_joined(scene: Scene) -> None:
    """The neighbour of all of these: what they refuse is not the way they ask."""
    with scene.server.lying():
        scene.join(scene.kit)
    assert [path.name for path in (scene.folder / "new").iterdir()] == ["phone"]
    with open_vault(scene.folder / "new" / "phone") as phone:
        assert [device.name for device in phone.devices()] == ["desk", "phone"]
