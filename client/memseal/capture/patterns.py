"""Patterns of durable statements in the first person, and of what only looks like one (lifecycle.md §6)."""

import re
from typing import Final


def _any(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{words})", re.IGNORECASE | re.VERBOSE)


# What people say before they say something, and is no part of it.
OPENING: Final = _any(
    r"""^(?:(?:oh|well|ok(?:ay)?|hey|hi|hello|yes|yeah|no|so|also|and|but|btw|by\ the\ way|fyi|for\ the\ record
    |for\ context|just\ so\ you\ know|as\ you\ know|anyway|actually|honestly|personally
    |sure|thanks|thank\ you|great|right|look|listen|übrigens|also|ja|nein|au\ fait|oui|por\ cierto
    |sí)\b[\s,:;.!–-]*)+"""
)
EXPLICIT: Final = _any(
    r"""^(?:please\s+)?(?:(?:can|could)\s+you\s+)?(?:(?:always\s+)?(?:remember|note|keep\s+in\ mind)|(?:don'?t
    |never)\s+forget|make\s+a\s+note|for\s+(?:future\s+reference|next\s+time)|merk(?:e)?\s+dir|denk\s+daran
    |souviens-toi|retiens|recuerda|ten\s+en\s+cuenta)
    \s*(?:that|this|dass|que)?\s*[,:]?\s+"""
)
# What is said so does not last, is not known, or is not so.
PASSING: Final = _any(
    r"""\b(?:if|unless|whether|wish(?:ed)?|maybe|perhaps|probably|might|would|could|should|suppose|imagine
    |hypothetically|pretend|let'?s\s+say|as\s+if|role[- ]?play|not\s+sure|i\s+guess|i\s+wonder|i\s+doubt
    |right\s+now|at\s+the\s+moment|today|tonight|tomorrow|yesterday|this\s+(?:morning|afternoon|evening|week
    |time)|just\s+now|in\s+a\s+(?:minute|hurry|rush)|for\s+now|temporarily|recently
    |wenn|falls|vielleicht|würde|könnte|gerade|heute|morgen|gestern|momentan
    |peut-être|aujourd'?hui|demain|hier|en\s+ce\s+moment|si\s+j
    |quizás?|tal\s+vez|hoy|mañana|ayer|ahora|si\s+(?:yo|me|tu))\b"""
)
STATE: Final = _any(
    r"""^i(?:\s+am|'m)\s+(?:so\s+|very\s+|really\s+|a\s+bit\s+|just\s+|still\s+|also\s+|not\s+)*(?:sorry|tired
    |hungry|bored|confused|stuck|fine|good|ok(?:ay)?|happy|sad|curious|sure|afraid|glad|done|ready|back|here|late
    |busy|trying|looking|going|getting|having|wondering|thinking
    |writing|working\s+on|asking|interested\s+in\s+(?:knowing|hearing)|about\s+to|seeing|using\s+this
    |reading\s+(?:this|that)|doing|telling|talking|testing|sick\s+of|excited|worried|unable|able)\b
    |^i(?:\s+have|'ve)\s+(?:a\s+(?:question|problem|bug|doubt|meeting|feeling|request|favou?r)|an\s+(?:error
    |issue|idea|appointment)|no\s+(?:idea|clue)|to\s+(?:go|run|leave|admit|say)|been\s+(?:trying|thinking
    |looking)|tried|got\s+(?:a\s+question|to\s+go)|attached|pasted|read)\b
    |^i\s+(?:like|love|prefer|hate)\s+(?:it|this|that|the\s+(?:idea|first|second|last|way)|your|how|what\s+you
    |to\s+(?:know|see|hear))\b
    |^i\s+(?:need|want|think|thought|believe|hope|mean|see|get|understand|know|agree|meant|asked|said|told|tried
    |saw|read|guess|feel|just|can'?t\s+(?:seem|find|figure|get)|use\s+(?:this|it))\b"""
)
STATEMENTS: Final = tuple(
    (kind, _any(pattern))
    for kind, pattern in (
        (
            "preference",
            r"""^(?:i|we)\s+(?:really\s+|absolutely\s+|much\s+|always\s+|usually\s+|generally\s+|strongly\s+
            |do\s+not\s+|don'?t\s+|can'?t\s+|cannot\s+|never\s+)*
            (?:like|love|adore|enjoy|prefer|hate|dislike|detest|stand|bear|avoid|favou?r|would\s+rather
            |eat\s+(?:no|only)|drink\s+(?:no|only|my)|take\s+my\s+(?:coffee|tea))\b
            |^my\s+(?:favou?rite|preferred|least\s+favou?rite)\b
            |^i(?:\s+am|'m)\s+(?:(?:a\s+)?(?:big|huge|great)\s+fan\s+of|fond\s+of|into|keen\s+on
            |not\s+(?:a\s+fan\s+of|into|keen\s+on))\b
            |^ich\s+(?:mag|liebe|hasse|bevorzuge|trinke\s+(?:kein|nur|am\s+liebsten)|esse\s+(?:kein|nur
            |am\s+liebsten))|^mein\w*\s+lieblings
            |^j'(?:aime|adore|évite)|^je\s+(?:préfère|déteste|n'aime\s+pas)|^mon\s+\w+\s+préféré
            |^(?:no\s+)?me\s+(?:gusta|encanta|molesta)|^(?:prefiero|odio|detesto)\b|^mi\s+\w+\s+favorit[oa]""",
        ),
        (
            "hazard",
            r"""^i(?:\s+am|'m)\s+(?:\w+\s+)?(?:allergic|intolerant)|^i\s+(?:react\s+badly|get\s+a\s+rash)
            |^ich\s+(?:bin\s+allergisch|vertrage\s+kein)|^je\s+suis\s+allergique|^(?:yo\s+)?soy\s+alérgic[oa]""",
        ),
        (
            "decision",
            r"""^(?:i|we)(?:\s+have|'ve)?\s+(?:finally\s+|now\s+|already\s+)*(?:decided|chosen|chose|settled\s+on
            |agreed\s+(?:to|on|that)|made\s+up\s+(?:my|our)\s+mind|committed\s+to|opted\s+for)\b
            |^(?:ich\s+habe|wir\s+haben)\b.*\b(?:entschieden|beschlossen)|^(?:j'ai|nous\s+avons)\s+décidé|^(?:he
            |hemos)\s+decidido""",
        ),
        (
            "fact",
            r"""^(?:i|we)\s+(?:currently\s+|now\s+|still\s+|always\s+|usually\s+|never\s+|only\s+|also\s+
            |mostly\s+|both\s+|grew\s+up\b)*
            (?:live|work|study|teach|speak|play|drive|own|run|ride|come\s+from|moved\s+(?:to|from|here|in)
            |grew\s+up|was\s+born|were\s+born|went\s+to\s+(?:school|university|college)|graduated|retired
            |volunteer|commute|collect|belong|practi[cs]e|cook|bake
            |earn|owe|take|suffer\s+from|garden|paint|knit|sing|swim|cycle|hike|meditate|use|write\s+(?:in|my|all)|sleep|wake|get\s+up
            |go\s+(?:to\s+(?:bed|the\s+gym|church)|running|swimming|climbing)|eat|drink|smoke|wear|raise|keep
            |train|coach|manage|lead|read\s+(?:mostly|only|a\s+lot))\b
            |^(?:i|we)(?:\s+have|'ve\s+got|\s+have\s+got)\s+(?:(?:a|an|one|two|three|four|five|six|no|\d+|several
            |many|twin|my\s+own|older|younger)\b)
            |^(?:i|we)(?:\s+am|'m|\s+are|'re)\s+(?:not\s+)?(?:an?\s+\w|the\s+(?:eldest|youngest|oldest|only|owner
            |head|lead)|from\s|born\s|based\s+in|married|single|divorced|engaged|widowed|retired|vegan|vegetarian
            |left-handed|right-handed|colou?r-?blind|bilingual|\d{1,3}\s+years|called\s|named\s|originally\s)
            |^my\s+(?:\w+\s+){0,3}?(?:is|are|was|were|lives?|works?|has|have|goes|speaks?|loves?|hates?|likes?
            |plays?|studies|moved|'?s\s+name)\b
            |^my\s+(?:name|birthday|wife|husband|partner|daughter|son|mother|father|sister|brother|dog|cat|boss
            |team|car|house)(?:'s)?\s+(?:name\s+)?(?:is|are)\b
            |^our\s+(?:\w+\s+){0,3}?(?:is|are|was|were|lives?|has|have)\b|^(?:please\s+)?call\s+me\s+\w+
            |^ich\s+(?:bin|wohne|lebe|arbeite|heiße|komme\s+aus|spreche|habe\s+(?:ein|zwei|drei|\d|kein)|spiele
            |studiere|fahre)\b|^mein\w?\s+\w+\s+(?:ist|heißt|sind|wohnt|arbeitet)\b
            |^je\s+(?:suis|vis|habite|travaille|parle|joue|viens\s+de|m'appelle)|^j'ai\s+(?:un|une|deux|trois|\d)
            |^(?:mon|ma|mes)\s+\w+\s+(?:est|sont|s'appelle|habite|travaille)\b
            |^(?:yo\s+)?(?:soy|vivo|trabajo|hablo|juego|estudio|me\s+llamo|tengo\s+(?:un|una|dos|tres|\d))\b
            |^mis?\s+\w+\s+(?:es|son|se\s+llama|vive|trabaja)\b""",
        ),
    )
)
# "My question is …", "my code has …": about the talk, not about the person.
TALK: Final = _any(
    r"""^my\s+(?:\w+\s+)?(?:question|problem|issue|point|guess|code|script|program|query|error|bug|request
    |concern|understanding|idea|thinking|mistake|bad|screen|internet|function|file|plan\s+for)\b"""
)
