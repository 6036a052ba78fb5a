"""The OpenAPI document is valid, and what it says of the routes is what they do."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from openapi_spec_validator import OpenAPIV31SpecValidator
from requests.auth import AuthBase
from schemathesis.specs.openapi.checks import positive_data_acceptance

from memseal_server import openapi, problems
from memseal_server.routes import ROUTES, Route
from tests.server.building import Log, Signing, first_version, manifest, object_id, part, private_key
from tests.server.calling import Caller
from tests.server.running import Running, end_all, start

SPEC = Path(__file__).parent.parent.parent / "format-spec" / "sync-protocol.md"
EXAMPLES = 10

FIRST = first_version()
LOG = Log(FIRST.vault, private_key("alice"), 1, FIRST.digest()).append(3)


def test_document_is_valid_openapi() -> None:
    OpenAPIV31SpecValidator(openapi.document(ROUTES)).validate()


async def test_server_serves_the_document_of_its_own_routes(caller: Caller) -> None:
    answer = await caller.send_as_is("GET", "/openapi.json")
    assert answer.json == openapi.document(ROUTES)
    assert answer.headers["Content-Type"].startswith("application/json")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_every_route_is_answered_by_a_handler(caller: Caller, route: Route) -> None:
    target = re.sub(r"\{(\w+)\}", lambda found: {"vault": "0" * 32}.get(found[1], "00000"), route.path)
    answer = await caller.send_as_is(route.method, target)
    assert answer.status != 405
    assert answer.status == 200 or answer.outcome[1] in route.all_codes


def test_every_code_of_a_problem_belongs_to_a_route_or_to_none_of_them() -> None:
    of_routes = frozenset[str]().union(*(route.all_codes for route in ROUTES))
    assert set(problems._CODES) - of_routes == {"route_unknown", "method_unknown"}


def test_every_route_stands_in_the_protocol() -> None:
    spec = SPEC.read_text(encoding="utf-8")
    for route in ROUTES:
        path = route.path.replace("{number}", "{n}")
        shown = {path, path.replace("/v1/vaults/{vault}", "…")}
        assert any(f"{route.method} {each}" in spec for each in shown), f"{route.method} {path}"


# Against a real server, with whatever a generator comes up with.


@dataclass
class Signed(AuthBase):
    """Signs each request as the vault's device."""

    origin: str

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        parts = urlsplit(str(request.url))
        body = request.body.encode() if isinstance(request.body, str) else cast("bytes | None", request.body)
        signing = Signing(
            private_key("alice"), self.origin, str(request.method), parts.path, parts.query, body=body or None
        )
        request.headers.update(signing.headers())
        return request


def seeds() -> list[tuple[str, bytes]]:
    vault = f"/v1/vaults/{FIRST.vault.hex()}"
    return [
        (f"{vault}/keyring/1", FIRST.build()),
        (f"{vault}/logs/{LOG.stream.hex()}/0", LOG.segment(0, 3)),
        (f"{vault}/parts/{object_id('a').hex()}", part(FIRST.vault, "a")),
        (f"{vault}/checkpoints/{object_id('one').hex()}", manifest(FIRST.vault, "one")),
    ]


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server process whose store has a vault, a log and a checkpoint."""

    async def begin() -> Running:
        return await start(tmp_path_factory.mktemp("server") / "store", "--log-level", "error")

    with asyncio.Runner() as runner:
        server = runner.run(begin())
        for path, body in seeds():
            assert (
                requests.put(server.origin + path, data=body, auth=Signed(server.origin), timeout=30).status_code == 201
            )
        yield server.origin
        runner.run(end_all())


def unsigned_document() -> dict[str, Any]:
    """The document without what would let the generator leave out, or break, the signatures made above."""
    document = openapi.document(ROUTES)
    for operations in document["paths"].values():
        for operation in operations.values():
            operation.pop("security", None)
    return document


CASES = [
    pytest.param(route, mode, id=f"{route.method} {route.path} {mode.value}")
    for route in ROUTES
    for mode in schemathesis.GenerationMode
    if mode is schemathesis.GenerationMode.POSITIVE or "{" in route.path  # else there is nothing to get wrong
]


@pytest.mark.parametrize(("route", "mode"), CASES)
def test_server_answers_every_request_as_the_document_says(
    origin: str, route: Route, mode: schemathesis.GenerationMode
) -> None:
    schema = schemathesis.openapi.from_dict(unsigned_document())
    schema.config.update(base_url=origin)
    name = "a" if "parts" in route.path else "one"
    known = {"stream": LOG.stream.hex(), "id": object_id(name).hex()}

    @given(case=schema[route.path][route.method].as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],  # shrinking costs more than reading an example
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    def answers(case: schemathesis.Case[Any]) -> None:
        if re.fullmatch("[0-8][0-9a-f]{31}", str(case.path_parameters.get("vault"))):
            case.path_parameters |= {"vault": FIRST.vault.hex()}
            case.path_parameters |= {name: known[name] for name in case.path_parameters.keys() & known.keys()}
        # What bodies have to be, and where logs end, OpenAPI cannot say: a valid request may well be refused.
        accepts = not route.has_body and "log_range" not in route.codes
        excluded: Any = [] if accepts else [positive_data_acceptance]
        case.call_and_validate(auth=Signed(origin), excluded_checks=excluded)

    answers()
