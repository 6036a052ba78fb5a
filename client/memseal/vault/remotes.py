"""The part of an open vault that is about remotes: a round, or in step from now on."""

import contextlib
from dataclasses import replace

from memseal.errors import (
    Finding,
    RemoteUnknown,
)
from memseal.vault.compaction.tending import tend
from memseal.vault.copies import branching
from memseal.vault.folder.opening import (
    Opened,
    stretcher,
)
from memseal.vault.held import Held
from memseal.vault.remote.background import Access, LiveSync
from memseal.vault.remote.standing import OnState
from memseal.vault.remote.syncing import SyncReport


class Remotes(Held):
    """What is new is exchanged with servers and folders."""

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


def _rejoin(opened: Opened, remote: str) -> None:
    branching.synchronise(opened, remote, accept_rollback=False)
