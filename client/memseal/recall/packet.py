"""The answer of one recall."""

from dataclasses import dataclass, field

from memseal.memory.memory import Memory, State
from memseal.recall.rank import Why
from memseal.recall.receipt import Reason, Receipt, Status


@dataclass(frozen=True, slots=True)
class Recalled:
    """One memory of a packet, verbatim: its score (to compare within this packet only), and why.

    In the packet's text it may be cut (`truncated`), and secrets in it covered (`masked`).
    """

    memory: Memory
    score: float
    why: Why
    truncated: bool
    masked: bool

    @property
    def state(self) -> State:
        """Where the memory stands."""
        return self.memory.state


@dataclass(frozen=True)
class Packet:
    """What was recalled: `text` for a model, never longer than the budget; `hits` for a program, best first.

    `status` is `ok` exactly where there are hits; otherwise `reason` says why not. `gap` is one line that names what
    matches and is not in the text, or empty. `receipt` accounts for all of it; `trace_id` names the trace that
    `Vault.explain` tells it from, None where none is kept.
    """

    status: Status
    reason: Reason | None
    text: str = field(repr=False)
    hits: tuple[Recalled, ...] = field(repr=False)
    gap: str
    receipt: Receipt
    trace_id: str | None = field(default=None, compare=False)
