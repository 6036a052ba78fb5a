"""What was replaced, for a person to look at and for an audit to keep."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from memseal.privacy.replacing import Replacement


@dataclass(frozen=True)
class Item:
    """One value that was replaced; its repr does not show the value."""

    type: str
    source: str
    start: int
    end: int
    standin: str
    value: str = field(repr=False)
    repaired: bool = False


@dataclass(frozen=True)
class Report:
    """What was replaced in some texts; `text` of an item's place counts them."""

    items: tuple[Item, ...] = field(default=(), repr=False)
    missing: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many values of each type were replaced."""
        return dict(sorted(Counter(item.type for item in self.items).items()))

    def trace(self) -> dict[str, Any]:
        """Return what may be kept: types, rules and places, no value and no stand-in."""
        return {
            "counts": self.counts,
            "repaired": sum(item.repaired for item in self.items),
            "missing": list(self.missing),
            "items": [
                {"type": item.type, "source": item.source, "start": item.start, "end": item.end} for item in self.items
            ],
        }


def report_of(
    text: str, output: str, made: Sequence[Replacement], repaired: frozenset[tuple[int, int]], missing: tuple[str, ...]
) -> Report:
    """Return the report of one text."""
    items = tuple(
        Item(
            span.type,
            span.source,
            span.start,
            span.end,
            output[start:end],
            text[span.start : span.end],
            (span.start, span.end) in repaired,
        )
        for span, start, end in made
    )
    return Report(items, missing)


def joined(reports: Sequence[Report], missing: tuple[str, ...]) -> Report:
    """Return one report of several texts."""
    return Report(tuple(item for report in reports for item in report.items), missing)
