"""Join two branches of the keyring: one version names both, and each device goes over to it (vault-format §7)."""

import contextlib
import secrets
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from memseal.errors import (
    BundlePassphrase,
    Finding,
    FormatError,
    KeyringForked,
    MemsealError,
    NetworkError,
    RemoteRefused,
    ServerError,
)
from memseal.format.boxes import open_device_box
from memseal.format.derivation import carried_key
from memseal.format.device_file import Stretch
from memseal.format.keyring import KeyringVersion, decode_version
from memseal.format.keys import RecoverySecret
from memseal.format.kit import RecoveryCode
from memseal.format.log import End
from memseal.memory.operations import first_place
from memseal.sync.messages import GetHeads, Heads, RemoteLog
from memseal.sync.session import expect
from memseal.transport import Transport
from memseal.vault.checkpoint.covering import quarantine
from memseal.vault.copies.bundle_import import import_bundle
from memseal.vault.copies.bundles import dump, pieces, read_bundle
from memseal.vault.folder.device import Device
from memseal.vault.folder.keychain import Keychain, Keyring
from memseal.vault.folder.opening import Opened, open_logs
from memseal.vault.folder.switching import CARRIED, begin_switch, finish_switch, fits
from memseal.vault.keys.joining import fetch, put_version
from memseal.vault.keys.rekeying import emergency_kit, prove_passphrase
from memseal.vault.keys.versions import Change, next_version, recovery_generation
from memseal.vault.remote import syncing
from memseal.vault.remote.branches import Branches, Joined
from memseal.vault.remote.reading_ends import read_ends
from memseal.vault.remote.syncing import SyncReport

_TRIES = 8  # another device can make a version between our look and our put
_NOT_THERE = (
    "the server's keyring took another way than the one here, and does not list this device: nothing is lost here."
    " Join again in another folder with the kit that counts there; a bundle takes along what only this vault has"
)
_CONSENT = "the server's keyring took another way than the one here: sync with --accept-rollback to join both"


def synchronise(
    opened: Opened,
    remote: str | None,
    *,
    accept_rollback: bool,
    passphrase: Stretch | None = None,
    invitation: str | None = None,
) -> SyncReport:
    """Synchronise once; where the server's keyring is on another branch, join both first.

    A join that another device made is followed; to make one takes `accept_rollback`, and the vault's passphrase where
    a new kit is needed. Raises `KeyringForked` or `PassphraseWrong`; then nothing has changed here.
    """
    try:
        return syncing.sync(opened, remote, accept_rollback=accept_rollback, invitation=invitation)
    except KeyringForked:
        transport = syncing.open_transport(
            remote or opened.device.marks.server, opened.device.vault_id, opened.device.keys.sign
        )
    try:
        joined = _join(opened, transport, accept_rollback, passphrase)
    finally:
        transport.close()
    try:
        return replace(_settled(opened, remote), joined=joined)
    except (NetworkError, ServerError) as error:
        if joined.emergency_kit is None:
            raise
        address, detail = opened.device.marks.server, "both branches are joined: synchronise again for what is left"
        return SyncReport(address, 0, 0, 0, [Finding(error.code, address, detail)], joined)


def can_wait(report: SyncReport) -> tuple[type[MemsealError], ...]:
    """Return the errors that keep nobody from being shown what a join has made: new secrets are shown now or never."""
    has_secrets = report.joined is not None and report.joined.emergency_kit is not None
    return (NetworkError, ServerError) if has_secrets else ()


def _settled(opened: Opened, remote: str | None) -> SyncReport:
    """Fetch what the branch has, so that it is not written again, then write and push the rest."""
    try:
        first = syncing.sync(opened, remote, accept_rollback=True)
    finally:
        bring_in(opened)
    then = syncing.sync(opened, remote, accept_rollback=True)
    pulled, pushed = first.pulled_bytes + then.pulled_bytes, first.pushed_bytes + then.pushed_bytes
    return replace(then, pulled_bytes=pulled, pushed_bytes=pushed)


def _join(opened: Opened, transport: Transport, consent: bool, passphrase: Stretch | None) -> Joined:
    """Go over to the server's branch; where no device has joined it with the one here, do that first."""
    joined = Joined()
    for _ in range(_TRIES):
        branches = fetch_branches(transport, opened.keychain.keyring)
        keychain = _opened_there(opened, branches)
        _check_understood(opened, keychain)
        if branches.is_joined():
            _go_over(opened, branches, keychain)
            return replace(joined, emergency_kit=emergency_kit(opened)) if joined.emergency_kit is not None else joined
        if not consent:
            raise KeyringForked(_CONSENT)
        joined = _make(opened, transport, branches, keychain, passphrase)
    raise RemoteRefused("keyring_conflict", 409, "other devices kept changing the keyring: try again")


def fetch_branches(transport: Transport, own: Keyring) -> Branches:
    """Return both branches, the server's checked from the last version on that both share.

    Raises `FormatError` where it is not accepted, and `KeyringForked` where nothing is shared or nothing differs.
    """
    try:
        newest = decode_version(fetch(transport, None), own.newest.vault_id)
    except RemoteRefused as error:
        if error.code != "key_unknown":
            raise
        raise KeyringForked(_NOT_THERE) from error

    def shown(number: int) -> KeyringVersion:
        last = number == newest.public.version
        return newest if last else decode_version(fetch(transport, number, public=True), own.newest.vault_id)

    common = min(newest.public.version, own.public.version)
    while common and shown(common).digest != own.versions[common - 1].digest:
        common -= 1
    if common in (0, newest.public.version, own.public.version):
        raise KeyringForked("the server shows another keyring than this device has, and then none: do not trust it")
    there = Keyring(own.versions[:common])
    for number in range(common + 1, newest.public.version + 1):
        there = there.followed_by(shown(number))  # one by one, so that a server cannot have any number held
    if there.newest.boxes is None:
        raise FormatError("keyring_missing", "the remote gives the newest keyring version only in part: try later")
    return Branches(own, there, common)


def _opened_there(opened: Opened, branches: Branches) -> Keychain:
    """Return the server's keyring with its keys; raises `KeyringForked` where this device is not in it."""
    newest, keys = branches.there.newest, opened.device.keys
    entry = newest.public.entry_of(opened.device.signing_public)
    if entry is None or entry.ended is not None:
        raise KeyringForked(_NOT_THERE)
    return Keychain.of(branches.there, open_device_box(newest, keys.wrap, opened.device.signing_public))


def _check_understood(opened: Opened, keychain: Keychain) -> None:
    """Raise `FormatError` where a log that is given up has operations of newer software: no state holds these."""
    for each in quarantine(opened.logbook):
        strange = each.finding.code == "operation_unknown" and not each.dismissed
        if strange and not fits(opened.logbook.files, keychain, each.stream_id):
            detail = (
                f"{each.name} was written by newer software: update memseal, or dismiss it, then join both branches"
            )
            raise FormatError("operation_unknown", detail)


# ── the version that joins ──────────────────────────────────────────────────────────────────────────


def _make(
    opened: Opened, transport: Transport, branches: Branches, keychain: Keychain, passphrase: Stretch | None
) -> Joined:
    """Put a version on top of the server's that names the branch here, and brings nothing back that ended in it.

    The next look at the server says whether it is there.
    """
    change = Change(ended=_ends(opened, transport, branches, keychain), joins=branches.given_up())
    if branches.takes_away():
        if passphrase is None:
            raise KeyringForked(f"{_CONSENT}; this takes the vault's passphrase, for a new emergency kit")
        prove_passphrase(opened, passphrase)
        code = None if keychain.keyring.public.recovery is None else RecoverySecret(secrets.token_bytes(32))
        change = replace(change, kit=passphrase, new_passphrase=branches.changes_passphrase(), recovery=code)
    made = next_version(replace(opened, keychain=keychain), change).version
    if not put_version(transport, made) or change.kit is None:
        return Joined()
    text = None
    if change.recovery is not None:
        generation = recovery_generation(made.public)
        text = RecoveryCode(keychain.vault_id, change.recovery, generation, transport.address).to_text()
    return Joined(emergency_kit="", recovery_code=text)


def _ends(
    opened: Opened, transport: Transport, branches: Branches, keychain: Keychain
) -> Mapping[bytes, Mapping[bytes, End]]:
    """Return the keys that end, and where their streams do; what of them is on the server alone is read first."""
    keys = branches.to_end()
    if all(ends is not None for ends in keys.values()):
        return {key: ends or {} for key, ends in keys.items()}
    logs: Mapping[bytes, RemoteLog] = expect(transport.send(GetHeads()), Heads).logs
    found = read_ends(transport, keychain, logs)
    return {key: found.get(key, {}) if ends is None else ends for key, ends in keys.items()}


# ── going over ──────────────────────────────────────────────────────────────────────────────────────


def _go_over(opened: Opened, branches: Branches, keychain: Keychain) -> None:
    """Let the server's branch count here: first the state is kept aside, then the files are exchanged."""
    folder, logbook = opened.folder, opened.logbook
    folder.replace(CARRIED, pieces(opened, _stretch(opened.device)))
    device = begin_switch(folder, opened.device, branches.there.versions[branches.common :])
    opened.device = finish_switch(folder, device, keychain)
    fresh = open_logs(folder, opened.device, keychain)
    logbook.view.close()
    opened.keychain, opened.logbook, opened.uncached = keychain, fresh.logbook, fresh.uncached
    opened.findings = fresh.findings


def bring_in(opened: Opened) -> None:
    """Write in the present branch what was kept aside of another, with its first ids and stamps, if anything was."""
    content = opened.folder.read(CARRIED)
    if content is None:
        return
    try:
        bundle = read_bundle(memoryview(content), _stretch(opened.device))
    except (FormatError, BundlePassphrase) as error:
        opened.findings.append(Finding(error.code, CARRIED, "it is damaged: other devices may have what it held"))
        return
    with bundle:
        entries = chain(dump(bundle.view).settings(), dump(bundle.view).others())
        highest = max((first_place(entry.stamp)[0] for entry in entries), default=0)
        # The first stamps have to be below the records that carry them.
        opened.logbook.least_counter = max(opened.logbook.least_counter, highest)
        import_bundle(
            lambda: contextlib.nullcontext(opened),
            lambda batches: opened.logbook.write(batches, secrets.token_bytes(4)),
            bundle,
        )
        opened.findings += [replace(finding, where=CARRIED) for finding in bundle.findings]
    opened.folder.remove(CARRIED)
    opened.folder.settle("")


def _stretch(device: Device) -> Stretch:
    """Return what stands for a passphrase: the file never leaves the device, whose local key opens it."""
    return lambda salt, cost: carried_key(device.keys.local, salt, device.vault_id)
