"""All logs of a vault: read into the view, extended by own writes and by what other devices wrote."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from memseal.errors import Finding, FormatError
from memseal.format.floor import Row
from memseal.format.keys import SigningKey
from memseal.format.log import End, LogReader, LogWriter, Opened, Reading
from memseal.format.preamble import PREAMBLE_SIZE, log_preamble
from memseal.format.primitives import public_signing_key
from memseal.index.view import Said, View, decoded
from memseal.memory.operations import Head, counter_after, decode_meta
from memseal.store.folder import VaultFolder
from memseal.vault.folder.batch import Batch, Composed, compose, restamped
from memseal.vault.folder.collections_off import no_collections
from memseal.vault.folder.floors import base_of, check_base, newest_rows, preamble_of
from memseal.vault.folder.keychain import Keychain
from memseal.vault.folder.log import Log, Settled, end_of_whole_records, is_fork, up_to, up_to_damage
from memseal.vault.folder.log_files import LogFiles, log_file

# Bytes of a log that are held and opened at a time: enough that its fixed costs vanish, and so little that what is made
# of them stays in the processor's outer cache.
_PIECE = 4 << 20
# Operations that are applied at once.
_AT_ONCE = 2048


class Logbook:
    """The logs of an open vault and the view they are applied to."""

    def __init__(
        self, folder: VaultFolder, keychain: Keychain, signing_key: SigningKey, view: View, rewritten: int
    ) -> None:
        """Take where the logs are, the keys, this device's signing key, what to feed, and `Marks.rewritten`."""
        self.rewritten = rewritten
        self.files = LogFiles(folder)
        self.keychain = keychain
        self._signing_key = signing_key
        self._own = public_signing_key(signing_key)
        entry = keychain.keyring.public.entry_of(self._own)
        self._device = b"" if entry is None else entry.id
        self.view = view
        self.logs: dict[bytes, Log] = {}
        self._noted: dict[Finding, None] = {}
        self.torn: list[Finding] = []
        """Incomplete writes at the end of own logs: never acknowledged, cut off by the next append."""
        self.outlived: dict[bytes, End] = {}
        """Own old logs that were written again elsewhere, and what is to be left of them."""
        self.floor_applied = b""
        """The checkpoint whose whole content is in the view."""
        self.least_counter = 0
        """What is written has higher counters: what was saved may have higher stamps than any log that is left."""

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────

    def load(self, verified: Mapping[bytes, End]) -> None:
        """Read every log in the folder from where it is applied; up to `verified` signatures were checked before."""
        self.view.loading = True
        with no_collections():
            for stream_id in self.files.streams():
                self._load_one(stream_id, verified.get(stream_id))
        self.view.loading = False
        self.view.scrub()

    def open_all(self) -> None:
        """Look at how each log's file begins, and read no record."""
        for stream_id in self.files.streams():
            self._open_log(stream_id)

    def _load_one(self, stream_id: bytes, verified: End | None) -> None:
        log = self.logs.get(stream_id) or self._open_log(stream_id)
        if log is None:
            return
        limited = log.stream.owner.id != self._device or self._is_rewritten(log)
        self._take_pieces(log, limited, verified)
        rest = memoryview(self.files.read(stream_id, log.end.length))
        if limited:
            rest = self._counting(log, rest)
        # Of this device's own ended streams all counts until it is written again: a key change may have been cut short.
        acknowledged = 0 if verified is None else verified.records
        reading = self._read(log, rest, verified)
        self._commit(log, self._settle(log, reading, acknowledged if self.is_own(log) else None))

    def _take_pieces(self, log: Log, limited: bool, verified: End | None) -> None:
        """Apply a long log piece by piece, but for the last: of what is applied nothing is held any more."""
        stream_id, window = log.stream.stream_id, _PIECE
        until = self.files.length(stream_id)
        if limited and log.stream.limit is not None:
            until = min(until, log.stream.limit.length)
        while until - log.end.length > window:
            content = memoryview(self.files.read(stream_id, log.end.length, log.end.length + window))
            reading = self._reader(log).read(content, log.end, verified)
            # One write, or damage, that is larger than a piece needs a larger one; where one is, others may be.
            if not self._take_piece(log, reading, content):
                window *= 2

    def _take_piece(self, log: Log, reading: Reading, content: memoryview) -> bool:
        """Apply the whole writes that end in a piece of a log; False where none does.

        What is wrong after them may only seem so, because the piece ends there: it is looked at again with the next.
        """
        whole = list(reading.trusted)
        while whole and whole[-1].content.more:
            whole.pop()
        if not whole:
            return False
        end = up_to(whole[-1], log.end, content)
        findings = [finding for finding in reading.findings if _is_before(finding, log.name, end.records)]
        for finding in findings:
            self.note(finding)
        self._apply(log, whole, lenient=bool(findings))
        log.end, log.stored = end, end.length
        if findings:
            log.sound = log.sound or reading.sound
        return True

    def _open_log(self, stream_id: bytes) -> Log | None:
        """Look at how a log's file begins; None, and a finding, where it cannot be read."""
        preamble = self.files.preamble(stream_id)
        if len(preamble) < PREAMBLE_SIZE:
            # The crash of a first write; the file is begun anew, under another name, by the next.
            self.torn.append(Finding("record_torn", log_file(stream_id), "a log that was not begun"))
            return None
        try:
            base = self.files.base(stream_id)
            if base is not None:
                check_base(self.keychain.keyring, stream_id, base)
            stream = self.keychain.stream(preamble, stream_id)
        except FormatError as error:
            if error.code != "epoch_mismatch" or not self._is_covered_whole(stream_id):
                self.note(Finding(error.code, log_file(stream_id), str(error)))
            return None
        self.logs[stream_id] = Log.at(stream, base)
        return self.logs[stream_id]

    def _is_covered_whole(self, stream_id: bytes) -> bool:
        """Return whether the floor covers all of a log's file: its key is not needed any more."""
        row = newest_rows(self.keychain.keyring).get(stream_id)
        return row is not None and self.files.length(stream_id) <= row.end.length

    def _counting(self, log: Log, content: memoryview) -> memoryview:
        """Return the bytes that follow the applied part of a log, up to where its owner was ended."""
        limit = log.stream.limit
        if limit is None or log.end.length + len(content) <= limit.length:
            return content
        beyond = log.end.length + len(content) - max(limit.length, PREAMBLE_SIZE)
        if beyond > 0:
            self.note(Finding("stream_ended", log.name, f"{beyond} bytes after the end of this device do not count"))
        return content[: max(0, limit.length - log.end.length)]

    def _read(self, log: Log, content: memoryview, verified: End | None = None) -> Reading:
        """Open the bytes that follow the applied part of a log, and list what is wrong with them."""
        reading = self._reader(log).read(content, log.end, verified)
        self._note_all(log, reading)
        return reading

    def _reader(self, log: Log) -> LogReader:
        return LogReader(log.name, log.stream.preamble, log.stream.key, log.stream.owner.sign)

    def _note_all(self, log: Log, reading: Reading) -> None:
        own = self.is_own(log)
        for finding in reading.findings:
            if own and finding.code == "record_torn" and reading.torn:
                self.torn.append(finding)
            else:
                self.note(finding)

    def _settle(self, log: Log, reading: Reading, acknowledged: int | None = None) -> Settled:
        """Return the whole writes of a reading and where the log then stands; what is not whole waits.

        Where the end is damaged, a write of several records may have been whole before. Of an own one this is known: it
        is acknowledged only when the marks say so (`acknowledged`, the number of records of which they do).
        """
        whole, unfinished, base = reading.trusted, list[Opened](), log.end.length
        least = acknowledged if reading.damaged_end else 0
        while least is not None and whole and whole[-1].content.more and whole[-1].place.index >= least:
            unfinished.insert(0, whole.pop())
        waiting = [*unfinished, *reading.waiting]
        if not waiting:
            return Settled(reading, reading.end, reading.end.length, unfinished=False)
        first = waiting[0]
        end = End(base + first.place.offset, first.place.index, first.content.chain)
        # What a signature covers is kept, so that it is not fetched again; an own unfinished write is cut off.
        keep = bool(unfinished) and not self.is_own(log)
        stored = base + unfinished[-1].place.end if keep else end.length
        return Settled(reading, end, stored, unfinished=True)

    def _commit(self, log: Log, settled: Settled) -> None:
        """Apply what was settled."""
        self._apply(log, settled.reading.trusted, lenient=bool(settled.reading.findings))
        log.end, log.stored = settled.end, settled.stored
        log.appendable = log.appendable and not settled.reading.damaged_end
        log.sound = log.sound or settled.reading.sound
        if settled.unfinished and self.is_own(log):
            where = f"{log.name}#{settled.end.records}"
            self.torn.append(Finding("record_torn", where, "a write that was not finished"))

    def _apply(self, log: Log, records: Sequence[Opened], lenient: bool) -> None:
        """Apply records, as many at once as make up for what it costs to begin."""
        due, count, name = list[Said](), 0, log.name
        for record in records:
            said = self._said(log, record, f"{name}#{record.place.index}", lenient)
            if said is not None:
                due.append(said)
                count += len(said.operations)
            if count >= _AT_ONCE:
                self._note_each(self.view.apply_all(due))
                due, count = [], 0
        if due:
            self._note_each(self.view.apply_all(due))

    def _said(self, log: Log, record: Opened, where: str, lenient: bool) -> Said | None:
        """Return what a record says; what it says of counters and heads is noted."""
        try:
            meta = decode_meta(record.content.meta, log.stream.epoch)
        except FormatError as error:
            self.note(Finding(error.code, where, str(error)))
            return None
        if record.place.index > 0 and meta.previous != log.counter and not lenient:
            self.note(Finding("counter_false", where, "it names another counter than that of the record before"))
        for head in meta.heads:
            log.named[head.stream_id] = max(log.named.get(head.stream_id, 0), head.index + 1)
            log.claimed[head.stream_id] = max(log.claimed.get(head.stream_id, 0), head.counter)
        if meta.counter > log.counter:
            log.counter = meta.counter
        said, findings = decoded(meta, record.content.columns, where)
        self._note_each(findings)
        return said

    def _note_each(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self.note(finding)

    def note(self, finding: Finding) -> None:
        """List a finding, once."""
        self._noted[finding] = None

    @property
    def findings(self) -> list[Finding]:
        """All that was noticed in the logs, in order."""
        return list(self._noted)

    def hidden(self) -> list[Finding]:
        """Return a finding for each log of which another device has seen more than is here."""
        seen: dict[bytes, int] = {}
        for log in self.logs.values():
            for stream_id, count in log.named.items():
                seen[stream_id] = max(seen.get(stream_id, 0), count)
        found, covered = list[Finding](), newest_rows(self.keychain.keyring)
        for stream_id, count in seen.items():
            here = self.logs[stream_id].end.records if stream_id in self.logs else 0
            missing = count - max(here, covered[stream_id].end.records if stream_id in covered else 0)
            if missing > 0:
                detail = (
                    f"another device has seen {missing} more records than are here: synchronise again, or with another"
                    " remote; the device that wrote them puts them back"
                )
                found.append(Finding("withheld", log_file(stream_id), detail))
        return found

    def misnamed(self) -> list[Finding]:
        """Return a finding for each log of which another claims a counter that it does not have."""
        found = list[Finding]()
        for log in self.logs.values():
            for stream_id, counter in log.claimed.items():
                other, count = self.logs.get(stream_id), log.named[stream_id]
                if other is None or other.sound is not None or not other.end.chain or count > other.end.records:
                    continue  # not here, or not whole: there is nothing to compare with
                if counter > other.counter:
                    detail = f"it claims a counter that no record of {other.name} has"
                    found.append(Finding("counter_false", log.name, detail))
        return found

    # ── writing ─────────────────────────────────────────────────────────────────────────────────────

    def is_own(self, log: Log) -> bool:
        """Return whether this device's present signing key owns a log."""
        return log.stream.owner.sign == self._own

    def write(self, batches: Sequence[Batch], random: bytes) -> None:
        """Write batches as one durable write and apply them; `random` (4 bytes) begins a stream where one is needed."""
        log, opening = self._current(random)
        for each in self._append(log, opening, batches):
            for finding in self.view.apply_decoded(each.operations, each.columns, log.name):
                self.note(finding)

    def _append(self, log: Log, opening: bytes, batches: Sequence[Batch]) -> list[Composed]:
        """Make a write durable, and return what it says; the sealed bytes are let go of before that is applied."""
        heads = self._news_for(log)
        contents, composed = compose(log.stream.epoch, log.counter or self._highest_own(), heads, batches)
        records, end = LogWriter(log.stream.preamble, log.stream.key, self._signing_key, log.end).write(contents)
        # The record that ends a write is there only if the others are: or a crash could leave a part that looks whole.
        if opening:
            self.files.begin(log.stream.stream_id, opening, None, *records)
        else:
            self.files.append(log.stream.stream_id, log.stored, *records)
        self.logs[log.stream.stream_id] = log
        log.wrote(end)
        log.counter = composed[-1].counter
        log.named.update({head.stream_id: head.index + 1 for head in heads})
        self.torn.clear()
        return composed

    def _current(self, random: bytes) -> tuple[Log, bytes]:
        """Return the log to write to, and the preamble to write first where it is new."""
        keyring = self.keychain.keyring
        epoch = keyring.public.epoch
        for log in self.logs.values():
            good = log.appendable and log.counter >= self.least_counter
            if good and self.is_own(log) and log.stream.epoch == epoch:
                return log, b""
        parsed = log_preamble(self.keychain.vault_id, self._own, epoch, keyring.epoch_digest(epoch) or b"", random)
        preamble = parsed.to_bytes()
        return Log.at(self.keychain.stream(preamble, parsed.stream_id), None), preamble

    def next_counter(self) -> int:
        """Return the counter that the next record written here will have."""
        log, _ = self._current(bytes(4))
        return counter_after(log.counter or self._highest_own(), self._news_for(log))

    def _highest_own(self) -> int:
        own = [log.counter for log in self.logs.values() if log.stream.owner.id == self._device]
        return max([self.least_counter, *own])

    def _news_for(self, log: Log) -> tuple[Head, ...]:
        """Return the heads of the other logs that moved since this log's last record.

        Former logs of this device are left out until it is settled where they end: what may be written again and cut
        off would be missed by others for ever.
        """
        return tuple(
            other.head
            for stream_id, other in self.logs.items()
            if other is not log
            and other.end.chain  # where its end is damaged there is nothing that could be named
            and other.end.records > log.named.get(stream_id, 0)
            and (other.settled or not self._is_former(other))
        )

    def _is_former(self, log: Log) -> bool:
        """Return whether this device wrote a log under an earlier key or epoch."""
        return log.stream.owner.id == self._device and not (
            self.is_own(log) and log.stream.epoch == self.keychain.keyring.public.epoch
        )

    # ── new keys ────────────────────────────────────────────────────────────────────────────────────

    def rekey(self, keychain: Keychain, signing_key: SigningKey) -> bool:
        """Go on with a newer keyring (and own key); False where records that were applied do not count any more."""
        self.keychain = keychain
        self._signing_key = signing_key
        self._own = public_signing_key(signing_key)
        still_good = True
        entry = keychain.keyring.public.entry_of(self._own)
        self._device = b"" if entry is None else entry.id
        for log in self.logs.values():
            with contextlib.suppress(FormatError):  # a key that has left the history still serves until the closing
                log.stream = keychain.stream(log.stream.preamble, log.stream.stream_id)
            limit = log.stream.limit
            mine = log.stream.owner.id == self._device
            still_good = still_good and (mine or limit is None or log.end.length <= limit.length)
        return still_good

    def reemit(self, remote_ends: Mapping[bytes, End], random: bytes) -> int:
        """Write again, in a stream of the present epoch, what this device wrote under earlier keys and no remote has.

        `remote_ends` says what the remote has of each log. Operations keep their ids and first stamps; what is left to
        do is `cut_outlived`. Returns the number of operations.
        """
        count = 0
        for stream_id, log in list(self.logs.items()):
            if not self._is_former(log):
                continue
            there = remote_ends.get(stream_id, log.start)
            if not there.records or there.length < log.start.length:
                there = log.start
            if self.files.length(stream_id) <= there.length:
                continue
            if self._is_rewritten(log):
                # Left over, or put back by somebody who has the ended keys: it was written again, and is not believed.
                self.outlived[stream_id] = there
                continue
            batches = self._stored_batches(log, there)
            log.end = there  # so that no record names what only this device has
            if batches:
                self.write(batches, random)
                count += sum(len(batch.values) for batch in batches)
            self.outlived[stream_id] = there
        return count

    def reemit_branch(self, stream_id: bytes, common: End, random: bytes) -> None:
        """Write again in a fresh stream what an own log has after a place where a remote's history goes another way.

        This device was copied, or restored from a backup: afterwards the log holds only what is common.
        """
        log = self.logs[stream_id]
        log.appendable = False
        batches = self._stored_batches(log, common)
        self.least_counter = max(self.least_counter, log.counter)
        log.end = common
        log.counter = self._last_counter(log)  # or the fresh stream would name one that nobody else ever sees
        if batches:
            self.write(batches, random)
        self.outlived[stream_id] = common

    def _is_rewritten(self, log: Log) -> bool:
        """Return whether what an ended key of this device had written was written again before."""
        ended = log.stream.owner.ended
        return log.stream.owner.id == self._device and ended is not None and ended.version <= self.rewritten

    def newest_own_end(self) -> int:
        """Return the newest keyring version that ended a key of this device, or 0."""
        entries = self.keychain.keyring.public.devices
        return max((each.ended.version for each in entries if each.id == self._device and each.ended), default=0)

    def settle_former(self) -> None:
        """Note that this device's former logs now end where they do for everybody."""
        for log in self.logs.values():
            log.settled = self._is_former(log)

    def cut_outlived(self) -> None:
        """Leave of the old logs that were written again what the remote has of them."""
        for stream_id, end in self.outlived.items():
            self._cut(self.logs[stream_id], end)
        self.outlived.clear()

    def _stored_batches(self, log: Log, start: End) -> list[Batch]:
        """Return what a log's records from `start` on carry, ready to be written again."""
        content = self.files.read(log.stream.stream_id, start.length)
        batches = list[Batch]()
        for record in self._reader(log).read(memoryview(content), start).trusted:
            if record.place.index >= log.end.records:
                break  # of a write that was not finished
            try:
                meta = decode_meta(record.content.meta, log.stream.epoch)
            except FormatError:
                continue  # it was noted when the log was read, and has no effect anywhere
            values = [restamped(value, meta.counter, position) for position, value in enumerate(meta.operations)]
            log.counter = max(log.counter, meta.counter)
            batches.append(Batch(columns=record.content.columns, values=values))
        return batches

    def records(self, stream_id: bytes, first: int, last: int) -> Iterator[Opened]:
        """Yield the trusted records of a log from index `first` up to before `last`, a piece of the file at a time.

        `first` is at or after where the file begins; records before it are passed over.
        """
        log = self.logs[stream_id]
        at, window = log.start, _PIECE
        while at.records < last:
            content = memoryview(self.files.read(stream_id, at.length, at.length + window))
            trusted = self._reader(log).read(content, at).trusted
            yield from (record for record in trusted if first <= record.place.index < last)
            if trusted:
                at = up_to(trusted[-1], at, content)
            elif len(content) < window:
                return
            else:
                window *= 2  # one record, or a run of them without a signature, is larger

    # ── floors ──────────────────────────────────────────────────────────────────────────────────────

    def epochs_in_use(self) -> set[int]:
        """Return the epochs of logs that have records here: where a floor covers all of one, its key may go."""
        return {log.stream.epoch for log in self.logs.values() if log.base is None or log.stored > log.start.length}

    def begins_at(self, stream_id: bytes, row: Row) -> bool:
        """Return whether a log's file begins at a floor's row, or after it; a damaged beginning stays as it is."""
        try:
            base = self.files.base(stream_id)
        except FormatError:
            return True
        return base is not None and base.end.length >= row.end.length

    def records_to_drop(self, stream_id: bytes, row: Row) -> Iterator[Opened]:
        """Yield the records that `cut_at` is going to drop: all where the log has another history than the row."""
        last = row.end.records if self.follows(stream_id, row) else self.logs[stream_id].end.records
        return self.records(stream_id, 0, last)

    def follows(self, stream_id: bytes, row: Row) -> bool:
        """Return whether a log here passes through a floor's row."""
        log = self.logs[stream_id]
        same = log.stream.preamble == preamble_of(self.keychain.vault_id, stream_id, row)
        return same and self.end_at(log, row.end.length) == row.end

    def abandon(self, stream_id: bytes) -> None:
        """Write to a log no more, and name none of its records: it is going to be dropped whole."""
        log = self.logs[stream_id]
        self.least_counter = max(self.least_counter, log.counter)
        log.appendable, log.end = False, log.end._replace(chain=b"")

    def cut_at(self, stream_id: bytes, row: Row) -> None:
        """Let a log's file begin at a floor's row; what its checkpoint holds of the log must be applied."""
        preamble, base = preamble_of(self.keychain.vault_id, stream_id, row), base_of(row)
        log = self.logs.get(stream_id)
        if log is None and self.files.length(stream_id) > row.end.length:
            self.files.trim(stream_id, preamble, base)
        elif log is None or not self.follows(stream_id, row):
            self.files.begin(stream_id, preamble, base)
        else:
            self.files.trim(stream_id, preamble, base)
            log.base = base
            self._forget_damage(log, row)
            return
        appendable = log is not None and log.appendable and not self.is_own(log)
        self.logs.pop(stream_id, None)
        self._load_one(stream_id, None)
        if log is not None and stream_id in self.logs:
            self.logs[stream_id].appendable = appendable

    def forget_findings(self, folders: tuple[str, ...]) -> None:
        """Drop the findings on files in folders that are going to be read anew."""
        kept = (noted for noted in self._noted if not noted.where.startswith(folders))
        self._noted = dict.fromkeys(kept)

    def _forget_damage(self, log: Log, row: Row) -> None:
        """Drop the findings on records that are gone, which the checkpoint holds."""
        kept = (noted for noted in self._noted if not _is_before(noted, log.name, row.end.records))
        self._noted = dict.fromkeys(kept)
        if log.sound is not None and log.sound.length < row.end.length:
            log.sound = None

    def end_at(self, log: Log, length: int) -> End | None:
        """Return where a log stands at a length, or None where no record ends there."""
        if not log.start.length <= length <= log.stored:
            return None
        for known in (log.end, *reversed(log.known_ends())):
            if known.length == length:
                return known
        end = end_of_whole_records(memoryview(self.piece(log.stream.stream_id, log.start.length, length)), log.start)
        return end if end.length == length else None

    def _cut(self, log: Log, end: End) -> None:
        if end.records == 0:
            self.files.remove(log.stream.stream_id)
            del self.logs[log.stream.stream_id]
            return
        self.files.append(log.stream.stream_id, end.length, b"")
        log.end, log.stored = end, end.length
        log.counter = self._last_counter(log)

    def _last_counter(self, log: Log) -> int:
        """Return the counter of the last record that a log holds, read anew."""
        content = memoryview(self.piece(log.stream.stream_id, log.start.length, log.end.length))
        counter = 0 if log.base is None else log.base.counter
        for record in self._reader(log).read(content, log.start).trusted:
            with contextlib.suppress(FormatError):  # it was noted when the log was read
                counter = max(counter, decode_meta(record.content.meta, log.stream.epoch).counter)
        return counter

    # ── what remotes have ───────────────────────────────────────────────────────────────────────────

    def stored_length(self, stream_id: bytes) -> int:
        """Return from where on a remote's bytes of a log are wanted."""
        log = self.logs.get(stream_id)
        if log is not None:
            return log.stored
        row = newest_rows(self.keychain.keyring).get(stream_id)
        return 0 if row is None else row.end.length

    def extend(self, stream_id: bytes, content: bytes) -> int:
        """Check and apply what a remote has of a log from `stored_length` on; store the trusted part durably.

        Returns the new stored length. Raises `FormatError` where the log is not one of this vault.
        """
        log = self.logs.get(stream_id)
        opening, base = b"", None
        if log is None:
            row = newest_rows(self.keychain.keyring).get(stream_id)
            if row is None:
                opening, content = content[:PREAMBLE_SIZE], content[PREAMBLE_SIZE:]
            else:
                # The checkpoint that holds the rest does not come, or not whole: that keeps nothing else away.
                opening, base = preamble_of(self.keychain.vault_id, stream_id, row), base_of(row)
            log = Log.at(self.keychain.stream(opening, stream_id), base)
        before = log.stored
        start = log.end.length
        everything = self.piece(stream_id, start, before) + content
        counting = self._counting(log, memoryview(everything))
        reading = self._reader(log).read(counting, log.end)
        if is_fork(log, reading, counting):
            raise FormatError("forked", "the remote has another history of this log: it is left alone")
        if reading.torn:
            # An answer ends where the remote's limit falls: the rest of the last record is still to come.
            reading.findings = [finding for finding in reading.findings if finding.code != "record_torn"]
        self._note_all(log, reading)
        settled = up_to_damage(log.end, self._settle(log, reading), counting)
        if settled.stored > before or opening:
            # Durable first: what is applied is on disk.
            kept = everything[before - start : settled.stored - start]
            if opening:
                self.files.begin(stream_id, opening, base, kept)
            else:
                self.files.append(stream_id, before, kept)
            self.logs[stream_id] = log
        self._commit(log, settled)
        return log.stored

    def mend(self, stream_id: bytes, content: bytes) -> bool:
        """Take a remote's bytes of a log from where it is sound here, if they are whole and reach as far as ours."""
        log = self.logs[stream_id]
        if log.sound is None:
            return False
        reading = self._reader(log).read(memoryview(content), log.sound)
        if reading.sound is not None or reading.end.length < log.stored:
            return False
        reading.findings.clear()  # at most that the answer ends inside a record
        self.files.append(stream_id, log.sound.length, content[: reading.end.length - log.sound.length])
        self._noted = {noted: None for noted in self._noted if not noted.where.startswith(log.name)}
        log.end, log.stored, log.sound, log.appendable = log.sound, log.sound.length, None, True
        log.counter = self._last_counter(log)
        self._commit(log, self._settle(log, reading))
        return True

    def shows_other_history(self, stream_id: bytes, common: End, content: bytes) -> bool:
        """Return whether a remote's bytes after a common place were sealed in this vault, and are others than here.

        Mostly by this device's copy, or before it was put back; an active device could forge them, a server cannot.
        """
        reading = self._reader(self.logs[stream_id]).read(memoryview(content), common)
        opened = [*reading.trusted, *reading.waiting]
        first = next(iter(opened), None)
        if first is None or first.place.offset or first.content.chain != common.chain:
            return False
        here = self.piece(stream_id, common.length, common.length + len(content))
        return any(
            here[record.place.offset : record.place.end] != content[record.place.offset : record.place.end]
            for record in opened
        )

    def piece(self, stream_id: bytes, start: int, end: int) -> bytes:
        """Return stored bytes of a log."""
        return self.files.read(stream_id, start, end)


def _is_before(finding: Finding, name: str, records: int) -> bool:
    """Return whether a finding is about a record of a log before this index."""
    file, _, place = finding.where.partition("#")
    number = place.partition(".")[0]
    return file == name and number.isdigit() and int(number) < records
