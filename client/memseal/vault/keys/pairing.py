"""Let a new device join by a short code that this one shows, or join so (sync-protocol, *Pairing*)."""

import contextlib
import secrets
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from memseal.errors import (
    DeviceName,
    FolderKeys,
    FormatError,
    KitOrPassphrase,
    MemsealError,
    PairingCodeWrong,
    PairingExpired,
    PairingGone,
    PairingInvalid,
    PairingTaken,
    PairingUnfinished,
    PassphraseWrong,
    RemoteUnknown,
)
from memseal.format.boxes import open_secrets, open_slot, slot_cost
from memseal.format.derivation import epoch_signing_key
from memseal.format.device_file import Stretch
from memseal.format.keyring import KeyringVersion
from memseal.format.keys import ScannedSecret, SigningKey, TypedSecret, VaultKey
from memseal.format.pairing_code import CHANNELS, PairingCode, parse_pairing_code
from memseal.format.pake import RANDOM_SIZE
from memseal.format.primitives import public_signing_key, public_wrapping_key
from memseal.store.disk import Disk
from memseal.store.folder import VaultFolder
from memseal.sync.messages import Answer, Content, Refused, Stored
from memseal.sync.pairing import MESSAGE_MOST, REFUSAL, Hello, Joined, Met, Newcomer, Place, Shower
from memseal.sync.relaying import Hear, Say
from memseal.transport import Relay
from memseal.vault.extras import extra
from memseal.vault.folder.opening import Opened
from memseal.vault.keys.joining import Joiner, check_place, enter, refusal, resume
from memseal.vault.keys.naming import check_name
from memseal.vault.keys.proving import check_anchor
from memseal.vault.keys.rekeying import end_handed_over
from memseal.vault.keys.roster import DeviceInfo, devices
from memseal.vault.remote import syncing

CODE_SECONDS: Final = 120
"""How long a code is good, by the clock of the device that shows it."""
_JOIN_SECONDS = 60  # from the welcome on: a new device derives two keys from the passphrase, and makes one version
_WAIT_SECONDS = 20  # that a server holds one answer: less than what lies between may cut
_UNHEARD = (
    "the code was used, but the new device did not say that it joined, so the vault has new keys:"
    " look at the list of devices"
)
_TRIES = 8  # another pairing may have the same channel

Reach = Callable[[], AbstractContextManager[Opened]]
"""Gives the open vault, which nobody else then uses: not while a person types."""
Clock = Callable[[], float]


# ── the device that shows the code ──────────────────────────────────────────────────────────────────


def pair(
    reach: Reach, show: Callable[[str], None], remote: str | None, *, scanned: bool, clock: Clock = time.monotonic
) -> DeviceInfo:
    """Show a code, let the device in that answers with it, and return that device.

    Raises `PairingCodeWrong`, `PairingExpired`, `PairingUnfinished` or `PairingInvalid`; the code is spent then. Where
    the vault key was handed over in vain, a new epoch is begun.
    """
    with reach() as opened:
        address = remote or opened.device.marks.server
        if not address:
            raise RemoteUnknown("this vault is on no server yet: synchronise it with one first")
        syncing.sync(opened, address, accept_rollback=False)
        relay = _open_relay(address, opened.device.vault_id, opened.device.keys.sign)
    try:
        code, shower = _open_channel(relay, scanned=scanned)
        until = clock() + CODE_SECONDS
        show(code.to_text())
        expired = PairingExpired("nobody used the code within two minutes: show another one")
        met = _meet(relay, code.channel, shower, _hear(relay, code.channel, 1, until, clock, expired), reach)
        with reach() as opened:
            syncing.sync(opened, address, accept_rollback=False)
            welcome = met.welcome(_place(opened), opened.keychain.vault_key)
            _note_handed_over(opened, opened.keychain.keyring.public.epoch)
        with _handing_over(reach, address):
            _say(relay, code.channel, 2, welcome)
            answer = _hear(relay, code.channel, 2, clock() + _JOIN_SECONDS, clock, PairingUnfinished(_UNHEARD))
            joined = met.joined(welcome, answer)
            with reach() as opened:
                syncing.sync(opened, address, accept_rollback=False)
                device = _new_device(opened, met.hello, joined)
                _note_handed_over(opened, 0)
                return device
    finally:
        relay.close()


@contextlib.contextmanager
def _handing_over(reach: Reach, address: str) -> Generator[None]:
    """Begin a new epoch where it is not known that who has the vault key joined: nobody is to lurk with it unlisted."""
    try:
        yield
    except (MemsealError, KeyboardInterrupt):
        with contextlib.suppress(MemsealError), reach() as opened:  # what went wrong first is what is told
            opened.pairing = False
            end_handed_over(opened, address)
        raise


def _note_handed_over(opened: Opened, epoch: int) -> None:
    """Note durably which epoch's key leaves this device (0: who has it is known): a kill must not hide it."""
    opened.pairing = epoch > 0
    opened.device = opened.device.with_marks(replace(opened.device.marks, handed_over=epoch))
    opened.device.save(opened.folder)


def _open_channel(relay: Relay, *, scanned: bool) -> tuple[PairingCode, Shower]:
    for _ in range(_TRIES):
        code = _draw(relay.address, scanned=scanned)
        shower = Shower(code, secrets.token_bytes(RANDOM_SIZE))
        with contextlib.suppress(PairingTaken):
            _say(relay, code.channel, 1, shower.opening)
            return code, shower
    raise PairingTaken("too many pairings are going on at this server: try again in a few minutes")


def _draw(server: str, *, scanned: bool) -> PairingCode:
    channel = secrets.randbelow(CHANNELS)
    if scanned:
        return PairingCode(channel, ScannedSecret(secrets.token_bytes(ScannedSecret.SIZE)), server)
    digits = f"{secrets.randbelow(10**TypedSecret.SIZE):0{TypedSecret.SIZE}d}"
    return PairingCode(channel, TypedSecret(digits.encode("ascii")))


def _meet(relay: Relay, channel: int, shower: Shower, answer: bytes, reach: Reach) -> Met:
    """Return who answered; who has another code is told so, and the code is spent."""
    try:
        met = shower.meet(answer)
        with reach() as opened:
            _check_hello(opened, met.hello)
        return met
    except (PairingCodeWrong, PairingInvalid):
        with contextlib.suppress(MemsealError):  # it only spares the other side a wait
            _say(relay, channel, 2, REFUSAL)
        raise


def _check_hello(opened: Opened, hello: Hello) -> None:
    """Refuse keys that the keyring could not list, and a name that could not be shown."""
    try:
        shown = check_name(hello.name) == hello.name
    except DeviceName:
        shown = False
    entries = opened.keychain.keyring.public.devices
    known = any(hello.id == each.id or hello.sign == each.sign or hello.wrap == each.wrap for each in entries)
    if known or not shown:
        raise PairingInvalid("the new device's keys or name cannot be its own: pair again")


def _place(opened: Opened) -> Place:
    newest = opened.keychain.keyring.newest
    return Place(
        vault_id=newest.vault_id,
        sign=opened.device.signing_public,
        version=newest.public.version,
        digest=newest.digest,
        epoch=newest.public.epoch,
    )


def _new_device(opened: Opened, hello: Hello, joined: Joined) -> DeviceInfo:
    """Return the device that joined, once the keyring here lists what was agreed on."""
    versions = opened.keychain.keyring.versions
    entry = versions[-1].public.entry_of(hello.sign)
    there = joined.version <= len(versions) and versions[joined.version - 1].digest == joined.digest
    if not there or entry is None or (entry.id, entry.wrap, entry.ended) != (hello.id, hello.wrap, None):
        raise PairingUnfinished("the server does not show that the new device joined: look at the list of devices")
    return next(each for each in devices(opened) if each.id == hello.id.hex())


# ── the device that takes the code ──────────────────────────────────────────────────────────────────


def join_with_code(
    path: Path,
    disk: Disk,
    text: str,
    stretch: Stretch,
    remote: str | None,
    name: str,
    clock: Clock = time.monotonic,
) -> VaultFolder:
    """Join by the code that another device shows, and make the vault's folder.

    A join here that was cut short after it was done on the server is finished instead, and needs no code.
    """
    code = parse_pairing_code(text)
    address = remote or code.server
    check_place(path, disk, "code", address)
    folder = resume(path, disk, stretch)
    if folder is not None:
        return folder
    joiner = Joiner.draw(check_name(name))
    keys = joiner.keys
    relay = _open_relay(address, b"", keys.sign)
    try:
        newcomer = Newcomer(code, secrets.token_bytes(RANDOM_SIZE))
        until = clock() + CODE_SECONDS
        late = PairingExpired("the other device did not answer: show another code there")
        opening = _hear(relay, code.channel, 1, until, clock, late)
        hello = Hello(joiner.device_id, joiner.signing_public, public_wrapping_key(keys.wrap), joiner.name)
        answered = newcomer.answer(opening, hello)
        _say(relay, code.channel, 1, answered.message)
        welcome = _hear(relay, code.channel, 2, until, clock, late)
        place, vault_key = answered.receive(welcome, keys.wrap)
        opener = PairingOpener(place, vault_key, stretch)
        folder, version = enter(path, disk, opener, joiner, stretch, relay.address)
        joined = Joined(version.public.version, version.digest)
        with contextlib.suppress(MemsealError):  # it has joined; the other device finds that out at its next round
            _say(relay, code.channel, 2, answered.finish(welcome, joined))
        return folder
    finally:
        relay.close()


@dataclass(frozen=True)
class PairingOpener:
    """What a device of the vault handed over; the passphrase is proved before anything is written."""

    place: Place
    vault_key: VaultKey
    stretch: Stretch
    name: str = "code"

    @property
    def vault_id(self) -> bytes:
        """The vault that it opens."""
        return self.place.vault_id

    def request_key(self) -> SigningKey:
        """Return the key that reads the keyring from a server: the epoch key."""
        return epoch_signing_key(self.vault_key, self.place.vault_id, self.place.epoch)

    def prove(self, versions: Sequence[KeyringVersion]) -> VaultKey:
        """Return the vault key, if the keyring leads from the version that the other device has to one of its epoch."""
        newest = versions[-1]
        check_anchor(versions, self.place.version, self.place.digest)
        if newest.public.epoch != self.place.epoch:
            raise PairingExpired("the vault's keys were changed meanwhile: show another code")
        if public_signing_key(self.request_key()) != newest.public.epoch_key:
            raise FormatError("epoch_key_mismatch", "the other device handed over a key that is not the vault's")
        try:
            kit_secret = open_secrets(newest, self.vault_key).kit_secret
            slot = open_slot(newest, self.stretch(*slot_cost(newest)), kit_secret)
        except KitOrPassphrase:
            raise PassphraseWrong("this is not the vault's passphrase: nothing was changed, pair again") from None
        if slot.version > len(versions) or versions[slot.version - 1].public_digest != slot.public:
            raise FormatError("slot_mismatch", "the server shows a keyring that is not this vault's: do not trust it")
        return self.vault_key

    def unknown(self) -> MemsealError:
        """Return the error for a server that does not know its request key."""
        return PairingExpired("the vault's keys were changed meanwhile: show another code")


# ── the relay ───────────────────────────────────────────────────────────────────────────────────────


def _open_relay(address: str, vault_id: bytes, key: SigningKey) -> Relay:
    """Return the way to a server that relays; without a vault id as the joiner."""
    if not address.startswith(("http://", "https://")):
        raise FolderKeys("pairing needs a server: give its address")
    with extra("sync"):
        from memseal.transport.http import HttpTransport

    return HttpTransport(address, vault_id, key)


def _say(relay: Relay, channel: int, number: int, content: bytes) -> None:
    answer = relay.relay(Say(channel, number, content))
    if not isinstance(answer, Stored):
        raise _error(answer)


def _hear(relay: Relay, channel: int, number: int, until: float, clock: Clock, late: MemsealError) -> bytes:
    """Return the other side's message; raises `late` where it does not come in time."""
    while (left := until - clock()) > 0:
        answer = relay.relay(Hear(channel, number, max(1, min(_WAIT_SECONDS, int(left)))))
        if isinstance(answer, Content):
            if len(answer.content) > MESSAGE_MOST:
                raise PairingInvalid("a message of the other device is larger than any: pair again")
            return answer.content
        if not isinstance(answer, Refused) or answer.code != "not_found":
            raise _error(answer)
    raise late


def _error(answer: Answer) -> MemsealError:
    """Return the error that a relay's answer is, where another was wanted."""
    if isinstance(answer, Refused):
        match answer.code:
            case "pairing_gone":
                return PairingGone("no device shows this code: compare it, or show another one there")
            case "pairing_expired":
                return PairingExpired("the time of this code is over: show another one")
            case "pairing_taken":
                return PairingTaken("somebody else answered this code: show another one")
            case _:
                pass
    return refusal(answer)
