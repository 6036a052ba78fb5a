"""The lock of the one writing process, held by the operating system: it ends with the process."""

from pathlib import Path

import filelock

from memseal.errors import DiskError, VaultBusy


class VaultLock:
    """Held from opening for writing until closing."""

    def __init__(self, path: Path) -> None:
        """Take the lock file's path and lock it; `VaultBusy` where another holds it."""
        self._lock = filelock.FileLock(path, mode=0o600, thread_local=False, is_singleton=False)
        try:
            self._lock.acquire(timeout=0)
        except filelock.Timeout:
            raise VaultBusy("the vault is open elsewhere: close it there, or open it with read_only=True") from None
        except OSError as error:
            raise DiskError(f"the vault cannot be locked: {error.strerror or type(error).__name__}") from error

    def release(self) -> None:
        """Let others open the vault for writing."""
        self._lock.release()
