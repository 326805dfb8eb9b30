"""Fonts for printed pages. Text that the built-in Helvetica cannot print is set in Noto, embedded as a small subset.

Text in Windows-1252 (Latin-1 with € and –) embeds nothing. Other text gets the first font that has all its letters:
Noto Sans (Latin, Greek, Cyrillic), Noto Sans Arabic or Noto Sans JP, reduced by HarfBuzz to the letters in use. That
takes half a millisecond; the whole CJK font would take a second per PDF. Fonts are read once per process. A letter that
no font has is printed without accents, or as "?".
"""

import functools
import lzma
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

from fpdf import FPDF

CORE_FAMILY: Final = "helvetica"
CORE_ENCODING: Final = "windows-1252"
BASE_FAMILY: Final = "notosans"
_ALWAYS: Final = " ?.,:()-0123456789"
_JOINERS: Final = "\u200c\u200d"  # they change how Arabic letters join
_FOLDER: Final = "frontrow.boxoffice.tickets"


@dataclass(frozen=True, slots=True)
class PrintFont:
    """A font file of this package, with its family and style."""

    family: str
    style: str
    file: str


FONTS: Final = (
    PrintFont(BASE_FAMILY, "", "NotoSans-Regular.ttf"),
    PrintFont(BASE_FAMILY, "B", "NotoSans-Bold.ttf"),
    PrintFont("notosansarabic", "", "NotoSansArabic-Regular.ttf"),
    PrintFont("notosansarabic", "B", "NotoSansArabic-Bold.ttf"),
    PrintFont("notosansjp", "", "NotoSansJP-Regular.ttf.xz"),
)
FAMILIES: Final = (BASE_FAMILY, "notosansarabic", "notosansjp")  # in the order in which they are tried


@functools.cache
def _face(file: str) -> Any:
    import uharfbuzz as hb  # only needed when something is embedded

    body = (resources.files(_FOLDER) / "fonts" / file).read_bytes()
    return hb.Face(lzma.decompress(body) if file.endswith(".xz") else body)


@functools.cache
def letters_of(file: str) -> frozenset[str]:
    """Every letter that the font has."""
    return frozenset(map(chr, _face(file).unicodes))


def is_core_text(texts: Iterable[str]) -> bool:
    """Whether the fonts that every PDF reader has are enough."""
    return all(text.isascii() or _has_core_letters(text) for text in texts)


def _has_core_letters(text: str) -> bool:
    try:
        text.encode(CORE_ENCODING)
    except UnicodeEncodeError:
        return False
    return True


def printable(text: str) -> str:
    """The text in letters that our fonts have: composed, without invisible characters, "?" for the rest."""
    visible = (char for char in text if unicodedata.category(char) not in ("Cc", "Cf") or char in _JOINERS)
    composed = unicodedata.normalize("NFC", "".join(visible))
    if is_core_text((composed,)):
        return composed
    return "".join(letter if _has_font(letter) else _plain(letter) for letter in composed)


def _has_font(letter: str) -> bool:
    return any(letter in letters_of(font.file) for font in FONTS)


def _plain(letter: str) -> str:
    """The letter without accents, or a question mark. Marks that print nothing are dropped."""
    if unicodedata.category(letter) in ("Cf", "Mn", "Me"):
        return ""
    plain = "".join(mark for mark in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(mark))
    return plain if plain != letter and all(map(_has_font, plain)) else "?"


class PrintFonts:
    """The fonts of one PDF: chooses the family of each text."""

    def __init__(self) -> None:
        self._letters: dict[PrintFont, set[str]] = {}

    def family_of(self, text: str, style: str = "") -> str:
        """The family for this text. Call this for all texts before the fonts are embedded."""
        if is_core_text((text,)):
            return CORE_FAMILY
        fonts = [_find_font(family, style) for family in FAMILIES]
        whole = next((font for font in fonts if letters_of(font.file).issuperset(text)), None)
        if whole is not None:
            self._letters.setdefault(whole, set(_ALWAYS)).update(text)
            return whole.family
        left = set(text)
        for font in fonts:  # the base family first; the others print what it lacks
            own = left & letters_of(font.file)
            if own or font.family == BASE_FAMILY:
                self._letters.setdefault(font, set(_ALWAYS)).update(own)
            left -= own
        return BASE_FAMILY

    @contextmanager
    def embedded(self, pdf: FPDF) -> Iterator[None]:
        """Embed the letters in use. Finish the PDF inside the block."""
        pdf.core_fonts_encoding = CORE_ENCODING
        with tempfile.TemporaryDirectory(prefix="frontrow-fonts-") as folder:
            for font, letters in self._letters.items():
                path = Path(folder, f"{font.family}{font.style}.ttf")
                path.write_bytes(_subset(font.file, letters))
                pdf.add_font(font.family, font.style, path)
            families = dict.fromkeys(font.family for font in self._letters if font.family != BASE_FAMILY)
            pdf.set_fallback_fonts(list(families), exact_match=False)
            every = set().union(*self._letters.values())
            if any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in every):
                pdf.set_text_shaping(True)
            yield


def _find_font(family: str, style: str) -> PrintFont:
    """The font of the family in this style, or its regular font."""
    own = [font for font in FONTS if font.family == family]
    return next((font for font in own if font.style == style), own[0])


def _subset(file: str, letters: set[str]) -> bytes:
    import uharfbuzz as hb

    wanted = hb.SubsetInput()
    wanted.unicode_set.update(map(ord, letters))
    return bytes(hb.subset(_face(file), wanted).blob.data)
