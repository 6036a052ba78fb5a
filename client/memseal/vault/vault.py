"""The vault that apps hold."""

import contextlib
import secrets
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from memseal.embedding import Embedder, default_embedder
from memseal.errors import (
    DiskError,
    Finding,
    MemoryState,
    MemoryUnknown,
    RemoteUnknown,
    VaultClosed,
    VaultMissing,
    VaultReadOnly,
)
from memseal.format.device_file import Stretch
from memseal.memory.memory import (
    Draft,
    Memory,
    State,
    check_reason,
    draft,
    from_microseconds,
    parse_id,
    to_microseconds,
)
from memseal.memory.operations import Dismiss, Operation, Remember, Retraction, Tagging
from memseal.recall.normaliser import QueryNormaliser
from memseal.recall.packet import Packet
from memseal.recall.query import TimeRule
from memseal.recall.receipt import Receipt
from memseal.recall.rendering import Count
from memseal.store.disk import OsDisk
from memseal.store.folder import LOCK, VaultFolder
from memseal.store.lock import VaultLock
from memseal.vault import (
    adopting,
    branching,
    bundle_import,
    bundles,
    erasing,
    joining,
    naming,
    passphrases,
    recalling,
    recovering,
    reindexing,
    rekeying,
    repairing,
    revoking,
    roster,
    surveying,
)
from memseal.vault.background import Access, LiveSync
from memseal.vault.batch import Batch
from memseal.vault.compacting import Compaction, compact, compact_when_due
from memseal.vault.covering import Quarantined, quarantine
from memseal.vault.creation import create_folder
from memseal.vault.doubling import keep_doubles
from memseal.vault.erasing import Erasure
from memseal.vault.opening import (
    Opened,
    drop_stale_cache,
    follow_pin,
    open_folder,
    save_marks,
    stretcher,
    write_cache,
)
from memseal.vault.recalling import Request
from memseal.vault.revoking import Revocation
from memseal.vault.roster import DeviceInfo
from memseal.vault.searching import Hit, counted, listed, search
from memseal.vault.settling import settle_floor
from memseal.vault.standing import OnState
from memseal.vault.status import Status, status_of
from memseal.vault.syncing import SyncReport
from memseal.vault.tending import make_room, tend
from memseal.vault.verifying import verify
from memseal.vault.writing import (
    Vectors,
    embedded_vectors,
    given_vectors,
    item_embeddings,
    new_id,
    new_memories,
    read_items,
    remember_batches,
)

EmbedderChoice = Embedder | None | Literal["default"]


class Vault:
    """One person's memories, open: every method is safe under threads, every write durable when it returns.

    Use `Vault.create`, `Vault.open` or `Vault.join`, and `close` it, or use it as a context manager.
    """

    def __init__(self, opened: Opened, lock: VaultLock | None, embedder: EmbedderChoice) -> None:
        """Take an opened folder; apps use `create`, `open` or `join` instead."""
        self._opened = opened
        self._lock = lock
        self._embedder: Embedder | None = default_embedder() if embedder == "default" else embedder
        self._busy = threading.RLock()
        self._closed = False
        self._live: list[LiveSync] = []
        self._rounds = threading.Lock()

    # ── a vault's life ──────────────────────────────────────────────────────────────────────────────

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        passphrase: str,
        *,
        device_name: str | None = None,
        embedder: EmbedderChoice = "default",
    ) -> Self:
        """Make a new vault in a folder that is not there or empty, and open it.

        Raises `VaultExists` where anything is at the path, `PassphraseEmpty`, or a `DiskError`; then nothing was made.
        """
        folder, _ = create_folder(
            _path(path), OsDisk(), passphrase, naming.own_name(device_name), stretcher(passphrase)
        )
        return cls.open(folder.path, passphrase, embedder=embedder)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        passphrase: str,
        *,
        read_only: bool = False,
        embedder: EmbedderChoice = "default",
    ) -> Self:
        """Open a vault, for writing unless `read_only`.

        Raises `VaultMissing`, `PassphraseWrong`, `VaultBusy` (open for writing elsewhere), `LocalRollback`,
        `DeviceEnded`, `DeviceFileDamaged` or `FormatError`. Damage to single records does not raise:
        `status().findings` lists it.
        """
        return cls._open(VaultFolder(_path(path), OsDisk()), stretcher(passphrase), read_only, embedder)

    @classmethod
    def _open(cls, folder: VaultFolder, stretch: Stretch, read_only: bool, embedder: EmbedderChoice) -> Self:
        if not folder.exists():
            raise VaultMissing(f"no vault is at {folder.path}: create one, or join with the emergency kit")
        lock = None if read_only else VaultLock(folder.path / LOCK)
        try:
            opened = open_folder(folder, stretch, read_only)
            if not read_only:
                _resume(opened)
            return cls(opened, lock, embedder)
        except BaseException:
            if lock is not None:
                lock.release()
            raise

    @classmethod
    def join(
        cls,
        path: str | PathLike[str],
        kit: str,
        passphrase: str,
        remote: str | None = None,
        *,
        device_name: str | None = None,
        embedder: EmbedderChoice = "default",
    ) -> Self:
        """Make this device one of a vault's devices, by its emergency kit and passphrase, and fetch the memories.

        `remote` is the server's address; the kit names it where it is known. Raises `KitMalformed`, `KitOrPassphrase`,
        `VaultExists`, `RemoteUnreachable`, `RemoteRefused` or `FolderKeys`; until it has joined, nothing is left.
        """
        folder = joining.join(_path(path), OsDisk(), kit, passphrase, remote, naming.own_name(device_name))
        return cls._fetched(folder, stretcher(passphrase), remote, embedder)

    @classmethod
    def join_with_code(
        cls,
        path: str | PathLike[str],
        code: str,
        passphrase: str,
        remote: str | None = None,
        *,
        device_name: str | None = None,
        embedder: EmbedderChoice = "default",
    ) -> Self:
        """Make this device one of a vault's devices, by a code that another one shows (`pair`), and fetch the memories.

        `remote` is the server's address; a code for a camera names it. `passphrase` is the vault's. Broken off, it is
        called again at the same path. Raises `PairingCodeMalformed` (nothing was sent), `PairingCodeWrong`,
        `PairingExpired`, `PairingGone`, `PairingTaken`, `PassphraseWrong`, or as `join` does.
        """
        # Imported here: what agrees on a key by a code is an extra.
        from memseal.vault import pairing

        stretch, name = stretcher(passphrase), naming.own_name(device_name)
        folder = pairing.join_with_code(_path(path), OsDisk(), code, stretch, remote, name)
        return cls._fetched(folder, stretch, remote, embedder)

    @classmethod
    def _fetched(cls, folder: VaultFolder, stretch: Stretch, remote: str | None, embedder: EmbedderChoice) -> Self:
        vault = cls._open(folder, stretch, False, embedder)
        try:
            vault.sync(remote)
        except BaseException:
            vault.close()
            raise
        return vault

    @classmethod
    def recover(
        cls,
        path: str | PathLike[str],
        recovery_code: str,
        new_passphrase: str,
        server: str | None = None,
        *,
        device_name: str | None = None,
        embedder: EmbedderChoice = "default",
    ) -> Self:
        """Come back without the passphrase: join by the recovery code alone, and make the new passphrase the vault's.

        Where the vault's folder is at `path`, what is in it stays; `server` is needed where the vault lives on one, or
        two keyrings could come to be. It is the one that the code names, if not given; an empty one means none.
        Broken off, it is called again with the same new passphrase. Raises `KitMalformed`, `RecoveryCodeWrong`,
        `PassphraseEmpty`, or as `join` does.
        """
        new = recovering.NewPassphrase(new_passphrase, stretcher(new_passphrase))
        name = naming.own_name(device_name)
        folder = recovering.enter(_path(path), OsDisk(), recovery_code, new, server, name)
        vault = cls._open(folder, new.stretch, False, embedder)
        try:
            with vault._writing() as opened:
                recovering.complete(opened, new, server)
        except BaseException:
            vault.close()
            raise
        return vault

    @classmethod
    def repair(
        cls,
        path: str | PathLike[str],
        passphrase: str,
        to: str | PathLike[str],
        *,
        agree: Callable[[surveying.RepairPlan], bool],
        progress: Callable[[int, int], None] | None = None,
    ) -> repairing.Repair | None:
        """Write a repaired copy of a damaged vault to a folder that is not there or empty; the vault itself stays.

        `agree` is shown the plan, and says whether to go on. None where nothing is damaged, or it was not agreed to.
        Go on with the copy alone: both are the same device. Raises as `open` does (a damaged keyring or device file
        heals by no copy: the error says what to do), or `VaultExists`.
        """
        source = VaultFolder(_path(path), OsDisk())
        return repairing.repair(source, _path(to), stretcher(passphrase), agree, progress)

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
            try:
                if self._lock is not None:
                    self._settle()
            finally:
                self._opened.logbook.view.close()
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

    # ── writing ─────────────────────────────────────────────────────────────────────────────────────

    def remember(
        self,
        content: str,
        *,
        source: str,
        kind: str = "note",
        tags: Iterable[str] = (),
        author: str | None = None,
        thread: str | None = None,
        position: int | None = None,
        captured_at: datetime | None = None,
        origin: str | None = None,
        embedding: ArrayLike | None = None,
    ) -> Memory:
        """Store one memory durably and return it.

        The same content, kind, author, thread and time again is the same memory: the first is returned, with the new
        tags added, and taken back into recall if it was retracted (one that was superseded stays so: what replaced it
        is to be superseded in turn). `kind` is one of
        fact, decision, preference, episode, hazard, note; `captured_at` an aware datetime; `embedding` has shape (d,).
        Raises `MemoryInvalid`, `VectorInvalid` or `TypeError` before anything is written.
        """
        what = draft(
            content,
            source=source,
            kind=kind,
            tags=tags,
            author=author,
            thread=thread,
            position=position,
            captured_at=captured_at,
            origin=origin,
        )
        return self._remember([what], None if embedding is None else np.atleast_2d(np.asarray(embedding)))[0]

    def remember_many(self, items: Iterable[Mapping[str, Any]], embeddings: ArrayLike | None = None) -> list[Memory]:
        """Store many memories in one durable write, all or none, and return them in order.

        `items` are mappings with `content` and the keywords of `remember`; `embeddings` has shape (n, d), or every item
        brings its own. What is there already is not stored twice, also within the items. Raises as `remember` does,
        naming the item.
        """
        plain, matrix = item_embeddings(list(items), embeddings)
        return self._remember(read_items(plain), matrix)

    def _remember(self, drafts: Sequence[Draft], embeddings: ArrayLike | None) -> list[Memory]:
        with self._writing() as opened:
            view = opened.logbook.view
            given = None if embeddings is None else given_vectors(view, embeddings, len(drafts))
            places, fresh = self._fresh(drafts)
            chosen = [drafts[place] for place in fresh]
            vectors: Vectors | None
            if given is not None:
                vectors = Vectors(given.model, given.codes if len(fresh) == len(drafts) else given.codes[fresh])
            else:
                vectors = embedded_vectors(view, self._embedder, chosen)
            now = _now()
            new = new_memories(chosen, now)
            again = self._again(drafts, places, now)
            if new or again:
                self._write([*remember_batches(view, new, vectors, now), *again])
            moment = from_microseconds(now)
            return [self._known(place) if isinstance(place, bytes) else _memory(new[place], moment) for place in places]

    def adopt(self, items: Iterable[Mapping[str, Any]]) -> int:
        """Take in memories of elsewhere in one durable write, all or none; returns how many were new.

        `items` are as for `remember_many`, each with an `origin`, and may have a `past`
        (`memseal.vault.adopting.Past`): when it was written, what it superseded, whether it was retracted. What is here
        already, or was erased here, is left as it is. Raises `MemoryInvalid` or `TypeError`, naming the item.
        """
        given = list(items)
        drafts = read_items([{name: item[name] for name in item if name != "past"} for item in given])
        pasts = [item.get("past") or adopting.Past() for item in given]
        with self._writing() as opened:
            arrivals = list(zip(drafts, pasts, strict=True))
            batches, new = adopting.adopt(opened.logbook.view, self._embedder, arrivals, _now())
            if batches:
                self._write(batches)
            return new

    def _fresh(self, drafts: Sequence[Draft]) -> tuple[list[bytes | int], list[int]]:
        """Return for each draft the id of the memory it is the same as, or its place among the new; and who is new."""
        state = self._opened.logbook.view.state
        first: dict[tuple[Any, ...], int] = {}
        places, fresh = list[bytes | int](), list[int]()
        for number, (each, known) in enumerate(zip(drafts, state.same_as(drafts), strict=True)):
            if known is not None:
                places.append(known)
                continue
            what = (each.content, each.kind, each.author, each.thread, each.captured_at)
            place = first.setdefault(what, len(fresh))
            if place == len(fresh):
                fresh.append(number)
            places.append(place)
        return places, fresh

    def _again(self, drafts: Sequence[Draft], places: Sequence[bytes | int], now: int) -> list[Batch]:
        """Return what changes on memories that are remembered again: back into recall, and tags they did not have."""
        wanted: dict[bytes, set[str]] = {}
        for what, place in zip(drafts, places, strict=True):
            if isinstance(place, bytes):
                wanted.setdefault(place, set()).update(what.tags)
        operations = list[Operation]()
        for target, tags in wanted.items():
            memory = self._known(target)
            if memory.state & State.RETRACTED:
                operations.append(Retraction(new_id(), target, False, now, "remembered again"))
            if more := sorted(tags.difference(memory.tags)):
                operations.append(Tagging(new_id(), target, now, tuple(more)))
        return [Batch(operations)] if operations else []

    def supersede(
        self,
        /,
        memory_id: str,
        content: str,
        *,
        source: str,
        reason: str | None = None,
        embedding: ArrayLike | None = None,
        **changes: Any,
    ) -> Memory:
        """Replace a memory by a new one and return that; the old one stays, out of recall.

        Kind, tags, author, thread and position carry over unless they are among `changes`. Raises `MemoryUnknown`,
        `MemoryState` where the memory was superseded already (supersede the newest), or as `remember` does.
        """
        with self._writing() as opened:
            old = self._get(memory_id)
            if old.state & State.SUPERSEDED:
                raise MemoryState(f"this memory was superseded by {old.superseded_by}: supersede that one")
            kept = {name: getattr(old, name) for name in ("kind", "tags", "author", "thread", "position")}
            what = draft(content, source=source, **{**kept, **changes})
            view = opened.logbook.view
            vectors = (
                embedded_vectors(view, self._embedder, [what])
                if embedding is None
                else given_vectors(view, np.atleast_2d(np.asarray(embedding)), 1)
            )
            now = _now()
            new = Remember(new_id(), what, now, of=parse_id(old.id), reason=check_reason(reason))
            self._write(remember_batches(view, [new], vectors, now))
            return self._known(new.id)

    def retract(self, memory_id: str, *, reason: str) -> Memory:
        """Take a memory out of recall, reversibly; retracting it again keeps the first reason.

        Raises `MemoryUnknown`.
        """
        return self._retract(memory_id, retracted=True, reason=reason)

    def restore(self, memory_id: str, *, reason: str | None = None) -> Memory:
        """Undo a retraction; a memory that is not retracted is returned as it is.

        Raises `MemoryUnknown`.
        """
        return self._retract(memory_id, retracted=False, reason=reason)

    def _retract(self, memory_id: str, *, retracted: bool, reason: str | None) -> Memory:
        with self._writing():
            memory = self._get(memory_id)
            if bool(memory.state & State.RETRACTED) == retracted:
                return memory
            target = parse_id(memory.id)
            self._write([Batch([Retraction(new_id(), target, retracted, _now(), check_reason(reason))])])
            return self._known(target)

    def tag(self, memory_id: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Memory:
        """Add and remove tags of a memory and return it; a tag added elsewhere at the same time stays.

        Raises `MemoryUnknown`, `MemoryInvalid` or `TypeError`.
        """
        with self._writing() as opened:
            memory = self._get(memory_id)
            state, target = opened.logbook.view.state, parse_id(memory.id)
            added = draft("x", source="x", tags=add).tags
            unwanted = set(draft("x", source="x", tags=remove).tags)
            removed = [row for row in state.tags_of(state.number_of(target) or 0) if row[0] in unwanted]
            operations: list[Operation] = []
            for where in dict.fromkeys((target, *(each for _, each, _ in removed))):
                gone = tuple((tag, by) for tag, each, by in removed if each == where)
                operations.append(Tagging(new_id(), where, _now(), added if where == target else (), gone))
            self._write([Batch(operations)])
            return self._known(target)

    def erase(self, memory_id: str, *, reason: str | None = None) -> Erasure:
        """Remove a memory's content for good, with its earlier and later versions, and say where it is gone.

        Here at once, on the server with a new epoch and a checkpoint without it, on other devices at their next
        synchronisation; what cannot be reached now is pending, and done by `sync`. Raises `MemoryUnknown`.
        """
        with self._writing() as opened:
            number = opened.logbook.view.state.number_of(parse_id(memory_id))
            if number is None:
                raise MemoryUnknown(f"no memory has the id {memory_id}")
            return erasing.erase(opened, number, new_id(), _now(), check_reason(reason), secrets.token_bytes(4))

    def erasures(self) -> Sequence[Erasure]:
        """Return the receipts of all erasures as they stand now, the earliest first."""
        with self._reading() as opened:
            return erasing.erasures(opened)

    def reindex(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Give vectors to the memories that have none of the pinned model, and return how many got one.

        Each step is durable: broken off, it goes on where it was. `progress` is called with (done, total). Raises
        `EmbedderUnavailable`, or `EmbedderAnswer`.
        """
        return reindexing.reindex(self._writing, self._write, self._embedder, progress)

    def _write(self, batches: Sequence[Batch]) -> None:
        opened = self._opened
        before = sum(log.end.length for log in opened.logbook.logs.values())
        opened.logbook.write(batches, secrets.token_bytes(4))
        if len(batches) > 1:
            # A write of several records is acknowledged when the marks know it: see `Logbook._settle`.
            save_marks(opened)
        opened.uncached += sum(log.end.length for log in opened.logbook.logs.values()) - before
        follow_pin(opened)

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────

    def search(
        self, /, query: str | None = None, *, vector: ArrayLike | None = None, limit: int = 10, **filters: Any
    ) -> list[Hit]:
        """Return at most `limit` memories related to the query, best first; none where nothing is.

        Words and meaning count together; without a model, words alone. `vector` is a ready query vector, shape (d,).
        Filters: `kind`, `author`, `thread`, `source`, `origin`, `tags` (all of them), `since` and `until` (aware
        datetimes, half-open; `written_since` and `written_until` on when it was stored), `state` (active, superseded,
        retracted, all). Raises `FilterUnknown`, `VectorInvalid`.
        """
        with self._reading() as opened:
            return search(opened.logbook.view, self._embedder, query, vector, limit, filters)

    def recall(
        self,
        /,
        query: str,
        budget: int = 4_000,
        *,
        count: Count = len,
        limit: int = 10,
        floor: float | None = None,
        time: TimeRule = "prefer",
        now: datetime | None = None,
        first_weekday: int = 0,
        normaliser: QueryNormaliser | None = None,
        show_secrets: bool = False,
        **filters: Any,
    ) -> Packet:
        """Return what is related to the query as a packet: text for a model within the budget, hits, gap and receipt.

        `count(packet.text) <= budget` always; `count` is `len`, or a tokenizer's. A time in the query ("last Tuesday")
        is resolved at `now` (aware; its zone counts, and weeks begin on `first_weekday`, 0 for Monday) and lifts the
        memories of then; with `time="only"` all others are left out, with "ignore" it is words alone. `floor` is the
        cosine below which meaning does not count, if not the embedder's. Keys, tokens and the like are masked in the
        text, unless `show_secrets`; hits have them. Filters, and what is raised, as for `search`.
        """
        asked = Request(query, budget, count, limit, floor, time, now, first_weekday, normaliser, show_secrets, filters)
        question = recalling.question_of(asked)
        with self._reading() as opened:
            looked = recalling.look(opened, self._embedder, question)
        return recalling.answer(asked, looked)

    def is_own_receipt(self, receipt: Receipt | Mapping[str, Any]) -> bool:
        """Return whether this device made a receipt (or its `to_value()`) for this vault, and nobody changed it."""
        with self._reading() as opened:
            return recalling.is_own(opened, receipt)

    def get(self, memory_id: str) -> Memory:
        """Return a memory by its id, whatever its state; raises `MemoryUnknown`."""
        with self._reading():
            return self._get(memory_id)

    def list(self, /, *, limit: int = 100, offset: int = 0, **filters: Any) -> Sequence[Memory]:
        """Return memories by time, newest first; filters as for `search`."""
        with self._reading() as opened:
            return listed(opened.logbook.view, limit, offset, filters)

    def count(self, /, **filters: Any) -> int:
        """Return how many memories there are; filters as for `search`."""
        with self._reading() as opened:
            return counted(opened.logbook.view, filters)

    def conflicts(self) -> Sequence[Sequence[Memory]]:
        """Return, for each memory that several others supersede, those others: the current one first."""
        with self._reading() as opened:
            state = opened.logbook.view.state
            return [state.memories(rivals) for _, rivals in state.conflicts()]

    def has_origin(self, origin: str) -> bool:
        """Return whether a memory with this `origin` is there: what an import has brought already."""
        with self._reading() as opened:
            return opened.logbook.view.state.has_origin(origin)

    def _get(self, memory_id: str) -> Memory:
        return self._known(parse_id(memory_id))

    def _known(self, memory_id: bytes) -> Memory:
        state = self._opened.logbook.view.state
        number = state.number_of(memory_id)
        if number is None:
            raise MemoryUnknown("no memory has this id: `list` shows what is there")
        return state.memories([number])[0]

    # ── copies ──────────────────────────────────────────────────────────────────────────────────────

    def export_bundle(
        self, target: bundles.Target, passphrase: str, *, progress: Callable[[int, int], None] | None = None
    ) -> int:
        """Write everything to one file (or binary stream) behind a passphrase of its own; returns how many memories.

        The file is there whole or not at all, one that was there is replaced, and only its owner may read it. It opens
        anywhere (`memseal.open_bundle`, `import_bundle`), holds no key of this vault, and takes 256 MiB of memory to
        open. `progress` is called with (done, total). Raises `PassphraseEmpty` or a `DiskError`.
        """
        with self._reading() as opened:
            return bundles.export_bundle(opened, target, passphrase, progress)

    def import_bundle(
        self,
        path: str | PathLike[str],
        passphrase: str,
        *,
        dry_run: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> bundle_import.BundleReport:
        """Take in what a bundle has and this vault lacks; what was erased here stays erased.

        Broken off, it goes on where it was; done twice, nothing comes twice. What is readable of a damaged bundle is
        taken, the report names the rest. With `dry_run` nothing is written. Raises `BundlePassphrase`, `FormatError` or
        a `DiskError`.
        """
        reach = self._reading if dry_run else self._writing
        with reach():
            pass  # before the long work of opening the bundle
        with bundles.open_bundle(path, passphrase) as bundle:
            return bundle_import.import_bundle(reach, _nothing if dry_run else self._write, bundle, progress)

    # ── keys and devices ────────────────────────────────────────────────────────────────────────────

    @property
    def emergency_kit(self) -> str:
        """The string that, with the passphrase, lets a new device join: a secret, to be kept on paper."""
        with self._reading() as opened:
            return rekeying.emergency_kit(opened)

    def change_passphrase(self, old: str, new: str, *, remote: str | None = None) -> None:
        """Change the passphrase: new keys for this device, a new emergency kit, a new epoch.

        Where the passphrase was changed on another device, `new` is that one, and this device takes it on. A vault that
        lives on a server needs it for this (`remote`, or the one it was last synchronised with). Raises
        `PassphraseWrong`, `PassphraseEmpty` or `RemoteUnreachable`; then nothing has changed.
        """
        with self._writing() as opened:
            passphrases.change(opened, stretcher(old), stretcher(new), new, remote)

    def new_kit(self, passphrase: str, *, remote: str | None = None) -> str:
        """Replace the emergency kit by a new one and return it; the old one opens nothing any more.

        `passphrase` is the vault's. Raises `PassphraseWrong`, or `RemoteUnreachable` as `change_passphrase` does.
        """
        with self._writing() as opened:
            rekeying.new_kit(opened, stretcher(passphrase), remote)
            return self.emergency_kit

    def new_recovery_code(self, *, remote: str | None = None) -> str:
        """Make a recovery code, which opens the vault alone, and return it: it is kept nowhere, and not shown again.

        The one before opens nothing any more, also where this was broken off: then make another. Raises as `rekey`.
        """
        with self._writing() as opened:
            return rekeying.new_recovery_code(opened, remote)

    def devices(self) -> Sequence[DeviceInfo]:
        """Return all devices of the vault, also those that were removed, in the order in which they came."""
        with self._reading() as opened:
            return roster.devices(opened)

    def pair(self, show: Callable[[str], None], *, scanned: bool = False, remote: str | None = None) -> DeviceInfo:
        """Let a new device join by a code, and return that device; `Vault.join_with_code` is its side.

        `show` is given the code: 16 digits to type, or with `scanned` a longer text for a QR code. It is good for two
        minutes and one attempt, and waited for here; other threads may use the vault meanwhile. Raises
        `PairingCodeWrong`, `PairingExpired`, `PairingUnfinished`, or `RemoteUnknown` where the vault is on no server.
        """
        from memseal.vault import pairing

        return pairing.pair(self._writing, show, remote, scanned=scanned)

    def rename_device(self, device: str, name: str, *, remote: str | None = None) -> None:
        """Give a device (its id or present name) another name; no keys change.

        Raises `DeviceUnknown`, `DeviceName`, or `RemoteUnreachable` as `change_passphrase` does.
        """
        with self._writing() as opened:
            naming.rename(opened, device, name, remote)

    def revoke(
        self, device: str, passphrase: str, *, seen: Iterable[str] | None = None, remote: str | None = None
    ) -> Revocation:
        """Remove a device (its id or name), and renew all keys that it knew: it reads and writes nothing from then on.

        The emergency kit of before, and a recovery code, open nothing any more: show the new ones. `seen` are the ids
        of the devices that the user was shown: where there are others, nothing is changed (`DeviceUnseen`). Not given,
        they are those that are here now. Raises `DeviceUnknown`, `DeviceIsThis`, `PassphraseWrong`, or
        `RemoteUnreachable` as `change_passphrase` does.
        """
        known = None if seen is None else frozenset(seen)
        with self._writing() as opened:
            return revoking.revoke(opened, device, stretcher(passphrase), known, remote)

    def rekey(self, *, remote: str | None = None) -> None:
        """Begin a new epoch, under a new vault key; no data is touched, and all older keys are kept for it.

        A vault that lives on a server needs it for this. Raises `RemoteUnreachable`.
        """
        with self._writing() as opened:
            rekeying.rekey(opened, remote)

    # ── remotes ─────────────────────────────────────────────────────────────────────────────────────

    def sync(
        self,
        remote: str | None = None,
        *,
        accept_rollback: bool = False,
        passphrase: str | None = None,
        invitation: str | None = None,
    ) -> SyncReport:
        """Exchange what is new with a server (`https://…`) or a folder, and say what was done.

        Without `remote`: the server of the last time. Raises `RemoteUnreachable` (nothing is lost, try again),
        `RolledBack` (the remote shows less than before; `accept_rollback=True` fills it up again), `KeyringForked` (it
        showed less to another device, which then changed keys; `accept_rollback=True` joins what both did, and takes
        the vault's `passphrase` where keys had ended here: then show the new kit of the report's `joined`),
        `RemoteRefused` (with `invitation_needed` the server's operator has to give an `invitation` for a new vault),
        `RemoteUnknown`, …
        """
        with self._writing() as opened:
            known = None if passphrase is None else stretcher(passphrase)
            report = branching.synchronise(
                opened, remote, accept_rollback=accept_rollback, passphrase=known, invitation=invitation
            )
            noticed = list[Finding]()
            with contextlib.suppress(*branching.can_wait(report)):
                noticed = tend(opened, remote, at_server=remote in (None, opened.device.marks.server))
            return replace(report, findings=[*report.findings, *noticed])

    def sync_in_background(self, remote: str | None = None, *, on_state: OnState | None = None) -> LiveSync:
        """Follow a server or a folder from now on, until the handle's `stop` or the vault's `close`.

        What is written goes there within a second, what others write comes as soon as it is there; what fails is tried
        again, later and later. `on_state` is told each change of its `SyncState`, in a thread of its own. It holds the
        vault only for moments. Without `remote`: the server of the last time. Raises `RemoteUnknown`, `VaultReadOnly`.
        """
        with self._writing() as opened:
            address = remote or opened.device.marks.server
        if not address:
            raise RemoteUnknown("no remote is known yet: give a server's address or a folder")
        live = LiveSync(Access(self._reading, self._settle_round, _rejoin, self._rounds), address, on_state)
        self._live = [each for each in self._live if each.state.phase != "stopped"] + [live]
        return live

    def _settle_round(self, live: LiveSync, opened: Opened, report: SyncReport) -> None:
        """Do what a round in the background leaves to be done, and let what came go on to other remotes."""
        tend(opened, None, at_server=report.remote == opened.device.marks.server)
        if report.pulled_bytes:
            for other in self._live:
                if other is not live:
                    other.written()

    def compact(self, *, remote: str | None = None, thorough: bool = True) -> Compaction | None:
        """Make a checkpoint of all that is here, and drop what it covers from the logs, here and on the server.

        `thorough`: what has no effect any more is taken out of earlier checkpoints too. None where there is nothing to
        do. Raises as `sync` does.
        """
        with self._writing() as opened:
            done = compact(opened, remote, thorough=thorough)
            make_room(opened, remote)  # a floor that another device made may have brought high counters
            return done

    def quarantine(self) -> Sequence[Quarantined]:
        """Return the records that could not be read or trusted, or were written by newer software."""
        with self._reading() as opened:
            return quarantine(opened.logbook)

    def dismiss(self, record: Quarantined) -> None:
        """Give up a record of the quarantine: it holds no checkpoint back any more. One that heals is applied."""
        with self._writing():
            self._write([Batch([Dismiss(new_id(), record.stream_id, (record.record,), _now())])])

    def status(self) -> Status:
        """Return what is here: counts, devices, findings, and what no server has yet."""
        with self._reading() as opened:
            return status_of(opened, self._embedder, read_only=self._lock is None)

    def verify(
        self, *, read_data: bool = True, progress: Callable[[int, int], None] | None = None
    ) -> Sequence[Finding]:
        """Look through the vault's files anew, without the cache, and return all that is wrong with them.

        `read_data=False` looks at the keys, how logs begin and where their records stand, and which parts are there: it
        is quick, and does not notice damage within a record. `progress` is called with (bytes done, bytes in all).
        """
        with self._reading() as opened:
            return verify(opened, read_data=read_data, progress=progress)

    def state_digest(self) -> bytes:
        """Return 32 bytes that are equal on two devices exactly if they hold the same state."""
        with self._reading() as opened:
            return opened.logbook.view.state.digest()

    # ── guards ──────────────────────────────────────────────────────────────────────────────────────

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


def _resume(opened: Opened) -> None:
    """Go on with a compaction, an erase or a join of branches that was broken off."""
    branching.bring_in(opened)
    drop_stale_cache(opened)
    keep_doubles(opened)
    settle_floor(opened)
    if not opened.device.marks.server:
        erasing.finish(opened, None)
    erasing.note_floors(opened)


def _rejoin(opened: Opened, remote: str) -> None:
    branching.synchronise(opened, remote, accept_rollback=False)


def _extent(opened: Opened) -> tuple[int, int]:
    """Return what grows with every write, and with every change of keys or the floor."""
    version = opened.keychain.keyring.public.version
    return version, sum(log.end.length for log in opened.logbook.logs.values())


def _path(path: str | PathLike[str]) -> Path:
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError:
        raise VaultMissing("no user has this name: give the path without ~") from None


def _nothing(batches: Sequence[Batch]) -> None:
    """Write nothing."""


def _now() -> int:
    return to_microseconds(datetime.now(UTC))


def _memory(operation: Remember, written_at: datetime) -> Memory:
    """Return a memory that was just written: as the state has it, without asking."""
    what = operation.draft
    return Memory(
        id=operation.id.hex(),
        content=what.content,
        kind=what.kind,
        source=what.source,
        written_at=written_at,
        captured_at=None if what.captured_at is None else from_microseconds(what.captured_at),
        tags=tuple(sorted(what.tags)),
        author=what.author,
        thread=what.thread,
        position=what.position,
        origin=what.origin,
    )
