"""The vectors' pairings: codes, the exchange on the curve, and what both sides say."""

from dataclasses import replace

from memseal.errors import PairingInvalid
from memseal.format.keys import WrappingKey
from memseal.format.pairing_code import parse_pairing_code
from memseal.format.pake import Pake
from memseal.format.primitives import NotAuthentic, public_wrapping_key
from memseal.sync.pairing import Hello, Newcomer, Shower
from tests.interop.manifest import octets
from tests.interop.outcome import Given, Outcome, operation


@operation
def parse_pairing(text: str) -> Outcome:
    code = parse_pairing_code(text)
    return Outcome({"channel": code.channel, "secret": code.secret.reveal().hex(), "server": code.server})


@operation
def agree(side: str, code: str, random: Given, element: Given) -> Outcome:
    pake = Pake("shower" if side == "A" else "joiner", parse_pairing_code(code).password, octets(random))
    try:
        return Outcome({"own": pake.element.hex(), "key": pake.key(octets(element)).reveal().hex()})
    except NotAuthentic:
        raise PairingInvalid("not an element of the other side") from None


@operation
def open_hello(code: str, random: Given, answer: Given) -> Outcome:
    hello = Shower(parse_pairing_code(code), octets(random)).meet(octets(answer)).hello
    keys = {"sign": hello.sign.hex(), "wrap": hello.wrap.hex()}
    return Outcome({"device_id": hello.id.hex(), **keys, "device_name": hello.name})


@operation
def open_welcome(
    code: str, random: Given, opening: Given, answer: Given, welcome: Given, seed: Given, device_id: Given, sign: Given
) -> Outcome:
    wrapping_key = WrappingKey(octets(seed))
    hello = Hello(octets(device_id), octets(sign), public_wrapping_key(wrapping_key), "")
    answered = Newcomer(parse_pairing_code(code), octets(random)).answer(octets(opening), hello)
    # What it said is the vector's: sealing draws a salt.
    place, vault_key = replace(answered, message=octets(answer)).receive(octets(welcome), wrapping_key)
    return Outcome(
        {
            "vault": place.vault_id.hex(),
            "sign": place.sign.hex(),
            "version": place.version,
            "digest": place.digest.hex(),
            "epoch": place.epoch,
            "vault_key": vault_key.reveal().hex(),
        }
    )


@operation
def check_joined(code: str, random: Given, answer: Given, welcome: Given, joined: Given) -> Outcome:
    met = Shower(parse_pairing_code(code), octets(random)).meet(octets(answer))
    found = met.joined(octets(welcome), octets(joined))
    return Outcome({"version": found.version, "digest": found.digest.hex()})
