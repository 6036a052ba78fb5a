"""The worked example: from a passphrase to a memory, each step with its bytes, as a page and as vectors."""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import msgpack

from making.book import Book, Value
from making.containers import context, pack, plaintext, u32
from making.devices import cost_bytes, salt_of, slot_key
from making.keyrings import COST, epoch_key, public_sign, vault_key
from making.people import ANN, VAULT
from making.sealing import PASSPHRASE, box_info, stretched
from making.states import memory
from making.vaults import KEYS, A, B, Standing, log_key, log_name, standing

PLACE = "format-spec/worked-example.md"
WHOLE = "vault-format §1"


@dataclass
class Page:
    """A page that grows: sentences, and tables of named bytes."""

    lines: list[str] = field(default_factory=list[str])

    def say(self, *texts: str) -> None:
        self.lines += [*texts, ""]

    def show(self, **values: Any) -> None:
        """A block of named values; long byte strings show their ends."""
        named = [(name.replace("__", "-").replace("_", " "), _shown(value)) for name, value in values.items()]
        width = max(len(name) for name, _ in named)
        self.lines += ["```", *(f"{name:<{width}}  {text}" for name, text in named), "```", ""]

    def text(self) -> str:
        return "\n".join(self.lines).rstrip() + "\n"


def _shown(value: Any) -> str:
    match value:
        case bytes() if len(value) > 128:
            return f"{value[:24].hex()} … {value[-8:].hex()} ({len(value):,} bytes)"
        case bytes():
            return value.hex() or "nothing"
        case _:
            return str(value)


def add(book: Book) -> None:
    _Example(book, standing(book)).add()


class _Example:
    def __init__(self, book: Book, here: Standing) -> None:
        self._book, self._group, self._here = book, book.group("example"), here
        self._page = Page()
        self._version = here.world.one

    def add(self) -> None:
        self._begin()
        self._passphrase()
        self._key_set()
        self._keyring()
        self._log()
        self._record()
        self._memory()
        self._book.pages[PLACE] = self._page.text()

    def _case(self, name: str, rule: str, title: str, operation: str, given: dict[str, Any], **gives: Any) -> None:
        self._group.ok(name, rule, title, operation, given, **gives)

    def _file(self, content: bytes) -> str:
        return f"interop-vectors/{self._book.path_of(content)}"

    def _begin(self) -> None:
        here = self._here
        files = {"device.mseal": here.device, **here.keyring(1), log_name(here.ann): here.ann.whole()}
        given = {"files": files, "passphrase": PASSPHRASE}
        self._case(
            "vault",
            WHOLE,
            "the vault of the worked example",
            "open_vault",
            given,
            memories=sorted([memory(A), memory(B)], key=lambda each: each["id"]),
        )
        self._page.say(
            "# From a passphrase to a memory",
            "",
            "One small vault, opened by hand: all that a reader does, with the bytes of each step. `‖` "
            "joins bytes; long ones show their beginning, their end and their length. "
            "The whole files are among the [vectors](../interop-vectors/README.md), and each step is a "
            "vector too: those whose ids begin with `example/`. "
            "This page is made by `interop-vectors/generate.py`.",
        )
        self._page.lines += ["| file of the vault | is |", "|---|---|"]
        self._page.lines += [f"| `{name}` | `{self._file(content)}` |" for name, content in files.items()]
        self._page.lines.append("")

    def _passphrase(self) -> None:
        page, salt = self._page, salt_of("current")
        page.say("## 1. Passphrase and device file (vault-format §2, §6, §8)")
        page.say("Record 0 of `device.mseal` is open. Its one slot has a salt and a cost, which is within the bounds:")
        page.show(
            passphrase=PASSPHRASE,
            in_NFC_and_UTF__8=PASSPHRASE.encode(),
            salt=salt,
            cost="argon2id, 65536 KiB, 3 passes, 4 lanes",
        )
        output = stretched(PASSPHRASE, salt)
        self._case(
            "stretch",
            "vault-format §2",
            "step 1: the passphrase",
            "stretch",
            {"passphrase": PASSPHRASE, "salt": salt, "cost": COST},
            output=output,
        )
        parts = [VAULT, ANN.id, cost_bytes()]
        key = slot_key(PASSPHRASE, "current", ANN.id)
        given = {"ikm": output, "salt": salt, "label": "memseal/v1/device", "parts": parts}
        self._case("slot-key", "vault-format §6", "step 1: the device slot key", "derive", given, output=key)
        page.say(
            "Argon2id makes 32 bytes of it, and HKDF-SHA-512 with the same salt the device slot key. `info` "
            "is label, vault id, device id and cost, each after its length:"
        )
        page.show(Argon2id=output, info=_info("memseal/v1/device", parts), device_slot_key=key)

    def _key_set(self) -> None:
        page, device = self._page, self._here.device
        page.say("## 2. Key set (§4, §8)")
        start = 64 + 12 + int.from_bytes(device[64:68], "big")
        size = int.from_bytes(device[start : start + 4], "big")
        body = device[start + 12 : start + 12 + size]
        key, content = slot_key(PASSPHRASE, "current", ANN.id), pack(KEYS)
        given = {"key": key, "preamble": device[:64], "index": 1, "record": device[start : start + 12 + size]}
        self._case("key-set", "vault-format §4", "step 2: the sealed key set", "open_record", given, content=content)
        opened = {"device_id": ANN.id, "sign": ANN.sign, "wrap": ANN.wrap, "local": ANN.local}
        given = {"content": device, "versions": [self._version.content], "passphrase": PASSPHRASE}
        self._case("device", "vault-format §8", "steps 1 and 2 in one", "open_device", given, **opened)
        page.say(
            f"Record 1 stands at offset {start}. Its header is length, index and CRC-32; its body opens "
            "under the device slot key with this context:"
        )
        page.show(
            preamble=device[:64],
            header=device[start : start + 12],
            body=body,
            context=context(device[:64], 1),
            plaintext=plaintext(content),
        )
        page.say(
            f"The plaintext is the length of the content, {len(content)}, the content, and zeros up to 1,024 "
            "bytes. The content is a msgpack map:"
        )
        page.show(content=content, sign=ANN.sign, wrap=ANN.wrap, local=ANN.local)

    def _keyring(self) -> None:
        page, version = self._page, self._version
        page.say("## 3. Keyring (§7)")
        public = version.public
        page.say(
            "The public signing key of the seed `sign` is the one of the only entry, and gives the vault "
            "id. The version's digest is over its preamble, record 0 and the hash of its records 2 and 3; "
            "both signatures in record 1 are over `memseal/v1/keyring-sign` ‖ digest:"
        )
        signatures = version.signatures()
        page.show(
            preamble=version.content[:64],
            record_0=version.content[64 : version.record_0_end],
            public_signing_key=ANN.public_sign,
            vault_id=VAULT,
            digest=version.digest,
            signer_1=signatures[0][0],
            signature_1=signatures[0][1],
            signer_2=signatures[1][0],
            signature_2=signatures[1][1],
        )
        accepted = {"version": 1, "epoch": 1, "digest": version.digest, "active": [ANN.id]}
        given: dict[str, Any] = {"versions": [version.content], "vault_id": VAULT}
        self._case(
            "keyring", "vault-format §7", "step 3: the first version is accepted", "accept_keyring", given, **accepted
        )
        info = box_info(public, ANN.id, ANN.public_sign, ANN.public_wrap)
        wrapped = _boxes(version.content, version.open_size)[ANN.public_wrap]
        given = {"seed": ANN.wrap, "info": info, "wrapped": wrapped}
        opened = {"content": vault_key(1), "public": ANN.public_wrap}
        self._case("box", "vault-format §7", "step 3: the device's box", "unwrap", given, **opened)
        page.say(
            "The seed `wrap` expands to ML-KEM-768 and X25519 keys; their public halves name the box in "
            "record 2. HPKE opens it with this info:"
        )
        page.show(public_wrapping_key=ANN.public_wrap, info=info, wrapped=wrapped, vault_key=vault_key(1))
        parts = [VAULT, u32(1)]
        given = {"ikm": vault_key(1), "salt": b"", "label": "memseal/v1/epoch", "parts": parts}
        self._case(
            "epoch-key", "vault-format §6", "step 3: the seed of the epoch key", "derive", given, output=epoch_key(1)
        )
        page.say("It is the right one, for it gives the epoch key that the version lists:")
        page.show(
            info=_info("memseal/v1/epoch", parts), epoch_seed=epoch_key(1), public_epoch_key=public_sign(epoch_key(1))
        )

    def _log(self) -> None:
        page, log = self._page, self._here.ann
        page.say("## 4. Log (§3, §6)")
        place, key = log.preamble, log_key(log.preamble, 1)
        page.say(
            "Magic, format version 1, suite 1, kind 2 (log), a zero; epoch, vault id, stream id, nonce, "
            "CRC-32. The nonce begins as the digest of the version that began epoch 1 does, and the stream "
            "id is that of Ann's signing key:"
        )
        derived = sha256(b"memseal/v1/stream" + VAULT + ANN.public_sign + place[48:60]).digest()
        page.show(
            preamble=place,
            epoch=place[12:16],
            vault_id=place[16:32],
            stream_id=place[32:48],
            nonce=place[48:60],
            CRC__32=place[60:],
            SHA__256=derived,
        )
        keys = [[1, {"bytes": vault_key(1).hex()}]]
        given = {"content": place, "name": place[32:48], "versions": [self._version.content], "vault_keys": keys}
        placed = {"owner": ANN.public_sign, "key": key, "limit": None}
        self._case("log", "vault-format §3", "step 4: whose log it is, and its key", "place_log", given, **placed)
        page.say("Its key is derived from the vault key:")
        page.show(info=_info("memseal/v1/log", [VAULT, place[32:48]]), log_key=key)

    def _record(self) -> None:
        page, log = self._page, self._here.ann
        page.say("## 5. Record 0 (§4, §5)")
        made, body, key = log.records[0], log.contents[0], log_key(log.preamble, 1)
        given = {"key": key, "preamble": log.preamble, "index": 0, "record": made}
        self._case("record", "vault-format §4", "step 5: record 0 is opened", "open_record", given, content=body)
        page.say("It stands right after the preamble, and opens under the log key:")
        page.show(header=made[:12], body=made[12:], context=context(log.preamble, 0), plaintext=plaintext(body))
        page.say(
            f"The content, {len(body)} bytes, is the chain before the record (that of a first record: "
            "SHA-256 of the preamble), the flags, the length of meta, meta, no columns, and a signature:"
        )
        end = len(body) - 64
        page.show(
            content=body,
            chain=body[:32],
            flags=f"{body[32]:02x}: signed",
            length_of_meta=body[33:37],
            meta=body[37:end],
            signature=body[end:],
        )
        message = b"memseal/v1/sign" + log.preamble + u32(0) + body[:end]
        given = {"public": ANN.public_sign, "message": message, "signature": body[end:]}
        self._case("signature", "vault-format §5", "step 5: the signature of record 0", "verify", given)
        page.say("The signature is Ann's, over a label, the preamble, the index and the content before it:")
        page.show(message=message, public_signing_key=ANN.public_sign)
        page.say(
            "The chain after it is SHA-256 of the chain before and the record as stored. It stands at the "
            "beginning of record 1's content:"
        )
        page.show(chain=log.chains[1])
        whole = {"trusted": [0, 1], "waiting": [], "end": log.end(), "torn": 0, "appendable": True}
        given = {"content": log.whole(), "key": key, "owner": ANN.public_sign}
        self._case("chain", "vault-format §5", "step 5: the whole log", "read_log", given, **whole)

    def _memory(self) -> None:
        page, log = self._page, self._here.ann
        page.say("## 6. Memory (§9, §10)")
        body = log.contents[0]
        meta = body[37:-64]
        value = msgpack.unpackb(meta)
        gives: dict[str, Any] = {"chain": body[:32], "signed": True, "more": False, "meta": Value(value), "columns": []}
        given: dict[str, Any] = {"content": body, "preamble": log.preamble, "index": 0}
        self._case("content", "vault-format §5", "step 6: what record 0 says", "decode_content", given, **gives)
        page.say(
            "Meta is a msgpack map. `previous` is 0 and there are no heads, so the record's counter is 1; "
            "its one operation has the stamp (1, 0, its id):"
        )
        self._page.lines += ["```", *_outline(value), "```", ""]
        given = {"content": pack(A), "counter": 1, "position": 0}
        self._case(
            "operation",
            "vault-format §9",
            "step 6: its operation",
            "decode_operation",
            given,
            op="remember",
            id=A["id"],
            stamp=[1, 0],
        )
        page.say(f"Nothing else is said of it in this vault: it is active, and its text is “{A['content']}”.")


def _info(label: str, parts: list[bytes]) -> bytes:
    return b"".join(u32(len(text)) + text for text in (label.encode(), *parts))


def _boxes(content: bytes, start: int) -> dict[bytes, bytes]:
    size = int.from_bytes(content[start : start + 4], "big")
    return dict(msgpack.unpackb(content[start + 12 : start + 12 + size])["boxes"])


def _outline(value: Any, depth: int = 0) -> list[str]:
    """A map's fields, one a line."""
    lines = list[str]()
    for name, inner in value.items():
        if isinstance(inner, list) and inner:
            lines.append(f"{'  ' * depth}{name}:")
            lines += [line for each in inner for line in _outline(each, depth + 1)]
        else:
            lines.append(f"{'  ' * depth}{name}: {inner.hex() if isinstance(inner, bytes) else inner}")
    return lines
