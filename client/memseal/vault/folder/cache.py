"""The sealed cache of the open view: valid for one keyring, and logs that begin with the same bytes."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from memseal.errors import Finding, FormatError
from memseal.format.derivation import cache_key
from memseal.format.fields import U53, Fields
from memseal.format.keys import RecordKey
from memseal.format.log import End
from memseal.format.preamble import PREAMBLE_SIZE, Kind, Preamble, decode_preamble
from memseal.format.primitives import sha256_of
from memseal.index.image import SealedImage, damage, seal_image
from memseal.store.folder import CACHE, VaultFolder
from memseal.vault.folder.device import CacheMark, Device
from memseal.vault.folder.floors import check_base
from memseal.vault.folder.keychain import Keychain
from memseal.vault.folder.log import Log
from memseal.vault.folder.log_files import LogFiles
from memseal.vault.folder.logbook import Logbook

VIEW = f"{CACHE}/view.mseal"
_HASH_PIECE = 4 << 20  # with smaller ones the two threads wait for one another more than they work


def load_cache(folder: VaultFolder, device: Device, keychain: Keychain) -> tuple[Logbook, int] | None:
    """Return a logbook from the cache and the bytes of log it covers, or None where it is not there or not current."""
    key = _key(folder, device)
    if key is None:
        return None
    try:
        image = SealedImage(_reader(folder), key)
        bound = Fields(image.bound, "record_content", "cache")
        if bound.size("keyring", 32) != keychain.keyring.newest.digest:
            return None
        with ThreadPoolExecutor(1) as beside:
            # Hashing the logs and opening the cache take about as long as one another: two cores do them at once.
            logs = beside.submit(_covered_logs, LogFiles(folder), keychain, bound)
            view = image.view()
            covered = logs.result()
    except FormatError:
        # Damaged, of an older local key, or of other software: it only costs time, and `verify` names it.
        return None
    if covered is None:
        view.close()
        return None
    logbook = Logbook(folder, keychain, device.keys.sign, view, device.marks.rewritten)
    logbook.logs = {log.stream.stream_id: log for log in covered}
    logbook.floor_applied = bound.octets("floor")
    for row in bound.tuples("findings", 3):
        logbook.note(Finding(*row))
    return logbook, sum(log.end.length for log in covered)


def cache_nonce(folder: VaultFolder) -> bytes | None:
    """Return the nonce in the cache's preamble, or None where no cache is."""
    preamble = folder.read(VIEW, 0, PREAMBLE_SIZE)
    return None if preamble is None else preamble[-16:-4]


def save_cache(folder: VaultFolder, device: Device, logbook: Logbook, mark: CacheMark) -> None:
    """Seal the view, and what it is valid for, under a fresh nonce and secret."""
    preamble = Preamble(Kind.CACHE, 0, device.vault_id, device.device_id, mark.nonce).to_bytes()
    key = _key_of(device, mark)
    bound = {
        "keyring": logbook.keychain.keyring.newest.digest,
        "floor": logbook.floor_applied,
        "logs": [_row(logbook.files, log) for log in logbook.logs.values() if _opens(logbook.keychain, log)],
        "findings": [[finding.code, finding.where, finding.detail] for finding in logbook.findings],
    }
    folder.replace(VIEW, seal_image(logbook.view, bound, preamble, key))


def cache_damage(folder: VaultFolder, device: Device) -> Finding | None:
    """Return what is wrong with the cache file, or None."""
    content = folder.read(VIEW, 0, PREAMBLE_SIZE)
    if content is None:
        return None
    error: FormatError | None
    try:
        decode_preamble(content, Kind.CACHE, device.vault_id)
        key = _key(folder, device)
        # Without a key it was put back from before, which opening names, or is about to be removed.
        error = None if key is None else damage(_reader(folder), key)
    except FormatError as unreadable:
        error = unreadable
    return None if error is None else Finding(error.code, VIEW, f"{error}: it only costs time, and is made anew")


def _reader(folder: VaultFolder) -> Callable[[int, int], bytes]:
    return lambda start, end: folder.read(VIEW, start, end) or b""


def _key(folder: VaultFolder, device: Device) -> RecordKey | None:
    """Return the key of the cache that is there, or None where this device has none for it, or not any more."""
    try:
        parsed = decode_preamble(folder.read(VIEW, 0, PREAMBLE_SIZE) or b"", Kind.CACHE, device.vault_id)
    except FormatError:
        return None
    mark = next((mark for mark in device.marks.caches if mark.nonce == parsed.nonce), None)
    return None if mark is None else _key_of(device, mark)


def _key_of(device: Device, mark: CacheMark) -> RecordKey:
    return cache_key(device.keys.local, mark.secret, device.vault_id, device.device_id, mark.nonce)


def _covered_logs(files: LogFiles, keychain: Keychain, bound: Fields) -> list[Log] | None:
    """Return the logs as the cache saw them, or None where one on disk does not begin with the same bytes."""
    logs = list[Log]()
    for value in bound.array("logs"):
        row = Fields(value, "record_content", "cache")
        end = End(row.count("length", PREAMBLE_SIZE, U53), row.count("records"), row.octets("chain"))
        stream_id = row.size("stream", 16)
        stream = keychain.stream(files.preamble(stream_id), stream_id)
        base = files.base(stream_id)
        if base is not None:
            check_base(keychain.keyring, stream_id, base)
        if _stored_hash(files, Log.at(stream, base), end.length) != row.size("hash", 32):
            return None
        named = {bytes(stream): int(count) for stream, count in row.tuples("named", 2)}
        counter = row.count("counter", below=U53 + 1)
        log = Log(stream, end, counter, named, end.length, bool(row.get("appendable")))
        log.base = base
        log.claimed = {bytes(stream): int(claimed) for stream, claimed in row.tuples("claimed", 2)}
        if row.get("sound") is not None:
            log.sound = End(*row.array("sound"))
        logs.append(log)
    return logs


def _opens(keychain: Keychain, log: Log) -> bool:
    """Return whether the next opening has the key of a log: an erase ends an epoch, and what is left of its logs."""
    try:
        keychain.stream(log.stream.preamble, log.stream.stream_id)
    except FormatError:
        return False
    return True


def _row(files: LogFiles, log: Log) -> dict[str, object]:
    return {
        "stream": log.stream.stream_id,
        "length": log.end.length,
        "records": log.end.records,
        "chain": log.end.chain,
        "hash": _stored_hash(files, log, log.end.length),
        "counter": log.counter,
        "named": [[stream_id, count] for stream_id, count in log.named.items()],
        "claimed": [[stream_id, counter] for stream_id, counter in log.claimed.items()],
        "appendable": log.appendable,
        "sound": None if log.sound is None else [log.sound.length, log.sound.records, log.sound.chain],
    }


def _stored_hash(files: LogFiles, log: Log, length: int) -> bytes:
    """Return the SHA-256 of what is stored of a log's first `length` bytes."""
    stream_id, head = log.stream.stream_id, b"" if log.base is None else log.base.to_bytes()
    starts = range(log.start.length, length, _HASH_PIECE)
    pieces = (files.read(stream_id, start, min(start + _HASH_PIECE, length)) for start in starts)
    return sha256_of(chain((log.stream.preamble, head), pieces))
