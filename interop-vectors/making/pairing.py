"""Vectors of pairing: the code, the exchange on the curve, and what both sides say (sync-protocol §9)."""

import hashlib
import hmac
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from making import curve
from making.book import Book, Group
from making.containers import pack, u32, u64
from making.keyrings import vault_key
from making.people import ANN, BEN, VAULT, seed
from making.sealing import crockford, grouped
from memseal.format import primitives

RULE = "sync-protocol §9"
CHANNEL, SECRET = 4821, b"390351742"
PASSWORD = b"memseal/v1/pairing" + u32(CHANNEL) + SECRET
SERVER = b"https://memory.example:8443"
RANDOM = {"A": seed("pairing A") + seed("pairing A again"), "B": seed("pairing B") + seed("pairing B again")}
DIGEST, JOINED = seed("the shower's keyring"), seed("the join version")


def add(book: Book) -> None:
    group = book.group("pairing")
    _add_codes(group)
    _add_exchanges(group)
    _add_messages(group)


# ── the code ────────────────────────────────────────────────────────────────────────────────────────


def typed(channel: int = CHANNEL, secret: bytes = SECRET) -> str:
    digits = f"{channel:05d}{secret.decode()}"
    digits += f"{98 - int(digits) * 100 % 97:02d}"
    return "-".join(digits[start : start + 4] for start in range(0, 16, 4))


def scanned(
    secret: bytes = bytes(range(16)), server: bytes = b"", *, first: int = 3, channel: int = CHANNEL, check: bool = True
) -> str:
    content = bytes([first]) + u32(channel) + secret + server
    digest = sha256((b"memseal/v1/pairing" if check else b"memseal/v1/kit") + content).digest()
    return grouped(crockford(content + digest[:4]), "MSEAL1P")


def _add_codes(group: Group) -> None:
    def reads(name: str, title: str, text: str, channel: int, secret: bytes, server: str = "") -> None:
        given = {"channel": channel, "secret": secret, "server": server}
        group.ok(f"code-{name}", RULE, title, "parse_pairing", {"text": text}, **given)

    def refused(name: str, title: str, text: str) -> None:
        group.refused(f"code-{name}", RULE, title, "parse_pairing", {"text": text}, "pairing_code_malformed")

    text, long, secret = typed(), scanned(server=SERVER), bytes(range(16))
    reads("typed", "a code to type", text, CHANNEL, SECRET)
    reads("typed-spaces", "with spaces of many kinds", f"\u00a0{text.replace('-', chr(0x2003))}\n", CHANNEL, SECRET)
    reads("typed-zeros", "channel and secret 0", typed(0, b"000000000"), 0, b"000000000")
    reads("scanned", "a code for a camera", long, CHANNEL, secret, SERVER.decode())
    reads(
        "scanned-lower", "a code for a camera, in lower case and without a server", scanned().lower(), CHANNEL, secret
    )
    digits = text.replace("-", "")
    refused("digit", "one digit is another", text[:-1] + ("1" if text[-1] != "1" else "2"))
    refused("digits-swapped", "two digits changed places", digits[:5] + digits[6] + digits[5] + digits[7:])
    refused("digits-few", "a digit is missing", text[:-1])
    refused("digits-many", "a digit more", text + "0")
    refused("digits-other", "digits of another script", text.translate({ord("0") + n: 0x660 + n for n in range(10)}))
    refused("empty", "nothing", "")
    refused("letter", "a letter among the digits", "O" + text[1:])
    refused("scanned-check", "the check of another label", scanned(check=False))
    refused("scanned-short", "the last group is missing", long.rsplit("-", 1)[0])
    refused("scanned-kind", "another first byte, with a right check", scanned(first=1))
    refused("scanned-channel", "a channel of 100,000", scanned(channel=100_000))
    refused("scanned-server", "the server's identity is not UTF-8", scanned(server=b"https://\xff"))
    refused("kit", "the prefix of an emergency kit", long.replace("MSEAL1P", "MSEAL1"))


# ── SPAKE2, as the protocol writes it out ───────────────────────────────────────────────────────────


def _hkdf(ikm: bytes, info: bytes, size: int = 48) -> bytes:
    key, made, block = hmac.digest(bytes(32), ikm, hashlib.sha256), b"", b""
    for number in range(1, size // 32 + 2):
        block = hmac.digest(key, block + info + bytes([number]), hashlib.sha256)
        made += block
    return made[:size]


def _constant(name: bytes) -> curve.Point:
    y = int.from_bytes(_hkdf(name, b"SPAKE2 arbitrary element"), "big") % curve.P
    while True:
        try:
            return curve.times(8, curve.decode(y.to_bytes(32, "little")))  # the sign bit is 0: x is even
        except ValueError:
            y = (y + 1) % curve.P


CONSTANTS = {"A": _constant(b"M"), "B": _constant(b"N")}


@dataclass
class Side:
    """One side of one exchange."""

    side: str
    password: bytes = PASSWORD
    random: bytes = b""
    weight: int = field(init=False)
    element: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.weight = int.from_bytes(_hkdf(self.password, b"SPAKE2 pw"), "big") % curve.L
        self.scalar = int.from_bytes(self.random or RANDOM[self.side], "big") % curve.L
        blinded = curve.times(self.weight, CONSTANTS[self.side])
        self.element = self.side.encode() + curve.encode(curve.plus(curve.times(self.scalar, curve.BASE), blinded))

    def key(self, element: bytes) -> bytes:
        blinded = curve.times(curve.L - self.weight, CONSTANTS["B" if self.side == "A" else "A"])
        shared = curve.times(self.scalar, curve.plus(curve.decode(element[1:]), blinded))
        both = (self.element, element) if self.side == "A" else (element, self.element)
        identities = (b"memseal/v1/pairing-shower", b"memseal/v1/pairing-joiner")
        hashed = b"".join(sha256(each).digest() for each in (self.password, *identities))
        return sha256(hashed + b"".join(each[1:] for each in both) + curve.encode(shared)).digest()


def _add_exchanges(group: Group) -> None:
    shower, joiner = Side("A"), Side("B")

    def given(side: str, element: bytes) -> dict[str, Any]:
        return {"side": side, "code": typed(), "random": RANDOM[side], "element": element}

    def refused(name: str, title: str, element: bytes) -> None:
        group.refused(f"agree-{name}", RULE, title, "agree", given("B", element), "pairing_invalid")

    for mine, other, who in ((shower, joiner, "shower"), (joiner, shower, "joiner")):
        gives = {"own": mine.element, "key": mine.key(other.element)}
        group.ok(
            f"agree-{who}",
            RULE,
            f"what the {who} makes of the other's element",
            "agree",
            given(mine.side, other.element),
            **gives,
        )
    point = shower.element[1:]
    refused("side-own", "the element of a joiner, said to a joiner", joiner.element)
    refused("side-none", "a side that is none", b"S" + point)
    refused("short", "a byte less", shower.element[:-1])
    refused("long", "a byte more", shower.element + b"\0")
    refused("neutral", "the neutral element", b"A" + curve.encode(curve.ZERO))
    refused("order-2", "the element of order 2", b"A" + (curve.P - 1).to_bytes(32, "little"))
    refused("order-8", "an element of order 8", b"A" + curve.encode(curve.EIGHTH))
    off = curve.encode(curve.plus(curve.decode(point), curve.EIGHTH))
    refused("order-8l", "an element that has a part of order 8", b"A" + off)
    refused("no-point", "a y that no point has", b"A" + (2).to_bytes(32, "little"))


# ── what is said ────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Said:
    """All messages of one pairing, by the book but for what a case changes."""

    group: Group
    shower: Side
    joiner: Side
    key: bytes

    def confirm(self, who: str, *said: bytes) -> bytes:
        return primitives.derive(self.key, b"", f"memseal/v1/pairing-confirm-{who}", u32(CHANNEL), *said)

    def sealed(self, name: str, what: str, content: bytes) -> bytes:
        key = primitives.derive(self.key, b"", f"memseal/v1/pairing-{what}-key")
        return self.group.frozen.sealed(name, key, f"memseal/v1/pairing-{what}".encode() + u32(CHANNEL), content)

    @property
    def opening(self) -> bytes:
        return pack({"element": self.shower.element})

    def answer(self, name: str, hello: Any, **changes: Any) -> bytes:
        element, sealed = (
            self.joiner.element,
            self.sealed(name, "hello", hello if isinstance(hello, bytes) else pack(hello)),
        )
        said = {"element": element, "confirm": self.confirm("joiner", self.opening, element, sealed), "sealed": sealed}
        return pack(said | changes)

    def welcome(self, name: str, answer: bytes, content: Any, **changes: Any) -> bytes:
        sealed = self.sealed(name, "welcome", content if isinstance(content, bytes) else pack(content))
        return pack({"confirm": self.confirm("shower", self.opening, answer, sealed), "sealed": sealed} | changes)

    def joined(self, answer: bytes, welcome: bytes, version: int = 4) -> dict[str, Any]:
        confirm = self.confirm("joined", self.opening, answer, welcome, u64(version), JOINED)
        return {"confirm": confirm, "version": version, "digest": JOINED}


HELLO = {"id": BEN.id, "sign": BEN.public_sign, "wrap": BEN.public_wrap, "name": "T\u00e9l\u00e9phone"}
PLACE = {"vault": VAULT, "sign": ANN.public_sign, "version": 3, "digest": DIGEST, "epoch": 2}
BOX_INFO = (
    b"memseal/v1/pairing-box" + VAULT + u32(CHANNEL) + u64(3) + u32(2) + BEN.id + BEN.public_sign
    + sha256(BEN.public_wrap).digest()
)  # fmt: skip


def _add_messages(group: Group) -> None:
    shower, joiner = Side("A"), Side("B")
    said = Said(group, shower, joiner, shower.key(joiner.element))
    answer = said.answer("hello", HELLO)
    _add_hellos(group, said, answer)
    box = group.frozen.wrapped("box", BEN.wrap, BOX_INFO, vault_key(2))
    welcome = said.welcome("welcome", answer, PLACE | {"box": box})
    _add_welcomes(group, said, answer, welcome, box)
    _add_joined(group, said, answer, welcome)


def _called(hello: dict[str, Any]) -> dict[str, Any]:
    return {"device_id": hello["id"], "sign": hello["sign"], "wrap": hello["wrap"], "device_name": hello["name"]}


def _add_hellos(group: Group, said: Said, answer: bytes) -> None:
    def given(message: bytes, code: str = "") -> dict[str, Any]:
        return {"code": code or typed(), "random": RANDOM["A"], "answer": message}

    def refused(name: str, title: str, message: bytes, code: str = "pairing_invalid") -> None:
        group.refused(f"hello-{name}", RULE, title, "open_hello", given(message), code)

    group.ok("hello", RULE, "a joiner that has the code", "open_hello", given(answer), **_called(HELLO))
    wrong = {"name": "hello-code", "title": "another code was typed"}
    other = typed(secret=b"390351743")
    group.refused(wrong["name"], RULE, wrong["title"], "open_hello", given(answer, other), "pairing_code_wrong")
    channel = typed(channel=4822)
    group.refused(
        "hello-channel", RULE, "the code of another channel", "open_hello", given(answer, channel), "pairing_code_wrong"
    )
    refused(
        "confirm", "`confirm` is another", said.answer("hello confirm", HELLO, confirm=bytes(32)), "pairing_code_wrong"
    )
    refused("confirm-short", "`confirm` of 31 bytes", said.answer("hello short", HELLO, confirm=bytes(31)))
    sealed = said.sealed("hello swapped", "hello", pack(HELLO))
    refused(
        "sealed",
        "`sealed` is another, by the same joiner",
        said.answer("hello other", HELLO, sealed=sealed),
        "pairing_code_wrong",
    )
    own = {"element": said.joiner.element, "sealed": answer}
    own["confirm"] = said.confirm("joiner", said.opening, said.joiner.element, answer)
    refused("sealed-none", "`sealed` does not open, and `confirm` is right", pack(own))
    refused(
        "sign-small", "a signing key for which anyone can sign", said.answer("hello small", HELLO | {"sign": bytes(32)})
    )
    refused("wrap-short", "a wrapping key of 1,215 bytes", said.answer("hello wrap", HELLO | {"wrap": bytes(1_215)}))
    refused("name-bytes", "a name that is no text", said.answer("hello name", HELLO | {"name": b"x"}))
    refused("not-msgpack", "a hello that is no msgpack", said.answer("hello none", b"\xc1"))
    refused("array", "an array in the place of the map", pack([]))
    refused("empty", "nothing", b"")
    refused(
        "element", "its element is the shower's own", said.answer("hello element", HELLO, element=said.shower.element)
    )


def _add_welcomes(group: Group, said: Said, answer: bytes, welcome: bytes, box: bytes) -> None:
    def given(message: bytes, answered: bytes = answer) -> dict[str, Any]:
        mine = {"seed": BEN.wrap, "device_id": BEN.id, "sign": BEN.public_sign}
        return {
            "code": typed(),
            "random": RANDOM["B"],
            "opening": said.opening,
            "answer": answered,
            "welcome": message,
        } | mine

    def refused(name: str, title: str, message: bytes, code: str = "pairing_invalid") -> None:
        group.refused(f"welcome-{name}", RULE, title, "open_welcome", given(message), code)

    content = PLACE | {"box": box}
    group.ok(
        "welcome", RULE, "a shower that has the code", "open_welcome", given(welcome), **PLACE, vault_key=vault_key(2)
    )
    refused("wrong", "the shower says that the code was wrong", pack({"wrong": True}), "pairing_code_wrong")
    refused(
        "confirm",
        "`confirm` is another",
        said.welcome("w confirm", answer, content, confirm=bytes(32)),
        "pairing_code_wrong",
    )
    elsewhere = said.welcome("w elsewhere", said.answer("w hello", HELLO | {"name": "another"}), content)
    refused("mixed", "it was said to another joiner with the same code", elsewhere, "pairing_code_wrong")
    refused("reflected", "the joiner's own message", answer, "pairing_code_wrong")
    refused("vault-short", "a vault id of 15 bytes", said.welcome("w vault", answer, content | {"vault": VAULT[:15]}))
    refused(
        "sign-small",
        "a signing key for which anyone can sign",
        said.welcome("w sign", answer, content | {"sign": bytes(32)}),
    )
    refused("version-0", "version 0", said.welcome("w version", answer, content | {"version": 0}))
    refused(
        "box-version", "the box was made for another version", said.welcome("w box", answer, content | {"version": 2})
    )
    refused("box-none", "a box of zeros", said.welcome("w zeros", answer, content | {"box": bytes(1_168)}))
    short = said.group.frozen.wrapped("short box", BEN.wrap, BOX_INFO, vault_key(2)[:31])
    refused(
        "box-short",
        "a box of 1,167 bytes, which has a key of 31",
        said.welcome("w short", answer, content | {"box": short}),
    )


def _add_joined(group: Group, said: Said, answer: bytes, welcome: bytes) -> None:
    def given(message: bytes) -> dict[str, Any]:
        known = {"code": typed(), "random": RANDOM["A"], "answer": answer}
        return known | {"welcome": welcome, "joined": message}

    def refused(name: str, title: str, message: bytes, code: str = "pairing_code_wrong") -> None:
        group.refused(f"joined-{name}", RULE, title, "check_joined", given(message), code)

    sound = said.joined(answer, welcome)
    title = "the joiner says by which version it joined"
    group.ok("joined", RULE, title, "check_joined", given(pack(sound)), version=4, digest=JOINED)
    refused("version", "another version than was confirmed", pack(sound | {"version": 5}))
    refused("welcome", "it was said after another welcome", pack(said.joined(answer, answer)))
    refused("reflected", "the shower's own message", welcome, "pairing_invalid")
    refused("digest-short", "a digest of 31 bytes", pack(sound | {"digest": JOINED[:31]}), "pairing_invalid")
    refused("version-0", "version 0", pack(said.joined(answer, welcome, 0)), "pairing_invalid")
