"""Describe the routes as an OpenAPI 3.1 document, from the table that also registers them."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from memseal_server import __version__
from memseal_server.problems import PROBLEM_TYPE, status_of
from memseal_server.routes import Route

_PROBLEM_MEDIA = "application/problem+json"
_ID: Mapping[str, Any] = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_NUMBER: Mapping[str, Any] = {"type": "integer", "minimum": 0, "maximum": 9_999_999_999}
_PATH_SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "vault": _ID,
    "stream": _ID,
    "id": _ID,
    "seq": _NUMBER,
    "number": _NUMBER,
    "channel": {"type": "string", "pattern": "^[0-9]{5}$"},
}
_NAME = re.compile(r"\{(\w+)\}")
_SIGNATURE = (
    "RFC 9421 with Ed25519, over `@method`, `@path`, `@query`, `memseal-server` and, with a body, `content-digest`;"
    " the headers are `Signature-Input`, `Signature`, `Memseal-Server` and `Content-Digest`. See the sync protocol, §3."
)
_HEADS: Mapping[str, Any] = {
    "type": "object",
    "required": ["keyring", "floor", "logs"],
    "properties": {
        "keyring": {
            "type": "object",
            "required": ["version", "digest", "whole"],
            "properties": {
                "version": {"type": "integer", "minimum": 1},
                "digest": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                "whole": {"type": "boolean"},
            },
        },
        "floor": {
            "type": ["object", "null"],
            "required": ["checkpoint", "whole"],
            "properties": {"checkpoint": dict(_ID), "whole": {"type": "boolean"}},
        },
        "logs": {
            "type": "object",
            "propertyNames": dict(_ID),
            "additionalProperties": {"$ref": "#/components/schemas/End"},
        },
    },
}
_END: Mapping[str, Any] = {
    "type": "object",
    "required": ["length", "records", "chain", "next"],
    "properties": {
        "length": {"type": "integer", "minimum": 0},
        "records": {"type": "integer", "minimum": 0},
        "chain": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "next": {"type": "integer", "minimum": 0},
    },
}
_PROBLEM: Mapping[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string", "pattern": f"^{PROBLEM_TYPE}[a-z_]+$"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
    },
}


def document(routes: tuple[Route, ...]) -> dict[str, Any]:
    """Return the document of these routes."""
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "memseal sync server",
            "version": __version__,
            "description": "It stores what it cannot read. Every rule is in the sync protocol of memseal.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "."}],  # wherever this document was fetched from
        "paths": paths,
        "components": {
            "schemas": {"Heads": dict(_HEADS), "End": dict(_END), "Problem": dict(_PROBLEM)},
            "securitySchemes": {
                "signature": {"type": "apiKey", "in": "header", "name": "Signature", "description": _SIGNATURE}
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": [*_path_parameters(route), *_query_parameters(route), *_header_parameters(route)],
        "responses": {**_answers(route), **_refusals(route)},
    }
    if route.has_body:
        content = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
        operation["requestBody"] = {"required": True, "content": content}
    if route.signed:
        operation["security"] = [{"signature": []}]
    return operation


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _path_schema(route, name)}
        for name in _NAME.findall(route.path)
    ]


def _path_schema(route: Route, name: str) -> dict[str, Any]:
    schema = dict(_PATH_SCHEMAS[name])
    if name == "number" and "/pairing/" in route.path:
        return {**schema, "minimum": 1, "maximum": 3}
    return {"oneOf": [schema, {"const": "latest"}]} if route.name == "get_version" and name == "number" else schema


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": each.name, "in": "query", "description": each.meaning, "schema": dict(each.schema)}
        for each in route.query
    ]


def _header_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "header", "description": meaning, "schema": {"type": "string"}}
        for name, meaning in route.headers.items()
    ]


def _answers(route: Route) -> dict[str, Any]:
    return {str(status): _answer(route, status, media) for status, media in route.answers.items()}


def _answer(route: Route, status: int, media: str | None) -> dict[str, Any]:
    described: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if media == "application/json":
        schema = {"$ref": "#/components/schemas/Heads"} if route.name == "get_heads" else {"type": "object"}
        described["content"] = {media: {"schema": schema}}
    elif media is not None:
        described["content"] = {media: {}}
    return described


def _refusals(route: Route) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for code in sorted(route.all_codes):
        by_status.setdefault(status_of(code), []).append(code)
    return {str(status): _refusal(codes) for status, codes in sorted(by_status.items())}


def _refusal(codes: list[str]) -> dict[str, Any]:
    schema = {"allOf": [{"$ref": "#/components/schemas/Problem"}, {"properties": {"code": {"enum": codes}}}]}
    return {"description": ", ".join(codes), "content": {_PROBLEM_MEDIA: {"schema": schema}}}
