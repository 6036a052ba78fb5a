"""memseal: memory for AI apps that belongs to its user."""

from typing import TYPE_CHECKING, Any

from memseal.embedding import Embedder, MiniLmEmbedder, OllamaEmbedder, OpenAIEmbedder
from memseal.errors import Finding, MemsealError, SanitizerMissing
from memseal.format.trace import Trace
from memseal.memory.memory import KINDS, Memory, State
from memseal.memory.traits import Location
from memseal.recall.normaliser import QueryNormaliser, QuestionNormaliser
from memseal.recall.packet import Packet, Recalled
from memseal.recall.receipt import Receipt
from memseal.transport.network import use_ca_file
from memseal.vault.aio import AsyncLiveSync, AsyncVault
from memseal.vault.answers.explaining import Explanation
from memseal.vault.answers.searching import Hit, Hits
from memseal.vault.answers.sql import Rows
from memseal.vault.checkpoint.covering import Quarantined
from memseal.vault.compaction.compacting import Compaction
from memseal.vault.compaction.erasing import Erasure
from memseal.vault.copies.bundle_import import BundleReport
from memseal.vault.copies.bundles import Bundle, open_bundle
from memseal.vault.keys.revoking import CutOff, Revocation
from memseal.vault.keys.roster import DeviceInfo
from memseal.vault.remote.background import LiveSync
from memseal.vault.remote.standing import SyncState
from memseal.vault.remote.status import Status
from memseal.vault.remote.syncing import SyncReport
from memseal.vault.vault import Vault
from memseal.vault.writes.auditing import Exposed
from memseal.vault.writes.capturing import Captured
from memseal.vault.writes.consolidating import Consolidation, Planned
from memseal.vault.writes.histories import Change, Difference, History, Version
from memseal.vault.writes.proposing import Proposal

if TYPE_CHECKING:
    from memseal.sanitize import Sanitizer

__version__ = "0.1.0"

__all__ = [
    "KINDS",
    "AsyncLiveSync",
    "AsyncVault",
    "Bundle",
    "BundleReport",
    "Captured",
    "Change",
    "Compaction",
    "Consolidation",
    "CutOff",
    "DeviceInfo",
    "Difference",
    "Embedder",
    "Erasure",
    "Explanation",
    "Exposed",
    "Finding",
    "History",
    "Hit",
    "Hits",
    "LiveSync",
    "Location",
    "Memory",
    "MemsealError",
    "MiniLmEmbedder",
    "OllamaEmbedder",
    "OpenAIEmbedder",
    "Packet",
    "Planned",
    "Proposal",
    "Quarantined",
    "QueryNormaliser",
    "QuestionNormaliser",
    "Recalled",
    "Receipt",
    "Revocation",
    "Rows",
    "Sanitizer",
    "State",
    "Status",
    "SyncReport",
    "SyncState",
    "Trace",
    "Vault",
    "Version",
    "__version__",
    "open_bundle",
    "use_ca_file",
]


def __getattr__(name: str) -> Any:
    """Import the sanitizer when it is asked for: it is an extra, and takes a second."""
    if name != "Sanitizer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from memseal.sanitize import Sanitizer
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == __name__:
            raise
        raise SanitizerMissing(f"the sanitizer needs {error.name}: pip install 'memseal[sanitize]'") from error
    return Sanitizer
