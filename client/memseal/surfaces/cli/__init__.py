"""The command line: `memseal`."""

import sys
from collections.abc import Sequence

_FROM_THE_EXTRA = frozenset(("platformdirs", "rich", "typer"))
_USAGE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `memseal --help` lists both."""
    try:
        # Imported here: a bare `pip install memseal` also makes the command, and should say what it lacks.
        from memseal.surfaces.cli.application import run
    except ModuleNotFoundError as error:
        if error.name not in _FROM_THE_EXTRA:
            raise
        sys.stderr.write(f"memseal: the command line needs {error.name}: pip install 'memseal[cli]'\n")
        return _USAGE
    return run(sys.argv[1:] if arguments is None else arguments)
