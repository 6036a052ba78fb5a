"""The 64 bytes at the start of a container, and the ids in them (vault-format §3 and §6)."""

import zlib
from collections.abc import Callable
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.format.preamble import (
    PREAMBLE_SIZE,
    Kind,
    Preamble,
    decode_preamble,
    log_preamble,
    stream_id_of,
    vault_id_of,
)
from tests.format.broken import flipped
from tests.format.refusing import code_of

VAULT, STREAM, NONCE = bytes(range(16)), bytes(range(16, 32)), bytes(range(32, 44))
PREAMBLE = Preamble(Kind.LOG, 7, VAULT, STREAM, NONCE)
STORED = PREAMBLE.to_bytes()


def _changed(offset: int, value: int) -> bytes:
    """The stored preamble with one other byte, and the CRC made right again."""
    head = STORED[:offset] + bytes([value]) + STORED[offset + 1 : 60]
    return head + zlib.crc32(head).to_bytes(4, "big")


def test_each_field_stands_at_its_offset() -> None:
    expected = b"\x89MSEAL\r\n" + bytes([1, 1, 2, 0]) + b"\0\0\0\x07" + VAULT + STREAM + NONCE
    assert expected + zlib.crc32(expected).to_bytes(4, "big") == STORED


@given(
    kind=st.sampled_from(Kind),
    epoch=st.integers(0, (1 << 32) - 1),
    ids=st.tuples(*[st.binary(min_size=16, max_size=16)] * 2),
    nonce=st.binary(min_size=12, max_size=12),
)
def test_what_is_encoded_decodes(kind: Kind, epoch: int, ids: tuple[bytes, bytes], nonce: bytes) -> None:
    preamble = Preamble(kind, epoch, *ids, nonce)
    assert decode_preamble(preamble.to_bytes() + b"more", kind, ids[0]) == preamble


@pytest.mark.parametrize(
    ("offset", "value", "code"),
    [
        (0, 0x88, "preamble_magic"),
        (8, 2, "version_unknown"),
        (8, 0, "version_unknown"),
        (9, 2, "suite_unknown"),
        (10, 1, "kind_mismatch"),
        (10, 9, "kind_mismatch"),
        (11, 1, "preamble_reserved"),
        (16, 0xFF, "vault_mismatch"),
    ],
)
def test_each_field_is_checked(offset: int, value: int, code: str) -> None:
    assert code_of(lambda: decode_preamble(_changed(offset, value), Kind.LOG, VAULT)) == code


@pytest.mark.parametrize("size", range(PREAMBLE_SIZE))
def test_shorter_container_is_refused_at_every_length(size: int) -> None:
    assert code_of(lambda: decode_preamble(STORED[:size], Kind.LOG)) == "preamble_short"


@pytest.mark.parametrize("bit", range(8 * PREAMBLE_SIZE))
def test_each_flipped_bit_is_refused(bit: int) -> None:
    code = code_of(lambda: decode_preamble(flipped(STORED, bit), Kind.LOG, VAULT))
    assert code == ("preamble_magic" if bit < 64 else "preamble_damaged")


@pytest.mark.parametrize(
    "transfer",
    [
        lambda stored: stored.replace(b"\r\n", b"\n"),
        lambda stored: stored.replace(b"\n", b"\r\n"),
        lambda stored: bytes(byte & 0x7F for byte in stored),
        lambda stored: stored.decode("latin-1").encode("utf-8"),
    ],
    ids=["to unix", "to windows", "seven bits", "as text"],
)
def test_text_mode_transfer_is_told_from_other_damage(transfer: Callable[[bytes], bytes]) -> None:
    assert code_of(lambda: decode_preamble(transfer(STORED) + b"\0\0", Kind.LOG)) == "preamble_magic"


def test_checks_come_in_their_order() -> None:
    broken = bytearray(STORED)
    seen = []
    for offset in (0, 60):
        broken[offset] ^= 0xFF
    seen.append(code_of(lambda: decode_preamble(bytes(broken[:63]), Kind.LOG)))
    seen.append(code_of(lambda: decode_preamble(bytes(broken), Kind.LOG)))
    broken[0] = 0x89
    seen.append(code_of(lambda: decode_preamble(bytes(broken), Kind.LOG)))
    for offset, value in [(8, 2), (9, 2), (10, 5), (11, 1), (16, 0xEE)]:
        broken[offset] = value
    for offset, mended in [(8, 1), (9, 1), (10, 2), (11, 0), (16, VAULT[0])]:
        broken[60:] = zlib.crc32(bytes(broken[:60])).to_bytes(4, "big")
        seen.append(code_of(lambda: decode_preamble(bytes(broken), Kind.LOG, VAULT)))
        broken[offset] = mended
    assert seen == [
        "preamble_short",
        "preamble_magic",
        "preamble_damaged",
        "version_unknown",
        "suite_unknown",
        "kind_mismatch",
        "preamble_reserved",
        "vault_mismatch",
    ]


def test_vault_id_is_the_hash_of_the_first_signing_key() -> None:
    key = bytes(range(32))
    assert vault_id_of(key) == sha256(b"memseal/v1/vault" + key).digest()[:16]


def test_stream_id_binds_vault_owner_and_nonce() -> None:
    owner = bytes(range(32))
    expected = sha256(b"memseal/v1/stream" + VAULT + owner + NONCE).digest()[:16]
    assert stream_id_of(VAULT, owner, NONCE) == expected
    others = {
        stream_id_of(STREAM, owner, NONCE),
        stream_id_of(VAULT, owner[::-1], NONCE),
        stream_id_of(VAULT, owner, VAULT[:12]),
    }
    assert len(others | {expected}) == 4


def test_log_preamble_follows_from_owner_and_epoch() -> None:
    owner, digest = bytes(range(32)), bytes(range(100, 132))
    preamble = log_preamble(VAULT, owner, 3, digest, b"rand")
    assert preamble.nonce == digest[:8] + b"rand"
    assert preamble == Preamble(Kind.LOG, 3, VAULT, stream_id_of(VAULT, owner, preamble.nonce), preamble.nonce)
