"""Vectors of single keyring versions: limits, framing, rule K1 (§7)."""

from hashlib import sha256
from typing import Any

from making import curve
from making.book import Book, Group, Repeated, Sparse
from making.containers import KEYRING, frame, header, pack, preamble, u64
from making.keyrings import (
    Change,
    Map,
    Recipe,
    Version,
    adds,
    build,
    drops,
    ends,
    entry,
    epoch_key,
    first,
    first_public,
    floor,
    floor_row,
    recovery,
    sets,
    stream_row,
    version_preamble,
)
from making.people import ANN, BEN, OTHER_VAULT, VAULT, Device, seed

RULE = "vault-format §7 K1"
LIMITS = "vault-format §7"
SIGNERS = (ANN.sign, epoch_key(1))


def add(book: Book) -> None:
    group = book.group("keyring")
    _add_sound(group)
    _add_public_faults(group)
    _add_twice(group)
    _add_floor_faults(group)
    _add_approval_faults(group)
    _add_preamble_faults(group)
    _add_framing(group)
    _add_limits(group)


def _given(content: Any, vault: bytes | None = VAULT) -> dict[str, Any]:
    return {"content": content, "vault_id": vault}


def _opens(group: Group, name: str, title: str, version: Version, whole: bool = False) -> None:
    public = version.public
    gives = {"version": public["version"], "epoch": public["epoch"], "digest": version.digest}
    active = version.active()
    group.ok(f"k1-{name}", RULE, title, "decode_keyring", _given(version.content), **gives, active=active, whole=whole)


def _refused(
    group: Group, name: str, title: str, content: Any, code: str = "keyring_malformed", rule: str = RULE
) -> None:
    group.refused(f"k1-{name}", rule, title, "decode_keyring", _given(content), code)


def _broken(group: Group, name: str, title: str, *changes: Change) -> None:
    _refused(group, name, title, first(*changes).content)


def _add_sound(group: Group) -> None:
    _opens(group, "first", "a stripped version", first(sets("newer", to="stripped")))
    part = frame(2, pack({"boxes": [], "slots": []})) + frame(3, b"")
    _opens(group, "whole", "a whole version", build(first_public(), Recipe(SIGNERS, sealed_part=part)), whole=True)
    far = [sets("version", to=70_000), sets("epoch", to=3), sets("epoch_since", to=9), adds(BEN)]
    ended = ends(BEN, stream_row("b"), stream_row("c", 0))
    listed = [sets("recovery", to=recovery(3, 5)), sets("floor", to=floor(1, floor_row("a", 4)))]
    full = first(*far, ended, *listed, sets("newer", to={"a": 1}), sets("kit", "newer", to=1))
    _opens(group, "all-fields", "a version in which all fields are used; acceptance is another matter", full)


def _add_public_faults(group: Group) -> None:
    for field, wrong in (
        ("version", 0),
        ("previous", bytes(31)),
        ("epoch", 0),
        ("epoch_since", 0),
        ("epoch_key", bytes(31)),
        ("devices", {}),
        ("kit", None),
        ("recovery", []),
        ("passphrase_since", 0),
        ("floor", 0),
    ):
        name = field.replace("_", "-")
        if field not in ("version", "epoch"):  # which the preamble needs
            _broken(group, f"{name}-missing", f"{field} is missing", drops(field))
        _broken(group, f"{name}-wrong", f"{field} is {_written(wrong)}", sets(field, to=wrong))
    _broken(group, "epoch-since-text", "a number as a text", sets("epoch_since", to="1"))
    _broken(group, "epoch-since-float", "a number as a float", sets("epoch_since", to=1.0))
    _broken(group, "epoch-since-true", "true in the place of 1", sets("epoch_since", to=True))
    _broken(group, "epoch-since-2-32", "a number of 2^32", sets("epoch_since", to=1 << 32))
    _broken(group, "previous-text", "a digest as a text", sets("previous", to="0" * 32))
    _broken(group, "epoch-key-one", "the epoch key is the neutral point", sets("epoch_key", to=b"\1" + bytes(31)))
    for field, wrong in (("id", bytes(15)), ("sign", bytes(31)), ("wrap", bytes(1215)), ("since", 0), ("ended", 0)):
        _broken(group, f"entry-{field}-missing", f"an entry without {field}", drops("devices", 0, field))
        _broken(
            group,
            f"entry-{field}-wrong",
            f"an entry's {field} is {_written(wrong)}",
            sets("devices", 0, field, to=wrong),
        )
    _broken(group, "entry-list", "an entry is an array", sets("devices", 0, to=[]))
    eighth = curve.encode(curve.EIGHTH)
    _broken(group, "entry-sign-small", "an entry's signing key has order 8", sets("devices", 0, "sign", to=eighth))
    large = (curve.P + 5).to_bytes(32, "little")
    _broken(group, "entry-sign-large", "an entry's signing key is not canonical", sets("devices", 0, "sign", to=large))
    for field, wrong in (("generation", 0), ("since", 0), ("wrap", bytes(1217)), ("request", bytes(32)), ("cost", [])):
        _broken(group, f"kit-{field}-missing", f"a kit without {field}", drops("kit", field))
        _broken(group, f"kit-{field}-wrong", f"the kit's {field} is {_written(wrong)}", sets("kit", field, to=wrong))
    _broken(group, "cost-unknown", "the cost has a field that is not known", sets("kit", "cost", "newer", to=1))
    _broken(group, "cost-missing", "the cost has no lanes", drops("kit", "cost", "lanes"))
    content = first(sets("kit", "cost", "name", to="scrypt")).content
    _refused(group, "cost-kdf", "the kit's derivation is not known", content, "kdf_unknown")
    coded = sets("recovery", to=recovery(1, 1))
    for field, wrong in (("generation", 0), ("since", 0), ("wrap", bytes(32)), ("request", b"\1" + bytes(31))):
        title = f"the recovery code's {field} is {_written(wrong)}"
        _broken(group, f"recovery-{field}-wrong", title, coded, sets("recovery", field, to=wrong))


def _written(value: Any) -> str:
    match value:
        case bytes():
            return f"{len(value)} bytes, of which none or one is not zero"
        case None:
            return "nil"
        case dict():
            return "a map"
        case list():
            return "an array"
        case _:
            return str(value)


def _add_twice(group: Group) -> None:
    again = entry(BEN, 1)
    twice = [adds(BEN), sets("devices", 1, "sign", to=ANN.public_sign)]
    _broken(group, "sign-twice", "a signing key stands twice", *twice)
    twice = [adds(BEN), sets("devices", 1, "wrap", to=ANN.public_wrap)]
    _broken(group, "wrap-twice", "a wrapping key stands twice", *twice)
    dead = [adds(BEN), ends(BEN), sets("devices", 1, "sign", to=ANN.public_sign)]
    _broken(group, "sign-ended-twice", "an ended entry has the signing key of an active one", *dead)
    twice = [adds(BEN), sets("devices", 1, "id", to=ANN.id)]
    _broken(group, "id-twice", "two active entries have one id", *twice)
    title = "an ended entry and an active one have one id"
    _opens(group, "id-ended-twice", title, first(adds(ANN.renewed()), ends(ANN)))
    _broken(group, "entry-twice", "an entry stands twice", adds(BEN), lambda public: public["devices"].append(again))
    rows = {
        "stream-twice": ("a stream stands twice in an end", [stream_row("b"), stream_row("b")]),
        "stream-short": ("a row of an end has three values", [stream_row("b")[:3]]),
        "stream-long": ("a row of an end has five values", [[*stream_row("b"), 1]]),
        "stream-id": ("a stream id of 15 bytes", [[bytes(15), *stream_row("b")[1:]]]),
        "stream-length": ("a stream ends within its preamble", [[*stream_row("b")[:3], 63]]),
        "stream-length-2-53": ("a length of 2^53", [[*stream_row("b")[:3], 1 << 53]]),
        "stream-chain": ("a chain of 31 bytes", [[stream_row("b")[0], 3, bytes(31), 4000]]),
        "stream-records": ("−1 records", [[stream_row("b")[0], -1, bytes(32), 4000]]),
    }
    for name, (title, streams) in rows.items():
        _broken(group, name, title, adds(BEN), ends(BEN, *streams))
    _broken(
        group, "ended-version", "an end without version", adds(BEN), ends(BEN), drops("devices", 1, "ended", "version")
    )
    _broken(
        group, "ended-streams", "an end without streams", adds(BEN), ends(BEN), drops("devices", 1, "ended", "streams")
    )


def _add_floor_faults(group: Group) -> None:
    row = floor_row("a", 4)
    sound = floor(1, row)
    _opens(group, "floor", "a floor with one row", first(sets("floor", to=sound)))
    faults: dict[str, tuple[str, Any]] = {
        "checkpoint": ("a checkpoint id of 15 bytes", sound | {"checkpoint": bytes(15)}),
        "digest": ("a digest of 31 bytes", sound | {"digest": bytes(31)}),
        "parts": ("parts is nil", sound | {"parts": None}),
        "part-id": ("a part id of 17 bytes", sound | {"parts": [bytes(17)]}),
        "part-twice": ("a part stands twice", sound | {"parts": [bytes(16), bytes(16)]}),
        "stream-twice": ("a stream stands twice", floor(1, row, floor_row("a", 5))),
        "row-short": ("a row of seven values", floor(1, row[:7])),
        "row-older": ("a row without epoch and nonce", floor(1, [row[0], *row[3:]])),
        "stream-id": ("a stream id of 15 bytes", floor(1, [bytes(15), *row[1:]])),
        "epoch": ("epoch 0", floor(1, [row[0], 0, *row[2:]])),
        "nonce": ("a nonce of 11 bytes", floor(1, [*row[:2], bytes(11), *row[3:]])),
        "segment": ("segment 2^32", floor(1, [*row[:3], 1 << 32, *row[4:]])),
        "length": ("a place within the preamble", floor(1, [*row[:4], 63, *row[5:]])),
        "length-2-53": ("a place at 2^53", floor(1, [*row[:4], 1 << 53, *row[5:]])),
        "chain": ("a chain of 33 bytes", floor(1, [*row[:6], bytes(33), row[7]])),
        "counter": ("a counter of 2^53", floor(1, [*row[:7], 1 << 53])),
        "array": ("the floor is an array", [sound]),
    }
    for name, (title, value) in faults.items():
        _broken(group, f"floor-{name}", f"in the floor: {title}", sets("floor", to=value))


def _add_approval_faults(group: Group) -> None:
    def refused(name: str, title: str, approval: Any) -> None:
        version = first()
        body = approval if isinstance(approval, bytes) else pack(approval)
        content = version.content[: version.record_0_end] + frame(1, body)
        _refused(group, f"approval-{name}", f"in the approval: {title}", content)

    good = first().signatures()
    sealed = seed("sealed")
    refused("sealed-missing", "no sealed", {"signatures": good})
    refused("sealed-short", "sealed has 31 bytes", {"sealed": bytes(31), "signatures": good})
    refused("signatures-missing", "no signatures", {"sealed": sealed})
    refused("signatures-map", "signatures is a map", {"sealed": sealed, "signatures": {}})
    refused("row-short", "a row of one value", {"sealed": sealed, "signatures": [good[0][:1]]})
    refused("row-long", "a row of three values", {"sealed": sealed, "signatures": [[*good[0], 1]]})
    refused("key-short", "a key of 31 bytes", {"sealed": sealed, "signatures": [[bytes(31), good[0][1]]]})
    refused("signature-short", "a signature of 63 bytes", {"sealed": sealed, "signatures": [[good[0][0], bytes(63)]]})
    refused("array", "it is an array", [sealed, good])
    refused("no-msgpack", "it is no msgpack", b"\xc1")
    refused("two-values", "two values", pack({"sealed": sealed, "signatures": good}) + b"\xc0")


def _add_preamble_faults(group: Group) -> None:
    def refused(name: str, title: str, begin: bytes, code: str = "keyring_malformed", rule: str = RULE) -> None:
        content = build(first_public(), Recipe(SIGNERS, preamble=begin)).content
        _refused(group, f"preamble-{name}", title, content, code, rule)

    public = first_public()
    refused("epoch", "the preamble has another epoch", version_preamble(public, epoch=2))
    refused("version", "the preamble has another version", version_preamble(public, stream=bytes(8) + u64(2)))
    high = version_preamble(public, stream=bytes(7) + b"\1" + u64(1))
    refused("stream", "the eight bytes before the version are not zero", high)
    refused("nonce", "the preamble has a nonce", version_preamble(public, nonce=bytes(11) + b"\1"))
    other = version_preamble(public, vault=OTHER_VAULT)
    refused("vault", "a version of another vault", other, "vault_mismatch", "vault-format §3")
    newer = preamble(KEYRING, epoch=1, stream=bytes(8) + u64(1), version=2)
    refused("newer", "a version of a newer format", newer, "version_unknown", "vault-format §3")


def _add_framing(group: Group) -> None:
    version = first()
    begin, public, approval = (
        version.content[:64],
        version.content[64 : version.record_0_end],
        version.content[version.record_0_end :],
    )

    def refused(name: str, title: str, content: bytes, code: str, rule: str = "vault-format §4") -> None:
        _refused(group, f"framing-{name}", title, content, code, rule)

    body = public[12:]
    refused("none", "no record", begin, "keyring_malformed", RULE)
    refused("one", "one record", begin + public, "keyring_malformed", RULE)
    three = version.content + frame(2, pack({"boxes": [], "slots": []}))
    refused("three", "three records", three, "keyring_malformed", RULE)
    five = three + frame(3, b"") + frame(4, b"")
    refused("five", "five records", five, "keyring_malformed", RULE)
    refused("torn", "the approval is cut", version.content[:-1], "record_torn")
    refused("more", "a byte after the approval", version.content + b"\0", "record_torn")
    refused("order", "the approval has index 2", begin + public + frame(2, approval[12:]), "record_order")
    wrong = begin + header(len(body), 0)[:8] + bytes(4) + body + approval
    refused("header", "the first header's CRC is wrong", wrong, "record_header")
    array = begin + frame(0, pack([])) + approval
    refused("public-array", "the public section is an array", array, "keyring_malformed", RULE)
    broken = begin + frame(0, body[:-1]) + approval
    refused("public-cut", "the public section is cut, and its header says so", broken, "keyring_malformed", RULE)
    twice = begin + frame(0, bytes([body[0] + 1]) + body[1:] + pack("epoch") + pack(1)) + approval
    refused("public-twice", "a field of the public section stands twice", twice, "keyring_malformed", RULE)


LIMIT = 4 << 20


def _add_limits(group: Group) -> None:
    def sized(filler: int) -> tuple[bytes, bytes]:
        """What comes before and after a field of so many bytes."""
        public = first_public() | {"zeros": b""}
        body = pack(public)[:-2] + b"\xc6" + filler.to_bytes(4, "big")
        begin = version_preamble(public) + header(len(body) + filler, 0) + body
        return begin, frame(1, pack({"sealed": seed("sealed"), "signatures": []}))

    begin, end = sized(1)
    most = LIMIT - len(begin) - len(end)
    begin, end = sized(most + 1)
    title = "4 MiB and one byte"
    _refused(group, "limit-size", title, Repeated(begin, b"\0", most + 1, end), "keyring_limit", LIMITS)
    begin, end = sized(most)
    digest = _digest(begin + bytes(most))
    gives = {"version": 1, "epoch": 1, "digest": digest, "active": [ANN.id], "whole": False}
    many = [_small_entry(number) for number in range(1025)]
    content = first(sets("devices", to=many)).content
    _refused(group, "limit-devices", "1,025 entries", Sparse(content), "keyring_limit", LIMITS)
    given = _given(Repeated(begin, b"\0", most, end))
    group.ok("k1-limit-size-allowed", LIMITS, "a version of 4 MiB", "decode_keyring", given, **gives)


def _small_entry(number: int) -> Map:
    """An entry that can be packed well: its wrapping key is mostly zeros."""
    device = Device(f"device {number}")
    keys = {"sign": device.public_sign, "wrap": number.to_bytes(4, "big") + bytes(1212)}
    return {"id": device.id, **keys, "since": 1, "ended": None}


def _digest(open_part: bytes) -> bytes:
    return sha256(b"memseal/v1/keyring" + open_part + seed("sealed")).digest()
