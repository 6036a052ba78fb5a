"""Look after a store from the command line: invite, check, and say who takes how much."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, time
from typing import TextIO

from memseal_server import checking, relay
from memseal_server.addresses import Refusal
from memseal_server.blobs import BlobStore, StoreUnavailable
from memseal_server.blobs.opening import open_store
from memseal_server.invitations import FOLDER, MAX_USES, Invitations
from memseal_server.observing import observed

_UNITS = {"m": 60, "h": 3_600, "d": 86_400}
_PROGRESS_SECONDS = 0.2
_COLUMNS = ("vault", "versions", "logs", "objects", "bytes", "log_bytes", "checkpoint_bytes")


async def invite(address: str, uses: int, seconds: int, *, as_json: bool) -> int:
    """Write a new invitation to standard output; return the exit code."""
    store = await _open(address)
    try:
        invitation = await Invitations(store).make(uses, seconds)
    finally:
        await store.close()
    until = datetime.fromtimestamp(int(time()) + seconds, UTC).isoformat(timespec="seconds")
    if as_json:
        _write(json.dumps({"invitation": invitation, "uses": uses, "expires": until}))
    else:
        _write(invitation)
        sys.stderr.write(f"Good for {uses} new vault{'s' * (uses != 1)} until {until}. Nothing shows it again.\n")
    return 0


async def fsck(address: str, *, as_json: bool) -> int:
    """Write what is wrong in a store; return the exit code, 1 where something is lost or damaged."""
    store = await _open(address)
    progress = _Progress(sys.stderr)
    serious = count = 0
    try:
        async for finding in checking.check_store(observed(store, progress.count), {FOLDER, relay.FOLDER}):
            count += 1
            serious += finding.serious
            word = "damage" if finding.serious else "note"
            _write(json.dumps(asdict(finding)) if as_json else f"{word} {finding.code} {finding.key}: {finding.detail}")
    finally:
        progress.end()
        await store.close()
    if not as_json:
        _write(f"{count} finding{'s' * (count != 1)}, {serious} of them damage.")
    return 1 if serious else 0


async def usage(address: str, *, as_json: bool) -> int:
    """Write what each vault takes, and all together; return the exit code."""
    store = await _open(address)
    rows: list[Mapping[str, object]] = []
    progress = _Progress(sys.stderr)
    try:
        async for each in checking.usage(observed(store, progress.count)):
            rows.append(asdict(each))
    finally:
        progress.end()
        await store.close()
    if as_json:
        for row in rows:
            _write(json.dumps(row))
    else:
        _write_table(rows)
    return 0


def read_uses(text: str) -> int:
    """Return for how many vaults an invitation shall be good."""
    if not re.fullmatch("[1-9][0-9]{0,3}", text) or int(text) > MAX_USES:
        raise Refusal(f"--uses: {text!r} is not a number from 1 to {MAX_USES}")
    return int(text)


def read_time(text: str) -> int:
    """Return a time in seconds."""
    match = re.fullmatch("([1-9][0-9]{0,4})([mhd])", text)
    if match is None:
        raise Refusal(f"--expires: {text!r} is not a time like 30m, 12h or 7d")
    return int(match[1]) * _UNITS[match[2]]


async def _open(address: str) -> BlobStore:
    # Opening a folder for serving makes it; here that would hide a wrong name.
    if "://" not in address and not (Path(address) / "objects.db").exists():
        raise StoreUnavailable(f"no store is at {address}: name one in --store; the server makes it at its first start")
    return await open_store(address)


def _write_table(rows: list[Mapping[str, object]]) -> None:
    sums = {name: sum(int(str(row[name])) for row in rows) for name in _COLUMNS[1:]}
    shown = [{name: name for name in _COLUMNS}, *rows, {"vault": f"{len(rows)} in all", **sums}]
    widths = {name: max(len(str(row[name])) for row in shown) for name in _COLUMNS}
    for row in shown:
        cells = [str(row[name]).rjust(widths[name]) for name in _COLUMNS[1:]]
        _write("  ".join([str(row["vault"]).ljust(widths["vault"]), *cells]))


def _write(line: str) -> None:
    sys.stdout.write(line + "\n")


class _Progress:
    """How many times the store was asked, on one line that is written again and again, where a person looks on."""

    def __init__(self, out: TextIO) -> None:
        self._out = out if out.isatty() else None
        self._count = 0
        self._shown_at = 0.0

    def count(self, operation: str, seconds: float, *, failed: bool) -> None:
        self._count += 1
        if self._out is not None and monotonic() - self._shown_at > _PROGRESS_SECONDS:
            self._shown_at = monotonic()
            self._out.write(f"\r{self._count} reads")
            self._out.flush()

    def end(self) -> None:
        if self._out is not None:
            self._out.write("\r\x1b[K")
            self._out.flush()
