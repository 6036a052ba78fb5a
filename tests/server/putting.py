"""Puts into the vaults of this process, without a request around it."""

import hashlib

from memseal_server.bodies import Body
from memseal_server.streams import read_piece
from memseal_server.vaults import Vaults
from tests.server.building import Log


def body(content: bytes) -> Body:
    return Body(content, hashlib.sha256(content).digest())


async def put_segment(vaults: Vaults, log: Log, seq: int, content: bytes, key: bytes, *, refill: bool = False) -> bool:
    piece = await read_piece(seq, body(content))
    return await vaults.streams.put(log.vault, log.stream, piece, key, refill=refill)
