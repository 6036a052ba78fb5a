"""Names of companies that their own words, the words beside them or where they stand give away."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from memseal.privacy.lexicon import NAMES_THAT_ARE_WORDS, NOT_NAMES, Lexicon
from memseal.privacy.spans import Span

_CAPITAL = r"[^\W\d_a-zà-öø-ÿ][\w'’-]*"
_NAME = rf"{_CAPITAL}(?:,?[ ](?:(?:and|&|of|de|et|und|the)[ ])?{_CAPITAL}){{0,4}}"
_NUMBERED = rf"(?:\d{{1,3}}[ ])?{_NAME}|\d[^\W\d_][\w-]+"
# The legal forms of companies, as abbreviated in ISO 20275, without those that are words of their own.
_LEGAL: Final = re.compile(
    rf"(?<![\w.])(?:\d{{1,3}}[ ])?{_NAME},?[ ](?:Inc|Incorporated|LLC|L\.L\.C|LLP|LP|Ltd|Limited|Unlimited|Corp"
    rf"|Corporation|Co|Company|PLC"
    rf"|plc|CIC|GmbH|mbH|AG|KG|KGaA|OHG|GbR|UG|eG|e\.V|e\.K|SE|SA|S\.A\.S|S\.A|SAS|SARL|SASU|EURL|SpA|S\.p\.A|Srl"
    rf"|S\.r\.l|S\.L|BV|B\.V"
    rf"|NV|N\.V|VOF|AB|AS|ASA|Oy|Oyj|ApS|A/S|ehf|KK|K\.K|a\.s|s\.r\.o|sp\.[ ]z[ ]o\.[ ]?o|Kft|Zrt|Nyrt|d\.o\.o|OÜ"
    rf"|UAB|SIA|A\.Ş|AŞ"
    rf"|Lda|Ltda|EIRL|Pty|Pvt|Pte|Sdn|Bhd|Tbk)\b\.?(?:[ ](?:Ltd|Limited|Bhd|Co|KG|Şti)\b\.?)?"
)
# What companies and institutions are, as the last word of their names.
_KINDS: Final = (
    r"Airlines?|Airways|Shipping|Freight|Logistics|Transport|Transit|Couriers?|Motors|Automotive|Aviation|Aerospace"
    r"|Enterprises|Industries|Holdings|Group|Partners|Associates|Ventures|Capital|Investments?|Securities|Insurance"
    r"|Financial|Finance"
    r"|Bank|Credit[ ]Union|Trust|Consulting|Consultants|Advisors|Advisory|Accounting|Accountants|Legal|Attorneys"
    r"|Solicitors"
    r"|Systems|Solutions|Technologies|Technology|Tech|Software|Analytics|Networks|Telecom|Communications|Robotics"
    r"|Semiconductors?"
    r"|Electronics|Optics|Instruments|Labs?|Laboratories|Biosciences|Biotech|Therapeutics|Pharma|Pharmaceuticals"
    r"|Pharmacy|Healthcare"
    r"|Health|Medical|Dental|Pediatrics|Veterinary|Clinic|Hospital|Hospice|Care|Childcare|Daycare|Kindergarten|Nursery"
    r"|University|College|School|Academy|Institute|Foundation|Association|Society|Council|Ministry|Agency|Authority"
    r"|Museum|Library"
    r"|Orchestra|Choir|Church|Theatre|Theater|Media|Studios?|Pictures|Records|Productions|Entertainment|Publishing"
    r"|Publishers|Press|Books"
    r"|Games|Sports|Gym|Fitness|Salon|Resorts?|Hotels?|Travel|Tours|Restaurant|Cafe|Café|Bistro|Diner|Grill"
    r"|Pizzeria|Bakery|Brewery"
    r"|Winery|Vineyards?|Farms?|Foods|Mining|Steelworks|Steel|Energy|Power|Petroleum|Chemicals|Plastics|Textiles"
    r"|Apparel|Outfitters"
    r"|Construction|Builders|Engineering|Architects|Realty|Properties|Homes|Interiors|Maintenance|Services?"
    r"|Security|Science|Sciences"
    r"|Worldwide|Global|International|Brothers|Maschinenbau|Bau|Versicherung|Sparkasse|Werke|Verlag"
)
_KIND: Final = re.compile(rf"(?<![\w.]){_NAME}[ ](?:(?:and|&)[ ](?:Sons?|Daughters?|Brothers|Partners|Co)|{_KINDS})\b")
# An institution of a kind: University of Leeds, Ministry of Health.
_OF: Final = re.compile(
    rf"\b(?:University|College|Institute|School|Ministry|Department|Bank|Church|Museum|Society|Association"
    rf"|Academy)[ ][Oo]f[ ](?:the[ ])?{_NAME}"
)
_CUE: Final = re.compile(
    rf"(?:\b(?:works?|worked|working|employed|interned|hired|employment|interview(?:ed|ing)?|job"
    rf"|role|position|internship|account)[ ](?:at|for|by|with)[ ]|\b(?:CEO|CTO|CFO|founder|director"
    rf"|manager|employee|head|president|owner)[ ](?:of|at)[ ]|(?:©|\([Cc]\)"
    rf"|[Cc]opyright)[ ](?:\d{{4}}[ ])?)(?P<value>{_NUMBERED})"
)
# Whom these words go with is as a rule a company; somebody with a first name is not.
_LESS_SURE_CUE: Final = re.compile(
    rf"\b(?i:at|join(?:s|ed|ing)?|left|leaving|founded|acquired(?:[ ]by)?|bought|merged[ ]with|supporting|support"
    rf"|became|according[ ]to(?:[ ]the)?"
    rf"|(?:contract|deal|nda|call|meeting|talks|partnership|invoice|payment|order|parcel|refund|quote|offer|email"
    rf"|letter)[ ](?:with|from|to|by|of)"
    rf"|(?:client|customer|supplier|vendor|employer|competitor|landlord|insurer|provider|broker)(?:[ ](?:is|was))?"
    rf"|is[ ]from|are[ ]from)[ ]"
    rf"(?P<value>{_NUMBERED})(?!\w)"
)
_THEIR_THING: Final = re.compile(
    rf"\b[Tt]he[ ](?P<value>{_NAME})[ ](?:website|site|app|contract|account|invoice|offices?|tender|deal|rollout"
    rf"|client|branch|stores?|shop"
    r"|headquarters|merger|acquisition|shares|stock|proposal|partnership|campaign)\b"
)
_DEED: Final = re.compile(
    rf"(?<![\w.])(?P<value>{_NUMBERED})[ ](?:and[ ]\w+[ ])?(?:invest(?:ed|s)|acquir(?:ed|es)|announc(?:ed|es)"
    rf"|launch(?:ed|es)|laid[ ]off|went[ ]public"
    r"|merged|refund(?:ed|s)|charged|billed|overcharged|hires|was[ ](?:founded|acquired)|sent[ ]apologies)\b"
)
_WHAT_IT_IS = (
    r"(?:company|companies|firm|bank|agency|start-?up|business|corporation|manufacturer|provider|retailer|supplier"
    r"|wholesaler|founders?"
    r"|employer|charity|non-?profit|brand|studio|restaurant|consultancy|law[ ]firm|airline|insurer|publisher"
    r"|dealership|school|hospital)\b"
)
_DEFINED: Final = re.compile(
    rf"(?:^|(?<=[.!?]\s))(?P<value>{_NUMBERED})[ ](?:is|was)[ ](?:an?|the|our|my|one)[ ][^.\n]{{0,80}}?\b{_WHAT_IT_IS}",
    re.MULTILINE,
)
_DEFINED_SMALL: Final = re.compile(
    rf"^(?P<value>[a-z][\w-]{{2,30}}(?:[ ][a-z][\w-]+){{0,4}}?)[ ](?:is|was)[ ](?:an?|the|our|my"
    rf"|one)[ ][^.\n]{{0,80}}?\b{_WHAT_IT_IS}",
    re.MULTILINE,
)
_CUE_SMALL: Final = re.compile(
    r"\b(?:(?:work|works|worked|working|interview|interviewing|interviewed|job|internship)[ ](?:at|for)|is[ ]from"
    r"|joined|left)[ ]"
    r"(?P<value>[a-zà-ÿ\d][\w-]{3,30})\b"
)
_SURNAME = r"[^\W\d_]{2,}(?:-[^\W\d_]{2,})?"
# Partners: Hawkins, Lyle and Finch
_FIRM: Final = re.compile(
    rf"(?:(?P<line>^[ \t>]*)|\b(?:at|from|for|by|join(?:ed)?|left|of|to)[ ])"
    rf"(?P<value>{_SURNAME},[ ]{_SURNAME}[ ](?:and|&)[ ]{_SURNAME})(?P<after>[ \t]*$|,[ ]\d|[ ](?:is|was|has|will"
    rf"|invested|as)\b|[.,;!?])?",
    re.MULTILINE,
)
_LONGEST_LINE: Final = 50
_WORD: Final = re.compile(r"[^\W\d_]+")
_SMALL_WORDS: Final = frozenset(("and", "of", "the", "de", "et", "und"))
_COMMONEST: Final = 300  # words of this rank begin sentences in small letters
_RARE: Final = 9_000  # what is rarer may be a name
_COMMON: Final = 2_000  # words of this rank say what something is, not who


def find(text: str, lexicon: Lexicon, postal: Sequence[Span] = ()) -> Iterator[Span]:
    """Return organisations that need no model of the language; above a postal address stands who has it."""
    for pattern in (_LEGAL, _KIND, _OF, _CUE):
        for match in pattern.finditer(text):
            start, end = match.span("value") if "value" in pattern.groupindex else match.span()
            if pattern is not _OF:
                start += _plain_beginning(text[start:end])
                start += _person_before(text[start:end], lexicon)
            if pattern is _CUE or (" " in text[start:end] and _says_who(text[start:end], lexicon, pattern is _KIND)):
                yield Span(start, end, "ORGANIZATION", 0.75, "organisation")
    for pattern in (_LESS_SURE_CUE, _THEIR_THING, _DEED, _DEFINED):
        for match in pattern.finditer(text):
            start, end = match.span("value")
            start += _plain_beginning(text[start:end])
            if _is_nobody(text[start:end], lexicon):
                yield Span(start, end, "ORGANIZATION", 0.62, "organisation by the words beside it")
    for pattern in (_CUE_SMALL, _DEFINED_SMALL):
        for match in pattern.finditer(text):
            words = _WORD.findall(match["value"].casefold())
            if (
                words
                and not any(lexicon.words.get(word, _COMMONEST) < _COMMONEST for word in words)
                and (" " in match["value"] or not _is_thing(words[0], lexicon))
            ):
                yield Span(*match.span("value"), "ORGANIZATION", 0.65, "organisation by name")
    for match in _FIRM.finditer(text):
        if (match["line"] is None or match["after"]) and all(
            part.casefold() in lexicon.last or lexicon.is_unheard(part.casefold())
            for part in re.split(r",?[ ](?:(?:and|&)[ ])?|-", match["value"])
        ):
            yield Span(*match.span("value"), "ORGANIZATION", 0.7, "partners")
    yield from _above_addresses(text, postal, lexicon)


def _above_addresses(text: str, postal: Sequence[Span], lexicon: Lexicon) -> Iterator[Span]:
    """Return the line between a person's and an address: of a card, a label or a signature."""
    for span in postal:
        line = text.rfind("\n", 0, span.start)
        if line < 0 or text[line + 1 : span.start].strip("> \t"):
            continue
        start = text.rfind("\n", 0, line) + 1
        above = text[text.rfind("\n", 0, max(0, start - 1)) + 1 : max(0, start - 1)] if start else ""
        shown = text[start:line].strip("> \t")
        if not (shown and above.strip("> \t")) or len(shown) > _LONGEST_LINE or len(above) > _LONGEST_LINE:
            continue
        if shown[-1] in ":.,;!?" or above.rstrip()[-1] in ":.;!?" or any(sign in shown for sign in "@=:/{}"):
            continue
        if not any(letter.isalpha() for letter in shown) or _WORD.findall(shown.casefold())[0] in lexicon.usual:
            continue
        begin = text.index(shown, start)
        yield Span(begin, begin + len(shown), "ORGANIZATION", 0.62, "line above an address")


def _says_who(name: str, lexicon: Lexicon, by_kind: bool) -> bool:
    """Whether a name says more than what it is: not Our School, High School, Project Management Services."""
    words = _WORD.findall(name.casefold())
    if all(word in NOT_NAMES or word in _SMALL_WORDS for word in words):
        return False
    return not by_kind or any(_is_rare(word, lexicon) for word in words[:-1])


def _is_nobody(name: str, lexicon: Lexicon) -> bool:
    """Whether a name is neither somebody's nor all plain words."""
    words = [word for word in _WORD.findall(name.casefold()) if word not in _SMALL_WORDS]
    if not words or words[0] in lexicon.first or words[0] in NOT_NAMES:
        return False
    if name.isupper() and len(name) <= 3:
        return False
    says_who = any(_is_rare(word, lexicon) for word in words) if len(words) > 1 else not lexicon.is_word(words[0])
    return says_who and not any(
        name.casefold() in listed for listed in (lexicon.places, lexicon.countries, lexicon.languages)
    )


def _is_thing(word: str, lexicon: Lexicon) -> bool:
    """Whether a word in small letters is just one; the brands that no person is called are none (a job at google)."""
    return word in NAMES_THAT_ARE_WORDS or lexicon.words.get(word, _RARE) < _RARE


def _is_rare(word: str, lexicon: Lexicon) -> bool:
    return lexicon.words.get(word, _COMMON) >= _COMMON and word not in NOT_NAMES


def _plain_beginning(name: str) -> int:
    """Return how long the words are before a name that only begin a sentence."""
    first, _, rest = name.partition(" ")
    return len(first) + 1 if rest and first.casefold() in NOT_NAMES else 0


def _person_before(name: str, lexicon: Lexicon) -> int:
    """Return how long a person's name and its comma are before a company's: Priya Nair, Globex Inc."""
    before, comma, _ = name.partition(", ")
    first, _, rest = before.partition(" ")
    return len(before) + 2 if comma and rest and lexicon.is_first(first.casefold()) else 0
