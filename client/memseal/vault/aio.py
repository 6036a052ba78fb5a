"""The same vault for asyncio apps: each verb runs in a thread, so the event loop never waits for disk or network."""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from memseal.errors import VaultClosed
from memseal.vault.copies.repairing import Repair
from memseal.vault.folder.device import Retention
from memseal.vault.keys.roster import DeviceInfo
from memseal.vault.remote.background import LiveSync
from memseal.vault.remote.standing import OnState, SyncState
from memseal.vault.vault import Vault

P = ParamSpec("P")
R = TypeVar("R")


def _awaited(
    verb: Callable[Concatenate[Vault, P], R],
) -> Callable[Concatenate["AsyncVault", P], Coroutine[Any, Any, R]]:
    """Return the verb as a coroutine of `AsyncVault`, with the same arguments, result, errors and docstring."""

    @functools.wraps(verb)
    async def call(self: "AsyncVault", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.run(verb, *args, **kwargs)

    return call


class AsyncVault:
    """A `Vault` whose verbs are awaited; they run one after the other, in a thread of their own.

    A verb that was begun is finished even if its task is cancelled: a write is never left half done.
    """

    def __init__(self, vault: Vault, thread: ThreadPoolExecutor) -> None:
        """Take an open vault and its thread; apps use `create`, `open` or `join` instead."""
        self._vault = vault
        self._thread = thread
        self._closed = False

    @classmethod
    async def create(cls, *args: Any, **kwargs: Any) -> Self:
        """Make a new vault and open it; arguments and errors as `Vault.create`."""
        return await cls._begin(Vault.create, *args, **kwargs)

    @classmethod
    async def open(cls, *args: Any, **kwargs: Any) -> Self:
        """Open a vault; arguments and errors as `Vault.open`."""
        return await cls._begin(Vault.open, *args, **kwargs)

    @classmethod
    async def join(cls, *args: Any, **kwargs: Any) -> Self:
        """Join a vault; arguments and errors as `Vault.join`."""
        return await cls._begin(Vault.join, *args, **kwargs)

    @classmethod
    async def join_with_code(cls, *args: Any, **kwargs: Any) -> Self:
        """Join a vault by a code; arguments and errors as `Vault.join_with_code`."""
        return await cls._begin(Vault.join_with_code, *args, **kwargs)

    @classmethod
    async def recover(cls, *args: Any, **kwargs: Any) -> Self:
        """Come back without the passphrase; arguments and errors as `Vault.recover`."""
        return await cls._begin(Vault.recover, *args, **kwargs)

    @staticmethod
    async def repair(*args: Any, **kwargs: Any) -> Repair | None:
        """Write a repaired copy; arguments and errors as `Vault.repair`."""
        return await asyncio.to_thread(Vault.repair, *args, **kwargs)

    @classmethod
    async def _begin(cls, make: Callable[..., Vault], *args: Any, **kwargs: Any) -> Self:
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="memseal")
        try:
            vault = await asyncio.get_running_loop().run_in_executor(thread, functools.partial(make, *args, **kwargs))
        except BaseException:
            thread.shutdown(wait=False)
            raise
        return cls(vault, thread)

    async def run(self, verb: Callable[Concatenate[Vault, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run any function of the vault in its thread; raises `VaultClosed` after `close`."""
        if self._closed:
            raise VaultClosed("the vault was closed: open it again")
        work = functools.partial(verb, self._vault, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        """Close the vault and end its thread; doing it twice is harmless.

        A verb that was begun is finished; those that still wait for their turn raise `VaultClosed`.
        """
        self._closed = True
        try:
            await asyncio.get_running_loop().run_in_executor(None, self._vault.close)
        finally:
            self._thread.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        """Return the vault itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the vault."""
        await self.close()

    def __repr__(self) -> str:
        """Show where it is, and nothing of what is in it."""
        return f"<Async{repr(self._vault)[1:]}"

    async def pair(self, *args: Any, **kwargs: Any) -> DeviceInfo:
        """Let a new device join by a code, as `Vault.pair`; other verbs go on meanwhile. `show` runs in a thread."""
        return await asyncio.to_thread(self._vault.pair, *args, **kwargs)

    async def emergency_kit(self) -> str:
        """Return `Vault.emergency_kit`."""
        return await self.run(lambda vault: vault.emergency_kit)

    async def traces_kept(self) -> Retention:
        """Return `Vault.traces_kept`."""
        return await self.run(lambda vault: vault.traces_kept)

    async def sync_in_background(
        self, remote: str | None = None, *, on_state: OnState | None = None
    ) -> "AsyncLiveSync":
        """Follow a remote as `Vault.sync_in_background` does; `on_state` is called in the event loop."""
        loop = asyncio.get_running_loop()

        def tell(state: SyncState) -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed first
                loop.call_soon_threadsafe(on_state or _nobody, state)

        return AsyncLiveSync(await self.run(Vault.sync_in_background, remote, on_state=tell))

    remember = _awaited(Vault.remember)
    remember_many = _awaited(Vault.remember_many)
    adopt = _awaited(Vault.adopt)
    supersede = _awaited(Vault.supersede)
    retract = _awaited(Vault.retract)
    restore = _awaited(Vault.restore)
    tag = _awaited(Vault.tag)
    reindex = _awaited(Vault.reindex)
    plan_consolidation = _awaited(Vault.plan_consolidation)
    consolidate = _awaited(Vault.consolidate)
    undo_consolidation = _awaited(Vault.undo_consolidation)
    search = _awaited(Vault.search)
    recall = _awaited(Vault.recall)
    is_own_receipt = _awaited(Vault.is_own_receipt)
    get = _awaited(Vault.get)
    list = _awaited(Vault.list)
    count = _awaited(Vault.count)
    believed = _awaited(Vault.believed)
    history = _awaited(Vault.history)
    diff = _awaited(Vault.diff)
    search_by_time = _awaited(Vault.search_by_time)
    revert = _awaited(Vault.revert)
    proposals = _awaited(Vault.proposals)
    accept = _awaited(Vault.accept)
    reject = _awaited(Vault.reject)
    held_sources = _awaited(Vault.held_sources)
    hold_sources = _awaited(Vault.hold_sources)
    conflicts = _awaited(Vault.conflicts)
    resolve = _awaited(Vault.resolve)
    set_capture = _awaited(Vault.set_capture)
    capture = _awaited(Vault.capture)
    audit = _awaited(Vault.audit)
    to_erase = _awaited(Vault.to_erase)
    has_origin = _awaited(Vault.has_origin)
    traces = _awaited(Vault.traces)
    explain = _awaited(Vault.explain)
    note_injection = _awaited(Vault.note_injection)
    keep_traces = _awaited(Vault.keep_traces)
    sql = _awaited(Vault.sql)
    session_fence = _awaited(Vault.session_fence)
    keep_session = _awaited(Vault.keep_session)
    kept_session = _awaited(Vault.kept_session)
    kept_sessions = _awaited(Vault.kept_sessions)
    forget_session = _awaited(Vault.forget_session)
    export_bundle = _awaited(Vault.export_bundle)
    import_bundle = _awaited(Vault.import_bundle)
    change_passphrase = _awaited(Vault.change_passphrase)
    new_kit = _awaited(Vault.new_kit)
    new_recovery_code = _awaited(Vault.new_recovery_code)
    devices = _awaited(Vault.devices)
    rename_device = _awaited(Vault.rename_device)
    revoke = _awaited(Vault.revoke)
    rekey = _awaited(Vault.rekey)
    sync = _awaited(Vault.sync)
    compact = _awaited(Vault.compact)
    erase = _awaited(Vault.erase)
    erase_all = _awaited(Vault.erase_all)
    check_erasable = _awaited(Vault.check_erasable)
    erasures = _awaited(Vault.erasures)
    quarantine = _awaited(Vault.quarantine)
    dismiss = _awaited(Vault.dismiss)
    status = _awaited(Vault.status)
    verify = _awaited(Vault.verify)
    state_digest = _awaited(Vault.state_digest)


def _nobody(state: SyncState) -> None:
    """Take a state that nobody wants to know."""


class AsyncLiveSync:
    """A `LiveSync` whose waiting is awaited."""

    def __init__(self, live: LiveSync) -> None:
        """Take the handle; apps use `AsyncVault.sync_in_background`."""
        self._live = live

    @property
    def state(self) -> SyncState:
        """How it stands now."""
        return self._live.state

    def try_now(self) -> None:
        """Do not wait for the next try: the network is back."""
        self._live.try_now()

    async def stop(self) -> None:
        """End it, also in the midst of a request."""
        await asyncio.to_thread(self._live.stop)

    async def wait_until_synced(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109  a thread waits
        """Wait until all that was written before is on the remote; arguments and result as `LiveSync`'s."""
        return await asyncio.to_thread(self._live.wait_until_synced, timeout)

    async def wait_until_stopped(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109  a thread waits
        """Wait until it has ended; arguments and result as `LiveSync`'s."""
        return await asyncio.to_thread(self._live.wait_until_stopped, timeout)

    async def __aenter__(self) -> Self:
        """Return the handle itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        await self.stop()
