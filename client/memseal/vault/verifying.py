"""Read a vault's files anew and say what is wrong with them."""

from memseal.errors import Finding, MemsealError
from memseal.index.view import View
from memseal.store.folder import DEVICE, KEYRING
from memseal.vault.cache import cache_damage
from memseal.vault.device import decode_device_file_marks
from memseal.vault.keychain import load_keyring
from memseal.vault.logbook import Logbook
from memseal.vault.opening import Opened


def verify(opened: Opened) -> list[Finding]:
    """Return all findings: device file, keyring, every record of every log with its signatures, cache."""
    folder, device = opened.folder, opened.device
    findings = list(opened.findings)
    try:
        decode_device_file_marks(folder, device)
    except MemsealError as error:
        findings.append(Finding(error.code, DEVICE, str(error)))
    try:
        load_keyring(folder, device.vault_id)
    except MemsealError as error:
        findings.append(Finding(error.code, KEYRING, str(error)))
    view = View(pin=opened.logbook.view.pinned)
    logbook = Logbook(folder, opened.keychain, device.keys.sign, view, device.marks.rewritten)
    logbook.load({})
    view.close()
    findings += [*logbook.findings, *logbook.torn, *logbook.hidden(), *logbook.misnamed()]
    cache = cache_damage(folder, device)
    return list(dict.fromkeys([*findings, *([] if cache is None else [cache])]))
