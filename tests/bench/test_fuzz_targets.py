"""Every target of the fuzzer still reaches what it is for: it reads what is sound, and refuses the rest with a type."""

import contextlib
from random import Random

import pytest

from tests.bench.fuzzing.target import Target
from tests.bench.fuzzing.worker import targets

CHANGED = 40  # inputs: enough to see that the target's own changes work


def taken(target: Target, content: bytes) -> bool:
    """Whether an input is read; an error that is no refusal is raised."""
    with contextlib.suppress(*target.refusals):
        target.run(content)
        return True
    return False


@pytest.mark.parametrize("name", list(targets()))
def test_target_reads_a_sound_input_and_ends_in_no_other_error(name: str) -> None:
    target: Target = targets()[name]
    seeds = list(target.seeds())
    sound = [taken(target, seed) for seed in seeds]
    assert any(sound)
    random = Random(name)
    for _ in range(CHANGED if target.mutate is not None else 0):
        assert target.mutate is not None
        taken(target, target.mutate(random.choice(seeds), random))
