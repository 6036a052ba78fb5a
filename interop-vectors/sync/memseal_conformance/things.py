"""What cases are about: keyring versions and logs."""

from dataclasses import dataclass, field
from typing import Any

from memseal_conformance.containers import PREAMBLE_SIZE, sha256


@dataclass(frozen=True)
class Version:
    """A keyring version (vault-format §7); `head` is preamble and record 0, `approval` record 1."""

    vault: bytes
    fields: dict[str, Any]
    head: bytes
    approval: bytes
    sealed_part: bytes

    @property
    def digest(self) -> bytes:
        """The digest that the next version names."""
        return digest_of(self.head, self.sealed_part)

    @property
    def stripped(self) -> bytes:
        """The version without its sealed part."""
        return self.head + self.approval

    @property
    def whole(self) -> bytes:
        """All of the version."""
        return self.stripped + self.sealed_part


def digest_of(head: bytes, sealed_part: bytes) -> bytes:
    """Return the digest of a version with this beginning and sealed part."""
    return sha256(b"memseal/v1/keyring", head, sha256(sealed_part))


@dataclass(frozen=True)
class Log:
    """One stream's log; what is in the records is random."""

    preamble: bytes
    records: list[bytes] = field(default_factory=list[bytes])

    @property
    def stream(self) -> bytes:
        """The stream's id."""
        return self.preamble[32:48]

    @property
    def nonce(self) -> bytes:
        """The nonce of the preamble."""
        return self.preamble[48:60]

    @property
    def epoch(self) -> int:
        """The epoch of the preamble."""
        return int.from_bytes(self.preamble[12:16], "big")

    def content(self, stop: int | None = None) -> bytes:
        """Return the log's bytes up to a record."""
        return self.preamble + b"".join(self.records[:stop])

    def length(self, stop: int) -> int:
        """Return how many bytes the log has up to a record."""
        return PREAMBLE_SIZE + sum(map(len, self.records[:stop]))

    def chain(self, stop: int) -> bytes:
        """Return the chain after so many records (vault-format §5)."""
        chain = sha256(self.preamble)
        for record in self.records[:stop]:
            chain = sha256(chain, record)
        return chain

    def piece(self, start: int, stop: int) -> bytes:
        """Return the records from one up to another; the first piece has the preamble as well."""
        return (self.preamble if start == 0 else b"") + b"".join(self.records[start:stop])

    def end(self, records: int, following: int) -> dict[str, Any]:
        """Return the end after so many records as it stands in JSON; `following` is the next segment's number."""
        chain = self.chain(records).hex()
        return {"length": self.length(records), "records": records, "chain": chain, "next": following}

    def row(self, records: int, segment: int, counter: int | None = None) -> list[Any]:
        """Return a floor's row after so many records, from where on `segment` follows."""
        place = [segment, self.length(records), records, self.chain(records)]
        return [self.stream, self.epoch, self.nonce, *place, records if counter is None else counter]
