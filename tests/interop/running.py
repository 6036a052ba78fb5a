"""All operations of the vectors, as this implementation does them."""

from tests.interop import run_containers, run_keys, run_rounds, run_states, run_vaults
from tests.interop.outcome import OPERATIONS

RUNNERS = (run_containers, run_keys, run_states, run_vaults, run_rounds)

__all__ = ["OPERATIONS", "RUNNERS"]
