"""This device: its identity, its file, its marks."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from memseal.errors import DeviceEnded, DeviceFileDamaged, Finding, FormatError, LocalRollback, PassphraseWrong
from memseal.format.device_file import (
    DeviceFile,
    DeviceSlot,
    KeySet,
    Stretch,
    decode_device_file,
    open_key_set,
    open_marks,
    seal_key_set,
    seal_marks,
)
from memseal.format.fields import U53, Fields
from memseal.format.keyring import PublicSection
from memseal.format.keys import CacheSecret, LocalKey, SessionSecret
from memseal.format.log import End
from memseal.format.primitives import public_signing_key
from memseal.store.folder import DEVICE, VaultFolder

_DAY = 86_400_000_000  # µs


@dataclass(frozen=True)
class RemoteMarks:
    """What one remote has shown: the newest keyring version, and the end of each log."""

    keyring: int = 0
    logs: Mapping[bytes, End] = field(default_factory=dict[bytes, End])


class CacheMark(NamedTuple):
    """One cache: the nonce in its preamble, and the secret without which it does not open."""

    nonce: bytes
    secret: CacheSecret


class Retention(NamedTuple):
    """For how many days, and up to how many MiB in all, traces are kept; 0 of either keeps none."""

    days: int = 30
    megabytes: int = 64


_KEPT = Retention()


class FormerLocal(NamedTuple):
    """A local key from before a passphrase change, and when it ended, in µs since 1970 UTC: traces may need it yet."""

    ended_at: int
    key: LocalKey


class SessionMark(NamedTuple):
    """The secret of the kept sessions, and the erasures (a digest) that were known when it was drawn."""

    secret: SessionSecret
    fence: bytes


@dataclass(frozen=True)
class Marks:
    """What this device has seen, so that less is noticed: the keyring, its own copy of each log, each remote."""

    keyring: int = 0
    digest: bytes = bytes(32)
    logs: Mapping[bytes, End] = field(default_factory=dict[bytes, End])
    remotes: Mapping[str, RemoteMarks] = field(default_factory=dict[str, RemoteMarks])
    server: str = ""
    """The server where this vault's keyring lives; empty before the first sync with one."""
    rewritten: int = 0
    """The keyring version up to which this device has written again what its ended keys had written: once is enough."""
    making: bytes = bytes(32)
    """The digest of the keyring version that this device made last: noted before it is stored anywhere."""
    branch: bytes = bytes(32)
    """The digest of the newest version of the branch that this device is going over to: noted before it is there."""
    stripped: int = 0
    """The keyring version up to which the sealed parts are gone from here: one that is there again was put back."""
    settled: bytes = b""
    """The checkpoint at whose floor all logs were cut: a file from before it that is there again was put back."""
    caches: tuple[CacheMark, ...] = ()
    """The cache that was sealed last, and until that is done the one that it replaces; none after an erase."""
    erasures: Mapping[bytes, int] = field(default_factory=dict[bytes, int])
    """Of each erase the keyring version of the first floor whose checkpoint knew it, as far as this device has seen."""
    replaces: bytes = b""
    """The device whose place in this folder this one took, by recovery code: it is ended with the next passphrase."""
    traces: Retention = _KEPT
    former_locals: tuple[FormerLocal, ...] = ()
    sessions: SessionMark | None = None
    """What opens the kept sessions; none where none is kept, and after an erase."""
    handed_over: int = 0
    """The epoch whose vault key was handed over in a pairing that is not known to have ended well; 0 for none."""

    def to_value(self) -> dict[str, Any]:
        """Return the marks as they are stored."""
        return {
            "keyring": self.keyring,
            "digest": self.digest,
            "logs": _rows(self.logs),
            "remotes": {
                name: {"keyring": seen.keyring, "logs": _rows(seen.logs)} for name, seen in self.remotes.items()
            },
            "server": self.server,
            "rewritten": self.rewritten,
            "making": self.making,
            "branch": self.branch,
            "stripped": self.stripped,
            "replaces": self.replaces,
            "handed_over": self.handed_over,
            "settled": self.settled,
            "erasures": [[erasure, version] for erasure, version in self.erasures.items()],
            "traces": list(self.traces),
            "former_locals": [[each.ended_at, each.key.reveal()] for each in self.former_locals],
            "cache_secrets": [[mark.nonce, mark.secret.reveal()] for mark in self.caches],
            "sessions": None if self.sessions is None else [self.sessions.secret.reveal(), self.sessions.fence],
        }


# Marks that were written before there were these lack them.
_SINCE: Mapping[str, Any] = {
    "making": bytes(32),
    "branch": bytes(32),
    "stripped": 0,
    "replaces": b"",
    "handed_over": 0,
    "settled": b"",
    "cache_secrets": [],
    "erasures": [],
    "traces": list(_KEPT),
    "former_locals": [],
    "sessions": None,
}


def decode_marks(value: Any) -> Marks:
    """Return marks from what was stored; raises `FormatError`."""
    fields = Fields({**_SINCE, **value} if isinstance(value, dict) else value, "record_content", "marks")
    remotes = fields.get("remotes")
    fields.check(isinstance(remotes, dict), "remotes")
    return Marks(
        keyring=fields.count("keyring"),
        digest=fields.size("digest", 32),
        logs=_ends(fields),
        remotes={name: _decode_remote(seen) for name, seen in remotes.items()},
        server=fields.text("server"),
        rewritten=fields.count("rewritten"),
        making=fields.size("making", 32),
        branch=fields.size("branch", 32),
        stripped=fields.count("stripped"),
        replaces=fields.octets("replaces"),
        handed_over=fields.count("handed_over"),
        settled=fields.octets("settled"),
        erasures=dict(_decode_erasure(erasure, version) for erasure, version in fields.tuples("erasures", 2)),
        traces=_decode_retention(fields.array("traces")),
        former_locals=tuple(_decode_former(*row) for row in fields.tuples("former_locals", 2)),
        caches=tuple(_decode_cache(nonce, secret) for nonce, secret in fields.tuples("cache_secrets", 2)),
        sessions=_decode_sessions(fields),
    )


def _decode_erasure(erasure: Any, version: Any) -> tuple[bytes, int]:
    fields = Fields({"erasure": erasure, "version": version}, "record_content", "marks")
    return fields.size("erasure", 16), fields.count("version", 1)


def _decode_retention(value: list[Any]) -> Retention:
    fields = Fields(dict(zip(("days", "megabytes"), value, strict=False)), "record_content", "marks.traces")
    return Retention(fields.count("days"), fields.count("megabytes"))


def _decode_former(ended_at: Any, key: Any) -> FormerLocal:
    fields = Fields({"ended_at": ended_at, "key": key}, "record_content", "marks.former_locals")
    return FormerLocal(fields.count("ended_at", below=U53), LocalKey(fields.size("key", LocalKey.SIZE)))


def _decode_sessions(marks: Fields) -> SessionMark | None:
    if marks.optional("sessions") is None:
        return None
    row = dict(zip(("secret", "fence"), marks.array("sessions"), strict=False))
    fields = Fields(row, "record_content", "marks.sessions")
    return SessionMark(SessionSecret(fields.size("secret", SessionSecret.SIZE)), fields.size("fence", 32))


def _decode_cache(nonce: Any, secret: Any) -> CacheMark:
    fields = Fields({"nonce": nonce, "secret": secret}, "record_content", "marks")
    return CacheMark(fields.size("nonce", 12), CacheSecret(fields.size("secret", CacheSecret.SIZE)))


def _decode_remote(value: Any) -> RemoteMarks:
    fields = Fields(value, "record_content", "marks")
    return RemoteMarks(fields.count("keyring"), _ends(fields))


def _rows(logs: Mapping[bytes, End]) -> list[list[Any]]:
    return [[stream_id, end.length, end.records, end.chain] for stream_id, end in logs.items()]


def _ends(fields: Fields) -> dict[bytes, End]:
    ends = dict[bytes, End]()
    for stream_id, length, records, chain in fields.tuples("logs", 4):
        row = Fields(
            {"stream": stream_id, "length": length, "records": records, "chain": chain}, "record_content", "marks"
        )
        end = End(row.count("length", below=U53), row.count("records"), row.octets("chain"))
        ends[row.size("stream", 16)] = end
    return ends


# ── opening ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Device:
    """An opened device: ids, the key set that counts, the file's slots, and its marks."""

    vault_id: bytes
    device_id: bytes
    keys: KeySet
    slots: tuple[DeviceSlot, ...]
    marks: Marks
    findings: tuple[Finding, ...] = ()

    @property
    def signing_public(self) -> bytes:
        """The public signing key."""
        return public_signing_key(self.keys.sign)

    @property
    def file_id(self) -> tuple[bytes, bytes]:
        """Vault and device id, as the device file's recipes take them."""
        return self.vault_id, self.device_id

    def save(self, folder: VaultFolder, name: str = DEVICE) -> None:
        """Write the device file anew, durably."""
        marks = seal_marks(self.file_id, self.slots, self.keys.local, self.marks.to_value())
        folder.replace(name, DeviceFile(self.vault_id, self.device_id, self.slots, marks).to_bytes())

    def with_marks(self, marks: Marks) -> "Device":
        """Return the device with other marks."""
        return replace(self, marks=marks)


def with_former(marks: Marks, local: LocalKey) -> Marks:
    """Return marks that keep a local key, which ends now, for the traces that were sealed under it."""
    now = time.time_ns() // 1000
    oldest = now - (marks.traces.days + 2) * _DAY
    kept = [each for each in marks.former_locals if each.ended_at >= oldest and each.key != local]
    return replace(marks, former_locals=(*kept, FormerLocal(now, local)))


def read_device_file(folder: VaultFolder) -> DeviceFile:
    """Return the device file's parts; `DeviceFileDamaged` where it is missing or damaged."""
    content = folder.read(DEVICE)
    if content is None:
        raise DeviceFileDamaged("device.mseal is missing: join again with the emergency kit")
    return decode_device_file(content)


def decode_device_file_marks(folder: VaultFolder, device: Device) -> Marks:
    """Return the marks as the device file has them now; raises `DeviceFileDamaged` or `FormatError`."""
    return decode_marks(open_marks(read_device_file(folder), device.keys.local))


def open_device(file: DeviceFile, public: PublicSection, stretch: Stretch) -> Device:
    """Open the key set that the newest keyring lists; settles an unfinished passphrase change.

    Raises `PassphraseWrong`, `LocalRollback` or `DeviceEnded`.
    """
    opened = {slot.state: keys for slot in file.slots if (keys := open_key_set(file, slot, stretch)) is not None}
    if not opened:
        raise PassphraseWrong("the passphrase does not open this vault: try again")
    for state, keys in opened.items():
        entry = public.entry_of(public_signing_key(keys.sign))
        if entry is not None and entry.ended is None and entry.id == file.device_id:
            return _opened(file, state, keys, stretch)
    if len(file.slots) > len(opened):
        raise PassphraseWrong("this is not the passphrase that counts: a change of it was made, or was not completed")
    if any(entry.id == file.device_id for entry in public.active()):
        raise LocalRollback("device.mseal is older than the vault: put the newest one back, or join again with the kit")
    raise DeviceEnded("this device was ended by another one: join again with the emergency kit")


def _opened(file: DeviceFile, state: str, keys: KeySet, stretch: Stretch) -> Device:
    """Take the key set that counts; marks that do not open are a finding, since only a rollback hides behind them."""
    before: LocalKey = keys.local if state == "current" or keys.local_before is None else keys.local_before
    findings: tuple[Finding, ...] = ()
    try:
        marks = decode_marks(open_marks(file, before))
    except FormatError as error:
        marks = Marks()
        detail = f"its marks are damaged ({error.code}): an older state may go unnoticed"
        findings = (Finding("device_file", DEVICE, detail),)
    slots = file.slots
    if state == "pending":
        # The passphrase change had got as far as the keyring: what was pending is now current.
        marks = marks if before is keys.local else with_former(marks, before)
        keys, slot = replace(keys, local_before=None), slots[1]
        slots = (seal_key_set((file.vault_id, file.device_id), "current", slot.salt, slot.cost, keys, stretch),)
    return Device(file.vault_id, file.device_id, keys, slots, marks, findings)
