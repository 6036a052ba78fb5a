"""Make what a case describes: versions, logs, bytes and values."""

import base64
import copy
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgpack

from memseal_conformance import containers
from memseal_conformance.changing import Changer
from memseal_conformance.containers import sha256
from memseal_conformance.forms import CaseInvalid, call, members_of, pass_on
from memseal_conformance.things import Log, Version, digest_of
from memseal_conformance.values import Source

FOUNDER = "alice"

_PLACE = re.compile(r"\{(\w+)(?: ([^}]*))?\}")


class Maker:
    """Makes the things of one case, each when it is first named."""

    def __init__(self, source: Source, make: Mapping[str, Any], vault_limit: int | None) -> None:
        self._source = source
        self._make = make
        self._vault_limit = vault_limit
        self._made: dict[str, Any] = {}
        self.saved: dict[str, str] = {}
        self.key = source.key
        self._things: Mapping[str, Callable[..., Any]] = {
            "first": self._first,
            "after": self._after,
            "log": self._log,
            "segment": self._segment,
            "manifest": self._manifest,
            "part": self._part,
            "stripped": self._stripped,
            "content": self._content,
            "record": self._record,
            "hex": _hex,
            "some": source.some,
            "flip": self._flip,
            "cut": self._cut,
            "slice": self._slice,
            "join": self._join,
            "header": self._header,
        }
        self._values: Mapping[str, Callable[..., Any]] = {
            "hex": _hex,
            "some": source.some,
            "key": source.public,
            "object": source.object_id,
            "entry": source.entry,
            "stream": self._stream,
            "chain": self._chain,
            "end": self._end,
            "sha256": self._sha256,
            "map": self._map,
            "nested": _nested,
            "limit": self._limit,
        }

    # What cases ask for.

    def octets(self, written: Any) -> bytes:
        """Return the bytes of a thing."""
        thing = self._thing(written)
        if isinstance(thing, Version):
            return thing.whole
        if not isinstance(thing, bytes):
            raise CaseInvalid(f"it has no bytes of its own: {written!r:.80}")
        return thing

    def version(self, written: Any) -> Version:
        """Return a version."""
        thing = self._thing(written)
        if not isinstance(thing, Version):
            raise CaseInvalid(f"it is not a version: {written!r:.80}")
        return thing

    def log(self, written: Any) -> Log:
        """Return a log."""
        thing = self._thing(written)
        if not isinstance(thing, Log):
            raise CaseInvalid(f"it is not a log: {written!r:.80}")
        return thing

    def value(self, written: Any) -> Any:
        """Return a value: texts, numbers and null as they are, arrays, and objects that say what they are."""
        if isinstance(written, list):
            return [self.value(each) for each in cast("Sequence[Any]", written)]
        return call(self._values, written) if isinstance(written, dict) else written

    def filled(self, text: str) -> str:
        """Return a text with its places filled: `{vault}`, `{vault bob}`, `{stream a}`, `{object c}`, `{saved tag}`."""
        return _PLACE.sub(self._place, text)

    def nonce(self, name: str) -> str:
        """Return the nonce of this name, for a request that is to come twice."""
        return base64.b64encode(self._source.some(f"nonce {name}", 16)).decode()

    def secrets(self) -> list[str]:
        """Return, in hex, what no detail may quote: the ids and public keys that the case has named so far."""
        streams = [thing.stream for thing in self._made.values() if isinstance(thing, Log)]
        return [each.hex() for each in [*self._source.named, *streams]]

    def _place(self, match: re.Match[str]) -> str:
        name, argument = match.groups()
        match name:
            case "vault":
                return self._source.vault(argument or FOUNDER).hex()
            case "stream":
                return self.log(argument).stream.hex()
            case "object":
                return self._source.object_id(argument).hex()
            case "digest":
                return self.version(argument).digest.hex()
            case "saved":
                return self.saved[argument]
            case _:
                raise CaseInvalid(f"{{{name}}} is no place that this runner can fill")

    def _thing(self, written: Any) -> Any:
        if not isinstance(written, str):
            return call(self._things, written)
        if written not in self._made:
            if written not in self._make:
                raise CaseInvalid(f"nothing of this name is made: {written}")
            self._made[written] = call(self._things, self._make[written])
        return self._made[written]

    # Versions.

    def _first(self, founder: str, *, signed: Sequence[Any] | None = None, **rest: Any) -> Version:
        fields = copy.deepcopy(dict(self._source.first_fields(founder)))
        signers = [founder, "epoch 1"] if signed is None else signed
        return pass_on(self._build, self._source.vault(founder), fields, signed=signers, **rest)

    def _after(self, before: str, **rest: Any) -> Version:
        previous = self.version(before)
        fields = copy.deepcopy(previous.fields)
        fields["version"] += 1
        fields["previous"] = previous.digest
        return pass_on(self._build, previous.vault, fields, **rest)

    def _build(
        self,
        vault: bytes,
        fields: dict[str, Any],
        *,
        changes: Sequence[Any] = (),
        signed: Sequence[Any] = (),
        approval: Sequence[Any] = (),
        preamble: Mapping[str, Any] | None = None,
        secrets: str = "",
        tail: str = "",
    ) -> Version:
        Changer(self._source, self, fields).change(changes)
        head = self._version_preamble(vault, fields, preamble or {})
        head += containers.record(0, _pack(fields) + bytes.fromhex(tail))
        boxes = containers.record(2, _pack({"boxes": [], "slots": []}))
        sealed = self._source.some(f"secrets {fields['version']} {secrets}", containers.LEAST_BODY)
        sealed_part = boxes + containers.record(3, sealed)
        digest = digest_of(head, sealed_part)
        pairs = [self._signature(name, digest) for name in signed]
        approved: dict[str, Any] = {"sealed": sha256(sealed_part), "signatures": pairs}
        Changer(self._source, self, approved).change(approval)
        return Version(vault, fields, head, containers.record(1, _pack(approved)), sealed_part)

    def _version_preamble(self, vault: bytes, fields: Mapping[str, Any], changed: Mapping[str, Any]) -> bytes:
        number = fields["version"] if isinstance(fields["version"], int) else 1
        epoch = fields["epoch"] if isinstance(fields["epoch"], int) else 1
        stream = bytes(8) + number.to_bytes(8, "big")
        return self._preamble(containers.KEYRING, epoch, vault, stream, bytes(12), changed)

    def _signature(self, signer: Any, digest: bytes) -> list[bytes]:
        """Sign as a name says; `{"forged": name}` spoils the signature."""
        forged = not isinstance(signer, str)
        name = str(members_of(signer)["forged"]) if forged else signer
        signature = self._source.key(name).sign(b"memseal/v1/keyring-sign" + digest)
        return [self._source.public(name), _flipped(signature, 10) if forged else signature]

    # Logs and what checkpoints are made of.

    def _log(
        self,
        owner: str,
        *,
        begun_by: str,
        records: int,
        salt: str = "",
        size: Any = containers.LEAST_BODY,
        preamble: Mapping[str, Any] | None = None,
    ) -> Log:
        version = self.version(begun_by)
        nonce = version.digest[:8] + self._source.some(f"salt {salt}", 4)
        stream = sha256(b"memseal/v1/stream", version.vault, self._source.public(owner), nonce)[:16]
        head = self._preamble(containers.LOG, version.fields["epoch"], version.vault, stream, nonce, preamble or {})
        bodies = [self._source.some(f"{owner} {salt} {index}", self.value(size)) for index in range(records)]
        return Log(head, [containers.record(index, body) for index, body in enumerate(bodies)])

    def _segment(
        self,
        name: str,
        *,
        records: Sequence[int],
        start: int | None = None,
        length: int | None = None,
        index: int | None = None,
        chain: Any = None,
        piece: Any = None,
    ) -> bytes:
        log, (first, stop) = self.log(name), records
        body = log.piece(first, stop) if piece is None else self.octets(piece)
        begins = first > 0
        place = log.length(first) if begins else 0
        before = log.chain(first) if begins else bytes(32)
        return b"".join(
            (
                (place if start is None else start).to_bytes(8, "big"),
                (len(body) if length is None else length).to_bytes(8, "big"),
                (first if index is None else index).to_bytes(4, "big"),
                before if chain is None else self.value(chain),
                body,
            )
        )

    def _manifest(self, name: str, *, begun_by: str, **rest: Any) -> bytes:
        version = self.version(begun_by)
        nonce = version.digest[:8] + bytes(4)
        return pass_on(self._object, name, version.vault, version.fields["epoch"], nonce, **rest)

    def _part(self, name: str, *, founder: str = FOUNDER, **rest: Any) -> bytes:
        return pass_on(self._object, name, self._source.vault(founder), 0, bytes(12), **rest)

    def _object(
        self,
        name: str,
        vault: bytes,
        epoch: int,
        nonce: bytes,
        *,
        records: int = 1,
        size: Any = containers.LEAST_BODY,
        variant: str = "",
        preamble: Mapping[str, Any] | None = None,
    ) -> bytes:
        object_id = self._source.object_id(name)
        head = self._preamble(containers.CHECKPOINT, epoch, vault, object_id, nonce, preamble or {})
        length = self.value(size)
        bodies = [self._source.some(f"{name} {variant} {index}", length) for index in range(records)]
        return head + b"".join(containers.record(index, body) for index, body in enumerate(bodies))

    def _preamble(
        self, kind: int, epoch: int, vault: bytes, stream: bytes, nonce: bytes, changed: Mapping[str, Any]
    ) -> bytes:
        fields: dict[str, Any] = {"kind": kind, "epoch": epoch, "vault": vault, "stream": stream, "nonce": nonce}
        for name, value in changed.items():
            fields[name] = self._source.vault(value["vault"]) if name == "vault" else self.value(value)
        return containers.preamble(**fields)

    # Bytes.

    def _stripped(self, version: Any) -> bytes:
        return self.version(version).stripped

    def _content(self, log: str, *, records: int | None = None) -> bytes:
        return self.log(log).content(records)

    def _record(self, index: int, *, size: int) -> bytes:
        return containers.record(index, self._source.some(f"record {index}", size))

    def _flip(self, written: Any, *, at: int) -> bytes:
        return _flipped(self.octets(written), at)

    def _cut(self, written: Any, *, last: int) -> bytes:
        return self.octets(written)[:-last]

    def _slice(self, written: Any, *, start: int = 0, stop: int | None = None) -> bytes:
        return self.octets(written)[start:stop]

    def _join(self, written: Sequence[Any]) -> bytes:
        return b"".join(map(self.octets, written))

    def _header(self, written: Any, *, at: int, index: int, length: int | None = None) -> bytes:
        """Put another record header, with a right CRC, in the place of the one that is there."""
        content = self.octets(written)
        there = int.from_bytes(content[at : at + 4], "big")
        header = containers.header(there if length is None else length, index)
        return content[:at] + header + content[at + containers.HEADER_SIZE :]

    # Values.

    def _stream(self, log: str) -> bytes:
        return self.log(log).stream

    def _chain(self, log: str, *, records: int) -> bytes:
        return self.log(log).chain(records)

    def _end(self, log: str, *, records: int, following: int) -> dict[str, Any]:
        return self.log(log).end(records, following)

    def _sha256(self, written: Any) -> bytes:
        return sha256(self.octets(written))

    def _map(self, members: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.value(member) for name, member in members.items()}

    def _limit(self, more: int) -> int:
        if self._vault_limit is None:
            raise CaseInvalid("`limit` stands only in cases that need one")
        return self._vault_limit + more


def _hex(digits: str) -> bytes:
    return bytes.fromhex(digits)


def _pack(value: Any) -> bytes:
    packed: bytes = msgpack.packb(value, use_bin_type=True)
    return packed


def _flipped(content: bytes, at: int) -> bytes:
    changed = bytearray(content)
    changed[at] ^= 1
    return bytes(changed)


def _nested(depth: int) -> Any:
    value: object = 0
    for _ in range(depth):
        value = [value]
    return value
