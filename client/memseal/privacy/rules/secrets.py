"""Secrets: keys of providers, tokens, private keys, passwords in settings and in prose."""

import math
import re
from collections import Counter
from itertools import pairwise
from typing import Final

from memseal.privacy.rules.rule import Rule, compiled

_NO_SECRET: Final = frozenset(
    """
    true false none null yes no the a an and or not is are was reset required wrong incorrect invalid expired changed
    unknown hidden redacted secret password token string str int bool value example your my his her their our this that
    protected manager policy field length strength stored safe encrypted hashed correct missing empty weak strong too
    still already only what how why when where who which used needed asked shared known good bad ok fine saved there
    here same sent longer shorter case-sensitive at on in for with something anything nothing everything it he she we
    they you
    """.split()
)
# Bits a character that random letters and digits have; words have less.
_RANDOM_BITS: Final = 3.0
_KEY_BITS: Final = 3.6
_SHORTEST_KEY: Final = 20


def _is_password(text: str) -> bool:
    plain = text.strip("\"'`.,;:!?()[]{}<>*_")
    return len(plain) >= 3 and plain.casefold() not in _NO_SECRET


def _is_strange(text: str) -> bool:
    """Whether a word in prose is no word: digits or signs among its letters."""
    return _is_password(text) and (any(character.isdigit() for character in text) or not text.strip(".,;:!?").isalpha())


def _is_random(text: str) -> bool:
    return _bits(text) >= _RANDOM_BITS and any(c.isdigit() for c in text) and any(c.isalpha() for c in text)


def _bits(text: str) -> float:
    """Return the bits of information a character, as far as how often each occurs tells."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


def _is_mixed(text: str) -> bool:
    """Whether a long word is no name of a program's and no number: capitals, small letters and digits mixed."""
    longest = max(re.split(r"[_.:-]", text), key=len)
    cases = sum(
        left.isalpha() and right.isalpha() and left.islower() and right.isupper() for left, right in pairwise(text)
    )
    digits = sum(character.isdigit() for character in text)
    return len(longest) >= _SHORTEST_KEY and digits >= 2 and cases >= 2 and _bits(longest) >= _KEY_BITS


def _is_phrase(text: str) -> bool:
    return _is_password(text.split()[0])


_ADDRESS: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
# What a password is called, in several languages.
_CALLED: Final = (
    r"passwords?|passwort|passphrase|passcode|pass\s?code|kennwort|losung|contraseña|clave|mot\sde\spasse|senha"
    r"|palavra-passe"
    r"|parola|wachtwoord|lösenord|adgangskode|passord|salasana|hasło|heslo|jelszó|şifre|пароль|密码|パスワード|비밀번호|pwd|pw"
)

RULES: Final = (
    Rule(
        "provider key",
        "SECRET",
        compiled(
            r"""(?<![A-Za-z0-9])(?:
            (?:sk|pk|rk)[-_](?:live|test|proj|ant|or|svcacct|admin)?[-_]?[A-Za-z0-9_-]{14,200}
            | gh[pousr]_[A-Za-z0-9]{20,255} | github_pat_[A-Za-z0-9_]{20,255} | gl(?:pat|ptt|dt|rt
            |cbt|soat|ft|agent)-[A-Za-z0-9_=-]{16,}
            | (?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA|AGPA|ANPA|ANVA)[A-Z0-9]{12,20}
            | xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,} | xapp-[A-Za-z0-9-]{10,}
            | hooks\.slack\.com/services/[A-Za-z0-9/]{20,}
            | hf_[A-Za-z0-9]{16,} | npm_[A-Za-z0-9]{20,} | pypi-[A-Za-z0-9_-]{16,}
            | AIza[A-Za-z0-9_-]{30,} | ya29\.[A-Za-z0-9_-]{20,}
            | SG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,} | (?:AC|SK)[0-9a-f]{32}
            | dop_v1_[0-9a-f]{32,} | shp(?:at|ca|pa|ss)_[0-9a-fA-F]{20,}
            | whsec_[A-Za-z0-9]{16,} | lin_api_[A-Za-z0-9]{20,} | secret_[A-Za-z0-9]{20,}
            | ntn_[A-Za-z0-9]{20,} | gsk_[A-Za-z0-9]{20,}
            | r8_[A-Za-z0-9]{20,} | xai-[A-Za-z0-9]{20,} | pplx-[A-Za-z0-9]{20,}
            | dckr_pat_[A-Za-z0-9_-]{16,} | tskey-[A-Za-z0-9-]{16,}
            | hv[sb]\.[A-Za-z0-9_-]{20,} | nfp_[A-Za-z0-9]{20,} | vercel_[A-Za-z0-9]{16,}
            | sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{16,}
            | EAAC[A-Za-z0-9]{20,} | \d{8,10}:AA[A-Za-z0-9_-]{30,} | AGE-SECRET-KEY-1[A-Z0-9]{20,} | key-[0-9a-f]{32}
            )(?![A-Za-z0-9])""",
        ),
        0.99,
    ),
    Rule("jwt", "SECRET", compiled(r"\bey[JKI][A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*){1,3}"), 0.99),
    Rule(
        "private key",
        "SECRET",
        compiled(
            (
                r"-----BEGIN\ [A-Z0-9 ]*PRIVATE\ KEY(?:\ BLOCK)?-----"
                r"(?:.*?-----END\ [A-Z0-9 ]*PRIVATE\ KEY(?:\ BLOCK)?-----"
                r"|.*\Z)"
            ),
            re.DOTALL,
        ),
        1.0,
    ),
    Rule(
        "bearer",
        "SECRET",
        compiled(r"\b(?:Bearer|Basic|Token)\s+(?P<value>[A-Za-z0-9._~+/=-]{16,})", re.IGNORECASE),
        0.97,
        accept=_is_random,
    ),
    Rule(
        "password in a URL",
        "SECRET",
        compiled(r"\b[a-z][a-z0-9+.-]{1,30}://(?P<value>[^\s/@:]{0,80}:[^\s/]{1,120})@(?=[\w.\[-])", re.IGNORECASE),
        1.0,
    ),
    Rule("curl -u", "SECRET", compiled(r"\s(?:-u|--user)[\s=]+[\"']?(?P<value>[^\s:\"']{1,64}:[^\s\"']{3,120})"), 0.97),
    Rule(
        "password in SQL",
        "SECRET",
        compiled(
            (
                r"\b(?:identified\s+(?:by|with\s+\w+\s+by)"
                r"|(?:with\s+)?(?:encrypted\s+)?password)\s+['\"](?P<value>[^'\"\n]{3,200})['\"]"
            ),
            re.IGNORECASE,
        ),
        0.97,
    ),
    Rule(
        "password of a command",
        "SECRET",
        compiled(
            (
                r"(?:^|\s)(?:--(?:password|pass|token|secret|api-key|auth)[=\s]+|sshpass\s+-p\s*"
                r"|login\b[^\n]{0,80}?\s-p\s*|mysql\b[^\n]{0,80}\s-p)[\"']?(?P<value>[^\s\"']{3,200})"
            ),
            re.IGNORECASE,
        ),
        0.96,
    ),
    Rule(
        "setting",
        "SECRET",
        compiled(
            r"""(?<![A-Za-z])(?:[\w.-]{0,40}(?:api[_-]?key|apikey|secret(?:[_-]?(?:access)?[_-]?key)?
            |access[_-]?key|auth[_-]?token|private[_-]?key|client[_-]?secret
            |access[_-]?token|refresh[_-]?token|session[_-]?token|password|passwort|passwd
            |passphrase|pwd|token|credential|(?:(?<=[\W_])|(?<=db))pass)|pass)
            ["']?\s*(?::=|=>|[:=])\s*(?:["'](?P<quoted>[^"'\n]{3,200})["']|(?P<bare>[^\s"',;&|]{3,200}))""".replace(
                "(?P<quoted>", "(?P<value>"
            ).replace("|(?P<bare>[^\\s\"',;&|]{3,200})", ""),
            re.IGNORECASE,
        ),
        0.96,
        accept=_is_password,
    ),
    Rule(
        "setting without quotes",
        "SECRET",
        compiled(
            r"""(?<![A-Za-z])(?:[\w.-]{0,40}(?:api[_\s-]?key|apikey|secret(?:[_-]?(?:access)?[_-]?key)?
            |access[_-]?key|auth[_-]?token|private[_-]?key|client[_-]?secret
            |access[_-]?token|refresh[_-]?token|session[_-]?token|password|passwort|passwd
            |passphrase|pwd|token|credential|(?:(?<=[\W_])|(?<=db))pass)|pass|sig|signature|api_?key
            |key|auth)
            \s*(?:=|:=|:)\s*(?P<value>[^\s"',;&|<>(){}]{4,4000})""",
            re.IGNORECASE,
        ),
        0.95,
        accept=_is_strange,
    ),
    Rule(
        "key in prose",
        "SECRET",
        compiled(
            r"""\b(?:api|access|secret|auth|license|licence|private|encryption|master|recovery|product)[\s_-](?:key
            |token|code)s?\b[^\n:=]{0,30}?(?:\bis|[:=])\s*["'`]?
            (?P<value>[^\s"'`,;<>]{6,200}(?<![.!?]))""",
            re.IGNORECASE,
        ),
        0.95,
        accept=_is_strange,
    ),
    Rule(
        "password in prose",
        "SECRET",
        compiled(
            rf"""\b(?:{_CALLED})\b
            (?:\s+(?:for|of|to|on|at|in|für|de|del|do|da|von|zum|zur|van|pour)\s+[^\n:=]{{1,60}}?
            |\s+[\w-]{{2,20}}(?=\s?:))??\s*
            (?:\b(?:is|was|ist|war|lautet|es|est|è|é|to|(?:used\sto|should|must|will|can)\sbe)(?:\s+(?:now|still
            |currently|set\sto|changed\sto|reset\sto))?\s|=|:|->|→)
            \s*["'`]?(?P<value>[^\s"'`<>]{{3,80}}(?<![.,;!?)]))""",
            re.IGNORECASE,
        ),
        0.95,
        accept=_is_password,
    ),
    Rule(
        "phrase",
        "SECRET",
        compiled(
            r"""\b(?:pass\s?phrase|(?:recovery|seed|backup|secret|security|unlock)\s(?:phrase|words|answer)
            |answer\sto\s(?:the|my|your)\s(?:security|secret)\squestion)\b
            (?:\s+(?:for|of|to|on)\s+[^\n:=]{1,40}?)??\s*(?:\b(?:is|was)\s|=
            |:)\s*["'`]?(?P<value>[^\s"'`.,;:!?<>]{2,40}(?:\s[^\s"'`.,;:!?<>]{1,40}){0,23})""",
            re.IGNORECASE,
        ),
        0.9,
        accept=_is_phrase,
    ),
    Rule(
        "value as password",
        "SECRET",
        compiled(
            rf"""\b(?:use|used|using|enter|type|try|set|took|take|chose
            |choose)\s["'`]?(?P<value>[^\s"'`]{{4,80}})["'`]?\s(?:as|for)\s(?:\w+\s){{0,3}}(?:{_CALLED}|pin|token
            |key)\b""",
            re.IGNORECASE,
        ),
        0.9,
        accept=_is_strange,
    ),
    Rule(
        "user and password",
        "SECRET",
        compiled(
            r"\b(?:credentials?|creds|log-?ins?|account|access|zugangsdaten|anmeldedaten)\b[^\n:]{0,30}:\s*"
            r"[A-Za-z][\w.@+-]{1,64}\s?[:/|]\s?(?P<value>[^\s\"'`<>:]{4,80}(?<![.,;!?)]))",
            re.IGNORECASE,
        ),
        0.9,
        accept=_is_strange,
    ),
    Rule(
        "logs in with",
        "SECRET",
        compiled(
            r"\b(?:log(?:s|ged|ging)?|sign(?:s|ed|ing)?)\s?-?(?:in"
            r"|on)\b[^\n]{0,60}?\bwith\s(?:the\s)?(?P<value>[^\s\"'`<>]{6,80}(?<![.,;!?)]))",
            re.IGNORECASE,
        ),
        0.85,
        accept=lambda text: _is_strange(text) and _ADDRESS.fullmatch(text) is None,
    ),
    Rule(
        "password beside its name",
        "SECRET",
        compiled(
            r"""\b(?:my)?(?:password|passwort|passphrase|passcode|pass|pwd|psw|pw|token|secret|api[\s_-]key)
            (?:'s|’s|\s+is|\s+was)?\s+["'`]?(?P<value>(?=[^\s"'`]*(?:\d
            |[a-z]-[a-z]+-))(?=[^\s"'`]*[a-z])[^\s"'`<>,;]{5,80}(?<![.,;!?)]))""",
            re.IGNORECASE,
        ),
        0.9,
        accept=_is_strange,
    ),
    Rule(
        "value before its name",
        "SECRET",
        compiled(
            r"""["'`](?P<value>[^\s"'`]{4,80})["'`]\s(?:as|is|for)\s(?:\w+\s){0,2}(?:password|passphrase|passcode
            |pin|token|secret|key)\b""",
            re.IGNORECASE,
        ),
        0.9,
        accept=_is_password,
    ),
    Rule(
        "backup codes",
        "SECRET",
        compiled(
            r"""\b(?:backup|recovery|rescue|emergency|scratch|2fa|mfa|one[-\s]time)\s(?:codes?
            |keys?)\b[^\n\w]{0,4}(?:\w+\s){0,2}?
            (?P<value>(?=[\w-]*\d)[\w-]{6,40}(?:[\s,;]+(?=[\w-]*\d)[\w-]{6,40}){0,19})""",
            re.IGNORECASE,
        ),
        0.9,
    ),
    Rule(
        "code of a network",
        "SECRET",
        compiled(
            r"""\b(?:wi-?fi|wlan|router|hotspot|network|guest)\s(?:code|key|password|passwort|pass|pw)\b\s*(?:is\b
            |ist\b|[:=])?\s*["'`]?(?P<value>[^\s"'`<>,;]{6,80}(?<![.,;!?)]))""",
            re.IGNORECASE,
        ),
        0.9,
        accept=_is_strange,
    ),
    Rule(
        "password after a user",
        "SECRET",
        compiled(
            r"""\b(?:log(?:ged)?\s?(?:in|on)|login|sign\s?in|credentials?|creds|account|user(?:name)?)\b[^\n/]{0,24}?
            [\w.@+-]{2,40}\s/\s(?P<value>[^\s"'`<>,;/@]{6,80}(?<![.,;!?)]))""",
            re.IGNORECASE,
        ),
        0.8,
        accept=_is_strange,
    ),
    Rule(
        "password's",
        "SECRET",
        compiled(r"(?i)\b(?:password|passphrase|passcode)['’]s\s+(?P<value>[^\s\"'`<>]{5,80}(?<![.,;!?)]))"),
        0.9,
        accept=_is_password,
    ),
    Rule(
        "code of a few digits",
        "SECRET",
        compiled(
            r"""\b(?:pin|puk|tan|otp|2fa|mfa|cvv|cvc2?|cvv2|(?:door|gate|alarm|entry|access|security|safe|lock
            |garage|verification|one[-\s]time|unlock|backup)[\s-](?:code|pin|number|combination)
            |(?:pass|pin)[\s-]?code|combination|geheimzahl|code(?=\s+(?:for|of|to)\s))\b(?:\s+(?:for|of
            |to)\s+[^\n.:=\d]{1,30}?)?(?:\s*(?:code|number|no\.?))?\s*(?:is\s+|was\s+|ist\s+|to\s+|used\sto\sbe\s+
            |[:=#]\s*|\s)(?:now\s+)?(?P<value>\#?\d[\d-]{2,11}\d?\#?\*?)(?![\w.]\d)""",
            re.IGNORECASE,
        ),
        0.95,
    ),
    Rule(
        "seed phrase",
        "SECRET",
        compiled(
            r"""\b(?:(?:seed|recovery|backup|wallet|secret)(?:\s+(?:phrase|words|seed|recovery))+
            |mnemonic(?:\s+(?:phrase|words|seed))?)\b\s*(?:\w+\s+)??(?:is\b|are\b|:|=
            |(?<=\s))\s*["'`]?(?P<value>(?:[a-z]{3,8}[\s,]+){11,23}[a-z]{3,8})\b""",
            re.IGNORECASE,
        ),
        0.99,
    ),
    Rule(
        "session",
        "SECRET",
        compiled(
            (
                r"\b(?:session|cookie|sid|jsessionid|phpsessid|csrf|nonce|signature|sig"
                r"|hash)(?:[\s_-]?(?:id|token"
                r"|key))?[\"']?\s*[:=]\s*[\"']?(?P<value>[A-Za-z0-9_-]{16,128})"
            ),
            re.IGNORECASE,
        ),
        0.9,
        accept=_is_random,
    ),
    Rule(
        "value in a query",
        "SECRET",
        compiled(
            (
                r"[?&](?:[\w-]*(?:token|key|secret|sig|signature|auth|code|session|sid|password|pass"
                r"|pwd))=(?P<value>[^\s&#\"'<>]{4,300})"
            ),
            re.IGNORECASE,
        ),
        0.97,
    ),
    Rule(
        "key of an unknown kind",
        "SECRET",
        compiled(
            r"(?<![\w./=+-])(?P<value>(?:[A-Za-z0-9]{2,12}[_.:-]){0,3}[A-Za-z0-9][\w+-]{18,}(?:[.:][\w+-]{16,})*={0,2})(?![\w/])"
        ),
        0.7,
        accept=_is_mixed,
    ),
    Rule(
        "long random hex",
        "SECRET",
        # The sum of a file or of a commit is no secret.
        compiled(
            r"(?<![\w-])(?<!sha256[ :=])(?<!sha512[ :=])(?<!sha1[ :=])(?<!md5[ :=])(?<!sha256:\s)"
            r"(?<!sha1:\s)(?<!md5:\s)"
            r"(?<!digest[ :=])(?<!commit[ :=])"
            r"(?P<value>[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})(?![\w-])",
            re.IGNORECASE,
        ),
        0.6,
        accept=_is_random,
    ),
)
