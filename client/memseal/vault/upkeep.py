"""The part of an open vault that is about its files: checkpoints, damage, copies."""

from collections.abc import Callable, Sequence
from os import PathLike

from memseal.errors import (
    Finding,
)
from memseal.memory.operations import Dismiss
from memseal.vault.checkpoint.covering import Quarantined, quarantine
from memseal.vault.compaction.compacting import Compaction, compact
from memseal.vault.compaction.tending import make_room
from memseal.vault.copies import bundle_import, bundles
from memseal.vault.copies.verifying import verify
from memseal.vault.folder.batch import Batch
from memseal.vault.held import Held
from memseal.vault.remote.status import Status, status_of
from memseal.vault.writes import reindexing, writing
from memseal.vault.writes.writing import (
    new_id,
)


class Upkeep(Held):
    """The vault is looked through, compacted, mended and copied."""

    def reindex(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Give vectors to the memories that have none of the pinned model, and return how many got one.

        Each step is durable: broken off, it goes on where it was. `progress` is called with (done, total). Raises
        `EmbedderUnavailable`, or `EmbedderAnswer`.
        """
        return reindexing.reindex(self._writing, self._write, self._embedder, progress)

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
            self._write([Batch([Dismiss(new_id(), record.stream_id, (record.record,), writing.present())])])

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

    def export_bundle(
        self, target: bundles.Target, passphrase: str, *, progress: Callable[[int, int], None] | None = None
    ) -> int:
        """Write everything to one file (or binary stream) behind a passphrase of its own; returns how many memories.

        The file is there whole or not at all, one that was there is replaced, and only its owner may read it. It opens
        anywhere (`memseal.open_bundle`, `import_bundle`), holds no key of this vault and none of this device's traces
        and kept sessions, and takes 256 MiB of memory to open. `progress` is called with (done, total). Raises
        `PassphraseEmpty` or a `DiskError`.
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


def _nothing(batches: Sequence[Batch]) -> None:
    """Write nothing."""
