"""This device's copy of a vault, as a synchronisation sees it."""

import secrets
from collections.abc import Mapping

from memseal.errors import FormatError
from memseal.format.boxes import open_device_box
from memseal.format.floor import Floor
from memseal.format.keyring import KeyringVersion, decode_version
from memseal.format.log import End
from memseal.format.records import BODY_LIMIT, HEADER_SIZE
from memseal.format.segment import FIRST, SEGMENT_TARGET, Segment
from memseal.sync.messages import Shelf, objects_of
from memseal.sync.session import LocalLog
from memseal.vault.checkpoint.settling import adopt_floor, check_object, missing_objects, object_file
from memseal.vault.folder.keychain import Keychain, save_version, version_file
from memseal.vault.folder.locking import lock_keys
from memseal.vault.folder.log import Log, end_of_whole_records
from memseal.vault.folder.opening import Opened, cut_outlived, rebuilt, strip_older


class VaultReplica:
    """An open vault's files and view; what it accepts is checked, durable and applied."""

    def __init__(self, opened: Opened) -> None:
        """Take an open vault."""
        self._opened = opened
        self._keyring = opened.keychain.keyring
        self._held: list[KeyringVersion] = []

    # ── keyring ─────────────────────────────────────────────────────────────────────────────────────

    def keyring_version(self) -> int:
        """Return the number of the newest keyring version here."""
        return self._keyring.public.version

    def keyring_digest(self) -> bytes:
        """Return its digest."""
        return self._keyring.newest.digest

    def keyring_content(self, version: int) -> bytes:
        """Return a version's bytes, as whole as they are here."""
        content = self._opened.folder.read(version_file(version))
        if content is None:
            raise FormatError("keyring_missing", f"keyring version {version} is missing here")
        return content

    def is_other(self, version: int, content: bytes) -> bool:
        """Return whether this is another version than the one here under this number; raises `FormatError`."""
        other = decode_version(content, self._opened.device.vault_id)
        return other.public.version == version and other.digest != self._keyring.versions[version - 1].digest

    def accept_keyring(self, content: bytes) -> None:
        """Take the next version: checked, opened with this device's box, then stored.

        One that the server keeps only in part is held until a whole one comes after it: only that one can be opened.
        """
        opened = self._opened
        version = decode_version(content, opened.device.vault_id)
        self._keyring = self._keyring.followed_by(version)
        self._held.append(version)
        if version.boxes is None:
            return
        vault_key = open_device_box(version, opened.device.keys.wrap, opened.device.signing_public)
        chain = opened.keychain.followed_by(self._keyring, vault_key)
        for each in self._held:
            save_version(opened.folder, each)
        self._held.clear()
        use_keychain(opened, chain)

    def forget_held(self) -> None:
        """Let go of versions that were taken in part, and count with the newest whole one again."""
        self._keyring = self._opened.keychain.keyring
        self._held.clear()

    # ── the checkpoint ──────────────────────────────────────────────────────────────────────────────

    def floor(self) -> Floor | None:
        """Return the newest version's floor."""
        return self._keyring.public.floor

    def wanted_objects(self) -> list[tuple[Shelf, bytes]]:
        """Return which objects of the floor's checkpoint are not here, or damaged: the manifest first."""
        return missing_objects(self._opened, self._keyring)

    def object_content(self, shelf: Shelf, object_id: bytes) -> bytes | None:
        """Return a manifest's or part's bytes, or None where it is not here."""
        return self._opened.folder.read(object_file(shelf, object_id))

    def begun_object(self, shelf: Shelf, object_id: bytes) -> bytes:
        """Return what was kept of an object when fetching it broke off; what is of no use any more is removed."""
        folder, floor = self._opened.folder, self.floor()
        named = [] if floor is None else [object_file(*each) for each in objects_of(floor.checkpoint, floor.parts)]
        for name in folder.begun_names(shelf):
            if name not in named:
                folder.forget_begun(name)
        return folder.begun(object_file(shelf, object_id))

    def keep_object(self, shelf: Shelf, object_id: bytes, start: int, piece: bytes) -> None:
        """Keep a piece of an object that is being fetched, so that it need not come again."""
        self._opened.folder.begin(object_file(shelf, object_id), start, piece)

    def take_object(self, shelf: Shelf, object_id: bytes, content: bytes) -> None:
        """Store a manifest or part durably; raises `FormatError` where it is not the one that the floor names."""
        folder, name = self._opened.folder, object_file(shelf, object_id)
        try:
            check_object(self._opened, shelf, object_id, content)
            folder.replace(name, content)
        finally:
            folder.forget_begun(name)

    def adopt_floor(self) -> None:
        """Apply the floor's checkpoint, where all of it is here and was not applied, and cut the logs at its rows."""
        adopt_floor(self._opened)

    # ── logs ────────────────────────────────────────────────────────────────────────────────────────

    def logs(self) -> Mapping[bytes, LocalLog]:
        """Return all logs that can be read here, as far as they are whole and count."""
        epoch = self._opened.keychain.keyring.public.epoch
        logbook = self._opened.logbook
        return {
            stream_id: LocalLog(log.end, logbook.is_own(log) and log.stream.epoch == epoch)
            for stream_id, log in logbook.logs.items()
            if log.end.records
        }

    def misses_some(self) -> bool:
        """Return whether a log here names records of another that are not here."""
        return bool(self._opened.logbook.hidden())

    def wanted_from(self, stream_id: bytes) -> int:
        """Return the offset from which on a remote's bytes of a log are wanted."""
        return self._opened.logbook.stored_length(stream_id)

    def extend(self, stream_id: bytes, content: bytes) -> int:
        """Take bytes of a log from there on, and return the new offset; raises `FormatError`."""
        before = self.wanted_from(stream_id)
        after = self._opened.logbook.extend(stream_id, content)
        self._opened.uncached += after - before
        return after

    def damaged_from(self, stream_id: bytes, there: int) -> int | None:
        """Return from where on a log is to be fetched again, if it is damaged here and a remote has as much of it."""
        log = self._opened.logbook.logs.get(stream_id)
        return None if log is None or log.sound is None or log.stored > there else log.sound.length

    def mend(self, stream_id: bytes, content: bytes) -> None:
        """Take what a remote has from there on, if it is better."""
        self._opened.logbook.mend(stream_id, content)

    def fork_from(self, stream_id: bytes, common: End | None) -> End | None:
        """Return from where on an own log could be another one on a remote; None for logs of other devices."""
        logbook = self._opened.logbook
        log = logbook.logs.get(stream_id)
        if log is None or not logbook.is_own(log):
            return None
        if common is not None and self.end_at(stream_id, common.length) == common:
            return common
        return log.start

    def heal_fork(self, stream_id: bytes, common: End, content: bytes) -> bool:
        """Go on in a fresh stream, if a remote's bytes after `common` prove that an own log was forked there."""
        logbook = self._opened.logbook
        if not logbook.shows_other_history(stream_id, common, content):
            return False
        logbook.reemit_branch(stream_id, common, secrets.token_bytes(4))
        cut_outlived(self._opened)
        return True

    def end_at(self, stream_id: bytes, length: int) -> End | None:
        """Return where the log here stands at a length, or None where no record ends there."""
        log = self._opened.logbook.logs.get(stream_id)
        return None if log is None else self._opened.logbook.end_at(log, length)

    def begins_at(self, stream_id: bytes) -> int:
        """Return the offset from which on a log's bytes are here."""
        log = self._opened.logbook.logs.get(stream_id)
        return 0 if log is None or log.base is None else log.start.length

    def next_segment(self, stream_id: bytes, start: End | None) -> tuple[bytes, End] | None:
        """Return the segment after a place (None: the beginning) and where it ends, or None at the end of the log.

        Where a record's header is damaged the log ends for remotes: what comes after could not be put there.
        """
        logbook = self._opened.logbook
        log = logbook.logs[stream_id]
        begin = log.start if start is None else start
        for end in reversed(log.known_ends()):
            if begin.length < end.length <= begin.length + SEGMENT_TARGET:
                return _segment(log, start, logbook.piece(stream_id, begin.length, end.length)), end
        for window in (SEGMENT_TARGET, HEADER_SIZE + BODY_LIMIT):
            content = logbook.piece(stream_id, begin.length, min(log.end.length, begin.length + window))
            end = end_of_whole_records(memoryview(content), begin)
            if end != begin:
                return _segment(log, start, content[: end.length - begin.length]), end
        return None

    def settle_epoch(self, there: Mapping[bytes, End]) -> None:
        """Write again under the present epoch what was written under an earlier one and no remote has.

        Raises `FormatError` where the remote gave the newest keyring version only in part: nothing is to be written
        under an epoch that may have ended.
        """
        if self._held:
            raise FormatError("keyring_missing", "the remote gives the newest keyring version only in part: try later")
        logbook, known = (
            self._opened.logbook,
            [there, *(seen.logs for seen in self._opened.device.marks.remotes.values())],
        )
        furthest = dict[bytes, End]()
        for stream_id, log in logbook.logs.items():
            ends = [ends[stream_id] for ends in known if stream_id in ends]
            # What a version that ended this device's key names, the server had when it took that version.
            ends += [] if log.stream.limit is None else [log.stream.limit]
            if ends:
                furthest[stream_id] = max(ends, key=lambda end: end.length)
        logbook.reemit(furthest, secrets.token_bytes(4))
        cut_outlived(self._opened)
        strip_older(self._opened)
        logbook.settle_former()


def _segment(log: Log, start: End | None, piece: bytes) -> bytes:
    opening = log.stream.preamble if start is None else b""
    return Segment(start or FIRST, opening + piece).to_bytes()


def use_keychain(opened: Opened, chain: Keychain) -> None:
    """Go on with another keychain; the view is read anew where records that were applied count no more."""
    opened.keychain = chain
    if not opened.logbook.rekey(chain, opened.device.keys.sign):
        opened.logbook = rebuilt(opened.folder, opened.device, chain, opened.logbook.view)
    lock_keys(opened)
