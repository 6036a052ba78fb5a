"""Vectors of metas and operations (§9)."""

from collections import Counter
from typing import Any

from making.book import Book, Group
from making.containers import pack
from making.people import seed

META = "vault-format §9"
AT = 1_750_000_000_000_000
U32, U53 = 1 << 32, 1 << 53


def add(book: Book) -> None:
    group = book.group("state")
    _add_metas(group)
    _add_operations(group)
    _add_operation_faults(group)
    _add_media(group)
    _add_traits(group)


def ident(name: str) -> bytes:
    return seed(f"operation {name}", 16)


# ── metas ───────────────────────────────────────────────────────────────────────────────────────────


def head(name: str, counter: int, index: int = 0) -> list[Any]:
    return [seed(f"stream {name}", 16), index, seed(f"chain {name}"), counter]


def _add_metas(group: Group) -> None:
    def reads(name: str, title: str, meta: dict[str, Any], counter: int, epoch: int = 1) -> None:
        heads = [[{"bytes": row[0].hex()}, row[1], {"bytes": row[2].hex()}, row[3]] for row in meta.get("heads", [])]
        gives: dict[str, Any] = {"counter": counter, "heads": heads, "operations": len(meta.get("operations", []))}
        group.ok(f"meta-{name}", META, title, "decode_meta", {"content": pack(meta), "epoch": epoch}, **gives)

    def refused(name: str, title: str, meta: dict[str, Any], code: str, epoch: int = 1) -> None:
        given = {"content": pack(meta), "epoch": epoch}
        group.refused(f"meta-{name}", META, title, "decode_meta", given, code)

    reads("first", "the first record of a first log", {"previous": 0, "heads": [], "operations": []}, 1)
    reads("empty", "an empty map", {}, 1)
    reads("previous", "the counter is one more than the record's before", {"previous": 41, "heads": [head("a", 7)]}, 42)
    both = {"previous": 3, "heads": [head("a", 9, 2), head("b", 12, 5)], "operations": [{}]}
    reads("heads", "the counter is one more than the greatest of the heads", both, 13)
    for epoch, most, title in (
        (1, U32, "2^32"),
        (3, 3 * U32, "3 · 2^32"),
        ((1 << 21) - 1, U53 - U32, "2^53 − 2^32"),
        (1 << 21, U53 - 1, "2^53 − 1"),
        (U32 - 1, U53 - 1, "2^53 − 1"),
    ):
        name = f"epoch-{epoch}"
        reads(f"most-{name}", f"a counter of {title} in epoch {epoch}", {"previous": most - 1}, most, epoch)
        refused(f"limit-{name}", f"one more than {title} in epoch {epoch}", {"previous": most}, "counter_limit", epoch)
    refused(
        "limit-head",
        "a head whose counter leads beyond 2^32 in epoch 1",
        {"previous": 0, "heads": [head("a", U32)]},
        "counter_limit",
    )
    for epoch in (1, U32 - 1):
        title = f"a previous of 2^64 − 1 in epoch {epoch}"
        refused(f"limit-64-epoch-{epoch}", title, {"previous": (1 << 64) - 1}, "counter_limit", epoch)
    for name, title, meta in (
        ("previous-text", "previous is a text", {"previous": "1"}),
        ("previous-negative", "previous is −1", {"previous": -1}),
        ("heads-map", "heads is a map", {"heads": {}}),
        ("head-short", "a head of three values", {"heads": [head("a", 1)[:3]]}),
        ("head-stream", "a head with a stream id of 15 bytes", {"heads": [[bytes(15), *head("a", 1)[1:]]]}),
        ("head-chain", "a head with a chain of 31 bytes", {"heads": [[*head("a", 1)[:2], bytes(31), 1]]}),
        ("operations-map", "operations is a map", {"operations": {}}),
    ):
        refused(name, title, meta, "operation_invalid")


# ── operations ──────────────────────────────────────────────────────────────────────────────────────


def remember(name: str, content: str | None = None, **fields: Any) -> dict[str, Any]:
    usual = {"content": content or f"memory {name}", "kind": "fact", "source": "test", "written_at": AT}
    return {"op": "remember", "id": ident(name), **usual} | fields


def supersede(name: str, of: str, **fields: Any) -> dict[str, Any]:
    return remember(name, op="supersede", of=ident(of), **fields)


def retract(name: str, target: str, **fields: Any) -> dict[str, Any]:
    return {"op": "retract", "id": ident(name), "target": ident(target), "at": AT} | fields


def restore(name: str, target: str) -> dict[str, Any]:
    return retract(name, target, op="restore")


def tag(name: str, target: str, *add: str, remove: list[Any] | None = None) -> dict[str, Any]:
    return {"op": "tag", "id": ident(name), "target": ident(target), "at": AT, "add": list(add), "remove": remove or []}


def erase(name: str, *targets: str) -> dict[str, Any]:
    return {"op": "erase", "id": ident(name), "targets": [ident(target) for target in targets], "at": AT}


FULL = remember(
    "full",
    captured_at=-1,
    tags=["a", "b"],
    author="Ann",
    thread="thread",
    position=-5,
    origin="elsewhere/1",
    embedding=0,
    reason=None,
)
OTHERS: dict[str, dict[str, Any]] = {
    "supersede": supersede("s", "full", reason="newer"),
    "retract": retract("r", "full", reason="wrong"),
    "restore": restore("t", "full"),
    "tag": tag("g", "full", "a", remove=[["b", ident("full")]]),
    "embed": {"op": "embed", "id": ident("e"), "target": ident("full"), "embedding": 0},
    "setting": {"op": "setting", "id": ident("w"), "name": "any", "value": {"a": [1, b"\0"]}, "at": AT},
    "erase": erase("x", "full", "other"),
    "dismiss": {"op": "dismiss", "id": ident("d"), "stream": ident("stream"), "records": [0, 7], "at": AT},
}


def _given(operation: Any, counter: int = 10, position: int = 2) -> dict[str, Any]:
    return {"content": pack(operation), "counter": counter, "position": position}


def _add_operations(group: Group) -> None:
    def reads(name: str, title: str, operation: dict[str, Any], stamp: list[int] | None = None) -> None:
        gives: dict[str, Any] = {"op": operation["op"], "id": operation["id"], "stamp": stamp or [10, 2]}
        group.ok(f"op-{name}", META, title, "decode_operation", _given(operation), **gives)

    reads("remember", "a memory with its least fields", remember("least"))
    reads("remember-full", "a memory with all its fields", FULL)
    for name, operation in OTHERS.items():
        reads(name, f"an operation {name}", operation)
    edges = remember("edges", written_at=-(1 << 63), captured_at=(1 << 63) - 1, position=0, embedding=(1 << 32) - 1)
    reads("edges", "the smallest and largest numbers", edges)
    reads(
        "nil", "an optional field that is nil", remember("nil", author=None, thread=None, tags=None, captured_at=None)
    )
    reads("kind", "a kind that no writer of version 1 uses", remember("kind", kind="newer"))
    reads("unknown-field", "a field of newer software", remember("newer", newer=[1]))
    reads("space", "a reader takes a content of white space", remember("space", " "))
    reads("stamp", "with its first stamp", remember("stamp", stamp=[9, 7]), [9, 7])
    reads("stamp-zero", "with the lowest stamp", remember("zero", stamp=[0, 0]), [0, 0])
    unknown = {"op": "newer", "id": ident("newer op"), "anything": 1}
    gives = {"op": "newer", "id": ident("newer op"), "stamp": [10, 2]}
    group.found(
        "op-unknown",
        META,
        "an operation of newer software",
        "decode_operation",
        _given(unknown),
        "operation_unknown",
        **gives,
    )


def medium(**changes: Any) -> dict[str, Any]:
    usual = {"id": ident("medium"), "key": seed("media key"), "bytes": 3, "digest": seed("item"), "type": "image/png"}
    return usual | {"name": None} | changes


def _add_media(group: Group) -> None:
    def refused(name: str, title: str, media: Any) -> None:
        given = _given(remember("x", media=media))
        group.refused(f"media-{name}", META, title, "decode_operation", given, "operation_invalid")

    named = remember("media", media=[medium(), medium(id=ident("another"), name="photo.png", newer=1)])
    gives: dict[str, Any] = {"op": "remember", "id": named["id"], "stamp": [10, 2]}
    group.ok("media", META, "a memory that names two media items", "decode_operation", _given(named), **gives)
    refused("map", "media is a map", medium())
    refused("entry", "an entry of media is a text", ["photo.png"])
    refused("id", "a media id of 15 bytes", [medium(id=bytes(15))])
    refused("key", "a media key of 31 bytes", [medium(key=bytes(31))])
    refused("bytes", "a negative length", [medium(bytes=-1)])
    refused("digest", "a digest that is a text", [medium(digest="0" * 32)])
    refused("type", "a media type that is missing", [medium(type=None)])
    refused("name", "a name that is bytes", [medium(name=b"photo")])


TRAITS: dict[str, Any] = {
    "type": "persona",
    "tier": "affinity",
    "owner": "Ann",
    "policy": {"access": "owner"},
    "location": {"lat": 525_200_000, "lon": 134_050_000, "place": "Berlin"},
    "derived_from": [ident("one"), ident("two")],
    "derivation": {"rule": "pattern/1", "key": "tea", "run": ident("run"), "count": 2},
}
_MOST_LAT, _MOST_LON = 900_000_000, 1_800_000_000


def _add_traits(group: Group) -> None:
    """The rarer fields of a memory."""

    def reads(name: str, title: str, **fields: Any) -> None:
        operation = remember("traits", **fields)
        gives: dict[str, Any] = {"op": "remember", "id": operation["id"], "stamp": [10, 2]}
        group.ok(f"trait-{name}", META, title, "decode_operation", _given(operation), **gives)

    def refused(name: str, title: str, **fields: Any) -> None:
        given = _given(remember("traits", **fields))
        group.refused(f"trait-{name}", META, title, "decode_operation", given, "operation_invalid")

    reads("all", "a memory with all its rarer fields", **TRAITS)
    reads("nil", "rarer fields that are nil", **dict.fromkeys(TRAITS))
    reads("type-newer", "a type that no writer of version 1 uses", type="newer")
    reads("tier-newer", "a tier that no writer of version 1 uses", tier="newer")
    reads("policy-newer", "a policy of newer software", policy={"access": "group", "grants": [1]})
    reads("policy-most", "a policy of 32 fields", policy=_policy(32))
    for corner, sign in (("least", -1), ("most", 1)):
        place = {"lat": sign * _MOST_LAT, "lon": sign * _MOST_LON}
        reads(f"location-{corner}", f"the {corner} latitude and longitude", location=place)
    reads("location-place", "a location that is only a place", location={"place": "home"})
    reads("location-newer", "a location with a field of newer software", location={"place": "home", "newer": 1})
    reads("derived-most", "derived from 1,024 memories", derived_from=_ids(1_024))
    reads("derived-newer", "a derivation with a field of newer software", derivation=_derivation(newer=1))
    for name in ("type", "tier", "owner"):
        refused(f"{name}-empty", f"an empty {name}", **{name: ""})
        refused(f"{name}-bytes", f"a {name} that is bytes", **{name: b"semantic"})
    refused("policy-text", "a policy that is a text", policy="owner")
    refused("policy-access", "a policy without access", policy={"grants": []})
    refused("policy-access-empty", "an empty access", policy={"access": ""})
    refused("policy-many", "a policy of 33 fields", policy=_policy(33))
    refused("location-array", "a location that is an array", location=[0, 0])
    refused("location-empty", "a location of nothing", location={})
    refused("location-lat", "a latitude without a longitude", location={"lat": 0})
    refused("location-lon", "a longitude without a latitude", location={"lon": 0, "place": "home"})
    refused("location-float", "a latitude that is no integer", location={"lat": 52.52, "lon": 0})
    refused("location-north", "a latitude beyond the pole", location={"lat": _MOST_LAT + 1, "lon": 0})
    refused("location-west", "a longitude beyond −180 degrees", location={"lat": 0, "lon": -_MOST_LON - 1})
    refused("location-place-empty", "an empty place", location={"place": ""})
    refused("derived-empty", "derived from nothing", derived_from=[])
    refused("derived-short", "derived from an id of 15 bytes", derived_from=[bytes(15)])
    refused("derived-text", "derived from a text", derived_from=["0" * 32])
    refused("derived-map", "derived_from is a map", derived_from={})
    refused("derived-many", "derived from 1,025 memories", derived_from=_ids(1_025))
    refused("derivation-text", "a derivation that is a text", derivation="weekly")
    refused("derivation-rule", "a derivation without a rule", derivation=_derivation(rule=None))
    refused("derivation-key", "a derivation with an empty key", derivation=_derivation(key=""))
    refused("derivation-run", "a run of 15 bytes", derivation=_derivation(run=bytes(15)))
    refused("derivation-count", "made of no memory", derivation=_derivation(count=0))


def _policy(fields: int) -> dict[str, Any]:
    return {"access": "owner"} | {f"field {number}": number for number in range(1, fields)}


def _derivation(**changes: Any) -> dict[str, Any]:
    derivation: dict[str, Any] = TRAITS["derivation"]
    return derivation | changes


def _ids(count: int) -> list[bytes]:
    return [number.to_bytes(16, "big") for number in range(count)]


def _add_operation_faults(group: Group) -> None:
    def refused(name: str, title: str, operation: Any, code: str = "operation_invalid") -> None:
        group.refused(f"op-{name}", META, title, "decode_operation", _given(operation), code)

    refused("array", "an operation is an array", [])
    refused("op-missing", "no op", {"id": ident("x")})
    refused("op-bytes", "op is a byte string", remember("x", op=b"remember"))
    refused(
        "id-missing", "no id", {"op": "remember", "content": "a", "kind": "fact", "source": "test", "written_at": 0}
    )
    refused("id-short", "an id of 15 bytes", remember("x", id=bytes(15)))
    refused("id-text", "an id that is a text", remember("x", id="0" * 16))
    wrong: dict[str, tuple[Any, ...]] = {
        "content": (None, "", b"bytes", 1),
        "kind": (None, "", 1),
        "source": (None, "", b"bytes"),
        "written_at": (None, "now", 1.5, 1 << 63, True),
        "captured_at": ("now", 1.5, 1 << 63),
        "tags": ("tag", [""], [1], {}),
        "author": (1,),
        "thread": (b"bytes",),
        "position": ("1", 1 << 63),
        "origin": (1,),
        "embedding": (-1, 1 << 32, "0"),
    }
    for field, values in wrong.items():
        for number, value in enumerate(values):
            name = f"{field.replace('_', '-')}-{number + 1}"
            refused(name, f"{field} is {_written(value)}", remember("x") | {field: value})
    seen = Counter[tuple[str, str]]()
    for name, field, value in (
        ("supersede", "of", None),
        ("supersede", "of", bytes(15)),
        ("retract", "target", bytes(17)),
        ("retract", "at", None),
        ("retract", "reason", 1),
        ("restore", "target", None),
        ("tag", "add", None),
        ("tag", "add", [""]),
        ("tag", "remove", None),
        ("tag", "remove", [["a"]]),
        ("tag", "remove", [["", bytes(16)]]),
        ("tag", "remove", [["a", bytes(15)]]),
        ("embed", "embedding", None),
        ("embed", "target", "0" * 16),
        ("setting", "name", None),
        ("setting", "at", "now"),
        ("erase", "targets", []),
        ("erase", "targets", [bytes(15)]),
        ("erase", "targets", None),
        ("erase", "at", None),
        ("dismiss", "records", []),
        ("dismiss", "records", [-1]),
        ("dismiss", "stream", bytes(8)),
    ):
        seen[name, field] += 1
        title = f"in {name}, {field} is {_written(value)}"
        refused(f"{name}-{field}-{seen[name, field]}", title, OTHERS[name] | {field: value})
    stamps = {
        "same": ("the counter of its own record", [10, 0]),
        "above": ("a counter above its record's", [11, 0]),
        "short": ("one number", [9]),
        "negative": ("a negative counter", [-1, 0]),
        "position": ("a position of 2^32", [9, 1 << 32]),
        "text": ("a text", "9"),
        "float": ("a float", [9.0, 0]),
    }
    for name, (title, stamp) in stamps.items():
        refused(f"stamp-{name}", f"the first stamp is {title}", remember("x", stamp=stamp), "stamp_invalid")


def _written(value: Any) -> str:
    match value:
        case None:
            return "missing"
        case bytes():
            return f"a byte string of {len(value)}"
        case str():
            return f"the text {value!r}"
        case _:
            return str(value).replace("b''", "an empty byte string").replace("\\x00", "0")
