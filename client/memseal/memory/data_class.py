"""What kind of data a vault is for: how fast memories fade, what a guess costs, whether keys stay in RAM (§3)."""

from typing import Any, Final

from memseal.errors import MemoryInvalid
from memseal.memory.significance import DECAY_PER_DAY

SETTING: Final = "data_class"
"""The setting that holds it."""
GENERAL, MEDICAL, ARCHIVAL = DATA_CLASSES = ("general", "medical", "archival")


def checked_class(value: str) -> str:
    """Return a data class in lower case; raises `MemoryInvalid` or `TypeError`."""
    if not isinstance(value, str):
        raise TypeError(f"data_class is a text, not {type(value).__name__}")
    if value.lower() not in DATA_CLASSES:
        raise MemoryInvalid(f"data_class is one of {', '.join(DATA_CLASSES)}")
    return value.lower()


def class_of(setting: Any) -> str:
    """Return the data class that a setting's value names; what is not known counts as general."""
    return setting if isinstance(setting, str) and setting in DATA_CLASSES else GENERAL


def decay_of(setting: Any) -> float:
    """Return λ per day for a setting's value."""
    return DECAY_PER_DAY[class_of(setting)]
