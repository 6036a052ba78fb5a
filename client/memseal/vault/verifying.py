"""Read a vault's files anew and say what is wrong with them."""

from memseal.errors import Finding, MemsealError
from memseal.format.derivation import cache_key
from memseal.format.preamble import Kind, decode_preamble
from memseal.index.image import open_image
from memseal.index.view import View
from memseal.store.folder import DEVICE, KEYRING
from memseal.vault.device import decode_device_file_marks
from memseal.vault.keychain import load_keyring
from memseal.vault.logbook import Logbook
from memseal.vault.opening import VIEW, Opened


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
    logbook = Logbook(folder, opened.keychain, device.keys.sign, view)
    logbook.load({})
    view.close()
    findings += [*logbook.findings, *logbook.torn, *logbook.hidden(), *_cache_findings(opened)]
    return list(dict.fromkeys(findings))


def _cache_findings(opened: Opened) -> list[Finding]:
    content = opened.folder.read(VIEW)
    if content is None:
        return []
    device = opened.device
    try:
        parsed = decode_preamble(content, Kind.CACHE, device.vault_id)
        key = cache_key(device.keys.local, device.vault_id, device.device_id, parsed.nonce)
        open_image(memoryview(content), key).close()
    except MemsealError as error:
        return [Finding(error.code, VIEW, f"{error}: it only costs time, and is made anew")]
    return []
