"""What is not to be captured: credentials, and what touches money or health (lifecycle.md §6)."""

import math
import re
from collections import Counter
from typing import Final, Literal

from memseal.privacy.rules import numbers, secrets
from memseal.privacy.rules.rule import apply
from memseal.privacy.spans import resolve

Category = Literal["credentials", "financial", "medical"]
CATEGORIES: Final[tuple[Category, ...]] = ("credentials", "financial", "medical")
COVER: Final = "[secret]"

_ACCOUNTS: Final = frozenset(("CREDIT_CARD", "IBAN", "BANK_ACCOUNT", "CRYPTO"))
_HEALTH: Final = frozenset(("MEDICAL_RECORD_NUMBER", "US_MBI", "UK_NHS"))
# Numbers that open doors at an office: who has them passes for the person.
_IDENTITY: Final = frozenset(rule.type for rule in numbers.RULES) - _ACCOUNTS - _HEALTH - frozenset(
    ("LOCATION", "AGE", "DATE_OF_BIRTH", "VEHICLE", "EMPLOYEE_ID")
)  # fmt: skip
_CREDENTIALS: Final = re.compile(
    r"""\b(?:pass(?:word|code|phrase|wort)s?|pwd|pins?|puk|otp|2fa|cvv2?|cvc2?|api[\s_-]?keys?|secret\s+(?:key
    |code|word|question)s?
    |log(?:ged)?[\s-]?in|access\s+(?:keys?|codes?|tokens?)|private\s+keys?|recovery\s+(?:codes?|keys?|phrases?)|seed\s+(?:phrase
    |words)|security\s+(?:code|answer|question)s?
    |(?:door|gate|alarm|garage|entry|safe|locker|unlock|backup|verification)\s+(?:codes?|combinations?)
    |combination\s+(?:is|of|to)|tokens?|credentials?|logins?
    |kennw(?:ort|örter)|geheimzahl|zugangsdaten|zugangscode|türcode
    |mots?\s+de\s+passe|code\s+(?:secret|d.accès|pin)|identifiants
    |contraseñas?|clave\s+(?:secreta|de\s+acceso)|código\s+(?:secreto|de\s+acceso)|claves?)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_FINANCIAL: Final = re.compile(
    r"""\b(?:salar(?:y|ies)|wages?|income|paycheck|mortgage|loans?|debts?|overdraft|bankrupt(?:cy)?
    |credit\s+(?:card|score|rating)s?|bank\s+(?:account|balance)s?|account\s+(?:number|balance)
    |savings\s+account|net\s+worth|pension|tax(?:es)?\s+(?:return|debt|bill|number|id)|i\s+earn|i\s+owe|(?:stock
    |crypto)\s+portfolio|iban|insolven(?:t|cy)
    |gehalt|schulden|kredit|darlehen|hypothek|kontostand|konto(?:nummer)?|verdiene|einkommen
    |salaire|dettes?|emprunt|hypothèque|compte\s+bancaire|revenus?
    |sueldo|salario|deudas?|hipoteca|préstamo|cuenta\s+bancaria|ingresos)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_MEDICAL: Final = re.compile(
    r"""\b(?:allerg(?:y|ies|ic)|intoleran(?:t|ce)|diagnos(?:ed|is|es)|diabet(?:es|ic)|insulin|cancer|tumou?r
    |chemo(?:therapy)?|hiv|aids|hepatitis|asthma(?:tic)?|epilep(?:sy|tic)|migraines?
    |depress(?:ed|ion)|anxiety|bipolar|schizophreni[ac]|autis(?:m|tic)|adhd|ptsd|ocd|therap(?:y|ist)|psychiatrist
    |psychologist|antidepressants?|medications?|medicines?|meds|prescri(?:bed|ption)s?|pills?
    |pregnan(?:t|cy)|miscarriage|abortion|infertil(?:e|ity)|ivf|surgery|operation\s+on\s+my|blood\s+(?:pressure
    |sugar|type)|cholesterol|heart\s+(?:attack|disease|condition)|stroke|arthritis|celiac|coeliac
    |thyroid|disab(?:led|ility)|wheelchair|rehab|alcoholic|addict(?:ed|ion)?|sober|suicid(?:e|al)|symptoms?
    |disease|illness|vaccinated|epipen|inhaler|dialysis|dementia|alzheimer'?s?|parkinson'?s?
    |allergi(?:e|en|sch)|krankheit|krebs|diabetes|schwanger|medikamente?|depressionen?|therapie|operiert|asthma
    |blutdruck|behinder(?:t|ung)
    |allergique|allergies?|maladie|enceinte|médicaments?|dépression|opér[ée]e?|asthme|handicap[ée]e?
    |alérgic[oa]|alergias?|enfermedad|embarazada|medicamentos?|medicación|depresión|operad[oa]|asma
    |discapacidad)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_LONG: Final = re.compile(r"[^\s,;]{12,}")
_RANDOM_BITS: Final = 3.2
# A bare number that is no year, a word with digits or signs in it, or of capitals among small letters: a code, or a
# password as people make them. An address or a machine's name is lost with them: a proposal, and not a secret.
_CODE: Final = re.compile(
    r"(?<![\w.,/])(?!(?:19|20)\d\d(?!\d))\d{4,}(?![.,]?\d)"
    r"|(?<!\w)(?=\w*[^\W\d])(?=(?:\w*?\d){2})\w{6,}(?:[!#$%&*+=?@^~]+(?=\s|$))?"
    r"|(?<!\w)(?=(?:\w*?[a-z][A-Z]){3})\w{12,}"
    r"|(?<!\S)[^\W_]+[!#$%*^~]+[^\W_][\w!#$%*^~]*"
)
_ADDRESS: Final = re.compile(r"https?://[^\s?#]*|[\w.+-]+@[\w.-]+")


def covered(text: str) -> tuple[str, bool]:
    """Return a text with a mark in place of whatever looks like a secret, and whether there was any.

    All the sanitizer's rules for secrets count here, also those that are less sure: what is lost is a proposal.
    """
    pieces, end = list[str](), 0
    for span in resolve(text, apply(secrets.RULES, text)):
        pieces += [text[end : span.start], COVER]
        end = span.end
    plain = "".join((*pieces, text[end:]))
    shown = _CODE.sub(COVER, _LONG.sub(lambda match: COVER if _is_random(match[0]) else match[0], plain))
    return shown, shown != text


def categories_of(text: str) -> set[Category]:
    """Return the sensitive categories that a text touches."""
    types = {span.type for span in apply(numbers.RULES, text)}
    found = set[Category]()
    if COVER in text or types & _IDENTITY or _CREDENTIALS.search(text) or covered(text)[1]:
        found.add("credentials")
    if types & _ACCOUNTS or _FINANCIAL.search(text):
        found.add("financial")
    if types & _HEALTH or _MEDICAL.search(text):
        found.add("medical")
    return found


def _is_random(word: str) -> bool:
    """Whether a long word is no word: letters and digits mixed without a pattern, as keys have them."""
    plain = _ADDRESS.sub("", word)
    if len(plain) < 12 or not any(map(str.isdigit, plain)) or not any(map(str.isalpha, plain)):
        return False
    counts = Counter(plain)
    bits = -sum(count / len(plain) * math.log2(count / len(plain)) for count in counts.values())
    return bits >= _RANDOM_BITS
