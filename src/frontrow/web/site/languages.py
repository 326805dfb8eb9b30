"""The pages' languages: gettext catalogues read once at the start, and how dates, numbers and money are written.

A text is its own key, in English, with `{names}` for what is put in. Texts are written so that they need no plural.
Each language may have several catalogues (`translations/<language>/*.po`), one a part of the site.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from io import BytesIO
from typing import Any, Final
from zoneinfo import ZoneInfo

from babel import Locale
from babel.dates import format_skeleton, format_time
from babel.messages.pofile import read_po
from babel.numbers import format_currency, format_decimal, get_currency_precision

from frontrow.core.clock import US_PER_S
from frontrow.web.room.page_parts import N_ as N_

LANGUAGES: Final = {
    "en": "English",
    "de": "Deutsch",
    "fr": "Français",
    "es": "Español",
    "pt": "Português",
    "ja": "日本語",
    "ar": "العربية",
}
DEFAULT: Final = "en"
RIGHT_TO_LEFT: Final = frozenset({"ar"})
MAX_ACCEPTED: Final = 20
KEPT: Final = 4_096
_NAME: Final = re.compile(r"\{(\w+)\}")


class Words:
    """One language: looks texts up and writes numbers, money and times as its readers expect."""

    def __init__(self, language: str, texts: Mapping[str, str]) -> None:
        self.language, self._texts = language, texts
        self.direction = "rtl" if language in RIGHT_TO_LEFT else "ltr"
        self._locale = Locale.parse("en_GB" if language == "en" else language)
        pattern = self._locale.currency_formats["standard"].pattern
        # writing costs 40 µs, and a page of seats has hundreds of amounts, the same ones again and again
        self._number, self._money = lru_cache(KEPT)(self._write_number), lru_cache(KEPT)(self._write_money)
        self._pattern, self._whole_pattern = pattern, re.sub(r"\.0+", "", pattern)

    def __call__(self, text: str, **values: Any) -> str:
        """`text` in this language, with `{names}` replaced."""
        found = self._texts.get(text, text)
        return _NAME.sub(lambda name: str(values[name[1]]), found) if values else found

    def chosen(self, texts: frozenset[str]) -> dict[str, str]:
        """The translations of those texts, for a script; nothing for English."""
        return {text: self._texts[text] for text in sorted(texts) if text in self._texts}

    def number(self, value: int) -> str:
        return self._number(value)

    def money(self, minor: int, currency: str) -> str:
        """An amount, without decimals where there are none: what people read fastest."""
        return self._money(minor, currency)

    def _write_number(self, value: int) -> str:
        return str(format_decimal(value, locale=self._locale))

    def _write_money(self, minor: int, currency: str) -> str:
        digits = get_currency_precision(currency)
        amount = Decimal(minor).scaleb(-digits)
        pattern = self._whole_pattern if amount == int(amount) else self._pattern
        return str(format_currency(amount, currency, pattern, self._locale, currency_digits=False))

    def when(self, at_us: int, zone: str = "UTC", *, short: bool = False) -> str:
        """A moment as the clock at `zone` shows it, in this language's order."""
        moment, where = datetime.fromtimestamp(at_us / US_PER_S, UTC), ZoneInfo(zone)
        day = format_skeleton("MMMd" if short else "yMMMEd", moment, tzinfo=where, locale=self._locale)
        return f"{day}, {format_time(moment, 'HH:mm', tzinfo=where, locale=self._locale)}"


@lru_cache
def words_of(language: str) -> Words:
    """The words of a language; its catalogues are read once."""
    texts: dict[str, str] = {}
    if language != DEFAULT:
        for part in catalogues(language):
            for message in read_po(BytesIO(part.read_bytes()), locale=language):
                if isinstance(message.id, str) and message.id and isinstance(message.string, str) and message.string:
                    texts[message.id] = message.string
    return Words(language, texts)


def catalogues(language: str) -> list[Traversable]:
    """The files of a language, in order of their names."""
    folder = files("frontrow.web") / "translations" / language
    if not folder.is_dir():
        return []
    return sorted((one for one in folder.iterdir() if one.name.endswith(".po")), key=lambda one: one.name)


def load_all() -> None:
    """Read every language now, so that no visitor waits for it."""
    for language in LANGUAGES:
        words_of(language)


def best_language(cookie: str, accepted: str) -> str:
    """The chosen language, else the first of `Accept-Language` that there is, else English."""
    if cookie in LANGUAGES:
        return cookie
    wishes: list[tuple[float, int, str]] = []
    for position, part in enumerate(accepted.split(",")[:MAX_ACCEPTED]):
        name, _, weight = part.strip().partition(";")
        try:
            quality = float(weight.strip().removeprefix("q=")) if weight else 1.0
        except ValueError:
            quality = 0.0
        wishes.append((-quality, position, name.split("-")[0].lower()))
    return next((name for quality, _, name in sorted(wishes) if quality < 0 and name in LANGUAGES), DEFAULT)
