"""Vectors of branches: which keyring a device follows, and what a version that joins both ends (§7, *Branches*)."""

from collections.abc import Sequence
from typing import Any

from making.book import Book, Group
from making.keyrings import (
    Change,
    Version,
    adds,
    ends,
    first,
    follow,
    new_epoch,
    new_kit,
    new_recovery,
    sets,
    stream_row,
)
from making.people import ANN, BEN, EVE, Device

RULE = "vault-format §7"
ONE = first()
TWO = follow(ONE, adds(BEN), by=(), new=(BEN.sign,))


def joins(number: int, *given_up: Version) -> Change:
    return sets("joins", to={"version": number, "names": [version.digest for version in given_up]})


def there(before: Version, *changes: Change, by: Sequence[bytes] = (ANN.sign,), new: Sequence[bytes] = ()) -> Version:
    """A version of the server's branch: it differs from any of the other's by a field of newer software."""
    return follow(before, sets("newer", to="there"), *changes, by=by, new=new)


class Branches:
    """Adds a case for each pair of branches, after the versions that both have."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def gives(
        self, name: str, title: str, own: Sequence[Version], server: Sequence[Version], *ended: Device, follows: bool
    ) -> None:
        keyrings = {
            which: [version.content for version in (ONE, TWO, *more)]
            for which, more in (("own", own), ("there", server))
        }
        gives: dict[str, Any] = {"common": 2, "follows": follows, "ends": sorted(each.public_sign for each in ended)}
        self._group.ok(name, RULE, title, "compare_branches", keyrings, **gives)


def add(book: Book) -> None:
    branches = Branches(book.group("branches"))
    _add_followed(branches)
    _add_not_followed(branches)
    _add_ends(branches)


def _add_followed(branches: Branches) -> None:
    mine, theirs = follow(TWO, new_epoch), there(TWO, new_epoch)
    joined = there(theirs, new_epoch, joins(4, mine))
    title = "the server's branch names the newest version here"
    branches.gives("named", title, [mine], [theirs, joined], follows=True)
    title = "a later version stands after the one that names it"
    branches.gives("named-before", title, [mine], [theirs, joined, there(joined, new_epoch)], follows=True)
    further = follow(mine, new_epoch)
    both = there(theirs, new_epoch, joins(4, mine, further))
    title = "versions after the one here are named with it"
    branches.gives("named-with-later", title, [mine], [theirs, both], follows=True)
    title = "the device that names it is not the one that changed the keyring here"
    ben = there(theirs, new_epoch, joins(4, mine), by=(BEN.sign,))
    branches.gives("named-by-another", title, [mine], [theirs, ben], follows=True)
    without = follow(TWO, ends(BEN, stream_row("b")), new_epoch)
    forged = there(theirs, new_epoch, joins(4, without), by=(BEN.sign,))
    true = there(forged, ends(BEN, stream_row("b")), new_epoch, joins(5, without))
    title = "named by a device that has ended here, and then by one that has not"
    branches.gives("named-again", title, [without], [theirs, forged, true], follows=True)


def _add_not_followed(branches: Branches) -> None:
    mine, theirs = follow(TWO, new_epoch), there(TWO, new_epoch)

    def not_followed(name: str, title: str, *last: Change) -> None:
        branches.gives(name, title, [mine], [theirs, there(theirs, new_epoch, *last)], follows=False)

    not_followed("none", "nothing is named")
    not_followed("other-named", "only another version is named", joins(4, theirs))
    not_followed("common-named", "only the last common version is named", joins(4, TWO))
    not_followed("other-number", "the field is of another version than the one it stands in", joins(3, mine))
    not_followed("list", "the field is a list of digests", sets("joins", to=[mine.digest]))
    not_followed("no-number", "the field has no number", sets("joins", to={"names": [mine.digest]}))
    short = {"version": 4, "names": [mine.digest, mine.digest[:31]]}
    not_followed("short", "one of the names is no digest", sets("joins", to=short))
    further = follow(mine, new_epoch)
    joined = there(theirs, new_epoch, joins(4, mine))
    title = "only the version before the newest here is named"
    branches.gives("older-named", title, [mine, further], [theirs, joined], follows=False)
    without = follow(TWO, ends(BEN, stream_row("b")), new_epoch)
    forged = there(theirs, new_epoch, joins(4, without), by=(BEN.sign,))
    title = "named by a device that has ended here"
    branches.gives("ended-names", title, [without], [theirs, forged], BEN, follows=False)
    title = "named by a device that has ended here, and carried on by one that has not"
    branches.gives("carried-on", title, [without], [theirs, forged, there(forged)], BEN, follows=False)
    eve = there(theirs, adds(EVE), by=(), new=(EVE.sign,))
    stranger = there(eve, new_epoch, joins(5, mine), by=(EVE.sign,))
    title = "named by a device that came in on the server's branch"
    branches.gives("newcomer-names", title, [mine], [theirs, eve, stranger], follows=False)


def _add_ends(branches: Branches) -> None:
    theirs = there(TWO)
    newcomer = [theirs, there(theirs, adds(EVE), by=(), new=(EVE.sign,))]
    without = follow(TWO, ends(BEN, stream_row("b")), new_epoch)

    def ended(name: str, title: str, own: Version, server: list[Version], *devices: Device) -> None:
        branches.gives(name, title, [own], server, *devices, follows=False)

    ended("ends-nothing", "a new epoch here, and a newcomer there", follow(TWO, new_epoch), newcomer)
    ended("ends-device", "a device that ended here is active there", without, [theirs], BEN)
    own = there(TWO, ends(BEN), new_epoch)
    ended("ends-device-there", "a device that ended here has ended there too", without, [own])
    ended("ends-newcomer", "a device ended here, and another came in there", without, newcomer, BEN, EVE)
    ended("ends-newcomer-kit", "a new kit here, and a newcomer there", follow(TWO, new_kit, new_epoch), newcomer, EVE)
    title = "a new recovery code here, and a newcomer there"
    ended("ends-newcomer-code", title, follow(TWO, new_recovery, new_epoch), newcomer, EVE)
    again = BEN.renewed()
    renewed = there(TWO, ends(BEN), adds(again), new_epoch, by=(BEN.sign,), new=(again.sign,))
    title = "a device ended here, and has replaced its keys there"
    ended("ends-renewed", title, without, [renewed], again)
    ended("ends-there-alone", "a device has ended there, and nothing here", follow(TWO, new_epoch), [own])
