"""The sheet says what it is and how it is used, in each form the same; its QR code is read back by a decoder."""

import io
import re
from datetime import date
from html.parser import HTMLParser

import pytest
import zxingcpp
from PIL import Image

from memseal.format.keys import KitSecret, RecoverySecret
from memseal.format.kit import Kit, RecoveryCode
from memseal.surfaces.kit_sheet import Sheet, as_html, as_png, as_text, in_words, kit_sheet, recovery_sheet

VAULT_ID = bytes(range(16))
SERVER = "https://memory.example:8443"
KIT = Kit(VAULT_ID, KitSecret(bytes(range(16, 32))), 3, SERVER).to_text()
CODE = RecoveryCode(VAULT_ID, RecoverySecret(bytes(range(32))), 2, SERVER).to_text()
DAY = date(2026, 12, 1)
SHEETS = {"kit": kit_sheet(KIT, DAY), "recovery code": recovery_sheet(CODE, DAY)}
LONG = Kit(VAULT_ID, KitSecret(bytes(16)), 3, "https://" + "a.very.long.name." * 14 + "example").to_text()


class Page(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags = set[str]()
        self.attributes = dict[str, str | None]()
        self.texts = list[str]()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(attrs)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def shown(sheet: Sheet) -> list[str]:
    """Everything that a sheet has to say."""
    return [
        sheet.title,
        sheet.purpose,
        *sheet.lines(),
        *sheet.steps,
        sheet.warning,
        *(value for _, value in sheet.facts),
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (bytes([127, 0, 0, 1]), "lusab babad"),
        (bytes([63, 84, 220, 193]), "gutih tugad"),
        (bytes([140, 98, 193, 141]), "mudof sakat"),
        (b"\xff\xff", "zuzuz"),
    ],
)
def test_id_in_words_is_as_the_proposal_for_proquints_has_it(content: bytes, words: str) -> None:
    assert in_words(content) == words


@pytest.mark.parametrize("name", SHEETS)
def test_sheet_names_vault_server_generation_and_day(name: str) -> None:
    facts = dict(SHEETS[name].facts)
    assert facts["Vault in words"] == in_words(VAULT_ID)
    assert facts["Vault id"].replace(" ", "") == VAULT_ID.hex()
    assert (facts["Server"], facts["Made on"]) == (SERVER, "2026-12-01")
    assert {"3", "2"} & set(facts.values()) == {"3" if name == "kit" else "2"}


@pytest.mark.parametrize("name", SHEETS)
def test_lines_are_the_string(name: str) -> None:
    sheet = SHEETS[name]
    assert "".join(sheet.lines()) == sheet.secret
    assert max(map(len, sheet.lines())) <= 40


def test_sheet_without_a_server_says_so() -> None:
    kit = Kit(VAULT_ID, KitSecret(bytes(16)), 1, "").to_text()
    assert dict(kit_sheet(kit, DAY).facts)["Server"] == "none when this was made"


@pytest.mark.parametrize("name", SHEETS)
def test_text_says_everything(name: str) -> None:
    text = as_text(SHEETS[name]).lower()
    assert [each for each in shown(SHEETS[name]) if each.lower() not in text] == []


@pytest.mark.parametrize("name", SHEETS)
def test_page_says_everything(name: str) -> None:
    text = "".join(Page(as_html(SHEETS[name])).texts)
    assert [each for each in shown(SHEETS[name]) if each not in text] == []


@pytest.mark.parametrize("name", SHEETS)
def test_page_runs_no_script_and_loads_nothing(name: str) -> None:
    html = as_html(SHEETS[name])
    page = Page(html)
    assert page.tags <= set("html head meta title style body h1 p div svg path code ol li table tr th td".split())
    assert not {"src", "href", "xlink:href", "srcset", "action", "onload"} & set(page.attributes)
    assert "url(" not in html
    assert "@import" not in html
    assert "default-src 'none'" in html


def test_page_escapes_what_a_kit_may_name_as_its_server() -> None:
    hostile = Kit(VAULT_ID, KitSecret(bytes(16)), 1, "<script>alert(1)</script>").to_text()
    page = Page(as_html(kit_sheet(hostile, DAY)))
    assert "script" not in page.tags
    assert "<script>alert(1)</script>" in "".join(page.texts)


@pytest.mark.parametrize("name", SHEETS)
def test_code_on_the_picture_is_read_back_as_the_string(name: str) -> None:
    with Image.open(io.BytesIO(as_png(SHEETS[name]))) as picture:
        assert [found.text for found in zxingcpp.read_barcodes(picture)] == [SHEETS[name].secret]


def test_code_on_the_picture_is_read_back_in_a_poor_photograph() -> None:
    """Half the size, turned, and grey."""
    with Image.open(io.BytesIO(as_png(SHEETS["kit"]))) as picture:
        poor = picture.resize((picture.width // 2, picture.height // 2)).rotate(7, fillcolor=200)
        poor = poor.point([60 + value // 2 for value in range(256)])
        assert [found.text for found in zxingcpp.read_barcodes(poor)] == [KIT]


@pytest.mark.parametrize("name", SHEETS)
def test_picture_is_a_page(name: str) -> None:
    with Image.open(io.BytesIO(as_png(SHEETS[name]))) as page:
        assert page.size == (1240, 1754)
        assert [round(value) for value in page.info["dpi"]] == [150, 150]


def test_picture_grows_where_a_server_has_a_long_name() -> None:
    with Image.open(io.BytesIO(as_png(kit_sheet(LONG, DAY)))) as longer:
        assert longer.height > 1754
        assert [found.text for found in zxingcpp.read_barcodes(longer)] == [LONG]


def test_code_on_the_page_is_the_one_on_the_picture() -> None:
    """Drawn from the page's path, module by module, it is read back as well."""
    path = re.search(r'viewBox="0 0 (\d+) \d+".*? d="([^"]+)"', as_html(SHEETS["kit"]))
    assert path is not None
    size, modules = int(path[1]), path[2]
    drawn = Image.new("L", (size * 4, size * 4), 255)
    x = y = 0.0
    for command, arguments in re.findall(r"([Mmh])([-\d. ]+)", modules):
        numbers = [float(each) for each in re.findall(r"-?[\d.]+", arguments)]
        if command == "h":
            drawn.paste(0, (int(x) * 4, int(y) * 4, int(x + numbers[0]) * 4, (int(y) + 1) * 4))
            x += numbers[0]
        else:
            x, y = (numbers[0], numbers[1]) if command == "M" else (x + numbers[0], y + numbers[1])
    assert [found.text for found in zxingcpp.read_barcodes(drawn)] == [KIT]
