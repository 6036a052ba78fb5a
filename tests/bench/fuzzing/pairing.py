"""The messages of a pairing: what a server that passes them on can change, and what the other device can say."""

from collections.abc import Iterator
from random import Random

from memseal.errors import MemsealError
from memseal.format import primitives
from memseal.format.keys import SigningKey, VaultKey, WrappingKey
from memseal.format.pairing_code import parse_pairing_code
from memseal.format.primitives import sha256
from memseal.sync.pairing import Hello, Joined, Newcomer, Place, Shower
from tests.bench.fuzzing import mutation, samples
from tests.bench.fuzzing.mutation import packed, unpacked
from tests.bench.fuzzing.target import Target

REFUSALS: tuple[type[Exception], ...] = (MemsealError,)
_CODE = next(parse_pairing_code(given["code"]) for given in samples.inputs("open_hello"))
_RANDOM = bytes(range(64)), bytes(range(64, 128))
_VAULT_KEY, _WRAP = VaultKey(sha256(b"a vault key")), WrappingKey(sha256(b"a wrapping key"))
_SIGN = primitives.public_signing_key(SigningKey(sha256(b"a signing key")))
_HELLO = Hello(bytes(range(16)), _SIGN, primitives.public_wrapping_key(_WRAP), "a phone")
_PLACE = Place(bytes(16), _SIGN, 3, bytes(32), 1)

# One exchange that went well; a message of it, or what is sealed in one, is exchanged for the input.
_SHOWER, _NEWCOMER = Shower(_CODE, _RANDOM[0]), Newcomer(_CODE, _RANDOM[1])
_ANSWERED = _NEWCOMER.answer(_SHOWER.opening, _HELLO)
_MET = _SHOWER.meet(_ANSWERED.message)
_WELCOME = _MET.welcome(_PLACE, _VAULT_KEY)
_FINISH = _ANSWERED.finish(_WELCOME, Joined(4, bytes(32)))
_CHANNEL = _MET.channel


def _opening(content: bytes) -> None:
    Newcomer(_CODE, _RANDOM[1]).answer(content, _HELLO)


def _answer(content: bytes) -> None:
    Shower(_CODE, _RANDOM[0]).meet(content).welcome(_PLACE, _VAULT_KEY)


def _hello(content: bytes) -> None:
    element, sealed = unpacked(_ANSWERED.message)["element"], _CHANNEL.seal("hello", content)
    said = _SHOWER.opening, element, sealed
    _answer(_CHANNEL.confirmed("joiner", said, {"element": element, "sealed": sealed}))


def _welcome(content: bytes) -> None:
    _ANSWERED.receive(content, _WRAP)


def _handed_over(content: bytes) -> None:
    sealed = _CHANNEL.seal("welcome", content)
    said = _SHOWER.opening, _ANSWERED.message, sealed
    _welcome(_CHANNEL.confirmed("shower", said, {"sealed": sealed}))


def _joined(content: bytes) -> None:
    _MET.joined(_WELCOME, content)


_STEPS = (_opening, _answer, _hello, _welcome, _handed_over, _joined)


def _message(content: bytes) -> None:
    _STEPS[(content[0] if content else 0) % len(_STEPS)](content[1:])


def _messages() -> Iterator[bytes]:
    hello = {"id": _HELLO.id, "sign": _HELLO.sign, "wrap": _HELLO.wrap, "name": _HELLO.name}
    given = {"vault": _PLACE.vault_id, "sign": _SIGN, "version": 3, "digest": bytes(32), "epoch": 1}
    box = primitives.wrap(_HELLO.wrap, _CHANNEL.box_info(_PLACE, _HELLO), _VAULT_KEY.reveal())
    sound = (_SHOWER.opening, _ANSWERED.message, packed(hello), _WELCOME, packed(given | {"box": box}), _FINISH)
    yield from (bytes((number,)) + content for number, content in enumerate(sound))
    yield b"\3" + packed({"wrong": True})


def _change(content: bytes, random: Random) -> bytes:
    return mutation.behind(1, mutation.change_packed)(content, random)


TARGETS = {"pairing": Target(_message, _messages, REFUSALS, _change)}
