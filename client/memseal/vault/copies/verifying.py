"""Read a vault's files anew and say what is wrong with them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from memseal.errors import Finding, FormatError, MemsealError
from memseal.format.checkpoint import check_part_preamble
from memseal.format.floor import Floor
from memseal.format.log import End
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.records import Place
from memseal.index.view import PassingView
from memseal.store.folder import DEVICE, KEYRING, LOGS, VaultFolder
from memseal.vault.folder import session_files
from memseal.vault.folder.cache import VIEW, cache_damage
from memseal.vault.folder.checkpoints import checkpoint_file, floor_to_load, part_file, read_manifest
from memseal.vault.folder.device import decode_device_file_marks
from memseal.vault.folder.framing import frames
from memseal.vault.folder.keychain import load_keyring
from memseal.vault.folder.log import Log
from memseal.vault.folder.log_files import LogFiles
from memseal.vault.folder.logbook import Logbook
from memseal.vault.folder.opening import Opened, apply_checkpoint, logs_hold_all
from memseal.vault.folder.tracing import Traces
from memseal.vault.remote.status import all_findings

Progress = Callable[[int, int], None]
"""Is told how many bytes are done, of how many."""


def verify(opened: Opened, *, read_data: bool = True, progress: Progress | None = None) -> list[Finding]:
    """Return all findings, each with what to do next.

    Always looked at: device file, keyring, how each log begins and where its records stand, the checkpoint's manifest,
    that its parts are there, and how files of traces and kept sessions are framed. With `read_data` every byte:
    records, chains, signatures, parts, traces, sessions, cache. Of a log no more than a piece is held, and nothing of
    what it says.
    """
    watched = _Watched(opened.folder, progress, _size(opened)) if progress else opened.folder
    findings = [*_keys(watched, opened), *(_data(watched, opened) if read_data else _structure(watched, opened))]
    if progress:
        progress(_size(opened), _size(opened))
    marks = opened.device.marks
    return [_advised(finding, alone=not marks.remotes) for finding in dict.fromkeys(findings)]


def _keys(folder: VaultFolder, opened: Opened) -> Iterator[Finding]:
    yield from opened.findings
    try:
        decode_device_file_marks(folder, opened.device)
    except MemsealError as error:
        yield Finding(error.code, DEVICE, str(error))
    try:
        load_keyring(folder, opened.device.vault_id)
    except MemsealError as error:
        yield Finding(error.code, KEYRING, str(error))


def _fresh_logbook(folder: VaultFolder, opened: Opened) -> Logbook:
    view = PassingView(pin=opened.logbook.view.pinned)
    return Logbook(folder, opened.keychain, opened.device.keys.sign, view, opened.device.marks.rewritten)


# ── all bytes ───────────────────────────────────────────────────────────────────────────────────────


def _data(folder: VaultFolder, opened: Opened) -> Iterator[Finding]:
    logbook = _fresh_logbook(folder, opened)
    try:
        apply_checkpoint(folder, opened.device, logbook)
        logbook.load({})
    finally:
        logbook.view.close()
    yield from (*logbook.findings, *logbook.torn, *logbook.hidden(), *logbook.misnamed())
    yield from Traces(folder).damage(opened.device)
    yield from session_files.damage(opened, folder, read_data=True)
    cache = cache_damage(folder, opened.device)
    if cache is not None:
        yield cache


class _Watched(VaultFolder):
    """A vault's folder that tells how much of it was read; what is read twice counts once."""

    def __init__(self, folder: VaultFolder, progress: Progress, size_bytes: int) -> None:
        super().__init__(folder.path, folder.disk)
        self._progress = progress
        self._size_bytes = size_bytes
        self._furthest: dict[str, int] = {}
        self._done = 0

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        content = super().read(name, start, end)
        before, here = self._furthest.get(name, 0), start + len(content or b"")
        if here > before:
            self._furthest[name] = here
            self._done += here - before
            self._progress(min(self._done, self._size_bytes), self._size_bytes)
        return content


def _size(opened: Opened) -> int:
    """Return how many bytes there are to read."""
    folder, floor = opened.folder, opened.keychain.keyring.public.floor
    names = [DEVICE, VIEW, *opened.traces.names(), *session_files.files(folder)]
    names += [f"{each}/{stem}.mseal" for each in (KEYRING, LOGS) for stem in folder.stems(each)]
    if floor is not None:
        names += [checkpoint_file(floor.checkpoint), *map(part_file, floor.parts)]
    return sum(folder.size(name) or 0 for name in names)


# ── the structure ───────────────────────────────────────────────────────────────────────────────────


def _structure(folder: VaultFolder, opened: Opened) -> Iterator[Finding]:
    noticed = all_findings(opened)
    yield from noticed
    # What was noticed when the vault was opened may be said in other words.
    known = {(finding.code, finding.where) for finding in noticed}
    yield from (finding for finding in _framework(folder, opened) if (finding.code, finding.where) not in known)


def _framework(folder: VaultFolder, opened: Opened) -> Iterator[Finding]:
    logbook = _fresh_logbook(folder, opened)
    logbook.open_all()
    logbook.view.close()
    yield from (*logbook.findings, *logbook.torn)
    for log in logbook.logs.values():
        yield from _framing(logbook.files, log, opened)
    floor, complete = floor_to_load(folder, opened.keychain)
    if floor is not None and (complete or not logs_hold_all(opened.device, logbook, floor)):
        yield from _checkpoint(folder, opened, floor)
    yield from Traces(folder).framing(opened.device)
    yield from session_files.damage(opened, folder, read_data=False)


def _framing(files: LogFiles, log: Log, opened: Opened) -> Iterator[Finding]:
    until, index = files.length(log.stream.stream_id), log.start.records
    if log.stream.limit is not None and log.stream.owner.id != opened.device.device_id:
        until = min(until, log.stream.limit.length)
    try:
        for place in log_frames(files, log.stream.stream_id, log.start, until):
            index = place.index + 1
    except FormatError as error:
        yield Finding(error.code, f"{log.name}#{index}", str(error))


def log_frames(files: LogFiles, stream_id: bytes, start: End, until: int) -> Iterator[Place]:
    """Yield where a log's records stand in the whole log, from their headers alone; raises `FormatError`."""
    return frames(partial(files.read, stream_id), start.length, start.records, until)


def _checkpoint(folder: VaultFolder, opened: Opened, floor: Floor) -> Iterator[Finding]:
    try:
        manifest = read_manifest(folder, opened.keychain, floor)
    except FormatError as error:
        yield Finding(error.code, checkpoint_file(floor.checkpoint), str(error))
        return
    for entry in manifest.parts:
        name = part_file(entry.id)
        size = folder.size(name)
        if size is None:
            yield Finding("checkpoint_missing", name, "a part of the vault's checkpoint is not here: sync")
            continue
        try:
            check_part_preamble(folder.read(name, 0, PREAMBLE_SIZE) or b"", opened.device.vault_id, entry.id)
        except FormatError as error:
            yield Finding(error.code, name, str(error))
        if size != entry.length:
            detail = "a part of the vault's checkpoint is damaged: sync to get it again"
            yield Finding("checkpoint_mismatch", name, detail)


# ── what to do ──────────────────────────────────────────────────────────────────────────────────────

_HEALED = "sync heals it where a remote has it whole; otherwise repair writes a copy of all that can be read"
_REPAIRED = "no remote has it: `memseal repair --to COPY` writes a copy of all that can be read"
_HARMLESS = "nothing else is touched by it"
_UPDATE = "update memseal"
_NEXT = {
    **dict.fromkeys(
        """
        preamble_short preamble_magic preamble_damaged preamble_reserved kind_mismatch vault_mismatch stream_mismatch
        record_torn record_header record_length record_order record_sealed record_padding record_content chain_broken
        signature_invalid signature_absent zstd_limit zstd_invalid msgpack_invalid column_length base_damaged
        base_unknown checkpoint_missing checkpoint_mismatch checkpoint_invalid withheld
        """.split(),
        _HEALED,
    ),
    **dict.fromkeys(
        ("column_value", "counter_limit", "counter_false", "stamp_invalid", "operation_invalid"), _HARMLESS
    ),
    **dict.fromkeys(("version_unknown", "suite_unknown"), _UPDATE),
    "epoch_mismatch": "put the newest keyring back, or sync",
}


def _advised(finding: Finding, *, alone: bool) -> Finding:
    """Return a finding of which the detail ends with what to do next; `alone`: the vault has no remote."""
    step = _NEXT.get(finding.code)
    step = _REPAIRED if alone and step == _HEALED else step
    if step is None or not finding.where.startswith((LOGS, "checkpoints", "parts")):
        return finding  # of the others, the detail says it
    return replace(finding, detail=f"{finding.detail.partition(': sync')[0]}; {step}")
