"""Keep Python from looking for garbage while many small things are made that all stay or all go."""

import contextlib
import gc
from collections.abc import Generator


@contextlib.contextmanager
def no_collections() -> Generator[None]:
    """Switch the cycle collector off for the while: reading makes no cycles, and takes much longer with it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
