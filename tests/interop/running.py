"""All operations of the vectors, as this implementation does them."""

from tests.interop import run_containers, run_kept, run_keys, run_pairing, run_rounds, run_states, run_vaults
from tests.interop.outcome import OPERATIONS

RUNNERS = (run_containers, run_keys, run_states, run_vaults, run_kept, run_rounds, run_pairing)

__all__ = ["OPERATIONS", "RUNNERS"]
