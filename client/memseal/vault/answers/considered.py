"""What a question chose from, for its trace."""

from collections.abc import Collection

from memseal.format.trace import CANDIDATES_MOST, Candidate
from memseal.index.state import VaultState
from memseal.recall.rank import Scored
from memseal.vault.answers.searching import Found, Hit


def considered(state: VaultState, found: Found) -> tuple[Candidate, ...]:
    """Return what was scored for a question, best first, those under the floor too; needs the vault to be open."""
    best = found.weighed.best(CANDIDATES_MOST)
    ids = state.ids_of([each.number for each in best])
    served = {hit.memory.id for hit in found.hits}
    listed = [_candidate(each, ids[each.number].hex(), served) for each in best if each.number in ids]
    known = {each.memory for each in listed}
    # More than are listed were asked for, or one of the time that the query names took a place.
    return (*listed, *(_of_hit(hit) for hit in found.hits if hit.memory.id not in known))


def _candidate(each: Scored, memory: str, served: Collection[str]) -> Candidate:
    return Candidate(memory, each.score, each.lexical, each.cosine, each.related, memory in served)


def _of_hit(hit: Hit) -> Candidate:
    return Candidate(hit.memory.id, hit.score, hit.why.lexical, hit.why.cosine, True, True)
