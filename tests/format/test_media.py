"""Media: an item in sealed pieces, and what a memory says of it."""

from hashlib import sha256

import pytest

from memseal.format.keys import RecordKey
from memseal.format.media import PIECE_LIMIT, Medium, decode_media, encode_media, media_preamble, open_media, seal_media
from memseal.format.records import HEADER_SIZE, places, seal_record
from tests.format.building import seed
from tests.format.refusing import code_of

VAULT, MEDIA = seed("vault", 16), seed("media", 16)
KEY = RecordKey(seed("media key"))


def medium(content: bytes) -> Medium:
    return Medium(MEDIA, KEY, len(content), sha256(content).digest(), "image/png", "otter.png", {})


def container(*pieces: bytes) -> bytes:
    preamble = media_preamble(VAULT, MEDIA)
    return preamble + b"".join(seal_media(KEY, preamble, pieces))


def opened(item: Medium, content: bytes, vault_id: bytes = VAULT) -> bytes:
    return b"".join(open_media(item, vault_id, memoryview(content)))


@pytest.mark.parametrize("size", [0, 1, PIECE_LIMIT - 1, PIECE_LIMIT, PIECE_LIMIT + 1, 3 * PIECE_LIMIT + 7])
def test_an_item_comes_back_whatever_its_size(size: int) -> None:
    content = bytes(range(256)) * (size // 256 + 1)
    content = content[:size]
    assert opened(medium(content), container(content)) == content


def test_pieces_are_a_megabyte_however_the_content_came() -> None:
    content = b"x" * (2 * PIECE_LIMIT + 5)
    stored = container(*(content[start : start + 1_000_003] for start in range(0, len(content), 1_000_003)))
    assert len(places(memoryview(stored))) == 3
    assert opened(medium(content), stored) == content


def test_another_content_of_the_same_length_is_refused() -> None:
    assert code_of(lambda: opened(medium(b"an otter"), container(b"a badger"))) == "media_mismatch"


def test_an_item_that_was_cut_at_a_record_is_refused() -> None:
    content = b"x" * (PIECE_LIMIT + 5)
    stored = container(content)
    first = places(memoryview(stored))[0]
    assert code_of(lambda: opened(medium(content), stored[: first.end])) == "media_mismatch"


def test_a_piece_larger_than_the_limit_is_refused() -> None:
    content = b"x" * (PIECE_LIMIT + 1)
    preamble = media_preamble(VAULT, MEDIA)
    assert code_of(lambda: opened(medium(content), preamble + seal_record(KEY, preamble, 0, content))) == (
        "media_mismatch"
    )


def test_an_item_under_another_name_or_of_another_vault_is_refused() -> None:
    preamble = media_preamble(VAULT, seed("other", 16))
    other = preamble + b"".join(seal_media(KEY, preamble, [b"otter"]))
    assert code_of(lambda: opened(medium(b"otter"), other)) == "media_mismatch"
    assert code_of(lambda: opened(medium(b"otter"), container(b"otter"), seed("v", 16))) == "vault_mismatch"


def test_a_flipped_bit_is_refused() -> None:
    stored = bytearray(container(b"otter"))
    stored[64 + HEADER_SIZE + 70] ^= 1
    assert code_of(lambda: opened(medium(b"otter"), bytes(stored))) == "record_sealed"


def test_what_a_memory_says_of_its_media_comes_back_with_fields_of_newer_software() -> None:
    value = {**encode_media([medium(b"otter")])[0], "hue": "brown"}
    [decoded] = decode_media([value])
    assert decoded == Medium(MEDIA, KEY, 5, sha256(b"otter").digest(), "image/png", "otter.png", {"hue": "brown"})
    assert encode_media([decoded]) == [value]


WRONG = {
    "id": b"short", "key": b"short", "bytes": -1, "digest": b"", "type": None, "name": 7,
}  # fmt: skip


@pytest.mark.parametrize("field", sorted(WRONG))
def test_a_field_of_a_wrong_type_is_refused(field: str) -> None:
    value = {**encode_media([medium(b"otter")])[0], field: WRONG[field]}
    assert code_of(lambda: decode_media([value])) == "operation_invalid"


def test_media_that_are_no_array_are_refused() -> None:
    assert code_of(lambda: decode_media({})) == "operation_invalid"


def test_a_key_of_media_does_not_show() -> None:
    assert KEY.reveal().hex() not in repr(medium(b"otter"))
