"""The memseal sync server: it stores what it cannot read."""

__version__ = "0.1.0"

__all__ = ["__version__"]
