"""What is relevant to a query and why: pure decisions, from arrays to a ranking."""

from memseal.recall.candidates import Candidates
from memseal.recall.query import Query, parse_query
from memseal.recall.rank import Late, Ranked, Why, rank
from memseal.recall.text import index_text
from memseal.recall.weights import Weights

__all__ = ["Candidates", "Late", "Query", "Ranked", "Weights", "Why", "index_text", "parse_query", "rank"]
