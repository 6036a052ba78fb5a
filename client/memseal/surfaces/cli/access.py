"""How a command gets at a vault: the options that say which one and what opens it, and the opening."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.text import Text

from memseal.errors import Finding
from memseal.surfaces.cli import asking, exits
from memseal.surfaces.cli.options import AsJson, PassphraseFd, VaultPath
from memseal.surfaces.cli.output import notes, write_lines
from memseal.surfaces.cli.places import vault_place
from memseal.vault.held import EmbedderChoice
from memseal.vault.vault import Vault

MODEL: Final = "MEMSEAL_MODEL"

# Findings that cost no memory which was there before.
_HARMLESS = frozenset("record_torn counter_false column_value operation_unknown withheld stream_ended".split())

_INCOMPLETE = "! Part of this vault cannot be read, so memories are missing here: `memseal verify` says which files."


@dataclass(frozen=True)
class Access:
    """Options of every command that opens a vault: which one, what opens it, and for whom the answer is written."""

    vault: VaultPath = None
    passphrase_fd: PassphraseFd = None
    as_json: AsJson = False

    def place(self) -> Path:
        """Return where the vault is; raises `VaultMissing` with what to do."""
        return vault_place(self.vault)

    def passphrase(self) -> str:
        """Return the vault's passphrase, asked for where nothing gives it."""
        return asking.passphrase(self.passphrase_fd)

    @contextmanager
    def open(self, *, read_only: bool = False, warn: bool = True, passphrase: str | None = None) -> Generator[Vault]:
        """Open the vault, and close it afterwards; `warn` where memories are missing from it."""
        embedder, place = embedder_choice(), self.place()
        with Vault.open(place, passphrase or self.passphrase(), read_only=read_only, embedder=embedder) as vault:
            if warn and any(_is_loss(finding) for finding in vault.status().findings):
                # Other programs are told as well: an export without them would pass for whole.
                write_lines(notes(), Text(_INCOMPLETE))
            yield vault


def embedder_choice() -> EmbedderChoice:
    """Return what the environment says of the model: it can be switched off, and words alone then count."""
    chosen = os.environ.get(MODEL, "")
    if chosen not in ("", "default", "none"):
        raise exits.WrongUsage(f"{MODEL} is `default` or `none`")
    return None if chosen == "none" else "default"


def _is_loss(finding: Finding) -> bool:
    return finding.where.startswith(("logs/", "parts/", "checkpoints/")) and finding.code not in _HARMLESS
