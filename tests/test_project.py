"""What the project's own files say about each other."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import memseal

ROOT = Path(__file__).parent.parent
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT: dict[str, Any] = PYPROJECT["project"]
README = ROOT / "README.md"


def _direct_requirements() -> list[Requirement]:
    extras = PROJECT["optional-dependencies"].values()
    written = {*PROJECT["dependencies"], *(line for extra in extras for line in extra)}
    requirements = map(Requirement, sorted(written))
    return [requirement for requirement in requirements if requirement.name != PROJECT["name"]]


def _pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = (line.split("==") for line in lines if not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pinned}


def test_version_of_the_package_is_that_of_the_distribution() -> None:
    assert memseal.__version__ == PROJECT["version"]


@pytest.mark.parametrize("package", PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
def test_package_tells_type_checkers_that_it_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


@pytest.mark.parametrize("requirement", _direct_requirements(), ids=str)
def test_requirement_is_pinned_within_its_bounds(requirement: Requirement) -> None:
    assert requirement.specifier.contains(_pins()[canonicalize_name(requirement.name)])


def test_extra_all_takes_in_every_extra_but_dev() -> None:
    extras = set(PROJECT["optional-dependencies"])
    [everything] = map(Requirement, PROJECT["optional-dependencies"]["all"])
    assert everything.extras == extras - {"all", "dev", "bench", "fuzz"}


@pytest.mark.skipif(not README.exists(), reason="README.md is not written yet")
@pytest.mark.parametrize("target", ["demo", "test"])
def test_command_of_the_readme_is_a_target_of_make(target: str) -> None:
    assert f"make {target}" in README.read_text(encoding="utf-8")
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.skipif(not README.exists(), reason="README.md is not written yet")
def test_readme_is_the_page_of_the_distribution() -> None:
    assert PROJECT["readme"] == README.name
