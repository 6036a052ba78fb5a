"""Synchronise an open vault with a remote."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from memseal.errors import Finding, PassphraseWrong, RemoteRefused, RemoteUnknown
from memseal.format.keys import SigningKey
from memseal.store.disk import OsDisk
from memseal.sync.session import Outcome, Seen, SyncSession
from memseal.transport import Transport
from memseal.transport.folder import FolderTransport
from memseal.vault.device import RemoteMarks
from memseal.vault.opening import Opened, current_marks, follow_pin
from memseal.vault.replica import VaultReplica
from memseal.vault.status import all_findings


@dataclass(frozen=True)
class SyncReport:
    """What one synchronisation did: memories that came, bytes moved, and what was noticed."""

    remote: str
    new_memories: int
    pulled_bytes: int
    pushed_bytes: int
    findings: Sequence[Finding]


def open_transport(remote: str, vault_id: bytes, key: SigningKey) -> Transport:
    """Return the way to a remote: a server's address, or a folder's path or `file:` URL; raises `RemoteUnknown`."""
    try:
        scheme, path = urlsplit(remote).scheme, Path(unquote(urlsplit(remote).path))
        folder = Path(remote).expanduser().absolute()
    except (ValueError, RuntimeError):
        raise RemoteUnknown("this is neither a server's address nor a folder's path") from None
    if scheme in ("http", "https"):
        # Imported here: aiohttp is an extra, and a vault without a server needs none.
        from memseal.transport.http import HttpTransport

        return HttpTransport(remote, vault_id, key)
    if scheme == "file":
        if not path.is_absolute():
            raise RemoteUnknown("a folder's address is file:///path")
        return FolderTransport(path, vault_id, OsDisk())
    if scheme and len(scheme) > 1:  # one letter is a Windows drive
        raise RemoteUnknown(f"{scheme}: is no kind of remote: give https://… or a folder")
    return FolderTransport(folder, vault_id, OsDisk())


def sync(opened: Opened, remote: str | None, *, accept_rollback: bool) -> SyncReport:
    """Synchronise once."""
    address = remote or opened.device.marks.server
    if not address:
        raise RemoteUnknown("no remote is known yet: give a server's address or a folder")
    transport = open_transport(address, opened.device.vault_id, opened.device.keys.sign)
    try:
        return _sync(opened, transport, accept_rollback)
    except RemoteRefused as error:
        if error.code != "key_ended" or len(opened.device.slots) == 1:
            raise
        # By its own change, of which the answer was lost: joining again would leave behind what only this device has.
        detail = "a change of the passphrase was not completed: change it again, to the same new one"
        raise PassphraseWrong(detail) from error
    finally:
        transport.close()


def _sync(opened: Opened, transport: Transport, accept_rollback: bool) -> SyncReport:
    before = opened.logbook.view.state.count()
    marks = opened.device.marks.remotes.get(transport.address, RemoteMarks())
    session = SyncSession(VaultReplica(opened), Seen(marks.keyring, marks.logs), accept_rollback=accept_rollback)
    try:
        drive(session, transport)
    finally:
        follow_pin(opened)
        _keep_marks(opened, transport, session.outcome())
    outcome = session.outcome()
    return SyncReport(
        remote=transport.address,
        new_memories=max(0, opened.logbook.view.state.count() - before),  # an erase may have come as well
        pulled_bytes=outcome.pulled_bytes,
        pushed_bytes=outcome.pushed_bytes,
        findings=[*outcome.findings, *all_findings(opened)],
    )


def drive(session: SyncSession, transport: Transport) -> None:
    """Carry a session's requests until it has none."""
    while (request := session.next_request()) is not None:
        session.receive(transport.send(request))


def _keep_marks(opened: Opened, transport: Transport, outcome: Outcome) -> None:
    """Write down what was seen, also of a round that broke off; a remote that never showed anything leaves no mark."""
    marks = current_marks(opened)
    if outcome.seen.keyring or outcome.seen.logs or transport.address in marks.remotes:
        seen = RemoteMarks(outcome.seen.keyring, outcome.seen.logs)
        server = transport.address if transport.carries_keys and outcome.seen.keyring else marks.server
        marks = replace(marks, remotes={**marks.remotes, transport.address: seen}, server=server)
    if marks != opened.device.marks:
        opened.device = opened.device.with_marks(marks)
        opened.device.save(opened.folder)
