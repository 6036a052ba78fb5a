"""Which records of a log are trusted, which wait, and which are quarantined (vault-format §5)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.format import primitives
from memseal.format.content import Content, chain_next, decode_content, encode_content
from memseal.format.keys import RecordKey, SigningKey
from memseal.format.log import End, LogReader, LogWriter, Reading, start_of
from memseal.format.preamble import PREAMBLE_SIZE, log_preamble
from memseal.format.records import HEADER_SIZE, frame, open_record, seal_record
from memseal.format.values import encode_value
from tests.format.broken import flipped

VAULT = bytes(range(16))
OWNER, STRANGER = SigningKey(bytes(range(32))), SigningKey(bytes(range(1, 33)))
PUBLIC = primitives.public_signing_key(OWNER)
KEY = RecordKey(bytes(range(2, 34)))


def _preamble(epoch: int = 1, random: bytes = b"rand", vault: bytes = VAULT) -> bytes:
    return log_preamble(vault, PUBLIC, epoch, bytes(32), random).to_bytes()


PREAMBLE = _preamble()
START = start_of(PREAMBLE)


@dataclass
class Made:
    """A log that is being made: its records, and where it ends."""

    preamble: bytes = PREAMBLE
    key: RecordKey = KEY

    def __post_init__(self) -> None:
        self.records: list[bytes] = []
        self.end = start_of(self.preamble)

    def write(self, *texts: str) -> "Made":
        """One write of a record for each text."""
        contents = [Content(b"", False, {"text": text}, ()) for text in texts]
        written, end = LogWriter(self.preamble, self.key, OWNER, self.end).write(contents)
        self._cut(b"".join(written))
        self.end = end
        return self

    def put(
        self, text: str, signer: SigningKey | None = None, more: bool = False, chain: bytes | None = None
    ) -> "Made":
        """One record that anyone with the vault key could make: not signed, or by whom they like."""
        index = len(self.records)
        record = sealed_by(self, index, text, signer, more, self.end.chain if chain is None else chain)
        self.records.append(record)
        self.end = End(self.end.length + len(record), index + 1, chain_next(self.end.chain, record))
        return self

    def _cut(self, written: bytes) -> None:
        while written:
            size = HEADER_SIZE + int.from_bytes(written[:4], "big")
            self.records.append(written[:size])
            written = written[size:]

    def end_after(self, count: int) -> End:
        """Where the log ends after its first records."""
        end = start_of(self.preamble)
        for record in self.records[:count]:
            end = End(end.length + len(record), end.records + 1, chain_next(end.chain, record))
        return end


def sealed_by(log: Made, index: int, text: str, signer: SigningKey | None, more: bool, chain: bytes) -> bytes:
    """A record at an index, signed by anyone or no one."""
    if signer is None:
        meta = encode_value({"text": text})
        body = chain + bytes([2 if more else 0]) + len(meta).to_bytes(4, "big") + meta
    else:
        body = encode_content(Content(chain, more, {"text": text}, ()), log.preamble, index, signer)
    return seal_record(log.key, log.preamble, index, body)


def read(records: Sequence[bytes] | bytes, start: End = START, verified: End | None = None) -> Reading:
    content = records if isinstance(records, bytes) else b"".join(records)
    return LogReader("log", PREAMBLE, KEY, PUBLIC).read(memoryview(content), start, verified)


def texts(reading: Reading) -> list[str]:
    return [record.content.meta["text"] for record in reading.trusted]


def waiting(reading: Reading) -> list[str]:
    return [record.content.meta["text"] for record in reading.waiting]


def codes(reading: Reading) -> list[tuple[str, str]]:
    return [(finding.code, finding.where.removeprefix("log#")) for finding in reading.findings]


def _five() -> Made:
    log = Made()
    for name in "abcde":
        log.write(name)
    return log


FIVE = _five()
RECORDS = FIVE.records


# ── sound logs ──────────────────────────────────────────────────────────────────────────────────────


@given(writes=st.lists(st.lists(st.text("ab", max_size=5), min_size=1, max_size=3), max_size=4))
def test_what_is_written_is_trusted_and_ends_where_the_writer_says(writes: list[list[str]]) -> None:
    log = Made()
    for write in writes:
        log.write(*write)
    reading = read(log.records)
    assert texts(reading) == [text for write in writes for text in write]
    assert (reading.end, reading.findings, reading.torn, reading.damaged_end) == (log.end, [], 0, False)


def test_all_records_but_the_last_of_a_write_say_that_more_follows() -> None:
    log = Made().write("a", "b", "c").write("d")
    assert [record.content.more for record in read(log.records).trusted] == [True, True, False, False]


def test_writer_does_not_move_until_it_is_told() -> None:
    writer = LogWriter(PREAMBLE, KEY, OWNER, START)
    writer.write([Content(b"", False, {}, ())])
    assert writer.end == START


def test_chain_is_the_hash_over_all_stored_bytes() -> None:
    chain = sha256(PREAMBLE).digest()
    for record in RECORDS:
        chain = sha256(chain + record).digest()
    assert read(RECORDS).end == End(PREAMBLE_SIZE + len(b"".join(RECORDS)), 5, chain)


@given(cut=st.integers(0, 5))
def test_log_read_in_two_pieces_ends_as_in_one(cut: int) -> None:
    first = read(RECORDS[:cut])
    second = read(RECORDS[cut:], first.end)
    assert texts(first) + texts(second) == list("abcde")
    assert second.end == FIVE.end


# ── signatures ──────────────────────────────────────────────────────────────────────────────────────


def test_tail_that_no_signature_covers_waits() -> None:
    log = Made().write("a").put("b").put("c")
    reading = read(log.records)
    assert (texts(reading), waiting(reading), codes(reading)) == (["a"], ["b", "c"], [])


def test_tail_counts_as_soon_as_a_signature_covers_it() -> None:
    log = Made().write("a").put("b").put("c").write("d")
    reading = read(log.records)
    assert (texts(reading), waiting(reading), codes(reading)) == (list("abcd"), [], [])


def test_tail_signed_by_a_stranger_waits_and_is_named() -> None:
    log = Made().write("a").put("b", STRANGER)
    reading = read(log.records)
    assert (texts(reading), waiting(reading), codes(reading)) == (["a"], ["b"], [("signature_invalid", "1")])


def test_newest_valid_signature_covers_what_a_stranger_signed_before_it() -> None:
    # The owner wrote "c" after these very bytes: its chain says so.
    log = Made().write("a").put("b", STRANGER).write("c")
    assert (texts(read(log.records)), codes(read(log.records))) == (list("abc"), [])


def test_record_resealed_by_another_key_holder_is_quarantined_and_the_rest_served() -> None:
    forged = sealed_by(FIVE, 2, "forged", STRANGER, False, FIVE.end_after(2).chain)
    reading = read([*RECORDS[:2], forged, *RECORDS[3:]])
    assert texts(reading) == list("abde")
    assert codes(reading) == [("chain_broken", "3"), ("signature_invalid", "2"), ("signature_absent", "2")]


def test_record_resealed_without_a_signature_is_quarantined_and_the_rest_served() -> None:
    forged = sealed_by(FIVE, 2, "forged", None, False, FIVE.end_after(2).chain)
    reading = read([*RECORDS[:2], forged, *RECORDS[3:]])
    assert texts(reading) == list("abde")
    assert codes(reading) == [("chain_broken", "3"), ("signature_absent", "2")]


def test_signature_of_another_record_does_not_cover_a_forged_one() -> None:
    body = bytes(open_record(KEY, PREAMBLE, 2, memoryview(RECORDS[2])[HEADER_SIZE:]))
    forged = seal_record(KEY, PREAMBLE, 2, body.replace(b"\xa1c", b"\xa1x"))
    reading = read([*RECORDS[:2], forged, *RECORDS[3:]])
    assert texts(reading) == list("abde")
    assert codes(reading) == [("chain_broken", "3"), ("signature_invalid", "2"), ("signature_absent", "2")]


def test_content_resealed_at_another_index_is_quarantined() -> None:
    body = bytes(open_record(KEY, PREAMBLE, 1, memoryview(RECORDS[1])[HEADER_SIZE:]))
    forged = seal_record(KEY, PREAMBLE, 2, body)
    reading = read([*RECORDS[:2], forged, *RECORDS[3:]])
    assert texts(reading) == list("abde")
    assert ("signature_invalid", "2") in codes(reading)


def test_tail_cut_off_and_written_anew_by_a_stranger_is_not_trusted() -> None:
    log = _five()
    log.records, log.end = log.records[:3], log.end_after(3)
    log.put("x", STRANGER).put("y", STRANGER)
    reading = read(log.records)
    assert (texts(reading), waiting(reading)) == (list("abc"), ["x", "y"])


# ── records replaced, dropped, moved ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("gone", range(4))
def test_record_that_was_dropped_is_noticed_and_costs_only_itself(gone: int) -> None:
    reading = read(RECORDS[:gone] + RECORDS[gone + 1 :])
    assert texts(reading) == [name for index, name in enumerate("abcde") if index != gone]
    assert codes(reading) == [("record_order", str(gone))]


def test_last_record_that_was_dropped_leaves_a_shorter_log() -> None:
    assert read(RECORDS[:4]).end == FIVE.end_after(4)


def test_records_in_another_order_are_noticed() -> None:
    reading = read([RECORDS[0], RECORDS[2], RECORDS[1], *RECORDS[3:]])
    assert texts(reading) == list("acde")
    assert {code for code, _ in codes(reading)} == {"record_order"}


def test_record_that_came_twice_is_served_once() -> None:
    reading = read([*RECORDS[:3], RECORDS[2], *RECORDS[3:]])
    assert texts(reading) == list("abcde")
    assert codes(reading) == [("record_order", "3")]


@pytest.mark.parametrize(
    "other",
    [
        Made(_preamble(random=b"othr")),
        Made(_preamble(epoch=2)),
        Made(_preamble(vault=bytes(16))),
        Made(key=RecordKey(bytes(32))),
    ],
    ids=["another log", "another epoch", "another vault", "another key"],
)
def test_record_spliced_from_elsewhere_does_not_open(other: Made) -> None:
    spliced = other.write("a").write("b").write("x").records[2]
    reading = read([*RECORDS[:2], spliced, *RECORDS[3:]])
    assert texts(reading) == list("abde")
    assert codes(reading) == [("record_sealed", "2")]


def test_log_of_another_branch_joined_on_is_noticed() -> None:
    branch = Made().write("a").write("b").write("C").write("D").records
    reading = read([*RECORDS[:3], branch[3]])
    assert texts(reading) == list("abcD")
    assert codes(reading) == [("chain_broken", "3")]


def test_content_of_another_log_resealed_here_is_not_trusted() -> None:
    other = Made(_preamble(random=b"othr")).write("x")
    body = bytes(open_record(KEY, other.preamble, 0, memoryview(other.records[0])[HEADER_SIZE:]))
    reading = read([seal_record(KEY, PREAMBLE, 0, body)])
    assert (texts(reading), waiting(reading)) == ([], ["x"])
    assert ("signature_invalid", "0") in codes(reading)


# ── damage ──────────────────────────────────────────────────────────────────────────────────────────


@given(bit=st.integers(0, 8 * len(b"".join(RECORDS)) - 1))
def test_flipped_bit_costs_its_record_alone_and_is_found(bit: int) -> None:
    reading = read(flipped(b"".join(RECORDS), bit))
    hit = next(n for n in range(5) if bit // 8 < sum(map(len, RECORDS[: n + 1])))
    assert texts(reading) == [name for index, name in enumerate("abcde") if index != hit]
    # A damaged length of the last header leaves a record that seems not to be complete; others are damage.
    assert [where for _, where in codes(reading)] == [str(hit)]
    assert reading.damaged_end == (hit == 4)


def test_damage_of_the_last_record_forbids_to_append() -> None:
    reading = read(flipped(b"".join(RECORDS), 8 * (len(b"".join(RECORDS)) - 1)))
    assert reading.damaged_end
    assert reading.torn == 0
    assert codes(reading) == [("record_sealed", "4")]


def test_damage_inside_a_write_costs_only_its_record() -> None:
    log = Made().write("a", "b", "c").write("d")
    for hit, left in enumerate(["bcd", "acd", "abd"]):
        records = list(log.records)
        records[hit] = flipped(records[hit], 8 * 500)
        assert texts(read(records)) == list(left)


def test_garbage_after_the_end_forbids_to_append() -> None:
    reading = read([*RECORDS, bytes(5000)])
    assert (texts(reading), reading.end, reading.damaged_end, reading.torn) == (list("abcde"), FIVE.end, True, 0)


@pytest.mark.parametrize("left", range(1, len(RECORDS[4]), 7))
def test_torn_write_is_told_from_damage_at_every_length(left: int) -> None:
    reading = read([*RECORDS[:4], RECORDS[4][:left]])
    assert texts(reading) == list("abcd")
    assert (reading.end, reading.torn, reading.damaged_end) == (FIVE.end_after(4), left, False)
    assert codes(reading) == [("record_torn", "4")]


@given(data=st.data())
def test_log_cut_anywhere_serves_the_records_that_are_whole(data: st.DataObject) -> None:
    content = b"".join(RECORDS)
    cut = data.draw(st.integers(0, len(content)))
    whole = sum(cut >= sum(map(len, RECORDS[: n + 1])) for n in range(5))
    reading = read(content[:cut])
    assert texts(reading) == list("abcde")[:whole]
    assert reading.end == FIVE.end_after(whole)
    assert reading.torn == cut - sum(map(len, RECORDS[:whole]))


@given(content=st.binary(max_size=300))
def test_any_bytes_end_in_findings_and_never_in_an_error(content: bytes) -> None:
    reading = read([*RECORDS[:2], content])
    assert texts(reading) == ["a", "b"]
    assert bool(reading.findings) == bool(content)


@given(data=st.data())
def test_whatever_an_attacker_without_keys_does_only_what_the_owner_wrote_is_trusted(data: st.DataObject) -> None:
    pieces = data.draw(st.lists(st.sampled_from([*RECORDS, b"", b"x" * 40]), max_size=8))
    served = texts(read(pieces))
    assert served == sorted(set(served))
    assert set(served) <= set("abcde")


# ── what was verified before ────────────────────────────────────────────────────────────────────────


class Counted:
    """Counts the signatures that are verified."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        verify: Callable[..., None] = primitives.verify

        def counting(*arguments: Any) -> None:
            self.count += 1
            verify(*arguments)

        monkeypatch.setattr(primitives, "verify", counting)


def test_one_signature_is_verified_for_a_log_without_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    assert texts(read(RECORDS)) == list("abcde")
    assert counted.count == 1


def test_what_was_verified_is_not_verified_again(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    assert texts(read(RECORDS, verified=FIVE.end)) == list("abcde")
    assert counted.count == 0


def test_only_what_came_after_the_mark_is_verified() -> None:
    log = _five()
    log.records, log.end = log.records[:3], log.end_after(3)
    unsigned = Made().put("a").put("b")
    mark = unsigned.end
    assert texts(read(unsigned.records, verified=mark)) == ["a", "b"]
    assert (texts(read(unsigned.put("c").records, verified=mark)), waiting(read(unsigned.records, verified=mark))) == (
        ["a", "b"],
        ["c"],
    )


def test_mark_covers_the_run_that_it_ends_wherever_that_began() -> None:
    log = Made().put("a").put("b").put("c").put("d")
    behind_damage = read([log.records[0], flipped(log.records[1], 0), *log.records[2:]], verified=log.end)
    assert texts(behind_damage) == ["c", "d"]
    assert texts(read(log.records[1:], log.end_after(1), log.end)) == ["b", "c", "d"]


@pytest.mark.parametrize(
    "change",
    [
        lambda end: end._replace(chain=bytes(32)),
        lambda end: end._replace(length=end.length - 1),
        lambda end: end._replace(records=end.records - 1),
        lambda end: End(end.length + 1108, end.records + 1, end.chain),
    ],
    ids=["chain", "length", "records", "beyond"],
)
def test_mark_that_does_not_hold_saves_nothing(change: Callable[[End], End]) -> None:
    unsigned = Made().put("a").put("b")
    reading = read(unsigned.records, verified=change(unsigned.end))
    assert (texts(reading), waiting(reading)) == ([], ["a", "b"])


def test_mark_does_not_cover_a_log_that_was_changed_before_it() -> None:
    forged = sealed_by(FIVE, 1, "forged", STRANGER, False, FIVE.end_after(1).chain)
    reading = read([RECORDS[0], forged, *RECORDS[2:]], verified=FIVE.end)
    assert texts(reading) == list("acde")


def test_places_are_relative_to_where_reading_began() -> None:
    first = read(RECORDS[:2])
    second = read(RECORDS[2:], first.end)
    assert second.trusted[0].place.offset == 0
    assert second.trusted[0].place.index == 2


def test_log_whose_end_is_not_known_goes_on_with_a_new_run() -> None:
    reading = read(RECORDS[2:], End(FIVE.end_after(2).length, 2, b""))
    assert texts(reading) == list("cde")


def test_content_that_opens_but_breaks_the_format_is_a_finding() -> None:
    broken = seal_record(KEY, PREAMBLE, 2, bytes(20))
    assert codes(read([*RECORDS[:2], broken])) == [("record_content", "2")]


def test_frame_of_an_open_record_is_no_record_of_a_log() -> None:
    reading = read([frame(0, b"open"), *RECORDS[1:]])
    assert texts(reading) == list("bcde")


def test_decoded_contents_are_what_was_sealed() -> None:
    body = open_record(KEY, PREAMBLE, 0, memoryview(RECORDS[0])[HEADER_SIZE:])
    assert decode_content(body, PREAMBLE, 0)[0].chain == START.chain
