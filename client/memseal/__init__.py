"""memseal: memory for AI apps that belongs to its user."""

from memseal.embedding import Embedder, MiniLmEmbedder, OllamaEmbedder, OpenAIEmbedder
from memseal.errors import Finding, MemsealError
from memseal.memory.memory import KINDS, Memory, State
from memseal.recall.normaliser import QueryNormaliser, QuestionNormaliser
from memseal.recall.packet import Packet, Recalled
from memseal.recall.receipt import Receipt
from memseal.transport.network import use_ca_file
from memseal.vault.aio import AsyncLiveSync, AsyncVault
from memseal.vault.background import LiveSync, SyncState
from memseal.vault.bundle_import import BundleReport
from memseal.vault.bundles import Bundle, open_bundle
from memseal.vault.compacting import Compaction
from memseal.vault.covering import Quarantined
from memseal.vault.erasing import Erasure
from memseal.vault.revoking import CutOff, Revocation
from memseal.vault.roster import DeviceInfo
from memseal.vault.searching import Hit
from memseal.vault.status import Status
from memseal.vault.syncing import SyncReport
from memseal.vault.vault import Vault

__version__ = "0.1.0"

__all__ = [
    "KINDS",
    "AsyncLiveSync",
    "AsyncVault",
    "Bundle",
    "BundleReport",
    "Compaction",
    "CutOff",
    "DeviceInfo",
    "Embedder",
    "Erasure",
    "Finding",
    "Hit",
    "LiveSync",
    "Memory",
    "MemsealError",
    "MiniLmEmbedder",
    "OllamaEmbedder",
    "OpenAIEmbedder",
    "Packet",
    "Quarantined",
    "QueryNormaliser",
    "QuestionNormaliser",
    "Recalled",
    "Receipt",
    "Revocation",
    "State",
    "Status",
    "SyncReport",
    "SyncState",
    "Vault",
    "__version__",
    "open_bundle",
    "use_ca_file",
]
