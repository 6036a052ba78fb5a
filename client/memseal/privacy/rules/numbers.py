"""Numbers that name a person or an account: cards, national identifiers, records, wallets, birth dates."""

import re
from typing import Final

from memseal.privacy.rules import checksums
from memseal.privacy.rules.rule import Rule, compiled

_NO = (
    r"(?:\s*(?:card|id|code|identification|insurance|security|registration))?(?:\s*(?:number|numbers"
    r"|numero|número|numéro|num|nummer|nr|no)\b)?\.?(?:\s+(?:is|was|ist|lautet|es|est|é|on\s+file"
    r"|reads))?[\"']?\s*(?:[:=#]+|->)?\s*[\"'(]?"
)
_MONTH = (
    r"(?:jan(?:uar[yi]?)?|feb(?:ruar[yi]?)?|mar(?:ch)?|märz|apr(?:il)?|ma[iy]|june?|juni|july?|juli"
    r"|aug(?:ust)?|sep(?:t(?:ember)?)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)\.?"
)
_DATE = (
    rf"(?:\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\s?\d{{1,2}}[-/.]\s?(?:\d{{4}}|\d{{2}})"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)?(?:\s+of)?\s+{_MONTH}(?:,?\s+\d{{4}})?|{_MONTH}\s+\d{{1,2}}(?:st|nd"
    rf"|rd|th)?(?:,?\s+\d{{4}})?\b|\d{{4}}年\d{{1,2}}月\d{{1,2}}日|\d{{1,2}}[-\s]{_MONTH}[-\s]\d{{2,4}})"
)


# How long the accounts of a country are, without country and check digits (SWIFT's registry of IBANs): a pattern that
# took any length would take in the word after the number.
_IBAN_LENGTHS: Final = {
    11: "NO",
    12: "BE",
    14: "DK FK FI FO GL NL SD",
    15: "MK SI",
    16: "AT BA EE KZ LT LU MN XK",
    17: "CH CR HR LI LV",
    18: "BG BH DE GB GE IE ME RS VA",
    19: "AE GI IL IQ OM SO TL",
    20: "AD CZ ES MD PK RO SA SE SK TN VG LY",
    21: "PT ST",
    22: "IS TR",
    23: "FR GR IT MC MR SM BI DJ",
    24: "AL AZ BY CY DO GT HU LB NI PL SV",
    25: "BR EG PS QA UA",
    26: "JO KW MU YE",
    27: "MT SC",
    28: "LC",
    29: "RU",
}
_IBANS = "|".join(
    rf"(?:{'|'.join(countries.split())})[ -]?\d{{2}}(?:[ -]?[a-z0-9]){{{length}}}"
    for length, countries in _IBAN_LENGTHS.items()
)


def _ssn(text: str) -> bool:
    # Scanners read 0 as O and 1 as l or I.
    return checksums.social_security(text.translate(str.maketrans("OoIlSB", "001158")))


def _cued(words: str, value: str) -> re.Pattern[str]:
    alternatives = re.sub(r"\n\s*", "", words)
    return compiled(rf"(?<![^\W_])(?:{alternatives})(?![^\W_]){_NO}(?P<value>{value})(?![\w])", re.IGNORECASE)


def _has_digits(text: str) -> bool:
    return len(checksums.digits_of(text)) >= 4


_AMOUNT: Final = re.compile(r"\d{1,3}(?:[ .,]?\d{3})*[.,]\d{1,2}")  # of a tax: VAT 204.92


def _coordinates(text: str) -> bool:
    latitude, _, longitude = text.partition(",")
    return abs(float(latitude)) <= 90 and abs(float(longitude)) <= 180


# What the identifiers of persons are called in many countries; their shapes are too many, and too much like others.
_IDENTIFIERS: Final = r"""
    id|ident(?:ity|ification)?(?:\s+card)?|(?:personal|national|citizen|social|state|foreign|resident)\s+id
    |citizen(?:ship)?|voter(?:\s+id)?|ration\s+card|residence\s+permit|green\s?card|alien|visa|uscis|tax(?:payer)?(?:\s+(?:id|ref(?:erence)?))?|vat
    |driver'?s?\s+licen[cs]e|driving\s+licen[cs]e|licen[cs]e|dl|dvla|medicare|medicaid
    |social\s+(?:security|insurance)|itin|ein|tin|npi|dea
    |nino|ni|national\s+insurance|nhs|chi|utr|ppsn?|sin|ohip|ramq|tfn|abn|ird|nhi
    |aadha+r|pan|epic|uidai|nin|bvn|cnic|nicop|nid|nic|nik|ktp|nric|fin|mykad|ic|hkid|philsys|sss|umid|cccd|cmnd|iqama|emirates\s+id|kra
    |ssnit|sa\s+id|teudat\s+zehut|my\s?number|マイナンバー|주민등록번호|외국인등록번호|身份证(?:号码?)?|身分證(?:字號)?|เลขบัตรประชาชน
    |รหัสประชาชน|(?:תעודת|מספר)\s+זהות|رقم\s+الهوية|الرقم\s+القومي|کد\s+ملی|инн|снилс|паспорт|рнокпп|егн|јмбг|αμκα|αφμ|αδτ
    |steuer-?(?:id|identifikationsnummer|nummer)|sozialversicherung(?:snummer)?|sv-?nr|svnr|rentenversicherungsnummer|versichertennummer|kvnr
    |krankenversicherungsnummer|führerschein|personalausweis(?:nummer)?|ausweis(?:nummer)?|ahv|avs|ahv-?nr
    |s[ée]cu(?:rit[ée]\s+sociale)?|insee|nir|carte\s+(?:vitale|d'identité)|niss|rijksregisternummer|registre\s+national|matricule
    |bsn|burgerservicenummer|dni|nie|nif|nuss|cedula|cédula|c\.c|nit|cuit|cuil|rut|curp|rfc|nss
    |cpf|cnpj|rg|pis|cnh|título\s+de\s+eleitor|cartão\s+de\s+cidadão|codice\s+fiscale|cod\.?\s?fisc|cf|c\.f|partita\s+iva|tessera\s+sanitaria
    |pesel|nip|regon|dow[óo]d(?:\s+osobisty)?|rodn[ée]\s+č[íi]slo|r\.\s?č|szem[ée]lyi(?:\s+sz[áa]m)?|taj(?:\s+sz[áa]m)?|ad[óo]azonos[íi]t[óo](?:\s+jel)?
    |cnp|egn|oib|emšo|jmbg|amka|afm|t\.?\s?c\.?\s+kimlik|tckn|kimlik|isikukood|personas\s+kods|asmens\s+kodas
    |person(?:en)?nummer|samordningsnummer|f[øo]dsels(?:nummer|nr)|d-nummer|cpr(?:-nummer|-nr)?|henkil[öo]tunnus|hetu|kennitala|rrn"""


RULES: Final = (
    Rule(
        "card", "CREDIT_CARD", compiled(r"(?<![\w.-])\d(?:[ -]?\d){11,18}(?![\w-]|\.\d)"), 0.97, accept=checksums.card
    ),
    Rule(
        "card by name",
        "CREDIT_CARD",
        _cued(
            (
                r"(?:credit|debit|bank|visa|amex|master)?\s?card|visa|mastercard|amex|maestro"
                r"|karte(?:nnummer)?|tarjeta|carte"
            ),
            r"\d(?:[ -]?\d){11,18}",
        ),
        0.9,
    ),
    Rule(
        "iban",
        "IBAN",
        compiled(rf"(?<![A-Za-z0-9])(?:{_IBANS})(?![A-Za-z0-9])", re.IGNORECASE),
        1.0,
        accept=checksums.iban,
    ),
    Rule("iban by name", "IBAN", _cued("iban", r"[a-z]{2}\d{2}(?:[ -]?[a-z0-9]{2,5}){3,8}"), 0.9),
    Rule(
        "ssn",
        "US_SSN",
        compiled(r"(?<![\w-])[\dOoIlSB]{3}[-–][\dOoIlSB]{2}[-–][\dOoIlSB]{4}(?![\w-])"),
        0.95,
        accept=_ssn,
    ),
    Rule(
        "ssn by name",
        "US_SSN",
        _cued(r"ssn|itin|social\s+security|social", r"[\dOoIlSB]{3}[- .]?[\dOoIlSB]{2}[- .]?[\dOoIlSB]{4}"),
        0.97,
    ),
    Rule(
        "bank code", "BANK_ACCOUNT", _cued(r"bic|swift(?:[/ ]bic)?(?:\s*code)?", r"[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?")
    ),
    Rule("sort code", "BANK_ACCOUNT", _cued(r"sort(?:\s*code)?", r"\d{2}[- ]?\d{2}[- ]?\d{2}")),
    Rule(
        "account by name",
        "BANK_ACCOUNT",
        _cued(
            (
                r"(?:bank|checking|savings|giro|current|deposit)?\s*(?:account|acct|acc|a/c"
                r"|konto(?:nummer)?|cuenta|compte|routing|aba|bsb|swift|bic|clabe|ifsc)"
            ),
            r"(?=[\w -]*\d{4})[A-Z]{0,6}\d[\d -]{2,22}\d",
        ),
        0.92,
        accept=_has_digits,
    ),
    Rule(
        "routing",
        "BANK_ACCOUNT",
        compiled(r"(?<![\w-])\d{9}(?![\w-])"),
        0.7,
        compiled(r"routing|aba|transit", re.IGNORECASE),
        checksums.routing,
    ),
    Rule(
        "nino",
        "UK_NINO",
        compiled(
            (
                r"(?<!\w)(?!BG|GB|NK|KN|TN|NT"
                r"|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z][ -]?\d{2}[ -]?\d{2}[ -]?\d{2}[ -]?[A-D](?!\w)"
            ),
            re.IGNORECASE,
        ),
        0.95,
    ),
    Rule("nhs", "UK_NHS", compiled(r"(?<![\w-])\d{3}[ -]\d{3}[ -]\d{4}(?![\w-])"), 0.6, accept=checksums.nhs),
    Rule(
        "aadhaar",
        "IN_AADHAAR",
        compiled(r"(?<![\w-])[2-9]\d{3}[ -]?\d{4}[ -]?\d{4}(?![\w -]*\d)"),
        0.8,
        accept=checksums.verhoeff,
    ),
    Rule("pan", "IN_PAN", compiled(r"(?<!\w)[A-Z]{3}[ABCFGHLJPT][A-Z]\d{4}[A-Z](?!\w)"), 0.9),
    Rule(
        "dni",
        "ES_DNI",
        compiled(r"(?<!\w)(?:\d{2}\.?\d{3}\.?\d{3}[- ]?[A-Z]|[XYZ][- ]?\d{7}[- ]?[A-Z])(?!\w)", re.IGNORECASE),
        0.95,
        accept=checksums.dni,
    ),
    Rule(
        "codice fiscale",
        "IT_FISCAL_CODE",
        compiled(r"(?<!\w)[A-Z]{6}\d{2}[A-EHLMPR-T]\d{2}[A-Z]\d{3}[A-Z](?!\w)", re.IGNORECASE),
        0.95,
        accept=checksums.fiscal_code,
    ),
    Rule("pesel", "PL_PESEL", compiled(r"(?<![\w-])\d{2}[0-9]\d[0-3]\d{6}(?![\w-])"), 0.75, accept=checksums.pesel),
    Rule("cpf", "BR_CPF", compiled(r"(?<![\w-])\d{3}\.?\d{3}\.?\d{3}-?\d{2}(?![\w-])"), 0.85, accept=checksums.cpf),
    Rule(
        "resident id",
        "CN_RESIDENT_ID",
        compiled(r"(?<![A-Za-z0-9])[1-9]\d{5}(?:18|19|20)\d{2}[01]\d[0-3]\d{4}[\dXx](?![A-Za-z0-9])"),
        0.95,
        accept=checksums.resident_id,
    ),
    Rule("nric", "SG_NRIC", compiled(r"(?<!\w)[STFGM]\d{7}[A-Z](?!\w)"), 0.9, accept=checksums.nric),
    Rule(
        "insee",
        "FR_INSEE",
        compiled(r"(?<![\w-])[12] ?\d{2} ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}(?![\w-])"),
        0.95,
        accept=checksums.insee,
    ),
    Rule("rrn", "KR_RRN", compiled(r"(?<![\w-])\d{2}[01]\d[0-3]\d-[1-8]\d{6}(?![\w-])"), 0.9),
    Rule("sin", "CA_SIN", compiled(r"(?<![\w-])[1-9]\d{2}[ -]\d{3}[ -]\d{3}(?![\w-])"), 0.75, accept=checksums.luhn),
    Rule(
        "mbi",
        "US_MBI",
        compiled(
            r"(?<!\w)[1-9][AC-HJKMNP-RT-Y][AC-HJKMNP-RT-Y0-9]\d-?[AC-HJKMNP-RT-Y][AC-HJKMNP-RT-Y0-9]\d-?[AC-HJKMNP-RT-Y]{2}\d{2}(?!\w)"
        ),
        0.95,
    ),
    Rule(
        "identifier by name",
        "NATIONAL_ID",
        _cued(
            _IDENTIFIERS,
            r"(?=[\w. /-]*\d)[A-Z]{0,6}[\d][\dA-Z]{0,5}(?:[ ./-]?[\dA-Z]{1,6}){0,6}(?:\([\dA]\))?",
        ),
        0.9,
        accept=lambda text: 5 <= len(checksums.digits_of(text)) <= 20 and not _AMOUNT.fullmatch(text),
    ),
    Rule(
        "passport",
        "PASSPORT",
        _cued(
            r"passport|reisepass(?:nummer)?|pasaporte|passeport|passaporte|passaporto|paszport|paspoort|(?:reise)?pass-?(?:nummer|nr)|護照|护照",
            r"(?=[A-Z]*\d)(?=(?:[A-Z0-9]*\d){2})[A-Z0-9]{6,12}",
        ),
        0.95,
    ),
    Rule(
        "identity card",
        "NATIONAL_ID",
        _cued(
            r"(?:personal)?ausweis(?:nummer)?|identity\s+card|id\s+card|carte\s+d'identité|carta\s+d'identità|id-kaart",
            r"(?=[A-Z]*\d)[A-Z0-9]{7,12}",
        ),
        0.9,
    ),
    Rule(
        "record by name",
        "MEDICAL_RECORD_NUMBER",
        _cued(
            (
                r"mrn|medical\s+record|(?:resident|inmate|case|file)\s*(?:id|no|number|file)|patient(?:\s*(?:id|no|number|file))?|chart|hospital\s+(?:id|no"
                r"|number)|health\s+(?:id|card|record)|member\s*(?:id|no|number)?|policy"
                r"|insurance\s+id|case|claim|beneficiary|subscriber"
            ),
            r"(?=[\w-]*\d{3})[A-Z]{0,5}-?\d[\dA-Z-]{3,18}",
        ),
        0.93,
    ),
    Rule(
        "record",
        "MEDICAL_RECORD_NUMBER",
        compiled(r"(?<![\w-])(?:MRN|MED|PAT|PT|HOSP|EMR|EHR)[-#:]?\d{5,12}(?![\w-])"),
        0.95,
    ),
    Rule(
        "record before its name",
        "MEDICAL_RECORD_NUMBER",
        compiled(r"(?<![\w-])[A-Z]{0,4}-?\d{5,10}(?=\s+MRN\b)"),
        0.9,
    ),
    Rule(
        "employee",
        "EMPLOYEE_ID",
        _cued(
            r"employee|staff|badge|personnel|student|matrikel(?:nummer)?|customer|account\s+holder",
            r"(?=[\w-]*\d{3})[A-Z]{0,5}-?\d[\dA-Z-]{3,14}",
        ),
        0.8,
    ),
    Rule(
        "bitcoin",
        "CRYPTO",
        compiled(
            r"(?<!\w)(?:bc1[a-z0-9]{25,62}|[13][1-9A-HJ-NP-Za-km-z]{25,34}|0x[0-9a-fA-F]{40}"
            r"|[48][0-9AB][1-9A-HJ-NP-Za-km-z]{93}|T[1-9A-HJ-NP-Za-km-z]{33}"
            r"|ltc1[a-z0-9]{25,62})(?!\w)"
        ),
        0.9,
    ),
    Rule(
        "coordinates",
        "LOCATION",
        compiled(r"(?<![\w.])[-+]?\d{1,2}\.\d{3,8},\s?[-+]?\d{1,3}\.\d{3,8}(?![\w]|\.\d)"),
        0.9,
        accept=_coordinates,
    ),
    Rule(
        "vin",
        "VEHICLE",
        compiled(r"(?<!\w)(?=[A-HJ-NPR-Z0-9]*\d{4})(?=[0-9]*[A-Z])[A-HJ-NPR-Z0-9]{17}(?!\w)"),
        0.6,
        compiled("vin|vehicle|chassis|car", re.IGNORECASE),
    ),
    Rule(
        "birth date",
        "DATE_OF_BIRTH",
        compiled(
            rf"""(?<![^\W_])(?:born(?:\s+(?:on|in))?|b\.|d[._]?o[._]?b\.?|date[\s_-]?of[\s_-]?birth|birth[\s_-]?(?:date|day)|b-?day|geboren(?:\s+am)?|geb\.?(?:\s+am)?|geburts(?:datum|tag)|geb\.?-?datum|urodzon[ya]|data\s+urodzenia|född|syntynyt|født|data\s+de\s+nascimento|geboortedatum|дата\s+рождения|doğum\s+tarihi|n[ée]e?\s+le|(?:date\s+de\s+)?naissance
            |fecha\s+de\s+nacimiento|nacid[oa]\s+el|nascid[oa]\s+em|data\s+di\s+nascita|nat[oa]\s+il|生日|出生日期|出生)(?:\s+(?:is|was|falls\s+on|on|ist|it's|:))?["']?\s*(?:[:=,–-]|\(|\.\s+it'?s)?\s*["']?(?:on\s+)?(?:the\s+)?(?P<value>{_DATE})""",
            re.IGNORECASE,
        ),
        0.95,
    ),
    Rule("birth sign", "DATE_OF_BIRTH", compiled(rf"(?i)(?<!\S)\(?\*\s?(?P<value>{_DATE})(?!\S*\*)"), 0.8),
    Rule("birth year", "DATE_OF_BIRTH", compiled(r"(?i)\bborn\s+in\s+(?P<value>(?:19|20)\d{2})\b"), 0.85),
    Rule(
        "age",
        "AGE",
        compiled(
            (
                r"\b(?:i\s+turn|turns?|turned|turning|i'?m|aged?|age\s+(?:is|of)"
                r"|age:)\s+(?P<value>\d{1,3})(?:\s*(?:years?(?:\s+old)?|yo|y/o))?\b(?!\s*(?:%|percent"
                r"|o'?clock|minutes?|hours?|days?|weeks?|months?|km|miles?|euros?|dollars?|[.:,]\d))"
            ),
            re.IGNORECASE,
        ),
        0.7,
    ),
    Rule("age in years", "AGE", compiled(r"\b(?P<value>\d{1,3})[\s-](?:years?[\s-]old|y/?o)\b", re.IGNORECASE), 0.7),
)

_TABLE_HEADER: Final = re.compile(
    r"(?i)(?:^|[,;|\t])\s*\"?(?:dob|birth_?date|date_?of_?birth|birthday)\"?\s*(?=[,;|\t\r\n])"
)
_TABLE_DATE: Final = re.compile(rf"(?i)(?<![\w.-]){_DATE}(?![\w-])")


def dates_in_table(text: str) -> list[tuple[int, int]]:
    """Return dates under a heading of a table that says birth date."""
    header = _TABLE_HEADER.search(text)
    return [match.span() for match in _TABLE_DATE.finditer(text, header.end())] if header else []
