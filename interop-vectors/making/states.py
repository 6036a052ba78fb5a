"""Vectors of the state that operations come to, in any order (§10)."""

from hashlib import sha256
from typing import Any

from making.book import Book, Group, Value
from making.containers import pack
from making.said import AT, META, U53, erase, ident, remember, restore, retract, supersede, tag

STATE = "vault-format §10"


def add(book: Book) -> None:
    group = book.group("state")
    _add_memories(group)
    _add_retractions(group)
    _add_supersedes(group)
    _add_tags(group)
    _add_doubles(group)
    _add_settings(group)
    _add_erases(group)
    _add_erased_proposals(group)
    _add_passed_over(group)


class Story:
    """Records with rising counters, and what they come to."""

    def __init__(self) -> None:
        self._records: list[bytes] = []

    def write(self, *operations: dict[str, Any], previous: int | None = None) -> "Story":
        """One record; its counter is one more than `previous`, which is that of the record before."""
        number = len(self._records) if previous is None else previous
        self._records.append(pack({"previous": number, "heads": [], "operations": list(operations)}))
        return self

    def given(self) -> dict[str, Any]:
        return {"records": list(self._records)}


def memory(operation: dict[str, Any], **changes: Any) -> dict[str, Any]:
    usual = {
        "id": operation["id"],
        "content": operation["content"],
        "kind": operation["kind"],
        "tags": sorted(operation.get("tags") or []),
        "active": True,
        "retracted": False,
        "superseded_by": None,
        "conflicts": [],
    }
    return usual | changes


def _merges(
    group: Group,
    name: str,
    title: str,
    story: Story,
    *memories: dict[str, Any],
    erased: list[str] | None = None,
    settings: dict[str, Any] | None = None,
    codes: str = "",
    rule: str = STATE,
) -> None:
    gives: dict[str, Any] = {
        "memories": sorted(memories, key=lambda each: each["id"]),
        "erased": sorted(map(ident, erased or [])),
        "settings": {setting: Value(value) for setting, value in (settings or {}).items()},
    }
    place = (f"merge-{name}", rule, title, "merge", story.given())
    if codes:
        group.found(*place, codes, **gives)
    else:
        group.ok(*place, **gives)


def _add_memories(group: Group) -> None:
    a, b = remember("a"), remember("b", tags=["z", "y"])
    _merges(group, "two", "two memories", Story().write(a).write(b), memory(a), memory(b))
    _merges(
        group,
        "twice",
        "an operation that came twice changes nothing",
        Story().write(a).write(a | {"stamp": [1, 0]}),
        memory(a),
    )
    again = remember("a", "another text")
    title = "two operations with one id: the lower stamp counts"
    _merges(group, "one-id", title, Story().write(a).write(again), memory(a), codes="id_taken")
    _merges(
        group,
        "one-id-later",
        title + ", if it comes later too",
        Story().write(again, previous=5).write(a, previous=2),
        memory(a),
        codes="id_taken",
    )
    first = remember("early", "a re-emitted text", stamp=[1, 3])
    late = remember("early", "a text that came between")
    _merges(
        group,
        "re-emitted",
        "a re-emitted operation has its first stamp",
        Story().write(late, previous=3).write(first, previous=8),
        memory(first),
        codes="id_taken",
    )
    same = remember("b", "memory a")
    story = Story().write(a).write(same)
    _merges(group, "same", "two memories that are the same are one, with the lower stamp's id", story, memory(a))
    title = "the same in one record: the position decides"
    low, high = sorted([a, same], key=lambda each: each["id"])
    _merges(group, "same-tie", title, Story().write(high, low), memory(high))
    for field, value in (
        ("kind", "note"),
        ("author", "Ann"),
        ("thread", "t"),
        ("captured_at", 0),
        ("content", "memory a "),
    ):
        other = same | {field: value}
        story = Story().write(a).write(other)
        _merges(
            group,
            f"not-same-{field.replace('_', '-')}",
            f"another {field}: not the same",
            story,
            memory(a),
            memory(other),
        )
    for field, value in (("source", "elsewhere"), ("written_at", 5), ("origin", "x"), ("position", 1)):
        story = Story().write(a).write(same | {field: value})
        _merges(group, f"same-{field.replace('_', '-')}", f"another {field}: still the same", story, memory(a))
    composed, decomposed = remember("c", "caf\u00e9"), remember("d", "cafe\u0301")
    story = Story().write(composed).write(decomposed)
    _merges(
        group, "not-same-unicode", "texts are compared exactly, not in NFC", story, memory(composed), memory(decomposed)
    )
    tagged = same | {"tags": ["t"]}
    story = Story().write(a).write(tagged).write(retract("r", "b"))
    title = "what is said of one is said of the other: tags, retraction"
    _merges(group, "same-said", title, story, memory(a, tags=["t"], active=False, retracted=True))


def _add_retractions(group: Group) -> None:
    a = remember("a")
    out = memory(a, active=False, retracted=True)
    _merges(group, "retracted", "a memory is retracted", Story().write(a).write(retract("r", "a")), out)
    story = Story().write(a).write(retract("r", "a")).write(restore("s", "a"))
    _merges(group, "restored", "a retracted memory is restored", story, memory(a))
    story = Story().write(a).write(restore("s", "a"), previous=9).write(retract("r", "a"), previous=4)
    _merges(group, "restored-higher", "the highest stamp counts, not the last that came", story, memory(a))
    story = Story().write(retract("r", "a")).write(a)
    _merges(group, "retracted-early", "a retraction that came before its memory", story, out)
    low, high = sorted(["one", "two"], key=ident)
    story = Story().write(a).write(retract(low, "a"), previous=3).write(restore(high, "a"), previous=3)
    _merges(group, "tie-id", "one counter and position: the higher id counts", story, memory(a))
    story = Story().write(a).write(restore(high, "a"), retract(low, "a"))
    _merges(group, "tie-position", "one counter: the higher position counts before the id", story, out)
    _merges(group, "retracted-nothing", "a retraction of a memory that nobody has", Story().write(retract("r", "a")))


def _add_supersedes(group: Group) -> None:
    a, b, c = remember("a"), supersede("b", "a"), supersede("c", "a")
    old = memory(a, active=False, superseded_by=ident("b"))
    _merges(group, "superseded", "a memory is superseded", Story().write(a).write(b), old, memory(b))
    _merges(
        group, "superseded-early", "the newer memory came first", Story().write(b, previous=4).write(a), old, memory(b)
    )
    chain = supersede("c", "b")
    story = Story().write(a).write(b).write(chain)
    middle = memory(b, active=False, superseded_by=ident("c"))
    _merges(group, "superseded-twice", "a chain of three", story, old, middle, memory(chain))
    conflict = memory(a, active=False, superseded_by=ident("c"), conflicts=[ident("b")])
    story = Story().write(a).write(b).write(c)
    _merges(
        group,
        "conflict",
        "two supersede one: the higher stamp is current",
        story,
        conflict,
        memory(b, active=False),
        memory(c),
    )
    story = Story().write(a).write(b, previous=9).write(c, previous=5)
    conflict = memory(a, active=False, superseded_by=ident("b"), conflicts=[ident("c")])
    _merges(
        group,
        "conflict-order",
        "the higher stamp, not the last that came",
        story,
        conflict,
        memory(b),
        memory(c, active=False),
    )
    _merges(group, "superseded-unknown", "of a memory that nobody has", Story().write(b), memory(b))
    story = Story().write(a).write(b).write(retract("r", "b"))
    gone = memory(b, active=False, retracted=True)
    _merges(
        group, "superseded-retracted", "the newer memory is retracted: the older stays superseded", story, old, gone
    )
    double = supersede("b", "a", content="memory d")
    d = remember("d")
    story = Story().write(a).write(double).write(d)
    _merges(
        group,
        "superseded-not-same",
        "a memory that supersedes is the same as no other",
        story,
        old,
        memory(double),
        memory(d),
    )
    twin = remember("twin", "memory a")
    of_twin = supersede("b", "twin")
    story = Story().write(a).write(twin).write(of_twin)
    title = "one that is the same is superseded: so is the other"
    _merges(group, "superseded-same", title, story, old, memory(of_twin))


def _add_tags(group: Group) -> None:
    a = remember("a", tags=["x"])
    added = tag("t", "a", "y")
    _merges(group, "tags", "a tag is added", Story().write(a).write(added), memory(a, tags=["x", "y"]))
    gone = tag("u", "a", remove=[["x", ident("a")]])
    _merges(group, "tags-removed", "a tag is removed", Story().write(a).write(gone), memory(a, tags=[]))
    _merges(
        group,
        "tags-removed-early",
        "it was removed before it came",
        Story().write(gone).write(a, previous=7),
        memory(a, tags=[]),
    )
    again = tag("v", "a", "x")
    story = Story().write(a).write(again).write(gone)
    _merges(group, "tags-add-wins", "a tag that was added twice and removed once stays", story, memory(a))
    other = tag("u", "a", remove=[["y", ident("a")]])
    _merges(
        group,
        "tags-other",
        "a removal of a tag that this operation did not add",
        Story().write(a).write(other),
        memory(a),
    )
    both = tag("u", "a", "z", remove=[["z", ident("u")]])
    _merges(group, "tags-itself", "an operation that removes what it adds", Story().write(a).write(both), memory(a))


def print_of(operation: dict[str, Any]) -> bytes:
    """What decides between two operations with one id and one stamp."""
    left_out = {"id", "stamp", "written_at", "tags", "embedding"}
    said = {name: operation[name] for name in sorted(operation) if name not in left_out}
    return sha256(pack({name: value for name, value in said.items() if value is not None})).digest()


def _add_doubles(group: Group) -> None:
    """One id and one stamp, and other things to say."""
    a = remember("a", tags=["t"])
    first = {"stamp": [1, 0]}

    def both(one: dict[str, Any], other: dict[str, Any]) -> Story:
        return Story().write(one | first, previous=3).write(other | first, previous=5)

    others: dict[str, tuple[str, dict[str, Any], str]] = {
        "content": ("other content", {"content": "another text"}, "id_taken"),
        "kind": ("another kind", {"kind": "note"}, "id_taken"),
        "source": ("another source: the same memory", {"source": "elsewhere"}, ""),
        "field": ("a field that is not known", {"newer": {"b": 1, "a": [None, 1.5]}}, ""),
    }
    for name, (title, changes, code) in others.items():
        changed = a | changes
        counts = min(a, changed, key=print_of)
        title = f"one id and one stamp, {title}: the lower print counts"
        _merges(group, f"double-{name}", title, both(a, changed), memory(counts), codes=code)
    more = a | {"tags": ["s", "t", "t"]}
    counts = min(a, more, key=lambda each: pack(sorted(set(each["tags"]))))
    title = "one id and one stamp, other tags: the lower tags count"
    _merges(group, "double-tags", title, both(a, more), memory(counts))
    title = "one id and one stamp, and maps in another order: it is the same"
    turned = a | {"newer": {"a": 1, "b": 2}}, a | {"newer": {"b": 2, "a": 1}}
    _merges(group, "double-order", title, both(*turned), memory(a))
    c = supersede("c", "a")
    elsewhere = c | {"reason": "another reason"}
    counts = min(c, elsewhere, key=print_of)
    story = Story().write(a).write(c | {"stamp": [2, 0]}, previous=6).write(elsewhere | {"stamp": [2, 0]}, previous=8)
    title = "one id and one stamp, another reason of a supersede: the two are not the same"
    old = memory(a, active=False, superseded_by=c["id"])
    _merges(group, "double-reason", title, story, old, memory(counts), codes="id_taken")
    gone, back = retract("r", "a"), restore("r", "a")
    retracted = print_of(gone) < print_of(back)
    story = Story().write(a).write(gone | {"stamp": [2, 0]}, previous=6).write(back | {"stamp": [2, 0]}, previous=8)
    title = "one id and one stamp, a retract and a restore: the lower print counts"
    _merges(group, "double-retract", title, story, memory(a, retracted=retracted, active=not retracted))
    one = {"op": "setting", "id": ident("s"), "name": "any", "value": 1, "at": AT}
    other = one | {"value": 2}
    counts = min(one, other, key=print_of)
    title = "two settings with one stamp: the lower print counts"
    _merges(group, "double-setting", title, both(one, other), settings={"any": counts["value"]})
    erased = Story().write(a).write(a | {"content": "another text"}).write(erase("x", "a"))
    _merges(group, "double-erased", "of an erased id nothing is left", erased, erased=["a"])


def _add_settings(group: Group) -> None:
    def setting(name: str, value: Any, of: str = "any") -> dict[str, Any]:
        return {"op": "setting", "id": ident(name), "name": of, "value": value, "at": AT}

    story = Story().write(setting("a", 1)).write(setting("b", {"k": [b"\0", None]}, "other"))
    _merges(group, "settings", "two settings", story, settings={"any": 1, "other": {"k": [b"\0", None]}})
    story = Story().write(setting("a", "new"), previous=6).write(setting("b", "old"), previous=2)
    _merges(
        group,
        "settings-stamp",
        "of a setting the highest stamp counts, not the last that came",
        story,
        settings={"any": "new"},
    )


def _add_erased_proposals(group: Group) -> None:
    name = f"proposal/{ident('a').hex()}"
    value = {"operation": remember("a"), "why": "said", "at": AT}
    proposal = {"op": "setting", "id": ident("s"), "name": name, "value": value, "at": AT}
    _merges(group, "proposal", "a proposal is a setting", Story().write(proposal), settings={name: value})
    story = Story().write(proposal).write(erase("x", "a"))
    _merges(group, "proposal-erased", "an erase that names a proposal's id removes it", story, erased=["a"])
    story = Story().write(erase("x", "a")).write(proposal)
    title = "a proposal that comes after its erase has no effect"
    _merges(group, "proposal-erased-early", title, story, erased=["a"])
    others = {
        "capitals": f"proposal/{ident('a').hex().upper()}",
        "short": f"proposal/{ident('a').hex()[:-1]}",
        "other": f"decision/{ident('a').hex()}",
    }
    for kind, other in others.items():
        story = Story().write(proposal | {"name": other}).write(erase("x", "a"))
        title = f"a setting of another name ({kind}) is no proposal, and stays"
        _merges(group, f"proposal-{kind}", title, story, erased=["a"], settings={other: value})


def _add_erases(group: Group) -> None:
    a, b = remember("a"), remember("b")
    story = Story().write(a).write(b).write(erase("x", "a"))
    _merges(group, "erased", "a memory is erased", story, memory(b), erased=["a"])
    story = Story().write(erase("x", "a")).write(a)
    _merges(group, "erased-early", "its content comes after the erase: it never comes back", story, erased=["a"])
    story = Story().write(a).write(erase("x", "a")).write(restore("r", "a")).write(tag("t", "a", "tag"))
    _merges(group, "erased-restored", "operations on an erased memory have no effect", story, erased=["a"])
    story = Story().write(erase("x", "a"), previous=2).write(a, previous=9)
    _merges(group, "erased-lower", "an erase counts whatever its stamp", story, erased=["a"])
    later = supersede("c", "a")
    story = Story().write(a).write(erase("x", "a")).write(later)
    _merges(
        group, "erased-kept", "a memory that supersedes it and is not named is kept", story, memory(later), erased=["a"]
    )
    twin = remember("twin", "memory a")
    story = Story().write(a).write(erase("x", "a")).write(twin)
    _merges(group, "erased-same", "one that is the same and is not named is kept", story, memory(twin), erased=["a"])
    story = Story().write(a).write(twin).write(erase("x", "a", "twin"))
    _merges(group, "erased-both", "one erase names several", story, erased=["a", "twin"])
    _merges(
        group, "erased-nothing", "an erase of a memory that nobody has", Story().write(erase("x", "a")), erased=["a"]
    )


def _add_passed_over(group: Group) -> None:
    a, b = remember("a"), remember("b")
    bad = remember("bad", kind="")
    title = "an operation with a wrong field is passed over, the others of its record count"
    _merges(
        group, "invalid", title, Story().write(a, bad, b), memory(a), memory(b), codes="operation_invalid", rule=META
    )
    late = remember("late", stamp=[7, 0])
    title = "a first stamp that is not below its record's: passed over"
    _merges(group, "stamp", title, Story().write(a, late), memory(a), codes="stamp_invalid", rule=META)
    newer = {"op": "newer", "id": ident("newer"), "target": ident("a")}
    _merges(
        group,
        "unknown",
        "an operation of newer software changes nothing",
        Story().write(a, newer),
        memory(a),
        codes="operation_unknown",
        rule=META,
    )
    story = Story().write(a).write(b, previous=U53)
    _merges(
        group,
        "counter-limit",
        "a record beyond the highest counter has no effect",
        story,
        memory(a),
        codes="counter_limit",
        rule=META,
    )
