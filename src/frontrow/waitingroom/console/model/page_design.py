"""How a room's page looks: one colour, a logo, the owner's own texts per language, and the languages it is offered in.

Nothing here is markup. A colour is six hexadecimal digits, a logo a picture that was drawn anew, and texts are escaped
where they are shown.
"""

import re
import unicodedata
from typing import Final

import msgspec

from frontrow.core.errors import InvalidInput

LANGUAGES: Final = ("en", "de", "fr", "es", "pt", "ja", "ar")
MAX_TITLE_CHARS: Final = 120
MAX_TEXT_CHARS: Final = 500
_COLOUR: Final = re.compile(r"#[0-9a-f]{6}")
_KEPT: Final = frozenset("\n")


class LogoPicture(msgspec.Struct, frozen=True):
    """A prepared logo: the hash of its picture, and its size in pixels."""

    hash: str
    width: int
    height: int


class PageDesign(msgspec.Struct, frozen=True):
    """`titles` and `texts` by language; a language without one shows that of the first language that has one."""

    colour: str = ""
    logo: LogoPicture | None = None
    titles: dict[str, str] = {}
    texts: dict[str, str] = {}
    languages: tuple[str, ...] = LANGUAGES

    def title(self, language: str) -> str:
        return _in_language(self.titles, language, self.languages)

    def text(self, language: str) -> str:
        return _in_language(self.texts, language, self.languages)


def _in_language(texts: dict[str, str], language: str, languages: tuple[str, ...]) -> str:
    return texts.get(language) or next((texts[one] for one in languages if texts.get(one)), "")


def checked_design(design: PageDesign) -> PageDesign:
    """The design in its plain form. Raises InvalidInput."""
    colour = design.colour.strip().lower()
    if colour and not _COLOUR.fullmatch(colour):
        raise InvalidInput("a colour is # and six hexadecimal digits, like #a3123f", param="colour")
    languages = tuple(one for one in LANGUAGES if one in design.languages)
    if not languages or len(languages) != len(set(design.languages)):
        raise InvalidInput(f"the page needs at least one of {', '.join(LANGUAGES)}", param="languages")
    titles = {one: plain_text(text, MAX_TITLE_CHARS, "title") for one, text in design.titles.items() if text.strip()}
    texts = {one: plain_text(text, MAX_TEXT_CHARS, "text") for one, text in design.texts.items() if text.strip()}
    if any(one not in LANGUAGES for one in (*titles, *texts)):
        raise InvalidInput(f"texts are in one of {', '.join(LANGUAGES)}", param="languages")
    return PageDesign(colour, design.logo, titles, texts, languages)


def plain_text(text: str, most: int, param: str) -> str:
    """The text without control characters and without marks that reorder the text around it."""
    normal = unicodedata.normalize("NFC", text.replace("\r\n", "\n"))
    shown = "".join(one for one in normal if one in _KEPT or unicodedata.category(one)[0] != "C").strip()
    if len(shown) > most:
        raise InvalidInput(f"{param} has at most {most} characters", param=param)
    return shown
