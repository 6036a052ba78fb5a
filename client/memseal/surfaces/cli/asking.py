"""Take secrets in: from a descriptor, the environment, or a hidden prompt; never from an argument."""

import getpass
import os
import sys
import warnings

import typer

from memseal.surfaces.cli import exits
from memseal.surfaces.cli.output import advise

PASSPHRASE = "MEMSEAL_PASSPHRASE"  # noqa: S105  the name of a variable
NEW_PASSPHRASE = "MEMSEAL_NEW_PASSPHRASE"  # noqa: S105
FILE_PASSPHRASE = "MEMSEAL_FILE_PASSPHRASE"  # noqa: S105
KIT = "MEMSEAL_KIT"
RECOVERY_CODE = "MEMSEAL_RECOVERY_CODE"
PAIRING_CODE = "MEMSEAL_PAIRING_CODE"
INVITATION = "MEMSEAL_INVITATION"

_MOST_BYTES = 64 << 10  # what reads an endless device by mistake should say so
_TRIES = 3
_SHORT_CHARS = 12  # eleven random letters are about 2^52 guesses; what people make up is worth far less


def passphrase(descriptor: int | None) -> str:
    """Return the vault's passphrase."""
    given = _given(descriptor, PASSPHRASE)
    return given if given is not None else _ask("Passphrase: ", "the passphrase", PASSPHRASE, "--passphrase-fd")


def first_passphrase(descriptor: int | None) -> str:
    """Return a passphrase for a new vault, asked for twice on a terminal."""
    return _chosen(descriptor, "New passphrase: ", PASSPHRASE, "--passphrase-fd")


def next_passphrase(descriptor: int | None) -> str:
    """Return the passphrase to change to, asked for twice on a terminal."""
    return _chosen(descriptor, "New passphrase: ", NEW_PASSPHRASE, "--new-passphrase-fd")


def newer_passphrase() -> str | None:
    """Return the vault's newest passphrase where the environment gives one: this device may have an older one."""
    return _given(None, NEW_PASSPHRASE)


def file_passphrase(descriptor: int | None) -> str:
    """Return the passphrase of a file to import."""
    given = _given(descriptor, FILE_PASSPHRASE)
    if given is not None:
        return given
    return _ask("Passphrase of the file: ", "the file's passphrase", FILE_PASSPHRASE, "--file-passphrase-fd")


def new_file_passphrase(descriptor: int | None) -> str:
    """Return a passphrase for a file to export, asked for twice on a terminal."""
    return _chosen(descriptor, "New passphrase for the file: ", FILE_PASSPHRASE, "--file-passphrase-fd")


def emergency_kit(descriptor: int | None) -> str:
    """Return the emergency kit as it was typed or pasted."""
    given = _given(descriptor, KIT)
    return given if given is not None else _ask("Emergency kit: ", "the emergency kit", KIT, "--kit-fd")


def recovery_code(descriptor: int | None) -> str:
    """Return the recovery code as it was typed or pasted."""
    given = _given(descriptor, RECOVERY_CODE)
    return given if given is not None else _ask("Recovery code: ", "the recovery code", RECOVERY_CODE, "--code-fd")


def pairing_code(descriptor: int | None) -> str:
    """Return the pairing code as it was typed or scanned."""
    given = _given(descriptor, PAIRING_CODE)
    return given if given is not None else _ask("Code: ", "the code", PAIRING_CODE, "--code-fd")


def invitation(descriptor: int | None, *, wanted: bool) -> str | None:
    """Return the invitation of a server's operator, if one is given, or wanted and typed."""
    given = _given(descriptor, INVITATION)
    if given is not None or not wanted:
        return given
    return _ask("Invitation: ", "the invitation", INVITATION, "--invitation-fd")


def may_go_on(question: str, *, yes: bool) -> bool:
    """Return whether to do what cannot be undone: `--yes` says so, or a person on a terminal."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise exits.WrongUsage("there is no terminal to ask: give --yes to go on")
    return typer.confirm(question, err=True)


def _chosen(descriptor: int | None, prompt: str, variable: str, option: str) -> str:
    given = _given(descriptor, variable)
    if given is not None:
        return given
    for _ in range(_TRIES):
        # The end of input while asking ends the loop too.
        first = _ask(prompt, "the new passphrase", variable, option)
        if first == _ask("The same again: ", "the new passphrase", variable, option):
            if len(first) < _SHORT_CHARS:
                advise("That is short: who gets this device's files can guess it. Five random words would hold.")
            return first
        sys.stderr.write("These two are not the same.\n")
    raise exits.WrongUsage("the two passphrases differed each time: nothing was changed, try again")


def _given(descriptor: int | None, variable: str) -> str | None:
    if descriptor is not None:
        return _checked(_first_line(descriptor), f"descriptor {descriptor}")
    value = os.environ.get(variable)
    return _checked(value.encode(errors="surrogateescape"), variable) if value else None


def _first_line(descriptor: int) -> bytes:
    """Read up to the line's end and no further: what follows may be the next secret, or the memory."""
    line = bytearray()
    try:
        while (byte := os.read(descriptor, 1)) not in (b"", b"\n"):
            line += byte
            if len(line) > _MOST_BYTES:
                raise exits.WrongUsage(f"descriptor {descriptor} gives no end of line: give it the one line")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise exits.WrongUsage(f"descriptor {descriptor} cannot be read ({reason}): open it for reading") from None
    return bytes(line).removesuffix(b"\r")


def _checked(raw: bytes, where: str) -> str:
    text = _decoded(raw)
    if text is None:
        raise exits.WrongUsage(f"what {where} gives is not UTF-8: encode it so")
    return text


def _decoded(raw: bytes) -> str | None:
    # The error is dealt with here: it holds the bytes, and another one would carry it as its context.
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _ask(prompt: str, what: str, variable: str, option: str) -> str:
    missing = exits.WrongUsage(f"there is no terminal to ask for {what}: set {variable}, or use {option}")
    if not sys.stderr.isatty() and not sys.stdin.isatty():
        raise missing
    with warnings.catch_warnings():
        # getpass would go on and echo what is typed.
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass(prompt)
        except getpass.GetPassWarning:
            raise missing from None
