"""SPAKE2: two devices that know one code agree on a key (sync-protocol, *Pairing*). The only importer of `spake2`."""

from typing import Any, Literal, TypeAlias

import spake2
from spake2.ed25519_basic import NotOnCurve

from memseal.format.keys import PakeKey
from memseal.format.primitives import NotAuthentic

Side: TypeAlias = Literal["shower", "joiner"]

ELEMENT_SIZE = 1 + 32
RANDOM_SIZE = 64
_IDENTITIES = (b"memseal/v1/pairing-shower", b"memseal/v1/pairing-joiner")


class Pake:
    """One side of one exchange; `element` is what it sends. It serves one answer."""

    def __init__(self, side: Side, password: bytes, random: bytes) -> None:
        """Take the side, what both know, and 64 random bytes that nothing else uses."""
        if len(random) != RANDOM_SIZE:
            raise ValueError(f"an exchange takes {RANDOM_SIZE} random bytes")

        def entropy(size: int) -> bytes:
            return random[:size]

        make: Any = spake2.SPAKE2_A if side == "shower" else spake2.SPAKE2_B
        self._exchange = make(password, *_IDENTITIES, entropy_f=entropy)
        self.element: bytes = self._exchange.start()

    def key(self, element: bytes) -> PakeKey:
        """Return the key after the other side's element; it is the same there only if the passwords were.

        Raises `NotAuthentic` for what is no element of the other side's.
        """
        if len(element) != ELEMENT_SIZE:
            raise NotAuthentic
        try:
            return PakeKey(self._exchange.finish(element))
        except (spake2.SPAKEError, NotOnCurve, ValueError) as error:
            raise NotAuthentic from error

    def __repr__(self) -> str:
        """Show nothing."""
        return "<Pake>"
