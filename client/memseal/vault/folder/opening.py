"""Open a vault's folder: keys, keyring, logs, view."""

import contextlib
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from memseal.errors import DiskError, Finding, LocalRollback, MemsealError, VaultMissing
from memseal.format.device_file import Stretch
from memseal.format.floor import Floor, Row
from memseal.format.keys import CacheSecret, StretchedPassphrase
from memseal.format.primitives import Cost, stretch
from memseal.index.view import View
from memseal.store.folder import CACHE, DEVICE, KEYRING, LOGS, VaultFolder
from memseal.store.pages import LockedPages
from memseal.vault.folder import session_files
from memseal.vault.folder.cache import VIEW, cache_nonce, load_cache, save_cache
from memseal.vault.folder.checkpoints import damage_of_incomplete, floors_to_load, load_checkpoint
from memseal.vault.folder.device import (
    CacheMark,
    Device,
    Marks,
    decode_device_file_marks,
    open_device,
    read_device_file,
)
from memseal.vault.folder.floors import floor_with, preambles
from memseal.vault.folder.keychain import BRANCH, Keychain, Keyring, load_keyring, strip, version_file
from memseal.vault.folder.log_files import log_file
from memseal.vault.folder.logbook import Logbook
from memseal.vault.folder.switching import finish_switch
from memseal.vault.folder.tracing import FENCE, Traces

# A cache is written when this many bytes of log were read that it does not cover: some twenty milliseconds of reading.
_CACHE_WORTH = 1 << 18
# What a memory in a checkpoint counts as: to open a vault whose logs are all covered takes its time too.
_COVERED_BYTES = 256
# So often a vault is read anew that another process was changing meanwhile; then it is taken as it seems to be.
_LOOKS = 8


def stretcher(passphrase: str) -> Stretch:
    """Return a function that stretches this passphrase, each salt and cost once."""
    known: dict[tuple[bytes, Cost], StretchedPassphrase] = {}

    def stretch_once(salt: bytes, cost: Cost) -> StretchedPassphrase:
        if (salt, cost) not in known:
            known[salt, cost] = stretch(passphrase, salt, cost)
        return known[salt, cost]

    return stretch_once


@dataclass
class Opened:
    """An open vault's parts."""

    folder: VaultFolder
    device: Device
    keychain: Keychain
    logbook: Logbook
    findings: list[Finding] = field(default_factory=list[Finding])
    """What was noticed while opening, beside the logbook's findings."""
    uncached: int = 0
    """Bytes of log that the cache does not cover."""
    pairing: bool = False
    """Whether a pairing goes on here, so that it is not yet known what became of the vault key that it handed over."""
    traces: Traces = field(init=False)
    pages: LockedPages = field(default_factory=LockedPages)
    """Where its keys lie in RAM, as far as the vault's data class wants that kept out of swap."""

    def __post_init__(self) -> None:
        """Begin the traces of this opening."""
        self.traces = Traces(self.folder)


def open_folder(folder: VaultFolder, stretch: Stretch, read_only: bool) -> Opened:
    """Open a vault.

    Raises `VaultMissing`, `PassphraseWrong`, `LocalRollback`, `DeviceEnded`, `DeviceFileDamaged` or `FormatError`.
    """
    if not folder.exists():
        raise VaultMissing(f"no vault is at {folder.path}: create one, or join with the emergency kit")
    for _ in range(_LOOKS if read_only else 0):
        before = _stand(folder)
        try:
            opened = _open(folder, stretch, read_only)
        except MemsealError:
            if _stand(folder) == before:
                raise
            continue
        if not (opened.findings or opened.logbook.findings) or _stand(folder) == before:
            return opened
        # Keys or logs of after a change were read with a keyring of before.
        opened.logbook.view.close()
    return _open(folder, stretch, read_only)


def _stand(folder: VaultFolder) -> tuple[bytes | None, list[str]]:
    """Return what another process changes with every change of keys or the floor, before it removes what was there."""
    return folder.read(DEVICE), folder.stems(KEYRING)


def _open(folder: VaultFolder, stretch: Stretch, read_only: bool) -> Opened:
    file = read_device_file(folder)
    keyring = load_keyring(folder, file.vault_id)
    device = open_device(file, keyring.public, stretch)
    keychain = Keychain.open(keyring, device.keys.wrap, device.signing_public)
    _check_keyring(device.marks, keyring, switching=folder.size(BRANCH) is not None)
    if not read_only:
        folder.take_over()
        if device.slots != file.slots:
            device.save(folder)
        device = finish_switch(folder, device, keychain)
    traced = folder.read(FENCE)
    opened = open_logs(folder, device, keychain)
    if read_only:
        opened.traces.begin_beside(traced or b"")
    else:
        finish_key_change(opened)
    return opened


def open_logs(folder: VaultFolder, device: Device, keychain: Keychain) -> Opened:
    """Read logs, from the cache where it holds and from the files for the rest."""
    cached = load_cache(folder, device, keychain)
    logbook, covered = cached or (_with_checkpoint(folder, device, keychain, View()), None)
    logbook.load(device.marks.logs)
    if cached is None and logbook.view.state.erasures.ids:
        # One that was passed over may still hold what was erased: an erase may have been cut short, here or in a sync.
        logbook.view.content_went = True
    if logbook.view.pin_moved:
        logbook = rebuilt(folder, device, keychain, logbook.view)
        covered = None
    opened = Opened(folder, device, keychain, logbook, list(device.findings))
    lengths = sum(log.end.length for log in logbook.logs.values())
    opened.uncached = _to_read(logbook) if covered is None else lengths - covered
    _note_rollback(opened)
    _note_put_back(opened)
    return opened


def _to_read(logbook: Logbook) -> int:
    """Return how many bytes an opening without a cache has to read, about."""
    covered = 0 if not logbook.floor_applied else _COVERED_BYTES * logbook.view.state.count("1")
    return covered + sum(log.end.length for log in logbook.logs.values())


def _with_checkpoint(folder: VaultFolder, device: Device, keychain: Keychain, view: View) -> Logbook:
    """Return a logbook whose view holds what the checkpoint says; its logs are still to be read."""
    logbook = Logbook(folder, keychain, device.keys.sign, view, device.marks.rewritten)
    apply_checkpoint(folder, device, logbook)
    return logbook


def apply_checkpoint(folder: VaultFolder, device: Device, logbook: Logbook) -> None:
    """Apply what the floor's checkpoint holds, and list what is wrong with it, if the logs do not hold it all."""
    newest = logbook.keychain.keyring.public.floor
    if newest is None:
        return
    floors = floors_to_load(folder, logbook.keychain)
    if not floors and logs_hold_all(device, logbook, newest):
        for finding in damage_of_incomplete(folder, logbook.keychain, newest):
            logbook.note(finding)
        return
    has_former, applied = bool(logbook.floor_applied), False
    for floor in floors or [newest]:
        findings = load_checkpoint(folder, logbook.keychain, logbook.view, floor)
        for finding in findings:
            logbook.note(finding)
        if findings:
            continue
        if applied or has_former or device.marks.settled == floor.checkpoint:
            logbook.floor_applied = logbook.floor_applied if applied else floor.checkpoint
            return
        # It was not compared yet with the one before, which may hold what it leaves out.
        logbook.floor_applied, applied = floor.checkpoint, True


def logs_hold_all(device: Device, logbook: Logbook, floor: Floor) -> bool:
    """Return whether the logs hold all that this device had, so that a floor's checkpoint is not missed yet."""
    return logbook.files.hold_all(preambles(device.vault_id, floor), device.marks.logs)


def follow_pin(opened: Opened) -> None:
    """Read the logs anew where the pinned model changed after vectors had come: those of the other model go."""
    if opened.logbook.view.pin_moved:
        opened.logbook = rebuilt(opened.folder, opened.device, opened.keychain, opened.logbook.view)
        opened.uncached = _to_read(opened.logbook)


def rebuilt(folder: VaultFolder, device: Device, keychain: Keychain, before: View) -> Logbook:
    """Return the logbook read anew from all logs, with vectors of the model that is pinned now."""
    view = View(pin=before.state_pin())
    before.close()
    logbook = _with_checkpoint(folder, device, keychain, view)
    logbook.load(device.marks.logs)
    view.release_pin()
    return logbook


def _check_keyring(marks: Marks, keyring: Keyring, *, switching: bool) -> None:
    """Notice a keyring that was put back to an older state."""
    newest = keyring.newest
    if switching and newest.digest == marks.branch:
        return  # of another branch, where its numbers may be lower
    if newest.public.version < marks.keyring:
        raise LocalRollback("the keyring was put back to an older version: restore the newer files, or join again")
    if newest.public.version == marks.keyring and newest.digest != marks.digest:
        raise LocalRollback("the keyring was replaced by another one: restore the files, or join again with the kit")


def _note_put_back(opened: Opened) -> None:
    """Notice a keyring version, device file or cache that was put back; what is newer still counts.

    Another process may be writing beside one that only reads. It notes what it is about to store before it does, so
    what seems to be older is looked at again with the marks of now; and again where meanwhile the cache became another.
    """
    nonce = cache_nonce(opened.folder)
    found = _put_back(opened, opened.device.marks, nonce)
    with contextlib.suppress(MemsealError):  # then the marks that were read before decide
        while found:
            marks = decode_device_file_marks(opened.folder, opened.device)
            before, nonce = nonce, cache_nonce(opened.folder)
            found = [each for each in _put_back(opened, marks, nonce) if each in found]
            if nonce == before:
                break
    opened.findings += found


def _put_back(opened: Opened, marks: Marks, nonce: bytes | None) -> list[Finding]:
    versions, found = opened.keychain.keyring.versions, list[Finding]()
    for version in versions[: marks.stripped]:
        if version.boxes is not None:
            where = version_file(version.public.version)
            found.append(Finding("local_rollback", where, "an older state was put back: it opens nothing"))
    # This device notes what it is about to make before it stores it.
    unknown = [version for version in versions[marks.keyring :] if version.digest != marks.making]
    own = opened.device.signing_public
    if marks.keyring and any(own in (key for key, _ in version.signatures) for version in unknown):
        detail = "older than the keyring: it was put back, and nothing is lost by it"
        found.append(Finding("local_rollback", DEVICE, detail))
    if nonce is not None and marks.caches and nonce not in [mark.nonce for mark in marks.caches]:
        # It was passed over, unless it still says what the logs say.
        found.append(Finding("local_rollback", VIEW, "an older state was put back: it costs only time"))
    return found


def _note_rollback(opened: Opened) -> None:
    """Notice logs that are shorter than this device has seen them, or missing; never write to such a log again."""
    # The newest floor's may still be to come.
    applied = floor_with(opened.keychain.keyring, opened.logbook.floor_applied)
    rows: Mapping[bytes, Row] = {} if applied is None else applied.rows
    for stream_id, mark in opened.device.marks.logs.items():
        log, row = opened.logbook.logs.get(stream_id), rows.get(stream_id)
        if row is not None and row.end.length >= mark.length:
            continue  # the checkpoint holds all that was seen of it
        if log is None or max(log.end.length, log.stored) < mark.length:
            detail = "shorter than this device has seen it: synchronise to get the rest back, or restore the file"
            opened.findings.append(Finding("local_rollback", log_file(stream_id), detail))
            if log is not None:
                log.appendable = False


def finish_key_change(opened: Opened) -> None:
    """Write again what this device's ended keys had written and no remote has: a key change may have been cut short."""
    logbook = opened.logbook
    ends = {stream_id: log.stream.limit or log.end for stream_id, log in logbook.logs.items()}
    logbook.reemit(ends, secrets.token_bytes(4))
    cut_outlived(opened)
    strip_older(opened)


def cut_outlived(opened: Opened) -> None:
    """Cut the logs that were written again; the marks first, or a crash between looks like a file put back."""
    ended = opened.logbook.newest_own_end()
    if not opened.logbook.outlived and opened.device.marks.rewritten >= ended:
        return
    marks, logs = current_marks(opened), opened.logbook.logs
    # A log of which nothing is left is removed.
    there = {name: log.end for name, log in logs.items() if log.end.records}
    kept = {name: end for name, end in marks.logs.items() if name in there and there[name].length >= end.length}
    opened.device = opened.device.with_marks(replace(marks, logs=kept, rewritten=max(marks.rewritten, ended)))
    opened.device.save(opened.folder)
    opened.logbook.rewritten = opened.device.marks.rewritten
    opened.logbook.cut_outlived()


def strip_older(opened: Opened) -> None:
    """Take the sealed parts off older keyring versions, but those that alone give the key of a log here (§7)."""
    chain, versions = opened.keychain, opened.keychain.keyring.versions[:-1]
    kept = chain.still_needed(opened.logbook.epochs_in_use())
    stripped = min(kept, default=len(versions) + 1) - 1
    needless = [each for each in versions if each.boxes is not None and each.public.version not in kept]
    if needless:
        # First, or a log that was removed could come back when nothing opens it any more.
        opened.folder.settle(LOGS)
    for version in needless:
        strip(opened.folder, version)
    former = {number: keys for number, keys in chain.former.items() if number in kept}
    opened.keychain = opened.logbook.keychain = replace(chain, former=former)
    # The mark comes last: what is stripped by then and whole later was put back.
    if opened.device.marks.stripped != stripped:
        opened.device = opened.device.with_marks(replace(opened.device.marks, stripped=stripped))
        opened.device.save(opened.folder)


def drop_stale_cache(opened: Opened) -> None:
    """Forget and delete a cache that still holds what was erased, and the kept sessions, which may."""
    session_files.end_stale(opened)
    if opened.logbook.view.content_went:
        # The secret first: then no copy of it opens either, and what a crash leaves is deleted at the next opening.
        _mark_caches(opened, ())
        opened.folder.remove(VIEW)
        opened.logbook.view.content_went = False
        opened.uncached = _to_read(opened.logbook)


def clean_traces(opened: Opened, texts: Collection[str] = ()) -> None:
    """Take what was erased out of the traces; `texts` are the contents that went just now, where they are known."""
    # On a full disk the vault still opens and erases: the receipt says that the traces are pending.
    with contextlib.suppress(DiskError):
        opened.traces.forget(opened.device, opened.logbook.view.state.erasures.ids, texts)


def save_marks(opened: Opened) -> None:
    """Note durably what was seen, where that is more than was noted before."""
    marks = current_marks(opened)
    if marks != opened.device.marks:
        opened.device = opened.device.with_marks(marks)
        opened.device.save(opened.folder)


def write_cache(opened: Opened) -> None:
    """Seal the view for the next opening, where that will save enough time."""
    if opened.uncached >= _CACHE_WORTH:
        mark = CacheMark(secrets.token_bytes(12), CacheSecret(secrets.token_bytes(CacheSecret.SIZE)))
        there = cache_nonce(opened.folder)
        if there is None:
            # One that was removed must not come back after a power cut, beside marks that know the next one alone.
            opened.folder.settle(CACHE)
        # Noted first, so that a crash leaves no cache that seems to have been put back.
        _mark_caches(opened, (mark, *(each for each in opened.device.marks.caches if each.nonce == there)))
        save_cache(opened.folder, opened.device, opened.logbook, mark)
        _mark_caches(opened, (mark,))
        opened.uncached = 0


def _mark_caches(opened: Opened, caches: tuple[CacheMark, ...]) -> None:
    if opened.device.marks.caches != caches:
        opened.device = opened.device.with_marks(replace(opened.device.marks, caches=caches))
        opened.device.save(opened.folder)


def current_marks(opened: Opened) -> Marks:
    """Return the device's marks moved on to what is here now; a log's mark never goes back."""
    marks, newest = opened.device.marks, opened.keychain.keyring.newest
    logs = dict(marks.logs)
    for stream_id, log in opened.logbook.logs.items():
        if stream_id not in logs or logs[stream_id].length < log.end.length:
            logs[stream_id] = log.end
    return replace(marks, keyring=newest.public.version, digest=newest.digest, logs=logs)
