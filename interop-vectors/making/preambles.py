"""Vectors of preambles (§3)."""

from making.book import Book
from making.containers import (
    BUNDLE,
    CACHE,
    CHECKPOINT,
    DEVICE,
    KEYRING,
    KINDS,
    LOG,
    MEDIA,
    SESSION,
    TRACE,
    crc,
    flipped,
    log_preamble,
)
from making.containers import preamble as make
from making.people import ANN, EVE, OTHER_VAULT, VAULT, seed

RULE = "vault-format §3"


def add(book: Book) -> None:
    group = book.group("preamble")
    good = log_preamble(ANN.public_sign)

    def given(content: bytes, kind: int = LOG, vault: bytes | None = VAULT) -> dict[str, object]:
        return {"content": content, "kind": kind, "vault_id": vault}

    def opens(name: str, title: str, content: bytes, kind: int = LOG, vault: bytes | None = VAULT) -> None:
        gives = {"vault_id": content[16:32], "stream_id": content[32:48], "nonce": content[48:60]}
        epoch = int.from_bytes(content[12:16], "big")
        group.ok(name, RULE, title, "decode_preamble", given(content, kind, vault), epoch=epoch, **gives)

    def refused(name: str, title: str, content: bytes, code: str, vault: bytes | None = VAULT) -> None:
        group.refused(name, RULE, title, "decode_preamble", given(content, LOG, vault), code)

    opens("log", "a log's preamble", good)
    opens("keyring", "a keyring version's", make(KEYRING, epoch=1, stream=bytes(15) + b"\1"), KEYRING)
    opens("device", "a device file's", make(DEVICE, stream=ANN.id), DEVICE)
    manifest = make(CHECKPOINT, epoch=2, stream=seed("checkpoint", 16), nonce=seed("v")[:8] + bytes(4))
    opens("manifest", "a checkpoint manifest's", manifest, CHECKPOINT)
    opens("part", "a checkpoint part's", make(CHECKPOINT, stream=seed("part", 16)), CHECKPOINT)
    opens("media", "a media item's", make(MEDIA, stream=seed("media", 16)), MEDIA)
    opens("bundle", "a bundle's", make(BUNDLE, stream=seed("bundle", 16)), BUNDLE)
    opens("cache", "a cache's", make(CACHE, stream=ANN.id, nonce=seed("nonce", 12)), CACHE)
    opens("trace", "a file of traces'", make(TRACE, stream=ANN.id, nonce=seed("nonce", 12)), TRACE)
    opens("session", "a kept session's", make(SESSION, stream=seed("session", 16)), SESSION)
    opens("any-vault", "whose vault it is is not asked", make(LOG, epoch=1, vault=OTHER_VAULT), vault=None)
    opens("epoch-most", "the highest epoch that 4 bytes hold", make(LOG, epoch=(1 << 32) - 1))
    opens("more-after-it", "what comes after 64 bytes is none of the preamble's business", good + b"more")

    refused("empty", "no bytes at all", b"", "preamble_short")
    refused("short", "one byte too few", good[:63], "preamble_short")
    refused("short-before-magic", "too few bytes, and they are wrong too", bytes(63), "preamble_short")
    refused("magic-first", "first byte of the magic", flipped(good, 0), "preamble_magic")
    unix = good.replace(b"\r\n", b"\n", 1) + b"\0"
    refused("magic-newline", "a text-mode transfer made \\n of \\r\\n", unix, "preamble_magic")
    refused("magic-seven-bits", "a transfer took the highest bit", flipped(good, 0, 0x80), "preamble_magic")
    refused(
        "magic-before-crc", "wrong magic, though the CRC is right", make(LOG, magic=b"\x89MSEAX\r\n"), "preamble_magic"
    )
    refused("zeros", "64 zero bytes, whose CRC is not zero", bytes(64), "preamble_magic")
    for offset, field in ((8, "version"), (10, "kind"), (15, "epoch"), (31, "vault"), (47, "stream"), (59, "nonce")):
        refused(
            f"flipped-{field}", f"a flipped bit in the {field} is damage", flipped(good, offset), "preamble_damaged"
        )
    refused("flipped-crc", "a flipped bit in the CRC", flipped(good, 63), "preamble_damaged")
    refused("crc-little-endian", "the CRC's bytes the other way round", good[:60] + good[:59:-1], "preamble_damaged")
    refused("crc-of-all", "a CRC over 64 bytes", good[:60] + crc(good[:60] + bytes(4)), "preamble_damaged")
    refused("version-0", "format version 0", make(LOG, epoch=1, version=0), "version_unknown")
    refused(
        "version-2", "format version 2, CRC right: newer, not damaged", make(LOG, epoch=1, version=2), "version_unknown"
    )
    newer = make(MEDIA, suite=9, version=2, reserved=1, vault=OTHER_VAULT)
    refused("version-before-suite", "of a newer version nothing else is judged", newer, "version_unknown")
    refused("suite-0", "suite 0", make(LOG, epoch=1, suite=0), "suite_unknown")
    refused("suite-2", "suite 2", make(LOG, epoch=1, suite=2), "suite_unknown")
    refused("suite-before-kind", "an unknown suite in another kind", make(MEDIA, suite=2), "suite_unknown")
    refused("kind-0", "no kind", make(0, epoch=1), "kind_mismatch")
    refused("kind-10", "a kind that is not known", make(10, epoch=1), "kind_mismatch")
    refused("kind-before-reserved", "another kind with a reserved byte", make(MEDIA, reserved=1), "kind_mismatch")
    refused("reserved", "byte 11 is not zero", make(LOG, epoch=1, reserved=1), "preamble_reserved")
    refused("reserved-high", "the highest bit of byte 11", make(LOG, epoch=1, reserved=128), "preamble_reserved")
    both = make(LOG, epoch=1, reserved=1, vault=OTHER_VAULT)
    refused("reserved-before-vault", "byte 11 in another vault's container", both, "preamble_reserved")
    refused("vault", "a log of another vault", log_preamble(EVE.public_sign, vault=OTHER_VAULT), "vault_mismatch")
    refused("vault-zeros", "no vault id", make(LOG, epoch=1, vault=bytes(16)), "vault_mismatch")
    _add_swapped(book, group.name)


def _add_swapped(book: Book, name: str) -> None:
    """Every kind of container where every other belongs."""
    group = book.group(name)
    for kind, found in KINDS.items():
        content = make(kind, epoch=1 if kind in (KEYRING, LOG) else 0, stream=seed(found, 16))
        for expected, wanted in KINDS.items():
            if kind != expected:
                given = {"content": content, "kind": expected, "vault_id": VAULT}
                title = f"a {found} where a {wanted} belongs"
                group.refused(f"{found}-for-{wanted}", RULE, title, "decode_preamble", given, "kind_mismatch")
