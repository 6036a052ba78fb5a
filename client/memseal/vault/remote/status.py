"""What a vault says of itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memseal.embedding import Embedder
from memseal.errors import Finding
from memseal.vault.checkpoint.doubling import taken_ids
from memseal.vault.folder import session_files
from memseal.vault.folder.locking import data_class_of, refused_locks
from memseal.vault.folder.opening import Opened
from memseal.vault.folder.repair_advice import advised_finding


@dataclass(frozen=True)
class DeviceStatus:
    """One device: id (32 hex digits), name, whether it is this one, whether it sits behind an older passphrase."""

    id: str
    name: str
    this_device: bool
    old_passphrase: bool


@dataclass(frozen=True)
class Status:
    """A vault at one moment; numbers are counts of memories unless their names say otherwise.

    `trace_files` and `trace_bytes` are what this device keeps of what it gave out, `kept_sessions` how many files of
    sessions of the sanitizer it has. Whether these are whole is what `verify` looks at.

    `unsent_bytes` is what `server`, the one last synchronised with (empty: none yet), does not have of this device.
    """

    path: str
    vault_id: str
    read_only: bool
    active: int
    superseded: int
    retracted: int
    data_class: str
    without_vector: int
    foreign_vectors: int
    model: str | None
    embedder: str | None
    epoch: int
    keyring_version: int
    devices: Sequence[DeviceStatus]
    server: str
    unsent_bytes: int
    trace_files: int
    trace_bytes: int
    kept_sessions: int
    findings: Sequence[Finding]


def status_of(opened: Opened, embedder: Embedder | None, *, read_only: bool) -> Status:
    """Return the status of an open vault."""
    view, public = opened.logbook.view, opened.keychain.keyring.public
    state = view.state
    files, size_bytes = opened.traces.size()
    return Status(
        path=str(opened.folder.path),
        vault_id=opened.device.vault_id.hex(),
        read_only=read_only,
        active=state.count("m.same IS NULL AND m.state = 0"),
        superseded=state.count("m.same IS NULL AND m.state & 1"),
        retracted=state.count("m.same IS NULL AND m.state & 2"),
        data_class=data_class_of(opened),
        without_vector=state.count("m.same IS NULL AND m.vector IS NULL"),
        foreign_vectors=view.foreign_vectors,
        model=None if view.pinned is None else view.pinned[0],
        embedder=None if embedder is None else embedder.name,
        epoch=public.epoch,
        keyring_version=public.version,
        devices=_devices(opened),
        server=opened.device.marks.server,
        unsent_bytes=_unsent(opened),
        trace_files=files,
        trace_bytes=size_bytes,
        kept_sessions=len(session_files.files(opened.folder)),
        findings=all_findings(opened),
    )


def all_findings(opened: Opened) -> list[Finding]:
    """Return everything that was noticed, each once."""
    found = [
        *opened.findings,
        *opened.logbook.findings,
        *opened.logbook.torn,
        *opened.logbook.hidden(),
        *opened.logbook.misnamed(),
        *filter(None, [opened.traces.finding()]),
        *refused_locks(opened),
        *taken_ids(opened.logbook.view.taken_ids - opened.logbook.view.state.erasures.ids),
    ]
    if not opened.device.marks.server and not opened.device.marks.remotes:
        found = [advised_finding(each) for each in found]
    return list(dict.fromkeys(found))


def _devices(opened: Opened) -> list[DeviceStatus]:
    public, names = opened.keychain.keyring.public, opened.keychain.secrets.names
    return [
        DeviceStatus(
            id=entry.id.hex(),
            name=names.get(entry.id, ""),
            this_device=entry.id == opened.device.device_id,
            old_passphrase=entry.since < public.passphrase_since,
        )
        for entry in public.active()
    ]


def _unsent(opened: Opened) -> int:
    marks = opened.device.marks
    seen = marks.remotes.get(marks.server)
    there: Mapping[bytes, int] = {} if seen is None else {stream: end.length for stream, end in seen.logs.items()}
    unsent = 0
    for stream_id, log in opened.logbook.logs.items():
        if log.stream.owner.id == opened.device.device_id:
            unsent += log.end.length - there.get(stream_id, log.start.length)
    return unsent
