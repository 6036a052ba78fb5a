"""Honest empty: of 200 questions in each of five languages about things that are not there, how many answers are empty.

    python tests/bench/probing/emptiness.py

The vault holds a small English diary; the questions are made of twenty subjects and ten ways to ask, none of which it
touches. Counted with the default model and without one; and of questions that it does answer, how many are not empty.
The English questions are also asked of the facts and the long diary of `kinds.py`, in which more of their words occur
("how does … work", "plates"), and a choir, churches and tablets, to which a few of them are truly near.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))

from memseal import Vault
from memseal.embedding import Embedder, default_embedder
from memseal.store.disk import OsDisk
from memseal.store.folder import VaultFolder
from tests.bench import kinds
from tests.vault.small_vault import PASSPHRASE, new_folder, stretch_of

DIARY: Final = (
    "The dentist moved my appointment to Friday at nine",
    "Nora brought plum cake to the office",
    "The landlord repaired the boiler in the cellar",
    "I planted tomatoes and basil on the balcony",
    "The train to Lyon was two hours late",
    "My daughter scored twice in the handball match",
    "The cat hid under the sofa during the storm",
    "We booked a cabin by the lake for July",
    "I lent my drill to the neighbour from upstairs",
    "The choir rehearses on Wednesdays in the old school",
    "Tom is allergic to walnuts",
    "The spare key lies under the blue pot",
    "I finished the book about lighthouses",
    "Grandmother's recipe needs cardamom and rye flour",
    "The car passed its inspection without repairs",
    "Our team meets every Monday about the release",
    "I signed up for a pottery course in autumn",
    "The bakery on the corner closes at two on Saturdays",
    "Ben wants a telescope for his birthday",
    "The printer needs a new black cartridge",
)
ANSWERED: Final = (
    "when is the dentist appointment",
    "who brought cake",
    "what did the landlord repair",
    "which train was late",
    "where is the spare key",
    "what is Tom allergic to",
    "when does the choir rehearse",
    "what does Ben want for his birthday",
    "when does the bakery close",
    "what did I lend to the neighbour",
)
# Twenty subjects and ten ways to ask of each language.
ASKED: Final[dict[str, tuple[str, str]]] = {
    "English": (
        (
            "photosynthesis; Byzantine emperors; quantum chromodynamics; plate tectonics; the Ming dynasty;"
            " sonnet metre; Gothic cathedrals; volcanic ash; jazz improvisation; tax treaties; whale migration;"
            " Sumerian tablets; semiconductor doping; the offside rule; glacier melting; medieval guilds; fractal"
            " geometry; coral bleaching; opera librettos; desalination plants"
        ),
        (
            "what is known about {}; tell me about {}; explain {}; how does {} work; who discovered {}; history"
            " of {}; why is {} important; define {}; {} for beginners; latest research on {}"
        ),
    ),
    "German": (
        (
            "Photosynthese; byzantinische Kaiser; Quantenphysik; Plattentektonik; Ming-Dynastie; Sonettform;"
            " Kathedralen; Vulkanasche; Jazzimprovisation; Steuerabkommen; Walwanderung; Keilschrift; Halbleiter;"
            " Abseitsregel; Gletscherschmelze; Zünfte; Fraktale; Korallenbleiche; Opernlibretti;"
            " Meerwasserentsalzung"
        ),
        (
            "was ist {}; erkläre mir {}; wie funktioniert {}; wer entdeckte {}; die Geschichte von {}; warum ist"
            " {} wichtig; was weißt du über {}; Beispiele für {}; neue Forschung zu {}; woher kommt {}"
        ),
    ),
    "French": (
        (
            "photosynthèse; empereurs byzantins; physique quantique; tectonique des plaques; dynastie Ming;"
            " sonnets; cathédrales gothiques; cendres volcaniques; improvisation musicale; conventions fiscales;"
            " migration des baleines; tablettes sumériennes; semi-conducteurs; règle du hors-jeu; fonte des"
            " glaciers; guildes médiévales; géométrie fractale; blanchissement des coraux; livrets d'opéra;"
            " dessalement"
        ),
        (
            "qu'est-ce que {}; parle-moi de {}; explique {}; comment fonctionne {}; qui a découvert {}; histoire"
            " de {}; pourquoi {} compte; définition de {}; exemples de {}; recherches récentes sur {}"
        ),
    ),
    "Spanish": (
        (
            "fotosíntesis; emperadores bizantinos; física cuántica; tectónica de placas; dinastía Ming; sonetos;"
            " catedrales góticas; ceniza volcánica; improvisación; tratados fiscales; migración de ballenas;"
            " tablillas sumerias; semiconductores; regla del fuera de juego; deshielo; gremios medievales;"
            " geometría fractal; corales; libretos; desalinización"
        ),
        (
            "qué es {}; háblame de {}; explica {}; cómo funciona {}; quién descubrió {}; historia de {}; por qué"
            " importa {}; definición de {}; ejemplos de {}; estudios recientes sobre {}"
        ),
    ),
    "Chinese": (
        (
            "光合作用; 拜占庭皇帝; 量子力学; 板块构造; 明朝; 十四行诗; 哥特式教堂; 火山灰; 爵士即兴;"
            " 税收协定; 鲸鱼迁徙; 苏美尔泥板; 半导体; 越位规则; 冰川融化; 中世纪行会; 分形几何; 珊瑚白化;"
            " 歌剧剧本; 海水淡化"
        ),
        (
            "什么是{}; 告诉我{}; 解释{}; {}怎么运作; 谁发现了{}; {}的历史; 为什么{}重要;"
            " {}的定义; {}的例子; 关于{}的研究"
        ),
    ),
}


def questions(language: str) -> list[str]:
    """Return the 200 questions of a language."""
    subjects, ways = (text.split(";") for text in ASKED[language])
    return [way.strip().format(subject.strip()) for subject in subjects for way in ways]


def run(folder: Path) -> dict[str, Any]:
    """Return by model and language how many of the answers were empty; `folder` is empty."""
    model = default_embedder()
    rows = {"words": _counted(folder / "words", None)}
    if model is not None:
        rows["with the model"] = _counted(folder / "model", model)
        for name, labelled in (("facts", kinds.facts()), ("diary entries", kinds.diary())):
            with _filled(folder / name, model, list(labelled.memories.values())) as vault:
                rows["with the model"][f"English, of {len(labelled.memories)} {name}"] = _empty(vault, "English")
    return {"empty": rows, "asked": {language: len(questions(language)) for language in ASKED}}


def _counted(path: Path, embedder: Embedder | None) -> dict[str, int]:
    with _filled(path, embedder, [{"content": content, "source": "diary"} for content in DIARY]) as vault:
        rows = {language: _empty(vault, language) for language in ASKED}
        return {**rows, "answered, of 10": sum(vault.recall(query).status == "ok" for query in ANSWERED)}


def _filled(path: Path, embedder: Embedder | None, memories: Sequence[Mapping[str, Any]]) -> Vault:
    folder = new_folder(path)
    vault = Vault._open(VaultFolder(folder.path, OsDisk()), stretch_of(PASSPHRASE), False, embedder)
    vault.remember_many(memories)
    return vault


def _empty(vault: Vault, language: str) -> int:
    return sum(vault.recall(query).status == "empty" for query in questions(language))


if __name__ == "__main__":
    with TemporaryDirectory(prefix="memseal-probe-") as name:
        for setting, counts in run(Path(name))["empty"].items():
            for row, count in counts.items():
                sys.stdout.write(f"{setting:<16}{row:<32}{count}\n")
