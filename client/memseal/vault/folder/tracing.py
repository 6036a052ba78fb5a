"""Keep traces of what was given out: sealed files of this device, bounded by age and size (vault-format §8e).

`note` is the door for every surface; it never fails an answer.
"""

import contextlib
import secrets
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from memseal.errors import DiskError, Finding, FormatError
from memseal.format.content import chain_start
from memseal.format.derivation import trace_key
from memseal.format.keys import LocalKey, RecordKey
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.primitives import sha256
from memseal.format.trace import (
    NONCE_SIZE,
    Given,
    Piece,
    Sealed,
    Trace,
    began_of,
    check_trace_preamble,
    check_trace_size,
    read_traces,
    seal_trace,
    trace_id,
    trace_nonce,
    trace_preamble,
)
from memseal.recall.forgetting import shown_texts, without
from memseal.store.folder import TRACES, VaultFolder
from memseal.vault.folder.device import Device
from memseal.vault.folder.framing import frames

if TYPE_CHECKING:
    from memseal.vault.folder.opening import Opened

Surface = Literal["search", "recall", "injection", "capture", "proposal"]
TURN_CHARS: Final = 500
FENCE: Final = f"{TRACES}/fence"
_FENCE_LABEL: Final = b"memseal/v1/trace-fence"
_FILE_BYTES: Final = 4 << 20  # a sixteenth of what is kept if not set otherwise: retention drops whole files
_DAY: Final = 86_400_000_000  # µs
_MEGABYTE: Final = 1 << 20


@dataclass
class _File:
    """The file that this opening writes: what its next record needs."""

    name: str
    began: int
    local: LocalKey
    key: RecordKey
    preamble: bytes
    chain: bytes
    records: int = 0
    size: int = 0


class Traces:
    """The traces of one opening of a vault: written one by one under a lock of their own, read from all files."""

    def __init__(self, folder: VaultFolder) -> None:
        """Take the vault's folder; nothing is read yet."""
        self._folder = folder
        self._busy = threading.Lock()
        self._file: _File | None = None
        self._fence: bytes | None = None
        self._erased = frozenset[str]()
        self.off = False
        """Whether this opening keeps none."""
        self.unwritten = 0
        """How many could not be written."""

    def begin_beside(self, fence: bytes) -> None:
        """Begin an opening without the lock: another process may erase meanwhile, and then has another fence."""
        self._fence = fence

    def wanted(self, device: Device) -> bool:
        """Whether traces are kept, so that making one is worth its time."""
        return not self.off and bool(device.marks.traces.days and device.marks.traces.megabytes)

    def note(self, device: Device, trace: Trace) -> str | None:
        """Write a trace and return its id; None where none is kept, or it could not be written."""
        with self._busy:
            if not self.wanted(device):
                return None
            try:
                if self._is_fenced():
                    return None
                # An answer that was being made while another thread erased comes after the traces were gone through.
                self._append(device, without(trace, self._erased, ()) if self._erased else trace)
                return None if self._took_back() else trace.id
            except (DiskError, FormatError):
                # An answer is worth more than its trace; `finding` says how many are missing.
                self._file = None
                self.unwritten += 1
                return None

    def stop(self) -> None:
        """Keep no more in this opening."""
        with self._busy:
            self.off = True

    def finding(self) -> Finding | None:
        """Return that traces are missing, if any are."""
        if not self.unwritten:
            return None
        return Finding("trace_unwritten", TRACES, f"{self.unwritten} traces could not be written: see to the disk")

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────

    def read(self, device: Device, since: int | None = None, until: int | None = None) -> Iterator[Trace | Finding]:
        """Yield the traces of files that can hold some of a time, in µs since 1970, and what is wrong with them."""
        for nonce in self._nonces():
            if until is not None and began_of(nonce) > until:
                return
            if since is None or began_of(nonce) + _DAY >= since:
                yield from self._read_file(device, nonce)

    def size(self) -> tuple[int, int]:
        """Return how many files there are, and their bytes."""
        sizes = [self._folder.size(_name(nonce)) or 0 for nonce in self._nonces()]
        return len(sizes), sum(sizes)

    def _read_file(self, device: Device, nonce: bytes) -> list[Trace | Finding]:
        name = _name(nonce)
        size = self._folder.size(name)
        try:
            check_trace_size(size or 0)  # first: what is too large for a file of traces is too large to be read at once
            content = self._folder.read(name)
            if content is None:
                return []  # swept meanwhile
            check_trace_preamble(content, device.vault_id, device.device_id, nonce)
        except FormatError as error:
            return [Finding(error.code, name, str(error))]
        found = list[Trace | Finding]()
        for local in (*(each.key for each in device.marks.former_locals), device.keys.local):
            key = trace_key(local, device.vault_id, device.device_id, nonce)
            found = list(read_traces(name, key, memoryview(content)))
            if any(isinstance(each, Trace) for each in found):
                break
        return found

    def _nonces(self) -> list[bytes]:
        nonces = list[bytes]()
        for stem in self._folder.stems(TRACES):
            try:
                nonce = bytes.fromhex(stem)
            except ValueError:
                continue
            if len(nonce) == NONCE_SIZE and nonce.hex() == stem:
                nonces.append(nonce)
        return nonces

    # ── writing ─────────────────────────────────────────────────────────────────────────────────────

    def _append(self, device: Device, trace: Trace) -> None:
        file = self._file
        is_current = (
            file is not None
            and file.local is device.keys.local
            and file.size < _FILE_BYTES
            and 0 <= trace.at - file.began < _DAY
            and self._folder.size(file.name) == file.size
        )
        if file is None or not is_current:
            file = _begun(device, trace.at)
        sealed = seal_trace(file.key, file.preamble, file.records, file.chain, trace)
        self._folder.jot(file.name, file.size, sealed.record if file.size else file.preamble + sealed.record)
        _extend(file, sealed)
        self._file = file

    def _is_fenced(self) -> bool:
        """Whether another process has erased something since this one opened, so that it may still serve it."""
        if self._fence is None or self._fence_now() == self._fence:
            return False
        self.off = True
        return True

    def _took_back(self) -> bool:
        """Take back what was just written where an erase went through the traces meanwhile, and could not see it."""
        if not self._is_fenced() or self._file is None:
            return False
        file, self._file = self._file, None
        self._folder.remove(file.name)
        return True

    def _fence_now(self) -> bytes:
        return self._folder.read(FENCE) or b""

    # ── what goes ───────────────────────────────────────────────────────────────────────────────────

    def forget(self, device: Device, erased: Collection[bytes], texts: Collection[str] = ()) -> None:
        """Take out what was erased, durably, unless it is known that nothing of it is left.

        `erased` are all ids that were ever erased, `texts` the contents that went just now, as far as they are known.
        """
        clean = _clean_fence(erased)
        with self._busy:
            self._erased = frozenset(each.hex() for each in erased)
            if self._fence_now() == clean:
                return
            # First: from now on nobody who opened before writes any more.
            self._folder.replace(FENCE, secrets.token_bytes(32))
            self._file = None
            files = {nonce: self._read_file(device, nonce) for nonce in self._nonces()}
            told = {*texts, *shown_texts((each for found in files.values() for each in _traces(found)), self._erased)}
            for nonce, found in files.items():
                self._clean(device, nonce, found, told)
            self._folder.settle(TRACES)
            self._folder.replace(FENCE, clean)

    def are_clean(self, erased: Collection[bytes]) -> bool:
        """Whether nothing is left in the traces of what was ever erased."""
        return self._fence_now() == _clean_fence(erased)

    def _clean(self, device: Device, nonce: bytes, found: Sequence[Trace | Finding], texts: set[str]) -> None:
        before = _traces(found)
        after = [without(trace, self._erased, texts) for trace in before]
        if before == after and len(before) == len(found):
            return
        if after:
            file = _begun(device, began_of(nonce))
            self._folder.replace(file.name, _pieces(file, after))
        # What cannot be read may hold it.
        self._folder.remove(_name(nonce))

    def sweep(self, device: Device) -> None:
        """Remove files that are too old, and the oldest where all together are too large."""
        kept = device.marks.traces
        nonces = self._nonces()
        oldest = present() - (kept.days + 1) * _DAY  # a file goes on for a day
        room, gone = kept.megabytes * _MEGABYTE if kept.days else 0, list[bytes]()
        for nonce in reversed(nonces):
            room -= self._folder.size(_name(nonce)) or 0
            if room < 0 or began_of(nonce) < oldest:
                gone.append(nonce)
        with self._busy, contextlib.suppress(DiskError):  # they take room, and nothing else
            for nonce in gone:
                self._folder.remove(_name(nonce))

    def damage(self, device: Device) -> list[Finding]:
        """Return what is wrong with the files, and that it costs nothing else."""
        found = [each for each in self.read(device) if isinstance(each, Finding)]
        return [_harmless(each) for each in found]

    def framing(self, device: Device) -> Iterator[Finding]:
        """Yield the same of the files' frames, without reading what is in them."""
        for nonce in self._nonces():
            name, index = _name(nonce), 0
            size, read = self._folder.size(name), partial(_read, self._folder, name)
            if size is None:
                continue  # swept meanwhile
            try:
                check_trace_preamble(read(0, PREAMBLE_SIZE), device.vault_id, device.device_id, nonce)
                check_trace_size(size)
            except FormatError as error:
                yield _harmless(Finding(error.code, name, str(error)))
                continue
            try:
                for place in frames(read, PREAMBLE_SIZE, 0, size):
                    index = place.index + 1
            except FormatError as error:
                if error.code != "record_torn":  # what a process that was killed leaves
                    yield _harmless(Finding(error.code, f"{name}#{index}", str(error)))

    def names(self) -> list[str]:
        """Return the names of all files."""
        return [_name(nonce) for nonce in self._nonces()]


_HARMLESS: Final = "only what it told is lost, and it goes with its age"


def _harmless(finding: Finding) -> Finding:
    return replace(finding, detail=f"{finding.detail}; {_HARMLESS}")


def _read(folder: VaultFolder, name: str, start: int, end: int) -> bytes:
    return folder.read(name, start, end) or b""


def note(
    opened: "Opened",
    surface: Surface,
    *,
    turn: str | None = None,
    served: Sequence[Given] = (),
    pieces: Sequence[Piece] | None = None,
    **others: Any,
) -> str | None:
    """Leave a trace of what a surface gave out, and return its id; None where none is kept or it cannot be written.

    `pieces` joined are the exact text, each with the memory that it shows, so that an erase can take it out; `served`
    are the memories that were given out as they are. `others` are further fields of `Trace`. Needs no lock of the
    vault's, and works on one that was closed meanwhile: it leaves none then.
    """
    at = present()
    trace = Trace(
        id=trace_id(at, secrets.token_bytes(8)),
        at=at,
        surface=surface,
        turn=checked_turn(turn),
        served=tuple(served),
        pieces=None if pieces is None else tuple(piece._replace(text=readable(piece.text or "")) for piece in pieces),
        **others,
    )
    return opened.traces.note(opened.device, trace)


def checked_turn(turn: str | None) -> str | None:
    """Return a caller's name for a turn; raises `TypeError` or `ValueError`."""
    if turn is None:
        return None
    if not isinstance(turn, str):
        raise TypeError(f"turn is a text, not {type(turn).__name__}")
    if not 0 < len(turn) <= TURN_CHARS or turn != readable(turn):
        raise ValueError(f"turn is a text of valid Unicode, of 1 to {TURN_CHARS} characters")
    return turn


def readable(text: str) -> str:
    """Return a text as UTF-8 can hold it, with `?` for lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _clean_fence(erased: Collection[bytes]) -> bytes:
    return sha256(_FENCE_LABEL, *sorted(erased)) if erased else b""


def present() -> int:
    """Return the moment in µs since 1970 UTC."""
    return time.time_ns() // 1000


def _begun(device: Device, at: int) -> _File:
    nonce = trace_nonce(at, secrets.token_bytes(4))
    preamble = trace_preamble(device.vault_id, device.device_id, nonce)
    local = device.keys.local
    key = trace_key(local, device.vault_id, device.device_id, nonce)
    return _File(_name(nonce), began_of(nonce), local, key, preamble, chain_start(preamble))


def _pieces(file: _File, traces: Sequence[Trace]) -> Iterator[bytes]:
    yield file.preamble
    for trace in traces:
        sealed = seal_trace(file.key, file.preamble, file.records, file.chain, trace)
        _extend(file, sealed)
        yield sealed.record


def _extend(file: _File, sealed: Sealed) -> None:
    file.size = (file.size or len(file.preamble)) + len(sealed.record)
    file.records, file.chain = file.records + 1, sealed.chain


def _traces(found: Sequence[Trace | Finding]) -> list[Trace]:
    return [each for each in found if isinstance(each, Trace)]


def _name(nonce: bytes) -> str:
    return f"{TRACES}/{nonce.hex()}.mseal"
