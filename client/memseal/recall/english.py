"""Whether a text is English, by the small words in it (recall.md §3)."""

import re
from typing import Final

from memseal.recall.stopwords import STOP_WORDS

# The small words of other languages, without those that are small English words too ("an", "me", "no"), and a few that
# English texts are likely to have ("war", "son", "pour", "van").
FOREIGN: Final = frozenset(
    """
    der die das des dem den ein eine einen einem einer eines und oder aber ist sind wird wurde hat hatte habe haben bin
    ich du er sie es wir ihr mir mich dir dich uns euch sich mein meine meinen meinem meiner dein deine sein seine
    nicht kein keine auf aus bei mit nach von vom zu zum zur für über unter ins beim wie wo wer wann warum welche
    welcher welches wieviel nur noch schon wenn dass
    le la les l un une du de d et ou où est sont était je j tu il elle nous vous ils elles mon ma mes ta tes sa ses
    notre votre leur leurs ne n pas que qu qui quoi quel quelle quels quelles quand comment pourquoi dans avec sans chez
    aux au ce c cette ces sur par avons avez ont suis
    el los las una unos unas y o son está están era yo tú él ella nosotros mi mis tus su sus nuestro nuestra qué quién
    cuál cuándo dónde cómo para con del al se lo muy por hay cuánto
    os um uma é são foi eu ele ela nós meu minha seu sua não quem qual quando onde como com sem da dos das na nos
    gli uno e ed è sono ero io lui lei noi voi mio mia tuo tua non chi che quale perché di della dei delle alla nel
    nella il
    het een en ik jij hij zij wij mijn jouw niet geen wat wie waar waarom voor naar bij zijn heeft
    och att det som på är av inte jag vi hon han vad var när hur varför och ikke og jeg hvad hvor hvem
    w i z na nie się jest to czy jak gdzie kto kiedy dlaczego mój moja
    ve bir bu ne nerede nas\u0131l kim için ile benim
    của là có không và ở tôi bạn gì nào đã với cho được
    yang di dan itu ini saya kami apa siapa bagaimana dengan untuk
    """.split()
) - (STOP_WORDS - frozenset("d y o ma".split()))

_SMALL: Final = STOP_WORDS - frozenset("d ll m ma o re s t ve y".split())
_WORD: Final = re.compile(r"[^\W\d_]+")
_READABLE: Final = re.compile("[0-9A-Za-z]")
# A name with an accent stands in English texts too; two words with accents seldom do.
_ACCENTED: Final = 0.5


def is_english(text: str) -> bool:
    """Whether a text has no more small words, and words in other letters, of other languages than small English ones.

    A text of one or two words without any small ones passes for English; one without Latin letters and digits does not.
    """
    english, foreign = 0, 0.0
    for word in _WORD.findall(text.lower()):
        if word in _SMALL:
            english += 1
        elif word in FOREIGN:
            foreign += 1
        elif not word.isascii():
            foreign += _ACCENTED if word[0] < "\u0250" else 1
    return (foreign < 1 or foreign < english) and _READABLE.search(text) is not None
