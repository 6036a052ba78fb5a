"""The vectors' operations on keyrings, what opens them, and device files."""

from memseal.format.acceptance import accept
from memseal.format.boxes import Secrets, open_device_box, open_secrets
from memseal.format.device_file import decode_device_file
from memseal.format.keyring import KeyringVersion, decode_version
from memseal.format.keys import KitSecret, VaultKey, WrappingKey
from memseal.format.kit import Kit, RecoveryCode, parse_kit, parse_recovery_code
from memseal.vault.folder.device import open_device
from memseal.vault.folder.keychain import Keychain, Keyring
from memseal.vault.keys.proving import KitOpener, RecoveryOpener, prove
from memseal.vault.remote.branches import Branches
from tests.interop.manifest import octets
from tests.interop.outcome import Given, Gives, Outcome, operation, stretcher, tagged

# ── keyring ─────────────────────────────────────────────────────────────────────────────────────────


@operation
def decode_keyring(content: Given, vault_id: Given) -> Outcome:
    version = decode_version(octets(content), None if vault_id is None else octets(vault_id))
    return Outcome(_version(version) | {"whole": version.boxes is not None})


@operation
def accept_keyring(versions: list[Given], vault_id: Given) -> Outcome:
    return Outcome(_version(accepted(versions, octets(vault_id))[-1]))


def accepted(versions: list[Given], vault_id: bytes | None) -> list[KeyringVersion]:
    """Versions, each accepted after the one before."""
    found = list[KeyringVersion]()
    for content in versions:
        version = decode_version(octets(content), vault_id)
        accept(found[-1] if found else None, version)
        found.append(version)
    return found


@operation
def compare_branches(own: list[Given], there: list[Given]) -> Outcome:
    mine, theirs = (Keyring(tuple(accepted(versions, None))) for versions in (own, there))
    pairs = zip(mine.versions, theirs.versions, strict=False)
    common = max(each.public.version for each, other in pairs if each.digest == other.digest)
    branches = Branches(mine, theirs, common)
    ends = sorted(key.hex() for key in branches.to_end())
    return Outcome({"common": common, "follows": branches.is_joined(), "ends": ends})


def _version(version: KeyringVersion) -> Gives:
    public = version.public
    active = [entry.id.hex() for entry in public.active()]
    return {"version": public.version, "epoch": public.epoch, "digest": version.digest.hex(), "active": active}


# ── kit and recovery code ───────────────────────────────────────────────────────────────────────────


@operation
def parse_kit_(text: str) -> Outcome:
    return Outcome(_code(parse_kit(text)))


@operation
def parse_recovery(text: str) -> Outcome:
    return Outcome(_code(parse_recovery_code(text)))


def _code(code: Kit | RecoveryCode) -> Gives:
    secret = code.secret.reveal().hex()
    return {"vault_id": code.vault_id.hex(), "secret": secret, "generation": code.generation, "server": code.server}


@operation
def open_box(version: Given, seed: Given, sign: Given) -> Outcome:
    decoded = decode_version(octets(version))
    return Outcome({"vault_key": open_device_box(decoded, WrappingKey(octets(seed)), octets(sign)).reveal().hex()})


@operation
def open_secrets_(version: Given, vault_key: Given) -> Outcome:
    secrets = open_secrets(decode_version(octets(version)), VaultKey(octets(vault_key)))
    return Outcome(
        {
            "history": [[epoch, tagged(key.reveal())] for epoch, key in secrets.history.items()],
            "names": {device.hex(): name for device, name in secrets.names.items()},
            "kit_secret": secrets.kit_secret.reveal().hex(),
        }
    )


@operation
def open_kit(versions: list[Given], kit: str, passphrase: str) -> Outcome:
    opener = KitOpener(parse_kit(kit), stretcher(passphrase))
    return Outcome({"vault_key": prove(opener, accepted(versions, opener.vault_id)).reveal().hex()})


@operation
def open_recovery(versions: list[Given], code: str) -> Outcome:
    opener = RecoveryOpener(parse_recovery_code(code))
    return Outcome({"vault_key": prove(opener, accepted(versions, opener.vault_id)).reveal().hex()})


# ── device file, logs in a keyring ──────────────────────────────────────────────────────────────────


@operation
def open_device_(content: Given, versions: list[Given], passphrase: str) -> Outcome:
    file = decode_device_file(octets(content))
    device = open_device(file, decode_version(octets(versions[-1])).public, stretcher(passphrase))
    keys = {name: getattr(device.keys, name).reveal().hex() for name in ("sign", "wrap", "local")}
    return Outcome({"device_id": device.device_id.hex(), **keys})


@operation
def place_log(content: Given, name: Given, versions: list[Given], vault_keys: list[Given]) -> Outcome:
    stream = keychain_of(versions, vault_keys).stream(octets(content), octets(name))
    limit = stream.limit
    ends = {} if limit is None else {"length": limit.length, "records": limit.records, "chain": limit.chain.hex()}
    return Outcome({"owner": stream.owner.sign.hex(), "key": stream.key.reveal().hex(), "limit": ends or None})


def keychain_of(versions: list[Given], vault_keys: list[Given]) -> Keychain:
    """A keyring whose vault keys are given."""
    decoded = tuple(decode_version(octets(version)) for version in versions)
    keys = {epoch: VaultKey(bytes.fromhex(key["bytes"])) for epoch, key in vault_keys}
    newest = keys.pop(decoded[-1].public.epoch)
    return Keychain(Keyring(decoded), newest, Secrets(keys, {}, KitSecret(bytes(16))), decoded[-1].vault_id)
