"""Postal addresses of many countries: a street found by its words, then town, region, country and postcode after it."""

import re
from collections.abc import Iterator
from typing import Final

from memseal.privacy.lexicon import Lexicon
from memseal.privacy.spans import Span

_SUFFIXES = """street|str|st|avenue|ave|av|road|rd|lane|ln|drive|dr|boulevard|blvd|court|ct|crescent|cres|close|
    place|pl|square|sq|terrace|ter|way|
    parkway|pkwy|highway|hwy|circle|cir|trail|trl|alley|row|walk|mews|gardens|grove|hill|hills|park
    |plaza|ridge|run|loop|pass|path|pike|
    extension|extensions|union|points?|squares?|rapids|coves?|harbors?|harbour|radial|turnpike
    |junction|mount|mountain|valley|view|vista|ville|station|stream|meadows?|mills?|mission|
    orchard|overpass|forge|fork|forks|fort|freeway|garden|gateway|glen|green|heights|haven|hollow
    |inlet|island|isle|key|knoll|knolls|lakes?|landing|light|locks?|lodge|manor|neck|
    oval|parkways|plain|plains|prairie|ranch|rest|shoal|shore|shores|skyway|spring|springs|spur
    |stravenue|summit|throughway|trace|track|tunnel|village|walks|wall|ways|well|wells|
    baan|strasse|straße|terrasse|útja|tere|kapu|tere|allé|
    straat|laan|weg|gade|vej|gata|gatan|gate|vei|tee|katu|tie|utca|tér|út|u|rakpart|körút|ulica|tänav|vägen|väg|allee|platz|gasse|ring|esplanade|quay|wharf|bend|creek"""
_GLUED = (
    "straße|strasse|straat|laan|weg|gasse|platz|allee|damm|ufer|gade|vej|gata|gatan|gate|vei|veien"
    "|vägen|väg|katu|tie|tanav|bakken|steen|plein|dreef|kade|stræde|torv|väylä|kuja|polku|ring|hof"
    "|berg|tun|lia|stien|steg|stiegen|graben|zeile|markt|høj|parken|haven|toften|marken|lunden|åsen"
    "|tään|ucca|boulevard|baan|singel|gracht|dijk"
)
_PREFIXES = """rue|avenue|av|ave|boulevard|bd|blvd|place|chemin|allée|allee|impasse|quai|route|cours|square|
    via|viale|piazza|corso|largo|vicolo|strada|località|
    calle|c/|avenida|avda|av|paseo|plaza|camino|carrera|carretera|rua|travessa|praça|estrada|alameda
    |rodovia|ul|ulica|aleja|al|os|plac|pl|ulitsa|улица|ул|проспект|пер|jalan|jl|jln|
    str|strada|calea|bulevardul|n|s|e|w|út|am|an\\s+der|im|auf\\s+dem|zum|zur|der|de|van|sokak|cadde|mahalle|võ|västra|östra|norra|södra|unit|box"""
_CAPITAL = r"[^\W\d_a-zà-öø-ÿ][\w'’.-]*"
_NUMBER = r"\d{1,6}(?:[-/]\d{1,5})?(?:[A-Za-z]\b|[ ](?:bis|ter|quater)\b)?"
_PARTICLE = (
    r"(?:de\s+la|de\s+las|de\s+los|du|de|des|da|do|das|dos|di|del|della|van|von|der|den|la|le|el|al|of|the|e|y|av|på)"
)
_NAME = rf"{_CAPITAL}(?:[ ](?:{_PARTICLE}\s+){{0,2}}(?:{_CAPITAL}|\d{{1,3}}(?:st|nd|rd|th)\b)){{0,4}}"
_LEADING = rf"(?:(?:No\.?|Nr\.?|\#)\s*)?(?:{_NUMBER}[ ,]\s*)"


def _flat(pattern: str) -> str:
    return re.sub(r"\n\s*", "", pattern)


_STREETS: Final = tuple(
    re.compile(_flat(pattern), flags)
    for pattern, flags in (
        # 742 Evergreen Terrace; 31 27 Stone Cellar Road; Marina Fort Street
        (
            (
                rf"(?<![\w.])(?:{_LEADING}){{1,2}}(?:{_NAME}[ ])(?:(?i:{_SUFFIXES}))\b\.?(?:\s+(?:NW|NE|SW"
                rf"|SE|N|S|E|W)\b)?(?:\s+\d{{1,5}}[A-Za-z]?\b\.?)?"
            ),
            re.NOFLAG,
        ),
        (
            (
                rf"(?<![\w.])(?:{_CAPITAL}[ ]){{1,3}}(?:Street|Avenue|Road|Lane|Drive|Boulevard|Crescent"
                rf"|Terrace|Court|Square|Alley|Parkway|St|Ave|Rd|Ln|Blvd|tér|utca|körút|rakpart|út"
                rf"|u)\b\.?(?:\s+\d{{1,4}}[A-Za-z]?\b\.?)?"
            ),
            re.NOFLAG,
        ),
        # Hauptstraße 12; 6750 Koskikatu 25
        (
            (
                rf"(?<![\w.])(?:{_LEADING})?(?:{_CAPITAL}[ ]){{0,3}}"
                rf"[^\W\d_]{{2,}}(?i:{_GLUED})(?:\s+{_NUMBER}\b\.?)"
            ),
            re.NOFLAG,
        ),
        # 14 rue de la Paix; 36 ul. Asnyka Adama 82; Rue de Piétrain 371; Calle Mayor 5
        (
            (
                rf"(?<![\w.])(?:{_LEADING}){{1,2}}(?i:{_PREFIXES})\b\.?\s+"
                rf"(?:{_PARTICLE}\s+){{0,2}}{_NAME}(?:,?\s+{_NUMBER}\b\.?)?"
            ),
            re.NOFLAG,
        ),
        (
            (
                rf"(?<![\w.])(?i:rue|avenue|boulevard|chemin|impasse|allée|quai|cours|route|place|via|viale|piazza|corso"
                rf"|vicolo|largo|strada|contrada|borgo|calle|c/|avenida|avda\.?|paseo|plaza|camino|carrer|ronda|glorieta|pasaje"
                rf"|rambla|rua|travessa|praça|alameda|rodovia|ladeira|quadra|ul\.|ulica|al\.|aleja|plac|pl\.|os\."
                rf"|улица|ул\.|jalan|jl\.)\s+(?:{_PARTICLE}\s+){{0,2}}{_NAME}(?:,?\s+{_NUMBER}\b\.?)"
            ),
            re.NOFLAG,
        ),
        # 1-7-1 Konan, Minato-ku, Tokyo 108-0075
        (
            (
                rf"(?<![\w.-])\d{{1,3}}(?:-\d{{1,3}}){{1,2}}[ ,]+{_NAME},\s+{_CAPITAL}(?:,\s+{_CAPITAL}){{0,2}}"
                rf"(?:,?\s+\d{{3}}-\d{{4}}\b)?"
            ),
            re.NOFLAG,
        ),
        # Av. Paulista 1578
        (
            (
                rf"(?<![\w.])(?:Av|Avda|Avd|Bd|Bld|Pl|Pza|R|Cl|Ctra|Str|Ul)\.\s+(?:{_PARTICLE}\s+){{0,2}}{_NAME},?\s+"
                rf"(?:n[º°o]\.?\s*)?{_NUMBER}\b"
            ),
            re.NOFLAG,
        ),
        # Flat 602, Lotus Towers, MG Road, Bengaluru 560001
        (
            (
                rf"(?<![\w.])(?:Flat|Apt\.?|Plot|No\.|Unit|House|Block|Shop|Door|Lot|Villa)\s+\#?\d+[A-Za-z]?,\s+{_NAME}"
                rf"(?:,\s+(?:{_NAME}|{_NUMBER})){{1,4}}(?:\s+\d{{5,6}}\b)?"
            ),
            re.NOFLAG,
        ),
        # Calle Serrano; Boulevard Gambetta; Rosenstraße: no place is called so, whatever comes after
        (
            (
                rf"(?<![\w.])(?:[Rr]ue|[Cc]alle|[Cc]arrer|[Aa]venida|[Bb]oulevard|[Ii]mpasse|[Pp]iazza|[Vv]iale|[Rr]ua|[Uu]lica|ul\.|[Pp]raça|[Jj]alan)"
                rf"\s+(?:{_PARTICLE}\s+|d[’']|l[’'])*{_NAME}"
            ),
            re.NOFLAG,
        ),
        (
            (
                rf"(?<![\w.-]){_CAPITAL}(?<=[^\W\d_]{{6}})(?<=traße|rasse|traat|gatan|racht|allee|vägen|gasse)"
                rf"(?![\w-])"
            ),
            re.NOFLAG,
        ),
        # a number, words, a number or a unit: 526 Rua Cyro Schmutzer Franco 1213 Apt. 204; 224 4966 Bond
        (
            (
                rf"(?<![\w.])\d{{1,6}}[ ]{_NUMBER}[ ](?:{_PARTICLE}\s+){{0,2}}{_CAPITAL}"
                rf"(?:[ ](?:{_PARTICLE}\s+){{0,2}}[\w.'’/-]+){{0,5}}?(?=\s*,"
                rf"|\s*\n|\s+(?:Apt|Suite|Unit)\b|\s*$|\.\s)"
            ),
            re.MULTILINE,
        ),
        (
            (
                r"(?<![\w.:])\d{1,6}(?:[ ][\w.'’/-]+){1,7}\s*,?\s*(?:apt|apartment|suite|ste|unit|flat)"
                r"\b\.?\s*\#?\d+[a-z]?\b"
            ),
            re.IGNORECASE,
        ),
        (
            (
                rf"(?<![\w.])(?:{_CAPITAL}[ ]+){{1,5}}(?:{_NUMBER}\b\.?)?(?:[ ]{_CAPITAL}){{0,3}}\s*,?\s*(?:Apt"
                rf"|Apartment|Suite|Ste|Unit|Flat|Room|Floor)\b\.?\s*\#?\d+[A-Za-z]?\b"
            ),
            re.NOFLAG,
        ),
        # 5638 Aasa 43, Humilimont
        (
            (
                rf"(?<![\w.])\d{{1,6}}[ ](?:{_CAPITAL}[ ]"
                rf"|{_PARTICLE}[ ]){{1,4}}\d{{1,4}}[A-Za-z]?\b\.?(?=\s*[,\n]|\s*$)"
            ),
            re.MULTILINE,
        ),
        (
            (
                rf"(?<![\w.])(?:{_CAPITAL}[ ]){{1,3}}(?:Strasse|Straße|Baan|Gasse|Platz|Weg|Allee|Damm|Ring"
                rf"|Ufer|terrasse|gate|vei|vej|allé|gata|útja|tér|tere|kapu|utca|út"
                rf"|u)\.?[ ]\d{{1,4}}[A-Za-z]?\b\.?"
            ),
            re.NOFLAG,
        ),
        # 205 Gillette Motorway, Xenia, CO 04075: whatever the street is called
        (
            (
                rf"(?<![\w.])\d{{1,6}}[ ](?:{_CAPITAL}[ ]?){{1,4}},?\s+{_CAPITAL}(?:[ ]{_CAPITAL}){{0,2}},\s*"
                rf"[A-Z]{{2}}\s+\d{{5}}(?:-\d{{4}})?\b"
            ),
            re.NOFLAG,
        ),
        (r"\b[A-Z]{2,5}\s[^\W\d_]+,?\s+(?:FPO|APO|DPO)\s+A[AEP]\s+\d{5}\b", re.NOFLAG),
        (
            (
                rf"\bcorner\s+of\s+[^\n?!;,]{{3,50}}?\s(?:and|&)\s(?:{_CAPITAL}"
                rf"|\d{{1,5}})(?:[ ](?:{_CAPITAL}|\d{{1,4}}\b\.?)){{0,4}}"
            ),
            re.NOFLAG,
        ),
        (rf"(?<![\w.])(?:{_PARTICLE}[ ]|{_CAPITAL}[ ]){{1,4}}\d{{1,4}}[A-Za-z]?,\s+\d{{4,5}}\s+{_CAPITAL}", re.NOFLAG),
        (r"\b(?:Unit|PSC|CMR|Apt\.?|Flat|Suite|P\.?\s?O\.?)\s+(?:Box\s+)?\d+[A-Z]?,?\s+(?:Box\s+)?\d+\b", re.NOFLAG),
        (r"\b(?:P\.?\s?O\.?\s*Box|Postfach|Apartado|B\.?P\.?)\s+\d+\b", re.NOFLAG),
        (rf"(?<![\w.])(?:Apt|Apartment|Flat|Suite)\.?\s+\#?\d+[A-Za-z]?,\s+\d+\s+{_NAME}", re.NOFLAG),
        (
            (
                r"(?:北海道|東京都|(?:大阪|京都)府|[\u4e00-\u9fff]{2,3}県)[\u4e00-\u9fff\u3040-\u30ff\d０-９ー−-]{3,30}"
                r"|[\u4e00-\u9fff]{2,6}(?:省|市)[\u4e00-\u9fff]{1,8}(?:区|县|市)[\u4e00-\u9fff\d]{2,20}(?:号|室|弄"
                r"|路)"
            ),
            re.NOFLAG,
        ),
        # postcode and town, town and postcode
        (rf"(?<![\w.-]){_CAPITAL}(?:[ ]{_CAPITAL}){{0,2}},\s*[A-Z]{{2}}\s+\d{{5}}(?:-\d{{4}})?\b", re.NOFLAG),
        (
            (
                r"(?<!\w)(?:[A-Z]{1,2}\d[A-Z\d]?[ ]?\d[ABD-HJLNP-UW-Z]{2}"
                r"|[A-CEGHJ-NPR-TVXY]\d[A-Z][ -]\d[A-Z]\d)(?!\w)"
            ),
            re.NOFLAG,
        ),
    )
)
_CUE: Final = re.compile(
    _flat(
        r"""(?i)\b(?:address(?:es)?(?:\s+(?:is|to|below|of\s+\w+|for\s+\w+))?|live[sd]?\s+at|living\s+at|resid(?:es?|ing|ence)\s+at|ship(?:ped)?\s+(?:\w+\s+)?to|deliver(?:ed)?\s+(?:\w+\s+)?to|located\s+at|moved\s+to|meet\s+(?:me|you|us)\s+at
        |taxi\s+to|wohn(?:e|haft\s+in)|adresse|dirección|endereço|indirizzo|chez\s+moi|anschrift)\s*(?:is\s+|:\s*|at\s+)?(?P<value>\d[^\n?!;:"|]{4,60})"""
    )
)
_DATE: Final = re.compile(
    r"(?i)\d{1,2}\.?\s(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|o[ck]t|nov|de[cz])[a-z]*\.?,?\s\d{2,4}\b"
)
_POSTCODE: Final = re.compile(
    r"(?i)\b(?:zip|postal|post|postcode|plz|cep|cap|pin)(?:\s?-?code)?\s*(?:is\s+"
    r"|:\s*)(?P<value>[A-Z]{0,2}-?\d{3,6}(?:[- ][A-Z0-9]{2,4})?"
    r"|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2})\b"
)
_REST: Final = re.compile(
    _flat(
        rf"""(?:[ \t]*[,\n][ \t]*(?:>[ ]*)?(?:,[ ]*)?|[ ]+)(?:
        (?:Apt|Apartment|Suite|Ste|Unit|Flat|Room|Floor|Box|Fl)\b\.?\s*\#?\d+[A-Za-z]?\b
        |(?:m|lok|et|apto)\.[ ]?\d+[A-Za-z]?\b
        |(?:DPO|APO|FPO)\s+A[AEP]\s+\d{{5}}
        |(?:[A-Z]{{1,2}}\d[A-Z\d]?[ ]?\d[A-Z]{{2}})\b
        |\d{{4}}[ ]?[A-Z]{{2}}\b|\d{{2}}-\d{{3}}\b|\d{{5}}-?\d{{3}}\b|\d{{3}}[ ]\d{{2}}\b
        |/[ ]?[A-Z]{{2}}\b|\([A-Z]{{2}}\)
        |(?:[A-Z]{{1,3}}-)?\d{{4,6}}(?:[- ]\d{{3,4}})?\b(?![ -]?\d)
        |(?:[A-Z]{{2,3}}|[a-z]{{2,3}})\b(?=[ \n,]*\d{{4,6}}\b|[ ]*\n[, ]*\d)
        |(?P<town>{_CAPITAL}(?:[ ](?:{_PARTICLE}[ ])?(?:{_CAPITAL}|\d{{1,2}}\b)){{0,3}}))"""
    )
)
# Words that begin the next sentence or field rather than a town.
_STOP: Final = re.compile(
    r"(?i)(?:i|please|thanks?|phone|tel|email|fax|mobile|office|ssn|dob|id|bot|user|what|how|can"
    r"|the|we|my|is|it|and|when|if|hello|this|he|she|they|you|call)\b"
)
_POSTCODE_END: Final = re.compile(r"\d(?:[ ]?[A-Z]{2})?$")
_MOST_PIECES: Final = 8


def find(text: str, lexicon: Lexicon) -> Iterator[Span]:
    """Return the addresses in a text, each whole."""
    for pattern in _STREETS:
        for match in pattern.finditer(text):
            if any(character.isalpha() for character in match[0]) and not _DATE.match(match[0]):
                yield Span(match.start(), _end(text, match.end(), lexicon), "ADDRESS", 0.92, "address")
    for match in _POSTCODE.finditer(text):
        yield Span(*match.span("value"), "ADDRESS", 0.85, "postcode by name")
    for match in _CUE.finditer(text):
        start, end = match.span("value")
        yield Span(
            start,
            _end(text, start + len(text[start:end].split(",")[0].rstrip()), lexicon),
            "ADDRESS",
            0.8,
            "address by name",
        )


def _end(text: str, end: int, lexicon: Lexicon) -> int:
    """Return where an address ends that has a street before `end`."""
    for _ in range(_MOST_PIECES):
        piece = _REST.match(text, end)
        if piece is None:
            return end
        town = piece["town"]
        if town is not None:
            apart = piece[0][0] in ",\n" or "," in piece[0] or "\n" in piece[0]
            if _STOP.match(town) or (
                not apart and not _begins_with_country(town, lexicon) and not _postcode_before(text, end)
            ):
                return end
        end = piece.end()
    return end


def _begins_with_country(town: str, lexicon: Lexicon) -> bool:
    words = town.casefold().split()
    return any(" ".join(words[:length]) in lexicon.countries for length in range(1, len(words) + 1))


def _postcode_before(text: str, end: int) -> bool:
    return _POSTCODE_END.search(text, max(0, end - 8), end) is not None
