"""Imports of the server point down, and each library has one importer."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent.parent / "server" / "memseal_server"

# From the top; a module imports only from lines below its own.
LAYERS = [
    ["__main__"],
    ["serving", "commands"],
    ["config", "listening"],
    ["app"],
    ["pairing", "operating"],
    ["admission", "answering"],
    ["reading"],
    ["vaults"],
    ["streams", "floors"],
    ["limits"],
    ["objects", "access", "auth", "relay"],
    ["waiting", "rates", "invitations"],
    ["newest", "blobs.opening", "observing", "checking"],
    ["keys"],
    ["segments", "checkpoints", "keyring", "metrics", "openapi", "blobs.sqlite", "blobs.bucket", "blobs.probing"],
    [
        "versions",
        "problems",
        "blobs.worker",
        "blobs.files",
        "blobs.s3",
        "logs",
        "recent",
        "sharing",
        "routes",
        "addresses",
    ],
    ["container", "packed", "blobs", "bodies"],
    [""],  # the package itself: its version
]
IMPORTERS = {
    "boto3": {"blobs.s3"},
    "botocore": {"blobs.s3"},
    "aiohttp": {"admission", "answering", "app", "listening", "operating", "pairing", "reading"},
    "http_message_signatures": {"auth"},
    "cryptography": {"auth", "keyring"},
    "prometheus_client": {"metrics"},
    "filelock": {"blobs.files", "blobs.sqlite"},
    "sqlite3": {"blobs.sqlite", "blobs.worker"},
}
# They decide from values alone.
PURE = [
    "access",
    "addresses",
    "bodies",
    "checkpoints",
    "container",
    "keyring",
    "packed",
    "segments",
    "problems",
    "routes",
    "versions",
]


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if is_module(name) else node.module for name in names}
    return found


def is_module(name: str) -> bool:
    path = PACKAGE.parent / Path(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir()


MODULES = {name_of(path): imports_of(path) for path in PACKAGE.rglob("*.py")}
LEVELS = {name: level for level, names in enumerate(LAYERS) for name in names}


@pytest.mark.parametrize("name", MODULES, ids=lambda name: name or "memseal_server")
def test_module_imports_only_from_below(name: str) -> None:
    own = {item for item in MODULES[name] if item.partition(".")[0] == "memseal_server"}
    imported = {item.removeprefix("memseal_server").removeprefix(".") for item in own}
    assert {item for item in imported if LEVELS[item] <= LEVELS[name]} == set()


@pytest.mark.parametrize("library", IMPORTERS)
def test_library_has_its_importers_and_no_others(library: str) -> None:
    importers = {name for name, imported in MODULES.items() if library in {item.partition(".")[0] for item in imported}}
    assert importers == IMPORTERS[library]


@pytest.mark.parametrize("name", PURE)
def test_rules_touch_no_disk_network_or_clock(name: str) -> None:
    outside = {"asyncio", "time", "os", "pathlib", "logging", "random", "secrets", "socket", "sqlite3"}
    assert not outside & {item.partition(".")[0] for item in MODULES[name]}
