"""Keep an open vault in step with a remote, from a thread of its own."""

import atexit
import contextlib
import secrets
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

from memseal.errors import (
    KeyringForked,
    MemsealError,
    RemoteRefused,
    RemoteUnreachable,
    VaultClosed,
)
from memseal.format.keys import SigningKey
from memseal.sync.messages import GetHeads, Refused, Request
from memseal.transport import Heard, LiveTransport
from memseal.transport.carrying import Carrier
from memseal.vault.folder.opening import Opened
from memseal.vault.remote.standing import OnState, SyncState, advice_on, is_final
from memseal.vault.remote.syncing import Round, SyncReport, explained, open_transport

# Below the minute after which many proxies give up a connection on which nothing comes.
_HOLD_SECONDS = 50
_HOLD_LEAST_SECONDS = 5
# How often a remote is asked that does not hold its answers: a folder, or a server with too many that wait.
_PACE_SECONDS = 5.0
# Between two questions, whatever the remote answers: one that always says "changed" costs no more than this.
_GAP_SECONDS = 0.2
# Writes that follow one another are sent together: the last of them this much later, the first at most that much.
_QUIET_SECONDS, _QUIET_MOST_SECONDS = 0.03, 0.4
_BACKOFF_SECONDS, _BACKOFF_MOST_SECONDS = 1.0, 300.0
# Somebody who writes is there, and perhaps on the network again.
_SOON_SECONDS = 10.0
_END_SECONDS = 10.0
# How often it looks whether the computer has slept, and what the two clocks differ by then.
_LOOK_SECONDS, _SLEPT_SECONDS = 15.0, 20.0
_random = secrets.SystemRandom()


@dataclass(frozen=True)
class Access:
    """What the thread may do with the vault: hold it for a moment, and finish what a round has left to do."""

    hold: Callable[[], AbstractContextManager[Opened]]
    settle: Callable[["LiveSync", Opened, SyncReport], None]
    rejoin: Callable[[Opened, str], object]
    """Follow a join of two branches of the keyring that another device made; raises `KeyringForked` where none did."""
    rounds: AbstractContextManager[object]
    """Held for a round: two remotes take turns."""


class LiveSync:
    """A vault that follows a remote, until `stop`; the vault's `close` stops it too. Safe under threads."""

    def __init__(self, access: Access, remote: str, on_state: OnState | None) -> None:
        """Take the vault and the remote's address; raises `RemoteUnknown` where that is none."""
        self._access, self._remote, self._on_state = access, remote, on_state
        self._transport: LiveTransport | None = None
        self._key: SigningKey | None = None
        self._changed = threading.Condition()
        self._state = SyncState("connecting", remote)
        self._wanted = self._done = 0
        self._ending = False
        self._woken = threading.Event()
        self._failures = 0
        self._hold, self._tag = _HOLD_SECONDS, ""
        self._next = 0.0
        self._drift = _drift()
        with contextlib.suppress(RemoteUnreachable):  # a drive that is not connected yet
            self._connect()
        self._thread = threading.Thread(target=self._run, name="memseal-sync", daemon=True)
        atexit.register(self.stop)  # before the interpreter stops daemon threads wherever they are
        self._thread.start()

    # ── for the app ─────────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> SyncState:
        """How it stands now."""
        with self._changed:
            return self._state

    def stop(self) -> None:
        """End it, also in the midst of a request; what was not sent is sent the next time. Twice is harmless."""
        self.break_off()
        if threading.current_thread() is not self._thread:
            self._thread.join(_END_SECONDS)  # not for ever: a callback may wait for who waits here
        atexit.unregister(self.stop)

    def break_off(self) -> None:
        """Let it end soon, and do not wait for it."""
        with self._changed:
            self._ending = True
            transport = self._transport
            self._changed.notify_all()
        self._woken.set()
        if transport is not None:
            transport.break_off()

    def wait_until_synced(self, timeout: float | None = None) -> bool:
        """Wait until all that was written before is on the remote, and what is there is here; False where it is not.

        It ends early where the synchronisation has stopped: `state` says why.
        """
        with self._changed:
            wanted = self._wanted
            self._changed.wait_for(lambda: self._is_over() or self._is_synced(wanted), timeout)
            return self._is_synced(wanted)

    def wait_until_stopped(self, timeout: float | None = None) -> bool:
        """Wait until it has ended, by `stop` or because the person has to act; False where it goes on."""
        with self._changed:
            return self._changed.wait_for(self._is_over, timeout)

    def try_now(self) -> None:
        """Do not wait for the next try: the network is back."""
        with self._changed:
            self._next = 0.0
        self._woken.set()

    def written(self) -> None:
        """Hear that something was written (the vault calls it)."""
        with self._changed:
            self._wanted += 1
            if self._state.phase == "offline":
                patience = getattr(self._state.error, "retry_after_seconds", 0.0)
                self._next = min(self._next, time.monotonic() + max(_SOON_SECONDS, patience))
        self._woken.set()

    def __enter__(self) -> Self:
        """Return the handle itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    def _is_over(self) -> bool:
        return self._ending or self._state.phase == "stopped"

    def _is_synced(self, wanted: int) -> bool:
        return self._state.phase == "synced" and self._done >= wanted

    # ── the thread ──────────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        try:
            while not self._is_over():
                try:
                    self._follow()
                except VaultClosed:
                    break
                except MemsealError as error:
                    self._fail(error)
        finally:
            # Also after an error inside memseal, which the thread's hook reports: nobody waits in vain.
            self._show(replace(self.state, phase="stopped", next_try_at=None))
            if self._transport is not None:
                self._transport.close()
            atexit.unregister(self.stop)

    def _follow(self) -> None:
        """Ask the remote what is new, and go on until something fails."""
        self._pause()
        question: Future[Heard] | None = None
        asked_at = 0.0
        try:
            while not self._is_over():
                if question is None and time.monotonic() >= self._next:
                    question, asked_at = self._ask(), time.monotonic()
                self._wait(question)
                if self._has_slept():
                    # A connection of before is dead, and nobody has said so.
                    question = None if question is None or question.cancel() else question
                    self._tag, self._next = "", 0.0
                elif question is not None and question.done():
                    self._hear(question, asked_at)
                    question = None
                elif self._is_due(question) and not self._is_over():
                    self._gather()
                    self._round(None)
        finally:
            if question is not None:
                question.cancel()

    def _pause(self) -> None:
        """Wait for the next try."""
        while not self._is_over():
            self._woken.clear()  # before the look: a `try_now` that comes after it is heard
            left = self._next - time.monotonic()
            if left <= 0:
                return
            self._woken.wait(min(left, _LOOK_SECONDS))
            if self._has_slept():
                self._next = 0.0  # perhaps it woke up in another network

    def _wait(self, question: Future[Heard] | None) -> None:
        """Wait until there is something to do: an answer, a write, the end, or time for the next question."""
        self._woken.clear()
        if self._is_over() or self._is_due(question) or (question is not None and question.done()):
            return
        left = _LOOK_SECONDS if question is not None else max(0.0, self._next - time.monotonic())
        self._woken.wait(min(left, _LOOK_SECONDS))

    def _has_slept(self) -> bool:
        """Return whether the computer has slept since the last look, or its clock was set."""
        before, self._drift = self._drift, _drift()
        return abs(self._drift - before) > _SLEPT_SECONDS

    def _is_due(self, question: Future[Heard] | None) -> bool:
        """Return whether something was written that goes without an answer which is about to come anyway."""
        return self._wanted > self._done and (question is None or bool(self._tag))

    def _gather(self) -> None:
        """Let writes that follow one another come together."""
        until = time.monotonic() + _QUIET_MOST_SECONDS
        while time.monotonic() < until and not self._is_over():
            self._woken.clear()
            if not self._woken.wait(_QUIET_SECONDS):
                return

    def _ask(self) -> Future[Heard]:
        question = self._connect().listen(self._tag, self._hold if self._tag else 0)
        question.add_done_callback(lambda _: self._woken.set())
        return question

    def _hear(self, question: Future[Heard], asked_at: float) -> None:
        """Take what the remote said, and set the time of the next question."""
        held = time.monotonic() - asked_at
        try:
            heard = question.result()
        except CancelledError:
            self._tag, self._next = "", time.monotonic() + _GAP_SECONDS  # by `stop`, or another key signs from now on
            return
        except RemoteUnreachable:
            if not self._tag or held < _HOLD_LEAST_SECONDS:
                raise
            # Something between gives up connections on which nothing comes: ask again at once, and for less long.
            self._hold, self._tag = max(_HOLD_LEAST_SECONDS, self._hold // 2), ""
            self._next = time.monotonic() + _GAP_SECONDS
            return
        self._next = time.monotonic() + _GAP_SECONDS
        answer = heard.answer
        if isinstance(answer, Refused) and answer.code == "rate" and self._tag:
            # No room to wait there: it is asked now and then, and answers at once.
            self._tag, self._next = "", time.monotonic() + self._spread(max(answer.retry_after_seconds, _PACE_SECONDS))
            return
        if answer is not None:
            self._round(heard)
            self._tag = heard.tag
        elif held < self._hold / 2:
            self._next = time.monotonic() + self._spread(_PACE_SECONDS)

    def _spread(self, seconds: float) -> float:
        return _random.uniform(seconds, 1.5 * seconds)

    # ── a round ─────────────────────────────────────────────────────────────────────────────────────

    def _round(self, heard: Heard | None) -> None:
        """Synchronise once; what was just heard is the answer to its first question."""
        wanted = self._wanted
        with self._access.rounds:
            report = None
            while report is None and not self._is_over():
                report = self._try_round(heard)
                heard = None
        if report is None:
            return
        with self._changed:
            self._done = wanted
            self._failures = 0
        last = self.state.report
        if last is not None and not report.pulled_bytes and not report.pushed_bytes:
            report = replace(last, findings=report.findings)  # nothing moved: what is told is what moved last
        self._show(SyncState("synced", self._remote, synced_at=datetime.now(UTC), report=report))

    def _try_round(self, heard: Heard | None) -> SyncReport | None:
        """Return what a round did; None where keys or logs were changed here meanwhile, and it is to be begun again."""
        with self._access.hold() as opened:
            transport = self._connected(opened)
            going = Round(opened, transport)
        try:
            done = self._drive(going, transport, heard)
        except RemoteRefused as error:
            with self._access.hold() as opened:
                if opened.device.keys.sign is not self._key:
                    return None  # it was signed with a key that was replaced here meanwhile
                raise explained(opened, error) from error
        except KeyringForked:
            with self._access.hold() as opened:
                self._access.rejoin(opened, transport.address)
            return None
        finally:
            with self._access.hold() as opened:
                report = going.finish(opened)
        if not done:
            return None
        with self._access.hold() as opened:
            self._access.settle(self, opened, report)
        return report

    def _drive(self, going: Round, transport: LiveTransport, heard: Heard | None) -> bool:
        """Carry a round's requests, the vault held only for their answers; False where it was overtaken."""
        known = None if heard is None else heard.answer

        def following() -> Request | None:
            with self._access.hold():
                ahead = going.session.ahead
                return None if ahead is None else ahead()

        with Carrier(transport) as carrier:
            while (request := going.session.next_request()) is not None:
                if known is not None and isinstance(request, GetHeads):
                    answer, known = known, None
                else:
                    self._show(replace(self.state, phase="syncing", error=None, next_try_at=None))
                    answer = carrier.carry(request, following if going.session.ahead is not None else None)
                with self._access.hold() as opened:
                    if not going.receive(opened, answer):
                        return False
        return True

    def _connect(self) -> LiveTransport:
        with self._access.hold() as opened:
            return self._connected(opened)

    def _connected(self, opened: Opened) -> LiveTransport:
        """Return the way to the remote, a new one where this device signs with another key since."""
        key = opened.device.keys.sign
        if self._transport is not None and self._key is key:
            return self._transport
        fresh = open_transport(self._remote, opened.device.vault_id, key)
        with self._changed:
            old, self._transport, self._key = self._transport, fresh, key
            ending = self._ending
        if old is not None:
            old.close()
        if ending:
            fresh.break_off()
        return fresh

    # ── how it stands ───────────────────────────────────────────────────────────────────────────────

    def _fail(self, error: MemsealError) -> None:
        """Stop where the person has to act, else set the time of the next try."""
        if self._is_over():
            return
        if is_final(error):
            self._show(replace(self.state, phase="stopped", error=error, advice=advice_on(error)))
            return
        self._failures += 1
        most = min(_BACKOFF_MOST_SECONDS, _BACKOFF_SECONDS * 2 ** min(self._failures, 16))
        # Anywhere up to there: many devices that lost one server do not come back at one moment.
        delay = max(_random.uniform(0, most), _GAP_SECONDS, getattr(error, "retry_after_seconds", 0.0))
        with self._changed:
            self._tag, self._next = "", time.monotonic() + delay
        next_try_at = datetime.now(UTC) + timedelta(seconds=delay)
        self._show(replace(self.state, phase="offline", error=error, next_try_at=next_try_at))

    def _show(self, now: SyncState) -> None:
        with self._changed:
            before, self._state = self._state, now
            self._changed.notify_all()
        if self._on_state is None or (now.phase == before.phase and now.error is before.error):
            return
        try:
            self._on_state(now)
        except Exception:  # noqa: BLE001  an app's callback may raise anything, and must not end the synchronisation
            kind, value, trace = sys.exc_info()
            if kind is not None:
                threading.excepthook(threading.ExceptHookArgs((kind, value, trace, threading.current_thread())))


def _drift() -> float:
    """Return by how much the time of day is ahead of the clock that stands still while the computer sleeps."""
    return time.time() - time.monotonic()
