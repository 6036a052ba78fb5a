"""The table in errors.md is what the code can say, no more and no less."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from memseal import errors
from memseal.errors import FormatError, MemsealError, RemoteRefused
from memseal_server import problems

ROOT = Path(__file__).parent.parent
CLIENT = ROOT / "client" / "memseal"
WHO_ACTS = {"caller", "user", "data", "disk", "network", "server"}

_ROW = re.compile(r"^\| `(\w+)` \| (.+) \| (\w+) \|$")


def table() -> list[tuple[str, str, str]]:
    """The rows of errors.md: code, meaning, who acts."""
    lines = (ROOT / "format-spec" / "errors.md").read_text(encoding="utf-8").splitlines()
    rows = [match.groups() for line in lines if (match := _ROW.match(line))]
    assert len(rows) == sum(line.startswith("| `") for line in lines)
    return [(code, meaning, who) for code, meaning, who in rows]


CODES = {code for code, _, _ in table()}


def classes() -> list[type[MemsealError]]:
    return [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, MemsealError)]


def own_codes() -> set[str]:
    """The codes that classes of errors.py give themselves."""
    return {kind.__dict__["code"] for kind in classes() if "code" in kind.__dict__} - {"memseal"}


def calls(*names: str) -> Iterator[tuple[str, int, str]]:
    """Each call of these names in the client whose first argument is a literal text: file, line, text."""
    for path in sorted(CLIENT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield str(path.relative_to(ROOT)), node.lineno, first.value


def client_codes() -> set[str]:
    return own_codes() | FormatError.CODES | {code for _, _, code in calls("Finding", "RemoteRefused")}


def test_table_names_each_code_once() -> None:
    listed = [code for code, _, _ in table()]
    assert len(listed) == len(set(listed)) > 100


def test_table_says_who_acts() -> None:
    assert {who for _, _, who in table()} == WHO_ACTS


def test_every_code_of_any_side_is_in_the_table() -> None:
    assert (client_codes() | set(problems._CODES)) - CODES == set()


def test_no_row_of_the_table_is_of_no_side() -> None:
    assert CODES - client_codes() - set(problems._CODES) == set()


def test_every_code_of_a_format_error_is_one_of_the_format() -> None:
    wrong = [place for *place, code in calls("FormatError") if code not in FormatError.CODES]
    assert wrong == []
    assert len(list(calls("FormatError"))) > 40


def test_every_code_of_the_format_is_said_somewhere() -> None:
    sources = "\n".join(
        path.read_text(encoding="utf-8") for path in CLIENT.rglob("*.py") if path != CLIENT / "errors.py"
    )
    assert {code for code in FormatError.CODES if f'"{code}"' not in sources} == set()


def test_every_class_is_raised_or_stands_for_a_group() -> None:
    sources = "\n".join(
        path.read_text(encoding="utf-8") for path in CLIENT.rglob("*.py") if path != CLIENT / "errors.py"
    )
    leaves = [kind for kind in classes() if not kind.__subclasses__()]
    assert [kind.__name__ for kind in leaves if kind.__name__ not in sources] == []


def test_every_class_but_the_groups_has_its_own_code() -> None:
    without = {kind.__name__ for kind in classes() if "code" not in kind.__dict__}
    groups = {"CallerError", "UserError", "DataError", "NetworkError", "ServerError"}
    assert without == groups | {"FormatError", "RemoteRefused"}
    assert len(own_codes()) == len([kind for kind in classes() if "code" in kind.__dict__]) - 1


GROUPS: dict[str, type] = {
    "caller": errors.CallerError,
    "user": errors.UserError,
    "data": errors.DataError,
    "disk": errors.DiskError,
    "network": errors.NetworkError,
    "server": errors.ServerError,
}


def test_every_class_stands_in_the_group_of_who_acts() -> None:
    who = {code: acts for code, _, acts in table()}
    misplaced = [
        kind.__name__ for kind in classes() if kind.code in who and not issubclass(kind, GROUPS[who[kind.code]])
    ]
    assert misplaced == []


def test_format_error_with_an_unknown_code_is_refused() -> None:
    with pytest.raises(ValueError, match="not a code"):
        FormatError("surprise", "…")


def test_refusal_carries_the_code_of_its_problem_document() -> None:
    refused = RemoteRefused("limit", 507, "full")
    assert (refused.code, refused.status, str(refused)) == ("limit", 507, "full")


def test_each_class_has_a_sentence_that_says_what_it_is() -> None:
    inherited = inspect.getdoc(Exception)
    assert [kind.__name__ for kind in classes() if (inspect.getdoc(kind) or inherited) == inherited] == []
