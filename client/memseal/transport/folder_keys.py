"""The keyring versions that a folder carries: `keyring/<number>` and `sealed/<number>-<hash>` (sync-protocol §7)."""

from pathlib import Path

from memseal.errors import FormatError
from memseal.format.keyring import KeyringVersion, decode_version
from memseal.format.primitives import sha256
from memseal.transport.folder_files import Files, add, numbered, numbers, read


class FolderKeys:
    """Versions that devices had from a server; a reader accepts them by what they prove."""

    def __init__(self, folder: Path, vault_id: bytes, files: Files) -> None:
        """Take the vault's folder."""
        self._open, self._sealed = folder / "keyring", folder / "sealed"
        self._vault_id, self._files = vault_id, files

    def names(self) -> list[str]:
        """Return the names of all files."""
        return [*self._files.names(self._open), *self._files.names(self._sealed)]

    def newest(self) -> KeyringVersion | None:
        """Return the newest version that is whole here, with all before it."""
        there = set(numbers(self._files.names(self._open)))
        number = next((each for each in range(1, len(there) + 2) if each not in there), 1) - 1
        for each in range(number, 0, -1):
            version = self._version(each)
            if version is not None and version.boxes is not None:
                return version
        return None

    def highest(self) -> int:
        """Return the highest number of which there is anything, 0 where there is nothing."""
        names = [*self._files.names(self._open), *(name[:10] for name in self._files.names(self._sealed))]
        return max(numbers(names), default=0)

    def read(self, number: int) -> bytes | None:
        """Return a version's bytes, as whole as they are here."""
        version = self._version(number)
        return None if version is None else version.content

    def put(self, content: bytes) -> bool:
        """Add what is missing of a version; False where another one has its number."""
        version = decode_version(content, self._vault_id)
        name, part = numbered(version.public.version), version.sealed_part()
        there = self._version(version.public.version)
        if there is not None and there.digest != version.digest:
            return False
        if part and (there is None or there.boxes is None):
            add(self._files, self._sealed, _sealed_name(version), part)
        if there is None:
            add(self._files, self._open, name, version.stripped())
        return True

    def older_sealed(self, number: int) -> list[Path]:
        """Return the sealed parts of versions before a number: what they hold is to be forgotten."""
        names = self._files.names(self._sealed)
        return [self._sealed / name for name in names if numbers([name[:10]]) and int(name[:10]) < number]

    def _version(self, number: int) -> KeyringVersion | None:
        content = read(self._files, self._open / numbered(number))
        try:
            version = None if content is None else decode_version(content, self._vault_id)
            if version is None or version.public.version != number:
                return None
            part = read(self._files, self._sealed / _sealed_name(version))
            whole = part is not None and sha256(part) == version.sealed_digest
            return decode_version(version.stripped() + (part or b""), self._vault_id) if whole else version
        except FormatError:
            return None  # half-copied: it counts when it is whole


def _sealed_name(version: KeyringVersion) -> str:
    return f"{numbered(version.public.version)}-{version.sealed_digest.hex()}"
