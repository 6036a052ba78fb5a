"""Check digits of cards, accounts and national identifiers."""

import re
from collections.abc import Callable, Sequence
from typing import Final

Check = Callable[[str], bool]
_DIGIT_AND_LETTER: Final = {letter: str(number) for number, letter in enumerate("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")}
_TURNS: Final = (
    "0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip
_DIHEDRAL: Final = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_DNI: Final = "TRWAGMYFPDXBNJZSQVHLCKE"
_NRIC: Final = {"S": "JZIHGFEDCBA", "T": "GFEDCBAJZIH", "F": "XWUTRQPNMLK", "G": "RQPNMLKXWUT"}
_ODD_OF_FISCAL_CODE: Final = (
    1,
    0,
    5,
    7,
    9,
    13,
    15,
    17,
    19,
    21,
    2,
    4,
    18,
    20,
    11,
    3,
    6,
    8,
    12,
    14,
    16,
    10,
    22,
    25,
    24,
    23,
)


def digits_of(text: str) -> list[int]:
    """Return the digits in a text."""
    return [int(character) for character in text if character in "0123456789"]


def luhn(text: str) -> bool:
    """Whether the last digit is right (ISO/IEC 7812)."""
    digits = digits_of(text)[::-1]
    total = sum(digits[::2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return len(digits) > 1 and len(set(digits)) > 1 and total % 10 == 0


def card(text: str) -> bool:
    """Whether this is a payment card's number."""
    return 12 <= len(digits_of(text)) <= 19 and luhn(text)


def iban(text: str) -> bool:
    """Whether length and check digits are right (ISO 13616)."""
    plain = re.sub(r"[\s-]", "", text).upper()
    if not re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", plain):
        return False
    return int("".join(_DIGIT_AND_LETTER[character] for character in plain[4:] + plain[:4])) % 97 == 1


def verhoeff(text: str) -> bool:
    """Whether an Aadhaar number's last digit is right."""
    check = 0
    for place, digit in enumerate(reversed(digits_of(text))):
        check = int(_DIHEDRAL[check][int(_TURNS[place % 8][digit])])
    return check == 0


def weighted(text: str, weights: Sequence[int], modulus: int) -> bool:
    """Whether the digits, each times its weight, add up to a multiple of the modulus."""
    digits = digits_of(text)
    return (
        len(digits) == len(weights) and len(set(digits)) > 1 and sum(map(int.__mul__, digits, weights)) % modulus == 0
    )


def routing(text: str) -> bool:
    """Whether this is a routing number of a bank in the United States."""
    return weighted(text, (3, 7, 1, 3, 7, 1, 3, 7, 1), 10)


def nhs(text: str) -> bool:
    """Whether this is a number of the National Health Service."""
    return weighted(text, (10, 9, 8, 7, 6, 5, 4, 3, 2, 1), 11)


def pesel(text: str) -> bool:
    """Whether this is a Polish PESEL."""
    return weighted(text, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1), 10)


def cpf(text: str) -> bool:
    """Whether this is a Brazilian CPF."""
    digits = digits_of(text)
    if len(digits) != 11 or len(set(digits)) == 1:
        return False
    return all(
        sum(map(int.__mul__, digits[:length], range(length + 1, 1, -1))) * 10 % 11 % 10 == digits[length]
        for length in (9, 10)
    )


def dni(text: str) -> bool:
    """Whether this is a Spanish DNI or NIE."""
    plain = re.sub(r"[\s.-]", "", text).upper()
    number = plain[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return number.isascii() and number.isdecimal() and plain[-1] == _DNI[int(number) % 23]


def nric(text: str) -> bool:
    """Whether this is a Singaporean NRIC or FIN."""
    plain = text.upper()
    total = sum(map(int.__mul__, digits_of(plain), (2, 7, 6, 5, 4, 3, 2)))
    return plain[0] not in _NRIC or _NRIC[plain[0]][total % 11] == plain[-1]


def fiscal_code(text: str) -> bool:
    """Whether this is an Italian codice fiscale."""
    values = [
        int(_DIGIT_AND_LETTER[character]) % 10 if character.isdigit() else ord(character) - 65
        for character in text.upper()
    ]
    total = sum(_ODD_OF_FISCAL_CODE[value] if place % 2 == 0 else value for place, value in enumerate(values[:15]))
    return total % 26 == values[15]


def resident_id(text: str) -> bool:
    """Whether this is a Chinese resident identity number."""
    plain = text.upper()
    total = sum(int(digit) * 2 ** (17 - place) for place, digit in enumerate(plain[:17]))
    return plain[17] == "10X98765432"[total % 11]


def insee(text: str) -> bool:
    """Whether this is a French social security number, with its key."""
    plain = re.sub(r"[\s.-]", "", text).upper().replace("2A", "19").replace("2B", "18")
    return len(plain) == 15 and plain.isdecimal() and 97 - int(plain[:13]) % 97 == int(plain[13:])


def social_security(text: str) -> bool:
    """Whether this may be a number of the social security of the United States or a taxpayer's."""
    digits = re.sub(r"\D", "", text)
    return len(digits) == 9 and digits[:3] not in ("000", "666") and digits[3:5] != "00" and digits[5:] != "0000"
