"""What the two devices of a pairing say to each other (sync-protocol, *Pairing*): decides, and carries nothing."""

import contextlib
import hmac
from collections.abc import Generator
from dataclasses import dataclass

from memseal.errors import FormatError, PairingCodeWrong, PairingInvalid
from memseal.format import primitives
from memseal.format.fields import Fields
from memseal.format.keys import PakeKey, RecordKey, VaultKey, WrappingKey
from memseal.format.pairing_code import PairingCode
from memseal.format.pake import ELEMENT_SIZE, Pake
from memseal.format.primitives import PUBLIC_WRAP_SIZE, WRAPPED_SIZE, NotAuthentic, derive, sha256
from memseal.format.values import decode_value, encode_value

MESSAGE_MOST = 4096
REFUSAL = encode_value({"wrong": True})
"""S2 where the codes differ."""
_WRONG = "the devices do not have the same code, or somebody stands between them: it is spent, show another one"


@dataclass(frozen=True)
class Hello:
    """The joiner's entry-to-be: device id, public keys, name."""

    id: bytes
    sign: bytes
    wrap: bytes
    name: str


@dataclass(frozen=True)
class Place:
    """Where the shower's keyring stands: vault id, newest version's number, digest and epoch; its own signing key."""

    vault_id: bytes
    sign: bytes
    version: int
    digest: bytes
    epoch: int


@dataclass(frozen=True)
class Joined:
    """The version by which the joiner joined."""

    version: int
    digest: bytes


class Shower:
    """The device that shows the code: it sends `opening`, meets one answer, and welcomes who gave it or refuses."""

    def __init__(self, code: PairingCode, random: bytes) -> None:
        """Take the code, and 64 random bytes."""
        self._pake = Pake("shower", code.password, random)
        self._channel = code.channel.to_bytes(4, "big")
        self.opening = encode_value({"element": self._pake.element})
        """S1."""

    def meet(self, answer: bytes) -> "Met":
        """Return who gave an answer (J1); raises `PairingCodeWrong` or `PairingInvalid`. The code is spent."""
        with _reading():
            fields = _fields(answer)
            element, sealed = fields.size("element", ELEMENT_SIZE), fields.octets("sealed")
            channel = _Channel(_agreed(self._pake, element), self._channel)
            channel.check(fields, "joiner", self.opening, element, sealed)
            return Met(channel, self.opening, answer, _decode_hello(channel.open("hello", sealed)))


@dataclass(frozen=True)
class Met:
    """A joiner that has the code, as the shower goes on with it."""

    channel: "_Channel"
    opening: bytes
    answer: bytes
    hello: Hello

    def welcome(self, place: Place, vault_key: VaultKey) -> bytes:
        """Return S2, with the vault key in a box for the joiner; raises `PairingInvalid` where it has no such key."""
        try:
            box = primitives.wrap(self.hello.wrap, self.channel.box_info(place, self.hello), vault_key.reveal())
        except NotAuthentic:
            raise PairingInvalid("the new device's key is none: pair again") from None
        content = {"vault": place.vault_id, "sign": place.sign, "version": place.version, "digest": place.digest}
        sealed = self.channel.seal("welcome", encode_value({**content, "epoch": place.epoch, "box": box}))
        return self.channel.confirmed("shower", (self.opening, self.answer, sealed), {"sealed": sealed})

    def joined(self, welcome: bytes, answer: bytes) -> Joined:
        """Return by which version the joiner joined (J2); raises `PairingCodeWrong` or `PairingInvalid`."""
        with _reading():
            fields = _fields(answer)
            joined = Joined(fields.count("version", 1), fields.size("digest", 32))
            self.channel.check(fields, "joined", self.opening, self.answer, welcome, *_parts(joined))
            return joined


class Newcomer:
    """The device that takes the code: it answers an opening once."""

    def __init__(self, code: PairingCode, random: bytes) -> None:
        """Take the code, and 64 random bytes."""
        self._pake = Pake("joiner", code.password, random)
        self._channel = code.channel.to_bytes(4, "big")

    def answer(self, opening: bytes, hello: Hello) -> "Answered":
        """Return what S1 is answered with; raises `PairingInvalid`."""
        with _reading():
            channel = _Channel(_agreed(self._pake, _fields(opening).size("element", ELEMENT_SIZE)), self._channel)
        element = self._pake.element
        content = {"id": hello.id, "sign": hello.sign, "wrap": hello.wrap, "name": hello.name}
        sealed = channel.seal("hello", encode_value(content))
        message = channel.confirmed("joiner", (opening, element, sealed), {"element": element, "sealed": sealed})
        return Answered(channel, opening, message, hello)


@dataclass(frozen=True)
class Answered:
    """An exchange that the joiner has answered; `message` is J1."""

    channel: "_Channel"
    opening: bytes
    message: bytes
    hello: Hello

    def receive(self, welcome: bytes, wrapping_key: WrappingKey) -> tuple[Place, VaultKey]:
        """Return what the shower handed over (S2); raises `PairingCodeWrong` or `PairingInvalid`."""
        with _reading():
            fields = _fields(welcome)
            if fields.get("wrong") is True:
                raise PairingCodeWrong(_WRONG)
            sealed = fields.octets("sealed")
            self.channel.check(fields, "shower", self.opening, self.message, sealed)
            said = _fields(self.channel.open("welcome", sealed))
            place = Place(
                vault_id=said.size("vault", 16),
                sign=said.signing_key("sign"),
                version=said.count("version", 1),
                digest=said.size("digest", 32),
                epoch=said.count("epoch", 1),
            )
            return place, self._unwrap(place, said.size("box", WRAPPED_SIZE), wrapping_key)

    def finish(self, welcome: bytes, joined: Joined) -> bytes:
        """Return J2."""
        said = (self.opening, self.message, welcome, *_parts(joined))
        return self.channel.confirmed("joined", said, {"version": joined.version, "digest": joined.digest})

    def _unwrap(self, place: Place, box: bytes, wrapping_key: WrappingKey) -> VaultKey:
        try:
            return VaultKey(primitives.unwrap(wrapping_key, self.channel.box_info(place, self.hello), box))
        except (NotAuthentic, ValueError):
            raise PairingInvalid("the other device's box does not open: pair again") from None


# ── what both sides derive ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Channel:
    """The agreed key, in one channel."""

    key: PakeKey
    number: bytes

    def seal(self, name: str, content: bytes) -> bytes:
        return primitives.seal(self._sealing_key(name), self._context(name), content)

    def open(self, name: str, sealed: bytes) -> bytes:
        try:
            return primitives.open_sealed(self._sealing_key(name), self._context(name), sealed)
        except NotAuthentic:
            raise PairingInvalid("a message of the other device does not open: pair again") from None

    def confirmed(self, who: str, said: tuple[bytes, ...], message: dict[str, bytes | int]) -> bytes:
        """Return a message with the proof that its maker has the key and heard the same."""
        return encode_value({"confirm": self._proof(who, said), **message})

    def check(self, fields: Fields, who: str, *said: bytes) -> None:
        if not hmac.compare_digest(fields.size("confirm", 32), self._proof(who, said)):
            raise PairingCodeWrong(_WRONG)

    def box_info(self, place: Place, hello: Hello) -> bytes:
        numbers = self.number + place.version.to_bytes(8, "big") + place.epoch.to_bytes(4, "big")
        return b"memseal/v1/pairing-box" + place.vault_id + numbers + hello.id + hello.sign + sha256(hello.wrap)

    def _proof(self, who: str, said: tuple[bytes, ...]) -> bytes:
        return derive(self.key.reveal(), b"", f"memseal/v1/pairing-confirm-{who}", self.number, *said)

    def _sealing_key(self, name: str) -> RecordKey:
        return RecordKey(derive(self.key.reveal(), b"", f"memseal/v1/pairing-{name}-key"))

    def _context(self, name: str) -> bytes:
        return f"memseal/v1/pairing-{name}".encode() + self.number


def _agreed(pake: Pake, element: bytes) -> PakeKey:
    try:
        return pake.key(element)
    except NotAuthentic:
        raise PairingInvalid("the other side's first message is none of this protocol: pair again") from None


def _parts(joined: Joined) -> tuple[bytes, bytes]:
    return joined.version.to_bytes(8, "big"), joined.digest


def _decode_hello(content: bytes) -> Hello:
    said = _fields(content)
    return Hello(said.size("id", 16), said.signing_key("sign"), said.size("wrap", PUBLIC_WRAP_SIZE), said.text("name"))


def _fields(message: bytes) -> Fields:
    return Fields(decode_value(message), "msgpack_invalid", "message")


@contextlib.contextmanager
def _reading() -> Generator[None]:
    """Tell of a message that is not as it must be as a fault of the pairing."""
    try:
        yield
    except FormatError:
        raise PairingInvalid("a message of the other device is not as it must be: pair again") from None
