"""A version that came stripped, or half, is completed by whoever brings the whole (sync-protocol §2, §4)."""

import asyncio
from pathlib import Path

import pytest

from memseal_server.blobs import AlreadyThere, BlobStore, Stored, StoreUnavailable
from memseal_server.blobs.sqlite import SqliteStore
from memseal_server.limits import Limits
from memseal_server.vaults import Vaults
from tests.server.building import BODY_SIZE, Draft, pack, private_key, public, record, some_bytes
from tests.server.calling import Caller

REFILL = {"query": "refill=true"}
ALICE = public(private_key("alice"))


def key_of(draft: Draft, part: str) -> str:
    return f"{draft.vault.hex()}/{part}/{draft.fields['version']:010d}"


def with_other_secrets(draft: Draft) -> bytes:
    return draft.stripped() + record(2, pack({"boxes": [], "slots": []})) + record(3, some_bytes("other", BODY_SIZE))


class Gated:
    """Puts into a store; the sealed part waits at a gate, and fails where the store is said to be down."""
