"""What the command line says of a memory that was found by the words of a version that it replaced."""

from tests.surfaces.conftest import Command


def test_hit_by_an_earlier_version_says_so(cli: Command) -> None:
    old = cli("remember", "The spare key lies under the blue pot", "--json").document["memory"]["id"]
    cli("supersede", old, "Lift the crimson planter beside the stairs")
    (hit,) = cli("recall", "where is the spare key", "--json").document["hits"]
    assert (hit["memory"]["supersedes"], hit["why"]["earlier"]) == (old, True)
    assert "an earlier version of it" in cli("recall", "where is the spare key").out
    assert "an earlier version of it" not in cli("recall", "crimson planter").out
