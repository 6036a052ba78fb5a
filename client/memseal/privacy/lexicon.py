"""What is known of words: which are names, whose, and which are just words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

# English words that are first or last names as well: small letters say that they are words.
NAMES_THAT_ARE_WORDS: Final = frozenset(
    """
    abbey ace ali amber angel april art ash aspen august autumn bank barb barber barn baron basil bay bea bear beck
    bell berry bill bishop black blue bond booker booth bowman branch brand brandy brook brooks brown buck bud burns
    bush butler buy byrd can candy carol carpenter carter case cash cat chance chase chastity cherry chip christian
    church clay cliff clinton close cloud coal cole cook cooper coral corn cotton country court cox crane creek crew
    cross crystal dale dark dawn day deal dean deer dell dental devin dick dixie do dollar don dot dove drew duke dusty
    eagle earl east easter eden else ember eve faith fall fan far farmer fawn fay fern field fields finch fish fisher
    flint flora ford forest foster fox france francis frank frost full gable gale gardener garland gay gem gene general
    gentry ginger glen gold good grace grant gray green guy hall harmony harp harper hay hazel head heath heather heaven
    her hill ho holiday holly home honey honor hood hook hope house huge hunt hunter ice iris iron ivory ivy jack jade
    jasmine jay jean jelly jersey jet jewel job jolly joy judge june just justice key kind king kitty knight lake lamb
    land lane large lark last laurel law lawn lee levy lexus liberty light lily lin line link lion little long lord lot
    love low luck lucky ma mack madonna major man mandarin mandy many march marina mark marsh marshal mason master max
    may mayor me mean melody mercedes mercy merit merry mi miles mill miller min mine mister misty moon moss my
    neat new nick night no noble noel nova nut oak ocean olive on one opal or page pansy park parker past pat patience
    patsy pearl penny person pet peter piece pierce pike pine piper poe pond pool poor pope porter posey pray precious
    price prince princess proctor purple queen quick quiet rain raven ray read red reed reef rich ridge rings river
    rob robin rock rocky rode rod rose roth row royal ruby rue rush rusty sable sage sailor salad salt sam sand sandy
    scott sea see serenity settle shade shannon sharp shell shepherd ship short sierra silver singer sky small smart
    snow so song spring star start state sterling stone storm street strong su sue summer sun sunny sunshine swan sweet
    tab tan tat taylor temple tiny ton tour town trinity troy tucker turner ty unique van very vi victor victory
    violet vision walker wall ward warden waters way webb well wells west wheat wheeler white wild will willow win
    winter wise wolf wood woods worth wren yard yes you young zen
    """.split()
)
# Capitalised words that begin sentences, label fields or end a run of names; none of them is part of a name.
NOT_NAMES: Final = frozenset(
    """
    monday tuesday wednesday thursday friday saturday sunday january february april june july august september october
    november december summary contact phone email mail address name user customer client patient employee account agent
    assistant system server host note notes subject dear regards hello hi hey thanks please call confidential profile
    record records report invoice order ticket number date time total status error warning alert info debug session
    token password secret key api id ssn mrn dob iban pin url http https www json sql html select insert update delete
    from where values into null true false none return class def function const let var import public private ip mac
    usa uk eu us ceo cto cfo hr ok faq pdf csv sms gps vip asap fyi re cc bcc fwd attn tel fax mobile home work office
    sie er ich wir ihr mein meine dein deine unser der die das den dem ein eine und ist il elle nous vous je
    mon ma mes le la les un une et est
    el yo mi su los las una es lo gli io noi lui lei eu ele ela nós seu sua het een ik hij zij wij
    visa mastercard amex passwort steuer mobil telefon adresse kontakt lon lat hf openai anthropic
    doctor nurse hospital bank school university college company department team group inc ltd llc corp co gmbh plc
    street avenue road lane drive boulevard suite apt unit box floor english french german spanish chinese japanese
    italian russian american british european african asian australian canadian indian the and for not you your with
    this that have has had was were are would can could should might must shall did does done been being
    konto cookie cookies sessionid authorization bearer aadhaar pan geburtsdatum geboren reisepass führerschein ausweis
    adresse straße strasse rue calle anschrift medicare medicaid whatsapp telegram signal eur usd gbp chf btc eth login
    username account card expiry exp cvv cvc swift bic sort routing iban nino nhs dni nie nif cpf cnpj pesel bsn cnp oib
    insee nir rrn nric sin tfn passport licence license driver insurance security social birth birthday born female male
    christmas easter internet google facebook twitter instagram linkedin github python java javascript windows linux
    android ios excel word bot ai pii gdpr hipaa mr mrs ms miss dr prof sir madam lord lady
    kennwort passwd pwd pw contraseña senha wachtwoord hasło geheimzahl wlan wifi wlan-passwort passphrase passcode
    puk otp tan cvc2 hetu henkilötunnus personnummer fødselsnummer rut cuit cuil curp nik nin bvn nss teudat zehut
    kimlik rijksregisternummer burgerservicenummer steuer-id steueridentifikationsnummer sécu numéro numero número
    nummer matricule codice fiscale assignee reporter reviewer watchers watcher approver requester author maintainer
    owner sender recipient priority severity component description resolution milestone sprint add enter press sung
    physio git sudo generic config itin tfn abn mbi npi egn oib jmbg amka afm hkid mykad ktp cnic isbn issn doi vat
    uuid guid sha hash checksum
    """.split()
)
# The most frequent words of films and encyclopedias; what is rarer may be a name all the same.
_COMMON_RANK: Final = 9_000
_STRONG_RANK: Final = 3_000


@dataclass(frozen=True, eq=False)  # one is made of each: compared as an object, so that it can be a key
class Lexicon:
    """Names in small letters by kind, the gender of first names (f, m or nothing), and words with their rank."""

    first: Mapping[str, str] = field(default_factory=dict[str, str])
    last: frozenset[str] = frozenset()
    words: Mapping[str, int] = field(default_factory=dict[str, int])
    usual: frozenset[str] = (
        frozenset()
    )  # first names so frequent that a capital makes them names, whatever else they mean
    countries: frozenset[str] = frozenset()  # as a whole: of "Solomon Islands" not "Solomon"
    places: frozenset[str] = frozenset()  # cities and regions
    heard: frozenset[str] = frozenset()  # what everybody knows though no list of words has it: brands, bands, programs
    languages: frozenset[str] = frozenset()

    def is_word(self, word: str) -> bool:
        """Whether a word in small letters is a common one of the language, whatever else it is."""
        return word in NOT_NAMES or word in NAMES_THAT_ARE_WORDS or self.words.get(word, _COMMON_RANK) < _COMMON_RANK

    def is_first(self, word: str) -> bool:
        """Whether a word is a first name that hardly means anything else."""
        return (
            word in self.first
            and word not in NOT_NAMES
            and word not in NAMES_THAT_ARE_WORDS
            and self.words.get(word, _STRONG_RANK) >= _STRONG_RANK
        )

    def is_unheard(self, word: str) -> bool:
        """Whether a word in small letters is none that a list of words or of what is known to everybody has."""
        return not any(
            form in self.words or form in self.heard or form in NOT_NAMES or form in self.languages
            for form in (word, word.removesuffix("s"))
        )

    def may_be_name(self, word: str) -> bool:
        """Whether a capitalised word next to a name belongs to it."""
        return word not in NOT_NAMES and (word in self.first or word in self.last or not self.is_word(word))
