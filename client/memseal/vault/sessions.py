"""The part of an open vault that keeps sessions of the sanitizer (vault-format §8f)."""

from typing import Any

from memseal.vault.folder import session_files
from memseal.vault.held import Held


class Sessions(Held):
    """What stood for whom in the chats of this device is kept, until an erase ends it."""

    def session_fence(self) -> bytes:
        """Return 32 bytes that change with every erase: what began before one is not kept after it."""
        with self._reading() as opened:
            return session_files.fence(opened)

    def keep_session(self, name: str, session: dict[str, Any], fence: bytes) -> None:
        """Keep a session of the sanitizer, durably; `fence` is what `session_fence` returned when it began.

        Raises `SessionLost` where an erase has come between, `ValueError` for a name that is none or a session that is
        no map of plain values, `RecordTooLarge` for one over 64 MiB.
        """
        with self._writing() as opened:
            session_files.keep(opened, name, session, fence)

    def kept_session(self, name: str) -> dict[str, Any] | None:
        """Return a session that was kept, or None; raises `SessionLost` where it is damaged, or `ValueError`."""
        with self._reading() as opened:
            return session_files.kept(opened, name)

    def kept_sessions(self) -> list[str]:
        """Return the names of the sessions that are kept, sorted; one that is damaged is passed over."""
        with self._reading() as opened:
            return session_files.names(opened)

    def forget_session(self, name: str) -> None:
        """Remove a session, if it is there; with the last one goes the key of all, so that no copy opens any more.

        Raises `ValueError` for a name that is none.
        """
        with self._writing() as opened:
            session_files.forget(opened, name)
