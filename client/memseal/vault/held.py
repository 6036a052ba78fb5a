"""A vault that is held open: who may look, who may write, and how it is let go of."""

import contextlib
import secrets
import threading
from collections.abc import Generator, Sequence
from types import TracebackType
from typing import Literal, Self

from memseal.embedding import Embedder, default_embedder
from memseal.errors import (
    DiskError,
    VaultClosed,
    VaultReadOnly,
)
from memseal.store.lock import VaultLock
from memseal.vault.compaction.compacting import compact_when_due
from memseal.vault.folder.batch import Batch
from memseal.vault.folder.opening import (
    Opened,
    follow_pin,
    save_marks,
    write_cache,
)
from memseal.vault.remote.background import LiveSync

EmbedderChoice = Embedder | None | Literal["default"]


class Held:
    """What all parts of an open vault share."""

    def __init__(self, opened: Opened, lock: VaultLock | None, embedder: EmbedderChoice) -> None:
        """Take an opened folder; apps use `create`, `open` or `join` instead."""
        self._opened = opened
        self._lock = lock
        self._embedder: Embedder | None = default_embedder() if embedder == "default" else embedder
        self._busy = threading.RLock()
        self._closed = False
        self._live: list[LiveSync] = []
        self._rounds = threading.Lock()

    @contextlib.contextmanager
    def _reading(self) -> Generator[Opened]:
        with self._busy:
            if self._closed:
                raise VaultClosed("the vault was closed: open it again")
            yield self._opened

    @contextlib.contextmanager
    def _writing(self) -> Generator[Opened]:
        with self._reading() as opened:
            if self._lock is None:
                raise VaultReadOnly("the vault was opened read-only: open it for writing")
            before = _extent(opened)
            try:
                yield opened
            finally:
                if self._live and _extent(opened) != before:
                    for live in self._live:
                        live.written()

    def _write(self, batches: Sequence[Batch]) -> None:
        opened = self._opened
        before = sum(log.end.length for log in opened.logbook.logs.values())
        opened.logbook.write(batches, secrets.token_bytes(4))
        if len(batches) > 1:
            # A write of several records is acknowledged when the marks know it: see `Logbook._settle`.
            save_marks(opened)
        opened.uncached += sum(log.end.length for log in opened.logbook.logs.values()) - before
        follow_pin(opened)

    def close(self) -> None:
        """Seal the cache, note what was seen, let go of the lock; doing it twice is harmless."""
        for live in self._live:
            live.break_off()  # all first: one may wait for another's round
        for live in list(self._live):
            live.stop()
        with self._busy:
            if self._closed:
                return
            self._closed = True
            self._opened.traces.stop()
            try:
                if self._lock is not None:
                    self._settle()
            finally:
                self._opened.logbook.view.close()
                self._opened.pages.release()
                if self._lock is not None:
                    self._lock.release()

    def _settle(self) -> None:
        opened = self._opened
        save_marks(opened)
        # Both only save time: a full disk is no reason to fail after everything that counts was written.
        with contextlib.suppress(DiskError):
            if not opened.device.marks.server:
                compact_when_due(opened, None)
            write_cache(opened)

    def __enter__(self) -> Self:
        """Return the vault itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the vault."""
        self.close()

    def __repr__(self) -> str:
        """Show where it is, and nothing of what is in it."""
        return f"<Vault {str(self._opened.folder.path)!r}{' closed' if self._closed else ''}>"


def _extent(opened: Opened) -> tuple[int, int]:
    """Return what grows with every write, and with every change of keys or the floor."""
    version = opened.keychain.keyring.public.version
    return version, sum(log.end.length for log in opened.logbook.logs.values())
