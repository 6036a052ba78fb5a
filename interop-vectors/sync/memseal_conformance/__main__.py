"""Test a server: `memseal-conformance URL`."""

import argparse
import secrets
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from memseal_conformance.calling import Origin
from memseal_conformance.cases import load
from memseal_conformance.forms import CaseInvalid
from memseal_conformance.report import as_json, as_text
from memseal_conformance.running import NotMemseal, Options, Outcome, Runner

_SEED_SIZE = 32


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases; return 0 if all passed, 1 if one failed, 2 if there is no server to test."""
    output: object = sys.stdout
    if isinstance(output, TextIOWrapper):
        output.reconfigure(errors="replace")  # an old terminal need not have every letter of a title
    options = _parser().parse_args(arguments)
    origin: Origin = options.url
    cases = [case for case in load() if case.id.startswith(tuple(options.only) or ("",))]
    if not cases:
        return _refuse(f"no case begins with {' or '.join(options.only)}")
    runner = Runner(origin, Options(options.identity, options.seed, options.large, options.vault_limit))
    try:
        runner.prepare()
        results = [runner.run(case) for case in cases]
    except (NotMemseal, CaseInvalid) as error:
        return _refuse(str(error))
    print(as_json(results, origin.identity, options.seed) if options.json else as_text(results))
    return 1 if any(result.outcome is Outcome.FAILED for result in results) else 0


def _refuse(sentence: str) -> int:
    sys.stderr.write(f"memseal-conformance: {sentence}\n")
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memseal-conformance",
        description="Test whether a server follows memseal's sync protocol. Every case founds a vault of its own, "
        "so the server may hold others; what is put there stays there.",
    )
    add = parser.add_argument
    add("url", type=_origin, help="where the server listens, like http://127.0.0.1:8420")
    add("--identity", help="the server's identity, if it is not the URL (behind a proxy)")
    add("--json", action="store_true", help="print one JSON document in the place of the table")
    add("--only", action="append", default=[], metavar="PREFIX", help="only the cases whose id begins so (repeatable)")
    add("--large", action="store_true", help="also the cases that send more than 64 MiB")
    add("--vault-limit", type=int, metavar="BYTES", help="how much a vault may hold there: tests what follows")
    add(
        "--seed",
        type=_seed,
        default=secrets.token_bytes(_SEED_SIZE),
        help="64 hex digits: the same keys as in the run that had it, for a server that is empty again",
    )
    return parser


def _origin(text: str) -> Origin:
    try:
        return Origin(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _seed(text: str) -> bytes:
    seed = bytes.fromhex(text)
    if len(seed) != _SEED_SIZE:
        raise argparse.ArgumentTypeError("it has 64 hex digits")
    return seed


if __name__ == "__main__":
    raise SystemExit(main())
