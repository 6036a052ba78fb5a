"""Look through a whole store, and say what is not as it must be (sync-protocol §8); nothing is changed."""

import asyncio
import hashlib
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field

from memseal_server import container, keyring, keys, segments, versions
from memseal_server.blobs import BlobStore, Listed, Run, numbered
from memseal_server.checkpoints import Kind, ObjectInvalid, check
from memseal_server.segments import SegmentInvalid
from memseal_server.versions import Floor, Refused, Version

_LISTED_AT_ONCE = 1_000
_VAULT = re.compile("[0-9a-f]{32}", re.ASCII)
_ID = "[0-9a-f]{32}"
_NUMBER = "[0-9]{10}"
# Below a vault's folder, the keys of sync-protocol §8.
_KEYS = re.compile(
    f"keyring/(?P<version>{_NUMBER})|sealed/(?P<sealed>{_NUMBER}-[0-9a-f]{{64}})|streams/(?P<name>{_NUMBER})"
    f"|logs/(?P<stream>{_ID})/(?P<seq>{_NUMBER})|checkpoints/(?P<checkpoint>{_ID})|parts/(?P<part>{_ID})",
    re.ASCII,
)


@dataclass(frozen=True)
class Finding:
    """What is not as it must be: a word for it, the key it is about, and a sentence that says what follows.

    Where it is not `serious` nothing is lost: a crash left it, or it is about to be needed.
    """

    code: str
    key: str
    detail: str
    serious: bool = True


@dataclass(frozen=True)
class VaultUsage:
    """What one vault takes; sizes in bytes."""

    vault: str
    versions: int
    logs: int
    objects: int
    bytes: int
    log_bytes: int
    checkpoint_bytes: int


@dataclass
class _Vault:
    """The objects of one vault as they are listed, by what they are."""

    id: bytes
    objects: int = 0
    size: int = 0
    log_bytes: int = 0
    checkpoint_bytes: int = 0
    versions: set[int] = field(default_factory=set[int])
    sealed: set[str] = field(default_factory=set[str])
    names: set[int] = field(default_factory=set[int])
    logs: defaultdict[bytes, set[int]] = field(default_factory=lambda: defaultdict[bytes, set[int]](set))
    files: dict[Kind, set[bytes]] = field(default_factory=lambda: {kind: set[bytes]() for kind in Kind})
    strangers: list[str] = field(default_factory=list[str])

    def add(self, listed: Listed) -> None:
        """Sort in one object."""
        self.objects += 1
        self.size += listed.length
        match = _KEYS.fullmatch(listed.key, len(keys.vault_folder(self.id)))
        if match is None:
            self.strangers.append(listed.key)
        elif number := match["version"]:
            self.versions.add(int(number))
        elif match["sealed"]:
            self.sealed.add(listed.key)
        elif number := match["name"]:
            self.names.add(int(number))
        elif number := match["seq"]:
            self.logs[bytes.fromhex(match["stream"])].add(int(number))
            self.log_bytes += listed.length
        else:
            kind = Kind.PART if match["part"] else Kind.MANIFEST
            self.files[kind].add(bytes.fromhex(match["part"] or match["checkpoint"]))
            self.checkpoint_bytes += listed.length


async def usage(store: BlobStore) -> AsyncIterator[VaultUsage]:
    """Yield what each vault takes, as far as the store lists it."""
    async for _, vault in _vaults(store):
        if vault is not None:
            yield VaultUsage(
                vault=vault.id.hex(),
                versions=len(vault.versions),
                logs=len(vault.logs),
                objects=vault.objects,
                bytes=vault.size,
                log_bytes=vault.log_bytes,
                checkpoint_bytes=vault.checkpoint_bytes,
            )


async def check_store(store: BlobStore, others: Collection[str] = ()) -> AsyncIterator[Finding]:
    """Yield what is wrong in each vault; `others` are first folders that are no vaults, and are passed over.

    Every object is read. Vaults may be in use meanwhile: what changes while it is looked at may be found wanting.
    """
    async for folder, vault in _vaults(store):
        if vault is None:
            if folder not in others:
                yield _left(f"{folder}/", "It belongs to no vault; a start that was cut short leaves `probe`.")
            continue
        check = _Check(store, vault)
        for step in (check.strangers, check.keyring, check.names, check.logs, check.checkpoints):
            await step()
            for finding in check.take():
                yield finding


async def _vaults(store: BlobStore) -> AsyncIterator[tuple[str, _Vault | None]]:
    """Yield each first folder, with what it has where it is a vault's."""
    current: str | None = None
    vault: _Vault | None = None
    after = ""
    while page := await store.listed("", after, _LISTED_AT_ONCE):
        for listed in page:
            folder = listed.key.partition("/")[0]
            if folder != current:
                if current is not None:
                    yield current, vault
                current = folder
                vault = _Vault(bytes.fromhex(folder)) if _VAULT.fullmatch(folder) else None
            if vault is not None:
                vault.add(listed)
        after = page[-1].key
    if current is not None:
        yield current, vault


class _Check:
    """One vault that is looked through; each step counts on those before it."""

    def __init__(self, store: BlobStore, vault: _Vault) -> None:
        self._store = store
        self._vault = vault
        self._chain: list[Version] = []
        # None where the chain breaks off: then nothing is known of what the rest has to be.
        self._newest: Version | None = None
        self._named: set[bytes] = set()
        self._findings: list[Finding] = []

    def take(self) -> list[Finding]:
        """Return what was found since the last time."""
        found, self._findings = self._findings, []
        return found

    async def strangers(self) -> None:
        """Name the keys that mean nothing."""
        for key in self._vault.strangers:
            self._add(_left(key, "No server put it here."))

    async def keyring(self) -> None:
        """Follow the chain of versions, and look for their sealed parts."""
        folder = keys.versions_folder(self._vault.id)
        numbers = await self._run(folder, 1, self._vault.versions)
        for number in numbers:
            version = await self._version(numbered(folder, number), newest=number == numbers[-1])
            if version is None:
                return
            self._chain.append(version)
        if not self._chain:
            self._wrong("keyring_missing", folder, "The vault has no keyring: devices put it back.")
        elif not self._vault.versions - set(numbers):
            self._newest = self._chain[-1]
            approved = {keys.sealed_key(self._vault.id, version.number, version.sealed) for version in self._chain}
            for key in sorted(self._vault.sealed - approved):
                self._add(_left(key, "A crash left this sealed part, of a version that was not stored."))

    async def names(self) -> None:
        """Read which logs are named."""
        folder = keys.names_folder(self._vault.id)
        for number in await self._run(folder, 0, self._vault.names):
            key = numbered(folder, number)
            content = await self._content(key)
            text = b"" if content is None else content
            if re.fullmatch(_ID.encode(), text):
                self._named.add(bytes.fromhex(text.decode()))
            else:
                self._wrong("name_damaged", key, "It names no log: servers answer 503 for this vault.")

    async def logs(self) -> None:
        """Follow each log from the floor on."""
        newest = self._newest
        if newest is None:
            return
        rows = set[bytes]() if newest.floor is None else set(newest.floor.rows)
        for stream in sorted(self._vault.logs.keys() | self._named | rows):
            folder = keys.log_folder(self._vault.id, stream)
            base = newest.base(stream)
            there = self._vault.logs.get(stream, set[int]())
            for number in sorted(number for number in there if number < base):
                self._add(_left(numbered(folder, number), "It lies below the floor: the next floor takes it along."))
            above = await self._run(folder, base, {number for number in there if number >= base})
            if stream not in rows and stream not in self._named:
                self._add(_left(folder, "A crash left this log unnamed: it is shown when its device pushes again."))
            if stream not in rows and not above:
                self._wrong("log_missing", folder, "A log that was named has no segment: devices put it back.")
            await self._log(newest, stream, above)

    async def checkpoints(self) -> None:
        """Look at the newest floor's checkpoint, and for files that no floor needs."""
        if self._newest is None:
            return
        floors = [version.floor for version in self._chain if version.floor is not None]
        for kind in Kind:
            needed = frozenset(_names(floors[-1], kind)) if floors else frozenset[bytes]()
            earlier = {name for floor in floors for name in _names(floor, kind)}
            for name in sorted(self._vault.files[kind] | needed):
                key = keys.checkpoints_folder(self._vault.id, kind) + name.hex()
                content = await self._content(key)
                if content is not None:
                    await self._file(key, kind, name, content)
                if content is None or name in needed:
                    continue
                if name in earlier:
                    self._add(_left(key, "Only an earlier floor names it: the next floor takes it along."))
                else:
                    self._add(Finding("unnamed", key, "No floor names it yet.", serious=False))
        if floors:
            key = keys.checkpoints_folder(self._vault.id, Kind.MANIFEST) + floors[-1].checkpoint.hex()
            info = await self._store.head(key)
            if info is not None and info.digest != floors[-1].digest:
                self._wrong("manifest_other", key, "It is not the manifest that the floor names.")

    async def _run(self, folder: str, first: int, listed: set[int]) -> Sequence[int]:
        """Return the numbers from `first` up to the first gap; the listing alone decides nothing."""
        [last] = await self._store.last([Run(folder, first)])
        numbers = range(first, 1 + max(listed | {first - 1 if last is None else last}))
        unlisted = [numbered(folder, number) for number in numbers if number not in listed]
        gone = await self._store.missing(unlisted)
        if not gone:
            return numbers
        self._wrong("gap", gone[0], "It is gone, and others come after it: devices put it back.")
        return range(first, int(gone[0].removeprefix(folder)))

    async def _version(self, key: str, *, newest: bool) -> Version | None:
        open_part = await self._content(key)
        if open_part is None:
            return None
        previous = self._chain[-1] if self._chain else None
        try:
            version = await asyncio.to_thread(versions.read_version, open_part, self._vault.id)
            sealed_key = keys.sealed_key(version.vault, version.number, version.sealed)
            sealed_part = await self._store.get(sealed_key)
            if sealed_part:
                version = await asyncio.to_thread(versions.read_version, open_part + sealed_part, self._vault.id)
            await asyncio.to_thread(keyring.accept, previous, version)
        except Refused as refused:
            self._wrong("version_invalid", key, f"It breaks a rule of the format ({refused.code}).")
            return None
        if sealed_part is None and newest:
            self._wrong("sealed_missing", sealed_key, "The newest version's sealed part: a device that has it puts it.")
        return version

    async def _log(self, newest: Version, stream: bytes, numbers: Sequence[int]) -> None:
        folder = keys.log_folder(self._vault.id, stream)
        row = newest.row(stream)
        end = segments.End() if row is None else segments.end_at(row)
        for number in numbers:
            key = numbered(folder, number)
            content = await self._content(key)
            if content is None:
                return
            try:
                segment = await asyncio.to_thread(segments.read_segment, content, seq=number)
                if number == 0 and row is None:
                    self._owner(newest, stream, content)
            except SegmentInvalid as invalid:
                self._wrong("segment_invalid", key, str(invalid))
                return
            if not segments.continues(segment, end):
                self._wrong("segment_order", key, "It does not continue the log.")
                return
            end = segment.end

    def _owner(self, newest: Version, stream: bytes, content: bytes) -> None:
        head = content[segments.HEADER_SIZE : segments.HEADER_SIZE + container.PREAMBLE_SIZE]
        preamble = segments.read_log_preamble(head, vault=self._vault.id, stream=stream)
        owners = (container.stream_id(self._vault.id, entry.sign, preamble.nonce) for entry in newest.entries)
        if stream not in owners:
            raise SegmentInvalid("The log's stream id is derived from no device's signing key.")

    async def _file(self, key: str, kind: Kind, name: bytes, content: bytes) -> None:
        try:
            await asyncio.to_thread(check, content, self._vault.id, kind, name)
        except ObjectInvalid as invalid:
            self._wrong("object_invalid", key, str(invalid))

    async def _content(self, key: str) -> bytes | None:
        info, content = await self._store.head(key), await self._store.get(key)
        if info is None or content is None:
            self._wrong("missing", key, "It is needed, and gone: devices put it back.")
            return None
        digest = await asyncio.to_thread(lambda: hashlib.sha256(content).digest())
        if (len(content), digest) != (info.length, info.digest):
            self._wrong("digest", key, "Its bytes are not those that were put: the disk or the bucket damaged it.")
        return content

    def _wrong(self, code: str, key: str, detail: str) -> None:
        self._add(Finding(code, key, detail))

    def _add(self, finding: Finding) -> None:
        self._findings.append(finding)


def _left(key: str, detail: str) -> Finding:
    return Finding("left", key, detail, serious=False)


def _names(floor: Floor, kind: Kind) -> tuple[bytes, ...]:
    return floor.parts if kind is Kind.PART else (floor.checkpoint,)
