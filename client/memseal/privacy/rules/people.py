"""Names of people, found by known first names, titles, the words before them, and how names are built."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from memseal.privacy.lexicon import NOT_NAMES, Lexicon
from memseal.privacy.spans import Span

TITLE: Final = (
    r"(?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof|Professor|Doctor|Sir|Dame|Lord|Lady|Rev|Reverend|Fr|Father"
    r"|Sister|Hon|Judge|Justice|Captain|Capt|Sgt|Lt|Col|Gen|Maj"
    r"|Herr|Frau|Señora?|Sra?|Monsieur|Madame|Mme|Mlle|Sig|Signora?|Dott|Ing|Aunt|Uncle|Auntie"
    r"|Grandma|Grandpa|Nurse|Coach|President|Senator|Sheikh|Imam|Rabbi)"
)
_WORD: Final = re.compile(r"(?<![\w@])[^\W\d_]+(?:['’-](?![sS]\b)[^\W\d_]+)*(?![\w@])")
_TITLE: Final = re.compile(rf"(?:\b{TITLE}\b\.?\s+)+$", re.IGNORECASE)
_SUFFIX: Final = re.compile(r",?\s+(?:Jr|Sr|jr|sr|II|III|IV|Esq|PhD|Ph\.D|MD|M\.D|DDS|MBA|JD|RN)\b\.?")
_PARTICLES: Final = frozenset(
    """
    da de del della di do dos das du la le van von der den ten ter zu zur y e al el bin ibn ben bint abu ní ni nic mac
    mc o st san
    """.split()
)
_GAP: Final = re.compile(r"\.? ?\s?|\. ?")
# What stands before a name and nothing else; where no letter case helps, only the strong ones.
_CUES: Final = re.compile(
    r"""(?:\b(?:(?:first|last|full|maiden|middle|nick|sur|given|family|user|customer|patient|contact
    |account[ ]?holder|employee)[ _-]?name|name)s?
    (?:["']?\s*(?:is|was|[:=]|=>)\s*["']?|\s+to\s+|\s+(?:on|in)\s+the\s+(?:account|card)\s+is\s+)
    |\b(?:named|called|known\s+as|nicknamed|cc|attn|attention|signed|author|assignee|reporter
    |reviewer|owner|recipient|sender|beneficiary|holder|patient|client|customer|user|employee|member
    |tenant
    |manager|doctor|contact|from|to|by|bcc|dear|hi|hello|hey|ask|tell|told|met|meet|meeting|with
    |call|invite|email|text|ping|remind|admin|for|von|an|mit|frag)\b["']?\s*(?::|=)?\s*["']?
    |\b(?:my|his|her|their|our)\s+(?:\w+\s+)?(?:friend|wife|husband|partner|boss|manager|neighbou?r
    |landlord|landlady|colleague|brother|sister|mother|father|mom|mum|dad|son|daughter|cousin|aunt
    |uncle
    |dentist|doctor|therapist|teacher|advisor|lawyer|accountant|roommate|girlfriend|boyfriend|name
    |fianc[ée]e?)(?:'s)?(?:\s+name)?(?:\s+is)?,?\s+
    )$""",
    re.IGNORECASE | re.VERBOSE,
)
_STRONG_CUES: Final = re.compile(
    r"""(?:\b(?:(?:my|his|her|their|the|your|first|last|full|maiden|middle|sur|given|family|patient|customer
    |client|contact|holder)[ _-]?)?name(?:\s+is|\s+was|\s*[:=]|["']\s*[:=]\s*["']?|\s+to)\s*["']?
    |\b(?:she|he|they|we|parents|i)\s+named\s+(?:him|her|it|them)\s+|\bcall\s+me\s+|\bi\s+am\s+called\s+
    |\b(?:what's|what\s+is)\s+your\s+(?:\w+\s+)?name\?\s*(?:user:\s*)?)$""",
    re.IGNORECASE | re.VERBOSE,
)
# Before these, in small letters too, somebody stands.
_SOMEBODY: Final = re.compile(
    r"\b(?:ask(?:ed|ing)?|tell|told|call(?:ed|ing)?|text(?:ed|ing)?|ping|remind|invite|dear|met|meet|meeting|did"
    r"|does|has|why\s+did"
    r"|who(?:'s|\s+is)|(?:my|your|his|her|our|their)\s+\w+|hi|hey|from|with|and|that\s+(?:guy|girl|man|woman)|said"
    r"|thank|thanks|by|for|to|is)[ ,]+$",
    re.IGNORECASE,
)
_TO_SOMEBODY: Final = re.compile(r"\b(?:say\s(?:hi|hello|thanks)\sto|ask|tell|thank)\s$", re.IGNORECASE)
_ADDRESSED: Final = re.compile(
    r"\b(?:ask(?:ed|ing)?|tell|told|call(?:ed|ing)?|text(?:ed|ing)?|ping|remind|invite|dear|met)[ ]$", re.IGNORECASE
)
_LOOK_BACK: Final = 48
_OPENING, _CLOSING = "\"'(>|[;,\t", "\"')<|];,\t"  # of cells, tags and literals
_SHORTEST_UNHEARD: Final = 3
_LONGEST_UNHEARD: Final = 3  # words: a longer run is another language
_KNOWN_WORDS: Final = 3  # of a line that is in English
_NEAR: Final = 400  # characters: what is farther away in a line says nothing of this place, and costs time
_VOWEL: Final = re.compile(r"[aeiouyà-öø-ÿ]")
_LONGEST_ABBREVIATION: Final = 4
# They begin sentences, whatever is called like them elsewhere: My Kindle broke.
_BEGINNINGS: Final = frozenset(
    "a an my we he she it i if in on at to of as is be or no so do go am by up us me".split()
)
_BY_ADDRESS: Final = re.compile(r"[\"']?(?:</?\w+>|\s*[,;:\-–|]|)\s*(?:<\w+>|[\"'(<\[])?\s?[\w.+%-]+@")
_QUOTED_BY_ADDRESS: Final = re.compile(r"[\"']\s*<[\w.+%-]+@")
_DAY: Final = re.compile(
    r"(?:Jan|Mar|Jun|Jul|Aug|April|June|May|August)\.?\s\d{1,4}\b"
)  # of a month that is a name too
_GREETING: Final = re.compile(
    r"^[ \t>]*(?:hi|hello|hey|dear|thanks|thank you|cheers|hallo|liebe[rs]?|hola|querid[oa]|cher|chère|bonjour|caro"
    r"|cara|ciao|olá|beste|kære|hej|cześć|drogi|droga)[ ,]+"
    r"(?P<value>[^\W\d_][^\W\d_'’-]+(?:[ ][^\W\d_][^\W\d_'’-]+)?)(?=[ ]?[,!.:\n]|$)",
    re.IGNORECASE | re.MULTILINE,
)
_VERBS: Final = re.compile(
    r"(?:'s)?\s+(?:said|says|wrote|writes|called|calls|replied|asked|told|shouted|works?|worked"
    r"|lives?|lived|moved|joined|was|is|has|had|met|sent|signed|presented|turns|turned|owes"
    r"|and I)\b"
)
_DEEDS: Final = re.compile(
    r"\s+(?:will|would|said|says|called|asked|told|wrote|replied|signed|works|lives|moved|met|owes"
    r"|paid|sent|thinks|wants|needs|lost|bought|got|has|had)\b"
)
# What people do, and programs and companies do not.
_HUMAN: Final = re.compile(
    r"\s+(?:said|says|asked|told|wrote|replied|owes|thinks|texted|shouted|laughed|cried|married|retired|resigned"
    r"|smiled|lives"
    r"|met|hates|loves)\b"
)
_PLURAL: Final = re.compile(r"\b[Tt]he (?P<name>[A-Z][^\W\d_]+?)e?s(?=['’]|\b)")
_WITH_NICKNAME: Final = re.compile(
    rf"(?:{TITLE}\.?\s+)?(?P<first>[^\W\d_]+)(?:\s[A-Z]\.)?\s[(\"“'](?P<nickname>[^\W\d_]+)[)\"”']\s[^\W\d_]+(?:-[^\W\d_]+)?"
)
_LIST: Final = re.compile(
    r"(?<![\w.])[^\W\d_][\w'’-]*(?:,\s[^\W\d_][\w'’-]*)*,?\s(?:and|or|&|und|et|y|e)\s[^\W\d_][\w'’-]*(?![\w-])"
)
_LINE: Final = re.compile(
    r"^[ \t>*•-]*(?P<value>[^\W\d_][^\W\d_'’-]+(?:[ ](?:[A-Z]\.?|[^\W\d_]{2,3}|[^\W\d_]['’\w-]+)){1,3})[ \t]*$",
    re.MULTILINE,
)
# - Ada Lovelace (chair): what the sign in brackets explains is somebody.
_ITEM: Final = re.compile(
    r"^[ \t>]*(?:[*•–-]|\d{1,2}[.)])[ \t]+"
    r"(?P<value>[^\W\d_][^\W\d_'’-]+(?:[ ][^\W\d_][^\W\d_'’-]+){1,2})[ ]?(?:\(|[–—-][ ]|:|,|$)",
    re.MULTILINE,
)
_SPEAKER: Final = re.compile(r"^[ \t>*•-]*(?P<value>[^\W\d_]{3,20}(?:[ ][^\W\d_]{2,20})?):\s", re.MULTILINE)
# Endings of last names in Cyrillic.
_SLAVIC: Final = re.compile(
    r"(?:(?:[оеё]в|ин)(?:а|у|ым|е|ой)?|[сц]к(?:ий|ая|ого|ому|им|ой|ую)|енко|(?:чук|юк|ич)(?:а|у|ем|ом|е)?|вн(?:а|ы"
    r"|е|у|ой))$"
)
_HAN: Final = re.compile(
    r"(?<![\u4e00-\u9fff])[\u4e00-\u9fff]{2,4}(?![\u4e00-\u9fff])|(?:(?<=[叫找给和是问让])|(?<=姓名)"
    r"|(?<=名字))[\u4e00-\u9fff]{2,3}(?=[，。、！的说在是了]|$)"
)
_HANGUL: Final = re.compile(
    r"(?<![\uac00-\ud7a3])(?P<value>[\uac00-\ud7a3]{3})(?:씨|님|은|는|이|가|을|를|의|에게|과|와|입니다)?(?![\uac00-\ud7a3])"
)
_HAN_RUN: Final = re.compile(r"[\u4e00-\u9fff]{5,}")
_JAPANESE = r"[\u3040-\u30ff\u4e00-\u9fff]"
_HAN_PAIR: Final = re.compile(rf"(?<!{_JAPANESE}){_JAPANESE}{{1,4}}[ \u3000]{_JAPANESE}{{1,4}}(?!{_JAPANESE})")
_MASKED: Final = re.compile(
    r"(?<![\w*])[A-Z][*•x]{2,}(?:\s[A-Z][*•x]{2,}){1,3}(?![\w*])|(?<![\w*])[A-Z][*•]{3,}(?![\w*])"
    r"|(?<!\w)[A-Z]\.?[*•]{2,}\s[A-Z][a-z]+"
)


class Word(NamedTuple):
    """One word of the text, and what it is in small letters."""

    start: int
    end: int
    low: str


def find(text: str, lexicon: Lexicon) -> Iterator[Span]:
    """Return the names of people that need no model of the language."""
    words = [Word(match.start(), match.end(), match[0].casefold().replace("’", "'")) for match in _WORD.finditer(text)]
    for run in _runs(text, words, lexicon):
        yield from _judged(text, run, lexicon)
    yield from _in_small_letters(text, words, lexicon)
    yield from _shaped(text, lexicon)
    yield from _of_other_scripts(text, lexicon)
    for match in _MASKED.finditer(text):
        yield Span(match.start(), match.end(), "PERSON", 0.8, "name with asterisks")


def _runs(text: str, words: Sequence[Word], lexicon: Lexicon) -> Iterator[list[Word]]:
    """Return stretches of words that could be one name together."""
    run: list[Word] = []
    for word in words:
        fits = _fits(text, word, lexicon)
        if run and not (_GAP.fullmatch(text, run[-1].end, word.start) and _close(text, run[-1], word)):
            yield from _complete(run)
            run = []
        begins = not run and word.low in _BEGINNINGS
        if (fits and not begins) or (run and word.low in _PARTICLES and len(word.low) < 5):
            run.append(word)
        else:
            yield from _complete(run)
            run = []
    yield from _complete(run)


def _close(text: str, last: Word, word: Word) -> bool:
    gap = text[last.end : word.start]
    return "\n" not in gap and ("." not in gap or len(last.low) == 1)


def _complete(run: list[Word]) -> Iterator[list[Word]]:
    while run and run[-1].low in _PARTICLES:
        run = run[:-1]
    if run:
        yield run


def _fits(text: str, word: Word, lexicon: Lexicon) -> bool:
    first = text[word.start]
    if not first.isupper():
        return not first.islower() and (word.low in lexicon.first or word.low in lexicon.last)
    return lexicon.may_be_name(word.low) or (len(word.low) == 1 and word.low != "i")


def _judged(text: str, run: list[Word], lexicon: Lexicon) -> Iterator[Span]:
    title = _TITLE.search(text, max(0, run[0].start - 40), run[0].start)
    while run and len(run[0].low) == 1 and len(run) == 1 and title is None:
        return
    score = 0.96 if title is not None else _score(text, run, lexicon)
    if score:
        start = title.start() if title is not None else run[0].start
        yield Span(start, _with_suffix(text, run[-1].end), "PERSON", score, "name")


def _score(text: str, run: list[Word], lexicon: Lexicon) -> float:
    full = [word for word in run if len(word.low) > 1 and word.low not in _PARTICLES]
    before_word = text[: run[0].start].rstrip()
    known = [
        word
        for word in full
        if lexicon.is_first(word.low) or (word.low in lexicon.usual and before_word[-1:].isalpha())
    ]
    weak = [word for word in full if word.low in lexicon.first or word.low in lexicon.last]
    before = text[max(0, run[0].start - _LOOK_BACK) : run[0].start]
    if (_BY_ADDRESS.match(text, run[-1].end) and weak) or _QUOTED_BY_ADDRESS.match(text, run[-1].end):
        return 0.93
    if _STRONG_CUES.search(before):
        return 0.95
    if len(full) > 1:
        if known and (known[0] is full[0] or len(weak) == len(full)):
            return 0.9
        if len(weak) == len(full) and (full[0].low in lexicon.first or _CUES.search(before)):
            return 0.85
        if any(len(word.low) == 1 for word in run) and len(run[0].low) > 1:  # Ravil G Yefimov
            return 0.75
        if len(weak) == len(full) and text[run[0].start : run[-1].end].isupper():  # no cue is in capitals
            return 0.65
        if _CUES.search(before) and not any(lexicon.is_word(word.low) for word in full):
            return 0.7
        return _of_unheard(text, full, bool(weak), lexicon)
    if not full or _is_abbreviation(text, run) or _DAY.match(text, run[0].start):
        return 0.0
    if len(run) > 1 and weak:  # initials around one name: J. R. Ellison
        return 0.85
    if len(run) > 2 and not lexicon.is_word(full[0].low) and text[run[0].end] == ".":  # U. U. Aleksandersen
        return 0.75
    if known:
        if _CUES.search(before) or _VERBS.match(text, run[-1].end):
            return 0.85
        return 0.62 if _is_just_a_name(full[0].low, lexicon) else 0.0
    if _HUMAN.match(text, run[-1].end) and lexicon.is_unheard(full[0].low):
        return 0.62
    if weak and not lexicon.is_word(full[0].low):
        return 0.6 if _CUES.search(before) or _VERBS.match(text, run[-1].end) else 0.0
    if weak and full[0].low in lexicon.first:
        if _mid_sentence(before) and (_VERBS.match(text, run[-1].end) or text.startswith(("'s ", "’s "), run[-1].end)):
            return 0.62
        if _DEEDS.match(text, run[-1].end) or _ADDRESSED.search(before):
            return 0.62
    return 0.0


def _of_unheard(text: str, full: Sequence[Word], some_known: bool, lexicon: Lexicon) -> float:
    """Judge words that are no words of the language: names of many countries are in no list."""
    if any(len(word.low) < _SHORTEST_UNHEARD and not some_known for word in full):
        return 0.0
    if any("'" in word.low or sum(letter.isupper() for letter in text[word.start : word.end]) > 1 for word in full):
        capitals = text[full[0].start : full[-1].end].isupper() and all(
            len(word.low) > _LONGEST_ABBREVIATION for word in full
        )
        return 0.62 if capitals and all(lexicon.is_unheard(word.low) for word in full) else 0.0
    names = [word.low in lexicon.first or word.low in lexicon.last for word in full]
    if some_known:
        rest = [word.low for word, name in zip(full, names, strict=True) if not name]
        return 0.65 if not any(lexicon.is_word(low) or low in lexicon.heard for low in rest) else 0.0
    if all(lexicon.is_unheard(word.low) for word in full):
        return 0.6
    before, after = text[: full[0].start][-1:], text[full[-1].end :][:1]
    cell = before != "" and after != "" and before in _OPENING and after in _CLOSING
    return 0.6 if cell and not any(lexicon.is_word(word.low) or word.low in lexicon.heard for word in full) else 0.0


def _is_just_a_name(low: str, lexicon: Lexicon) -> bool:
    """Whether a first name means nothing else, not even a rarer thing (Yoga)."""
    return low in lexicon.usual or (low not in lexicon.words and low not in lexicon.languages)


def _is_abbreviation(text: str, run: Sequence[Word]) -> bool:
    """Whether one word is in capitals and short, where others are not: the NAS is full."""
    shown = text[run[0].start : run[-1].end]
    return (
        len(run) == 1
        and shown.isascii()
        and shown.isupper()
        and len(shown) <= _LONGEST_ABBREVIATION
        and not text.isupper()
    )


def _mid_sentence(before: str) -> bool:
    return bool(before.strip()) and before.rstrip()[-1] not in ".!?:\n"


def _with_suffix(text: str, end: int) -> int:
    suffix = _SUFFIX.match(text, end)
    return suffix.end() if suffix is not None else end


def _shaped(text: str, lexicon: Lexicon) -> Iterator[Span]:
    """Return names that only the shape of the text around them gives away."""
    for match in _PLURAL.finditer(text):
        name = match["name"].casefold()
        if (
            (name in lexicon.last or name in lexicon.first)
            and not lexicon.is_word(name)
            and not lexicon.is_word(name + "s")
        ):
            yield Span(match.start(), match.end(), "PERSON", 0.75, "family")
    for match in _WITH_NICKNAME.finditer(text):
        if match[0][0].isupper() and match["nickname"][0].isupper() and match["first"].casefold() in lexicon.first:
            yield Span(match.start(), match.end(), "PERSON", 0.9, "name with nickname")
    for match in _LIST.finditer(text):
        yield from _listed(match, lexicon)
    for match in _GREETING.finditer(text):
        words = match["value"].split()
        if all(
            word[0].isupper() and not lexicon.is_word(low := word.casefold()) and low not in lexicon.heard
            for word in words
        ):
            yield Span(*match.span("value"), "PERSON", 0.8, "greeted")
    for match in _ITEM.finditer(text):
        if all(word[0].isupper() and _may_be_strange(word.casefold(), lexicon) for word in match["value"].split()):
            yield Span(*match.span("value"), "PERSON", 0.65, "name of an item")
    for match in _LINE.finditer(text):
        words = [word for word in match["value"].split() if len(word.strip(".")) > 1]
        strange = [
            word
            for word in words
            if word[0].isupper()
            and not word.isupper()
            and word.casefold() not in lexicon.words
            and word.casefold() not in NOT_NAMES
        ]
        if len(words) > 1 and len(strange) + sum(word.casefold() in _PARTICLES for word in words) == len(words):
            yield Span(*match.span("value"), "PERSON", 0.62, "name on a line")
    for match in _SPEAKER.finditer(text):
        words = match["value"].split()
        if all(word[0].isupper() and word[1:].islower() and _is_strange(word.casefold(), lexicon) for word in words):
            yield Span(*match.span("value"), "PERSON", 0.65, "speaker")


def _is_strange(word: str, lexicon: Lexicon) -> bool:
    return word not in lexicon.words and word not in NOT_NAMES


def _may_be_strange(word: str, lexicon: Lexicon) -> bool:
    return _is_strange(word, lexicon) or (
        (word in lexicon.first or word in lexicon.last) and not lexicon.is_word(word) and word not in NOT_NAMES
    )


def _listed(match: re.Match[str], lexicon: Lexicon) -> Iterator[Span]:
    """Return all of a list of which one is a first name and none a plain word: Grace and Hope."""
    items = [item for item in _WORD.finditer(match[0]) if item[0] not in ("and", "or", "und", "et", "y", "e")]
    lows = [item[0].casefold() for item in items]
    if not all(item[0][0].isupper() for item in items) or len(items) < 2 or any(low in NOT_NAMES for low in lows):
        return
    sure = [low in lexicon.usual or lexicon.is_first(low) for low in lows]
    if any(sure) and all(
        known or low in lexicon.first or low in lexicon.last or low not in lexicon.words
        for known, low in zip(sure, lows, strict=True)
    ):
        for item in items:
            yield Span(match.start() + item.start(), match.start() + item.end(), "PERSON", 0.66, "name in a list")


def _in_small_letters(text: str, words: Sequence[Word], lexicon: Lexicon) -> Iterator[Span]:
    """Return names in lines that have no capitals but at their beginning."""
    for place, word in enumerate(words):
        if not text[word.start].islower():
            continue
        cued = _STRONG_CUES.search(text, max(0, word.start - _LOOK_BACK), word.start) is not None
        known = len(word.low) > 2 and lexicon.is_first(word.low) and not lexicon.is_word(word.low)
        if not known and _TO_SOMEBODY.search(text, max(0, word.start - _LOOK_BACK), word.start) is not None:
            known = (
                len(word.low) > 2
                and (word.low in lexicon.first or lexicon.is_unheard(word.low))
                and not lexicon.is_word(word.low)
            )
        if not (known or (cued and not _plain(word.low, lexicon))) or not _without_capitals(text, word.start):
            continue
        start, end = _start_in_small_letters(text, words, place, lexicon), word.end
        for last, following in pairwise(words[place : place + 4]):
            if text[last.end : following.start] != " " or not _may_follow(following.low, lexicon):
                break
            end = following.end
        yield Span(start, end, "PERSON", 0.7, "name in small letters")
    yield from _unheard_in_small_letters(text, words, lexicon)


def _unheard_in_small_letters(text: str, words: Sequence[Word], lexicon: Lexicon) -> Iterator[Span]:
    """Return two or three words side by side that are none, in an English line of small letters."""
    if not any(text[word.start].islower() for word in words):
        return
    run: list[Word] = []
    for word in (*words, None):
        joined = word is not None and (not run or text[run[-1].end : word.start] == " ")
        if word is not None and joined and _is_no_word(text, word, lexicon):
            run.append(word)
            continue
        if run and _is_name_in_small_letters(text, run, lexicon):
            yield Span(run[0].start, run[-1].end, "PERSON", 0.62, "unheard name in small letters")
        run = [word] if word is not None and _is_no_word(text, word, lexicon) else []


def _is_no_word(text: str, word: Word, lexicon: Lexicon) -> bool:
    name = (word.low in lexicon.first or word.low in lexicon.last) and not lexicon.is_word(word.low)
    return (
        text[word.start].islower()
        and len(word.low) >= _SHORTEST_UNHEARD
        and (name or (lexicon.is_unheard(word.low.partition("-")[0]) and _VOWEL.search(word.low) is not None))
    )


def _is_name_in_small_letters(text: str, run: Sequence[Word], lexicon: Lexicon) -> bool:
    if not 2 <= len(run) <= _LONGEST_UNHEARD:
        return False
    start, end = run[0].start, run[-1].end
    before, after = text[max(0, start - 2) : start].rstrip(" ,")[-1:], text[end : end + 2].lstrip(" ,")[:1]
    begins = not before or before in "\n."
    if not (begins or before.isalpha()) or not (not after or after.isalpha() or after in "'?!.\n"):
        return False
    cued = begins or "," in text[start - 2 : start]
    if not cued and _SOMEBODY.search(text, max(0, start - _LOOK_BACK), start) is None:
        return False
    around = (match[0].casefold() for match in _WORD.finditer(text, max(0, start - _NEAR), end + _NEAR))
    return sum(word in lexicon.words for word in around) >= _KNOWN_WORDS and _without_capitals(text, start)


def _start_in_small_letters(text: str, words: Sequence[Word], place: int, lexicon: Lexicon) -> int:
    """Return where a name begins: with the word before it, if that is no word of the language."""
    word, before = words[place], words[max(0, place - 1)]
    strange = len(before.low) > 3 and before.low not in lexicon.words and not lexicon.is_word(before.low)
    joined = text[before.end : word.start] == " " and text[before.start].islower()
    return before.start if joined and strange else word.start


def _plain(word: str, lexicon: Lexicon) -> bool:
    return word in (
        "a",
        "an",
        "the",
        "not",
        "my",
        "your",
        "his",
        "her",
        "their",
        "our",
        "on",
        "in",
        "it",
        "so",
        "is",
        "wrong",
        "incorrect",
        "misspelled",
    ) or (
        word not in lexicon.first
        and word not in lexicon.last
        and all(lexicon.is_word(part) or part in lexicon.words for part in re.split(r"['-]", word))
    )


def _may_follow(word: str, lexicon: Lexicon) -> bool:
    if len(word) > _SHORTEST_UNHEARD and lexicon.is_unheard(word) and _VOWEL.search(word):
        return True
    return word in lexicon.last and lexicon.words.get(word, 1000) > 150 and len(word) > 2


def _without_capitals(text: str, place: int) -> bool:
    start = text.rfind("\n", max(0, place - _NEAR), place) + 1 or max(0, place - _NEAR)
    end = text.find("\n", place, place + _NEAR)
    line = text[start : end if end >= 0 else place + _NEAR]
    capitals = [match.start() for match in re.finditer(r"\b[A-Z](?!\b)", line)]
    return not capitals or all(
        not line[:capital].strip() or line[:capital].rstrip()[-1] in ".?!:" for capital in capitals
    )


def _of_other_scripts(text: str, lexicon: Lexicon) -> Iterator[Span]:
    if text.isascii():
        return
    for match in _HAN.finditer(text):
        if match[0][0] in lexicon.last or match[0][:2] in lexicon.last:
            yield Span(match.start(), match.end(), "PERSON", 0.8, "name in Han")
    for match in _HAN_RUN.finditer(text):
        yield from _within_han(match, lexicon)
    for match in _HAN_PAIR.finditer(text):
        if any(part in lexicon.last or part in lexicon.first for part in match[0].split()):
            yield Span(match.start(), match.end(), "PERSON", 0.85, "name in Han")
    for match in _HANGUL.finditer(text):
        if match["value"][0] in lexicon.last:
            yield Span(*match.span("value"), "PERSON", 0.75, "name in Hangul")
    for first, second in pairwise(re.finditer(r"[А-ЯЁІЇЄ][а-яёіїє]+", text)):
        if text[first.end() : second.start()] == " " and (_SLAVIC.search(second[0]) or _SLAVIC.search(first[0])):
            yield Span(first.start(), second.end(), "PERSON", 0.85, "name in Cyrillic")


def _within_han(match: re.Match[str], lexicon: Lexicon) -> Iterator[Span]:
    """Return names in a sentence without spaces: a family name, and a given name that is known."""
    run = match[0]
    place = 0
    while place < len(run) - 1:
        given = next((length for length in (2, 1) if run[place + 1 : place + 1 + length] in lexicon.first), 0)
        if run[place] in lexicon.last and given:
            start = match.start() + place
            yield Span(start, start + 1 + given, "PERSON", 0.65, "name in Han")
            place += given
        place += 1
