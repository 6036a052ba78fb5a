"""One small vault whose versions are whole: Ann begins it, Ben joins, Ann begins epoch 2."""

from dataclasses import dataclass
from functools import lru_cache

from making.book import Book
from making.keyrings import (
    Map,
    Recipe,
    Version,
    adds,
    build,
    changed,
    epoch_key,
    first_public,
    kit_seed,
    new_epoch,
    next_public,
    recovery,
    recovery_seed,
    sets,
)
from making.people import ANN, BEN
from making.sealing import kit_slot, recovery_slot, slot_content, whole


@dataclass(frozen=True)
class World:
    """Three versions, each whole, and the slots that all of them carry."""

    one: Version
    two: Version
    three: Version
    slots: tuple[Map, Map]

    def versions(self, count: int = 3) -> list[bytes]:
        """The keyring as a device has it: only the newest is whole."""
        every = [self.one, self.two, self.three][:count]
        return [*(version.stripped() for version in every[:-1]), every[-1].content]


@lru_cache(maxsize=1)
def world(book: Book) -> World:
    frozen = book.group("world").frozen
    public = changed(first_public(), [sets("recovery", to=recovery(1, 1))])
    begun = build(public, Recipe(()))  # its public part alone
    slots = (
        kit_slot(frozen, "kit slot", slot_content(begun, kit_seed(1))),
        recovery_slot(frozen, "recovery slot", slot_content(begun, recovery_seed(1))),
    )
    one = whole(frozen, "one", public, (ANN.sign, epoch_key(1)), slots)
    joined = changed(next_public(one), [adds(BEN)])
    two = whole(frozen, "two", joined, (BEN.sign, epoch_key(1)), slots)
    rekeyed = changed(next_public(two), [new_epoch])
    three = whole(frozen, "three", rekeyed, (ANN.sign, epoch_key(1), epoch_key(2)), slots, history=[1])
    return World(one, two, three, slots)
