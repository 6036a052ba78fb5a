"""Sessions of the sanitizer, sealed on this device, until an erase ends them all (vault-format §8f)."""

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from memseal.errors import FormatError, SessionLost
from memseal.format.derivation import session_id
from memseal.format.keys import SessionSecret
from memseal.format.primitives import sha256
from memseal.format.session import open_session, seal_session
from memseal.store.folder import SESSIONS
from memseal.vault.device import SessionMark

if TYPE_CHECKING:
    from memseal.vault.opening import Opened

_NAME_LIMIT: Final = 200
_FENCE_LABEL: Final = b"memseal/v1/session-fence"


def fence(opened: "Opened") -> bytes:
    """Return a digest of the erasures that are known."""
    return sha256(_FENCE_LABEL, *sorted(opened.logbook.view.state.erasures.ids))


def keep(opened: "Opened", name: str, session: dict[str, Any], began: bytes) -> None:
    """Keep a session that began under a fence; raises `SessionLost` where it is another now, or `ValueError`."""
    if type(name) is not str or not name.strip() or len(name) > _NAME_LIMIT:
        raise ValueError(f"a session has a name of up to {_NAME_LIMIT} characters")
    if began != fence(opened):
        raise SessionLost("something was erased since this session began, and may be in it: begin another one")
    end_stale(opened)
    mark = opened.device.marks.sessions or _begin(opened)
    own = session_id(mark.secret, *opened.device.file_id, name)
    opened.folder.replace(_file(own), seal_session(mark.secret, opened.device.file_id, name, session))


def kept(opened: "Opened", name: str) -> dict[str, Any] | None:
    """Return a session that was kept, or None; raises `SessionLost` where it is damaged."""
    mark = _current(opened)
    if mark is None:
        return None
    own = session_id(mark.secret, *opened.device.file_id, name)
    file = opened.folder.read(_file(own))
    return None if file is None else _opened(opened, mark, own, file)[1]


def names(opened: "Opened") -> list[str]:
    """Return the names of the sessions that are kept, sorted; one that is damaged is passed over."""
    mark = _current(opened)
    found = list[str]()
    if mark is None:
        return found
    for stem in opened.folder.stems(SESSIONS):
        try:
            own = bytes.fromhex(stem)
            found.append(_opened(opened, mark, own, opened.folder.read(_file(own)) or b"")[0])
        except (SessionLost, ValueError):  # damaged, or no file of ours
            continue
    return sorted(found)


def forget(opened: "Opened", name: str) -> None:
    """Remove a session, if it is there, and with the last one the secret of all."""
    mark = opened.device.marks.sessions
    if mark is None:
        return
    opened.folder.remove(_file(session_id(mark.secret, *opened.device.file_id, name)))
    opened.folder.settle(SESSIONS)
    if not opened.folder.stems(SESSIONS):
        _note(opened, None)


def end_stale(opened: "Opened") -> None:
    """End all sessions where something was erased since they were kept: which of them held it nobody can tell."""
    mark = opened.device.marks.sessions
    if mark is not None and mark.fence != fence(opened):
        _note(opened, None)  # first: then no copy of them opens either, and what a crash leaves is removed below
    if opened.device.marks.sessions is None:
        for stem in opened.folder.stems(SESSIONS):
            opened.folder.remove(f"{SESSIONS}/{stem}.mseal")


def _current(opened: "Opened") -> SessionMark | None:
    mark = opened.device.marks.sessions
    return mark if mark is not None and mark.fence == fence(opened) else None


def _begin(opened: "Opened") -> SessionMark:
    mark = SessionMark(SessionSecret(secrets.token_bytes(SessionSecret.SIZE)), fence(opened))
    _note(opened, mark)
    return mark


def _note(opened: "Opened", mark: SessionMark | None) -> None:
    opened.device = opened.device.with_marks(replace(opened.device.marks, sessions=mark))
    opened.device.save(opened.folder)


def _opened(opened: "Opened", mark: SessionMark, own: bytes, file: bytes) -> tuple[str, dict[str, Any]]:
    try:
        return open_session(mark.secret, opened.device.file_id, own, file)
    except FormatError as error:
        raise SessionLost(f"the kept session is damaged ({error.code}): forget it, and begin another one") from error


def _file(own: bytes) -> str:
    return f"{SESSIONS}/{own.hex()}.mseal"
