"""Up to where the records of an epoch may count (vault-format §9)."""

from typing import Final

from memseal.format.fields import U53

_ROOM: Final = 1 << 32
"""What each epoch adds: more than all honest records of a vault, and too little for one record to use up the rest."""


def most_counter(epoch: int) -> int:
    """Return the highest counter that a record of this epoch may have."""
    return min(epoch * _ROOM, U53 - 1)
