"""Vectors of whole logs: scan, chain, signatures, splices, damage (§4, §5)."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from making.book import Book, Group
from making.containers import (
    LOG_KEY,
    MORE,
    MadeLog,
    content,
    flipped,
    frame,
    header,
    log_preamble,
    pack,
    plaintext,
    record,
)
from making.people import ANN, EVE, OTHER_VAULT, seed

FRAMING, RECORDS = "vault-format §4", "vault-format §5"
PREAMBLE = log_preamble(ANN.public_sign)


def add(book: Book) -> None:
    group = book.group("log")
    five = _written(group, "five", PREAMBLE, "abcde")
    _add_sound(group, five)
    _add_order(group, five)
    _add_splices(group, five)
    _add_damage(group, five)
    _add_signatures(group, five)
    _add_scans(group, five)


def meta(text: str) -> bytes:
    return pack({"previous": 0, "heads": [], "operations": [], "text": text})


def _log(group: Group, name: str, preamble: bytes = PREAMBLE, key: bytes = LOG_KEY) -> MadeLog:
    return MadeLog(group.frozen, name, preamble, key)


def _written(group: Group, name: str, preamble: bytes, texts: Sequence[str], **options: Any) -> MadeLog:
    log = _log(group, name, preamble, options.pop("key", LOG_KEY))
    for text in texts:
        log.put(meta(text), **options)
    return log


def _given(whole: bytes) -> dict[str, object]:
    return {"content": whole, "key": LOG_KEY, "owner": ANN.public_sign}


def _read(
    group: Group,
    name: str,
    title: str,
    whole: bytes,
    trusted: list[int],
    end: dict[str, Any],
    *,
    codes: str = "",
    waiting: Sequence[int] = (),
    torn: int = 0,
    appendable: bool = True,
    rule: str = RECORDS,
) -> None:
    gives: dict[str, Any] = {"trusted": trusted, "waiting": list(waiting), "end": end, "torn": torn}
    gives["appendable"] = appendable
    if codes:
        group.found(name, rule, title, "read_log", _given(whole), codes, **gives)
    else:
        group.ok(name, rule, title, "read_log", _given(whole), **gives)


def _end_of(whole: bytes, records: Sequence[bytes], index: int, known: bool = True) -> dict[str, Any]:
    """Where a log of just these records ends; `index` is the last one's."""
    chain = sha256(whole[:64]).digest()
    for each in records:
        chain = sha256(chain + each).digest()
    length = 64 + sum(map(len, records))
    return {"length": length, "records": index + 1, "chain": chain if known else None}


def _add_sound(group: Group, five: MadeLog) -> None:
    _read(group, "five", "five records, each one write", five.whole(), [0, 1, 2, 3, 4], five.end())
    _read(group, "none", "a log without records", five.whole([]), [], five.end(0))
    writes = _log(group, "writes")
    for text, more in (("a", MORE), ("b", MORE), ("c", 0), ("d", 0)):
        writes.put(meta(text), flags=more, signer=None if more else ANN.sign)
    title = "a write of three records, the last of them signed"
    _read(group, "write-of-three", title, writes.whole(), [0, 1, 2, 3], writes.end())
    large = _log(group, "large")
    large.put(meta("x" * 20_000))
    large.put(meta("y"))
    _read(group, "larger-record", "a record of several chunks before a small one", large.whole(), [0, 1], large.end())


def _add_order(group: Group, five: MadeLog) -> None:
    a, b, c, d, e = five.records
    whole = five.whole([a, c, d, e])
    end = five.end() | {"length": len(whole)}
    title = "the second record was cut out: the chain goes on after it"
    _read(group, "order-dropped", title, whole, [0, 2, 3, 4], end, codes="record_order")
    whole = five.whole([b, c, d, e])
    _read(group, "order-first-dropped", "the first record was cut out", whole, [1, 2, 3, 4], end, codes="record_order")
    whole = five.whole([a, c, b, d, e])
    title = "the second and third record in another order"
    _read(group, "order-swapped", title, whole, [0, 2, 3, 4], five.end(), codes="record_order")
    whole = five.whole([a, b, c, c, d, e])
    end = five.end() | {"length": len(whole)}
    _read(group, "order-twice", "the third record twice", whole, [0, 1, 2, 3, 4], end, codes="record_order")
    whole = five.whole([a, b, c])
    _read(
        group,
        "order-end-cut",
        "the last two cut off: a shorter log, and nothing is wrong",
        whole,
        [0, 1, 2],
        five.end(3),
    )


def _reframed(made: bytes, index: int) -> bytes:
    return frame(index, made[12:])


def _add_splices(group: Group, five: MadeLog) -> None:
    others = {
        "log": (
            "another log of the same device",
            _written(group, "other log", log_preamble(ANN.public_sign, random=b"othr"), "abx"),
        ),
        "device": (
            "a log of another device",
            _written(group, "other device", log_preamble(EVE.public_sign), "abx", signer=EVE.sign),
        ),
        "epoch": (
            "a log of another epoch",
            _written(group, "other epoch", log_preamble(ANN.public_sign, epoch=2), "abx"),
        ),
        "vault": (
            "a log of another vault",
            _written(group, "other vault", log_preamble(EVE.public_sign, vault=OTHER_VAULT), "abx", signer=EVE.sign),
        ),
        "key": ("a log under another key", _written(group, "other key", PREAMBLE, "abx", key=seed("another"))),
    }
    a, b, c, d, e = five.records
    for name, (title, other) in others.items():
        whole = five.whole([a, b, other.records[2], d, e])
        end = five.end() | {"chain": _after(d, five, e)}
        _read(
            group,
            f"splice-{name}",
            f"the third record is from {title}",
            whole,
            [0, 1, 3, 4],
            end,
            codes="record_sealed",
        )
    whole = five.whole([a, b, _reframed(b, 2), d, e])
    end = five.end() | {"chain": _after(d, five, e)}
    title = "the second record again as the third, with a header for it"
    _read(group, "splice-index", title, whole, [0, 1, 3, 4], end, codes="record_sealed")
    first = _log(group, "other first")
    first.put(meta("a"), chain=seed("another chain"))
    first.put(meta("b"), chain=sha256(seed("another chain") + first.records[0]).digest())
    end = {"length": len(first.whole()), "records": 2, "chain": _chain_from(seed("another chain"), first.records)}
    title = "the first record does not follow its preamble"
    _read(group, "splice-first", title, first.whole(), [0, 1], end, codes="chain_broken")
    branch = _written(group, "branch", PREAMBLE, "abCD")
    whole = five.whole([a, b, c, branch.records[3]])
    chain = sha256(branch.chains[3] + branch.records[3]).digest()
    end = {"length": len(whole), "records": 4, "chain": chain}
    title = "the last record was written after another third one: both branches are the owner's"
    _read(group, "splice-branch", title, whole, [0, 1, 2, 3], end, codes="chain_broken")


def _after(first: bytes, log: MadeLog, *others: bytes) -> bytes:
    """The chain that the record `first` says it was written after, and what follows from there."""
    chain = log.chains[log.records.index(first)]
    for each in (first, *others):
        chain = sha256(chain + each).digest()
    return chain


def _chain_from(chain: bytes, records: Sequence[bytes]) -> bytes:
    for each in records:
        chain = sha256(chain + each).digest()
    return chain


def _add_damage(group: Group, five: MadeLog) -> None:
    a, b, c, d, e = five.records
    whole = five.whole([a, b, flipped(c, 600), d, e])
    title = "a flipped byte in the third record costs it alone"
    _read(group, "damage-body", title, whole, [0, 1, 3, 4], five.end(), codes="record_sealed")
    whole = five.whole([a, b, flipped(c, 2), d, e])
    title = "a flipped bit in the third header's length: the next header is found"
    _read(group, "damage-header", title, whole, [0, 1, 3, 4], five.end(), codes="record_header", rule=FRAMING)
    whole = five.whole([a, b, c[:700], d, e])
    end = five.end() | {"length": len(whole)}
    title = "a record that lost bytes takes the next one with it"
    _read(group, "damage-bytes-lost", title, whole, [0, 1, 4], end, codes="record_sealed record_header", rule=FRAMING)
    whole = five.whole([a, b, c, d, flipped(e, -1)])
    end = five.end() | {"chain": sha256(five.chains[4] + flipped(e, -1)).digest()}
    title = "the last record is damaged: nothing may be appended"
    _read(group, "damage-last", title, whole, [0, 1, 2, 3], end, codes="record_sealed", appendable=False)
    whole = five.whole() + bytes(5000)
    title = "zeros after the end: nothing may be appended"
    _read(
        group,
        "damage-zeros",
        title,
        whole,
        [0, 1, 2, 3, 4],
        five.end(),
        codes="record_header",
        appendable=False,
        rule=FRAMING,
    )
    for left in (1, 11, 12, 600, len(e) - 1):
        whole = five.whole([a, b, c, d, e[:left]])
        title = f"only {left} bytes of the last record: a torn write"
        _read(
            group, f"torn-{left}", title, whole, [0, 1, 2, 3], five.end(4), codes="record_torn", torn=left, rule=FRAMING
        )
    whole = five.whole([a, b, c, d]) + header((64 << 20) + 1, 4) + bytes(2000)
    title = "a header beyond 64 MiB at the end is damage, not torn"
    _read(
        group,
        "damage-length",
        title,
        whole,
        [0, 1, 2, 3],
        five.end(4),
        codes="record_length",
        appendable=False,
        rule=FRAMING,
    )
    whole = five.whole([a, b, frame(2, bytes(1095)), d, e])
    title = "a record of fewer bytes than any sealed one has"
    end = five.end() | {"length": len(whole)}
    _read(group, "damage-small", title, whole, [0, 1, 3, 4], end, codes="record_length", rule=FRAMING)


def _add_signatures(group: Group, five: MadeLog) -> None:
    a, b, _, d, e = five.records
    tail = _log(group, "tail")
    tail.put(meta("a"))
    tail.put(meta("b"), signer=None)
    tail.put(meta("c"), signer=None)
    title = "records at the end that no signature covers wait for one"
    _read(group, "signature-waits", title, tail.whole(), [0], tail.end(), waiting=[1, 2])
    tail.put(meta("d"))
    _read(group, "signature-comes", "a signature covers all before it", tail.whole(), [0, 1, 2, 3], tail.end())
    none = _log(group, "none signed")
    none.put(meta("a"), signer=None)
    _read(group, "signature-none", "nothing is signed", none.whole(), [], none.end(), waiting=[0])
    stranger = _log(group, "stranger")
    stranger.put(meta("a"))
    stranger.put(meta("b"), signer=EVE.sign)
    title = "the last record is signed by a stranger who has the vault key"
    _read(
        group,
        "signature-stranger",
        title,
        stranger.whole(),
        [0],
        stranger.end(),
        codes="signature_invalid",
        waiting=[1],
    )
    stranger.put(meta("c"))
    title = "the owner wrote after what a stranger signed: the chain says that it was there"
    _read(group, "signature-stranger-covered", title, stranger.whole(), [0, 1, 2], stranger.end())
    forged = {
        "stranger": ("by a stranger", EVE.sign, "chain_broken signature_invalid signature_absent"),
        "nobody": ("by nobody", None, "chain_broken signature_absent"),
    }
    for name, (by, signer, codes) in forged.items():
        body = content(meta("forged"), chain=five.chains[2], preamble=PREAMBLE, index=2, signer=signer)
        made = record(group.frozen, f"forged {name}", LOG_KEY, PREAMBLE, 2, plaintext(body))
        whole = five.whole([a, b, made, d, e])
        end = {"length": len(whole), "records": 5, "chain": _after(d, five, e)}
        title = f"the third record was sealed anew under the vault key, signed {by}"
        _read(group, f"signature-forged-{name}", title, whole, [0, 1, 3, 4], end, codes=codes)
    for name, position, what in (("text", 40, "meta"), ("chain", 3, "chain"), ("signature", -1, "signature")):
        _add_unsigned_change(group, five, name, position, what)
    _add_moved_signatures(group, five)


def _add_unsigned_change(group: Group, five: MadeLog, name: str, position: int, what: str) -> None:
    """The last record with one byte of its content changed, sealed again."""
    body = five.contents[4]
    if name == "text":
        position = body.index(b"\xa1e") + 1
    made = record(group.frozen, f"changed {name}", LOG_KEY, PREAMBLE, 4, plaintext(flipped(body, position)))
    whole = five.whole([*five.records[:4], made])
    chain = flipped(body, position)[:32]
    end = {"length": len(whole), "records": 5, "chain": sha256(chain + made).digest()}
    codes = "signature_invalid" + (" chain_broken" if name == "chain" else "")
    title = f"the last record has another {what} than was signed"
    _read(group, f"signature-other-{name}", title, whole, [0, 1, 2, 3], end, codes=codes, waiting=[4])


def _add_moved_signatures(group: Group, five: MadeLog) -> None:
    body = five.contents[3]
    made = record(group.frozen, "content moved", LOG_KEY, PREAMBLE, 4, plaintext(five.chains[4] + body[32:]))
    whole = five.whole([*five.records[:4], made])
    end = {"length": len(whole), "records": 5, "chain": sha256(five.chains[4] + made).digest()}
    title = "the content before it sealed again at the next index, with the right chain and the old signature"
    _read(group, "signature-other-index", title, whole, [0, 1, 2, 3], end, codes="signature_invalid", waiting=[4])
    other = log_preamble(ANN.public_sign, random=b"othr")
    body = content(meta("e"), chain=five.chains[4], preamble=other, index=4)
    made = record(group.frozen, "signed elsewhere", LOG_KEY, PREAMBLE, 4, plaintext(body))
    whole = five.whole([*five.records[:4], made])
    end = {"length": len(whole), "records": 5, "chain": sha256(five.chains[4] + made).digest()}
    title = "the signature was made for another log"
    _read(group, "signature-other-log", title, whole, [0, 1, 2, 3], end, codes="signature_invalid", waiting=[4])


def _add_scans(group: Group, five: MadeLog) -> None:
    a, b, _, d, e = five.records
    size = len(a)
    places = [[index, 64 + index * size, size - 12] for index in range(5)]

    def scanned(
        name: str, title: str, whole: bytes, records: list[list[int]], damaged: list[list[int]], codes: str
    ) -> None:
        place = (f"scan-{name}", FRAMING, title, "scan", {"content": whole})
        if codes:
            group.found(*place, codes, records=records, damaged=damaged)
        else:
            group.ok(*place, records=records, damaged=damaged)

    scanned("sound", "a scan of a sound log", five.whole(), places, [], "")
    hole = [places[0], places[3], places[4]]
    damaged = five.whole([a, bytes(size), bytes(size), d, e])
    scanned(
        "hole",
        "two records of zeros are one damaged range",
        damaged,
        hole,
        [[64 + size, 64 + 3 * size]],
        "record_header",
    )
    whole = five.whole([a, d, e])
    records = [places[0], [3, 64 + size, size - 12], [4, 64 + 2 * size, size - 12]]
    scanned(
        "cut-out",
        "where records were cut out the range has no bytes",
        whole,
        records,
        [[64 + size, 64 + size]],
        "record_order",
    )
    far = frame(1025, bytes(1096))
    records = [places[0], [1025, 64 + size, 1096]]
    title = "1,024 records cut out are the most that are looked beyond"
    scanned("missing-most", title, five.whole([a, far]), records, [[64 + size, 64 + size]], "record_order")
    far = frame(1026, bytes(1096))
    title = "an index one further is not believed"
    scanned(
        "missing-too-many", title, five.whole([a, far]), places[:1], [[64 + size, 64 + size + len(far)]], "record_order"
    )
    gap = bytes(1108)
    far = frame(1026, bytes(1096))
    after = 64 + size + len(gap)
    title = "1,108 damaged bytes could have held one record: an index one further is believed"
    records = [places[0], [1026, after, 1096]]
    scanned("missing-in-gap", title, five.whole([a, gap, far]), records, [[64 + size, after]], "record_header")
    title = "1,107 damaged bytes could not"
    records = places[:1]
    short = five.whole([a, gap[1:], far])
    scanned("missing-in-short-gap", title, short, records, [[64 + size, len(short)]], "record_header")
    inside = frame(1, bytes(1000) + frame(2, bytes(1096)))
    records = [places[0], [1, 64 + size, len(inside) - 12], [2, 64 + size + len(inside), 1096]]
    title = "a header inside a sound record is not looked for"
    scanned("nested", title, five.whole([a, inside, frame(2, bytes(1096))]), records, [], "")
    broken = flipped(inside, 0)
    records = [places[0], [2, 64 + size + 12 + 1000, 1096]]
    title = "a header inside a damaged record is found, if all of its record is there"
    scanned("nested-damaged", title, five.whole([a, broken]), records, [[64 + size, 64 + size + 1012]], "record_header")
    small = five.whole([a, bytes(40), frame(2, bytes(1095)), frame(3, bytes(1096))])
    offset = 64 + size + 40 + 12 + 1095
    title = "in a damaged range a record of 1,095 bytes is none"
    scanned("small", title, small, [places[0], [3, offset, 1096]], [[64 + size, offset]], "record_header")
    back = five.whole([a, b, bytes(30), frame(1, bytes(1096)), frame(2, bytes(1096))])
    offset = 64 + 2 * size + 30 + 12 + 1096
    title = "in a damaged range an index below the expected one is none"
    scanned("backwards", title, back, [*places[:2], [2, offset, 1096]], [[64 + 2 * size, offset]], "record_header")
    whole = five.whole([a, b]) + header(5000, 2) + bytes(100) + frame(3, bytes(1096))
    offset = 64 + 2 * size + 12 + 100
    title = "a record that seems to be cut, and a sound one in it: damage, not torn"
    scanned("torn-inside", title, whole, [*places[:2], [3, offset, 1096]], [[64 + 2 * size, offset]], "record_header")
    title = "a preamble and one byte"
    scanned("one-byte", title, five.whole([]) + b"\0", [], [[64, 65]], "record_torn")
