"""Addresses of the internet: e-mail, web pages, machines, and names of users."""

import ipaddress
import re
from typing import Final

from memseal.privacy.rules.rule import Rule, compiled

_DOMAINS: Final = "|".join(
    """
    com org net edu gov mil int info biz io ai app dev co me tv cc us uk de fr es it nl be ch at pl cz sk hu ro bg gr pt
    se no fi dk is ie ru ua tr il in cn jp kr hk tw sg my th vn id ph au nz za ng ke eg ma br mx ar cl pe ca eu name pro
    xyz online site shop tech cloud email link ly gl example test local internal invalid
    """.split()
)
_BRACKETED = r"[\[({<]\s?(?:dot|\.|punkt|punto|point|ponto)\s?[\])}>]"
_DOT = rf"(?:{_BRACKETED}|\b(?:dot|punkt|punto|point|ponto)\b)"
_SIGN = rf"(?:{_DOT}|[\[({{<]?\b(?:underscore|dash|hyphen|minus|plus)\b[\])}}>]?)"
_VERSION: Final = re.compile(r"(?i)\b(?:version|release|ver\.?|v|build|python|node)[ :=]*$")


def _address(text: str) -> bool:
    try:
        ipaddress.ip_address(text.partition("/")[0].partition("%")[0])
    except ValueError:
        return False
    return text not in ("0.0.0.0", "127.0.0.1", "255.255.255.255", "::", "::1")  # noqa: S104  of every machine: they name nobody


RULES: Final = (
    Rule(
        "email",
        "EMAIL",
        compiled(
            r"""(?<![\w.+%-]) [\w][\w.+%'-]{0,63} \s?@\s? (?:[\w-]{1,63}\.){1,6} [^\W\d_][\w-]{1,23} (?![\w-])
            | (?<![\w.+%-]) [\w][\w.+%-]{0,63}@(?:[\w-]{1,63}\.){1,6}[^\W\d_]{2,24}""",
        ),
        1.0,
    ),
    Rule(
        "email in words",
        "EMAIL",
        compiled(
            rf"""\b(?!(?:me|us|him|her|them|mail|email|reach|contact|write|it|is|am|was|or|and|to|look|arrive|meet|home)\b\s+(?:at|@)\b)
            [\w.+-]{{1,64}}(?:\s?{_SIGN}\s?[\w-]{{1,32}}){{0,3}}
            \s*[\[({{<]?\s?(?:\bat\b|@|\barroba\b|\bklammeraffe\b|\bchiocciola\b|\barobase\b|\baffenschwanz\b)\s?[\])}}>]?\s*
            (?:(?:[\w-]{{1,63}}(?:\s?{_DOT}\s?|\.)){{1,3}}(?:{_DOMAINS})\b
            |(?:[\w-]{{1,63}}\s?(?:{_DOT})\s?){{1,3}}[a-z]{{2,14}}\b)""",
            re.IGNORECASE,
        ),
        0.95,
    ),
    Rule(
        "url",
        "URL",
        compiled(r"(?<![\w@])(?:https?|ftp|wss?|s3|ssh|git)://[^\s<>\"'|{}\\^`]{3,}(?<![.,;:!?)\]])", re.IGNORECASE),
        0.6,
    ),
    Rule(
        "domain",
        "URL",
        compiled(
            rf"(?<![\w@./-])(?:www\.)?(?:[a-z0-9][a-z0-9-]{{1,62}}\.){{1,4}}(?:{_DOMAINS})(?:/[^\s<>\"'|]*)?(?<![.,;:!?)\]])(?![\w@-])",
            re.IGNORECASE,
        ),
        0.55,
    ),
    Rule(
        "profile",
        "USERNAME",
        compiled(
            r"""(?:linkedin\.com/in|github\.com|gitlab\.com|twitter\.com|x\.com|instagram\.com|facebook\.com|t\.me
            |tiktok\.com/@|reddit\.com/u(?:ser)?)/(?P<value>@?[\w.-]{2,40}\w)""",
            re.IGNORECASE,
        ),
    ),
    Rule(
        "handle", "USERNAME", compiled(r"(?<![^\s(\[{<>\"'`,;:*|])(?P<value>@[A-Za-z_][\w.]{1,30}\w)(?!@|\.\w)"), 0.85
    ),
    Rule(
        "user name",
        "USERNAME",
        compiled(
            r"""\b(?:user[\s_-]?(?:name|id)?|login|db[\s_-]?user|account[\s_-]?name|benutzer(?:name)?|handle|screen[\s_-]?name)
            ["']?\s*(?:is\b|:=|=>|[:=])\s*["']?(?P<value>(?=[\w.-]*[\d_])[A-Za-z][\w.-]{2,38}\w)""",
            re.IGNORECASE,
        ),
        0.8,
    ),
    Rule(
        "account of a network",
        "USERNAME",
        compiled(
            r"""\b(?:instagram|insta|twitter|telegram|snapchat|snap|discord|tiktok|github|gitlab|skype|reddit|linkedin|twitch|steam|signal)
            (?:\s+(?:handle|user(?:name)?|account|id|name))?\s*(?:is\s|:|=)\s*(?P<value>@?[A-Za-z][\w.-]{2,38}\w)""",
            re.IGNORECASE,
        ),
        0.85,
    ),
    Rule(
        "user with number",
        "USERNAME",
        compiled(
            r"\b(?P<value>(?:user|admin|dev|mgr|usr|svc|root|operator|sys|app|ops|guest)_\d{2,8})\b", re.IGNORECASE
        ),
        0.75,
    ),
    Rule(
        "ipv4",
        "IP_ADDRESS",
        compiled(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?:/\d{1,2})?(?![\w]|\.\d)"),
        0.9,
        accept=_address,
    ),
    Rule(
        "ipv6",
        "IP_ADDRESS",
        compiled(
            r"(?<![\w:.])(?=[0-9a-f:.]*:[0-9a-f:.]*:)[0-9a-f:]{2,39}(?:(?<=:)\d{1,3}(?:\.\d{1,3}){3})?(?![\w:])",
            re.IGNORECASE,
        ),
        0.9,
        accept=lambda text: any(character.isdigit() for character in text) and _address(text),
    ),
    Rule(
        "mac",
        "MAC_ADDRESS",
        compiled(
            r"(?<![\w:-])(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}(?![\w:-])|\b(?:[0-9a-f]{4}\.){2}[0-9a-f]{4}\b", re.IGNORECASE
        ),
        0.95,
    ),
)


def is_version(text: str, start: int) -> bool:
    """Whether what looks like an address of a machine is a version of a program."""
    return _VERSION.search(text, max(0, start - 16), start) is not None
