"""Go over to another branch of the keyring, in the folder: whole or not at all, whenever it is cut short (§7)."""

from collections.abc import Sequence
from dataclasses import replace

from memseal.errors import FormatError
from memseal.format.keyring import KeyringVersion
from memseal.format.log import End
from memseal.format.values import encode_value
from memseal.store.folder import CHECKPOINTS, KEYRING, LOGS, PARTS, VaultFolder
from memseal.vault.folder.cache import VIEW
from memseal.vault.folder.device import Device, Marks, RemoteMarks
from memseal.vault.folder.floors import check_base
from memseal.vault.folder.keychain import BRANCH, Keychain, version_file
from memseal.vault.folder.log_files import LogFiles

CARRIED = "carried.mseal"
"""The state of the branch that was given up, under the local key, until it is written in the other one."""


def begin_switch(folder: VaultFolder, device: Device, versions: Sequence[KeyringVersion]) -> Device:
    """Let another branch count from now on, of which these are the versions after the last common one.

    The mark comes first: an older branch that somebody puts here is not followed.
    """
    device = device.with_marks(replace(device.marks, branch=versions[-1].digest))
    device.save(folder)
    folder.replace(BRANCH, encode_value([version.content for version in versions]))
    return device


def finish_switch(folder: VaultFolder, device: Device, keychain: Keychain) -> Device:
    """Put the keyring files and all else in order; may be begun again after a crash at any step."""
    if folder.size(BRANCH) is None:
        return device
    kept = _drop_foreign(folder, keychain)
    for version in keychain.keyring.versions:
        if folder.read(version_file(version.public.version)) != version.content:
            folder.replace(version_file(version.public.version), version.content)
    for stem in folder.stems(KEYRING):
        if len(stem) == 8 and stem.isdigit() and int(stem) > len(keychain.keyring.versions):
            folder.remove(f"{KEYRING}/{stem}.mseal")
    folder.settle(KEYRING)
    device = device.with_marks(_marks(device.marks, keychain, kept))
    device.save(folder)
    folder.remove(BRANCH)
    folder.settle(KEYRING)
    return device


def _drop_foreign(folder: VaultFolder, keychain: Keychain) -> set[bytes]:
    """Remove what the branch that was given up began or cut, and return which logs stay."""
    files, kept = LogFiles(folder), set[bytes]()
    for stream_id in files.streams():
        if fits(files, keychain, stream_id):
            kept.add(stream_id)
        else:
            files.remove(stream_id)
    floor = keychain.keyring.public.floor
    named = {CHECKPOINTS: [] if floor is None else [floor.checkpoint], PARTS: [] if floor is None else floor.parts}
    for shelf, ids in named.items():
        for stem in folder.stems(shelf):
            if stem not in {each.hex() for each in ids}:
                folder.remove(f"{shelf}/{stem}.mseal")
        folder.settle(shelf)
    folder.remove(VIEW)
    folder.settle(LOGS)
    return kept


def fits(files: LogFiles, keychain: Keychain, stream_id: bytes) -> bool:
    """Return whether a log here is one of this keyring, from where its file begins."""
    try:
        base = files.base(stream_id)
        if base is not None:
            check_base(keychain.keyring, stream_id, base)
        keychain.stream(files.preamble(stream_id), stream_id)
    except FormatError:
        return False
    return True


def _marks(marks: Marks, keychain: Keychain, kept: set[bytes]) -> Marks:
    """Return marks that fit the branch: of logs that are gone nothing is missed."""
    newest = keychain.keyring.newest
    remotes = {
        name: RemoteMarks(min(seen.keyring, newest.public.version), _of(seen, kept))
        for name, seen in marks.remotes.items()
    }
    return replace(
        marks,
        keyring=newest.public.version,
        digest=newest.digest,
        logs={stream_id: end for stream_id, end in marks.logs.items() if stream_id in kept},
        remotes=remotes,
        making=bytes(32),
        branch=bytes(32),
        stripped=0,
        settled=b"",
        caches=(),
    )


def _of(seen: RemoteMarks, kept: set[bytes]) -> dict[bytes, End]:
    return {stream_id: end for stream_id, end in seen.logs.items() if stream_id in kept}
