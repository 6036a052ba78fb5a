"""What is sealed opens, and nothing else does."""

import traceback
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memseal.format import primitives
from memseal.format.keys import Key, RecordKey
from memseal.format.primitives import CHUNK, NotAuthentic
from tests.format import by_hand
from tests.format.broken import flipped, is_refused

KEY = RecordKey(bytes(range(32)))
CONTEXT = b"memseal/v1/record: here"
HEADER, STORED_CHUNK = 56, CHUNK + 16

# Around each edge of a chunk, where the last one becomes empty or begins anew.
EDGE_SIZES = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK - 1, 2 * CHUNK, 2 * CHUNK + 1]
sizes = st.integers(0, 300) | st.sampled_from(EDGE_SIZES) | st.integers(0, 3 * CHUNK)
plaintexts = st.builds(lambda size, fill: bytes([fill]) * size, sizes, st.integers(0, 255))
raw_keys = st.binary(min_size=32, max_size=32)
contexts = st.binary(max_size=64)


def _into(key: Key, context: bytes, sealed: bytes) -> bytes:
    target = bytearray(len(sealed))
    return bytes(target[: primitives.open_sealed_into(key, context, sealed, memoryview(target))])


Opener = Callable[[Key, bytes, bytes], bytes]
both_openers = pytest.mark.parametrize("open_it", [primitives.open_sealed, _into], ids=["open", "into"])


@both_openers
@given(raw=raw_keys, context=contexts, plaintext=plaintexts)
def test_what_is_sealed_opens(open_it: Opener, raw: bytes, context: bytes, plaintext: bytes) -> None:
    sealed = primitives.seal(RecordKey(raw), context, plaintext)
    assert open_it(RecordKey(raw), context, sealed) == plaintext


@pytest.mark.parametrize("size", EDGE_SIZES)
def test_sealed_size_is_exact_around_the_edges_of_a_chunk(size: int) -> None:
    assert len(primitives.seal(KEY, CONTEXT, bytes(size))) == primitives.sealed_size(size)


@given(size=sizes)
def test_sealed_size_is_exact(size: int) -> None:
    assert len(primitives.seal(KEY, CONTEXT, bytes(size))) == primitives.sealed_size(size)


@pytest.mark.parametrize(("size", "overhead"), [(0, 72), (CHUNK - 1, 72), (CHUNK, 88), (2 * CHUNK, 104)])
def test_sealed_size_is_what_the_format_says(size: int, overhead: int) -> None:
    assert primitives.sealed_size(size) == size + overhead


@both_openers
@pytest.mark.parametrize("size", EDGE_SIZES)
def test_message_sealed_by_hand_opens(open_it: Opener, size: int) -> None:
    message = by_hand.Chunked.derive("sha512", "AEAD_AES_256_GCM", KEY.reveal(), bytes(range(24)), CONTEXT)
    assert open_it(KEY, CONTEXT, message.seal(b"m" * size)) == b"m" * size


@pytest.mark.parametrize("size", EDGE_SIZES)
def test_sealed_message_opens_by_hand(size: int) -> None:
    sealed = primitives.seal(KEY, CONTEXT, b"m" * size)
    opened = by_hand.chunked_open("sha512", "AEAD_AES_256_GCM", KEY.reveal(), CONTEXT, sealed)
    assert opened == b"m" * size


def test_no_two_messages_share_a_salt() -> None:
    assert len({primitives.seal(KEY, CONTEXT, b"same")[:24] for _ in range(200)}) == 200


@both_openers
def test_each_bit_of_a_small_message_is_guarded(open_it: Opener) -> None:
    sealed = primitives.seal(KEY, CONTEXT, b"small")
    refused = [bit for bit in range(8 * len(sealed)) if is_refused(open_it, KEY, CONTEXT, flipped(sealed, bit))]
    assert refused == list(range(8 * len(sealed)))


@both_openers
@given(plaintext=plaintexts, data=st.data())
def test_flipped_bit_is_refused(open_it: Opener, plaintext: bytes, data: st.DataObject) -> None:
    sealed = primitives.seal(KEY, CONTEXT, plaintext)
    bit = data.draw(st.integers(0, 8 * len(sealed) - 1))
    with pytest.raises(NotAuthentic):
        open_it(KEY, CONTEXT, flipped(sealed, bit))


@both_openers
def test_each_cut_of_a_small_message_is_refused(open_it: Opener) -> None:
    sealed = primitives.seal(KEY, CONTEXT, b"small")
    refused = [end for end in range(len(sealed)) if is_refused(open_it, KEY, CONTEXT, sealed[:end])]
    assert refused == list(range(len(sealed)))


@both_openers
@given(plaintext=plaintexts, data=st.data())
def test_piece_of_a_message_is_refused(open_it: Opener, plaintext: bytes, data: st.DataObject) -> None:
    sealed = primitives.seal(KEY, CONTEXT, plaintext)
    start = data.draw(st.integers(0, len(sealed)))
    end = data.draw(st.integers(start, len(sealed)))
    assume(end - start < len(sealed))
    with pytest.raises(NotAuthentic):
        open_it(KEY, CONTEXT, sealed[start:end])


@both_openers
@pytest.mark.parametrize("chunks", [0, 1, 2])
def test_message_cut_between_two_chunks_is_refused(open_it: Opener, chunks: int) -> None:
    sealed = primitives.seal(KEY, CONTEXT, bytes(2 * CHUNK + 1))
    with pytest.raises(NotAuthentic):
        open_it(KEY, CONTEXT, sealed[: HEADER + chunks * STORED_CHUNK])


@both_openers
@given(plaintext=plaintexts, more=st.binary(min_size=1, max_size=40))
def test_longer_message_is_refused(open_it: Opener, plaintext: bytes, more: bytes) -> None:
    with pytest.raises(NotAuthentic):
        open_it(KEY, CONTEXT, primitives.seal(KEY, CONTEXT, plaintext) + more)


@both_openers
@pytest.mark.parametrize("order", [(1, 0, 2), (0, 0, 2), (1, 1, 2), (0, 2), (2,), (0, 1, 2, 2), (0, 1, 1, 2)])
def test_chunks_in_another_order_are_refused(open_it: Opener, order: tuple[int, ...]) -> None:
    sealed = primitives.seal(KEY, CONTEXT, bytes(2 * CHUNK + 5))
    starts = [HEADER + number * STORED_CHUNK for number in order]
    moved = sealed[:HEADER] + b"".join(sealed[start : start + STORED_CHUNK] for start in starts)
    with pytest.raises(NotAuthentic):
        open_it(KEY, CONTEXT, moved)


@both_openers
def test_chunk_of_another_message_under_the_same_key_is_refused(open_it: Opener) -> None:
    one, other = (primitives.seal(KEY, CONTEXT, bytes(CHUNK + 5)) for _ in range(2))
    with pytest.raises(NotAuthentic):
        open_it(KEY, CONTEXT, one[: HEADER + STORED_CHUNK] + other[HEADER + STORED_CHUNK :])


@both_openers
@given(plaintext=plaintexts, raw=raw_keys)
def test_other_key_is_refused(open_it: Opener, plaintext: bytes, raw: bytes) -> None:
    assume(raw != KEY.reveal())
    with pytest.raises(NotAuthentic):
        open_it(RecordKey(raw), CONTEXT, primitives.seal(KEY, CONTEXT, plaintext))


@both_openers
@given(plaintext=plaintexts, sealed_in=contexts, opened_in=contexts)
def test_other_context_is_refused(open_it: Opener, plaintext: bytes, sealed_in: bytes, opened_in: bytes) -> None:
    assume(sealed_in != opened_in)
    with pytest.raises(NotAuthentic):
        open_it(KEY, opened_in, primitives.seal(KEY, sealed_in, plaintext))


@both_openers
@given(noise=st.binary(max_size=200))
def test_noise_is_refused(open_it: Opener, noise: bytes) -> None:
    with pytest.raises(NotAuthentic):
        open_it(KEY, CONTEXT, noise)


def test_refusal_holds_no_plaintext_and_no_key() -> None:
    sealed = primitives.seal(KEY, CONTEXT, b"plain words" * 2000)
    with pytest.raises(NotAuthentic) as refused:
        primitives.open_sealed(KEY, CONTEXT, sealed[:-1])
    text = "".join(traceback.TracebackException.from_exception(refused.value).format())
    assert refused.value.args == ()
    assert "plain words" not in text
    assert KEY.reveal().hex() not in text
