"""How much a run tries: `pytest --hypothesis-profile=explore` is for a night."""

from hypothesis import settings

THOROUGH = settings().max_examples > settings.get_profile("ci").max_examples
