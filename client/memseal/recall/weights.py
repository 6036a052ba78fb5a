"""The constants of the ranking, with where each comes from."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Weights:
    """How much each sign of relevance counts; a weight of 0 switches its stage off.

    Chosen on LoCoMo (long two-person conversations, one memory per turn), among about ninety variants in
    all, so read its figures as slightly optimistic. The thread stages never touch a memory without a thread
    and position. The unit is a standard deviation of the scores among a query's candidates.
    """

    # Cosine against BM25, both as z-scores. Reciprocal rank fusion (k = 60) found less than BM25 alone there.
    dense: float = 0.7
    # What a turn gets of its neighbours' scores. The turn before counts most: an answer follows the turn that
    # names the topic. Without these, recall at 10 falls from 0.85 to 0.78; a third more of each finds as
    # much within 10, and less at the top.
    one_before: float = 0.45
    two_before: float = 0.2
    one_after: float = 0.2
    two_after: float = 0.1
    # Of the mean of the thread's three best scores: the rest of a conversation that is about the topic.
    thread: float = 0.3
    # Added to the turns of the one author whom the query names. Helps single-hop and multi-hop questions, and
    # costs a little on questions about what the other person said.
    author: float = 0.5
    # Added to memories of the time that the query names. Large, but no filter: a day is often told later.
    date: float = 2.0
    # Of the late interaction's z-score, among the candidates that it looked at.
    late: float = 0.0

    # Where the query asks what is so again and again, an affinity near to it comes before all else, by this times σ and
    # nearness: a memory that only has the words of the question can have any score.
    pattern: float = 1.0
    # Times the part that time has taken, from an episodic memory: so little that it decides between equals alone.
    fading: float = 0.05

    @property
    def kernel(self) -> tuple[tuple[int, float], ...]:
        """The neighbours that count: (distance in positions, weight)."""
        return ((-1, self.one_before), (-2, self.two_before), (1, self.one_after), (2, self.two_after))


# Where late interaction takes part: it is the better judge of meaning, and needs less of the neighbours. On the same
# conversations 1 and 3 in place of 2 find within 0.005 as much.
WITH_LATE = Weights(dense=0.4, one_before=0.3, two_before=0.2, one_after=0.15, two_after=0.1, late=2.0)

# What a version lends to the memory that replaced it, of its own scores: the question that the old wording answers is
# answered by the new one, and a memory that says the thing itself comes first.
LENT = 0.8

# Reach of the kernel, in positions: whoever gathers candidates brings the neighbours up to here.
REACH = 2
