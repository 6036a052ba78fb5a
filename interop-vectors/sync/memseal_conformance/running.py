"""Run cases against a server."""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Any

from memseal_conformance.calling import Answer, Connection, Origin, Unreachable
from memseal_conformance.cases import Case, Step
from memseal_conformance.forms import CaseInvalid
from memseal_conformance.judging import faults, outcome
from memseal_conformance.making import FOUNDER, Maker
from memseal_conformance.signing import Request, Signing, content_digest, headers
from memseal_conformance.values import Source

_BASE = "/v1/vaults/{vault}/"
_MAX_RETRY_SECONDS = 60
_SIGN_FIELDS = frozenset(
    {"none", "with", "created", "nonce", "label", "identity", "components", "parameters", "request"}
)


class NotMemseal(Exception):
    """The cases cannot be run there; the message says why, and what to do."""


class Outcome(Enum):
    """What became of a case."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Result:
    """A case and what became of it; `sentence` says what is wrong or missing."""

    case: Case
    outcome: Outcome
    sentence: str = ""


@dataclass(frozen=True)
class Options:
    """How to run: `identity` in the place of the URL's origin, and what the server is known to allow."""

    identity: str | None = None
    seed: bytes = b""
    large: bool = False
    vault_limit: int | None = None


class Runner:
    """Runs cases against one server, each in a vault of its own."""

    def __init__(self, origin: Origin, options: Options) -> None:
        self._origin = origin
        self._options = options
        self._identity = options.identity or origin.identity
        self._ahead_seconds = 0  # the server's clock before ours

    def prepare(self) -> None:
        """See that a server which takes new vaults is there, and what its clock says; raise `NotMemseal` if not."""
        make = {"v1": {"first": FOUNDER}}
        maker = Maker(Source(self._options.seed, "before the cases"), make, None)
        steps = [Step("GET heads"), Step("PUT keyring/1", body="v1")]
        connection = self._origin.connect()
        try:
            first = self._answer(connection, steps[0], maker)
            if first.code == "clock":
                self._ahead_seconds = _time_of(first) - int(time.time())
                first = self._answer(connection, steps[0], maker)
            self._require_memseal(first)
            registered = self._answer(connection, steps[1], maker)
        except Unreachable as error:
            raise NotMemseal(f"no answer from {self._origin.identity}: {error}") from None
        finally:
            connection.close()
        if registered.code == "registration_closed":
            raise NotMemseal("the server takes no new vaults: open its registration for the run")

    def run(self, case: Case) -> Result:
        """Run one case."""
        if case.needs == "large" and not self._options.large:
            return Result(case, Outcome.SKIPPED, "it sends more than 64 MiB: ask for it with --large")
        if case.needs == "vault_limit" and self._options.vault_limit is None:
            return Result(case, Outcome.SKIPPED, "say with --vault-limit how many bytes a vault may have there")
        maker = Maker(Source(self._options.seed, case.id), case.make, self._options.vault_limit)
        connection = self._origin.connect()
        try:
            sentence = self._run_steps(connection, case.start, maker, "Before the case: ")
            sentence = sentence or self._run_steps(connection, case.steps, maker)
        except Unreachable as error:
            sentence = f"No answer: {error}."
        except (CaseInvalid, KeyError, IndexError, TypeError) as error:
            raise CaseInvalid(f"{case.id}: {error}") from error
        finally:
            connection.close()
        return Result(case, Outcome.FAILED if sentence else Outcome.PASSED, sentence)

    def _require_memseal(self, answer: Answer) -> None:
        if answer.code == "server_identity":
            named = (answer.document or {}).get("identities", [])
            raise NotMemseal(f"the server goes by another name: say one of {named} with --identity")
        if answer.status == HTTPStatus.OK:
            raise NotMemseal("the vaults of this seed are there already: run with another, or on an empty server")
        if answer.code != "vault_unknown":
            kind = answer.headers.get("content-type", "no type")
            raise NotMemseal(
                f"no memseal server is at {self._origin.identity}: a signed request for the heads of a vault that is "
                f"not there should be answered with 404 vault_unknown, and was with {outcome(answer)} ({kind})"
            )

    def _run_steps(self, connection: Connection, steps: Sequence[Step], maker: Maker, before: str = "") -> str:
        for step in steps:
            sentence = self._run_step(connection, step, maker)
            if sentence:
                return before + sentence
        return ""

    def _run_step(self, connection: Connection, step: Step, maker: Maker) -> str:
        if step.hang_up is not None:
            self._begin(connection, step, maker)
            connection.close()
            return ""
        began = time.monotonic()
        if step.meanwhile:
            self._begin(connection, step, maker)
            with closing(self._origin.connect()) as other:
                sentence = self._run_steps(other, step.meanwhile, maker)
            if sentence:
                return sentence
            answer = connection.finish()
        else:
            answer = self._answer(connection, step, maker)
        found = list(faults(step, answer, time.monotonic() - began, maker))
        if found:
            return f"{_words(step)} {'; it '.join(found)}."
        maker.saved.update({name: answer.headers[header.lower()] for header, name in (step.save or {}).items()})
        return ""

    def _answer(self, connection: Connection, step: Step, maker: Maker) -> Answer:
        self._begin(connection, step, maker)
        answer = connection.finish()
        while answer.code == "rate" and answer.headers.get("retry-after", "").isdecimal():
            # The one answer that says nothing of the request: it is sent again, signed anew.
            time.sleep(min(int(answer.headers["retry-after"]), _MAX_RETRY_SECONDS))
            self._begin(connection, step, maker)
            answer = connection.finish()
        return answer

    def _begin(self, connection: Connection, step: Step, maker: Maker) -> None:
        method, target, body = _sent(step, maker)
        signed = self._signed(step, maker, Request(method, *_split(target), body))
        literal = {name: maker.filled(value) for name, value in (step.headers or {}).items()}
        sent = body if step.sent is None else maker.octets(step.sent)
        if step.hang_up is not None and sent is not None:
            literal["Content-Length"] = str(len(sent))
            sent = sent[: step.hang_up]
        connection.begin(method, target, {**signed, **literal}, sent)

    def _signed(self, step: Step, maker: Maker, request: Request) -> dict[str, str]:
        how: dict[str, Any] = dict(step.sign or {})
        if not how.keys() <= _SIGN_FIELDS:
            raise CaseInvalid(f"a way to sign that this runner does not know: {', '.join(how)}")
        if how.pop("none", False):
            digest = {} if request.body is None else {"Content-Digest": content_digest(request.body)}
            return {"Memseal-Server": self._identity, **digest}
        if "request" in how:
            method, _, target = how.pop("request").partition(" ")
            request = Request(method, *_split(_full(target, maker)), request.body)
        signer = how.pop("with", step.key)
        created = int(time.time()) + self._ahead_seconds + how.pop("created", 0)
        nonce = how.pop("nonce", None)
        signing = Signing(
            maker.key(step.key),
            maker.key(signer),
            how.pop("identity", self._identity),
            created,
            nonce and maker.nonce(nonce),
            **how,
        )
        return headers(request, signing)


def _sent(step: Step, maker: Maker) -> tuple[str, str, bytes | None]:
    method, _, target = step.send.partition(" ")
    return method, _full(target, maker), None if step.body is None else maker.octets(step.body)


def _full(target: str, maker: Maker) -> str:
    return maker.filled(target if target.startswith("/") else _BASE + target)


def _split(target: str) -> tuple[str, str]:
    path, _, query = target.partition("?")
    return path, query


def _words(step: Step) -> str:
    """Say what was sent, with the names of the case."""
    body = "" if step.body is None else f" with {step.body if isinstance(step.body, str) else 'a body'}"
    return f"{step.send}{body}, signed by {step.key},"


def _time_of(answer: Answer) -> int:
    now = (answer.document or {}).get("now")
    return now if type(now) is int else int(time.time())
