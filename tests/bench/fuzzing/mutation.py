"""Changes to inputs that keep their frames whole, so that what lies behind a length or checksum is reached too."""

import copy
import json
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import msgpack
import zstandard

from tests.bench.fuzzing.target import Mutate

PREAMBLE_SIZE, HEADER_SIZE = 64, 12
_CHAIN_SIZE, _FIXED = 32, 37
_SIGNED, _COMPRESSED = 1, 4
_NUMBERS = (0, 1, 2, 63, 64, 255, 256, 1 << 16, (1 << 26) + 1, (1 << 32) - 1, 1 << 32, 1 << 53, (1 << 63) - 1, 1 << 63)
_VALUES: tuple[Any, ...] = (
    *_NUMBERS,
    *(-number for number in _NUMBERS if number <= 1 << 63),
    (1 << 64) - 1,
    *(None, True, False, 0.5, float("nan"), float("inf"), "", "\0", "a", "embedding", "f2", "\U0001f600" * 9),
    *(b"", b"\0", bytes(16), bytes(32), bytes(64), bytes(1216)),
    *([], [[]], [None], {}, {"": {}}, {"a": []}),
)
_NESTED = 40  # levels: more than a decoder allows


# ── bytes ───────────────────────────────────────────────────────────────────────────────────────────


def scratched(content: bytes, random: Random) -> bytes:
    """Return bytes with one to four small changes."""
    found = bytearray(content)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        at = random.randrange(len(found) + 1)
        match random.randrange(6):
            case 0 if found:
                found[at % len(found)] ^= 1 << random.randrange(8)
            case 1 if found:
                found[at % len(found)] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
            case 2:
                found[at:at] = random.randbytes(random.choice((1, 2, 4, 16)))
            case 3:
                del found[at : at + random.choice((1, 2, 4, 16, 64))]
            case 4:
                number = random.choice(_NUMBERS) & 0xFFFFFFFF
                found[at : at + 4] = struct.pack(">I", number)
            case _:
                piece = found[at : at + random.randrange(1, 40)]
                to = random.randrange(len(found) + 1)
                found[to:to] = piece
    return bytes(found)


def with_crc(content: bytes, start: int, end: int) -> bytes:
    """Return bytes with the CRC-32 of a range put after it, if they reach that far."""
    if len(content) < end + 4:
        return content
    return content[:end] + zlib.crc32(content[start:end]).to_bytes(4, "big") + content[end + 4 :]


# ── msgpack ─────────────────────────────────────────────────────────────────────────────────────────


def unpacked(content: bytes) -> Any:
    """Return the value that bytes hold, read without any bound; None where they hold none."""
    try:
        return msgpack.unpackb(content, raw=False, strict_map_key=False)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        return None


def packed(value: Any) -> bytes:
    """Return the msgpack bytes of a value."""
    return bytes(msgpack.packb(value, use_bin_type=True))


def changed_value(value: Any, random: Random) -> Any:
    """Return a copy of a value with something in it exchanged, taken out, doubled, renamed or nested."""
    whole = [copy.deepcopy(value)]
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = list(_places(whole))
        holder, name = random.choice(places)
        there = holder[name]
        if isinstance(there, (list, dict)) and there and random.random() < 0.5:
            _change_within(there, random)
        else:
            holder[name] = _another(there, places, random)
    return whole[0]


def _places(holder: Any) -> Iterator[tuple[Any, Any]]:
    for name, inner in enumerate(holder) if isinstance(holder, list) else list(holder.items()):
        yield holder, name
        if isinstance(inner, (list, dict)):
            yield from _places(inner)


def _change_within(there: Any, random: Random) -> None:
    if isinstance(there, list):
        at = random.randrange(len(there))
        there[at : at + random.randrange(2)] = copy.deepcopy(there[at : at + 1]) * random.choice((0, 1, 2, 3))
        return
    name = random.choice(list(there))
    match random.randrange(3):
        case 0:
            del there[name]
        case 1:
            there[random.choice(("", "a", "of", "stamp", f"{name}x"))] = copy.deepcopy(there[name])
        case _:
            there[random.choice(list(there))] = copy.deepcopy(there[name])


def _another(there: Any, places: Sequence[tuple[Any, Any]], random: Random) -> Any:
    match random.randrange(5):
        case 0 if isinstance(there, bytes):
            return scratched(there, random)
        case 0 if isinstance(there, str):
            return scratched(there.encode(errors="replace"), random).decode(errors="replace")
        case 0 if isinstance(there, int):
            return max(-(1 << 63), min((1 << 64) - 1, there + random.choice((-1, 1, -256, 256))))
        case 1:
            holder, name = random.choice(places)
            return copy.deepcopy(holder[name])
        case 2 if random.random() < 0.2:
            nested = there
            for _ in range(random.randrange(_NESTED)):
                nested = [nested] if random.random() < 0.5 else {"a": nested}
            return nested
        case _:
            return copy.deepcopy(random.choice(_VALUES))


def change_packed(content: bytes, random: Random) -> bytes:
    """Change the value that bytes hold; or the bytes, where they hold none."""
    value = unpacked(content)
    if value is None or random.random() < 0.1:
        return scratched(content, random)
    return packed(changed_value(value, random))


def change_json(content: bytes, random: Random) -> bytes:
    """Change the value that a JSON document holds; or the bytes, where it holds none."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return scratched(content, random)
    return json.dumps(changed_value(value, random), default=lambda raw: raw.hex()).encode()


# ── the content of a record ─────────────────────────────────────────────────────────────────────────


def change_content(content: bytes, random: Random) -> bytes:
    """Change chain, flags, meta, columns or signature of a record's content, and keep the lengths right."""
    if len(content) < _FIXED or random.random() < 0.1:
        return scratched(content, random)
    chain, flags = content[:_CHAIN_SIZE], content[_CHAIN_SIZE]
    meta_end = _FIXED + int.from_bytes(content[_CHAIN_SIZE + 1 : _FIXED], "big")
    stored, rest = content[_FIXED:meta_end], content[meta_end:]
    match random.randrange(8):
        case 0:
            flags ^= 1 << random.randrange(8)
        case 1:
            rest = scratched(rest, random)
        case 2:
            stored = scratched(stored, random)
        case _:
            stored, flags = _change_meta(stored, flags, random)
    return b"".join((chain, bytes((flags,)), len(stored).to_bytes(4, "big"), stored, rest))


def _change_meta(stored: bytes, flags: int, random: Random) -> tuple[bytes, int]:
    if flags & _COMPRESSED:
        try:
            # Read in a stream: what a frame declares is not believed here either.
            stored = zstandard.ZstdDecompressor().stream_reader(stored).read(1 << 20)
        except zstandard.ZstdError:
            return scratched(stored, random), flags
    changed = change_packed(stored, random)
    if random.random() < 0.8:
        return changed, flags & ~_COMPRESSED
    return zstandard.ZstdCompressor(level=1).compress(changed), flags | _COMPRESSED


# ── containers ──────────────────────────────────────────────────────────────────────────────────────


def bodies_of(content: bytes) -> list[bytes]:
    """Return the bodies of a container's records by their lengths alone; the last one may be cut short."""
    bodies, at = list[bytes](), PREAMBLE_SIZE
    while at + HEADER_SIZE <= len(content):
        end = at + HEADER_SIZE + int.from_bytes(content[at : at + 4], "big")
        bodies.append(content[at + HEADER_SIZE : end])
        at = end
    return bodies


def framed(preamble: bytes, bodies: Sequence[bytes]) -> bytes:
    """Return a container of these bodies, its checksums right."""
    pieces = [with_crc(preamble, 0, 60)]
    for index, body in enumerate(bodies):
        head = struct.pack(">II", len(body), index)
        pieces += [head, zlib.crc32(head).to_bytes(4, "big"), body]
    return b"".join(pieces)


def container(change_body: Mutate) -> Mutate:
    """Return a mutation of containers: of the preamble, of one body, or of their number and order."""

    def change(content: bytes, random: Random) -> bytes:
        preamble, bodies = content[:PREAMBLE_SIZE], bodies_of(content)
        match random.randrange(8):
            case 0:
                preamble = scratched(preamble, random)[:PREAMBLE_SIZE]
            case 1 if bodies:
                at = random.randrange(len(bodies))
                bodies[at : at + 1] = bodies[at : at + 1] * random.choice((0, 2))
            case 2 if len(bodies) > 1:
                random.shuffle(bodies)
            case _ if bodies:
                at = random.randrange(len(bodies))
                bodies[at] = change_body(bodies[at], random)
            case _:
                bodies = [random.randbytes(40)]
        return framed(preamble, bodies)

    return change


def behind(size: int, change: Mutate) -> Mutate:
    """Return a mutation of what lies behind a few leading bytes, which are changed now and then too."""

    def change_rest(content: bytes, random: Random) -> bytes:
        head = content[:size]
        if random.random() < 0.1:
            head = random.randbytes(size)
        return head + change(content[size:], random)

    return change_rest


def then(change: Mutate, repair: Callable[[bytes], bytes]) -> Mutate:
    """Return a mutation after which what it broke on the way is made right again."""
    return lambda content, random: repair(change(content, random))
