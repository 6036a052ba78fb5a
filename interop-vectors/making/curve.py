"""Ed25519's curve in plain arithmetic, for signatures that no signer makes; slow, and for public test keys alone."""

from hashlib import sha512

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
Point = tuple[int, int]
ZERO: Point = (0, 1)


def plus(one: Point, other: Point) -> Point:
    (x1, y1), (x2, y2) = one, other
    product = D * x1 * x2 * y1 * y2
    x = (x1 * y2 + x2 * y1) * pow(1 + product, -1, P)
    y = (y1 * y2 + x1 * x2) * pow(1 - product, -1, P)
    return x % P, y % P


def times(number: int, point: Point) -> Point:
    found = ZERO
    while number:
        if number & 1:
            found = plus(found, point)
        point, number = plus(point, point), number >> 1
    return found


def encode(point: Point) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def decode(content: bytes) -> Point:
    number = int.from_bytes(content, "little")
    sign, y = number >> 255, number & ((1 << 255) - 1)
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P:
        raise ValueError("not a point")
    return (P - x if x & 1 != sign else x), y


BASE = decode((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
# A point of order 8: its y is the first of the two that vault-format §2 writes out.
EIGHTH = decode(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"))


def expanded(private: bytes) -> tuple[int, bytes]:
    """The scalar and the prefix of a seed (RFC 8032, section 5.1.5)."""
    digest = sha512(private).digest()
    scalar = int.from_bytes(digest[:32], "little") & ((1 << 254) - 8) | 1 << 254
    return scalar, digest[32:]


def challenge(point: bytes, public: bytes, message: bytes) -> int:
    return int.from_bytes(sha512(point + public + message).digest(), "little") % L


def signature_off_by(torsion: Point, private: bytes, public: bytes, message: bytes) -> bytes:
    """A signature whose R has a part of small order: right only for who multiplies by the cofactor."""
    scalar, prefix = expanded(private)
    nonce = int.from_bytes(sha512(prefix + message).digest(), "little") % L
    point = encode(plus(times(nonce, BASE), torsion))
    return point + ((nonce + challenge(point, public, message) * scalar) % L).to_bytes(32, "little")
