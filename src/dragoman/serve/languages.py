"""English names of languages by their ISO 639 code."""

import re

_TABLE = """
af=Afrikaans am=Amharic ar=Arabic as=Assamese ast=Asturian az=Azerbaijani ba=Bashkir be=Belarusian
bg=Bulgarian bn=Bengali br=Breton bs=Bosnian ca=Catalan ceb=Cebuano cs=Czech cv=Chuvash cy=Welsh
da=Danish de=German dsb=Lower_Sorbian el=Greek en=English eo=Esperanto es=Spanish et=Estonian
eu=Basque fa=Persian fi=Finnish fil=Filipino fo=Faroese fr=French fy=West_Frisian ga=Irish
gd=Scottish_Gaelic gl=Galician gu=Gujarati ha=Hausa he=Hebrew hi=Hindi hr=Croatian
hsb=Upper_Sorbian ht=Haitian_Creole hu=Hungarian hy=Armenian id=Indonesian ig=Igbo is=Icelandic
it=Italian ja=Japanese jv=Javanese ka=Georgian kab=Kabyle kk=Kazakh km=Khmer kn=Kannada ko=Korean
ku=Kurdish ky=Kyrgyz la=Latin lb=Luxembourgish lo=Lao lt=Lithuanian lv=Latvian mg=Malagasy
mi=Māori mk=Macedonian ml=Malayalam mn=Mongolian mr=Marathi ms=Malay mt=Maltese my=Burmese
nb=Norwegian_Bokmål ne=Nepali nl=Dutch nn=Norwegian_Nynorsk no=Norwegian oc=Occitan or=Odia
pa=Punjabi pl=Polish ps=Pashto pt=Portuguese qu=Quechua rm=Romansh ro=Romanian ru=Russian
rw=Kinyarwanda sa=Sanskrit sd=Sindhi se=Northern_Sami si=Sinhala sk=Slovak sl=Slovenian sm=Samoan
so=Somali sq=Albanian sr=Serbian su=Sundanese sv=Swedish sw=Swahili ta=Tamil te=Telugu tg=Tajik
th=Thai ti=Tigrinya tk=Turkmen tl=Tagalog tr=Turkish tt=Tatar ug=Uyghur uk=Ukrainian ur=Urdu
uz=Uzbek vi=Vietnamese wo=Wolof xh=Xhosa yi=Yiddish yo=Yoruba zh=Chinese zu=Zulu
"""
_NAMES = dict(entry.split("=") for entry in _TABLE.split())


def name_of(code: str) -> str:
    """Returns the name of a language, with what its code adds: Chinese (Hans); else the code."""
    language, *rest = re.split("[-_]", code, maxsplit=1)
    name = _NAMES.get(language.lower())
    if name is None:
        return code
    name = name.replace("_", " ")
    return f"{name} ({rest[0]})" if rest else name
