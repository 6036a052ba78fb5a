"""What a vault without a server needs not: packages that come with an extra."""

from collections.abc import Generator
from contextlib import contextmanager

from memseal.errors import ExtraMissing


@contextmanager
def extra(name: str) -> Generator[None]:
    """Around an import: raises `ExtraMissing`, which names the extra, where a package of it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("memseal"):  # not an extra's: something of ours is gone
            raise
        raise ExtraMissing(f"this needs {error.name}: pip install 'memseal[{name}]'") from error
