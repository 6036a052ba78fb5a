"""Look at the place of a vault before anything is asked: that one is there, or that one can be made."""

from pathlib import Path

import platformdirs

from memseal.errors import VaultExists, VaultMissing
from memseal.store.disk import OsDisk
from memseal.store.folder import VaultFolder


def default_vault() -> Path:
    """Return where a person's vault lies if they do not say."""
    return platformdirs.user_data_path("memseal", appauthor=False) / "default.vault"


def vault_place(path: Path | None) -> Path:
    """Return where the vault that the options name is; raises `VaultMissing` with what to do."""
    place = path or default_vault()
    if not _is_vault(place):
        raise VaultMissing(
            f"no vault is at {place}: `memseal init` makes one, `memseal join` brings one from another device,"
            " --vault or MEMSEAL_VAULT names another place"
        )
    return place


def free_place(path: Path | None) -> Path:
    """Return where a vault is to be made; raises `VaultExists` with what is there and what to do."""
    place = new_place(path)
    if _is_vault(place):
        raise VaultExists(
            f"a vault is at {place} already: `memseal status --vault {place}` says which;"
            " another one needs another place, --vault PATH"
        )
    if not OsDisk().is_free(place):
        what = "a folder with other things in it" if place.is_dir() else "a file"
        raise VaultExists(f"{what} is at {place}: give an empty or a new folder with --vault PATH")
    return place


def new_place(path: Path | None) -> Path:
    """Return where a vault is to be made; the folders above it are made only where the place was not chosen."""
    if path is not None:
        return path
    place = default_vault()
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return place


def _is_vault(place: Path) -> bool:
    return VaultFolder(_whole(place), OsDisk()).exists()


def _whole(place: Path) -> Path:
    try:
        return place.expanduser().absolute()
    except RuntimeError:
        return place
