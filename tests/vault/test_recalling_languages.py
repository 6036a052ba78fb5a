"""Honest recall in several languages, with the real model where it is installed, and with words alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memseal.embedding import Embedder, default_embedder
from memseal.store.disk import OsDisk
from memseal.store.folder import VaultFolder
from memseal.vault.vault import Vault
from tests.vault.small_vault import PASSPHRASE, new_folder, stretch_of

MEMORIES = {
    "en": """The spare key is under the blue pot|Ann is allergic to nuts|The dentist appointment is on Tuesday at nine
             |We painted the house in summer|My bicycle is in the cellar|The cat only eats dry food""",
    "de": """Der Schlüssel liegt unter dem blauen Topf|Anna ist allergisch gegen Nüsse|Wir haben das Haus gestrichen
             |Der Zahnarzttermin ist am Dienstag um neun|Mein Fahrrad steht im Keller|Die Katze schläft""",
    "fr": """La clé est sous le pot bleu|Anna est allergique aux noix|Nous avons repeint la maison cet été
             |Le rendez-vous chez le dentiste est mardi à neuf heures|Mon vélo est à la cave|Le chat dort""",
    "es": """La llave está debajo de la maceta azul|Ana es alérgica a las nueces|Pintamos la casa en verano
             |La cita con el dentista es el martes a las nueve|Mi bicicleta está en el sótano|El gato duerme""",
    "zh": "备用钥匙在蓝色花盆下面|安娜对坚果过敏|星期二九点看牙医|我们夏天粉刷了房子|我的自行车在地下室",
    "ja": "予備の鍵は青い鉢の下にある|アンナはナッツアレルギー|火曜日の九時に歯医者|自転車は地下室にある",
    "ru": "Запасной ключ под синим горшком|У Анны аллергия на орехи|Велосипед в подвале",
}
RELATED = {
    "en": ("Where is the key?", "The spare key"),
    "de": ("Wo ist mein Fahrrad?", "Mein Fahrrad"),
    "fr": ("Où est mon vélo ?", "Mon vélo"),
    "es": ("¿Dónde está mi bicicleta?", "Mi bicicleta"),
    "zh": ("钥匙在哪里", "备用钥匙"),
    "ja": ("自転車はどこ", "自転車"),
    "ru": ("где велосипед", "Велосипед"),
}
UNRELATED = {
    "en": "What is the capital of Kazakhstan?|How does a quantum computer work?|Recipe for lentil soup|Install nginx",
    "de": "Welche Hauptstadt hat Kasachstan?|Wie funktioniert ein Quantencomputer?|Rezept für Linsensuppe",
    "fr": "Quelle est la capitale du Kazakhstan ?|Comment fonctionne un ordinateur ?|Recette de soupe aux lentilles",
    "es": "¿Cuál es la capital de Kazajistán?|¿Cómo funciona un ordenador cuántico?|Receta de sopa de lentejas",
    "zh": "哈萨克斯坦的首都|量子计算机怎么工作|扁豆汤食谱",
    "ja": "カザフスタンの首都|量子コンピュータ|レンズ豆のスープ",
    "ru": "столица Казахстана|как работает квантовый компьютер|рецепт супа",
}


@pytest.fixture(scope="module", params=["words alone", "the model"])
def embedder(request: pytest.FixtureRequest) -> Embedder | None:
    if request.param == "words alone":
        return None
    embedder = default_embedder()
    if embedder is None:
        pytest.skip("the extra `embed` is not installed")
    return embedder


@pytest.fixture(scope="module")
def vaults(embedder: Embedder | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Vault]]:
    vaults: dict[str, Vault] = {}
    for language, texts in MEMORIES.items():
        vaults[language] = _vault(tmp_path_factory.mktemp(language) / "vault", embedder)
        vaults[language].remember_many([{"content": text.strip(), "source": "a"} for text in texts.split("|")])
    yield vaults
    for vault in vaults.values():
        vault.close()


def _vault(path: Path, embedder: Embedder | None) -> Vault:
    return Vault._open(VaultFolder(new_folder(path).path, OsDisk()), stretch_of(PASSPHRASE), False, embedder)


@pytest.mark.parametrize("language", MEMORIES)
def test_question_finds_its_memory_first(vaults: dict[str, Vault], language: str) -> None:
    query, beginning = RELATED[language]
    packet = vaults[language].recall(query)
    assert packet.status == "ok"
    assert packet.hits[0].memory.content.startswith(beginning)


@pytest.mark.parametrize(
    ("language", "query"), [(one, each) for one in UNRELATED for each in UNRELATED[one].split("|")]
)
def test_unrelated_question_is_empty(vaults: dict[str, Vault], language: str, query: str) -> None:
    packet = vaults[language].recall(query)
    assert (packet.status, [hit.memory.content for hit in packet.hits]) == ("empty", [])


@pytest.mark.parametrize("language", [language for language in MEMORIES if language != "en"])
def test_memories_in_other_languages_are_not_near_to_an_english_question(
    vaults: dict[str, Vault], language: str
) -> None:
    assert vaults[language].recall("What is the capital of Kazakhstan?").status == "empty"
