"""Keep the keys of a vault for medical data out of swap, and say where that failed (memory-model §3)."""

from collections.abc import Iterator

from memseal.errors import Finding
from memseal.memory.data_class import MEDICAL, SETTING, class_of
from memseal.vault.folder.opening import Opened


def data_class_of(opened: Opened) -> str:
    """Return the vault's data class."""
    return class_of(opened.logbook.view.state.setting(SETTING))


def lock_keys(opened: Opened) -> None:
    """Lock the pages of all keys that are open now, where the vault's class asks for it."""
    if data_class_of(opened) == MEDICAL:
        opened.pages.hold(_secrets(opened))


def refused_locks(opened: Opened) -> list[Finding]:
    """Return what the system would not do."""
    if not opened.pages.refused:
        return []
    detail = (
        f"{opened.pages.refused} pages with keys could not be locked in RAM, so they may get into swap:"
        " raise the limit of locked memory (ulimit -l), or encrypt the swap space"
    )
    return [Finding("keys_unlocked", "memory", detail)]


def _secrets(opened: Opened) -> Iterator[bytes]:
    keys, chain = opened.device.keys, opened.keychain
    for key in (keys.sign, keys.wrap, keys.local, chain.vault_key, *chain.secrets.history.values()):
        yield key.reveal()
    for former in chain.former.values():
        for key in former.values():
            yield key.reveal()
