"""Keep what was used last, within a bound."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """A map that drops what was used least recently once its weights add up to more than `bound`."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._weight = 0
        self._kept: OrderedDict[Key, tuple[Value, int]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """Return what is kept under the key, or None."""
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        return found[0]

    def put(self, key: Key, value: Value, *, weight: int = 1) -> None:
        """Keep a value under the key, in place of the one before."""
        replaced = self._kept.pop(key, None)
        if replaced is not None:
            self._weight -= replaced[1]
        self._kept[key] = (value, weight)
        self._weight += weight
        while self._weight > self._bound:
            _, (_, dropped) = self._kept.popitem(last=False)
            self._weight -= dropped

    def drop(self, unwanted: Callable[[Key], bool]) -> None:
        """Drop what is kept under the keys that are unwanted."""
        for key in [key for key in self._kept if unwanted(key)]:
            _, weight = self._kept.pop(key)
            self._weight -= weight

    def __len__(self) -> int:
        return len(self._kept)
