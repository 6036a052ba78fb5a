import pytest

from memseal.privacy.rules import checksums
from tests.sanitize.building import rules

FOUND = [
    ("EMAIL", "write to {a.lopez+list@mail.example.co.uk} today"),
    ("EMAIL", "my mail: {jo dot lopez at example dot org}"),
    ("EMAIL", "{jo [at] example [dot] com} or nothing"),
    ("EMAIL", "GET /users?mail={jo.lopez%40example.com}&page=2"),
    ("PHONE_NUMBER", "ring {+49 30 901820} after six"),
    ("PHONE_NUMBER", "tel. {020 7946 0123}"),
    ("PHONE_NUMBER", "fax: {(415) 555-0132}"),
    ("PHONE_NUMBER", "dial {six one seven, five five five, oh one nine nine}"),
    ("CREDIT_CARD", "pay with {5555 5555 5555 4444} now"),
    ("CREDIT_CARD", "visa {4012888888881881}"),
    ("IBAN", "to {NL91 ABNA 0417 1643 00} please"),
    ("IBAN", "iban {be68 5390 0754 7034}"),
    ("US_SSN", "SSN {219-09-9999}"),
    ("US_SSN", "social security number is {219099999}"),
    ("UK_NINO", "NI number {JG 10 37 59 A}"),
    ("UK_NHS", "NHS {401 023 2137}"),
    ("IN_AADHAAR", "aadhaar {4991 1866 5246}"),
    ("IN_PAN", "PAN {ABCPE1234F}"),
    ("ES_DNI", "NIE {X1234567L}"),
    ("PL_PESEL", "PESEL {02070803628}"),
    ("BR_CPF", "CPF {111.444.777-35}"),
    ("SG_NRIC", "NRIC {S0000001I}"),
    ("IT_FISCAL_CODE", "{MRTMTT91D08F205J}"),
    ("CN_RESIDENT_ID", "身份证 {11010519491231002X}"),
    ("FR_INSEE", "sécu {1 84 12 76 451 089 46}"),
    ("PASSPORT", "passport number: {X1234567}"),
    ("MEDICAL_RECORD_NUMBER", "MRN: {00931-22}"),
    ("MEDICAL_RECORD_NUMBER", "admitted as {MED-778812}"),
    ("BANK_ACCOUNT", "sort code {30-90-89}"),
    ("BANK_ACCOUNT", "account number {70872490}"),
    ("SECRET", "export KEY={sk-ant-api03-Qw4rTy7uIoPasDfGhJkL1zXcVbNm}"),
    ("SECRET", "{ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8}"),
    ("SECRET", "{glpat-a1B2c3D4e5F6g7H8i9J0}"),
    ("SECRET", "aws_secret_access_key = {kWcrlUX5JEDGM/LtmEENI/aVmYvHNif5zB+d9+ct}"),
    ("SECRET", "Cookie {eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF123456}"),
    ("SECRET", "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----"),
    ("SECRET", "the door code is {4417#}"),
    ("SECRET", "password for the router is {blue-Horse-99}"),
    ("SECRET", "redis://{cache:hunter3}@db.example.com:6379"),
    ("SECRET", "CREATE USER x IDENTIFIED BY '{Zk39!fgh}';"),
    ("SECRET", "seed phrase: {able acid also apex aqua arch atom aunt away axis baby back}"),
    ("IP_ADDRESS", "from {203.0.113.77} port 22"),
    ("IP_ADDRESS", "addr {2001:db8::8a2e:370:7334}"),
    ("MAC_ADDRESS", "nic {3c:22:fb:9a:01:7e}"),
    ("CRYPTO", "send to {0x52908400098527886E0F7030069857D2E4169EE7}"),
    ("USERNAME", "github.com/{jo-lopez-77}"),
    ("USERNAME", "thanks {@jo_lopez77}!"),
    ("DATE_OF_BIRTH", "born on {3 May 1971} in Lyon"),
    ("DATE_OF_BIRTH", "date of birth: {1971-05-03}"),
    ("DATE_OF_BIRTH", "geboren am {03.05.1971}"),
    ("DATE_OF_BIRTH", "id,dob\n7,{1971-05-03}\n"),
    ("ADDRESS", "she lives at {18 Rosewood Lane, Dayton, OH 45402}."),
    ("ADDRESS", "{Lindenallee 4a, 20099 Hamburg}"),
    ("ADDRESS", "{27 avenue Victor Hugo, 69003 Lyon}"),
    ("ADDRESS", "{P.O. Box 1882}"),
    ("ADDRESS", "ZIP: {90210}"),
    ("LOCATION", "seen at {51.50722, -0.12750}"),
    ("ORGANIZATION", "invoice of {Tallgrass Robotics GmbH}"),
    ("EMAIL", "{jo (dot) lopez (at) example (dot) museum} it is"),
    ("EMAIL", "{jo.lopez [at] example dot photography}"),
    ("IBAN", "wire it to {es9121000418450200051332} by noon"),
    ("IBAN", "RO account {RO49 AAAA 1B31 0075 9384 0000} and go"),
    ("NATIONAL_ID", "fødselsnummer {01010112345}"),
    ("NATIONAL_ID", "HKID {A123456(3)}"),
    ("NATIONAL_ID", "my CURP is {HEGG560427MVZRRL04}"),
    ("NATIONAL_ID", "Steuer-ID: {12 345 678 901}"),
    ("PASSPORT", "passport number: {CKLF9W4GV}"),
    ("MEDICAL_RECORD_NUMBER", "patient no. {5170636}"),
    ("SECRET", "use {figd_Qw4rTy7uIoPasDfGhJkL1zXcVbNm} for that"),
    ("SECRET", "{CFPAT-3czSiFXFljXGzZ4iG47ArrfphD7PxKg}"),
    ("SECRET", "log in with admin / {Winter4552x}"),
    ("SECRET", "The root password on db1 is {blue-kettle}"),
    ("SECRET", "the wifi code is {Harbour73x}"),
    ("SECRET", "the code to the door is {2138}"),
    ("SECRET", "redis://{:s3cr3tx}@cache:6379/0"),
    ("SECRET", "mnemonic: {able acid also apex aqua arch atom aunt away axis baby back}"),
    ("SECRET", "Mein Passwort lautet {Kessel-77}"),
    ("SECRET", "the password for jo.lopez@example.com is {blue-kettle-9}"),
    ("SECRET", "I set the pin to {0905}"),
    ("SECRET", 'use "{correct-kettle}" as password'),
    ("SECRET", "backup codes: {7015-3904 4445-6220}"),
    ("NATIONAL_ID", "Mein Personalausweis {LX783YYVF}"),
    ("PASSPORT", "my passport ({CFN1ZHH25}) expired"),
    ("DATE_OF_BIRTH", "born on the {28 September 1943}"),
    ("ADDRESS", "{205 Gillette Motorway, Xenia, CO 04075}"),
    ("ADDRESS", "{Julianastraat 518, 1119 HY Hoogezand-Sappemeer}"),
    ("DATE_OF_BIRTH", "geb. am {12.04.2005}"),
    ("DATE_OF_BIRTH", 'dateOfBirth: "{1954/02/28}"'),
    ("DATE_OF_BIRTH", "her bday is {18 Nov 1972}"),
    ("ADDRESS", "Lottelaan: {Lottelaan 8, 9578 LS, Den Hout}"),
    ("ADDRESS", "{ul. Warmińska 186, 81-269 Radzymin}"),
    ("ADDRESS", "{Camino de Rosa, 177, 42505 Elche}"),
    ("ORGANIZATION", "Priya Nair, {Globex Inc.}"),
    ("ORGANIZATION", "{Thornton and Sons} called"),
    ("PERSON", '"{Rea Quistgaard}" <rq@example.com>'),
    ("PERSON", "Thanks {Xiomara}!"),
    ("PERSON", "- {Leemet Quabel} (lead)"),
    ("PERSON", "{U. U. Aleksandersen} wrote it"),
    ("PERSON", "Dear {Oluwaseun Adeyemi}, welcome"),
    ("PERSON", "Patient: {MARTHA OKONKWO}"),
    ("PERSON", "my name is {xiomara}"),
    ("PERSON", "{Dr. Thibault}"),
    ("PERSON", "{Priyanka R. Deshmukh}"),
    ("PERSON", "lunch with {Jean-Luc D'Arcy}"),
    ("PERSON", "{Ｍａｒｔｈａ Ｏｋｏｎｋｗｏ} came"),
    ("PERSON", "{李小龙} 来了"),
    ("PERSON", "{Мария Иванова} приехала"),
    ("PERSON", "{박지성} from Seoul"),
]


@pytest.mark.parametrize(("type_", "marked"), FOUND, ids=[f"{place}-{case[0]}" for place, case in enumerate(FOUND)])
def test_personal_value_is_found_whole(type_: str, marked: str) -> None:
    start, end = (marked.index("{"), marked.index("}") - 1) if "{" in marked else (0, len(marked))
    text = marked.replace("{", "").replace("}", "") if "{" in marked else marked
    spans = rules().detect([text])[0]
    covering = [span for span in spans if span.start <= start and end <= span.end]
    assert covering
    assert type_ in {span.type for span in spans if span.start < end and start < span.end}


LEFT_ALONE = [
    "The meeting is on 3 May 2024 at 14:30 in room 12.",
    "It costs 1,299.00 euros, 15 % less than in 2019.",
    "std::vector<int> v; a::b::c",
    "version 10.2.3.4 of the program",
    "1607635102.00 -0.96\n1607635103.00 -0.55",
    "The password field is required.",
    "Please reset your token and try again.",
    "ISBN 978-3-16-148410-0 and RFC 9457",
    "will you bring a rose in may, or is it too hot",
    "for i in range(10): print(i ** 2)",
    "commit the change, then push; see section 4.2.1",
    "we have a gaming setup at home. It is loud",
    "Hi there, thanks team!",
    "- Hello World (example)",
    "call get_user_by_identifier_and_type_v2(self, aLongArgumentName)",
    "visa rules changed; the pass is closed",
]


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert rules().detect([text]) == [[]]


@pytest.mark.parametrize(
    ("check", "right"),
    [
        (checksums.card, "4111 1111 1111 1111"),
        (checksums.iban, "GB82 WEST 1234 5698 7654 32"),
        (checksums.nhs, "943 476 5919"),
        (checksums.verhoeff, "2341 2341 2346"),
        (checksums.pesel, "44051401359"),
        (checksums.cpf, "529.982.247-25"),
        (checksums.routing, "021000021"),
        (checksums.dni, "12345678Z"),
        (checksums.fiscal_code, "RSSMRA85T10A562S"),
        (checksums.resident_id, "11010519491231002X"),
        (checksums.nric, "S1234567D"),
        (checksums.insee, "1 84 12 76 451 089 46"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_number_with_another_digit_is_refused(check: checksums.Check, right: str) -> None:
    assert check(right)
    place = next(place for place, character in enumerate(right) if character.isdigit() and place > 3)
    assert not check(right[:place] + str((int(right[place]) + 1) % 10) + right[place + 1 :])
