"""Sessions of the sanitizer, sealed on this device, until an erase ends them all (vault-format §8f)."""

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from memseal.errors import Finding, FormatError, MemsealError, SessionLost
from memseal.format.derivation import session_id
from memseal.format.keys import SessionSecret
from memseal.format.preamble import ID_SIZE
from memseal.format.primitives import sha256
from memseal.format.session import FRAME_SIZE, check_session_frame, open_session, seal_session
from memseal.store.folder import SESSIONS, VaultFolder
from memseal.vault.folder.device import SessionMark, decode_device_file_marks

if TYPE_CHECKING:
    from memseal.vault.folder.opening import Opened

_NAME_LIMIT: Final = 200
_FENCE_LABEL: Final = b"memseal/v1/session-fence"
_HARMLESS: Final = "only this session is lost: forget it, or delete the file, and begin another one"
_ENDED: Final = "an erase ended it, or its key is gone: nothing opens it, and the next opening for writing removes it"


def fence(opened: "Opened") -> bytes:
    """Return a digest of the erasures that are known."""
    return sha256(_FENCE_LABEL, *sorted(opened.logbook.view.state.erasures.ids))


def keep(opened: "Opened", name: str, session: dict[str, Any], began: bytes) -> None:
    """Keep a session that began under a fence; raises `SessionLost` where it is another now, or `ValueError`."""
    _check_name(name)
    if began != fence(opened):
        raise SessionLost("something was erased since this session began, and may be in it: begin another one")
    end_stale(opened)
    mark = opened.device.marks.sessions or _begin(opened)
    own = session_id(mark.secret, *opened.device.file_id, name)
    opened.folder.replace(_file(own), seal_session(mark.secret, opened.device.file_id, name, session))


def kept(opened: "Opened", name: str) -> dict[str, Any] | None:
    """Return a session that was kept, or None; raises `SessionLost` where it is damaged."""
    _check_name(name)
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
    for own in _ids(opened.folder):
        with contextlib.suppress(SessionLost):
            found.append(_opened(opened, mark, own, opened.folder.read(_file(own)) or b"")[0])
    return sorted(found)


def forget(opened: "Opened", name: str) -> None:
    """Remove a session, if it is there, and with the last one the secret of all."""
    _check_name(name)
    mark = opened.device.marks.sessions
    if mark is None:
        return
    opened.folder.remove(_file(session_id(mark.secret, *opened.device.file_id, name)))
    opened.folder.settle(SESSIONS)
    if not _ids(opened.folder):
        _note(opened, None)


def end_stale(opened: "Opened") -> None:
    """End all sessions where something was erased since they were kept: which of them held it nobody can tell."""
    mark = opened.device.marks.sessions
    if mark is not None and mark.fence != fence(opened):
        _note(opened, None)  # first: then no copy of them opens either, and what a crash leaves is removed below
    if opened.device.marks.sessions is None:
        for name in files(opened.folder):
            opened.folder.remove(name)


# ── the files ───────────────────────────────────────────────────────────────────────────────────────


def files(folder: VaultFolder) -> list[str]:
    """Return the names of all files of sessions."""
    return [_file(own) for own in _ids(folder)]


def damage(opened: "Opened", folder: VaultFolder, *, read_data: bool) -> Iterator[Finding]:
    """Yield what is wrong with the files, read from `folder`, and that it costs nothing else."""
    # Another process may keep sessions while this one reads. It notes their secret before it writes a file of them, so
    # the files are listed first.
    ids, marks = _ids(folder), opened.device.marks
    with contextlib.suppress(MemsealError):  # then those that were read at the opening decide
        marks = decode_device_file_marks(folder, opened.device)
    mark = marks.sessions
    is_ended = mark is not None and mark == opened.device.marks.sessions and mark.fence != fence(opened)
    for own in ids:
        if (size := folder.size(_file(own))) is None:
            continue  # forgotten meanwhile
        if mark is None or is_ended:
            yield Finding("session_lost", _file(own), _ENDED)
            continue
        try:
            check_session_frame(opened.device.vault_id, own, folder.read(_file(own), 0, FRAME_SIZE) or b"", size)
            if read_data:
                open_session(mark.secret, opened.device.file_id, own, folder.read(_file(own)) or b"")
        except FormatError as error:
            yield Finding(error.code, _file(own), f"{error}; {_HARMLESS}")


def _ids(folder: VaultFolder) -> list[bytes]:
    """Return the ids that name files; files with other names are nobody's (vault-format §1)."""
    ids = list[bytes]()
    for stem in folder.stems(SESSIONS):
        with contextlib.suppress(ValueError):
            own = bytes.fromhex(stem)
            if len(own) == ID_SIZE and own.hex() == stem:
                ids.append(own)
    return ids


def _file(own: bytes) -> str:
    return f"{SESSIONS}/{own.hex()}.mseal"


def _opened(opened: "Opened", mark: SessionMark, own: bytes, file: bytes) -> tuple[str, dict[str, Any]]:
    try:
        return open_session(mark.secret, opened.device.file_id, own, file)
    except FormatError as error:
        raise SessionLost(f"the kept session is damaged ({error.code}): forget it, and begin another one") from error


# ── the secret ──────────────────────────────────────────────────────────────────────────────────────


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


def _check_name(name: str) -> None:
    if type(name) is not str or not name.strip() or len(name) > _NAME_LIMIT:
        raise ValueError(f"a session has a name of 1 to {_NAME_LIMIT} characters, not white space alone")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError("the name of a session is valid Unicode, without lone surrogates") from None
