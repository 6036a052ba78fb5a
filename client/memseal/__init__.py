"""memseal: memory for AI apps that belongs to the user."""

__version__ = "0.1.0"
