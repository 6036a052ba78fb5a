"""Run the command line: `python -m memseal`."""

from memseal.surfaces.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
