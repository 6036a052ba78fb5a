"""Synchronise an open vault with a remote."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from memseal.errors import DeviceEnded, Finding, MemsealError, PassphraseWrong, RemoteRefused, RemoteUnknown
from memseal.format.keys import SigningKey
from memseal.store.disk import OsDisk
from memseal.sync.messages import Answer
from memseal.sync.session import Outcome, Seen, SyncSession
from memseal.transport import LiveTransport, Transport
from memseal.transport.carrying import Carrier
from memseal.transport.folder import FolderTransport
from memseal.vault.extras import extra
from memseal.vault.folder.device import RemoteMarks
from memseal.vault.folder.keychain import Keychain
from memseal.vault.folder.logbook import Logbook
from memseal.vault.folder.opening import Opened, current_marks, follow_pin, save_marks
from memseal.vault.remote.branches import Joined
from memseal.vault.remote.replica import VaultReplica
from memseal.vault.remote.status import all_findings


@dataclass(frozen=True)
class SyncReport:
    """What one synchronisation did: memories that came, bytes moved, and what was noticed."""

    remote: str
    new_memories: int
    pulled_bytes: int
    pushed_bytes: int
    findings: Sequence[Finding]
    joined: Joined | None = None
    """Where two branches of the keyring were joined: what takes the place of secrets that opened one of them."""


def open_transport(remote: str, vault_id: bytes, key: SigningKey, invitation: str | None = None) -> LiveTransport:
    """Return the way to a remote: a server's address, or a folder's path or `file:` URL.

    Raises `RemoteUnknown` for what is neither, `TypeError` for what is no text, `RemoteUnreachable` where no folder is.
    """
    if not isinstance(remote, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a remote is a text, not {type(remote).__name__}: str(path) for a folder")
    try:
        scheme, path = urlsplit(remote).scheme, Path(unquote(urlsplit(remote).path))
        folder = Path(remote).expanduser().absolute()
    except (ValueError, RuntimeError):
        raise RemoteUnknown("this is neither a server's address nor a folder's path") from None
    if scheme in ("http", "https"):
        with extra("sync"):
            from memseal.transport.http import HttpTransport

        return HttpTransport(remote, vault_id, key, invitation)
    if scheme == "file":
        if not path.is_absolute():
            raise RemoteUnknown("a folder's address is file:///path")
        return FolderTransport(path, vault_id, OsDisk())
    if scheme and len(scheme) > 1:  # one letter is a Windows drive
        raise RemoteUnknown(f"{scheme}: is no kind of remote: give https://… or a folder")
    return FolderTransport(folder, vault_id, OsDisk())


def sync(opened: Opened, remote: str | None, *, accept_rollback: bool, invitation: str | None = None) -> SyncReport:
    """Synchronise once; an invitation lets a new vault in at a server that asks for one."""
    address = remote or opened.device.marks.server
    if not address:
        raise RemoteUnknown("no remote is known yet: give a server's address or a folder")
    transport = open_transport(address, opened.device.vault_id, opened.device.keys.sign, invitation)
    try:
        return _sync(opened, transport, accept_rollback)
    except RemoteRefused as error:
        raise explained(opened, error) from error
    finally:
        transport.close()


def explained(opened: Opened, error: RemoteRefused) -> MemsealError:
    """Return what a refusal means for this device."""
    if error.code != "key_ended":
        return error
    if len(opened.device.slots) == 1:
        return removed()
    # By its own change, of which the answer was lost: joining again would leave behind what only this device has.
    return PassphraseWrong("a change of the passphrase was not completed: change it again, to the same new one")


def removed() -> DeviceEnded:
    """Return the error of a device that a server knows as ended."""
    return DeviceEnded(
        "the server says that this device was removed from the vault: what is here stays readable;"
        " to take part again, join in another folder with the newest emergency kit"
    )


def _sync(opened: Opened, transport: Transport, accept_rollback: bool) -> SyncReport:
    going = Round(opened, transport, accept_rollback=accept_rollback)
    try:
        drive(going.session, transport)
    finally:
        report = going.finish(opened)
    return report


class Round:
    """One synchronisation of an open vault, in steps: nobody else has to wait while a request is on its way."""

    def __init__(self, opened: Opened, transport: Transport, *, accept_rollback: bool = False) -> None:
        """Begin with what is here; the vault is held for this and each further step, and let go between them."""
        self._transport = transport
        self._before = opened.logbook.view.state.count()
        marks = opened.device.marks.remotes.get(transport.address, RemoteMarks())
        seen = Seen(marks.keyring, marks.logs)
        self.session = SyncSession(VaultReplica(opened), seen, accept_rollback=accept_rollback)
        self._ground = _Ground.of(opened)

    def receive(self, opened: Opened, answer: Answer) -> bool:
        """Take an answer; False, and it is dropped, where more than own writes was done here since the last step."""
        if not self._ground.is_of(opened):
            return False
        self.session.receive(answer)
        self._ground = _Ground.of(opened)
        return True

    def finish(self, opened: Opened) -> SyncReport:
        """Note what was seen, also where the round broke off, and say what was done."""
        follow_pin(opened)
        outcome = self.session.outcome()
        if self.session.next_request() is None and opened.device.marks.remotes is self._ground.remotes:
            _keep_marks(opened, self._transport, outcome)
        else:
            save_marks(opened)
        return SyncReport(
            remote=self._transport.address,
            new_memories=max(0, opened.logbook.view.state.count() - self._before),  # an erase may have come as well
            pulled_bytes=outcome.pulled_bytes,
            pushed_bytes=outcome.pushed_bytes,
            findings=[*outcome.findings, *all_findings(opened)],
        )


@dataclass(frozen=True)
class _Ground:
    """What a round builds on, and only rounds and changes of keys or floors move."""

    keychain: Keychain
    logbook: Logbook
    remotes: Mapping[str, RemoteMarks]
    others: Mapping[bytes, int]

    @classmethod
    def of(cls, opened: Opened) -> "_Ground":
        logbook = opened.logbook
        others = {stream_id: log.stored for stream_id, log in logbook.logs.items() if not logbook.is_own(log)}
        return cls(opened.keychain, logbook, opened.device.marks.remotes, others)

    def is_of(self, opened: Opened) -> bool:
        now = _Ground.of(opened)
        same = now.keychain is self.keychain and now.logbook is self.logbook and now.remotes is self.remotes
        return same and now.others == self.others


def drive(session: SyncSession, transport: Transport) -> None:
    """Carry a session's requests until it has none."""
    with Carrier(transport) as carrier:
        while (request := session.next_request()) is not None:
            session.receive(carrier.carry(request, session.ahead))


def _keep_marks(opened: Opened, transport: Transport, outcome: Outcome) -> None:
    """Write down what was seen; a remote that never showed anything leaves no mark."""
    marks = current_marks(opened)
    if outcome.seen.keyring or outcome.seen.logs or transport.address in marks.remotes:
        seen = RemoteMarks(outcome.seen.keyring, outcome.seen.logs)
        server = transport.address if transport.carries_keys and outcome.seen.keyring else marks.server
        marks = replace(marks, remotes={**marks.remotes, transport.address: seen}, server=server)
    if marks != opened.device.marks:
        opened.device = opened.device.with_marks(marks)
        opened.device.save(opened.folder)
