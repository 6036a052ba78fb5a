"""English words that say nothing about a topic."""

# Function words, the question words, and the pieces that a tokenizer leaves of contractions ("don't" gives
# "don" and "t"). A query of nothing but these has no lexical terms: otherwise "capital of France" would
# find every memory with an "of".
STOP_WORDS = frozenset(
    """
    a about above after again against ain all am an and any are aren as at be because been before being
    below between both but by can cannot could couldn d did didn do does doesn doing don done down during
    each either else ever few for from further had hadn has hasn have haven having he her here hers herself
    him himself his how however i if in into is isn it its itself just let ll m may me might mightn more
    most much must mustn my myself needn neither no nor not now o of off on once only or other our ours
    ourselves out over own per re s same shall shan she should shouldn so some such t than that the their
    theirs them themselves then there these they this those though through thus to too under until up upon
    us ve very was wasn we were weren what when where whether which while who whom whose why will with won
    would wouldn y yet you your yours yourself yourselves
    """.split()
)

# Words that only ask: beside a time they name no topic ("what happened last week?"). Elsewhere they count as others do.
ASKING = frozenset(
    """
    anything ask asked everything find found get got give happen happened happening happens know list made
    memories memory mention mentioned new note noted notes people recall remember said saw say saying seen
    show something talk talked talking tell thing things think thought told wrote written go going went gone
    been
    """.split()
)
