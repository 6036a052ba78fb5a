"""Vectors of records: framing, sealing, padding (§4)."""

from making.book import Book, Group
from making.containers import (
    LOG_KEY,
    MEDIA,
    context,
    crc,
    flipped,
    frame,
    header,
    log_preamble,
    padded,
    plaintext,
    preamble,
    record,
    u32,
)
from making.people import ANN, EVE, OTHER_VAULT, seed

RULE = "vault-format §4"
PREAMBLE = log_preamble(ANN.public_sign)


def add(book: Book) -> None:
    group = book.group("record")
    _add_padding_lengths(group)
    _add_opening(group)
    _add_sealed_faults(group)
    _add_padding_faults(group)
    _add_chunks(group)
    _add_walking(group)


def _add_padding_lengths(group: Group) -> None:
    lengths = [0, 1, 1019, 1020, 1021, 1052, 1053, 2043, 2044, 2045, 4092, 4093, 16380, 16381, 100_000, 1 << 20]
    for length in lengths:
        title = f"a content of {length} bytes"
        group.ok(f"pad-{length}", RULE, title, "pad", {"length": length}, padded=padded(4 + length))
    most = 67_043_327
    group.ok("pad-capped", RULE, "the padding never exceeds the limit", "pad", {"length": most - 5}, padded=most)
    group.ok("pad-most", RULE, "the largest content", "pad", {"length": most - 4}, padded=most)
    title = "a content of one byte more than a record can hold"
    group.refused("pad-too-large", RULE, title, "pad", {"length": most - 3}, "record_too_large")


def _given(made: bytes, index: int = 0, key: bytes = LOG_KEY, place: bytes = PREAMBLE) -> dict[str, object]:
    return {"key": key, "preamble": place, "index": index, "record": made}


def _add_opening(group: Group) -> None:
    contents = {
        "empty": b"",
        "one-byte": b"m",
        "full": bytes(range(255)) * 4,
        "first-padded": b"x" * 1021,
        "ends-with-zeros": b"zeros" + bytes(7),
    }
    for name, content in contents.items():
        made = record(group.frozen, f"opens {name}", LOG_KEY, PREAMBLE, 0, plaintext(content))
        group.ok(
            f"opens-{name}",
            RULE,
            f"a sealed content of {len(content)} bytes",
            "open_record",
            _given(made),
            content=content,
        )
    made = record(group.frozen, "opens later", LOG_KEY, PREAMBLE, 70_000, plaintext(b"later"))
    group.ok("opens-later", RULE, "a record with a high index", "open_record", _given(made, 70_000), content=b"later")


def _add_sealed_faults(group: Group) -> None:
    plain = plaintext(b"a memory")
    made = record(group.frozen, "moved", LOG_KEY, PREAMBLE, 3, plain)
    body = made[12:]

    def refused(name: str, title: str, given: dict[str, object], code: str) -> None:
        group.refused(name, RULE, title, "open_record", given, code)

    group.ok("moved-not", RULE, "a record at its place", "open_record", _given(made, 3), content=b"a memory")
    refused("moved-index", "moved to another index, header included", _given(made, 2), "record_order")
    refused(
        "moved-reframed", "moved to another index, with a header for it", _given(frame(2, body), 2), "record_sealed"
    )
    other = log_preamble(ANN.public_sign, random=b"othr")
    refused("moved-log", "moved to another log of the same device", _given(made, 3, place=other), "record_sealed")
    other = log_preamble(EVE.public_sign, vault=OTHER_VAULT)
    refused("moved-vault", "moved to another vault", _given(made, 3, place=other), "record_sealed")
    other = log_preamble(ANN.public_sign, epoch=2)
    refused("moved-epoch", "moved to another epoch", _given(made, 3, place=other), "record_sealed")
    other = preamble(MEDIA, stream=seed("media", 16))
    refused("moved-kind", "moved to a container of another kind", _given(made, 3, place=other), "record_sealed")
    refused("other-key", "another key", _given(made, 3, key=seed("another log key")), "record_sealed")
    places = {
        "salt": (0, "the first byte of the salt"),
        "commitment": (24, "the first byte of the key commitment"),
        "text": (56, "the first sealed byte"),
        "last": (-1, "the last byte of the tag"),
    }
    for name, (position, title) in places.items():
        refused(f"flipped-{name}", title, _given(frame(3, flipped(body, position)), 3), "record_sealed")
    refused("cut-byte", "one byte less, and a header that says so", _given(frame(3, body[:-1]), 3), "record_sealed")
    refused(
        "longer-byte", "one byte more, and a header that says so", _given(frame(3, body + b"\0"), 3), "record_sealed"
    )
    refused("cut-torn", "one byte less than the header says", _given(made[:-1], 3), "record_torn")
    refused("header-alone", "a header and no body", _given(made[:12], 3), "record_torn")
    refused("header-cut", "11 bytes of a header", _given(made[:11], 3), "record_torn")
    refused("header-length", "a flipped bit in the length", _given(flipped(made, 3), 3), "record_header")
    refused("header-index", "a flipped bit in the index", _given(flipped(made, 7), 3), "record_header")
    refused("header-crc", "a flipped bit in the header's CRC", _given(flipped(made, 8), 3), "record_header")
    too_long = header((64 << 20) + 1, 3) + bytes(20)
    refused("length-limit", "a length of 64 MiB and one byte", _given(too_long, 3), "record_length")
    refused("length-most", "a length of 2^32 − 1", _given(header((1 << 32) - 1, 9), 3), "record_length")
    refused(
        "length-allowed", "a length of 64 MiB is allowed, but not there", _given(header(64 << 20, 3), 3), "record_torn"
    )
    sealed = group.frozen.sealed("no index", LOG_KEY, b"memseal/v1/record" + PREAMBLE, plain)
    refused("context-short", "sealed for a context without the index", _given(frame(3, sealed), 3), "record_sealed")
    sealed = group.frozen.sealed("a piece", LOG_KEY, b"memseal/v1/piece" + PREAMBLE + u32(3), plain)
    refused("context-piece", "a piece of a cache, sealed under this key", _given(frame(3, sealed), 3), "record_sealed")


def _add_padding_faults(group: Group) -> None:
    faults = {
        "not-zero": ("the last byte of the padding is not zero", plaintext(b"text", filler=b"\1")),
        "none": ("no padding at all", plaintext(b"text", size=8)),
        "short": ("one byte of padding too few", plaintext(b"text", size=1023)),
        "long": ("one byte of padding too many", plaintext(b"text", size=1025)),
        "next-step": ("padded to the step after the right one", plaintext(b"text", size=2048)),
        "length-over": ("a length word beyond the plaintext", plaintext(b"text", length=1021)),
        "length-huge": ("a length word of 2^32 − 1", plaintext(b"text", length=(1 << 32) - 1)),
        "length-under": ("a length word that makes padding of the text", plaintext(b"text", length=3)),
        "no-length": ("three bytes, too few for a length word", b"\0\0\0"),
        "empty": ("no plaintext at all", b""),
        "power": ("a larger content padded to a power of two, not by Padmé", plaintext(b"x" * 1100, size=2048)),
    }
    for name, (title, plain) in faults.items():
        made = record(group.frozen, f"padding {name}", LOG_KEY, PREAMBLE, 0, plain)
        group.refused(f"padding-{name}", RULE, title, "open_record", _given(made), "record_padding")


def _add_chunks(group: Group) -> None:
    """Longer than a chunk of the sealing: its chunks cannot be moved or dropped."""
    content = bytes(number % 251 for number in range(40_000))
    body = group.frozen.sealed("three chunks", LOG_KEY, context(PREAMBLE, 0), plaintext(content))
    size = 16384 + 16
    head, chunks = body[:56], [body[56:][start : start + size] for start in range(0, len(body) - 56, size)]
    group.ok("chunks", RULE, "a content of three chunks", "open_record", _given(frame(0, body)), content=content)
    swapped = head + b"".join([chunks[1], chunks[0], *chunks[2:]])
    title = "the first two chunks in another order"
    group.refused("chunks-swapped", RULE, title, "open_record", _given(frame(0, swapped)), "record_sealed")
    cut = head + b"".join(chunks[:2])
    title = "the last chunk cut off"
    group.refused("chunks-cut", RULE, title, "open_record", _given(frame(0, cut)), "record_sealed")
    title = "the last chunk twice"
    group.refused("chunks-twice", RULE, title, "open_record", _given(frame(0, body + chunks[2])), "record_sealed")


def _add_walking(group: Group) -> None:
    place = preamble(MEDIA, stream=seed("media", 16))
    two = frame(0, b"first") + frame(1, b"")

    def walked(name: str, title: str, content: bytes, records: list[list[int]]) -> None:
        group.ok(name, RULE, title, "walk_records", {"content": place + content}, records=records)

    def refused(name: str, title: str, content: bytes, code: str) -> None:
        group.refused(name, RULE, title, "walk_records", {"content": place + content}, code)

    walked("walk-none", "a container without records", b"", [])
    walked("walk-two", "two records, the second empty", two, [[64, 5], [81, 0]])
    refused("walk-torn-header", "the second header is cut", two[:-1], "record_torn")
    refused("walk-torn-body", "the last body is cut", two[:16], "record_torn")
    refused("walk-twice", "the first record twice", frame(0, b"a") * 2, "record_order")
    refused("walk-gap", "the second record is not there", frame(0, b"a") + frame(2, b"c"), "record_order")
    refused("walk-from-1", "records counted from 1", frame(1, b"a"), "record_order")
    refused("walk-zeros", "12 zero bytes, whose CRC is not zero", two + bytes(12), "record_header")
    little = (5).to_bytes(4, "little") + bytes(4)
    refused("walk-little-endian", "a length the other way round", little + crc(little) + b"first", "record_length")
