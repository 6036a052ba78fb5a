"""How long each stage of an answer took."""

import time


class Stages:
    """A watch that runs from its making on; `spent` are the names of the stages and their µs."""

    def __init__(self) -> None:
        """Begin the first stage."""
        self.spent: list[tuple[str, int]] = []
        self._since = time.perf_counter_ns()

    def done(self, name: str) -> None:
        """End a stage, and begin the next."""
        now = time.perf_counter_ns()
        self.spent.append((name, (now - self._since) // 1000))
        self._since = now
